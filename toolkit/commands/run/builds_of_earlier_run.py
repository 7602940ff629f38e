"""The builds of an earlier run as they are now: measured again is only what is still the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.builds.find import find_builds, inspect_new
from gilscope.toolkit.errors import ToolkitError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gilscope.toolkit.model import Build


def builds_now(builds: Iterable[Build], label: str, so_not: str) -> tuple[Build, ...]:
    """Return the builds of the run `label` as they are now, under the names that they had.

    Args:
        builds: As run.json has them.
        label: Of the run.
        so_not: What cannot be done where one is gone or another one: "so X cannot go on".

    Raises:
        ToolkitError: one is.
    """
    wanted = tuple(builds)
    for build in wanted:
        if not Path(build.executable).exists():
            raise ToolkitError(f"{build.label} of {label} is gone from {build.executable}, {so_not}")
    # What gilscope installed says more of itself there than its interpreter does.
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
