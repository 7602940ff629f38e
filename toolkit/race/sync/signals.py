"""Signal handlers: code of the program that may interrupt the main thread inside a muted primitive."""

from __future__ import annotations

from gilscope.toolkit.race.sync.layer import imitate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gilscope.toolkit.race.sync.layer import SyncLayer


class SignalPatches:
    """Patches of the signal module: handlers run unmuted, and getsignal() returns the handler that the program set."""

    def __init__(self, layer: SyncLayer) -> None:
        self._layer = layer
        self._wrapper: type[Any] = type(layer.core.wrap(imitate))

    def patch(self, module: Any) -> None:
        """Patch signal() and getsignal()."""
        set_handler, get_handler = module.signal, module.getsignal

        def signal(signalnum: Any, handler: Any) -> Any:
            ours = handler
            # The interpreter's own handler raises KeyboardInterrupt; programs compare handlers with it.
            if callable(handler) and handler is not module.default_int_handler and not isinstance(handler, int):
                ours = self._unmuted(handler)
            return self._theirs(set_handler(signalnum, ours))

        def getsignal(signalnum: Any) -> Any:
            return self._theirs(get_handler(signalnum))

        self._layer.on_undo(lambda: self._give_back(module.NSIG, set_handler, get_handler))
        self._layer.replace(module, "signal", imitate(set_handler, signal))
        self._layer.replace(module, "getsignal", imitate(get_handler, getsignal))

    def _unmuted(self, handler: Any) -> Any:
        layer = self._layer
        return layer.core.wrap(handler, layer.unmute, layer.remute, layer.remute, muted=False, handles_signal=True)

    def _theirs(self, handler: Any) -> Any:
        # A table of our handlers would be wrong between the call that installs one and the entry: signals come there.
        return handler.__wrapped__ if type(handler) is self._wrapper else handler

    def _give_back(self, end: int, set_handler: Callable[..., Any], get_handler: Callable[..., Any]) -> None:
        for signalnum in range(1, end):
            ours = get_handler(signalnum)
            theirs = self._theirs(ours)
            if theirs is not ours:
                try:
                    set_handler(signalnum, theirs)
                except ValueError:   # not in the main thread: our handler keeps calling the program's
                    return
