"""Start measured processes for real: specs, environments, and what is left of a process afterwards."""

import subprocess
import sys
import uuid
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from gilscope.toolkit.builds.environment import build_environment
from gilscope.toolkit.cores import usable_cores
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.measure.child.spec import CellSpec, UserTarget
from gilscope.toolkit.measure.measured_process import run_child
from gilscope.toolkit.measure.preparation import child_environment, needed_packages
from tests.conformance import builds
from tests.patience import PATIENCE, wait_until

USERCODE = Path(__file__).with_name("usercode")
MARK = "GILSCOPE_TEST_MARK"   # every process of one measurement inherits it, whatever session it is in


# Each is tried only where the one before was too short to show what it should: nobody can tell from outside when a busy
# machine has let a process get there.
LIMITS = (1.0, 10.0, 60.0)


@cache
def python_of(build):
    """Return a python of the build that has what measuring needs; skips the test where it cannot be had."""
    python = builds.python_of(build)
    has_pyperf = subprocess.run([python, "-c", "import pyperf"], capture_output=True, check=False, timeout=PATIENCE)
    if has_pyperf.returncode == 0:
        return python
    try:
        return str(build_environment(build, needed_packages(build)).python)
    except ToolkitError as error:
        pytest.skip(f"{build.label} has no pyperf: {error}")


def gil_on():
    """Return whether this Python runs with the GIL."""
    return getattr(sys, "_is_gil_enabled", lambda: True)()


THREADS = "threads" if gil_on() else "free-threaded"   # the model of threads that this Python has


def target(function, *, payload="0", tasks=1, **names):
    """Return the user's function `function` of usercode/, called `tasks` times."""
    if "payloads" in names:
        payload = None
    return UserTarget(function=function, payload=payload, tasks=tasks, **names)


def make_spec(folder, user, *, runner="serial", workers=1, **changes):
    """Return the spec of one short measured process."""
    fields = {
        "name": f"user/runner={runner}/workers={workers}/phase=steady", "workload": "user", "user": user,
        "size": "small", "runner": runner, "workers": workers, "phase": "steady", "task_units": None, "tasks": None,
        "values": 1, "warmups": 0, "loops": 1, "min_seconds": 0.0, "progress_timeout": 120.0, "services": (),
        "folder": str(folder),
    }
    return CellSpec(**fields | changes)


def measure(spec, python=sys.executable, *, paths=(), function="main", **environment):
    """Run the child, and pass only when nothing that it started is alive afterwards."""
    mark = uuid.uuid4().hex
    env = {**child_environment([USERCODE, *paths]), MARK: mark, **environment}
    answer = run_child(python, spec, env, function=function)
    assert not still_alive(mark)
    return answer


def measure_hang(place, spec_of, python=sys.executable, **options):
    """Run a child that hangs in the function `place`; return its answer, and the limit that let it come that far."""
    for seconds in LIMITS:
        answer = measure(spec_of(seconds), python, **options)
        if f"in {place}" in answer.output:
            break
    return answer, seconds


def still_alive(mark):
    """Return the processes of one measurement that are there when they had time to go."""
    wanted = f"{MARK}={mark}".encode()
    return [] if wait_until(lambda: not _marked(wanted)) else _marked(wanted)


def _marked(mark):
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in environ.read_bytes().split(b"\0"):
                found.append(environ.with_name("cmdline").read_bytes())
        except OSError:
            continue   # it ended meanwhile, or is somebody else's
    return found


@contextmanager
def busy_cores():
    """Use every core, twice over, and yield the name of the program that does."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * usable_cores())]
    try:
        yield Path(f"/proc/{others[0].pid}/comm").read_text(encoding="utf-8").strip()
    finally:
        for other in others:
            other.kill()
            other.wait()
