"""An earlier run as it is now: its builds, if they are unchanged, and the rounds that it lacks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.builds.find import find_builds, inspect_new
from gilscope.toolkit.errors import BadFileError, ToolkitError
from gilscope.toolkit.measure.failed_cells import still_lacking
from gilscope.toolkit.measure.settings import RunRequest
from gilscope.toolkit.store import load_run, read_header

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gilscope.toolkit.model import Build, Cell, Run, RunEnd

def builds_now(builds: Iterable[Build], label: str, so_not: str) -> tuple[Build, ...]:
    """Return the builds of an earlier run as they are now, under their earlier names.

    Args:
        builds: The builds in run.json.
        label: The run's label.
        so_not: The end of the message, if a build is gone or has changed: "so X cannot go on".

    Raises:
        ToolkitError: A build is gone, or is another version now.
    """
    wanted = tuple(builds)
    for build in wanted:
        if not Path(build.executable).exists():
            raise ToolkitError(f"{build.label} of {label} is gone from {build.executable}, {so_not}")
    # Of a build that gilscope installed, more is known than its interpreter tells.
    known = {each.executable: each for each in find_builds().builds}
    return tuple(_now(build, known.get(build.executable), label, so_not) for build in wanted)


def _now(build: Build, known: Build | None, label: str, so_not: str) -> Build:
    try:
        now = known or inspect_new(f"{build.label}={build.executable}")[2]
    except ToolkitError as error:
        before = f"{build.label} of {label} was Python {_version(build)}"
        raise ToolkitError(f"{before}, and now {error}, {so_not}") from error
    was, there = ((each.version, each.revision, each.free_threaded) for each in (build, now))
    if was != there:
        raise ToolkitError(f"{build.label} of {label} was Python {_version(build)}, and at {build.executable} there is "
                           f"{_version(now)} now, {so_not}")
    return replace(now, label=build.label, source=build.source)


def _version(build: Build) -> str:
    revision = f" ({build.revision})" if build.revision else ""
    return f"{build.version}{' free-threaded' if build.free_threaded else ''}{revision}"


CLEAR: frozenset[RunEnd] = frozenset({"answered", "resolution"})   # whose cells needed no more rounds


class NothingLeftError(ToolkitError):
    """The run already has everything that is requested."""


def remaining(so_far: Run, rounds: int | None, resolution: float | None) -> tuple[Run, int, frozenset[Cell] | None]:
    """Return the work that is left to measure.

    Args:
        so_far: The run; its values are read only if cells failed.
        rounds: The rounds of the last session requested now; None: as many as were planned.
        resolution: The resolution of ratios requested now, 0..1; None: as it was.

    Returns:
        The run to continue, the rounds that it will have, and the cells to measure in the further rounds (None: all).

    Raises:
        NothingLeftError: Nothing is left.
    """
    settings = RunRequest.from_options(so_far.options).settings
    planned = so_far.sessions[-1].first_round + rounds if rounds else so_far.rounds_planned
    if resolution not in {None, settings.resolution}:
        so_far = replace(so_far, answered=())   # a clear answer may be less precise than that
    only = None
    if rounds is None and (planned <= so_far.rounds_done or so_far.stopped in CLEAR):
        more, lacking = still_lacking(so_far.last_session(), settings.rounds, so_far.sessions[-1].first_round)
        if more:
            planned, only = so_far.rounds_done + more, lacking
            so_far = replace(so_far, answered=())   # cells that failed have no clear answer
    if so_far.rounds_done >= planned:
        raise NothingLeftError(f"{so_far.label} has its {so_far.rounds_done} rounds; to add rounds, give --rounds a "
                               "larger number")
    if so_far.stopped in CLEAR and so_far.answered:
        raise NothingLeftError(f"every answer of {so_far.label} is clear, so no cell needs more rounds; to know each "
                               "ratio to 1 %, add --resolution 1%")
    return so_far, planned, only


def has_enough(path: Path, rounds: int | None, resolution: float | None) -> bool:
    """Return True if the run in the folder `path` has everything that is requested; False if it is damaged."""
    try:
        run = read_header(path)
        remaining(load_run(path) if run.failures else run, rounds, resolution)
    except NothingLeftError:
        return True
    except BadFileError:   # reported when the run is continued, without an effect on other hosts
        return False
    return False
