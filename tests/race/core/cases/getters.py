"""Cases of getters and setters, whose accesses are spans of their caller."""

from __future__ import annotations

from weakref import ref

from gilscope.toolkit.race.terms import Flag
from tests.race.core.cases.world import Thing

ADD, CHECK = Flag.SPAN_READ, Flag.SPAN_READ | Flag.TEST


def getters(w, flags=Flag.VALUE, inner=Flag.NONE):
    """Return get and set of a locked account, and the sites of a caller that uses both."""
    account, lock = Thing(), w.lock()
    read, write = w.site("inner read", "n"), w.site("inner write", "n", inner, op="attr_write")
    gets = w.site("get", "get", ADD, op="reads")
    sets = w.site("set", "set", flags, partners=("get",), op="writes")

    def get():
        with lock:
            return w.attr_read(account, read).n

    def store(value):
        with lock:
            w.attr_write(account, write).n = value

    def deposit():
        old = w.reads(w.begin(), get(), gets)
        w.writes(w.begin(), store(old + 1), sets)

    return deposit


def case_getter_then_setter(w):
    deposit = getters(w)
    w.run(deposit, deposit)
    found = w.pairs()
    assert ("span", "get>set WRITE", "inner write WRITE") in found
    assert ("span", "inner write WRITE", "get>set WRITE") in found


def case_getter_and_setter_under_one_lock(w):
    deposit, whole = getters(w), w.lock()

    def locked():
        with whole:
            deposit()

    w.run(locked, locked)
    w.clean()


def case_setter_that_looks_for_itself(w):
    for flags, inner in ((Flag.GUARD, Flag.GUARD), (Flag.GUARD, Flag.RECHECKED), (Flag.VALUE, Flag.AUGMENTED),
                         (Flag.VALUE, Flag.VALUE)):
        deposit = getters(w, flags, inner)
        w.run(deposit, deposit)
        assert not [pair for pair in w.pairs() if "get>set WRITE" in pair]


def case_getter_that_stores_itself(w):
    account, lock = Thing(), w.lock()
    read, write = w.site("read", "n"), w.site("write", "n", op="attr_write")
    gets = w.site("get", "get", ADD, op="reads")
    sets = w.site("set", "set", Flag.VALUE, partners=("get",), op="writes")

    def take_number():
        with lock:
            number = w.attr_read(account, read).n
            w.attr_write(account, write).n = number + 1
            return number

    def store(value):
        with lock:
            w.attr_write(account, write).n = value

    def work():
        number = w.reads(w.begin(), take_number(), gets)
        w.writes(w.begin(), store(number), sets)

    w.run(work, work)
    w.clean()


def case_getter_that_claims_something(w):
    """`while (job := scheduler.next_job()) is not None: ...; scheduler.finish(job)`: the first call has acted."""
    lock, ready, unfinished = w.lock(), [1, 2, 3, 4], Thing()
    look, pop = w.site("look", "n"), w.site("pop", "pop", op="method")
    less = w.site("less", "n", Flag.AUGMENTED, op="attr_update")
    gets = w.site("get", "next_job", CHECK, op="reads")
    sets = w.site("set", "finish", Flag.GUARD, partners=("get",), op="writes")

    def next_job():
        with lock:
            assert w.attr_read(unfinished, look).n <= 0
            return w.method(ready, pop).pop()

    def finish():
        with lock:
            w.attr_update(unfinished, less).n -= 1

    def work():
        for _ in range(2):
            if w.reads(w.begin(), next_job(), gets):
                w.writes(w.begin(), finish(), sets)

    w.run(work, work)
    w.clean()


def case_object_that_dies_while_it_is_reported(w):
    """One call has several conflicts; the handler of the first one drops the last reference to the object."""
    account, lock, ending = [Thing()], w.lock(), []
    dies, heard = ref(account[0]), []
    read, write = w.site("inner read", "n"), w.site("inner write", "n", op="attr_write")
    gets = w.site("get", "get", ADD, op="reads")
    sets = w.site("set", "set", Flag.VALUE, partners=("get",), op="writes")

    def hear(conflict):
        heard.append((conflict[0], conflict[1] is dies()))
        if ending:
            account.clear()
        return False

    def get():
        with lock:
            return w.attr_read(account[0], read).n

    def store(value):
        with lock:
            w.attr_write(account[0], write).n = value

    def change():
        old = w.reads(w.begin(), get(), gets)
        yield
        w.writes(w.begin(), (store(old + 1), ending.append(1)), sets)

    w.core.start(hear)
    w.run(change, *[lambda: store(5)] * 3, order="abcda")
    assert heard == [("span", True)] * 3
    assert dies() is None


def case_object_that_died_before_its_report(w):
    """The setter itself drops the last reference; nothing is reported of the dead object, and nothing breaks."""
    account, lock, dies = [], w.lock(), []
    read, write = w.site("inner read", "n"), w.site("inner write", "n", op="attr_write")
    gets = w.site("get", "get", ADD, op="reads")
    sets = w.site("set", "set", Flag.VALUE, partners=("get",), op="writes")

    def get():
        with lock:
            return w.attr_read(account[0], read).n

    def store(value, *, last=False):
        thing = account.pop() if last else account[0]
        with lock:
            w.attr_write(thing, write).n = value
        thing = None

    def change():
        account.append(Thing())     # here: a free-threaded build has an object die in the thread that made it
        dies.append(ref(account[0]))
        old = w.reads(w.begin(), get(), gets)
        yield
        w.writes(w.begin(), store(old + 1, last=True), sets)

    w.run(change, *[lambda: store(5)] * 3, order="abcda")
    assert dies[0]() is None
    w.clean()
