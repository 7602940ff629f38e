"""Happens-before edges through queues: getting an item is ordered after putting it.

Two workers on one queue stay unordered: the queue's mutex is no synchronisation edge.
"""

from __future__ import annotations

from gilscope.toolkit.race.sync.layer import ObjectStates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gilscope.toolkit.race.core import Core
    from gilscope.toolkit.race.sync.layer import SyncLayer

RECENT = 32           # clocks of the latest puts, kept for items whose own clock is unknown
OVERRIDABLE = ("_init", "_qsize", "_put", "_get")      # methods that subclasses of Queue override
BUILTIN_COMPARED = frozenset({int, float, str, bytes, bool, type(None)})    # compared without code of the program


class ItemClocks:
    """The vector clocks of the items in one queue."""

    __slots__ = ("clocks", "recent", "runs_code")

    def __init__(self) -> None:
        from collections import deque  # the queue module has imported it
        self.clocks: dict[int, deque[object]] = {}      # id(item) -> clocks of its puts, oldest first
        self.recent: deque[object] = deque(maxlen=RECENT)
        self.runs_code = False      # True if comparing the items runs code of the program

    def put(self, item: object, clock: object) -> None:
        """Store the clock of a put, before other threads can get the item."""
        from collections import deque
        self.recent.append(clock)
        clocks = self.clocks.get(id(item))
        if clocks is None:
            clocks = self.clocks.setdefault(id(item), deque())
        clocks.append(clock)

    def take(self, item: object, *, newest: bool = False) -> tuple[object, ...]:
        """Return the clocks to join after getting `item`.

        That is the clock of its put, the oldest one if the object was put several times, as in the queue.  If that is
        unknown, it is the clocks of all recent puts: SimpleQueue has no lock to update the clocks under, so an object
        may be put and got at the same time.
        """
        clocks = self.clocks.get(id(item))
        try:
            clock = clocks and (clocks.pop() if newest else clocks.popleft())
        except IndexError:
            clock = None
        if clock is None:
            return tuple(self.recent.copy())
        if not clocks:
            self._drop(item)
        return (clock,)

    def _drop(self, item: object) -> None:
        left = self.clocks.pop(id(item), None)
        for clock in left.copy() if left else ():      # another thread has just put it again
            self.put(item, clock)

    def waiting(self) -> list[object]:
        """Return the clocks of all items in the queue, oldest first."""
        return [clock for clocks in self.clocks.copy().values() for clock in clocks.copy()]


class QueuePatches:
    """Patches of the queue module."""

    def __init__(self, layer: SyncLayer) -> None:
        self._layer = layer
        self._core: Core = layer.core
        self._items = ObjectStates()
        self._plain: dict[type, bool] = {}     # class of queue -> True if no code of the program runs under its mutex

    def patch(self, module: Any) -> None:
        """Patch Queue and its subclasses, and SimpleQueue."""
        wrap = self._layer.wrap
        wrap(module.Queue, "put", self.mute_unless_overridden, None, self.on_error)
        wrap(module.Queue, "get", self.mute_unless_overridden, self.after_public_get, self.on_error)
        for name, after in (("qsize", self.after_size), ("full", self.after_size), ("empty", self.after_empty)):
            wrap(module.Queue, name, self.mute_unless_overridden, after)
        wrap(module.Queue, "task_done", self.before_task_done)
        wrap(module.Queue, "join", None, self.after_join)
        wrap(module.Queue, "shutdown", self.before_shutdown)      # 3.13
        for kind, got in ((module.Queue, self.after_get), (module.LifoQueue, self.after_lifo_get)):
            wrap(kind, "_put", self.before_put, muted=False)
            wrap(kind, "_get", None, got, muted=False)
        heap, compared = module.PriorityQueue, self.after_comparison
        wrap(heap, "_put", self.before_heap_put, compared, compared, muted=False)
        wrap(heap, "_get", self.before_comparison, self.after_heap_get, compared, muted=False)
        self._patch_simple(module.SimpleQueue)

    def _of(self, queue: object) -> ItemClocks:
        items: ItemClocks = self._items.make(queue, ItemClocks)
        return items

    def _join(self, clocks: Any) -> None:
        for clock in clocks:
            self._core.join(clock)

    # -- Queue -----------------------------------------------------------------------------------------------------

    def mute_unless_overridden(self, queue: object, *_arguments: Any, **_named: Any) -> object:
        """Return NotImplemented, so that the mutex adds edges, if a subclass overrides _init, _qsize, _put or _get."""
        kind = type(queue)
        plain = self._plain.get(kind)
        if plain is None:
            plain = self._plain[kind] = all(defined_in(kind, name) == "queue" for name in OVERRIDABLE)
        return None if plain else NotImplemented

    def before_put(self, queue: Any, item: object) -> None:
        """Store the putter's clock; the mutex is held.

        Also release the mutex: code of the program that acquires it to inspect the items is ordered after the puts.
        """
        self._of(queue).put(item, self._core.snapshot())
        self._core.release(queue.mutex)

    def after_get(self, _state: object, item: object, queue: Any) -> None:
        """Add the edge from the put to the get; the mutex is held."""
        items = self._of(queue)
        self._join(items.take(item))
        if not queue.queue:
            items.clocks.clear()     # left over from items that the program removed from `queue` itself

    def after_lifo_get(self, _state: object, item: object, queue: Any) -> None:
        """Add the edge from the latest put of the item to the get."""
        items = self._of(queue)
        self._join(items.take(item, newest=True))
        if not queue.queue:
            items.clocks.clear()

    def after_public_get(self, _state: object, _item: object, _queue: object, *_arguments: Any, **_named: Any) -> None:
        """Pause, so that other workers get some of the items."""
        self._layer.pause()

    def before_heap_put(self, queue: Any, item: object) -> int | None:
        """Store the putter's clock; if comparing items runs code of the program, the mutex orders that code."""
        items = self._of(queue)
        if not items.runs_code and runs_code(item):
            items.runs_code = True
        level = self.before_comparison(queue)
        self.before_put(queue, item)
        return level

    def before_comparison(self, queue: Any) -> int | None:
        """Track comparisons that run code of the program, ordered by the mutex."""
        if not self._of(queue).runs_code:
            return None
        self._core.acquire(queue.mutex)
        return self._layer.unmute()

    def after_comparison(self, level: int | None, _result: object, queue: Any, *_arguments: Any) -> None:
        """End what `before_comparison` began."""
        if level is not None:
            self._core.restore(level)
            self._core.release(queue.mutex)

    def after_heap_get(self, level: int | None, item: object, queue: Any) -> None:
        """End the comparisons and add the edge from the put to the get."""
        self.after_comparison(level, None, queue)
        self.after_get(None, item, queue)

    def on_error(self, _state: object, error: BaseException, queue: Any, *_arguments: Any, **_named: Any) -> None:
        """Add the edge from shutdown() to a call that raises ShutDown; Full and Empty add none."""
        if type(error).__name__ == "ShutDown":
            self._core.acquire(queue.not_full)

    def before_shutdown(self, queue: Any, *_arguments: Any, **_named: Any) -> None:
        """Release the clock of shutdown() to calls that raise ShutDown and to join()."""
        self._core.release(queue.not_full)
        self._core.release(queue.all_tasks_done)
        self._core.release(queue.mutex)

    def before_task_done(self, queue: Any) -> None:
        """Release the clock of the task to join(), and to code that waits for all_tasks_done itself."""
        self._core.release(queue.all_tasks_done)
        self._core.release(queue.mutex)

    def after_join(self, _state: object, _result: object, queue: Any) -> None:
        """Add the edges from all tasks to join()."""
        self._core.acquire(queue.all_tasks_done)

    def after_size(self, _state: object, size: int, queue: Any) -> None:
        """Add the edges from the puts of all waiting items to a positive qsize()."""
        if size:
            self._join(self._of(queue).waiting())

    def after_empty(self, _state: object, empty: bool, queue: Any) -> None:  # the method's result
        """Add the edge from the oldest put to an empty() that returns False."""
        if not empty:
            self._join(self._of(queue).waiting()[:1])

    # -- SimpleQueue -----------------------------------------------------------------------------------------------

    def _patch_simple(self, kind: type) -> None:
        for name, before, after in (
            ("put", self.before_simple_put, self.do_nothing), ("put_nowait", self.before_simple_put, self.do_nothing),
            ("get", None, self.after_simple_get), ("get_nowait", None, self.after_simple_get),
            ("qsize", None, self.after_size), ("empty", None, self.after_empty)):
            self._layer.wrap(kind, name, before, after)

    def do_nothing(self, *_arguments: Any, **_named: Any) -> None:
        """Do nothing."""

    def before_simple_put(self, queue: object, *arguments: Any, **named: Any) -> None:
        """Store the putter's clock."""
        self._of(queue).put(arguments[0] if arguments else named["item"], self._core.snapshot())

    def after_simple_get(self, _state: object, item: object, queue: object, *_arguments: Any, **_named: Any) -> None:
        """Add the edge from the put to the get."""
        self._join(self._of(queue).take(item))
        self._layer.pause()


def defined_in(kind: type, name: str) -> str | None:
    """Return the module of the class that `kind` has this method from."""
    for base in kind.__mro__:
        if name in vars(base):
            return base.__module__
    return None


def runs_code(item: object) -> bool:
    """Return True if comparing `item` may run code of the program.

    The members of a tuple count.  Objects without an order of their own are never compared, as in `(number, task)`.
    """
    if type(item) in BUILTIN_COMPARED:
        return False
    if isinstance(item, (tuple, list)):
        return any(runs_code(member) for member in item)
    return any(hasattr(getattr(type(item), name, None), "__code__") for name in ("__lt__", "__gt__"))
