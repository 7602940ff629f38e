"""An executor over interpreters with a GIL each, at the speed of the machine.

Entering an interpreter costs up to 300 us (free-threaded builds, and the main thread of 3.14+), and so does waking a
thread; so one host thread per worker enters once and loops inside, and tasks travel together, in frames:

- All workers read requests from one pipe that keeps packets whole, so a free worker takes the next, whichever it is.
- Two frames per worker are on their way.  What is submitted meanwhile waits in a deque, and goes as one frame when the
  next reply comes (group commit): nobody waits for a timer, and the first task leaves at once.
- How many tasks a frame has is learnt for each function, for 200 us of work.  A worker that is 2 ms into a frame
  answers with what it has, and the rest goes back to the front.
- Full frames go beyond the two, up to 10 ms of work: the thread that collects replies has to wait for the GIL of the
  caller, if that is busy, for the switch interval of 5 ms.

A frame that does not fit into a packet goes through a file in memory whose descriptor is sent, as all interpreters of a
process have the same.  Buffers (`memoryview`) of 64 KB and more are not copied on 3.14 and newer, and once before.
"""

from __future__ import annotations

import os
import socket
import sys
import threading

# The C half of pickle does all the work; see `_worker`.
from _pickle import Pickler, dumps, loads
from collections import deque
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from functools import partial
from io import BytesIO
from itertools import repeat, starmap
from pickle import PickleBuffer
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, cast

from gilscope.runners import _interpreters, _worker
from gilscope.runners._tasks import Batch, Span, Tasks, fail
from gilscope.runners.errors import TeardownError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gilscope.runners._tasks import Args, Task

    Undo = list[Callable[[], object]]

STOP_SECONDS = 10.0              # for threads that a task left inside; tasks themselves have as long as they need
PIPE_BYTES = 1 << 20             # what anybody may ask for; each packet takes a page
SOCKET_PACKETS, SOCKET_BYTES = 8, 1 << 17
BASE, DEEPEST = 2, 32            # frames per worker on their way: of any size, and full ones
FRAME_NS, HORIZON_NS = 200_000, 10_000_000
MOST_TASKS = 256                 # of a frame
BULK = 64 * 1024                 # bytes of a buffer from which on it is not pickled


class BrokenSubinterpreters(BrokenExecutor):
    """An interpreter ended that should not, or could not start; the executor cannot be used any more."""


class Dispatcher:
    """The hand-off between callers and workers, without the executor, which can be collected while threads run.

    Every thread may change what is pending or on its way, and then calls `advance`, which does what is due.  One thread
    at a time does, whose turn it is; another leaves it to that one, which looks again after its turn.  So no caller
    ever waits for another here, not even for itself (pickling and callbacks run code of users, and the garbage
    collector may drop an executor anywhere).

    KeyboardInterrupt comes when a call of C code has ended, when one of Python code begins, and between two rounds of a
    loop: where a turn has begun, or tasks are neither pending nor on their way, there is none of these, or a handler.

    Only the collector reads replies.  A caller that waits could do it, which spares one of three wake-ups (13 to 60 us
    instead of 20 to 110), but nearly every KeyboardInterrupt that meets os.read() loses what was read.
    """

    def __init__(self, workers: int) -> None:
        self.pending: deque[Task | Span] = deque()  # appended to by all; only who has the turn changes its front
        self._again: deque[Task | Span] = deque()   # what workers left undone, on its way to that front
        self.threads: list[threading.Thread] = []
        self.started = threading.Semaphore(0)       # released once for each worker that is up, or ended
        self.errors: list[BaseException] = []       # that ended a worker
        self.broken: BaseException | None = None
        self.stopped = False                        # True: the workers were told to end
        self.closing = self.cancels = False         # no tasks come any more; those that wait are cancelled
        self._left = workers                        # that have not ended
        self._frames: dict[int, tuple[Span | Tasks, Undo]] = {}    # on their way
        self._undo: Undo = []                       # of frames that were given up
        self._number = 0
        self._full = 1                              # tasks of a full frame, of the function that was answered last
        self._sizes: dict[bytes, int] = {}          # tasks of a frame, by function
        self._fitting: dict[bytes, int] = {}        # the same that fit into a packet, where those do not
        self._turn = [None]                         # empty: somebody has it.  No lock, as acquire() is a call
        self._replies, self.reply_end = os.pipe()
        self.requests, self._request_end, packets = open_packets()
        self._most = max(packets - workers, 1)      # frames on their way, so that no write waits
        self._base = self._limit = min(BASE * workers, self._most)
        self.collector = threading.Thread(target=self._collect, name="subinterpreters-collector", daemon=True)

    def add(self, entry: Task | Span) -> None:
        """Send a task, or let it wait until a worker answers."""
        self.pending.append(entry)
        if self._has_room() or self.stopped:
            self.advance()

    def add_batch(self, batch: Batch, chunk: int) -> None:
        """Send the tasks of a map; before it is known how many fill a frame, `chunk` do."""
        self._sizes.setdefault(batch.key, min(chunk, MOST_TASKS))
        if batch.calls:
            self.add(Span(batch, 0, len(batch.calls)))

    def advance(self) -> None:
        """Do what is due: send tasks, refuse them, or tell the workers to end."""
        try:
            self._take_turns()
        except BaseException:      # another thread may have left something to this one
            self._take_turns()
            raise

    def _take_turns(self) -> None:
        while self._is_due():
            try:
                del self._turn[0]
            except IndexError:
                return
            try:
                self._act()
            finally:
                self._turn.append(None)

    def _is_due(self) -> bool:
        if self.pending or self._again:
            return self.stopped or self.cancels or self._has_room()
        return self.closing and not self.stopped and not self._frames

    def _act(self) -> None:
        self.pending.extendleft(starmap(self._again.pop, repeat((), len(self._again))))   # one call: see above
        while self.pending and (self.stopped or self.cancels):
            self._drop(self.pending[0])
            self.pending.popleft()
        while self.pending and self._has_room():
            self._send()
        if self.closing and not (self.stopped or self.pending or self._again or self._frames):
            self._stop()

    def _has_room(self) -> bool:
        """Return True if a frame may go: beyond the base window only a full one."""
        flying = len(self._frames)
        if flying < self._base:
            return True
        if flying >= self._limit:
            return False
        try:
            first = self.pending[0]
        except IndexError:
            return False
        return (first.count() if isinstance(first, Span) else len(self.pending)) >= self._full

    def _drop(self, entry: Task | Span) -> None:
        tasks = entry if isinstance(entry, Span) else Tasks(entry[1], [entry])
        if self.cancels:
            tasks.cancel()
        elif tasks.start():
            fail(tasks, self.broken or RuntimeError("cannot schedule new futures after shutdown"))

    def _send(self) -> None:
        """Send one frame."""
        tasks = self._take()
        undo: Undo = []
        try:
            if not tasks.start():
                return
            self._number += 1
            packet = self._packet(tasks, undo)
        except BaseException as error:
            run_all(undo)
            is_of_task = isinstance(error, Exception)   # an argument's own pickling may raise anything
            if is_of_task and tasks.count() == 1:
                fail(tasks, error)
                return
            self._fitting[tasks.key] = 1   # one by one, to find which it is
            self._put_back(tasks, 0)
            if is_of_task:
                return
            raise
        self._frames[self._number] = tasks, undo
        os.write(self._request_end, packet)

    def _take(self) -> Span | Tasks:
        """Return the next tasks of one function."""
        first = self.pending[0]
        if isinstance(first, Span):
            head = Span(first.batch, first.begin, first.begin + self._count(first.key, first.count()))
            if head.end < first.end:
                first.begin = head.end
            else:
                del self.pending[0]
            return head
        key, most, count = first[1], self._count(first[1], len(self.pending)), 1
        while count < most and not isinstance(following := self.pending[count], Span) and following[1] == key:
            count += 1
        tasks = Tasks(key)
        tasks.tasks = [*starmap(cast("Callable[[], Task]", self.pending.popleft), repeat((), count))]
        return tasks

    def _put_back(self, tasks: Span | Tasks, count: int) -> None:
        """Let all but the first tasks wait again."""
        rest = tasks.cut(count)[::-1]
        self.pending.extendleft(rest)

    def _count(self, key: bytes, waiting: int) -> int:
        """Return how many tasks of a function go together; never more than a worker's share of those that wait."""
        share = -(-waiting // max(self._left, 1))
        return max(1, min(self._sizes.get(key, 1), share, self._fitting.get(key, MOST_TASKS)))

    def _packet(self, tasks: Span | Tasks, undo: Undo) -> bytes:
        """Return the request for the tasks that fit into a packet; the others are put back."""
        while True:
            args = tasks.arguments()
            try:
                if len(args) == 1 and any(map(is_bulk, args[0])):
                    data = with_buffers(tasks.key, args, undo)
                else:
                    data = dumps((tasks.key, args), _worker.PROTOCOL)
            except Exception:
                if len(args) > 1:
                    raise
                data = with_buffers(tasks.key, args, undo)      # of memoryviews
            room = _worker.PACKET - _worker.HEADER.size
            if len(data) <= room // 2:
                self._fitting.pop(tasks.key, None)
            if len(data) <= room:
                return _worker.HEADER.pack(len(data), self._number, -1, 0) + data
            if len(args) == 1:
                fd = _worker.write_memory(data)
                undo.append(partial(os.close, fd))
                return _worker.HEADER.pack(len(data), self._number, fd, 0)
            fitting = self._fitting[tasks.key] = max(1, min(len(args) * room // len(data), len(args) - 1))
            self._put_back(tasks, fitting)

    def _collect(self) -> None:
        """Take replies until the last worker has ended."""
        for reply in replies(self._replies):
            try:
                self._take_reply(*reply)
            except BaseException as error:  # noqa: BLE001 - of a Future's callback; all tasks fail with it
                self._break(error)
            del reply     # results must not live until the next one comes
            if not self._left:
                break
        run_all(self._undo)
        for end in (self.requests, self._request_end, self._replies, self.reply_end):    # stopped: nobody writes
            os.close(end)

    def _take_reply(self, number: int, nanoseconds: int, results: list[Any] | _worker.Failed) -> None:
        """Take the results of a frame's first tasks, and send the others again."""
        if number < 0:
            self._worker_changed(number)
            return
        if number not in self._frames:         # they were given up
            return
        tasks, undo = self._frames[number]
        count = tasks.count()
        if nanoseconds == _worker.UNREADABLE and count > 1:
            self._fitting[tasks.key] = 1       # one by one, to find which it is
            results = []
        elif isinstance(results, _worker.Failed):
            self._fitting[tasks.key] = 1       # they ran, and of this one nobody knows whose result it is
            results = [results] * count
        elif nanoseconds > 0:
            self._learn(tasks.key, len(results), nanoseconds)
        self._again.extend(tasks.cut(len(results)))
        del self._frames[number]               # last: without frames and tasks, workers may be told to end
        self.advance()                         # first: a worker may be waiting
        run_all(undo)
        tasks.settle(results)

    def _learn(self, key: bytes, done: int, nanoseconds: int) -> None:
        """Learn from the time of `done` tasks how many fill a frame, and how many frames the horizon has."""
        self._sizes[key] = self._full = max(
            1, min(FRAME_NS * done // nanoseconds, 4 * self._sizes.get(key, 1), MOST_TASKS))
        self._limit = min(self._left * max(BASE, min(DEEPEST, HORIZON_NS // nanoseconds)), self._most)

    def _worker_changed(self, number: int) -> None:
        if number == _worker.GONE_WORKER:
            self._left -= 1
            if not self.stopped:
                self._break(self.errors[0] if self.errors else None)
            elif self._left and _interpreters.ONE_AT_A_TIME:
                os.write(self._request_end, _worker.STOP)
        self.started.release()

    def _stop(self) -> None:
        """Tell the workers to end, in this thread's turn."""
        self.stopped = True
        for _ in range(min(self._left, 1) if _interpreters.ONE_AT_A_TIME else self._left):
            os.write(self._request_end, _worker.STOP)

    def _break(self, error: BaseException | None) -> None:
        """Fail all tasks, as a worker has ended that should not, and let the others end."""
        self.broken = BrokenSubinterpreters(f"a subinterpreter ended: {error or 'nothing says why'}")
        self.broken.__cause__ = error
        while True:
            try:
                del self._turn[0]
            except IndexError:
                sleep(0.001)
            else:
                break
        frames = [*self._frames.values()]
        self._frames.clear()
        if not self.stopped:
            self._stop()
        self._turn.append(None)
        for tasks, undo in frames:
            self._undo += undo                 # a worker may use it still
            fail(tasks, self.broken)
        self.advance()                         # for what is pending

    def host(self, code: str) -> None:
        """Run a worker's code in a new interpreter on this thread, and say when it has ended."""
        interpreter = None
        try:
            interpreter = _interpreters.create()
            interpreter.exec(code)
        except BaseException as error:  # noqa: BLE001 - reported to the caller, which learns that it has ended
            self.errors.append(error)
        if not _interpreters.ONE_AT_A_TIME:    # close() may wait for threads, and nobody else must
            self.say_gone()
        if interpreter is not None:
            try:
                interpreter.close()
            except Exception as error:  # noqa: BLE001 - reported by whoever waits for the end
                self.errors.append(error)
        if _interpreters.ONE_AT_A_TIME:
            self.say_gone()

    def say_gone(self) -> None:
        """Tell the collector that a worker has ended, or will never start."""
        os.write(self.reply_end, _worker.HEADER.pack(0, _worker.GONE_WORKER, -1, 0))

    def has_any_of(self, batch: Batch) -> bool:
        """Return True if a worker may have tasks of a map."""
        return any(isinstance(tasks, Span) and tasks.batch is batch for tasks, _ in [*self._frames.values()])

    def start_worker(self, code: str) -> None:
        """Start a worker's thread."""
        self.threads.append(threading.Thread(target=self.host, args=(code,), name="subinterpreter", daemon=True))
        self.threads[-1].start()

    def close(self) -> None:
        """Let the workers end when nothing is left to do."""
        self.closing = True
        self.advance()

    def join(self, seconds: float | None) -> None:
        """Wait until all workers have ended; None: as long as tasks run, and 10 s more.

        Raises:
            TeardownError: one did not end in time, or not well.
        """
        if threading.current_thread() is self.collector:   # in a callback of a Future
            return
        deadline = None if seconds is None else monotonic() + seconds
        self.collector.join(seconds)
        deadline = deadline or monotonic() + STOP_SECONDS
        for thread in self.threads:
            thread.join(max(0.0, deadline - monotonic()))
        if left := sum(thread.is_alive() for thread in self.threads):
            raise TeardownError(f"{left} of {len(self.threads)} subinterpreters did not end within "
                                f"{seconds or STOP_SECONDS:g} s: a task still runs, or left a thread behind")
        if self.errors and self.broken is None:
            raise TeardownError(f"a subinterpreter did not end well: {self.errors[0]}") from self.errors[0]


def replies(fd: int) -> Iterator[tuple[int, int, list[Any] | _worker.Failed]]:
    """Yield the number, the nanoseconds and the results of each reply."""
    rest, header = b"", _worker.HEADER
    while True:
        rest += os.read(fd, 65536)
        begin = 0
        while len(rest) - begin >= header.size:
            size, number, memory, nanoseconds = header.unpack_from(rest, begin)
            end = begin + header.size + (size if memory < 0 else 0)
            if end > len(rest):
                break
            yield number, nanoseconds, results_of(rest[begin + header.size:end], memory, size) if size else []
            begin = end
        rest = rest[begin:]


def results_of(data: bytes, fd: int, size: int) -> list[Any] | _worker.Failed:
    """Return the results of a reply; a `Failed` if one of them cannot be unpickled."""
    try:
        return cast("list[Any]", loads(data if fd < 0 else _worker.read_memory(fd, size)))  # from our own process
    except Exception as error:  # noqa: BLE001 - a result's own unpickling may raise anything
        return _worker.failure(error)
    finally:
        if fd >= 0:
            os.close(fd)


def run_all(undo: Undo) -> None:
    """Give back what a frame needed outside of its packet."""
    while undo:
        undo.pop()()


class BufferPickler(Pickler):
    """Pickle memoryviews, too."""

    def reducer_override(self, value: Any) -> Any:
        """Return how a memoryview is made of a buffer."""
        return (_worker.view_of, (PickleBuffer(value), value.format)) if type(value) is memoryview else NotImplemented


class BulkBytes:
    """Bytes that are handed over as a buffer, and copied where they arrive."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __reduce__(self) -> tuple[Any, ...]:
        return bytes, (PickleBuffer(self.data),)


def is_bulk(value: Any) -> bool:
    """Return True for long bytes."""
    return type(value) is bytes and len(value) >= BULK


def with_buffers(key: bytes, args: list[Args], undo: Undo) -> bytes:
    """Return the request for a task with memoryviews and long bytes; append the calls that give these back."""
    views: list[memoryview] = []

    def stays_inside(buffer: PickleBuffer) -> bool:
        view = buffer.raw()
        if view.nbytes >= BULK:
            views.append(view)
        return view.nbytes < BULK

    file = BytesIO()
    BufferPickler(file, _worker.PROTOCOL, buffer_callback=stays_inside).dump(
        [tuple(BulkBytes(each) if is_bulk(each) else each for each in args[0])])
    return dumps((key, file.getvalue(), hand_over(views, undo) if views else None), _worker.PROTOCOL)


def hand_over(views: list[memoryview], undo: Undo) -> tuple[Any, ...]:
    """Return where a worker gets the buffers, and their sizes; append the call that gives them back."""
    sizes = [view.nbytes for view in views]
    if sys.version_info < (3, 14):
        fd = _worker.write_memory(*views)
        undo.append(partial(os.close, fd))
        return "memory", fd, sizes
    from concurrent import interpreters

    queue = interpreters.create_queue()
    for view in views:
        queue.put(view)

    def drain() -> None:
        with suppress(interpreters.QueueEmpty):    # that is, unless the task could not be read
            while True:
                queue.get_nowait()

    undo.append(drain)
    return "queue", queue.id, sizes


def open_packets() -> tuple[int, int, int]:
    """Return a channel that keeps each write of up to 4096 bytes whole: its ends, and how many it has room for."""
    if sys.platform != "linux":     # tested on Linux only
        reading, writing = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        for end, option in ((reading, socket.SO_RCVBUF), (writing, socket.SO_SNDBUF)):
            end.setsockopt(socket.SOL_SOCKET, option, SOCKET_BYTES)   # macOS refuses to send more than 2048 otherwise
        return reading.detach(), writing.detach(), SOCKET_PACKETS
    import fcntl

    ends = os.pipe2(os.O_DIRECT | os.O_CLOEXEC)
    try:
        size = fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except OSError:     # a smaller limit was set, or this user has too many pipes
        size = fcntl.fcntl(ends[1], fcntl.F_GETPIPE_SZ)
    return (*ends, size // os.sysconf("SC_PAGE_SIZE"))
