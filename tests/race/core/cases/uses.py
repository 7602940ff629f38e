"""Cases of what a test found: its use against a removal, objects that were just made, counters that a loop polls."""

# ruff: noqa: B018
# What a program does, a case does.
from __future__ import annotations

from collections import OrderedDict, deque

from gilscope.toolkit.race.terms import Flag
from tests.race.core.cases.world import Thing, call


def case_the_use_of_a_key_against_its_removal(w):
    use, plain = w.site("use", op="item_read", flags=Flag.RELIES), w.site("plain", op="item_read")
    test, asks = w.site("test", op="contains", flags=Flag.RELIES), w.site("asks", op="contains")
    table = {}

    def load(site, key="k"):
        def body():
            w.item_read(table, key, site)
        return body

    def act(name, *args):
        def body():
            call(w, table, name, *args)
        return body

    def has(site):
        def body():
            w.contains("k", table, site)
        return body

    def both(first, second):
        table.update(k=1, other=2)
        w.run(first, second)
        return w.told()

    for kind in (dict, OrderedDict):
        table = kind()
        assert both(load(use), act("pop", "k", None)) == [("order", "item", "k", "use READ", "pop ATOMIC")]
        assert both(act("pop", "other"), load(use, "k")) == []
        assert both(load(plain), act("pop", "k", None)) == []
        assert both(load(use), act("setdefault", "k", 1)) == []
        w.methods.setdefault("clear", w.site("clear", "clear", op="method"))    # before the test looks for one
        assert both(has(test), act("clear")) == [("order", "structure", None, "test ITERATE", "clear SHRINK")]
        assert both(has(asks), act("clear")) == []
        table = kind(k=1)
        w.run(act("pop", "new", None), load(use))
        w.clean()
        w.run(act("pop", "k", None), has(test))
        assert w.told() == [("order", "item", "k", "pop ATOMIC", "test MISS")]
        w.run(act("pop", "k", None), has(asks))
        w.clean()


def case_the_use_of_an_index_against_a_removal(w):
    use, plain = w.site("use", op="item_read", flags=Flag.RELIES), w.site("plain", op="item_read")
    test, asks = w.site("test", "len", Flag.RELIES, op="size"), w.site("asks", "len", op="size")
    for kind in (list, deque):
        items = kind([1, 2, 3])

        def load(site, items=items):
            return lambda: w.item_read(items, -1, site)

        def act(name, *args, items=items):
            return lambda: call(w, items, name, *args)

        w.run(load(use), act("pop"))
        assert w.told() == [("order", "structure", None, "use ITERATE", "pop SHRINK")]
        w.run(act("clear"), lambda items=items: items.append(1), load(use))
        assert w.told() == [("order", "structure", None, "clear SHRINK", "use ITERATE")]
        w.run(act("clear"), lambda items=items: len(w.size(items, test)))
        assert w.told() == [("order", "structure", None, "clear SHRINK", "test ITERATE")]
        items.append(1)
        w.run(act("clear"), lambda items=items: len(w.size(items, asks)))
        w.run(lambda items=items: items.append(1), load(use), act("append", 4))
        w.run(load(plain), act("remove", 1))
        w.clean()


def case_a_load_of_what_was_just_made_comes_after_its_store(w):
    part, use = w.site("part", "n", op="attr_write"), w.site("use", "n")
    for name, flags, ordered in (("new", Flag.NEW, True), ("old", Flag.NONE, False)):
        store, load = w.site(f"{name} store", "n", flags, op="attr_write"), w.site(f"{name} load", "n")
        updating = w.site(f"{name} to update", "n", Flag.SPAN_READ)
        for site, seen in ((load, ordered), (updating, False)):
            holder = Thing()

            def first(holder=holder, load=load):     # so that the holder is shared already
                w.attr_read(holder, load).n

            def publish(holder=holder, store=store):
                thing = Thing()
                w.attr_write(thing, part).n = 5
                w.attr_write(holder, store).n = thing

            def look(holder=holder, site=site):
                thing = w.attr_read(holder, site).n
                w.attr_read(thing, use).n

            w.run(first, publish, look)
            pairs = {pair[1:] for pair in w.pairs()}
            assert (("part WRITE", "use READ") in pairs) is not seen, (name, pairs)


def case_a_change_after_the_store_is_not_ordered(w):
    part, use = w.site("part", "n", op="attr_write"), w.site("use", "n")
    store, load = w.site("store", "n", Flag.NEW, op="attr_write"), w.site("load", "n")
    holder = Thing()

    def publish():
        thing = Thing()
        w.attr_write(holder, store).n = thing
        w.attr_write(thing, part).n = 5

    def look():
        w.attr_read(w.attr_read(holder, load).n, use).n

    w.run(publish, look)
    assert ("order", "part WRITE", "use READ") in w.pairs()


def case_a_polled_counter_orders(w):
    part, use = w.site("part", "n", op="attr_write"), w.site("use", "n")
    for name, flags, ordered in (("polled", Flag.COUNTED, True), ("plain", Flag.NONE, False)):
        count = w.site(f"{name} count", "n", Flag.AUGMENTED | flags, op="attr_update")
        poll = w.site(f"{name} poll", "n", Flag.POLL)
        counter, data = Thing(), Thing()

        def work(counter=counter, data=data, count=count):
            w.attr_write(data, part).n = 5
            w.attr_update(counter, count).n += 1

        def wait(counter=counter, data=data, poll=poll):
            w.attr_read(counter, poll).n
            w.attr_read(data, use).n

        w.run(work, wait)
        assert (("order", "part WRITE", "use READ") in w.pairs()) is not ordered
