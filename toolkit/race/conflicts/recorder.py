"""Turn a conflict into a record of plain values: classified, named, with both stacks, locks and threads.

Imported on the first conflict, in the checked program.  Nothing here waits: threads that record at the same time
agree through `dict.setdefault`, and each writes its own line.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from gilscope.toolkit.race import safe_inspection
from gilscope.toolkit.race.core import NO_VALUE
from gilscope.toolkit.race.site import LOOP_CALLBACKS, all_sites
from gilscope.toolkit.race.spool import Spool
from gilscope.toolkit.race.terms import GRAVE, AccessKind, Flag, RaceKind, Remedy, Severity
from gilscope.toolkit.race.verdicts.benign_patterns import older_than_both
from gilscope.toolkit.race.verdicts.classify import classify
from gilscope.toolkit.race.verdicts.conflict_context import (
    REMOVALS,
    ConflictContext,
    ConflictSide,
    SiteIndex,
    follows_act,
    tests_and_uses,
)
from gilscope.toolkit.race.verdicts.naming import LockNamer, VariableName, VariableNamer, is_module_dict
from gilscope.toolkit.race.verdicts.source_context import SourceFiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from gilscope.toolkit.race.core import Conflict, Core, Place, RawAccess
    from gilscope.toolkit.race.site import SiteInfo
    from gilscope.toolkit.race.spool import Plain
    from gilscope.toolkit.race.verdicts.classify import Classification

    DescribeThread = Callable[[int], tuple[str, tuple[Place, ...]]]

WRITES = frozenset({AccessKind.WRITE, AccessKind.ATOMIC, AccessKind.GROW, AccessKind.SHRINK, AccessKind.RESHAPE})
REPORTS_OF_RACES = 8       # variables that one pair of sites may be reported for
REPORTS_OF_NOTES = 32      # benign conflicts after which the pair counts as that
STEPS = 400           # frames to search for the one that accesses
OPTIMIZED = 1         # CO_OPTIMIZED: a function's frame
RUNPY = "<frozen runpy>"
BEGINS = RUNPY, "_run_module_as_main"     # frames below it belong to the interpreter or to gilscope
PLAIN_KEYS = (str, int, float, bytes, bool, type(None))


class RaceKey(NamedTuple):
    """Identity of a race: conflicts with equal keys are one race."""

    section: str | None
    places: tuple[Place, Place]
    base: str
    kind: str


class Recorder:
    """Writer of the records of one process; its arguments are those of `ConflictHandler`."""

    def __init__(self, core: Core, folder: str, root: str, describe_thread: DescribeThread,
                 options: dict[str, Any]) -> None:
        self._core = core
        self._describe_thread = describe_thread
        self._sites = SiteIndex(all_sites)
        self._sources = SourceFiles(root)
        self._naming = VariableNamer(all_sites)
        self._locks = LockNamer(core, self._sources, self._naming)
        self._written: dict[RaceKey, Severity] = {}        # -> gravest severity written so far
        self._races: dict[str | None, dict[RaceKey, None]] = {}   # by section
        self._pairs: dict[tuple[int, int], RaceKey] = {}   # of site numbers -> the first record
        self._locksets: dict[tuple[int, str, str], frozenset[int]] = {}
        self._changed: frozenset[int] = frozenset()
        self._used: dict[tuple[str, int], None] = {}
        self._counted: dict[tuple[int, int], int] = {}
        self._spool = Spool(folder, {
            "core": core.name, "root": root,
            **{name: options[name] for name in ("target", "build", "command") if options.get(name) is not None},
        })

    def record(self, conflict: Conflict, section: str | None) -> int:
        """Record a conflict; return the number of reports after which the core may stop reporting its pair of sites."""
        sort, owner, part, key, raw_first, raw_second, _ = conflict
        first, second = self._side(raw_first), self._side(raw_second)
        frame = _accessing_frame(second.site)
        context = self._context(conflict, first, second, frame)
        classification = classify(context)
        self._learn(classification, context)
        name = self._name(part, owner, key, (first.site, second.site), frame)
        places = sorted((self._place(first, second), self._place(second, first)))
        entry = RaceKey(section, (places[0], places[1]), name.base, classification.kind.value)
        suppressed = self._suppressed_sites(first, second)
        severity = Severity.SUPPRESSED if suppressed else classification.severity
        written = self._written.get(entry)
        if written is None or severity.rank < written.rank:
            record = self._record(entry, name, classification, severity, sort=sort, part=part, owner=owner,
                                  sides=(first, second), accesses=(raw_first, raw_second), suppressed=suppressed)
            self._written[entry] = severity      # threads that get here together each write it; the report merges them
            self._spool.write(record)
            if severity in GRAVE:     # only now: who asks finds its record
                self._races.setdefault(section, {})[entry] = None
        self._pairs.setdefault((first.number, second.number), entry)
        if severity is Severity.NOTE:
            return REPORTS_OF_NOTES
        one_variable = part == "cell" or is_module_dict(owner)
        return 1 if one_variable or suppressed else REPORTS_OF_RACES

    def record_gap(self, reason: str, count: int) -> None:
        """Record that accesses go unchecked."""
        self._spool.write({"t": "gap", "reason": reason, "count": count})

    def races_in(self, section: str | None) -> list[RaceKey]:
        """Return the races in the section."""
        return list(self._races.get(section, ()))

    def forget_counts(self) -> None:
        """Ignore the counts so far: the process that this one was forked from reports them."""
        self._counted = self._core.counts()

    def finish(self, unrewritten: tuple[tuple[str, str], ...]) -> None:
        """Write the record that ends the process's part: counts, suppressions and modules that were not rewritten."""
        counts: dict[tuple[Any, ...], int] = {}      # of all sections
        for pair, counted in self._core.counts().items():
            times = counted - self._counted.get(pair, 0)
            entry = self._pairs.get(pair, self._pairs.get((pair[1], pair[0])))
            if entry is not None and times > 0:
                counts[entry[1:]] = counts.get(entry[1:], 0) + times
        self._spool.write({
            "t": "finish",
            "counts": [[entry, times] for entry, times in counts.items()],
            "noted": [[path, line, why] for path, line, why in suppressed_sites()],
            "used": [[path, line] for path, line in self._used],
            "unrewritten": [[path, reason] for path, reason in unrewritten],
        })

    def _side(self, access: RawAccess) -> ConflictSide:
        thread, number, kind, _, locks, span = access
        site = all_sites[number]
        # A test of a container, or the use of an item, is an iteration for the core: it conflicts with removals alone.
        if kind == AccessKind.ITERATE and site.flags & Flag.RELIES and site.op != "iterate":
            kind = AccessKind.READ
        return ConflictSide(thread, number, site, AccessKind(kind), frozenset(locks), span)

    def _context(self, conflict: Conflict, first: ConflictSide, second: ConflictSide,
                 frame: FrameType | None) -> ConflictContext:
        sort, owner, part, key, _, _, value = conflict
        return ConflictContext(
            sort, part, first, second, self._sites, self._sources, changed=self._changed,
            value=value if value is not NO_VALUE else self._stored_name(second, frame),
            present=_present(part, owner, key, frame),
            owner_is_class=safe_inspection.is_class(owner),
            strict_keys=issubclass(type(owner), dict) and not _makes_keys(type(owner)),
            lockset=self._candidate_lockset(part, owner, key, first, second))

    def _stored_name(self, second: ConflictSide, frame: FrameType | None) -> Any:
        """Return the value of a store whose right side is a bare name, or NO_VALUE."""
        import ast

        if second.kind != AccessKind.WRITE or frame is None or second.site.flags & (Flag.AUGMENTED | Flag.MULTI):
            return NO_VALUE
        if not second.locks and not second.site.flags & Flag.GUARD:
            return NO_VALUE        # no benign pattern depends on it
        stored = self._sources.stored(second.site)
        return _lookup(frame, stored.id) if isinstance(stored, ast.Name) else NO_VALUE

    def _candidate_lockset(self, part: str, owner: Any, key: Any, *sides: ConflictSide) -> frozenset[int]:
        """Return the locks that all writes of the location hold, as far as conflicts report them."""
        location = (self._core.object_number(owner), part, safe_inspection.show(key))
        for side in sides:
            if side.kind in WRITES:
                self._locksets[location] = self._locksets.get(location, side.locks) & side.locks
        return self._locksets.get(location, frozenset())

    def _learn(self, classification: Classification, context: ConflictContext) -> None:
        """Remember the sites of acts that stored a different value over the first one: they are no memo."""
        first, second = context.first, context.second
        acts = first.kind == second.kind == AccessKind.WRITE and second.site.flags & Flag.GUARD
        if not acts or classification.kind is not RaceKind.CHECK_THEN_ACT or classification.severity is Severity.NOTE:
            return
        if not _stays(context):
            self._changed |= {first.number, second.number}

    def _name(self, part: str, owner: Any, key: Any, sites: tuple[SiteInfo, ...],
              frame: FrameType | None) -> VariableName:
        module = None if frame is None else frame.f_globals
        return self._naming.variable(part, owner, key, sites, module, _receiver(frame, sites[1]))

    def _place(self, side: ConflictSide, other: ConflictSide) -> Place:
        """Return the place that a side is counted at: for a read with a dependent or preceding write, that write's."""
        site = side.site
        if side.kind == AccessKind.READ and (writers := self._sites.writers(side.number)):
            site = self._sites[writers[0]]
        elif side.kind == AccessKind.READ and follows_act(side.number, other.number, self._sites):
            site = other.site
        return self._sources.path(site.path), site.line, site.function

    def _suppressed_sites(self, first: ConflictSide, second: ConflictSide) -> list[SiteInfo]:
        """Return the sites of the conflict with a `# race: ok` comment on their line."""
        sites = [first.site, second.site, *(self._sites[side.span] for side in (first, second) if side.span >= 0)]
        for side in (first, second):
            if side.kind == AccessKind.READ:
                sites += [self._sites[number] for number in self._sites.writers(side.number)]
        found = [site for site in sites if site.note is not None]
        for site in found:
            self._used[site.path, site.line] = None
        return found

    def _record(self, entry: RaceKey, name: VariableName, classification: Classification, severity: Severity,  # noqa: PLR0913 - the parts of one record
                *, sort: str, part: str, owner: Any, sides: tuple[ConflictSide, ConflictSide],
                accesses: tuple[RawAccess, RawAccess], suppressed: list[SiteInfo]) -> dict[str, Plain]:
        first, second = (self._access(side, access, other)
                         for side, access, other in zip(sides, accesses, reversed(sides), strict=True))
        return {
            "t": "race", "section": entry.section, "variable": name.text,
            "base": name.base, "owner": self._core.object_number(owner), "name": name.name, "item_key": name.item_key,
            "kind": entry.kind, "severity": severity.value,
            "rule": classification.rule, "sort": sort, "part": part,
            "remedy": self._remedy(entry.kind, owner, *sides),
            "places": [list(place) for place in entry.places], "first": first, "second": second,
            "reasons": [[self._sources.path(site.path), site.line, site.note or ""] for site in suppressed],
        }

    def _access(self, side: ConflictSide, access: RawAccess, other: ConflictSide) -> dict[str, Plain]:
        thread, started = self._describe_thread(side.thread)
        site = side.site
        place = (site.path, site.line, site.function)
        return {
            "thread": str.__str__(thread), "uid": side.thread, "verb": verb(side), "place": self._frame(place),
            "stack": [self._frame(frame) for frame in _own(self._core.stack(access[3]))],
            "started": [self._frame(frame) for frame in _own(started)],
            "locks": [self._locks.describe(uid) for uid in access[4]],
            "text": site.text, "op": site.op, "operator": site.operator,
            "column": site.column, "lines": list(self._lines(side, other)), "partner": self._partner(side, other),
        }

    def _partner(self, side: ConflictSide, other: ConflictSide) -> list[Plain] | None:
        """Return the place of the other half of the span: the read of a write, the write or use of a read."""
        if side.span >= 0 and side.span != side.number:
            return self._spot(side.span)
        if side.kind == AccessKind.READ:
            dependent = [*self._sites.writers(side.number), *self._tests_and_uses(side, other)]
            return next((self._spot(number) for number in dependent if number != side.number), None)
        return self._spot(side.site.partners[0]) if side.site.partners else None

    def _tests_and_uses(self, side: ConflictSide, other: ConflictSide) -> tuple[int, ...]:
        if side.kind != AccessKind.READ:
            return ()
        return tests_and_uses(side.number, other, self._sites, self._sources)

    def _lines(self, side: ConflictSide, other: ConflictSide) -> tuple[int, int]:
        """Return the lines from the first read or test of the side's function to the last act that depends on it."""
        acts = self._acts(side, other)
        numbers = acts | {partner for number in acts for partner in self._sites[number].partners} | {side.span} - {-1}
        numbers |= set(self._tests_and_uses(side, other))
        # A read that follows the act sees what one lock over test and act leaves behind.
        if side.kind != AccessKind.READ or not follows_act(side.number, other.number, self._sites):
            numbers.add(side.number)
        sites = [site for number in numbers if (site := self._sites[number]).path == side.site.path
                 and site.function == side.site.function]
        # What the test guards beside the act may use what the act stored, which has to be complete by then.
        blocks = [self._sources.block_end(test, act) for act in sites for test in sites
                  if act.flags & Flag.GUARD and test is not act]
        return min(site.line for site in sites), max([site.line for site in sites] + blocks)

    def _remedy(self, kind: str, owner: Any, first: ConflictSide, second: ConflictSide) -> str | None:
        """Return the atomic step that can replace each check and its act, None if there is none or they differ."""
        if first.site.text == LOOP_CALLBACKS:
            return Remedy.THREADSAFE.value
        if kind != RaceKind.CHECK_THEN_ACT:
            return None
        for side, other in ((first, second), (second, first)):
            if self._tests_and_uses(side, other):
                return self._remedy_of_use(owner, other).value
        acts = [self._sites[number] for number in self._acts(first, second) | self._acts(second, first)]
        found = {_remedy_of(act, owner, self._sources) for act in acts if act.flags & Flag.GUARD}
        remedy = found.pop() if len(found) == 1 else None
        return None if remedy is None else remedy.value

    @staticmethod
    def _remedy_of_use(owner: Any, removal: ConflictSide) -> Remedy:
        """Return what can replace the test and the use of an item that another thread removes, or of a variable."""
        if removal.kind not in REMOVALS and not removal.site.flags & Flag.DELETE:
            return Remedy.LOCAL
        if issubclass(type(owner), dict) and not is_module_dict(owner):
            return Remedy.GET
        return Remedy.INDEX_ERROR if removal.kind in REMOVALS else Remedy.LOCAL

    def _acts(self, side: ConflictSide, other: ConflictSide) -> set[int]:
        """Return the numbers of the writes that the side is part of."""
        if side.kind != AccessKind.READ:
            return {side.number}
        if follows_act(side.number, other.number, self._sites):
            return {other.number}
        return set(self._sites.writers(side.number))

    def _spot(self, number: int) -> list[Plain]:
        site = self._sites[number]
        path = self._sources.path(site.path)
        return [path, site.line, site.column, site.op, self._sources.line(path, site.line)]

    def _frame(self, place: Place) -> list[Plain]:
        path, line, function = place
        return [self._sources.path(path), line, function, self._sources.line(path, line)]


def _own(places: tuple[Place, ...]) -> tuple[Place, ...]:
    """Return the places, innermost first, without the frames of runpy that `-m` starts a program with."""
    begun = [number for number, (path, _, function) in enumerate(places) if (path, function) == BEGINS]
    own = begun[-1] if begun else len(places)
    while own and places[own - 1][0] == RUNPY:
        own -= 1
    return places[:own]


def _stays(context: ConflictContext) -> bool:
    """Return True if the store changes nothing, or the values are unknown."""
    unknown = context.value is NO_VALUE or older_than_both(context)
    return unknown or safe_inspection.same(context.value, context.present)


# What an act raises if its check was outdated, by the class of the container and the method.
ERRORS_OF_ACTS = {
    **dict.fromkeys([("list", "pop"), ("deque", "pop"), ("deque", "popleft")], Remedy.INDEX_ERROR),
    **dict.fromkeys([("list", "remove"), ("deque", "remove")], Remedy.VALUE_ERROR),
    **dict.fromkeys([("set", "pop"), ("set", "remove"), ("dict", "popitem")], Remedy.KEY_ERROR),
    **dict.fromkeys([("Queue", "get"), ("Queue", "get_nowait")], Remedy.EMPTY),
    **dict.fromkeys([("Queue", "put"), ("Queue", "put_nowait")], Remedy.FULL),
}


def _remedy_of(act: SiteInfo, owner: Any, sources: SourceFiles) -> Remedy | None:
    """Return the atomic step that can replace an act on a container and its check, or None."""
    bases = [base.__name__ for base in safe_inspection.mro(type(owner))]
    if "dict" in bases and not is_module_dict(owner):
        if act.flags & Flag.DELETE or (act.op, act.key) == ("method", "pop"):
            return Remedy.POP
        if act.op == "item_write" and sources.stores_default(act) and sources.asks_for_key(act):
            return Remedy.SETDEFAULT
    return next((ERRORS_OF_ACTS[base, act.key] for base in bases
                 if act.op == "method" and (base, act.key) in ERRORS_OF_ACTS), None)


VERBS = {
    AccessKind.READ: "read", AccessKind.WRITE: "write", AccessKind.ATOMIC: "write", AccessKind.SIZE: "read",
    AccessKind.ITERATE: "iterate", AccessKind.GROW: "insert", AccessKind.SHRINK: "remove",
    AccessKind.RESHAPE: "rewrite",
}


def verb(side: ConflictSide) -> str:
    """Return the verb that a report uses for the access."""
    if side.site.flags & Flag.DELETE and side.kind in WRITES:
        return "delete"
    if side.kind in WRITES - {AccessKind.WRITE} and side.site.op == "method":
        return str(side.site.key)
    return VERBS[side.kind]


def _makes_keys(cls: type) -> bool:
    """Return True if reading a missing key creates it: defaultdict, Counter."""
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
    """Return the present value of the location, read without running code of the program, or NO_VALUE."""
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
        except IndexError:      # another thread has shortened the list
            return NO_VALUE
    return NO_VALUE


def _lookup(frame: FrameType, name: str) -> Any:
    """Return the value of a variable of a frame of the current thread, or NO_VALUE."""
    if frame.f_code.co_flags & OPTIMIZED and name in frame.f_locals:     # in a class body f_locals may run user code
        return frame.f_locals[name]
    return frame.f_globals.get(name, NO_VALUE)


def _receiver(frame: FrameType | None, site: SiteInfo) -> Any:
    """Return the object whose getter or setter a site calls: `pool` of `pool.size`; NO_VALUE if that is not known."""
    if frame is None or site.op not in {"reads", "writes"}:
        return NO_VALUE
    name, *parts = site.text.split(".")[:-1] or [""]
    found = _lookup(frame, name)
    for part in parts:
        found = NO_VALUE if found is NO_VALUE else safe_inspection.attribute(found, part)
    return found


def suppressed_sites() -> list[tuple[str, int, str]]:
    """Return path, line and reason of every `# race: ok` comment in loaded modules."""
    return sorted({(site.path, site.line, site.note) for site in list(all_sites) if site.note is not None})
