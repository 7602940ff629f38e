"""Readings of the sections that several probes and views share: numbers in words, the code that nobody watched.

Pure functions over the measurements; the probes turn them into facts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.packages.evidence import Status
from gilscope.toolkit.evaluate.project.extensions.own_extensions import Binding
from gilscope.toolkit.evaluate.sections import Cause, Cost, Forced, Missing, ValueRange, known
from gilscope.toolkit.report.wording import interval_text, ratio_number
from gilscope.toolkit.stats.verdict import SpeedVerdict
from gilscope.toolkit.units import few

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.evaluate.evaluation import Evaluation
    from gilscope.toolkit.evaluate.packages.doctor import Finding
    from gilscope.toolkit.evaluate.project.extensions.own_extensions import OwnBuild, OwnExtensions, UnbuiltModule
    from gilscope.toolkit.evaluate.sections import MachineFacts, Measure, Races
    from gilscope.toolkit.stats.verdict import Comparison

WORTHWHILE_GAIN = 1.2  # a smaller gain is not worth a migration
LOST_RED = 1.2         # a larger slowdown means that the lost C code matters
WIDER = 2.0            # factor on the interval of CPU time on a busy machine, by its logarithm
TIME_FOR_COST = 120.0  # seconds in which a short workload is measured on two pairs of builds
TAKES: dict[Measure, str] = {"workload": "one thread takes", "script": "the script takes", "tests": "the tests take"}
# Without a workload, the reasons why the tests show no cost.
NOT_BY_TESTS = {Cause.TESTS_TOO_SHORT, Cause.TESTS_TOO_LONG, Cause.TESTS_NOT_TIMED}


def is_quiet(machine: MachineFacts | Missing) -> bool:
    """Return True if the machine is quiet and large enough to compare speeds."""
    seen = known(machine)
    return seen is not None and not seen.doubts


def cpu_time_factor(cost: Cost, *, sure: bool) -> ValueRange:
    """Return the factor on CPU time, in a wide interval unless the machine was quiet enough to be `sure`.

    CPU time is steady beside other load, but not untouched by it: caches and units of a core are shared.
    """
    more = cost.cpu.inverted()
    if sure:
        return ValueRange(value=more.ratio, lo=more.lo, hi=more.hi)
    lo, hi = more.between
    return ValueRange(value=more.ratio, lo=more.ratio * (lo / more.ratio) ** WIDER,
                      hi=more.ratio * (hi / more.ratio) ** WIDER)


def lost_too_much(found: Evaluation, label: str) -> str:
    """Return how much slower the workload is, if that is so much that lost C code blocks; "" otherwise."""
    cost, sure = known(found.speed[label].cost), is_quiet(found.machine)
    if cost is None or cost.by == "tests":
        return ""
    factor = cpu_time_factor(cost, sure=sure)
    # On a busy machine the wide interval must exclude the limit.
    if factor.value <= LOST_RED or (cost.cpu.verdict() != SpeedVerdict.SLOWER if sure else factor.lo <= LOST_RED):
        return ""
    return times_cpu_time(cost.by, factor, cost.against, brief=True)


def budget_for_cost(seconds: float) -> str:
    """Return a budget in which an evaluation that took `seconds` can measure the cost, in the form of --budget."""
    return f"{-int(-(seconds + TIME_FOR_COST) // 60)}m"


def forced_speed(forced: Forced | Missing | None) -> str:
    """Return how fast threads are with the GIL forced off, or "" if that is not known."""
    seen = known(forced)
    measured = known(seen.measured) if seen else None
    # That no difference is significant counts only if a worthwhile gain is excluded.
    telling = {threads: each for threads, each in (measured or {}).items()
            if each.differs or (each.judgeable and each.hi < WORTHWHILE_GAIN)}
    if seen is None or not telling or not is_quiet(seen.machine):
        return ""
    threads, best = max(telling.items(), key=lambda item: item[1].ratio)
    return as_fast_as(best, f"on {seen.against}", threads)


def as_fast_as(speed: Comparison, than: str, threads: int = 0) -> str:
    """Return "1.80x [1.71, 1.90] as fast as 3.14 with 4 threads"; 0 threads: those that the program starts."""
    return f"{interval_text(speed)} as fast as {than}{with_threads(threads)}"


def times_cpu_time(by: Measure, factor: ValueRange, against: str, *, brief: bool = False) -> str:
    """Return "one thread takes 1.31 [1.25, 1.37] times the CPU time of 3.14"; in brief, without the interval."""
    number = f"{factor.value:.2f}" if brief else range_text(factor)
    return f"{TAKES[by]} {number} times the CPU time of {against}"


def range_text(number: ValueRange, unit: str = "") -> str:
    """Return "1.31 [1.25, 1.37]", with "x" as unit "1.31x [1.25, 1.37]"."""
    return f"{ratio_number(number.value)}{unit} [{ratio_number(number.lo)}, {ratio_number(number.hi)}]"


def with_threads(threads: int) -> str:
    """Return " with 4 threads"; "" for 0, those that the program starts."""
    return f" with {threads} threads" if threads else ""


def first_of(names: Sequence[str]) -> str:
    """Return a name for a narrow column, and how many more there are; "none" without any."""
    return f"{names[0]}{f' +{len(names) - 1}' if len(names) > 1 else ''}" if names else "none"


def own_finding(found: Evaluation, label: str) -> tuple[Finding, ...]:
    """Return the project itself as one more package, where it was built."""
    own = found.own.get(label)
    return (own.finding,) if own and own.finding else ()


def turns_gil_on(found: Evaluation, label: str) -> bool:
    """Return True if a package or an extension module of the project's own is known to turn the GIL on."""
    report, own = known(found.packages[label]), found.own.get(label)
    by_package = report is not None and any(each.verdict.status is Status.GIL for each in report.findings)
    if own is None:
        return by_package
    itself = own.finding.verdict.status if own.finding else Status.READY
    return by_package or bool(own.failure and own.elsewhere) or (itself.blocks and itself is not Status.LOST)


def unreached_texts(races: Races) -> Iterator[str]:
    """Yield the statements that no thread came to and that change what threads share."""
    if races.unreached:
        places = few([f"{each.place} ({each.what})" for each in races.unreached])
        yield f"no thread came to {places}, which changes what they share"


def unwatched_texts(extensions: OwnExtensions) -> Iterator[str]:
    """Yield remarks on variables that all threads share in the project's own C code, which nothing watches."""
    places = [f"{source.file}:{remark.line}" for source in extensions.sources for remark in source.remarks
              if remark.concern == "state"]
    if places:
        yield f"C code is not watched, and that of {few(places)} has variables that all threads share"
    yield from unread_texts(extensions)


def unread_texts(extensions: OwnExtensions) -> Iterator[str]:
    """Yield remarks on own code that nothing watches and that is read in part only."""
    unread = [source.file for source in extensions.sources if source.binding in {Binding.PYBIND11, Binding.NANOBIND}]
    if unread:
        yield (f"C++ code is not watched, and what the classes of {few(unread)} write to their objects is known from "
               "their source alone")


def unbuilt_texts(own: OwnBuild | None, where: str) -> Iterator[str]:
    """Yield the modules that no build made; their behaviour `where` is unknown."""
    if own is None:
        return
    if own.failure and not own.elsewhere:
        yield build_failure_text(own.failure, where)
    yield from (unbuilt_text(each, where) for each in own.unbuilt if not each.elsewhere)


def build_failure_text(failure: Missing, where: str = "without the GIL") -> str:
    """Return that the project could not be built, so that its behaviour `where` is unknown."""
    return f"its own extension modules were not built, so their behaviour {where} is unknown: {failure.reason}"


def unbuilt_text(module: UnbuiltModule, where: str = "without the GIL") -> str:
    """Return that the build left out a module, so that its behaviour `where` is unknown."""
    name = module.name if module.nameless else f"its own extension module {module.name}"
    why = module.why or "the build went on without it and said nothing"
    return f"{name} was not built, so its behaviour {where} is unknown: {why}"
