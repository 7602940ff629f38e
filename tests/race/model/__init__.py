"""The reference model of the race checker's core: the algorithm of the core in C, in readable Python.

Both run the same cases and check the same programs; where their reports differ, one of them is wrong.  In a checked
process, `gilscope.toolkit.race._core.build.load` returns the core that is loaded already: `replace_c_core` makes that
the reference model.  `command` is gilscope with checked programs that begin with this call.

The ops (`ops_variables`, `ops_items`, `ops_methods`, `ops_containers`) turn the program's accesses into operations on
locations; `detection`, `spans` and `handoff` compare them with the shadow state, under the one lock of `monitor`.
"""

from __future__ import annotations

import sys

from gilscope.toolkit.race._core import build
from tests.race.model import (
    foreign_locks,
    locks,
    ops_containers,
    ops_items,
    ops_methods,
    ops_variables,
    patching,
)
from tests.race.model.locks import LockTracker
from tests.race.model.monitor import Monitor
from tests.race.model.state import ReferenceSite, VectorClock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gilscope.toolkit.race.core import Conflict, Place
    from gilscope.toolkit.race.site import SiteInfo


class ReferenceCore:
    """Shadow state, vector clocks and locks of one process; see `gilscope.toolkit.race.core.Core`."""

    name = "Python"

    def __init__(self) -> None:
        self._monitor = monitor = Monitor()
        self._holding = LockTracker(monitor)
        self._fork_known = False
        self.ops: dict[str, Callable[..., Any]] = {
            **ops_variables.variable_ops(monitor), **ops_items.ops(monitor), **ops_methods.ops(monitor),
            **ops_containers.ops(monitor), **ops_variables.call_ops(monitor),
            "locking": foreign_locks.op(self._holding, monitor)}

    def site(self, info: SiteInfo, number: int) -> object:
        """Return the site object that ops get; its partners are site numbers already."""
        return ReferenceSite(info, number)

    def start(self, on_conflict: Callable[[Conflict], bool]) -> None:
        """Begin to record; `on_conflict` is called with each conflict, in the thread that found it."""
        self._survive_fork()
        self._monitor.start(on_conflict)

    def report_gaps(self, on_gap: Callable[[str, int], None]) -> None:
        """Do nothing: the model has no limit of threads, and learns of deaths from weak references."""

    def hook_changed(self, *arguments: object) -> None:
        """Do nothing: there is no hook."""

    def stop(self) -> None:
        """Stop recording."""
        self._monitor.stop()

    def release(self, owner: object) -> None:
        """Add a happens-before edge from now to each later `acquire` of the same object, or of the tracked lock."""
        record = locks.record_of(owner)
        if record is None:
            self._monitor.release(owner)
        else:
            self._holding.publish(record)

    def acquire(self, owner: object) -> None:
        """Add an edge from every release of the object; a tracked lock's releases count as lock order only."""
        record = locks.record_of(owner)
        if record is None:
            self._monitor.acquire(owner)
        else:
            self._holding.observe(record)

    def snapshot(self) -> object:
        """Return this moment; what this thread does from now on is not before it."""
        return self._monitor.snapshot()

    def join(self, clock: object) -> None:
        """Add an edge from a moment that `snapshot` or `thread_end` returned."""
        if isinstance(clock, VectorClock):
            self._monitor.change(lambda state: state.join(clock))

    def mute(self) -> int:
        """Make this thread's locks add no edges until `restore` is called with the result."""
        state = self._monitor.threads.current()
        state.muted += 1
        return state.muted - 1

    def restore(self, level: int) -> None:
        """Go back to what was before `mute`."""
        self._monitor.threads.current().muted = level

    def wrap(self, original: Callable[..., Any], before: Callable[..., Any] | None = None,
             after: Callable[..., Any] | None = None, failed: Callable[..., Any] | None = None, *,
             muted: bool = True, handles_signal: bool = False) -> Callable[..., Any]:
        """Return a callable like `original` with calls around it; adds one frame to tracebacks of failing calls.

        `state = before(*args)`, then the original with locks muted, then `after(state, result, *args)`, or
        `failed(state, error, *args)` when it raised.  A muted one inside a muted one is the original alone; a
        `before` that returns NotImplemented leaves the locks as they are.  A signal handler waits for the end of such
        a call.
        """
        wrapped = patching.WrappedFunction(self._monitor.threads, original, (before, after, failed), muted=muted)
        return patching.deferrable(wrapped) if handles_signal else wrapped

    def patch(self, owner: Any, name: str, replacement: object) -> Callable[[], None] | None:
        """Set an attribute; return what undoes it, or None where it cannot be set (immutable types)."""
        return patching.patch(owner, name, replacement)

    def track_locks(self) -> Callable[[], None]:
        """Replace the lock classes of `_thread` and `threading`; locks made before stay untracked."""
        return locks.install(self._holding)

    def thread_begin(self, thread: object, clock: object | None) -> int:
        """Begin this thread after `clock`, or after everything so far; return its uid.

        Where one has begun and not ended yet (the worker of a pool), this is a logical thread on top of it.
        """
        uid = self._monitor.threads.begin(clock if isinstance(clock, VectorClock) else None).uid
        self._monitor.tidy()
        return uid

    def thread_end(self) -> object:
        """End this thread, or the topmost logical one; return its last moment.

        What an ended thread still does, in destructors of its locals, is not noted.
        """
        return self._monitor.end_thread()

    def thread_uid(self) -> int:
        """Return this thread's uid; the main thread's is 0."""
        return self._monitor.threads.current().uid

    def after_fork(self) -> None:
        """Go on in a child process, where all other threads have ended."""
        self._monitor.threads.fork()
        self._monitor.tidy()

    def locks_held(self) -> tuple[int, ...]:
        """Return the uids of the locks this thread holds, innermost first."""
        return self._holding.held()

    def lock_origin(self, uid: int) -> tuple[tuple[Place, ...], object | None]:
        """Return the stack of a lock's first acquisition, and the lock if it still lives."""
        return self._holding.origin(uid)

    def stack(self, context: int) -> tuple[Place, ...]:
        """Return the callers of an access, innermost first."""
        return self._monitor.contexts.places(context)

    def object_number(self, owner: object) -> int:
        """Return the object's number, which no other object of the process has had."""
        return self._monitor.number_of(owner)

    def counts(self) -> dict[tuple[int, int], int]:
        """Return the number of conflicts by pair of sites, the smaller number first."""
        return self._monitor.counts.copy()

    def busy(self) -> BusyContext:
        """Return a context in which this thread's accesses are not noted."""
        return BusyContext(self._monitor)

    def _survive_fork(self) -> None:
        if not self._fork_known:
            self._fork_known = True
            from os import register_at_fork

            register_at_fork(after_in_child=self.after_fork)


class BusyContext:
    """While it is entered, what this thread does is not noted."""

    __slots__ = ("_monitor",)

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def __enter__(self) -> None:
        self._monitor.threads.current().quiet += 1

    def __exit__(self, *_: object) -> None:
        self._monitor.threads.current().quiet -= 1


def replace_c_core() -> None:
    """Have this process checked with the reference model; call it before anything loads the core in C."""
    sys.modules[build.NAME] = ReferenceCore()   # type: ignore[assignment]  # `load` returns it as it is
