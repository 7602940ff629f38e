"""Why a measured process does not outlive the scheduler, however that ends: the kernel kills it with all it started.

A kill -9 lets nobody clean up, and a measured process that hangs would stay for ever.  Its standard input is a pipe
that nobody writes to.  When the far end goes, the kernel signals the session's process group: no thread waits,
nothing polls.
"""

from __future__ import annotations

import fcntl
import os
import signal


def hold() -> None:
    """Be killed with this process's group when the far end of standard input closes; then have no standard input.

    Where the system cannot do that (it takes Linux's F_SETSIG), only the latter.

    Source: fcntl(2), F_SETOWN and F_SETSIG; pipe(7), O_ASYNC.
    """
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
