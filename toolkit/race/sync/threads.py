"""Threads: the happens-before edges of their start and end, their names, and the stacks of their start."""

from __future__ import annotations

import sys
from _thread import get_ident
from _weakref import ref

from gilscope.toolkit.race.sync.layer import ObjectStates, untrack_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, ModuleType
    from typing import Any

    from gilscope.toolkit.race.core import Place
    from gilscope.toolkit.race.sync.layer import SyncLayer

    Line = tuple[Any, int]      # a code object and the line it was at

DEEPEST = 60          # frames stored of the stack of a thread's start
REMEMBERED = 20_000   # threads whose names are stored; the first ones are dropped after that
OURS = __file__.rpartition("sync")[0]


class ThreadOrigin:
    """Name and start of a thread, for reports."""

    __slots__ = ("lines", "name", "thread")

    def __init__(self, thread: Any, name: str, lines: tuple[Line, ...]) -> None:
        self.thread: Callable[[], Any] = (lambda: None) if thread is None else ref(thread)
        self.name = name
        self.lines = lines

    def current_name(self) -> str:
        """Return the present name of the thread, or its last one."""
        name = getattr(self.thread(), "_name", None)
        return self.name if name is None else str(name)


class ThreadTracker:
    """Tracker of threads from start to join."""

    def __init__(self, layer: SyncLayer) -> None:
        self._layer = layer
        self._core = layer.core
        # id(Thread) -> clock and stack of the thread that calls start()
        self._starting: dict[int, tuple[object, tuple[Line, ...]]] = {}
        self._newborn: dict[int, object] = {}     # ident -> the event that is set when the thread has started
        self._last_clocks = ObjectStates()            # Thread -> its final clock
        self._gone = EndedThreads()
        self.chains: dict[int, WorkerChain] = {}        # ident of a worker -> the chain of its tasks that were threads
        self._stacks: dict[tuple[tuple[int, int], ...], tuple[Line, ...]] = {}    # shared: few places start most
        self._installer = get_ident(), self._core.thread_uid()
        self.seen = 1                # threads and tasks that count as threads, this one among them
        self._known: dict[int, ThreadOrigin] = {self._installer[1]: ThreadOrigin(None, "MainThread", ())}
        self._is_alive: Callable[[Any], bool] = lambda _thread: True

    # -- for reports -----------------------------------------------------------------------------------------------

    def describe(self, uid: int) -> tuple[str, tuple[Place, ...]]:
        """Return a thread's name, and the stack of the call that started it, innermost first; () if unknown."""
        started = self._known.get(uid)
        if started is None:
            return f"thread {uid}", ()
        return started.current_name(), tuple((code.co_filename, line, code.co_qualname) for code, line in started.lines)

    def _remember(self, uid: int, started: ThreadOrigin) -> None:
        self.seen += 1
        self._known[uid] = started
        while len(self._known) > REMEMBERED:
            self._known.pop(next(iter(self._known)), None)

    def remember_task(self, uid: int, number: int, lines: tuple[Line, ...]) -> None:
        """Remember a task that is a thread of its own, with its worker's name and the stack of its submission.

        The task comes first in the name: two tasks of one worker may race, and the worker is only where they ran.
        """
        worker = getattr(vars(sys.modules["threading"])["_active"].get(get_ident()), "_name", "?")
        self._remember(uid, ThreadOrigin(None, f"task {number} of worker {worker}", lines))

    def order_after_tasks(self) -> None:
        """Add the edges from the worker's earlier tasks to this one."""
        chain = self.chains.get(get_ident())
        if chain is not None:
            self._core.acquire(chain)

    def lines(self) -> tuple[Line, ...]:
        """Return the program's stack at the present call."""
        lines = stack_of(sys._getframe(1))  # no public function is as fast
        return self._stacks.setdefault(tuple((id(code), line) for code, line in lines), lines)

    # -- patches ---------------------------------------------------------------------------------------------------

    def patch_thread(self, module: ModuleType) -> None:
        """Patch `_thread`, for threads that the threading module does not know."""
        for name in ("start_new_thread", "start_new", "start_joinable_thread"):
            original = vars(module).get(name)
            if original is not None:
                start = ThreadStarter(self, original)
                if self._layer.replace(module, name, start):
                    self._layer.on_undo(start.retire)

    def patch_threading(self, module: Any) -> None:
        """Patch `threading.Thread` and the functions that report the end of threads."""
        wrap, thread = self._layer.wrap, module.Thread
        self._is_alive = thread.is_alive
        installer = vars(module)["_active"].get(self._installer[0])
        if installer is not None:
            self._known[self._installer[1]] = ThreadOrigin(installer, str(installer.name), ())
        wrap(thread, "start", self.before_start, self.after_start, self.start_failed, muted=False)
        wrap(thread, "_bootstrap_inner", self.begin, self.end, self.end, muted=False)
        wrap(thread, "_set_tstate_lock")      # 3.12: locks that threads hold until their end
        wrap(thread, "_delete", self.before_delete)
        wrap(thread, "join", self._layer.mute, self.after_join, self._layer.remute, muted=False)
        wrap(thread, "is_alive", self._layer.mute, self.after_is_alive, self._layer.remute, muted=False)
        for name in ("enumerate", "active_count"):
            wrap(module, name, None, self.after_enumerate)
        wrap(module, "_shutdown", self.before_shutdown, self.after_enumerate, self.after_enumerate, muted=False)
        self.untrack_threading_locks(module)

    def untrack_threading_locks(self, module: Any) -> None:
        """Untrack the locks of the module's lists of threads."""
        for name in ("_active_limbo_lock", "_shutdown_locks_lock"):   # the second: 3.12
            untrack_lock(self._layer, module, name)

    # -- start and end ---------------------------------------------------------------------------------------------

    def before_start(self, thread: Any) -> int:
        """Store the starter's clock for the thread; runs in muted threads as well, as executors start their workers."""
        level = self._core.mute()
        self._starting[id(thread)] = self._core.snapshot(), self.lines()
        return level

    def after_start(self, level: int, _result: object, thread: Any) -> None:
        """Track the starter again."""
        self._core.restore(level)
        self._starting.pop(id(thread), None)

    def start_failed(self, level: int, _error: BaseException, thread: Any) -> None:
        """Drop the clock of a start that failed."""
        self.after_start(level, None, thread)

    def begin(self, thread: Any) -> None:
        """Begin the new thread, with the edge from its start."""
        clock, lines = self._starting.pop(id(thread), (None, ()))
        started = ThreadOrigin(thread, str(thread._name), lines)
        self._remember(self._core.thread_begin(thread, clock), started)
        if self._layer.overlap > 0:
            self._newborn[get_ident()] = thread._started

    def pause_newborn(self, event: object) -> None:
        """Pause a new thread once its starter continues, so that threads run at the same time."""
        if self._newborn and self._newborn.get(get_ident()) is event:
            self._newborn.pop(get_ident(), None)
            self._layer.pause()

    def end(self, _state: object, _result: object, thread: Any) -> None:
        """End the thread and store its final clock for calls that observe the end."""
        self._newborn.pop(get_ident(), None)
        self._layer.thread_ended()
        uid = self._core.thread_uid()
        self._last_clocks.set(thread, self._core.thread_end())
        started = self._known.get(uid)
        if started is not None:
            started.name = str(thread._name)

    def before_delete(self, _thread: Any) -> None:
        """Release the thread's clock to calls that no longer list it as alive."""
        self.order_after_tasks()
        self.chains.pop(get_ident(), None)
        self._core.release(self._gone)

    # -- seeing the end --------------------------------------------------------------------------------------------

    def after_join(self, level: int, _result: object, thread: Any, *_timeout: Any, **_named: Any) -> None:
        """Add the edge from the thread's end to join(), unless join() timed out."""
        ended = not self._is_alive(thread)
        self._core.restore(level)
        if ended:
            self._saw_end(thread)

    def after_is_alive(self, level: int, alive: bool, thread: Any) -> None:  # the method's result
        """Add the edge from the thread's end to an is_alive() that returns False."""
        self._core.restore(level)
        if not alive:
            self._saw_end(thread)

    def _saw_end(self, thread: Any) -> None:
        clock = self._last_clocks.get(thread)
        if clock is not None:
            self._core.join(clock)

    def after_enumerate(self, *_arguments: Any) -> None:
        """Add the edges from ended threads to a call that lists the living ones."""
        self._core.acquire(self._gone)

    def before_shutdown(self) -> None:
        """Store the main thread's clock for threads that join it."""
        main = sys.modules["threading"].main_thread()
        self._last_clocks.set(main, self._core.snapshot())

    # -- threads without a Thread ----------------------------------------------------------------------------------

    def wrap_target(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `function` as the target of a raw thread, with the edge from its start."""
        clock, lines = self._core.snapshot(), self.lines()
        name = f"thread of {getattr(function, '__qualname__', None) or type(function).__qualname__}"

        def begin(*_arguments: Any, **_named: Any) -> None:
            self._remember(self._core.thread_begin(None, clock), ThreadOrigin(None, name, lines))
            self._layer.pause()

        def end(*_arguments: Any, **_named: Any) -> None:
            self._core.thread_end()

        return self._core.wrap(function, begin, end, end, muted=False)


class EndedThreads:
    """The object that all ended threads release their clocks to."""

    __slots__ = ("__weakref__",)


class WorkerChain:
    """The object that the tasks of one worker release their clocks to."""

    __slots__ = ("__weakref__",)


class ThreadStarter:
    """Replacement of `_thread.start_new_thread`; an instance, since a builtin in a class body is no method either."""

    def __init__(self, threads: ThreadTracker, original: Callable[..., Any]) -> None:
        self._threads: ThreadTracker | None = threads
        self.__wrapped__ = original
        self.__name__ = self.__qualname__ = original.__name__
        self.__doc__ = original.__doc__

    def retire(self) -> None:
        """Behave like the original from now on, in modules that imported this object."""
        self._threads = None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Start a thread, with the edge from the start."""
        threads = self._threads
        # Thread.start() calls this as well, muted.
        if threads is not None and arguments and callable(arguments[0]) and not threads._layer.is_muted():
            arguments = threads.wrap_target(arguments[0]), *arguments[1:]
        return self.__wrapped__(*arguments, **named)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


def stack_of(frame: FrameType | None) -> tuple[Line, ...]:
    """Return code and line of a frame and its callers, innermost first, without frames of the race checker."""
    lines: list[Line] = []
    while frame is not None and len(lines) < DEEPEST:
        if not frame.f_code.co_filename.startswith(OURS):
            lines.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(lines)
