"""One conflict into one record of plain values: judged, named, with both stacks, locks and threads.

Imported with the first conflict, in the checked program.  Nothing here waits: threads that record at the same time
agree by `dict.setdefault`, and each writes its own line.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from gilscope.toolkit.race import site_registry
from gilscope.toolkit.race.conflicts import safe_inspection
from gilscope.toolkit.race.conflicts.classify import (
    Question,
    Side,
    Sites,
    follows_act,
    judge,
    made_alike,
    older_than_both,
)
from gilscope.toolkit.race.conflicts.naming.locks import LockNames
from gilscope.toolkit.race.conflicts.naming.variables import Name, Naming, is_module_dict
from gilscope.toolkit.race.conflicts.source_context import Sources
from gilscope.toolkit.race.core import NO_VALUE
from gilscope.toolkit.race.site import Flag, Kind
from gilscope.toolkit.race.spool import Spool
from gilscope.toolkit.race.verdicts import CHECK, NOTE

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from gilscope.toolkit.race.conflicts.classify import Verdict
    from gilscope.toolkit.race.core import Conflict, Core, Place, RawAccess
    from gilscope.toolkit.race.site import SiteInfo
    from gilscope.toolkit.race.spool import Plain

    DescribeThread = Callable[[int], tuple[str, tuple[Place, ...]]]

WRITES = frozenset({Kind.WRITE, Kind.ATOMIC, Kind.GROW, Kind.SHRINK, Kind.RESHAPE})
STEPS = 400           # frames that are looked through for the one that accesses
OPTIMIZED = 1         # CO_OPTIMIZED: a function's frame
RUNPY = "<frozen runpy>"
BEGINS = RUNPY, "_run_module_as_main"     # what lies below it is of the interpreter, or ours
PLAIN_KEYS = (str, int, float, bytes, bool, type(None))


class Entry(NamedTuple):
    """What a record is known by: section, places of both sides, base of the variable's name and kind."""

    section: str | None
    places: tuple[Place, Place]
    base: str
    kind: str


class Recorder:
    """Writes the records of one process; its arguments are `ConflictHandler`'s."""

    def __init__(self, core: Core, folder: str, root: str, describe_thread: DescribeThread,
                 options: dict[str, Any]) -> None:
        self._core = core
        self._describe_thread = describe_thread
        self._sites = Sites(site_registry.sites)
        self._sources = Sources(root)
        self._naming = Naming(site_registry.sites)
        self._locks = LockNames(core, self._sources, self._naming)
        self._written: dict[Entry, str] = {}             # -> severity written so far
        self._pairs: dict[tuple[int, int], Entry] = {}   # of site numbers -> the first record
        self._common: dict[tuple[int, str, str], frozenset[int]] = {}
        self._changed: frozenset[int] = frozenset()
        # Base and place of the writes that were told of, and whether copies would come out alike, as far as known.
        self._shared: dict[tuple[str, str, int], bool | None] = {}
        self._used: dict[tuple[str, int], None] = {}
        self._counted: dict[tuple[int, int], int] = {}
        self._spool = Spool(folder, {
            "core": core.name, "root": root,
            **{name: options[name] for name in ("target", "build", "command") if options.get(name) is not None},
        })

    def hear(self, conflict: Conflict, section: str | None) -> str:
        """Record a conflict and return "note", "race", or "settled" where the pair can be of one variable alone."""
        sort, owner, part, key, raw_first, raw_second, _ = conflict
        first, second = self._side(raw_first), self._side(raw_second)
        frame = _accessing_frame(second.site)
        question = self._question(conflict, first, second, frame)
        verdict = judge(question)
        self._learn(verdict, question)
        name = self._name(part, owner, key, (first.site, second.site), frame)
        places = sorted((self._place(first, second), self._place(second, first)))
        entry = Entry(section, (places[0], places[1]), name.base, verdict.kind)
        noted = self._noted(first, second)
        severity = "suppressed" if noted else verdict.severity
        if _graver(severity, self._written.get(entry)):
            record = self._record(entry, name, verdict, severity, sort, part, (first, second),
                                  (raw_first, raw_second), noted)
            self._written[entry] = severity      # of threads that meet here each writes it; the report merges them
            self._spool.write(record)
        self._pairs.setdefault((first.number, second.number), entry)
        if severity == NOTE:
            return "note"
        return "settled" if part == "cell" or is_module_dict(owner) or noted else "race"

    def hear_shared(self, conflict: Conflict) -> None:
        """Record that several threads use a variable, once for each place that writes it and what that comes to."""
        _, owner, part, key, raw_first, raw_second, _ = conflict
        first, second = self._side(raw_first), self._side(raw_second)
        write, other = (second, first) if second.kind in WRITES else (first, second)
        frame = _accessing_frame(second.site)
        name = self._name(part, owner, key, (first.site, second.site), frame)
        alike = made_alike(self._bare_question(conflict, first, second, frame), write)
        places = [self._frame((side.site.path, side.site.line, side.site.function)) for side in (write, other)]
        known = name.base, str(places[0][0]), write.site.line
        before = self._shared.get(known)
        if known in self._shared and (before is False or alike in {before, None}):   # what is not alike once stays so
            return
        self._shared[known] = alike
        self._spool.write({"t": "shared", "base": name.base, "write": places[0], "verb": verb(write),
                           "other": places[1], "other_verb": verb(other), "alike": alike})

    def failed(self, section: str | None) -> int:
        """Return how many races the section has."""
        return sum(entry.section == section and severity not in {NOTE, "suppressed"}
                   for entry, severity in list(self._written.items()))

    def forget_counts(self) -> None:
        """Leave what was counted so far to the process that this one was forked from."""
        self._counted = self._core.counts()

    def finish(self, unrewritten: tuple[tuple[str, str], ...], watched: int | None) -> None:
        """Write what is known at the end."""
        counts: dict[Entry, int] = {}
        for pair, counted in self._core.counts().items():
            times = counted - self._counted.get(pair, 0)
            entry = self._pairs.get(pair, self._pairs.get((pair[1], pair[0])))
            if entry is not None and times > 0:
                counts[entry] = counts.get(entry, 0) + times
        self._spool.write({
            "t": "finish",
            "counts": [[entry, times] for entry, times in counts.items()],
            "noted": [[path, line, why] for path, line, why in noted_sites()],
            "used": [[path, line] for path, line in self._used],
            "unrewritten": [[path, reason] for path, reason in unrewritten],
            "watched": watched,
        })

    def _side(self, access: RawAccess) -> Side:
        thread, number, kind, _, locks, span = access
        return Side(thread, number, site_registry.sites[number], Kind(kind), frozenset(locks), span)

    def _question(self, conflict: Conflict, first: Side, second: Side, frame: FrameType | None) -> Question:
        owner, part, key = conflict[1:4]
        return self._bare_question(conflict, first, second, frame)._replace(
            owner_is_class=safe_inspection.is_class(owner),
            strict_keys=issubclass(type(owner), dict) and not _makes_keys(type(owner)),
            common=self._hold_in_common(part, owner, key, first, second))

    def _bare_question(self, conflict: Conflict, first: Side, second: Side, frame: FrameType | None) -> Question:
        """Return the question without the locks that all writes hold: accesses that are in order are none of these."""
        sort, owner, part, key, _, _, value = conflict
        return Question(
            sort, part, first, second, self._sites, self._sources, changed=self._changed,
            value=value if value is not NO_VALUE else self._stored_name(second, frame),
            present=_present(part, owner, key, frame))

    def _stored_name(self, second: Side, frame: FrameType | None) -> Any:
        """Return the value that a store of a bare name is about to store, or NO_VALUE."""
        import ast

        if second.kind != Kind.WRITE or frame is None or second.site.flags & (Flag.AUGMENTED | Flag.MULTI):
            return NO_VALUE
        if not second.locks and not second.site.flags & Flag.GUARD:
            return NO_VALUE        # no rule asks
        stored = self._sources.stored(second.site)
        return _lookup(frame, stored.id) if isinstance(stored, ast.Name) else NO_VALUE

    def _hold_in_common(self, part: str, owner: Any, key: Any, *sides: Side) -> frozenset[int]:
        """Return the locks that all writes of the location seen in conflicts hold."""
        location = (id(owner), part, safe_inspection.show(key))
        for side in sides:
            if side.kind in WRITES:
                known = self._common.get(location, side.locks)
                self._common[location] = known & side.locks
        return self._common.get(location, frozenset())

    def _learn(self, verdict: Verdict, question: Question) -> None:
        """Remember acts that were seen to store another value over the first: no memo."""
        first, second = question.first, question.second
        acts = first.kind == second.kind == Kind.WRITE and second.site.flags & Flag.GUARD
        if not acts or verdict.kind != CHECK or verdict.severity == NOTE:
            return
        if not _stays(question):
            self._changed |= {first.number, second.number}

    def _name(self, part: str, owner: Any, key: Any, sites: tuple[SiteInfo, ...], frame: FrameType | None) -> Name:
        module = None if frame is None else frame.f_globals
        return self._naming.variable(part, owner, key, sites, module)

    def _place(self, side: Side, other: Side) -> Place:
        """Return where a side counts: a read that a write depends on, or that stands behind it, at the write."""
        site = side.site
        if side.kind == Kind.READ and (writers := self._sites.writers(side.number)):
            site = self._sites[writers[0]]
        elif side.kind == Kind.READ and follows_act(side.number, other.number, self._sites):
            site = other.site
        return self._sources.path(site.path), site.line, site.function

    def _noted(self, first: Side, second: Side) -> list[SiteInfo]:
        """Return the sites whose line says `# race: ok`."""
        sites = [first.site, second.site, *(self._sites[side.span] for side in (first, second) if side.span >= 0)]
        for side in (first, second):
            if side.kind == Kind.READ:
                sites += [self._sites[number] for number in self._sites.writers(side.number)]
        found = [site for site in sites if site.note is not None]
        for site in found:
            self._used[site.path, site.line] = None
        return found

    def _record(self, entry: Entry, name: Name, verdict: Verdict, severity: str, sort: str, part: str,
                sides: tuple[Side, Side], accesses: tuple[RawAccess, RawAccess],
                noted: list[SiteInfo]) -> dict[str, Plain]:
        first, second = (self._access(side, access) for side, access in zip(sides, accesses, strict=True))
        return {
            "t": "race", "section": entry.section, "variable": name.text,
            "base": name.base, "kind": verdict.kind, "severity": severity, "rule": verdict.rule, "sort": sort,
            "part": part, "places": [list(place) for place in entry.places], "first": first, "second": second,
            "reasons": [[self._sources.path(site.path), site.line, site.note or ""] for site in noted],
        }

    def _access(self, side: Side, access: RawAccess) -> dict[str, Plain]:
        thread, started = self._describe_thread(side.thread)
        site = side.site
        place = (site.path, site.line, site.function)
        return {
            "thread": str.__str__(thread), "uid": side.thread, "verb": verb(side), "place": self._frame(place),
            "stack": [self._frame(frame) for frame in _own(self._core.stack(access[3]))],
            "started": [self._frame(frame) for frame in _own(started)],
            "locks": [self._locks.describe(uid) for uid in access[4]],
            "text": site.text, "op": site.op, "augmented": bool(site.flags & Flag.AUGMENTED),
            "column": site.column, "partner": self._partner(side),
        }

    def _partner(self, side: Side) -> list[Plain] | None:
        """Return where the other half of the span is: the read of a write, the write of a read."""
        if side.span >= 0 and side.span != side.number:
            return self._spot(side.span)
        if side.kind == Kind.READ:
            writers = self._sites.writers(side.number)
            return self._spot(writers[0]) if writers else None
        return self._spot(side.site.partners[0]) if side.site.partners else None

    def _spot(self, number: int) -> list[Plain]:
        site = self._sites[number]
        path = self._sources.path(site.path)
        return [path, site.line, site.column, site.op, self._sources.line(path, site.line)]

    def _frame(self, place: Place) -> list[Plain]:
        path, line, function = place
        return [self._sources.path(path), line, function, self._sources.line(path, line)]


def _own(places: tuple[Place, ...]) -> tuple[Place, ...]:
    """Return the places, innermost first, without those of runpy below the program: with -m it begins there."""
    begun = [number for number, (path, _, function) in enumerate(places) if (path, function) == BEGINS]
    own = begun[-1] if begun else len(places)
    while own and places[own - 1][0] == RUNPY:
        own -= 1
    return places[:own]


def _stays(question: Question) -> bool:
    """Tell whether the store changes nothing, as far as both values are known."""
    unknown = question.value is NO_VALUE or older_than_both(question)
    return unknown or safe_inspection.same(question.value, question.present)


def verb(side: Side) -> str:
    """Return what the access does, in a word."""
    if side.site.flags & Flag.DELETE and side.kind in WRITES:
        return "delete"
    if side.kind in {Kind.ATOMIC, Kind.GROW, Kind.SHRINK, Kind.RESHAPE} and side.site.op == "method":
        return str(side.site.key)
    words = {Kind.READ: "read", Kind.WRITE: "write", Kind.ATOMIC: "write", Kind.SIZE: "read", Kind.ITERATE: "iterate",
             Kind.GROW: "insert", Kind.SHRINK: "remove", Kind.RESHAPE: "rewrite"}
    return words[side.kind]


def _graver(severity: str, known: str | None) -> bool:
    order = ("race", "atomicity violation", "suppressed", "note")
    return known is None or order.index(severity) < order.index(known)


def _makes_keys(cls: type) -> bool:
    """Tell whether a missing key is made when it is asked for: defaultdict, Counter."""
    return any("__missing__" in safe_inspection.class_members(each) for each in safe_inspection.mro(cls))


def _accessing_frame(site: SiteInfo) -> FrameType | None:
    """Return the current thread's frame that runs the site's function, or None."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  inspect does the same, and costs an import
    for _ in range(STEPS):
        if frame is None:
            return None
        if frame.f_code.co_filename == site.path and frame.f_code.co_qualname == site.function:
            return frame
        frame = frame.f_back
    return None


def _present(part: str, owner: Any, key: Any, frame: FrameType | None) -> Any:
    """Return what the location holds now without running code of the program, or NO_VALUE."""
    if part == "attr":
        return safe_inspection.attribute(owner, key)
    if part == "cell":
        return NO_VALUE if frame is None else _lookup(frame, str(key))
    return _item(owner, key) if part == "item" and type(key) in PLAIN_KEYS else NO_VALUE


def _item(owner: Any, key: Any) -> Any:
    if issubclass(type(owner), dict):
        return dict.get(owner, key, NO_VALUE)
    if issubclass(type(owner), list) and type(key) is int and 0 <= key < list.__len__(owner):
        try:
            return list.__getitem__(owner, key)
        except IndexError:      # shortened meanwhile
            return NO_VALUE
    return NO_VALUE


def _lookup(frame: FrameType, name: str) -> Any:
    """Return the value of a variable of a frame of the current thread, or NO_VALUE."""
    if frame.f_code.co_flags & OPTIMIZED and name in frame.f_locals:     # a class body's namespace may be the user's
        return frame.f_locals[name]
    return frame.f_globals.get(name, NO_VALUE)


def noted_sites() -> list[tuple[str, int, str]]:
    """Return path, line and reason of every `# race: ok` in a module that was loaded."""
    return sorted({(site.path, site.line, site.note) for site in list(site_registry.sites) if site.note is not None})
