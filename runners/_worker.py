"""Code that runs inside a worker: an interpreter's loop, a process's set-up, and the tasks that every pool needs.

Each worker interpreter and process imports this module afresh, and that is counted as the runner's start-up:
it imports only what a bare interpreter has loaded already, and the C half of pickle.
"""

from __future__ import annotations

import os
import sys

# `pickle` imports `re` (4 ms in a fresh interpreter) for its debugging output; its C half does all the work.
from _pickle import dumps, loads
from _struct import Struct
from time import perf_counter_ns

TYPE_CHECKING = False  # typing costs 3 ms; checkers know this name
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

PROTOCOL = 5       # pickle's; the first with framing for large objects, in every CPython we run on
PACKET = 4096      # bytes that pipes keep whole
HEADER = Struct("<qqqq")   # of a frame: its size, its number, its descriptor or -1, and nanoseconds
READY_WORKER, GONE_WORKER = -1, -2   # numbers of replies that are to no frame
UNREADABLE = -1    # nanoseconds of a frame whose tasks did not begin
STOP = b"stop"
SCRIPT = "__mp_main__"   # the host's script in an interpreter, as multiprocessing names it in a process
LONG_NS = 2_000_000
MEET_SECONDS = 300.0  # 3.13t takes seconds to start a process on a busy machine

script: list[str | None] = [None, None]   # interpreters: module and path of the host's script, until it ran here
_shared: Any = None    # process workers: the object that the pool's tasks share
_barrier: Any = None   # process workers: the barrier of all workers of a pool


class Failed:
    """An exception of a task, in parts that can be sent: see `describe`."""

    __slots__ = ("parts",)

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __reduce__(self) -> tuple[Any, ...]:
        return Failed, self.parts


def failure(error: BaseException) -> Failed:
    """Return an exception in a form that can always be sent."""
    return Failed(*describe(error))


def serve(requests: int, replies: int, main: tuple[str | None, str | None], initial: bytes | None) -> None:
    """Run frames of tasks until one says stop.

    A request is a packet: `HEADER`, then a pickled (function, argument tuples), or (function, pickled argument tuples,
    buffers).  A reply is `HEADER`, then the pickled results; a task that failed has a `Failed` there.  What is too
    large is in the file of the header's descriptor, which the host closes.
    """
    script[:] = main
    if initial is not None:
        initializer, args = load(initial)
        initializer(*args)
    os.write(replies, HEADER.pack(0, READY_WORKER, -1, 0))
    functions: dict[bytes, Callable[..., Any]] = {}
    while (packet := os.read(requests, PACKET)) != STOP:
        send_reply(replies, *run_frame(packet, functions))


def run_frame(packet: bytes, functions: dict[bytes, Callable[..., Any]]) -> tuple[int, list[Any], int]:
    """Return the frame's number, the results of its first tasks, and the nanoseconds that they took.

    It ends early after 2 ms, or with a failure: then the host sends the other tasks again.
    """
    size, number, fd, _ = HEADER.unpack_from(packet)
    begun = perf_counter_ns()
    try:
        frame = load(packet[HEADER.size:] if fd < 0 else read_memory(fd, size))
        key, calls = frame if len(frame) == 2 else (frame[0], load(frame[1], received(frame[2]) if frame[2] else ()))
        function = functions.get(key)
        if function is None:
            function = functions[key] = load(key)
    except BaseException as error:  # noqa: BLE001 - unpickling runs code of users, and imports
        return number, [failure(error)], UNREADABLE
    results: list[Any] = []
    for args in calls:
        try:
            results.append(function(*args))
        except BaseException as error:  # noqa: BLE001 - whatever a task raises is its result
            results.append(failure(error))
            break
        if perf_counter_ns() - begun > LONG_NS:
            break
    return number, results, perf_counter_ns() - begun


def send_reply(fd: int, number: int, results: list[Any], nanoseconds: int) -> None:
    """Write a reply at once, so that those of several workers do not mix; it has at most `PACKET` bytes."""
    try:
        data = dumps(results, PROTOCOL)
    except BaseException:  # noqa: BLE001 - a result's own pickling may raise anything
        data = dumps([sendable(each) for each in results], PROTOCOL)
    where = -1
    size = len(data)
    if HEADER.size + size > PACKET:
        where, data = write_memory(data), b""
    os.write(fd, HEADER.pack(size, number, where, nanoseconds) + data)


def sendable(result: Any) -> Any:
    """Return the result, or the failure to pickle it."""
    try:
        dumps(result, PROTOCOL)
    except BaseException as error:  # noqa: BLE001 - see `send_reply`
        return failure(error)
    return result


def call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function that is sent with its arguments, as it has keywords or a state of its own."""
    return function(*args, **kwargs)


def load(data: Any, buffers: Sequence[Any] = ()) -> Any:
    """Unpickle what the host sent, after running its script if that defines what is missing."""
    try:
        return loads(data, buffers=buffers)
    except AttributeError:
        if not load_main():
            raise
    return loads(data, buffers=buffers)


def load_main() -> bool:
    """Run the host's script as multiprocessing does, under another name; return False if there is none, or it ran."""
    module, path = script
    if module is None and path is None:
        return False
    import runpy

    made = type(sys)(SCRIPT)
    names = (runpy.run_module(module, run_name=SCRIPT, alter_sys=True) if module is not None else
             runpy.run_path(str(path), run_name=SCRIPT))
    made.__dict__.update(names)
    sys.modules["__main__"] = sys.modules[SCRIPT] = made
    script[:] = None, None
    return True


def runs_script() -> bool:
    """Return True while `load_main` runs the host's script."""
    return any(script) and sys.modules.get(SCRIPT, sys.modules["__main__"]) is not sys.modules["__main__"]


def received(handed: tuple[Any, ...]) -> list[Any]:
    """Return buffers that were handed over."""
    kind, where, sizes = handed
    if kind == "queue":
        from concurrent.interpreters import Queue

        queue = Queue(where)
        return [queue.get_nowait() for _ in sizes]
    whole = memoryview(read_memory(where, sum(sizes)))
    ends = [sum(sizes[:number + 1]) for number in range(len(sizes))]
    return [whole[end - size:end] for end, size in zip(ends, sizes, strict=True)]


def view_of(buffer: Any, form: str) -> memoryview:
    """Return a buffer as the memoryview that was sent."""
    made: memoryview = memoryview(buffer).cast("B").cast(form)  # type: ignore[call-overload]
    return made


def open_memory() -> int:
    """Return the descriptor of a new file in memory."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("gilscope")
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def write_memory(*parts: Any) -> int:
    """Return the descriptor of a new file in memory that has the bytes of the parts."""
    fd = open_memory()
    try:
        for part in parts:
            rest = memoryview(part)
            while rest:
                rest = rest[os.write(fd, rest):]  # Linux writes at most 2 GiB at once
    except BaseException:
        os.close(fd)
        raise
    return fd


def read_memory(fd: int, size: int) -> Any:
    """Return the bytes of a file in memory, without copying them."""
    import mmap

    return mmap.mmap(fd, size, prot=mmap.PROT_READ)


def describe(error: BaseException) -> tuple[str, str, str, bytes | None]:
    """Return the parts of an exception that can be sent: type name, message, traceback, and its pickle if possible."""
    import traceback  # costs as much as all the rest, and most workers never fail

    kind = type(error)
    try:
        pickled = dumps(error, PROTOCOL)
    except Exception:  # noqa: BLE001 - any user class may refuse, in any way
        pickled = None
    message = "".join(traceback.format_exception_only(error)).strip()
    trace = "".join(traceback.format_exception(error))
    return f"{kind.__module__}.{kind.__qualname__}", message, trace, pickled


def set_path(path: list[str]) -> None:
    """Give a fresh interpreter the import path of the main one."""
    import sys  # sent as bare code, without this module's names

    sys.path[:] = path


def meet_by_pipe(arrived: int, leave: int) -> None:
    """Report that this worker is up, then wait until all are."""
    os.write(arrived, b".")
    os.read(leave, 1)


def join_pool(barrier: Any, shared: Any) -> None:
    """Set up a process worker; the pool's initializer."""
    global _barrier, _shared  # a worker process belongs to one pool
    _barrier, _shared = barrier, shared


def meet_at_barrier(_payload: None = None) -> int:
    """Wait in a process worker until all workers of its pool are up; return the process id."""
    _barrier.wait(MEET_SECONDS)
    return os.getpid()


def call_shared(task: Callable[[Any, Any], Any], payload: Any) -> Any:
    """Run a task in a process worker with the shared object of its pool."""
    return task(payload, _shared)


def gil_state(_payload: None = None, _shared: object = None) -> tuple[bool | None, int]:
    """Return (is the GIL on, or None before 3.13; process id) of the worker that runs this task.

    Mapped over exactly as many payloads as there are workers it reaches every process worker once, since they
    wait for each other.
    """
    if _barrier is not None:
        _barrier.wait(MEET_SECONDS)
    is_gil_enabled = getattr(sys, "_is_gil_enabled", None)
    return (None if is_gil_enabled is None else is_gil_enabled()), os.getpid()
