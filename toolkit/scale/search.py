"""Find the smallest set of suspects that, made immortal, gains most of what everything immortal gains.

Suspects come ranked, the likeliest first, in groups of one owner.  Which set gains how much only an experiment tells;
here it is a function, so that the search can be tested without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Oracle = Callable[[Sequence[int]], float]     # share of the gain of everything immortal that these objects have

ENOUGH = 0.75      # share of the gain that a set must keep
MOST_NEEDED = 6    # groups; with more, no small set exists
MOST_TESTS = 40    # of sets


class SearchLimitError(Exception):
    """No small set was found within the allowed number of tests."""


def smallest_set(groups: Sequence[Sequence[int]], share_of: Oracle, *, most: int = MOST_NEEDED) -> list[int] | None:
    """Return the places of the groups that are needed, in their order, or None if all together gain too little.

    Finds the smallest prefix of the ranking that is enough, whose last group is needed then, fixes that, and repeats:
    about two logarithms of the length in tests for each needed group.  Groups that turn out not to be needed, because
    the measurement erred on the way, are dropped in the end.

    Raises:
        SearchLimitError: More than `most` groups are needed, or too many tests.
    """
    tests = 0

    def enough(places: Sequence[int]) -> bool:
        nonlocal tests
        tests += 1
        if tests > MOST_TESTS:
            raise SearchLimitError
        return share_of([number for place in places for number in groups[place]]) >= ENOUGH

    pool = list(range(len(groups)))
    if not pool or not enough(pool):
        return None
    needed: list[int] = []
    while not needed or not enough(needed):
        if len(needed) == most or not pool:
            raise SearchLimitError
        last = _shortest_prefix(needed, pool, enough)
        needed.append(pool[last])
        pool = pool[:last]
    for place in needed[:-1]:
        without = [each for each in needed if each != place]
        if enough(without):
            needed = without
    return sorted(needed)


def _shortest_prefix(needed: Sequence[int], pool: Sequence[int], enough: Callable[[Sequence[int]], bool]) -> int:
    """Return the index of the last group of the shortest prefix of `pool` that is enough beside `needed`.

    The whole pool is known to be.  Doubles first, because the ranking puts the right ones in front.
    """
    short, long, step = 0, len(pool), 1
    while short + 1 < long:
        length = min(step, long - 1) if step > short else (short + long) // 2
        length = max(short + 1, length)
        step *= 2
        if enough([*needed, *pool[:length]]):
            long = length
        else:
            short = length
    return long - 1
