"""What orders accesses: threads, locks, events, queues, futures, loops.

The standard library's own code keeps running.  Its methods are wrapped to tell the core what each of them means, and
muted inside, so that a mutex deep in a queue does not order two workers that only happened to pass it one after the
other.  Modules are patched when the program imports them; we import none of them for it.
"""

from __future__ import annotations

import _thread

from toolkit.race.sync.later import Later
from toolkit.race.sync.layer import Layer
from toolkit.race.sync.threads import Threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from toolkit.race.core import Core, Place

_installed: Threads | None = None      # the last one: what ran under it can be asked for after its undo


def install(core: Core, *, overlap: float = 0.001) -> Callable[[], None]:
    """Patch locks, threads and all else that orders, in modules imported already and in those still to come.

    Args:
        core: What to tell the order to.  Its locks are tracked from here on.
        overlap: Seconds that the first new threads and the first tasks of pool workers wait, so that others come to
            work beside them (64 such pauses in a process at most); 0 to change no timing.

    Returns:
        What takes all patches back.  Locks, queues and threads made meanwhile keep working.
    """
    global _installed  # noqa: PLW0603  one program, one layer at a time
    layer = Layer(core, overlap)
    layer.on_undo(core.track_locks())
    threads = _installed = Threads(layer)
    threads.patch_thread(_thread)
    modules = Later(patches(layer, threads))
    modules.start()
    layer.on_undo(modules.stop)
    return layer.undo


def describe(uid: int) -> tuple[str, tuple[Place, ...]]:
    """Return a thread's name, and the stack where it was started, innermost first: () for the first thread."""
    if _installed is None:
        return f"thread {uid}", ()
    return _installed.describe(uid)


def patches(layer: Layer, threads: Threads) -> dict[str, Callable[[Any], None]]:
    """Return what to do with each module; the code for it is imported when it is."""

    def threading(module: Any) -> None:
        from toolkit.race.sync import primitives
        threads.patch_threading(module)
        primitives.patch(layer, threads, module)

    def queue(module: Any) -> None:
        from toolkit.race.sync.queues import Queues
        Queues(layer).patch(module)

    return {"threading": threading, "queue": queue}
