"""Generated programs do the same when rewritten: every dunder call in the same order, the same result or exception."""

import re
import textwrap
import traceback

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gilscope.toolkit.race.loading.hook import link
from gilscope.toolkit.race.rewrite import compile_rewritten
from tests.race.fakes.stub import StubCore, in_builtins

PATH = "program.py"
PRELUDE = '''
class Odd(Exception):
    pass

class Thing:
    """Logs whatever is done to it; now and then it refuses."""
    def __init__(self, name):
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "held", {})
    def note(self, what, *rest):
        LOG.append((self.name, what, *map(SHOWN, rest)))
        if len(LOG) % REFUSES == 0:
            raise (KeyError, AttributeError, ValueError, Odd)[len(LOG) // REFUSES % 4](what)
    def __repr__(self):
        return self.name
    def __getattr__(self, key):
        if key.startswith("__"):
            raise AttributeError(key)
        self.note("getattr", key)
        return self.held.setdefault(key, Thing(f"{self.name}.{key}") if key != "n" else 1)
    def __setattr__(self, key, value):
        self.note("setattr", key, value)
        self.held[key] = value
    def __delattr__(self, key):
        self.note("delattr", key)
        self.held.pop(key, None)
    def __getitem__(self, key):
        self.note("getitem", key)
        return self.held.get(key, 2)
    def __setitem__(self, key, value):
        self.note("setitem", key, value)
        self.held[key] = value
    def __delitem__(self, key):
        self.note("delitem", key)
        self.held.pop(key, None)
    def __contains__(self, key):
        self.note("contains", key)
        return len(LOG) % 2 == 0
    def __bool__(self):
        self.note("bool")
        return len(LOG) % 3 == 0
    def __len__(self):
        self.note("len")
        return len(LOG) % 3
    def __iter__(self):
        self.note("iter")
        return iter([1, 2])
    def __add__(self, other):
        self.note("add", other)
        return self
    def __radd__(self, other):
        self.note("radd", other)
        return self
    def __iadd__(self, other):
        self.note("iadd", other)
        return self
    def __eq__(self, other):
        self.note("eq", other)
        return False
    def __hash__(self):
        return 7
    def __enter__(self):
        self.note("enter")
        return self
    def __exit__(self, *_):
        self.note("exit")
        return len(LOG) % 5 == 0
    def __call__(self, *given):
        self.note("call", *given)
        return self
    def get(self, *given):
        self.note("get", *given)
        return 3
    def append(self, *given):
        self.note("append", *given)
    def update(self, *given):
        self.note("update", *given)
        return self

a, b, shared, other = Thing("a"), Thing("b"), Thing("shared"), Thing("other")
'''
NAMES = ("a", "b", "x", "y", "shared", "other", "cell")
LEAVES = ("0", "1", "'k'", "None", "self_", "(1, 2)", "[]", *NAMES, *NAMES)
# {e}: an expression, {n}: a name, {p}: an attribute, {t}: a target, {s}: a target that is one place, {b}: a block.
EXPRESSIONS = (
    "{n}.{p}", "{n}.p.{p}", "{n}[{e}]", "{n}.p[{e}]", "{n}[{e}:{e}]", "({e} + {e})", "{n}.get({e}, {e})",
    "{n}.p.append({e})", "{n}({e})", "({e} if {e} else {e})", "({e} in {e})", "({e} not in {e})", "({e} == {e})",
    "({e} and {e})", "({e} or {e})", "({e} is {n})", "(not {e})", "(y := {e})", "[{e} for x in {e} if {e}]",
    "sum({e} for x in {e})", "(lambda x={e}: {e})()", "getattr({e}, 'p')", "len({e})", "list({e})", "next(iter({e}))",
    "f'{{{n}!r}}'", "{n}.{p}({e})", "({e} < {e} < {e})", "max({e}, {e})", "{n}.p.q[{e}]",
)
SINGLE = ("{n}", "{n}.{p}", "{n}[{n}]", "{n}.p[{e}]", "{n}[{e}]")
TARGETS = (*SINGLE, "{s}, {s}", "{s}, *{s}", "[{s}, ({s}, {s})]")
SIMPLE = (
    "{t} = {e}", "{t} = {e}", "{s} = {e}", "{t} = {s} = {e}", "{s} += {e}", "{s} += 1", "{n}.{p}: int = {e}",
    "del {s}", "del {s}, {s}", "{e}", "assert {e}, {e}", "return {e}", "setattr({e}, 'p', {e})", "import math as {n}",
    "{s} = {s} + 1", "{s}, {s} = {s}, {s}", "{s} |= {s}",
)
COMPOUND = (
    "if {e}:\n{b}\nelse:\n{b}",
    "if {s}:\n    {s} = {s}",
    # Lists may grow as they are iterated, and double each time.
    "for {t} in {e}:\n    LOG.append(0)\n    if len(LOG) > 15:\n        break\n{b}",
    "while LOG.append(0) or len(LOG) < 15 and {e}:\n{b}",
    "with {e} as {t}, {e}:\n{b}",
    "try:\n{b}\nexcept (KeyError, AttributeError) as {n}:\n{b}\nfinally:\n{b}",
    "try:\n    {e}\nexcept* ValueError as {n}:\n    {s} = {e}",
    "match {e}:\n    case [x, *_] if {e}:\n        {s} = {e}\n    case shared:\n        {s} = {e}",
    "def inner(x=1):\n    'doc'\n{b}\n{n} = inner()",
    "def inner(a=1):\n    nonlocal cell\n{b}\n{n} = inner()",
    "def inner(a=1):\n    global other\n{b}\n{n} = inner",
    "def inner():\n    yield {e}\n{b}\n{n} = list(inner())",
    ("class Inner(object):\n    p = {e}\n    def method(self, x=1):\n        {s} = {e}\n        return {e}\n"
     "{n} = Inner().method()"),
    "async def inner(x=1):\n{b}\ntry:\n    inner().send(None)\nexcept StopIteration as {n}:\n    pass",
)


class Writer:
    """Draws a program."""

    def __init__(self, draw):
        self.draw = draw

    def fill(self, form, depth):
        parts = re.split(r"(\{[a-z]\})", form)
        return "".join(self.part(one[1], depth) if re.fullmatch(r"\{[a-z]\}", one)
                       else one.replace("{{", "{").replace("}}", "}") for one in parts)

    def part(self, what, depth):
        if what == "e":
            return self.expression(depth - 1)
        if what == "b":
            return textwrap.indent(self.block(depth - 1), "    ")
        choices = {"n": NAMES, "p": ("n", "p", "q", "__private"), "s": SINGLE, "t": TARGETS}[what]
        return self.fill(self.draw(st.sampled_from(choices)), depth)

    def expression(self, depth):
        if depth <= 0:
            return self.draw(st.sampled_from(LEAVES))
        return self.fill(self.draw(st.sampled_from(EXPRESSIONS)), min(depth, 2))

    def block(self, depth):
        forms = SIMPLE + COMPOUND if depth > 0 else SIMPLE
        return "\n".join(self.statement(forms, depth) for _ in range(self.draw(st.integers(1, 4))))

    def statement(self, forms, depth):
        text = self.fill(self.draw(st.sampled_from(forms)), depth)
        if self.draw(st.sampled_from([True, True, False])):
            text = f"try:\n{textwrap.indent(text, '    ')}\nexcept Exception as caught:\n    LOG.append(RAISED(caught))"
        return text


@st.composite
def programs(draw):
    declared = draw(st.sampled_from(["global shared", "global shared, other", "'a docstring'"]))
    body = "\n".join([declared, "cell = Thing('cell')", Writer(draw).block(3), "return (x, y, cell, lambda: cell)"])
    method = "def run(self_, x=a, y=b):\n" + textwrap.indent(body, "    ")
    return f"{PRELUDE}\nclass Owner:\n{textwrap.indent(method, '    ')}\nresult = Owner().run()\n"


def outcome(code, refuses):
    """Return all that can be seen of a run."""
    log = []
    namespace = {"__name__": "program", "LOG": log, "REFUSES": refuses, "SHOWN": shown, "RAISED": raised}
    try:
        exec(code, namespace)
        end = ("returned", shown(namespace["result"]))
    except RecursionError:
        return None
    except BaseException as error:  # noqa: BLE001  whatever the program raises has to be the same
        end = raised(error)
    return log, end, {name: shown(value) for name, value in namespace.items() if name in ("shared", "other", "a", "b")}


def raised(error):
    """Return what a traceback shows: type, text, each frame with its line and columns, and where it came from."""
    frames = [(frame.lineno, frame.end_lineno, frame.colno, frame.end_colno, frame.name)
              for frame in traceback.TracebackException.from_exception(error).stack
              if frame.filename == PATH]
    inner = tuple(map(raised, error.exceptions)) if isinstance(error, BaseExceptionGroup) else ()
    return (type(error).__name__, shown(str(error)), frames, error.__context__ and raised(error.__context__), inner)


def shown(value):
    return re.sub(" at 0x[0-9a-fA-F]+", "", repr(value))


def compiled(source):
    try:
        return compile(source, PATH, "exec", dont_inherit=True)
    except SyntaxError:
        return None


@settings(deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))
@given(programs(), st.sampled_from([3, 7, 11, 1000]))
def test_a_rewritten_program_does_the_same(source, refuses):
    plain = compiled(source)
    if plain is None:
        return      # names that may not be declared twice, and the like
    core = StubCore()
    with in_builtins(core):
        rewritten = link(*compile_rewritten(source, PATH), core)
        expected, seen = outcome(plain, refuses), outcome(rewritten, refuses)
    if expected is not None and seen is not None:
        assert seen == expected
