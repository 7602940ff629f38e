"""Each rule of the classification, the benign pattern beside the bug that looks like it."""

from collections import Counter

import pytest

from gilscope.toolkit.race.core import NO_VALUE
from gilscope.toolkit.race.site import all_sites
from gilscope.toolkit.race.terms import AccessKind, Flag, Remedy
from tests.race.fakes.program import Program

F, K = Flag, AccessKind


@pytest.fixture
def program(tmp_path):
    def make(source):
        return Program(tmp_path, source)
    return make


class Owner:
    """An instance whose attributes a test sets."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def verdict(program, first, second, owner=None, part="attr", key="value", sort="order", value=NO_VALUE):
    """Tell the handler of one conflict and return (kind, severity, rule) of the report."""
    program.tell(first, second, Owner() if owner is None else owner, part, key, sort, value)
    program.handler.finish()
    report = program.report()
    [race] = (*report.races, *report.notes)
    return race.kind, race.severity, race.rule


COUNTER = """
class Counter:
    def add(self):
        self.value += 1

    def add_in_steps(self):
        before = self.value
        after = before + 1
        self.value = after

    def reset(self):
        self.value = 0

    def show(self):
        print(self.value)
"""


@pytest.fixture
def counter(program):
    made = program(COUNTER)
    made.site("add", "+= 1", "self.value", "attr_update", "value", F.AUGMENTED)
    made.site("before", "before =", "self.value", "attr_read", "value", F.SPAN_READ)
    made.site("after", "= after", "self.value", "attr_write", "value", F.VALUE, partners=["before"])
    made.site("reset", "= 0", "self.value", "attr_write", "value", F.CONSTANT)
    made.site("show", "print", "self.value", "attr_read", "value")
    return made


@pytest.mark.parametrize(("first", "second", "kind"), [
    (("add", K.WRITE), ("add", K.WRITE), "lost update"),
    (("add", K.WRITE), ("add", K.READ), "lost update"),
    (("after", K.WRITE), ("before", K.READ), "lost update"),
    (("after", K.WRITE), ("reset", K.WRITE), "lost update"),
    (("before", K.READ), ("reset", K.WRITE), "lost update"),
    (("add", K.WRITE), ("show", K.READ), "unsynchronised read/write"),
    (("reset", K.WRITE), ("show", K.READ), "unsynchronised read/write"),
])
def test_kind_of_an_order_conflict(counter, first, second, kind):
    assert verdict(counter, first, second) == (kind, "race", None)
    assert counter.report().races[0].kind == kind


def test_a_lock_that_both_hold_at_the_same_time_is_said_to_be_none(counter):
    held = ("add", K.WRITE, {"locks": (7,)})
    assert verdict(counter, held, held) == ("lost update", "race", None)
    [race] = counter.report().races
    assert race.missing == "Both hold a lock at the same time, so it excludes no other thread."
    assert race.repair == "Hold one lock over jobs.py:4."


def test_a_span_is_an_atomicity_violation(counter):
    first = ("after", K.WRITE, {"locks": (1,), "span": "before"})
    second = ("reset", K.WRITE, {"locks": (1,)})
    assert verdict(counter, first, second, sort="span") == ("lost update", "atomicity violation", None)


@pytest.mark.parametrize(("first", "second", "part", "kind"), [
    (K.ITERATE, K.GROW, "structure", "iteration during change"),
    (K.RESHAPE, K.ITERATE, "structure", "iteration during change"),
    (K.RESHAPE, K.GROW, "structure", "torn multi-step write"),
    (K.RESHAPE, K.RESHAPE, "structure", "torn multi-step write"),
    (K.WRITE, K.WRITE, "iterator", "unsynchronised read/write"),
])
def test_kind_by_access(program, first, second, part, kind):
    made = program("for job in jobs:\n    print(job)\n")
    made.site("one", "for job", "jobs", "iterate")
    made.site("two", "for job", "jobs", "iterate")
    assert verdict(made, ("one", first), ("two", second), owner=[], part=part, key=None)[:2] == (kind, "race")


SWAP = """
def swap(pair):
    pair.left, pair.right = pair.right, pair.left

def both(pair):
    pair.left, pair.right = pair.left + 1, pair.right + 1
"""


def test_a_swap_is_torn(program):
    made = program(SWAP)
    made.site("read", "= pair.right, pair.left", "pair.right", "attr_read", "right", F.SPAN_READ)
    made.site("left", "= pair.right, pair.left", "pair.left", "attr_write", "left", F.MULTI | F.VALUE, ["read"])
    made.site("right", "= pair.right, pair.left", "pair.right", "attr_write", "right", F.MULTI)
    assert verdict(made, ("left", K.WRITE), ("left", K.WRITE))[0] == "torn multi-step write"


def test_a_swap_of_items_is_torn(program):
    made = program("def shuffle(i, j):\n    cards[i], cards[j] = cards[j], cards[i]\n")
    made.site("read", "cards", "cards[i]", "item_read", "", F.SPAN_READ)
    made.site("write", "cards", "cards[i]", "item_proxy", "", F.MULTI | F.VALUE, ["read"])
    found = verdict(made, ("write", K.WRITE), ("write", K.WRITE), owner=[1, 2], part="item", key=0)
    assert found[0] == "torn multi-step write"


PAIR = """
def shift(self, by):
    with self.lock:
        self.value += by
        self.end += by

def length(self):
    low = self.value
    high = self.end
    return high - low

def first(self):
    return self.value
"""


@pytest.mark.parametrize(("load", "kind"), [("low", "torn multi-step write"), ("first", "unsynchronised read/write")])
def test_a_pair_that_is_loaded_in_parts_is_torn(program, load, kind):
    made = program(PAIR)
    made.site("value", "self.value +=", "self.value", "attr_update", "value", F.AUGMENTED)
    made.site("end", "self.end +=", "self.end", "attr_update", "end", F.AUGMENTED)
    made.site("low", "low =", "self.value", "attr_read", "value")
    made.site("high", "high =", "self.end", "attr_read", "end")
    made.site("first", "return self.value", "self.value", "attr_read", "value")
    assert verdict(made, ("value", K.WRITE, LOCKED), (load, K.READ), owner=Owner(value=3))[:2] == (kind, "race")


TWO_OBJECTS = """
def move():
    here.value = 1 + step
    there.end = 2 + step

def look():
    return here.value, there.end

def look_at_one():
    return here.value, here.end
"""


@pytest.mark.parametrize("load", ["look", "look_at_one"])
def test_stores_to_two_objects_are_no_steps_of_one_write(program, load):
    made = program(TWO_OBJECTS)
    made.site("value", "here.value =", "here.value", "attr_write", "value")
    made.site("end", "there.end =", "there.end", "attr_write", "end")
    made.site("look", "return here.value, there.end", "here.value", "attr_read", "value")
    made.site("there", "return here.value, there.end", "there.end", "attr_read", "end")
    made.site("look_at_one", "return here.value, here.end", "here.value", "attr_read", "value")
    made.site("here", "return here.value, here.end", "here.end", "attr_read", "end")
    assert verdict(made, ("value", K.WRITE), (load, K.READ))[0] == "unsynchronised read/write"


def test_a_list_that_is_rebuilt_from_itself_loses_what_is_appended(program):
    made = program("def prune():\n    jobs[:] = [job for job in jobs if job]\n")
    made.site("old", "jobs", "jobs", "iterate", "", F.SPAN_READ)
    made.site("new", "jobs", "jobs[:]", "item_write", "", F.VALUE, ["old"])
    made.site("append", "jobs", "jobs", "method", "append")
    found = verdict(made, ("new", K.RESHAPE), ("append", K.GROW), owner=[], part="structure", key=None)
    assert found[0] == "lost update"


def test_the_return_behind_a_lazy_initialisation_counts_as_the_act(program):
    made = program("def get(self):\n    if self.value is None:\n        self.value = Thing()\n    return self.value\n")
    made.site("check", "if", "self.value", "attr_read", "value", F.TEST | F.SPAN_READ)
    made.site("act", "Thing", "self.value", "attr_store", "value", F.GUARD, ["check"])
    made.site("return", "return", "self.value", "attr_read", "value")
    owner = Owner(value=Owner())
    for second in ("check", "return"):
        assert verdict(made, ("act", K.WRITE), (second, K.READ), owner=owner)[:2] == ("check-then-act", "race")


def test_two_updates_in_one_statement_are_lost_updates(program):
    made = program(SWAP)
    made.site("read", "left + 1", "pair.left", "attr_read", "left", F.SPAN_READ)
    made.site("left", "left + 1", "pair.left", "attr_write", "left", F.MULTI | F.VALUE, ["read"])
    made.site("right", "left + 1", "pair.right", "attr_write", "right", F.MULTI)
    assert verdict(made, ("left", K.WRITE), ("left", K.WRITE))[0] == "lost update"


FLAG = """
class Worker:
    def run(self):
        while not self.value:
            if self.work():
                self.value = True

    def stop(self):
        self.value = True

    def restart(self):
        self.value = False

    def check(self):
        if self.value:
            return None

    @property
    def stopped(self):
        return self.value

    def report(self):
        self.log()
        return self.value

    def set(self, value):
        self.value = value

    def send(self):
        self.value = 'sent'
"""


@pytest.fixture
def flag(program):
    made = program(FLAG)
    made.site("poll", "while not", "self.value", "attr_read", "value", F.POLL | F.TEST | F.SPAN_READ)
    made.site("found", "self.value = True", "self.value", "attr_write", "value", F.CONSTANT | F.GUARD, ["poll"])
    made.site("stop", "self.value = True", "self.value", "attr_write", "value", F.CONSTANT, occurrence=2)
    made.site("restart", "= False", "self.value", "attr_write", "value", F.CONSTANT)
    made.site("test", "if self.value:", "self.value", "attr_read", "value", F.TEST)
    made.site("property", "return self.value", "self.value", "attr_read", "value")
    made.site("report", "return self.value", "self.value", "attr_read", "value", occurrence=2)
    made.site("set", "= value", "self.value", "attr_write", "value")
    made.site("state", "= 'sent'", "self.value", "attr_write", "value", F.CONSTANT)
    return made


@pytest.mark.parametrize(("first", "second", "severity"), [
    (("stop", K.WRITE), ("poll", K.READ), "note"),
    (("stop", K.WRITE), ("test", K.READ), "note"),
    (("stop", K.WRITE), ("property", K.READ), "note"),
    (("found", K.WRITE), ("poll", K.READ), "note"),       # whoever finds it ends all
    (("found", K.WRITE), ("stop", K.WRITE), "note"),      # the same constant
    (("found", K.WRITE), ("found", K.WRITE), "note"),
    (("stop", K.WRITE), ("report", K.READ), "race"),      # no test and no property
    (("stop", K.WRITE), ("restart", K.WRITE), "race"),    # who is last?
    (("set", K.WRITE), ("poll", K.READ), "race"),         # no constant
    (("state", K.WRITE), ("poll", K.READ), "note"),
    (("state", K.WRITE), ("test", K.READ), "race"),       # more than on and off
])
def test_a_polled_flag_is_a_note(flag, first, second, severity):
    assert verdict(flag, first, second)[1] == severity


HOMEMADE = """
busy = False

def enter():
    global busy
    while busy:
        pass
    busy = True

def leave():
    global busy
    busy = False
"""


@pytest.mark.parametrize(("first", "second", "found"), [
    (("take", K.WRITE), ("poll", K.READ), ("check-then-act", "race")),
    (("take", K.WRITE), ("take", K.WRITE), ("check-then-act", "race")),
    (("give", K.WRITE), ("poll", K.READ), ("unsynchronised read/write", "note")),
])
def test_a_flag_that_is_polled_and_then_taken_is_no_lock(program, first, second, found):
    made = program(HOMEMADE)
    made.site("poll", "while busy", "busy", "global_read", "busy", F.POLL | F.TEST | F.SPAN_READ)
    made.site("take", "busy = True", "busy", "global_write", "busy", F.CONSTANT | F.GUARD, partners=["poll"])
    made.site("give", "busy = False", "busy", "global_write", "busy", F.CONSTANT, occurrence=2)
    owner = {"__name__": "jobs", "__builtins__": None, "busy": True}
    assert verdict(made, first, second, owner=owner, part="item", key="busy")[:2] == found


ONCE = """
class Starter:
    def start(self):
        if not self.value:
            self.value = True
            launch()
"""


def test_a_constant_that_is_already_there_is_no_memo(program):
    made = program(ONCE)
    made.site("test", "if not", "self.value", "attr_read", "value", F.TEST | F.SPAN_READ)
    made.site("set", "= True", "self.value", "attr_store", "value", F.CONSTANT | F.GUARD, partners=["test"])
    found = verdict(made, ("set", K.WRITE), ("set", K.WRITE), owner=Owner(value=True), value=True)
    assert found == ("check-then-act", "race", None)


DOUBLE = """
class Pool:
    def get(self):
        if self.value is None:
            with self.lock:
                if self.value is None:
                    self.value = connect()
        return self.value

    def single(self):
        if self.value is None:
            with self.lock:
                self.value = connect()
        return self.value

    def best(self, score):
        with self.lock:
            if score > self.value:
                self.value = score

    def show(self):
        print(self.value)
"""


@pytest.fixture
def double(program):
    made = program(DOUBLE)
    made.site("outer", "if self.value is None", "self.value", "attr_read", "value", F.TEST | F.SPAN_READ)
    made.site("inner", "if self.value is None", "self.value", "attr_read", "value", F.TEST | F.SPAN_READ, occurrence=2)
    made.site("store", "= connect()", "self.value", "attr_store", "value", F.GUARD | F.RECHECKED,
              partners=["outer", "inner"])
    made.site("return", "return self.value", "self.value", "attr_read", "value")
    made.site("only", "if self.value is None", "self.value", "attr_read", "value", F.TEST | F.SPAN_READ, occurrence=3)
    made.site("unchecked", "= connect()", "self.value", "attr_store", "value", F.GUARD, occurrence=2, partners=["only"])
    made.site("compare", "if score >", "self.value", "attr_read", "value", F.TEST | F.SPAN_READ)
    made.site("best", "= score", "self.value", "attr_store", "value", F.GUARD | F.RECHECKED, partners=["compare"])
    made.site("show", "print", "self.value", "attr_read", "value")
    return made


LOCKED = {"locks": (5,)}


@pytest.mark.parametrize(("first", "second", "severity"), [
    (("store", K.WRITE, LOCKED), ("outer", K.READ), "note"),
    (("store", K.WRITE, LOCKED), ("return", K.READ), "note"),
    (("store", K.WRITE, LOCKED), ("show", K.READ), "note"),
    (("store", K.WRITE), ("outer", K.READ), "race"),                 # no lock
    (("unchecked", K.WRITE, LOCKED), ("only", K.READ), "race"),      # no second check
    (("best", K.WRITE, LOCKED), ("show", K.READ), "race"),           # one check, under the lock
])
def test_double_checked_locking_is_a_note(double, first, second, severity):
    assert verdict(double, first, second, owner=Owner(value=3))[1] == severity


def test_the_span_of_the_outer_check_is_none(double):
    first, second = ("store", K.WRITE, {"locks": (5,), "span": "outer"}), ("store", K.WRITE, LOCKED)
    assert verdict(double, first, second, sort="span")[1] == "note"


def test_a_recheck_under_another_lock_is_none(double):
    first, second = ("store", K.WRITE, {"locks": (5,), "span": "outer"}), ("unchecked", K.WRITE, {"locks": (6,)})
    assert verdict(double, first, second, sort="span")[1] == "atomicity violation"


ANNOUNCED = """
class Lazy:
    def right(self):
        if not self.ready:
            with self.lock:
                if not self.ready:
                    self.value = compute()
                    self.ready = True
        return self.value

    def wrong(self):
        if not self.ready:
            with self.lock:
                if not self.ready:
                    self.ready = True
                    self.value = compute()
        return self.value
"""


@pytest.mark.parametrize(("occurrence", "severity"), [(1, "note"), (2, "race")])
def test_the_flag_of_double_checked_locking_comes_last(program, occurrence, severity):
    made = program(ANNOUNCED)
    outer, inner = 2 * occurrence - 1, 2 * occurrence
    made.site("outer", "if not self.ready", "self.ready", "attr_read", "ready", F.TEST | F.SPAN_READ, occurrence=outer)
    made.site("inner", "if not self.ready", "self.ready", "attr_read", "ready", F.TEST | F.SPAN_READ, occurrence=inner)
    stores = [("value", "= compute()", F.NONE, ()), ("ready", "= True", F.CONSTANT | F.GUARD | F.RECHECKED,
                                                     ("outer", "inner"))]
    for key, fragment, flags, partners in stores if occurrence == 1 else reversed(stores):
        made.site(key, fragment, f"self.{key}", "attr_write", key, flags, partners, occurrence=occurrence)
    made.site("return", "return self.value", "self.value", "attr_read", "value", occurrence=occurrence)
    found = verdict(made, ("value", K.WRITE, LOCKED), ("return", K.READ), owner=Owner(value=3))
    assert found[1] == severity


PUBLISHED = """
class Service:
    def reload(self):
        with self.lock:
            self.value = Config()

    def current(self):
        config = self.value
        return config

    def swap(self):
        config = self.value
        self.value = config.next()
"""


@pytest.fixture
def service(program):
    made = program(PUBLISHED)
    made.site("store", "= Config()", "self.value", "attr_write", "value")
    made.site("load", "config = self.value", "self.value", "attr_read", "value")
    made.site("old", "config = self.value", "self.value", "attr_read", "value", F.SPAN_READ, occurrence=2)
    made.site("new", "config.next()", "self.value", "attr_write", "value", F.VALUE, partners=["old"])
    return made


@pytest.mark.parametrize(("first", "second", "value", "severity"), [
    (("store", K.WRITE, LOCKED), ("load", K.READ), Owner(), "note"),
    (("store", K.WRITE, LOCKED), ("load", K.READ), {"a": 1}, "note"),
    (("store", K.WRITE, LOCKED), ("load", K.READ), (1, 2), "note"),
    (("load", K.READ), ("store", K.WRITE, LOCKED), None, "note"),        # its text says what is stored
    (("store", K.WRITE, LOCKED), ("load", K.READ), None, "note"),        # nor is it there yet
    (("store", K.WRITE, LOCKED), ("load", K.READ), 7, "race"),           # a number: the reader forgot the lock
    (("store", K.WRITE), ("load", K.READ), Owner(), "race"),             # no lock
    (("store", K.WRITE, LOCKED), ("old", K.READ), Owner(), "race"),      # a write depends on the load
])
def test_a_reference_published_under_a_lock_is_a_note(service, first, second, value, severity):
    assert verdict(service, first, second, owner=Owner(value=value))[1] == severity


def test_all_writes_must_hold_one_lock(service):
    owner = Owner(value={})
    service.tell(("store", K.WRITE, {"locks": (6,)}), ("store", K.WRITE, {"locks": (5,)}), owner, "attr", "value")
    service.tell(("store", K.WRITE, LOCKED), ("load", K.READ), owner, "attr", "value")
    assert not service.report().notes


def test_an_object_inherits_no_locks_of_a_dead_one_at_its_address(service):
    owner, service.core.number = Owner(value={}), 1
    service.tell(("store", K.WRITE, {"locks": (6,)}), ("store", K.WRITE, {"locks": (5,)}), owner, "attr", "value")
    service.core.number = 2
    service.tell(("store", K.WRITE, LOCKED), ("load", K.READ), owner, "attr", "value")
    assert service.report().notes


BUILT = """
class Job:
    def __init__(self, registry):
        self.value = 3
        registry.append(self)
        self.late = 4

class Thread:
    def __init__(self):
        self.value = 1
        self.start()
        self.late = 2

class Loop:
    def __init__(self):
        self.value = 1
        Worker(target=self.run).start()
        self.late = 2
"""


@pytest.mark.parametrize(("occurrence", "text", "severity"), [
    (1, "self.value", "note"), (1, "self.late", "race"),
    (2, "self.value", "note"), (2, "self.late", "race"),
    (3, "self.value", "note"), (3, "self.late", "race"),
])
def test_what_the_constructor_stored_before_it_showed_the_object(program, occurrence, text, severity):
    made = program(BUILT)
    made.site("store", f"{text} =", text, "attr_write", text[5:], F.INIT | F.CONSTANT, occurrence=occurrence)
    made.site("load", "registry.append", "registry", "attr_read", text[5:])
    assert verdict(made, ("store", K.WRITE), ("load", K.READ), key=text[5:])[1] == severity


def test_a_class_attribute_is_stored_by_every_constructor(program):
    made = program(BUILT)
    made.site("store", "self.value =", "self.value", "attr_write", "value", F.INIT)
    made.site("load", "registry.append", "registry", "attr_read", "value")
    assert verdict(made, ("store", K.WRITE), ("load", K.READ), owner=Owner)[1] == "race"


def test_two_constructors_of_one_object_race(program):
    made = program(BUILT)
    made.site("store", "self.value =", "self.value", "attr_write", "value", F.INIT)
    assert verdict(made, ("store", K.WRITE), ("store", K.WRITE), owner=Owner(value=1))[1] == "race"


CACHES = """
import random
cache, names, LIMIT = {}, {}, 3

def square(n):
    if n not in cache:
        cache[n] = slow(n)
    return cache[n]

def squared(n):
    if n not in cache:
        result = slow(n)
        cache[n] = result
    return cache[n]

def slow(n):
    return n * n

def number(n):
    if n not in cache:
        cache[n] = len(cache)
    return cache[n]

def draw(n):
    if n not in cache:
        cache[n] = lucky(n)
    return cache[n]

def lucky(n):
    return random.random() + n

def book(n, who):
    if n not in cache:
        cache[n] = who
    return cache[n]

def counted(n):
    if n not in cache:
        cache[n] = loaded(n)
    return cache[n]

def loaded(n):
    log.last = n
    return n * n

def ended(n):
    if n not in cache:
        less = n
        for ending in (1, 2):
            less = n - ending
        cache[n] = less
    return cache[n]

def chosen(n, endings):
    if n not in cache:
        rest = n
        for ending in endings:
            rest = n - ending
        cache[n] = rest
    return cache[n]

def count(n):
    if n not in cache:
        cache[n] = 0
    cache[n] += 1

def memoize(fn):
    def inner(n, *args):
        key = (n, args)
        if n not in cache:
            found = cache[key] = fn(n, *args)
        return found
    return inner

def given(n, make):
    if n not in cache:
        cache[n] = make(n)
"""


def cached(program, stored):
    made = program(CACHES)
    function = made.function_at(made.line_of(stored))
    line = next(number for number in range(made.line_of(stored), 0, -1) if "not in" in made.lines[number - 1])
    occurrence = sum("if n not in cache" in each for each in made.lines[:line])
    made.site("check", "if n not in cache", "cache", "contains", "", F.TEST | F.SPAN_READ, occurrence=occurrence)
    flags = F.GUARD | (F.CONSTANT if stored.endswith("= 0") else F.NONE)
    made.site("act", stored, "cache[n]", "item_write", "", flags, partners=["check"], function=function)
    return made


SPAN = {"span": "check"}


@pytest.mark.parametrize(("stored", "value", "severity"), [
    ("cache[n] = slow(n)", 49, "note"),
    ("cache[n] = slow(n)", [49], "race"),      # two lists: one is lost
    ("cache[n] = result", 49, "note"),
    ("cache[n] = len(cache)", 49, "race"),
    ("cache[n] = lucky(n)", 49, "race"),
    ("cache[n] = who", "ann", "race"),
    ("cache[n] = 0", 0, "race"),
    ("cache[key] = fn(n, *args)", 49, "note"),
    ("cache[n] = make(n)", 49, "race"),              # each caller's own
    ("cache[n] = loaded(n)", 49, "race"),            # the loader does something else, too
    ("cache[n] = less", 49, "note"),                 # a loop over constants
    ("cache[n] = rest", 49, "race"),                 # a loop over what each caller brings
])
def test_a_memo_that_another_thread_only_checked(program, stored, value, severity):
    made = cached(program, stored)
    found = verdict(made, ("act", K.WRITE, SPAN), ("check", K.READ), owner={7: value}, part="item", key=7, sort="span")
    assert found == ("check-then-act", severity, "memo" if severity == "note" else None)


@pytest.mark.parametrize(("stored", "present", "value", "severity"), [
    ("cache[n] = slow(n)", 49, 49, "note"),
    ("cache[n] = slow(n)", 49, 50, "race"),
    ("cache[n] = slow(n)", 1, True, "race"),             # equal, but another type
    ("cache[n] = who", "ann", "ben", "race"),
    ("cache[n] = slow(n)", [49], [49], "race"),          # equal, but another object
    ("cache[n] = slow(n)", 49, NO_VALUE, "race"),        # not known
    ("cache[n] = loaded(n)", 49, 49, "race"),            # the loader did something else, too
])
def test_a_memo_that_both_stored(program, stored, present, value, severity):
    made = cached(program, stored)
    found = verdict(made, ("act", K.WRITE), ("act", K.WRITE), owner={7: present}, part="item", key=7, value=value)
    assert found[:2] == ("check-then-act", severity)


@pytest.mark.parametrize(("stored", "value", "severity"), [
    ("cache[n] = slow(n)", 49, "note"),
    ("cache[n] = slow(n)", [49], "race"),
    ("cache[n] = slow(n)", NO_VALUE, "race"),
    ("cache[n] = who", "ben", "race"),
    ("cache[n] = 0", 0, "race"),
])
@pytest.mark.parametrize("before", [{}, {7: None}])
def test_a_memo_that_both_are_about_to_store(program, before, stored, value, severity):
    """A store is told of before it is done, so what is there may be older than both."""
    made = cached(program, stored)
    found = verdict(made, ("act", K.WRITE), ("act", K.WRITE), owner=before, part="item", key=7, value=value)
    assert found[:2] == ("check-then-act", severity)


def test_a_check_that_finds_the_memo_not_stored_yet(program):
    made = cached(program, "cache[n] = slow(n)")
    found = verdict(made, ("act", K.WRITE, SPAN), ("check", K.READ), owner={}, part="item", key=7, sort="span")
    assert found == ("check-then-act", "note", "memo")


def test_a_store_of_another_value_ends_the_belief_in_a_memo(program):
    made = cached(program, "cache[n] = slow(n)")
    owner = {7: 49}
    act, check = ("act", K.WRITE, SPAN), ("check", K.READ)
    assert made.tell(act, check, owner, "item", 7, "span") is False
    assert not made.report().races
    made.tell(("act", K.WRITE), ("act", K.WRITE), owner, "item", 7, value=50)
    made.tell(act, check, owner, "item", 7, "span")
    assert {race.severity for race in made.report().races} == {"race"}


def test_stores_that_are_not_done_yet_keep_the_belief_in_a_memo(program):
    made = cached(program, "cache[n] = slow(n)")
    for value in (49, 50):
        made.tell(("act", K.WRITE), ("act", K.WRITE), {}, "item", 7, value=value)
    made.tell(("act", K.WRITE, SPAN), ("check", K.READ), {7: 49}, "item", 7, "span")
    assert {race.severity for race in made.report().races} == set()


REMOVALS = """
def careful():
    if jobs:
        try:
            return jobs.pop()
        except IndexError:
            return None

def careless():
    if jobs:
        return jobs.pop(0)

def other_error():
    if jobs:
        try:
            return jobs.popleft()
        except OSError:
            return None

def default(key):
    if key in jobs:
        return jobs.pop(key, None)

def suppressed(key):
    if key in jobs:
        with suppress(KeyError):
            del jobs[key]
"""


@pytest.mark.parametrize(("fragment", "text", "op", "key", "severity"), [
    ("jobs.pop()", "jobs", "method", "pop", "note"),
    ("jobs.pop(0)", "jobs", "method", "pop", "race"),
    ("jobs.popleft()", "jobs", "method", "popleft", "race"),
    ("jobs.pop(key, None)", "jobs", "method", "pop", "note"),
    ("del jobs[key]", "jobs[key]", "item_delete", "", "note"),
])
def test_an_act_that_copes_with_an_outdated_check(program, fragment, text, op, key, severity):
    made = program(REMOVALS)
    line = made.line_of(fragment)
    check = max(number for number in range(1, line) if "if " in made.lines[number - 1])
    occurrence = sum("    if " in each for each in made.lines[:check])
    made.site("check", "    if ", "jobs", "size", "", F.TEST | F.SPAN_READ, occurrence=occurrence)
    flags = F.GUARD | (F.DELETE if op == "item_delete" else F.NONE)
    made.site("act", fragment, text, op, key, flags, partners=["check"])
    side = ("act", K.SHRINK, SPAN)
    found = verdict(made, side, side, owner=[], part="structure", key=None, sort="span")
    assert found[:2] == ("check-then-act", severity)


OLDEST = """
def pop():
    while True:
        try:
            key = next(iter(jobs))
            del jobs[key]   # caught
        except (KeyError, RuntimeError):
            continue

def drop(key):
    del jobs[key]   # not caught
"""


@pytest.mark.parametrize(("other", "severity"), [("# caught", "note"), ("# not caught", "race")])
def test_deletions_that_cope_with_an_item_that_is_gone(program, other, severity):
    made = program(OLDEST)
    made.site("one", "# caught", "jobs[key]", "item_delete", "", F.DELETE)
    made.site("other", other, "jobs[key]", "item_delete", "", F.DELETE)
    found = verdict(made, ("one", K.WRITE), ("other", K.WRITE), owner={"a": 1}, part="item", key="a")
    assert found[:2] == ("unsynchronised read/write", severity)


SEEN = """
def mark(url):
    if url not in seen:
        seen.add(url)

def crawl(url):
    if url not in seen:
        seen.add(url)
        fetch(url)
"""


@pytest.mark.parametrize(("occurrence", "severity"), [(1, "note"), (2, "race")])
def test_adding_an_element_twice_changes_nothing(program, occurrence, severity):
    made = program(SEEN)
    made.site("check", "if url not in", "seen", "contains", "", F.TEST | F.SPAN_READ, occurrence=occurrence)
    made.site("add", "seen.add", "seen", "method", "add", F.GUARD, partners=["check"], occurrence=occurrence)
    side = ("add", K.ATOMIC, SPAN)
    assert verdict(made, side, side, owner=set(), part="item", key="/", sort="span")[:2] == ("check-then-act", severity)


@pytest.mark.parametrize(("first", "second", "severity"), [
    ((5,), (6,), "atomicity violation"), ((5,), (), "race"), ((), (5,), "race"), ((), (), "race"),
])
def test_an_atomicity_violation_is_locked_on_both_sides(program, first, second, severity):
    made = cached(program, "cache[n] = who")
    act, check = ("act", K.WRITE, {"span": "check", "locks": first}), ("check", K.READ, {"locks": second})
    assert verdict(made, act, check, owner={7: "ann"}, part="item", key=7, sort="span")[1] == severity


PRESENCE = """
def tally(word):
    if word in counts:
        counts[word] += 1

def replace(word):
    if word in counts:
        counts[word] = 7

def forget(word):
    if word in counts:
        del counts[word]

def add(word):
    if word not in counts:
        counts[word] = 7
"""


@pytest.mark.parametrize(("stored", "flags", "owner", "severity"), [
    ("counts[word] += 1", F.AUGMENTED, {}, "note"),
    ("counts[word] += 1", F.AUGMENTED, Counter(), "race"),      # makes the key
    ("counts[word] = 7", F.NONE, {}, "note"),
    ("del counts[word]", F.DELETE, {}, "race"),
])
def test_a_key_that_nobody_takes_away(program, stored, flags, owner, severity):
    made = program(PRESENCE)
    line = made.line_of(stored)
    occurrence = sum("word in counts" in each for each in made.lines[:line])
    test = F.TEST | F.SPAN_READ
    made.site("check", "if word in counts", "word in counts", "contains", "", test, occurrence=occurrence)
    made.site("act", stored, "counts[word]", "item_write", "", F.GUARD | flags, ["check"])
    act = ("act", K.WRITE, SPAN)
    for second in (("check", K.READ), act):
        found = verdict(made, act, second, owner=owner, part="item", key="the", sort="span")
        assert found[:2] == ("check-then-act", severity)


@pytest.mark.parametrize(("stored", "flags", "severity"), [
    ("counts[word] += 1", F.AUGMENTED, "note"), ("counts[word] = 7", F.NONE, "note"),
    ("del counts[word]", F.DELETE, "race"),
])
def test_a_key_that_was_there_when_another_value_came(program, stored, flags, severity):
    made = program(PRESENCE)
    made.site("check", "if word in counts", "word in counts", "contains", "", F.TEST | F.SPAN_READ)
    made.site("act", stored, "counts[word]", "item_write", "", F.GUARD | flags, ["check"])
    found = verdict(made, ("act", K.WRITE), ("check", K.READ), owner={"the": 1}, part="item", key="the")
    assert found[:2] == ("check-then-act", severity)


def test_a_key_that_is_made_when_it_is_missing(program):
    made = program(PRESENCE)
    made.site("check", "not in counts", "word not in counts", "contains", "", F.TEST | F.SPAN_READ)
    flags = F.GUARD | F.CONSTANT
    made.site("act", "counts[word] = 7", "counts[word]", "item_write", "", flags, ["check"], occurrence=2)
    found = verdict(made, ("act", K.WRITE, SPAN), ("check", K.READ), owner={}, part="item", key="the", sort="span")
    assert found[1] == "race"


NEIGHBOURS = """
def stop(self, reason):
    self.stopping = True
    self.value = reason

def move(self, host, port):
    self.value = host
    self.port = port

def show(self):
    return self.value
"""


@pytest.mark.parametrize(("beside", "fragment", "flags", "occurrence", "kind"), [
    ("self.stopping", "= True", F.CONSTANT, 1, "unsynchronised read/write"),     # a flag and what it announces
    ("self.port", "= port", F.NONE, 2, "torn multi-step write"),
])
def test_stores_that_belong_together(program, beside, fragment, flags, occurrence, kind):
    made = program(NEIGHBOURS)
    made.site("store", "self.value =", "self.value", "attr_write", "value", F.MULTI, occurrence=occurrence)
    made.site("beside", fragment, beside, "attr_write", beside[5:], F.MULTI | flags)
    made.site("load", "return", "self.value", "attr_read", "value")
    assert verdict(made, ("store", K.WRITE), ("load", K.READ))[0] == kind


WITHDRAW = """
class Account:
    def withdraw(self, amount):
        if self.value >= amount:
            with self.lock:
                if self.value >= amount:
                    self.value -= amount

    def show(self):
        print(self.value)
"""


def test_what_is_computed_under_the_second_check_is_no_publication(program):
    made = program(WITHDRAW)
    made.site("outer", "if self.value", "self.value", "attr_read", "value", F.TEST | F.SPAN_READ)
    made.site("inner", "if self.value", "self.value", "attr_read", "value", F.TEST | F.SPAN_READ, occurrence=2)
    flags = F.GUARD | F.RECHECKED | F.AUGMENTED
    made.site("take", "-=", "self.value", "attr_update", "value", flags, ["outer", "inner"])
    made.site("show", "print", "self.value", "attr_read", "value")
    assert verdict(made, ("take", K.WRITE, LOCKED), ("show", K.READ), owner=Owner(value=3))[1] == "race"


HALF = """
class Program:
    def settings(self):
        if self.made is None:
            with self.lock:
                if self.made is None:
                    self.made = Settings()
                    self.made.value = True
        return self.made

    def start(self):
        if self.settings().value:
            launch()

    def show(self):
        print(self.settings().value)
"""


@pytest.mark.parametrize(("load", "flags", "value"), [
    ("if self.settings()", F.TEST, True), ("print", F.NONE, {}),
])
def test_an_object_that_is_shown_before_it_is_complete(program, load, flags, value):
    made = program(HALF)
    made.site("outer", "if self.made", "self.made", "attr_read", "made", F.TEST | F.SPAN_READ)
    made.site("inner", "if self.made", "self.made", "attr_read", "made", F.TEST | F.SPAN_READ, occurrence=2)
    made.site("show", "= Settings", "self.made", "attr_write", "made", F.GUARD | F.RECHECKED, ["outer", "inner"])
    made.site("late", "= True", "self.made.value", "attr_write", "value", F.CONSTANT if value is True else F.NONE)
    made.site("load", load, "self.settings().value", "attr_read", "value", flags)
    assert verdict(made, ("late", K.WRITE, LOCKED), ("load", K.READ), owner=Owner(value=value))[1] == "race"


def test_a_memo_that_somebody_updates(program):
    made = program(CACHES + "\ndef bump(n):\n    old = cache[n]\n    cache[n] = old + 1\n")
    made.site("check", "if n not in cache", "cache", "contains", "", F.TEST | F.SPAN_READ)
    made.site("act", "cache[n] = slow(n)", "cache[n]", "item_write", "", F.GUARD, ["check"])
    made.site("old", "old =", "cache[n]", "item_read", "", F.SPAN_READ)
    made.site("new", "old + 1", "cache[n]", "item_write", "", F.VALUE, ["old"])
    found = verdict(made, ("act", K.WRITE), ("old", K.READ), owner={7: 49}, part="item", key=7)
    assert found[:2] == ("lost update", "race")


def test_a_caught_failure_excuses_removals_alone(program):
    made = program("def put(k):\n    if k not in jobs:\n        try:\n            jobs[k] = Job()\n"
                   "        except KeyError:\n            pass\n")
    made.site("check", "if k", "k not in jobs", "contains", "", F.TEST | F.SPAN_READ)
    made.site("act", "= Job()", "jobs[k]", "item_write", "", F.GUARD, ["check"])
    act = ("act", K.WRITE, SPAN)
    assert verdict(made, act, ("check", K.READ), owner={"a": Owner()}, part="item", key="a", sort="span")[1] == "race"


POOL = """
class Pool:
    def open(self):
        if self.jobs is None:
            self.jobs = {}
            self.jobs["ready"] = True
            self.ready = 1
        return self.jobs
"""


def test_repair_covers_all_that_the_test_guards(program):
    """Another thread must not see what is stored before it is complete."""
    made = program(POOL)
    made.site("check", "is None", "self.jobs", "attr_read", "jobs", F.TEST | F.SPAN_READ)
    made.site("act", "= {}", "self.jobs", "attr_write", "jobs", F.GUARD, partners=["check"])
    made.tell(("act", K.WRITE), ("check", K.READ), Owner(jobs={}), "attr", "jobs")
    made.handler.finish()
    (race,) = made.report().races
    assert {race.first.lines, race.second.lines} == {(made.line_of("is None"), made.line_of("self.ready = 1"))}


TOLD_EARLY = """
class Box:
    def fill(self):
        {store}

    def empty(self):
        {wait}
        print(self.value)
"""


@pytest.mark.parametrize(("store", "wait", "remedy"), [
    ("self.ready = True; pass\n        self.value = 1", "while not self.ready: pass", Remedy.ORDER),
    ("self.done.set()\n        self.value = 1", "self.done.wait()", Remedy.ORDER),
    ("self.value = 1\n        self.done.set()", "self.done.wait()", None),
    ("self.other.set()\n        self.value = 1", "self.done.wait()", None),
    ("self.ready = False\n        self.value = 1", "while not self.ready: pass", None),
    ("self.done.set()\n        for _ in 'ab': self.value = 1", "self.done.wait()", None),
])
def test_a_store_below_what_announces_it_is_to_be_moved(program, store, wait, remedy):
    made = program(TOLD_EARLY.format(store=store, wait=wait))
    made.site("store", "self.value = 1", "self.value", "attr_write", "value", F.CONSTANT)
    made.site("load", "print", "self.value", "attr_read", "value")
    made.tell(("store", K.WRITE), ("load", K.READ), Owner(), "attr", "value")
    made.handler.finish()
    [race] = made.report().races
    assert (race.kind, race.remedy) == ("unsynchronised read/write", remedy)


CLOSED = """
class Client:
    def beat(self):
        if self.sock is not None:
            self.sock.send(b".")

    def close(self):
        {last_use}
        pass
        self.sock = None
"""


@pytest.mark.parametrize(("last_use", "remedy", "lines"), [
    ("self.sock.close()", None, (8, 10)),
    ("pass", Remedy.LOCAL, (10, 10)),
])
def test_a_local_repairs_no_use_of_what_is_closed_before_it_is_cleared(program, last_use, remedy, lines):
    made = program(CLOSED.format(last_use=last_use))
    test = made.site("test", "if self.sock", "self.sock", "attr_read", "sock", F.TEST | F.RELIES)
    use = made.site("use", "send", "self.sock", "attr_read", "sock", F.RELIES)
    all_sites[use] = all_sites[use]._replace(tests=(test,))
    if last_use != "pass":
        made.site("last", "close()", "self.sock", "attr_read", "sock")
    made.site("clear", "= None", "self.sock", "attr_write", "sock", F.CONSTANT)
    made.tell(("test", K.READ), ("clear", K.WRITE), Owner(sock=3), "attr", "sock")
    made.handler.finish()
    [race] = made.report().races
    assert (race.kind, race.remedy, race.second.lines) == ("check-then-act", remedy, lines)
    assert race.first.lines == (4, 5)
