"""Programs run under the shim, for real, on every build at hand."""

import os
import subprocess
import time
from functools import cached_property

import pytest

from gilscope.toolkit.gil import preload, records
from tests.conformance.builds import builds
from tests.patience import PATIENCE

BUILDS = builds()
TRIES = 8       # of what depends on when threads get their cores
ENOUGH = 60.0   # seconds for all of them: on a very busy machine each takes long, and one is like another
BUSY = 0.05     # share of their lives that threads waited for a core, above which that may be why it came out otherwise
REASON = preload.unavailable()


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

    @cached_property
    def begun(self):
        """Return the nanosecond of CLOCK_MONOTONIC that its seconds count from."""
        (path,) = self.folder.glob(f"*{records.SUFFIX}")
        with path.open("rb") as file:
            return records._HEADER.unpack(file.read(records._HEADER.size))[13]

    @property
    def queued(self):
        """Return the seconds that its threads waited for a core, as far as the system tells."""
        return sum(thread.run_queue or 0.0 for process in self.processes for thread in process.threads)

    @property
    def lived(self):
        """Return the seconds that its threads were there, all of them together."""
        return sum(thread.seconds for process in self.processes for thread in process.threads)

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
            [BUILDS[label], "-W", "error", str(program), *words], timeout=PATIENCE, capture_output=True, text=True,
            check=False, cwd=tmp_path, env={**clean, **preload.environment(str(folder)), **variables})
        assert done.returncode == ended, done.stderr
        assert not done.stderr, done.stderr
        return Recorded(done, folder, time.monotonic() - began)

    return run


@pytest.fixture
def record_until(record):
    """Give a function that records a program until `good(recorded)`, but not for ever.

    A thread gets a CPU when the system, and the machine below it, give it one; no event tells whether it had one in
    the microseconds that lie between what the program sees and what the shim sees.  Where it is never good, and threads
    had no cores to run on, the test is skipped; otherwise it is to look at the last recording, and fail.
    """
    def run(label, source, good, *words):
        queued = lived = 0.0
        began = time.monotonic()
        for attempt in range(TRIES):
            recorded = record(label, source, *words, into=f"records-{attempt}")
            if good(recorded):
                return recorded
            queued, lived = queued + recorded.queued, lived + recorded.lived
            if queued > BUSY * lived and time.monotonic() - began > ENOUGH:
                break
        if queued > BUSY * lived:
            pytest.skip(f"not {good.__name__.replace('_', ' ')} in any of {attempt + 1} runs: "
                        f"threads waited for a core for {queued:.2f} s of {lived:.2f} s")
        return recorded

    return run
