"""Happens-before edges of asyncio: from call_soon_threadsafe() to the callback that the loop runs.

The other edges follow from threads and futures: run_in_executor, to_thread and run_coroutine_threadsafe are made of
them, and within one loop one thread does everything.  Another thread that calls `call_soon`, as `Future.set_result`
does, changes the list of callbacks that the loop's thread goes through: both count as writes of it.
"""

from __future__ import annotations

import sys
from _thread import get_ident

from gilscope.toolkit.race.site import LOOP_CALLBACKS, SiteInfo, register_sites

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gilscope.toolkit.race.core import Core
    from gilscope.toolkit.race.sync.layer import SyncLayer


_INSIDE = ("asyncio", "gilscope")


class AsyncioPatches:
    """Patches of asyncio.events and asyncio.base_events."""

    def __init__(self, layer: SyncLayer) -> None:
        self._layer = layer
        self._core: Core = layer.core
        self._handed_to: dict[int, bool] = {}      # ids of loops with callbacks of other threads to run
        self._entered: dict[int, bool] = {}        # ids of loops that another thread has called without handing over
        self._sites: dict[tuple[str, int], object] = {}

    def patch_events(self, module: Any) -> None:
        """Patch the handle that runs a callback."""
        layer = self._layer
        layer.wrap(module.Handle, "_run", self.before_callback, layer.remute, layer.remute, muted=False)
        locked = getattr(module, "_ThreadSafeHandle", None)
        if locked is not None:   # 3.15: holds a lock of its own while the callback runs
            for name in ("_run", "cancel", "cancelled"):
                self._layer.wrap(locked, name)

    def patch_base_events(self, module: Any) -> None:
        """Patch the methods that pass callbacks to the loop."""
        wrap, loop = self._layer.wrap, module.BaseEventLoop
        wrap(loop, "call_soon_threadsafe", self.before_call_soon_threadsafe, muted=False)
        for name in ("call_soon", "call_at"):
            wrap(loop, name, self.before_call, muted=False)
        wrap(loop, "run_forever", self.note_callbacks, muted=False)
        wrap(loop, "run_in_executor", self.before_run_in_executor, self.after_run_in_executor,
             self.after_run_in_executor, muted=False)

    def before_run_in_executor(self, loop: Any, *_arguments: Any, **_named: Any) -> None:
        """Mark this thread's loop as being in run_in_executor()."""
        self._layer.in_executor[get_ident()] = loop

    def after_run_in_executor(self, *_arguments: Any, **_named: Any) -> None:
        """Remove the mark."""
        self._layer.in_executor.pop(get_ident(), None)

    def before_call_soon_threadsafe(self, loop: Any, *_arguments: Any, **_named: Any) -> None:
        """Release this thread's clock to the loop, before it can see the handle."""
        self._core.release(loop)
        self._handed_to[id(loop)] = True

    def before_call(self, loop: Any, *_arguments: Any, **_named: Any) -> None:
        """Note a call by another thread than the one that runs the loop."""
        if loop._thread_id not in (None, get_ident()):
            self._entered[id(loop)] = True
            self.note_callbacks(loop)

    def note_callbacks(self, loop: Any, *_arguments: Any, **_named: Any) -> None:
        """Note a write of the loop's callbacks, where code outside of asyncio calls it."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
            frame = frame.f_back
        code, place = frame.f_code, (frame.f_code.co_filename, frame.f_lineno)
        site = self._sites.get(place)
        if site is None:
            info = SiteInfo(code.co_filename, frame.f_lineno, 0, frame.f_lineno, 0, code.co_qualname, "attr_write",
                            "_ready", LOOP_CALLBACKS, 0, (), None)
            site = self._sites.setdefault(place, self._core.site(info, register_sites([info])))
        self._core.ops["attr_write"](loop, site)

    def before_callback(self, handle: Any) -> int:
        """Add the edges from the threads that passed callbacks to the loop, and track the callback."""
        level = self._layer.unmute()
        if self._entered and self._entered.pop(id(handle._loop), False):
            self.note_callbacks(handle._loop)     # before the edges of what the thread has handed over since
        # Before each callback, since the loop takes new handles in each iteration.
        if self._handed_to and self._handed_to.pop(id(handle._loop), False):
            self._core.acquire(handle._loop)
        return level
