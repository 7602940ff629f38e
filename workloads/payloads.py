"""Make the payloads of tasks, for the sizes and for `--task-length`.

A small run is 4 tasks of about 30 ms on CPython 3.13 at 3 GHz, a medium one 16 of them, a large one 64 of 50
ms.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from gilscope.workloads import server_pages

if TYPE_CHECKING:
    from collections.abc import Callable

    from gilscope.workloads.base import Maker, Payload, Size

TASKS: dict[Size, int] = {"small": 4, "medium": 16, "large": 64}
MANY_TASKS: dict[Size, int] = {"small": 1000, "medium": 4000, "large": 16000}
# Each task of bulk size keeps its data in memory at the same time as all others of the run.
BULK_TASKS: dict[Size, int] = {"small": 4, "medium": 8, "large": 16}
HUGE_TASKS: dict[Size, int] = {"small": 2, "medium": 4, "large": 8}


def task_count(size: Size, workers: int = 1, tasks: dict[Size, int] = TASKS) -> int:
    """Return the number of tasks in a pass for up to `workers` workers.

    With more workers than tasks some would be idle, so the tasks of a size are multiplied until there is one for each,
    except huge ones, which would exhaust the memory.
    """
    if tasks is HUGE_TASKS:
        return tasks[size]
    return -(-max(workers, tasks[size]) // tasks[size]) * tasks[size]


def amount_for(size: Size, amount: int) -> int:
    """Return the units of work in one task of `size` where a small one has `amount`."""
    return amount * 5 // 3 if size == "large" else amount


def equal_tasks(units: Callable[[int], Payload], amount: int, tasks: dict[Size, int] = TASKS) -> Maker:
    """Return a maker of equal payloads of `amount` units, each from a call of its own to `units`."""
    def make(size: Size, workers: int = 1) -> list[Payload]:
        return [units(amount_for(size, amount)) for _ in range(task_count(size, workers, tasks))]
    return make


def numbered_tasks(payload: Callable[[int], Payload], tasks: dict[Size, int] = TASKS) -> Maker:
    """Return a maker of payloads that differ: `payload(0)`, `payload(1)` and so on."""
    def make(size: Size, workers: int = 1) -> list[Payload]:
        return [payload(index) for index in range(task_count(size, workers, tasks))]
    return make


def multiples(step: int) -> Callable[[int], int]:
    """Return `units` for a task whose payload is a number and whose unit is `step` of it."""
    def units(count: int) -> int:
        return count * step
    return units


# --- cpu

PRIMES_FROM = 1_000_000     # from here on, a range twice as wide is twice the work
PRIMES_WIDTH = 11_000


def primes(size: Size, workers: int = 1) -> list[tuple[int, int]]:
    """Return adjacent ranges from `PRIMES_FROM` on."""
    return [prime_range(size, index) for index in range(task_count(size, workers))]


def prime_range(size: Size, index: int) -> tuple[int, int]:
    """Return the range of task `index`."""
    width = amount_for(size, PRIMES_WIDTH)
    return PRIMES_FROM + index * width, PRIMES_FROM + (index + 1) * width


def prime_units(count: int) -> tuple[int, int]:
    """Return a range of 20 numbers a unit."""
    return PRIMES_FROM, PRIMES_FROM + 20 * count


# --- native

@cache
def pattern(length: int) -> bytes:
    """Return the repeated bytes 0 to 255, the same object for the same length.

    They are not zeros, as untouched zero memory is a single physical page: a 4 MiB message would be a 4 KiB one.
    """
    return (bytes(range(256)) * (length // 256 + 1))[:length]


def shared_message(length: int, times: int = 1) -> Callable[[int], tuple[bytes, int]]:
    """Return `units` whose payloads all hold the same bytes object; a unit hashes it `times`."""
    def units(count: int) -> tuple[bytes, int]:
        return pattern(length), count * times
    return units


def own_message(length: int, times: int = 1) -> Callable[[int], tuple[bytes, int]]:
    """Return `units` like `shared_message`, but each payload has its own copy of the bytes."""
    def units(count: int) -> tuple[bytes, int]:
        return bytes(bytearray(pattern(length))), count * times
    return units


@cache
def text() -> bytes:
    """Return 8 KiB that compress about as well as prose: words with numbers between them."""
    parts, state = [], 1
    for _ in range(1500):
        state = (state * 1103515245 + 12345) % 2**31  # the C standard's example of a generator
        parts.append(f"{server_pages.words(state >> 16, 1)[0]} {state >> 20}")
    return " ".join(parts).encode("ascii")[:8192]


def text_units(count: int) -> tuple[bytes, int]:
    """Return the text and the number of times to compress it."""
    return text(), count


# --- io and mixed

FILE_BYTES = 256 * 1024
PAGE_WORDS = 150            # 1.3 KB: a small page
ARTICLE_WORDS = 3000        # 26 KB: parsing takes 3 ms, fetching 5 ms


def sleep_units(count: int) -> float:
    """Return a sleep of 0.1 ms a unit."""
    return count * 1e-4


def file_units(count: int) -> tuple[str, int, int, bool]:
    """Return `count` files in the system's temporary directory, left to its cache: no fsync."""
    from tempfile import gettempdir  # imports shutil and random, which listing workloads does not need

    return gettempdir(), FILE_BYTES, count, False


def page_numbers(size: Size, index: int, pages_per_task: int) -> range:
    """Return the numbers of the pages that task `index` fetches; no two tasks fetch the same."""
    count = amount_for(size, pages_per_task)
    return range(index * count, (index + 1) * count)


def page_paths(pages_per_task: int, words: int) -> Maker:
    """Return a maker of tuples of paths, each page with `words` words."""
    def make(size: Size, workers: int = 1) -> list[tuple[str, ...]]:
        return [
            tuple(server_pages.path(number, words) for number in page_numbers(size, index, pages_per_task))
            for index in range(task_count(size, workers))
        ]
    return make


# --- transfer: each payload is an object of its own, as a pickle of several would contain a shared one only once

def numbered_bytes(length: int) -> Callable[[int], bytes]:
    """Return payloads of `length` bytes of pattern whose first byte is the task's number."""
    def payload(index: int) -> bytes:
        return bytes((index % 256,)) + pattern(length)[1:]
    return payload


def numbered_buffer(length: int) -> Callable[[int], bytearray]:
    """Return payloads like `numbered_bytes`, writable."""
    def payload(index: int) -> bytearray:
        return bytearray(numbered_bytes(length)(index))
    return payload


LIST_LENGTH = 1_000_000
TREE_WIDTH, TREE_DEPTH = 8, 5

type Tree = dict[str, Tree | int]


def numbered_list(index: int) -> list[int]:
    """Return a million consecutive integers, beginning with the task's number."""
    return list(range(index, index + LIST_LENGTH))


def numbered_tree(index: int) -> Tree:
    """Return dicts in dicts, 8 entries each and 5 deep, whose 32768 leaves count up from the task's number."""
    return _tree(TREE_DEPTH, index)


def _tree(depth: int, first: int) -> Tree:
    leaves = TREE_WIDTH ** (depth - 1)
    return {
        f"key{branch}": first + branch if depth == 1 else _tree(depth - 1, first + branch * leaves)
        for branch in range(TREE_WIDTH)
    }
