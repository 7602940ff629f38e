"""asyncio: what a thread hands to a loop comes before what the loop does with it.

The rest follows from threads and futures: run_in_executor, to_thread and run_coroutine_threadsafe are made of them,
and within one loop one thread does everything.
"""

from __future__ import annotations

from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gilscope.toolkit.race.core import Core
    from gilscope.toolkit.race.sync.layer import Layer


class Loops:
    """Patches asyncio.events and asyncio.base_events."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer
        self._core: Core = layer.core
        self._handed_to: dict[int, bool] = {}      # id(loop) -> somebody handed something over since it last looked

    def patch_events(self, module: Any) -> None:
        """Patch what runs a callback."""
        self._layer.hook(module.Handle, "_run", self.running, self._layer.remute, self._layer.remute, muted=False)
        locked = getattr(module, "_ThreadSafeHandle", None)
        if locked is not None:   # 3.15: it holds a lock of its own while the callback runs
            for name in ("_run", "cancel", "cancelled"):
                self._layer.hook(locked, name)

    def patch_base_events(self, module: Any) -> None:
        """Patch what hands over."""
        hook, loop = self._layer.hook, module.BaseEventLoop
        hook(loop, "call_soon_threadsafe", self.handing, muted=False)
        hook(loop, "run_in_executor", self.submits, self.submitted, self.submitted, muted=False)

    def submits(self, loop: Any, *_arguments: Any, **_named: Any) -> None:
        """Say that the loop is about to get a future of an executor's."""
        self._layer.in_executor[get_ident()] = loop

    def submitted(self, *_arguments: Any, **_named: Any) -> None:
        """Say no longer."""
        self._layer.in_executor.pop(get_ident(), None)

    def handing(self, loop: Any, *_arguments: Any, **_named: Any) -> None:
        """Give the loop the clock of whoever hands over, before it can see the handle."""
        self._core.release(loop)
        self._handed_to[id(loop)] = True

    def running(self, handle: Any) -> int:
        """Order the loop after all who have handed something to it; the callback counts as the program's code."""
        level = self._layer.unmute()
        # Looked at before each callback: the loop takes new handles whenever it comes round.
        if self._handed_to and self._handed_to.pop(id(handle._loop), False):  # noqa: SLF001
            self._core.acquire(handle._loop)  # noqa: SLF001
        return level
