"""A user's function whose arm is told by the environment, and which does there what a test asked for.

A file `ARM.CALL` in the folder that is the payload holds what happens in that call; call 0 is the checked pass.
"""

import itertools
import mmap
import os
import threading
import time
from pathlib import Path

_calls = itertools.count()   # of this process
_checks = itertools.count()
_mapped = {}


def work(place):
    """Note the arm, the process and the call; then do what is asked for."""
    arm, call = os.environ.get("ARM", ""), next(_calls)
    with Path(place, "log").open("a") as log:
        log.write(f"{arm} {os.getpid()} {call} {os.getppid()}\n")
    asked = Path(place, f"{arm}.{call}")
    if asked.exists():
        globals()[asked.read_text()]()


def map_file(path):
    """Have all pages of a file in memory, shared with whoever else maps it."""
    if path not in _mapped:
        with Path(path).open("rb") as file:
            _mapped[path] = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        sum(_mapped[path][::4096])


def burn(seconds):
    """Use CPU time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def burn_awaiting(seconds):
    burn(seconds)


def nap(seconds):
    time.sleep(seconds)


def hang_in_the_last_check(_results):
    """Accept the checked pass; of arm b hang when the last results are checked, which is when it is to end."""
    if next(_checks) and os.environ["ARM"] == "b":
        hang_here()


def crash():
    os.abort()


def complain():
    raise ValueError("no")


def hang_here():
    threading.Event().wait()
