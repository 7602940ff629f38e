"""What a conflict is, by name, and whether a correct program may contain it.

A conflict has two sides.  Each plays a *role* towards the variable:

  update   the write's value comes from an earlier read of the variable (`x += 1`, `n = x; ...; x = n + 1`)
  check    an earlier read of the variable decides whether the write happens (`if x is None: x = ...`)
  part     one of several stores that belong together (a swap, a tuple target, neighbouring stores that are no flags)
  plain    none of these

A read plays the role of the write that it is a partner of.  The kind follows from part, access kinds and roles:

  order conflict of                                             kind
  ------------------------------------------------------------  ----------------------------
  an iteration and a change of structure                        iteration during change
  a slice assignment, sort, reverse, rotate and anything        torn multi-step write, or lost update where the new
                                                                content is made from the old
  a write, and a read that an update comes from                 lost update
  a write, and a read that decides a write                      check-then-act
  a write that is part of several, and a plain read             torn multi-step write
  a guarded write, and a read behind it in its function         check-then-act, counted at the write
  two writes, one an update / check / part                      lost update / check-then-act / torn multi-step write
  anything else, shared generators among it                     unsynchronised read/write

  a span (read .. write) with another write inside              lost update, or check-then-act where the read is a test

A span whose accesses are each locked is an *atomicity violation*: the whole is not.  All else is a *race*.  Neither
fails a program where one of these holds, and it is a *note*:

  rule              holds when
  ----------------  ------------------------------------------------------------------------------------------------
  flag              a read that decides a loop meets a store of a constant, or one that decides an if, or is all that a
                    property returns, meets True, False or None, and the write that the read decides, if any, stands
                    in the loop that it polls; or two threads store the same constant without looking
  double-checked    the write is under a lock, behind a second test of the same variable under that lock; or it is
                    followed, under that lock, by the store of the flag that was tested twice
  publication       a reference to an object or container is stored under a lock that all writes seen so far hold, the
                    other side loads it once, and no write depends on that load
  construction      the constructor stored the attribute before it showed the object to anyone
  memo              what the check leads to stores an immutable value that depends on the key alone, or the present one
  tolerant          the act fails softly: pop with a default, discard, an exception caught around it
  idempotent        the check decides nothing but adding the element, which changes nothing the second time
  presence          the check asks whether a key is there, and the writes only change what is stored under it

Flags that are set before what they announce, stores of different constants, references published twice, a check whose
act is not repeatable: none of the rules holds, so they are reported.  The handler asks again for a pair whose first
conflict is a note, since another value or another lock may make a later one a race.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from gilscope.toolkit.race.conflicts.safe_inspection import is_plain, same
from gilscope.toolkit.race.core import NO_VALUE
from gilscope.toolkit.race.site import Flag, Kind
from gilscope.toolkit.race.verdicts import CHECK, ITERATION, LOST, NOTE, PLAIN, RACE, TORN, VIOLATION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from gilscope.toolkit.race.conflicts.source_context import Sources
    from gilscope.toolkit.race.site import SiteInfo

TWO_VALUED = (True, False, None)     # 0 and 1 among them
ROLE_KINDS = {"update": LOST, "check": CHECK, "part": TORN}


class Side(NamedTuple):
    """One access of a conflict."""

    thread: int
    number: int                  # of its site
    site: SiteInfo
    kind: Kind
    locks: frozenset[int]
    span: int = -1               # number of the site of the read that opened the span, -1 for none


class Question(NamedTuple):
    """A conflict and what is known around it."""

    sort: str                    # "order" or "span"
    part: str
    first: Side
    second: Side                 # the current thread's, not done yet where it is a store
    sites: Sites
    sources: Sources
    value: Any = NO_VALUE        # about to be stored
    present: Any = NO_VALUE      # what the variable holds now
    owner_is_class: bool = False
    strict_keys: bool = False    # the owner is a dict that raises KeyError: who updates a key found it there
    common: frozenset[int] = frozenset()      # locks that all writes of the variable seen so far hold
    changed: frozenset[int] = frozenset()     # sites of writes that were seen to store another value over the first


type Rule = Callable[[Question], str | None]


class Verdict(NamedTuple):
    """What the conflict is."""

    kind: str
    severity: str
    rule: str | None = None      # why it is a note


class Sites:
    """All sites, with the way from a read to the writes that depend on it."""

    def __init__(self, sites: list[SiteInfo]) -> None:
        self._sites = sites
        self._index: tuple[int, dict[int, list[int]]] = (0, {})    # replaced as a whole: threads ask at the same time

    def __getitem__(self, number: int) -> SiteInfo:
        return self._sites[number]

    def writers(self, read: int) -> list[int]:
        """Return the numbers of the writes that may depend on the read."""
        known, writers = self._index
        if known != len(self._sites):     # modules are imported meanwhile
            sites = list(self._sites)
            writers = {}
            for number, site in enumerate(sites):
                for partner in site.partners:
                    writers.setdefault(partner, []).append(number)
            self._index = (len(sites), writers)
        return writers.get(read, [])

    def neighbours(self, number: int) -> Iterator[SiteInfo]:
        """Yield the sites of the same function, in the order of the source."""
        site = self._sites[number]
        start = number
        while start > 0 and self._near(self._sites[start - 1], site):
            start -= 1
        while start < len(self._sites) and self._near(self._sites[start], site):
            if self._sites[start].function == site.function:
                yield self._sites[start]
            start += 1

    @staticmethod
    def _near(other: SiteInfo, site: SiteInfo) -> bool:
        # Functions inside the function have sites of their own between.
        within: bool = other.function == site.function or other.function.startswith(site.function + ".<locals>.")
        return within and other.path == site.path


def judge(question: Question) -> Verdict:
    """Name the conflict and tell a race from an atomicity violation and a note."""
    kind = span_kind(question) if question.sort == "span" else order_kind(question)
    if rule := benign(question, kind):
        return Verdict(kind, NOTE, rule)
    first, second = question.first, question.second
    locked = question.sort == "span" and _locked(first, second) and _locked(second, first)
    return Verdict(kind, VIOLATION if locked else RACE)


def _locked(side: Side, other: Side) -> bool:
    """Tell whether the access held a lock; what a getter or setter does inside is ordered, else it were told itself."""
    if side.site.op in {"attr_update", "attr_proxy"} and side.site.key != other.site.key:
        return True     # `x.level += 1` met a store to `_level`: level is a property
    return bool(side.locks) or side.site.op in {"reads", "writes"}


def order_kind(question: Question) -> str:
    """Return the kind of two accesses that nothing orders."""
    first, second = question.first, question.second
    kinds = {first.kind, second.kind}
    if question.part == "iterator":
        return PLAIN
    if Kind.ITERATE in kinds:
        return ITERATION
    if Kind.RESHAPE in kinds:
        rebuilt = any(side.kind == Kind.RESHAPE and side.site.flags & Flag.VALUE for side in (first, second))
        return LOST if rebuilt else TORN
    if Kind.READ in kinds:
        read, write = (first, second) if first.kind == Kind.READ else (second, first)
        return _load_kind(read, write, question)
    roles = {write_role(side.number, question) for side in (first, second)}
    return next((kind for role, kind in ROLE_KINDS.items() if role in roles), PLAIN)


def _load_kind(read: Side, write: Side, question: Question) -> str:
    role = read_role(read, write, question)
    if role != "plain":
        return ROLE_KINDS[role]
    if follows_act(read.number, write.number, question.sites):
        return CHECK
    together = belongs_together(write.number, question.sites) or read_in_parts(read, write, question.sites)
    return TORN if together else PLAIN


def span_kind(question: Question) -> str:
    """Return the kind of a span that another thread's write falls into."""
    sides = (question.first, question.second)
    if question.part == "structure" or any(side.kind == Kind.READ and side.span < 0 for side in sides):
        return CHECK       # the latter: a test that met another thread's act, whatever it would have led to
    for side in sides:
        if side.span < 0:
            continue
        if side.site.flags & Flag.GUARD and side.span != side.number and (
                question.sites[side.span].flags & Flag.TEST or not side.site.flags & Flag.VALUE):
            return CHECK
    return LOST


def write_role(number: int, question: Question) -> str:
    """Return "update", "check", "part" or "plain" for a write."""
    site = question.sites[number]
    if site.flags & Flag.AUGMENTED:
        return "update"
    if site.flags & Flag.VALUE:
        return "part" if site.flags & Flag.MULTI and swaps(site, question.sources) else "update"
    if site.flags & Flag.GUARD:
        return "check"
    return "part" if belongs_together(number, question.sites) else "plain"


def belongs_together(number: int, sites: Sites) -> bool:
    """Tell whether the write is one of several: by one statement, or beside others that are no flags either."""
    site = sites[number]
    if not site.flags & Flag.MULTI:
        return False
    beside = [other for other in sites.neighbours(number) if other.flags & Flag.MULTI and other.text != site.text]
    return any(other.line == site.line or not (other.flags | site.flags) & Flag.CONSTANT for other in beside)


def swaps(site: SiteInfo, sources: Sources) -> bool:
    """Tell whether the write is of a tuple, and its own part of the value has nothing of what it overwrites."""
    part = sources.part_stored(site)
    return part is not None and site.text.replace(" ", "") not in part.replace(" ", "")


def read_in_parts(read: Side, write: Side, sites: Sites) -> bool:
    """Tell whether both sides go on with another attribute in the next line: one stores a pair, one loads it."""
    stored = {site.key for site in sites.neighbours(write.number) if _beside(site, write.site) and _stores(site)}
    return any(site.key in stored for site in sites.neighbours(read.number)
               if _beside(site, read.site) or site.line == read.site.line)


def _beside(site: SiteInfo, other: SiteInfo) -> bool:
    return bool(abs(site.line - other.line) == 1 and site.key != other.key)


def _stores(site: SiteInfo) -> bool:
    return site.op in {"attr_write", "attr_update", "attr_store", "attr_proxy"} and not site.flags & (
        Flag.CONSTANT | Flag.INIT)


def follows_act(read: int, write: int, sites: Sites) -> bool:
    """Tell whether the read stands behind the guarded write of the same variable: `return self._rows` at the end."""
    act, after = sites[write], sites[read]
    return bool(act.flags & Flag.GUARD) and act.text == after.text and after.line > act.line and (
        act.function == after.function and act.path == after.path)


def read_role(read: Side, write: Side, question: Question) -> str:
    """Return the role of the write that a read is the partner of, "plain" when no write depends on it."""
    if read.site.flags & Flag.AUGMENTED:
        return "update"
    roles = [_role_in(read, number, write, question) for number in question.sites.writers(read.number)]
    return next((role for role in ROLE_KINDS if role in roles), "plain")


def _role_in(read: Side, number: int, write: Side, question: Question) -> str:
    depends = question.sites[number]
    role = write_role(number, question)
    if role == "update" and depends.flags & Flag.GUARD and read.site.flags & (Flag.TEST | Flag.POLL):
        role = "check"
    if role == "check" and read.site.flags & Flag.POLL and _harmless_poll(read, number, write, question):
        return "plain"
    return role


def _harmless_poll(read: Side, number: int, write: Side, question: Question) -> bool:
    """Tell whether a polling loop's own write takes nothing away.

    `while not found: ...; found = True` stores what ends the other loops.  After the loop the store is a claim, and
    only another thread's claim breaks it: `while ready: pass; ready = True` against somebody's reset is a hand-over.
    """
    depends = question.sites[number]
    if not depends.flags & Flag.CONSTANT or not write.site.flags & Flag.CONSTANT:
        return False
    return question.sources.in_loop_of(read.site, depends) or number != write.number


def benign(question: Question, kind: str) -> str | None:
    """Return the first rule of the table that holds, or None for what a program must not do."""
    if question.sort == "span":
        rules: tuple[Rule, ...] = (_rechecked_span, _presence, _memo, _tolerant, _idempotent)
    elif {question.first.kind, question.second.kind} <= {Kind.READ, Kind.WRITE, Kind.ATOMIC}:
        rules = (_construction, _looked_for, _double_checked, _same_constant, _flag, _publication, _memo, _tolerant)
    else:
        return None
    if question.part == "iterator":
        return None
    found = (rule(question) for rule in rules)
    return next((name for name in found if name), None) if kind != ITERATION else None


def read_and_write(question: Question) -> tuple[Side, Side] | None:
    """Return the load and the store of an order conflict between such two."""
    first, second = question.first, question.second
    if first.kind == Kind.READ and second.kind == Kind.WRITE:
        return first, second
    if second.kind == Kind.READ and first.kind == Kind.WRITE:
        return second, first
    return None


def _construction(question: Question) -> str | None:
    first, second = question.first, question.second
    built = first.site.flags & Flag.INIT and first.kind == Kind.WRITE and not second.site.flags & Flag.INIT
    if not built or question.part != "attr" or question.owner_is_class or first.site.function.endswith("__new__"):
        return None
    return None if question.sources.leaks_before(first.site) else "construction"


def _double_checked(question: Question) -> str | None:
    pair = read_and_write(question)
    if pair is None:
        return None
    read, write = pair
    if not write.locks or _others_depend(read, question):
        return None
    if _claims(write.site):
        return None
    return "double-checked" if _tested_twice(write, question) or _announced(write, question) else None


def _tested_twice(write: Side, question: Question) -> bool:
    """Tell whether the write has a test of the variable before the lock is taken, besides the one under it.

    A maximum kept under a lock is tested there alone, and its unlocked readers are not part of the pattern.
    """
    if not write.site.flags & Flag.RECHECKED:
        return False
    before = [question.sites[number] for number in write.site.partners]
    before += [site for site in question.sites.neighbours(write.number)
               if site.text == write.site.text and site.op.endswith("_read")]
    return any(question.sources.before_with(read, write.site) for read in before)


def _others_depend(read: Side, question: Question) -> bool:
    """Tell whether a write depends on the read without testing again under a lock."""
    if read.site.flags & Flag.AUGMENTED:
        return True
    return any(not question.sites[number].flags & Flag.RECHECKED for number in question.sites.writers(read.number))


def _announced(write: Side, question: Question) -> bool:
    """Tell whether the flag that was tested twice is stored after this write, and not before it."""
    later = False
    for site in question.sites.neighbours(write.number):
        if site.flags & Flag.RECHECKED and site.flags & Flag.CONSTANT:
            tested = min((question.sites[number].line for number in site.partners), default=site.line)
            if tested < write.site.line < site.line:
                later = True
            elif tested < site.line <= write.site.line:
                return False
    return later


def _claims(site: SiteInfo) -> bool:
    return bool(site.flags & (Flag.AUGMENTED | Flag.VALUE))


def _flag(question: Question) -> str | None:
    pair = read_and_write(question)
    if pair is None:
        return None
    read, write = pair
    constant = write.site.flags & Flag.CONSTANT and not _claims(write.site) and not write.site.flags & Flag.DELETE
    if not constant or not _mere_test(read, write, question) or _announces_early(write, question):
        return None
    if read.site.flags & Flag.POLL:
        return "flag"
    # A state that is more than on and off goes with what else the object holds.
    two_valued = question.sources.literal(write.site) in TWO_VALUED
    return "flag" if two_valued and (read.site.flags & Flag.TEST or question.sources.accessor(read.site)) else None


def _mere_test(read: Side, write: Side, question: Question) -> bool:
    if read.site.flags & Flag.AUGMENTED:
        return False
    writers = [number for number in question.sites.writers(read.number)
               if not (question.sites[number].flags & Flag.RECHECKED and write.locks)]
    return all(_role_in(read, number, write, question) == "plain" for number in writers)


def _same_constant(question: Question) -> str | None:
    first, second = question.first, question.second
    if not first.kind == second.kind == Kind.WRITE:
        return None
    for side in (first, second):
        if not side.site.flags & Flag.CONSTANT or side.site.flags & (Flag.AUGMENTED | Flag.VALUE | Flag.DELETE):
            return None
        if side.site.flags & Flag.GUARD and not _stays_in_loop(side, question):
            return None
    values = [question.sources.literal(side.site) for side in (first, second)]
    return "flag" if NO_VALUE not in values and same(*values) else None


def _stays_in_loop(side: Side, question: Question) -> bool:
    """Tell whether all that decides the store is the loop that it ends."""
    reads = [question.sites[number] for number in side.site.partners]
    return all(read.flags & Flag.POLL and question.sources.in_loop_of(read, side.site) for read in reads)


def _publication(question: Question) -> str | None:
    pair = read_and_write(question)
    if pair is None:
        return None
    read, write = pair
    dependent = _others_depend(read, question) or write.site.flags & (Flag.AUGMENTED | Flag.DELETE | Flag.MULTI)
    if dependent or not write.locks & question.common or _announces_early(write, question):
        return None
    stored = question.value if write is question.second else question.present
    if stored is NO_VALUE:
        stored_is_reference = question.sources.plain_object(write.site)
    elif stored is None and write is question.first:     # may be older than the store
        stored_is_reference = question.sources.plain_object(write.site) is not False
    else:
        stored_is_reference = not is_plain(stored) or type(stored) in {tuple, frozenset}
    return "publication" if stored_is_reference else None


def _announces_early(write: Side, question: Question) -> bool:
    """Tell whether a flag that readers test was stored in the same function before this write."""
    return any(site.flags & Flag.RECHECKED and site.line < write.site.line
               for site in question.sites.neighbours(write.number))


def _acts(question: Question) -> Iterator[Side]:
    """Yield the sides that a check leads to, or, for a check that met the other's act, that act."""
    for side in (question.first, question.second):
        if side.kind != Kind.READ and side.site.flags & Flag.GUARD and not side.site.flags & Flag.AUGMENTED:
            yield side


def _memo(question: Question) -> str | None:
    acts = list(_acts(question))
    if not acts or question.part == "structure":
        return None
    if question.sort == "order" and not _reads_checked(question):
        return None
    if any(side.number in question.changed for side in acts):
        return None
    if question.second.kind == Kind.WRITE and question.first.kind != Kind.READ:
        if _equal(question, acts):
            return "memo"
        if not older_than_both(question):
            return None
    return "memo" if _stores_plainly(question, acts) and all(
        question.sources.memo(side.site) and not side.site.flags & Flag.CONSTANT for side in acts) else None


def made_alike(question: Question, write: Side) -> bool | None:
    """Tell whether each process with a copy of the variable would make the same of it; None: not known by this pair.

    It would where the write is that of a memo, whatever orders the threads: a check decides about it, and the value is
    immutable, or is found by its name, and depends on the key alone.
    """
    flags = write.site.flags
    if not flags & Flag.GUARD or flags & (Flag.AUGMENTED | Flag.CONSTANT) or write.number in question.changed:
        return False
    if not question.sources.memo(write.site, by_key_alone=True):
        return False
    if question.part == "structure":   # of other keys; what is under one is told of with that
        return True
    stored = question.value if write is question.second else question.present
    if stored is NO_VALUE:
        return None
    return is_plain(stored) or type(stored) in _found_by_each()


def _found_by_each() -> set[object]:
    """Return the types of what each process makes or finds by its name: patterns, loggers, modules."""
    named = (("re", "Pattern"), ("logging", "Logger"))
    return {type(sys), *(getattr(sys.modules.get(module), name, None) for module, name in named)}


def _stores_plainly(question: Question, acts: list[Side]) -> bool:
    """Tell whether what the check leads to is an immutable value, or is not there yet and may be one."""
    if question.second.kind == Kind.WRITE:
        return question.value is not NO_VALUE and is_plain(question.value)
    if question.present is NO_VALUE and question.second.kind == Kind.READ:
        return not any(question.sources.plain_object(side.site) for side in acts)
    return question.present is not NO_VALUE and is_plain(question.present)


def older_than_both(question: Question) -> bool:
    """Tell whether the variable may still hold what it held before the first of two stores.

    A store is told of before it is done, so without a GIL both may be on their way; what is there then is nothing, or
    what one finds before anything is stored: None, 0, "", (), a bare `object()`.
    """
    present = question.present
    return present is NO_VALUE or type(present) is object or (is_plain(present) and not present)


def _equal(question: Question, acts: list[Side]) -> bool:
    if question.value is NO_VALUE or question.present is NO_VALUE or not same(question.value, question.present):
        return False
    # `started = True` over True is equal, too, but what follows was done twice.
    return all(not side.site.flags & Flag.CONSTANT or _decides_one(side, question) for side in acts)


def _reads_checked(question: Question) -> bool:
    """Tell whether the load, where there is one, decides the same act or nothing."""
    pair = read_and_write(question)
    if pair is None:
        return True
    read, write = pair
    if read.site.flags & Flag.AUGMENTED:
        return False
    writers = question.sites.writers(read.number)
    return all(question.sites[number].flags & Flag.GUARD and question.sources.memo(question.sites[number])
               for number in writers) and bool(write.site.flags & Flag.GUARD)


def _decides_one(side: Side, question: Question) -> bool:
    reads = [question.sites[number] for number in side.site.partners]
    return bool(reads) and all(question.sources.alone_under(read, side.site) for read in reads)


def _tolerant(question: Question) -> str | None:
    acts = list(_acts(question)) if question.sort == "span" else [question.first, question.second]
    removals = [side for side in acts if _removes(side) and side.site.flags & Flag.GUARD]
    if not removals or len(removals) != len(acts):
        return None
    return "tolerant" if all(question.sources.tolerant(side.site) for side in removals) else None


def _removes(side: Side) -> bool:
    if side.kind == Kind.SHRINK or side.site.flags & Flag.DELETE:
        return True
    return side.site.op == "method" and side.site.key in {
        "pop", "popleft", "popitem", "remove", "discard", "get_nowait", "put_nowait"}


def _idempotent(question: Question) -> str | None:
    acts = list(_acts(question))
    alone = [side.site.op == "method" and side.site.key == "add" and _decides_one(side, question) for side in acts]
    return "idempotent" if acts and all(alone) else None


def _presence(question: Question) -> str | None:
    """Forget tests for a key that nobody takes away: what they found stays true."""
    sides = (question.first, question.second)
    tests = [question.sites[side.span] for side in sides if side.span >= 0 and side.span != side.number]
    tests += [side.site for side in sides if side.kind == Kind.READ]
    stays = all(_keeps_key(side, question) for side in sides if side.kind != Kind.READ)
    return "presence" if tests and stays and all(test.op == "contains" for test in tests) else None


def _looked_for(question: Question) -> str | None:
    """Forget a test that found its key against a store over what is there: an insertion would have ordered them."""
    pair = read_and_write(question)
    if pair is None or pair[0].site.op != "contains" or pair[1].site.flags & Flag.DELETE:
        return None
    return "presence"


def _keeps_key(side: Side, question: Question) -> bool:
    """Tell whether the write finds its key there: `d[k] += 1`, or `d[k] = v` under `if k in d`."""
    if side.kind != Kind.WRITE or side.site.flags & Flag.DELETE or not question.strict_keys:
        return False
    if side.site.flags & Flag.AUGMENTED:
        return True
    reads = [question.sites[number] for number in side.site.partners]
    return any(read.op == "contains" and question.sources.found_there(read, side.site) for read in reads)


def _rechecked_span(question: Question) -> str | None:
    """Forget a span whose write tested again under a lock that the other write holds as well."""
    for side, other in ((question.first, question.second), (question.second, question.first)):
        if side.span < 0 or not side.site.flags & Flag.RECHECKED or not side.locks:
            continue
        if other.kind == Kind.READ or side.locks & other.locks:
            return "double-checked"
    return None
