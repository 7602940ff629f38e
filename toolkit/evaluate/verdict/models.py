"""What subinterpreters and processes come to on a build with a GIL.  Pure, as `readiness` is, whose words these are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.evaluation import Conclusion, Word
from gilscope.toolkit.evaluate.packages.judge.interpreters import REFUSED
from gilscope.toolkit.evaluate.packages.judge.status import InterpreterStatus
from gilscope.toolkit.evaluate.packages.wording import named
from gilscope.toolkit.evaluate.project.extensions.facts import NO_EXTENSIONS
from gilscope.toolkit.evaluate.sections import NO_TIME, UNASKED, Broken, Missing, Races, Workers
from gilscope.toolkit.evaluate.verdict import own_extensions
from gilscope.toolkit.evaluate.verdict.costs_and_gains import WORTH, may_tell_speed
from gilscope.toolkit.evaluate.verdict.unknowns import shared_in_c, ways_left_out
from gilscope.toolkit.evaluate.verdict.worker_price import takes
from gilscope.toolkit.report.wording import list_text
from gilscope.toolkit.units import few

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.evaluate.evaluation import Confidence, InterpretersEvaluation, ProcessesEvaluation
    from gilscope.toolkit.evaluate.packages.doctor import Finding
    from gilscope.toolkit.evaluate.project.extensions.facts import OwnExtensions
    from gilscope.toolkit.evaluate.sections import MachineFacts
    from gilscope.toolkit.stats.words import Comparison


MOST_SHARED = 3    # variables that are named


def conclude_interpreters(
    found: InterpretersEvaluation, machine: MachineFacts | Missing, races: Races | Missing = UNASKED,
    extensions: OwnExtensions = NO_EXTENSIONS,
) -> Conclusion:
    """Return what subinterpreters come to on a build with a GIL; `races` tells what the workload's threads share."""
    target = f"subinterpreters on {found.build.label}"
    if isinstance(found.readiness, Missing):
        return Conclusion(target=target, word=Word.INCONCLUSIVE, reasons=(found.readiness.reason,), confidence="low",
                          unexercised=())
    findings = (*found.readiness.findings, *own_extensions.findings(found.own))
    failing = [each for each in findings if each.interpreters in
               {InterpreterStatus.FAILS, InterpreterStatus.CRASH, InterpreterStatus.HANG}]
    unknown = [each for each in findings if each.interpreters is InterpreterStatus.UNKNOWN]
    lost = [each for each in findings if each.interpreters is InterpreterStatus.LOST]
    gain, slow = _compared(found.measured, f"threads of {found.build.label}", machine)
    price = list(takes(found.workers)) if isinstance(found.workers, Workers) else []
    if failing:
        word, reasons = Word.BLOCKED, list(_failing(failing))
    elif stops := list(_stops(found)):
        word, reasons = Word.BLOCKED, stops
    elif unknown or (not_built := list(own_extensions.unbuilt(found.own, "in interpreters"))):
        word, reasons = Word.INCONCLUSIVE, [_in_interpreters(each) for each in unknown] or not_built
    elif slow:
        word, reasons = Word.NOT_WORTH_IT, slow
    elif copies := _copies(races, "interpreter") or (_not_looked(races, "interpreter") if gain else ""):
        word, reasons = Word.INCONCLUSIVE, [copies, *(gain or [_not_known(found.measured, machine)])]
    elif found.workers == NO_TIME and isinstance(found.measured, Missing):
        word, reasons = Word.INCONCLUSIVE, [f"nothing of the project itself was tried in them: {found.workers.reason}"]
    elif not gain:
        word, reasons = Word.INCONCLUSIVE, [_not_known(found.measured, machine), *map(_in_interpreters, lost),
                                            *([] if lost else _loads(findings)), *price]
    elif lost:
        word, reasons = Word.WITH_COST, [*(_in_interpreters(each) for each in lost), *gain, *price]
    else:
        word, reasons = Word.READY, [*_loads(findings), *gain, *price]
    # Without a workload nothing of the project's own ran in one: loading is all that was seen, and makes nobody ready.
    unexercised = ((f"the project's own code in subinterpreters: {found.measured.reason}",)
                   if isinstance(found.measured, Missing) and not found.failure
                   else _beside(races, extensions) if word in {Word.READY, Word.WITH_COST} else ())
    sure: Confidence = "medium" if unexercised else "high"
    return Conclusion(target=target, word=word, reasons=tuple(reasons),
                      confidence="low" if word is Word.INCONCLUSIVE and not gain else sure, unexercised=unexercised)


def _stops(found: InterpretersEvaluation) -> Iterator[str]:
    """Yield what fails in interpreters although each package loads in one: all of it together, or the project's own."""
    if isinstance(found.workers, Broken):
        yield f"a process whose interpreters import all of it: {found.workers.reason}"
    if isinstance(found.workers, Workers):
        for name, error in found.workers.refused:
            yield f"{name} cannot be imported in them: {error}"
    if found.failure:
        yield f"the workload fails in them: {found.failure}"


def _loads(findings: Sequence[Finding]) -> Iterator[str]:
    count = len(findings)
    who = f"{count} packages load" if count > 1 else "1 package loads"
    yield f"{who} in interpreters with a GIL of their own" if count else "no package is in the way"


def _copies(races: Races | Missing, worker: str) -> str:
    """Return which state the workload's threads share: whether copies of it will do is for the reader to say."""
    shared = () if isinstance(races, Missing) else races.shared or ()
    if not shared:
        return ""
    named = [f"{each.variable} (written at {each.file}:{each.line}, used at {each.other_file}:{each.other_line})"
             for each in shared[:MOST_SHARED]]
    more = f" and {len(shared) - MOST_SHARED} more" if len(shared) > MOST_SHARED else ""
    return (f"the workload's threads share {list_text(named)}{more}: each {worker} would have a copy of its own, which "
            "changes what the program means unless copies will do")


def _not_looked(races: Races | Missing, worker: str) -> str:
    """Return that nobody knows what the workload's threads share, and why; "" where that was looked at."""
    if isinstance(races, Missing):
        reason = races.reason
    elif races.shared is None:
        reason = next((reason for of, reason in races.lacking if of == "workload"), "it was not looked at")
    elif races.unwatched:
        reason = f"nothing watched {few([f'{each.what} ({each.file}:{each.line})' for each in races.unwatched])}"
    else:
        return ""
    return f"whether each {worker} may have a copy of what the workload's threads share is not known: {reason}"


def _beside(races: Races | Missing, extensions: OwnExtensions) -> tuple[str, ...]:
    """Return what may be shared beside what was seen: where no thread came to, and in C."""
    return *ways_left_out(races), *shared_in_c(extensions)


def conclude_processes(
    found: ProcessesEvaluation, machine: MachineFacts | Missing, races: Races | Missing = UNASKED,
    extensions: OwnExtensions = NO_EXTENSIONS,
) -> Conclusion:
    """Return what processes come to for the workload, on a build with a GIL; `races` tells what its threads share."""
    target = f"processes on {found.build.label}"
    gain, slow = _compared(found.measured, f"threads of {found.build.label}", machine)
    if gain or slow:
        word, reasons = (Word.READY, gain) if gain else (Word.NOT_WORTH_IT, slow)
        if gain and (copies := _copies(races, "process") or _not_looked(races, "process")):
            word, reasons = Word.INCONCLUSIVE, [copies, *gain]
        unknown = _beside(races, extensions) if word is Word.READY else ()
        return Conclusion(target=target, word=word, reasons=tuple(reasons), confidence="medium" if unknown else "high",
                          unexercised=("what it costs to hand the project's data over", *unknown))
    copies = _copies(races, "process")
    return Conclusion(target=target, word=Word.INCONCLUSIVE,
                      reasons=(*filter(None, (copies,)), _not_known(found.measured, machine)),
                      confidence="low", unexercised=())


def _not_known(measured: Comparison | Missing, machine: MachineFacts | Missing) -> str:
    """Return why nobody knows what the workload gains in another model."""
    doubt = measured.reason if isinstance(measured, Missing) else (
        machine.reason if isinstance(machine, Missing) else "; ".join(machine.doubts) or "too few rounds")
    return f"whether the workload is faster in them is not known: {doubt}"


def _compared(
    measured: Comparison | Missing, against: str, machine: MachineFacts | Missing
) -> tuple[list[str], list[str]]:
    """Return what the workload gains in another model, and likewise that it does not: one of them or none."""
    if isinstance(measured, Missing) or not may_tell_speed(machine) or measured.verdict() == "unknown":
        return [], []
    text = f"the workload is {measured.ratio:.2f}x [{measured.lo:.2f}, {measured.hi:.2f}] as fast as in {against}"
    return ([], [text]) if measured.hi < WORTH else ([text], [])


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
        by = f"; {list_text(others)} import{'s' * (len(others) == 1)} it" if others else ""
        yield f"{_in_interpreters(cause)}{by}"


def _refusing(finding: Finding) -> list[str]:
    """Return the modules that refused, whatever the package says of it."""
    return list(dict.fromkeys(load.name for run in finding.seen.interpreters for load in run.loads
                              if REFUSED.search(load.error or "")))


def _in_interpreters(finding: Finding) -> str:
    owned = {name for name, _ in finding.seen.distribution.extensions} if finding.seen.distribution else set()
    refusing = _refusing(finding)
    # Those of what it needs have a line of their own, unless it has none itself.
    if refusing := [module for module in refusing if module in owned] or refusing:
        more = f" and {len(refusing) - 1} more" if len(refusing) > 1 else ""
        does = "loses its C code" if finding.interpreters is InterpreterStatus.LOST else "cannot be imported"
        return f"{named(finding)} {does}: {next(iter(refusing))}{more} refuse{'s' * (len(refusing) == 1)}"
    why = f": {finding.interpreter_reasons[0]}" if finding.interpreter_reasons else ""
    return f"{named(finding)} {finding.interpreters.value}{why}"
