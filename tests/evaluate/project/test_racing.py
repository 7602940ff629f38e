"""The race checker over a project's tests: the project's own races, and why there may be no answer."""

import sys
import uuid
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from gilscope.toolkit.evaluate.project.discovery import PYTEST, find_project
from gilscope.toolkit.evaluate.project.racing import checker
from gilscope.toolkit.evaluate.project.racing.checker import FOUND, RaceCheckResult, facts, read_witness
from gilscope.toolkit.evaluate.project.racing.tests import ThreadedTests, as_program, check_races, nothing_ran
from gilscope.toolkit.evaluate.project.racing.threaded_functions import ThreadedFunction
from gilscope.toolkit.evaluate.project.suite.running import run_bounded
from gilscope.toolkit.evaluate.project.where_to_run import ProjectPaths, RunSite
from gilscope.toolkit.evaluate.sections import Cause, Missing, RaceFact
from gilscope.toolkit.race.report import json_
from gilscope.toolkit.race.report.model import CheckGap
from gilscope.toolkit.race.terms import GapReason
from tests.conformance.builds import ROOT
from tests.evaluate.made_up import PROJECT, ended
from tests.measure.children import MARK, still_alive

RACY = """
import threading

# ---
class Counter:
    def __init__(self):
        self.value = 0

    def add(self):
        self.value += 1

# ---
def test_two_threads_count():
    counter = Counter()
    threads = [threading.Thread(target=counter.add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.value
"""
LOCKED = RACY.replace("self.value = 0", "self.value = 0\n        self.lock = threading.Lock()").replace(
    "        self.value += 1", "        with self.lock:\n            self.value += 1")


def check(tmp_path, monkeypatch, code, tests=None, **options):
    # What is confirmed is in a module of the project: a confirming run does not pause in test modules under pytest.
    head, counter, test = code.split("# ---") if "# ---" in code else ("", "", code)
    (tmp_path / "app.py").write_text(head + counter)
    (tmp_path / "test_app.py").write_text(f"from app import *\n{head}{test}")
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    run_site = RunSite(build="host", python=Path(sys.executable), folders=())
    found = check_races(find_project(tmp_path, tests=tests), run_site, **{"limit": 600.0, "confirm": 0, **options})
    assert not still_alive(mark)
    return found


def test_race_of_the_projects_tests_is_found(tmp_path, monkeypatch):
    found = check(tmp_path, monkeypatch, RACY)
    (race,) = found.found
    assert (race.kind, race.variable, race.file, race.confirmed) == (
        "lost update", "Counter.value", "app.py", False)


@pytest.mark.slow
def test_its_repair_is_clean(tmp_path, monkeypatch):
    assert check(tmp_path, monkeypatch, LOCKED).found == ()


@pytest.mark.slow
def test_confirmed_race_says_so(tmp_path, monkeypatch):
    # The first run that confirms is the last: the two threads meet in it when the system gives both a core.
    (race,) = check(tmp_path, monkeypatch, RACY, confirm=100).found
    assert race.confirmed


@pytest.mark.parametrize(("limit", "said"), [
    ({"gaps": (CheckGap(process="process 7", reason=GapReason.DEATHS, count=3),)},
     "process 7: races may be missing: tracemalloc or another tool replaced the hook"),
    ({"gaps": (CheckGap(process="process 7", reason=GapReason.THREADS, count=4096),)},
     "process 7: races may be missing: checking stopped"),
    ({"lost": ("process 7",)}, "process 7"),
])
def test_incomplete_check_without_a_race_is_no_answer(tmp_path, monkeypatch, limit, said):
    golden = json_.read((ROOT / "tests/golden/race.json").read_text())
    given = replace(golden, **{"races": (), "lost": (), **limit})

    def run_once(command, *_, **__):
        told = Path(next(word for word in command if word.startswith("--json=")).removeprefix("--json="))
        told.write_text(json_.render(given))
        return ended("3")

    monkeypatch.setattr(checker, "run_bounded", run_once)
    found = check(tmp_path, monkeypatch, LOCKED)
    assert found.reason.startswith(f"the check for races was incomplete: {said}")


def test_race_is_kept_when_its_confirming_run_does_not_end(tmp_path, monkeypatch):
    commands = []

    def run_once(command, *_, **__):
        commands.append(command)
        told = Path(next(word for word in command if word.startswith("--json=")).removeprefix("--json="))
        if len(commands) > 1:
            return ended("hang: not done within 9 s")
        told.write_text((ROOT / "tests/golden/race.json").read_text())
        return ended(str(FOUND))

    monkeypatch.setattr("gilscope.toolkit.evaluate.project.racing.checker.run_bounded", run_once)
    assert check(tmp_path, monkeypatch, RACY, confirm=1).found
    assert ["--confirm=1" in command for command in commands] == [False, True]


@pytest.mark.parametrize(("damage", "said"), [
    (lambda text: text.replace('"line": 14', '"line": "x"', 1), "races[0].first.place.line is 'x', not a whole number"),
    (lambda text: text.replace('"lost update"', '"lost"', 1), "races[0].kind is 'lost', not lost update"),
    (lambda text: text.replace('"races"', '"race"', 1), "race"),
    (lambda _: "[]", "it is [], not an object"),
    (lambda text: text.replace("gilscope race", "another tool", 1), "tool is 'another tool', not gilscope race"),
    (lambda text: text[:text.rindex("processes") - 1], "property name"),
])
def test_damaged_report_names_file_and_field(tmp_path, monkeypatch, damage, said):
    def run_once(command, *_, **__):
        told = Path(next(word for word in command if word.startswith("--json=")).removeprefix("--json="))
        told.write_text(damage((ROOT / "tests/golden/race.json").read_text()))
        return ended(str(FOUND))

    monkeypatch.setattr(checker, "run_bounded", run_once)
    found = check(tmp_path, monkeypatch, RACY)
    assert found.reason.startswith("the report of the race checker, races.json, is damaged: ")
    assert said in found.reason


@pytest.mark.parametrize(("line", "told"), [
    ('{"pid": 1, "threads": true, "together": true, "ran": [["a.py", 3, true, false, {"S": "list"}, [4, 5]]]}', True),
    ('{"pid": 1, "threads": true, "together": true, "ran": [["a.py", "3", true, false, {}, []]]}', False),
    ('{"pid": 1, "threads": "yes", "together": true, "ran": []}', False),
    ('{"pid": 1, "flip": "lxml.etree"}', False),
])
def test_witness_that_a_program_damaged_tells_nothing(tmp_path, line, told):
    (tmp_path / "witness").write_text(line + "\n")
    found = [function for each in read_witness(tmp_path / "witness") for function in each.functions()]
    expected = ThreadedFunction(file="a.py", line=3, twice=True, one_self=False, foreign={"S": "list"},
                                lines=frozenset({4, 5}))
    assert found == [expected] * told


def test_silence_until_the_time_is_up_is_no_hang(tmp_path):
    silent = [sys.executable, "-I", "-c", "import threading; threading.Event().wait()"]
    ending = run_bounded(silent, tmp_path, {}, tmp_path / "output", limit=0.1, quiet=0.1)
    assert str(ending) == "unfinished: not done within 0 s"


@pytest.mark.parametrize(("ending", "reason", "cause"), [
    ("unfinished: not done within 3 s",
     "no time was left in the budget: the race checker was not done within 3 s", Cause.TIME),
    ("hang: no output for 120 s",
     "the race checker did not come to its end (hang: no output for 120 s: no report)", Cause.OTHER)])
def test_too_little_time_is_told_as_that(tmp_path, monkeypatch, ending, reason, cause):
    monkeypatch.setattr(checker, "run_bounded", lambda *_, **__: ended(ending))
    monkeypatch.setattr(checker, "last_lines", lambda _: "")
    found = check(tmp_path, monkeypatch, LOCKED, limit=3.0)
    assert found == Missing(reason=reason, cause=cause)


@pytest.mark.slow
def test_hang_is_a_reason(tmp_path, monkeypatch):
    found = check(tmp_path, monkeypatch, "import threading\nthreading.Event().wait()\n", quiet=5.0)
    assert isinstance(found, Missing)
    assert "hang: no output for 5 s" in found.reason


@pytest.mark.parametrize(("tests", "program"), [
    (PYTEST, ["-m", "pytest", "-q"]), (("pytest", "-x"), ["-m", "pytest", "-x"]),
    (("python", "run.py", "a"), ["run.py", "a"]), (("python", "-c", "1"), None), (("make", "test"), None),
])
def test_commands(tests, program):
    assert as_program(tests) == program


@pytest.mark.parametrize(("ending", "counted", "said"), [
    ("0", {"passed": 3, "failed": 0}, ""),
    ("1", {"passed": 0, "failed": 2}, ""),
    ("2", {"passed": 0, "failed": 0}, "no test ran (exit code 2)"),   # pytest: nothing could be collected
    ("4", {}, "no test is known to have run (exit code 4)"),          # pytest: conftest.py cannot be imported
    ("1", {}, "no test is known to have run (exit code 1)"),         # or it broke off before them
    ("0", {}, ""),
])
def test_a_run_without_tests_is_no_run_without_races(ending, counted, said):
    lacking = nothing_ran(ended(ending), counted)
    assert (lacking.reason if lacking else "") == said


def test_no_race_is_told_of_tests_that_cannot_start(tmp_path, monkeypatch):
    (tmp_path / "conftest.py").write_text("import no_such_module_at_all")
    assert check(tmp_path, monkeypatch, LOCKED) == Missing(
        reason="no test is known to have run (exit code 4), under the race checker")


A, B, C = (RaceFact(kind="lost update", variable=name, file="a.py", line=1, confirmed=False) for name in "abc")
SURE = replace(A, confirmed=True)
FAILED = Missing(reason="did not end")


@pytest.mark.parametrize(("found", "again", "took", "confirm", "kept"), [
    ((A, B), (SURE, C), 4.0, 1, (SURE, C, B)), ((A, B), FAILED, 4.0, 1, (A, B)),
    ((A,), None, 6.0, 1, (A,)), ((A,), None, 4.0, 0, (A,)), ((), None, 4.0, 1, ()), (FAILED, None, 4.0, 1, FAILED),
])
def test_races_of_the_first_run_are_kept_whatever_the_confirming_one_does(
    found, again, took, confirm, kept, monkeypatch,
):
    """`took` is what the first run takes of 10 s; the second is not begun in less time than that."""
    told, asked = iter((found, again)), []

    def checked(*_, limit, **__):
        asked.append(limit)
        found = next(told)
        if isinstance(found, Missing):
            return found
        return RaceCheckResult(found=found, threads=True, together=True, left=ThreadedTests())

    monkeypatch.setattr(checker, "_checked", checked)
    monkeypatch.setattr(checker, "time", SimpleNamespace(monotonic=iter((100.0, 100.0 + took)).__next__))
    run_site = RunSite(build="host", python=Path(sys.executable), folders=())
    races = check_races(PROJECT, run_site, limit=10.0, confirm=confirm)
    assert (races if isinstance(races, Missing) else races.found) == kept
    assert asked == ([10.0] if again is None else [10.0, 10.0 - took])


def test_what_cannot_be_followed_and_no_tests_have_reasons(tmp_path, monkeypatch):
    assert "run by 'make'" in check(tmp_path, monkeypatch, "", tests="make test").reason
    assert check(tmp_path, monkeypatch, "", limit=0.0).reason == "no time was left in the budget"


def test_facts_of_a_report_confirmed_ones_first():
    report = json_.read((ROOT / "tests/golden/race.json").read_text())
    bank = Path("/home/ann/bank")
    project = replace(find_project(ROOT), root=bank, sources=(bank,))
    found = facts(report, ProjectPaths(project, RunSite(build="host", python=Path(sys.executable), folders=(bank,))))
    assert [race.confirmed for race in found] == sorted((race.confirmed for race in found), reverse=True)
    assert found[0].confirmed
    assert ("Account.balance", "bank.py", 14) in [(race.variable, race.file, race.line) for race in found]
    given = {(race.base, race.severity, race.repair) for race in report.races}
    named = {True: "atomicity violation", False: "race"}
    assert {(race.variable, named[race.violation], race.repair) for race in found} == given
    assert all(race.place == race.places[0] for race in found)
    assert all(race.own for race in found)


@pytest.mark.parametrize("confirmed", [True, False, None])
@pytest.mark.parametrize("sentence", ["confirmed: 1 update lost", "an update was lost", None])
def test_wording_of_the_confirmation_does_not_matter(sentence, confirmed):
    report = json_.read((ROOT / "tests/golden/race.json").read_text())
    races = tuple(replace(race, confirmation=sentence, confirmed=confirmed) for race in report.races)
    report = replace(report, races=races)
    run_site = RunSite(build="host", python=Path(sys.executable), folders=())
    assert {race.confirmed for race in facts(report, ProjectPaths(PROJECT, run_site))} == {confirmed is True}


SERIAL = """
# ---
class Counter:
    def __init__(self):
        self.value = 0

    def add(self):
        self.value += 1

COUNTER = Counter()
# ---
def test_counts():
    COUNTER.add()
    assert COUNTER.value

def test_prints(capsys):
    COUNTER.add()
"""


def test_tests_without_threads_say_so(tmp_path, monkeypatch):
    (look,) = check(tmp_path, monkeypatch, SERIAL).looks
    assert (look.of, look.threads, look.together) == ("tests", False, False)


@pytest.mark.slow
def test_tests_with_threads_show_code_of_the_project_in_them(tmp_path, monkeypatch):
    (look,) = check(tmp_path, monkeypatch, LOCKED).looks
    assert (look.threads, look.together) == (True, True)
    in_test_alone = LOCKED.replace("# ---", "")
    (look,) = check(tmp_path, monkeypatch, in_test_alone).looks
    assert (look.threads, look.together) == (True, False)


def test_each_test_in_several_threads_shows_the_race_that_they_hide(tmp_path, monkeypatch):
    found = check(tmp_path, monkeypatch, SERIAL, threads=3)
    assert [(race.variable, race.file) for race in found.found] == [("Counter.value", "app.py")]
    (look,) = found.looks
    assert (look.of, look.workers, look.together) == ("tests at once", 3, True)
    assert look.alone == ("test_app.py::test_prints: uses capsys",)


@pytest.mark.slow
def test_race_of_a_test_with_itself_is_none_of_the_project(tmp_path, monkeypatch):
    own = "MADE = [0]\ndef test_counts():\n    MADE[0] += 1\n"
    assert check(tmp_path, monkeypatch, own, threads=3).found == ()


def test_test_that_fails_in_several_threads_is_named(tmp_path, monkeypatch):
    once = "MADE = []\ndef test_once():\n    MADE.append(1)\n    assert len(MADE) == 1\n"
    (look,) = check(tmp_path, monkeypatch, once, threads=2).looks
    assert look.failing == ("test_app.py::test_once",)


@pytest.mark.parametrize(("tests", "code", "reason"), [
    ("python -m unittest", "", "each test in 2 threads at once takes pytest"),
    (None, "def test_prints(capsys): assert True\n",
     "no test could be run in several threads: test_app.py::test_prints: uses capsys"),
])
def test_why_tests_cannot_be_run_in_several_threads(tmp_path, monkeypatch, tests, code, reason):
    assert reason in check(tmp_path, monkeypatch, code, tests=tests, threads=2).reason
