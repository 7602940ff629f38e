"""Object headers are read where a build shows by its behaviour that it counts as expected, and nowhere else."""

import os
import sys

import pytest

from gilscope.toolkit.scale.child import layout
from gilscope.toolkit.scale.child.headers import HEADERS
from gilscope.toolkit.scale.child.layout import IMMORTAL, LayoutRefusedError, verify
from tests.conformance.builds import run_child

PROGRAM = """
import os, sys, threading, time
from gilscope.toolkit.scale.child.headers import HEADERS
from gilscope.toolkit.scale.child.layout import lock_offsets, verify
headers = HEADERS.load()
verify(headers)
lock, again = threading.Lock(), threading.RLock()
offsets = lock_offsets(headers)
for each in (lock, again):
    place = offsets[type(each)] - 32
    with each:
        assert headers.body(each)[place]
    assert not headers.body(each)[place]
marker = object()
objects = [marker, lock]
held, done = threading.Event(), threading.Event()
def hold():
    with lock:
        held.set()
        done.wait()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
passes, pause = 0, 0.001
while not passes:      # the sampler's thread needs a core meanwhile
    headers.sample_start(objects, [0, offsets[type(lock)]], 100)
    time.sleep(pause)
    passes, spent, rows = headers.sample_stop()
    pause *= 2
print([row[0] for row in rows if row[2]], [row[0] for row in rows if row[3]])
waiting = threading.Thread(target=lambda: lock.acquire() and lock.release())
waiting.start()
while sys.version_info >= (3, 14) and not any(row[3] for row in rows):      # until it is parked
    headers.sample_start(objects, [0, offsets[type(lock)]], 100)
    time.sleep(pause)
    _, _, rows = headers.sample_stop()
done.set()
waiting.join()
thread.join()
import mmap, struct
gate = mmap.mmap(-1, mmap.PAGESIZE)
with lock:
    headers.sample_start(objects, [0, offsets[type(lock)]], 100, gate, 1)
    time.sleep(0.05)     # a look before the thread is there would see the lock
gate[:4] = struct.pack("i", 1)
_, _, rows = headers.sample_stop()
print([row[0] for row in rows if row[2]])
os._exit(0)
"""


class FakeCore:
    """An extension whose headers count in the usual way, but for what a test changes."""

    def __init__(self, **fields):
        self.fields = layout.FIELDS | fields

    def header_layout(self):
        return self.fields

    def header(self, item):
        return 1, 0, 5, 0


@pytest.mark.builds("free")
def test_free_threaded_builds_behave_as_expected_and_a_held_lock_is_seen(python):
    done = run_child(python, "-c", PROGRAM)
    assert (done.returncode, done.stdout) == (0, "[1] []\n[]\n"), done.stderr


def test_build_with_a_gil_is_refused():
    with pytest.raises(LayoutRefusedError, match="free-threaded builds alone"):
        verify(object())


def test_other_offsets_are_refused():
    with pytest.raises(LayoutRefusedError, match="other fields"):
        verify(FakeCore(ob_mutex=9))


def test_count_that_does_not_move_is_refused():
    with pytest.raises(LayoutRefusedError, match="does not raise the local count"):
        verify(FakeCore())


def test_object_that_ought_to_be_immortal_and_is_not_is_refused():
    class Counting(FakeCore):
        def header(self, item):
            local = sys.getrefcount(item) if item is not None else IMMORTAL - 1
            return 1, 0, local, 0

    with pytest.raises(LayoutRefusedError, match="None is not immortal"):
        verify(Counting())


@pytest.mark.builds("free")
def test_immortal_object_survives_its_last_reference(python):
    program = """
import os
from gilscope.toolkit.scale.child.headers import HEADERS
headers = HEADERS.load()
class Plain: pass
each = Plain()
count = headers.header(each)[2]
assert headers.immortalize([each]) == 1
assert headers.immortalize([each]) == 0
address = id(each)
del each
import _ctypes
print(type(_ctypes.PyObj_FromPtr(address)).__name__)
os._exit(0)
"""
    done = run_child(python, "-c", program)
    assert done.stdout == "Plain\n" or "_ctypes" in done.stderr, done.stderr


@pytest.mark.quiet   # times of the hardware
@pytest.mark.builds("free")
def test_independent_multiplications_are_quicker_than_a_chain(python):
    """Each core that overlaps multiplications does several at once; a hyperthread beside it takes half of them."""
    program = "from gilscope.toolkit.scale.child.headers import HEADERS; print(HEADERS.load().multiplier_load())"
    done = run_child(python, "-c", program)
    assert 0.05 < float(done.stdout) < 0.9, done.stderr


@pytest.mark.builds("free")
def test_no_call_after_the_warm_up_takes_no_system_time(python):
    """A thread that has spent some on something else has one call, which begins in the warm-up and outlasts all."""
    program = """
import os, resource, threading
from gilscope.toolkit.scale.child.headers import HEADERS
headers = HEADERS.load()
def system_time():
    return resource.getrusage(resource.RUSAGE_THREAD).ru_stime
def spend(until):
    while system_time() < until:
        os.stat("/")
def work():
    spend(0.05)
    gate = bytearray(16)
    print(*headers.call_for(lambda until: spend(until), 0.1, gate, 1, 1_000_000, 1_000_000, 20_000_000_000))
thread = threading.Thread(target=work)
thread.start()
thread.join()
os._exit(0)
"""
    done = run_child(python, "-u", "-c", program)
    assert done.stdout.startswith("[] 0 0 0."), done.stderr


def test_extension_of_a_build_with_a_gil_has_none_of_it():
    if getattr(sys, "_is_gil_enabled", lambda: True)() and os.environ.get("PYTHON_GIL") is None:
        assert not hasattr(HEADERS.load(), "immortalize")
