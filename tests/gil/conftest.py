"""Programs run under the shim, for real, on every build at hand."""

import os
import subprocess
import time
from functools import cache

import pytest

from tests.conformance.builds import builds
from toolkit.gil import preload, records

BUILDS = builds()
LIMIT = 300.0   # seconds for what takes one
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

    def __init__(self, done, folder, lasted):
        self.out = done.stdout
        self.lasted = lasted      # seconds, from before its start to after its end
        self.folder = folder
        self.processes = records.read_folder(folder)

    @property
    def process(self):
        (process,) = self.processes
        return process

    @property
    def numbers(self):
        """Return the numbers that the program has printed."""
        return [float(word) for word in self.out.split()]

    @property
    def begun(self):
        """Return the nanosecond of CLOCK_MONOTONIC that its seconds count from."""
        (path,) = self.folder.glob(f"*{records.SUFFIX}")
        return records._HEADER.unpack_from(path.read_bytes())[11]

    def thread(self, entry):
        """Return the one thread that ran the function `entry`."""
        (thread,) = (each for each in self.process.threads if each.entry == entry)
        return thread


@pytest.fixture
def record(tmp_path):
    """Give a function that runs source code under the shim and reads what it leaves."""
    def run(label, source, *words, ended=0, name="program.py", into="records", **variables):
        folder = tmp_path / into
        folder.mkdir()
        program = tmp_path / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(source, encoding="utf-8")
        clean = {key: value for key, value in os.environ.items() if key not in {"LD_PRELOAD", "PYTHON_GIL"}}
        began = time.monotonic()
        done = subprocess.run(
            [BUILDS[label], "-W", "error", str(program), *words], timeout=LIMIT, capture_output=True, text=True,
            check=False, cwd=tmp_path, env={**clean, **preload.environment(str(folder)), **variables})
        assert done.returncode == ended, done.stderr
        assert not done.stderr, done.stderr
        return Recorded(done, folder, time.monotonic() - began)

    return run


@pytest.fixture
def record_until(record):
    """Give a function that records a program until `good(recorded)`, but not for ever.

    A thread gets a CPU when the system, and the machine below it, give it one; no event tells whether it had one in
    the microseconds that lie between what the program sees and what the shim sees.
    """
    def run(label, source, good, *words):
        for attempt in range(8):
            recorded = record(label, source, *words, into=f"records-{attempt}")
            if good(recorded):
                break
        return recorded

    return run
