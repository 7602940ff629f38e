"""Check the project's tests for data races, each test as it is or in several threads at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gilscope.toolkit.bounded_reading import parse_json, read_text
from gilscope.toolkit.evaluate.project.racing.checker import LATE, CheckedProgram, check
from gilscope.toolkit.evaluate.project.suite.running import QUIET_SECONDS, counts
from gilscope.toolkit.evaluate.sections import NO_TIME, Missing, RaceLook, Races
from gilscope.toolkit.own_files import is_test

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.project.where_to_run import RunSite
    from gilscope.toolkit.evaluate.sections import CommandEnding

NEEDED = ("pytest-run-parallel",)   # if it cannot be installed, our plugin does the same by simpler rules
PLUGIN = "gilscope_at_once"         # in the folder of the witness, which is on the path of the project's processes
TOLD = "at-once.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadedTests:
    """The plugin's record of a test run."""

    together: int = 0                # number of tests that ran in several threads
    alone: tuple[str, ...] = ()      # "test: why" for those that ran in one
    failing: tuple[str, ...] = ()    # tests that failed in several threads


def runs_pytest(words: Sequence[str]) -> bool:
    """Return True if the command runs pytest."""
    return list(words[:2]) == ["-m", "pytest"]


def variables(threads: int, folder: str) -> dict[str, str]:
    """Return the variables that give the plugin the number of threads and the folder for its record."""
    return {"GILSCOPE_AT_ONCE": str(threads), "GILSCOPE_AT_ONCE_TOLD": f"{folder}/{TOLD}",
            "PYTEST_ADDOPTS": f"-p {PLUGIN}"}


def read_record(place: Path) -> ThreadedTests:
    """Return the plugin's record in the run's folder; empty if the run did not come to its end."""
    try:
        found = parse_json(read_text(place / TOLD))
        return ThreadedTests(together=int(found["together"]), failing=tuple(map(str, found["failing"])),
                             alone=tuple(f"{name}: {why}" for name, why in found["alone"].items()))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):   # missing, or overwritten by a test
        return ThreadedTests()


def check_races(
    project: Project, run_site: RunSite, *, limit: float, confirm: int = 1, quiet: float = QUIET_SECONDS,
    threads: int = 0,
) -> Races | Missing:
    """Run the project's tests under the race checker on one build and return the races in its own code.

    Args:
        project: The project.
        run_site: The site to run on.
        limit: Seconds for everything.
        confirm: Number of attempts to confirm a race; 0 for none.
        quiet: Seconds without any output after which the run counts as hanging.
        threads: Number of threads that run each test at once; 0 to run tests as they are.
    """
    if project.tests is None:
        return Missing(reason="the project has no tests that could be found")
    if limit <= 0:
        return NO_TIME
    words = _followed(project.tests, threads)
    if isinstance(words, Missing):
        return words
    program = CheckedProgram(words=tuple(words), wrong=lambda ending, place: nothing_ran(ending, counts(place)),
                             after=lambda _: ThreadedTests())
    if threads:   # a test shares its own variables with itself only because we run it in threads
        program = replace(program, after=read_record, variables=variables(threads, LATE),
                          is_ignored=lambda first, second: is_test(first) and is_test(second))
    seen = check(project, run_site, program, limit=limit, confirm=confirm, quiet=quiet)
    if isinstance(seen, Missing):
        return seen
    at_once: ThreadedTests = seen.left
    if threads and not at_once.together:
        return Missing(reason=f"no test could be run in several threads{_why(at_once)}")
    look = RaceLook(of="tests at once" if threads else "tests", build=run_site.build, threads=seen.threads,
                    together=seen.together, workers=threads, failing=at_once.failing, alone=at_once.alone,
                    uncompiled=run_site.uncompiled)
    return Races(build=run_site.build, found=seen.found, command=project.tests, looks=(look,), unwatched=seen.unwatched)


def _followed(tests: Sequence[str], threads: int) -> list[str] | Missing:
    """Return the tests' command as arguments of `gilscope race`, or why it cannot be checked."""
    words = as_program(tests)
    if words is None:
        return Missing(reason=f"the race checker follows a Python program; the tests are run by {tests[0]!r}")
    if threads and not runs_pytest(words):
        return Missing(reason=f"each test in {threads} threads at once takes pytest; the tests are run by "
                              f"{' '.join(tests)!r}")
    return words


def _why(at_once: ThreadedTests) -> str:
    return f": {at_once.alone[0]}" if at_once.alone else ""


def nothing_ran(ending: CommandEnding, counted: Mapping[str, int]) -> Missing | None:
    """Return why a test run shows nothing about the project; None if some tests ran, as far as is known.

    Args:
        ending: How the command ended.
        counted: How many tests passed, failed and so on; empty if unknown.
    """
    if counted:
        return None if counted["passed"] or counted["failed"] else Missing(reason=f"no test ran (exit code {ending})")
    # Exit code 1 may also mean that the program failed before its tests.
    return None if ending.succeeded else Missing(reason=f"no test is known to have run (exit code {ending})")


def as_program(tests: Sequence[str]) -> list[str] | None:
    """Return the tests' command as arguments of `gilscope race`, or None if it does not start with a Python program."""
    first, *rest = tests
    if first in {"pytest", "py.test"}:
        return ["-m", "pytest", *rest]
    if first.startswith("python"):
        return rest if rest and (rest[0] == "-m" or rest[0].endswith(".py")) else None
    return None
