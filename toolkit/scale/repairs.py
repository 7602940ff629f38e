"""The repair that fits an object in the way: a code for scripts, and a sentence for readers that no logic reads."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from gilscope.toolkit.scale.child.names import LOG_HANDLER
from gilscope.toolkit.scale.judgement import Doubt, Obstacle

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gilscope.toolkit.scale.blamed_object import BlamedObject


class RepairCode(StrEnum):
    """A repair; JSON has the value."""

    THREAD_COPY = "copy-in-each-thread"
    THREAD_VALUE = "compute-in-each-thread"
    LOCAL_NAME = "bind-to-local-name"
    BYTECODE = "load-constants-from-bytecode"
    OWN_FUNCTION = "make-function-in-each-thread"
    C_TYPE = "not-repairable-in-python"
    SHARD = "shard-what-the-lock-protects"
    COLLECTOR = "freeze-or-collect-less"


ONLY_READ = ("and only read it there: passing it on, storing it, giving it a second name, or using it in a nested "
             "function or generator counts again. This helps from 3.14t on: 3.13t counts at every use of a local "
             "name, too.")
COMPUTED = "Compute the value inside each thread: copy.deepcopy keeps the same object."
COMPILED = ("Compile the pattern inside each thread, with a comment of the thread's own: with PATTERN, of a str, "
            're.compile(f"{PATTERN.pattern}(?#{threading.get_ident()})", PATTERN.flags). Without the comment, '
            "re.compile returns one object to all threads, from its cache, and copies are that object, too.")
TEXTS = {
    RepairCode.THREAD_COPY: "Give each thread a copy of its own, made inside the thread: copies that one thread makes "
                            "for all may share a cache line.",
    RepairCode.THREAD_VALUE: f"{COMPUTED} Or bind it to a local name once, before the loop that uses it, {ONLY_READ}",
    RepairCode.LOCAL_NAME: f"Bind it to a local name once, before the loop that uses it, {ONLY_READ}",
    RepairCode.BYTECODE: "Load the module from its .pyc, whose constants have no reference count: run "
                         "`python -m compileall`, and leave PYTHONDONTWRITEBYTECODE unset.",
    RepairCode.OWN_FUNCTION: "Make the function inside each thread, or pass what it holds as an argument.",
    RepairCode.C_TYPE: "The type is written in C and counts itself at every use: Python code cannot change that.",
    RepairCode.SHARD: "Let each thread fill one of its own and merge them at the end, or take the lock less often.",
    RepairCode.COLLECTOR: "Call gc.freeze() once the program's objects are made, or let the collector run less often.",
}
# Instead of the text of SHARD, by the type whose lock is held, as the child names it.
_LOCK = ("Hold it for less of the work, or split what it protects into parts with a lock each, such as one for each "
         "thread.")
_STREAM = "Write less often: collect in each thread, and write much at once, or give each thread a file of its own."
LOCKS = frozenset({"_thread.lock", "_thread.RLock"})     # types that are locks, not objects with one
OF_LOCK = {
    **dict.fromkeys(LOCKS, _LOCK),
    "dict": "If threads write it, let each fill one of its own and merge them at the end. If they only read it, look "
            "it up by the very objects that are its keys, such as texts from sys.intern(): a look-up by an equal key "
            "that is another object may take the lock.",
    "functools._lru_cache_wrapper": "Look results up less often, or give each thread a cache of its own, made inside "
                                    "the thread: every call of a cache with a maxsize takes the cache's lock.",
    "random.Random": "Make one random.Random() for each thread, inside the thread, with a seed of its own.",
    "random.SystemRandom": "Make one random.SystemRandom() for each thread, inside the thread.",
    "_io.TextIOWrapper": _STREAM, "_io.BufferedWriter": _STREAM, "_io.BufferedRandom": _STREAM,
    "_io.BufferedReader": "Read much at once, or open the file in each thread.",
}
QUEUE_OF_RECORDS = ("Log less often, or let a logging.handlers.QueueHandler pass the records to a QueueListener, so "
                    "that the work waits for no output; a handler for each thread shares no lock.")
# Repairs that a copy in each thread is, or shows the gain of.
COPIED = frozenset({RepairCode.THREAD_COPY, RepairCode.THREAD_VALUE, RepairCode.SHARD})
PATTERN = "re.Pattern"
LOGGER = "logging.Logger"
IF_ENABLED = ("Call it less often: bind LOG.isEnabledFor(level) to a local name once, before the loop, and log only if "
              "it is true. Copies of a logger, and getLogger(), are the one logger of that name.")
# Types of which every copy, also a deep one, is the same object; as the child names them.
UNCOPIED = frozenset({"int", "float", "complex", "str", "bytes", "tuple", "range", PATTERN})
_OF_KIND = {
    "constant": RepairCode.BYTECODE, "class attribute": RepairCode.LOCAL_NAME, "class namespace": RepairCode.LOCAL_NAME,
    "class": RepairCode.LOCAL_NAME, "class of C": RepairCode.C_TYPE, "cell": RepairCode.OWN_FUNCTION,
    "function": RepairCode.OWN_FUNCTION, "code": RepairCode.BYTECODE, "defaults": RepairCode.OWN_FUNCTION,
    "lock": RepairCode.SHARD, LOG_HANDLER: RepairCode.SHARD,
}
# Where the kind decides nothing.
_OF_TYPE = {**dict.fromkeys(UNCOPIED, RepairCode.THREAD_VALUE), LOGGER: RepairCode.LOCAL_NAME}


def repairs(obstacle: Obstacle, objects: Iterable[BlamedObject]) -> dict[RepairCode, list[BlamedObject]]:
    """Return the repairs that fit, the one of the first object first, with the objects that each is for."""
    if obstacle is Obstacle.COLLECTOR:
        return {RepairCode.COLLECTOR: []}
    found: dict[RepairCode, list[BlamedObject]] = {}
    # What was seen beside an open verdict is not blamed.
    for each in objects if obstacle in {Obstacle.COUNTS, Obstacle.LOCK} else ():
        found.setdefault(_repair_of(each), []).append(each)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairAdvice:
    """A repair in words, with the objects that it is for."""

    code: RepairCode
    text: str
    objects: tuple[str, ...]     # the names of those that it is for; empty: for none of them


def advice(obstacle: Obstacle, objects: Iterable[BlamedObject]) -> list[RepairAdvice]:
    """Return the repairs that fit, in words; objects of one repair stand apart where they need other words."""
    found: list[RepairAdvice] = []
    for code, ones in repairs(obstacle, objects).items():
        by_text: dict[str, list[BlamedObject]] = {} if ones else {TEXTS[code]: []}
        for one in ones:
            by_text.setdefault(_text_for(code, one), []).append(one)
        found += [RepairAdvice(code=code, text=text, objects=tuple(one.name for one in those))
                  for text, those in by_text.items()]
    return found


def _text_for(code: RepairCode, blamed: BlamedObject) -> str:
    if code is RepairCode.THREAD_VALUE and blamed.type == PATTERN:
        return COMPILED
    if code is RepairCode.THREAD_VALUE and blamed.kind == "argument":
        return COMPUTED      # it is a local name already
    if blamed.type == LOGGER and code is RepairCode.LOCAL_NAME:
        return IF_ENABLED
    if code is not RepairCode.SHARD:
        return TEXTS[code]
    if blamed.kind == LOG_HANDLER:
        return QUEUE_OF_RECORDS
    return OF_LOCK.get(blamed.type, TEXTS[code])


def _repair_of(blamed: BlamedObject) -> RepairCode:
    return _OF_KIND.get(blamed.kind) or _OF_TYPE.get(blamed.type, RepairCode.THREAD_COPY)


DOUBTS = {
    Doubt.FEW_CLEAN: "the threads seldom had their cores at the same time, because the machine is busy; wait until "
                     "it is quiet, or stop other programs",
    Doubt.YIELDING: "threads give their cores to other programs while they wait for a lock, so by how much they are "
                    "slower cannot be told on this busy machine; try again when it is quiet",
    Doubt.SELDOM: "neither reference counts nor the garbage collector explain the loss, and a lock was held in so few "
                  "samples that it may be in the way or not; measure again once threads use it less, or not at all",
    Doubt.WIDE: "the measurements differ too much to exclude either answer; try again on a quieter machine",
    Doubt.NEAR: 'it reaches about 0.8 of the ceiling, from where on it would be called "scales": neither answer is '
                "far off; on a quieter machine, intervals are narrower",
    Doubt.CONTRAST: "whether reference counts are in the way cannot be told: with every object immortal, the interval "
                    "of the gain is too wide, or the loss is too small; try again on a quieter machine, or with a "
                    "function in which the suspected code takes more of the time",
    Doubt.COLLECTOR: "whether the garbage collector is in the way cannot be told: without it, the gain was not "
                     "measured, or its interval is too wide; try again on a quieter machine",
    Doubt.DISAGREE: "measurements seconds apart give different answers: the share is near 0.8, or the machine "
                   "changes, as a virtual one does whose host moves its cores; measure again, or on another one",
    Doubt.HARDWARE: "threads reach the ceiling, and whether the hardware keeps it low cannot be told: try again on a "
                    "quieter machine, or with more threads",
    Doubt.ONE_CORE: "threads ran as hyperthreads of one core, whose common caches hide contention: on cores of their "
                    "own they may lose more; measure no more threads than there are cores, or again later if the host "
                    "of a virtual machine may move its CPUs",
    Doubt.SURPRISE: "threads seem to reach the ceiling, but making every object immortal helps much more than it could "
                    "then; try again on a quieter machine",
    Doubt.SET: "reference counts are in the way, but no small set of objects was found that explains it; try again on "
               "a quieter machine, or with a smaller part of the work",
    Doubt.REFUSED: "objects of this build cannot be made immortal, so counts can be neither blamed nor acquitted",
    Doubt.RESULTS: "results change when objects are immortal, so that experiment says nothing here",
}
