"""Cases of the atomicity layer: a read, the write that depends on it, and what may come between."""

# ruff: noqa: B018
# What a program does, a case does.
from __future__ import annotations

import queue

from gilscope.toolkit.race.terms import Flag
from tests.race.core.cases.world import Thing

ADD, CHECK = Flag.SPAN_READ, Flag.SPAN_READ | Flag.TEST


def counter(w, flags=Flag.VALUE):
    """Return the sites of `old = thing.n` and `thing.n = old + 1`."""
    read = w.site("read", "n", ADD)
    return read, w.site("write", "n", flags, partners=("read",), op="attr_write")


def case_each_access_locked_the_whole_not(w):
    (read, write), thing, lock = counter(w), Thing(), w.lock()

    def add():
        with lock:
            old = w.attr_read(thing, read).n
        with lock:
            w.attr_write(thing, write).n = old + 1

    w.run(add, add)
    assert w.pairs() == {("span", "read>write WRITE", "write WRITE"), ("span", "write WRITE", "read>write WRITE")}


def case_the_whole_locked(w):
    (read, write), thing, lock = counter(w), Thing(), w.lock()

    def add():
        with lock:
            old = w.attr_read(thing, read).n
            w.attr_write(thing, write).n = old + 1

    w.run(add, add)
    w.clean()


def case_outer_lock_around_inner_locks(w):
    (read, write), thing, outer, lock = counter(w), Thing(), w.lock(), w.lock()

    def add():
        with outer:
            with lock:
                old = w.attr_read(thing, read).n
            with lock:
                w.attr_write(thing, write).n = old + 1

    w.run(add, add)
    w.clean()

    def store():
        with lock:
            w.attr_write(thing, write).n = 0

    w.run(add, store)
    assert w.pairs() == {("span", "read>write WRITE", "write WRITE")}


def case_writer_under_the_same_outer_lock_among_four(w):
    """A lock that is not among the innermost three protects, too."""
    (read, write), thing = counter(w), Thing()
    outer, inner = w.lock(), [w.lock() for _ in range(3)]

    def add():
        with outer, inner[0], inner[1], inner[2]:
            old = w.attr_read(thing, read).n
            w.attr_write(thing, write).n = old + 1

    def other():
        with outer:
            old = w.attr_read(thing, read).n
            w.attr_write(thing, write).n = old + 1

    w.run(add, other)
    w.clean()
    w.run(other, add)
    w.clean()


def case_order_of_the_pair_is_told_only_once(w):
    (read, write), thing = counter(w), Thing()

    def add():
        old = w.attr_read(thing, read).n
        w.attr_write(thing, write).n = old + 1

    w.run(add, add)
    assert w.pairs() == {("order", "write WRITE", "read READ"), ("order", "write WRITE", "write WRITE")}


def case_write_that_does_not_depend_on_the_read(w):
    read, write = w.site("read", "n", ADD), w.site("write", "n", op="attr_write")
    thing, lock = Thing(), w.lock()

    def work():
        with lock:
            w.attr_read(thing, read).n
        with lock:
            w.attr_write(thing, write).n = 1

    w.run(work, work)
    w.clean()


def case_another_attribute_is_another_span(w):
    (read, write), one, other, lock = counter(w), Thing(), Thing(), w.lock()

    def work():
        with lock:
            w.attr_read(one, read).n
        with lock:
            w.attr_write(other, write).n = 1

    w.run(work, work)
    w.clean()


def case_another_activation_is_another_span(w):
    (read, write), thing, lock = counter(w), Thing(), w.lock()
    entered = w.site("enter", op="enter")

    def either(what):
        w.enter(entered)
        with lock:
            if what == "load":
                w.attr_read(thing, read).n
            else:
                w.attr_write(thing, write).n = 1

    def work():
        either("load")
        either("store")

    w.run(work, work)
    w.clean()


def case_order_other_than_by_locks_splits_no_span(w):
    (read, write), thing, lock = counter(w), Thing(), w.lock()
    clocks = []

    def add():
        with lock:
            old = w.attr_read(thing, read).n
        with lock:
            w.attr_write(thing, write).n = old + 1

    def first():
        add()
        clocks.append(w.core.snapshot())

    def second():
        w.core.join(clocks[0])
        add()

    w.run(first, second)
    w.clean()


def case_write_between_in_fact(w):
    (read, write), thing, lock = counter(w), Thing(), w.lock()
    other = w.site("other", "n", op="attr_write")

    def add():
        with lock:
            old = w.attr_read(thing, read).n
        yield
        with lock:
            w.attr_write(thing, write).n = old + 1
        yield

    def store():
        with lock:
            w.attr_write(thing, other).n = 10
        yield

    w.run(add, store, order="aba")
    assert w.pairs() == {("span", "other WRITE", "read>write WRITE")}
    assert thing.n == 1


def case_check_then_act_on_a_key(w):
    check = w.site("check", "", CHECK, op="contains")
    act = w.site("act", "", Flag.GUARD, partners=("check",), op="item_write")
    table, lock = {}, w.lock()

    def insert():
        with lock:
            there = w.contains("k", table, check)
        yield
        if not there:
            with lock:
                w.item_write(1, table, "k", act)
        yield

    w.run(insert, insert, order="abab")
    assert ("span", "act WRITE", "check>act WRITE") in w.pairs()

    def whole():
        with lock:
            if not w.contains("k", table, check):
                w.item_write(1, table, "k", act)

    table.clear()
    w.run(whole, whole)
    w.clean()


def case_check_by_get(w):
    check = w.site("check", "get", CHECK, op="method")
    act = w.site("act", "", Flag.GUARD, partners=("check",), op="item_write")
    table, lock = {}, w.lock()

    def insert():
        with lock:
            there = w.method(table, check).get("k")
        yield
        if there is None:
            with lock:
                w.item_write(1, table, "k", act)
        yield

    w.run(insert, insert, order="abab")
    assert ("span", "act WRITE", "check>act WRITE") in w.pairs()


def case_insertion_never_hides_its_own_check(w):
    """Of many dicts, whose locations share the buckets of a small table at random."""
    check = w.site("check", "", CHECK, op="contains")
    act = w.site("act", "", Flag.GUARD, partners=("check",), op="item_write")
    tables = [{} for _ in range(3000)]

    def insert():
        for table in tables:
            if not w.contains("k", table, check):
                w.item_write(1, table, "k", act)

    w.run(insert, insert)
    assert len(w.told()) == len(tables)


def case_test_outside_of_the_lock_of_its_act(w):
    """The lock orders the second test after the first act, but only by chance: it does not guard the test."""
    check = w.site("check", "", CHECK, op="contains")
    act = w.site("act", "", Flag.GUARD, partners=("check",), op="item_write")
    table, lock = {}, w.lock()
    clocks = []

    def insert():
        if not w.contains("k", table, check):
            with lock:
                w.item_write(1, table, "k", act)

    def first():
        insert()
        clocks.append(w.core.snapshot())

    def second():
        with lock:
            pass
        insert()

    w.run(first, second)
    assert w.pairs() == {("span", "check>act WRITE", "check READ")}

    def ordered():
        w.core.join(clocks[-1])
        insert()

    table.clear()
    w.run(first, ordered)
    w.clean()


def case_failed_check(w):
    """The second thread finds the key: by luck, as nothing but the insertion itself orders the two."""
    check = w.site("check", "", CHECK, op="contains")
    act = w.site("act", "", Flag.GUARD, partners=("check",), op="item_write")
    table, lock = {}, w.lock()

    def insert():
        if not w.contains("k", table, check):
            w.item_write(1, table, "k", act)

    w.run(insert, insert)
    assert w.told() == [("span", "item", "k", "check>act WRITE", "check READ")]
    table.clear()

    def locked():
        with lock:
            insert()

    w.run(locked, locked)
    w.clean()
    table.clear()
    clocks = []

    def first():
        insert()
        clocks.append(w.core.snapshot())

    def second():
        w.core.join(clocks[0])
        insert()

    w.run(first, second)
    w.clean()


def case_failed_check_of_an_attribute(w):
    check = w.site("check", "n", CHECK)
    act = w.site("act", "n", Flag.GUARD, partners=("check",), op="attr_write")
    thing, lock = Thing(), w.lock()

    def once():
        with lock:
            free = not w.attr_read(thing, check).n
        if free:
            with lock:
                w.attr_write(thing, act).n = 1

    w.run(once, once)
    assert w.told() == [("span", "attr", "n", "check>act WRITE", "check READ")]
    thing.n = 0

    def unlocked():
        if not w.attr_read(thing, check).n:
            w.attr_write(thing, act).n = 1

    w.run(unlocked, unlocked)
    assert w.told() == [("order", "attr", "n", "act WRITE", "check READ")]     # that says it all


def case_consumer_of_what_a_check_inserted(w):
    check = w.site("check", "", CHECK, op="contains")
    act = w.site("act", "", Flag.GUARD, partners=("check",), op="item_write")
    there = w.site("there", "", CHECK, op="contains")
    remove = w.site("remove", "", Flag.GUARD | Flag.DELETE, partners=("there",), op="item_delete")
    table = {}

    def produce():
        if not w.contains("k", table, check):
            w.item_write(1, table, "k", act)

    def consume():
        if w.contains("k", table, there):
            w.item_delete(table, "k", remove)

    w.run(produce, consume)
    w.clean()
    assert table == {}


def case_setdefault_is_no_span_but_spoils_one(w):
    check = w.site("check", "", CHECK, op="contains")
    act = w.site("act", "", Flag.GUARD, partners=("check",), op="item_write")
    default, table = w.site("default", "setdefault", op="method"), {}

    def atomically():
        w.method(table, default).setdefault("k", 1)

    def insert():
        there = w.contains("k", table, check)
        yield
        if not there:
            w.item_write(1, table, "k", act)
        yield

    w.run(atomically, atomically)
    w.clean()
    table.clear()

    def once():
        atomically()
        yield

    w.run(insert, once, order="aba")
    assert w.pairs() == {("span", "default ATOMIC", "check>act WRITE")}


def case_check_of_a_size(w):
    check, room_check = w.site("check", "", CHECK, op="size"), w.site("room", "", CHECK, op="size")
    grow = w.site("grow", "append", Flag.GUARD, partners=("room",), op="method")
    shrink = w.site("shrink", "pop", Flag.GUARD, partners=("check",), op="method")
    line, lock = [1, 2, 3], w.lock()

    def add():
        with lock:
            room = len(w.size(line, room_check)) < 10
        if room:
            with lock:
                w.method(line, grow).append(1)

    def take():
        with lock:
            some = bool(w.size(line, check))
        if some:
            with lock:
                w.method(line, shrink).pop()

    def take_whole():
        with lock:
            if w.size(line, check):
                w.method(line, shrink).pop()

    w.run(take, take)
    assert ("span", "check>shrink SHRINK", "shrink SHRINK") in w.pairs()
    w.run(add, add)
    assert ("span", "room>grow GROW", "grow GROW") in w.pairs()
    w.run(take, add)
    w.clean()
    w.run(take_whole, take_whole)
    w.clean()


def case_check_of_a_queue(w):
    empty = w.site("empty", "empty", CHECK, op="method")
    get = w.site("get", "get_nowait", Flag.GUARD, partners=("empty",), op="method")
    line = queue.Queue()
    for number in range(4):
        line.put(number)

    def quietly(act):
        w.core.mute()      # the queue's own lock is no synchronisation of the program
        result = act()
        w.core.restore(0)
        return result

    def take():
        if not quietly(w.method(line, empty).empty):
            quietly(w.method(line, get).get_nowait)

    w.run(take, take)
    assert ("span", "empty>get SHRINK", "get SHRINK") in w.pairs()


def case_check_of_a_queue_that_is_shut_down(w):
    full, line = w.site("full", "full", CHECK, op="method"), queue.Queue()
    put = w.site("put", "put", Flag.GUARD, partners=("full",), op="method")
    shutdown = w.site("shutdown", "shutdown", op="method")
    if not hasattr(line, "shutdown"):     # before 3.13
        return
    w.run(lambda: w.method(line, full).full() or w.method(line, put).put(0), lambda: w.method(line, shutdown) and None)
    assert w.pairs() == {("span", "full>put GROW", "shutdown GROW")}


def case_copied_and_then_cleared(w):
    """What is added after the copy is in neither; what is added after a mere test is not touched by the act."""
    copy = w.site("copy", "list", ADD, op="size")
    tested = w.site("tested", "len", CHECK, op="size")
    clear = w.site("clear", "clear", Flag.VALUE, partners=("copy",), op="method")
    shrink = w.site("shrink", "pop", Flag.GUARD, partners=("tested",), op="method")
    grow = w.site("grow", "append", op="method")
    lock, line = w.lock(), [1, 2, 3]

    def flush():
        with lock:
            list(w.size(line, copy))
        with lock:
            w.method(line, clear).clear()

    def flush_at_once():
        with lock:
            list(w.size(line, copy))
            w.method(line, clear).clear()

    def take():
        with lock:
            some = len(w.size(line, tested))
        if some:
            with lock:
                w.method(line, shrink).pop()

    def add():
        with lock:
            w.method(line, grow).append(1)

    w.run(flush, add)
    assert w.pairs() == {("span", "copy>clear SHRINK", "grow GROW")}
    w.run(add, flush)
    assert w.pairs() == {("span", "grow GROW", "copy>clear SHRINK")}
    w.run(add, take)
    w.run(add, flush_at_once)
    w.clean()


def case_item_of_a_list(w):
    read = w.site("read", "", ADD, op="item_read")
    write = w.site("write", "", Flag.VALUE, partners=("read",), op="item_write")
    line, lock = [0, 0], w.lock()

    def add(index):
        def body():
            with lock:
                old = w.item_read(line, index, read)
            with lock:
                w.item_write(old + 1, line, index, write)
        return body

    w.run(add(0), add(-2))
    assert ("span", "read>write WRITE", "write WRITE") in w.pairs()
    w.run(add(0), add(1))
    w.clean()


def case_proxy_whose_value_takes_a_lock(w):
    proxy, thing, lock = w.site("proxy", "n", Flag.AUGMENTED, op="attr_proxy"), Thing(), w.lock()

    def amount():
        with lock:
            return 1

    def add():
        w.attr_proxy(thing, proxy).n += amount()

    w.run(add, add)
    found = w.pairs()
    assert ("span", "proxy>proxy WRITE", "proxy WRITE") in found or ("order", "proxy WRITE", "proxy WRITE") in found


def case_global_augmented_with_a_call(w):
    read = w.site("read", "x", Flag.SPAN_READ, op="global_read")
    write = w.site("write", "x", Flag.AUGMENTED, partners=("read",), op="global_write")
    lock = w.lock()

    def add():
        with lock:
            w.global_read(0, read)
        with lock:
            w.global_write(1, write)

    w.run(add, add)
    assert ("span", "read>write WRITE", "write WRITE") in w.pairs()


def case_own_write_uses_a_read_up(w):
    """`while self.writing: wait()`, `self.writing = True`, later `self.writing = False`: no test decides the last."""
    check = w.site("check", "n", CHECK)
    act = w.site("act", "n", Flag.GUARD, partners=("check",), op="attr_write")
    reset = w.site("reset", "n", Flag.GUARD, partners=("check",), op="attr_write")
    thing, lock = Thing(), w.lock()

    def work():
        with lock:
            w.attr_read(thing, check).n
            w.attr_write(thing, act).n = 1
        with lock:
            w.attr_write(thing, reset).n = 0

    w.run(work, work)
    w.clean()


def case_writes_to_others_do_not_use_a_read_up(w):
    read, plain = w.site("read", "n", ADD), w.site("plain", "n", op="attr_write")
    write = w.site("write", "n", Flag.VALUE, partners=("read",), op="attr_write")
    thing, others, lock = Thing(), [Thing() for _ in range(5000)], w.lock()

    def work():
        with lock:
            number = w.attr_read(thing, read).n
        for other in others:
            w.attr_write(other, plain).n = 1
        with lock:
            w.attr_write(thing, write).n = number + 1

    w.run(work, work)
    assert ("span", "read>write WRITE", "write WRITE") in w.pairs()
