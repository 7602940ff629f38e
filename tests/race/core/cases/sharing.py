"""Cases of what several threads use, in order or not, where the handler wants to hear of it."""

# ruff: noqa: B018
# What a program does, a case does.
from __future__ import annotations

from gilscope.toolkit.race.terms import Flag
from tests.race.core.cases.world import Thing, call, kit


def shared(w):
    """Return part and key of what was told as shared; no conflict was told beside."""
    told = w.told()
    assert {sort for sort, *_ in told} <= {"shared"}, told
    return {(part, key) for _, part, key, *_ in told}


def case_nothing_is_told_unasked(w):
    things, sites = [], kit(w)

    def append():
        call(w, things, "append", len(things))
        w.size(things, sites["len"])

    w.run(append, append)
    w.clean()


def case_locked_counter(w):
    before = w.core.counts()
    w.core.report_shared()
    update, thing, lock = w.site("update", "n", Flag.AUGMENTED, op="attr_update"), Thing(), w.lock()

    def add():
        with lock:
            w.attr_update(thing, update).n += 1

    w.run(add, add)
    assert shared(w) == {("attr", "n")}
    assert w.core.counts() == before     # it is no conflict


def case_what_one_writes_and_another_reads_later(w):
    w.core.report_shared()
    read, write, lock = w.site("read", "n"), w.site("write", "n", op="attr_write"), w.lock()

    def both(*names):
        thing = Thing()

        def load():
            with lock:
                w.attr_read(thing, read).n

        def store():
            with lock:
                w.attr_write(thing, write).n = 1

        w.run(*({"load": load, "store": store}[name] for name in names))
        return shared(w)

    assert both("store", "load") == both("load", "store") == both("store", "store") == {("attr", "n")}
    assert both("load", "load") == set()


def case_steps_that_never_conflict(w):
    w.core.report_shared()
    sites, lock = kit(w), w.lock()

    def both(*names):
        things = []

        def act():
            with lock:
                call(w, things, "append", 1)

        def look():
            with lock:
                w.size(things, sites["len"])

        w.run(*({"act": act, "look": look}[name] for name in names))
        return shared(w)

    assert both("act", "act") == both("act", "look") == {("structure", None)}
    assert both("look", "look") == both("look", "act") == set()     # a look leaves nothing behind


def case_what_each_thread_makes_is_its_own(w):
    w.core.report_shared()
    write = w.site("write", "n", op="attr_write")

    def make():
        w.attr_write(Thing(), write).n = 1

    w.run(make, make)
    assert shared(w) == set()


def case_count_is_shared_and_no_conflict(w):
    import itertools

    w.core.report_shared()
    numbers, sites = itertools.count(), kit(w)

    def take():
        next(w.advance(numbers, sites["next"]))

    w.run(take, take)
    assert shared(w) == {("iterator", None)}
