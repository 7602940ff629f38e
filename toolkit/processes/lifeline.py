"""How each process of ours begins: it resets its signals, and arranges to end when we do.

After a kill -9 nothing cleans up, and a process that hangs would stay for ever.  So its standard input is a pipe that
nobody writes to; when the far end closes, the kernel signals the process group: no thread waits, nothing polls.

Run as a program, this file does that for a command that knows nothing of it: see `supervised`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

OPEN_FILES = 1024  # what systems allow by default; the workers of some cells need more than a hundred
# The first two cannot be ignored; the others Python ignores everywhere.
CANNOT_START = 126  # as shells say it
# What asks a program to end or to tell where it stands is for the command, not for who waits for it.
_HANDED_DOWN = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT)
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
    """Return the number of files that a measured process may open where the system allows `most`; -1: any number."""
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


def volunteer() -> None:
    """If memory runs out, have the kernel kill this process and its children before the one that holds the results."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("500")


def supervise(command: list[str]) -> NoReturn:
    """Run `command` in this process's group and end as it does; when the far end of standard input closes, both end.

    The command has an empty standard input.  The line is not its own: it can close all that it has and not get away.
    """
    hold()
    volunteer()
    for number in _HANDED_DOWN:
        signal.signal(number, lambda *_: None)  # not ignored, which the command would inherit
    try:
        process = os.posix_spawnp(command[0], command, os.environ, setsigdef=(signal.SIGPIPE, signal.SIGXFSZ))
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error.strerror}\n".encode())
        os._exit(CANNOT_START)
    _, status = os.waitpid(process, 0)
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        os._exit(code)
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command's own core file is the one to look at
    if -code not in {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    os._exit(128 - code)  # a signal that ends nobody here


if __name__ == "__main__":
    supervise(sys.argv[1:])
