"""Cases of subclasses that override methods of a builtin container: the core calls none of them by itself."""

from __future__ import annotations

import array
from collections import defaultdict, deque

from tests.race.core.cases.world import call, kit


def overriding(base, calls):
    """Return a subclass of `base` whose methods that a core could ask are counted in `calls`, and fail."""
    def own(name):
        def method(self, *_):
            calls.append(f"{base.__name__}.{name}")
            raise RuntimeError(name)
        return method

    names = ["__len__", "__iter__", "__contains__", "__eq__", "__bool__", "__length_hint__", "__reversed__"]
    names += ["__getitem__", "__index__"] if base in {set, frozenset} else []
    return type(f"Own{base.__name__}", (base,), {
        **{name: own(name) for name in names}, "__hash__": None,
        **{name: property(own(name)) for name in ("shape", "default_factory", "__class__")}})


def case_length_of_a_sequence_is_not_asked_of_the_program(w):
    ops, calls = kit(w), []
    for base, append in ((list, list.append), (deque, deque.append), (bytearray, bytearray.append),
                         (array.array, array.array.append)):
        own = overriding(base, calls)("i") if base is array.array else overriding(base, calls)()

        last = 3 if base is deque else -1       # CPython itself asks a deque for its length to count from the end
        for number in range(4):
            append(own, number)

        def work(own=own, base=base, last=last):
            assert w.item_read(own, last, ops["get"]) in {3, 7}, base
            w.item_write(7, own, last, ops["set"])
            assert w.item_read(own, last, ops["get"]) == 7, base
            if base is not deque:
                assert base.__len__(w.item_read(own, slice(1, -1), ops["get"])) == 2, base
            call(w, own, "append", 5)
            assert call(w, own, "pop") == 5, base

        w.run(work, work)
        assert calls == [], base
        assert ("order", "set WRITE", "get READ") in w.pairs(), base


def case_values_of_a_sequence_are_not_asked_of_the_program(w):
    calls = []
    for base in (list, deque):
        own = overriding(base, calls)()

        def work(own=own, base=base):
            for _ in range(300):
                call(w, own, "append", object())
                base.pop(own)                # unseen, so that the core looks what is still there
            call(w, own, "append", 5)
            assert call(w, own, "pop") == 5

        w.run(work, work)
        assert calls == [], base
        w.told()


def case_attributes_of_a_container_are_not_asked_of_the_program(w):
    ops, calls = kit(w), []
    table = overriding(defaultdict, calls)(int)
    assert w.item_read(table, "k", ops["get"]) == 0
    assert calls == []
    try:
        import numpy
    except ImportError:
        return "numpy is not installed"
    numbers = numpy.zeros((2, 3)).view(overriding(numpy.ndarray, calls))
    calls.clear()       # numpy's own
    class Index(numpy.int64):
        def __index__(self):
            calls.append("Index.__index__")
            return 1

    plain = numpy.zeros(3)

    def work():
        w.item_write(1.0, numbers, (0, 1), ops["set"])
        w.item_write(1.0, plain, Index(1), ops["set"])

    plain[Index(1)] = 1.0
    natively = calls.copy()
    calls.clear()
    w.run(work, work)
    assert calls == 2 * natively
    w.told()
    return None


def case_an_argument_is_not_asked_for_its_class(w):
    calls = []

    class Pairs:
        @property
        def __class__(self):
            calls.append("__class__")
            return dict

        def __iter__(self):
            return iter([("k", 1)])

    def work():
        table = {}
        call(w, table, "update", Pairs())
        assert table == {"k": 1}

    w.run(work, work)
    assert calls == []
    w.clean()
