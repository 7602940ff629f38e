"""Start a program in the foreground and wait for it, as invisibly as possible.

It has our standard streams and our process group, so the terminal treats it like the program alone.  Signals sent to
us are passed on.  It is started with posix_spawn: importing `subprocess` and `tempfile` would take longer than the
child's start.
"""

from __future__ import annotations

import os

from gilscope.toolkit.errors import ToolkitError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping
else:
    import _signal as signal  # without its enums, which take 5 ms to import

FORWARDED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
INTERRUPTED = -signal.SIGINT
FROM_KERNEL = 0x80     # siginfo's SI_KERNEL: sent by the terminal, so the program got it too


def run_words(command: list[str], environ: Mapping[str, str]) -> int:
    """Run a command line; return its exit code, or minus the signal that ended it."""
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:   # inherited, it would hide the child's end
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    waited = FORWARDED | {signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    try:
        child = os.posix_spawn(command[0], command, environ, setsigmask=before)
    except OSError as error:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise ToolkitError(f"cannot start {command[0]}: {error.strerror}") from None
    try:
        return os.waitstatus_to_exitcode(_wait(child, waited))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait(child: int, signals: set[signal.Signals]) -> int:
    """Pass signals on until `child` ends; return its wait status."""
    while True:
        number, ours_alone = _next_signal(signals)
        if number == signal.SIGCHLD:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return status
        elif ours_alone:
            os.kill(child, number)   # not waited for yet, so its id is still its own


def _next_signal(signals: set[signal.Signals]) -> tuple[int, bool]:
    """Wait for a signal; return it, and True if it was sent to us alone, not to the terminal's foreground group."""
    if hasattr(signal, "sigwaitinfo"):
        came = signal.sigwaitinfo(signals)
        # When a terminal is closed, the kernel sends SIGHUP to the leader of the session alone.
        leads = came.si_signo == signal.SIGHUP and os.getsid(0) == os.getpid()
        return came.si_signo, came.si_code != FROM_KERNEL or leads
    number = signal.sigwait(signals)   # macOS does not tell who sent it
    return number, number not in {signal.SIGINT, signal.SIGQUIT} or not _in_foreground()


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False
