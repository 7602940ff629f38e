"""Small projects, each with its verdict, evaluated for real on a build without a GIL and its counterpart."""

import platform
import shutil
from functools import partial

import pytest

from gilscope.toolkit.evaluate.evaluation import Verdict
from gilscope.toolkit.evaluate.pipeline import Evaluator
from gilscope.toolkit.evaluate.project.racing import races as looking
from gilscope.toolkit.evaluate.project.racing.tests import check_races
from gilscope.toolkit.evaluate.project.workload import rounds as workload
from gilscope.toolkit.evaluate.request import EvaluationRequest
from gilscope.toolkit.evaluate.verdict import exit_code
from gilscope.toolkit.evaluate.views.screen import document
from gilscope.toolkit.gil import preload
from gilscope.toolkit.report.terminal import render
from tests.conformance.builds import ROOT
from tests.evaluate.wheels import make_wheel

pytestmark = pytest.mark.slow   # whole evaluations

CORPUS = ROOT / "tests" / "corpus" / "evaluate"
TRIES = 5     # of what depends on when threads get their cores
CONFIRMING_RUNS = 100   # the first one that confirms is the last: threads meet when the system gives both a core
NO_SHIM = preload.unavailable()
TESTS = "python -m unittest discover -s tests"
LATE = {"lateflip/__init__.py": "", "lateflip/fast.py": "from lateflip import single_plain\nname = 'fast'\n"}


@pytest.fixture
def evaluate(pair, without_registry, tmp_path, monkeypatch):
    """Give a function that evaluates a project of the corpus."""
    for tool in ("PIP", "UV"):
        monkeypatch.setenv(f"{tool}_FIND_LINKS", str(tmp_path / "wheels"))
    (tmp_path / "wheels").mkdir()

    def go(name, **asked):
        shutil.copytree(CORPUS / name, tmp_path / name, dirs_exist_ok=True)
        request = EvaluationRequest(path=tmp_path / name, tests=TESTS, **{"budget": 1800.0, **asked})
        return Evaluator(request, pair[:1], pair, lambda _: None).run()

    return go


def conclusion(found):
    return found.conclusions[0]


def test_pure_python_lacks_its_cost_alone(evaluate):
    found = evaluate("pure")
    assert conclusion(found).word is Verdict.INCONCLUSIVE, conclusion(found)
    (reason,) = conclusion(found).reasons   # no workload, and tests that are mostly start
    assert reason.startswith("what it costs one thread was not measured")
    assert found.tests[found.labels[0]].gil_end is False
    assert found.races.found == ()
    assert [each.word for each in found.conclusions[1:]] == [Verdict.INCONCLUSIVE]   # in interpreters nothing ran
    assert exit_code(found) == 0
    assert "--workload" in " ".join(found.next_steps)


@pytest.mark.skipif(platform.machine() != "x86_64" or platform.system() != "Linux", reason="wheels of linux_x86_64")
def test_package_that_turns_the_gil_on_late_blocks(evaluate, pair, variants, tmp_path):
    for build in pair:
        files = {**LATE, "lateflip/single_plain.so": variants(build)}
        make_wheel(tmp_path / "wheels", "lateflip", "1.0", build, files)
        fine = {"lateflip/__init__.py": "", "lateflip/fast.py": "name = 'fast'\n",
                "lateflip/multi_best.so": variants(build)}
        make_wheel(tmp_path / "wheels", "lateflip", "2.0", build, fine)
    found = evaluate("late_flip")
    assert conclusion(found).word is Verdict.BLOCKED
    shown = " ".join(render(document(found)).split())
    # The package, the extension file, the user's first line on the way to it, and the version that mends it.
    assert "lateflip 1.0: lateflip.single_plain (lateflip/single_plain.so), seen by hook and import" in shown
    assert "through report.py:6" in shown
    assert "2.0, the newest, mends it" in shown
    assert f"{pair[0].label}: take lateflip 2.0, which mends it" in found.next_steps
    assert found.tests[found.labels[0]].gil_end is True
    assert found.tests[found.labels[0]].culprits == ("lateflip.single_plain",)
    assert exit_code(found) == 1


def test_confirmed_race_blocks(evaluate, monkeypatch):
    monkeypatch.setattr(looking, "check_races", partial(check_races, confirm=CONFIRMING_RUNS))
    found = evaluate("racy")
    assert conclusion(found).word is Verdict.BLOCKED
    (race,) = found.races.found
    assert (race.variable, race.file, race.line, race.confirmed) == ("Stock.count", "stock.py", 14, True)
    assert any("stock.py:14: guard Stock.count with a lock" in step for step in found.next_steps)


def test_race_in_the_work_itself_is_never_ready(evaluate, monkeypatch):
    monkeypatch.setattr(workload, "MOST_ROUNDS", 1)   # speed decides nothing here
    found = evaluate("hidden_race", workload="shop:request")
    assert conclusion(found).word in {Verdict.BLOCKED, Verdict.INCONCLUSIVE}   # as a second run confirmed them or not
    reasons = " ".join(conclusion(found).reasons)
    assert "data race on Stock.left (lost update, shop.py:12)" in reasons
    assert "data race on global served in shop.py (lost update, shop.py:23)" in reasons
    assert {look.of: look.together for look in found.races.looks} == {"workload": True, "tests": False}
    # Nor may anything that has copies of the two counters be.
    assert {each.variable for each in found.races.shared} == {"Stock.left", "global served in shop.py"}
    assert Verdict.READY not in {each.word for each in found.conclusions}


@pytest.mark.skipif(platform.machine() != "x86_64" or platform.system() != "Linux", reason="wheels of linux_x86_64")
def test_what_cannot_be_installed_without_the_gil_is_raced_with_it(evaluate, pair, variants, tmp_path, monkeypatch):
    monkeypatch.setattr(workload, "MOST_ROUNDS", 1)
    files = {"withgil/__init__.py": "", "withgil/multi_best.so": variants(pair[1])}
    make_wheel(tmp_path / "wheels", "withgil", "1.0", pair[1], files)
    (tmp_path / "hidden_race").mkdir()
    (tmp_path / "hidden_race" / "requirements.txt").write_text("withgil\n")
    (tmp_path / "hidden_race" / "load.py").write_text("import withgil\nfrom shop import request\n")
    found = evaluate("hidden_race", workload="load:request")
    assert {(look.of, look.build) for look in found.races.looks} == {
        ("workload", pair[1].label), ("tests", pair[0].label)}   # the tests do without it
    assert {race.variable for race in found.races.found} == {"Stock.left", "global served in shop.py"}
    assert conclusion(found).word is Verdict.BLOCKED
    assert any("withgil" in reason for reason in conclusion(found).reasons)
    assert any("data race on Stock.left" in reason for reason in conclusion(found).reasons) or not any(
        race.confirmed for race in found.races.found)


@pytest.mark.quiet   # a thread that has the GIL and no core makes the others wait for it
@pytest.mark.skipif(NO_SHIM is not None, reason=str(NO_SHIM))
def test_threads_that_wait_for_something_else_gain_nothing(evaluate, monkeypatch):
    monkeypatch.setattr(workload, "MOST_ROUNDS", workload.LEAST_ROUNDS)   # too few to compare: the waits decide
    for _ in range(TRIES):
        found = evaluate("waiting", workload="poll.py")
        gain = found.speed[found.labels[0]].gain
        if conclusion(found).word is Verdict.NOT_WORTH_IT:
            break
    assert conclusion(found).word is Verdict.NOT_WORTH_IT, (conclusion(found), found.machine, gain)
    assert 0 <= gain.wait_share < 1


def test_tests_that_fail_only_without_the_gil_block(evaluate, pair):
    found = evaluate("gil_only")
    assert conclusion(found).word is Verdict.BLOCKED
    (reason,) = conclusion(found).reasons
    assert reason == f"1 test fails that passes on {pair[1].label}"
