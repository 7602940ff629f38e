"""What the race checker does not watch in the project's own functions that threads ran is named, and never READY."""

from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from gilscope.toolkit.evaluate.evaluation import Word
from gilscope.toolkit.evaluate.project.bench import Bench, Shown
from gilscope.toolkit.evaluate.project.conventions import find_project
from gilscope.toolkit.evaluate.project.racing.unwatched import Ran, kept_by_others, unwatched
from gilscope.toolkit.evaluate.sections import Races, Unwatched
from gilscope.toolkit.evaluate.verdict.words import conclude
from tests.evaluate.made_up import CLEAN, QUIET, found
from tests.evaluate.project.test_planted import raced

FOREIGN = {"STATS": "collections.UserDict", "self.prices": "sortedcontainers.SortedDict",
           "tick": "ctypes.PyDLL"}
# name -> source, what is named of its line marked HERE; None: nothing
CASES = {
    "exec": ("def work():\n    exec(CODE, STATE)  # HERE", "what exec runs"),
    "a file at a place": ("""
        class Store:
            def work(self):
                self.file.seek(3)  # HERE
                return self.file.read(4)
        """, "where the file self.file stands"),
    "a file at a place under a lock": ("""
        class Store:
            def work(self):
                with self.lock:
                    self.file.seek(3)
                    return self.file.read(4)
        """, None),
    "a file of the function's own": ("""
        def work(path):
            with open(path) as file:
                file.seek(3)
                return file.read(4)
        """, None),
    "a library's container": ("def work(page):\n    STATS[page] += 1  # HERE",
                              "what STATS holds, a collections.UserDict"),
    "a library's container that is only read": ("def work(page):\n    return STATS[page]", None),
    "a package's container by its method": ("""
        class Book:
            def work(self):
                self.prices.setdefault(1, 2)  # HERE
        """, "what self.prices holds, a sortedcontainers.SortedDict"),
    "a library's container under a lock": ("def work(page):\n    with LOCK:\n        STATS[page] += 1", None),
    "a cache of objects that change": ("""
        class Quota:
            def take(self):
                self.left -= 1
        @functools.lru_cache(maxsize=None)
        def work(name):
            return Quota(name)  # HERE
        """, "whether lru_cache gives two threads that ask first one Quota"),
    "a cache of objects that do not": ("""
        class Plan:
            def __init__(self):
                self.left = 1
            def rest(self):
                return self.left
        @functools.lru_cache
        def work(name):
            return Plan()
        """, None),
    "a lock that may not be got": ("""
        def work():
            got = LOCK.acquire(timeout=0.1)  # HERE
            try:
                return 1
            finally:
                if got:
                    LOCK.release()
        """, "what happens where LOCK.acquire does not get the lock"),
    "a lock that may not be got, for nothing": ("def work():\n    LOCK.acquire(False)  # HERE",
                                                "what happens where LOCK.acquire does not get the lock"),
    "a lock that decides": ("""
        def work():
            got = LOCK.acquire(blocking=False)
            if not got:
                return None
            LOCK.release()
        """, None),
    "a lock that is waited for": ("def work():\n    LOCK.acquire()\n    LOCK.acquire(True)\n    LOCK.release()", None),
    "a directory for all": ("def work():\n    os.chdir('/')  # HERE", "what chdir changes for all threads"),
    "an output for all": ("def work():\n    with contextlib.redirect_stdout(file):  # HERE\n        pass",
                          "what redirect_stdout changes for all threads"),
    "C code that had the GIL": ("def work():\n    return tick()  # HERE",
                                "what tick does, C code that ctypes.PyDLL calls with the GIL where there is one"),
    "what somebody has judged": ("def work():\n    exec(CODE, STATE)  # race: ok only reads", None),
}


def looked_at(folder, source, what=unwatched, /, **changes):
    text = dedent(source).lstrip("\n")
    (folder / "app.py").write_text(text)
    lines = text.splitlines()
    line = next(number for number, each in enumerate(lines, 1) if each.lstrip().startswith("def work"))
    line -= lines[line - 2].lstrip().startswith("@")
    ran = Ran(**{"file": str(folder / "app.py"), "line": line, "twice": True, "one_self": True, "foreign": FOREIGN}
              | changes)
    project = find_project(folder)
    shown = Shown(project, Bench(build="3.14t", python=Path("python"), folders=project.sources))
    here = next((number for number, each in enumerate(lines, 1) if "HERE" in each), 0)
    return list(what([ran], shown)), here


@pytest.mark.parametrize(("source", "what"), CASES.values(), ids=CASES)
def test_what_is_not_watched_is_named(tmp_path, source, what):
    seen, line = looked_at(tmp_path, source)
    assert seen == ([Unwatched(file="app.py", line=line, what=what)] if what else [])


@pytest.mark.parametrize(("name", "change"), [
    ("exec", {"twice": False}), ("a file at a place", {"one_self": False}),
    ("a package's container by its method", {"one_self": False}), ("a library's container", {"foreign": {}})])
def test_what_one_thread_alone_uses_is_nobodys_concern(tmp_path, name, change):
    assert looked_at(tmp_path, CASES[name][0], **change)[0] == []


def test_cache_that_one_thread_filled_is_named(tmp_path):
    assert len(looked_at(tmp_path, CASES["a cache of objects that change"][0], twice=False)[0]) == 1


@pytest.mark.parametrize(("source", "kept"), [
    ("def work(page):\n    with LOCK:\n        STATS[page] += 1", "STATS (collections.UserDict)"),
    ("def work():\n    with PERMITS:\n        pass", "PERMITS (threading.Semaphore)"),
    ("def work():\n    return DICE.random()", "DICE (random.Random)"),
    ("def work():\n    os.environ['A'] = '1'", "os.environ (os._Environ)"),
    ("def work():\n    return os.environ['A'], STATS['b']", None)])
def test_what_others_keep_for_all_threads_is_shared(tmp_path, source, kept):
    foreign = FOREIGN | {"PERMITS": "threading.Semaphore", "DICE": "random.Random", "os.environ": "os._Environ"}
    assert [each.variable for each in looked_at(tmp_path, source, kept_by_others, foreign=foreign)[0]] == (
        [kept] if kept else [])
    assert looked_at(tmp_path, source, kept_by_others, foreign=foreign, twice=False)[0] == []


def test_it_is_not_ready():
    races = replace(CLEAN, unwatched=(Unwatched(file="app.py", line=3, what="what exec runs"),))
    verdict = conclude(found(), QUIET, races)
    assert verdict.word is Word.INCONCLUSIVE
    assert verdict.reasons[0].startswith(
        "several threads run what the race checker does not watch: what exec runs (app.py:3)")


def test_threads_of_a_workload_tell_what_they_ran(tmp_path):
    races = raced(tmp_path, {"app.py": """
        import ctypes, functools, os, random, threading
        from collections import UserDict
        kept, let_go = ctypes.pythonapi.Py_GetVersion, ctypes.CDLL(None).getpid
        DICE, PERMITS = random.Random(1), threading.BoundedSemaphore(8)
        STATS, CODE, STATE = UserDict(home=0), compile("seen = seen + 1", "<rule>", "exec"), {"seen": 0}
        class Store:
            def __init__(self):
                self.file = open(__file__)
            def read(self):
                self.file.seek(3)
                return self.file.read(4)
        class Quota:
            left = 3
            def take(self):
                self.left = 1
        @functools.cache
        def quota_of(name):
            return Quota()
        def never():
            exec(CODE, STATE)
        STORE = Store()
        def work():
            STATS["home"] += 1
            exec(CODE, STATE)
            STORE.read()
            quota_of("ann")
            kept(), let_go()
            with PERMITS:
                os.environ["DICE"] = str(DICE.random())
        """}, "app:work")
    assert isinstance(races, Races), races
    assert [each.what for each in races.unwatched] == [
        "where the file self.file stands", "whether cache gives two threads that ask first one Quota",
        "what STATS holds, a collections.UserDict", "what exec runs",
        "what kept does, C code that ctypes.PyDLL calls with the GIL where there is one"]
    assert {each.variable for each in races.shared} == {
        "STATS (collections.UserDict)", "PERMITS (threading.Semaphore)", "DICE (random.Random)",
        "os.environ (os._Environ)"}
