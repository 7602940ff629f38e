"""Set up a child process: default signal handling, and a lifeline that ends it when its parent ends.

A parent that is killed with kill -9 cannot clean up, and a child that hangs would stay for ever.  So the child's
standard input is a pipe that is never written to.  When the parent's end closes, the kernel kills the child's process
group, without a waiting thread and without polling.

Run as a program, this file does the same for any command: see `supervised`.
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

OPEN_FILES = 1024  # the usual default; the workers of some cells need more than a hundred
CANNOT_START = 126  # the exit code that shells use
# A supervisor leaves these to its command, which gets them too: they ask a program to end or to report its state.
_HANDED_DOWN = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT)
# The first two cannot be ignored; Python itself ignores the others.
_LEFT_ALONE = frozenset({signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGXFSZ})


def restore_defaults() -> None:
    """Restore the signal handling and the limit of open files that programs started in a terminal have.

    Background jobs of a script, nohup, cron and CI runners start programs with signals ignored or blocked, and children
    inherit that: with SIGINT ignored, Ctrl-C has no effect.  Call it on the main thread, before the measured code.
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


def end_with_parent() -> None:
    """Restore the defaults, and have the kernel kill this process's group when the parent's end of stdin closes.

    Standard input itself is empty afterwards.  Needs Linux's F_SETSIG; on other systems nothing is killed.

    Source: fcntl(2), F_SETOWN and F_SETSIG; pipe(7), O_ASYNC.
    """
    restore_defaults()
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
        return  # the parent lives
    os.killpg(0, signal.SIGKILL)  # the parent ended before F_SETSIG: no signal will come


def prefer_oom_kill() -> None:
    """Have the kernel kill this process and its children first if memory runs out, not the one that has the results."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("500")


def supervise(command: list[str]) -> NoReturn:
    """Run `command` in this process's group and end as it does; end both when the parent's end of stdin closes.

    The command's standard input is empty.  It does not have the lifeline, so it cannot close it.
    """
    end_with_parent()
    prefer_oom_kill()
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
