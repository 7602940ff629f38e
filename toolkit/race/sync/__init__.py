"""What orders accesses: threads, locks, events, queues, futures, loops.

The standard library's own code keeps running.  Its methods are wrapped to tell the core what each of them means, and
muted inside, so that a mutex deep in a queue does not order two workers that only happened to pass it one after the
other.  Modules are patched when the program imports them; we import none of them for it.
"""

from __future__ import annotations

import _thread
import os
import sys

from gilscope.toolkit.race.sync.layer import Layer
from gilscope.toolkit.race.sync.patch_on_import import Later
from gilscope.toolkit.race.sync.threads import Threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gilscope.toolkit.race.core import Core, Place
    from gilscope.toolkit.race.sync.asyncio_ import Loops

_live: Layer | None = None             # the one whose patches are in place
_at_fork: set[str] = set()             # what is registered already
_forking: dict[int, int] = {}          # ident of a thread in a fork -> its level before
_installed: Threads | None = None      # the last one: what ran under it can be asked for after its undo


def install(core: Core, *, overlap: float = 0.001) -> Callable[[], None]:
    """Patch locks, threads and all else that orders, in modules imported already and in those still to come.

    Args:
        core: What to tell the order to.  Its locks are tracked from here on.
        overlap: Seconds that the first new threads and the first tasks of workers wait, so that others come to work
            beside them (64 such pauses in a process at most); 0 to change no timing.

    Returns:
        What takes all patches back.  Locks, queues and threads made meanwhile keep working.
    """
    global _installed, _live  # noqa: PLW0603  one program, one layer at a time
    layer = _live = Layer(core, overlap)
    layer.on_undo(core.track_locks())
    threads = _installed = Threads(layer)
    threads.patch_thread(_thread)
    modules = Later(patches(layer, threads))
    modules.start()
    layer.on_undo(modules.stop)
    at_fork("all", before=before_fork, after_in_parent=in_parent, after_in_child=in_child)

    def undo() -> None:
        global _live  # noqa: PLW0603
        _live = None
        layer.undo()

    return undo


def describe(uid: int) -> tuple[str, tuple[Place, ...]]:
    """Return a thread's name, and the stack where it was started, innermost first: () for the first thread."""
    if _installed is None:
        return f"thread {uid}", ()
    return _installed.describe(uid)


def root_of(uid: int) -> int:
    """Return the thread that the first one started and `uid` goes back to; 0: it is the first one itself."""
    return uid if _installed is None else _installed.root(uid)


def patches(layer: Layer, threads: Threads) -> dict[str, Callable[[Any], None]]:
    """Return what to do with each module; the code for it is imported when it is."""

    def threading(module: Any) -> None:
        from gilscope.toolkit.race.sync import primitives
        threads.patch_threading(module)
        primitives.patch(layer, threads, module)
        at_fork("threading", after_in_child=quieten_in_child)

    def queue(module: Any) -> None:
        from gilscope.toolkit.race.sync.queues import Queues
        Queues(layer).patch(module)

    def futures(module: Any) -> None:
        from gilscope.toolkit.race.sync.futures import Futures
        Futures(layer).patch(module)

    def executors(module: Any) -> None:
        from gilscope.toolkit.race.sync.executors import Executors
        Executors(layer, threads).patch(module)

    def signal(module: Any) -> None:
        from gilscope.toolkit.race.sync.signals import Signals
        Signals(layer).patch(module)

    return {"threading": threading, "queue": queue, "concurrent.futures._base": futures,
            "concurrent.futures.thread": executors, "signal": signal, **asyncio_patches(layer),
            **library_patches(layer)}


def asyncio_patches(layer: Layer) -> dict[str, Callable[[Any], None]]:
    """Return what to do with the modules of asyncio."""
    loops: list[Loops] = []      # one for both modules

    def both() -> Loops:
        from gilscope.toolkit.race.sync.asyncio_ import Loops
        if not loops:
            loops.append(Loops(layer))
        return loops[0]

    return {"asyncio.events": lambda module: both().patch_events(module),
            "asyncio.base_events": lambda module: both().patch_base_events(module)}


def library_patches(layer: Layer) -> dict[str, Callable[[Any], None]]:
    """Return what to do with modules that have locks of their own."""

    def logging(module: Any) -> None:
        from gilscope.toolkit.race.sync.stdlib_locks import Logging
        Logging(layer).patch(module)

    def quieten(module: Any) -> None:
        from gilscope.toolkit.race.sync import stdlib_locks
        stdlib_locks.quieten_module(layer, module)

    return {"logging": logging, "_strptime": quieten, "tempfile": quieten}


# -- fork ----------------------------------------------------------------------------------------------------------


def at_fork(name: str, **functions: Callable[[], None]) -> None:
    """Call functions around forks, however often a layer is installed: the interpreter forgets no such call."""
    register = getattr(os, "register_at_fork", None)
    if register is not None and name not in _at_fork:
        _at_fork.add(name)
        register(**functions)


def before_fork() -> None:
    """Mute the thread that forks.

    In the child other modules may come before us, with locks whose order a core would guard by a lock of its own: and
    that one may be held by a thread that is no more.
    """
    if _live is not None:
        _forking[_thread.get_ident()] = _live.core.mute()


def in_parent() -> None:
    """Count as the program again."""
    level = _forking.pop(_thread.get_ident(), None)
    if _live is not None and level is not None:
        _live.core.restore(level)


def in_child() -> None:
    """Go on with one thread."""
    level = _forking.pop(_thread.get_ident(), 0)
    _forking.clear()
    if _live is not None:
        _live.core.after_fork()
        _live.core.restore(level)


def quieten_in_child() -> None:
    """Quieten the lock that the threading module has just made anew; so this is registered after it."""
    if _live is not None and _installed is not None:
        _installed.quieten_threading(sys.modules["threading"])
