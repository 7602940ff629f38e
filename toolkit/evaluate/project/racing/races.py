"""Check the project for data races: its workload first, then its tests, within the time that is left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.bounded_reading import last_lines, parse_json, read_text
from gilscope.toolkit.evaluate.project.racing.checker import FOUND, LATE, CheckedProgram, check, once
from gilscope.toolkit.evaluate.project.racing.tests import check_races
from gilscope.toolkit.evaluate.project.suite.leaving_out import without
from gilscope.toolkit.evaluate.project.suite.running import error_line
from gilscope.toolkit.evaluate.project.where_to_run import RunSite
from gilscope.toolkit.evaluate.project.workload.rounds import UserWorkload
from gilscope.toolkit.evaluate.sections import NO_TIME, Cause, Missing, RaceLook, Races, TestRun, workload_failed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.sections import CommandEnding, Raced

    Look = Callable[[RunSite, float], Races | Missing]

SHARE_FOR_WORKLOAD = 0.3   # of the time that is left; the workload's speed is measured afterwards
SHARE_FOR_TESTS = 0.4      # of the time that is left then, if there is a workload to measure


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceCheckRequest:
    """The code to check for races."""

    project: Project
    workload: str | None       # as the user named it
    threads: int               # number of threads that run each test at once; 0 to run tests as they are
    calls: int = 0             # of the workload's function by each thread; 0: as many as fit


def look_for_races(
    wanted: RaceCheckRequest, run_sites: Mapping[str, RunSite | Missing], tests: Mapping[str, TestRun | Missing], *,
    left: Callable[[], float], say: Callable[[str], None],
) -> Races | Missing:
    """Return the races in the project's own code, or why nothing could be checked.

    If the workload was requested and could not be checked, it is listed in `lacking`.

    Args:
        wanted: The code to check.
        run_sites: The sites to run on, by label of the build; free-threaded builds first.
        tests: The results of the project's tests there.
        left: Returns the seconds that are left.
        say: Callback for progress messages.
    """
    places = _in_order(run_sites, tests)
    if not places:
        return next((each for each in run_sites.values() if isinstance(each, Missing)),
                    Missing(reason="no build to run the tests on"))
    found: dict[Raced, Races | Missing] = {}
    project = wanted.project
    if wanted.workload is not None:
        found |= _workload(wanted.workload, wanted, places, left, say)
    share = 1.0 if wanted.workload is None else SHARE_FOR_TESTS
    if wanted.threads and project.tests:
        found["tests at once"] = _first(places, left() * share, left, _tests(wanted, tests, say, wanted.threads))
    if isinstance(found.get("tests at once", NO_TIME), Missing):   # those are the same tests and more
        found["tests"] = _first(places, left() * share, left, _tests(wanted, tests, say, 0))
    return _merged(found)


def _workload(
    named: str, wanted: RaceCheckRequest, places: Sequence[RunSite], left: Callable[[], float], say: Callable[[str],
                                                                                                              None],
) -> dict[Raced, Races | Missing]:
    workload = UserWorkload.of(named, wanted.project.root)
    if isinstance(workload, Missing):
        return {"workload": workload}

    def look(run_site: RunSite, limit: float) -> Races | Missing:
        say(f"{run_site.build}: look for data races in the workload")
        name = workload.name
        placed = run_site.placed_file(wanted.project, name) if workload.kind == "script" else name
        return check_workload(run_site.placed(wanted.project), run_site, replace(workload, name=placed), limit=limit,
                              threads=wanted.threads, calls=wanted.calls)

    seen = _first(places, left() * SHARE_FOR_WORKLOAD, left, look)
    return {"script": seen} if workload.kind == "script" else {"workload": seen}


def _tests(
    wanted: RaceCheckRequest, tests: Mapping[str, TestRun | Missing], say: Callable[[str], None], threads: int,
) -> Look:
    each = f", each in {threads} threads" if threads else ""

    def look(run_site: RunSite, limit: float) -> Races | Missing:
        run = tests.get(run_site.build)
        if isinstance(run, TestRun) and run.ending.kind == "exit" and not run.ran:   # so none would under the checker
            return Missing(reason=f"no test runs on {run_site.build} (exit code {run.ending})")
        if wanted.project.tests:
            say(f"{run_site.build}: look for data races in the tests{each}")
        project = without(run_site.placed(wanted.project), [run] if run else [])
        return check_races(project, run_site, limit=limit, threads=threads)

    return look


def _in_order(run_sites: Mapping[str, RunSite | Missing], tests: Mapping[str, TestRun | Missing]) -> list[RunSite]:
    """Return the sites, those on which tests pass first."""
    places = [each for each in run_sites.values() if isinstance(each, RunSite)]
    return sorted(places, key=lambda run_site: not _passes(tests.get(run_site.build)))


def _passes(tests: TestRun | Missing | None) -> bool:
    return isinstance(tests, TestRun) and bool(tests.passed)


def _first(
    places: Sequence[RunSite], limit: float, left: Callable[[], float], look: Look,
) -> Races | Missing:
    """Return the result of the first site that shows anything; if none does, the reason on the first."""
    end = left() - limit
    failed: Missing | None = None
    for run_site in places:
        if (time := left() - end) <= 0 and failed:
            break
        found = look(run_site, time)
        if isinstance(found, Races):
            return found
        failed = failed or found
    assert failed is not None
    return failed


def _merged(found: Mapping[Raced, Races | Missing]) -> Races | Missing:
    seen = [each for each in found.values() if isinstance(each, Races)]
    lacking = tuple((of, each) for of, each in found.items() if isinstance(each, Missing))
    asked = any(of in {"workload", "script"} for of in found)
    if not (seen or asked):
        causes = [each.cause for _, each in lacking]
        return Missing(reason="; ".join(dict.fromkeys(each.reason for _, each in lacking)),
                       cause=next((each for each in causes if each.provisional), causes[0]))
    shared = [each.shared for each in seen if each.shared is not None]
    races = once(race for each in seen for race in each.found)
    # What one look did not reach may be where another one found a race.
    reached = {(race.file, race.line) for race in races} | {
        (place.file, place.line) for race in races for place in race.places}
    return Races(build=seen[0].build if seen else "", command=seen[-1].command if seen else (), lacking=lacking,
                 shared=shared[0] if shared else None,
                 found=races,
                 unwatched=tuple(dict.fromkeys(one for each in seen for one in each.unwatched)),
                 unreached=tuple(dict.fromkeys(one for each in seen for one in each.unreached
                                               if (one.file, one.line) not in reached)),
                 looks=tuple(look for each in seen for look in each.looks))


CALLER = Path(__file__).parent / "workload_in_threads.py"
THREADS = 4     # two may miss an intermediate state that a third one sees; more make the run longer
TOLD = "calls.json"
SHARE = 0.4     # of the time for the first run of a function; confirming runs may follow


def check_workload(
    project: Project, run_site: RunSite, workload: UserWorkload, *, limit: float, threads: int = 0, calls: int = 0,
    confirm: int = 1,
) -> Races | Missing:
    """Run the workload under the race checker on one build and return the races in the project's code.

    Args:
        project: The project.
        run_site: The site to run on.
        workload: The workload.
        limit: Seconds for everything.
        threads: Number of threads that call the function at once; 0 for THREADS.
        calls: Number of calls by each of them; 0 for as many as fit, see `workload_in_threads`.
        confirm: Number of attempts to confirm a race; 0 for none.
    """
    if limit <= 0:
        return NO_TIME
    script = workload.kind == "script"
    workers = 0 if script else max(2, threads or THREADS)
    words = ((workload.name, *workload.words) if script else
             (str(CALLER), workload.name, str(workers), f"{LATE}/{TOLD}", f"{limit * SHARE:.1f}", str(calls)))
    program = CheckedProgram(words=words, wrong=lambda ending, place: _failure(ending, place, script=script),
                             after=_told, root_too=True, is_ignored=lambda first, _second: first == str(CALLER))
    # A workload need not print anything.
    seen = check(project, run_site, program, limit=limit, quiet=limit, confirm=confirm)
    if isinstance(seen, Missing):
        return seen
    look = RaceLook(of="script" if script else "workload", build=run_site.build, workers=workers,
                    calls=_calls(seen.left), differs=_differs(seen.left), uncompiled=run_site.uncompiled,
                    threads=seen.threads if script else True,
                    together=not script if seen.together is None else seen.together)
    return Races(build=run_site.build, found=seen.found, command=(workload.name, *workload.words), looks=(look,),
                 shared=seen.shared, unwatched=seen.unwatched, unreached=seen.unreached)


def _failure(ending: CommandEnding, place: Path, *, script: bool) -> Missing | None:
    """Return why a run without races shows nothing."""
    if ending.kind == "exit" and ending.code in {0, FOUND}:   # races outside the project's code do not matter
        if script or _calls(_told(place)):
            return None
        return Missing(reason="no call of the workload came to its end in time", cause=Cause.TIME)
    return workload_failed(error_line(last_lines(place / "output")) or f"exit code {ending}")


def _told(place: Path) -> Mapping[str, Any]:
    """Return the record of the program with threads; empty for a script, or if it did not come to its end."""
    try:
        told = parse_json(read_text(place / TOLD))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}   # the workload may have overwritten it


def _differs(told: Mapping[str, Any]) -> tuple[str, ...]:
    match told.get("differs"):
        case [str(there), str(here)]:
            return there, here
        case _:
            return ()


def _calls(told: Mapping[str, Any]) -> int:
    calls = told.get("calls", 0)
    return calls if isinstance(calls, int) else 0
