"""Cases of the core itself: threads, clocks, conflicts, what is told and when."""

# ruff: noqa: B018
# What a program does, a case does, and pytest is not there everywhere.
from __future__ import annotations

import _thread
import os
import threading
import warnings

from gilscope.toolkit.race.terms import AccessKind, Flag
from tests.race.core.cases.world import Actor, Pipe, Thing


def case_store_and_load(w):
    read, write, thing = w.site("read", "n"), w.site("write", "n", op="attr_write"), Thing()

    def load():
        w.attr_read(thing, read).n

    def store():
        w.attr_write(thing, write).n = 1

    w.run(load, store)
    assert w.told() == [("order", "attr", "n", "read READ", "write WRITE")]
    w.run(store, load)
    assert w.told() == [("order", "attr", "n", "write WRITE", "read READ")]
    w.run(store, store)
    assert w.told() == [("order", "attr", "n", "write WRITE", "write WRITE")]
    w.run(load, load)
    w.clean()


def case_threads_one_after_the_other(w):
    update, thing = w.site("update", "n", Flag.AUGMENTED, op="attr_update"), Thing()

    def add():
        w.attr_update(thing, update).n += 1

    add()
    w.run(add)
    w.run(add)
    add()
    w.clean()
    assert thing.n == 4


def case_augmented_assignment(w):
    update, thing = w.site("update", "n", Flag.AUGMENTED, op="attr_update"), Thing()

    def add():
        w.attr_update(thing, update).n += 1

    w.run(add, add)
    assert w.pairs() == {("order", "update WRITE", "update READ"), ("order", "update WRITE", "update WRITE")}
    lock = w.lock()

    def locked():
        with lock:
            add()

    w.run(locked, locked)
    w.clean()


def case_conflict_names_both_sides(w):
    write, thing, lock = w.site("write", "n", op="attr_write"), Thing(), w.lock()

    def store():
        w.attr_write(thing, write).n = 1

    def locked():
        with lock:
            store()

    actors = w.run(locked, store)
    (conflict,) = w.conflicts
    sort, owner, part, key, first, second, value = conflict
    assert (sort, part, key) == ("order", "attr", "n")
    assert owner is thing
    assert repr(value) == "NO_VALUE"
    assert (first[0], second[0]) == (actors["a"].uid, actors["b"].uid)
    assert first[1] == second[1] == w.sites["write"]
    assert first[2] == second[2] == AccessKind.WRITE
    (uid,) = first[4]
    assert second[4] == ()
    assert first[5] == second[5] == -1
    stack, alive = w.core.lock_origin(uid)
    assert alive is lock
    assert stack[0][0] == __file__
    assert stack[0][2].endswith("locked")
    inner = w.core.stack(first[3])
    assert inner[0][2].endswith("locked")       # the caller of the function that the access stands in
    assert inner[0][1] == locked.__code__.co_firstlineno + 2
    outer = w.core.stack(second[3])
    assert not any(place[2].endswith("locked") for place in outer)


def case_innermost_three_locks_are_told(w):
    write, thing, locks = w.site("write", "n", op="attr_write"), Thing(), [w.lock() for _ in range(4)]

    def store():
        w.attr_write(thing, write).n = 1

    def nested():
        with locks[0], locks[1], locks[2], locks[3]:
            nested.held = w.core.locks_held()
            store()

    w.run(nested, store)
    ((_, _, _, _, first, _, _),) = w.conflicts
    assert first[4] == nested.held[:3]
    assert [w.core.lock_origin(uid)[1] for uid in nested.held] == locks[::-1]
    assert w.core.locks_held() == ()


def case_a_told_pair_is_counted_only(w):
    write, read, thing = w.site("write", "n", op="attr_write"), w.site("read", "n"), Thing()

    def store():
        w.attr_write(thing, write).n = 1

    def load():
        w.attr_read(thing, read).n

    before = w.core.counts()
    w.final = True
    w.run(store, load)
    w.run(store, load)
    assert len(w.conflicts) == 1
    pair = w.sites["write"], w.sites["read"]
    assert w.core.counts()[pair] - before.get(pair, 0) == 2
    w.final = False
    w.run(store, store)
    assert len(w.conflicts) == 2


def case_handler_may_fail(w):
    write, thing = w.site("write", "n", op="attr_write"), Thing()
    calls = []

    def fail(conflict):
        calls.append(conflict)
        raise ValueError("of the handler")

    def store():
        w.attr_write(thing, write).n = 1

    w.core.start(fail)
    w.run(store, store)
    assert len(calls) == 1


def case_handler_comes_before_the_store_and_without_a_lock(w):
    write, thing, other = w.site("write", "n", op="attr_write"), Thing(), Thing()
    seen = []

    def look(_):
        seen.append(thing.n)
        w.attr_write(other, write).n = 5     # the core must be enterable, and notes nothing of this
        return False

    def one():
        w.attr_write(thing, write).n = 1

    def two():
        w.attr_write(thing, write).n = 2

    w.core.start(look)
    w.run(one, two)
    assert seen == [1]
    assert (thing.n, other.n) == (2, 5)


def case_stop_ends_notes(w):
    write, thing = w.site("write", "n", op="attr_write"), Thing()

    def store():
        w.attr_write(thing, write).n = 1

    w.core.stop()
    w.run(store, store)
    w.clean()
    w.core.start(w.hear)
    w.run(store, store)
    assert len(w.told()) == 1


def case_busy_is_not_noted(w):
    write, thing = w.site("write", "n", op="attr_write"), Thing()

    def store():
        w.attr_write(thing, write).n = 1

    def quietly():
        with w.core.busy():
            store()

    w.run(store, quietly)
    w.clean()
    w.run(quietly, store)
    w.clean()


def case_object_and_its_successor_at_one_address(w):
    write = w.site("write", "n", op="attr_write")
    addresses = {}

    def store(name):
        def body():
            for _ in range(3000):
                thing = Thing()
                w.attr_write(thing, write).n = 1
                if addresses.setdefault(id(thing), name) != name:
                    break         # the other thread wrote to an object that was here
        return body

    w.run(store("first"), store("second"))
    w.clean()


def case_slotted_objects_and_lists_come_and_go(w):
    class Slotted:
        __slots__ = ("n",)

    write, item = w.site("write", "n", op="attr_write"), w.site("item", op="item_write")

    def store():
        for _ in range(400):
            w.attr_write(Slotted(), write).n = 1
            w.item_write(1, [0], 0, item)

    w.run(store, store)
    w.clean()


def case_unknown_thread_begins_after_everything(w):
    write, thing, done = w.site("write", "n", op="attr_write"), Thing(), Pipe()

    def store():
        w.attr_write(thing, write).n = 1

    def stranger():
        store()
        done.tell()

    def starter():
        store()
        _thread.start_new_thread(stranger, ())
        done.wait()

    def late():
        store()

    w.run(starter)
    w.clean()
    store()           # nothing says that the stranger is done
    assert len(w.told()) == 1
    w.run(late)
    done.close()


def case_unknown_thread_of_a_single_one(w):
    """Nobody announced a start: from the thread's first operation on nothing is single any more."""
    write, thing, steps = w.site("write", "n", op="attr_write"), Thing(), [Pipe(), Pipe(), Pipe()]

    def stranger():
        w.attr_write(thing, write).n = 1
        steps[0].tell()
        steps[1].wait()
        w.attr_write(thing, write).n = 1
        steps[2].tell()

    _thread.start_new_thread(stranger, ())
    steps[0].wait()
    w.attr_write(thing, write).n = 2
    assert len(w.told()) == 1
    steps[1].tell()
    steps[2].wait()
    assert len(w.told()) <= 1    # it is the same pair again: a core may keep the first access of a moment alone
    for pipe in steps:
        pipe.close()


def case_many_threads_one_after_the_other(w):
    write, thing = w.site("write", "n", op="attr_write"), Thing()

    def store():
        w.attr_write(thing, write).n = 1

    for _ in range(60):
        w.run(store)
    w.clean()
    w.run(*[store] * 12)
    assert len(w.told()) == 11


def case_slots_are_reused_without_false_order(w):
    """The heir of a slot must not make a stranger's accesses look past."""
    write, thing = w.site("write", "n", op="attr_write"), Thing()

    def store():
        w.attr_write(thing, write).n = 1

    def starter():
        # Ends a child, starts another in its slot, and stays unordered with the other thread.
        for _ in range(3):
            clock = w.core.snapshot()
            actor = Actor(w, store, clock)
            actor.step()
            actor.close()
            w.core.join(actor.end)
            yield

    def other():
        yield
        store()
        yield

    w.run(starter, other, order="ababa")
    assert w.pairs() == {("order", "write WRITE", "write WRITE")}


def case_snapshot_and_join(w):
    write, thing = w.site("write", "n", op="attr_write"), Thing()
    clocks = []

    def first():
        w.attr_write(thing, write).n = 1
        clocks.append(w.core.snapshot())
        yield
        w.attr_write(thing, write).n = 3

    def second():
        w.core.join(clocks[0])
        w.attr_write(thing, write).n = 2
        yield

    w.run(first, second, order="ab")
    assert w.told() == [("order", "attr", "n", "write WRITE", "write WRITE")]      # 3 against 2, not 2 against 1
    assert thing.n == 3


def case_release_and_acquire_of_an_object(w):
    write, thing, event = w.site("write", "n", op="attr_write"), Thing(), Thing()
    other = Thing()

    def first():
        w.attr_write(thing, write).n = 1
        w.core.release(event)

    def too():
        w.attr_write(other, write).n = 1
        w.core.release(event)

    def last():
        w.core.acquire(event)
        w.attr_write(thing, write).n = 2
        w.attr_write(other, write).n = 2

    w.run(first, too, last)
    w.clean()
    w.run(last, first)
    assert len(w.told()) == 1


def case_release_is_forgotten_with_its_object(w):
    write, thing = w.site("write", "n", op="attr_write"), Thing()

    def first():
        w.attr_write(thing, write).n = 1
        w.core.release(Thing())

    def last():
        for _ in range(20):
            w.core.acquire(Thing())
        w.attr_write(thing, write).n = 2

    w.run(first, last)
    assert len(w.told()) == 1


def case_logical_threads_of_one_worker(w):
    write, thing = w.site("write", "n", op="attr_write"), Thing()

    def worker():
        clock = w.core.snapshot()
        for _ in range(2):
            outer = w.core.thread_uid()
            assert w.core.thread_begin(None, clock) != outer
            w.attr_write(thing, write).n = 1
            w.core.thread_end()
            assert w.core.thread_uid() == outer

    w.run(worker)
    assert w.told() == [("order", "attr", "n", "write WRITE", "write WRITE")]


def case_thread_that_is_announced_late(w):
    """What a thread does before it says that it begins, with locks or through wrapped functions, orders nothing."""
    write, thing, lock = w.site("write", "n", op="attr_write"), Thing(), w.lock()
    touch, local = w.site("touch", "seen"), threading.local()
    turns, done = [Pipe(), Pipe()], [Pipe(), Pipe()]
    clock = w.core.snapshot()

    def late(number):
        turns[number].wait()
        with lock:
            w.core.wrap(lambda: None)()
        w.core.thread_begin(None, clock)
        getattr(w.attr_read(local, touch), "seen", None)
        w.attr_write(thing, write).n = 1
        w.core.thread_end()
        done[number].tell()

    for number in range(2):
        _thread.start_new_thread(late, (number,))
        turns[number].tell()
        done[number].wait()
    assert w.told() == [("order", "attr", "n", "write WRITE", "write WRITE")]
    for pipe in (*turns, *done):
        pipe.close()


def case_fork(w):
    write, thing = w.site("write", "n", op="attr_write"), Thing()
    answer, stay = Pipe(), Pipe()

    def store():
        w.attr_write(thing, write).n = 1

    def forker():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            status = b"x"
            try:
                w.core.after_fork()
                w.conflicts.clear()
                store()                  # the other thread is no more
                alone = not w.conflicts
                w.run(store, store)      # but new ones are watched
                status = b"y" if alone and len(w.conflicts) == 1 else b"n"
            finally:
                answer.tell(status)
                os._exit(0)
        forker.status = answer.wait()
        os.waitpid(child, 0)

    def other():
        store()
        yield
        stay.wait()

    def ender():
        stay.tell()

    w.run(other, forker, ender, order="abc")
    assert forker.status == b"y"
    for pipe in (answer, stay):
        pipe.close()


def case_no_two_objects_have_the_same_number(w):
    numbers = [w.core.object_number(Thing()) for _ in range(100)]     # each dies at once, mostly at the same address
    kept = Thing()
    numbers += [w.core.object_number(kept), w.core.object_number(Thing())]
    assert w.core.object_number(kept) == numbers[-2]
    assert len({*numbers}) == 102
