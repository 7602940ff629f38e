"""The sentences of a report: the pattern, the missing lock, the repair."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from gilscope.toolkit.race.terms import GapReason, RaceKind, Remedy
from gilscope.toolkit.units import counted, inflect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.race.report.locksets import LockKey, Locksets
    from gilscope.toolkit.race.report.model import Access, CheckGap, Race, RaceReport

RULES = {
    "flag": "A flag is stored as a constant and tested: each is one step, and no store depends on a load.",
    "double-checked": "Double-checked locking: the test outside the lock is repeated inside it before the store.",
    "publication": "A reference is stored under a lock and loaded in one step: readers see the old one or the new.",
    "construction": "The constructor stored it before any other thread could reach the object.",
    "memo": "A memo: whoever comes second stores the value that is already there.",
    "tolerant": "The check is only a hint: the act that follows copes with its being out of date.",
    "presence": "The check asks for a key that nobody takes away: only what is stored under it changes.",
    "idempotent": "The check decides nothing but adding an element that is then there in any case.",
}
REMEDIES = {
    Remedy.SETDEFAULT: "Use `dict.setdefault` in place of check and store",
    Remedy.POP: "Use `dict.pop(key, None)` in place of check and removal",
    **{error: f"Act without the check and catch {error}" for error in (
        Remedy.INDEX_ERROR, Remedy.KEY_ERROR, Remedy.VALUE_ERROR)},
    Remedy.EMPTY: "Use `get_nowait` without the check and catch queue.Empty",
    Remedy.FULL: "Use `put_nowait` without the check and catch queue.Full",
}


def file_and_line(path: str, line: int) -> str:
    """Return a place as it is written in sentences."""
    return f"{os.path.basename(path)}:{line}"


def pattern(kind: RaceKind, sort: str, part: str, first: Access, second: Access, rule: str | None) -> str:
    """Return the sentence on what goes wrong, or on why nothing does."""
    if rule is not None:
        return RULES[rule]
    if sort == "order":
        return f"Neither is ordered before the other. {_course(kind, part, first, second)}"
    return f"Each step is fine by itself, together they are not. {_course(kind, part, first, second)}"


def _course(kind: RaceKind, part: str, first: Access, second: Access) -> str:
    match kind:
        case RaceKind.LOST_UPDATE:
            return _lost(first, second)
        case RaceKind.CHECK_THEN_ACT:
            return _checked(first, second)
        case RaceKind.TORN_WRITE:
            return "The write takes several steps: the other thread can come between them and see or leave a mixture."
        case RaceKind.ITERATION:
            return "The loop goes over what the other thread changes: it skips, repeats or raises RuntimeError."
        case _ if part == "iterator":
            return "Both advance one iterator of Python code: a step done twice, or `generator already executing`."
        case _:
            return "What the one reads or leaves behind depends on which thread comes first."


def _lost(first: Access, second: Access) -> str:
    if operator := first.operator or second.operator:
        return f"`{operator}` reads, computes, writes: another write in between is lost."
    split = next((side for side in (first, second) if side.partner is not None), None)
    if split is not None and split.partner is not None and split.partner.line != split.place.line:
        lines = sorted((split.partner.line, split.place.line))
        return f"The value read in line {lines[0]} is written back in line {lines[1]}: a write in between is lost."
    return "The write depends on an earlier read: another write in between is lost."


def _checked(first: Access, second: Access) -> str:
    for side in (second, first):
        if side.partner is not None:
            here, there = side.place.line, side.partner.line
            test, act = (here, there) if side.verb == "read" else (there, here)
            its_act = "its act" if test == act else f"the act in line {act}"
            return f"Another thread can change it between the test in line {test} and {its_act}."
    return "Another thread can change it between the test and its act."


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
        name = next(lock.name for lock in first.locks if lock.uid in shared)
        if unordered:     # by any lock: it is of an extension type
            return LockAdvice(f"Both hold {name} at the same time, so it excludes no other thread.", None)
        return LockAdvice(f"Both hold {name}, but release it between the steps.", name)
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
    return LockAdvice(_majority(found, best), best.name, tuple(side for side, held in here.items() if best not in held))


def _majority(found: Locksets, lock: LockKey) -> str:
    without = [file_and_line(*place) for place, held in sorted(found.held.items()) if lock not in held]
    with_it = len(found.held) - len(without)
    holds, does = inflect(with_it, "holds", "hold"), inflect(len(without), "does", "do")
    name = f"the same lock named {lock.name}" if lock.process else lock.name
    rest = f"; {_joined(without)} {does} not" if without else ""
    return f"{with_it} of {len(found.held)} places {holds} {name}{rest}."


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
        remedy: The atomic step that can replace check and act, if there is one.
    """
    held = lock.name or "one lock"
    if kind is RaceKind.ITERATION:
        where = line_ranges((first, second))
        return f"Loop over a copy made under {held} (`list(...)`), and hold {held} for the change, too: {where}."
    if part == "iterator":
        return f"Give each thread its own iterator, hand items out through queue.Queue, or hold {held} around `next`."
    # A lock that is held at one line may not be held over several.
    lacking = [side for side in (first, second) if side in lock.lacking or side.lines[0] != side.lines[1]]
    all_lines, lacking_lines = ({side.lines for side in sides} for sides in ((first, second), lacking))
    too = ", too" if lock.name and len(lacking_lines) < len(all_lines) else ""
    over = f"old {held} over {line_ranges(lacking or (first, second))}{too}{_reentrant((first, second), lock.name)}"
    if kind is RaceKind.CHECK_THEN_ACT and remedy is not None:
        return f"{REMEDIES[remedy]}, or h{over}."
    if kind is RaceKind.UNSYNCHRONISED:
        return f"H{over}, or pass the value on through queue.Queue, Event or join."
    return f"H{over}."


def _reentrant(sides: Sequence[Access], name: str | None) -> str:
    """Return that the lock has to be an RLock, if code that is called from lines to lock takes it, too; else ""."""
    callers = [side.stack for side in sides if side.locks or name is None]
    called_from = {(frame.path, frame.line) for stack in callers for frame in stack}
    inside = any(side.place.path == path and side.lines[0] <= line <= side.lines[1]
                 for side in sides for path, line in called_from)
    return " (an RLock: these lines call each other)" if inside else ""


def repair_of_all(races: Sequence[Race]) -> str:
    """Return the sentence that repairs all these races on one variable."""
    repairs = list(dict.fromkeys(race.repair for race in races))
    kinds = {race.kind for race in races}
    if len(repairs) == 1 or not kinds <= {RaceKind.CHECK_THEN_ACT, RaceKind.LOST_UPDATE, RaceKind.UNSYNCHRONISED}:
        return " ".join(repairs)
    sides = [side for race in races for side in (race.first, race.second)]
    names = [lock.name for race in races for side in (race.first, race.second) for lock in side.locks
             if lock.name not in _namesakes(race)]
    lock = max(names, key=names.count, default=None)   # the one that most accesses hold already
    return f"Hold {lock or 'one lock'} over {line_ranges(sides)}{_reentrant(sides, lock)}."


def _namesakes(race: Race) -> set[str]:
    """Return the names of locks that both sides hold, each another one."""
    first, second = ({lock.uid: lock.name for lock in side.locks} for side in (race.first, race.second))
    return {*first.values()} & {*second.values()} if not first.keys() & second.keys() else set()


def line_ranges(sides: Sequence[Access]) -> str:
    """Return the lines of these accesses, each from its first read or test to its last act: "bank.py:9 and 14-16"."""
    files: dict[str, set[tuple[int, int]]] = {}
    for side in sides:
        files.setdefault(os.path.basename(side.place.path), set()).add(side.lines)
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
            return (f"{found.process}: races may be missing: another tool replaced the hook that reports which objects "
                    f"die, so accesses to {counted(found.count, 'object')} were forgotten")
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


def unexplained(comments: Sequence[tuple[str, int]]) -> tuple[str, ...]:
    """Return a sentence per suppressing comment without a reason."""
    return tuple(f"{file_and_line(*place)}: `# race: ok` gives no reason; write why it is" for place in comments)
