"""Recompute from a trace of the C core what it should have found: plain vector clocks, and all pairs of accesses.

`python -m tests.race.core.oracle FILE...` prints where the core and this disagree.  Nothing here is fast: a location
keeps its accesses, and each new one is compared with all before it.  Shared with the core are the rules (what
conflicts, what orders, what a span is), not the code: no epochs, no caches, no tables.

What the core reports must be among these pairs.  What it need not report, by design:

- Of a location with conflicting accesses it reports one pair, and one for each two kinds of access at a span
  (`about`).  It keeps the last store and the reads since, which is enough to find one (FastTrack).
- A location keeps the last write of each thread, kind and lockset, and the last span of each read, to bound its memory
  (`last`).  Whatever races with an earlier one mostly races with the last one, too.
- A read of many items is compared with the last store of each, for the same reason.
- That a removal takes away what a test found is reported of the last removal and of the reads that are kept.
- Nothing is reported of an object that is dead.
- Numbers are limited: readers and writes of a location, open reads, conflicts of one access.  No test reaches them.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

from gilscope.toolkit.race.terms import AccessKind, Flag

READ, WRITE, ATOMIC, SIZE, ITERATE, GROW, SHRINK, RESHAPE, MISS = map(int, AccessKind)
# As in the core: detection/touch.c, core.h, detection/hand_off.c
HAND, TAKE, LOOK, UNORDERED, QUIET, UNHAND, UPDATE, OWN, PRESENCE = (1 << bit for bit in range(9))
REMOVES, REMOVES_ITEM = 1 << 28, 1 << 26
OBJECT, CONTAINER = 1, 2                       # what a load gets: detection/reads.c
RIGHT, LEFT, ANYWHERE, STAYS = range(4)
BY_POLLS, BY_ALL, BY_FRESH, BY_NEW = 1, 2, 4, 8
RACING = {WRITE: {READ, WRITE, MISS}, READ: {WRITE}, ITERATE: {GROW, SHRINK, RESHAPE}, GROW: {ITERATE, RESHAPE},
          SHRINK: {ITERATE, RESHAPE}, RESHAPE: {ITERATE, GROW, SHRINK, RESHAPE}}


class Clock:
    """A vector clock: the last known time of each thread by all edges, and by all but those of Lock and RLock."""

    def __init__(self, order=(), hard=()):
        self.order, self.hard = dict(order), dict(hard)

    def copy(self):
        return Clock(self.order, self.hard)

    def join(self, other, *, hard=True):
        for mine, theirs in ((self.order, other.order), (self.hard, other.hard))[:1 + hard]:
            for uid, time in theirs.items():
                mine[uid] = max(mine.get(uid, 0), time)

    def past(self, access, *, hard=False):
        return (self.hard if hard else self.order).get(access.uid, 0) >= access.time


class Site:
    def __init__(self, number, flags, partners):
        self.number, self.flags, self.partners = number, flags, partners
        self.guards = set()      # whether the acts whose test this read is store or remove


class Thread:
    def __init__(self, uid, outer):
        self.uid, self.outer, self.ended = uid, outer, False
        self.now, self.chain = Clock({uid: 1}, {uid: 1}), Clock()     # chain: of the logical threads that ran on it
        self.opens = {}                          # (activation, site, location) -> Open
        self.polled = None                       # the location of a poll, and its last store
        self.log, self.marks = [], {}            # accesses, and where calls that are to be replayed began

    def tick(self):
        self.now.order[self.uid] = self.now.hard[self.uid] = self.now.order[self.uid] + 1
        return self.now.order[self.uid]


class Location:
    def __init__(self, owner, key):
        self.owner, self.key = owner, key
        self.accesses = []       # loads, plain stores, iterations and changes of the structure
        self.acts, self.spans = [], []       # everything that writes, and spans
        self.last = {}           # their last ones of each thread and sort
        self.store = None        # the last plain one
        self.published, self.by = None, 0       # the clock of that store, and which loads come after it
        self.handed = None       # the joint clock of the insertions


class Access:
    def __init__(self, thread, site, kind, options, held, frame=0):
        self.uid, self.time = thread.uid, thread.tick()
        self.site, self.kind, self.options = site, kind, options
        self.held, self.locks, self.frame = held, {uid for uid, _ in held}, frame
        self.presence = kind == ATOMIC or (kind == WRITE and bool(options & PRESENCE))    # it may insert or delete
        self.sort = self.uid, kind, self.presence, frozenset(self.locks)
        self.after = None        # the clock of the read that it is, once the item is its

    def side(self, kind=None, span_site=-1):
        return self.uid, self.site.number, self.kind if kind is None else kind, span_site

    def writes(self):
        return self.kind in (WRITE, ATOMIC) or self.kind >= GROW


class Open:
    """A read that a later write may depend on."""

    def __init__(self, read, presence):
        self.read, self.presence, self.used = read, presence, None      # used: by the thread's next write there


class Span:
    """A write, and the read that it depends on."""

    def __init__(self, write, site, opened):
        self.write, self.site = write, site
        self.presence = opened.presence          # the read asked whether there is something
        self.locks = {uid for uid, serial in write.held if (uid, serial) in opened.read.held}     # held all the while
        self.guards = write.locks - self.locks   # held at the write, acquired since the read
        self.sort = write.uid, site, frozenset(self.locks)
        self.began = opened.read.after


class Oracle:
    """What happened since the core was started, and which pairs are in conflict."""

    def __init__(self):
        self.threads, self.sites = {}, {}
        self.start()

    def start(self):
        """Forget everything that was accessed before, and so what order there was before."""
        self.threads = {uid: thread for uid, thread in self.threads.items() if not thread.ended}
        for thread in self.threads.values():
            own = {thread.uid: thread.now.order[thread.uid]}
            thread.now, thread.chain = Clock(own, own), Clock()
        self.clocks, self.syncs = defaultdict(Clock), defaultdict(Clock)
        self.locations = defaultdict(dict)       # owner -> key -> Location
        self.arrays = defaultdict(set)           # owner -> keys of parts with several items
        self.wholes = defaultdict(list)          # owner -> (access, indexes or None for all)
        self.values = defaultdict(dict)          # owner -> value -> (uid, clock) of its insertions, from left to right
        self.unknown = {}                        # owner -> joint clock of insertions of unknown values
        self.allowed, self.demanded, self.found = set(), set(), set()

    def location(self, owner, key):
        return self.locations[owner].setdefault(key, Location(owner, key))

    def conflict(self, sort, where, first, second, between=(), *, must=True):
        """Note a conflict, which the core must report unless a later one of the same sort replaced a side of it."""
        found = sort, where.owner, where.key, first, second
        self.allowed.add(found)
        if must and all(where.last[one.sort] is one for one in between):
            self.demanded.add(found)

    # -- events: each is a line of the trace

    def on_site(self, number, flags, *partners):
        site = self.sites.setdefault(number, Site(number, 0, ()))
        site.flags |= flags
        site.partners = partners
        for partner in partners if flags & Flag.GUARD else ():
            self.sites.setdefault(partner, Site(partner, 0, ())).guards.add(flags & REMOVES)

    def on_begin(self, uid, outer, after_all):
        thread = self.threads[uid] = Thread(uid, self.threads.get(outer))
        for other in self.threads.values() if after_all else ():
            time = {other.uid: other.now.order[other.uid]}
            thread.now.join(Clock(time, time))

    def on_end(self, uid):
        thread = self.threads.get(uid)      # None: of the process that this one was forked from
        if thread is not None:
            thread.ended = True
        if thread is not None and thread.outer is not None:
            thread.outer.chain.join(thread.now)

    def on_real(self, uid):
        thread = self.threads[uid]
        thread.now.join(thread.outer.now)
        thread.now.join(thread.outer.chain)

    def on_snapshot(self, uid, clock):
        self.clocks[clock] = self.threads[uid].now.copy()

    def on_join(self, uid, clock):
        self.threads[uid].now.join(self.clocks[clock])

    def on_release(self, uid, sync):
        self.syncs[sync].join(self.threads[uid].now)

    def on_acquire(self, uid, sync, hard):
        thread = self.threads.get(uid)      # None: a lock dies in a thread that has ended
        if thread is not None:
            thread.now.join(self.syncs[sync], hard=hard)

    def on_hand(self, uid, owner, end, value):
        there, mine = self.values[owner].setdefault(value, []), (uid, self.threads[uid].now.copy())
        there.insert(0 if end == LEFT else len(there), mine)

    def on_hand_unknown(self, uid, owner):
        self.unknown.setdefault(owner, Clock()).join(self.threads[uid].now)

    def on_take(self, uid, owner, end, value, most):
        """Order the thread after the insertion of a value that it has got."""
        now, there = self.threads[uid].now, self.values[owner].get(value, [])
        if not there and owner in self.unknown:
            now.join(self.unknown[owner])
        if end in (LEFT, RIGHT):
            del there[:max(0, len(there) - most)]       # the oldest of too many have left unnoticed
            first = {}
            for thread, clock in there if end == LEFT else reversed(there):
                first.setdefault(thread, clock)         # of the same object, which may be any thread's
            for clock in first.values():
                now.join(clock)
            if there:
                there.pop(0 if end == LEFT else -1)
        else:
            for _, clock in there:
                now.join(clock)
            del there[:end == ANYWHERE]
        if not there:
            self.values[owner].pop(value, None)

    def on_take_item(self, uid, owner, key):
        if handed := self.location(owner, key).handed or self.unknown.get(owner):
            self.threads[uid].now.join(handed)

    def on_take_all(self, uid, owner):
        now = self.threads[uid].now
        clocks = [where.handed for where in self.locations[owner].values() if where.handed is not None]
        clocks += [clock for there in self.values[owner].values() for _, clock in there]
        for clock in [*clocks, *([self.unknown[owner]] if owner in self.unknown else ())]:
            now.join(clock)

    def on_clear(self, _, owner):
        for where in self.locations[owner].values():
            where.handed = None
        self.values.pop(owner, None)
        self.unknown.pop(owner, None)

    def on_forget(self, owner):
        """Forget an object that is dead: nothing is reported of it, even if a getter's or setter's caller would."""
        for known in (self.locations, self.wholes, self.values, self.unknown):
            known.pop(owner, None)

    def on_enter(self, uid, frame):
        opens = self.threads[uid].opens
        for key in [key for key in opens if key[0] == frame]:
            del opens[key]

    def on_record(self, uid, position):
        thread = self.threads[uid]
        thread.marks[position] = len(thread.log)

    def on_found(self, sort, owner, key, *sides):
        self.found.add((sort, owner, key, sides[:4], sides[4:]))

    # -- accesses

    def on_access(self, uid, owner, key, site, kind, options, loaded, frame, *held):
        thread, where = self.threads[uid], self.location(owner, key)
        self._look_again(thread)
        access = Access(thread, self.sites[site], kind, options, held, frame)
        flags = access.site.flags
        begins = not options & QUIET and (flags & (Flag.SPAN_READ | Flag.AUGMENTED) or options & OWN)
        opens = begins and not access.writes()
        if opens or (options & UPDATE and not options & QUIET):
            self._failed_check(thread, where, access)
        if options & TAKE:
            self.on_take_item(uid, owner, key)
        access.after = thread.now.copy()
        seen = None
        self._look(thread, where, access)
        if options & UPDATE or (kind == READ and not options & LOOK):
            seen = self._load(thread, where, access, loaded)
        if access.writes():
            self._write(thread, where, access)
        elif kind == ITERATE:
            self._race(thread, where, access, ITERATE)
        if options & UNHAND:
            where.handed = None
        if not options & QUIET:
            thread.log.append((where, access))
        if opens:
            thread.opens[frame, site, where] = Open(access, bool(options & PRESENCE))
        if seen is not None:
            thread.now.join(seen)

    def _look_again(self, thread):
        """Order the thread after a store that the load before may have seen, as the event of a load comes first."""
        where, store = thread.polled or (None, None)
        thread.polled = None
        if where is not None and where.store is not store and where.by & (BY_POLLS | BY_ALL | BY_NEW):
            thread.now.join(where.published)

    def _race(self, thread, where, access, kind):
        """Compare with all earlier accesses."""
        for other_place in self._overlapping(where):
            for earlier_kind, earlier in other_place.accesses:
                relied = any(one.site.flags & Flag.RELIES for one, its in ((earlier, earlier_kind), (access, kind))
                             if its == ITERATE)      # the use of a test: only removals are in conflict with it
                if (earlier_kind in RACING[kind] and not thread.now.past(earlier) and not access.options & UNORDERED
                        and (not relied or SHRINK in (kind, earlier_kind))):
                    self.conflict("order", where, earlier.side(earlier_kind), access.side(kind), must=not relied)
        where.accesses.append((kind, access))

    def _look(self, thread, where, access):
        """Compare a read whose result others rely on with removals in one step; keep a lookup that missed."""
        relies = access.site.flags & Flag.RELIES and (access.kind == READ or access.options & UPDATE)
        for act in where.acts if relies else ():
            if act.kind == ATOMIC and act.site.flags & REMOVES_ITEM and not thread.now.past(act):
                for kind in (READ, MISS, access.kind):
                    self.conflict("order", where, act.side(), access.side(kind), must=False)
        if access.kind == READ and access.options & (LOOK | TAKE) == LOOK:
            where.accesses.append((MISS, access))      # it came before the store of its key

    def _removes(self, thread, where, access):
        """Compare a removal in one step with reads whose results others rely on."""
        for kind, read in where.accesses:
            if kind == READ and read.site.flags & Flag.RELIES and not thread.now.past(read):
                self.conflict("order", where, read.side(), access.side(), must=False)
                self.conflict("order", where, read.side(READ), access.side(), must=False)

    def _overlapping(self, where):
        if where.key[0] not in "ib" or not (where.key[0] == "b" or self.arrays[where.owner]):
            return [where]
        if where.key[0] == "b":
            self.arrays[where.owner].add(where.key)
        others = self.locations[where.owner] if where.key[0] == "b" else self.arrays[where.owner]
        return [where, *(self.location(where.owner, key) for key in others
                         if key != where.key and key[0] in "ib" and meet(where.key, key))]

    def _load(self, thread, where, access, loaded):
        """Note a load; return the clock that orders what comes after this operation, if any."""
        self._race(thread, where, access, READ)
        if access.site.flags & (Flag.POLL | Flag.NEW):
            thread.polled = where, where.store
        if where.by and not thread.now.past(where.store):
            if where.by & BY_ALL or (where.by & BY_POLLS and access.site.flags & Flag.POLL):
                thread.now.join(where.published)
                return None
            made = where.by & BY_NEW and not access.site.flags & Flag.SPAN_READ
            if (loaded == CONTAINER and (made or where.by & BY_FRESH)) or (loaded == OBJECT and made):
                return where.published
        return None

    def _write(self, thread, where, access):
        if access.kind == WRITE:
            self._race(thread, where, access, WRITE)
            self._against_wholes(thread, where, access)
        elif access.kind == ATOMIC and access.site.flags & REMOVES_ITEM:
            self._removes(thread, where, access)
        elif access.kind >= GROW:
            self._race(thread, where, access, access.kind)
        spans = self._ended(thread, where, access)
        where.last |= {access.sort: access} | {span.sort: span for span in spans}
        for span in where.spans:
            self._violated(thread.now, thread, where, span, access)
        for span in spans:
            for act in where.acts:
                self._violated(span.began, thread, where, span, act)
        where.acts.append(access)
        where.spans += spans
        self._use(thread, where, access)
        if access.options & HAND:
            where.handed = where.handed or Clock()
            where.handed.join(thread.now)
        if access.kind == WRITE:
            where.store, where.by = access, published_by(access)
            where.published = thread.now.copy()

    def _use(self, thread, where, access):
        for (_, _, place), opened in thread.opens.items():
            if place is where and opened.used is None:
                opened.used = access

    def _ended(self, thread, where, access):
        """Return the spans that a write ends: a read and its store in one operation, or reads of this activation."""
        spans = []
        if access.options & UPDATE:
            spans.append(Span(access, access.site.number, Open(access, presence=False)))
        own = access.options & OWN or access.site.flags & Flag.AUGMENTED
        for site in (*([access.site.number] if own and not access.options & UPDATE else ()), *access.site.partners):
            opened = thread.opens.get((access.frame, site, where))
            if opened is not None and opened.used is None:
                spans.append(Span(access, site, opened))
        return spans

    def _violated(self, now, thread, where, span, act):
        """Check if a write of another thread, the earlier or the later one, falls between the read and write of a span.

        `now` is the clock of the later one: of the read, if that is the span.
        """
        earlier = act if span.write.uid == thread.uid else span.write
        if (act.uid != span.write.uid and violates(act, span) and not span.locks & act.locks
                and not now.past(earlier, hard=bool(span.guards & act.locks))
                and not self._in_order_conflict(thread, earlier, act if earlier is span.write else span.write)):
            sides = [span.write.side(span_site=span.site), act.side()]
            self.conflict("span", where, *(sides if earlier is span.write else reversed(sides)), (span, act))

    def _in_order_conflict(self, thread, earlier, later, kind=None):
        """Return True if the two are reported anyhow, as stores without order."""
        return earlier.kind == (kind or later.kind) == WRITE and not thread.now.past(earlier)

    def _failed_check(self, thread, where, check):
        """Find a check that came after another thread's check and act by chance: else, both would have acted.

        Only if the check guards an act that does the same, or if it is the same check, and only the hand-off of the
        item orders the two.  At the same check, the act would have acquired the same lock.
        """
        loads = (check.kind == READ and not check.options & (LOOK | TAKE | OWN)) or check.kind == WRITE
        for span in where.spans:
            write, same = span.write, span.site == check.site.number
            competes = write.site.flags & REMOVES in check.site.guards or (where.handed and same and write.presence)
            ordered = thread.now.past(write, hard=bool(span.guards if same else span.guards & check.locks))
            if (write.uid != check.uid and competes and not span.locks & check.locks and not ordered
                    and (write.presence or not check.options & PRESENCE)
                    and not (loads and self._in_order_conflict(thread, write, check, WRITE))):
                self.conflict("span", where, write.side(span_site=span.site), check.side(READ), (span,))

    # -- many items at once

    def on_whole(self, uid, owner, site, *indexes):
        thread = self.threads[uid]
        access, indexes = Access(thread, self.sites[site], READ, 0, ()), range(*indexes) if indexes else None
        for where in self.locations[owner].values():
            for store in where.acts if covers(indexes, where.key) else ():
                if store.kind == WRITE and not store.presence and not thread.now.past(store):
                    self.conflict("order", where, store.side(), access.side(), must=store is where.store)
        self.wholes[owner].append((access, indexes))

    def _against_wholes(self, thread, where, access):
        for read, indexes in self.wholes[where.owner] if not access.presence else ():
            if covers(indexes, where.key) and not thread.now.past(read):
                self.conflict("order", where, read.side(), access.side())

    # -- getters and setters: what they did is done once more on behalf of their caller

    def on_again(self, uid, site, position, writes, frame):
        thread = self.threads[uid]
        log = thread.log[thread.marks[position]:]
        if not writes and any(access.writes() for _, access in log):
            return       # an act, no test
        for where, inner in log:
            if inner.writes() == bool(writes) and where.owner in self.locations:
                repeat = self._repeat_write if writes else self._repeat_read
                repeat(thread, where, inner, self.sites[site], frame)

    def _repeat_read(self, thread, where, inner, site, frame):
        access = Access(thread, site, READ, inner.options & PRESENCE, inner.held, frame)
        self._failed_check(thread, where, access)
        thread.opens[frame, site.number, where] = Open(inner, bool(inner.options & PRESENCE))

    def _repeat_write(self, thread, where, inner, site, frame):
        flags = inner.site.flags
        decided_inside = Flag.GUARD | Flag.RECHECKED
        if not site.flags & Flag.GUARD:
            decided_inside |= Flag.VALUE | Flag.AUGMENTED
            if inner.kind != WRITE or where.key[0] == "p":
                return
        for partner in (site.number, *site.partners) if not flags & decided_inside else ():
            opened = thread.opens.get((frame, partner, where))
            if opened is None or opened.used not in (None, inner):
                continue
            write = Access(thread, site, inner.kind, inner.options, inner.held, frame)
            write.time = inner.time
            span = Span(write, partner, opened)
            where.last[span.sort] = span
            for act in where.acts:
                self._violated(span.began, thread, where, span, act)
            where.spans.append(span)


def published_by(store):
    """Return which loads come after a store: polls of a literal, all of a checked or memorised value, containers."""
    flags = store.site.flags
    return ((BY_POLLS if (flags & Flag.CONSTANT and not flags & Flag.INIT) or flags & Flag.COUNTED else 0)
            | (BY_NEW if flags & Flag.NEW and not flags & Flag.INIT else 0)
            | (BY_ALL if flags & (Flag.RECHECKED | Flag.MEMO) else 0)
            | (BY_FRESH if store.locks else 0))


def violates(act, span):
    """Return True if the act invalidates the read before the span's write, or the presence that it asked for."""
    kind = span.write.kind
    if kind in (GROW, SHRINK):
        copied = kind == SHRINK and span.write.site.flags & Flag.VALUE     # what is added after the copy is lost
        return act.kind in (kind, RESHAPE) or bool(copied and act.kind == GROW)
    return kind in (WRITE, ATOMIC) and act.kind in (WRITE, ATOMIC) and (act.presence or not span.presence)


def covers(indexes, key):
    """Return True if a read of many items has this one."""
    if key[0] != "i":
        return indexes is None and key[0] in "vs"
    return indexes is None or int(key[1:]) in indexes


def meet(one, other):
    """Return True if two parts of an array have items in common; a part is a range for each axis."""
    axes = [[key[1:]] if key[0] == "i" else key[1:].split("b") for key in (one, other)]
    for pair in zip(*axes, strict=False):
        ranges = [[int(word) for word in f"{axis},1,1".split(",")[:3]] for axis in pair]
        few, many = sorted((range(first, first + count * step, step) for first, count, step in ranges), key=len)
        if not any(item in many for item in few):
            return False
    return True


def differences(path):
    """Yield where a trace's core and the oracle disagree: the number of the start, and what."""
    oracle, starts = Oracle(), 0
    with Path(path).open(encoding="ascii") as lines:
        for line in [*lines, "start"]:
            verb, *words = line.split()
            if verb in ("start", "process"):
                yield from ((starts, text) for text in compared(oracle))
                starts += verb == "start"
                oracle = Oracle() if verb == "process" else oracle
                oracle.start()
                continue
            getattr(oracle, f"on_{verb}")(*map(value_of, words))


def value_of(word):
    """Return a word of the trace: a number, a lock as (uid, acquisition), or what is only compared."""
    if ":" in word:
        return tuple(map(int, word.split(":")))
    return int(word) if word.lstrip("-").isdigit() else word


def compared(oracle):
    """Yield what the core found and the oracle did not, and the other way round."""
    for conflict in sorted(oracle.found - oracle.allowed, key=str):
        yield f"only the core: {conflict}"
    told = {about(conflict) for conflict in oracle.found}
    for conflict in sorted(oracle.demanded - oracle.found, key=str):
        if about(conflict) not in told:
            yield f"only the oracle: {conflict}"


def about(conflict):
    """Return what the core must report at least once."""
    sort, owner, key, first, second = conflict
    if sort == "order":
        return sort, owner, key
    return sort, owner, key, *sorted((side[2], side[3] != -1) for side in (first, second))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for start, text in differences(name):
            print(name, start, text)
