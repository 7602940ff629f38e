"""Programs run under the shim, for real."""

import functools
import os
import subprocess
import time
from functools import cached_property

import pytest

from gilscope.toolkit.gil import preload, records
from tests.patience import PATIENCE

TRIES = 8       # of what depends on when threads get their cores, on a machine that has cores for them
MOST = 200      # of them on any machine
BUSY = 0.05     # share of their lives that threads waited for a core, above which that may be why it came out otherwise


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
        """Return the share of their lives that its threads waited for a core, as far as the system tells."""
        threads = [thread for process in self.processes for thread in process.threads]
        return sum(thread.run_queue or 0.0 for thread in threads) / sum(thread.seconds for thread in threads)

    def thread(self, entry):
        """Return the one thread that ran the function `entry`."""
        (thread,) = (each for each in self.process.threads if each.entry == entry)
        return thread


@pytest.fixture(scope="session")
def shim():
    """Skip the test where there is no shim."""
    if reason := preload.unavailable():
        pytest.skip(reason)


def run(python, place, source, words, *, ended=0, name="program.py", into="records", **variables):
    folder = place / into
    folder.mkdir()
    program = place / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(source, encoding="utf-8")
    clean = {key: value for key, value in os.environ.items() if key not in {"LD_PRELOAD", "PYTHON_GIL"}}
    began = time.monotonic()
    done = subprocess.run(
        [python, "-W", "error", str(program), *words], timeout=PATIENCE, capture_output=True, text=True,
        check=False, cwd=place, env={**clean, **preload.environment(str(folder)), **variables})
    assert done.returncode == ended, done.stderr
    assert not done.stderr, done.stderr
    return Recorded(done, folder, time.monotonic() - began)


@pytest.fixture
def record(shim, python, tmp_path):
    """Give a function that runs source code under the shim and reads what it leaves."""
    return lambda source, *words, **changes: run(python, tmp_path, source, words, **changes)


@pytest.fixture(scope="module")
def record_once(shim, python, tmp_path_factory):
    """Give a function that does so once for all tests of a module that name the same program and words."""
    @functools.cache
    def once(source, *words, attempt=0):
        return run(python, tmp_path_factory.mktemp("recorded"), source, words)

    return once


@pytest.fixture
def record_until(record_once):
    """Give a function that records a program until `good(recorded)`.

    A thread gets a CPU when the system, and the machine below it, give it one; no event tells whether it had one in
    the microseconds that lie between what the program sees and what the shim sees.  So a recording whose threads had
    no cores to run on counts as none.
    """
    def repeat(source, good, *words):
        failed = []     # the shares of waits for a core
        for attempt in range(MOST):
            last = record_once(source, *words, attempt=attempt)
            if good(last):
                return last
            failed.append(last.queued)
            if sum(queued <= BUSY for queued in failed) == TRIES:
                break
        pytest.fail(f"not {good.__name__.replace('_', ' ')} in any of {len(failed)} runs, whose threads waited for a "
                    f"core for {min(failed):.0%} to {max(failed):.0%} of their time")

    return repeat
