"""Projects with a planted fault in the work itself: none of them may come out as READY, and each fault is named.

No project here has a test that starts a thread, so nothing but the workload can show what is wrong.
"""

import itertools
import sys
import threading
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

import pytest

from gilscope.toolkit.evaluate.evaluation import Verdict
from gilscope.toolkit.evaluate.project.discovery import find_project
from gilscope.toolkit.evaluate.project.racing import workload_in_threads
from gilscope.toolkit.evaluate.project.racing.races import check_workload
from gilscope.toolkit.evaluate.project.where_to_run import RunSite
from gilscope.toolkit.evaluate.project.workload.rounds import UserWorkload
from gilscope.toolkit.evaluate.sections import Missing, Races
from gilscope.toolkit.measure.child.calls import shown
from tests.evaluate.made_up import (
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
from tests.fakes import make_build
from tests.patience import PATIENCE

# name -> files, the workload, what is racy there and in which file
RACY = {
    "a global of the function's own module": ({"app.py": """
        total = 0
        def work():
            global total
            total += 1
        """}, "app:work", "global total in app.py", "app.py"),
    "two races, one of them in a class": ({"app.py": """
        seen = 0
        class Stock:
            def __init__(self):
                self.left = 1000
            def take(self):
                self.left -= 1
        STOCK = Stock()
        def work():
            global seen
            STOCK.take()
            seen = seen + 1
        """}, "app:work", "Stock.left", "app.py"),
    "a helper module that the function imports when it is called": ({"app.py": """
        def work():
            from store import put
            put("a", 1)
        """, "store.py": """
        ROWS = {"a": 0}
        def put(key, value):
            ROWS[key] = ROWS[key] + value
        """}, "app:work", "ROWS", "store.py"),
    "a closure": ({"app.py": """
        def counter():
            count = 0
            def add():
                nonlocal count
                count += 1
                return count
            return add
        work = counter()
        def load():
            work()
        """}, "app:load", "local count of counter (closure)", "app.py"),
    "a generator": ({"app.py": """
        class Meter:
            reads = 0
        METER = Meter()
        def rows(n):
            for number in range(n):
                METER.reads = METER.reads + 1
                yield number
        def work():
            return sum(rows(3))
        """}, "app:work", "Meter.reads", "app.py"),
    "a script": ({"load.py": """
        import threading
        from app import Counter
        counter = Counter()
        threads = [threading.Thread(target=counter.add) for _ in range(3)]
        for each in threads: each.start()
        for each in threads: each.join()
        """, "app.py": """
        class Counter:
            def __init__(self):
                self.value = 0
            def add(self):
                self.value += 1
        """}, "load.py", "Counter.value", "app.py"),
    "a coroutine": ({"app.py": """
        import asyncio
        served = 0
        async def work():
            global served
            await asyncio.sleep(0)
            served += 1
        """}, "app:work", "global served in app.py", "app.py"),
    "a decorator": ({"app.py": """
        import functools
        def counted(function):
            @functools.wraps(function)
            def inner():
                inner.calls += 1
                return function()
            inner.calls = 0
            return inner
        @counted
        def work():
            return 1
        """}, "app:work", "inner.calls", "app.py"),
    "a package's submodule, by a property": ({"svc/__init__.py": "", "svc/state.py": """
        class State:
            def __init__(self):
                self._level = 0
            @property
            def level(self):
                return self._level
            @level.setter
            def level(self, value):
                self._level = value
        STATE = State()
        """, "svc/load.py": """
        from svc.state import STATE
        def request():
            STATE.level = STATE.level + 1
        """}, "svc.load:request", "State._level", "svc/state.py"),
    "an item of a list": ({"app.py": """
        SLOTS = [0, 0]
        def work():
            SLOTS[0] += 1
        """}, "app:work", "SLOTS", "app.py"),
    "a check before an act": ({"app.py": """
        SEATS = {"A1": None}
        def work():
            if SEATS["A1"] is None:
                SEATS["A1"] = object()
            SEATS["A1"] = None
        """}, "app:work", "SEATS", "app.py"),
    "a lock that guards one half alone": ({"app.py": """
        import threading
        lock = threading.Lock()
        class Account:
            balance = 0
        ACCOUNT = Account()
        def work():
            with lock:
                before = ACCOUNT.balance
            ACCOUNT.balance = before + 1
        """}, "app:work", "Account.balance", "app.py"),
}
# What threads share without a race; name -> source, the variable or None where they share nothing that changes.
SHARING = {
    "a cache that is written under a lock": ("""
        import threading
        CACHE, lock, count = {}, threading.Lock(), [0]
        def work():
            with lock:
                CACHE[len(CACHE)] = 1
        """, "CACHE"),
    "a counter under a lock": ("""
        import threading
        lock, hits = threading.Lock(), 0
        def work():
            global hits
            with lock:
                hits += 1
        """, "global hits in app.py"),
    "a list that all append to": ("""
        LOG = []
        def work():
            LOG.append(1)
        """, "LOG"),
    "a set of what was done": ("""
        DONE = set()
        def work():
            DONE.add(1)
        """, "DONE"),
    "numbers that are given out": ("""
        import itertools
        NUMBERS = itertools.count()
        def work():
            return next(NUMBERS)
        """, "NUMBERS"),
    "a generator under a lock": ("""
        import threading
        def counting():
            number = 0
            while True:
                number += 1
                yield number
        NUMBERS, lock = counting(), threading.Lock()
        def work():
            with lock:
                return next(NUMBERS)
        """, "NUMBERS"),
    "an argument's default value": ("""
        def add(seen=[]):
            seen.append(1)
        def work():
            add()
        """, "seen"),
    "what a pool of the module's own writes": ("""
        import threading
        from concurrent.futures import ThreadPoolExecutor
        POOL, lock, TOTAL = ThreadPoolExecutor(4), threading.Lock(), {"n": 0}
        def add():
            with lock:
                TOTAL["n"] += 1
        def work():
            POOL.submit(add).result()
        """, "TOTAL"),
    "an attribute of a class": ("""
        import threading
        class Pool:
            made = 0
            lock = threading.Lock()
        def work():
            with Pool.lock:
                Pool.made += 1
        """, "Pool.made"),
    "a cache that is only read": ("""
        CACHE = {number: number ** 2 for number in range(10)}
        def work():
            return sum(CACHE[number] for number in range(10))
        """, None),
    "what each thread has of its own": ("""
        import threading
        own = threading.local()
        def work():
            own.count = getattr(own, "count", 0) + 1
        """, None),
    "threads of one call alone": ("""
        from concurrent.futures import ThreadPoolExecutor
        import threading
        def work():
            found, lock = {}, threading.Lock()
            def one(number):
                with lock:
                    found["sum"] = found.get("sum", 0) + number
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(one, range(4)))
            return found
        """, None),
}
FAST_RACES, FAST_SHARING = ("two races, one of them in a class", "a script"), ("a list that all append to",)


LIMITS = (10.0, 60.0, PATIENCE)   # seconds for what hangs: more where a busy machine has not let it get there


def some(table, fast):
    return [pytest.param(*values, id=name, marks=() if name in fast else pytest.mark.slow)
            for name, values in table.items()]


def raced(folder, files, workload, **options):
    for name, source in {"test_app.py": "def test_nothing(): assert True\n", **files}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(dedent(source))
    run_site = RunSite(build="host", python=Path(sys.executable), folders=(folder,), compiled=folder / "compiled")
    named = UserWorkload.of(str(folder / workload) if workload.endswith(".py") else workload, folder)
    return check_workload(find_project(folder), run_site, named, **{"limit": 300.0, "confirm": 0} | options)


@pytest.mark.parametrize(("files", "workload", "variable", "file"), some(RACY, FAST_RACES))
def test_race_in_the_work_is_never_ready(tmp_path, files, workload, variable, file):
    races = raced(tmp_path, files, workload)
    assert isinstance(races, Races), races
    assert (variable, file) in {(race.variable, race.file) for race in races.found}
    verdict = conclude(found(), QUIET, races)
    assert verdict.word in {Verdict.BLOCKED, Verdict.INCONCLUSIVE}
    assert any(f"data race on {variable} (" in reason and f"{file}:" in reason for reason in verdict.reasons)
    assert races.together


def test_work_that_is_another_in_threads_is_never_ready(tmp_path):
    races = raced(tmp_path, {"app.py": """
        import threading
        def here(): return threading.current_thread() is threading.main_thread()
        def work(): return 30 if here() else 26730
        """}, "app:work")
    assert isinstance(races, Races), races
    assert races.looks[0].differs == ("26730", "30")
    verdict = conclude(found(), QUIET, races)
    assert verdict.word is Verdict.INCONCLUSIVE
    assert verdict.reasons[0].startswith("the workload gives 26730 in threads and 30 in the main thread")


@pytest.mark.parametrize(("result", "otherwise"), [
    ("[b'a', {'rows': 1.5 if here() else 2}]", ["list(b'a', dict('rows', 2))", "list(b'a', dict('rows', 1.5))"]),
    *((same, []) for same in ("30", "object()", "next(COUNT)", "open('gone') if here() else 1"))],
    ids=["nested", "the same", "no value", "another each time", "an error"])
def test_results_that_can_be_compared_and_differ_are_told(result, otherwise):
    names = {"here": lambda: threading.current_thread() is threading.main_thread(), "COUNT": itertools.count()}

    def work():
        return eval(result, names)

    calls = SimpleNamespace(function_called=lambda _: work, refuse_unawaited=lambda *_: None, shown=shown)
    callers = [workload_in_threads.CallingThread(number, "app:work", calls,
                                                 threading.Barrier(1)) for number in range(2)]
    for each in callers:
        thread = threading.Thread(target=each.run)
        thread.start()
        thread.join()
    assert workload_in_threads.differing(work, callers, 60.0, shown) == otherwise


FULL = """
    SEEN, DROPPED = [], 0
    def work():
        global DROPPED
        SEEN.append(1)
        if len(SEEN) > 150:
            DROPPED += 1
    """


@pytest.mark.parametrize(("calls", "variables"), [(0, set()), (60, {"global DROPPED in app.py"})])
def test_calls_reach_what_25_calls_do_not(tmp_path, calls, variables):
    races = raced(tmp_path, {"app.py": FULL}, "app:work", calls=calls)
    assert isinstance(races, Races), races
    assert races.looks[0].calls == (calls or 25) * 4
    assert {race.variable for race in races.found} & {"global DROPPED in app.py"} == variables


@pytest.mark.slow
def test_both_races_of_one_function_are_named(tmp_path):
    files, workload, *_ = RACY["two races, one of them in a class"]
    races = raced(tmp_path, files, workload)
    assert {race.variable for race in races.found} == {"Stock.left", "global seen in app.py"}


@pytest.mark.parametrize(("source", "variable"), some(SHARING, FAST_SHARING))
def test_what_threads_share_is_not_ready_for_copies(tmp_path, source, variable):
    races = raced(tmp_path, {"app.py": source}, "app:work")
    assert isinstance(races, Races), races
    assert races.found == ()
    assert {each.variable for each in races.shared} == ({variable} if variable else set()), races.shared
    measured = ratio(1.8)
    processes = MadeInside(build=make_build("3.14"), measured=measured)
    for verdict in (conclude_processes(processes, QUIET, races),
                    conclude_interpreters(inside(finding(), measured=measured), QUIET, races)):
        assert (verdict.word, verdict.confidence) == (Verdict.INCONCLUSIVE if variable else Verdict.READY, "high")
        if variable:
            (shared,) = races.shared
            assert f"share {variable} (changed at app.py:{shared.line})" in verdict.reasons[0]
            assert "a copy of its own, which changes what the program means" in verdict.reasons[0]
    assert conclude(found(), QUIET, races).word is Verdict.READY


@pytest.mark.slow
def test_work_that_cannot_be_raced_says_why(tmp_path):
    broken = raced(tmp_path, {"app.py": "def work():\n    raise LookupError('no such row')\n"}, "app:work")
    assert isinstance(broken, Missing)
    assert "the workload failed: LookupError: no such row, under the race checker" in broken.reason
    source = "import threading\ndef work(): threading.Event().wait()\n"
    for limit in LIMITS:
        hangs = raced(tmp_path, {"app.py": source}, "app:work", limit=limit)
        assert isinstance(hangs, Missing)
        if "no call of the workload came to its end" in hangs.reason:
            break
    assert "no call of the workload came to its end" in hangs.reason


@pytest.mark.slow
def test_races_are_known_of_work_that_never_ends(tmp_path):
    source = ("import threading\nbegun = 0\n"
              "def work():\n    global begun\n    begun += 1\n    threading.Event().wait()\n")
    for limit in LIMITS:
        races = raced(tmp_path, {"app.py": source}, "app:work", limit=limit)
        if isinstance(races, Races) and races.found:
            break
    assert [race.variable for race in races.found] == ["global begun in app.py"]


@pytest.mark.slow
def test_script_without_threads_shows_nothing_in_threads(tmp_path):
    files = {"load.py": "from app import work\nwork()\n", "app.py": "def work(): return 1\n"}
    races = raced(tmp_path, files, "load.py")
    (look,) = races.looks
    assert (look.of, look.threads, look.together) == ("script", False, False)
    assert conclude(found(), QUIET, races).confidence == "medium"
