"""Cases of attributes, globals and closure variables: what is one location, what is nobody's business."""

# ruff: noqa: B018, N818, PT017
# What a program does, a case does, and pytest is not there everywhere.
from __future__ import annotations

import sys
import threading
import types

from gilscope.toolkit.race.core import NO_VALUE
from gilscope.toolkit.race.terms import Flag
from tests.race.core.cases.world import Thing


def sites(w, key, flags=Flag.NONE):
    """Return a reading and a writing site of that attribute."""
    return w.site("read", key), w.site("write", key, flags, op="attr_write")


def load_and_store(w, loaded, stored, key):
    """Run a load of one object's attribute and a store of another's in two unordered threads."""
    read, write = sites(w, key)

    def load():
        getattr(w.attr_read(loaded, read), key, None)

    def store():
        setattr(w.attr_write(stored, write), key, 1)

    w.run(load, store)
    return w.told()


def case_instance_attribute_has_its_owner(w):
    one, other = Thing(), Thing()
    assert len(load_and_store(w, one, one, "n")) == 1
    assert load_and_store(w, one, other, "n") == []


def case_slots(w):
    class Slotted:
        __slots__ = ("n",)

    thing = Slotted()
    thing.n = 0
    assert load_and_store(w, thing, thing, "n") == [("order", "attr", "n", "read READ", "write WRITE")]


def case_class_attribute_read_through_an_instance(w):
    read, write = w.site("read", "shared"), w.site("write", "shared", op="attr_write")
    thing = Thing()

    def load():
        w.attr_read(thing, read).shared

    def store():
        w.attr_write(Thing, write).shared = 1

    w.run(load, store)
    ((_, owner, part, key, *_),) = w.conflicts
    assert owner is Thing
    assert (part, key) == ("attr", "shared")


def case_class_attribute_in_a_base(w):
    class Derived(Thing):
        pass

    assert len(load_and_store(w, Derived, Thing, "shared")) == 1


def case_default_in_the_class_that_an_instance_gets_later(w):
    class Report:
        rows = 0

    report = Report()
    assert load_and_store(w, report, report, "rows") == [("order", "attr", "rows", "read READ", "write WRITE")]


def case_property_is_noted_in_its_own_code_only(w):
    class Managed:
        _n = 0

        @property
        def n(self):
            return self._n

        @n.setter
        def n(self, value):
            self._n = value

    thing = Managed()
    assert load_and_store(w, thing, thing, "n") == []


def case_other_data_descriptors_likewise(w):
    class Descriptor:
        def __get__(self, instance, owner):
            return 1

        def __set__(self, instance, value):
            pass

    class Managed:
        n = Descriptor()

    thing = Managed()
    assert load_and_store(w, thing, thing, "n") == []


def case_custom_getattribute_is_nobodys_business(w):
    class Odd:
        def __getattribute__(self, name):
            return 1

    odd = Odd()
    assert load_and_store(w, odd, odd, "n") == []


def case_forwarding_proxy_is_nobodys_business(w):
    class Proxy:
        def __getattr__(self, name):
            return 1

        def __setattr__(self, name, value):
            pass

    proxy = Proxy()
    assert load_and_store(w, proxy, proxy, "n") == []


def case_setattr_that_checks_is_a_store(w):
    class Checked:
        n = 0

        def __setattr__(self, name, value):
            object.__setattr__(self, name, value)

    thing = Checked()
    assert len(load_and_store(w, thing, thing, "n")) == 1


def case_thread_locals(w):
    class Mine(threading.local):
        pass

    for local in (threading.local(), Mine()):
        assert load_and_store(w, local, local, "n") == []


def case_thread_local_orders_the_tasks_of_a_worker(w):
    write, touch = w.site("write", "n", op="attr_write"), w.site("touch", "seen")
    thing, local = Thing(), threading.local()

    def worker():
        clock = w.core.snapshot()
        for _ in range(2):
            w.core.thread_begin(None, clock)
            getattr(w.attr_read(local, touch), "seen", None)
            w.attr_write(thing, write).n = 1
            w.core.thread_end()

    w.run(worker)
    w.clean()


def case_plain_values_are_nobodys_business(w):
    read = w.site("read", "real")

    def load():
        for value in (1, "a", 1.0, None, b"", (), True):
            assert w.attr_read(value, read) is value

    w.run(load, load)
    w.clean()


def case_attributes_of_functions(w):
    def function():
        pass

    function.calls = 0
    update = w.site("update", "calls", Flag.AUGMENTED, op="attr_update")

    def count():
        w.attr_update(function, update).calls += 1

    w.run(count, count)
    assert ("order", "update WRITE", "update WRITE") in w.pairs()


def case_attributes_of_exceptions(w):
    class Failure(Exception):
        pass

    failure = Failure()
    failure.n = 0
    assert len(load_and_store(w, failure, failure, "n")) == 1


def case_module_attribute_is_the_global(w):
    module = types.ModuleType("of_the_case")
    module.total = 0
    read, write = w.site("read", "total"), w.site("write", "total", op="global_write")
    store = types.FunctionType(
        compile("def store():\n    global total\n    total = op(5, site)\n", "case.py", "exec").co_consts[0],
        vars(module), "store")
    module.op, module.site = w.global_write, write

    def load():
        w.attr_read(module, read).total

    w.run(load, store)
    ((sort, owner, part, key, _, _, value),) = w.conflicts
    assert (sort, part, key, value) == ("order", "item", "total", 5)
    assert owner is vars(module)
    assert module.total == 5


def case_globals(w):
    read, write = w.site("read", "x", op="global_read"), w.site("write", "x", op="global_write")
    update = w.site("update", "x", Flag.AUGMENTED, op="global_update")

    def load():
        assert w.global_read(3, read) == 3

    def store():
        assert w.global_write(4, write) == 4

    def add():
        assert w.global_update(1, update) == 1

    w.run(load, store)
    ((_, owner, part, key, _, _, value),) = w.conflicts
    assert owner is globals()
    assert (part, key, value) == ("item", "x", 4)
    w.told()
    w.run(add, add)
    assert ("order", "update WRITE", "update WRITE") in w.pairs()


def case_closure_variables_have_their_activation(w):
    read, write = w.site("read", "x", op="cell_read"), w.site("write", "x", op="cell_write")
    one, other = w.token(), w.token()

    def load(token):
        def body():
            assert w.cell_read(3, token, read) == 3
        return body

    def store():
        assert w.cell_write(4, one, write) == 4

    w.run(load(one), store)
    assert w.told() == [("order", "cell", "x", "read READ", "write WRITE")]
    w.run(load(other), store)
    w.clean()


def case_value_is_told_where_the_op_knows_it(w):
    store, write, thing = w.site("store", "n", op="attr_store"), w.site("write", "n", op="attr_write"), Thing()

    def one():
        assert w.attr_store(7, thing, store) is None

    def two():
        w.attr_write(thing, write).n = 8

    w.run(one, one)
    assert w.conflicts[0][-1] == 7
    w.told()
    w.run(one, two)
    assert w.conflicts[0][-1] is NO_VALUE


def case_proxy_of_an_augmented_assignment(w):
    proxy, thing = w.site("proxy", "n", Flag.AUGMENTED, op="attr_proxy"), Thing()
    lock = w.lock()

    def add():
        w.attr_proxy(thing, proxy).n += int("1")

    def locked():
        with lock:
            add()

    w.run(add, add)
    assert w.pairs() == {("order", "proxy WRITE", "proxy READ"), ("order", "proxy WRITE", "proxy WRITE")}
    w.run(locked, locked)
    w.clean()
    assert thing.n == 4


def case_proxy_deletes_and_fails_as_its_object(w):
    proxy, thing = w.site("proxy", "n", op="attr_proxy"), Thing()
    texts = []

    def use():
        del w.attr_proxy(thing, proxy).n
        for act in (lambda: w.attr_proxy(thing, proxy).n, lambda: delattr(w.attr_proxy(thing, proxy), "n")):
            try:
                act()
            except AttributeError as error:
                texts.append((str(error), error.obj is thing, error.name))

    def native():
        thing.n = 1
        del thing.n
        for act in (lambda: thing.n, lambda: delattr(thing, "n")):
            try:
                act()
            except AttributeError as error:
                texts.append((str(error), error.obj is thing, error.name))

    w.run(use)
    w.run(native)
    assert texts[:2] == texts[2:]


def case_dynamic_names(w):
    ops = {name: w.site(name, op="dynamic") for name in ("get", "set", "has", "del")}
    thing = Thing()

    def load():
        assert w.dynamic(getattr, ops["get"], thing, "n") == 0
        assert w.dynamic(hasattr, ops["has"], thing, "n")
        assert w.dynamic(getattr, ops["get"], thing, "missing", 5) == 5

    def store():
        w.dynamic(setattr, ops["set"], thing, "n", 2)

    def delete():
        w.dynamic(delattr, ops["del"], thing, "n")

    w.run(load, store)
    conflict = w.conflicts[0]
    assert (conflict[2], conflict[3], conflict[6]) == ("attr", "n", 2)
    (found,) = w.pairs()
    assert found[1:] in {("get READ", "set WRITE"), ("has READ", "set WRITE")}     # either is true
    w.run(store, delete)
    assert w.pairs() == {("order", "set WRITE", "del WRITE")}


def case_dynamic_calls_whatever_it_is_given(w):
    site = w.site("call", op="dynamic")

    def call():
        assert w.dynamic(max, site, 1, 2) == 2
        assert w.dynamic(getattr, site, "text", "upper")() == "TEXT"
        for bad in ((), (1,), (1, 2)):
            try:
                w.dynamic(getattr, site, *bad)
            except TypeError as error:
                try:
                    getattr(*bad)
                except TypeError as native:
                    assert str(error) == str(native)

    w.run(call)


def case_polled_flag(w):
    poll, stop = w.site("poll", "n", Flag.POLL | Flag.TEST), w.site("stop", "n", Flag.CONSTANT, op="attr_write")
    data, use = w.site("data", "n", op="attr_write"), w.site("use", "n")
    flag, box = Thing(), Thing()

    def worker():
        while not w.attr_read(flag, poll).n:
            yield
        w.attr_read(box, use).n
        yield

    def main():
        w.attr_write(box, data).n = 5
        w.attr_write(flag, stop).n = 1
        yield

    def setter():
        w.attr_write(flag, stop).n = 1
        yield
        w.attr_write(box, data).n = 6      # after the flag: nothing orders this

    w.run(worker, main, order="aba")
    found = w.pairs()
    assert ("order", "poll READ", "stop WRITE") in found
    assert not any("use READ" in pair for pair in found)
    flag.n = 0
    w.run(worker, setter, order="abba")
    assert ("order", "data WRITE", "use READ") in w.pairs()


def case_flag_that_is_read_once_orders_nothing(w):
    read, stop = w.site("read", "n"), w.site("stop", "n", Flag.CONSTANT, op="attr_write")
    data, use = w.site("data", "n", op="attr_write"), w.site("use", "n")
    flag, box = Thing(), Thing()

    def main():
        w.attr_write(box, data).n = 5
        w.attr_write(flag, stop).n = 1

    def worker():
        if w.attr_read(flag, read).n:
            w.attr_read(box, use).n

    w.run(main, worker)
    assert w.pairs() == {("order", "stop WRITE", "read READ"), ("order", "data WRITE", "use READ")}


def case_poll_between_note_and_load(w):
    """The store comes after the poll's note and before its load: the next op sees to it."""
    poll, stop = w.site("poll", "n", Flag.POLL), w.site("stop", "n", Flag.CONSTANT, op="attr_write")
    data, use = w.site("data", "n", op="attr_write"), w.site("use", "n")
    flag, box = Thing(), Thing()

    def worker():
        looked_at = w.attr_read(flag, poll)
        yield
        assert looked_at.n
        w.attr_read(box, use).n

    def main():
        w.attr_write(box, data).n = 5
        w.attr_write(flag, stop).n = 1

    w.run(worker, main, order="aba")
    assert not any("use READ" in pair for pair in w.pairs())


def case_double_checked_object_is_seen_whole(w):
    check = w.site("check", "n", Flag.SPAN_READ | Flag.TEST)
    make = w.site("make", "n", Flag.GUARD | Flag.RECHECKED, partners=("check",), op="attr_write")
    part, use = w.site("part", "n", op="attr_write"), w.site("use", "n")
    holder, made, lock = Thing(), Thing(), w.lock()

    def maker():
        w.attr_read(holder, check).n
        with lock:
            w.attr_read(holder, check).n
            w.attr_write(made, part).n = 1
            w.attr_write(holder, make).n = made

    def user():
        w.attr_read(w.attr_read(holder, check).n, use).n

    w.run(maker, user)
    found = w.pairs()
    assert ("order", "make WRITE", "check READ") in found
    assert not any("use READ" in pair for pair in found)


def case_container_replaced_under_a_lock_is_seen_whole(w):
    swap, look = w.site("swap", "n", op="attr_write"), w.site("look", "n")
    fill, use = w.site("fill", op="item_write"), w.site("use", op="item_read")
    holder, lock = Thing(), w.lock()

    def writer():
        with lock:
            fresh = [0]
            w.item_write(1, fresh, 0, fill)
            w.attr_write(holder, swap).n = fresh

    def reader():
        assert w.item_read(w.attr_read(holder, look).n, 0, use) == 1

    w.run(writer, reader)
    assert w.pairs() == {("order", "swap WRITE", "look READ")}


def case_locals_without_our_names(w):
    assert w.locals_({"a": 1, "gilscope:cells": 2, "gilscope:cells1": 3}) == {"a": 1}
    assert w.locals_(["a", "gilscope:cells"]) == ["a"]


def case_ops_are_transparent_while_alone(w):
    read, thing = w.site("read", "n"), Thing()
    assert w.attr_read(thing, read) is thing
    assert w.item_read({"a": 1}, "a", w.site("item", op="item_read")) == 1
    assert w.contains(1, [1], w.site("in", op="contains")) is True
    assert w.slice_(1, 2) == slice(1, 2)
    assert sys.getrefcount(thing) <= 4


def case_op_refuses_the_site_of_another(w):
    read = w.site("read", "n")
    for op, arguments in ((w.item_read, ({}, "a")), (w.enter, ()), (w.reads, (w.begin(), 1))):
        try:
            op(*arguments, read)
        except TypeError:
            continue
        raise AssertionError(op)
