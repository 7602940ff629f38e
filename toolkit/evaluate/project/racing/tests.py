"""The project's own tests under the race checker: as they are, or each in several threads at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.own_modules import is_test
from gilscope.toolkit.evaluate.project.racing.checker import LATE, Program, check
from gilscope.toolkit.evaluate.project.racing.tests_in_threads import AtOnce, told, understood, variables
from gilscope.toolkit.evaluate.project.suite.running import QUIET_SECONDS, counts
from gilscope.toolkit.evaluate.sections import NO_TIME, Missing, RaceLook, Races

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.project.where_to_run import Bench


def check_races(
    project: Project, bench: Bench, *, limit: float, confirm: int = 1, quiet: float = QUIET_SECONDS, threads: int = 0,
) -> Races | Missing:
    """Run the project's tests under the race checker on one build and return the races that are in its own code.

    Args:
        project: Whose tests.
        bench: Where.
        limit: Seconds for all of it.
        confirm: How often a race's confirming run is tried; 0: not at all.
        quiet: Seconds that may pass without output.
        threads: In which each test runs at once; 0: as the tests are.
    """
    if project.tests is None:
        return Missing(reason="the project has no tests that could be found")
    if limit <= 0:
        return NO_TIME
    words = _followed(project.tests, threads)
    if isinstance(words, Missing):
        return words
    program = Program(words=tuple(words), wrong=lambda ending, place: nothing_ran(ending, counts(place)),
                      after=lambda _: AtOnce())
    if threads:   # what a test shares with itself it shares by our doing
        program = replace(program, after=told, variables=variables(threads, LATE),
                          besides=lambda first, second: is_test(first) and is_test(second))
    seen = check(project, bench, program, limit=limit, confirm=confirm, quiet=quiet)
    if isinstance(seen, Missing):
        return seen
    at_once: AtOnce = seen.left
    if threads and not at_once.together:
        return Missing(reason=f"no test could be run in several threads{_why(at_once)}")
    look = RaceLook(of="tests at once" if threads else "tests", build=bench.build, threads=seen.threads,
                    together=seen.together, workers=threads, failing=at_once.failing, alone=at_once.alone,
                    uncompiled=bench.uncompiled)
    return Races(build=bench.build, found=seen.found, command=project.tests, looks=(look,), unwatched=seen.unwatched)


def _followed(tests: Sequence[str], threads: int) -> list[str] | Missing:
    """Return the tests' command as `gilscope race` takes it, or why it cannot be followed."""
    words = as_program(tests)
    if words is None:
        return Missing(reason=f"the race checker follows a Python program; the tests are run by {tests[0]!r}")
    if threads and not understood(words):
        return Missing(reason=f"each test in {threads} threads at once takes pytest; the tests are run by "
                              f"{' '.join(tests)!r}")
    return words


def _why(at_once: AtOnce) -> str:
    return f": {at_once.alone[0]}" if at_once.alone else ""


def nothing_ran(ending: str, counted: Mapping[str, int]) -> str:
    """Return why a run of the tests shows nothing of the project; "" when some of them ran, as far as can be told.

    Args:
        ending: Its exit code.
        counted: How many passed, failed and so on; empty: not known.
    """
    if counted:
        return "" if counted["passed"] or counted["failed"] else f"no test ran (exit code {ending})"
    # Any program that breaks off before its tests ends with 1, too.
    return "" if ending == "0" else f"no test is known to have run (exit code {ending})"


def as_program(tests: Sequence[str]) -> list[str] | None:
    """Return the tests' command as `gilscope race` takes it, or None when no Python program is at its front."""
    first, *rest = tests
    if first in {"pytest", "py.test"}:
        return ["-m", "pytest", *rest]
    if first.startswith("python"):
        return rest if rest and (rest[0] == "-m" or rest[0].endswith(".py")) else None
    return None
