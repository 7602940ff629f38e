"""What nobody can tell of a build yet, and what nothing looked at; each as a reason.  Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.packages.judge.status import Status
from gilscope.toolkit.evaluate.packages.wording import named
from gilscope.toolkit.evaluate.project.extensions.facts import Binding
from gilscope.toolkit.evaluate.project.suite.running import UNFINISHED
from gilscope.toolkit.evaluate.sections import WORKLOAD_FAILED, Missing
from gilscope.toolkit.evaluate.verdict.blockers import ended_badly, exit_code_of
from gilscope.toolkit.units import few

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.evaluation import BuildEvaluation
    from gilscope.toolkit.evaluate.project.extensions.facts import OwnExtensions
    from gilscope.toolkit.evaluate.sections import LeftOut, MachineFacts, RaceLook, Races

NOT_TOGETHER = ("no code of the project's own was seen running in two of them; name a --workload, or --threads 4 for "
                "its tests")


def race_doubts(found: BuildEvaluation, races: Races | Missing) -> Iterator[str]:
    """Yield what may be wrong in several threads: a race that did no harm this time is one all the same."""
    if isinstance(races, Missing):
        return
    for race in races.found:
        if not (race.confirmed or race.violation):
            yield f"{race.what}, not confirmed by a second run: guard it, or say why it may be"
    if races.unwatched:
        places = few([f"{each.what} ({each.file}:{each.line})" for each in races.unwatched])
        yield (f"several threads run what the race checker does not watch: {places}; look at it, and say why it may be "
               "(# race: ok WHY)")
    broken = isinstance(found.cost, Missing) and found.cost.reason.startswith(WORKLOAD_FAILED)
    for of, reason in races.lacking:
        if of in {"workload", "script"} and not broken:
            yield f"whether the {of} has data races is not known: {reason}"
    for look in races.looks:
        if look.otherwise:
            there, here = look.otherwise
            yield (f"the workload gives {there} in threads and {here} in the main thread: it does other work there, so "
                   "what it gains says nothing")
        passing = not isinstance(found.tests, Missing) and not found.tests.failed
        if look.failing and passing:
            count = len(look.failing)
            yield (f"{count} test{'s fail' if count > 1 else ' fails'} in {look.workers} threads at once that "
                   f"pass{'' if count > 1 else 'es'} alone: {few(look.failing)}")


def unknowns(found: BuildEvaluation, races: Races | Missing) -> Iterator[str]:
    """Yield what is missing for any word at all: metadata alone makes nobody ready."""
    if isinstance(found.readiness, Missing):
        yield f"the packages were not installed and looked at: {found.readiness.reason}"
        return
    for finding in found.readiness.findings:
        if finding.verdict.status in {Status.UNKNOWN, Status.INTERPRETER}:
            why = f": {finding.verdict.reasons[0]}" if finding.verdict.reasons else ""
            yield f"{named(finding)}: {finding.verdict.status.value}{why}"
    if isinstance(found.tests, Missing):
        yield f"nothing of the project was run on it: {found.tests.reason}"
    elif found.tests.ending.startswith(UNFINISHED):
        yield f"the tests were {found.tests.ending.partition(': ')[2]}, all that the budget left for them"
    elif found.tests.lacking and (found.tests.errors or found.tests.left_out or not found.tests.passed):
        yield f"tests could not be run, as {', '.join(found.tests.lacking)} could not be installed"
    elif ended_badly(found.tests) and not found.tests.passed:
        yield f"the tests end with {exit_code_of(found.tests)}, with the GIL, too: {_beside_tests(found, races)}"
    elif found.tests.passed == 0:
        yield f"not one test passes: {_beside_tests(found, races)}"
    elif found.tests.gil_end is None and found.build.free_threaded:
        yield "whether the GIL was off at the end of the tests is not known"


def _beside_tests(found: BuildEvaluation, races: Races | Missing) -> str:
    """Return what of the project was seen where its tests show nothing."""
    measured = not isinstance(found.cost, Missing) and found.cost.by != "tests"
    raced = not isinstance(races, Missing) and any(look.of in {"workload", "script"} for look in races.looks)
    return "of the project only the workload was seen" if measured or raced else "nothing of the project was seen"


def unexercised_parts(found: BuildEvaluation, machine: MachineFacts | Missing, races: Races | Missing) -> Iterator[str]:
    """Yield what no part of the evaluation looked at."""
    parts = (("tests", found.tests), ("cost of one thread", found.cost), ("gain", found.gain),
             ("contention", found.contention), ("races", races), ("machine", machine))
    for name, part in parts:
        if isinstance(part, Missing):
            yield f"{name}: {part.reason}"
    if not isinstance(races, Missing):
        yield from (f"races in the {of}: {reason}" for of, reason in races.lacking)
        if not races.together:
            yield f"threads: {_not_together(races)}"
        yield from ways_left_out(races)
    if not isinstance(found.tests, Missing):
        yield from (f"{each.file}: it cannot be collected{as_well(found, each)}: {each.why}"
                    for each in found.tests.left_out)
    if not isinstance(machine, Missing):
        yield from (f"speed: {doubt}" for doubt in machine.doubts)


def shared_in_c(extensions: OwnExtensions) -> Iterator[str]:
    """Yield what the project's own C code says of variables that all threads share: nothing watches it."""
    places = [f"{source.file}:{remark.line}" for source in extensions.sources for remark in source.remarks
              if remark.concern == "state"]
    if places:
        yield f"races: C code is not watched, and that of {few(places)} has variables that all threads share"
    unread = [source.file for source in extensions.sources if source.binding in {Binding.PYBIND11, Binding.NANOBIND}]
    if unread:
        yield (f"races: C++ code is not watched, and what the classes of {few(unread)} write to their objects is not "
               "read")


def ways_left_out(races: Races | Missing) -> Iterator[str]:
    """Yield which ways through what threads ran none of them took, where those change what they share."""
    if not isinstance(races, Missing) and races.unreached:
        places = few([f"{each.file}:{each.line} ({each.what})" for each in races.unreached])
        yield f"races: no thread came to {places}, which changes what they share"


def as_well(found: BuildEvaluation, out: LeftOut) -> str:
    """Return that a file of tests cannot be collected with the GIL either, where it is so."""
    there = () if isinstance(found.reference_tests, Missing) else found.reference_tests.left_out
    return ", with the GIL as well" if out.file in {each.file for each in there} else ""


def _not_together(races: Races) -> str:
    """Return what to say where nothing of the project was seen in two threads: what to ask for, or that it was done."""
    done = [_tried(look) for look in races.looks if look.of != "tests"]
    done += [f"the {of} was not seen in threads ({reason})" for of, reason in races.lacking
             if of in {"workload", "script"}]
    if not done:
        return NOT_TOGETHER
    return (f"{' and '.join(done)}, and no Python code of the project's own was seen running in two of them; C code is "
            "not watched")


def _tried(look: RaceLook) -> str:
    match look.of:
        case "tests at once":
            return f"its tests ran in {look.workers} threads each"
        case "workload":
            return f"the workload was called from {look.workers} threads"
        case _:
            return "the script ran and started no threads" if look.threads is False else "the script ran"
