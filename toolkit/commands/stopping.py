"""What ends a command from outside: Ctrl-C, SIGTERM (a CI's cancel button), SIGHUP (its terminal has been closed).

A program that `gilscope race` runs waits for what is imported here.
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
    import _signal as signal  # without its enums: they take 5 ms

SIGNALLED = 128     # plus the signal's number, as shells say it
NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LAST = 3            # Ctrl-C or SIGTERM that often, and nothing is waited for any more; SIGHUP comes twice by itself
_AGAIN_SECONDS = 0.01


class StoppedError(KeyboardInterrupt):
    """A signal has come: what is going on is given up, what was measured is kept."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class Stopping:
    """Turns the first signal into a `StoppedError` and holds later ones back: cleaning up is not to be cut short.

    Attributes:
        came: The signal that has come; 0: none.
        over: The command is done and signals stop nothing any more.
    """

    def __init__(self) -> None:
        self.came = 0
        self.over = False
        self._asked = 0
        self._earlier: dict[int, Any] = {}
        self._hook: Callable[[sys.UnraisableHookArgs], object] = sys.unraisablehook

    def begin(self) -> None:
        """Handle the signals that are not ignored; who ignores one ignores it for the programs, too, that we run."""
        sys.unraisablehook = self._on_unraisable
        for number in NUMBERS:
            if (earlier := signal.getsignal(number)) != signal.SIG_IGN:
                self._earlier[number] = earlier
                signal.signal(number, self._on_signal)

    def end(self) -> None:
        """Put the earlier handlers back."""
        sys.unraisablehook = self._hook
        for number, earlier in self._earlier.items():
            signal.signal(number, earlier)

    def _on_signal(self, number: int, _frame: object) -> None:
        self._asked += number != signal.SIGHUP
        if self._asked >= LAST:
            os._exit(SIGNALLED + number)   # our children end with us, and the next start sweeps what stays
        if self.came or self.over:
            return
        self.came = number
        raise StoppedError(number)

    def _on_unraisable(self, said: sys.UnraisableHookArgs) -> None:
        # Raised where nothing can be raised, as in the finalizer of an object: told again, a moment later.
        if isinstance(said.exc_value, StoppedError):
            import _thread  # noqa: PLC0415  rarely needed

            _thread.start_new_thread(self._again, (said.exc_value.number,))
        else:
            self._hook(said)

    def _again(self, number: int) -> None:
        import time  # noqa: PLC0415  likewise

        time.sleep(_AGAIN_SECONDS)
        self.came = 0
        os.kill(os.getpid(), number)
