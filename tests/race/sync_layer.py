"""Helpers of the tests of the synchronisation layer: a layer over a core, and order that no layer can see."""

import os
import threading
from contextlib import contextmanager

from tests.race.fake_core import FakeCore
from toolkit.race import sync

LIMIT = 20     # seconds; only a hang comes near


class Unseen:
    """An event made of a pipe: orders in time and not by any primitive that a checker knows."""

    def __init__(self):
        self.reader, self.writer = os.pipe()

    def set(self, times=1):
        os.write(self.writer, b"x" * times)

    def wait(self):
        os.read(self.reader, 1)

    def close(self):
        os.close(self.reader)
        os.close(self.writer)


@contextmanager
def installed(core=None, **options):
    core = core or FakeCore()
    undo = sync.install(core, overlap=0, **options)
    try:
        yield core
    finally:
        undo()


def run(*functions):
    """Run each function in a thread; their starts and ends order nothing between them.  Raise what they raise."""
    errors = []

    def guarded(function):
        try:
            function()
        except BaseException as error:  # noqa: BLE001  the caller's to judge
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
        assert not thread.is_alive(), "hangs"
    for error in errors:
        raise error
