"""Cases of sameness: what goes through a core behaves as without it; wrap and patch; finalizers and re-entry."""

# ruff: noqa: BLE001, E501, PLR0133, RUF060
# What a program does, a case does, and pytest is not there everywhere.
from __future__ import annotations

import _thread
import gc
import inspect
import pickle
import signal
import threading
import time
import weakref

from gilscope.toolkit.race.terms import Flag
from tests.race.core.cases.world import Pipe, Thing


def failure(act):
    """Return what identifies an exception: type, text, context, notes."""
    try:
        act()
    except Exception as error:
        return type(error), str(error), error.args, error.__context__, error.__cause__
    raise AssertionError("nothing was raised")


def case_exceptions_are_the_native_ones(w):
    get, put, remove = w.site("get", op="item_read"), w.site("set", op="item_write"), w.site("del", op="item_delete")
    there = w.site("in", op="contains")
    line, table, text, frozen = [1], {}, "text", (1, 2)

    def native_set(container, key, value):
        container[key] = value

    def native_del(container, key):
        del container[key]

    def work():
        for container in (line, table, text, frozen, None, 5):
            for key in (7, "k", None, [], slice(0, 1)):
                for ours, native in (
                        (lambda c=container, k=key: w.item_read(c, k, get), lambda c=container, k=key: c[k]),
                        (lambda c=container, k=key: w.item_delete(c, k, remove),
                         lambda c=container, k=key: native_del(c, k))):
                    try:
                        native()
                    except Exception:
                        assert failure(ours) == failure(native), (container, key)
        assert failure(lambda: w.item_write(1, text, 0, put)) == failure(lambda: native_set(text, 0, 1))
        assert failure(lambda: w.item_write(1, line, 9, put)) == failure(lambda: native_set(line, 9, 1))
        assert failure(lambda: w.item_write(1, table, [], put)) == failure(lambda: native_set(table, [], 1))
        assert failure(lambda: w.contains(1, 5, there)) == failure(lambda: 1 in 5)
        assert failure(lambda: w.contains([], {}, there)) == failure(lambda: [] in {})

    w.run(work)


def case_method_calls_fail_as_natively(w):
    sites = {name: w.site(name, name, op="method") for name in
             ("append", "pop", "popitem", "setdefault", "get", "add", "remove", "update", "extend", "insert")}

    def both(container, name, *args, **kwargs):
        ours = failure(lambda: getattr(w.method(container, sites[name]), name)(*args, **kwargs))
        assert ours == failure(lambda: getattr(container, name)(*args, **kwargs)), name

    def work():
        both([], "append")
        both([], "append", 1, 2)
        both([], "pop")
        both([1], "pop", "x")
        both([], "extend", 5)
        both([], "insert", 1)
        both([], "remove", 1)
        both({}, "pop", "k")
        both({}, "pop")
        both({}, "popitem")
        both({}, "get")
        both({}, "get", [])
        both({}, "setdefault", [])
        both({}, "update", 5)
        both(set(), "add")
        both(set(), "remove", 1)
        both(set(), "pop")

    w.run(work)


def case_results_are_the_native_ones(w):
    sites = {}

    def ours(container, name, *args, **kwargs):
        site = sites.setdefault(name, w.site(name, name, op="method"))
        return getattr(w.method(container, site), name)(*args, **kwargs)

    def work():
        for name, make, args, kwargs in (
                ("get", lambda: {"a": 1}, ("a",), {}), ("get", dict, ("a", 5), {}), ("pop", lambda: {"a": 1}, ("a",), {}),
                ("pop", dict, ("a", 5), {}), ("setdefault", dict, ("a",), {}), ("setdefault", dict, ("a", 1), {}),
                ("update", dict, ([("a", 1)],), {"b": 2}), ("popitem", lambda: {"a": 1}, (), {}),
                ("copy", lambda: {"a": 1}, (), {}), ("keys", lambda: {"a": 1}, (), {}), ("clear", lambda: {"a": 1}, (), {}),
                ("append", list, (1,), {}), ("extend", list, ((n for n in (1, 2)),), {}), ("pop", lambda: [1, 2], (0,), {}),
                ("insert", lambda: [1], (0, 2), {}), ("sort", lambda: [2, 1], (), {"reverse": True}),
                ("index", lambda: [1, 2], (2,), {}), ("remove", lambda: [1], (1,), {}), ("extend", list, ({3, 4},), {}),
                ("add", set, (1,), {}), ("discard", set, (1,), {}), ("update", set, ([1], {2}), {}), ("pop", lambda: {1}, (), {})):
            mine, native = make(), make()
            again = tuple((n for n in (1, 2)) if inspect.isgenerator(arg) else arg for arg in args)
            result, expected = ours(mine, name, *args, **kwargs), getattr(native, name)(*again, **kwargs)
            assert (type(result), mine) == (type(expected), native), name
            if name != "keys":
                assert result == expected, name
        line = [1, 2]
        ours(line, "extend", line)
        assert line == [1, 2, 1, 2]

    w.run(work)
    w.clean()


def case_arguments_are_evaluated_after_the_lookup(w):
    site, line, seen = w.site("append", "append", op="method"), [], []

    def value():
        seen.append(len(line))
        return 5

    def work():
        w.method(line, site).append(value())

    w.run(work)
    assert (line, seen) == ([5], [0])


def case_objects_die_as_before(w):
    write, died = w.site("write", "n", op="attr_write"), []

    class Mortal:
        def __del__(self):
            died.append(1)

    def work():
        thing = Mortal()
        w.attr_write(thing, write).n = 1
        gone = weakref.ref(thing)
        del thing
        assert gone() is None
        assert died == [1]

    w.run(work)


def case_finalizers_may_use_ops_and_locks(w):
    write, lock, thing = w.site("write", "n", op="attr_write"), threading.Lock(), Thing()
    count = []

    class Busy:
        def __init__(self):
            self.me = self       # only the collector finds it

        def __del__(self):
            with lock:
                w.attr_write(thing, write).n = 1
                count.append(1)

    def work():
        for _ in range(300):
            w.attr_write(Busy(), write).n = 2

    w.run(work)
    gc.collect()
    assert len(count) == 300


def case_all_threads_at_once(w):
    """Nothing hangs or breaks when operations of many threads meet inside the core."""
    update, item, grow = (w.site("update", "n", Flag.AUGMENTED, op="attr_update"), w.site("item", op="item_write"),
                          w.site("grow", "append", op="method"))
    lock, thing, table, line = threading.Lock(), Thing(), {}, []
    done = [Pipe() for _ in range(8)]

    def work(number):
        w.core.thread_begin(None, clock)
        for turn in range(100):
            with lock:
                w.attr_update(thing, update).n += 1
            w.item_write(turn, table, (number, turn), item)
            w.method(line, grow).append(Thing())
        w.core.thread_end()
        done[number].tell()

    clock = w.core.snapshot()
    for number in range(8):
        _thread.start_new_thread(work, (number,))
    for pipe in done:
        pipe.wait()
        pipe.close()
    w.clean()
    assert (thing.n, len(table), len(line)) == (800, 800, 800)


def case_recursion_to_its_limit(w):
    """The program gets its own RecursionError, where it would have got it or a little before, and goes on."""
    update, thing = w.site("update", "n", Flag.AUGMENTED, op="attr_update"), Thing()

    def deeper(level):
        w.attr_update(thing, update).n += 1
        return deeper(level + 1)

    def dive():
        try:
            deeper(0)
        except RecursionError:
            dive.done = True
        w.attr_update(thing, update).n += 1

    w.run(dive, dive)
    assert dive.done
    assert ("order", "update WRITE", "update WRITE") in w.pairs()


def case_wrap_calls_around(w):
    calls = []

    def original(a, b=2):
        """Doc of it."""
        calls.append(("original", a, b))
        return a + b

    def before(*args, **kwargs):
        calls.append(("before", args, kwargs))
        return "state"

    def after(state, result, *args, **kwargs):
        calls.append(("after", state, result, args, kwargs))

    wrapped = w.core.wrap(original, before, after)
    assert wrapped(1, b=3) == 4
    assert calls == [("before", (1,), {"b": 3}), ("original", 1, 3), ("after", "state", 4, (1,), {"b": 3})]
    assert wrapped.__wrapped__ is original
    assert (wrapped.__name__, wrapped.__doc__, wrapped.__module__, wrapped.__qualname__) == (
        original.__name__, original.__doc__, original.__module__, original.__qualname__)
    assert inspect.signature(wrapped) == inspect.signature(original)
    assert repr(wrapped) == repr(original)


def case_wrap_of_what_fails(w):
    calls = []

    def original():
        raise ValueError("of the original")

    wrapped = w.core.wrap(original, lambda: "state", lambda *a: calls.append("after"),
                          lambda *a: calls.append(a))
    assert failure(wrapped) == failure(original)
    assert calls[0][0] == "state"
    assert isinstance(calls[0][1], ValueError)
    assert len(calls) == 1
    assert w.core.mute() == 0
    w.core.restore(0)


def case_wrap_survives_its_hooks(w):
    def bad(*_, **__):
        raise ValueError("of a hook")

    assert w.core.wrap(lambda: 5, bad, bad, bad)() == 5


def case_wrap_mutes(w):
    levels = []

    def look():
        level = w.core.mute()
        w.core.restore(level)
        levels.append(level > 0)

    w.core.wrap(look)()
    w.core.wrap(look, muted=False)()
    w.core.wrap(look, lambda: NotImplemented)()
    assert levels == [True, False, False]
    calls = []
    inner = w.core.wrap(look, lambda: calls.append("before"), lambda *_: calls.append("after"))
    w.core.wrap(inner)()
    assert calls == []
    inner()
    assert calls == ["before", "after"]


def case_wrap_binds_as_its_original(w):
    class Owner:
        def method(self, value):
            return self, value

    Owner.method = w.core.wrap(Owner.method)
    Owner.builtin = w.core.wrap(len)
    owner = Owner()
    assert owner.method(5) == (owner, 5)
    assert Owner.method(owner, 5) == (owner, 5)
    assert owner.builtin([1]) == 1


def case_wrap_is_pickled_by_name(w):
    import json

    undo = w.core.patch(json, "dumps", w.core.wrap(json.dumps))
    try:
        assert pickle.loads(pickle.dumps(json.dumps)) is json.dumps
    finally:
        undo()


def case_patch_and_its_undoing(w):
    class Owner:
        kept = 1

    undo = w.core.patch(Owner, "kept", 2)
    assert Owner.kept == 2
    undo()
    assert Owner.kept == 1
    undo = w.core.patch(Owner, "added", 3)
    assert Owner.added == 3
    undo()
    assert not hasattr(Owner, "added")


def case_sites_are_ordinary_constants(w):
    site, other = w.site("one", "n"), w.site("two", "n")
    assert site != other
    assert len({site, other}) == 2
    function = (lambda: 5)
    code = function.__code__.replace(co_consts=(*function.__code__.co_consts, site, other))
    assert site in code.co_consts
    again = pickle.loads(pickle.dumps(site))
    assert type(again) is type(site)


class OutOfNowhere(Exception):  # noqa: N818  it is no error
    """What a signal handler of a case raises."""


def interrupted(work, times):
    """Do work again and again until a signal handler has raised in it so many times, once in each."""
    armed = [False]

    def handle(*_):
        if armed[0]:
            armed[0] = False
            raise OutOfNowhere

    before = signal.signal(signal.SIGALRM, handle)
    count, until = 0, time.monotonic() + 20
    signal.setitimer(signal.ITIMER_REAL, 0.0007, 0.0007)
    while count < times and time.monotonic() < until:
        try:
            armed[0] = True
            work()
            armed[0] = False
        except OutOfNowhere:
            count += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    return count


def case_exceptions_out_of_nowhere(w):
    update, item = w.site("update", "n", Flag.AUGMENTED, op="attr_update"), w.site("item", op="item_write")
    grow = w.site("grow", "append", op="method")
    thing, table, line = Thing(), {}, []
    ready, stay = Pipe(), Pipe()
    clock = w.core.snapshot()

    def other():
        w.core.thread_begin(None, clock)
        ready.tell()
        stay.wait()
        w.attr_update(thing, update).n += 1
        w.core.thread_end()
        ready.tell()

    def work():
        for number in range(200):
            w.attr_update(thing, update).n += 1
            w.item_write(number, table, number, item)
            w.method(line, grow).append(number)

    _thread.start_new_thread(other, ())
    ready.wait()
    assert interrupted(work, 100) > 0
    w.clean()
    w.attr_update(thing, update).n += 1
    stay.tell()
    ready.wait()
    assert ("order", "update WRITE", "update WRITE") in w.pairs()
    for pipe in (ready, stay):
        pipe.close()
