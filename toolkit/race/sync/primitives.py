"""Happens-before edges of Event, Semaphore, Barrier and Condition: what each guarantees, not what its mutex orders."""

from __future__ import annotations

import sys
from _thread import get_ident

from gilscope.toolkit.race.sync.layer import ObjectStates, allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable
    from typing import Any

    from gilscope.toolkit.race.core import Core
    from gilscope.toolkit.race.sync.layer import SyncLayer
    from gilscope.toolkit.race.sync.threads import ThreadTracker

MOST_PERMITS = 65_536    # a semaphore with more limits nothing, and each permit needs memory for a clock


def patch(layer: SyncLayer, threads: ThreadTracker, module: Any) -> None:
    """Patch the primitives of the threading module."""
    core = layer.core
    patch_event(layer, threads, module.Event)
    SemaphorePatches(core).patch(layer, module)
    BarrierPatches(layer).patch(module.Barrier)
    layer.replace(module, "_allocate_lock", make_allocate_lock(core, module))


# -- Event ---------------------------------------------------------------------------------------------------------


def patch_event(layer: SyncLayer, threads: ThreadTracker, event: type) -> None:
    """Add the edge from set() to a wait() or is_set() that returns True."""
    core = layer.core

    def saw(_state: object, is_set: bool, event: object, *_timeout: Any, **_named: Any) -> None:
        if is_set:
            core.acquire(event)

    def has_set(_state: object, _result: object, event: object) -> None:
        threads.pause_newborn(event)

    layer.wrap(event, "set", core.release, has_set)
    layer.wrap(event, "wait", None, saw)
    layer.wrap(event, "is_set", None, saw)
    layer.wrap(event, "clear")      # muted: its mutex is no edge


# -- Condition -----------------------------------------------------------------------------------------------------


class ConditionWaiter:
    """The lock that Condition.wait sleeps on: it carries the clock of the notify() that wakes it."""

    __slots__ = ("acquire", "release")

    def __init__(self, core: Core) -> None:
        lock, clocks = allocate_lock(), []

        def notify() -> None:
            clocks.append(core.snapshot())

        def woken(_state: object, got: bool, *_arguments: Any, **_named: Any) -> None:
            if got and clocks:
                core.join(clocks[-1])

        self.acquire = core.wrap(lock.acquire, None, woken)
        self.release = core.wrap(lock.release, notify)


def make_allocate_lock(core: Core, module: Any) -> Callable[[], Any]:
    """Return a `threading._allocate_lock` that gives Condition.wait a ConditionWaiter and others a lock."""
    original = vars(module)["_allocate_lock"]
    wait_code = module.Condition.wait.__code__

    def allocate() -> Any:
        if sys._getframe(1).f_code is wait_code:  # this caller uses the lock for signalling
            return ConditionWaiter(core)
        return original()

    return allocate


# -- Semaphore -----------------------------------------------------------------------------------------------------


class PermitClocks:
    """The clocks of a semaphore's permits, in the order of their release; the initial ones have none."""

    def __init__(self, core: Core, permits: int) -> None:
        from collections import deque  # threading has imported it
        self._core = core
        self._clocks: deque[object | None] = deque([None] * permits if permits <= MOST_PERMITS else (), MOST_PERMITS)

    def after_acquire(self, _state: object, got: bool, *_arguments: Any, **_named: Any) -> None:
        """Add the edge from the oldest release to a successful acquire()."""
        try:
            clock = self._clocks.popleft() if got else None
        except IndexError:   # a permit beyond MOST_PERMITS, or of a semaphore made before this layer
            return
        if clock is not None:
            self._core.join(clock)

    def before_release(self, n: int = 1) -> list[object]:
        """Add permits with this thread's clock, before others can acquire them."""
        clocks = [self._core.snapshot()] * min(n, MOST_PERMITS)
        self._clocks.extend(clocks)
        return clocks

    def release_failed(self, clocks: list[object] | None, _error: BaseException) -> None:
        """Remove the permits that a failed release() added."""
        for clock in clocks or ():
            try:
                self._clocks.remove(clock)
            except (ValueError, IndexError):   # another thread has acquired one, or the deque has changed
                return


class SemaphorePatches:
    """Patches of semaphores: permits in the order of their release, each with the clock of its release.

    So a semaphore with one permit orders like a lock, one with two leaves two threads unordered, and acquiring all
    permits is ordered after all releases.  The initial permits have no clock.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._permits = ObjectStates()

    def patch(self, layer: SyncLayer, module: Any) -> None:
        """Patch Semaphore and BoundedSemaphore."""
        for kind in (module.Semaphore, module.BoundedSemaphore):
            layer.wrap(kind, "acquire", None, self.after_acquire)
            layer.wrap(kind, "__enter__", None, self.after_acquire)    # an alias of the unpatched acquire
            layer.wrap(kind, "release", self.before_release, None, self.release_failed)
        layer.wrap(module.Semaphore, "__init__", None, self.after_init)

    def after_init(self, _state: object, _result: object, semaphore: Any, *_arguments: Any, **_named: Any) -> None:
        """Create the permits of a new semaphore."""
        self._permits.set(semaphore, self._untouched(semaphore))

    def _untouched(self, semaphore: Any) -> PermitClocks:
        # Of more permits than are counted it has some: an acquire that gets one of those comes after no release.
        return PermitClocks(self._core, min(semaphore._value, MOST_PERMITS))

    def _of(self, semaphore: Any) -> PermitClocks:
        permits: PermitClocks = self._permits.make(semaphore, lambda: self._untouched(semaphore))
        return permits

    def after_acquire(self, state: object, got: bool, semaphore: Any, *_arguments: Any, **_named: Any) -> None:
        """Add the edge from the oldest release."""
        self._of(semaphore).after_acquire(state, got)

    def before_release(self, semaphore: Any, n: int = 1) -> list[object]:
        """Add permits with this thread's clock."""
        return self._of(semaphore).before_release(n)

    def release_failed(self, clocks: list[object] | None, error: BaseException, semaphore: Any,
                       *_arguments: Any, **_named: Any) -> None:
        """Remove the permits that a failed release() added."""
        self._of(semaphore).release_failed(clocks, error)


# -- Barrier -------------------------------------------------------------------------------------------------------


class BarrierPatches:
    """Patches of Barrier: edges from the arrivals of a generation to its action and departures, no further.

    The private methods patched here run under the barrier's mutex, where the generation of a thread is known.
    """

    def __init__(self, layer: SyncLayer) -> None:
        self._layer = layer
        self._core = layer.core
        self._rounds = ObjectStates()

    def patch(self, barrier: type) -> None:
        """Patch Barrier."""
        wrap = self._layer.wrap
        wrap(barrier, "wait", None, self.after_wait, self.on_wait_error)
        wrap(barrier, "_enter", None, self.after_enter, muted=False)
        wrap(barrier, "_release", self.before_action, self.after_action, self.release_failed, muted=False)
        wrap(barrier, "_break", self.before_break, muted=False)
        wrap(barrier, "abort")
        wrap(barrier, "reset", self.before_break)

    def _of(self, barrier: object) -> BarrierGenerations:
        rounds: BarrierGenerations = self._rounds.make(barrier, BarrierGenerations)
        return rounds

    def after_enter(self, _state: object, _result: object, barrier: object) -> None:
        """Add the thread's clock to the generation that is filling."""
        rounds = self._of(barrier)
        rounds.filling.append(self._core.snapshot())
        rounds.generation_of[get_ident()] = rounds.filling

    def before_action(self, barrier: object) -> int:
        """Add the edges from all arrivals to the action, and track the action."""
        rounds = self._of(barrier)
        clocks, rounds.filling = rounds.filling, []
        for clock in clocks:
            self._core.join(clock)
        return self._layer.unmute()

    def after_action(self, level: int, _result: object, barrier: object) -> None:
        """Let the departures be ordered after the action."""
        clocks = self._of(barrier).generation_of.get(get_ident())
        if clocks is not None:
            clocks.append(self._core.snapshot())
        self._core.restore(level)

    def release_failed(self, level: int, _error: BaseException, _barrier: object) -> None:
        """End the tracking of an action that failed; the barrier is broken."""
        self._core.restore(level)

    def before_break(self, barrier: object) -> None:
        """Release this thread's clock to the waits that will raise, and start a new generation."""
        self._of(barrier).filling = []
        self._core.release(barrier)

    def after_wait(self, _state: object, _result: object, barrier: object, *_arguments: Any, **_named: Any) -> None:
        """Add the edges from all arrivals of the thread's generation to its departure."""
        for clock in self._of(barrier).generation_of.pop(get_ident(), ()):
            self._core.join(clock)

    def on_wait_error(self, _state: object, _error: BaseException, barrier: object, *_arguments: Any,
                      **_named: Any) -> None:
        """Add the edge from abort() or reset() to a wait() that raises."""
        self._of(barrier).generation_of.pop(get_ident(), None)
        self._core.acquire(barrier)


class BarrierGenerations:
    """The generation of a barrier that is filling, and the generations of the waiting threads."""

    __slots__ = ("filling", "generation_of")

    def __init__(self) -> None:
        self.filling: list[object] = []
        self.generation_of: dict[int, list[object]] = {}     # thread ident -> clocks of its generation
