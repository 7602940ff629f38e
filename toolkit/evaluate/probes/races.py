"""Facts about data races in the project's own code, and about code that the race checker could not check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.facts import FREE_THREADING, Codes, Effect, Fact, Kind, PlanStep, Topic
from gilscope.toolkit.evaluate.readings import unreached_texts
from gilscope.toolkit.evaluate.sections import NO_TIME, Cause, Missing, cause_of
from gilscope.toolkit.own_files import is_test

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.evaluation import Evaluation
    from gilscope.toolkit.evaluate.sections import RaceFact, RaceLook, Races

WORKLOADS = {"workload", "script"}
NOT_SEEN = "no Python code of the project's own was seen running in two threads"
NOT_TOGETHER = f"{NOT_SEEN}; name a --workload, or --threads 4 for its tests"
NOT_LOOKED_FOR = "races were not looked for: {}"
C_CODE = "; C code is not watched"
CODES = Codes({
    "race.confirmed": Kind(Effect.BLOCKS, step=PlanStep.RACES, state="open", heading=Topic.RACES),
    "race.unconfirmed": Kind(Effect.UNKNOWN, step=PlanStep.RACES, state="open", heading=Topic.RACES),
    "races.not-known": Kind(Effect.UNKNOWN),
    "workload.other-work-in-threads": Kind(Effect.UNKNOWN),
    "race.atomicity-violation": Kind(Effect.CAUTION, step=PlanStep.RACES, state="open", heading=Topic.RACES),
    "race.in-tests": Kind(Effect.CAUTION, step=PlanStep.RACES, state="open", heading=Topic.RACES),
    "races.not-looked-at": Kind(Effect.NOT_LOOKED_AT, step=PlanStep.RACES),
    "races.not-reached": Kind(Effect.NOT_LOOKED_AT),
    "races.not-together": Kind(Effect.NOT_LOOKED_AT),
    "races.part-not-looked-at": Kind(Effect.NOT_LOOKED_AT),
    "races.none": Kind(Effect.NOTE, step=PlanStep.RACES, state="done"),
    "races.none-seen": Kind(Effect.NOTE, heading=Topic.RACES),
    "races.nothing-ran-together": Kind(Effect.NOTE, step=PlanStep.RACES, state="not known"),
}, subject="races")
fact = CODES.fact


def facts(found: Evaluation) -> Iterator[Fact]:
    """Yield the races that were found, and where none could be looked for."""
    match found.races:
        case Missing() as missing:
            yield fact("races.not-looked-at", FREE_THREADING, missing.reason, missing=missing,
                       unread=NOT_LOOKED_FOR.format(missing.reason))
        case races:
            yield from map(_race, races.found)
            yield from _lacking(found, races)
            yield from _looked(found, races)
            yield from _together(races, extensions=found.extensions.any)
            yield from map(_other_work, filter(lambda look: look.differs, races.looks))


def _race(race: RaceFact) -> Fact:
    places = tuple(place for place in (race.place, *race.places * (not race.violation)) if place.own)
    code = "race.unconfirmed"
    also = ", not confirmed by a second run: guard it, or say why it may be"
    action = f"{race.where}: guard {race.variable} with a lock ({race.kind})"
    if race.violation:
        confirmed = ", confirmed" if race.confirmed else ""
        code = "race.atomicity-violation"
        also = f"{confirmed}, it also happens with the GIL: fix it in any case"
        if race.repair:   # a lock is there, and is released in between
            repair = f"{race.repair[0].lower()}{race.repair[1:].rstrip('.')}"
            action = f"{race.where}: {repair} ({race.variable}: {race.kind})"
    elif all(place.own and is_test(place.file) for place in (race.place, *race.places)):
        confirmed = ", confirmed" if race.confirmed else ""
        code = "race.in-tests"
        also = f"{confirmed}, between lines of tests alone: fix the test; what is shipped takes no part"
    elif race.confirmed:
        code, also = "race.confirmed", ", confirmed: fix it first"
    return fact(code, FREE_THREADING, f"{race.what}{also}", subject=race.variable, places=places, action=action)


def _lacking(found: Evaluation, races: Races) -> Iterator[Fact]:
    """Yield the parts that the race checker could not check."""
    for number, (of, missing) in enumerate(races.lacking):
        why = NO_TIME.reason if missing.cause is Cause.TIME else missing.reason
        yield fact("races.part-not-looked-at", FREE_THREADING, missing.reason, subject=f"races in the {of}",
                   missing=missing, unread="" if races.looks or number else NOT_LOOKED_FOR.format(why))
        for label in found.labels if of in WORKLOADS else ():
            # A workload that does not run at all is reported as an unknown cost.
            if cause_of(found.speed[label].cost) is not Cause.WORKLOAD_FAILED:
                yield fact("races.not-known", label, f"whether the {of} has data races is not known: {missing.reason}",
                           subject=of)


def _looked(found: Evaluation, races: Races) -> Iterator[Fact]:
    if races.looks and not races.found:
        uncompiled = all(look.uncompiled for look in races.looks)
        c_code = ", and C code is not watched" if found.extensions.any and not uncompiled else ""
        yield fact("races.none-seen", FREE_THREADING,
                   f"none {' and '.join(map(described, races.looks))}; what they did not run is not judged"
                   f"{c_code}")
    if not races.found:
        if races.together:
            yield fact("races.none", FREE_THREADING, "none was found; what did not run is not judged",
                       state="open" if races.unwatched else "done")
        else:
            yield fact("races.nothing-ran-together", FREE_THREADING, NOT_SEEN)


def described(look: RaceLook) -> str:
    """Return the code that ran under the race checker, and the build."""
    what = {
        "tests": "in the project's tests", "script": "in the script",
        "tests at once": f"in the project's tests, each in {look.workers} threads at once",
        "workload": f"in the workload, called {look.calls} times by {look.workers} threads"}[look.of]
    none = ", which start no threads" if look.threads is False else ""
    return f"{what} on {look.build}{none}{', as Python before it is compiled' * look.uncompiled}"


def _together(races: Races, *, extensions: bool) -> Iterator[Fact]:
    """Yield the untested parts: no code ran in two threads, or statements that no thread reached."""
    if not races.together:
        yield fact("races.not-together", FREE_THREADING, f"{_not_together(races)}{C_CODE * extensions}",
                   subject="threads")
    for text in unreached_texts(races):
        yield fact("races.not-reached", FREE_THREADING, text, unread=text)


def _not_together(races: Races) -> str:
    """Return how to run the project's code in two threads, or that this was tried in vain."""
    done = [_tried(look) for look in races.looks if look.of != "tests"]
    done += [f"the {of} was not seen in threads ({missing.reason})" for of, missing in races.lacking
             if of in WORKLOADS]
    if not done:
        return NOT_TOGETHER
    return f"{' and '.join(done)}, and {NOT_SEEN}"


def _tried(look: RaceLook) -> str:
    match look.of:
        case "tests at once":
            return f"its tests ran in {look.workers} threads each"
        case "workload":
            return f"the workload was called from {look.workers} threads"
        case _:
            return "the script ran and started no threads" if look.threads is False else "the script ran"


def _other_work(look: RaceLook) -> Fact:
    there, here = look.differs
    return fact("workload.other-work-in-threads", FREE_THREADING,
                f"the workload gives {there} in threads and {here} in the main thread: it does other work there, "
                "so what it gains says nothing", subject="workload")
