"""The Pythons that tests run: found once, by the process that starts the others, and chosen by kind.

A test says which kinds of build it needs, `@pytest.mark.builds("gil", "free")`, takes the fixture `build`, and
`--builds` says which builds stand for a kind.
"""

import functools
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from gilscope.toolkit.builds.find import find_builds
from gilscope.toolkit.builds.inspection import version_key
from gilscope.toolkit.model import Build
from gilscope.toolkit.records import from_plain, plain_value

ROOT = Path(__file__).parents[2]
KINDS = ("gil", "free")
CHOICES = ("pair", "all", "host")

_given: dict[str, tuple[Build, ...]] = {}   # the answers of `found` and `chosen`, in a process that was given them


@functools.cache
def _find() -> tuple[Build, ...]:
    named = [entry.strip() for entry in os.environ.get("GILSCOPE_TEST_BUILDS", "").split(",") if entry.strip()]
    return find_builds(named).builds


def found() -> tuple[Build, ...]:
    """Return every build at hand, and those that GILSCOPE_TEST_BUILDS="3.14t=/path/to/python,..." names."""
    return _given.get("found") or _find()


def host() -> Build:
    """Return the build that runs the tests."""
    here = os.path.realpath(sys._base_executable)
    return next(build for build in found() if os.path.realpath(build.base_executable) == here)


def chosen(kind: str | None = None) -> tuple[Build, ...]:
    """Return the builds that tests run on, of one kind or of both."""
    builds = _given.get("chosen") or choose("pair")
    return tuple(build for build in builds if kind is None or kind_of(build) == kind)


def kind_of(build: Build) -> str:
    """Return "gil" or "free"."""
    return KINDS[build.free_threaded]


def choose(choice: str) -> tuple[Build, ...]:
    """Return the builds of a choice: "host"; "pair", the host and its nearest of the other kind; or "all"."""
    mine = host()
    if choice == "host":
        return (mine,)
    if choice == "all":
        return found()
    others = [build for build in found() if build.free_threaded != mine.free_threaded]
    # Of the host's version if there is one: then the GIL is all in which they differ.
    nearest = max(others, key=lambda build: (build.minor == mine.minor, not build.debug, version_key(build.version)),
                  default=None)
    return tuple(sorted(filter(None, (mine, nearest)), key=kind_of, reverse=True))


def hand_over(choice: str) -> list[object]:
    """Return what another process of this run gives to `take_over`, so that it need not find builds."""
    return [plain_value(found()), plain_value(choose(choice))]


def take_over(plain: Sequence[object]) -> None:
    """Answer from now on as the process did that made `plain`."""
    _given.update(zip(("found", "chosen"), (from_plain(tuple[Build, ...], each) for each in plain), strict=True))


def python_of(build: Build) -> str:
    """Return the interpreter of a build: for the host that of its environment, which has packages."""
    return sys.executable if build == host() else build.executable


def environment(**extra: str) -> dict[str, str]:
    """Return an environment in which a child finds the project and warns about everything."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **extra}


def run_child(python: str, *arguments: str, timeout: float = 600, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run a build to its end and return what it wrote; warnings are errors in it."""
    return subprocess.run(
        [python, "-W", "error", *arguments], cwd=ROOT, env=environment(**extra), timeout=timeout,
        capture_output=True, text=True, check=False)
