"""Call the project's own C functions from several threads, and yield facts about what that shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.facts import FREE_THREADING, Codes, Effect, Fact, Kind, PlanStep, Topic
from gilscope.toolkit.evaluate.project.where_to_run import compiled_into
from gilscope.toolkit.evaluate.section import INSTALLED, Section
from gilscope.toolkit.evaluate.sections import NO_TIME, Cause, Missing, known
from gilscope.toolkit.hammer.hammering import BUSY_FACTOR, HammerReport, HammerRequest, hammer
from gilscope.toolkit.hammer.offered_calls import call_files
from gilscope.toolkit.hammer.repeated_trials import LIMITS
from gilscope.toolkit.units import counted, few

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.evaluation import Evaluation
    from gilscope.toolkit.evaluate.project.where_to_run import RunSite
    from gilscope.toolkit.evaluate.section import Means
    from gilscope.toolkit.hammer.hammering import FailureKind, HammerFailure

THREADS = 4              # unless --threads says otherwise
WORTH_SAYING = 0.25      # of its time; on any machine other programs run now and then
LEAST_SECONDS = 2.0      # of the budget, without which nothing would be seen
NO_SITE = Missing(reason="the project's code is not installed on any build without a GIL", cause=Cause.FAILED)
NOTHING_BUILT = Missing(reason="no extension module was built", cause=Cause.FAILED)

SHOWN: dict[FailureKind, tuple[str, str]] = {   # the code of the fact, and what happens
    "crash": ("hammer.crash", "crashes"), "hang": ("hammer.hang", "hangs"),
    "counts-lost": ("hammer.counts-lost", "loses counts"),
    "results-differ": ("hammer.results-differ", "gives other results than with one thread"),
    "objects-differ": ("hammer.objects-differ", "gives several objects where one thread gets one")}
CODES = Codes({
    "hammer.counts-lost": Kind(Effect.BLOCKS, step=PlanStep.EXTENSIONS, state="open", heading=Topic.HAMMER),
    "hammer.crash": Kind(Effect.BLOCKS, step=PlanStep.EXTENSIONS, state="open", heading=Topic.HAMMER),
    "hammer.hang": Kind(Effect.BLOCKS, step=PlanStep.EXTENSIONS, state="open", heading=Topic.HAMMER),
    "hammer.results-differ": Kind(Effect.BLOCKS, step=PlanStep.EXTENSIONS, state="open", heading=Topic.HAMMER),
    # Two equal objects harm only who compares them by `is`.
    "hammer.objects-differ": Kind(Effect.CAUTION, step=PlanStep.EXTENSIONS, heading=Topic.HAMMER),
    "hammer.not-looked-at": Kind(Effect.NOT_LOOKED_AT),
    "hammer.nothing-called": Kind(Effect.NOT_LOOKED_AT),
    "hammer.busy": Kind(Effect.NOTE, heading=Topic.HAMMER),
    "hammer.called": Kind(Effect.NOTE, heading=Topic.HAMMER),
    "hammer.clean": Kind(Effect.NOTE, heading=Topic.HAMMER),
    "hammer.slow": Kind(Effect.NOTE, heading=Topic.HAMMER),
    "hammer.waits": Kind(Effect.NOTE, heading=Topic.HAMMER),
}, subject="--hammer")
fact = CODES.fact


def asked(found: Evaluation) -> bool:
    """Return True if the user asks for it and the project has C code."""
    return bool(found.request.hammer and found.named.any)


def measure(found: Evaluation, means: Means) -> HammerReport | Missing:
    """Hammer the extension modules on the newest build that has them."""
    run_sites = means.sites().run_sites
    sites = [(label, site) for label in reversed(found.labels) if (site := known(run_sites[label]))]
    for label, site in sites:
        if not (modules := _built(found, label)):
            continue
        left, wanted = means.left(), found.request.hammer
        seconds, limit = min(wanted, left), min(wanted * BUSY_FACTOR, left)
        if seconds < LEAST_SECONDS:
            return NO_TIME
        means.say(f"{label}: call {few(modules)} from several threads for {seconds:.3g} s, at most {limit:.3g} s if "
                  "other programs use the cores")
        return hammer(site.python, _request(found, site, modules, seconds, limit),
                      variables=compiled_into(site.compiled) if site.compiled else None)
    return NOTHING_BUILT if sites else NO_SITE


def _built(found: Evaluation, label: str) -> tuple[str, ...]:
    own = found.own.get(label)
    installed = own.finding.seen.distribution if own and own.finding else None
    return tuple(sorted(name for name, _ in installed.extensions)) if installed else ()


def _request(
    found: Evaluation, site: RunSite, modules: tuple[str, ...], seconds: float, limit: float,
) -> HammerRequest:
    root = found.project.root
    return HammerRequest(
        modules=modules, own=found.project.modules, folders=tuple(map(str, site.folders)),
        files=tuple((str(file), str(file.relative_to(root))) for file in call_files(root)),
        threads=found.request.threads or THREADS, seconds=seconds, limit=limit)


def facts(found: Evaluation) -> Iterator[Fact]:
    """Yield each failure, or that there was none, what was too slow, and what was not called."""
    report: HammerReport = found.sections["hammer"]
    ended = report.trials - report.slow
    if not ended and not report.failures:
        yield fact("hammer.nothing-called", FREE_THREADING, report.problem, missing=Missing(reason=report.problem))
        return
    again = found.request.command("--fresh")
    for failure in report.failures:
        yield _failed(report, failure, again)
    if not report.failures:
        yield fact("hammer.clean", FREE_THREADING,
                   f"{report.seconds - report.missing:.3g} s of calls from {report.threads} threads "
                   f"({counted(ended, 'trial')}) found no fault; this does not prove that there "
                   "is none")
    if report.missing > WORTH_SAYING * report.seconds:
        yield fact("hammer.busy", FREE_THREADING,
                   f"other programs had the cores for {report.missing:.3g} of the "
                   f"{report.seconds:.3g} s that it was to have: a quiet machine or a larger --budget "
                   "shows more")
    if report.slow:
        yield fact("hammer.slow", FREE_THREADING,
                   f"{counted(report.slow, 'trial')} of {few(report.slow_functions)} took over "
                   f"{LIMITS.trial:g} s while threads ran: slow calls or a busy machine, no fault")
    if report.waiting:
        yield fact("hammer.waits", FREE_THREADING,
                   f"calls of {few(report.waiting)} on one object hang in threads that take turns, "
                   "too, as those of a lock do: crashes of these count, hangs are not judged")
    yield fact("hammer.called", FREE_THREADING, _called(report))


def _failed(report: HammerReport, failure: HammerFailure, again: str) -> Fact:
    code, what = SHOWN[failure.kind]
    names = few(failure.functions)
    beside = f", beside {few(failure.beside)}" if failure.beside else ""
    return fact(code, FREE_THREADING,
                f"{names}: called from {report.threads} threads with the GIL off, {what}: {failure.detail} "
                f"({failure.failed} of {counted(failure.trials, 'trial')}; called as {few(failure.calls)}, as in "
                f"{failure.place}{beside})", subject=names,
                action=f"make {names} safe for calls from several threads; `{again}` calls it again")


def _called(report: HammerReport) -> str:
    total = len(report.called) + len(report.left_out) + len(report.no_time)
    kinds = counted(total, "function, type or method", "functions, types and methods")
    why = ("without a repeatable call in tests or doctests" if report.complete else
           "finding calls ended before all were tried, and none was found by then for")
    left_out = f"; {why}: {few(report.left_out)}" if report.left_out else ""
    no_time = f"; no time was left for {few(report.no_time)}" if report.no_time else ""
    cut = "" if report.complete or left_out else "; finding calls ended before all were tried"
    return f"{len(report.called)} of its {kinds} called{no_time}{left_out}{cut}"


SECTION = Section(code="hammer", name="its C functions called from several threads", measure=measure, facts=facts,
                  codes=CODES, result=HammerReport | Missing, options=(*INSTALLED, "budget", "hammer", "threads"),
                  depends=lambda found: str(found.collected.tests), runs_project=True, asked=asked)
