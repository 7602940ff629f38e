"""Happens-before edges of the standard library: threads, locks, events, queues, futures, event loops.

The standard library's own code keeps running.  Its methods are wrapped to report their edges to the core, and muted
inside, so that the mutex of a queue does not order two workers that only happened to acquire it one after the other.
Modules are patched when the program imports them; we import none of them for it.
"""

from __future__ import annotations

import _thread
import os
import sys

from gilscope.toolkit.race.sync.layer import SyncLayer
from gilscope.toolkit.race.sync.patch_on_import import ImportPatcher
from gilscope.toolkit.race.sync.threads import ThreadTracker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gilscope.toolkit.race.core import Core, Place
    from gilscope.toolkit.race.sync.asyncio_ import AsyncioPatches
    from gilscope.toolkit.race.sync.layer import IsChecked

_live: SyncLayer | None = None          # the layer whose patches are in place
_at_fork: set[str] = set()              # names of registered fork callbacks
_forking: dict[int, int] = {}           # ident of a thread that is forking -> its muting level before
_installed: ThreadTracker | None = None    # the latest tracker: reports need its threads after the undo as well


def install(core: Core, *, overlap: float = 0.001,
            is_checked: IsChecked = lambda _name, _path: False) -> Callable[[], None]:
    """Patch locks, threads and other primitives in modules imported already and in future imports.

    Args:
        core: The core that receives the edges.  It tracks locks from now on.
        overlap: Seconds that the first new threads and the first tasks of workers pause, so that others run at the same
            time (at most 64 pauses per process); 0 to leave the timing unchanged.
        is_checked: Returns True for name and path of a module whose own accesses are checked: it needs all its locks.

    Returns:
        A function that undoes all patches.  Locks, queues and threads created in the meantime keep working.
    """
    global _installed, _live  # noqa: PLW0603  one program, one layer at a time
    layer = _live = SyncLayer(core, overlap, is_checked)
    layer.on_undo(core.track_locks())
    threads = _installed = ThreadTracker(layer)
    threads.patch_thread(_thread)
    modules = ImportPatcher(patches(layer, threads))
    modules.start()
    layer.on_undo(modules.stop)
    call_at_fork("all", before=before_fork, after_in_parent=after_fork_in_parent, after_in_child=after_fork_in_child)

    def undo() -> None:
        global _live  # noqa: PLW0603
        _live = None
        layer.undo()

    return undo


def describe(uid: int) -> tuple[str, tuple[Place, ...]]:
    """Return a thread's name, and the stack of its start, innermost first: () for the main thread."""
    if _installed is None:
        return f"thread {uid}", ()
    return _installed.describe(uid)


def threads_seen() -> int:
    """Return the number of threads that have run."""
    return 1 if _installed is None else _installed.seen


def started_process() -> bool:
    """Return True if this process has started another program, as subprocess does."""
    return _live is not None and _live.started_process


def patches(layer: SyncLayer, threads: ThreadTracker) -> dict[str, Callable[[Any], None]]:
    """Return the patch of each module; the code of a patch is imported with the module."""

    def threading(module: Any) -> None:
        from gilscope.toolkit.race.sync import primitives
        threads.patch_threading(module)
        primitives.patch(layer, threads, module)
        call_at_fork("threading", after_in_child=untrack_in_child)

    def queue(module: Any) -> None:
        from gilscope.toolkit.race.sync.queues import QueuePatches
        QueuePatches(layer).patch(module)

    def futures(module: Any) -> None:
        from gilscope.toolkit.race.sync.futures import FuturePatches
        FuturePatches(layer).patch(module)

    def executors(module: Any) -> None:
        from gilscope.toolkit.race.sync.executors import ExecutorPatches
        ExecutorPatches(layer, threads).patch(module)

    def tracemalloc(module: Any) -> None:
        from gilscope.toolkit.race.sync import tracemalloc_
        tracemalloc_.patch(layer, module)

    def public_tracemalloc(module: Any) -> None:
        from gilscope.toolkit.race.sync import tracemalloc_
        tracemalloc_.patch_public(layer, module)

    def signal(module: Any) -> None:
        from gilscope.toolkit.race.sync.signals import SignalPatches
        SignalPatches(layer).patch(module)

    return {"threading": threading, "queue": queue, "concurrent.futures._base": futures,
            "concurrent.futures.thread": executors, "signal": signal,
            "_tracemalloc": tracemalloc, "tracemalloc": public_tracemalloc, **asyncio_patches(layer),
            **descriptor_patches(layer), **library_patches(layer)}


def asyncio_patches(layer: SyncLayer) -> dict[str, Callable[[Any], None]]:
    """Return the patches of asyncio's modules."""
    loops: list[AsyncioPatches] = []      # one object, shared by both modules

    def both() -> AsyncioPatches:
        from gilscope.toolkit.race.sync.asyncio_ import AsyncioPatches
        if not loops:
            loops.append(AsyncioPatches(layer))
        return loops[0]

    return {"asyncio.events": lambda module: both().patch_events(module),
            "asyncio.base_events": lambda module: both().patch_base_events(module)}


def descriptor_patches(layer: SyncLayer) -> dict[str, Callable[[Any], None]]:
    """Return the patches of modules that pass bytes on through the operating system, or lock files."""
    from gilscope.toolkit.race.sync.descriptors import DescriptorPatches
    patches = DescriptorPatches(layer)
    return {"os": patches.patch_os, "_socket": patches.patch_socket, "socket": patches.patch_pairs,
            "fcntl": patches.patch_fcntl, "subprocess": patches.patch_subprocess}


def library_patches(layer: SyncLayer) -> dict[str, Callable[[Any], None]]:
    """Return the patches of modules with locks of their own."""

    def logging(module: Any) -> None:
        from gilscope.toolkit.race.sync.stdlib_locks import LoggingPatches
        LoggingPatches(layer).patch(module)

    def untrack_lock(module: Any) -> None:
        from gilscope.toolkit.race.sync import stdlib_locks
        stdlib_locks.untrack_module_locks(layer, module)

    def synchronize(module: Any) -> None:
        from gilscope.toolkit.race.sync.process_locks import ProcessLockPatches
        ProcessLockPatches(layer).patch_synchronize(module)

    def queues(module: Any) -> None:
        from gilscope.toolkit.race.sync.process_locks import ProcessLockPatches
        ProcessLockPatches(layer).patch_queues(module)

    def functools(module: Any) -> None:
        from gilscope.toolkit.race.sync.cached_properties import CachedPropertyPatches
        CachedPropertyPatches(layer).patch(module)

    def weakref(module: Any) -> None:
        from gilscope.toolkit.race.sync.weak_registries import WeakRegistryPatches
        WeakRegistryPatches(layer).patch(module)

    return {"logging": logging, "functools": functools, "weakref": weakref, "_strptime": untrack_lock,
            "tempfile": untrack_lock, "multiprocessing.synchronize": synchronize, "multiprocessing.queues": queues}


# -- fork ----------------------------------------------------------------------------------------------------------


def call_at_fork(name: str, **functions: Callable[[], None]) -> None:
    """Register fork callbacks once, however often a layer is installed: they cannot be unregistered."""
    register = getattr(os, "register_at_fork", None)
    if register is not None and name not in _at_fork:
        _at_fork.add(name)
        register(**functions)


def before_fork() -> None:
    """Mute the thread that forks.

    In the child, callbacks of other modules may run before ours and use locks, for which a core would acquire a lock of
    its own: a thread that no longer exists may hold that one.
    """
    if _live is not None:
        _forking[_thread.get_ident()] = _live.core.mute()


def after_fork_in_parent() -> None:
    """Track the forking thread again."""
    level = _forking.pop(_thread.get_ident(), None)
    if _live is not None and level is not None:
        _live.core.restore(level)


def after_fork_in_child() -> None:
    """Continue with one thread."""
    level = _forking.pop(_thread.get_ident(), 0)
    _forking.clear()
    if _live is not None:
        _live.core.after_fork()
        _live.core.restore(level)


def untrack_in_child() -> None:
    """Untrack the lock that the threading module has just replaced; this is registered after threading's callback."""
    if _live is not None and _installed is not None:
        _installed.untrack_threading_locks(sys.modules["threading"])
