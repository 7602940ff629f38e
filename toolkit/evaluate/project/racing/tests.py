"""The race checker over the project's own tests, with a confirming re-run: which races are to be fixed first."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit import temporary
from gilscope.toolkit.builds.packages.environment import PACKAGE
from gilscope.toolkit.evaluate.project.bench import Bench, Shown
from gilscope.toolkit.evaluate.project.suite.running import QUIET_SECONDS, counts, environment, run_bounded
from gilscope.toolkit.evaluate.sections import NO_TIME, Missing, RaceFact, Races
from gilscope.toolkit.measure.process.running import last_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gilscope.toolkit.evaluate.project.conventions import Project

FOUND = "66"                     # the exit code of `gilscope race`
CONFIRMED = "confirmed"
CONFIRM_SECONDS = 30.0           # of one confirming run; the tests are run again for each race
# Not the harness: the checker tells its own code by its real place.
BOOT = ("import sys; sys.path.insert(0, {place!r}); from gilscope.toolkit.cli import main; del sys.path[0]; "
        "sys.exit(main())")


def check_races(
    project: Project, bench: Bench, *, limit: float, confirm: int = 1, quiet: float = QUIET_SECONDS
) -> Races | Missing:
    """Run the project's tests under the race checker on one build and return the races that are in its own code.

    Args:
        project: Whose tests.
        bench: Where.
        limit: Seconds for all of it.
        confirm: How often a race's confirming run is tried; 0: not at all.
        quiet: Seconds that may pass without output.
    """
    if project.tests is None:
        return Missing(reason="the project has no tests that could be found")
    if limit <= 0:
        return NO_TIME
    program = as_program(project.tests)
    if program is None:
        return Missing(reason=f"the race checker follows a Python program; the tests are run by {project.tests[0]!r}")
    began = time.monotonic()
    found = _checked(project, bench, program, (), limit=limit, quiet=quiet)
    left = limit - (time.monotonic() - began)
    # The report comes after all confirming runs: what is known must not be lost when they take too long.
    if isinstance(found, Missing) or not (confirm and found.found) or left < limit - left:
        return found
    options = (f"--confirm={confirm}", f"--confirm-timeout={CONFIRM_SECONDS:g}s")
    again = _checked(project, bench, program, options, limit=left, quiet=quiet)
    return found if isinstance(again, Missing) else replace(again, found=_together(again.found, found.found))


def _checked(
    project: Project, bench: Bench, program: Sequence[str], options: Sequence[str], *, limit: float, quiet: float
) -> Races | Missing:
    with tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as name:
        place = Path(name)
        told = place / "races.json"
        words = ["race", f"--build={bench.build}={bench.python}", f"--json={told}", "--no-color", *options]
        command = [sys.executable, "-P", "-c", BOOT.format(place=str(PACKAGE.parent)), *words, *program]
        ending = run_bounded(command, project.root, environment(bench, place), place / "output", limit=limit,
                             quiet=quiet)
        report = _report(told)
        if report is None:
            said = last_lines(place / "output").splitlines()[-1:] or ["no report"]
            return Missing(reason=f"the race checker did not come to its end ({ending}: {said[0]})")
        assert project.tests is not None
        found = tuple(facts(report, Shown(project, bench)))
        if not found and (reason := nothing_ran(ending, counts(place))):
            return Missing(reason=f"{reason} under the race checker")
        return Races(build=bench.build, found=found, command=project.tests)


def nothing_ran(ending: str, counted: Mapping[str, int]) -> str:
    """Return why a run of the tests shows nothing of the project; "" when some of them ran, as far as can be told.

    Args:
        ending: Its exit code.
        counted: How many passed, failed and so on; empty: not known.
    """
    if counted:
        return "" if counted["passed"] or counted["failed"] else f"no test ran (exit code {ending})"
    # A runner that tells no counts says with 1 that tests fail; from 2 on it was used wrongly or broke off.
    return "" if ending in {"0", "1"} else f"the tests end with exit code {ending}"


def _together(confirmed: Sequence[RaceFact], first: Sequence[RaceFact]) -> tuple[RaceFact, ...]:
    """Return the races of both runs, which need not have had the same luck; each once."""
    known = {replace(race, confirmed=False) for race in confirmed}
    return (*confirmed, *(race for race in first if race not in known))


def as_program(tests: Sequence[str]) -> list[str] | None:
    """Return the tests' command as `gilscope race` takes it, or None when no Python program is at its front."""
    first, *rest = tests
    if first in {"pytest", "py.test"}:
        return ["-m", "pytest", *rest]
    if first.startswith("python"):
        return rest if rest and (rest[0] == "-m" or rest[0].endswith(".py")) else None
    return None


def facts(report: dict[str, Any], shown: Shown) -> list[RaceFact]:
    """Return the races of a report in JSON, those that were confirmed first."""
    found = []
    for each in report["races"]:
        place = each["first"]["place"]
        confirmed = str(each.get("confirmation") or "").startswith(CONFIRMED)
        found.append(RaceFact(kind=each["kind"], variable=each["base"], file=shown.path(place["path"]) or place["path"],
                              line=int(place["line"]), confirmed=confirmed))
    return sorted(found, key=lambda race: (not race.confirmed, race.file, race.line))


def _report(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and "races" in found else None
