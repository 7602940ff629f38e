"""The workload under the race checker, as it will be used: a function from several threads, a script as it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.bounded_reading import parse_json, read_text
from gilscope.toolkit.evaluate.project.racing.checker import FOUND, LATE, Program, check
from gilscope.toolkit.evaluate.project.suite.running import UNFINISHED, told_by
from gilscope.toolkit.evaluate.sections import NO_TIME, Missing, RaceLook, Races
from gilscope.toolkit.measure.process.running import last_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.project.where_to_run import Bench
    from gilscope.toolkit.evaluate.project.workload.rounds import Workload

CALLER = Path(__file__).parent / "programs" / "workload_in_threads.py"
THREADS = 4     # two may miss what a third finds half done; each makes the run longer
TOLD = "calls.json"
SHARE = 0.4     # of the time, for the first run of a function; one that confirms races may follow


def check_workload(
    project: Project, bench: Bench, workload: Workload, *, limit: float, threads: int = 0, confirm: int = 1,
) -> Races | Missing:
    """Run the workload under the race checker on one build and return the races that are in the project's code.

    Args:
        project: Whose workload.
        bench: Where.
        workload: What is run.
        limit: Seconds for all of it.
        threads: That call the function at once; 0: THREADS.
        confirm: How often a race's confirming run is tried; 0: not at all.
    """
    if limit <= 0:
        return NO_TIME
    script = workload.kind == "script"
    workers = 0 if script else max(2, threads or THREADS)
    words = ((workload.name, *workload.words) if script else
             (str(CALLER), workload.name, str(workers), f"{LATE}/{TOLD}", f"{limit * SHARE:.1f}"))
    program = Program(words=words, wrong=lambda ending, place: _failure(ending, place, script=script), after=_told,
                      root_too=True, besides=lambda first, _second: first == str(CALLER))
    # A workload need not print anything.
    seen = check(project, bench, program, limit=limit, quiet=limit, confirm=confirm)
    if isinstance(seen, Missing):
        return seen
    look = RaceLook(of="script" if script else "workload", build=bench.build, workers=workers, calls=_calls(seen.left),
                    otherwise=_otherwise(seen.left), uncompiled=bench.uncompiled,
                    threads=seen.threads if script else True,
                    together=not script if seen.together is None else seen.together)
    return Races(build=bench.build, found=seen.found, command=(workload.name, *workload.words), looks=(look,),
                 shared=seen.shared, unwatched=seen.unwatched, unreached=seen.unreached)


def _failure(ending: str, place: Path, *, script: bool) -> str:
    """Return why a run that showed no race shows nothing."""
    if ending in {"0", FOUND}:   # races of nobody's but ours
        return "" if script or _calls(_told(place)) else f"{UNFINISHED}: no call of the workload came to its end"
    why = told_by(last_lines(place / "output"))
    return f"the workload failed{f' ({why})' if why else f' (exit code {ending})'}"


def _told(place: Path) -> Mapping[str, Any]:
    """Return what the threads' program has told; nothing of a script, or of one that came to no end."""
    try:
        told = parse_json(read_text(place / TOLD))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}   # the workload may have written over it


def _otherwise(told: Mapping[str, Any]) -> tuple[str, ...]:
    match told.get("otherwise"):
        case [str(there), str(here)]:
            return there, here
        case _:
            return ()


def _calls(told: Mapping[str, Any]) -> int:
    calls = told.get("calls", 0)
    return calls if isinstance(calls, int) else 0
