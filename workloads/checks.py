"""Check the results of tasks: one check for each workload, raising WrongResult with expected and actual values.

Expected values are worked out another way than the task does it, or are constants with their source.
"""

from __future__ import annotations

import zlib
from collections import Counter
from functools import cache
from math import isqrt
from typing import TYPE_CHECKING

from gilscope.workloads import payloads, server_pages
from gilscope.workloads.base import Check, Result, Size, WrongResult
from gilscope.workloads.payloads import TASKS, amount_for, task_count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# sha256sum (GNU coreutils 9.1) of the repeated bytes 0 to 255, cut to that length.
DIGESTS = {
    64: "fdeab9acf3710362bd2658cdc9a29e8f9c757fcf9811603a8c447cd1d9151108",
    64 * 1024: "7daca2095d0438260fa849183dfc67faa459fdf4936e1bc91eec6b281b27e4c2",
    4 * 1024 * 1024: "2b07811057df887086f06a67edc6ebf911de8b6741156e7a2eb1416a4b8b1b2e",
}

# Energies after that many steps, to nine digits, from a run of this code on CPython 3.13; after 1000 steps it
# gives the value that the Benchmarks Game prints (tests/test_workloads.py).
ENERGIES = {6000: -0.169064514, 10000: -0.169016441}

# Bounded places among that many, from a run of this code on CPython 3.13; the area they stand for is the
# known one (tests/test_workloads.py).
BOUNDED = {9000: 2239, 15000: 3719}


def same_for_all(expected: Callable[[Size], Result], tasks: dict[Size, int] = TASKS) -> Check:
    """Return a check that every task returned `expected(size)`."""
    def check(size: Size, results: Sequence[Result], workers: int = 1) -> None:
        _compare([expected(size)] * task_count(size, workers, tasks), results)
    return check


def numbered(expected: Callable[[Size, int], Result], tasks: dict[Size, int] = TASKS) -> Check:
    """Return a check that task 0 returned `expected(size, 0)`, task 1 `expected(size, 1)` and so on."""
    def check(size: Size, results: Sequence[Result], workers: int = 1) -> None:
        _compare([expected(size, index) for index in range(task_count(size, workers, tasks))], results)
    return check


def _compare(expected: Sequence[Result], results: Sequence[Result]) -> None:
    _compare_lengths(expected, results)
    for index, (wanted, got) in enumerate(zip(expected, results, strict=True)):
        # True == 1 and 1.0 == 1, but a result of another type is wrong.
        if type(got) is not type(wanted) or got != wanted:
            raise WrongResult(f"task {index}: expected {wanted!r:.200}, got {got!r:.200}")


def _compare_lengths(expected: Sequence[object], results: Sequence[Result]) -> None:
    if len(results) != len(expected):
        raise WrongResult(f"expected {len(expected)} results, got {len(results)}")


def shared_counter(steps: int) -> Check:
    """Return a check that no addition to the shared counter was lost, in any interleaving of the tasks."""
    def check(size: Size, results: Sequence[Result], workers: int = 1) -> None:
        tasks = task_count(size, workers)
        _compare_lengths([None] * tasks, results)
        per_task = amount_for(size, steps)
        for index, result in enumerate(results):
            match result:
                case (int(before), int(after)):
                    pass
                case _:
                    raise WrongResult(f"task {index}: expected two counts, got {result!r:.200}")
            if after - before < per_task:
                raise WrongResult(f"task {index}: expected to see at least {per_task} additions, got {after - before}")
        expected = per_task * tasks
        got = max(after for _, after in results) - min(before for before, _ in results)
        if got != expected:
            raise WrongResult(f"expected {expected} additions to the shared counter, got {got}")
    return check


def energy(steps: int) -> Check:
    """Return a check of the energy to nine digits: the last one may depend on the C library's pow()."""
    def check(size: Size, results: Sequence[Result], workers: int = 1) -> None:
        expected = ENERGIES[amount_for(size, steps)]
        rounded = [round(result, 9) if isinstance(result, float) else result for result in results]
        _compare([expected] * task_count(size, workers), rounded)
    return check


# --- expected values

def prime_count(size: Size, index: int) -> int:
    """Count the primes that task `index` must find, by a sieve of its range."""
    return _primes_between(*payloads.prime_range(size, index))


@cache
def _primes_between(start: int, stop: int) -> int:
    is_prime = bytearray(b"\x01") * (stop - start)
    for number in range(2, isqrt(stop) + 1):
        # Multiples of composite numbers are crossed out again: testing for primality would take longer.
        first = max(number * number, -(-start // number) * number)
        is_prime[first - start::number] = bytes(len(range(first, stop, number)))
    return is_prime.count(1)


def served_milliseconds(rounds: int) -> int:
    """Return the sum over log lines 0 to 15 that were served, that is whose number 4 does not divide."""
    return rounds * sum(line for line in range(16) if line % 4)


def sorted_sum(blocks: int) -> int:
    """Return the sum of rank times key when every table of 127 rows ends in order: 0 * 0 + 1 * 1 + ..."""
    return blocks * (126 * 127 * 253 // 6)


def roots_sum(passes: int) -> int:
    """Return the sum of 0 to 16383, each increased by `passes`."""
    return 16383 * 16384 // 2 + 16384 * passes


def product_sum() -> int:
    """Return the sum over both products: for every k, the sum of column k on the left times row k on the right."""
    total = 0
    for first in (0, 4096):
        for k in range(64):
            column = sum((first + row * 64 + k) % 7 for row in range(64))
            total += column * sum((first + k * 64 + column_ahead) % 5 for column_ahead in range(64))
    return total


def text_crc() -> int:
    """Return the CRC-32 of the text before it was compressed."""
    return zlib.crc32(payloads.text())


def echoed_bytes(requests: int) -> int:
    """Return the length of messages of 1, 2, ... 64, 1, 2, ... bytes together."""
    return sum(request % 64 + 1 for request in range(requests))


def pages_crc(pages_per_task: int) -> Callable[[Size, int], int]:
    """Return the CRC-32 that a task's pages must have, from pages made here instead of fetched."""
    def expected(size: Size, index: int) -> int:
        numbers = payloads.page_numbers(size, index, pages_per_task)
        return zlib.crc32(b"".join(server_pages.page(number, payloads.PAGE_WORDS) for number in numbers))
    return expected


def article_words(pages_per_task: int) -> Callable[[Size, int], dict[str, int]]:
    """Count each word in a task's pages, before they became HTML."""
    def expected(size: Size, index: int) -> dict[str, int]:
        numbers = payloads.page_numbers(size, index, pages_per_task)
        return dict(Counter(word for number in numbers for word in server_pages.words(number, payloads.ARTICLE_WORDS)))
    return expected


def sampled_bytes(length: int) -> Callable[[Size, int], tuple[int, int]]:
    """Return the expected sample of task `index`'s bytes: the first is its number, the others their position."""
    def expected(_size: Size, index: int) -> tuple[int, int]:
        stride = max(1, length // 61)
        return length, index % 256 + sum(stride * step % 256 for step in range(1, 61))
    return expected


def sampled_list(_size: Size, index: int) -> tuple[int, int]:
    """Return the sample of a million integers from the task's number on."""
    stride = payloads.LIST_LENGTH // 61
    return payloads.LIST_LENGTH, sum(index + stride * step for step in range(61))


def sampled_tree(_size: Size, index: int) -> tuple[int, int]:
    """Return the number of leaves and the last of them."""
    leaves = payloads.TREE_WIDTH ** payloads.TREE_DEPTH
    return leaves, index + leaves - 1
