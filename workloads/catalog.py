"""WORKLOADS: the explicit list of all workloads.  The tasks, their payloads and their checks live elsewhere.

Modules that a task imports stay out of here: the list can be read on any build with the standard library
alone.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gilscope.workloads import checks, contention, cpu, io, mixed, native, payloads, transfer
from gilscope.workloads.base import Payload, Shared, Size, Task, Workload
from gilscope.workloads.checks import numbered, same_for_all
from gilscope.workloads.payloads import amount_for, equal_tasks, multiples, numbered_tasks

if TYPE_CHECKING:
    from collections.abc import Callable

NUMPY = ("numpy>=2.3.2",)                       # the first with wheels for 3.14 and 3.14t; it has 3.12 and 3.13 too
HTTP = ("urllib3>=2.5", "aiohttp>=3.13")        # the first aiohttp for 3.14

# Units of work in a small task.
COUNTDOWN, MANDELBROT, NBODY, JSON, REGEX, SORT = 1000, 900, 6000, 2000, 4500, 1300
UFUNC, MATMUL, ZLIB = 1100, 1400, 330
SLEEP, FILES, ECHO, PAGES, ARTICLES = 250, 300, 700, 5, 3
COUNTER, DICT, LIST, ATTRIBUTE, REFCOUNT = 160_000, 300_000, 350_000, 350_000, 500_000


def find(name: str) -> Workload:
    """Return the workload called `name`.

    Raises:
        KeyError: There is none.
    """
    for workload in WORKLOADS:
        if workload.name == name:
            return workload
    raise KeyError(name)


def amounts(unit: Callable[[int], Payload], amount: int) -> Callable[[Size], Payload]:
    """Return a function that applies `unit` to the amount of work in one task of a size."""
    def expected(size: Size) -> Payload:
        return unit(amount_for(size, amount))
    return expected


def _sha256(length: str, size: int, times: int, *, own: bool) -> Workload:
    """Return the workload in which all tasks hash one object, or its counterpart with a copy for each."""
    name, twin = f"sha256_{length}", f"sha256_{length}_copies"
    bulk = size > 2**20
    hashes_per_unit = 50 if size < 1024 else 1  # 64 bytes take 0.2 us
    message = (payloads.own_message if own else payloads.shared_message)(size, hashes_per_unit)
    tasks = payloads.BULK_TASKS if bulk else payloads.TASKS
    return Workload(
        name=twin if own else name, twin=name if own else twin, kind="native",
        summary=f"SHA-256 of {size} bytes, {'a copy for each task' if own else 'one object for all tasks'}",
        task=native.sha256, requires=("hashlib",), payloads=equal_tasks(message, times, tasks),
        check=same_for_all(lambda _size: checks.DIGESTS[size], tasks),
        units=None if bulk else message,  # one hash of 4 MiB takes several ms: too coarse for --task-length
    )


def _counted(steps: int) -> tuple[int, int]:
    return 0, steps


def _contention(thing: Shared, name: str, task: Task, steps: int, *, shared: bool) -> Workload:
    """Return the workload in which all tasks use one object, or its counterpart with an object for each."""
    exact = same_for_all(amounts(_counted if name == "counter" else int, steps))
    counts = shared and name == "counter"
    return Workload(
        name=f"{'shared' if shared else 'private'}_{name}", twin=f"{'private' if shared else 'shared'}_{name}",
        kind="contention", summary=f"{SHARED_SUMMARY[name]}, {'one for all tasks' if shared else 'one for each task'}",
        task=task, payloads=equal_tasks(int, steps),
        # The values that a task reads depend on the other tasks, so no serial result can be compared.
        units=None if counts else multiples(100),
        check=checks.shared_counter(steps) if counts else exact,
        shared=thing if shared else None,
    )


SHARED_SUMMARY = {
    "counter": "add 1 to a counter under its lock",
    "dict": "count in entries of a dict that no other task touches",
    "list": "append to a list and pop from it",
    "attribute": "write and read an attribute of an object",
    "refcount": "take and drop references to an object",
}

_CPU = (
    Workload(
        name="noop", kind="cpu", summary="return the payload: what dispatching a task costs",
        task=cpu.noop, payloads=numbered_tasks(int, payloads.MANY_TASKS),
        check=numbered(lambda _size, index: index, payloads.MANY_TASKS),
    ),
    Workload(
        name="countdown", kind="cpu", summary="count down to zero, the classic of the GIL's history",
        task=cpu.countdown, payloads=equal_tasks(multiples(1000), COUNTDOWN), units=multiples(1000),
        check=same_for_all(lambda _size: 0),
    ),
    Workload(
        name="primes", kind="cpu", summary="count primes by trial division, each task in a range of its own",
        task=cpu.primes, payloads=payloads.primes, units=payloads.prime_units, check=numbered(checks.prime_count),
    ),
    Workload(
        name="mandelbrot", kind="cpu", summary="complex arithmetic in floats: points of the Mandelbrot set",
        task=cpu.mandelbrot, payloads=equal_tasks(multiples(10), MANDELBROT), units=multiples(10),
        check=same_for_all(amounts(lambda count: checks.BOUNDED[count * 10], MANDELBROT)),
    ),
    Workload(
        name="nbody", kind="cpu", summary="the Sun and four planets: floats in lists",
        task=cpu.nbody, payloads=equal_tasks(int, NBODY), units=multiples(1), check=checks.energy(NBODY),
    ),
    Workload(
        name="json_roundtrip", kind="cpu", summary="write and read a small JSON document",
        task=cpu.json_roundtrip, payloads=equal_tasks(int, JSON), units=multiples(1),
        check=same_for_all(amounts(lambda count: (count, 42.0), JSON)),  # 42: 1.5 * (0 + 1 + ... + 7)
    ),
    Workload(
        name="regex", kind="cpu", summary="search log lines with a regular expression",
        task=cpu.regex, payloads=equal_tasks(int, REGEX), units=multiples(1),
        check=same_for_all(amounts(checks.served_milliseconds, REGEX)),
    ),
    Workload(
        name="sort", kind="cpu", summary="sort tables of 127 rows with a key function",
        task=cpu.sort, payloads=equal_tasks(int, SORT), units=multiples(1),
        check=same_for_all(amounts(checks.sorted_sum, SORT)),
    ),
)

_NATIVE = (
    _sha256("64b", 64, 3000, own=False), _sha256("64b", 64, 3000, own=True),
    _sha256("64k", 64 * 1024, 750, own=False), _sha256("64k", 64 * 1024, 750, own=True),
    _sha256("4m", 4 * 1024 * 1024, 12, own=False), _sha256("4m", 4 * 1024 * 1024, 12, own=True),
    Workload(
        name="zlib_compress", kind="native", summary="compress 8 KiB of text",
        task=native.zlib_compress, payloads=equal_tasks(payloads.text_units, ZLIB), units=payloads.text_units,
        check=same_for_all(lambda _size: checks.text_crc()),
    ),
    Workload(
        name="numpy_ufunc", kind="native", summary="add, multiply and take roots over 16384 floats",
        task=native.numpy_ufunc, requires=("numpy",), packages=NUMPY,
        payloads=equal_tasks(int, UFUNC), units=multiples(1),
        check=same_for_all(amounts(checks.roots_sum, UFUNC)),
    ),
    Workload(
        name="numpy_matmul", kind="native", summary="multiply 64 x 64 matrices, too small for BLAS threads",
        task=native.numpy_matmul, requires=("numpy",), packages=NUMPY,
        payloads=equal_tasks(int, MATMUL), units=multiples(1),
        check=same_for_all(lambda _size: checks.product_sum()),
    ),
)

_IO = (
    Workload(
        name="sleep", kind="io", summary="sleep", task=io.sleep, async_task=io.sleep_async,
        payloads=equal_tasks(payloads.sleep_units, SLEEP), units=payloads.sleep_units,
        check=same_for_all(amounts(payloads.sleep_units, SLEEP)),
    ),
    Workload(
        name="file_write_read", kind="io", summary="write 256 KiB files and read them back, without fsync",
        task=io.file_write_read, async_task=io.file_write_read_async,
        payloads=equal_tasks(payloads.file_units, FILES), units=payloads.file_units,
        check=same_for_all(amounts(multiples(payloads.FILE_BYTES), FILES)),
    ),
    Workload(
        name="tcp_echo", kind="io", summary="requests of 1 to 64 bytes over one loopback TCP connection a task",
        task=io.tcp_echo, async_task=io.tcp_echo_async, service="echo",
        payloads=equal_tasks(int, ECHO), units=multiples(1),
        check=same_for_all(amounts(checks.echoed_bytes, ECHO)),
    ),
    Workload(
        name="http_fetch", kind="io", summary="fetch small pages over loopback HTTP: urllib3, aiohttp",
        task=io.http_fetch, async_task=io.http_fetch_async, service="http",
        requires=("urllib3",), async_requires=("aiohttp",), packages=HTTP,
        payloads=payloads.page_paths(PAGES, payloads.PAGE_WORDS), check=numbered(checks.pages_crc(PAGES)),
    ),
)

_MIXED = (
    Workload(
        name="fetch_parse", kind="mixed", summary="fetch pages over loopback HTTP, parse them, count their words",
        task=mixed.fetch_parse, async_task=mixed.fetch_parse_async, service="http",
        requires=("urllib3",), async_requires=("aiohttp",), packages=HTTP,
        payloads=payloads.page_paths(ARTICLES, payloads.ARTICLE_WORDS),
        check=numbered(checks.article_words(ARTICLES)),
    ),
)

_CONTENTION = tuple(
    make(shared=shared)
    for make in (
        partial(_contention, "counter", "counter", contention.counter, COUNTER),
        partial(_contention, "dict", "dict", contention.dictionary, DICT),
        partial(_contention, "list", "list", contention.sequence, LIST),
        partial(_contention, "object", "attribute", contention.attribute, ATTRIBUTE),
        partial(_contention, "object", "refcount", contention.refcount, REFCOUNT),
    )
    for shared in (True, False)
)


def _bytes(name: str, length: int, tasks: dict[Size, int]) -> Workload:
    return Workload(
        name=name, kind="transfer", summary=f"hand over {length} bytes", task=transfer.sample_bytes,
        payloads=numbered_tasks(payloads.numbered_bytes(length), tasks),
        check=numbered(checks.sampled_bytes(length), tasks),
    )


_TRANSFER = (
    _bytes("bytes_1k", 1024, payloads.MANY_TASKS),
    _bytes("bytes_1m", 1024 * 1024, payloads.TASKS),
    _bytes("bytes_64m", 64 * 1024 * 1024, payloads.HUGE_TASKS),
    Workload(
        name="list_1e6_ints", kind="transfer", summary="hand over a list of a million integers",
        task=transfer.sample_ints, payloads=numbered_tasks(payloads.numbered_list, payloads.HUGE_TASKS),
        check=numbered(checks.sampled_list, payloads.HUGE_TASKS),
    ),
    Workload(
        name="nested_dict", kind="transfer", summary="hand over dicts in dicts with 32768 leaves",
        task=transfer.sample_tree, payloads=numbered_tasks(payloads.numbered_tree),
        check=numbered(checks.sampled_tree),
    ),
    Workload(
        name="buffer_8m", kind="transfer", summary="hand over a writable buffer of 8 MiB",
        task=transfer.sample_bytes,
        payloads=numbered_tasks(payloads.numbered_buffer(8 * 1024 * 1024), payloads.BULK_TASKS),
        check=numbered(checks.sampled_bytes(8 * 1024 * 1024), payloads.BULK_TASKS),
    ),
)

WORKLOADS: tuple[Workload, ...] = (*_CPU, *_NATIVE, *_IO, *_MIXED, *_CONTENTION, *_TRANSFER)

# One of each kind, in the order of WORKLOADS: a run without names measures these.
REPRESENTATIVE: tuple[str, ...] = ("primes", "sha256_64k", "http_fetch", "fetch_parse", "shared_counter", "bytes_1m")
