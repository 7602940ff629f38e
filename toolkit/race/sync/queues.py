"""Queues: each item comes after what its putter did before; two workers around one queue stay unordered."""

from __future__ import annotations

from gilscope.toolkit.race.sync.layer import Attached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gilscope.toolkit.race.core import Core
    from gilscope.toolkit.race.sync.layer import Layer

RECENT = 32           # clocks of the last puts, for an item whose own clock cannot be told
INNER = ("_init", "_qsize", "_put", "_get")      # what subclasses of Queue override
UNCOMPARED = frozenset({int, float, str, bytes, bool, type(None)})     # their comparison runs no code of the program


class Items:
    """The clocks of the items in one queue."""

    __slots__ = ("clocks", "compared", "recent")

    def __init__(self) -> None:
        from collections import deque  # the queue module has imported it
        self.clocks: dict[int, deque[object]] = {}      # id(item) -> clocks of its puts, oldest first
        self.recent: deque[object] = deque(maxlen=RECENT)
        self.compared = False                           # comparing the items runs code of the program

    def put(self, item: object, clock: object) -> None:
        """Keep the clock of a put, before the item can be seen."""
        from collections import deque
        self.recent.append(clock)
        clocks = self.clocks.get(id(item))
        if clocks is None:
            clocks = self.clocks.setdefault(id(item), deque())
        clocks.append(clock)

    def take(self, item: object, *, newest: bool = False) -> tuple[object, ...]:
        """Return the clocks that whoever got `item` comes after.

        The clock of its put; of several puts of one object the oldest, as the queue would have it.  Where it cannot be
        told (SimpleQueue has no lock that this could be done under, and one object may be put and got at once): those
        of the last puts.
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
        for clock in left.copy() if left else ():      # put again just now
            self.put(item, clock)

    def waiting(self) -> list[object]:
        """Return the clocks of all items in the queue, the oldest first."""
        return [clock for clocks in self.clocks.copy().values() for clock in clocks.copy()]


class Queues:
    """Patches the queue module."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer
        self._core: Core = layer.core
        self._items = Attached()
        self._plain: dict[type, bool] = {}     # kind of queue -> no code of the program runs under its mutex

    def patch(self, module: Any) -> None:
        """Patch Queue and its kinds, and SimpleQueue."""
        hook = self._layer.hook
        hook(module.Queue, "put", self.entering, None, self.refused)
        hook(module.Queue, "get", self.entering, self.has_got, self.refused)
        for name, seen in (("qsize", self.saw_size), ("full", self.saw_size), ("empty", self.saw_empty)):
            hook(module.Queue, name, self.entering, seen)
        hook(module.Queue, "task_done", self.finishing)
        hook(module.Queue, "join", None, self.finished)
        hook(module.Queue, "shutdown", self.closing)      # 3.13
        for kind, got in ((module.Queue, self.got), (module.LifoQueue, self.got_newest)):
            hook(kind, "_put", self.putting, muted=False)
            hook(kind, "_get", None, got, muted=False)
        hook(module.PriorityQueue, "_put", self.comparing_put, self.compared, self.compared, muted=False)
        hook(module.PriorityQueue, "_get", self.comparing, self.got_least, self.compared, muted=False)
        self._patch_simple(module)

    def _of(self, queue: object) -> Items:
        items: Items = self._items.make(queue, Items)
        return items

    def _join(self, clocks: Any) -> None:
        for clock in clocks:
            self._core.join(clock)

    # -- Queue -----------------------------------------------------------------------------------------------------

    def entering(self, queue: object, *_arguments: Any, **_named: Any) -> object:
        """Say that the mutex counts, if the program's own code runs under it."""
        kind = type(queue)
        plain = self._plain.get(kind)
        if plain is None:
            plain = self._plain[kind] = all(defined_in(kind, name) == "queue" for name in INNER)
        return None if plain else NotImplemented

    def putting(self, queue: Any, item: object) -> None:
        """Keep the putter's clock; the mutex is held.

        The mutex gets it as well: code of the program that takes it, to look at what waits, comes after the puts.
        """
        self._of(queue).put(item, self._core.snapshot())
        self._core.release(queue.mutex)

    def got(self, _state: object, item: object, queue: Any) -> None:
        """Order the getter after the put; the mutex is held."""
        items = self._of(queue)
        self._join(items.take(item))
        if not queue.queue:
            items.clocks.clear()     # of items that the program took out itself

    def got_newest(self, _state: object, item: object, queue: Any) -> None:
        """Do the same for the last in, first out."""
        items = self._of(queue)
        self._join(items.take(item, newest=True))
        if not queue.queue:
            items.clocks.clear()

    def has_got(self, _state: object, _item: object, _queue: object, *_arguments: Any, **_named: Any) -> None:
        """Leave some items for other workers."""
        self._layer.pause()

    def comparing_put(self, queue: Any, item: object) -> int | None:
        """Put into a heap: if items are compared by the program's code, the mutex orders that code, as it does."""
        items = self._of(queue)
        if not items.compared and runs_code(item):
            items.compared = True
        level = self.comparing(queue)
        self.putting(queue, item)
        return level

    def comparing(self, queue: Any) -> int | None:
        """Let comparisons by the program's code count as such."""
        if not self._of(queue).compared:
            return None
        self._core.acquire(queue.mutex)
        return self._layer.unmute()

    def compared(self, level: int | None, _result: object, queue: Any, *_arguments: Any) -> None:
        """End what `comparing` began."""
        if level is not None:
            self._core.restore(level)
            self._core.release(queue.mutex)

    def got_least(self, level: int | None, item: object, queue: Any) -> None:
        """End the get of a heap."""
        self.compared(level, None, queue)
        self.got(None, item, queue)

    def refused(self, _state: object, error: BaseException, queue: Any, *_arguments: Any, **_named: Any) -> None:
        """Order whoever is told of the shutdown after it; a full or empty queue says nothing."""
        if type(error).__name__ == "ShutDown":
            self._core.acquire(queue.not_full)

    def closing(self, queue: Any, *_arguments: Any, **_named: Any) -> None:
        """Let those who are refused, and those who wait for all tasks, know what came before."""
        self._core.release(queue.not_full)
        self._core.release(queue.all_tasks_done)
        self._core.release(queue.mutex)

    def finishing(self, queue: Any) -> None:
        """Let join() know what the task did, and those who wait for all_tasks_done themselves."""
        self._core.release(queue.all_tasks_done)
        self._core.release(queue.mutex)

    def finished(self, _state: object, _result: object, queue: Any) -> None:
        """Order join() after all tasks."""
        self._core.acquire(queue.all_tasks_done)

    def saw_size(self, _state: object, size: int, queue: Any) -> None:
        """Order whoever counts the waiting items after their puts."""
        if size:
            self._join(self._of(queue).waiting())

    def saw_empty(self, _state: object, empty: bool, queue: Any) -> None:  # noqa: FBT001  the method's result
        """Order whoever sees that there is one after the oldest put."""
        if not empty:
            self._join(self._of(queue).waiting()[:1])

    # -- SimpleQueue -----------------------------------------------------------------------------------------------

    def _patch_simple(self, module: Any) -> None:
        """Patch the C type where the core can, else put a subclass in its place."""
        original = module.SimpleQueue
        hooks: tuple[tuple[str, Callable[..., Any] | None, Callable[..., Any]], ...] = (
            ("put", self.simple_putting, self.nothing), ("put_nowait", self.simple_putting, self.nothing),
            ("get", None, self.simple_got), ("get_nowait", None, self.simple_got),
            ("qsize", None, self.simple_saw_size), ("empty", None, self.simple_saw_empty))
        if not all(self._layer.hook(original, name, before, after) for name, before, after in hooks):
            body = {name: self._layer.core.wrap(vars(original)[name], before, after) for name, before, after in hooks}
            body |= {"__module__": original.__module__, "__doc__": original.__doc__}
            self._layer.put(module, "SimpleQueue", type(original.__name__, (original,), body))

    def nothing(self, *_arguments: Any, **_named: Any) -> None:
        """Do nothing."""

    def simple_putting(self, queue: object, *arguments: Any, **named: Any) -> None:
        """Keep the putter's clock."""
        self._of(queue).put(arguments[0] if arguments else named["item"], self._core.snapshot())

    def simple_got(self, _state: object, item: object, queue: object, *_arguments: Any, **_named: Any) -> None:
        """Order the getter after the put."""
        self._join(self._of(queue).take(item))
        self._layer.pause()

    def simple_saw_size(self, _state: object, size: int, queue: object) -> None:
        """Order whoever counts the waiting items after their puts."""
        if size:
            self._join(self._of(queue).waiting())

    def simple_saw_empty(self, _state: object, empty: bool, queue: object) -> None:  # noqa: FBT001
        """Order whoever sees that there is one after the oldest put."""
        if not empty:
            self._join(self._of(queue).waiting()[:1])


def defined_in(kind: type, name: str) -> str | None:
    """Return the module of the class that gives `kind` this method."""
    for base in kind.__mro__:
        if name in vars(base):
            return base.__module__
    return None


def runs_code(item: object) -> bool:
    """Return whether comparing `item` may run code of the program.

    A tuple's members count; a task behind a unique number, which has no order of its own, is never compared.
    """
    if type(item) in UNCOMPARED:
        return False
    if isinstance(item, (tuple, list)):
        return any(runs_code(member) for member in item)
    return any(hasattr(getattr(type(item), name, None), "__code__") for name in ("__lt__", "__gt__"))
