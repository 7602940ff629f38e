"""Cases of containers as a whole, of iterators, arrays and queues."""

# ruff: noqa: B023, PT017
# What a program does, a case does, and pytest is not there everywhere.
from __future__ import annotations

import array
import itertools
import queue
import sysconfig
from collections import Counter, OrderedDict, deque

from tests.race.core.cases.world import Thing, call, kit


def case_change_in_place(w):
    each = kit(w)["each"]
    line, items, ring = [1], {1}, deque([1])
    for operator, kind, changed in (("+=", "GROW", line), ("|=", "GROW", items), ("-=", "SHRINK", items),
                                    ("^=", "RESHAPE", items), ("*=", "RESHAPE", line), ("+=", "GROW", ring)):
        site = w.site(operator, operator, op="size")
        w.run(lambda: list(w.iterate(changed, each)), lambda: w.size(changed, site))
        assert w.told() == [("order", "structure", None, "each ITERATE", f"{operator} {kind}")]


def case_iteration_during_change(w):
    ops, table, line, items, ring = kit(w), {"a": 1}, [1], {1}, deque([1])
    ordered = OrderedDict(a=1)

    def loop(iterable):
        def body():
            for _ in w.iterate(iterable(), ops["each"]):
                pass
        return body

    def insert():
        w.item_write(1, table, "b", ops["set"])

    def delete():
        w.item_delete(table, "b", ops["del"])

    for view in (lambda: table, table.keys, table.values, table.items):
        w.run(loop(view), insert)
        assert w.told() == [("order", "structure", None, "each ITERATE", "set GROW")]
        w.run(loop(view), delete)
        assert w.told() == [("order", "structure", None, "each ITERATE", "del SHRINK")]
    for view in (lambda: ordered, ordered.keys, ordered.values, ordered.items):
        w.run(loop(view), lambda: w.item_write(1, ordered, len(ordered), ops["set"]))
        assert w.pairs() == {("order", "each ITERATE", "set GROW")}
    for container, act in ((line, "append"), (items, "add"), (ring, "append")):
        w.run(loop(lambda container=container: container), lambda: call(w, container, act, 5))
        assert w.told() == [("order", "structure", None, "each ITERATE", f"{act} GROW")]
        w.run(lambda: call(w, container, "remove", 5), loop(lambda container=container: container))
        assert ("order", "remove SHRINK", "each ITERATE") in w.pairs()
    w.run(lambda: w.item_delete(line, 0, ops["del"]), loop(lambda: line))
    assert w.told() == [("order", "structure", None, "del SHRINK", "each ITERATE")]
    line += [2, 1]
    w.run(lambda: call(w, line, "sort"), loop(lambda: line))
    assert w.pairs() == {("order", "sort RESHAPE", "each ITERATE")}

    def overwrite():
        w.item_write(2, table, "a", ops["set"])

    w.run(loop(lambda: table), overwrite)
    w.clean()
    w.run(loop(lambda: table), loop(lambda: table))
    w.clean()


def case_copies_that_are_no_single_step_without_the_gil(w):
    free = sysconfig.get_config_var("Py_GIL_DISABLED")
    ordered, counts, table = OrderedDict(a=1), Counter(a=1), {"a": 1}
    insert = w.site("insert", op="item_write")
    copies = {name: w.site(name, name, op="size") for name in ("list", "tuple", "set", "dict", "repr", "star")}

    def pairs(name, container, source):
        w.run(lambda: w.size(source(), copies[name]), lambda: w.item_write(1, container, len(container), insert))
        return w.pairs()

    for name, container, source, steps in (
            ("list", ordered, lambda: ordered, True), ("list", ordered, ordered.keys, True),
            ("star", counts, lambda: counts, True), ("tuple", table, lambda: table, True),
            ("set", table, table.keys, True), ("dict", table, table.items, True),
            ("repr", ordered, lambda: ordered, True), ("list", table, lambda: table, False),
            ("list", counts, counts.keys, False), ("set", table, lambda: table, False)):
        expected = {("order", f"{name} ITERATE", "insert GROW")} if free and steps else set()
        assert pairs(name, container, source) == expected, (name, container)
    w.run(lambda: call(w, ordered, "values"), lambda: w.item_write(1, ordered, "z", insert))
    assert w.pairs() == ({("order", "values ITERATE", "insert GROW")} if free else set())


def case_structural_writes(w):
    ops, line = kit(w), [3, 1, 2]

    def grow():
        call(w, line, "append", 1)
        call(w, line, "extend", [1, 2])
        call(w, line, "insert", 0, 5)

    def shrink():
        call(w, line, "pop")
        call(w, line, "remove", 1)
        w.item_delete(line, 0, ops["del"])

    def look():
        w.size(line, ops["len"])
        call(w, line, "copy")
        call(w, line, "count", 1)
        w.contains(1, line, ops["in"])
        w.item_read(line, slice(0, 2), ops["get"])

    def reshape():
        w.item_write([9], line, slice(0, 1), ops["set"])

    w.run(grow, shrink, look)
    w.clean()
    w.run(look, reshape)
    w.clean()
    w.run(grow, reshape)
    assert {second for _, _, second in w.pairs()} == {"set RESHAPE"}
    w.run(reshape, shrink)
    assert {first for _, first, _ in w.pairs()} == {"set RESHAPE"}
    w.run(reshape, reshape)
    assert w.told() == [("order", "structure", None, "set RESHAPE", "set RESHAPE")]


def case_one_shot_iterators(w):
    ops = kit(w)

    def conflicts(make, use):
        iterator = make()
        w.run(lambda: use(iterator), lambda: use(iterator))
        return w.pairs()

    def step(iterator):
        next(w.advance(iterator, ops["next"]))

    def loop(iterator):
        for _ in w.iterate(iterator, ops["each"]):
            break

    makers = (lambda: (n for n in range(9)), lambda: iter([1, 2, 3]), lambda: map(str, [1, 2]),
              lambda: itertools.cycle([1, 2]), lambda: enumerate([1, 2, 3]))
    for make in makers:
        assert conflicts(make, step) == {("order", "next WRITE", "next WRITE")}
        assert conflicts(make, loop) == {("order", "each WRITE", "each WRITE")}
    assert conflicts(itertools.count, step) == set()
    assert conflicts(lambda: range(3), loop) == set()


def case_iteration_yields_what_it_should(w):
    ops = kit(w)

    def work():
        assert list(w.iterate([1, 2, 3], ops["each"])) == [1, 2, 3]
        assert dict(w.iterate({"a": 1}.items(), ops["each"])) == {"a": 1}
        assert sum(w.iterate({1, 2}, ops["each"])) == 3
        assert list(map(str, w.iterate((n for n in (1, 2)), ops["each"]))) == ["1", "2"]
        assert w.iterate("text", ops["each"]) == "text"
        table = {1: 1}
        try:
            for key in w.iterate(table, ops["each"]):
                table[key + 1] = 1
        except RuntimeError as error:
            assert str(error) == "dictionary changed size during iteration"

    w.run(work)
    w.clean()


def case_ranges_of_arrays(w):
    ops = kit(w)

    def meets(make, one, other, value):
        numbers = make()

        def load():
            w.item_read(numbers, one, ops["get"])

        def store():
            w.item_write(value(numbers[other]), numbers, other, ops["set"])

        w.run(load, store)
        return bool(w.told())

    def array_of():
        return array.array("i", range(20))

    def bytes_of():
        return bytearray(20)

    for make in (array_of, bytes_of, lambda: memoryview(bytearray(20))):
        same = lambda old: old
        assert meets(make, 3, 3, same)
        assert meets(make, -1, 19, same)
        assert not meets(make, 3, 4, same)
        assert meets(make, slice(0, 10), 3, same)
        assert meets(make, 3, slice(0, 10), same)
        assert not meets(make, slice(0, 10), slice(10, 20), same)
        assert meets(make, slice(0, 11), slice(10, 20), same)
        assert not meets(make, slice(0, 20, 2), 3, same)
    assert not meets(array_of, slice(0, 20, 2), slice(1, 20, 2), lambda old: old)
    assert meets(array_of, slice(0, 20, 3), slice(1, 20, 2), lambda old: old)
    assert meets(array_of, slice(None, None, -1), 19, lambda old: old)


def case_numpy(w):
    try:
        import numpy as np
    except ImportError:
        return "needs NumPy"
    ops, grid = kit(w), np.zeros((4, 4))

    def meets(one, other):
        w.run(lambda: w.item_read(grid, one, ops["get"]), lambda: w.item_write(1, grid, other, ops["set"]))
        return bool(w.told())

    assert meets((1, 2), (1, 2))
    assert meets((-1, 2), (3, 2))
    assert not meets((1, 2), (2, 1))
    assert meets(1, (1, 3))
    assert meets(slice(0, 2), 1)
    assert not meets(slice(0, 2), slice(2, 4))
    assert meets(slice(0, 2), grid == 0)
    assert meets(np.int64(1), 1)
    everything = True      # a mask of all rows
    assert meets(everything, 3)
    return None


def case_queues_order_for_themselves(w):
    line = queue.Queue()
    full, put = w.site("full", "full", op="method"), w.site("put", "put", op="method")

    def work():
        if not w.method(line, full).full():
            w.method(line, put).put(1)

    w.run(work, work)
    w.clean()


def case_methods_of_others_are_left_alone(w):
    class Own(list):
        def append(self, value):
            super().append(value * 2)

    own, site = Own(), w.site("append", "append", op="method")
    other = Thing()

    def work():
        assert w.method(own, site) is own
        assert w.method(other, site) is other

    w.run(work, work)
    w.clean()
