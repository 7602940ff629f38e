"""Helpers of the tests of the synchronisation layer: a layer over a core, and order that no layer can see."""

import os
import threading
from contextlib import contextmanager

import pytest

from gilscope.toolkit.race import sync
from gilscope.toolkit.race.site import SiteInfo, register_sites
from gilscope.toolkit.race.terms import Flag
from tests.patience import PATIENCE
from tests.race.fakes.core import FakeCore

_read, _write = os.read, os.write      # before they are patched


class Unseen:
    """An event made of a pipe: orders in time and not by any primitive that a checker knows."""

    def __init__(self):
        self.reader, self.writer = os.pipe()

    def set(self, times=1):
        _write(self.writer, b"x" * times)

    def wait(self):
        _read(self.reader, 1)

    def close(self):
        os.close(self.reader)
        os.close(self.writer)


class Box:
    """What `Probe.write` writes to."""


class Probe:
    """A real core with the `write` and `raced` of the fake one: an attribute of a box for each name."""

    def __init__(self, core):
        self.core, self.boxes, self.raced = core, {}, set()
        info = SiteInfo(__file__, 1, 0, 1, 1, "f", "attr_write", "value", "box.value", Flag.NONE, (), None)
        self.here = core.site(info, register_sites([info]))
        reads = info._replace(op="attr_read")
        self.reads = core.site(reads, register_sites([reads]))
        core.start(self.on_conflict)

    def __getattr__(self, name):
        return getattr(self.core, name)

    def on_conflict(self, conflict):
        self.raced |= {name for name, box in self.boxes.items() if box is conflict[1]}
        return False

    def read(self, owner):
        self.core.ops["attr_read"](owner, self.reads)

    def write(self, name):
        self.core.ops["attr_write"](self.boxes.setdefault(name, Box()), self.here).value = 1


def native_core():
    try:
        from gilscope.toolkit.builds.extension import ExtensionUnavailableError
        from gilscope.toolkit.race._core.build import load
    except ImportError:
        pytest.skip("no C core here")
    try:
        return Probe(load())
    except ExtensionUnavailableError as error:
        pytest.skip(str(error))


CORES = {"fake": FakeCore, "native": native_core}


@contextmanager
def installed(core=None, **options):
    core = core or FakeCore()
    undo = sync.install(core, overlap=0, **options)
    try:
        yield core
    finally:
        undo()
        if hasattr(core, "stop"):
            core.stop()


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
        thread.join(PATIENCE)
        assert not thread.is_alive(), "hangs"
    for error in errors:
        raise error


def level_in(core):
    """Return how deep inside primitives the calling thread is: 0 for code of the program."""
    level = core.mute()
    core.restore(level)
    return level
