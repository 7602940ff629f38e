"""The shared state that threaded functions change, as their source shows it."""

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from gilscope.toolkit.evaluate.project.discovery import find_project
from gilscope.toolkit.evaluate.project.racing.shared_state import shared_state
from gilscope.toolkit.evaluate.project.racing.threaded_functions import ThreadedFunction
from gilscope.toolkit.evaluate.project.where_to_run import ProjectPaths, RunSite
from gilscope.toolkit.evaluate.sections import SharedFact

# name -> source, and the variables that threads share; every function ran in two threads that have the same `self`,
# except for those that are called `once`, and every line except for those that say MISSED.
SHARED = {
    "an item": ("ROWS = {}\ndef work():\n    ROWS[1] = 2", {"ROWS"}),
    "an item of an item": ("ROWS = {}\ndef work(key):\n    ROWS[key]['n'] += 1", {"ROWS"}),
    "a global": ("def work():\n    global made\n    made = made + 1", {"global made in app.py"}),
    "an attribute of a global": ("def work():\n    STATE.level += 1", {"STATE.level"}),
    "a function's attribute": ("def work():\n    work.calls += 1", {"work.calls"}),
    "a list that a module of the library changes": ("""
        import heapq
        def work():
            heapq.heappush(HEAP, 1)
        """, {"HEAP"}),
    "numbers": ("def work():\n    return next(NUMBERS)", {"NUMBERS"}),
    "a queue": ("def work():\n    QUEUE.put_nowait(1)", {"QUEUE"}),
    "a default value": ("def work(seen=[]):\n    seen.append(1)", {"seen"}),
    "a default value that none shares": ("""
        def work(seen=()):
            seen = list(seen)
            seen.append(1)
        """, set()),
    "an attribute of self": ("""
        class A:
            def work(self):
                self.rows.clear()
        """, {"A.rows"}),
    "an attribute of the class": ("""
        class A:
            @classmethod
            def work(cls):
                cls.made += 1
        """, {"A.made"}),
    "a constructor": ("""
        class A:
            def __init__(self):
                self.made = []
                self.made.append(1)
        """, set()),
    "what all objects of the class have": ("""
        class A:
            known = {}
            def __init__(self, name):
                self.known[name] = []
        """, {"A.known"}),
    "a local that is taken from it": ("""
        def work(key):
            row = TABLE.get(key)
            row.hits += 1
        """, {"TABLE.hits"}),
    "a loop over it": ("""
        def work():
            for key, row in TABLE.items():
                row.append(key)
        """, {"TABLE"}),
    "a copy of it": ("""
        def work():
            row = list(TABLE)
            row.append(1)
            part = TABLE[1:]
            part.clear()
        """, set()),
    "a parameter": ("""
        def put(rows, *, key):
            rows[key] = 1
        def work():
            put(TABLE, key=2)
        """, {"rows"}),
    "a parameter of a parameter": ("""
        def add(row):
            row.append(1)
        def put(table):
            add(table[0])
        def work():
            put(table=TABLE)
        """, {"row"}),
    "a parameter that gets a new object": ("""
        def put(rows):
            rows.append(1)
        def work():
            rows = []
            put(rows)
            return rows
        """, set()),
    "a closure": ("""
        def once():
            n = 0
            def work():
                nonlocal n
                n += 1
            return work
        """, {"n of once"}),
    "a closure of one call": ("""
        def make():
            found = {}
            def work():
                found[1] = 2
            return work
        """, set()),
    "what each thread has": ("""
        import threading
        OWN = threading.local()
        def work():
            OWN.rows = []
            OWN.rows.append(1)
        """, set()),
    "what each thread has of an object": ("""
        import threading as t
        class Own(t.local):
            def add(self):
                self.n += 1
        class A:
            def __init__(self):
                self.own = Own()
            def work(self):
                self.own.n = 1
        """, set()),
    "a memo": ("""
        CACHE = {}
        def work(key):
            if key not in CACHE:
                CACHE[key] = key ** 2
        """, set()),
    "a memo of a global": ("""
        model = None
        def work():
            global model
            if model is None:
                model = dict(a=1)
            return model
        """, set()),
    "a memo that others change": ("""
        model = None
        def work():
            global model
            if model is None:
                model = dict(a=1)
            model[work] = 2
        """, {"global model in app.py", "model"}),
    "memos beside others": ("""
        import importlib, logging, re, threading
        def work(number):
            global LAST
            name = f"a{number % 2}"
            if name not in PATTERNS:
                PATTERNS[name] = re.compile(name)
            if Shop.rates is None:
                Shop.rates = (1, 2)
            if name not in LOGGERS:
                LOGGERS[name] = logging.getLogger(name)
            if name not in SEEN:
                SEEN[name] = number
            if name not in LOCKS:
                LOCKS[name] = threading.Lock()
            LAST = name
            return LAST, LOGGERS[name], LOCKS[name], SEEN[name]
        """, {"SEEN", "LOCKS", "global LAST in app.py"}),
    "a number for each key": ("""
        IDS = {}
        def work(key):
            if key not in IDS:
                IDS[key] = len(IDS)
        """, {"IDS"}),
    "what was last": ("LAST = {}\ndef work(key, value):\n    LAST[key] = value", {"LAST"}),
    "a claim": ("""
        done = False
        def work():
            global done
            if not done:
                done = True
        """, {"global done in app.py"}),
    "a counter with an end": ("""
        class A:
            def work(self):
                if self.n < 9:
                    self.n = self.n + 1
        """, {"A.n"}),
    "a memo of what changes": ("""
        n, CACHE = 0, {}
        def work(key):
            global n
            n += 1
            if key not in CACHE:
                CACHE[key] = key + n
        """, {"global n in app.py", "CACHE"}),
    "a line that no thread reached": ("""
        def work():
            if A:
                ROWS.append(1)  # MISSED
            return 1
        """, set()),
    "a function of one thread": ("def once():\n    ROWS.append(1)", set()),
    "what is only read": ("""
        ROWS = {}
        def work():
            return sum(ROWS.values()), ROWS.get(1)
        """, set()),
}


def state_of(folder, source, name="app.py"):
    text = dedent(source)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    lines = frozenset(number for number, each in enumerate(text.splitlines(), 1) if "MISSED" not in each)
    ran = [ThreadedFunction(file=str(folder / name), twice=True, one_self=True, foreign={}, lines=lines,
                            line=min([node.lineno, *(each.lineno for each in node.decorator_list)]))
           for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef) and node.name != "once"]
    (folder / "pyproject.toml").write_text("[project]\nname = 'app'\n")
    project = find_project(folder)
    run_site = RunSite(build="3.14t", python=Path("python"), folders=project.sources)
    return shared_state(ran, ProjectPaths(project, run_site))


@pytest.mark.parametrize(("source", "variables"), SHARED.values(), ids=SHARED)
def test_state_that_threads_share_and_change(tmp_path, source, variables):
    assert {each.variable for each in state_of(tmp_path, source).variables} == variables


def test_state_has_the_line_of_its_first_change_and_all_its_uses(tmp_path):
    state = state_of(tmp_path, """\
        CACHE, HITS = {}, []
        def work(key):
            HITS.append(key)
            if key not in CACHE:
                CACHE[key] = key ** 2
            HITS.append(-key)
            return OTHER[key]
        """)
    assert state.variables == (SharedFact(variable="HITS", file="app.py", line=3),)
    assert state.uses == {("app.py", line) for line in (3, 4, 5, 6)}   # those of the memo, too


def test_tests_have_no_state_of_the_project(tmp_path):
    assert state_of(tmp_path, "SEEN = []\ndef test_it():\n    SEEN.append(1)\n", "tests/test_app.py").variables == ()
