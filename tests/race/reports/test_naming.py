"""How variables and locks are called, and that looking at them runs nothing of theirs."""

import json
import threading
import types
from types import SimpleNamespace

import pytest

from gilscope.toolkit.race import safe_inspection
from gilscope.toolkit.race.conflicts import objects
from gilscope.toolkit.race.conflicts.objects import OPTIMIZED, ObjectDescriber, key_text
from gilscope.toolkit.race.report.model import HeldLock
from gilscope.toolkit.race.site import SiteInfo
from gilscope.toolkit.race.spool import dumps
from gilscope.toolkit.race.terms import AccessKind
from gilscope.toolkit.race.verdicts.conflict_context import SiteIndex
from gilscope.toolkit.race.verdicts.naming import container_text, enclosing_class, variable_name
from gilscope.toolkit.race.verdicts.records import OwnerRecord
from gilscope.toolkit.records import from_plain
from tests.race.fakes.program import FakeCore, Program


def site(text, op="attr_read", key="", function="<module>", path="/src/jobs.py"):
    return SiteInfo(path, 3, 0, 3, 9, function, op, key, text, 0, (), None)


def name_of(part, owner, key, *sites, module=None, others=(), **local):
    """Return the name of a location that a frame of the module accesses, with these locals."""
    index = SiteIndex()
    for number, each in enumerate([*sites, *others]):
        index.add(number, each)
    sides = (sites * 2)[:2]
    frame = SimpleNamespace(f_globals=module or {}, f_locals=local, f_code=SimpleNamespace(co_flags=OPTIMIZED))
    described = json.loads(dumps(ObjectDescriber(FakeCore()).describe(part, owner, key, sides, frame)))
    first, second = (SimpleNamespace(site=sites.index(side)) for side in sides)
    return variable_name(SimpleNamespace(owner=from_plain(OwnerRecord, described), part=part, first=first,
                                         second=second, key=key_text(part, owner, key)), index)


class Account:
    count = 0
    __slots__ = ("__dict__", "title")


class Hostile:
    """Ends the test when any of its code runs."""

    def _stop(self, *_args):
        raise SystemExit("code of the program ran")

    __getattribute__ = __getattr__ = __repr__ = __str__ = __eq__ = __hash__ = __bool__ = __len__ = __iter__ = _stop


def account(**attributes):
    made = Account()
    for name, value in attributes.items():
        object.__setattr__(made, name, value)
    return made


@pytest.mark.parametrize(("attributes", "expected"), [
    ({"name": "bob", "balance": 3}, "Account.balance of <Account 'bob'>"),
    ({"id": 7, "balance": 3}, "Account.balance of <Account 7>"),
    ({"title": "Dr"}, "Account.balance of <Account 'Dr'>"),           # in a slot
    ({"name": "x" * 100, "id": 7}, "Account.balance of <Account 7>"),  # too long to read
    ({"name": object(), "_key": "k"}, "Account.balance of <Account 'k'>"),
])
def test_an_attribute_of_a_labelled_instance(attributes, expected):
    found = name_of("attr", account(**attributes), "balance", site("self.balance"))
    assert found == (expected, "Account.balance", "Account.balance", "")


def test_an_attribute_is_no_label_of_itself():
    found = name_of("attr", account(name="bob"), "name", site("self.name"))
    assert found.text.startswith("Account.name of <Account at 0x")


def test_an_instance_is_told_by_the_global_that_refers_to_it(monkeypatch):
    module = types.ModuleType("bank_module")
    module.__file__ = "/src/bank.py"
    module.savings = account()
    monkeypatch.setitem(__import__("sys").modules, "bank_module", module)
    found = name_of("attr", module.savings, "balance", site("self.balance", path="/src/bank.py"))
    assert found.text == "Account.balance of savings"


@pytest.mark.parametrize(("owner", "key", "expected"), [
    (Account, "count", "Account.count"),
    (Account, "_Account__count", "Account.__count"),
    (test_an_attribute_is_no_label_of_itself, "calls", "test_an_attribute_is_no_label_of_itself.calls"),
])
def test_attributes_of_classes_and_functions(owner, key, expected):
    assert name_of("attr", owner, key, site("x.y")) == (expected, expected, expected, "")


@pytest.mark.parametrize(("file", "expected"), [
    ("/src/jobs.py", "global total in jobs.py"),
    ("/src/pkg/__init__.py", "global total in pkg/__init__.py"),
    (None, "global total in jobs.py"),
])
def test_a_global(file, expected):
    namespace = {"__name__": "jobs", "__builtins__": {}, "total": 3} | ({"__file__": file} if file else {})
    found = name_of("item", namespace, "total", site("total", "global_read", "total"))
    assert found == (expected, expected, "total", "")


@pytest.mark.parametrize(("function", "others", "expected"), [
    ("make_counter.<locals>.increment", ["make_counter"], "local total of make_counter (closure)"),
    ("make_counter.<locals>.increment", [], "local total of make_counter (closure)"),
    ("App.run.<locals>.step.<locals>.<lambda>", ["App.run"], "local total of App.run (closure)"),
])
def test_a_closure_variable(function, others, expected):
    info, *others = (site("total", "cell_update", "total", name) for name in (function, *others))
    assert name_of("cell", object(), "total", info, others=others) == (expected, expected, "total", "")


LEDGER = "Ledger.add"


@pytest.mark.parametrize(("part", "owner", "key", "info", "expected"), [
    ("item", {}, "the", site("self.counts[word]", "item_proxy", "", LEDGER), ("Ledger.counts['the']", "Ledger.counts")),
    ("item", {}, "the", site("self.counts[word]", "item_read", "", LEDGER + ".<locals>.<genexpr>"),
     ("Ledger.counts['the']", "Ledger.counts")),
    ("item", {}, "the", site("counts[word]", "item_read"), ("counts['the']", "counts")),
    ("item", [], 3, site("items[-1]", "item_read"), ("items[3]", "items")),
    ("item", [], 1, site("grid[row][column]", "item_write"), ("grid[row][1]", "grid[row]")),
    ("item", {}, (1, "a"), site("table[x, y]", "item_read"), ("table[1, 'a']", "table")),
    ("item", set(), "/", site("url in self.seen", "contains", "", "Web.visit"), ("'/' in Web.seen", "Web.seen")),
    ("item", set(), "/", site("self.seen.add", "method", "add", "Web.visit"), ("'/' in Web.seen", "Web.seen")),
    ("item", {}, "k", site("self.jobs.pop(key)", "method", "pop", "Pool.take"), ("Pool.jobs['k']", "Pool.jobs")),
    ("structure", [], None, site("self.jobs", "method", "append", "Pool.put"),
     ("Pool.jobs", "Pool.jobs")),
    ("structure", {}, None, site("self.jobs.items()", "iterate", "", "Pool.show"),
     ("Pool.jobs", "Pool.jobs")),
    ("structure", [], None, site("len(jobs)", "size", "", "show"), ("jobs", "jobs")),
    ("structure", [], None, site("self.__jobs", "size", "", "Pool.show"),
     ("Pool.__jobs", "Pool.__jobs")),
    ("structure", [], None, site("pool.jobs", "size", "", "show"), ("pool.jobs", "pool.jobs")),
    ("iterator", iter(()), None, site("self.ids", "advance", "", "Pool.next_id"), ("Pool.ids", "Pool.ids")),
    ("iterator", iter(()), None, site("next(numbers)", "advance", "", "work"), ("numbers", "numbers")),
])
def test_a_container_by_the_text_of_its_access(part, owner, key, info, expected):
    found = name_of(part, owner, key, info)
    assert (found.text, found.base) == expected
    assert found.name == found.base
    assert found.text in {found.base, found.base + found.item_key, f"'/' in {found.base}"}
    assert bool(found.item_key) is (part == "item" and not isinstance(owner, set))


def test_a_container_by_the_object_whose_getter_returns_it():
    owner, info = account(totals={}), site("bank.totals", "reads", "", "show")
    assert name_of("structure", owner.totals, None, info, bank=owner).text == "Account.totals"
    assert name_of("structure", {}, None, info, bank=owner).text == "a dict"


def test_a_container_without_a_name():
    assert name_of("item", {}, "k", site("load()", "reads")) == ("a dict['k']", "a dict", "", "['k']")


def test_the_side_that_names_the_attribute_wins():
    helper, method = site("jobs[k]", "item_read", "", "helper"), site("self.jobs[k]", "item_write", "", "Pool.put")
    assert name_of("item", {}, "k", helper, method).text == "Pool.jobs['k']"


def test_a_parameter_is_called_what_the_module_calls_its_object():
    counts = {}
    info = site("table[k]", "item_read", "", "increment")
    assert name_of("item", counts, "k", info, module={"counts": counts, "table": {}}).text == "counts['k']"


def test_a_parameter_is_called_after_a_global_of_another_file_that_is_checked(monkeypatch):
    module = types.ModuleType("bank_module")
    module.__file__ = "/src/bank.py"
    module.totals = {}
    monkeypatch.setitem(__import__("sys").modules, "bank_module", module)
    info, other = site("table[k]", "item_read", "", "increment"), site("x", path="/src/bank.py")
    assert name_of("item", module.totals, "k", info).text == "table['k']"
    monkeypatch.setattr(objects, "all_sites", [info, other])
    found = name_of("item", module.totals, "k", info)
    assert found[:3] == ("totals of bank_module['k']", "totals of bank_module", "totals")


@pytest.mark.parametrize(("key", "expected"), [
    (("a", 1), "t['a', 1]"), (1.5, "t[1.5]"), (None, "t[None]"), (slice(1, 3), "t[1:3]"), (slice(0, 9, 2), "t[0:9:2]"),
    (b"x", "t[b'x']"), (int, "t[int]"), ("y" * 90, f"t['{'y' * 35}...']"),
])
def test_keys(key, expected):
    assert name_of("item", {}, key, site("t[k]", "item_read")).text == expected


def test_a_hostile_key():
    info = site("t[k]", "item_read")
    assert name_of("item", {}, Hostile(), info).text == "t[<Hostile>]"
    assert name_of("item", {}, (1, Hostile()), info).text == "t[1, <Hostile>]"


def test_a_hostile_object_is_named_without_its_help():
    found = name_of("attr", Hostile(), "value", site("x.value"))
    assert found.base == "Hostile.value"
    assert safe_inspection.label(Hostile(), "") is None


class HostileMeta(type):
    def __getattribute__(cls, name):
        raise SystemExit("code of the program ran")


def test_a_hostile_metaclass_is_not_asked():
    cls = HostileMeta("Plain", (), {"__slots__": ("name",)})
    made = object.__new__(cls)
    type.__dict__["__dict__"].__get__(cls)["name"].__set__(made, "ann")
    assert name_of("attr", made, "x", site("self.x")).text == "Plain.x of <Plain 'ann'>"
    assert name_of("attr", cls, "x", site("self.x")).text == "Plain.x"


@pytest.mark.parametrize(("left", "right", "expected"), [
    (1, 1, True), (1, True, False), (1, 1.0, False), ((1, "a"), (1, "a"), True), ([1], [1], False),
    (frozenset({1}), frozenset({1}), True), ((1, [2]), (1, [2]), False),
])
def test_equality_of_plain_values_alone(left, right, expected):
    assert safe_inspection.same(left, right) is expected


def test_the_same_object_is_the_same_value():
    hostile = Hostile()
    assert safe_inspection.same(hostile, hostile)
    assert not safe_inspection.same(hostile, Hostile())


@pytest.mark.parametrize(("function", "expected"), [
    ("Ledger.add", "Ledger"), ("Ledger.add.<locals>.inner", "Ledger"), ("Outer.Inner.method", "Outer.Inner"),
    ("make.<locals>.Ledger.add", "Ledger"), ("work", None), ("<module>", None), ("work.<locals>.<lambda>", None),
])
def test_enclosing_class(function, expected):
    assert enclosing_class(function) == expected


def test_a_cut_text_names_nothing():
    assert container_text(site("self.very_long[", "item_read")) == ""


# -- locks ---------------------------------------------------------------------------------------------------------

LOCKS = """
import threading
lock = threading.Lock()

class Bank:
    def deposit(self):
        with self.lock:
            pass

    def audit(self):
        self.lock.acquire()

    def both(self):
        with self.lock, self.other:
            pass

def work(mine):
    with mine:
        pass

def make():
    with lock_of("a"):
        pass
"""


@pytest.fixture
def locks(tmp_path):
    program = Program(tmp_path, LOCKS)
    program.site("work", "with mine", "mine", "global_write", "mine")

    def describe(fragment, lock=None):
        line = program.line_of(fragment)
        stack = (str(program.path), line, program.function_at(line)), ("/x.py", 1, "main")
        program.core.locks[1] = (stack if fragment else (), lock)
        program.tell(("work", AccessKind.WRITE, {"locks": (1,)}), ("work", AccessKind.WRITE), {}, "item", "mine")
        return program.report().races[0].first.locks[0]
    return describe


@pytest.mark.parametrize(("fragment", "expected"), [
    ("with self.lock:", "Bank.lock"), ("self.lock.acquire", "Bank.lock"), ("with mine", "mine"),
    ("with self.lock, self.other", "the lock first taken in Bank.both"),
    ("with lock_of", "the lock first taken in make"),
])
def test_a_lock_by_the_line_that_took_it_first(locks, fragment, expected):
    assert locks(fragment).name == expected


def test_a_global_lock(locks, tmp_path, monkeypatch):
    module = types.ModuleType("jobs_module")
    module.__file__ = str(tmp_path / "jobs.py")
    module.lock = threading.Lock()
    monkeypatch.setitem(__import__("sys").modules, "jobs_module", module)
    assert locks("with mine", module.lock).name == "global lock in jobs.py"


def test_a_lock_that_nobody_knows(locks):
    assert locks("") == HeldLock(uid=1, name="a lock", taken=None)
