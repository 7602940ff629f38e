"""Cases of foreign locks: objects of extension types that are acquired and released, or entered, as locks are.

The gates here are no locks: their methods are builtins of other objects, as the methods of extension types are.
"""

from __future__ import annotations

import threading

from gilscope.toolkit.race.terms import Flag
from tests.race.core.cases.world import Thing

BUILTINS = {"__enter__": [].copy, "__exit__": "".format, "acquire": {}.copy, "release": [].clear, "lock": {}.get,
            "unlock": [].clear}
Gate = type("Gate", (), BUILTINS)
Vain = type("Vain", (), BUILTINS | {"acquire": "".isdigit})      # it returns False


class Python(Gate):
    """A context manager whose methods run code of the program."""

    def __enter__(self):
        return self

    def acquire(self):
        return True


def adding(w, inside):
    """Return a body that increments an attribute inside of a context."""
    update, thing = w.site("update", "n", Flag.AUGMENTED, op="attr_update"), Thing()

    def add():
        with inside():
            w.attr_update(thing, update).n += 1

    return add


def held(w):
    """Return the number of locks at the first, the second and both sides of each conflict so far."""
    found = [[set(access[4]) for access in conflict[4:6]] for conflict in w.conflicts]
    w.conflicts.clear()
    return [(len(first), len(second), len(first & second)) for first, second in found]


def case_with_holds_and_orders(w):
    gate = Gate()
    add = adding(w, lambda: w.locking(gate))
    w.run(add, add)
    w.clean()


def case_held_by_two_at_the_same_time_it_orders_nothing(w):
    gate = Gate()
    update, thing = w.site("update", "n", Flag.AUGMENTED, op="attr_update"), Thing()

    def add():
        with w.locking(gate):
            yield
            w.attr_update(thing, update).n += 1
            yield

    w.run(add, add, order="ababab")
    assert set(held(w)) == {(1, 1, 1)}


def case_two_gates_are_two(w):
    add = adding(w, lambda: w.locking(Gate()))
    w.run(add, add)
    assert set(held(w)) == {(1, 1, 0)}


def case_objects_that_are_none_come_back_as_they_are(w):
    for plain in (threading.Lock(), threading.RLock(), threading.Condition(), Python(), memoryview(b""), 1, None,
                  Thing(), Gate):
        assert w.locking(plain) is plain
        assert w.locking(plain, "acquire") is plain
    assert w.locking(Gate()) is not None
    assert w.locking(Python(), "lock") is not w.locking(Python(), "acquire")


def case_calls_hold_until_the_last_release(w):
    gate = Gate()
    update, thing = w.site("update", "n", Flag.AUGMENTED, op="attr_update"), Thing()

    def add():
        assert w.locking(gate, "acquire").acquire() == {}
        w.locking(gate, "lock").lock(1)
        assert w.locking(gate, "release").release() is None
        w.attr_update(thing, update).n += 1
        w.locking(gate, "unlock").unlock()
        assert not w.core.locks_held()

    w.run(add, add)
    w.clean()


def case_acquire_that_fails_holds_nothing(w):
    gate = Vain()
    update, thing = w.site("update", "n", Flag.AUGMENTED, op="attr_update"), Thing()

    def add():
        assert w.locking(gate, "acquire").acquire() is False
        w.attr_update(thing, update).n += 1

    w.run(add, add)
    assert set(held(w)) == {(0, 0, 0)}


def case_release_that_fails_leaves_it_held(w):
    gate = Gate()

    def body():
        w.locking(gate, "acquire").acquire()
        try:
            w.locking(gate, "release").release(1)
        except TypeError:
            assert len(w.core.locks_held()) == 1
        else:
            raise AssertionError
        w.locking(gate, "release").release()
        assert not w.core.locks_held()

    w.run(body)


def case_release_by_another_thread_ends_it(w):
    gate = Gate()

    def first():
        w.locking(gate, "acquire").acquire()
        assert len(w.core.locks_held()) == 1
        yield
        assert not w.core.locks_held()

    def second():
        w.locking(gate, "release").release()

    w.run(first, second, order="aba")


def case_muted_thread_holds_nothing(w):
    gate = Gate()

    def body():
        level = w.core.mute()
        with w.locking(gate):
            assert not w.core.locks_held()
        w.core.restore(level)

    w.run(body)


def case_update_in_two_acquisitions_is_a_span(w):
    gate = Gate()
    read, thing = w.site("read", "n", Flag.SPAN_READ), Thing()
    write = w.site("write", "n", Flag.VALUE, ("read",), op="attr_write")

    def split():
        with w.locking(gate):
            before = w.attr_read(thing, read).n
        yield
        with w.locking(gate):
            w.attr_write(thing, write).n = before + 1

    w.run(split, split, order="abab")
    assert "span" in {sort for sort, *_ in w.told()}


def case_update_in_one_acquisition_is_none(w):
    gate = Gate()
    read, thing = w.site("read", "n", Flag.SPAN_READ), Thing()
    write = w.site("write", "n", Flag.VALUE, ("read",), op="attr_write")

    def whole():
        with w.locking(gate):
            w.attr_write(thing, write).n = w.attr_read(thing, read).n + 1

    w.run(whole, whole)
    w.clean()


def case_container_published_under_it_is_ordered(w):
    gate = Gate()
    write, read = w.site("write", "n", op="attr_write"), w.site("read", "n")
    item, look = w.site("item", op="item_write"), w.site("look", op="item_read")

    thing = Thing()

    def publish():
        made = {"key": 0}
        w.item_write(1, made, "key", item)
        with w.locking(gate):
            w.attr_write(thing, write).n = made

    def use():
        found = w.attr_read(thing, read).n
        w.item_read(found, "key", look)

    w.run(publish, use)
    assert {part for _, part, *_ in w.told()} == {"attr"}
