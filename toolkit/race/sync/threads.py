"""Threads: what their start and end order, what they are called, and where they were started."""

from __future__ import annotations

import sys
from _thread import get_ident
from _weakref import ref

from gilscope.toolkit.race.sync.layer import Attached
from gilscope.toolkit.race.sync.quiet_lock import quieten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, ModuleType
    from typing import Any

    from gilscope.toolkit.race.core import Place
    from gilscope.toolkit.race.sync.layer import Layer

    Line = tuple[Any, int]      # a code object and the line it was at

DEEPEST = 60          # frames kept of the stack where a thread was started
REMEMBERED = 20_000   # threads; a program that starts more forgets the names of the first ones
OURS = __file__.rpartition("sync")[0]


class Started:
    """What a report says about one thread."""

    __slots__ = ("lines", "name", "parent", "thread")

    def __init__(self, thread: Any, name: str, lines: tuple[Line, ...], parent: int = 0) -> None:
        self.thread: Callable[[], Any] = (lambda: None) if thread is None else ref(thread)
        self.name = name
        self.lines = lines
        self.parent = parent     # uid of the thread that started it, or handed the task in

    def current_name(self) -> str:
        """Return the name the thread has now, or had at its end."""
        name = getattr(self.thread(), "_name", None)
        return self.name if name is None else str(name)


class Threads:
    """Follows threads from start to join."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer
        self._core = layer.core
        # id(Thread) -> clock, stack and thread of start()
        self._starting: dict[int, tuple[object, tuple[Line, ...], int]] = {}
        self._newborn: dict[int, object] = {}     # ident -> the event that says the thread has started
        self._last_clocks = Attached()            # Thread -> its clock at its end
        self._gone = Gone()
        self.chains: dict[int, Chain] = {}        # ident of a worker -> its tasks that were threads of their own
        self._stacks: dict[tuple[tuple[int, int], ...], tuple[Line, ...]] = {}    # many threads start in few places
        self._installer = get_ident(), self._core.thread_uid()
        self._known: dict[int, Started] = {self._installer[1]: Started(None, "MainThread", ())}
        self._is_alive: Callable[[Any], bool] = lambda _thread: True

    # -- what reports ask ------------------------------------------------------------------------------------------

    def describe(self, uid: int) -> tuple[str, tuple[Place, ...]]:
        """Return a thread's name, and the stack of the call that started it, innermost first; () if nobody saw it."""
        started = self._known.get(uid)
        if started is None:
            return f"thread {uid}", ()
        return started.current_name(), tuple((code.co_filename, line, code.co_qualname) for code, line in started.lines)

    def root(self, uid: int) -> int:
        """Return the thread that the first one started and `uid` goes back to; 0: it is the first one itself."""
        while (started := self._known.get(uid)) is not None and started.parent:
            uid = started.parent
        return uid

    def _remember(self, uid: int, started: Started) -> None:
        self._known[uid] = started
        while len(self._known) > REMEMBERED:
            self._known.pop(next(iter(self._known)), None)

    def remember_task(self, uid: int, number: int, lines: tuple[Line, ...], parent: int) -> None:
        """Remember a task that is a thread of its own: by its worker's name, and where it was submitted."""
        worker = vars(sys.modules["threading"])["_active"].get(get_ident())
        self._remember(uid, Started(None, f"{getattr(worker, '_name', 'worker')}, task {number}", lines, parent))

    def link(self) -> None:
        """Order this thread after the tasks that its worker ran so far."""
        chain = self.chains.get(get_ident())
        if chain is not None:
            self._core.acquire(chain)

    def lines(self) -> tuple[Line, ...]:
        """Return the stack of the program at the call that we are in."""
        lines = lines_of(sys._getframe(1))  # noqa: SLF001  there is no public way that costs as little
        return self._stacks.setdefault(tuple((id(code), line) for code, line in lines), lines)

    # -- patches ---------------------------------------------------------------------------------------------------

    def patch_thread(self, module: ModuleType) -> None:
        """Patch `_thread`: threads that the threading module knows nothing of."""
        for name in ("start_new_thread", "start_new", "start_joinable_thread"):
            original = vars(module).get(name)
            if original is not None:
                start = StartsThreads(self, original)
                if self._layer.put(module, name, start):
                    self._layer.on_undo(start.retire)

    def patch_threading(self, module: Any) -> None:
        """Patch `threading.Thread` and what tells that threads have ended."""
        hook, thread = self._layer.hook, module.Thread
        self._is_alive = thread.is_alive
        installer = vars(module)["_active"].get(self._installer[0])
        if installer is not None:
            self._known[self._installer[1]] = Started(installer, str(installer.name), ())
        hook(thread, "start", self.before_start, self.after_start, self.start_failed, muted=False)
        hook(thread, "_bootstrap_inner", self.begin, self.end, self.end, muted=False)
        hook(thread, "_set_tstate_lock")      # 3.12: locks that threads hold to say that they live
        hook(thread, "_delete", self.before_delete)
        hook(thread, "join", self._layer.mute, self.after_join, self._layer.remute, muted=False)
        hook(thread, "is_alive", self._layer.mute, self.after_is_alive, self._layer.remute, muted=False)
        for name in ("enumerate", "active_count"):
            hook(module, name, None, self.saw_the_living)
        hook(module, "_shutdown", self.before_shutdown, self.saw_the_living, self.saw_the_living, muted=False)
        self.quieten_threading(module)

    def quieten_threading(self, module: Any) -> None:
        """Make the locks around the module's lists of threads order nothing."""
        for name in ("_active_limbo_lock", "_shutdown_locks_lock"):   # the second: 3.12
            quieten(self._layer, module, name)

    # -- start and end ---------------------------------------------------------------------------------------------

    def before_start(self, thread: Any) -> int:
        """Keep the starter's clock for the thread.  Runs in muted threads, too: an executor starts its workers so."""
        level = self._core.mute()
        self._starting[id(thread)] = self._core.snapshot(), self.lines(), self._core.thread_uid()
        return level

    def after_start(self, level: int, _result: object, thread: Any) -> None:
        """Count as the program again."""
        self._core.restore(level)
        self._starting.pop(id(thread), None)

    def start_failed(self, level: int, _error: BaseException, thread: Any) -> None:
        """Forget the clock of a start that did not happen."""
        self.after_start(level, None, thread)

    def begin(self, thread: Any) -> None:
        """Begin in the new thread, ordered after its start."""
        clock, lines, parent = self._starting.pop(id(thread), (None, (), 0))
        started = Started(thread, str(thread._name), lines, parent)  # noqa: SLF001
        self._remember(self._core.thread_begin(thread, clock), started)
        if self._layer.overlap > 0:
            self._newborn[get_ident()] = thread._started  # noqa: SLF001

    def has_started(self, event: object) -> None:
        """Let a new thread wait a moment once its starter goes on, so that threads come to run beside each other."""
        if self._newborn and self._newborn.get(get_ident()) is event:
            self._newborn.pop(get_ident(), None)
            self._layer.pause()

    def end(self, _state: object, _result: object, thread: Any) -> None:
        """End the thread; whoever sees its end is ordered after it."""
        self._newborn.pop(get_ident(), None)
        self._layer.thread_ended()
        uid = self._core.thread_uid()
        self._last_clocks.set(thread, self._core.thread_end())
        started = self._known.get(uid)
        if started is not None:
            started.name = str(thread._name)  # noqa: SLF001

    def before_delete(self, _thread: Any) -> None:
        """Let those who no longer find the thread among the living know all it did."""
        self.link()
        self.chains.pop(get_ident(), None)
        self._core.release(self._gone)

    # -- seeing the end --------------------------------------------------------------------------------------------

    def after_join(self, level: int, _result: object, thread: Any, *_timeout: Any, **_named: Any) -> None:
        """Order the joiner after the thread, unless join gave up."""
        ended = not self._is_alive(thread)
        self._core.restore(level)
        if ended:
            self._saw_end(thread)

    def after_is_alive(self, level: int, alive: bool, thread: Any) -> None:  # noqa: FBT001  the method's result
        """Order whoever sees a thread ended after all it did."""
        self._core.restore(level)
        if not alive:
            self._saw_end(thread)

    def _saw_end(self, thread: Any) -> None:
        clock = self._last_clocks.get(thread)
        if clock is not None:
            self._core.join(clock)

    def saw_the_living(self, *_arguments: Any) -> None:
        """Order whoever counts the living after those that are gone."""
        self._core.acquire(self._gone)

    def before_shutdown(self) -> None:
        """Let threads that wait for the main thread know what it did."""
        main = sys.modules["threading"].main_thread()
        self._last_clocks.set(main, self._core.snapshot())

    # -- threads without a Thread ----------------------------------------------------------------------------------

    def wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `function` as the target of a raw thread that is started now."""
        clock, lines, parent = self._core.snapshot(), self.lines(), self._core.thread_uid()
        name = f"thread of {getattr(function, '__qualname__', None) or type(function).__qualname__}"

        def begin(*_arguments: Any, **_named: Any) -> None:
            self._remember(self._core.thread_begin(None, clock), Started(None, name, lines, parent))
            self._layer.pause()

        def end(*_arguments: Any, **_named: Any) -> None:
            self._core.thread_end()

        return self._core.wrap(function, begin, end, end, muted=False)


class Gone:
    """What stands for all ended threads: the core keeps their clocks beside it."""

    __slots__ = ("__weakref__",)


class Chain:
    """What stands for the tasks of one worker."""

    __slots__ = ("__weakref__",)


class StartsThreads:
    """`_thread.start_new_thread` and its like; an instance, since a builtin in a class body is no method either."""

    def __init__(self, threads: Threads, original: Callable[..., Any]) -> None:
        self._threads: Threads | None = threads
        self.__wrapped__ = original
        self.__name__ = self.__qualname__ = original.__name__
        self.__doc__ = original.__doc__

    def retire(self) -> None:
        """Do what the original does; modules may have kept this object."""
        self._threads = None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Start a thread as the original does."""
        threads = self._threads
        # Thread.start() comes along here as well, muted.
        if threads is not None and arguments and callable(arguments[0]) and not threads._layer.is_muted():  # noqa: SLF001
            arguments = threads.wrapped(arguments[0]), *arguments[1:]
        return self.__wrapped__(*arguments, **named)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


def lines_of(frame: FrameType | None) -> tuple[Line, ...]:
    """Return the code and line of a frame and its callers, innermost first, without ours."""
    lines: list[Line] = []
    while frame is not None and len(lines) < DEEPEST:
        if not frame.f_code.co_filename.startswith(OURS):
            lines.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(lines)
