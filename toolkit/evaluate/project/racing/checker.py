"""Run `gilscope race` on one program of the project, within a limit of time, and read its report."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping  # noqa: TC003 - from_plain reads the hints
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit import temporary
from gilscope.toolkit.bounded_reading import RESULTS, last_lines, parse_json, read_text
from gilscope.toolkit.builds.environment import PACKAGE
from gilscope.toolkit.evaluate.project.racing.shared_state import shared_state
from gilscope.toolkit.evaluate.project.racing.threaded_functions import ThreadedFunction
from gilscope.toolkit.evaluate.project.racing.unwatched import (
    library_state,
    locks_for_outside,
    unreached,
    unwatched,
)
from gilscope.toolkit.evaluate.project.suite.running import environment, run_bounded
from gilscope.toolkit.evaluate.project.where_to_run import ProjectPaths, RunSite
from gilscope.toolkit.evaluate.sections import Cause, Missing, Place, RaceFact, SharedFact, Unwatched, in_order
from gilscope.toolkit.race.report import json_
from gilscope.toolkit.race.report.sentences import limits
from gilscope.toolkit.race.terms import RaceKind, Severity
from gilscope.toolkit.records import from_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.sections import CommandEnding
    from gilscope.toolkit.race.report.model import Frame, RaceReport

FOUND = 66                       # the exit code of `gilscope race`
CONFIRM_SECONDS = 30.0           # for one confirming run; the program runs again for each race
# Not the harness: the checker recognises its own code by its real path.
BOOT = ("import sys; sys.path.insert(0, {place!r}); from gilscope.toolkit.cli import main; del sys.path[0]; "
        "sys.exit(main())")
LATE = "gilscope-late"           # value of a variable that stands for the run's own folder


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceCheckResult:
    """The result of checking one program."""

    found: tuple[RaceFact, ...]
    threads: bool | None         # as in `RaceLook`
    together: bool | None
    left: Any = None             # the result of `CheckedProgram.after`
    shared: tuple[SharedFact, ...] = ()
    unwatched: tuple[Unwatched, ...] = ()
    unreached: tuple[Unwatched, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadsRecord:
    """The record that a process of the run writes about its threads at its end; see `witness/sitecustomize.py`."""

    pid: int
    threads: bool      # a thread other than the first ran anything
    together: bool     # code of the project ran in two threads
    # Values of `ThreadedFunction`, in its order.
    ran: tuple[tuple[str, int, bool, bool, Mapping[str, str], tuple[int, ...]], ...]

    def functions(self) -> Iterator[ThreadedFunction]:
        """Yield the functions of the project that ran in threads other than the first."""
        for file, line, twice, one_self, foreign, lines in self.ran:
            yield ThreadedFunction(file=file, line=line, twice=twice, one_self=one_self, foreign=foreign,
                                   lines=frozenset(lines))


def never_ignored(_first: str, _second: str) -> bool:
    """Return False: a race between two files always counts."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedProgram:
    """The program to check: the arguments of `gilscope race`, and how to interpret its end."""

    words: tuple[str, ...]
    # Takes the ending and the run's folder; returns why the run showed nothing.
    wrong: Callable[[CommandEnding, Path], Missing | None]
    after: Callable[[Path], Any] = lambda _: None     # reads what else the run left in its folder
    variables: Mapping[str, str] = field(default_factory=dict)   # in addition to those of the project's processes
    root_too: bool = False       # modules are also searched in the project's root
    # Returns True if a race between two files is to be ignored; the names are relative to the project, others absolute.
    is_ignored: Callable[[str, str], bool] = never_ignored


def check(
    project: Project, run_site: RunSite, program: CheckedProgram, *, limit: float, quiet: float, confirm: int = 1,
) -> RaceCheckResult | Missing:
    """Return the races in the project's code, if there is time with a confirming run of each.

    Args:
        project: The project.
        run_site: The site to run on.
        program: The program to check.
        limit: Seconds for everything.
        quiet: Seconds without any output after which the run counts as hanging.
        confirm: Number of attempts to confirm a race; 0 for none.
    """
    began = time.monotonic()
    found = _checked(project, run_site, program, (), limit=limit, quiet=quiet)
    left = limit - (time.monotonic() - began)
    # The report is written after all confirming runs, and must not be lost if they take too long.
    if isinstance(found, Missing) or not confirm or left < limit - left or not found.found:
        return found
    options = (f"--confirm={confirm}", f"--confirm-timeout={CONFIRM_SECONDS:g}s")
    again = _checked(project, run_site, program, options, limit=left, quiet=quiet)
    return found if isinstance(again, Missing) else replace(found, found=once((*again.found, *found.found)))


def _checked(
    project: Project, run_site: RunSite, program: CheckedProgram, options: Sequence[str], *, limit: float, quiet: float
) -> RaceCheckResult | Missing:
    with tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as name:
        place = Path(name)
        file = place / "races.json"
        words = ["race", f"--build={run_site.build}={run_site.python}", f"--json={file}", "--no-color", *options]
        command = [sys.executable, "-P", "-c", BOOT.format(place=str(PACKAGE.parent)), *words,
                   *(_placed(word, place) for word in program.words)]
        ending = run_bounded(command, project.root, _variables(project, run_site, program, place), place / "output",
                             limit=limit, quiet=quiet)
        try:
            report = json_.read(read_text(file, RESULTS))
        except FileNotFoundError:
            said = last_lines(place / "output").splitlines()[-1:] or ["no report"]
            return _not_done(ending, limit, f"the race checker did not come to its end ({ending}: {said[0]})")
        except (OSError, ValueError) as error:
            return _not_done(ending, limit, f"the report of the race checker, {file.name}, is damaged: {error}")
        shown = ProjectPaths(project, run_site)
        found = once(facts(report, shown, program.is_ignored))
        if not found and not report.is_complete:
            return Missing(reason=f"the check for races was incomplete: {limits(report)[0]}")
        if not found and (lacking := program.wrong(ending, place)):
            return replace(lacking, reason=f"{lacking.reason}, under the race checker")
        witness = read_witness(place / "witness")
        threads, together = _threads(witness)
        ran = [function for each in witness for function in each.functions()]
        return RaceCheckResult(found=found, threads=threads, together=together, left=program.after(place),
                               shared=_shared(ran, shown), unwatched=tuple(unwatched(ran, shown)),
                               unreached=tuple(unreached(ran, shown)))


def _not_done(ending: CommandEnding, limit: float, reason: str) -> Missing:
    if ending.kind == "unfinished":
        return Missing(reason=f"no time was left in the budget: the race checker was not done within {limit:.0f} s",
                       cause=Cause.TIME)
    return Missing(reason=reason)


def _shared(ran: Sequence[ThreadedFunction], shown: ProjectPaths) -> tuple[SharedFact, ...]:
    """Return the state that threads share: variables, state of libraries, and locks that guard something outside."""
    state = shared_state(ran, shown)
    known = {each.variable for each in state.variables}
    return (*state.variables, *library_state(ran, shown, known=known), *locks_for_outside(ran, shown, state.uses))


def _placed(word: str, place: Path) -> str:
    return word.replace(LATE, str(place))


def _variables(project: Project, run_site: RunSite, program: CheckedProgram, place: Path) -> dict[str, str]:
    usual = environment(run_site, place)
    if program.root_too:
        usual["PYTHONPATH"] = os.pathsep.join([usual["PYTHONPATH"], str(project.root)])
    own = os.pathsep.join(map(str, dict.fromkeys([*run_site.folders, *project.sources, project.root])))
    added = {name: _placed(value, place) for name, value in program.variables.items()}
    if "PYTEST_ADDOPTS" in added:
        added["PYTEST_ADDOPTS"] = f"{usual['PYTEST_ADDOPTS']} {added['PYTEST_ADDOPTS']}"
    return usual | {"GILSCOPE_WITNESS_THREADS": own} | added


def once(races: Iterable[RaceFact]) -> tuple[RaceFact, ...]:
    """Merge the races of several runs: one for each variable in a file.

    A single repair fixes all reports of a variable; its kind is the most severe one.  Confirmed races come first, and
    those that exist with the GIL last.
    """
    kinds: dict[tuple[str, str, bool], list[RaceFact]] = defaultdict(list)
    for race in races:
        kinds[race.variable, race.file, race.violation].append(race)
    merged = []
    for same in kinds.values():
        first = next((race for race in same if race.confirmed), same[0])
        places = in_order(place for race in same for place in race.places or (race.place,))
        merged.append(replace(first, kind=min((race.kind for race in same), key=[*map(str, RaceKind)].index),
                              places=places if len(places) > 1 else ()))
    return tuple(sorted(merged, key=lambda race: (race.violation, not race.confirmed)))


def facts(
    report: RaceReport, shown: ProjectPaths, is_ignored: Callable[[str, str], bool] = never_ignored,
) -> list[RaceFact]:
    """Return the races in a report, confirmed ones first, without those between files that `is_ignored` names."""
    found = []
    for each in report.races:
        first, second = _place(each.first.place, shown), _place(each.second.place, shown)
        if is_ignored(first.file, second.file):
            continue
        found.append(RaceFact(kind=each.kind, variable=each.base, file=first.file, line=first.line, own=first.own,
                              confirmed=each.confirmed is True, repair=each.repair,
                              violation=each.severity is Severity.VIOLATION, places=(first, second)))
    return sorted(found, key=lambda race: (not race.confirmed, race.file, race.line))


def _place(frame: Frame, shown: ProjectPaths) -> Place:
    name = shown.path(frame.path)
    return Place(file=name or frame.path, line=frame.line, own=name is not None)


def read_witness(path: Path) -> list[ThreadsRecord]:
    """Return the records of threads that the run's processes wrote at their end; none if the program damaged them."""
    try:
        records = [parse_json(line) for line in read_text(path, RESULTS).splitlines() if line.endswith("}")]
        return [from_plain(ThreadsRecord, each) for each in records if "together" in each]
    except (OSError, ValueError):
        return []


def _threads(records: Sequence[ThreadsRecord]) -> tuple[bool | None, bool | None]:
    """Return True if any process had other threads, and True if code of the project ran in two threads of one process.

    Both are None if no process came to an end at which it could tell.
    """
    if not records:
        return None, None
    return any(each.threads for each in records), any(each.together for each in records)
