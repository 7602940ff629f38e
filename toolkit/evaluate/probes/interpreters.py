"""Facts about subinterpreters and processes on builds with a GIL: what loads there, what is shared, what they gain."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.facts import (
    Codes,
    Effect,
    Fact,
    Kind,
    TableCell,
    Topic,
    processes_on,
    subinterpreters_on,
)
from gilscope.toolkit.evaluate.packages.evidence import InterpreterStatus, Status
from gilscope.toolkit.evaluate.packages.wording import name_and_version
from gilscope.toolkit.evaluate.readings import (
    WORTHWHILE_GAIN,
    as_fast_as,
    first_of,
    is_quiet,
    own_finding,
    unbuilt_texts,
    unreached_texts,
    unwatched_texts,
)
from gilscope.toolkit.evaluate.sections import (
    NO_TIME,
    Cause,
    InterpreterTrial,
    Missing,
    Races,
    cause_of,
    known,
    reason_of,
)
from gilscope.toolkit.measure.child.refusal import REFUSAL
from gilscope.toolkit.units import counted, few, format_bytes, inflect, list_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.evaluate.evaluation import Evaluation
    from gilscope.toolkit.evaluate.packages.doctor import BuildReport, Finding
    from gilscope.toolkit.evaluate.sections import MachineFacts
    from gilscope.toolkit.stats.verdict import Comparison

LOADABLE = "packages that load all they have in an interpreter with its own GIL"
MOST_SHARED = 3      # variables that are named
STOPS = {InterpreterStatus.FAILS, InterpreterStatus.CRASH, InterpreterStatus.HANG}
CODES = Codes({
    "interpreters.package-fails": Kind(Effect.BLOCKS),
    "interpreters.stop": Kind(Effect.BLOCKS),
    "interpreters.own-not-built": Kind(Effect.UNKNOWN),
    "interpreters.package-not-known": Kind(Effect.UNKNOWN),
    "interpreters.packages-not-looked-at": Kind(Effect.UNKNOWN),
    "model.no-gain": Kind(Effect.NO_GAIN),
    "interpreters.shared-state": Kind(Effect.SHARES_STATE),
    "processes.shared-state": Kind(Effect.SHARES_STATE),
    "interpreters.not-tried": Kind(Effect.GAIN_UNKNOWN),
    "model.gain-not-known": Kind(Effect.GAIN_UNKNOWN),
    "interpreters.package-loses-c-code": Kind(Effect.COSTS),
    "model.gain": Kind(Effect.GAINS),
    "interpreters.packages-load": Kind(Effect.SUPPORTS),
    "interpreters.memory": Kind(Effect.CAUTION),
    "interpreters.own-code-not-looked-at": Kind(Effect.NOT_LOOKED_AT),
    "model.shared-not-looked-at": Kind(Effect.NOT_LOOKED_AT),
    "processes.data-not-looked-at": Kind(Effect.NOT_LOOKED_AT),
    "interpreters.memory-not-known": Kind(Effect.NOTE, heading=Topic.MEMORY),
    "interpreters.packages-counted": Kind(Effect.NOTE),
    "processes.memory": Kind(Effect.NOTE),
})
fact = CODES.fact


def facts(found: Evaluation) -> Iterator[Fact]:
    """Yield facts about subinterpreters and processes, on each build with a GIL."""
    for build in found.with_gil:
        yield from _inside(found, build.label)
    for build in found.with_processes:
        yield from _processes(found, build.label)


def _inside(found: Evaluation, label: str) -> Iterator[Fact]:
    target = subinterpreters_on(label)
    match found.packages[label]:
        case Missing() as missing:
            yield fact("interpreters.packages-not-looked-at", target, missing.reason, subject="packages",
                       confidence="low", missing=missing, cells=(TableCell("packages", "-", (missing.reason,)),))
        case report:
            yield _counted(found, label, report)
            judged = [*_loading(found, label, report)]
            yield from judged
            yield from _running(found, label, stopped=any(each.effect in {Effect.BLOCKS, Effect.UNKNOWN}
                                                          for each in judged),
                                blocked=any(each.effect is Effect.BLOCKS for each in judged))


def _counted(found: Evaluation, label: str, report: BuildReport) -> Fact:
    total = len(report.findings) + report.others
    able = sum(each.interpreters is InterpreterStatus.OK for each in report.findings) + report.others
    lost = [each.name for each in (*report.findings, *own_finding(found, label))
            if each.interpreters is InterpreterStatus.LOST]
    return fact("interpreters.packages-counted", subinterpreters_on(label),
                f"{able} of {counted(total, 'package')}: {LOADABLE}", subject="packages",
                cells=(TableCell("packages", f"{able}/{total}", (LOADABLE,)), TableCell("C lost", first_of(lost))))


def _loading(found: Evaluation, label: str, report: BuildReport) -> Iterator[Fact]:
    """Yield facts about packages and the project's own extension modules in interpreters."""
    target = subinterpreters_on(label)
    own = [each for each in own_finding(found, label) if each.seen.extensions]
    findings = (*report.findings, *own)
    failing = [each for each in findings if each.interpreters in STOPS]
    for text in _failing(failing):
        yield fact("interpreters.package-fails", target, text, subject="packages")
    stops = [] if failing else [*_stops(found, label)]
    for text in stops:
        yield fact("interpreters.stop", target, text, subject="packages")
    unknown = [each for each in findings if each.interpreters is InterpreterStatus.UNKNOWN]
    for each in unknown:
        yield fact("interpreters.package-not-known", target, _in_interpreters(each), subject=name_and_version(each))
    for text in unbuilt_texts(found.own.get(label), "in interpreters") if not unknown else ():
        yield fact("interpreters.own-not-built", target, text)
    lost = [each for each in findings if each.interpreters is InterpreterStatus.LOST]
    for each in lost:
        yield fact("interpreters.package-loses-c-code", target, _in_interpreters(each), subject=name_and_version(each))
    if not (failing or stops or unknown or lost):
        count = len(findings)
        who = counted(count, "package loads", "packages load")
        yield fact("interpreters.packages-load", target,
                   f"{who} in interpreters with a GIL of their own" if count else "no package is in the way",
                   subject="packages")


def _stops(found: Evaluation, label: str) -> Iterator[str]:
    """Yield failures although each package loads in an interpreter alone: all together, or the project's own code."""
    match found.trials[label]:
        case Missing(cause=Cause.CRASHED, reason=reason):
            yield f"a process whose interpreters import all of it: {reason}"
        case InterpreterTrial(refused=refused):
            yield from (f"{name} cannot be imported in them: {error}" for name, error in refused)
    if failure := found.rounds.other_model("subinterpreters", label).failure:
        yield f"the workload fails in them: {failure}"


def _running(found: Evaluation, label: str, *, stopped: bool, blocked: bool) -> Iterator[Fact]:
    """Yield the gain of the workload in interpreters, or why it is unknown."""
    target, other = subinterpreters_on(label), found.rounds.other_model("subinterpreters", label)
    measured = other.measured
    gain = _compared(measured, found.machine)
    shared = _shared(found.races, "interpreter") or (
        _not_looked(found.races, "interpreter") if gain and gain.hi >= WORTHWHILE_GAIN else "")
    yield from _gain(target, gain, label)
    slow = gain is not None and gain.hi < WORTHWHILE_GAIN
    if shared:
        yield fact("interpreters.shared-state", target, shared, subject="workload")
    if gain is None and not blocked:
        if cause_of(found.trials[label]) is Cause.TIME and reason_of(measured):
            yield fact("interpreters.not-tried", target,
                       f"nothing of the project itself was tried in them: {NO_TIME.reason}", subject="workload")
        yield _gain_not_known(target, measured, found.machine)
    yield from _memory(found, label)
    # Without a workload nothing of the project's own ran in one: loading is all that was seen.
    if (why := reason_of(measured)) and not other.failure:
        yield fact("interpreters.own-code-not-looked-at", target, why,
                   subject="the project's own code in subinterpreters")
    elif gain and not (slow or shared or stopped):
        yield from _beside(found, target)


def _processes(found: Evaluation, label: str) -> Iterator[Fact]:
    target, measured = processes_on(label), found.rounds.other_model("processes", label).measured
    match found.trials[label]:
        case InterpreterTrial(process_memory=float() | int() as memory):
            yield fact("processes.memory", target, f"each takes {format_bytes(memory)}", subject="memory",
                       cells=(_growth(memory),))
    gain = _compared(measured, found.machine)
    yield from _gain(target, gain, label)
    slow = gain is not None and gain.hi < WORTHWHILE_GAIN
    shared = _shared(found.races, "process") or (
        _not_looked(found.races, "process") if gain and not slow else "")
    if shared:
        yield fact("processes.shared-state", target, shared, subject="workload")
    if gain is not None:
        yield fact("processes.data-not-looked-at", target, "", subject="what it costs to hand the project's data over",
                   confidence="high")
        if not (slow or shared):
            yield from _beside(found, target)
    else:
        yield _gain_not_known(target, measured, found.machine)


def _compared(measured: Comparison | Missing, machine: MachineFacts | Missing) -> Comparison | None:
    """Return the comparison if it is conclusive."""
    seen = known(measured)
    return seen if seen is not None and is_quiet(machine) and seen.judgeable else None


def _gain(target: str, gain: Comparison | None, label: str) -> Iterator[Fact]:
    if gain is not None:
        slow = gain.hi < WORTHWHILE_GAIN
        yield fact("model.no-gain" if slow else "model.gain", target,
                   f"the workload is {as_fast_as(gain, f'in threads of {label}')}", value=gain, subject="workload")


def _gain_not_known(target: str, measured: Comparison | Missing, machine: MachineFacts | Missing) -> Fact:
    match measured, machine:
        case Missing(reason=doubt), _:
            pass
        case _, Missing(reason=doubt):
            pass
        case _:
            seen = known(machine)
            doubt = "; ".join(seen.doubts if seen else ()) or "too few rounds"
    return fact("model.gain-not-known", target, f"whether the workload is faster in them is not known: {doubt}",
                subject="workload", confidence="low")


def _beside(found: Evaluation, target: str) -> Iterator[Fact]:
    """Yield state that was not checked: unreached statements and C code."""
    races = known(found.races)
    for text in chain(unreached_texts(races) if races else (), unwatched_texts(found.extensions)):
        yield fact("model.shared-not-looked-at", target, text, subject="races")


def _shared(races: Races | Missing, worker: str) -> str:
    """Return the state that the workload's threads share; the reader must say whether copies of it would do."""
    seen = known(races)
    shared = (seen.shared if seen else None) or ()
    if not shared:
        return ""
    variables = [f"{each.variable} (changed at {each.file}:{each.line})" for each in shared[:MOST_SHARED]]
    more = f" and {len(shared) - MOST_SHARED} more" if len(shared) > MOST_SHARED else ""
    return (f"the workload's threads share {list_text(variables)}{more}: each {worker} would have a copy of its own, "
            "which changes what the program means unless copies will do")


def _not_looked(races: Races | Missing, worker: str) -> str:
    """Return why the state that the workload's threads share is unknown, or "" if it is known."""
    match races:
        case Missing(reason=reason):
            pass
        case Races(shared=None, lacking=lacking):
            reason = next((missing.reason for of, missing in lacking if of == "workload"), "it was not looked at")
        case Races(unwatched=unwatched) if unwatched:
            reason = f"nothing watched {few([f'{each.what} ({each.file}:{each.line})' for each in unwatched])}"
        case _:
            return ""
    return f"whether each {worker} may have a copy of what the workload's threads share is not known: {reason}"


def _failing(failing: Sequence[Finding]) -> Iterator[str]:
    """Yield why packages fail in interpreters, once for a module that refuses and all packages that import it."""
    owners = {extension.name: each for each in failing for extension in each.seen.extensions}
    behind: dict[str, tuple[Finding, list[str]]] = {}
    for each in failing:
        refusing = [owners[module] for module in _refusing(each) if module in owners]
        causes = [each] if each in refusing or not refusing else refusing
        for name, cause in {cause.name: cause for cause in causes}.items():
            behind.setdefault(name, (cause, []))[1].append(each.name)
    for name, (cause, importing) in behind.items():
        others = [each for each in importing if each != name]
        by = f"; {list_text(others)} {inflect(len(others), 'imports', 'import')} it" if others else ""
        yield f"{_in_interpreters(cause)}{by}"


def _refusing(finding: Finding) -> list[str]:
    """Return the modules that refused to load, by CPython's message, which packages often hide."""
    return list(dict.fromkeys(load.name for run in finding.seen.interpreters for load in run.loads
                              if REFUSAL.search(load.error or "")))


def _in_interpreters(finding: Finding) -> str:
    owned = {name for name, _ in finding.seen.distribution.extensions} if finding.seen.distribution else set()
    refusing = _refusing(finding)
    # Show its own refusing modules; its dependencies' only if it has none.
    if refusing := [module for module in refusing if module in owned] or refusing:
        more = f" and {len(refusing) - 1} more" if len(refusing) > 1 else ""
        refuse = inflect(len(refusing), "refuses", "refuse")
        lost = finding.interpreters is InterpreterStatus.LOST
        does = (Status.LOST if lost else Status.FAILS).words
        return f"{name_and_version(finding)} {does}: {next(iter(refusing))}{more} {refuse}"
    if finding.interpreters is InterpreterStatus.HANG:
        return f"{name_and_version(finding)} {finding.interpreter_reasons[0]}"
    why = f": {finding.interpreter_reasons[0]}" if finding.interpreter_reasons else ""
    return f"{name_and_version(finding)} {finding.interpreters.words}{why}"


def _memory(found: Evaluation, label: str) -> Iterator[Fact]:
    """Yield the memory of one more interpreter with what the project imports, or why it is not known."""
    target = subinterpreters_on(label)
    match found.trials[label]:
        case Missing() as missing:
            yield fact("interpreters.memory-not-known", target, f"not known: {missing.reason}", subject="memory",
                       missing=missing)
        case InterpreterTrial(memory=float() | int() as memory, process_memory=process, modules=modules):
            imports = f" with {few(modules)}" if modules else ""
            instead = "" if process is None else f" (a process {format_bytes(process)})"
            yield fact("interpreters.memory", target, f"each takes {format_bytes(memory)}{imports}{instead}",
                       subject="interpreter", cells=(_growth(memory),))


def _growth(memory: float) -> TableCell:
    return TableCell("memory", f"+{format_bytes(memory)}")
