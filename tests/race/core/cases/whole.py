"""Cases of reads of a whole container, and of functions that rewrite their argument."""

from __future__ import annotations

import array
import heapq
import random
from collections import deque

from tests.race.core.cases.world import Thing


def looks(w, container):
    """Return bodies that read all items of a list or a dict's values."""
    each = w.site("each", op="iterate")

    def loop():
        for _ in w.iterate(container.values() if isinstance(container, dict) else container, each):
            pass

    def snapshot(name, builtin):
        site = w.site(name, name, op="size")
        return lambda: builtin(w.size(container, site))

    def copy():
        w.method(container, w.sites_of["copy"]).copy()

    w.sites_of = {"copy": w.site("copy", "copy", op="method")}
    named = ("print", "str", "dict") if isinstance(container, dict) else ("list", "sorted", "sum", "tuple", "print")
    return {"each": loop, "copy": copy, **{name: snapshot(name, str) for name in named}}


def case_forgotten_join(w):
    put = w.site("put", op="item_write")
    for results in ([0, 0], deque([0, 0]), {0: 0, 1: 0}):
        def store(results=results):
            w.item_write(5, results, 1, put)

        for name, look in looks(w, results).items():
            w.run(store, look)
            assert w.told() == [("order", "item", 1, "put WRITE", f"{name} READ")], name
            w.run(look, store)
            assert w.told() == [("order", "item", 1, f"{name} READ", "put WRITE")], name


def case_whole_reads_and_those_that_only_ask(w):
    put, results = w.site("put", op="item_write"), {"a": 1}
    each = w.site("each", op="iterate")
    size, keys = w.site("len", "len", op="size"), w.site("list", "list", op="size")

    def store():
        w.item_write(5, results, "a", put)

    def ask():
        len(w.size(results, size))
        list(w.size(results, keys))
        for _ in w.iterate(results, each):
            pass

    w.run(store, ask)
    w.clean()
    w.run(ask, store)
    w.clean()


def case_whole_reads_come_after_insertions(w):
    put, grow, results, line = w.site("put", op="item_write"), w.site("grow", "append", op="method"), {}, []
    part, use = w.site("part", "n", op="attr_write"), w.site("use", "n")
    each, values = w.site("each", op="iterate"), w.site("list", "list", op="size")

    def made():
        thing = Thing()
        w.attr_write(thing, part).n = 1
        return thing

    def insert():
        w.item_write(made(), results, "a", put)
        w.method(line, grow).append(made())

    def look():
        for thing in (*w.size(results.values(), values), *w.size(line, values)):
            assert w.attr_read(thing, use).n == 1

    def loop():
        for thing in (*w.iterate(results.values(), each), *w.iterate(line, each)):
            assert w.attr_read(thing, use).n == 1

    for body in (look, loop):
        results.clear()
        line.clear()
        w.run(insert, body)
        assert not [pair for pair in w.pairs() if "part WRITE" in pair or "put WRITE" in pair]


def case_slices_of_lists_are_read_as_ranges(w):
    put, get, line = w.site("put", op="item_write"), w.site("get", op="item_read"), [0] * 10

    def store():
        w.item_write(1, line, 7, put)

    def part(start, stop):
        return lambda: w.item_read(line, slice(start, stop), get)

    w.run(part(0, 5), store, part(0, 7))
    w.clean()
    w.run(part(5, None), store)
    assert w.told() == [("order", "item", 7, "get READ", "put WRITE")]
    w.run(store, part(5, None))
    assert w.told() == [("order", "item", 7, "put WRITE", "get READ")]
    w.run(store, part(8, None))
    w.clean()
    w.run(store, part(None, None))
    assert w.told() == [("order", "item", 7, "put WRITE", "get READ")]


def case_loop_over_an_array(w):
    put, each, numbers = w.site("put", op="item_write"), w.site("each", op="iterate"), array.array("i", [1, 2])

    def store():
        w.item_write(1, numbers, 1, put)

    def loop():
        assert sum(w.iterate(numbers, each)) in {2, 3}

    w.run(store, loop)
    assert {pair[1:] for pair in w.pairs()} == {("put WRITE", "each READ")}
    w.run(loop, store)
    assert {pair[1:] for pair in w.pairs()} == {("each READ", "put WRITE")}


def case_heap(w):
    push, pop = w.site("push", "heappush", op="size"), w.site("pop", "heappop", op="size")
    part, use = w.site("part", "n", op="attr_write"), w.site("use", "n")
    heap, lock, other = [], w.lock(), w.lock()

    def add(held):
        def body():
            thing = Thing()
            w.attr_write(thing, part).n = 1
            with held:
                heapq.heappush(w.size(heap, push), (1, id(thing), thing))
        return body

    def take(held):
        def body():
            with held:
                thing = heapq.heappop(w.size(heap, pop))[2]
            assert w.attr_read(thing, use).n == 1
        return body

    w.run(add(lock), take(lock))
    w.clean()
    w.run(add(lock), take(other))
    assert w.told() == [("order", "structure", None, "push RESHAPE", "pop RESHAPE")]


def case_shuffle_against_a_loop(w):
    mix, each, line = w.site("mix", "shuffle", op="size"), w.site("each", op="iterate"), [1, 2]

    def shuffle():
        random.shuffle(w.size(line, mix))

    def loop():
        for _ in w.iterate(line, each):
            pass

    w.run(shuffle, loop)
    assert ("order", "mix RESHAPE", "each ITERATE") in w.pairs()
