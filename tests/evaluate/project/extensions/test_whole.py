"""Whole evaluations of projects with an extension module of their own, on a build without a GIL and its counterpart."""

import pytest

from gilscope.toolkit.evaluate.evaluation import Verdict
from gilscope.toolkit.evaluate.packages.evidence import Status
from gilscope.toolkit.evaluate.pipeline import Evaluator
from gilscope.toolkit.evaluate.project.workload import rounds
from gilscope.toolkit.evaluate.request import EvaluationRequest
from gilscope.toolkit.evaluate.sections import Missing
from gilscope.toolkit.evaluate.views.screen import document
from gilscope.toolkit.report.terminal import render
from tests.evaluate.places import COMPILER
from tests.evaluate.project.extensions.made import OPTIONAL, SOURCE, project

pytestmark = [pytest.mark.slow, pytest.mark.skipif(COMPILER is None, reason="no C compiler")]

TESTS = """import unittest, pkg

class It(unittest.TestCase):
    def test_built(self): self.assertIsNotNone(pkg._c)
"""
WORK = OPTIONAL + "def work():\n    if _c is None: raise RuntimeError('the sources are imported')\n"


@pytest.fixture
def evaluate(pair, without_registry, monkeypatch):
    """Give a function that evaluates a project."""
    for name in ("MOST_ROUNDS", "LEAST_ROUNDS"):
        monkeypatch.setattr(rounds, name, 1)

    def go(made, **asked):
        request = EvaluationRequest(path=made.root, **{
            "budget": 1800.0, "tests": "python -m unittest discover -s tests -t .", **asked})
        return Evaluator(request, pair[:1], pair, lambda _: None).run()

    return go


@pytest.mark.parametrize("layout", ["", "src"])
def test_optional_module_that_declares_nothing_blocks(evaluate, tmp_path, layout):
    made = project(tmp_path / "project", optional=True, layout=layout, tests=TESTS, init=WORK)
    (made.root / "tests" / "__init__.py").write_text("")
    found = evaluate(made, workload="pkg:work")
    (label,) = found.labels
    tests, said = found.tests[label], found.conclusions[0]
    assert said.word is Verdict.BLOCKED
    assert said.reasons[0].startswith("its own extension module pkg._c turns the GIL on when imported")
    assert "no extension file is in the way" not in " ".join(said.reasons)
    assert (str(tests.ending), tests.culprits) == ("0", ("pkg._c",)), tests.output
    assert "failed" not in found.speed[label].cost.reason   # the workload has imported the built one, too
    folder = f"{layout}/" if layout else ""
    assert found.next_steps[0].startswith(f"{label}: {folder}pkg/_c.c:6: declare that pkg._c does without the GIL")
    assert "pkg._c turns the GIL on" in render(document(found), width=200)


def test_module_that_declares_it_is_in_nobodys_way(evaluate, tmp_path):
    made = project(tmp_path / "project", declared=True, optional=True, tests=TESTS)
    (made.root / "tests" / "__init__.py").write_text("")
    found = evaluate(made)
    (label,) = found.labels
    assert found.conclusions[0].word in {Verdict.READY, Verdict.INCONCLUSIVE}   # its cost was not measured
    assert not any("its own extension" in reason for reason in found.conclusions[0].reasons)
    assert found.own[label].finding.verdict.status is Status.READY
    assert found.tests[label].gil_end is False
    assert not any("declare" in step for step in found.next_steps)


def test_module_that_cannot_be_compiled_is_not_ready_although_the_tests_pass(evaluate, tmp_path):
    made = project(tmp_path / "project", source=f"#error not on this machine\n{SOURCE}", optional=True,
                   tests=TESTS.replace("self.assertIsNotNone(pkg._c)", "pass"))
    (made.root / "tests" / "__init__.py").write_text("")
    found = evaluate(made)
    said = found.conclusions[0]
    assert said.word is Verdict.INCONCLUSIVE
    assert "not on this machine" in said.reasons[0]
    assert found.tests[found.labels[0]].ending.succeeded


def test_project_without_tests_is_built_all_the_same(evaluate, tmp_path):
    found = evaluate(project(tmp_path / "project", optional=True, tests=None), tests=None)
    assert found.conclusions[0].word is Verdict.BLOCKED
    assert isinstance(found.tests[found.labels[0]], Missing)


def test_offline_nothing_is_built_and_nothing_is_ready(evaluate, tmp_path):
    made = project(tmp_path / "project", declared=True, tests=None)
    evaluate(made, tests=None)   # its environments are there now
    said = evaluate(made, tests=None, offline=True).conclusions[0]
    assert said.word is Verdict.INCONCLUSIVE
    assert "its own extension modules were not built" in said.reasons[0]
    assert "--offline" in said.reasons[0]
