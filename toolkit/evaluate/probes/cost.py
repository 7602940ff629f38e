"""Facts about what a build costs: CPU time and memory of one thread, and a workload that does not run there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.decision import Paid
from gilscope.toolkit.evaluate.facts import FREE_THREADING, Codes, Effect, Fact, Kind, PlanStep, TableCell
from gilscope.toolkit.evaluate.readings import (
    budget_for_cost,
    cpu_time_factor,
    forced_speed,
    is_quiet,
    times_cpu_time,
    turns_gil_on,
)
from gilscope.toolkit.evaluate.sections import (
    NOT_THE_SAME,
    Cause,
    Cost,
    Forced,
    Missing,
    Remedy,
    ValueRange,
    cause_of,
    known,
)
from gilscope.toolkit.report.wording import inflation_text
from gilscope.toolkit.stats.verdict import SpeedVerdict
from gilscope.toolkit.units import few, format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.evaluate.evaluation import Evaluation
    from gilscope.toolkit.evaluate.sections import Measure

# PEP 779's targets for supported free-threading, and twice the first of them.
COST_WARN = 1.15       # times the CPU time of one thread
COST_RED = 1.4
RSS_WARN = 1.2
LEAST_RSS = 2**24      # bytes more: an empty interpreter takes a quarter more, which is 4 MiB
BLOCKED_COULD = "; with it forced off, which is not safe, the workload is {}"
NOT_QUIET = "an interval twice as wide, as the machine is too busy or too small, see below"
IN_PLACE: dict[Measure, tuple[str, ...]] = {
    "workload": (), "script": ("CPU time of the script with all of its threads",),
    "tests": ("CPU time of the tests, their start with it: no --workload was measured",)}
NO_COST = "what it costs one thread was not measured"
CODES = Codes({
    "workload.fails-only-here": Kind(Effect.BLOCKS),
    "workload.turns-gil-on": Kind(Effect.BLOCKS),
    "workload.other-work": Kind(Effect.UNKNOWN),
    "cost.not-measured": Kind(Effect.UNPRICED, step=PlanStep.COST_AND_GAIN),
    "workload.failed": Kind(Effect.UNPRICED, step=PlanStep.COST_AND_GAIN),
    "cost.cpu-time": Kind(Effect.COSTS),
    "cost.memory": Kind(Effect.COSTS),
    "cost.uncertain": Kind(Effect.MAY_COST, step=PlanStep.COST_AND_GAIN),
    "cost.small": Kind(Effect.SUPPORTS),
    "cost.machine-busy": Kind(Effect.NOTE),
    "cost.measured": Kind(Effect.NOTE, step=PlanStep.COST_AND_GAIN, state="done"),
}, subject="cost")
fact = CODES.fact


def facts(found: Evaluation) -> Iterator[Fact]:
    """Yield facts about the cost of the workload, or of the tests, on each build."""
    for label in found.labels:
        yield from _failing(found, label)
        match found.speed[label].cost:
            case Missing() as missing:
                yield from _not_measured(found, label, missing)
            case cost:
                yield from _measured(found, label, cost)


def _failing(found: Evaluation, label: str) -> Iterator[Fact]:
    """Yield the reasons why the workload does not run there as it does with the GIL."""
    speed = found.speed[label]
    failure = speed.failure
    if failure is not None:
        faster = forced_speed(speed.forced)
        in_c = any(each.remarks for each in found.extensions.sources)
        look = "; --explain extensions lists the places of its C code to look at" if in_c else ""
        fails = failure.kind == "fails"
        yield fact("workload.fails-only-here" if fails else "workload.turns-gil-on", label,
                   f"{failure}{BLOCKED_COULD.format(faster) if faster else ''}", subject="workload",
                   consequence=not fails and turns_gil_on(found, label),
                   action=f"find out why the workload fails there ({failure.detail}){look}" if fails else "")
    if speed.differs:
        yield fact("workload.other-work", label, f"{speed.differs}: {NOT_THE_SAME}", subject="workload")


def _not_measured(found: Evaluation, label: str, missing: Missing) -> Iterator[Fact]:
    failed = missing.cause is Cause.WORKLOAD_FAILED
    yield fact("workload.failed" if failed else "cost.not-measured", label, NO_COST,
               missing=missing, part="cost of one thread", evidence=missing.reason,
               cost=best_known_cost(found, label), cells=(TableCell("1 thread", "-", (missing.reason,)),),
               action=_to_measure(found, label, missing), for_all=not failed)


def _to_measure(found: Evaluation, label: str, missing: Missing) -> str:
    """Return how to have the cost measured."""
    match missing.cause:
        case Cause.WORKLOAD_FAILED:
            return f"have the workload run ({missing.reason})"
        case Cause.TIME if not out_of_time(found, label):   # tests that ran out of time ask for more of it already
            return (f"raise --budget to about {budget_for_cost(found.seconds)}, to measure what one thread costs: what "
                    "was measured is kept")
        case Cause.TESTS_TOO_SHORT | Cause.TESTS_TOO_LONG:
            return ("name what the program does for one request or job, to measure what it costs: --workload SCRIPT, "
                    "or --workload MODULE:FUNCTION")
        case _:
            return ""


def out_of_time(found: Evaluation, label: str) -> bool:
    """Return True if the budget did not suffice for the tests."""
    tests = known(found.tests[label])
    return cause_of(found.tests[label]) is Cause.TIME or (tests is not None and tests.ending.kind == "unfinished")


def _measured(found: Evaluation, label: str, cost: Cost) -> Iterator[Fact]:
    sure = is_quiet(found.machine)
    seen = cpu_time_factor(cost, sure=sure)
    machine = known(found.machine)
    may_wait = bool(machine and machine.may_get_quiet)
    number = times_cpu_time(cost.by, seen, cost.against)
    text = (times_cpu_time(cost.by, seen, cost.against, brief=True) if sure
            else f"{number}, measured on a busy or small machine")
    remedy = Remedy.QUIET if may_wait else None
    code = "cost.small"
    if sure and 1 / cost.cpu.ratio > COST_WARN and cost.cpu.verdict() == SpeedVerdict.SLOWER:
        code = "cost.cpu-time"
        text += ", far beyond PEP 779's 15 %" if 1 / cost.cpu.ratio > COST_RED else ""
    elif not sure and seen.lo > COST_WARN:
        code = "cost.cpu-time"
    elif not sure and seen.lo <= COST_WARN <= seen.hi:
        code = "cost.uncertain"
        text = f"{text}: it may cost more than {(COST_WARN - 1) * 100:.0f} %"
    yield fact(code, label, text, remedy=remedy)
    if code == "cost.uncertain" and may_wait:
        yield fact("cost.machine-busy", FREE_THREADING, text,
                   action="repeat when the machine is quiet, or with --wait-quiet, to know what one thread costs")
    yield fact("cost.measured", label, number,
               cost=best_known_cost(found, label), cells=tuple(_cells(cost, seen, sure=sure)))
    yield from _more_memory(label, cost)


def _cells(cost: Cost, seen: ValueRange, *, sure: bool) -> Iterator[TableCell]:
    if sure:
        part = [f"a sample of them: {cost.sample}"] if cost.sample else []
        yield TableCell("1 thread", inflation_text(cost.cpu.inverted()), (*IN_PLACE[cost.by], *part))
    else:
        yield TableCell("1 thread", f"{seen.lo:.2f}-{seen.hi:.2f}x", (NOT_QUIET,))
    if of := cost.memory:
        sign = "+" if of.here >= of.there else "-"
        yield TableCell("memory", f"{sign}{format_bytes(abs(of.here - of.there))}", (of.process,))


def _more_memory(label: str, cost: Cost) -> Iterator[Fact]:
    of = cost.memory
    if of is None or of.here / of.there <= RSS_WARN or of.here - of.there < LEAST_RSS:
        return
    yield fact("cost.memory", label,
               f"{(of.here / of.there - 1) * 100:.0f} % more memory than on {cost.against}: "
               f"{format_bytes(of.here)} instead of {format_bytes(of.there)}, {of.process}", subject="memory")


def best_known_cost(found: Evaluation, label: str) -> Paid | Missing:
    """Return the cost for one thread and one process, with the GIL forced off if something turned it on."""
    speed = found.speed[label]
    cost, forced, sure = speed.cost, False, is_quiet(found.machine)
    match speed.cost, speed.forced:
        case Missing(), Forced(cost=Cost() as instead, machine=where) if is_quiet(where):
            cost, forced, sure = instead, True, True
    if isinstance(cost, Missing):
        return cost
    factor = cpu_time_factor(cost, sure=sure)
    return Paid(times=factor.value, lo=factor.lo, hi=factor.hi, against=cost.against, by=cost.by, busy=not sure,
                memory=cost.memory, forced=forced, of=_variant(cost) if label in found.own else "")


def _variant(cost: Cost) -> str:
    """Return which of the project's own extension modules the measured processes had loaded; "" if not known."""
    if cost.compiled is None or cost.compiled_there is None:
        return ""
    here, there = (_named_modules(names) for names in (cost.compiled, cost.compiled_there))
    if here == there:
        return (f"with its compiled {few(here)}" if here
                else "of its Python code alone: it loaded none of its extension modules")
    return f"with {_compiled(here)} here and {_compiled(there)} on {cost.against}"


def _compiled(names: Sequence[str]) -> str:
    return f"its compiled {few(names)}" if names else "its Python code alone"


def _named_modules(names: Sequence[str]) -> list[str]:
    """Return extension modules that somebody named; mypyc's shared one is generated."""
    return [name for name in names if not name.endswith("__mypyc")]
