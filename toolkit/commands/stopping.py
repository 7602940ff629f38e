"""Signals that stop a command: Ctrl-C, SIGTERM (a CI's cancel button), SIGHUP (a closed terminal).

A program that `gilscope race` runs waits for the imports of this module.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any
else:
    import _signal as signal  # without its enums, which take 5 ms to import

SIGNALLED = 128     # plus the signal's number, as shells report it
NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LAST = 3            # after that many Ctrl-C or SIGTERM, exit at once; a closed terminal sends SIGHUP twice
_AGAIN_SECONDS = 0.01


class StoppedError(KeyboardInterrupt):
    """A signal stops the command; values that were measured are kept."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class SignalStop:
    """Turns the first signal into a `StoppedError` and ignores later ones, so that they do not interrupt the cleanup.

    Attributes:
        came: The signal that stopped the command, or 0.
        over: True once the command is done and signals no longer stop anything.
    """

    def __init__(self) -> None:
        self.came = 0
        self.over = False
        self._asked = 0
        self._earlier: dict[int, Any] = {}
        self._hook: Callable[[sys.UnraisableHookArgs], object] = sys.unraisablehook

    def begin(self) -> None:
        """Handle the signals that are not ignored; an ignored one stays ignored in the programs that we run."""
        sys.unraisablehook = self._on_unraisable
        for number in NUMBERS:
            if (earlier := signal.getsignal(number)) != signal.SIG_IGN:
                self._earlier[number] = earlier
                signal.signal(number, self._on_signal)

    def end(self) -> None:
        """Restore the earlier handlers."""
        sys.unraisablehook = self._hook
        for number, earlier in self._earlier.items():
            signal.signal(number, earlier)

    def _on_signal(self, number: int, _frame: object) -> None:
        self._asked += number != signal.SIGHUP
        if self._asked >= LAST:
            os._exit(SIGNALLED + number)   # our children end with us, and the next start removes leftover files
        if self.came or self.over:
            return
        self.came = number
        raise StoppedError(number)

    def _on_unraisable(self, unraisable: sys.UnraisableHookArgs) -> None:
        # It was raised where Python cannot propagate it, as in an object's finalizer: repeat it a moment later.
        if isinstance(unraisable.exc_value, StoppedError):
            import _thread  # noqa: PLC0415  rarely needed

            _thread.start_new_thread(self._again, (unraisable.exc_value.number,))
        else:
            self._hook(unraisable)

    def _again(self, number: int) -> None:
        import time  # noqa: PLC0415  rarely needed

        time.sleep(_AGAIN_SECONDS)
        self.came = 0
        os.kill(os.getpid(), number)
