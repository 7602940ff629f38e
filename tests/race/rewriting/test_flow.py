"""Which reads are partners of which writes: by value, by a test before, and neither."""

import textwrap

import pytest

from gilscope.toolkit.race.terms import Flag
from tests.race.fakes.stub import sites

WRITES = ("attr_write", "attr_store", "attr_update", "attr_proxy", "item_write", "item_proxy", "item_delete",
          "global_write", "global_update", "cell_write", "method", "writes", "dynamic", "size")


def spans(source):
    """Return "read@line -> write@line: flags" of each write with partners."""
    infos = sites(textwrap.dedent(source))
    for info in infos:
        for partner in info.partners:
            assert infos[partner].flags & Flag.SPAN_READ
    return [f"{' '.join(f'{infos[one].text}@{infos[one].line}' for one in info.partners)} -> {info.text}@{info.line}: "
            f"{'|'.join(flag.name for flag in Flag(info.flags) & (Flag.GUARD | Flag.VALUE | Flag.RECHECKED))}"
            for info in infos if info.partners]


def body(text):
    return spans("def f(self, d, q, k, n, lock, acct):\n" + textwrap.indent(textwrap.dedent(text).strip(), "    "))


@pytest.mark.parametrize(("text", "expected"), [
    ("self.n = self.n + 1", ["self.n@2 -> self.n@2: VALUE"]),
    ("d[k] = d.get(k, 0) + 1", ["d@2 -> d[k]@2: VALUE"]),
    ("d[k] = d[k] + 1 if k in d else 1", ["k in d@2 d[k]@2 -> d[k]@2: VALUE"]),
    ("v = self.n\nw = v\nw += 1\nself.n = w", ["self.n@2 -> self.n@5: VALUE"]),
    ("v = self.n\nself.n = n(v)", ["self.n@2 -> self.n@3: VALUE"]),
    ("v, w = self.a, self.b\nself.a = w\nself.b = v", []),
    ("d[0], d[1] = d[1], d[0]", ["d[0]@2 -> d[0]@2: VALUE", "d[1]@2 -> d[1]@2: VALUE"]),
    ("x = self.d[k]\nx.n = x.n + 1", ["x.n@3 -> x.n@3: VALUE"]),
    ("x = self.d[k]\nv = self.d[k].n\nx.n = v", ["self.d[k].n@3 -> x.n@4: VALUE"]),
    ("node = n(k)\nnode.next = self.head\nself.head = node", ["self.head@3 -> self.head@4: VALUE"]),
    ("new = dict(self.d)\nnew[k] = 1\nself.d = new", ["self.d@2 -> self.d@4: VALUE"]),
    ("for _ in q:\n    self.n = v\n    v = self.n", ["self.n@4 -> self.n@3: VALUE"]),
    ("self.users[len(self.users)] = n", ["self.users@2 -> self.users[len(self.users)]@2: VALUE"]),
    ("self.x = self.x or n()", ["self.x@2 -> self.x@2: VALUE"]),
    ("if (v := self.n) > 3:\n    self.n = v - 1", ["self.n@2 -> self.n@3: GUARD|VALUE"]),
    ("v = getattr(self, 'n')\nsetattr(self, 'n', v)", ["getattr(self, 'n')@2 -> setattr(self, 'n', v)@3: VALUE"]),
])
def test_values(text, expected):
    assert body(text) == expected


@pytest.mark.parametrize(("text", "expected"), [
    ("if self.b >= n:\n    self.b -= n", ["self.b@2 -> self.b@3: GUARD"]),
    ("if k not in d:\n    d[k] = n", ["k not in d@2 -> d[k]@3: GUARD"]),
    ("if k in d:\n    return d[k]\nd[k] = n", ["k in d@2 -> d[k]@4: GUARD"]),
    ("if k in d:\n    del d[k]", ["k in d@2 -> d[k]@3: GUARD"]),
    ("if not self.x:\n    self.x = n()", ["self.x@2 -> self.x@3: GUARD"]),
    ("if q:\n    q.pop()", ["q@2 -> q@3: GUARD"]),
    ("if not q:\n    return None\nreturn q.pop()", ["q@2 -> q@4: GUARD"]),
    ("return q.pop() if q else None", ["q@2 -> q@2: GUARD"]),
    ("q and q.pop()", ["q@2 -> q@2: GUARD"]),
    ("while len(q) < n:\n    q.append(k)", ["q@2 -> q@3: GUARD"]),
    ("while not q:\n    pass\nq.pop()", ["q@2 -> q@4: GUARD"]),
    ("if q[0] < n:\n    q.popleft()", ["q@2 -> q@3: GUARD"]),
    ("if k not in q:\n    q.append(k)", ["k not in q@2 -> q@3: GUARD"]),
    ("v = d.get(k)\nif v is None:\n    d[k] = n", ["d@2 -> d[k]@4: GUARD"]),
    ("try:\n    return d[k]\nexcept KeyError:\n    d[k] = n", ["d[k]@3 -> d[k]@5: GUARD"]),
    ("try:\n    return self.x\nexcept AttributeError:\n    self.x = n", ["self.x@3 -> self.x@5: GUARD"]),
    ("try:\n    d[k] += 1\nexcept KeyError:\n    d[k] = 1", ["d[k]@3 -> d[k]@5: GUARD"]),
    ("try:\n    return d[k]\nexcept KeyError:\n    pass\nd[k] = n", ["d[k]@3 -> d[k]@6: GUARD"]),
    ("match self.s:\n    case 1:\n        self.s = 2", ["self.s@2 -> self.s@4: GUARD"]),
    ("assert k in d\nd[k] = 1", ["k in d@2 -> d[k]@3: GUARD"]),
    ("if not hasattr(self, 'x'):\n    self.x = n", ["hasattr(self, 'x')@2 -> self.x@3: GUARD"]),
    ("if 'x' not in self.__dict__:\n    self.x = n", ["'x' not in self.__dict__@2 -> self.x@3: GUARD"]),
    ("if 'x' not in vars(self):\n    self.x = n", ["'x' not in vars(self)@2 -> self.x@3: GUARD"]),
    ("if k not in self.__dict__:\n    self.x = n", []),
    ("ok = self.b >= n\nif ok:\n    self.b -= n", ["self.b@2 -> self.b@4: GUARD"]),
    ("for one in q:\n    if one in d:\n        continue\n    d[one] = 1", ["one in d@3 -> d[one]@5: GUARD"]),
    ("while True:\n    if self.n > 3:\n        break\n    self.n += 1", ["self.n@3 -> self.n@5: GUARD"]),
    ("with lock:\n    if k in d:\n        return\nv = n()\nwith lock:\n    d[k] = v", ["k in d@3 -> d[k]@7: GUARD"]),
])
def test_guards(text, expected):
    assert body(text) == expected


@pytest.mark.parametrize("text", [
    "if self.a:\n    self.b = 1",
    "if k in d:\n    pass\nd[k] = 1",
    "if k in d:\n    q[k] = 1",
    "d[k] = d[n]",
    "v = self.n\nself.m = v",
    "v = self.n\nv = 3\nself.n = v",
    "if d[k]:\n    d[n] = 1",
    "d.setdefault(k, []).append(n)",
    "if k not in d:\n    d.setdefault(k, n)",
    "if k in d:\n    d.pop(k, None)",
    "q.append(k)\nreturn len(q)",
    "self.n = 0\nreturn self.n",
    "for one in list(d):\n    del d[one]",
    "def g():\n    return self.n\nself.n = 1",
    "if lock.acquire(False):\n    lock.release()",
    "n.join()\nif n.is_alive():\n    n.start()",
])
def test_what_does_not_depend_has_no_partners(text):
    assert body(text) == []


def test_the_test_inside_the_lock_is_the_partner():
    assert body("""
        if self.x is None:
            with lock:
                if self.x is None:
                    self.x = n()
    """) == ["self.x@4 -> self.x@5: GUARD|RECHECKED"]
    assert body("""
        if k in d:
            return d[k]
        lock.acquire()
        if k not in d:
            d[k] = n
    """) == ["k not in d@5 -> d[k]@6: GUARD|RECHECKED"]


def test_comparing_what_was_seen_with_what_is_there_looks_again():
    assert body("""
        with lock:
            head = self.q[0]
        with lock:
            if len(self.q) > 0 and self.q[0] is head:
                self.q.popleft()
    """) == ["self.q@5 self.q@5 -> self.q@6: GUARD|RECHECKED"]
    assert body("""
        seen = self.x
        with lock:
            if self.x == seen:
                self.x = n
    """) == ["self.x@4 -> self.x@5: GUARD|RECHECKED"]


def test_what_is_compared_again_under_the_lock_is_not_stale():
    assert body("""
        with lock:
            head = self.q[0]
        with lock:
            if len(self.q) > 0 and self.q[0] is head:
                self.q.popleft()
    """) == ["self.q@5 self.q@5 -> self.q@6: GUARD|RECHECKED"]
    assert body("""
        old = self.n
        new = n(old)
        with lock:
            if self.n == old:
                self.n = new
    """) == ["self.n@5 -> self.n@6: GUARD|RECHECKED"]
    assert body("""
        old = self.n
        with lock:
            if self.n < 3:
                self.n = old + 1
    """) == ["self.n@2 self.n@4 -> self.n@5: GUARD|VALUE"]


def test_the_test_outside_stays_the_partner_where_the_lock_holds_only_the_change():
    assert body("""
        if self.b >= n:
            with lock:
                self.b -= n
    """) == ["self.b@2 -> self.b@4: GUARD"]


def test_taking_all_and_leaving_nothing_is_right_whatever_the_test_outside_saw():
    assert body("""
        if len(self.q) > 9:
            with lock:
                batch, self.q = self.q, []
    """) == ["self.q@4 -> self.q@4: VALUE|RECHECKED"]
    assert body("n = self.c\nq(n)\nself.c = 0") == ["self.c@2 -> self.c@4: VALUE|RECHECKED"]
    assert body("n = list(self.c)\nself.c.clear()") == ["self.c@2 -> self.c@3: VALUE|RECHECKED"]
    assert body("n = self.c[:]\nself.c.clear()") == ["self.c[:]@2 -> self.c@3: VALUE|RECHECKED"]
    assert body("n = self.c\nq(n)\nself.c = None") == []
    assert body("n = self.c[1:]\nself.c.clear()") == []


def test_what_was_taken_in_another_locked_block_may_be_outdated():
    assert body("""
        with lock:
            batch = list(self.c)
        with lock:
            self.c.clear()
    """) == ["self.c@3 -> self.c@5: VALUE"]


ACCOUNT = """
class Account:
    def get(self): return self.balance
    def can(self, n): return self.balance >= n
    def set(self, n): self.balance = n
    def take(self, n): self.balance -= n
    def name(self): return self.title
    @property
    def level(self): return self._level
    @level.setter
    def level(self, n): self._level = n
total = 0
def read(): return total
def write(n):
    global total
    total = n
def f(acct, other, n):
"""


@pytest.mark.parametrize(("text", "expected"), [
    ("acct.set(acct.get() + 1)", ["acct.get -> acct.set: VALUE"]),
    ("v = acct.get()\nacct.set(v + 1)", ["acct.get -> acct.set: VALUE"]),
    ("if acct.can(n):\n    acct.take(n)", ["acct.can -> acct.take: GUARD"]),
    ("if acct.balance > n:\n    acct.take(n)", ["acct.balance -> acct.take: GUARD"]),
    ("if acct.can(n):\n    acct.balance -= n", ["acct.can -> acct.balance: GUARD"]),
    ("acct.level = acct.level + 1", ["acct.level -> acct.level: VALUE", "acct.level -> acct.level: VALUE"]),
    ("write(read() + 1)", ["read -> write: VALUE"]),
    ("acct.set(other.get())", []),
    ("acct.set(len(acct.name()))", []),
    ("acct.set(n)\nreturn acct.get()", []),
])
def test_getters_and_setters(text, expected):
    found = spans(ACCOUNT + textwrap.indent(text, "    "))
    assert ["".join(part.partition("@")[0] + (" -> " if not index else "")
                    for index, part in enumerate(one.rpartition(":")[0].split(" -> "))) + one[one.rindex(":"):]
            for one in found] == expected


def test_variables():
    assert spans("n = 0\ndef f():\n    global n\n    n = n + 1\n") == ["n@4 -> n@4: VALUE"]
    assert spans("n = 0\ndef f():\n    global n\n    n += g()\n") == ["n@4 -> n@4: VALUE"]
    assert spans("n = None\ndef f():\n    global n\n    if n is None:\n        n = 1\n    return n\n") == [
        "n@4 -> n@5: GUARD"]
    assert spans("def f():\n    n = 0\n    def g():\n        nonlocal n\n        if n < 3:\n            n += 1\n") == [
        "n@5 -> n@6: GUARD"]


def test_functions_with_spans_of_two_places_are_entered():
    entered = [info.function for info in sites(
        "class A:\n    def f(self):\n        'doc'\n        if self.n:\n            self.n = 1\n"
        "    def g(self):\n        self.n += 1\n"
        "    def h(self):\n        made = {}\n        made[1] = made.get(1) + 1\n")
        if info.op == "enter"]
    assert entered == ["A.f"]


def uses(text):
    """Return "tests -> use@line" of each read that relies on a test, and "snapshot@line" of each that a local keeps."""
    infos = sites("def f(self, d, k):\n" + textwrap.indent(textwrap.dedent(text).strip(), "    "))
    found = [f"{' '.join(f'{infos[one].text}@{infos[one].line}' for one in info.tests)} -> {info.text}@{info.line}"
             for info in infos if info.tests]
    return found + [f"{info.text}@{info.line}" for info in infos if info.flags & Flag.SNAPSHOT]


@pytest.mark.parametrize(("text", "expected"), [
    ("if self.x is not None:\n    self.x.go()", ["self.x@2 -> self.x@3"]),
    ("if not self.x:\n    return None\nreturn self.x", ["self.x@2 -> self.x@4"]),
    ("while self.x:\n    self.x.go()", ["self.x@2 -> self.x@3"]),
    ("return self.x.go() if self.x else None", ["self.x@2 -> self.x@2"]),
    ("return self.x and self.x > 3", ["self.x@2 -> self.x@2"]),
    ("assert self.x\nself.x[0]", ["self.x@2 -> self.x[0]@3", "self.x@2 -> self.x@3"]),
    ("if k in d:\n    return d[k]", ["k in d@2 -> d[k]@3"]),
    ("if len(d) > 1:\n    return d[-1]", ["d@2 -> d[-1]@3"]),
    ("while d:\n    print(d[0])", ["d@2 -> d[0]@3"]),
    ("if d.get(k):\n    return d[k]", ["d@2 -> d[k]@3"]),
    ("if d[k] != 0:\n    print(1 / d[k])", ["d[k]@2 -> d[k]@3"]),
    ("if getattr(self, 'x', None):\n    self.x.go()", ["getattr(self, 'x', None)@2 -> self.x@3"]),
    ("x = self.x\nif x:\n    self.x.go()", ["self.x@2 -> self.x@4", "self.x@2"]),
])
def test_uses_of_what_was_tested(text, expected):
    assert uses(text) == expected


@pytest.mark.parametrize(("text", "expected"), [
    ("x = self.x\nif x is not None:\n    x.go()", ["self.x@2"]),
    ("if (x := self.x) is not None:\n    x.go()", []),
    ("if self.x:\n    k()\n    x = self.x\n    if x:\n        x.go()", ["self.x@4"]),     # tested again
    ("while not self.x:\n    if self.x is k:\n        break", []),
    ("if self.x:\n    print(self.x, isinstance(self.x, k))", []),
    ("if self.y:\n    self.x.go()", []),
    ("if k in d:\n    return d[self]", []),
    ("if d:\n    return d[1:]", []),
    ("self.x.go()\nif self.x:\n    pass", []),
])
def test_tests_without_a_use(text, expected):
    assert uses(text) == expected


COPIES = """
class App:
    def update(self, n):
        self.config = {{**self.config, "level": n}}
    def show(self, helper):
        seen = self.config
        {use}
"""


@pytest.mark.parametrize(("use", "orders"), [
    ("print(seen['level'])", True),
    ("for name in seen: seen.get(name)", True),
    ("seen['level'] = 3", False),
    ("seen.update(level=3)", False),
    ("seen |= helper", False),
    ("helper(seen)", False),
    ("helper.one = seen", False),
    ("return seen", False),
])
def test_a_copy_put_in_place_orders_loads_if_nobody_changes_what_he_loaded(use, orders):
    [store] = [info for info in sites(COPIES.format(use=use)) if info.op == "attr_write" and info.key == "config"]
    assert store.flags & Flag.VALUE
    assert bool(store.flags & Flag.NEW) is orders


@pytest.mark.parametrize("store", ["[*self.a, 1]", "(*self.a, 1)", "self.a + [1]", "self.a | {1}", "list(self.a)"])
def test_what_is_a_new_object(store):
    source = f"class C:\n    def f(self):\n        self.a = {store}"
    [found] = [info for info in sites(source) if info.op == "attr_write"]
    assert found.flags & Flag.NEW
