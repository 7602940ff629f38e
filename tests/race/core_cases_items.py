"""Cases of containers: items, structure, hand-off, iteration, arrays."""

# ruff: noqa: B015, B018, B023, C901, FBT003, PT017
# What a program does, a case does, and pytest is not there everywhere.
from __future__ import annotations

import array
import itertools
import queue
from collections import Counter, OrderedDict, defaultdict, deque

from tests.race.core_cases_world import Thing
from toolkit.race.site import Flag


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


def kit(w):
    """Return one site of each item op, by name."""
    names = {"get": "item_read", "set": "item_write", "del": "item_delete", "in": "contains", "each": "iterate",
             "len": "size", "next": "advance"}
    return {name: w.site(name, op=op) for name, op in names.items()}


def call(w, container, name, *args):
    """Call a container's method through its op, at a site named after it."""
    if name not in w.methods:
        w.methods[name] = w.site(name if name not in w.sites else f"{name}()", name, op="method")
    return getattr(w.method(container, w.methods[name]), name)(*args)


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


def case_insertion_hands_over(w):
    ops, table, part, use = kit(w), {}, w.site("part", "n", op="attr_write"), w.site("use", "n")

    def insert():
        thing = Thing()
        w.attr_write(thing, part).n = 5
        w.item_write(thing, table, "k", ops["set"])

    def look(getter):
        def body():
            w.attr_read(getter(), use).n
        return body

    def insert_by_setdefault():
        thing = Thing()
        w.attr_write(thing, part).n = 5
        call(w, table, "setdefault", "k", thing)

    def first():
        for key in w.iterate(table, ops["each"]):
            return w.item_read(table, key, ops["get"])
        return None

    def first_value():
        for value in w.iterate(table.values(), ops["each"]):
            return value
        return None

    getters = (lambda: w.item_read(table, "k", ops["get"]), lambda: call(w, table, "get", "k"),
               lambda: call(w, table, "pop", "k"), lambda: call(w, table, "popitem")[1],
               lambda: call(w, table, "setdefault", "k", None), first, first_value)
    for maker in (insert, insert_by_setdefault):
        for getter in getters:
            table.clear()
            w.run(maker, look(getter))
            assert not [pair for pair in w.pairs() if "use READ" in pair]
    table.clear()
    w.run(look(lambda: table.get("k", Thing())), insert)
    w.clean()


def case_overwriting_hands_nothing_over(w):
    ops, table, part, use = kit(w), {"k": None}, w.site("part", "n", op="attr_write"), w.site("use", "n")

    def store():
        thing = Thing()
        w.attr_write(thing, part).n = 5
        w.item_write(thing, table, "k", ops["set"])

    def load():
        w.attr_read(w.item_read(table, "k", ops["get"]), use).n

    w.run(store, load)
    assert w.pairs() == {("order", "set WRITE", "get READ"), ("order", "part WRITE", "use READ")}


def case_access_after_the_hand_off_is_not_handed_over(w):
    ops, table, part, use = kit(w), {}, w.site("part", "n", op="attr_write"), w.site("use", "n")
    thing = Thing()

    def insert():
        w.item_write(thing, table, "k", ops["set"])
        w.attr_write(thing, part).n = 5

    def load():
        w.attr_read(w.item_read(table, "k", ops["get"]), use).n

    w.run(insert, load)
    assert w.pairs() == {("order", "part WRITE", "use READ")}


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
    ops, table = kit(w), {}

    def miss():
        for act in (lambda: w.item_read(table, "k", ops["get"]), lambda: w.item_delete(table, "k", ops["del"])):
            try:
                act()
            except KeyError as error:
                assert error.args == ("k",)
            else:
                raise AssertionError
        assert w.contains("k", table, ops["in"]) is False
        assert call(w, table, "get", "k") is None
        assert call(w, table, "get", "k", 4) == 4

    def insert():
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


def case_defaultdict_makes_what_is_missing(w):
    ops = kit(w)
    groups = defaultdict(list)
    part, use = w.site("part", "n", op="attr_write"), w.site("use", "n")

    def touch():
        assert w.item_read(groups, "k", ops["get"]) is groups["k"]

    def factory():
        thing = Thing()
        w.attr_write(thing, part).n = 1
        return thing

    made = defaultdict(factory)

    def use_it():
        w.attr_read(w.item_read(made, "k", ops["get"]), use).n

    w.run(touch, touch)
    assert w.told() == [("span", "item", "k", "get>get WRITE", "get READ")]     # both might have made a list
    w.run(use_it, use_it)
    assert w.pairs() == {("span", "get>get WRITE", "get READ")}
    assert len(made) == 1
    try:
        w.item_read(defaultdict(None), "x", ops["get"])
    except KeyError as error:
        assert error.args == ("x",)


def case_iteration_during_change(w):
    ops, table, line, items, ring = kit(w), {"a": 1}, [1], {1}, deque([1])

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
    for container, act in ((line, "append"), (items, "add"), (ring, "append")):
        w.run(loop(lambda container=container: container), lambda: call(w, container, act, 5))
        assert w.told() == [("order", "structure", None, "each ITERATE", f"{act} GROW")]
        w.run(lambda: call(w, container, "remove", 5), loop(lambda container=container: container))
        assert ("order", "remove SHRINK", "each ITERATE") in w.pairs()
    w.run(lambda: call(w, line, "sort"), loop(lambda: line))
    assert w.pairs() == {("order", "sort RESHAPE", "each ITERATE")}

    def overwrite():
        w.item_write(2, table, "a", ops["set"])

    w.run(loop(lambda: table), overwrite)
    w.clean()
    w.run(loop(lambda: table), loop(lambda: table))
    w.clean()


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


def case_list_and_deque_hand_over_by_identity(w):
    part, use, ops = w.site("part", "n", op="attr_write"), w.site("use", "n"), kit(w)

    def made():
        thing = Thing()
        w.attr_write(thing, part).n = 1
        return thing

    def check(container, put, get, *, fine=True):
        def producer():
            put(container)

        def consumer():
            w.attr_read(get(container), use).n

        w.run(producer, consumer)
        assert ("order", "part WRITE", "use READ") not in w.pairs() if fine else w.pairs()

    def steps(container):
        for value in w.iterate(container, ops["each"]):
            return value
        return None

    check([], lambda c: call(w, c, "append", made()), lambda c: call(w, c, "pop"))
    check([], lambda c: call(w, c, "append", made()), lambda c: call(w, c, "pop", 0))
    check([], lambda c: call(w, c, "insert", 0, made()), lambda c: w.item_read(c, 0, ops["get"]))
    check([], lambda c: call(w, c, "extend", [made()]), steps)
    check([], lambda c: call(w, c, "extend", (made() for _ in range(2))), lambda c: call(w, c, "pop"))
    check(deque(), lambda c: call(w, c, "append", made()), lambda c: call(w, c, "popleft"))
    check(deque(), lambda c: call(w, c, "appendleft", made()), lambda c: call(w, c, "pop"))
    check([Thing()], lambda c: call(w, c, "append", made()), lambda c: c[-1], fine=False)


def case_same_list_appended_again(w):
    """A buffer that is put into a queue, changed and put again: the first get comes after the first put only."""
    ops, buffer, ring = kit(w), [0], deque()

    def producer():
        for number in range(2):
            w.item_write(number, buffer, 0, ops["set"])
            call(w, ring, "append", buffer)

    def consumer(*names):
        def body():
            for name in names:
                taken = call(w, ring, name)
            w.item_read(taken, 0, ops["get"])
            ring.clear()
        return body

    w.run(producer, consumer("popleft"))
    assert w.pairs() == {("order", "set WRITE", "get READ")}
    for names in (("popleft", "popleft"), ("pop",), ("popleft", "pop")):
        w.run(producer, consumer(*names))
        w.clean()
    w.run(producer, lambda: (call(w, ring, "pop"), ring.clear()))
    ring.append(buffer)
    w.run(producer, consumer("pop"))
    w.clean()


def case_sets(w):
    ops, items, part, use = kit(w), set(), w.site("part", "n", op="attr_write"), w.site("use", "n")
    thing = Thing()

    def add():
        w.attr_write(thing, part).n = 1
        call(w, items, "add", thing)

    def look():
        if w.contains(thing, items, ops["in"]):
            w.attr_read(thing, use).n

    def pop():
        w.attr_read(call(w, items, "pop"), use).n

    w.run(add, look)
    w.clean()
    w.run(lambda: call(w, items, "discard", thing), add, pop)
    w.clean()


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
