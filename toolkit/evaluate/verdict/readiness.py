"""From what was found to the words READY, READY-WITH-COST, BLOCKED, NOT WORTH IT and INCONCLUSIVE.  Pure.

For builds without a GIL here, for subinterpreters and processes in `models`.

The order of the checks: what blocks comes first, then what is not known, then what it costs, then what it gains.
Nothing is READY without positive evidence for every part; what is unknown is never ready, and so is what it costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.evaluation import Conclusion, Word
from gilscope.toolkit.evaluate.packages.judge.status import Status
from gilscope.toolkit.evaluate.packages.wording import named, needed
from gilscope.toolkit.evaluate.project.extensions.facts import NO_EXTENSIONS, Binding
from gilscope.toolkit.evaluate.project.machine_calibration import MOST_QUEUED
from gilscope.toolkit.evaluate.project.suite.running import UNFINISHED, told_by
from gilscope.toolkit.evaluate.sections import NOT_THE_SAME, WORKLOAD_FAILED, Interval, Missing
from gilscope.toolkit.evaluate.verdict import own_extensions
from gilscope.toolkit.units import few, format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.evaluation import BuildEvaluation, Confidence
    from gilscope.toolkit.evaluate.packages.doctor import BuildReport, Finding
    from gilscope.toolkit.evaluate.project.extensions.facts import OwnExtensions
    from gilscope.toolkit.evaluate.sections import Cost, Forced, Gain, LeftOut, MachineFacts, RaceLook, Races, TestRun

# PEP 779's targets for supported free-threading, and twice the first of them.
COST_WARN = 1.15       # times the CPU time of one thread
COST_RED = 1.4
RSS_WARN = 1.2
LEAST_RSS = 2**24      # bytes more: an empty interpreter takes a quarter more, which is 4 MiB
LOST_RED = 1.2         # a workload that slows by more has lost more than it shows
WORTH = 1.2            # a predicted gain below that is not worth a migration
WAITS_LITTLE = 0.05    # share of thread time waiting for the GIL below which there is nothing to gain
WAITS_NEVER = 0.01     # likewise, on a machine that is too busy for a word on speed
MUCH_LONGER = 10       # times what the tests take with the GIL: no longer a matter of a budget that was too small
ALONE = 0.95           # share of the CPU time above which one thread does all the work
SLOW_SHARE = 1.5       # CPU inflation above which threads are in each other's way
PARKED_MUCH = 0.1      # share of thread time, likewise
NOT_TOGETHER = ("no code of the project's own was seen running in two of them; name a --workload, or --threads 4 for "
                "its tests")
WIDER = 2.0            # times the interval of CPU time on a busy machine, by its logarithm
NO_COST = "what it costs one thread was not measured"   # how a reason begins; why comes next
WHO = {"workload": "one thread takes", "script": "the script takes", "tests": "the tests take"}


def conclude(
    found: BuildEvaluation, machine: MachineFacts | Missing, races: Races | Missing,
    extensions: OwnExtensions = NO_EXTENSIONS,
) -> Conclusion:
    """Return what it comes to on one build without a GIL; `extensions` are the project's own."""
    unexercised = (*_unexercised(found, machine, races), *shared_in_c(extensions))
    confidence = _confidence(found, races, unexercised)

    def because(word: Word, *reasons: str) -> Conclusion:
        return Conclusion(target=found.build.label, word=word, reasons=reasons, confidence=confidence,
                          unexercised=unexercised)

    told = may_tell_speed(machine)
    if blockers := [*own_extensions.blockers(found.own), *_blockers(found), *_lost_blockers(found, told=told),
                    *_race_blockers(races)]:
        return because(Word.BLOCKED, *blockers)
    other_work = [f"{found.otherwise}: {NOT_THE_SAME}"] if found.otherwise else []
    if unknown := [*own_extensions.unknowns(found.own), *own_extensions.doubts(extensions),
                   *_unknown(found, races), *other_work, *_race_doubts(found, races)]:
        return because(Word.INCONCLUSIVE, *unknown)
    if isinstance(found.gain, Missing):
        gain: list[str] = []
    elif small := not_worth(found.gain, told=told):
        return because(Word.NOT_WORTH_IT, small)
    else:
        gain = list(_gains(found.gain)) if told else []
    costs = [*own_extensions.costs(found.own), *_costs(found, told=told)]
    doubt = [text for text in [cost_doubt(found.cost, told=told)] if text]
    if doubt and (isinstance(found.cost, Missing) or not costs):
        return because(Word.INCONCLUSIVE, *doubt, *costs, *gain)
    if costs:
        return because(Word.WITH_COST, *costs, *doubt, *gain, *_race_cautions(races))
    return because(Word.READY, *_ready(found, told=told), *gain, *_race_cautions(races))


def may_tell_speed(machine: MachineFacts | Missing) -> bool:
    """Return whether the machine is quiet and large enough for a word on speed."""
    return not isinstance(machine, Missing) and not machine.doubts


def times(cost: Cost, *, told: bool) -> Interval:
    """Return how many times the CPU time it takes, in a wide interval where no word on speed may be told.

    CPU time is steady beside other load, but not untouched by it: caches and units of a core are shared.
    """
    more = cost.cpu.inverted()
    if told:
        return Interval(value=more.ratio, lo=more.lo, hi=more.hi)
    noise = 1 + (more.floor or 0.0)
    lo, hi = min(more.between[0], more.ratio / noise), max(more.between[1], more.ratio * noise)
    return Interval(value=more.ratio, lo=more.ratio * (lo / more.ratio) ** WIDER,
                    hi=more.ratio * (hi / more.ratio) ** WIDER)


def cost_doubt(cost: Cost | Missing, *, told: bool) -> str:
    """Return why nobody can say that one thread costs little or much more; "": it is known."""
    if isinstance(cost, Missing):
        return f"{NO_COST}: {cost.reason}"
    if told:
        return ""
    seen = times(cost, told=told)
    if not seen.lo <= COST_WARN <= seen.hi:
        return ""
    return f"{_wide(cost, seen)}: it may cost more than {(COST_WARN - 1) * 100:.0f} %"


def _wide(cost: Cost, seen: Interval) -> str:
    return (f"{WHO[cost.by]} {seen.value:.2f} [{seen.lo:.2f}, {seen.hi:.2f}] times the CPU time of {cost.against}, "
            "measured on a busy or small machine")


def _blockers(found: BuildEvaluation) -> Iterator[str]:
    if not isinstance(found.readiness, Missing):
        yield from (text for _, text in package_blockers(found.readiness))
    # Without its modules its tests fail, too: that is one thing to mend.
    unbuilt = found.own is not None and found.own.failure and found.own.elsewhere
    if not isinstance(found.tests, Missing) and not unbuilt:
        yield from _test_blockers(found.tests, found.reference_tests)
    if found.failure:
        faster = worth(found.forced)
        yield found.failure + f"; with it forced off, which is not safe, the workload is {faster}" * bool(faster)


def worth(forced: Forced | Missing | None) -> str:
    """Return how fast threads are with the GIL forced off; "" where that is not known, or may not be told."""
    if forced is None or isinstance(forced, Missing) or isinstance(forced.measured, Missing):
        return ""
    # That no difference was shown is worth a word where none that matters is left to be shown.
    known = {threads: each for threads, each in forced.measured.items()
             if each.verdict() in {"faster", "slower"} or (each.verdict() == "same" and each.hi < WORTH)}
    if not known or not may_tell_speed(forced.machine):
        return ""
    threads, best = max(known.items(), key=lambda item: item[1].ratio)
    with_threads = f" with {threads} threads" if threads else ""
    return f"{best.ratio:.2f}x [{best.lo:.2f}, {best.hi:.2f}] as fast as on {forced.against}{with_threads}"


def package_blockers(report: BuildReport) -> Iterator[tuple[Finding | None, str]]:
    """Yield what packages have in the way, each with its words; None: a module that belongs to none."""
    for finding in report.findings:
        # C code that is lost is a price, and blocks where the price was measured: `_lost_blockers`.
        if finding.verdict.status.blocks and finding.verdict.status is not Status.LOST:
            why = finding.verdict.reasons[0] if finding.verdict.reasons else ""
            # What an installer says of a missing wheel begins with that it is missing.
            status = "" if why.startswith(Status.NO_WHEEL.value) else f" {finding.verdict.status.value}"
            yield finding, f"{named(finding)}{status}{f': {why}' if why else ''}{needed(finding)}"
    for module in report.unowned:
        yield None, f"{module}, of no package, turns the GIL on"


def _lost_blockers(found: BuildEvaluation, *, told: bool) -> Iterator[str]:
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
    elif _ended_badly(tests) and not (broken or tests.lacking) and (there is None or there.ending == "0"):
        succeeding = f", not on {there.build}" if there else ""
        yield f"the tests end with {_code(tests)}{succeeding}"


def _stuck(tests: TestRun, there: TestRun | None) -> str:
    """Return how the tests crash or hang here and not with the GIL; "" otherwise, and when only time was short."""
    kind, _, why = tests.ending.partition(": ")
    same = there is not None and (there.ending == tests.ending or kind == "hang" == there.ending.partition(":")[0])
    if kind in {"crash", "hang"} and not same:
        return f"the tests {kind}: {why}"
    if kind == UNFINISHED and there and there.ending.isdecimal() and tests.seconds > MUCH_LONGER * there.seconds:
        return f"the tests hang or crawl: {why}, and take {there.seconds:.0f} s on {there.build}"
    return ""


def _code(tests: TestRun) -> str:
    why = told_by(tests.output)
    return f"exit code {tests.ending}{f' ({why})' if why else ''}"


def _ended_badly(tests: TestRun) -> bool:
    return tests.ending.isdecimal() and tests.ending != "0"


def _race_blockers(races: Races | Missing) -> Iterator[str]:
    for race in () if isinstance(races, Missing) else races.found:
        if race.confirmed and not race.violation:
            yield f"{race.what}, confirmed: fix it first"


def _race_cautions(races: Races | Missing) -> Iterator[str]:
    """Yield what goes wrong with the GIL, too, so that it is no reason against a build without one."""
    for race in () if isinstance(races, Missing) else races.found:
        if race.violation:
            confirmed = ", confirmed" if race.confirmed else ""
            yield f"{race.what}{confirmed}, also there with the GIL: mend it on any build"


def _race_doubts(found: BuildEvaluation, races: Races | Missing) -> Iterator[str]:
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


def _unknown(found: BuildEvaluation, races: Races | Missing) -> Iterator[str]:
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
    elif _ended_badly(found.tests) and not found.tests.passed:
        yield f"the tests end with {_code(found.tests)}, with the GIL, too: {_beside_tests(found, races)}"
    elif found.tests.passed == 0:
        yield f"not one test passes: {_beside_tests(found, races)}"
    elif found.tests.gil_end is None and found.build.free_threaded:
        yield "whether the GIL was off at the end of the tests is not known"


def _beside_tests(found: BuildEvaluation, races: Races | Missing) -> str:
    """Return what of the project was seen where its tests show nothing."""
    measured = not isinstance(found.cost, Missing) and found.cost.by != "tests"
    raced = not isinstance(races, Missing) and any(look.of in {"workload", "script"} for look in races.looks)
    return "of the project only the workload was seen" if measured or raced else "nothing of the project was seen"


def _costs(found: BuildEvaluation, *, told: bool) -> Iterator[str]:
    if not isinstance(found.readiness, Missing):
        for finding in found.readiness.findings:
            if finding.verdict.status is Status.LOST:
                yield f"{named(finding)} loses its C code: {'; '.join(finding.verdict.reasons[:2])}"
    if not isinstance(found.cost, Missing):
        factor = 1 / found.cost.cpu.ratio
        if told and factor > COST_WARN and found.cost.cpu.verdict() == "slower":
            red = ", far beyond PEP 779's 15 %" if factor > COST_RED else ""
            yield f"{WHO[found.cost.by]} {factor:.2f} times the CPU time of {found.cost.against}{red}"
        if not told and (seen := times(found.cost, told=told)).lo > COST_WARN:
            yield _wide(found.cost, seen)
        yield from _memory(found.cost)
    if told and not isinstance(found.contention, Missing):
        yield from _contention(found)


def _memory(cost: Cost) -> Iterator[str]:
    of = cost.memory
    share, more = (of.here / of.there, of.here - of.there) if of else (cost.rss, cost.more_bytes)
    if share is None or share <= RSS_WARN or (more is not None and more < LEAST_RSS):
        return
    which = f": {format_bytes(of.here)} instead of {format_bytes(of.there)}, {of.process}" if of else ""
    yield f"{(share - 1) * 100:.0f} % more memory than on {cost.against}{which}"


def _contention(found: BuildEvaluation) -> Iterator[str]:
    assert not isinstance(found.contention, Missing)
    where = found.contention.places[0] if found.contention.places else None
    at = f", most at {where.file}:{where.line}" if where else ""
    if found.contention.inflation is not None and found.contention.inflation > SLOW_SHARE:
        yield f"threads get in each other's way: {found.contention.inflation:.1f} times the CPU time per operation{at}"
    if found.contention.parked is not None and found.contention.parked > PARKED_MUCH:
        yield f"threads are parked {found.contention.parked * 100:.0f} % of their time{at}"


def not_worth(gain: Gain, *, told: bool) -> str | None:
    """Return why there is no gain; None when there is one, or when it is not known.

    That threads hardly wait for the GIL is no word on speed: it is true on a busy machine, too, where threads that wait
    for a core instead wait less for the GIL, so the bound is lower.
    """
    measured = {} if isinstance(gain.measured, Missing) or not told else dict(gain.measured)
    known = {threads: each for threads, each in measured.items() if each.verdict() != "unknown"}
    if known:
        best = max(known.values(), key=lambda each: each.ratio)
        if best.hi < WORTH:
            return f"the workload is {best.ratio:.2f}x [{best.lo:.2f}, {best.hi:.2f}] as fast as on {gain.against}"
        return None
    sure = told and (gain.queued or 0.0) <= MOST_QUEUED
    if gain.wait_share is not None and gain.wait_share < (WAITS_LITTLE if sure else WAITS_NEVER):
        alone = "; all the work is one thread's" if gain.busiest and gain.busiest > ALONE else ""
        return f"threads wait for the GIL {gain.wait_share * 100:.1f} % of their time on {gain.against}: no gain{alone}"
    if told and not isinstance(gain.predicted, Missing) and gain.predicted.hi < WORTH:
        return f"predicted {gain.predicted.value:.2f}x [{gain.predicted.lo:.2f}, {gain.predicted.hi:.2f}]"
    return None


def _gains(gain: Gain) -> Iterator[str]:
    if not isinstance(gain.measured, Missing):
        for threads, each in gain.measured.items():
            if each.verdict() == "faster":
                with_threads = f" with {threads} threads" if threads else ""
                yield f"{each.ratio:.2f}x [{each.lo:.2f}, {each.hi:.2f}] as fast as {gain.against}{with_threads}"


def _ready(found: BuildEvaluation, *, told: bool) -> Iterator[str]:
    assert not isinstance(found.readiness, Missing)
    files = sum(len(finding.seen.extensions) for finding in found.readiness.findings) + own_extensions.files(found.own)
    who = "1 extension file does" if files == 1 else f"{files} extension files do"
    yield f"{who} without the GIL, as slots and imports say" if files else "no extension file is in the way"
    if not isinstance(found.tests, Missing):
        passed = {None: "the tests pass", 1: "1 test passes"}.get(
            found.tests.passed, f"{found.tests.passed} tests pass")
        yield f"{passed}, and the GIL is off at their end"
    assert not isinstance(found.cost, Missing)   # of which there is a doubt
    if not told:
        yield _wide(found.cost, times(found.cost, told=told))
    else:
        yield f"{WHO[found.cost.by]} {1 / found.cost.cpu.ratio:.2f} times the CPU time of {found.cost.against}"


def _unexercised(found: BuildEvaluation, machine: MachineFacts | Missing, races: Races | Missing) -> Iterator[str]:
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


def _confidence(found: BuildEvaluation, races: Races | Missing, unexercised: tuple[str, ...]) -> Confidence:
    """Return "high" when everything was looked at, "low" without a real install or a run of the project's code."""
    if isinstance(found.readiness, Missing) or isinstance(found.tests, Missing):
        return "low"
    return "medium" if unexercised or isinstance(races, Missing) else "high"
