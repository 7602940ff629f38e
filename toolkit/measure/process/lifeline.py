"""What every measured process begins with: the signals it should have, and its end, which comes with the scheduler's.

A kill -9 lets nobody clean up, and a measured process that hangs would stay for ever.  Its standard input is a pipe
that nobody writes to.  When the far end goes, the kernel signals the session's process group: no thread waits,
nothing polls.
"""

from __future__ import annotations

import fcntl
import os
import signal

OPEN_FILES = 1024  # what systems allow by default; the workers of some cells need more than a hundred
# The first two cannot be ignored; the others Python ignores everywhere.
_LEFT_ALONE = frozenset({signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGXFSZ})


def settle() -> None:
    """Have the signals and the number of open files that a program started in a terminal has.

    Background jobs of a script, nohup, cron and CI runners start programs with signals ignored or blocked, and children
    inherit that: to an ignored SIGINT no Ctrl-C would ever come.  Called by the main thread, before the measured code.
    """
    for number in signal.valid_signals():
        if number not in _LEFT_ALONE and signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if os.sysconf("SC_OPEN_MAX") < OPEN_FILES:
        import resource  # only then: what a measured process imports, it measures

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_files(most), most))


def open_files(most: int) -> int:
    """Return how many files a measured process may have open where the system allows `most`; -1 is any number."""
    return OPEN_FILES if most < 0 else min(most, OPEN_FILES)


def hold() -> None:
    """Settle; then be killed with this process's group when the far end of standard input closes.

    Standard input itself is empty afterwards.  The killing takes Linux's F_SETSIG; elsewhere there is none.

    Source: fcntl(2), F_SETOWN and F_SETSIG; pipe(7), O_ASYNC.
    """
    settle()
    line = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    if not hasattr(fcntl, "F_SETSIG"):
        return
    fcntl.fcntl(line, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(line, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(line, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    try:
        os.read(line, 1)
    except BlockingIOError:
        return  # the scheduler lives
    os.killpg(0, signal.SIGKILL)  # it ended while this process began: no signal will come any more
