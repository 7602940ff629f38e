"""A thread works with copies of its own, made where the program keeps the object; nothing else changes."""

import copyreg
import queue
import sys
import threading
import types

import pytest

from gilscope.toolkit.scale.child.thread_copies import ThreadCopy, UncopiedError
from tests.scale import used_program, used_values


class Price:
    def __init__(self):
        self.rate = 2.5


class Shelf:
    def __init__(self):
        self.lock, self.again = threading.Lock(), threading.RLock()
        self.free = threading.Condition(self.lock)
        self.jobs = queue.Queue()


@pytest.fixture(autouse=True)
def _locks_that_cannot_be_copied():
    before = dict(copyreg.dispatch_table)
    yield
    copyreg.dispatch_table.clear()
    copyreg.dispatch_table.update(before)


@pytest.fixture
def program(monkeypatch):
    """Return a module whose functions use each other and another module of its package."""
    helpers, app = types.ModuleType("copied_app.helpers"), types.ModuleType("copied_app.main")
    exec("def twice(x):\n    return x, TABLE\n", vars(helpers))
    helpers.TABLE = {"a": 1.5}
    exec("def f(x=None):\n    return PRICE, ALIAS, LIMIT, helpers.TABLE, twice(x), inner()\n"
         "def inner():\n    return PRICE\n", vars(app))
    app.PRICE = app.ALIAS = Price()
    app.LIMIT = float("7.25")
    app.helpers, app.twice, app.LOCK = helpers, helpers.twice, threading.Lock()
    for module in (helpers, app):
        monkeypatch.setitem(sys.modules, module.__name__, module)
        for each in vars(module).values():
            if isinstance(each, types.FunctionType):
                each.__module__ = each.__globals__["__name__"]
    return app


def call(program, *names, payloads=None, arguments=False):
    made = ThreadCopy(program.f, payloads, held=names, arguments=arguments)
    return made.call(*(made.payloads or ()))


def test_global_is_copied_wherever_the_module_uses_it(program):
    price, alias, limit, table, (_, same_table), inner = call(program, ("copied_app.main", "PRICE"))
    assert price is alias is inner
    assert price is not program.PRICE
    assert price.rate is program.PRICE.rate      # a number is no copy
    assert (limit, table, same_table) == (program.LIMIT, program.helpers.TABLE, program.helpers.TABLE)
    assert limit is program.LIMIT
    assert table is program.helpers.TABLE


def test_global_of_another_module_is_copied_for_all_who_use_it(program):
    *_, table, (_, same_table), _ = call(program, ("copied_app.helpers", "TABLE"))
    assert table is same_table
    assert table == program.helpers.TABLE
    assert table is not program.helpers.TABLE


def test_control_copies_nothing_but_has_globals_of_its_own(program):
    made = ThreadCopy(program.f, None, held=[("copied_app.main", "PRICE")], arguments=False, control=True)
    assert made.call()[0] is program.PRICE
    assert made.call.__globals__ is not program.f.__globals__
    assert program.f.__globals__["PRICE"] is program.PRICE      # the program itself is as it was


def test_payloads_are_copied(program):
    payload = [Price()]
    *_, (own, _), _ = call(program, payloads=[payload], arguments=True)
    assert own is not payload
    *_, (own, _), _ = call(program, ("copied_app.main", "PRICE"), payloads=[payload])
    assert own is payload


def test_what_cannot_be_copied_says_why(program):
    program.LIMIT = (each for each in ())
    with pytest.raises(UncopiedError, match="TypeError: cannot pickle"):
        call(program, ("copied_app.main", "LIMIT"))
    with pytest.raises(UncopiedError, match="no plain Python function"):
        ThreadCopy(len, None, held=[("copied_app.main", "PRICE")], arguments=False)


def test_copy_has_locks_of_its_own(program):
    program.PRICE = shelf = Shelf()
    with shelf.lock, shelf.again, shelf.jobs.mutex:      # whoever waited for one of these would wait forever
        own, *_ = call(program, ("copied_app.main", "PRICE"))
        assert type(own) is Shelf
        assert own.again.acquire(blocking=False)
        with own.free:
            assert not own.lock.acquire(blocking=False)      # it is the lock of its condition, as in the original
            own.free.notify_all()
            assert not own.free.wait(0)
        own.jobs.put("job")
        assert own.jobs.get() == "job"
    assert shelf.jobs.empty()


def test_method_keeps_the_original_and_the_program_is_unchanged():
    table = used_program.TABLE
    made = ThreadCopy(used_program.f, [{"rates": 1}], held=[("tests.scale.used_program", "PROVIDER")],
                      arguments=False)
    assert made.call(made.payloads[0])[4] is used_values.SHARED
    assert used_program.TABLE is table
    assert made.call.__globals__["PROVIDER"] is not used_program.PROVIDER
