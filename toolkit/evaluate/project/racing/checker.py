"""`gilscope race` over one program of the project's, within a limit: what it reports, and why there may be nothing."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit import temporary
from gilscope.toolkit.bounded_reading import RESULTS, parse_json, read_text
from gilscope.toolkit.builds.packages.environment import PACKAGE
from gilscope.toolkit.evaluate.project.own_modules import is_test
from gilscope.toolkit.evaluate.project.racing.shared_outside import kept_by_others, locks_of_what_is_outside
from gilscope.toolkit.evaluate.project.racing.threaded_functions import Ran, made_at_import
from gilscope.toolkit.evaluate.project.racing.unreached import unreached
from gilscope.toolkit.evaluate.project.racing.unwatched import unwatched
from gilscope.toolkit.evaluate.project.suite.running import UNFINISHED, environment, run_bounded
from gilscope.toolkit.evaluate.project.where_to_run import Bench, Shown
from gilscope.toolkit.evaluate.sections import NO_TIME, Missing, RaceFact, SharedFact, Unwatched, in_order
from gilscope.toolkit.measure.process.running import last_lines
from gilscope.toolkit.race.verdicts import VIOLATION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gilscope.toolkit.evaluate.project.discovery import Project

FOUND = "66"                     # the exit code of `gilscope race`
CONFIRMED = "confirmed"
CONFIRM_SECONDS = 30.0           # of one confirming run; the program is run again for each race
# Not the harness: the checker tells its own code by its real place.
BOOT = ("import sys; sys.path.insert(0, {place!r}); from gilscope.toolkit.cli import main; del sys.path[0]; "
        "sys.exit(main())")
LATE = "gilscope-late"           # a variable's value that stands for the run's own folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What one program showed."""

    found: tuple[RaceFact, ...]
    threads: bool | None         # as of `RaceLook`
    together: bool | None
    left: Any = None             # what `Program.after` returned
    shared: tuple[SharedFact, ...] = ()
    unwatched: tuple[Unwatched, ...] = ()
    unreached: tuple[Unwatched, ...] = ()


def nobodys(_first: str, _second: str) -> bool:
    """Return that a race between two files is somebody's concern, wherever they are."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is run: the words that follow `gilscope race`, and how its end is told."""

    words: tuple[str, ...]
    wrong: Callable[[str, Path], str]                 # ending and the run's folder; why nothing was shown, or ""
    after: Callable[[Path], Any] = lambda _: None     # what else the run left in its folder
    variables: Mapping[str, str] = field(default_factory=dict)   # beside those of the project's processes
    root_too: bool = False       # modules are also looked for in the project's root
    # Whether a race between files of these names (of the project, else whole paths) is nobody's concern.
    besides: Callable[[str, str], bool] = nobodys


def check(
    project: Project, bench: Bench, program: Program, *, limit: float, quiet: float, confirm: int = 1,
) -> Checked | Missing:
    """Return the races that are in the project's code, when there is time with a confirming run of each.

    Args:
        project: Whose code.
        bench: Where.
        program: What is run.
        limit: Seconds for all of it.
        quiet: Seconds that may pass without output.
        confirm: How often a race's confirming run is tried; 0: not at all.
    """
    began = time.monotonic()
    found = _checked(project, bench, program, (), limit=limit, quiet=quiet)
    left = limit - (time.monotonic() - began)
    # The report comes after all confirming runs: what is known must not be lost when they take too long.
    if isinstance(found, Missing) or not (confirm and found.found) or left < limit - left:
        return found
    options = (f"--confirm={confirm}", f"--confirm-timeout={CONFIRM_SECONDS:g}s")
    again = _checked(project, bench, program, options, limit=left, quiet=quiet)
    return found if isinstance(again, Missing) else replace(found, found=once((*again.found, *found.found)))


def _checked(
    project: Project, bench: Bench, program: Program, options: Sequence[str], *, limit: float, quiet: float
) -> Checked | Missing:
    with tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as name:
        place = Path(name)
        told = place / "races.json"
        words = ["race", f"--build={bench.build}={bench.python}", f"--json={told}", "--no-color", "--shared", *options]
        command = [sys.executable, "-P", "-c", BOOT.format(place=str(PACKAGE.parent)), *words,
                   *(_placed(word, place) for word in program.words)]
        ending = run_bounded(command, project.root, _variables(project, bench, program, place), place / "output",
                             limit=limit, quiet=quiet)
        report = _report(told)
        if report is None and ending.startswith(UNFINISHED):
            return Missing(reason=f"{NO_TIME.reason}: the race checker was not done within {limit:.0f} s", passing=True)
        if report is None:
            said = last_lines(place / "output").splitlines()[-1:] or ["no report"]
            return Missing(reason=f"the race checker did not come to its end ({ending}: {said[0]})")
        shown = Shown(project, bench)
        found = once(facts(report, shown, program.besides))
        if not found and (reason := program.wrong(ending, place)):
            return Missing(reason=f"{reason} under the race checker")
        witness = _witness(place / "witness")
        threads, together = _threads(witness)
        ran = list(_ran(witness))
        return Checked(found=found, threads=threads, together=together, left=program.after(place),
                       shared=_shared(report, ran, shown), unwatched=tuple(unwatched(ran, shown)),
                       unreached=tuple(unreached(ran, shown)))


def _shared(report: dict[str, Any], ran: Sequence[Ran], shown: Shown) -> tuple[SharedFact, ...]:
    """Return what threads share: variables, what others keep for them, and locks of what is no variable at all."""
    found = list(shared_facts(report, shown))
    known = {each.variable for each in found}
    found += [each for each in kept_by_others(ran, shown) if each.variable.partition(" (")[0] not in known]
    explained = {(each.file, each.line) for each in found} | {
        (shown.path(side["path"]) or "", int(side["line"])) for each in report.get("shared", ())
        for side in (each["write"], each["other"])}
    return (*found, *locks_of_what_is_outside(ran, shown, explained))


def _placed(word: str, place: Path) -> str:
    return word.replace(LATE, str(place))


def _variables(project: Project, bench: Bench, program: Program, place: Path) -> dict[str, str]:
    usual = environment(bench, place)
    if program.root_too:
        usual["PYTHONPATH"] = os.pathsep.join([usual["PYTHONPATH"], str(project.root)])
    own = os.pathsep.join(map(str, dict.fromkeys([*bench.folders, *project.sources, project.root])))
    added = {name: _placed(value, place) for name, value in program.variables.items()}
    if "PYTEST_ADDOPTS" in added:
        added["PYTEST_ADDOPTS"] = f"{usual['PYTEST_ADDOPTS']} {added['PYTEST_ADDOPTS']}"
    return usual | {"GILSCOPE_WITNESS_THREADS": own} | added


def once(races: Iterable[RaceFact]) -> tuple[RaceFact, ...]:
    """Return the races of several runs, which need not have had the same luck: one for each variable in a file.

    One repair mends all that a report has of it, each pair from either side.  What was
    confirmed comes first, what is there with the GIL, too, last.
    """
    kinds: dict[tuple[str, str, bool], list[RaceFact]] = defaultdict(list)
    for race in races:
        kinds[race.variable, race.file, race.violation].append(race)
    told = []
    for same in kinds.values():
        first = next((race for race in same if race.confirmed), same[0])
        places = {place for race in same for place in race.places or (f"{race.file}:{race.line}",)}
        told.append(replace(first, kind=" and ".join(dict.fromkeys(race.kind for race in (first, *same))),
                            places=in_order(places) if len(places) > 1 else ()))
    return tuple(sorted(told, key=lambda race: (race.violation, not race.confirmed)))


def facts(
    report: dict[str, Any], shown: Shown, besides: Callable[[str, str], bool] = nobodys,
) -> list[RaceFact]:
    """Return the races of a report in JSON, those that were confirmed first, without those that are `besides`."""
    found = []
    for each in report["races"]:
        place = each["first"]["place"]
        files = [shown.path(side["place"]["path"]) or side["place"]["path"] for side in (each["first"], each["second"])]
        if besides(*files):
            continue
        confirmed = str(each.get("confirmation") or "").startswith(CONFIRMED)
        found.append(RaceFact(kind=each["kind"], variable=each["base"], file=files[0], line=int(place["line"]),
                              confirmed=confirmed, violation=each["severity"] == VIOLATION, repair=each["repair"],
                              places=tuple(f"{file}:{each[side]['place']['line']}"
                                           for file, side in zip(files, ("first", "second"), strict=True))))
    return sorted(found, key=lambda race: (not race.confirmed, race.file, race.line))


def shared_facts(report: dict[str, Any], shown: Shown) -> Iterator[SharedFact]:
    """Yield what several threads of the project's own code use, each variable once, and of memos and imports nothing.

    A memo that each process fills for itself changes no result, and each imports for itself.  What tests keep for
    themselves is no state of the project's.
    """
    known = set()
    for each in report.get("shared", ()):
        write, other = each["write"], each["other"]
        if each.get("alike") or _imported(each["base"], write, report.get("target", "")):
            continue
        file, other_file = shown.path(write["path"]), shown.path(other["path"])
        if file is None or each["base"] in known or (other_file is not None and is_test(file) and is_test(other_file)):
            continue
        known.add(each["base"])
        yield SharedFact(variable=each["base"], file=file, line=int(write["line"]),
                         other_file=other_file or other["path"], other_line=int(other["line"]))


def _imported(base: str, place: Mapping[str, Any], target: str) -> bool:
    """Return whether a module makes a variable of its own there when it is imported, and is not itself what is run.

    What it adds to another's, a registry say, depends on who has imported what.
    """
    if place["function"] != "<module>" or f"{target} ".startswith(f"{place['path']} "):
        return False
    name = base.removeprefix("global ").partition(" ")[0].partition(".")[0]
    return name in made_at_import(Path(place["path"]))


def _report(path: Path) -> dict[str, Any] | None:
    try:
        found = parse_json(read_text(path, RESULTS))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and "races" in found else None


def _witness(path: Path) -> list[dict[str, Any]]:
    """Return what each process of the run said of its threads at its end; those that came to one."""
    try:
        told = [parse_json(line) for line in read_text(path, RESULTS).splitlines() if line.endswith("}")]
    except (OSError, ValueError):
        return []
    return [each for each in told if "together" in each]


def _threads(told: Sequence[Mapping[str, Any]]) -> tuple[bool | None, bool | None]:
    """Return whether any process of the run had other threads, and whether code of the project's ran in two of one.

    None where no process came to an end at which it could tell.
    """
    if not told:
        return None, None
    return any(each["threads"] for each in told), any(each["together"] for each in told)


def _ran(told: Iterable[Mapping[str, Any]]) -> Iterator[Ran]:
    """Yield the functions of the project's own that ran in other threads than the first."""
    for each in told:
        for file, line, twice, one_self, foreign, lines in each.get("ran", ()):
            yield Ran(file=str(file), line=int(line), twice=bool(twice), one_self=bool(one_self), foreign=dict(foreign),
                      lines=frozenset(map(int, lines)))
