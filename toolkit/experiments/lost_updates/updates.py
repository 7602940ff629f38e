"""Adding 1 to one variable from several threads, in the ways people write it.

The experiment `lost-updates` runs these functions and counts the missing updates. The race checker runs this very
file as a script, `python updates.py VARIANT THREADS UPDATES`, so it is apart from the program and imports nothing of
ours.
"""

from __future__ import annotations

import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

total = 0


class TotalHolder:
    """An object with the total as its attribute."""

    total = 0


counter = TotalHolder()
totals = [0]
lock = threading.Lock()


def one() -> int:
    """Return 1, by a call of Python code."""
    return 1


def bare(count: int) -> None:
    """Add to a global without a call."""
    global total  # noqa: PLW0603 - the measured variable
    for _ in range(count):
        total += 1


def called(count: int) -> None:
    """Add the result of a Python function, which runs between reading and writing the total."""
    global total  # noqa: PLW0603 - the measured variable
    for _ in range(count):
        total += one()


def built_in(count: int) -> None:
    """Add the result of a type written in C."""
    global total  # noqa: PLW0603 - the measured variable
    for _ in range(count):
        total += int("1")


def attribute(count: int) -> None:
    """Add to an attribute without a call."""
    for _ in range(count):
        counter.total += 1


def item(count: int) -> None:
    """Add to a list's item without a call."""
    for _ in range(count):
        totals[0] += 1


def locked(count: int) -> None:
    """Add the result of a Python function while holding a lock: the repair."""
    global total  # noqa: PLW0603 - the measured variable
    for _ in range(count):
        with lock:
            total += one()


VARIANTS = {"bare": bare, "attribute": attribute, "item": item, "called": called, "built-in": built_in,
            "locked": locked}


def at_once(variant: Callable[[int], None], threads: int, updates: int) -> int:
    """Add 1 `updates` times in each of the threads, which begin together; return the growth of the total."""
    begin = threading.Barrier(threads)

    def add() -> None:
        begin.wait()
        variant(updates)

    before = _sum()
    workers = [threading.Thread(target=add) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return _sum() - before


def as_they_come(variant: Callable[[int], None], threads: int, updates: int) -> int:
    """Add as `at_once` does in threads that begin as they are started, one after the other, as the article's do."""
    before = _sum()
    workers = [threading.Thread(target=variant, args=(updates,)) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return _sum() - before


def _sum() -> int:
    return total + counter.total + totals[0]


if __name__ == "__main__":
    at_once(VARIANTS[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3]))
