"""What the race checker does not watch in the project's own functions that threads ran is named, and never READY."""

from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from gilscope.toolkit.evaluate.evaluation import Verdict
from gilscope.toolkit.evaluate.project.discovery import find_project
from gilscope.toolkit.evaluate.project.racing.threaded_functions import ThreadedFunction
from gilscope.toolkit.evaluate.project.racing.unwatched import (
    library_state,
    locks_for_outside,
    unreached,
    unwatched,
)
from gilscope.toolkit.evaluate.project.where_to_run import ProjectPaths, RunSite
from gilscope.toolkit.evaluate.sections import Races, Unwatched
from tests.evaluate.made_up import (
    CLEAN,
    QUIET,
    MadeInside,
    conclude,
    conclude_interpreters,
    conclude_processes,
    finding,
    found,
    inside,
    ratio,
)
from tests.evaluate.project.test_planted import raced
from tests.fakes import make_build

FOREIGN = {"STATS": "collections.UserDict", "self.prices": "sortedcontainers.SortedDict",
           "tick": "ctypes.PyDLL", "os.environ": "os._Environ", "LOCK": "_thread.lock", "self.lock": "_thread.RLock"}
# name -> source, what is named of its line marked HERE; None: nothing
CASES = {
    "exec": ("def work():\n    exec(CODE, STATE)  # HERE", "what exec runs"),
    "an exec of its own": ("def exec(text):\n    return text\ndef work():\n    exec(CODE)", None),
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
                              "what STATS (collections.UserDict) holds"),
    "a library's container that is only read": ("def work(page):\n    return STATS[page]", None),
    "a package's container by its method": ("""
        class Book:
            def work(self):
                self.prices.setdefault(1, 2)  # HERE
        """, "what self.prices (sortedcontainers.SortedDict) holds"),
    "the environment, by a method": ("import os\ndef work():\n    os.environ.pop('A')  # HERE",
                                     "what os.environ (os._Environ) holds"),
    "the environment's items, which are watched": ("import os\ndef work():\n    os.environ['A'] = '1'", None),
    "a library's container under a lock": ("def work(page):\n    with LOCK:\n        STATS[page] += 1", None),
    "a library's container in a with that is no lock": ("""
        import contextlib
        def work(page):
            with contextlib.suppress(KeyError), open(page) as file, PATH.open() as other:
                STATS[page] += 1  # HERE
        """, "what STATS (collections.UserDict) holds"),
    "a library's container in a with that may be a lock": ("""
        def work(page):
            with lock_of(page):
                STATS[page] += 1
        """, None),
    "a cache of objects that change": ("""
        import functools
        class Quota:
            def take(self):
                self.left -= 1
        @functools.lru_cache(maxsize=None)
        def work(name):
            return Quota(name)  # HERE
        """, "whether lru_cache gives two threads that ask first one Quota"),
    "a cache of its own": ("""
        class Quota:
            def take(self):
                self.left -= 1
        @app.cache
        def work(name):
            return Quota(name)
        """, None),
    "a cache of objects that do not": ("""
        from functools import lru_cache
        class Plan:
            def __init__(self):
                self.left = 1
            def rest(self):
                return self.left
        @lru_cache
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
    "a directory for all": ("import os\ndef work():\n    os.chdir('/')  # HERE", "what chdir changes for all threads"),
    "a directory of a server's": ("def work(server):\n    server.chdir('/')", None),
    "an output for all": ("""
        from contextlib import redirect_stdout as to
        def work():
            with to(file):  # HERE
                pass
        """, "what redirect_stdout changes for all threads"),
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
    ran = ThreadedFunction(**{"file": str(folder / "app.py"), "line": line, "twice": True, "one_self": True,
                              "foreign": FOREIGN}
                           | changes)
    project = find_project(folder)
    shown = ProjectPaths(project, RunSite(build="3.14t", python=Path("python"), folders=project.sources))
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
    foreign = FOREIGN | {"PERMITS": "threading.Semaphore", "DICE": "random.Random"}
    assert [each.variable for each in looked_at(tmp_path, source, library_state, foreign=foreign)[0]] == (
        [kept] if kept else [])
    assert looked_at(tmp_path, source, library_state, foreign=foreign, twice=False)[0] == []


LOCKED = """
def work():
    with LOCK:
        number = int(open(PATH).read())
        open(PATH, 'w').write(str(number + 1))
"""


@pytest.mark.parametrize(("source", "explained", "lock"), [
    (LOCKED, (), "LOCK"), (LOCKED, [("app.py", 4)], None), (LOCKED, [("app.py", 1), ("other.py", 4)], "LOCK"),
    (LOCKED + "def other():\n    with LOCK:\n        pass\n", [("app.py", 1)], "LOCK"),
    (LOCKED.replace("LOCK:", "LOCK:  # race: ok one process alone"), (), None),
    (LOCKED.replace("LOCK", "STATS"), (), None), (LOCKED.replace("LOCK", "self.lock"), (), "self.lock")])
def test_lock_of_what_is_outside_is_shared(tmp_path, source, explained, lock):
    def what(ran, shown):
        return locks_for_outside(ran, shown, explained)

    assert [(each.variable, each.file) for each in looked_at(tmp_path, source, what)[0]] == (
        [(f"{lock} (a lock, of which a copy guards nothing outside)", "app.py")] if lock else [])
    assert looked_at(tmp_path, source, what, twice=False)[0] == []


# name -> source; lines that say RAN were run, the one that says HERE was not and is told.
WAYS = {
    "an attribute": ("""
        class Keeper:
            def work(self):
                if now() > self.until:  # RAN
                    self.token = made()  # HERE
                return self.token  # RAN
        """, "self.token = made()"),
    "a method that changes its object": ("""
        class Keeper:
            def renew(self):
                self.token = made()
            def work(self):
                if now() > self.until:  # RAN
                    self.renew()  # HERE
                return self.token  # RAN
        """, "self.renew()"),
    "a method that does not": ("""
        class Keeper:
            def told(self):
                return self.token
            def work(self):
                if now() > self.until:  # RAN
                    print(self.told())
                return self.token  # RAN
        """, None),
    "a global": ("""
        def work():
            global total
            if late():  # RAN
                total += 1  # HERE
        """, "total += 1"),
    "an attribute of a global that is set, too": ("""
        def work():
            global config
            config = made()  # RAN
            if late():  # RAN
                config.seen = 1  # HERE
        """, "config.seen = 1"),
    "a function that changes a global": ("""
        def add():
            global total
            total += 1
        def work():
            try:
                return found()  # RAN
            except LookupError:
                add()  # HERE
        """, "add()"),
    "an item and a method of a list": ("""
        def work():
            match answer():  # RAN
                case 1:
                    return  # RAN
                case 2:
                    LOG.append(1)  # HERE
        """, "LOG.append(1)"),
    "a way that was taken": ("""
        def work():
            if late():  # RAN
                LOG.append(  # RAN
                    1)
        """, None),
    "what is the function's own": ("""
        def work():
            found = []
            if late():  # RAN
                found.append(1)
                other = found[0]
            return found  # RAN
        """, None),
    "an error that did not come": ("""
        def work():
            if late():  # RAN
                raise ValueError(TABLE)
        """, None),
    "a function inside": ("""
        def work():
            def inner():
                LOG.append(1)
            return inner  # RAN
        """, None),
    "what somebody has judged": ("""
        def work():
            if late():  # RAN
                LOG.append(1)  # race: ok at night, alone
        """, None),
}


@pytest.mark.parametrize(("source", "what"), WAYS.values(), ids=WAYS)
def test_way_that_no_thread_took_is_told(tmp_path, source, what):
    lines = dedent(source).lstrip("\n").splitlines()
    ran = frozenset(number for number, each in enumerate(lines, 1) if each.endswith("RAN"))
    seen, line = looked_at(tmp_path, source, unreached, lines=ran)
    assert seen == ([Unwatched(file="app.py", line=line, what=what)] if what else [])
    assert looked_at(tmp_path, source, unreached, lines=ran, twice=False)[0] == []
    assert looked_at(tmp_path, source, unreached, lines=frozenset())[0] == []   # nothing told which lines ran


def test_what_one_object_of_each_thread_does_is_nobodys_concern(tmp_path):
    assert looked_at(tmp_path, WAYS["an attribute"][0], unreached, lines=frozenset({3}), one_self=False)[0] == []


def test_confidence_is_not_high_where_threads_left_a_way_out():
    races = replace(CLEAN, unreached=(Unwatched(file="auth.py", line=23, what="self.renew()"),))
    verdict = conclude(found(), QUIET, races)
    assert (verdict.word, verdict.confidence) == (Verdict.READY, "medium")
    assert verdict.unexercised == ("races: no thread came to auth.py:23 (self.renew()), which changes what they share",)
    assert conclude(found(), QUIET, CLEAN).confidence == "high"
    for verdict in copies(races):   # each copy would take that way by itself
        assert (verdict.word, verdict.confidence) == (Verdict.READY, "medium")
        assert any("no thread came to auth.py:23 (self.renew())" in each for each in verdict.unexercised)
    assert {verdict.confidence for verdict in copies(CLEAN)} == {"high"}


def copies(races):
    processes = MadeInside(build=make_build("3.14"), measured=ratio(1.8))
    return (conclude_processes(processes, QUIET, races),
            conclude_interpreters(inside(finding(), measured=ratio(1.8)), QUIET, races))


def test_it_is_not_ready():
    races = replace(CLEAN, unwatched=(Unwatched(file="app.py", line=3, what="what exec runs"),))
    verdict = conclude(found(), QUIET, races)
    assert verdict.word is Verdict.INCONCLUSIVE
    assert verdict.reasons[0].startswith(
        "several threads run what the race checker does not watch: what exec runs (app.py:3)")


def test_threads_of_a_workload_tell_what_they_ran(tmp_path):
    races = raced(tmp_path, {"app.py": """
        import ctypes, functools, os, random, threading
        from collections import UserDict
        kept, let_go = ctypes.pythonapi.Py_GetVersion, ctypes.CDLL(None).getpid
        DICE, PERMITS, TURN = random.Random(1), threading.BoundedSemaphore(8), threading.Lock()
        STATS, CODE, STATE = UserDict(home=0), compile("seen = seen + 1", "<rule>", "exec"), {"seen": 0}
        class Store:
            lock = threading.Lock()
            def __init__(self):
                self.file = open(__file__)
                self.reads = 0
            def write(self):
                with self.lock:
                    with open(os.devnull, "w") as out:
                        out.write("1")
            def read(self):
                if self.file.closed:
                    self.reads += 1
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
            STORE.write()
            quota_of("ann")
            kept(), let_go()
            with PERMITS:
                DICE.random()
            with TURN:
                os.environ["TURN"] = os.environ.get("TURN", "") + "1"
        """}, "app:work")
    assert isinstance(races, Races), races
    assert [each.what for each in races.unwatched] == [
        "where the file self.file stands", "whether cache gives two threads that ask first one Quota",
        "what STATS (collections.UserDict) holds", "what exec runs",
        "what kept does, C code that ctypes.PyDLL calls with the GIL where there is one"]
    assert {each.variable for each in races.shared} == {
        "STATS", "PERMITS (threading.Semaphore)", "DICE (random.Random)", "os.environ",
        "self.lock (a lock, of which a copy guards nothing outside)"}
    assert [each.what for each in races.unreached] == ["self.reads += 1"]
