"""Cases of locks being what they replace."""

# ruff: noqa: BLE001, FBT003
# What a program does, a case does, and pytest is not there everywhere.
from __future__ import annotations

import _thread
import copy
import pickle
import sys
import threading
import weakref

from tests.race.core.cases.locks import adding
from tests.race.core.cases.world import Pipe


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
