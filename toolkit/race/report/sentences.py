"""The sentences of a report: the pattern, the missing lock, the repair.

They name places by the paths that their accesses have: `for_readers` makes those short.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from gilscope.toolkit.own_files import known_as, library_of
from gilscope.toolkit.race.report.locksets import is_own
from gilscope.toolkit.race.report.settings import relative
from gilscope.toolkit.race.terms import GapReason, RaceKind, Remedy
from gilscope.toolkit.units import counted, few, inflect

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gilscope.toolkit.race.report.locksets import LockKey, Locksets
    from gilscope.toolkit.race.report.model import Access, CheckGap, Frame, Race, RaceReport, Spot

ONE_LOCK = "one lock"
RULES = {
    "flag": "A flag is stored as a constant and tested: each is one step, and no store depends on a load.",
    "owner": "Only its owner gives it back: what others store meanwhile changes no answer.",
    "counter": "A number that only grows is loaded in one step: readers see the old one or the new.",
    "double-checked": "Double-checked locking: the test outside the lock is repeated inside it before the store.",
    "publication": "A reference is stored and loaded in one step: readers see the old object or the new one.",
    "construction": "The constructor stored it before any other thread could reach the object.",
    "memo": "A memo: whoever comes second stores the value that is already there.",
    "tolerant": "The check is only a hint: the act that follows copes with its being out of date.",
    "presence": "The lookup asks for a key that nobody takes away, and the program copes if it is not there yet.",
    "idempotent": "The check decides nothing but adding an element that is then there in any case.",
}
REMEDIES = {
    Remedy.SETDEFAULT: "Use `dict.setdefault` in place of check and store",
    Remedy.POP: "Use `dict.pop(key, None)` in place of check and removal",
    **{error: f"Act without the check and catch {error}" for error in (
        Remedy.INDEX_ERROR, Remedy.KEY_ERROR, Remedy.VALUE_ERROR)},
    Remedy.THREADSAFE: "Call `loop.call_soon_threadsafe` or `asyncio.run_coroutine_threadsafe` from other threads",
    Remedy.GET: "Use `dict.get` once and test its result",
    Remedy.LOCAL: "Read it once into a local, and use only that",
    Remedy.ORDER: "Move {store} above the line that tells the other thread that it is there; no lock mends their order",
    Remedy.EMPTY: "Use `get_nowait` without the check and catch queue.Empty",
    Remedy.FULL: "Use `put_nowait` without the check and catch queue.Full",
}


def file_and_line(path: str, line: int) -> str:
    """Return a place as it is written in sentences."""
    return f"{path}:{line}"


def path_for_readers(path: str, root: str) -> str:
    """Return the path of a file relative to the root or to its folder of packages, else the whole path."""
    return known_as(relative(path, root))


def for_readers(side: Access, root: str) -> Access:
    """Return an access whose paths are those for readers."""
    def short[Place: (Frame, Spot)](place: Place) -> Place:
        return replace(place, path=path_for_readers(place.path, root))

    partner = side.partner and short(side.partner)
    return replace(side, place=short(side.place), partner=partner, stack=tuple(map(short, side.stack)))


def own_call(side: Access, root: str) -> Access:
    """Return an access in an installed package as the user's call that led to it; any other as it is."""
    if library_of(side.place.path, root):
        for number, frame in enumerate(side.stack):
            if not library_of(frame.path, root):
                # A lock that the package takes is not held where it is called.
                locks = [lock for lock in side.locks if lock.taken is None or not library_of(lock.taken.path, root)]
                return replace(side, place=frame, lines=(frame.line, frame.line), stack=side.stack[number + 1:],
                               locks=tuple(locks))
    return side


def pattern(kind: RaceKind, part: str, item_key: str, first: Access, second: Access) -> str:
    """Return the sentence on what goes wrong.

    Args:
        kind: The kind of the race.
        part: The part of an object that both access.
        item_key: The item as the source has it, or "".
        first: One side.
        second: The other side.
    """
    sides = (second, first)
    name = _Lines(one_file=first.place.path == second.place.path)
    match kind:
        case RaceKind.LOST_UPDATE:
            return _lost(sides, name)
        case RaceKind.CHECK_THEN_ACT:
            return _checked(sides, name, item_key)
        case RaceKind.TORN_WRITE:
            return _torn(sides, name)
        case RaceKind.ITERATION:
            return _iterated(sides, name, item_key)
        case _ if part == "iterator":
            return "Both advance one iterator of Python code: a step done twice, or `generator already executing`."
        case _:
            return _unordered(sides, name)


READS = ("read", "iterate")


class _Lines(NamedTuple):
    """The names of lines in a sentence: "line 17", or "bank.py:17" if it is about two files."""

    one_file: bool

    def of(self, place: Frame | Spot) -> str:
        return f"line {place.line}" if self.one_file else file_and_line(place.path, place.line)


def _act(side: Access, item_key: str) -> str:
    """Return the words for what an access that is no read does."""
    words = {
        "write": f"store {item_key}" if item_key else "set it",
        "delete": f"delete {item_key or 'it'}",
        "insert": "insert an item",
        "remove": "remove an item",
        "rewrite": "rewrite it",
    }
    return words.get(side.verb, f"call `{side.verb}`")


def _lost(sides: Sequence[Access], name: _Lines) -> str:
    if update := next((side for side in sides if side.operator), None):
        return (f"`{update.operator}` in {name.of(update.place)} reads, computes, writes: "
                "what another thread stores in between is lost.")
    for side in sides:
        if side.partner is not None and side.partner.line != side.place.line:
            read, written = (side.place, side.partner) if side.verb in READS else (side.partner, side.place)
            if side.verb == "clear":
                return f"What another thread adds between {name.of(read)} and {name.of(written)} is lost."
            return (f"The value read in {name.of(read)} is written back in {name.of(written)}: "
                    "what another thread stores in between is lost.")
    update = next((side for side in sides if side.partner is not None), sides[0])
    return (f"The write in {name.of(update.place)} depends on an earlier read: "
            "what another thread stores in between is lost.")


def _checked(sides: Sequence[Access], name: _Lines, item_key: str) -> str:
    for side, other in (sides, reversed(sides)):
        if side.partner is not None and other.verb not in READS:
            is_test = side.place.line < side.partner.line
            test, act = (side.place, side.partner) if is_test else (side.partner, side.place)
            where = (f"the test and the act of {name.of(test)}" if test.line == act.line
                     else f"{name.of(test)} and {name.of(act)}")
            return f"Another thread can {_act(other, item_key)} between {where}."
    return _unordered(sides, name)


def _torn(sides: Sequence[Access], name: _Lines) -> str:
    for side in sides:
        if side.verb not in READS and side.lines[0] != side.lines[1]:
            first, last = (name.of(replace(side.place, line=line)) for line in side.lines)
            return f"The write takes several steps, from {first} to {last}: another thread can see or leave a mixture."
    return "The write takes several steps: another thread can see or leave a mixture."


def _iterated(sides: Sequence[Access], name: _Lines, item_key: str) -> str:
    loop, change = sides if sides[0].verb in READS else reversed(sides)
    return (f"Another thread can {_act(change, item_key)} during the iteration in {name.of(loop.place)}, "
            "which may then skip or repeat items; that of a dict, set or deque raises RuntimeError.")


def _unordered(sides: Sequence[Access], name: _Lines) -> str:
    here, there = (f"the {side.verb} in {name.of(side.place)}" for side in sides)
    if here == there:
        return f"Two threads can come to {here} in either order."
    return f"T{here[1:]} can come before or after {there}: nothing orders them."


MOST_PLACES = 3      # that a sentence names


class LockAdvice(NamedTuple):
    """The sentence on the locks that were held, and which lock to hold."""

    sentence: str
    name: str | None                   # of the lock to hold at both places; None: none was held
    lacking: tuple[Access, ...] = ()   # the accesses that did not hold it


def missing_lock(
    found: Locksets, first: Access, second: Access, process: str, *, unordered: bool = False,
) -> LockAdvice:
    """Return a sentence about the locks at two accesses of one process, `unordered` or with a write in between."""
    both = {lock.name for lock in first.locks} & {lock.name for lock in second.locks}
    shared = {lock.uid for lock in first.locks} & {lock.uid for lock in second.locks}
    if shared:
        lock = next(lock for lock in first.locks if lock.uid in shared)
        if unordered:     # by any lock: it is of an extension type
            return LockAdvice(f"Both hold {lock.name} at the same time, so it excludes no other thread.", None)
        return LockAdvice(f"Both hold {lock.name}, but release it between the steps.",
                          lock.name if is_own(lock) else None)
    if both:
        # Either of them is held already: the repair is one lock in their place.
        return LockAdvice(
            f"Both hold a lock named {min(both)}, but not the same one, so neither excludes the other.", None)
    here = {side: found.keys(side, process) for side in (first, second)}
    candidates = sorted({key for held in (*found.held.values(), *here.values()) for key in held})
    places = len(found.held)
    if not candidates:
        return LockAdvice(f"No lock is held at {'the place' if places == 1 else f'any of the {places} places'}.", None)
    best = max(candidates, key=lambda key: (sum(key in held for held in found.held.values()),
                                            any(key in held for held in here.values())))
    lacking = tuple(side for side in (first, second) if best not in found.at(side, process))
    return LockAdvice(_majority(found, best), best.name, lacking)


def _majority(found: Locksets, lock: LockKey) -> str:
    lacking = [place for place, held in sorted(found.held.items()) if lock not in held]
    at_times = [file_and_line(*place) for place in lacking if lock in found.at_times[place]]
    without = [file_and_line(*place) for place in lacking if lock not in found.at_times[place]]
    with_it = len(found.held) - len(lacking)
    name = f"the same lock named {lock.name}" if lock.process else lock.name
    every = " every time" if at_times else ""
    rest = "".join(f"; {_places(places)} {inflect(len(places), 'does', 'do')} {how}"
                   for places, how in ((at_times, "at times"), (without, "not")) if places)
    return f"{with_it} of {len(found.held)} places {inflect(with_it, 'holds', 'hold')} {name}{every}{rest}."


def _places(names: Sequence[str]) -> str:
    return few(names) if len(names) > MOST_PLACES else _joined(names)


def _joined(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + (" and " if len(words) > 1 else "") + words[-1] if words else "none"


def repair(kind: RaceKind, part: str, first: Access, second: Access, lock: LockAdvice, remedy: Remedy | None) -> str:
    """Return the sentence on the repair, in terms of these places.

    Args:
        kind: The kind of the race.
        part: The part of a container that both access.
        first: One side.
        second: The other side.
        lock: The lock to hold, and the accesses that lack it.
        remedy: The atomic step that can replace check and act, or several reads, if there is one.
    """
    if remedy in (Remedy.THREADSAFE, Remedy.ORDER):
        store = (second if first.verb in READS else first).place
        return f"{REMEDIES[remedy].format(store=file_and_line(store.path, store.line))}."
    held = lock.name or ONE_LOCK
    if kind is RaceKind.ITERATION:
        return _over_a_copy(held, (first, second))
    if part == "iterator":
        return f"Give each thread its own iterator, hand items out through queue.Queue, or hold {held} around `next`."
    # A lock that is held at one line may not be held over several.
    lacking = [side for side in (first, second)
               if lock.name is None or side in lock.lacking or side.lines[0] != side.lines[1]]
    all_lines, lacking_lines = ({side.lines for side in sides} for sides in ((first, second), lacking))
    too = ", too" if lock.name and len(lacking_lines) < len(all_lines) else ""
    over = f"old {held} over {line_ranges(lacking or (first, second))}{too}{_reentrant((first, second), lock.name)}"
    if remedy is not None:
        return f"{REMEDIES[remedy]}, or h{over}."
    if kind is RaceKind.UNSYNCHRONISED:
        return f"H{over}, or pass the value on through queue.Queue, Event or join."
    return f"H{over}."


def _over_a_copy(lock: str, sides: Sequence[Access]) -> str:
    return (f"Loop over a copy made under {lock} (`list(...)`), and hold {lock} for the change, too: "
            f"{line_ranges(sides)}.")


def _reentrant(sides: Sequence[Access], name: str | None) -> str:
    """Return that the lock has to be an RLock, if code that is called from lines to lock takes it, too; else ""."""
    callers = [side.stack for side in sides if side.locks or name is None]
    called_from = {(frame.path, frame.line) for stack in callers for frame in stack}
    inside = any(side.place.path == path and side.lines[0] <= line <= side.lines[1]
                 for side in sides for path, line in called_from)
    return " (an RLock: these lines call each other)" if inside else ""


def repair_of_calls(sides: Sequence[Access], lock: LockAdvice) -> str:
    """Return the sentence on the repair of a race in an installed package, which its callers can make."""
    held = {each.name for side in sides for each in side.locks}
    return _hold(lock.name if lock.name in held else ONE_LOCK, sides)


def repair_of_all(races: Sequence[Race], root: str) -> str:
    """Return the sentences that repair all these races on one variable."""
    called = [_as_called(race, root) for race in races]
    loops = [race for race in called if race.kind is RaceKind.ITERATION]
    others = [race for race in called if race.kind is not RaceKind.ITERATION]
    return " ".join(filter(None, (_merged_repair(loops, _over_a_copy), _merged_repair(others, _hold))))


def _as_called(race: Race, root: str) -> Race:
    """Return a race with the places that its repair is about: calls of an installed package are no loops."""
    sides = [own_call(side, root) for side in (race.first, race.second)]
    kind = race.kind if sides == [race.first, race.second] else RaceKind.UNSYNCHRONISED
    first, second = (for_readers(side, root) for side in sides)
    return replace(race, kind=kind, first=first, second=second)


def _merged_repair(races: Sequence[Race], word: Callable[[str, Sequence[Access]], str]) -> str:
    """Return the repair of races of one sort: that of each if they agree, else one over all their lines."""
    repairs = list(dict.fromkeys(race.repair for race in races))
    if len(repairs) < 2:
        return "".join(repairs)
    sides = [side for race in races for side in (race.first, race.second)]
    namesakes = set().union(*map(_namesakes, races))     # to hold one of them would exclude nobody
    names = [lock.name for side in sides for lock in side.locks if lock.name not in namesakes and is_own(lock)]
    return word(max(names, key=names.count, default=ONE_LOCK), sides)   # the one that most accesses hold already


def _hold(lock: str, sides: Sequence[Access]) -> str:
    return f"Hold {lock} over {line_ranges(sides)}{_reentrant(sides, None if lock == ONE_LOCK else lock)}."


def _namesakes(race: Race) -> set[str]:
    """Return the names of locks that both sides hold, each another one."""
    first, second = ({lock.uid: lock.name for lock in side.locks} for side in (race.first, race.second))
    return {*first.values()} & {*second.values()} if not first.keys() & second.keys() else set()


def line_ranges(sides: Sequence[Access]) -> str:
    """Return the lines of these accesses, each from its first read or test to its last act: "bank.py:9 and 14-16"."""
    files: dict[str, set[tuple[int, int]]] = {}
    for side in sides:
        files.setdefault(side.place.path, set()).add(side.lines)
    return _joined([f"{file}:{_joined([_range(*lines) for lines in _merged(found)])}" for file, found in files.items()])


def _merged(ranges: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the ranges in order, those that overlap as one."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def lost_records(process: str) -> str:
    """Return the sentence on a process whose records are incomplete."""
    return (f"{process}: some or all records are lost: TMPDIR was full, too many files were open, or the program has "
            "changed the checker's files")


def gap(found: CheckGap) -> str:
    """Return the sentence on accesses that went unchecked."""
    match found.reason:
        case GapReason.DEATHS:
            return (f"{found.process}: races may be missing: tracemalloc or another tool replaced the hook that "
                    f"reports which objects die, so accesses to {counted(found.count, 'object')} were forgotten")
        case GapReason.THREADS:
            return (f"{found.process}: races may be missing: checking stopped when there were more than "
                    f"{found.count:,} threads at a time")


def limits(report: RaceReport) -> tuple[str, ...]:
    """Return the sentences on records and accesses that the report lacks."""
    return (*map(lost_records, report.lost), *map(gap, report.gaps))


def unused(comments: Sequence[tuple[str, int]], entries: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence per suppression that matched nothing."""
    said = [f"{file_and_line(*place)}: `# race: ok` suppresses nothing in this run" for place in comments]
    return (*said, *(f"{entry} suppresses nothing in this run" for entry in entries))


def unexplained(comments: Sequence[tuple[str, int]], variables: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence per suppressing comment without a reason, and one on the variables that nobody reviewed."""
    said = [f"{file_and_line(*place)}: `# race: ok` gives no reason; write why it is" for place in comments]
    if variables:
        said.append(f"suppressed but unreviewed: {few(variables)}; write why in pyproject.toml")
    return tuple(said)
