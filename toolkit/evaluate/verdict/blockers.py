"""What is in the way on a build: packages, lost C code, tests, confirmed races; each as a reason.  Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.packages.judge.status import Status
from gilscope.toolkit.evaluate.packages.wording import named, needed
from gilscope.toolkit.evaluate.project.suite.running import UNFINISHED, told_by
from gilscope.toolkit.evaluate.sections import Missing
from gilscope.toolkit.evaluate.verdict import own_extensions
from gilscope.toolkit.evaluate.verdict.costs_and_gains import WHO, times, worth

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.evaluation import BuildEvaluation
    from gilscope.toolkit.evaluate.packages.doctor import BuildReport, Finding
    from gilscope.toolkit.evaluate.sections import Races, TestRun

LOST_RED = 1.2         # a workload that slows by more has lost more than it shows
MUCH_LONGER = 10       # times what the tests take with the GIL: no longer a matter of a budget that was too small


def build_blockers(found: BuildEvaluation) -> Iterator[str]:
    """Yield what packages, tests and the workload have in the way on a build."""
    if not isinstance(found.readiness, Missing):
        yield from (text for _, text in package_blockers(found.readiness))
    # Without its modules its tests fail, too: that is one thing to mend.
    unbuilt = found.own is not None and found.own.failure and found.own.elsewhere
    if not isinstance(found.tests, Missing) and not unbuilt:
        yield from _test_blockers(found.tests, found.reference_tests)
    if found.failure:
        faster = worth(found.forced)
        yield found.failure + f"; with it forced off, which is not safe, the workload is {faster}" * bool(faster)


def package_blockers(report: BuildReport) -> Iterator[tuple[Finding | None, str]]:
    """Yield what packages have in the way, each with its words; None: a module that belongs to none."""
    for finding in report.findings:
        # C code that is lost is a price, and blocks where the price was measured: `lost_blockers`.
        if finding.verdict.status.blocks and finding.verdict.status is not Status.LOST:
            why = finding.verdict.reasons[0] if finding.verdict.reasons else ""
            # What an installer says of a missing wheel begins with that it is missing.
            status = "" if why.startswith(Status.NO_WHEEL.value) else f" {finding.verdict.status.value}"
            yield finding, f"{named(finding)}{status}{f': {why}' if why else ''}{needed(finding)}"
    for module in report.unowned:
        yield None, f"{module}, of no package, turns the GIL on"


def lost_blockers(found: BuildEvaluation, *, told: bool) -> Iterator[str]:
    """Yield what loses its C code, packages and the project's own, where the workload is much slower: it needs them."""
    if isinstance(found.cost, Missing) or found.cost.by == "tests":
        return
    seen = times(found.cost, told=told)
    # On a busy machine CPU time tells it where the wide interval does.
    if seen.value <= LOST_RED or (found.cost.cpu.verdict() != "slower" if told else seen.lo <= LOST_RED):
        return
    slower = f"{WHO[found.cost.by]} {seen.value:.2f} times the CPU time of {found.cost.against}"
    yield from (f"{text}, and {slower}" for text in own_extensions.costs(found.own))
    for finding in () if isinstance(found.readiness, Missing) else found.readiness.findings:
        if finding.verdict.status is Status.LOST:
            yield f"{named(finding)} loses its C code, and {slower}"


def _test_blockers(tests: TestRun, reference: TestRun | Missing) -> Iterator[str]:
    there = None if isinstance(reference, Missing) else reference
    if tests.gil_end:
        by = f" ({', '.join(tests.culprits)})" if tests.culprits else ""
        yield f"the GIL was on at the end of the tests{by}"
    if stuck := _stuck(tests, there):
        yield stuck
    elsewhere = {each.file for each in there.left_out} if there else set()
    for each in () if tests.lacking else tests.left_out:
        if each.file not in elsewhere:
            yield f"{each.file} cannot be collected{f', and can on {there.build}' if there else ''}: {each.why}"
    # What cannot be collected for want of a package says nothing of the build.
    broken = (tests.failed or 0) if tests.lacking else tests.broken
    before = there.broken if there else 0
    if broken > before:
        more = broken - before
        text = f"{more} tests fail" if more > 1 else "1 test fails"
        yield f"{text}{f' that pass{"" if more > 1 else "es"} on {there.build}' if there else ''}"
    elif ended_badly(tests) and not (broken or tests.lacking) and (there is None or there.ending == "0"):
        succeeding = f", not on {there.build}" if there else ""
        yield f"the tests end with {exit_code_of(tests)}{succeeding}"


def _stuck(tests: TestRun, there: TestRun | None) -> str:
    """Return how the tests crash or hang here and not with the GIL; "" otherwise, and when only time was short."""
    kind, _, why = tests.ending.partition(": ")
    same = there is not None and (there.ending == tests.ending or kind == "hang" == there.ending.partition(":")[0])
    if kind in {"crash", "hang"} and not same:
        return f"the tests {kind}: {why}"
    if kind == UNFINISHED and there and there.ending.isdecimal() and tests.seconds > MUCH_LONGER * there.seconds:
        return f"the tests hang or crawl: {why}, and take {there.seconds:.0f} s on {there.build}"
    return ""


def exit_code_of(tests: TestRun) -> str:
    """Return how the tests ended, in words."""
    why = told_by(tests.output)
    return f"exit code {tests.ending}{f' ({why})' if why else ''}"


def ended_badly(tests: TestRun) -> bool:
    """Return whether the tests ended by themselves, and not with success."""
    return tests.ending.isdecimal() and tests.ending != "0"


def race_blockers(races: Races | Missing) -> Iterator[str]:
    """Yield the races that a second run has confirmed, and that the GIL keeps from doing harm."""
    for race in () if isinstance(races, Missing) else races.found:
        if race.confirmed and not race.violation:
            yield f"{race.what}, confirmed: fix it first"


def race_cautions(races: Races | Missing) -> Iterator[str]:
    """Yield what goes wrong with the GIL, too, so that it is no reason against a build without one."""
    for race in () if isinstance(races, Missing) else races.found:
        if race.violation:
            confirmed = ", confirmed" if race.confirmed else ""
            yield f"{race.what}{confirmed}, also there with the GIL: mend it on any build"
