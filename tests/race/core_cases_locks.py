"""Cases of locks: the order they make, who holds them, and that they are what they replace."""

# ruff: noqa: BLE001, FBT003, PLW2101
# What a program does, a case does, and pytest is not there everywhere.
from __future__ import annotations

import _thread
import copy
import pickle
import sys
import threading
import weakref

from tests.race.core_cases_world import Pipe, Thing
from toolkit.race.site import Flag


def adding(w, lock):
    """Return a body that increments an attribute under a lock."""
    update, thing = w.site("update", "n", Flag.AUGMENTED, op="attr_update"), Thing()

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
    add = adding(w, threading.Lock())

    def quietly():
        level = w.core.mute()
        assert level == 0
        assert w.core.mute() == 1
        add()
        w.core.restore(level)
        assert w.core.mute() == 0
        w.core.restore(0)

    w.run(add, quietly)
    assert len(w.told()) == 2
    w.run(quietly, add)
    assert len(w.told()) == 2


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


def case_kinds_of_locks(w):
    lock, rlock = threading.Lock(), threading.RLock()
    assert type(lock).__name__ == "lock"
    assert type(rlock).__name__ == "RLock"
    assert type(lock).__module__ == type(rlock).__module__ == "_thread"
    assert isinstance(lock, _thread.LockType)
    assert isinstance(rlock, _thread.RLock)
    if sys.version_info >= (3, 13):
        assert isinstance(lock, threading.Lock)
        assert isinstance(lock, _thread.lock)
    for thing in (lock, rlock):
        assert weakref.ref(thing)() is thing
        assert not hasattr(thing, "__dict__")
        assert hash(thing) == object.__hash__(thing)
    assert not hasattr(lock, "_is_owned")
    assert not hasattr(lock, "_release_save")


def case_locks_say_what_they_are(w):
    lock, rlock = threading.Lock(), threading.RLock()
    assert repr(lock) == f"<unlocked _thread.lock object at {id(lock):#x}>"
    with lock:
        assert repr(lock) == f"<locked _thread.lock object at {id(lock):#x}>"
        assert lock.locked()
    assert not lock.locked()
    with rlock, rlock:
        assert repr(rlock) == (
            f"<locked _thread.RLock object owner={threading.get_ident()} count=2 at {id(rlock):#x}>")


def error(act):
    """Return type and text of what an action raises."""
    try:
        act()
    except Exception as failure:
        return type(failure), str(failure)
    raise AssertionError("nothing was raised")


def case_errors_of_locks(w):
    text = "a non-negative number" if sys.version_info >= (3, 13) else "positive"
    for lock in (threading.Lock(), threading.RLock()):
        assert error(lambda lock=lock: lock.acquire(timeout=-2)) == (ValueError, f"timeout value must be {text}")
        assert error(lambda lock=lock: lock.acquire(False, 2)) == (
            ValueError, "can't specify a timeout for a non-blocking call")
        assert error(lambda lock=lock: lock.acquire(timeout=1e30))[0] is OverflowError
        assert error(lambda lock=lock: lock.acquire("x", "y", "z"))[0] is TypeError
        kind = "RLock" if hasattr(lock, "_is_owned") else "lock"
        for act in (pickle.dumps, copy.copy, copy.deepcopy):
            assert error(lambda act=act, lock=lock: act(lock)) == (
                TypeError, f"cannot pickle '_thread.{kind}' object")
    assert error(threading.Lock().release) == (RuntimeError, "release unlocked lock")
    assert error(threading.RLock().release) == (RuntimeError, "cannot release un-acquired lock")
    assert error(threading.RLock()._release_save) == (RuntimeError, "cannot release un-acquired lock")


def case_lock_class_is_final(w):
    kind = type(threading.Lock())
    assert error(lambda: type("Mine", (kind,), {})) == (
        TypeError, "type '_thread.lock' is not an acceptable base type")


def case_subclass_of_rlock(w):
    class Named(_thread.RLock):
        name = "mine"

    lock = Named()
    add = adding(w, lock)
    w.run(add, add)
    w.clean()
    assert lock.name == "mine"


def case_old_names_of_methods(w):
    lock = threading.Lock()
    assert lock.acquire_lock()
    assert lock.locked_lock()
    lock.release_lock()
    assert not lock.locked()
    assert lock.__enter__() is True
    assert lock.__exit__(None, None, None) is None


def case_condition_over_locks(w):
    for lock in (threading.Lock(), threading.RLock(), None):
        condition = threading.Condition(lock)
        ready, done = [], Pipe()

        def waiter(condition=condition, ready=ready, done=done):
            with condition:
                while not ready:
                    condition.wait(5)
            done.tell()

        _thread.start_new_thread(waiter, ())
        with condition:
            ready.append(1)
            condition.notify_all()
        done.wait()
        done.close()
        assert error(condition.notify) == (RuntimeError, "cannot notify on un-acquired lock")


def case_reentrant_lock_of_a_condition_comes_back_as_deep(w):
    lock = threading.RLock()
    condition = threading.Condition(lock)
    with condition, condition:
        assert not condition.wait(0.001)
        assert lock._is_owned()
        if hasattr(lock, "_recursion_count"):
            assert lock._recursion_count() == 2
    assert not lock._is_owned()


def case_reinit_after_fork(w):
    for lock in (threading.Lock(), threading.RLock()):
        lock.acquire()
        lock._at_fork_reinit()
        assert w.core.locks_held() == ()
        assert lock.acquire(blocking=False)
        lock.release()


def case_library_users_of_locks(w):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(abs, [-1, -2])) == [1, 2]
    barrier = threading.Barrier(1)
    assert barrier.wait() == 0
    timer = threading.Timer(0, lambda: None)
    timer.start()
    timer.join()


def case_locks_by_the_hundred(w):
    locks = [threading.Lock() for _ in range(300)]

    def work():
        for lock in locks:
            with lock:
                pass

    w.run(work, work)
    w.clean()
