"""What the tests of the C core do to it, one after the other: `python -m tests.race.core.c_core_child NAME ...`.

Needs nothing but the standard library, so that it runs on any build.  A scenario asserts.
"""

# ruff: noqa: B018, BLE001
# What a program does, a scenario does: expressions without effect, errors that are looked at later.
from __future__ import annotations

import _thread
import collections
import contextlib
import functools
import gc
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import warnings
from pathlib import Path

from gilscope.toolkit.race._core.build import load
from gilscope.toolkit.race.core import UNKNOWN_LOCKS
from gilscope.toolkit.race.site import all_sites
from gilscope.toolkit.race.sync import tracemalloc_
from gilscope.toolkit.race.sync.layer import SyncLayer
from gilscope.toolkit.race.terms import Flag
from tests.race.core.cases.world import Pipe, Thing, World

THREADS = 4
FREE = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
STRETCHES = 6    # what leaks, leaks in each of them; what the allocator takes once, it takes in one or two


class Dying:
    """Touches itself when it dies."""

    def __init__(self, world, site):
        self.world, self.site, self.n = world, site, 0

    def __del__(self):
        self.world.attr_update(self, self.site).n += 1


class Slotted:
    __slots__ = ("n",)

    def __init__(self):
        self.n = 0


def together(world, *bodies):
    """Run bodies at the same time in threads that begin now and are joined at the end."""
    clock = world.core.snapshot()
    ends, errors = [], []

    def run(body):
        world.core.thread_begin(None, clock)
        try:
            body()
        except BaseException as error:
            errors.append(error)
        ends.append(world.core.thread_end())

    threads = [threading.Thread(target=run, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for end in ends:
        world.core.join(end)
    if errors:
        raise errors[0]


def against(world, change, look, times):
    """Have two threads change something so many times, and two others look at it until both have."""
    changing = [1, 1]

    def change_all():
        try:
            for _ in range(times):
                change()
        finally:
            changing.pop()

    def look_on():
        while changing:
            look()

    together(world, change_all, change_all, look_on, look_on)


def sites(world):
    """Return one site of each sort that the scenarios use."""
    return {
        "update": world.site("update", "n", Flag.AUGMENTED, op="attr_update"),
        "read": world.site("read", "n"),
        "put": world.site("put", op="item_write"),
        "get": world.site("get", op="item_read"),
        "take": world.site("take", op="item_delete"),
        "append": world.site("append", "append", op="method"),
        "add": world.site("add", "add", op="method"),
        "each": world.site("each", op="iterate"),
    }


def address_reuse(world):
    """Objects of one thread at the addresses of another's dead ones have nothing to do with each other."""
    at = sites(world)

    def make_and_drop():
        for number in range(1500):
            thing, slotted, line, table, several = Thing(), Slotted(), [0, 1], {}, set()
            world.attr_update(thing, at["update"]).n += 1
            world.attr_update(slotted, at["update"]).n += 1
            world.item_write(5, line, 0, at["put"])
            world.item_write(5, table, "k", at["put"])
            world.item_write(5, table, thing, at["put"])
            world.item_write(5, table, (number % 7, "x"), at["put"])
            world.method(several, at["add"]).add(number % 5)
            world.method(line, at["append"]).append(thing)
            assert world.item_read(line, 0, at["get"]) == 5
            for _ in world.iterate(line, at["each"]):
                pass
            made = (item for item in line)
            for _ in world.iterate(made, at["each"]):
                break
            queue = collections.deque()
            world.method(queue, at["append"]).append(number)
            Dying(world, at["update"])
            del thing, slotted, line, table, several, made, queue

    together(world, *[make_and_drop] * THREADS)
    world.clean()


def follow_tracemalloc(world):
    """Return tracemalloc with the core's hooks around its functions, as a session patches it."""
    import tracemalloc

    layer = SyncLayer(world.core, 0)
    tracemalloc_.patch(layer, sys.modules["_tracemalloc"])
    tracemalloc_.patch_public(layer, tracemalloc)
    return tracemalloc


def tracemalloc_hides_no_race(world):
    """tracemalloc takes the place of our hook: races are told before and after, and nothing false.

    Without a GIL, what was known is forgotten, so that a race across a start or a stop may be missed.
    """
    at, tracemalloc = sites(world), follow_tracemalloc(world)
    # Where two threads start it at the same time without a GIL, 3.15 hangs, with or without us.
    one_at_a_time = threading.Lock() if FREE else contextlib.nullcontext()

    def make_and_drop(shared):
        for number in range(500):
            thing, table = Thing(), {}
            world.attr_update(thing, at["update"]).n += 1
            world.item_write(number, table, "k", at["put"])
        world.attr_update(shared, at["update"]).n += 1

    def in_each_thread(shared):
        for _ in range(20):
            with one_at_a_time:
                tracemalloc.start()
            world.attr_update(shared, at["update"]).n += 1
            for _ in range(20):
                world.attr_update(Thing(), at["update"]).n += 1
            with one_at_a_time:
                tracemalloc.stop()

    def within(shared):
        world.attr_update(shared, at["update"]).n += 1
        with one_at_a_time:
            tracemalloc.start()
        make_and_drop(shared)

    def races(body):
        shared = Thing()
        together(world, *[lambda: body(shared)] * THREADS)
        told = {id(owner) for _, owner, *_ in world.conflicts}
        assert told == {id(shared)} or (FREE and not told), (body, world.conflicts)
        world.told()
        world.run(lambda: world.attr_update(shared, at["update"]), lambda: world.attr_update(shared, at["update"]))
        assert ("order", "update WRITE", "update WRITE") in world.pairs()

    tracemalloc.start()
    races(make_and_drop)
    assert tracemalloc.get_traced_memory()[0] > 0
    tracemalloc.stop()
    races(make_and_drop)
    races(within)
    tracemalloc.stop()
    for _ in range(5):
        races(in_each_thread)
    for wrong in ("x", 0, 1 << 40):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            tracemalloc.start(wrong)
    races(make_and_drop)
    assert repr(tracemalloc.start).startswith("<built-in function start")


class Calls:
    """An int argument that calls a function when it is read, or when it dies."""

    def __init__(self, index=None, end=None):
        self.index, self.end = index, end

    def __index__(self):
        self.index()
        return 1

    def __del__(self):
        if self.end is not None:
            self.end()


def tracemalloc_calls_the_program(world):
    """Code that tracemalloc runs may call it again, end objects and fork: no deadlock, and later races are told."""
    at, tracemalloc, things, forked = sites(world), follow_tracemalloc(world), [], []

    def update(thing):
        world.attr_update(thing, at["update"]).n += 1

    def end():
        things.append(Thing())
        update(things[0])
        things[0].last = Calls(end=tracemalloc.stop)     # runs when nothing holds the object any more
        things.clear()

    def start(index):
        update(Thing())
        tracemalloc.start(Calls(index))
        if forked == [0]:
            tracemalloc.stop()
            os._exit(7)

    for index in (tracemalloc.stop, lambda: tracemalloc.start(Calls(tracemalloc.stop)), end,
                  lambda: forked.append(os.fork())):
        tracemalloc.stop()
        world.run(functools.partial(start, index))
        assert tracemalloc.is_tracing()
        shared = Thing()
        world.run(*[functools.partial(update, shared)] * 2)
        assert ("order", "update WRITE", "update WRITE") in world.pairs()
    tracemalloc.stop()
    assert os.waitstatus_to_exitcode(os.waitpid(forked[0], 0)[1]) == 7


ALONE = """
#include <Python.h>
#if PY_VERSION_HEX >= 0x030D0000
static int trace(PyObject *object, PyRefTracerEvent event, void *data) { return 0; }
__attribute__((visibility("default"))) int install(void) { return PyRefTracer_SetTracer(trace, NULL); }
#else
__attribute__((visibility("default"))) int install(void)
{
    PyMemAllocatorEx plain;     /* that of the other domain is alike, and does not call our hook */
    PyMem_GetAllocator(PYMEM_DOMAIN_MEM, &plain);
    PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &plain);
    return 0;
}
#endif
"""


def tool_without_us(world):
    """A tool that replaces our hook costs what was found until then, and that is told; later races are found."""
    at, shared, other = sites(world), Thing(), library(ALONE)
    table = {}

    def work():
        world.attr_update(shared, at["update"]).n += 1
        world.item_write(shared, table, "k", at["put"])

    for times in (1, 2):
        assert other.install() == 0
        world.run(work, work)
        assert [reason for reason, _ in world.gaps] == ["deaths"] * times
        assert world.gaps[-1][1] >= 1
        world.told()
        world.run(work, work)
        assert ("order", "update WRITE", "update WRITE") in world.pairs()
    tracemalloc = follow_tracemalloc(world)     # there may be records of dead objects, which must not be used
    world.run(work, lambda: (tracemalloc.start(), tracemalloc.stop()), work)
    world.run(work, work)
    assert world.pairs()


def deaths_while_the_hook_is_replaced(world):
    """Objects that die without a GIL while the hook is another one are forgotten, with all others, which is told."""
    if not FREE:
        return
    at, other, things = sites(world), library(ALONE), [Thing() for _ in range(500)]

    def update():
        for thing in things:
            world.attr_update(thing, at["update"]).n += 1

    def replace():
        update()
        assert other.install() == 0
        things.clear()
        things.extend(Thing() for _ in range(5000))     # at the addresses of the dead
        world.core.hook_changed()
        yield

    world.run(replace, update)
    assert len(world.told()) == 0
    (gap,) = world.gaps
    assert gap[0] == "deaths"
    assert gap[1] >= 500


def crowd(world):
    """Two hundred threads at a time: a locked counter is clean, an unlocked one is not."""
    at, lock, locked, bare = sites(world), threading.Lock(), Thing(), Thing()
    gate = threading.Barrier(200)

    def work():
        gate.wait()
        for _ in range(20):
            with lock:
                world.attr_update(locked, at["update"]).n += 1

    together(world, *[work] * 200)
    assert locked.n == 4000
    world.clean()
    together(world, *[lambda: world.attr_update(bare, at["update"])] * 200)
    assert ("order", "update WRITE", "update WRITE") in world.pairs()


def more_threads_than_clocks(world):
    """The core has 4,096 clocks: with more threads at a time it stops checking, says so, and the program goes on."""
    at, thing = sites(world), Thing()
    dying = [Thing() for _ in range(1000)]
    size = threading.stack_size(1 << 16)
    # Bare threads and pipes: where each thread waits for another one, a busy machine needs many minutes for thousands.
    (said, say), (gate, opener), ends = os.pipe(), os.pipe(), []

    def work(clock):
        world.core.thread_begin(None, clock)
        os.write(say, b".")
        os.read(gate, 1)
        world.attr_update(thing, at["update"])
        ends.append(world.core.thread_end())
        os.write(say, b".")

    def hear_all():
        heard = 0
        while heard < 4100:
            heard += len(os.read(said, 4100 - heard))

    def crowd_in():
        for each in dying:
            world.attr_update(each, at["update"])
        clock = world.core.snapshot()
        for _ in range(4100):
            _thread.start_new_thread(work, (clock,))
        hear_all()
        os.close(opener)
        hear_all()
        for end in ends:
            world.core.join(end)

    together(world, crowd_in, lambda: None)
    threading.stack_size(size)
    assert world.gaps == [("threads", 4096)]
    # Deaths are seen all the same: else references would be taken to what has the addresses of the dead.
    dying.clear()
    living = [Thing() for _ in range(1000)]
    world.core.hook_changed()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")     # bare threads may not have ended for the system
        child = os.fork()
    if child == 0:
        living.clear()                      # deaths in it, too
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    tracemalloc = follow_tracemalloc(world)
    tracemalloc.start()
    tracemalloc.stop()
    together(world, *[lambda: world.attr_update(thing, at["update"])] * 2)
    world.clean()


def come_and_go(world):
    """Thousands of threads one after the other need no more memory than a few."""
    at, thing = sites(world), Thing()

    def work():
        world.attr_update(thing, at["update"]).n += 1

    def stretch():
        for _ in range(500):
            together(world, work, lambda: None)

    stretch()
    assert_no_growth(stretch, resident, 2 << 20)
    world.clean()


def unjoined(world):
    """Threads that nobody joins: what they did is unordered with the next."""
    at, thing, gone = sites(world), Thing(), Pipe()

    def work():
        clock = world.core.snapshot()

        def run():
            world.core.thread_begin(None, clock)
            world.attr_update(thing, at["update"]).n += 1
            world.core.thread_end()
            gone.tell()

        threading.Thread(target=run, daemon=True).start()
        gone.wait()

    for _ in range(3):
        work()
    assert ("order", "update WRITE", "update WRITE") in world.pairs()


def assert_no_growth(stretch, taken, most):
    """Fail when `taken()` grows by `most` or more in every one of some stretches."""
    grown = []
    for _ in range(STRETCHES):
        before = taken()
        stretch()
        grown.append(taken() - before)
        if grown[-1] < most:
            return
    raise AssertionError(grown)


def resident():
    """Return this process's resident memory in bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def bounded_memory(world):
    """What is remembered of objects and keys goes with them."""
    at, cache = sites(world), {}

    def churn(times):
        for number in range(times):
            thing = Thing()
            world.attr_update(thing, at["update"]).n += 1
            key = f"session {number}"
            world.item_write(thing, cache, key, at["put"])
            world.item_write(thing, cache, thing, at["put"])
            world.item_delete(cache, key, at["take"])
            world.item_delete(cache, thing, at["take"])

    together(world, lambda: churn(20_000), lambda: None)
    assert_no_growth(lambda: together(world, lambda: churn(60_000), lambda: None), resident, 4 << 20)
    world.clean()


def no_leaks(world):
    """Ops keep no references to what they are given."""
    at, thing, line, table, value = sites(world), Thing(), [None] * 3, {}, object()
    count = world.site("count", "n", Flag.AUGMENTED, op="attr_proxy")
    stored = world.site("store", "n", op="attr_store")
    slot = world.site("slot", op="item_proxy")

    def all_ops():
        world.attr_read(thing, at["read"]).n
        world.attr_update(thing, at["update"]).n += 1
        world.attr_proxy(thing, count).n += 1
        world.attr_store(5, thing, stored)
        world.item_write(value, line, 0, at["put"])
        assert world.item_read(line, 0, at["get"]) is value
        world.item_proxy(line, slot)[0] = value
        world.item_write(value, table, "k", at["put"])
        world.item_delete(table, "k", at["take"])
        world.method(line, at["append"]).append(value)
        line.pop()
        for _ in world.iterate(line, at["each"]):
            pass

    def twice():
        all_ops()
        gc.collect()
        everything = (thing, line, table, value)
        before = [sys.getrefcount(each) for each in everything]
        for _ in range(200):
            all_ops()
        gc.collect()
        assert [sys.getrefcount(each) for each in everything] == before

    together(world, twice, lambda: None)

    def many():
        for _ in range(1800):
            all_ops()
        gc.collect()

    together(world, lambda: assert_no_growth(many, sys.getallocatedblocks, 300), lambda: None)


def everything_at_once(world):
    """Threads do everything to the same objects at the same time: all is told of, and nothing breaks."""
    at, thing, lock = sites(world), Thing(), threading.Lock()
    line, table, several, queue = [0] * 8, {}, set(), collections.deque()
    pop = world.site("pop", "pop", op="method")
    left = world.site("popleft", "popleft", op="method")
    check = world.site("check", "", Flag.SPAN_READ, op="contains")
    act = world.site("act", "", Flag.GUARD, partners=("check",), op="item_write")
    gets = world.site("get value", "", Flag.SPAN_READ, op="reads")
    sets = world.site("set value", "", Flag.VALUE, partners=("get value",), op="writes")
    whole = world.site("whole", "list", op="size")
    clear = world.site("clear", "clear", op="method")

    def attempt(operation):
        with contextlib.suppress(IndexError, KeyError, RuntimeError):     # somebody else was there first
            operation()

    def work():
        for number in range(700):
            key = number % 13
            world.attr_update(thing, at["update"]).n += 1
            if not world.contains(key, table, check):
                world.item_write(Thing(), table, key, act)
            attempt(lambda key=key: world.item_delete(table, key, at["take"]))
            world.item_write(number, line, key % 8, at["put"])
            world.method(several, at["add"]).add(key)
            world.method(queue, at["append"]).append(number)
            attempt(lambda: world.method(queue, left).popleft())
            world.method(line, at["append"]).append(key)
            attempt(lambda: world.method(line, pop).pop())
            attempt(lambda: list(world.iterate(table, at["each"])))
            with lock:
                value = world.reads(world.begin(), world.attr_read(thing, at["read"]).n, gets)
            with lock:
                world.writes(world.begin(), setattr(world.attr_update(thing, at["update"]), "n", value), sets)
            list(world.size(line, whole))
            world.item_write(number, table, f"key {number}", at["put"])
            if number % 50 == 0:
                world.method(queue, clear).clear()
                world.method(table, clear).clear()

    together(world, *[work] * THREADS)
    told = world.pairs()
    assert ("order", "update WRITE", "update WRITE") in told
    assert {sort for sort, _, _ in told} == {"order", "span"}


def fork(world):
    """The child of a fork keeps checking: its own threads race, what the parent's did is past."""
    at, thing, stay, ready = sites(world), Thing(), Pipe(), Pipe()
    clock = world.core.snapshot()
    lock = threading.Lock()

    def other():
        world.core.thread_begin(None, clock)
        world.attr_update(thing, at["update"]).n += 1
        for _ in range(500):
            with lock:
                world.attr_update(Thing(), at["update"]).n += 1
        ready.tell()
        stay.wait()
        world.core.thread_end()

    thread = threading.Thread(target=other)
    thread.start()
    ready.wait()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")     # forking with threads: what this is about
        child = os.fork()
    if child == 0:
        in_child(world, at, thing)
    stay.tell()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert world.told() == []


def in_child(world, at, thing):
    try:
        world.core.after_fork()
        world.attr_update(thing, at["update"]).n += 1
        world.clean()
        world.run(*[lambda: world.attr_update(thing, at["update"])] * 2)
        assert ("order", "update WRITE", "update WRITE") in world.pairs()
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def fork_amid_work(world):
    """A fork while other threads are inside ops and locks leaves nothing locked in the child."""
    at, things, lock, over = sites(world), [Thing() for _ in range(50)], threading.Lock(), []

    def busy():
        while not over:
            for thing in things:
                with lock:
                    world.attr_update(thing, at["update"]).n += 1
                world.item_write(1, {}, "k", at["put"])

    # The child has objects of its own, no variable of this function: a lock of the interpreter itself, as a cell has,
    # may be handed to a thread that is stopped for the fork, and stays locked in the child
    # (github.com/python/cpython/issues/144513).
    def forks(update=world.attr_update, site=at["update"]):
        own = [Thing() for _ in range(50)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(15):
                child = os.fork()
                if child == 0:
                    for thing in own:
                        update(thing, site).n += 1
                    os._exit(0)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        over.append(1)

    together(world, busy, busy, forks)


def fork_after_the_end(world):
    """After stop(), a fork while another thread holds a lock of the core leaves none locked in the child."""
    import ctypes

    at = sites(world)
    together(world, *[lambda: world.attr_update(Thing(), at["update"])] * 2)
    world.core.stop()
    core = os.path.realpath(world.core.__spec__.origin)   # as the kernel names what is mapped
    listed = subprocess.run(["nm", core], stdout=subprocess.PIPE, text=True, check=True).stdout
    offsets = {line.split()[2]: int(line.split()[0], 16) for line in listed.splitlines() if len(line.split()) == 3}
    base = min(int(line.partition("-")[0], 16) for line in Path("/proc/self/maps").read_text().splitlines()
               if line.endswith(core))
    registry = base + offsets["registry"]
    spin = ctypes.c_uint8.from_address(base + offsets["origins_spin"])     # used on free-threaded builds
    system = ctypes.CDLL(None)
    assert system.pthread_mutex_lock(ctypes.c_void_p(registry)) == 0       # as by a thread that ends
    spin.value = 1                                                         # as by one that drops a lock
    child = os.fork()
    if child == 0:
        signal.alarm(600)       # its default action ends a child that hangs
        threading.Lock().acquire()
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()
        os._exit(0)
    spin.value = 0
    assert system.pthread_mutex_unlock(ctypes.c_void_p(registry)) == 0
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def daemons_at_exit(world):
    """Daemon threads go on with ops and locks while the interpreter ends."""
    at, thing, lock, running = sites(world), Thing(), threading.Lock(), Pipe()
    clock = world.core.snapshot()
    table, line = {}, [0] * 10

    def forever():
        world.core.thread_begin(None, clock)
        running.tell()
        number = 0
        while True:
            number += 1
            with lock:
                world.attr_update(thing, at["update"]).n += 1
            world.item_write(number, table, number % 100, at["put"])
            world.item_write(number, line, number % 10, at["put"])
            for _ in world.iterate(line, at["each"]):
                Thing()

    for _ in range(THREADS):
        threading.Thread(target=forever, daemon=True).start()
    for _ in range(THREADS):
        running.wait()


def subinterpreters(world):
    """Another interpreter has its own objects and locks, and may not load a second core."""
    interpreters = __import__("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
    at, thing = sites(world), Thing()
    code = f"""if True:
        import sys, threading
        sys.path.insert(0, {str(Path.cwd())!r})
        from gilscope.toolkit.race._core.build import load
        from gilscope.toolkit.builds.extension import ExtensionUnavailableError
        try:
            load()
        except ExtensionUnavailableError as error:
            assert "interpreter" in str(error), error
        else:
            raise AssertionError("a second core")
        lock = threading.Lock()
        def work():
            for number in range(3000):
                with lock:
                    table = {{number: [number]}}
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """

    def inside():
        # 3.12 runs a thread's clean-up of a daemonless interpreter with warnings of its own about `isolated`.
        here = interpreters.create()
        failed = (interpreters.run_string if sys.version_info < (3, 13) else interpreters.exec)(here, code)
        assert failed is None, failed
        interpreters.destroy(here)

    def outside():
        for _ in range(3000):
            world.attr_update(Thing(), at["update"]).n += 1
            world.attr_update(thing, at["update"]).n += 1

    together(world, inside, outside)
    world.clean()


def deep_nesting_dies(world):
    """Deeply nested lists and dicts die without exhausting the C stack."""
    at = sites(world)

    def nest():
        for make in (lambda inner: [inner], lambda inner: {"k": inner}):
            outer = None
            for _ in range(200_000):
                outer = make(outer)
            del outer
        world.item_write(1, [0], 0, at["put"])

    together(world, nest, lambda: None)


def deep_recursion(world):
    """Accesses far down a recursion have callers, too."""
    at, thing, lock = sites(world), Thing(), threading.Lock()

    def down(depth):
        if depth:
            down(depth - 1)
        with lock:
            world.attr_update(thing, at["update"]).n += 1

    together(world, lambda: down(300), lambda: down(200))
    world.clean()


def pieces_of_locks(world):
    """What a library may do to a lock works as without us."""
    import pickle
    import weakref

    for lock in (threading.Lock(), threading.RLock()):
        assert lock.acquire(timeout=0.01)
        assert repr(lock).startswith("<locked")
        lock.release()
        assert weakref.ref(lock)() is lock
        for bad in (lambda lock=lock: pickle.dumps(lock), lambda lock=lock: lock.release(),
                    lambda lock=lock: lock.acquire(1, 2, 3), lambda lock=lock: lock.acquire(False, 1)):  # noqa: FBT003
            try:
                bad()
            except (TypeError, RuntimeError, ValueError):
                continue
            raise AssertionError(bad)
        with lock:
            assert len(world.core.locks_held()) == 1
        assert world.core.locks_held() == ()
    assert type(threading.Lock()).__name__ == "lock"
    assert type(threading.Lock().acquire).__name__ == "builtin_function_or_method"


def locks_that_cannot_be_tracked(world):
    """If a method of a lock type cannot be replaced, all of them stay what they were."""
    import re

    class OddLock:
        acquire = type(re.compile("")).match        # its calling convention is that of no lock

    world.core.track_locks()()
    original, found = _thread.RLock, dict(_thread.LockType.__dict__)
    _thread.RLock = OddLock
    refused = ""
    try:
        world.core.track_locks()
    except RuntimeError as error:
        refused = str(error)
    _thread.RLock = original
    assert "cannot track OddLock.acquire" in refused
    assert dict(_thread.LockType.__dict__) == found
    world.core.track_locks()
    lock = threading.Lock()
    with lock:
        assert len(world.core.locks_held()) == 1


CHAIN = """
#include <Python.h>
static PyRefTracer before;
static void *data_before;
static long events;
static int trace(PyObject *object, PyRefTracerEvent event, void *data)
{
    events++;
    return before != NULL ? before(object, event, data_before) : 0;
}
__attribute__((visibility("default"))) int install(void)
{
    before = PyRefTracer_GetTracer(&data_before);
    return PyRefTracer_SetTracer(trace, NULL);
}
__attribute__((visibility("default"))) long seen(void) { return events; }
"""


def tracer_that_calls_ours(world):
    """Another tracer replaces ours and calls it: nothing is lost, and there is no loop."""
    if sys.version_info < (3, 13):
        return
    other = library(CHAIN)
    assert other.install() == 0
    thing, at = Thing(), sites(world)

    def work():
        world.attr_update(thing, at["update"]).n += 1
        Thing()

    for _ in range(2):
        seen = other.seen()
        world.run(work, work)
        assert other.seen() > seen
        assert ("order", "update WRITE", "update WRITE") in world.pairs()
    tracemalloc = follow_tracemalloc(world)
    tracemalloc.start()             # over the other, which is lost, under ours
    assert other.install() == 0     # over ours
    world.run(work, work)
    assert ("order", "update WRITE", "update WRITE") in world.pairs()
    tracemalloc.stop()
    world.run(work, work)
    assert ("order", "update WRITE", "update WRITE") in world.pairs()


def class_attributes_replaced(world):
    """Threads load attributes of a class and of an instance while others replace them and its dict."""
    class Shared(Thing):
        table = ()

    here = world.site("here", "table")
    thing = Shared()

    def replace():
        for number in range(100):
            Shared.table = [number]
            if sys.version_info >= (3, 14):    # CPython 3.13t itself breaks: "unlocking mutex that is not locked"
                thing.__dict__ = {"other": number}

    def load_both():
        world.attr_read(Shared, here)
        world.attr_read(thing, here)

    against(world, replace, load_both, times=8000)
    world.told()


def bases_replaced(world):
    """Threads load attributes of a class while others give it other bases."""
    here = world.site("here", "table")
    ones, others = (tuple(type(f"Base{number}", (Thing,), {"table": ()}) for number in range(first, first + 40))
                    for first in (0, 40))

    class Shared(*ones):
        pass

    def replace():
        Shared.__bases__ = others
        Shared.__bases__ = ones

    def load_both():
        world.attr_read(Shared, here)
        world.attr_read(Shared(), here)

    against(world, replace, load_both, times=1000)
    world.told()


def origins_of_dying_locks(world):
    """A report asks where locks were acquired first while other threads make locks and drop them."""
    uids = [0] * 64

    def come_and_go():
        for place in range(64):
            lock = threading.Lock()
            with lock:
                uids[place] = world.core.locks_held()[0]

    def ask():
        for uid in tuple(uids):
            stack, lock = world.core.lock_origin(uid)
            assert isinstance(stack, tuple)
            assert lock is None or type(lock) is type(threading.Lock()), lock

    against(world, come_and_go, ask, times=4000)


def site_without_a_name(world):
    """A site whose key is not a str is refused with an exception, not without one."""
    world.site("read", "n")
    number = world.sites["read"]
    refused = ""
    try:
        world.core.site(all_sites[number]._replace(key=3), number)
    except TypeError as error:
        refused = str(error)
    assert "must be a str" in refused


def getter_that_raises(world):
    """A call that raises ends its recording, so that the thread's accesses are cached again."""
    gets = world.site("gets", op="reads")

    def fail():
        raise LookupError

    def attempt():
        with contextlib.suppress(LookupError):
            world.reads(world.begin(), fail(), gets)
        depths.append(world.begin().depth)

    depths = []
    world.run(attempt, attempt)
    assert depths == [1, 1], depths


def more_sets_of_locks_than_fit(world):
    """Fill the table of lock sets: a set that does not fit counts as unknown, not as no locks."""
    add = world.site("add", "n", Flag.AUGMENTED, op="attr_update")
    store = world.site("store", "n", op="attr_write")
    thing, other, late = Thing(), Thing(), []

    def fill():
        for _ in range(2**18 + 10):
            with world.lock():
                world.attr_write(other, store).n = 1
        late.append(world.lock())
        yield
        count()

    def count():
        with late[0]:
            world.attr_update(thing, add).n += 1

    def forget():
        world.attr_write(thing, store).n = 0

    world.run(fill, count, order="aab")
    world.clean()
    world.run(count, forget)
    assert {first[4] for _, _, _, _, first, _, _ in world.conflicts} == {(UNKNOWN_LOCKS,)}, world.conflicts


class Colliding:
    """A key of the program with the hash of another; counts how often it is compared, and is equal to itself only."""

    compared = 0

    def __init__(self, other):
        self.hash = hash(other)

    def __hash__(self):
        return self.hash

    def __eq__(self, other):
        Colliding.compared += 1
        return self is other


def keys_that_collide(world):
    """A stored key with the hash of the one that is looked up is compared by the program's operations alone."""
    store, get, put, take = (world.site(name, "n", op=op) for name, op in (
        ("store", "attr_write"), ("get", "item_read"), ("put", "item_write"), ("take", "item_delete")))
    load = world.site("load", "n")
    calls = {name: world.site(name, name, op="method") for name in ("add", "discard", "pop", "setdefault", "update")}

    class Default(dict):
        def __missing__(self, key):
            return key

    def call(container, name, *args):
        getattr(world.method(container, calls[name]), name)(*args)

    def thing():
        found = Thing()
        found.__dict__ = {Colliding("n"): 1, "n": 0}
        return found

    def class_of_thing():
        with warnings.catch_warnings(action="ignore"):      # 3.12: a key that is not a str
            return type("Odd", (Thing,), {Colliding("n"): 1, "n": 2})

    def module():
        found = type(sys)("odd")
        found.__dict__[Colliding("n")] = found.n = 1
        return found

    operations = {      # tracked, what it does, and the object that it works on
        "put": (lambda o: world.item_write(1, o, 7, put), lambda o: o.__setitem__(7, 1), lambda: {Colliding(7): 1}),
        "put a str": (lambda o: world.item_write(1, o, "n", put), lambda o: o.__setitem__("n", 1),
                      lambda: {Colliding("n"): 1}),
        "take": (lambda o: world.item_delete(o, 7, take), lambda o: o.__delitem__(7), lambda: {Colliding(7): 1, 7: 1}),
        "missing": (lambda o: world.item_read(o, 7, get), lambda o: o[7], lambda: Default({Colliding(7): 1})),
        "setdefault": (lambda o: call(o, "setdefault", 7), lambda o: o.setdefault(7), lambda: {Colliding(7): 1}),
        "pop": (lambda o: call(o, "pop", 7, 1), lambda o: o.pop(7, 1), lambda: {Colliding(7): 1}),
        "count": (lambda o: call(o, "update", [7]), lambda o: o.update([7]),
                  lambda: collections.Counter({Colliding(7): 1})),
        "add": (lambda o: call(o, "add", 7), lambda o: o.add(7), lambda: {Colliding(7)}),
        "discard": (lambda o: call(o, "discard", 7), lambda o: o.discard(7), lambda: {Colliding(7), 7}),
        "attribute of a class": (lambda o: world.attr_read(o, load).n, lambda o: o.n, class_of_thing),
        "global of a module": (lambda o: world.attr_read(o, load).n, lambda o: o.n, module),
        "attribute": (lambda o: setattr(world.attr_write(o, store), "n", 1), lambda o: setattr(o, "n", 1), thing),
    }

    def count(act, work_on):
        Colliding.compared = 0
        act(work_on)
        return Colliding.compared

    def work():
        for name, (tracked, plain, make) in operations.items():
            assert count(tracked, make()) == count(plain, make()) > 0, name

    world.run(work, work)
    world.clean()


def keys_are_compared_as_by_the_program(world):
    """Two threads that store under keys of one type race if the keys are equal, and only then."""
    put = world.site("put", op="item_write")
    nan = float("nan")
    keys = ((1, "a"), (1.0, "a"), (True, "a"), (2, "a"), (1, "b"), (1, b"a"), (1,), (1, "a", None), (1 + 0j, "a"),
            (1 + 1j, "a"), ((1, 2), 3), ((1, 2.0), 3), ((1, 3), 3), (1 << 70, 1), (1 << 70, 2), (1 << 71, 1), (nan,),
            (-0.0, 1), (0, 1), b"ab", b"ac", 2.5, 3.5, 1 << 70, 1 << 71, 1j, 2j)
    for one in keys:
        for other in keys:
            table, again = {}, eval(repr(other), {"nan": nan})
            world.run(*[functools.partial(world.item_write, 1, table, key, put) for key in (one, again)])
            found = {key for _, _, part, key, *_ in world.conflicts if part == "item"}
            assert bool(found) == (one == other), (one, other, found)
            world.told()


def insertions_are_told_from_replacements(world):
    """In tables of every size, after removals, and for each kind of key: an insertion disturbs an iteration."""
    put, each = world.site("put", op="item_write"), world.site("each", op="iterate")
    add = world.site("add", "add", op="method")
    kinds = (int, str, float, lambda number: (number, "x"), lambda number: str(number).encode(),
             lambda number: -number << 40, lambda _: Thing())
    for kind in kinds:
        for size in (1, 5, 40, 300, 70_000 if kind in {int, str} else 3000):
            keys = [kind(number) for number in range(size)]
            gone = keys[1::3]
            new = gone[-1] if gone else kind(size)
            for name, make, store in (("put", dict.fromkeys, lambda o, key: world.item_write(1, o, key, put)),
                                      ("add", set, lambda o, key: world.method(o, add).add(key))):
                table = make(keys)
                for key in gone:
                    table.pop(key) if make is not set else table.remove(key)

                def replace(table=table, store=store, keys=keys):
                    for key in [key for key in keys[-60:] if key in table]:
                        store(table, key)

                def insert(table=table, store=store, key=new):
                    store(table, key)

                def look(table=table):
                    for _ in world.iterate(table, each):
                        break

                world.run(look, replace)
                world.clean()
                world.run(look, insert)
                assert world.pairs() == {("order", "each ITERATE", f"{name} GROW")}, (kind, size, make)


def library(source):
    """Compile C source; return its functions."""
    import ctypes

    from gilscope.toolkit.builds.compile_library import compile_library
    from gilscope.toolkit.builds.extension import compiler

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "tool.c").write_text(source)
        compile_library(compiler(), [str(Path(folder, "tool.c"))], Path(folder, "tool.so"))
        return ctypes.PyDLL(str(Path(folder, "tool.so")))


def run(core, name):
    """Run a scenario, and leave the process without any of its hooks."""
    print(f"{name}: begins", flush=True)
    undo = core.track_locks()
    world = World(core)
    world.gaps = []
    core.report_gaps(lambda *gap: world.gaps.append(gap))
    SCENARIOS[name](world)
    assert bool(world.gaps) == (name in WITH_GAPS), world.gaps
    print(f"{name}: done", flush=True)
    if name == "daemons_at_exit":
        time.sleep(0)      # let one of them run before the end
        return
    undo()
    lock = threading.Lock()
    with lock:
        assert lock.locked()
    core.stop()


def main(names):
    core = load()
    for name in names:
        run(core, name)


SCENARIOS = {function.__name__: function for function in (
    address_reuse, tracemalloc_hides_no_race, tracemalloc_calls_the_program, tool_without_us,
    deaths_while_the_hook_is_replaced, crowd, more_threads_than_clocks, come_and_go, unjoined, bounded_memory, no_leaks,
    everything_at_once, fork, fork_amid_work, daemons_at_exit, subinterpreters, deep_nesting_dies, deep_recursion,
    pieces_of_locks, fork_after_the_end, locks_that_cannot_be_tracked, tracer_that_calls_ours,
    class_attributes_replaced, origins_of_dying_locks, bases_replaced, site_without_a_name, keys_that_collide,
    getter_that_raises, more_sets_of_locks_than_fit, keys_are_compared_as_by_the_program,
    insertions_are_told_from_replacements)}
WITH_GAPS = {"tool_without_us", "more_threads_than_clocks"}
if FREE:
    WITH_GAPS |= {"tracemalloc_hides_no_race", "tracemalloc_calls_the_program", "tracer_that_calls_ours",
                  "deaths_while_the_hook_is_replaced"}
# They leave the process as it was, and ask nothing of it as a whole: no exit, fork, hook or measure of its memory.
SHARING = ("address_reuse", "everything_at_once", "deep_nesting_dies", "deep_recursion", "pieces_of_locks",
           "class_attributes_replaced", "bases_replaced", "origins_of_dying_locks", "site_without_a_name",
           "keys_that_collide", "keys_are_compared_as_by_the_program", "insertions_are_told_from_replacements",
           "unjoined", "getter_that_raises")

if __name__ == "__main__":
    main(sys.argv[1:])
