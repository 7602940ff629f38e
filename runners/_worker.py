"""Code that runs inside a worker: an interpreter's loop, a process's set-up, and the tasks that every pool needs.

Each worker interpreter and process imports this module afresh, and that is counted as the runner's start-up:
it imports only what a bare interpreter has loaded already, and the C half of pickle.
"""

from __future__ import annotations

import os
import sys

# `pickle` imports `re` (4 ms in a fresh interpreter) for its debugging output; its C half does all the work.
from _pickle import dumps, loads
from io import FileIO

TYPE_CHECKING = False  # typing costs 3 ms; checkers know this name
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PROTOCOL = 5       # pickle's; the first with framing for large objects, in every CPython we run on
LENGTH_BYTES = 8   # a frame is its length, little-endian, then its bytes
SMALL_FRAME = 4096  # below, one copy is cheaper than a second system call (PIPE_BUF is 4096 on Linux)
READY = b""        # a loop sends it before its first task
MEET_SECONDS = 300.0  # 3.13t takes seconds to start a process on a busy machine

_shared: Any = None    # process workers: the object that the pool's tasks share
_barrier: Any = None   # process workers: the barrier of all workers of a pool


def send(fd: int, frame: bytes) -> None:
    """Write one frame to a blocking descriptor, whole."""
    header = len(frame).to_bytes(LENGTH_BYTES, "little")
    if len(frame) < SMALL_FRAME:
        _write_all(fd, header + frame)
    else:
        _write_all(fd, header)
        _write_all(fd, frame)


def receive(fd: int) -> bytearray | None:
    """Return the next frame from a blocking descriptor, or None at its end."""
    source = FileIO(fd, "rb", closefd=False)
    header = bytearray(LENGTH_BYTES)
    if not _read_all(source, header):
        return None
    frame = bytearray(int.from_bytes(header, "little"))
    return frame if _read_all(source, frame) else None


def loop(requests: int, replies: int) -> None:
    """Run tasks from one pipe and answer on the other until either is closed at its far end.

    A request is a pickled (module, qualified name, payload).  A reply is a pickled (True, result) or
    (False, (type name, message, traceback text, pickled exception or None)).
    """
    tasks: dict[tuple[str, str], Callable[[Any], Any]] = {}
    try:
        send(replies, READY)
        while (request := receive(requests)) is not None:
            send(replies, answer(request, tasks))
    except BrokenPipeError:
        return  # the pool was abandoned while a task ran; its result is not needed


def answer(request: bytearray, tasks: dict[tuple[str, str], Callable[[Any], Any]]) -> bytes:
    """Return the reply to one request; `tasks` caches the functions found so far."""
    try:
        module, qualname, payload = loads(request)
        request.clear()  # a large payload must not be in memory twice while its task runs
        task = tasks.get((module, qualname))
        if task is None:
            task = tasks[module, qualname] = find_task(module, qualname)
        return dumps((True, task(payload)), PROTOCOL)
    except BaseException as error:  # noqa: BLE001 - whatever a measured task raises is its result
        return dumps((False, describe(error)), PROTOCOL)


def find_task(module: str, qualname: str) -> Callable[[Any], Any]:
    """Return the function of that name, importing its module."""
    __import__(module)
    found: Any = sys.modules[module]
    for name in qualname.split("."):
        found = getattr(found, name)
    task: Callable[[Any], Any] = found
    return task


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


def _write_all(fd: int, frame: bytes) -> None:
    written = os.write(fd, frame)
    if written == len(frame):
        return
    rest = memoryview(frame)[written:]  # Linux writes at most 2 GiB at once; a signal may cut it shorter
    while rest:
        rest = rest[os.write(fd, rest):]


def _read_all(source: FileIO, buffer: bytearray) -> bool:
    with memoryview(buffer) as view:
        filled = 0
        while filled < len(buffer):
            count = source.readinto(view[filled:])
            if not count:
                return False
            filled += count
    return True
