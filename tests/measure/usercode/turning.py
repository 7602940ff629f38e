"""A user's function whose arm is told by the environment, and which does there what a test asked for.

A file `ARM.CALL` in the folder that is the payload holds what happens in that call; call 0 is the checked pass.
"""

import os
import signal
import threading
import time
from pathlib import Path

_calls = 0


def work(place):
    """Note the arm, the process and the call; then do what is asked for."""
    global _calls  # of this process
    arm, call = os.environ.get("ARM", ""), _calls
    _calls += 1
    with Path(place, "log").open("a") as log:
        log.write(f"{arm} {os.getpid()} {call}\n")
    asked = Path(place, f"{arm}.{call}")
    if asked.exists():
        globals()[asked.read_text()]()


def burn(seconds):
    """Use CPU time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def burn_awaiting(seconds):
    burn(seconds)


def nap(seconds):
    time.sleep(seconds)


def crash():
    os.abort()


def complain():
    raise ValueError("no")


def hang_here():
    threading.Event().wait()


def stop():
    """Go on only when somebody else lets it."""
    os.kill(os.getpid(), signal.SIGSTOP)
