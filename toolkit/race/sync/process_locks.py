"""Locks and semaphores of multiprocessing: between the threads of one process they order as those of threading do."""

from __future__ import annotations

from gilscope.toolkit.race.sync.primitives import PermitClocks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gilscope.toolkit.race.sync.layer import SyncLayer


class ProcessLockPatches:
    """Patches of multiprocessing's primitives, whose methods are those of a C object.

    A lock has a twin, a lock of threading, which the core tracks: it is acquired once the real one is, and released
    before it.  It never blocks.  In a forked child, the twin may be locked for a thread that does not exist there: then
    it is not acquired, and the real lock counts as unknown.
    """

    def __init__(self, layer: SyncLayer) -> None:
        self._layer = layer

    def patch_synchronize(self, module: Any) -> None:
        """Patch the base class of all of them; objects that exist already keep their methods."""
        self._recursive: int = module.RECURSIVE_MUTEX
        self._layer.wrap(module.SemLock, "_make_methods", None, self.after_make_methods)
        # These call the C object's own methods.
        self._layer.replace(module.SemLock, "__enter__", _enter)
        self._layer.replace(module.SemLock, "__exit__", _exit)

    def patch_queues(self, module: Any) -> None:
        """Mute the locks that order two readers of a queue by chance."""
        self._layer.wrap(module.Queue, "get")
        self._layer.wrap(module.SimpleQueue, "get")
        self._layer.wrap(module.SimpleQueue, "put")

    def after_make_methods(self, _state: object, _result: object, lock: Any) -> None:
        """Wrap the methods of a new or unpickled object."""
        import threading  # multiprocessing has imported it

        semlock, core = lock._semlock, self._layer.core
        beside: LockTwin | PermitClocks
        if semlock.kind == self._recursive:
            beside = LockTwin(threading.RLock())
        elif semlock.maxvalue == 1:
            beside = LockTwin(threading.Lock())
        else:
            beside = PermitClocks(core, semlock._get_value())
        # The wrappers refer to what stands beside the lock, not to the lock: a cycle would delay its removal.
        lock.acquire = core.wrap(semlock.acquire, None, beside.after_acquire)
        lock.release = core.wrap(semlock.release, beside.before_release, None, beside.release_failed)


def _enter(self: Any) -> bool:
    acquired: bool = self.acquire()
    return acquired


def _exit(self: Any, *_error: object) -> None:
    self.release()


class LockTwin:
    """The tracked lock beside a lock of multiprocessing."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock

    def after_acquire(self, _state: object, got: bool, *_arguments: Any, **_named: Any) -> None:
        """Acquire the twin after a successful acquire()."""
        if got:
            self._lock.acquire(blocking=False)

    def before_release(self) -> bool:
        """Release the twin before others can acquire the lock; return True if it was held."""
        try:
            self._lock.release()
        except RuntimeError:   # not held: the real release raises as well, unless another process has acquired the lock
            return False
        return True

    def release_failed(self, released: bool, _error: BaseException) -> None:
        """Acquire the twin again: the real lock is still held."""
        if released:
            self._lock.acquire(blocking=False)
