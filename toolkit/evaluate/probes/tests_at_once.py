"""Facts about the project's tests, each run in several threads at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.facts import FREE_THREADING, Codes, Effect, Fact, Kind, PlanStep, Topic
from gilscope.toolkit.evaluate.sections import known
from gilscope.toolkit.units import MOST_NAMED, counted, few, inflect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.evaluation import Evaluation
    from gilscope.toolkit.evaluate.sections import RaceLook
CODES = Codes({
    "tests-at-once.fail-only-so": Kind(Effect.UNKNOWN),
    "tests-at-once.fail": Kind(Effect.NOTE, step=PlanStep.IN_THREADS, state="open"),
    "tests-at-once.not-run": Kind(Effect.NOTE, step=PlanStep.IN_THREADS, state="not known"),
    "tests-at-once.pass": Kind(Effect.NOTE, step=PlanStep.IN_THREADS, state="done"),
    "tests-at-once.ran-alone": Kind(Effect.NOTE, heading=Topic.RACES),
}, subject="tests")
fact = CODES.fact


def facts(found: Evaluation) -> Iterator[Fact]:
    """Yield how the tests do when each is run in several threads at once."""
    seen = known(found.races)
    looks = [look for look in (seen.looks if seen else ()) if look.of == "tests at once"]
    if not looks:
        lacking = seen.lacking if seen else ()
        why = next((missing.reason for of, missing in lacking if of == "tests at once"), "--threads 4 runs them so")
        yield fact("tests-at-once.not-run", FREE_THREADING, why)
    for look in looks:
        yield from _looked(found, look)


def _looked(found: Evaluation, look: RaceLook) -> Iterator[Fact]:
    left = f"; {counted(len(look.alone), 'test')} ran alone" if look.alone else ""
    text = (f"failing: {few(look.failing, MOST_NAMED)}{left}" if look.failing
            else f"in {look.workers} threads{left}")
    yield fact("tests-at-once.fail" if look.failing else "tests-at-once.pass", FREE_THREADING, text)
    if look.alone:
        count = len(look.alone)
        yield fact("tests-at-once.ran-alone", FREE_THREADING,
                   f"{counted(count, 'test')} cannot be run in several threads and ran in one: "
                   f"{few(look.alone, MOST_NAMED)}")
    for label in found.labels if look.failing else ():
        tests = known(found.tests[label])
        if tests and not tests.failed:   # tests that also fail alone do not count
            count = len(look.failing)
            yield fact("tests-at-once.fail-only-so", label,
                       f"{counted(count, 'test fails', 'tests fail')} in {look.workers} threads at once that "
                       f"{inflect(count, 'passes', 'pass')} alone: {few(look.failing)}")
