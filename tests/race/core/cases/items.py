"""Cases of items: what is one location, what an operation on a key does."""

# ruff: noqa: B015, FBT003, PT017
# What a program does, a case does, and pytest is not there everywhere.
from __future__ import annotations

from collections import Counter, OrderedDict, deque

from gilscope.toolkit.race.terms import Flag
from tests.race.core.cases.world import call, kit


class Key:
    """A key whose comparison and hash are somebody's code, and counted."""

    calls = 0

    def __init__(self, name):
        self.name = name

    def __hash__(self):
        Key.calls += 1
        return hash(self.name)

    def __eq__(self, other):
        Key.calls += 1
        return isinstance(other, Key) and other.name == self.name


def case_dict_items(w):
    ops, table = kit(w), {"a": 1, "b": 2}

    def load():
        assert w.item_read(table, "a", ops["get"]) == 1

    def store():
        w.item_write(1, table, "a", ops["set"])

    def other():
        w.item_write(1, table, "b", ops["set"])

    w.run(load, store)
    assert w.told() == [("order", "item", "a", "get READ", "set WRITE")]
    w.run(store, load)
    assert w.told() == [("order", "item", "a", "set WRITE", "get READ")]
    w.run(store, store)
    assert w.told() == [("order", "item", "a", "set WRITE", "set WRITE")]
    w.run(load, other)
    w.clean()
    for kind in (OrderedDict, Counter):
        table = kind(a=1, b=2)
        w.run(load, store)
        assert len(w.told()) == 1


def case_items_of_the_environment(w):
    ops = kit(w)
    import os

    table = os.environ
    table["GILSCOPE_CASE"] = table["GILSCOPE_OTHER"] = "0"

    def load():
        assert w.item_read(table, "GILSCOPE_CASE", ops["get"]) in {"0", "1"}
        list(w.iterate(table, ops["each"]))

    def store():
        w.item_write("1", table, "GILSCOPE_CASE", ops["set"])

    def delete():
        w.item_delete(table, "GILSCOPE_CASE", ops["del"])

    def other():
        w.item_write("1", table, "GILSCOPE_OTHER", ops["set"])

    w.run(load, store)
    assert w.told() == [("order", "item", "GILSCOPE_CASE", "get READ", "set WRITE")]
    w.run(store, delete)
    assert w.told() == [("order", "item", "GILSCOPE_CASE", "set WRITE", "del WRITE")]
    table["GILSCOPE_CASE"] = "1"
    w.run(load, other)
    w.clean()


def case_equal_keys_are_one_location(w):
    ops, table = kit(w), {1: "x", (1, "a"): "y"}

    def store():
        w.item_write("z", table, True, ops["set"])
        w.item_write("z", table, (1.0, "a"), ops["set"])

    def load():
        assert w.item_read(table, 1, ops["get"]) == "z"
        assert w.item_read(table, (1, "a"), ops["get"]) == "z"

    w.run(store, load)
    assert len(w.told()) == 2


def case_keys_of_the_program_are_not_asked(w):
    ops, key = kit(w), Key("k")
    table, items = {key: 1}, set()

    def work():
        Key.calls = 0
        w.item_read(table, key, ops["get"])
        w.item_write(2, table, key, ops["set"])
        w.contains(key, table, ops["in"])
        call(w, table, "get", key)
        call(w, table, "setdefault", key, 3)
        call(w, items, "add", key)
        w.item_delete(table, key, ops["del"])
        work.calls = Key.calls

    def native():
        Key.calls = 0
        table[key]
        table[key] = 2
        key in table
        table.get(key)
        table.setdefault(key, 3)
        items.add(key)
        del table[key]
        native.calls = Key.calls

    w.run(work)
    table[key] = 1
    items.clear()
    w.run(native)
    assert work.calls == native.calls


def case_atomic_key_operations_do_not_race(w):
    ops, table, items = kit(w), {"k": 1}, {1}

    def work():
        call(w, table, "setdefault", "k", 2)
        call(w, table, "update", {"k": 3})
        call(w, table, "pop", "k", None)
        call(w, items, "add", 5)
        call(w, items, "discard", 5)
        w.contains(5, items, ops["in"])

    w.run(work, work)
    w.clean()


def case_absent_keys(w):
    ops = kit(w)

    def raises(act):
        try:
            act()
        except KeyError as error:
            assert error.args == ("k",)
        else:
            raise AssertionError

    lookups = {
        "get": lambda table: raises(lambda: w.item_read(table, "k", ops["get"])),
        "in": lambda table: w.contains("k", table, ops["in"]),
        "get()": lambda table: call(w, table, "get", "k"),
    }
    for name, look in lookups.items():
        for default in (False, True):
            table = {}

            def insert(table=table):
                w.item_write(1, table, "k", ops["set"])

            def insert_in_one_step(table=table):
                call(w, table, "setdefault", "k", 1)

            w.run(lambda look=look, table=table: look(table), insert_in_one_step if default else insert)
            assert w.told() == ([] if default else [("order", "item", "k", f"{name} MISS", "set WRITE")])
    w.run(lambda: raises(lambda: w.item_delete({}, "k", ops["del"])))
    assert call(w, {}, "get", "k", 4) == 4
    w.clean()


def case_a_lookup_that_missed_after_a_deletion(w):
    ops, table = kit(w), {"k": 1}
    w.run(lambda: w.item_delete(table, "k", ops["del"]), lambda: w.contains("k", table, ops["in"]))
    w.clean()


def case_a_lookup_that_missed_under_the_lock_of_the_store(w):
    ops, table, lock = kit(w), {}, w.lock()

    def miss():
        with lock:
            w.contains("k", table, ops["in"])

    def insert():
        with lock:
            w.item_write(1, table, "k", ops["set"])

    w.run(miss, insert)
    w.clean()


def case_deletion_is_a_store(w):
    ops, table = kit(w), {"k": 1}

    def load():
        w.item_read(table, "k", ops["get"])

    def delete():
        w.item_delete(table, "k", ops["del"])

    w.run(load, delete)
    assert w.told() == [("order", "item", "k", "get READ", "del WRITE")]


def case_list_items(w):
    ops, line = kit(w), [1, 2, 3]

    def load(index):
        def body():
            w.item_read(line, index, ops["get"])
        return body

    def store(index):
        def body():
            w.item_write(5, line, index, ops["set"])
        return body

    w.run(load(2), store(-1))
    assert w.told() == [("order", "item", 2, "get READ", "set WRITE")]
    w.run(load(0), store(1))
    w.clean()
    line = deque(line)
    w.run(store(0), store(-3))
    assert w.told() == [("order", "item", 0, "set WRITE", "set WRITE")]


def case_counter_updates_are_not_atomic(w):
    counts = Counter()

    def count():
        call(w, counts, "update", ["the", "a"])

    w.run(count, count)
    assert w.pairs() == {("span", "update>update WRITE", "update READ")}     # as the insertion hands over
    w.run(count, count)
    assert ("order", "update WRITE", "update WRITE") in w.pairs()
    lock = w.lock()

    def locked():
        with lock:
            count()

    w.run(locked, locked)
    w.clean()


def case_total_of_a_counter_loads_one_count_after_the_other(w):
    counts, ops = Counter(a=1), kit(w)
    w.run(lambda: call(w, counts, "total"), lambda: w.item_write(2, counts, "b", ops["set"]))
    assert w.pairs() == {("order", "total ITERATE", "set GROW")}


def case_proxies_of_items(w):
    proxy, table, line = w.site("proxy", "", Flag.AUGMENTED, op="item_proxy"), {"k": 0}, [0]
    lock = w.lock()

    def add():
        w.item_proxy(table, proxy)["k"] += int("1")
        w.item_proxy(line, proxy)[0] += int("1")

    def locked():
        with lock:
            add()

    w.run(add, add)
    assert w.pairs() == {("order", "proxy WRITE", "proxy READ"), ("order", "proxy WRITE", "proxy WRITE")}
    w.run(locked, locked)
    w.clean()
    assert (table, line) == ({"k": 4}, [4])
    w.run(lambda: w.item_proxy(table, proxy).__delitem__("k"))
    assert table == {}
