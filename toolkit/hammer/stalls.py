"""Stop a thread at an arbitrary instruction of its C code for a moment, as the kernel may at any time.

Races have windows of nanoseconds, and on a busy machine two threads seldom run at the same instant.  So a timer sends
one thread after the other a signal whose handler, CPython's own in C, writes a byte to a full pipe: the thread waits
there, in the middle of whatever it was doing, until another thread has made some calls and empties the pipe.  No C of
ours is needed.  System calls are restarted after the signal, so nothing but time passes for the stopped code.

The parent empties the pipe, too, again and again: the stopped thread may have what all others wait for.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    import random

TIMER = signal.ITIMER_REAL
NUMBER = signal.SIGALRM
PAGE = 4096                  # bytes of the smallest pipe
INTERVAL = 0.0003            # seconds until the next signal, on average
MOST_RELEASES = 60           # after which the next signal is sent in any case: the parent may have read the last one
FIRST_DELAY = 0.00006        # seconds at most, in which a first call is stopped once
FEWEST_CALLS, MOST_CALLS = 10, 150   # of a thread until it lets a stopped one go on


class StallPipe:
    """The pipe at which threads of a fork wait; made by the parent, which lets all go on from time to time."""

    def __init__(self) -> None:
        """Make the pipe."""
        self._reader, self.writer = os.pipe()
        os.set_blocking(self._reader, False)
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            fcntl.fcntl(self.writer, fcntl.F_SETPIPE_SZ, PAGE)

    def release(self) -> bool:
        """Let every stopped thread go on; return True if one had been stopped and has gone on since the last time."""
        stopped = False
        with contextlib.suppress(BlockingIOError):
            while found := os.read(self._reader, 2 * PAGE):
                stopped = stopped or NUMBER in found
        return stopped

    def close(self) -> None:
        """Close both ends."""
        os.close(self._reader)
        os.close(self.writer)


class Staller:
    """Stops threads of this process.  Made and closed by the main thread, which is never stopped."""

    def __init__(self, pipe: StallPipe, draw: random.Random) -> None:
        """Take the timer, its signal, and the process's one wakeup descriptor."""
        self._pipe = pipe
        self._draw = draw
        self._releases = 0
        os.set_blocking(pipe.writer, False)       # `set_wakeup_fd` demands it
        signal.pthread_sigmask(signal.SIG_BLOCK, {NUMBER})   # in the main thread
        signal.signal(NUMBER, lambda *_: None)
        signal.siginterrupt(NUMBER, False)  # noqa: FBT003  its own form
        signal.set_wakeup_fd(pipe.writer, warn_on_full_buffer=False)
        # Another opening of the same pipe, whose writes do not wait although those of the handler do.
        self._filler = os.open(f"/proc/self/fd/{pipe.writer}", os.O_WRONLY | os.O_NONBLOCK)
        os.set_blocking(pipe.writer, True)
        self._fill()

    def begin(self) -> None:
        """Stop a thread soon, and the next one once that one has gone on.

        A timer that repeats would stop all of them on a busy machine, where it runs and they do not.
        """
        self._releases = 0
        signal.setitimer(TIMER, INTERVAL * (0.5 + self._draw.random()))

    def once(self) -> None:
        """Stop one thread once, in some microseconds."""
        self._releases = -10**9
        signal.setitimer(TIMER, max(1e-6, self._draw.random() * FIRST_DELAY))

    def enter(self) -> None:
        """Let this thread be stopped."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {NUMBER})

    def leave(self) -> None:
        """Have this thread not be stopped any more, and others go on."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {NUMBER})
        self._pipe.release()
        self._fill()

    def release(self) -> None:
        """Let every stopped thread go on; those that come later are stopped again."""
        stopped = self._pipe.release()
        self._fill()
        self._releases += 1
        if stopped or self._releases > MOST_RELEASES:
            self.begin()

    def calls(self) -> int:
        """Return after how many calls a thread lets a stopped one go on."""
        return self._draw.randint(FEWEST_CALLS, MOST_CALLS)

    def close(self) -> None:
        """Stop no more threads."""
        signal.setitimer(TIMER, 0)
        self._pipe.release()

    def _fill(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.write(self._filler, bytes(2 * PAGE)):   # more than a page: may be written in part
                pass
