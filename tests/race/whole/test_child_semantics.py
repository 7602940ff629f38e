"""A checked program and the program alone: same output, same errors, same exit status, on every build at hand.

Each case is a small program whose output shows what could go wrong.  All are free of races, so a checked run has
nothing to add.
"""

import itertools
import os
import re
import subprocess
import sys
import textwrap
import zipfile

import pytest

from gilscope.toolkit.user_dirs import cache_dir
from tests.conformance.builds import ROOT
from tests.patience import PATIENCE

pytestmark = pytest.mark.builds("gil", "free")

PROGRAMS = {
    "names": """
        import sys
        for name, value in sorted(globals().items()):
            print(name, type(value).__name__, value if isinstance(value, (str, type(None))) else "")
        print(sys.argv, sys.path, sys.orig_argv[1:], list(sys.flags), sys.warnoptions)
        print(getattr(__loader__, "name", __loader__), sys.modules["__main__"].__dict__ is globals())
        """,
    "caching": """
        import os, sys
        open("other.py", "w").write("x = 1")
        import other
        # Rewritten modules are kept elsewhere, so there may be no __pycache__ where plain Python makes one.
        print(sys.dont_write_bytecode, sys.pycache_prefix, sorted({*os.listdir(".")} - {"__pycache__"}))
        """,
    "docstring": '"""Its own docstring."""\nprint(__doc__, __file__)\n',
    "no_entry_of_ours": """
        import os, sys
        print([entry for entry in sys.path if "gilscope" in entry or "toolkit" in entry], os.listdir("."))
        print(sorted(name for name in os.environ if "GILSCOPE_RACE" in name))
        """,
    "uncaught": """
        def fail(depth):
            if depth:
                return fail(depth - 1)
            raise ValueError("gone wrong")
        fail(2)
        """,
    "chained": """
        try:
            try:
                {}["missing"]
            except KeyError as error:
                raise RuntimeError("no such thing") from error
        except RuntimeError:
            int("x")
        """,
    "exception_group": """
        raise ExceptionGroup("several", [ValueError(1), TypeError(2)])
        """,
    "syntax_error": "print('never')\nx = = 1\n",
    "indentation_error": "if True:\nprint(1)\n",
    "null_byte": "x = '\0'\n",
    "bad_encoding": "# coding: latin-1\nprint('caf\xe9')\n",
    "unknown_encoding": "# coding: no-such-thing\nprint(1)\n",
    "syntax_error_in_import": """
        open("broken.py", "w").write("def f(:\\n")
        import broken
        """,
    "exit_code": "import sys\nsys.exit(7)\n",
    "exit_message": "import sys\nsys.exit('leaving')\n",
    "exit_none": "raise SystemExit\n",
    "exit_large": "raise SystemExit(300)\n",
    "keyboard_interrupt": "raise KeyboardInterrupt\n",
    "os_exit": "import os\nprint('before', flush=True)\nos._exit(5)\n",
    "excepthook": """
        import sys
        def hook(kind, error, trace):
            frames = []
            while trace:
                frames.append((trace.tb_frame.f_code.co_name, trace.tb_lineno))
                trace = trace.tb_next
            print(kind.__name__, error, frames, error.__traceback__ is not None)
        sys.excepthook = hook
        def f():
            raise LookupError("x")
        f()
        """,
    "excepthook_fails": """
        import sys
        def hook(kind, error, trace):
            raise TypeError("hook")
        sys.excepthook = hook
        1 / 0
        """,
    "excepthook_gone": "import sys\ndel sys.excepthook\n1 / 0\n",
    "last_exception": """
        import atexit, sys, traceback
        @atexit.register
        def tell():
            print(type(sys.last_exc).__name__, [f.name for f in traceback.extract_tb(sys.last_traceback)],
                  sys.last_exc.__traceback__ is sys.last_traceback, sys.excepthook is sys.__excepthook__)
        1 / 0
        """,
    "atexit": """
        import atexit, threading
        atexit.register(print, "first registered")
        atexit.register(print, "second registered")
        atexit.register(lambda: print("__file__" in globals()))
        threading.Thread(target=lambda: print("thread")).start()
        """,
    "atexit_fails": """
        import atexit
        @atexit.register
        def fail():
            raise ValueError("at exit")
        """,
    "thread_fails": """
        import threading
        def work():
            raise ValueError("in a thread")
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()
        print("goes on")
        """,
    "threads_outlive_main": """
        import threading
        go = threading.Event()
        def work():
            go.wait()
            print("after main")
        threading.Thread(target=work).start()
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        threading.main_thread()
        go.set()
        """,
    "doctest": '''
        """Shows itself.

        >>> double(4)
        8
        >>> double("a")
        'ab'
        """
        def double(x):
            """Double it.

            >>> double(2)
            4
            """
            return x * 2
        import doctest
        print(doctest.testmod())
        ''',
    "inspect": """
        import inspect
        counter = 0
        class Thing:
            "A thing."
            value = 0
            def bump(self, by=1):
                # a comment
                self.value += by
                return self.value
        def outer():
            total = 0
            def inner():
                nonlocal total
                total += 1
                return total
            return inner
        print(inspect.getsource(Thing.bump), inspect.signature(Thing.bump), inspect.getsource(outer))
        print(inspect.getdoc(Thing), Thing.bump.__code__.co_varnames, Thing.bump.__code__.co_name)
        print(outer.__code__.co_firstlineno, outer.__qualname__, Thing.__module__, inspect.getfile(Thing))
        print(inspect.getmodule(Thing) is __import__("__main__"))
        """,
    "locals": """
        def f(a, b=2):
            c = [a, b]
            def g():
                nonlocal c
                c = c + [1]
                return sorted(locals())
            return sorted(locals()), g(), c
        print(f(1), sorted(vars()), sorted(dir()) == sorted(vars()))
        """,
    "warnings": """
        import warnings
        warnings.warn("from the script", DeprecationWarning)
        def old():
            warnings.warn("old", DeprecationWarning, stacklevel=2)
        old()
        """,
    "syntax_warning": "x = 1\nprint(x is 1)\n",
    "pickle": """
        import pickle
        class Point:
            def __init__(self, x):
                self.x = x
        print(pickle.loads(pickle.dumps(Point(3))).x, Point.__module__)
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
    "multiprocessing": """
        import multiprocessing, sys
        def square(x):
            return x * x
        if __name__ == "__main__":
            print(multiprocessing.current_process().name)
            for method in ("spawn", "forkserver", "fork"):
                context = multiprocessing.get_context(method)
                with context.Pool(1) as pool:
                    print(method, pool.map(square, [1, 2, 3]))
                process = context.Process(target=sys.exit, args=(3,))
                process.start()
                process.join()
                print(process.exitcode)
        """,
    "process_pool": """
        from concurrent.futures import ProcessPoolExecutor
        def square(x):
            return x * x
        if __name__ == "__main__":
            with ProcessPoolExecutor(1) as pool:
                print(list(pool.map(square, range(4))))
        """,
    "fork": """
        import os, sys
        pid = os.fork()
        if pid == 0:
            print("child", flush=True)
            sys.exit(4)
        print("parent", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """,
    "subprocess": """
        import os, subprocess, sys
        print(subprocess.run([sys.executable, "-c", "import sys; print(sys.argv, sys.path[0])", "x"],
                             capture_output=True, text=True).stdout)
        print(sorted(int(each) for each in os.listdir("/proc/self/fd"))[:3] if os.path.exists("/proc/self/fd") else "")
        with open(__file__) as file:
            print(file.fileno())
        """,
    "signals": """
        import os, signal
        def handler(number, frame):
            print("got", number, frame.f_code.co_name)
        signal.signal(signal.SIGUSR1, handler)
        def main():
            os.kill(os.getpid(), signal.SIGUSR1)
        main()
        print([signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)], signal.pthread_sigmask(0, []))
        """,
    "errors_of_signal_handlers": """
        import queue, signal, threading
        class Late(Exception):
            pass
        raised = reached = 0
        def handler(number, frame):
            global raised
            raised += 1
            raise Late
        signal.signal(signal.SIGALRM, handler)
        threading.Thread(target=threading.Event().wait, args=(60,), daemon=True).start()
        for number in range(400):
            event, line = threading.Event(), queue.Queue()    # an error within their methods may leave them locked
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.001 + number % 7 * 1e-5)
                while True:     # CPython's jump back by a condition is outside of the `try`, and handlers run there
                    if raised > number:
                        break
                    event.set(), event.clear(), line.put(1), line.get()
            except Late:
                reached += 1
        print(raised, reached)
        """,
    "asyncio": """
        import asyncio
        async def work(n):
            await asyncio.sleep(0)
            return await asyncio.to_thread(lambda: n + 1)
        async def main():
            return await asyncio.gather(*(work(n) for n in range(3)))
        print(asyncio.run(main()))
        """,
    "pools": """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(2) as pool:
            print(list(pool.map(str, range(3))), pool.submit(len, "four").result())
        """,
    "stdin": "import sys\nprint(repr(sys.stdin.read()), input if False else '')\n",
    "own_packages_with_names_of_our_folders": """
        import os
        for name in ("toolkit", "workloads", "runners", "race", "model", "store", "units", "gilscope_x"):
            os.mkdir(name)   # without a file of its own: any package of that name elsewhere would win
            with open(name + "/own.py", "w") as file:
                file.write("mine = True")
        import toolkit.own, workloads.own, runners.own, race.own, model.own, store.own, units.own, gilscope_x.own
        print(*(module.own.__file__ for module in (toolkit, workloads, runners, race, model, store, units)), sep="\\n")
        """,
    "future_annotations": """
        from __future__ import annotations
        def f(x: undefined) -> nowhere: ...
        print(f.__annotations__)
        """,
    "numpy": """
        try:
            import numpy
        except ImportError:
            print("none")
        else:
            a = numpy.arange(6).reshape(2, 3)
            a[0] += 1
            a[:, 1] = 7
            print(a.tolist())
        """,
    "builtins": """
        import builtins
        print(dir(), dir(builtins), [name for name in builtins.__dir__() if ":" in name])
        """,
    "evaluated": """
        names = {}
        exec("x = 1\\ndef f(): global x; x += 1; return x", names)
        print(names["f"](), eval("[x for x in range(3)]"), sorted(names))
        print(eval("y + 1", {}, {"y": 2}))
        """,
    "exit_in_a_thread": """
        import threading, sys
        thread = threading.Thread(target=sys.exit, args=(3,)); thread.start(); thread.join()
        """,
    "dies_at_exit": """
        class Late:
            def __del__(self):
                print("late")
        late = Late()
        """,
    "task_group": """
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
    "frames": """
        import sys, inspect, traceback
        def f(): return [each.function for each in inspect.stack()]
        print(f(), sys._getframe().f_back)
        traceback.print_stack()
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
    "pdb": """
        import pdb, io
        def f():
            x = 41
            return x + 1
        pdb.Pdb(stdin=io.StringIO("s\\nn\\nn\\np x\\nc\\n"), readrc=False).runcall(f)
        """,
}


# Of what each part of the checker could change one; the others are slow tests.
FAST = {"names", "builtins", "uncaught", "exception_group", "syntax_error", "exit_code", "os_exit", "excepthook",
        "atexit", "thread_fails", "threads_outlive_main", "inspect", "locals", "warnings", "multiprocessing", "fork",
        "signals", "task_group", "pools", "frames", "classes", "recursion"}


def cases(*rows, fast):
    """Return the rows, those that are not in `fast` as slow tests."""
    return [pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=() if row in fast else pytest.mark.slow)
            for row in rows]


GILSCOPE = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from gilscope.toolkit.cli import main; sys.exit(main())"


def write(folder, source):
    encoding = "latin-1" if "latin-1" in source else "utf-8"
    (folder / "script.py").write_bytes(textwrap.dedent(source).lstrip("\n").encode(encoding))


def plain_and_checked(python, words, folder, *, source="", flags="", stdin="some input\n", closing="",
                      prepare=lambda place: None):
    """Run the program alone and checked, each in its own folder; return (stdout, stderr, exit code) of both."""
    results = []
    for checked in (False, True):
        place = folder / ("checked" if checked else "plain") / "project"
        place.mkdir(parents=True)
        write(place, source)
        prepare(place)
        race = [sys.executable, "-c", GILSCOPE, "race", "-q", "--build", f"it={python}", f"--python-args={flags}"]
        command = [*(race if checked else [python, *flags.split()]), *words]
        done = subprocess.run(
            ["/bin/sh", "-c", f'exec "$@" {closing}', "sh", *command], cwd=place, timeout=PATIENCE, input=stdin,
            env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
            capture_output=True, text=True, check=False)
        code = done.returncode if done.returncode >= 0 else 128 - done.returncode   # as a shell says it
        results.append((neutral(done.stdout, place), neutral(done.stderr, place), code))
    return results


def neutral(text, place):
    """Return the text without what differs from run to run."""
    return re.sub(r"0x[0-9a-f]+", "0x", text.replace(str(place), "PLACE").replace(str(place.parent), "PARENT"))


@pytest.mark.parametrize("name", cases(*PROGRAMS, fast=FAST))
def test_program_is_as_without_the_checker(name, python, tmp_path):
    plain, checked = plain_and_checked(python, ["script.py", "one", "--notes"], tmp_path, source=PROGRAMS[name])
    assert checked == plain


@pytest.mark.parametrize("numbers", cases("", "0", "1", "2", "012", fast={"012"}))
def test_closed_streams_stay_closed(numbers, python, tmp_path):
    source = """
        import os, sys
        with open("seen", "w") as seen:
            print(sys.stdin is None, sys.stdout is None, sys.stderr is None, file=seen)
        for number in range(3):
            with open("seen", "a") as seen:
                try: print(os.fstat(number).st_rdev, os.get_inheritable(number), file=seen)
                except OSError as error: print(error, file=seen)
        """
    closing = " ".join(f"{number}{'<' if number == '0' else '>'}&-" for number in numbers)
    plain, checked = plain_and_checked(python, ["script.py"], tmp_path, source=source, closing=closing)
    assert checked == plain
    assert len({(tmp_path / name / "project" / "seen").read_text() for name in ("plain", "checked")}) == 1


@pytest.mark.parametrize("words", [["script.py"], ["-m", "script"], ["."]])
def test_stack_ends_with_the_program(words, python, tmp_path):
    source = """
        import faulthandler, inspect, sys, traceback, warnings
        traceback.print_stack(file=sys.stdout)
        print([frame.function for frame in inspect.stack()])
        warnings.warn("from above", stacklevel=9)
        def f():
            return sys._getframe(1).f_back
        print(f())
        faulthandler.dump_traceback(sys.stderr, all_threads=False)
        """
    def prepare(place):
        (place / "__main__.py").write_text(textwrap.dedent(source))

    plain, checked = plain_and_checked(python, words, tmp_path, source=source, prepare=prepare)
    assert checked == plain


@pytest.mark.parametrize(("name", "flags"), cases(
    *itertools.product(("names", "uncaught", "threads_outlive_main", "pools"),
                       ("-X dev", "-W error", "-I", "-S", "-P", "-OO", "-bb", "-u -s -E")),
    fast={("names", "-I"), ("uncaught", "-X dev"), ("threads_outlive_main", "-W error"), ("pools", "-OO")}))
def test_program_is_as_without_the_checker_under_flags(name, flags, python, tmp_path):
    plain, checked = plain_and_checked(python, ["script.py"], tmp_path, source=PROGRAMS[name], flags=flags)
    assert checked == plain


@pytest.mark.parametrize(("bundle", "flags"), cases(
    *itertools.product((".", "app", "./app/", "app.zip"), ("", "-P")), fast={(".", ""), ("app.zip", "-P")}))
def test_bundle_is_as_without_the_checker(bundle, flags, python, tmp_path):
    names = textwrap.dedent(PROGRAMS["names"]) + "raise ValueError(__spec__ and __spec__.name)\n"

    def bundles(place):
        (place / "app").mkdir()
        for folder in (place, place / "app"):
            (folder / "__main__.py").write_text(names)
        with zipfile.ZipFile(place / "app.zip", "w") as archive:
            archive.writestr("__main__.py", names)

    plain, checked = plain_and_checked(python, [bundle, "one"], tmp_path, flags=flags, prepare=bundles)
    assert checked == plain


@pytest.mark.slow
def test_program_that_writes_no_bytecode_writes_none(python, tmp_path, monkeypatch):
    cores, cache = cache_dir() / "race-core", tmp_path / "cache"
    cache.mkdir()
    (cache / "race-core").symlink_to(cores)    # a compilation that takes long is told
    monkeypatch.setenv("GILSCOPE_CACHE", str(cache))
    plain, checked = plain_and_checked(python, ["script.py"], tmp_path, source=PROGRAMS["caching"], flags="-B")
    assert checked == plain
    assert plain[0] == "True None ['other.py', 'script.py']\n"
    assert list((tmp_path / "cache" / "pyc").rglob("session.*.pyc"))


@pytest.mark.parametrize("name", cases(
    "names", "uncaught", "exit_code", "keyboard_interrupt", "syntax_error", "doctest", "multiprocessing", "atexit",
    "inspect", fast={"names", "multiprocessing"}))
def test_module_is_as_without_the_checker(name, python, tmp_path):
    plain, checked = plain_and_checked(python, ["-m", "script", "one", "-x"], tmp_path, source=PROGRAMS[name])
    assert checked == plain
