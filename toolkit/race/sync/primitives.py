"""Event, Semaphore, Barrier and Condition: what each promises, rather than what its mutex happens to order."""

from __future__ import annotations

import sys
from _thread import get_ident

from gilscope.toolkit.race.sync.layer import Attached, allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable
    from typing import Any

    from gilscope.toolkit.race.core import Core
    from gilscope.toolkit.race.sync.layer import Layer
    from gilscope.toolkit.race.sync.threads import Threads

MOST_PERMITS = 65_536    # a semaphore of more bounds nothing, and a clock per permit would cost memory


def patch(layer: Layer, threads: Threads, module: Any) -> None:
    """Patch the primitives of the threading module."""
    core = layer.core
    patch_event(layer, threads, module.Event)
    Semaphores(core).patch(layer, module)
    Barriers(layer).patch(module.Barrier)
    layer.put(module, "_allocate_lock", waiters(core, module))


# -- Event ---------------------------------------------------------------------------------------------------------


def patch_event(layer: Layer, threads: Threads, event: type) -> None:
    """Order set() before a wait() or is_set() that returns True."""
    core = layer.core

    def saw(_state: object, is_set: bool, event: object, *_timeout: Any, **_named: Any) -> None:  # noqa: FBT001
        if is_set:
            core.acquire(event)

    def has_set(_state: object, _result: object, event: object) -> None:
        threads.has_started(event)

    layer.hook(event, "set", core.release, has_set)
    layer.hook(event, "wait", None, saw)
    layer.hook(event, "is_set", None, saw)
    layer.hook(event, "clear")      # its mutex orders nothing either


# -- Condition -----------------------------------------------------------------------------------------------------


class Waiter:
    """The lock on which Condition.wait sleeps: carries the clock of the notify that woke it, and is held by nobody."""

    __slots__ = ("acquire", "release")

    def __init__(self, core: Core) -> None:
        lock, clocks = allocate_lock(), []

        def notify() -> None:
            clocks.append(core.snapshot())

        def woken(_state: object, got: bool, *_arguments: Any, **_named: Any) -> None:  # noqa: FBT001
            if got and clocks:
                core.join(clocks[-1])

        self.acquire = core.wrap(lock.acquire, None, woken)
        self.release = core.wrap(lock.release, notify)


def waiters(core: Core, module: Any) -> Callable[[], Any]:
    """Return what `threading._allocate_lock` becomes: Condition.wait gets a Waiter, others what they asked for."""
    original = vars(module)["_allocate_lock"]
    wait_code = module.Condition.wait.__code__

    def allocate() -> Any:
        if sys._getframe(1).f_code is wait_code:  # noqa: SLF001  the one caller whose lock is not a lock
            return Waiter(core)
        return original()

    return allocate


# -- Semaphore -----------------------------------------------------------------------------------------------------


class Semaphores:
    """Permits in the order in which they were released, each with the clock of its release; the first ones have none.

    So a semaphore of one permit orders as a lock, one of two lets two threads go unordered, and who collects all
    permits is ordered after all that gave one back.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._permits = Attached()

    def patch(self, layer: Layer, module: Any) -> None:
        """Patch Semaphore and BoundedSemaphore."""
        for kind in (module.Semaphore, module.BoundedSemaphore):
            layer.hook(kind, "acquire", None, self.acquired)
            layer.hook(kind, "__enter__", None, self.acquired)    # an alias of the unpatched acquire
            layer.hook(kind, "release", self.releasing, None, self.release_failed)
        layer.hook(module.Semaphore, "__init__", None, self.created)

    def created(self, _state: object, _result: object, semaphore: Any, *_arguments: Any, **_named: Any) -> None:
        """Begin with as many permits as the semaphore."""
        self._permits.set(semaphore, self._untouched(semaphore))

    def _untouched(self, semaphore: Any) -> deque[object | None]:
        from collections import deque  # threading has imported it
        return deque([None] * min(semaphore._value, MOST_PERMITS))  # noqa: SLF001

    def _of(self, semaphore: Any) -> deque[object | None]:
        permits: deque[object | None] = self._permits.make(semaphore, lambda: self._untouched(semaphore))
        return permits

    def acquired(self, _state: object, got: bool, semaphore: Any, *_arguments: Any, **_named: Any) -> None:  # noqa: FBT001
        """Take the oldest permit."""
        if not got:
            return
        try:
            clock = self._of(semaphore).popleft()
        except IndexError:   # one of those beyond MOST_PERMITS, or older than this layer
            return
        if clock is not None:
            self._core.join(clock)

    def releasing(self, semaphore: Any, n: int = 1) -> list[object]:
        """Add permits, before others can take them."""
        clocks = [self._core.snapshot()] * min(n, MOST_PERMITS)
        self._of(semaphore).extend(clocks)
        return clocks

    def release_failed(self, clocks: list[object] | None, _error: BaseException, semaphore: Any,
                       *_arguments: Any, **_named: Any) -> None:
        """Take back the permits that there were too many of."""
        permits = self._of(semaphore)
        for clock in clocks or ():
            try:
                permits.remove(clock)
            except (ValueError, IndexError):   # taken by another thread meanwhile, or the deque changed
                return


# -- Barrier -------------------------------------------------------------------------------------------------------


class Barriers:
    """All who arrive in a generation before all who depart in it, and before the action; nothing across generations.

    The private methods hooked here run under the barrier's mutex, where it is clear who belongs to which generation.
    """

    def __init__(self, layer: Layer) -> None:
        self._layer = layer
        self._core = layer.core
        self._rounds = Attached()

    def patch(self, barrier: type) -> None:
        """Patch Barrier."""
        hook = self._layer.hook
        hook(barrier, "wait", None, self.departed, self.broke)
        hook(barrier, "_enter", None, self.arrived, muted=False)
        hook(barrier, "_release", self.all_arrived, self.released, self.release_failed, muted=False)
        hook(barrier, "_break", self.breaking, muted=False)
        hook(barrier, "abort")
        hook(barrier, "reset", self.breaking)

    def _of(self, barrier: object) -> Rounds:
        rounds: Rounds = self._rounds.make(barrier, Rounds)
        return rounds

    def arrived(self, _state: object, _result: object, barrier: object) -> None:
        """Add the thread's clock to the generation that fills."""
        rounds = self._of(barrier)
        rounds.filling.append(self._core.snapshot())
        rounds.member_of[get_ident()] = rounds.filling

    def all_arrived(self, barrier: object) -> int:
        """Order the last one's action after all arrivals, and let it count as the program's code."""
        rounds = self._of(barrier)
        clocks, rounds.filling = rounds.filling, []
        for clock in clocks:
            self._core.join(clock)
        return self._layer.unmute()

    def released(self, level: int, _result: object, barrier: object) -> None:
        """Order all departures after the action."""
        clocks = self._of(barrier).member_of.get(get_ident())
        if clocks is not None:
            clocks.append(self._core.snapshot())
        self._core.restore(level)

    def release_failed(self, level: int, _error: BaseException, _barrier: object) -> None:
        """End the action's turn; the barrier is broken by now."""
        self._core.restore(level)

    def breaking(self, barrier: object) -> None:
        """Let those who are turned away know what came before; the next generation begins anew."""
        self._of(barrier).filling = []
        self._core.release(barrier)

    def departed(self, _state: object, _result: object, barrier: object, *_arguments: Any, **_named: Any) -> None:
        """Order the thread after all arrivals of its generation."""
        for clock in self._of(barrier).member_of.pop(get_ident(), ()):
            self._core.join(clock)

    def broke(self, _state: object, _error: BaseException, barrier: object, *_arguments: Any, **_named: Any) -> None:
        """Order the thread after whoever broke or reset the barrier."""
        self._of(barrier).member_of.pop(get_ident(), None)
        self._core.acquire(barrier)


class Rounds:
    """The generation of a barrier that fills, and the one each waiting thread belongs to."""

    __slots__ = ("filling", "member_of")

    def __init__(self) -> None:
        self.filling: list[object] = []
        self.member_of: dict[int, list[object]] = {}     # thread ident -> clocks of its generation
