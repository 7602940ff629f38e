"""Programs under `gilscope race` do what they do under Python: the same output, and the same exit code."""

import functools
import os
import random
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.conformance.builds import ROOT, builds
from tests.conftest import SEED
from tests.patience import PATIENCE

pytestmark = pytest.mark.newest

BUILDS = builds()
FULL = os.environ.get("GILSCOPE_FAULTS") == "full"

# What one program prints, exits with or asks about itself; none of it may show the checker.
SMALL = {
    "closed": """
        import os, sys
        print(sys.stdin is None, sys.stdout is None, sys.stderr is None, file=open("seen", "w"))
        for number in range(3):
            try: print(os.fstat(number).st_rdev, os.get_inheritable(number), file=open("seen", "a"))
            except OSError as error: print(error, file=open("seen", "a"))
        """,
    "names": """
        import builtins
        print(dir(), dir(builtins), sorted(globals()), __name__, __doc__, __spec__, __package__)
        print([name for name in builtins.__dir__() if ":" in name])
        """,
    "recursion": """
        import sys
        def deep(n):
            try: return deep(n + 1)
            except RecursionError: return n
        print(deep(0), sys.getrecursionlimit())
        sys.setrecursionlimit(400)
        print(deep(0))
        def forever(): return forever()
        forever()
        """,
    "arguments": """
        import sys
        print(sys.argv, sys.flags, sys.orig_argv[1:], sys.path[0] == __file__.rpartition("/")[0], sys.executable)
        """,
    "exit": "import sys; sys.exit(7)",
    "exit with words": "import sys; sys.exit('words')",
    "exit in a thread": """
        import threading, sys
        thread = threading.Thread(target=sys.exit, args=(3,)); thread.start(); thread.join()
        """,
    "exception": """
        class Wrong(Exception): pass
        def f(number):
            try: 1 / number
            except ZeroDivisionError as error: raise Wrong("no") from error
        f(0)
        """,
    "exception group": "raise ExceptionGroup('all', [ValueError(1), TypeError(2)])",
    "exception in a thread": """
        import threading
        def fail(): raise LookupError("gone")
        thread = threading.Thread(target=fail, name="t"); thread.start(); thread.join()
        """,
    "syntax error": "def f(:\n    pass\n",
    "exit handlers": """
        import atexit
        for number in range(3): atexit.register(print, number)
        class Late:
            def __del__(self): print("late")
        late = Late()
        """,
    "hook": """
        import sys
        sys.excepthook = lambda kind, error, trace: print(kind, error, trace.tb_lineno)
        1 / 0
        """,
    "signal": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "fork": """
        import os, sys
        if child := os.fork(): print(os.waitpid(child, 0)[1])
        else: os._exit(5)
        """,
    "input": "print([line for line in open(0)])",
    "frames": """
        import sys, inspect, traceback
        def f(): return [each.function for each in inspect.stack()]
        print(f(), sys._getframe().f_back)
        traceback.print_stack()
        """,
    "locals": """
        def f(a, b=2):
            c = a + b
            def g(): return c
            return sorted(locals()), g()
        print(f(1), sorted(vars()))
        class A: x = 1; y = [x for _ in range(2)]
        print(sorted(vars(A)))
        """,
    "generators": """
        def g():
            got = yield 1
            while got: got = yield got * 2
            return "end"
        one = g(); print(next(one), one.send(3))
        try: one.send(0)
        except StopIteration as stop: print(stop.value)
        def outer(): return (yield from g())
        print(list(outer()))
        """,
    "asyncio": """
        import asyncio
        async def one(n):
            await asyncio.sleep(0)
            return n
        async def main():
            async with asyncio.TaskGroup() as group: tasks = [group.create_task(one(n)) for n in range(3)]
            return [task.result() for task in tasks], [n async for n in numbers()]
        async def numbers():
            for n in range(3): yield n
        print(asyncio.run(main()))
        """,
    "matching": """
        def f(what):
            match what:
                case {"a": [x, *rest], **others}: return x, rest, others
                case (int() | float()) as number if number > 2: return number
                case str(text): return text
        print(f({"a": [1, 2, 3], "b": 4}), f(3), f("s"), f(None))
        """,
    "classes": """
        import dataclasses, enum, functools
        @dataclasses.dataclass(order=True, slots=True)
        class Point:
            x: int; y: int = 0
        class Colour(enum.Flag): RED = enum.auto(); BLUE = enum.auto()
        class Meta(type):
            def __prepare__(name, bases, **_): return {"made": name}
            def __new__(cls, name, bases, names, **_): return super().__new__(cls, name, bases, dict(names))
        class C(metaclass=Meta):
            made += "!"
            @functools.cached_property
            def slow(self): return 7
            def __getattr__(self, name): return name
            def __private(self): return "p"
            def call(self): return self.__private()
        print(Point(1) < Point(2), Colour.RED | Colour.BLUE, C.made, C().slow, C().other, C().call())
        """,
    "evaluated": """
        names = {}
        exec("x = 1\\ndef f(): global x; x += 1; return x", names)
        print(names["f"](), eval("[x for x in range(3)]"), sorted(names))
        print(eval("y + 1", {}, {"y": 2}))
        """,
    "warnings": "import warnings; warnings.warn('old', DeprecationWarning); print(1 is 1)",
    "pickle": """
        import pickle, copy
        class A:
            def __init__(self): self.x = [1]
            def __reduce__(self): return A, ()
        print(pickle.loads(pickle.dumps(A())).x, copy.deepcopy(A()).x, pickle.dumps(print))
        """,
}
REDIRECTED = {"closed": ((), ("1",), ("0",), ("2",), ("0", "1", "2"))}
FIXED = sorted((ROOT / "tests" / "corpus" / "races").glob("*/*/fixed.py"))
# Of the standard library's own: quick ones that want neither a network nor their own folder.
LIBRARY = [
    "abc", "binop", "bisect", "bool", "colorsys", "compare", "complex", "contains", "copy", "copyreg",
    "decorators", "defaultdict", "deque", "dictcomps", "dictviews", "difflib", "dynamicclassattribute",
    "enumerate", "eof", "errno", "exception_hierarchy", "exception_variations", "extcall", "filter", "fnmatch",
    "fractions", "funcattrs", "functools", "generator_stop", "genericalias", "genexps", "getopt", "glob",
    "graphlib", "hash", "heapq", "html", "htmlparser", "index", "int_literal", "isinstance", "iter", "keyword",
    "keywordonlyarg", "list", "listcomps", "math_property", "named_expressions", "numeric_tower", "opcodes",
    "operator", "ordered_dict", "pkgutil", "positional_only_arg", "pow", "pprint", "property", "pstats",
    "queue", "raise", "range", "reprlib", "sched", "setcomps", "shelve", "shlex", "slice", "stat", "string",
    "stringprep", "structseq", "textwrap", "thread", "threading_local", "timeit", "tuple", "types",
    "type_params", "unary", "unpack", "unpack_ex", "userdict", "userlist", "userstring", "weakset", "with",
    "zipapp",
]
# What is another under the checker, and why.  Of these as many tests have to run.
EXCEPTIONS = {
    "queue": "an object that the collector ends puts into a SimpleQueue, too; which of two items comes first depends "
             "on when it runs, and so on what else is made",
    "thread": "66: its Barrier looks at `waiting` in one hold of its lock and changes it in another; and it prints "
              "random times",
    "types": "a method of SimpleQueue is no built-in one, since its order is followed; the test asks for its type",
}


def chosen(name, cases, number):
    """Return some cases by the suite's seed, or all where everything is asked for."""
    return sorted(cases) if FULL else sorted(random.Random(f"{SEED} {name}").sample(sorted(cases), number))


@functools.cache
def make_core(python):
    """Have the core of a build, as to compile it for over ten seconds is said on the standard error."""
    subprocess.run([sys.executable, "-m", "gilscope", "race", "--build", f"b={python}", "-m", "this"], cwd=ROOT,
                   capture_output=True, timeout=PATIENCE, check=True)


def both(python, folder, *words, closed=(), **options):
    """Run a program under Python and under the checker; return what each showed of itself."""
    make_core(python)
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0", "PYTHON_COLORS": "0"}
    found = []
    for command in ([python], [sys.executable, "-m", "gilscope", "race", "--build", f"b={python}"]):
        own = environ if command[1:] else {key: each for key, each in environ.items() if key != "PYTHONPATH"}
        line = " ".join(f"{number}{'<' if number == '0' else '>'}&-" for number in closed)
        done = subprocess.run(
            ["/bin/sh", "-c", f'exec "$@" {line}', "sh", *command, *words], cwd=folder, capture_output=True, text=True,
            timeout=PATIENCE, check=False, env=own, **{"input": "a line\n", **options})
        seen = folder / "seen"
        found.append((done.returncode, plain(done.stdout), plain(done.stderr), seen.exists() and seen.read_text()))
    return found


def plain(text):
    """Return what a program printed without what is another each time: times and addresses."""
    return re.sub(r"0x[0-9a-f]+|\d+\.\d+ ?m?s", "#", text)


@pytest.mark.sample(10)
@pytest.mark.parametrize("label", BUILDS)
@pytest.mark.parametrize("name", SMALL)
def test_small_program_does_the_same(name, label, tmp_path):
    (tmp_path / "program.py").write_text(textwrap.dedent(SMALL[name]).lstrip())
    for closed in REDIRECTED.get(name, ((),)):
        expected, got = both(BUILDS[label], tmp_path, "program.py", "one", "-x", closed=closed)
        if expected[0] < 0:   # ended by a signal: we say so, as a shell does
            expected, got = (128 - expected[0], expected[1]), got[:2]
        assert got == expected


@pytest.mark.slow
@pytest.mark.parametrize("label", BUILDS)
@pytest.mark.parametrize("path", chosen("fixed", FIXED, 12), ids=lambda path: path.parent.name)
def test_program_with_threads_does_the_same(path, label, tmp_path):
    expected, got = both(BUILDS[label], path.parent, path.name)
    assert got == expected
    if "No module named 'numpy'" in expected[2]:
        pytest.skip(f"{label} has no NumPy")
    assert got[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("label", BUILDS)
@pytest.mark.parametrize("name", chosen("library", LIBRARY, 12))
def test_tests_of_the_standard_library_do_the_same(name, label, tmp_path):
    python = BUILDS[label]
    source = library(python) / "test" / f"test_{name}.py"
    if not source.exists():
        pytest.skip(f"{label} comes without such tests")
    (tmp_path / source.name).write_bytes(source.read_bytes())
    expected, got = both(python, tmp_path, source.name)
    if name in EXCEPTIONS:
        assert len(ran := {each for text in (got[2], expected[2]) for each in counted(text) if "Ran" in each}) == 1, ran
    else:
        assert (got[0], got[1], counted(got[2])) == (expected[0], expected[1], counted(expected[2])), got[2][-3000:]


@functools.cache
def library(python):
    asked = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"], check=True,
                           capture_output=True, text=True)
    return Path(asked.stdout.strip())


def counted(text):
    """Return what unittest says at the end: how many tests ran, and how they ended."""
    return re.findall(r"^(?:Ran \d+ tests?|OK.*|FAILED.*|FAIL: .*|ERROR: .*)$", re.sub(" in #", "", text), re.MULTILINE)
