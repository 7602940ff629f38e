"""Decide what a conflict is called, and whether a correct program may contain it.

The decision is three tables, each read from top to bottom; the first row that holds decides:

- `ORDER_KINDS`: the kind of two accesses without a happens-before edge between them;
- `SPAN_KINDS`: the kind of a span (a read .. the write that depends on it) with another thread's write inside;
- `BENIGN_ORDERS` and `BENIGN_SPANS`: the patterns that make a conflict a *note*, which fails no program.

A span whose accesses are all locked is an *atomicity violation*: each access is protected, the whole is not.  All else
is a *race*.

No benign pattern covers a flag that is set before what it announces, stores of different constants, a reference
published twice, or a check whose act is not repeatable: those are reported.  The handler lets the core report a pair
of sites again if its first conflict is a note, since another value or another lock may make a later one a race.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gilscope.toolkit.race.terms import AccessKind, Flag, RaceKind, Severity
from gilscope.toolkit.race.verdicts import benign_patterns as patterns
from gilscope.toolkit.race.verdicts import conflict_context
from gilscope.toolkit.race.verdicts.conflict_context import REMOVALS

if TYPE_CHECKING:
    from collections.abc import Callable

    from gilscope.toolkit.race.verdicts.conflict_context import ConflictContext, ConflictSide

    Condition = Callable[[ConflictContext], bool]


class Classification(NamedTuple):
    """The result: kind and severity of a conflict, and the benign pattern that makes it a note."""

    kind: RaceKind
    severity: Severity
    rule: str | None = None


def classify(conflict: ConflictContext) -> Classification:
    """Return the kind of a conflict, and whether it is a race, an atomicity violation or a note."""
    in_span = conflict.record.sort == "span"
    kind = next(kind for kind, _, holds in (SPAN_KINDS if in_span else ORDER_KINDS) if holds(conflict))
    if rule := _benign_pattern(conflict, kind):
        return Classification(kind, Severity.NOTE, rule)
    first, second = conflict.first, conflict.second
    protected = in_span and _is_protected(first, second) and _is_protected(second, first)
    return Classification(kind, Severity.VIOLATION if protected else Severity.RACE)


def _benign_pattern(conflict: ConflictContext, kind: RaceKind) -> str | None:
    if conflict.record.part == "iterator" or kind is RaceKind.ITERATION:
        return None
    if conflict.record.sort == "span":
        table = BENIGN_SPANS
    elif {conflict.first.kind, conflict.second.kind} <= {AccessKind.READ, AccessKind.WRITE, *REMOVALS}:
        table = BENIGN_ORDERS
    else:
        return None
    return next((name for name, _, holds in table if holds(conflict)), None)


def _is_protected(side: ConflictSide, other: ConflictSide) -> bool:
    """Return True if the access held a lock, or is a getter or setter, whose unlocked accesses conflict themselves."""
    if side.site.op in {"attr_update", "attr_proxy"} and side.site.key != other.site.key:
        return True     # `x.level += 1` met a store to `_level`: level is a property
    return bool(side.locks) or side.site.op in {"reads", "writes"}


# -- conditions of the tables of kinds ------------------------------------------------------------------------------


def _on_iterator(conflict: ConflictContext) -> bool:
    return conflict.record.part == "iterator"


def _checks_structure(conflict: ConflictContext) -> bool:
    """Return True for a container as a whole, unless it is emptied after it was copied: that decides about nothing."""
    return conflict.record.part == "structure" and not any(
        side.span >= 0 and side.kind == AccessKind.SHRINK and side.site.flags & Flag.VALUE
        for side in (conflict.first, conflict.second))


def _any_kind(kind: AccessKind) -> Condition:
    return lambda conflict: kind in {conflict.first.kind, conflict.second.kind}


def _rebuilds(conflict: ConflictContext) -> bool:
    return any(side.kind == AccessKind.RESHAPE and side.site.flags & Flag.VALUE
               for side in (conflict.first, conflict.second))


def _read_plays(role: str) -> Condition:
    def holds(conflict: ConflictContext) -> bool:
        pair = conflict.read_and_other()
        return pair is not None and conflict_context.read_role(*pair, conflict) == role

    return holds


def _read_follows_act(conflict: ConflictContext) -> bool:
    pair = conflict.read_and_other()
    return pair is not None and conflict_context.follows_act(pair[0].number, pair[1].number, conflict.sites)


def _read_meets_part(conflict: ConflictContext) -> bool:
    pair = conflict.read_and_other()
    return pair is not None and (conflict_context.belongs_together(pair[1].number, conflict.sites)
                                 or conflict_context.read_in_parts(*pair, conflict.sites))


def _write_plays(role: str) -> Condition:
    def holds(conflict: ConflictContext) -> bool:
        return conflict.read_and_other() is None and role in {
            conflict_context.write_role(side.number, conflict) for side in (conflict.first, conflict.second)}

    return holds


def _check_met_act(conflict: ConflictContext) -> bool:
    return any(side.kind == AccessKind.READ and side.span < 0 for side in (conflict.first, conflict.second))


def _test_guards_write(conflict: ConflictContext) -> bool:
    return any(
        side.span >= 0 and side.site.flags & Flag.GUARD and side.span != side.number
        and (conflict.sites[side.span].flags & Flag.TEST or not side.site.flags & Flag.VALUE)
        for side in (conflict.first, conflict.second))


def _always(_conflict: ConflictContext) -> bool:
    return True


# -- the tables -----------------------------------------------------------------------------------------------------

type KindTable = tuple[tuple[RaceKind, str, Condition], ...]
type PatternTable = tuple[tuple[str, str, Condition], ...]

LOST, CHECK, TORN = RaceKind.LOST_UPDATE, RaceKind.CHECK_THEN_ACT, RaceKind.TORN_WRITE
ITERATION, PLAIN = RaceKind.ITERATION, RaceKind.UNSYNCHRONISED

ORDER_KINDS: KindTable = (
    # kind      two accesses without a happens-before edge                    condition
    (PLAIN,     "steps of one generator or iterator",                         _on_iterator),
    (ITERATION, "an iteration, and a change of the structure",                _any_kind(AccessKind.ITERATE)),
    (LOST,      "a multi-step write that makes the content from the old one", _rebuilds),
    (TORN,      "another multi-step write: slice assignment, sort, reverse",  _any_kind(AccessKind.RESHAPE)),
    (LOST,      "a write, and a read that an update takes its value from",    _read_plays("update")),
    (CHECK,     "a write, and a read that decides about a write",             _read_plays("check")),
    (TORN,      "a write, and a read for one of several joint writes",        _read_plays("part")),
    (CHECK,     "a guarded write, and a later read in its function",          _read_follows_act),
    (TORN,      "one of several joint writes, and a read",                    _read_meets_part),
    (LOST,      "two writes, one of them an update",                          _write_plays("update")),
    (CHECK,     "two writes, a check decides about one of them",              _write_plays("check")),
    (TORN,      "two writes, one of them among several joint ones",           _write_plays("part")),
    (PLAIN,     "any other two",                                              _always),
)
SPAN_KINDS: KindTable = (
    # kind      a span with another thread's write inside                     condition
    (CHECK,     "a check of a container's size or keys",                      _checks_structure),
    (CHECK,     "a test that met another thread's act, whatever it decides",  _check_met_act),
    (CHECK,     "a test that decides about the write",                        _test_guards_write),
    (LOST,      "any other: the write takes its value from the read",         _always),
)
BENIGN_ORDERS: PatternTable = (
    # pattern          two accesses without a happens-before edge                        condition
    ("construction",   "the constructor stored it before others could see the object",   patterns.constructs),
    ("presence",       "a test found a key, and the write only changes its value",       patterns.finds_key),
    ("presence",       "a lookup found no key, and the program does without the value",  patterns.accepts_absence),
    ("double-checked", "a second test of it, or of its flag, under the write's lock",    patterns.double_checks),
    ("flag",           "two threads store the same constant without a test",             patterns.stores_same_constant),
    ("flag",           "a constant, and a read that decides a loop",                     patterns.is_polled),
    ("flag",           "True, False or None, and a read that decides an `if`",           patterns.is_tested),
    ("owner",          "taken by test and store under a lock, given back by its owner",  patterns.is_busy_flag),
    ("counter",        "grows by +=, and a loop or predicate asks, or a loop shows it",  patterns.is_counted),
    ("owner",          "threads store themselves, and ask only whether it was they",     patterns.is_own),
    ("publication",    "a new object, or stored under the lock of all writes; loaded",   patterns.publishes),
    ("memo",           "the check leads to an immutable value made from the key alone",  patterns.is_memo),
    ("tolerant",       "the act fails softly: pop with a default, a caught exception",   patterns.is_tolerant),
)
BENIGN_SPANS: PatternTable = (
    # pattern          a span with another thread's write inside                         condition
    ("double-checked", "the write tests again under a lock that the other write holds",  patterns.rechecks),
    ("presence",       "the check found a key, and no write removes it",                 patterns.keeps_key),
    ("memo",           "the check leads to an immutable value made from the key alone",  patterns.is_memo),
    ("tolerant",       "the act fails softly: pop with a default, a caught exception",   patterns.is_tolerant),
    ("owner",          "taken by test and store under a lock, given back by its owner",  patterns.is_busy_flag),
    ("idempotent",     "the check leads to the same `add` in either thread",             patterns.is_idempotent),
)
