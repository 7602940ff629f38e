"""How long a test waits for what takes a moment: so long that only a hang lasts longer, on whatever machine."""

import os
import select
import time

PATIENCE = 600.0   # seconds


def wait_until(condition, command=None):
    """Wait until `condition()` is true, by polling, as nobody tells us; `command` is a Popen that must not end before.

    Returns:
        Whether it became true.
    """
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert command is None or command.poll() is None, command.communicate()
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def told(reading, command):
    """Wait for a non-blocking descriptor and return its first bytes; fail if `command`, a Popen, ends before."""
    assert wait_until(lambda: select.select([reading], [], [], 0)[0], command)
    return os.read(reading, 100)
