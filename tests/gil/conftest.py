"""Programs run under the shim, for real, on every build at hand."""

import os
import subprocess
from functools import cache

import pytest

from tests.conformance.builds import builds
from toolkit.gil import preload
from toolkit.gil.records import read_folder

BUILDS = builds()
LIMIT = 60.0
REASON = preload.unavailable()


@cache
def is_free_threaded(python):
    """Return whether this Python was built without a GIL."""
    code = "import sysconfig; print(sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout == "1\n"


def pytest_collection_modifyitems(items):
    for item in items:
        if REASON and "record" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.skip(reason=REASON))


class Recorded:
    """What a program said, and what its processes left."""

    def __init__(self, done, folder):
        self.out = done.stdout
        self.processes = read_folder(folder)

    @property
    def process(self):
        (process,) = self.processes
        return process

    def thread(self, entry):
        """Return the one thread that ran the function `entry`."""
        (thread,) = (each for each in self.process.threads if each.entry == entry)
        return thread


@pytest.fixture
def record(tmp_path):
    """Give a function that runs source code under the shim and reads what it leaves."""
    def run(label, source, *words, ended=0, name="program.py", records="records", **variables):
        folder = tmp_path / records
        folder.mkdir()
        program = tmp_path / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(source, encoding="utf-8")
        clean = {key: value for key, value in os.environ.items() if key not in {"LD_PRELOAD", "PYTHON_GIL"}}
        done = subprocess.run(
            [BUILDS[label], "-W", "error", str(program), *words], timeout=LIMIT, capture_output=True, text=True,
            check=False, cwd=tmp_path, env={**clean, **preload.environment(str(folder)), **variables})
        assert done.returncode == ended, done.stderr
        assert not done.stderr, done.stderr
        return Recorded(done, folder)

    return run
