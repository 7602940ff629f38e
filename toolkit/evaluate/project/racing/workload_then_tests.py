"""What is looked at for data races, where, and in how much of the time: the workload, then the tests.

On a build without a GIL; where the project does not run on one, on a twin with a GIL, which shows the same races: the
checker judges order, not luck.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.racing.checker import once
from gilscope.toolkit.evaluate.project.racing.tests import check_races
from gilscope.toolkit.evaluate.project.racing.workload import check_workload
from gilscope.toolkit.evaluate.project.where_to_run import Bench
from gilscope.toolkit.evaluate.project.workload.rounds import Workload
from gilscope.toolkit.evaluate.sections import NO_TIME, Missing, Races, TestRun

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.sections import Raced

    Look = Callable[[Bench, float], Races | Missing]   # with the seconds that it may take

SHARE_FOR_WORKLOAD = 0.3   # of what is left; its speed is measured afterwards
SHARE_FOR_TESTS = 0.4      # of what is left then, when there is a workload to be measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be looked at."""

    project: Project
    workload: str | None       # as the user named it
    threads: int               # in which each test runs at once; 0: as the tests are


def look_for_races(
    wanted: Wanted, benches: Mapping[str, Bench | Missing], tests: Mapping[str, TestRun | Missing], *,
    left: Callable[[], float], say: Callable[[str], None],
) -> Races | Missing:
    """Return the races of the project's own code, or why nothing could be looked at.

    Where the workload was to be looked at and nothing could be, that is told as what is lacking.

    Args:
        wanted: What.
        benches: Where the project's code is run, by the label of the build; those without a GIL first.
        tests: What its tests did there.
        left: Returns the seconds that are left.
        say: Is told about every step.
    """
    places = _in_order(benches, tests)
    if not places:
        return next((each for each in benches.values() if isinstance(each, Missing)),
                    Missing(reason="no build to run the tests on"))
    found: dict[Raced, Races | Missing] = {}
    project = wanted.project
    if wanted.workload is not None:
        found |= _workload(wanted.workload, wanted, places, left, say)
    share = 1.0 if wanted.workload is None else SHARE_FOR_TESTS
    if wanted.threads and project.tests:
        found["tests at once"] = _first(places, left() * share, left, _tests(wanted, tests, say, wanted.threads))
    if isinstance(found.get("tests at once", NO_TIME), Missing):   # those are the same tests, and more
        found["tests"] = _first(places, left() * share, left, _tests(wanted, tests, say, 0))
    return _merged(found)


def _workload(
    named: str, wanted: Wanted, places: Sequence[Bench], left: Callable[[], float], say: Callable[[str], None],
) -> dict[Raced, Races | Missing]:
    workload = Workload.of(named, wanted.project.root)
    if isinstance(workload, Missing):
        return {"workload": workload}

    def look(bench: Bench, limit: float) -> Races | Missing:
        say(f"{bench.build}: look for data races in the workload")
        name = workload.name
        placed = bench.placed_file(wanted.project, name) if workload.kind == "script" else name
        return check_workload(bench.placed(wanted.project), bench, replace(workload, name=placed), limit=limit,
                              threads=wanted.threads)

    seen = _first(places, left() * SHARE_FOR_WORKLOAD, left, look)
    return {"script": seen} if workload.kind == "script" else {"workload": seen}


def _tests(
    wanted: Wanted, tests: Mapping[str, TestRun | Missing], say: Callable[[str], None], threads: int,
) -> Look:
    each = f", each in {threads} threads" if threads else ""

    def look(bench: Bench, limit: float) -> Races | Missing:
        run = tests.get(bench.build)
        if isinstance(run, TestRun) and run.ending.isdecimal() and not run.ran:   # nor would one under the checker
            return Missing(reason=f"no test runs on {bench.build} (exit code {run.ending})")
        if wanted.project.tests:
            say(f"{bench.build}: look for data races in the tests{each}")
        return check_races(bench.placed(wanted.project), bench, limit=limit, threads=threads)

    return look


def _in_order(benches: Mapping[str, Bench | Missing], tests: Mapping[str, TestRun | Missing]) -> list[Bench]:
    """Return the benches, first those on which tests pass."""
    places = [each for each in benches.values() if isinstance(each, Bench)]
    return sorted(places, key=lambda bench: not _passes(tests.get(bench.build)))


def _passes(tests: TestRun | Missing | None) -> bool:
    return isinstance(tests, TestRun) and bool(tests.passed)


def _first(
    places: Sequence[Bench], limit: float, left: Callable[[], float], look: Look,
) -> Races | Missing:
    """Return what is seen on the first bench that can show anything; where none can, why not on the first."""
    end = left() - limit
    failed: Missing | None = None
    for bench in places:
        if (time := left() - end) <= 0 and failed:
            break
        found = look(bench, time)
        if isinstance(found, Races):
            return found
        failed = failed or found
    assert failed is not None
    return failed


def _merged(found: Mapping[Raced, Races | Missing]) -> Races | Missing:
    seen = [each for each in found.values() if isinstance(each, Races)]
    lacking = tuple((of, each.reason) for of, each in found.items() if isinstance(each, Missing))
    asked = any(of in {"workload", "script"} for of in found)
    if not (seen or asked):
        return Missing(reason="; ".join(dict.fromkeys(reason for _, reason in lacking)),
                       passing=any(isinstance(each, Missing) and each.passing for each in found.values()))
    shared = [each.shared for each in seen if each.shared is not None]
    return Races(build=seen[0].build if seen else "", command=seen[-1].command if seen else (), lacking=lacking,
                 shared=shared[0] if shared else None,
                 found=once(race for each in seen for race in each.found),
                 unwatched=tuple(dict.fromkeys(one for each in seen for one in each.unwatched)),
                 unreached=tuple(dict.fromkeys(one for each in seen for one in each.unreached)),
                 looks=tuple(look for each in seen for look in each.looks))
