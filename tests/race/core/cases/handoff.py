"""Cases of the hand-off: whoever gets an item comes after who put it there."""

# ruff: noqa: B018, C901, PT017
# What a program does, a case does, and pytest is not there everywhere.
from __future__ import annotations

from collections import defaultdict, deque

from gilscope.toolkit.race.effects import is_atomic
from gilscope.toolkit.race.terms import Flag
from tests.race.core.cases.world import Thing, call, kit


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


def case_insertion_hands_nothing_to_a_load_that_expects_it(w):
    ops, table = kit(w), {}
    sure, asks = w.site("sure", op="item_read", flags=Flag.EXPECTED), w.site("asks", op="contains")

    def insert():
        w.item_write(1, table, "k", ops["set"])

    w.run(insert, lambda: w.item_read(table, "k", sure))
    assert w.pairs() == {("order", "set WRITE", "sure READ")}
    table.clear()
    w.run(insert, lambda: w.contains("k", table, asks) and w.item_read(table, "k", sure))
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

    both_make = [] if is_atomic("defaultdict.__missing__") else [("span", "get>get WRITE", "get READ")]
    w.run(touch, touch)
    assert w.pairs() == {*both_make}
    w.run(use_it, use_it)
    assert w.pairs() == {*both_make}
    assert len(made) == 1
    try:
        w.item_read(defaultdict(None), "x", ops["get"])
    except KeyError as error:
        assert error.args == ("x",)


def case_defaultdict_keeps_what_it_keeps_without_the_checker(w):
    def racing():
        def factory():
            table["k"] = "stored meanwhile"
            return "made"

        table = defaultdict(factory)
        return table

    read = w.item_read(racing(), "k", kit(w)["get"])
    assert read == racing()["k"]


def case_update_of_a_missing_key_of_a_defaultdict(w):
    counts, site = defaultdict(int), w.site("add", "", Flag.AUGMENTED, op="item_proxy")

    def add():
        w.item_proxy(counts, site)["k"] += 1

    w.run(add, add)
    assert w.pairs() >= {("order", "add WRITE", "add WRITE"), ("order", "add WRITE", "add READ")}


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
