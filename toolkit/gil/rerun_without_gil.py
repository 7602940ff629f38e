"""Run a program that the GIL limits again on the free-threaded build, to measure its gain there."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from gilscope.toolkit.gil.recorder import BUSY, SAME, queued_share, record
from gilscope.toolkit.gil.summary import summarize
from gilscope.toolkit.processes.supervised import Supervised

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gilscope.toolkit.gil.recorder import Recording
    from gilscope.toolkit.model import Build

LONGER = 10.0        # time limit there: that many times the first run, plus as many seconds
RUNS = 3             # of a short program: contention for one object varies most from run to run
SHORT = 5.0          # seconds, up to which a program is short
KILLED = -9          # exit code of a run that took too long


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutGil:
    """The program's run on the free-threaded build, or the reason why it cannot be compared."""

    build: str
    version: str
    wall: float | None      # seconds from the first process's start to the last one's end: the median of `walls`
    walls: tuple[float, ...]   # of each run there, in their order
    cpu: float | None       # of the first of them
    ratio: float | None     # speed relative to the run with a GIL, by `wall`
    refused: str | None     # why there is no ratio; None if there is one
    busy: bool              # in the first run threads waited for a core, although only one at a time had the GIL


def free_build(builds: Sequence[Build], version: str) -> Build | None:
    """Return the free-threaded build of the same minor version as `version`, else of the nearest."""
    minor = [int(part) for part in version.split(".")[:2]]

    def distance(build: Build) -> tuple[bool, int]:
        other = [int(part) for part in build.minor.split(".")]
        return build.debug, abs(other[1] - minor[1])

    return min((build for build in builds if build.free_threaded), key=distance, default=None)


def run_there(build: Build, words: Sequence[str], environ: Mapping[str, str], first: Recording) -> WithoutGil:
    """Run the program on `build`, without output and input, and compare it with the first run.

    A short program is run three times.

    Args:
        build: A free-threaded build.
        words: The command line after the interpreter.
        environ: The environment of the first run.
        first: The run on the build with a GIL; its exit code was 0.

    Raises:
        ShimUnavailableError: As `record`.
    """
    limit = LONGER * first.wall + LONGER
    last_line = [""]
    usual = {name: value for name, value in environ.items() if name != "PYTHON_GIL"}

    def run(environment: dict[str, str]) -> int:
        # Only the program gets the shim, not the supervisor, which is a Python process of ours.
        own = [f"{name}={value}" for name, value in environment.items() if usual.get(name) != value]
        with tempfile.TemporaryFile() as complaint:
            with Supervised(["env", *own, build.executable, *words], env=usual, stderr=complaint) as process:
                try:
                    code = process.wait(limit)
                except (subprocess.TimeoutExpired, KeyboardInterrupt):   # the first run is reported in any case
                    return KILLED
            complaint.seek(0)
            last_line[0] = (complaint.read().decode(errors="replace").strip().splitlines() or [""])[-1]
            return code

    runs = [record(run, usual)]
    while not runs[-1].ended and runs[0].wall <= SHORT and len(runs) < RUNS:
        runs.append(record(run, usual))
    reason = _refusal(runs[-1], last_line[0])
    busy = (queued_share(first) or 0.0) > BUSY
    if reason is not None:
        return WithoutGil(build=build.label, version=build.version, wall=None, walls=(), cpu=None, ratio=None,
                          refused=reason, busy=busy)
    # Both sides count from the interpreter's start to its end, without the time of the supervisor.
    took = [summarize(each.processes) for each in runs]
    walls = tuple(each.wall for each in took)
    return WithoutGil(build=build.label, version=build.version, wall=median(walls), walls=walls, cpu=took[0].cpu,
                      ratio=summarize(first.processes).wall / median(walls), refused=None, busy=busy)


def _refusal(there: Recording, last_words: str) -> str | None:
    if there.ended == KILLED:
        return f"it was ended there after {there.wall:.0f} s"
    if there.ended:
        how = f"exit code {there.ended}" if there.ended > 0 else f"signal {-there.ended}"
        return f"it does not run there ({how}{': ' + last_words[:200] if last_words else ''})"
    if not there.processes:
        return f"nothing was recorded there{': ' if there.problem else ''}{there.problem}"
    if there.gil_used:
        return "an extension module turns the GIL on there; `gilscope doctor` names it"
    return None


def took_as_long(found: WithoutGil) -> bool:
    """Return True if both runs took equally long."""
    return found.ratio is not None and abs(found.ratio - 1) < SAME
