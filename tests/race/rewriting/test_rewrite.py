"""Which accesses become operations, and that what the program means stays: construct by construct."""

import ast
import contextlib
import inspect
import io
import sys
import textwrap
import traceback
import warnings

import pytest

from gilscope.toolkit.race.loading.hook import link
from gilscope.toolkit.race.rewrite import compile_rewritten, rewrite
from gilscope.toolkit.race.site import OP_PREFIX
from gilscope.toolkit.race.terms import Flag
from tests.race.fakes.stub import StubCore, in_builtins, run, shown, sites


def flags_of(source, op):
    return [Flag(info.flags) for info in sites(source) if info.op == op]


def function(body, head="def f(self, x, d, q):"):
    return f"{head}\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"


# What becomes an operation.

@pytest.mark.parametrize(("body", "expected"), [
    ("return self.a", ["attr_read self.a"]),
    ("self.a = x", ["attr_write self.a"]),
    ("self.a += 1", ["attr_update self.a"]),
    ("self.a += x()", ["attr_proxy self.a"]),
    ("del self.a", ["attr_write self.a"]),
    ("self.a.b = 1", ["attr_write self.a.b", "attr_read self.a"]),
    ("d[x] = 1", ["item_write d[x]"]),
    ("d[x] += 1", ["item_proxy d[x]"]),
    ("del d[x]", ["item_delete d[x]"]),
    ("d[x], self.a = 1, 2", ["item_proxy d[x]", "attr_write self.a"]),
    ("x = d[x] = 1", ["item_proxy d[x]"]),
    ("return d[1:x]", ["item_read d[1:x]"]),
    ("for self.a in x: pass", ["iterate x", "attr_write self.a"]),
    ("with x as self.a: pass", ["attr_write self.a"]),
    ("d.append(x)", ["method d"]),
    ("x.other()", []),
    ("return sum(d)", ["iterate d"]),
    ("return [y for y in d]", ["iterate d"]),
    ("return next(d)", ["advance d"]),
    ("return getattr(d, 'n')", ["dynamic getattr(d, 'n')"]),
    ("return list(d)", ["size d"]),
    ("import heapq; return heapq.merge(d, q, key=x)", ["iterate d", "iterate q"]),
    ("a, b = d", ["size d"]),
    ("a = self.a\na += x", ["attr_read self.a", "size a"]),
    ("d |= {x}", ["size d"]),
    ("x += 1\na = 'a'\na += x", []),
    ("a = [x]\na += [x]\nreturn len(a)", []),
    ("return x(*d)", ["size d"]),
    ("match self.a:\n    case 1: pass", ["attr_read self.a"]),
    ("return f'{self.a}'", ["attr_read self.a"]),
    ("return (y := self.a)", ["attr_read self.a"]),
    ("return d.__setitem__(1, x)", ["item_proxy d.__setitem__(1, x)"]),
])
def test_accesses_become_operations(body, expected):
    assert shown(function(body)) == expected


def locked(source):
    """Return the arguments of each op for locks in the rewritten source, as text."""
    calls = [node for node in ast.walk(rewrite(source, "program.py")[0]) if isinstance(node, ast.Call)
             and isinstance(node.func, ast.Name) and node.func.id == f"{OP_PREFIX}locking"]
    return [", ".join(map(ast.unparse, node.args)) for node in calls]


@pytest.mark.parametrize(("source", "expected"), [
    ("def f(lock):\n    with lock: pass", ["lock"]),
    ("def f(lock):\n    with lock as a, lock.b() as c: pass", ["lock", "lock.b()"]),
    ("def f(lock):\n    lock.acquire(timeout=1)\n    lock.release()", ["lock, 'acquire'", "lock, 'release'"]),
    ("def f(stack, lock):\n    stack.enter_context(lock)", ["lock"]),
    ("from shop import LOCK\ndef f():\n    with LOCK: pass", ["LOCK"]),
    ("import fastrlock\nL = fastrlock.rlock.FastRLock()\nwith L: pass", ["L"]),
    ("import threading\nL = threading.Lock()\nL = given\nwith L: pass", ["L"]),
    ("import threading\nL = threading.Lock()\ndef f(L):\n    with L: pass", ["L"]),
])
def test_context_managers_that_may_be_foreign_locks_have_an_operation(source, expected):
    assert locked(source) == expected


@pytest.mark.parametrize("source", [
    "import threading\nL = threading.Lock()\nwith L: L.acquire()",
    "import threading\nclass C:\n  def __init__(self): self.l = threading.Lock()\n  def f(self):\n    with self.l: 1",
    "from threading import Lock as Made\nclass C: lock = Made()\nC.lock.release()",
    "with open('f') as file: pass",
    "import contextlib\nwith contextlib.suppress(OSError): pass",
    "async def f(lock):\n    async with lock: pass",
    "def f(lock): lock.locked()",
])
def test_locks_that_the_library_makes_have_none(source):
    assert locked(source) == []


@pytest.mark.parametrize("body", [
    "return x + 1",
    "import os\nreturn os.path.sep, os.environ",
    "return self.__class__, self.__dict__",
    "return [1, 2][0], (1, 2)[x], {1: 2}[x]",
    "counts = {}\nfor word in x.split():\n    counts[word] = counts.get(word, 0) + 1\nreturn counts",
    "made = []\nmade.append(x)\nmade[0] += 1\nreturn sorted(made), len(made)",
    "for i in range(3): pass",
    "return super().a",
    "y: list[int] = x",
])
def test_what_nobody_shares_becomes_none(body):
    assert shown(function(body)) == []


@pytest.mark.parametrize("body", [
    "made = []\nself.made = made\nmade.append(x)",
    "made = []\nx(made)\nmade.append(x)",
    "made = d\nmade.append(x)",
    "made = []\nq.append(made)\nmade.append(1)",
    "made = []\nwork = lambda: made.append(1)\nmade.append(1)",
    "made = []\nyield made\nmade.append(1)",
    "made = {}\nother = made.items()\nx(other)\nmade.update(a=1)",
])
def test_a_local_container_that_escapes_is_reported(body):
    assert any(one in ("method made", "item_write made") for one in shown(function(body)))


def test_second_read_without_a_call_between_needs_no_operation():
    assert shown(function("return self.a + self.a")) == ["attr_read self.a"]
    assert shown(function("return self.a + x() + self.a")) == ["attr_read self.a"] * 2
    assert shown(function("y = self.a\nself = x\nreturn self.a")) == ["attr_read self.a"] * 2
    assert shown(function("y = self.a\nself.a = 1\nreturn self.a")) == ["attr_read self.a", "attr_write self.a",
                                                                        "attr_read self.a"]
    assert shown(function("y = x and self.a\nreturn self.a")) == ["attr_read self.a"] * 2


def test_a_constructor_reports_nothing_until_the_object_escapes():
    source = """
class Account:
    def __init__(self, owner):
        self.owner = owner
        self.balance = 0
        REGISTRY.append(self)
        self.ready = True
"""
    assert shown(source) == ["method REGISTRY", "attr_write self.ready"]
    assert [Flag.INIT in Flag(info.flags) for info in sites(source)] == [False, True]


@pytest.mark.parametrize(("source", "expected"), [
    ("total = 0\ndef f():\n    global total\n    total += 1\n", ["global_write total", "global_update total"]),
    ("limit = 3\ndef f():\n    return limit\n", []),
    ("limit = 3\nlimit = 4\ndef f():\n    return limit\n", ["global_write limit"] * 2 + ["global_read limit"]),
    ("try:\n    import json\nexcept ImportError:\n    json = None\ndef f():\n    return json\n", []),
    ("if 1:\n    limit = 3\nelse:\n    limit = 4\ndef f():\n    return limit\n", []),
    ("sum = 0\ndef f():\n    global sum\n    sum = sum + g()\n", ["global_write sum", "global_read sum",
                                                                  "global_write sum"]),
    ("def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += 1\n    return g\n", ["cell_write n",
                                                                                               "cell_update n"]),
    ("def f():\n    n = 0\n    return lambda: n\n", []),
    ("def f():\n    for i in x:\n        call(lambda: i)\n", ["iterate x", "cell_write i", "cell_read i"]),
])
def test_variables_that_change_are_watched(source, expected):
    assert [one for one in shown(source) if not one.startswith("enter")] == expected


def test_private_names_are_mangled_in_sites():
    source = "class Box:\n    def f(self):\n        self.__n += 1\n        return self.__n__\n"
    assert [info.key for info in sites(source)] == ["_Box__n"]


def test_sites_know_their_place():
    (info,) = sites("def f(x):\n    y = (1 +\n         x.long_name)\n", path="some/file.py")
    assert (info.path, info.line, info.column, info.end_line, info.end_column) == ("some/file.py", 3, 9, 3, 20)
    assert (info.function, info.text) == ("f", "x.long_name")


def test_a_comment_on_any_line_of_the_statement_suppresses():
    source = "def f(x):\n    y = (x.a +   # race: ok counted twice\n         x.b)\n    return x.c\n"
    assert [info.note for info in sites(source)] == ["counted twice", "counted twice", None]
    assert [info.note for info in sites("def f(x):\n    x.a = '# race: ok no comment'\n")] == [None]


# Flags.

@pytest.mark.parametrize("target", ["self.total", "self.totals['a//=b']", "total"])
@pytest.mark.parametrize("operator", ["+=", "-=", "*=", "@=", "/=", "//=", "%=", "**=", "<<=", ">>=", "|=", "^=", "&="])
@pytest.mark.parametrize("value", ["1", "self.next()"])
def test_an_augmented_assignment_has_its_operator(target, operator, value):
    source = f"total = 0\ndef f(self):\n    global total\n    {target} {operator} {value}  # was <>="
    assert {info.operator for info in sites(source) if info.flags & Flag.AUGMENTED} == {operator}
    assert {info.operator for info in sites(source) if not info.flags & Flag.AUGMENTED} <= {""}


def test_flags_say_what_stands_around():
    assert flags_of(function("while self.go: pass"), "attr_read") == [Flag.TEST | Flag.POLL]
    assert flags_of(function("if self.go: pass"), "attr_read") == [Flag.TEST]
    assert flags_of(function("self.go = False"), "attr_write") == [Flag.CONSTANT]
    assert flags_of(function("self.a, self.b = x"), "attr_write") == [Flag.MULTI] * 2
    assert flags_of(function("self.a = x\nself.b = d"), "attr_write") == [Flag.MULTI] * 2
    assert flags_of(function("d[x] = hash(x)"), "item_write") == [Flag.MEMO]
    assert flags_of(function("d[x] = self"), "item_write") == [Flag.NONE]
    assert flags_of(function("return d['k'], d[x]"), "item_read") == [Flag.EXPECTED, Flag.NONE]


@pytest.mark.parametrize(("head", "expected"), [
    ("with q:", True), ("with suppress(KeyError):", False), ("with contextlib.suppress(KeyError):", False),
    ("with suppress(OSError):", True),
])
def test_load_in_what_handles_its_failure_is_not_taken_for_sure(head, expected):
    assert flags_of(function(f"{head}\n    d['k']\nd['l']"), "item_read") == [Flag.EXPECTED * expected, Flag.EXPECTED]
    for kinds in ("KeyError", "(OSError, LookupError)"):
        handled = f"try:\n    d['k']\nexcept {kinds}:\n    d['l']"
        assert flags_of(function(handled), "item_read") == [Flag.NONE, Flag.EXPECTED]


# The program's meaning.

TEXTS = """
### augmented targets once
log = []
def at(n):
    log.append(n)
    return n
d = {1: [0]}
d[at(1)][at(0)] += at(5)
result = d, log
### in-place operators
a = b = [1]
class C: pass
c = C()
c.x = a
c.x += [2]
d = {0: a}
d[0] += [3]
result = a, b
### docstrings
'''module'''
from __future__ import annotations
def f():
    '''doc'''
    global n
    n = 1
class C:
    '''klass'''
    def m(self) -> undefined:
        '''meth'''
        self.x = self.y = 1
result = __doc__, f.__doc__, C.__doc__, C.m.__doc__, C.m.__annotations__
### super and class cell
class A:
    def f(self): return 1
class B(A):
    def f(self):
        self.x = __class__.__name__
        return super().f() + 1, self.x
result = B().f()
### mangling
class A:
    def __init__(self): self.__x = 1
    def f(self):
        self.__x += 1
        self.__x += int('1')
        return self.__x
a = A()
result = a.f(), vars(a)
### locals
def f():
    n = 0
    def g():
        nonlocal n
        n += 1
        return sorted(locals())
    return g(), sorted(locals()), sorted(vars()), dir()[:1]
result = repr(f()).replace('function', '')[:60]
### chained comparison
class C: a = 1
c = C()
result = 0 < c.a < 2, 1 in [1] in [[1]], 1 not in {c.a: 2}
### star targets
class C: pass
c = C()
c.d = {}
a, *c.d['r'], c.x = range(5)
result = a, c.d, c.x
### generators
class C: n = 0
def g(c):
    while c.n < 3:
        c.n += yield c.n
c = C()
it = g(c)
result = [next(it), it.send(2), next(it, c.n) if 0 else None]
### delete
class C: pass
c = C()
c.x = c.y = 1
d = {1: 2, 2: 3}
n = 1
def f():
    global n
    del n, d[1], c.x
f()
result = d, vars(c), 'n' in globals()
### match
class P:
    __match_args__ = ('x',)
    def __init__(self, x): self.x = x
def f(p):
    global seen
    match p.x:
        case [1, *seen]: return seen
        case P(x=seen) if p.x.x: return seen
        case {'k': v, **rest}: return v, rest
result = f(P([1, 2])), f(P(P(3))), f(P({'k': 1, 'j': 2}))
### walrus
def f(x):
    global n
    if (n := x + 1) > 1 and [m := n for _ in 'a']:
        return n, m
result = f(1)
### except star
def f():
    global caught
    try:
        raise ExceptionGroup('g', [ValueError(1), KeyError(2)])
    except* ValueError as caught:
        a = repr(caught)
    except* KeyError as caught:
        return_ = repr(caught)
    return a, return_
result = f()
### async
import asyncio
class C: n = 0
async def f(c):
    async with asyncio.Lock():
        c.n += 1
    return [c.n async for _ in g(c)]
async def g(c):
    c.n = c.n + 1
    yield c.n
result = asyncio.run(f(C()))
### static attributes
class A:
    def f(self):
        self.x = 1
        self.__y += 1
    def g(self):
        def h(): self.z = 1
result = sorted(getattr(A, '__static_attributes__', ()))
### decorators and defaults
class C: n = 3
def deco(f): return lambda *a: (f(*a), C.n)
c = C()
@deco
def f(a=c.n, *, b=c.n): return a + b
result = f()
### class bodies
n = 1
def f():
    global n
    n = 2
    class A:
        n = n + 1
        d = {n: 1}
        d[n] += 1
        m = [x for x in d]
        g = lambda self: n
    return A.n, A.d, A.m, A().g()
result = f()
### type parameters
type Pair[T] = tuple[T, T]
class Box[T]:
    def get[S](self, x: S) -> S:
        self.x = x
        return self.x
result = Box[int]().get(1), Pair.__value__.__args__ is not None
### truth once
class C:
    n = 0
    def __bool__(self):
        C.n += 1
        return C.n < 3
class D: c = C()
d = D()
while d.c: pass
result = C.n
### nested owners
def f():
    n = 0
    def g():
        m = 0
        def h():
            nonlocal n, m
            n += 1
            m += 2
            return n, m
        return h
    return g()(), g()(), n
result = f()
### order of a store
log = []
class C:
    def __getattr__(self, n):
        log.append(n)
        return self
    def __setitem__(self, k, v): log.append((k, v))
def v(n):
    log.append(n)
    return n
c = C()
c.a[v(1)] = v(2)
result = log
### named like builtins
def sum(x): return type(x).__name__
len = repr
result = sum([1]), len([2])
### setdefault names
d = {}
result = d.setdefault('a', []).append(1), d, getattr(d, 'no', 5), hasattr(d, 'pop')
"""
PROGRAMS = dict(part.split("\n", 1) for part in TEXTS.split("\n### ")[1:])


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_means_the_same(name):
    plain = {"__name__": "program"}
    exec(compile(PROGRAMS[name], "program.py", "exec", dont_inherit=True), plain)
    assert repr(run(PROGRAMS[name])[0]["result"]) == repr(plain["result"])


@pytest.mark.skipif(sys.version_info < (3, 14), reason="t-strings came with 3.14")
def test_template_strings_keep_their_text():
    result = run("class C: a = 1\nc = C()\nresult = t'{c.a!r:>3}'\n")[0]["result"]
    assert [(one.value, one.expression, one.conversion) for one in result.interpolations] == [(1, "c.a", "r")]


@pytest.mark.parametrize("source", [
    "def f(x):\n    return x.a + (\n        x.missing.b)\nclass C: a = 1\nf(C())\n",
    "d = {}\nd['a']['b'] = 1\n",
    "d = []\nd[\n    3\n] = 1\n",
    "class C: __slots__ = ()\nc = C()\nif not getattr(c, 'x', 0):\n    c \\\n        .x = 1\n",
    "class C: __slots__ = ()\nc = C()\ndef f(c):\n    if hasattr(c, 'x'):\n        return\n    c.x = 1\nf(c)\n",
    "def f():\n    global n\n    n += 1\nf()\n",
    "def f():\n    def g():\n        nonlocal n\n        n += 1\n    g()\n    n = 1\nf()\n",
    "del {}['a'], [][0]\n",
    "d = {}\nd['x'] += 1\n",
    "a, b = 1\n",
    "for x in 3: pass\n",
    "def f(q):\n    if q:\n        q.pop(1, 2, 3)\nf([1])\n",
    "x = 1\nx.append(2)\n",
])
def test_tracebacks_point_to_the_same_places(source):
    def raised(execute):
        try:
            execute()
        except Exception as error:  # noqa: BLE001  whatever it is
            found = traceback.TracebackException.from_exception(error)
            return type(error), str(error), [(frame.lineno, frame.end_lineno, frame.colno, frame.end_colno, frame.name)
                                             for frame in found.stack if frame.filename == "program.py"]
        return None

    plain = raised(lambda: exec(compile(source, "program.py", "exec", dont_inherit=True), {}))
    assert plain is not None
    assert raised(lambda: run(source)) == plain


@pytest.mark.parametrize("source", [
    "x = 'a' is 1\n", "assert (1, 'always')\n", "x = [1][1, 2]\n", "x = 1[0]\n", "x = ()()\n", "'\\d'\n",
    "def f():\n    try:\n        pass\n    finally:\n        return 1\n", "x = {1}[0]\n",
])
def test_warnings_of_the_compiler_are_the_same(source):
    def warned(compiling):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            compiling(source, "program.py")
        return [(one.category, str(one.message), one.lineno) for one in caught]

    assert warned(compile_rewritten) == warned(lambda text, path: compile(text, path, "exec", dont_inherit=True))


def test_lines_and_sources_of_functions_stay(tmp_path):
    source = "import os\n\n@staticmethod\ndef f(x):\n    'doc'\n    if not x.a:\n        x.a = 1\n    return x\n"
    path = tmp_path / "module.py"
    path.write_text(source)
    namespace, _ = run(source, path=str(path))
    made = namespace["f"].__func__
    assert (made.__code__.co_firstlineno, made.__code__.co_varnames) == (3, ("x",))
    assert inspect.getsource(made) == source.partition("\n\n")[2]


def test_doctests_run(tmp_path):
    import doctest
    source = "def f(x):\n    '''\n    >>> f([1])\n    [1, 1]\n    '''\n    x.append(1)\n    return x\n"
    namespace, _ = run(source)
    with in_builtins(StubCore()), contextlib.redirect_stdout(io.StringIO()):
        examples = doctest.DocTestFinder().find(namespace["f"], "f", globs=namespace)
        assert [doctest.DocTestRunner().run(example).failed for example in examples] == [0]


def test_a_tree_can_be_given_and_free_variables_kept():
    source = "def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += 1\n    return g\n"
    code, infos = compile_rewritten(ast.parse(source), "program.py", cells=False)
    namespace = {}
    exec(link(code, infos, StubCore()), namespace)
    assert namespace["f"]().__code__.co_freevars == ("n",)
    assert infos == []
