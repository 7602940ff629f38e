"""The sentences of a report: the pattern, the missing lock, the repair."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gilscope.toolkit.race.site import RaceKind
from gilscope.toolkit.units import inflect

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gilscope.toolkit.race.report.model import Access, Race

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
ALTERNATIVES = {
    "item": "Use one atomic step (`dict.setdefault`, `dict.pop(key, None)`), or hold",
    "structure": "Act and catch the failure (IndexError, KeyError, queue.Empty), use queue.Queue, or hold",
}
Holders = dict[tuple[str, int], frozenset[str]]     # place -> names of the locks held there each time


def where(path: str, line: int) -> str:
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
            return f"{_checked(first, second)} may no longer hold when the act that it decides on is done."
        case RaceKind.TORN_WRITE:
            return "The write takes several steps: the other thread can come between them and see or leave a mixture."
        case RaceKind.ITERATION:
            return "The loop goes over what the other thread changes: it skips, repeats or raises RuntimeError."
        case _ if part == "iterator":
            return "Both advance one iterator of Python code: a step done twice, or `generator already executing`."
        case _:
            return "What the one reads or leaves behind depends on which thread comes first."


def _lost(first: Access, second: Access) -> str:
    augmented = next((side for side in (first, second) if side.augmented), None)
    if augmented is not None:
        operator = _operator(augmented.place.source)
        return f"`{operator}` reads, computes, writes: a write of the other thread in between is lost."
    split = next((side for side in (first, second) if side.partner is not None), None)
    if split is not None and split.partner is not None and split.partner.line != split.place.line:
        lines = sorted((split.partner.line, split.place.line))
        return f"The value read in line {lines[0]} is written back in line {lines[1]}: a write in between is lost."
    return "The write depends on an earlier read: a write of the other thread in between is lost."


def _operator(source: str) -> str:
    found = [sign for sign in ("**=", "//=", ">>=", "<<=", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", "@=")
             if sign in source]
    return found[0] if found else "+="


def _checked(first: Access, second: Access) -> str:
    for side in (first, second):
        spot = side.partner if side.verb != "read" else side.pause
        if spot is not None:
            return f"What line {spot.line} of {os.path.basename(spot.path)} found"
    return "What was found"


def holders(accesses: Iterable[Access]) -> Holders:
    """Return the places of conflicting accesses to a variable, each with its lockset: the locks held every time."""
    found: Holders = {}
    for access in accesses:
        place = (access.place.path, access.place.line)
        names = frozenset(lock.name for lock in access.locks)
        found[place] = found.get(place, names) & names
    return found


def missing_lock(found: Holders, first: Access, second: Access) -> tuple[str, str | None]:
    """Return the sentence on locks, and the name of the lock to hold at both places, or None."""
    both = {lock.name for lock in first.locks} & {lock.name for lock in second.locks}
    shared = {lock.uid for lock in first.locks} & {lock.uid for lock in second.locks}
    if shared:
        name = next(lock.name for lock in first.locks if lock.uid in shared)
        return f"Both hold {name}, but let go of it between the steps.", name
    if both:
        name = min(both)
        return f"Both hold a lock named {name}, but not the same one: each guards against itself alone.", name
    here = {lock.name for side in (first, second) for lock in side.locks}
    candidates = sorted({name for held in found.values() for name in held} | here)
    if not candidates:
        return f"No lock is held at {'the place' if len(found) == 1 else f'any of the {len(found)} places'}.", None
    best = max(candidates, key=lambda name: (sum(name in held for held in found.values()), name in here))
    return _majority(found, best), best


def _majority(found: Holders, name: str) -> str:
    without = [where(*place) for place, held in sorted(found.items()) if name not in held]
    with_it = len(found) - len(without)
    holds, does = inflect(with_it, "holds", "hold"), inflect(len(without), "does", "do")
    rest = f"; {_joined(without)} {does} not" if without else ""
    return f"{with_it} of {len(found)} places {holds} {name}{rest}."


def _joined(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + (" and " if len(words) > 1 else "") + words[-1] if words else "none"


def repair(  # noqa: PLR0911 - a sentence for each kind
    kind: RaceKind, part: str, first: Access, second: Access, lock: str | None, *, updated: bool = False,
) -> str:
    """Return the sentence on the repair, in terms of these places.

    Args:
        kind: The kind of the race.
        part: The part of a container that both access.
        first: One side.
        second: The other side.
        lock: The lock to hold; None: there is none yet.
        updated: True if updates of the same variable are lost, too: an atomic step for the check does not repair them.
    """
    name = lock or "one lock"
    lacking = _places([side for side in (first, second) if lock not in {held.name for held in side.locks}])
    places = _places((first, second))
    if kind == RaceKind.CHECK_THEN_ACT and part == "item" and (updated or first.augmented or second.augmented):
        return (f"Hold {name} around the check, the act and the update of the value: {places}. `dict.setdefault` would "
                "repair only the check.")
    if kind == RaceKind.CHECK_THEN_ACT:
        return f"{ALTERNATIVES.get(part, 'Hold')} {name} around the check and the act together: {places}."
    if kind == RaceKind.LOST_UPDATE:
        return f"Hold {name} from the read to the write{f' in {lacking}, too' if lock and lacking else f': {places}'}."
    if kind == RaceKind.ITERATION:
        return f"Loop over a copy made under {name} (`list(...)`), and hold {name} for the change, too: {places}."
    if kind == RaceKind.TORN_WRITE:
        return f"Hold {name} around all steps of the write and around the other access: {places}."
    if part == "iterator":
        return f"Give each thread its own iterator, hand items out through queue.Queue, or hold {name} around `next`."
    also = f" in {lacking}, too" if lock and lacking else f" for both accesses: {places}"
    return f"Hold {name}{also}, or hand the value over through queue.Queue, Event or join."


def repair_of_all(races: Sequence[Race]) -> str:
    """Return the sentence that repairs all these races on one variable."""
    repairs = list(dict.fromkeys(race.repair for race in races))
    kinds = {race.kind for race in races}
    if len(repairs) == 1 or not kinds <= {RaceKind.CHECK_THEN_ACT, RaceKind.LOST_UPDATE, RaceKind.UNSYNCHRONISED}:
        return " ".join(repairs)
    sides = [side for race in races for side in (race.first, race.second)]
    _, lock = missing_lock(holders(sides), races[0].first, races[0].second)
    places = sorted({(os.path.basename(path), line) for side in sides for path, line in [
        (side.place.path, side.place.line), *([(side.partner.path, side.partner.line)] if side.partner else [])]})
    files: dict[str, list[str]] = {}
    for file, line in places:
        files.setdefault(file, []).append(str(line))
    return (f"Hold {lock or 'one lock'} at all of these places, from each read to the write that depends on it: "
            f"{_joined([f'{file}:{_joined(lines)}' for file, lines in files.items()])}.")


def _places(sides: Sequence[Access]) -> str:
    return _joined(list(dict.fromkeys(where(side.place.path, side.place.line) for side in sides)))


def unused(comments: Sequence[tuple[str, int]], entries: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence per suppression that matched nothing."""
    said = [f"{where(*place)}: `# race: ok` suppresses nothing in this run" for place in comments]
    return (*said, *(f"{entry} suppresses nothing in this run" for entry in entries))


def unexplained(comments: Sequence[tuple[str, int]]) -> tuple[str, ...]:
    """Return a sentence per suppressing comment without a reason."""
    return tuple(f"{where(*place)}: `# race: ok` gives no reason; write why it is" for place in comments)
