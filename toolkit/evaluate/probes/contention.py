"""Facts about threads that are in each other's way, thread pools of C libraries, and the machine."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.facts import FREE_THREADING, Codes, Effect, Fact, Kind, Topic
from gilscope.toolkit.evaluate.project.workload.name_check import is_function
from gilscope.toolkit.evaluate.readings import is_quiet
from gilscope.toolkit.evaluate.sections import Cause, Missing, known
from gilscope.toolkit.gil.records import WaitReason
from gilscope.toolkit.units import MOST_NAMED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.evaluation import Evaluation
    from gilscope.toolkit.evaluate.request import EvaluationRequest
    from gilscope.toolkit.evaluate.sections import Contention, MachineFacts, NativePool, Place

HAVE_LINES = {"machine.busy", "machine.not-looked-at"}   # codes of facts that this heading already shows
SLOW_SHARE = 1.5       # CPU inflation above which threads are in each other's way
PARKED_MUCH = 0.1      # share of thread time above which they are
LEAST_WAITED = 0.02    # seconds of all threads: less does not matter
MOST_LINES = 3
# Variables that limit a library's own threads.
LIMITS = {"OpenBLAS": "OPENBLAS_NUM_THREADS", "MKL": "MKL_NUM_THREADS", "BLIS": "BLIS_NUM_THREADS",
          "OpenMP": "OMP_NUM_THREADS"}
# Advice by what threads wait for; None if that is not known.
NOT_SEEN = "threads wait for each other there; gilscope gil shows for what"
WAITS = {
    None: NOT_SEEN, WaitReason.SPIN: NOT_SEEN, WaitReason.OTHER: NOT_SEEN,
    WaitReason.OBJECT: "let each thread have an object of its own there, and merge them later",
    WaitReason.WORLD: (
        "threads wait there until all of them have stopped: if that is the garbage collector, have it collect "
        "less often (gc.freeze, gc.set_threshold), or make fewer objects that refer to others"),
    WaitReason.LOCK: (
        "threads wait for a lock there: hold it only around what belongs together, or have a lock for each part "
        "of what it guards"),
    WaitReason.RAW: "threads wait there for each other inside the interpreter: do it less often",
}
CODES = Codes({
    "contention.cpu-time": Kind(Effect.COSTS),
    "contention.parked": Kind(Effect.COSTS),
    "contention.not-looked-at": Kind(Effect.NOT_LOOKED_AT),
    "machine.busy": Kind(Effect.NOT_LOOKED_AT),
    "machine.not-looked-at": Kind(Effect.NOT_LOOKED_AT),
    "contention.details": Kind(Effect.NOTE, heading=Topic.WAITS),
    "contention.line": Kind(Effect.NOTE),
    "contention.native-pool": Kind(Effect.NOTE),
    "contention.object": Kind(Effect.NOTE),
    "machine.cores": Kind(Effect.NOTE, heading=Topic.MACHINE),
    "machine.inherited": Kind(Effect.NOTE, heading=Topic.MACHINE),
}, subject="contention")
fact = CODES.fact


def facts(found: Evaluation) -> Iterator[Fact]:
    """Yield the contention of the workload's threads on each build, and facts about the machine."""
    own: dict[tuple[str, int], Fact] = {}
    for label, speed in found.speed.items():
        match speed.contention:
            case Missing(reason=reason):
                yield fact("contention.not-looked-at", label, reason)
            case contention:
                yield from _contention(label, contention, sure=is_quiet(found.machine),
                                       scale=_scale_command(found.request, label))
                for place in own_places(contention):
                    own.setdefault((place.file, place.line), _line(place, found.project.measuring))
    yield from [each for each in own.values() if each.action or each.places][:MOST_LINES]
    for speed in found.speed.values():
        if there := known(speed.contention):
            yield from _pools(there)
    yield from _machine(found)


def _scale_command(request: EvaluationRequest, label: str) -> str:
    """Return the command that names the object in the way; "" if the workload is no function."""
    if request.called is None or not is_function(request.called):
        return ""
    function, *payloads = request.called.split()
    options = (("--payloads", *payloads) if payloads else ()), ("--builds", label), (
        ("--path", str(request.path)) if request.path != Path() else ())
    return shlex.join(["gilscope", "scale", function, *(word for option in options for word in option)])


def _contention(label: str, found: Contention, *, sure: bool, scale: str) -> Iterator[Fact]:
    where = found.places[0] if found.places else None
    at = f", most at {where}" if where else ""
    if sure and found.inflation is not None and found.inflation > SLOW_SHARE:
        yield fact("contention.cpu-time", label,
                   "threads get in each other's way: "
                   f"{found.inflation:.1f} times the CPU time per operation{at}")
        if scale:       # waits have a line; threads that count references to one object do not wait
            yield fact("contention.object", label, f"`{scale}` finds out which object or lock is in the way",
                       action=f"`{scale}` names the object that is in the way of the workload's threads")
    if sure and found.parked is not None and found.parked > PARKED_MUCH:
        yield fact("contention.parked", label, f"threads are parked {found.parked * 100:.0f} % of their time{at}")
    if parts := list(_parts(found, sure=sure)):
        yield fact("contention.details", label, "; ".join(parts))


def _pools(found: Contention) -> Iterator[Fact]:
    for pool in _crowding(found):
        yield fact("contention.native-pool", FREE_THREADING, _crowd(found, pool), subject=pool.library,
                   action=f"set {LIMITS[pool.library]}=1: otherwise each of your threads starts {pool.library}'s own")


def _parts(found: Contention, *, sure: bool) -> Iterator[str]:
    if found.inflation is not None and sure:
        yield f"{found.inflation:.2f} times the CPU time per operation"
    if found.parked is not None:
        yield f"parked {found.parked * 100:.0f} % of their time"
    places = ", ".join(f"{place}{f' ({place.what})' if place.what else ''}"
                       for place in found.places[:MOST_NAMED])
    if places:
        waited = ", while they waited for a core as well" if found.parked is None else ""
        yield f"most at {places}{waited}"
    yield from (_crowd(found, pool) for pool in _crowding(found))


def _crowd(found: Contention, pool: NativePool) -> str:
    return (f"{found.threads} threads, for each of which {pool.library} may use {pool.threads} of its own, on "
            f"{found.cores} cores")


def _crowding(found: Contention) -> list[NativePool]:
    """Return the libraries that start more threads than there are cores, with as many threads of the workload."""
    threads, cores = found.threads or 1, found.cores
    return [pool for pool in found.pools if threads > 1 < pool.threads and cores and threads * pool.threads > cores]


def own_places(found: Contention) -> Iterator[Place]:
    """Yield the project's own lines where threads waited for each other long enough to matter.

    None if they waited for cores: then the machine delayed the thread that the others waited for.
    """
    for place in found.places if found.parked is not None else ():
        # Where they wait for the GIL, a package has turned it on.
        if place.own and place.seconds >= LEAST_WAITED and place.wait is not WaitReason.GIL:
            yield place


def _line(place: Place, measuring: str) -> Fact:
    """Return the fact about one line; no action where the file was written to measure the project."""
    advice = WAITS[place.wait]
    # A change there does not help where all threads are stopped for a collection.
    places = () if place.wait is WaitReason.WORLD else (place,)
    return fact("contention.line", FREE_THREADING, advice, subject=str(place), places=places,
                action="" if place.file == measuring else f"{place}: {advice}")


def _machine(found: Evaluation) -> Iterator[Fact]:
    match found.machine:
        case Missing(reason=reason):
            yield fact("machine.not-looked-at", FREE_THREADING, reason, subject="machine")
        case machine:
            for doubt in machine.doubts:
                yield fact("machine.busy", FREE_THREADING, doubt, subject="speed",
                           missing=Missing(reason=doubt, cause=Cause.BUSY) if machine.may_get_quiet else None)
            yield fact("machine.cores", FREE_THREADING, _cores(machine), subject="machine")
            if machine.inherited:
                yield fact("machine.inherited", FREE_THREADING, machine.inherited, subject="machine")


def _cores(machine: MachineFacts) -> str:
    able = f", worth {machine.effective:.2f} in parallel" if machine.effective is not None else ""
    waits = f"; waits for a core: {machine.run_queue * 100:.0f} % of the time" if machine.run_queue is not None else ""
    not_judged = "; speed was not judged" if machine.doubts else ""
    return f"{machine.cores} cores{able}{waits}; {machine.libc}{not_judged}"
