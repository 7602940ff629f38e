"""The effects of container methods, builtins and library functions on their objects: one table for all parts of `race`.

The C core has it as a header, which `_core/header.py` makes.  The rewriter, the conflict handler and the confirming run
import it.  `analysis/known_names.py` has the names that the rewriter treats specially for
other reasons.
"""

from __future__ import annotations

import sys
from enum import IntFlag
from typing import NamedTuple

from gilscope.toolkit.race.terms import AccessKind


class SideEffect(IntFlag):
    """A set of things that an effect does besides accessing the container's structure."""

    NONE = 0
    TAKE = 1              # ordered after all insertions, unless a later write depends on the read
    TAKE_IF_POLLED = 2    # the same, in the test of a while loop only
    HAND = 4              # hands over values that are not known
    FORGET = 8            # removes all that was handed over
    READ_ITEMS = 16       # reads the values, too; of a dict or set that is no view, the keys alone
    READ_VALUES = 32      # reads the values, too
    UNORDERED = 64        # never a conflict by itself: the container has a lock of its own


class Effect(NamedTuple):
    """An effect on a container."""

    kind: AccessKind | None = None   # of the access of its structure; None: ops/methods.c looks at arguments and result
    side: SideEffect = SideEffect.NONE
    removes: bool = False            # an item


_READ, _GROW, _SHRINK, _RESHAPE = AccessKind.SIZE, AccessKind.GROW, AccessKind.SHRINK, AccessKind.RESHAPE
_TAKE, _HAND, _UNORDERED = SideEffect.TAKE, SideEffect.HAND, SideEffect.UNORDERED
EFFECTS = {
    # Of the container as a whole.
    "size": Effect(_READ, SideEffect.TAKE_IF_POLLED),
    "view": Effect(_READ, _TAKE),
    "snapshot": Effect(_READ, _TAKE | SideEffect.READ_ITEMS),      # all items in one step, such as `list` does
    "copy": Effect(_READ, _TAKE | SideEffect.READ_VALUES),         # likewise, with the values of a dict
    "show": Effect(_READ, _TAKE | SideEffect.READ_VALUES),         # likewise, as a text
    "iterate": Effect(AccessKind.ITERATE, _TAKE | SideEffect.READ_VALUES),    # all items, one after the other
    "grow": Effect(_GROW),
    "extend": Effect(_GROW, _HAND),
    "shrink": Effect(_SHRINK),
    "reshape": Effect(_RESHAPE),      # several steps
    "clear": Effect(_SHRINK, SideEffect.FORGET, removes=True),
    "push": Effect(_RESHAPE, _HAND),
    "pull": Effect(_RESHAPE, _TAKE),
    "rewrite": Effect(_RESHAPE, _HAND | _TAKE),
    "ask queue": Effect(_READ, _UNORDERED),
    "put": Effect(_GROW, _UNORDERED),
    "take": Effect(_SHRINK, _UNORDERED, removes=True),
    # Of arguments or results: a function of ops/methods.c each.
    "get key": Effect(),                          # of a dict
    "set default": Effect(),
    "remove key": Effect(removes=True),
    "remove any": Effect(removes=True),           # of a dict or set
    "insert keys": Effect(),
    "count keys": Effect(),                       # loads and stores each key in turn
    "add key": Effect(),                          # of a set
    "discard key": Effect(removes=True),
    "insert right": Effect(),                     # its last argument, at the right end of a list or deque
    "insert left": Effect(),
    "extend right": Effect(),
    "extend left": Effect(),
    "pop right": Effect(removes=True),            # or at the index that it is given
    "pop left": Effect(removes=True),
    "remove value": Effect(removes=True),
}
_READING = frozenset(name for name, effect in EFFECTS.items() if effect.kind in (_READ, AccessKind.ITERATE))


class Fact(IntFlag):
    """Facts about a method or function that the analysis of the source uses."""

    NONE = 0
    QUIET = 1        # it waits for no other thread: attributes read before it need no second op after it
    KEYED = 2        # the first argument of the method names the item that it changes
    MAY_FAIL = 4     # after an outdated check it raises an error that the program may handle, or changes nothing
    TOLERANT = 8     # it is correct whatever a check before it found
    VIEW = 16        # it returns a view
    COPIES = 32      # it stores no reference to its arguments
    EAGER = 64       # the function stores no reference to a container that it is given
    LAZY = 128       # it stores one until it is exhausted
    FRESH = 256      # it returns a new object, which no other thread can have
    MAKES = 512      # it makes a container


QUIET, KEYED, MAY_FAIL, COPIES = Fact.QUIET, Fact.KEYED, Fact.MAY_FAIL, Fact.COPIES
EAGER, LAZY, FRESH, MAKES = Fact.EAGER, Fact.LAZY, Fact.FRESH, Fact.MAKES


class Container(IntFlag):
    """Containers that a build without the GIL may go through in several steps where one with the GIL takes one."""

    NONE = 0
    DICT = 1          # no other class
    SUBCLASS = 2      # of dict: defaultdict, Counter, the program's
    ORDERED = 4       # OrderedDict and its views
    VIEW = 8          # of another dict
    SET = 16
    DEQUE = 32


_DICT, _VIEW, _ORDERED, _DEQUE = Container.DICT, Container.VIEW, Container.ORDERED, Container.DEQUE
_OTHERS = Container.SUBCLASS | Container.ORDERED | Container.DEQUE


class Method(NamedTuple):
    """The effects of a method, by the type that defines it; "" for none."""

    dicts: str = ""        # dict, OrderedDict, defaultdict
    counters: str = ""     # Counter; most of its methods are those of dict
    sets: str = ""
    sequences: str = ""    # list, deque
    arrays: str = ""       # array.array, bytearray
    queues: str = ""       # of the module queue
    facts: Fact = Fact.NONE
    in_steps: Container = Container.NONE     # without the GIL, the effect on these is no single step

    @property
    def effects(self) -> tuple[str, ...]:
        """The names of all effects, of any type."""
        families = self.dicts, self.counters, self.sets, self.sequences, self.arrays, self.queues
        return tuple(filter(None, families))


FAMILIES = Method._fields[:-2]


METHODS = {
    "add": Method(sets="add key", facts=QUIET | KEYED),
    "append": Method(sequences="insert right", arrays="grow", facts=QUIET | KEYED),
    "appendleft": Method(sequences="insert left", facts=QUIET | KEYED),
    "clear": Method(dicts="clear", sets="clear", sequences="clear", arrays="clear"),
    "copy": Method(dicts="copy", counters="copy", sets="copy", sequences="copy", facts=QUIET),
    "count": Method(sequences="size", facts=QUIET),
    "difference": Method(facts=COPIES),
    "difference_update": Method(sets="shrink"),
    "discard": Method(sets="discard key", facts=QUIET | MAY_FAIL | Fact.TOLERANT),
    "elements": Method(),
    "empty": Method(queues="ask queue"),
    "extend": Method(sequences="extend right", arrays="grow", facts=QUIET | COPIES),
    "extendleft": Method(sequences="extend left", facts=COPIES),
    "full": Method(queues="ask queue"),
    "get": Method(dicts="get key", queues="take"),
    "get_nowait": Method(queues="take", facts=MAY_FAIL),
    "index": Method(sequences="size", facts=QUIET),
    "insert": Method(sequences="insert right", arrays="grow", facts=QUIET),
    "intersection": Method(facts=COPIES),
    "intersection_update": Method(sets="shrink"),
    "isdisjoint": Method(),
    "issubset": Method(),
    "issuperset": Method(),
    "items": Method(dicts="view", facts=QUIET | Fact.VIEW, in_steps=_ORDERED),     # views are gone through at once
    "keys": Method(dicts="size", facts=QUIET | Fact.VIEW),
    "most_common": Method(),
    "move_to_end": Method(dicts="reshape", facts=KEYED),
    "pop": Method(dicts="remove key", sets="remove any", sequences="pop right", arrays="shrink",
                  facts=KEYED | MAY_FAIL),
    "popitem": Method(dicts="remove any", facts=QUIET | MAY_FAIL),
    "popleft": Method(sequences="pop left", facts=QUIET | MAY_FAIL),
    "put": Method(queues="put"),
    "put_nowait": Method(queues="put", facts=MAY_FAIL),
    "qsize": Method(queues="ask queue"),
    "remove": Method(sets="discard key", sequences="remove value", arrays="shrink", facts=QUIET | KEYED | MAY_FAIL),
    "reverse": Method(sequences="reshape", arrays="reshape"),
    "rotate": Method(sequences="reshape"),
    "setdefault": Method(dicts="set default", facts=QUIET | Fact.TOLERANT),
    "shutdown": Method(queues="put"),      # the last of them: later ones fail
    "sort": Method(sequences="reshape"),
    "subtract": Method(counters="count keys"),
    "symmetric_difference": Method(),
    "symmetric_difference_update": Method(sets="reshape"),
    "total": Method(counters="iterate"),
    "union": Method(facts=COPIES),
    "update": Method(dicts="insert keys", counters="count keys", sets="insert keys", facts=COPIES),
    "values": Method(dicts="view", facts=QUIET | Fact.VIEW, in_steps=_ORDERED),
}


class Function(NamedTuple):
    """The effects of a function on its arguments."""

    effect: str = ""       # on the first one
    iterates: str = ""     # over these: "first", "all", "rest" (all but the first), "only" (the first, if it is alone)
    facts: Fact = Fact.NONE
    in_steps: Container = Container.NONE     # without the GIL, the effect on these is no single step

    @property
    def reads_first(self) -> bool:
        """Tell whether the function reads its first argument, if that is a container."""
        return bool(self.effect or self.iterates or self.facts & LAZY) and self.iterates != "rest"


BUILTINS = {
    "abs": Function(facts=QUIET),
    "all": Function(iterates="first", facts=EAGER),
    "any": Function(iterates="first", facts=EAGER),
    "bool": Function(facts=QUIET | EAGER),
    "bytearray": Function(facts=EAGER | FRESH | MAKES),
    "bytes": Function(facts=EAGER | FRESH),
    "chr": Function(facts=QUIET),
    "dict": Function("copy", facts=QUIET | EAGER | FRESH | MAKES, in_steps=_ORDERED | _VIEW),
    "dir": Function(facts=FRESH),
    "divmod": Function(facts=QUIET),
    "enumerate": Function(iterates="first", facts=QUIET | LAZY | FRESH),
    "filter": Function(iterates="rest", facts=LAZY | FRESH),
    "float": Function(facts=QUIET),
    "format": Function("show", in_steps=_ORDERED | _DEQUE),
    "frozenset": Function("snapshot", facts=EAGER | FRESH, in_steps=_OTHERS | _VIEW),
    "hash": Function(facts=QUIET),
    "id": Function(facts=QUIET),
    "input": Function(facts=FRESH),
    "int": Function(facts=QUIET),
    "isinstance": Function(facts=QUIET | EAGER),
    "iter": Function(facts=LAZY),
    "len": Function("size", facts=QUIET | EAGER),
    "list": Function("snapshot", facts=QUIET | EAGER | FRESH | MAKES, in_steps=_OTHERS),
    "map": Function(iterates="rest", facts=LAZY | FRESH),
    "max": Function(iterates="only", facts=QUIET | EAGER),
    "min": Function(iterates="only", facts=QUIET | EAGER),
    "open": Function(facts=FRESH),
    "ord": Function(facts=QUIET),
    "print": Function("show", facts=QUIET | EAGER, in_steps=_ORDERED | _DEQUE),
    "range": Function(facts=QUIET | FRESH),
    "repr": Function("show", facts=QUIET | EAGER | FRESH, in_steps=_ORDERED | _DEQUE),
    "reversed": Function(facts=LAZY | FRESH),
    "round": Function(facts=QUIET),
    "set": Function("snapshot", facts=QUIET | EAGER | FRESH | MAKES, in_steps=_OTHERS | _VIEW),
    "sorted": Function("snapshot", facts=QUIET | EAGER | FRESH | MAKES, in_steps=_OTHERS),
    "str": Function("show", facts=QUIET | EAGER | FRESH, in_steps=_ORDERED | _DEQUE),
    "sum": Function(iterates="first", facts=QUIET | EAGER),
    "tuple": Function("snapshot", facts=QUIET | EAGER | FRESH,
                      in_steps=_OTHERS | _DICT | _VIEW | Container.SET),
    "type": Function(facts=QUIET),
    "zip": Function(iterates="all", facts=QUIET | LAZY | FRESH),
}
LIBRARY = {     # of the standard library, by module
    "bisect": {"insort": Function("push"), "insort_left": Function("push"), "insort_right": Function("push")},
    "collections": {"Counter": Function(facts=MAKES), "OrderedDict": Function(facts=MAKES),
                    "defaultdict": Function(facts=MAKES), "deque": Function(facts=MAKES)},
    "heapq": {"heapify": Function("rewrite"), "heappop": Function("pull"), "heappush": Function("push"),
              "heappushpop": Function("rewrite"), "heapreplace": Function("rewrite"),
              "merge": Function(iterates="all")},
    "random": {"shuffle": Function("rewrite")},
}
SYNTAX = {      # what reads or changes a container without a call, by the key of its site
    "": Function("size"),
    "+=": Function("extend"),
    "-=": Function("shrink"),
    "*=": Function("reshape"),
    "|=": Function("extend"),
    "&=": Function("reshape"),
    "^=": Function("reshape"),
    "join": Function("snapshot", in_steps=_OTHERS),
    "not": Function("size"),
    "star": Function("snapshot", in_steps=_OTHERS),
    "unpack": Function("snapshot"),
}
# What CPython made a single step in a patch release, the first of each minor version.
ATOMIC_SINCE = {
    "defaultdict.__missing__": ((3, 13, 12), (3, 14, 3), (3, 15, 0)),    # keeps the first of two values, not the last
}
LOCK_PAIRS = {"acquire": "release", "lock": "unlock"}     # of objects whose class is not known; also `with`


def methods_with(fact: Fact) -> frozenset[str]:
    """Return the names of the methods with a fact."""
    return frozenset(name for name, method in METHODS.items() if method.facts & fact)


def builtins_with(fact: Fact) -> frozenset[str]:
    """Return the names of the builtin functions with a fact."""
    return frozenset(name for name, function in BUILTINS.items() if function.facts & fact)


def library_function(module: str, name: str) -> Function:
    """Return the effects of a function of the standard library."""
    return LIBRARY.get(module, {}).get(name, Function())


def readers() -> dict[str, Function]:
    """Return the functions with an effect on their first argument, by the key that a site of the op `size` has."""
    return {name: function for module in (SYNTAX, BUILTINS, *LIBRARY.values()) for name, function in module.items()
            if function.effect}


def is_atomic(step: str, version: tuple[int, int, int] = sys.version_info[:3]) -> bool:
    """Return True if a step of `ATOMIC_SINCE` is one in a version of CPython."""
    firsts = ATOMIC_SINCE[step]
    return version >= firsts[-1] or any(first[:2] == version[:2] and first <= version for first in firsts)


# Methods that the op `method` is for.  An object's type is not known before the program runs, so these go by name.
CONTAINER_METHODS = frozenset(name for name, method in METHODS.items() if method.effects)
SIZE_READS = frozenset(name for name in CONTAINER_METHODS if _READING.issuperset(METHODS[name].effects))
REMOVING = frozenset(name for name in CONTAINER_METHODS if any(EFFECTS[one].removes for one in METHODS[name].effects))
CHANGING = frozenset(name for name in CONTAINER_METHODS if not {*_READING, "get key"} & {*METHODS[name].effects})
# Methods that change a container, without those that are correct whatever a check found before.
MUTATORS = CHANGING - methods_with(Fact.TOLERANT)
VIEWS = methods_with(Fact.VIEW)
SNAPSHOTS = frozenset(name for name, function in BUILTINS.items() if function.effect in ("snapshot", "copy"))
MAKERS = builtins_with(Fact.MAKES)
LIBRARY_MAKERS = frozenset(name for module in LIBRARY.values() for name, function in module.items()
                           if function.facts & Fact.MAKES)
