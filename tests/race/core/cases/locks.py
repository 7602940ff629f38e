"""Cases of locks: the order they make, who holds them, and that they are what they replace."""

# ruff: noqa: PLW2101
# What a program does, a case does, and pytest is not there everywhere.
from __future__ import annotations

import _thread
import contextlib
import threading

from gilscope.toolkit.race.terms import Flag
from tests.race.core.cases.world import Pipe, Thing


def adding(w, lock, thing=None):
    """Return a body that increments an attribute under a lock."""
    update, thing = w.site("update", "n", Flag.AUGMENTED, op="attr_update"), thing or Thing()

    def add():
        with lock:
            w.attr_update(thing, update).n += 1

    return add


def case_lock_orders(w):
    for make in (threading.Lock, threading.RLock, _thread.allocate_lock, threading.Condition, _thread.RLock):
        add = adding(w, make())
        w.run(add, add)
        w.clean()


def case_two_locks_do_not(w):
    update, thing = w.site("update", "n", Flag.AUGMENTED, op="attr_update"), Thing()

    def add():
        with threading.Lock():
            w.attr_update(thing, update).n += 1

    w.run(add, add)
    assert len(w.told()) == 2


def case_acquire_and_release_by_hand(w):
    update, thing, lock = w.site("update", "n", Flag.AUGMENTED, op="attr_update"), Thing(), threading.Lock()

    def add():
        assert lock.acquire(timeout=5)
        try:
            w.attr_update(thing, update).n += 1
        finally:
            lock.release()

    def try_in_vain():
        assert lock.acquire(blocking=False)
        try:
            failed = []
            done = Pipe()

            def rival():
                failed.append(lock.acquire(blocking=False))
                failed.append(lock.acquire(timeout=0.001))
                done.tell()

            _thread.start_new_thread(rival, ())
            done.wait()
            done.close()
            assert failed == [False, False]
        finally:
            lock.release()

    w.run(add, add)
    w.clean()
    w.run(try_in_vain)


def case_release_in_another_thread(w):
    write, thing, lock = w.site("write", "n", op="attr_write"), Thing(), threading.Lock()

    def first():
        lock.acquire()
        first.held = w.core.locks_held()
        w.attr_write(thing, write).n = 1
        yield
        assert w.core.locks_held() == ()
        yield

    def second():
        lock.release()
        lock.acquire()
        assert w.core.locks_held() == first.held
        lock.release()
        yield

    w.run(first, second, order="aba")
    assert len(first.held) == 1


def case_reentrant_lock_is_held_until_the_last_release(w):
    lock = threading.RLock()

    def work():
        with lock:
            held = w.core.locks_held()
            with lock:
                assert w.core.locks_held() == held
            assert w.core.locks_held() == held
        assert w.core.locks_held() == ()

    w.run(work)


def case_reacquired_lock_is_not_held_on(w):
    """Between `wait` and its end a condition's lock was free."""
    read = w.site("read", "n", Flag.SPAN_READ)
    write = w.site("write", "n", Flag.VALUE, partners=("read",), op="attr_write")
    thing = Thing()
    for lock in (threading.Lock(), threading.RLock()):
        condition = threading.Condition(lock)

        def add(condition=condition):
            with condition:
                old = w.attr_read(thing, read).n
                condition.wait(0.001)
                w.attr_write(thing, write).n = old + 1

        w.run(add, add)
        assert ("span", "read>write WRITE", "write WRITE") in w.pairs()


def case_muted_locks_make_no_order(w):
    lock, thing = threading.Lock(), Thing()
    add, bare = adding(w, lock, thing), adding(w, contextlib.nullcontext(), thing)

    def muted(act):
        level = w.core.mute()
        assert level == 0
        assert w.core.mute() == 1
        act()
        w.core.restore(level)
        assert w.core.mute() == 0
        w.core.restore(0)

    def quietly():
        muted(lock.acquire)
        bare()
        muted(lock.release)

    w.run(add, quietly)
    assert len(w.told()) == 2
    w.run(quietly, add)
    assert len(w.told()) == 2


def case_accesses_of_a_muted_thread_are_not_tracked(w):
    add = adding(w, contextlib.nullcontext())

    def quietly():
        level = w.core.mute()
        add()
        w.core.restore(level)

    w.run(add, quietly)
    w.run(quietly, add)
    w.clean()


def case_muted_locks_are_not_held(w):
    lock = threading.Lock()

    def work():
        level = w.core.mute()
        with lock:
            assert w.core.locks_held() == ()
            w.core.restore(level)
        level = w.core.mute()
        lock.acquire()
        w.core.restore(level)
        assert w.core.locks_held() == ()
        lock.release()
        lock.acquire()
        assert len(w.core.locks_held()) == 1
        level = w.core.mute()
        lock.release()
        w.core.restore(level)
        assert w.core.locks_held() == ()

    w.run(work)


def case_clock_of_a_lock_for_those_who_do_not_take_it(w):
    write, thing, lock = w.site("write", "n", op="attr_write"), Thing(), threading.Lock()

    def publish():
        w.attr_write(thing, write).n = 1
        w.core.release(lock)

    def locked():
        with lock:
            w.attr_write(thing, write).n = 1

    def observe():
        w.core.acquire(lock)
        w.attr_write(thing, write).n = 1

    w.run(publish, locked, observe)
    w.clean()


def case_death_of_a_lock_comes_after_all_who_held_it(w):
    write, thing, held, kept = w.site("write", "n", op="attr_write"), Thing(), [], []

    def owner():
        held.append(threading.Lock())
        yield
        held.clear()
        w.attr_write(thing, write).n = 1
        yield

    def locked():
        with held[0]:
            w.attr_write(thing, write).n = 1
        yield

    def locked_and_kept():
        with held[0]:
            w.attr_write(thing, write).n = 1
        kept.append(held[0])
        yield

    w.run(owner, locked, order="aba")
    w.clean()
    w.run(owner, locked_and_kept, order="aba")
    assert w.pairs() == {("order", "write WRITE", "write WRITE")}


def case_many_locks_that_another_thread_released_leave_room_for_the_next(w):
    locks, guard = [threading.Lock() for _ in range(64)], threading.Lock()

    def first():
        for lock in locks:
            lock.acquire()
        yield
        with guard:
            assert len(w.core.locks_held()) == 1
        yield

    def second():
        for lock in locks:
            lock.release()
        yield

    w.run(first, second, order="aba")


def case_locks_by_the_hundred(w):
    locks = [threading.Lock() for _ in range(300)]

    def work():
        for lock in locks:
            with lock:
                pass

    w.run(work, work)
    w.clean()
