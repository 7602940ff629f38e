"""Rendered reports against tests/golden/.  After a wanted change: GILSCOPE_GOLDEN=write pytest, then read the diff."""

import os
from pathlib import Path

import pytest

from gilscope.toolkit.report import markdown, terminal
from gilscope.toolkit.report.comparison import comparison_document
from gilscope.toolkit.report.run_document import run_document
from gilscope.toolkit.report.table.contrast import compare_builds, compare_models
from tests.fakes import make_run

GOLDEN = Path(__file__).parents[1] / "golden"


def check(name, text):
    path = GOLDEN / name
    if os.environ.get("GILSCOPE_GOLDEN") == "write":
        path.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def document():
    return run_document(make_run())


@pytest.mark.parametrize("width", [80, 100, 200])
def test_run_on_a_terminal(document, width):
    check(f"run-{width}.txt", terminal.render(document, width=width))


def test_run_in_a_pipe(document):
    check("run-ascii.txt", terminal.render(document, ascii_only=True))


def test_run_in_markdown(document):
    check("run.md", markdown.render(document))


def test_run_without_an_arm_measured_twice_and_with_three_rounds():
    check("run-few.txt", terminal.render(run_document(make_run(rounds=3, twins=False))))


def test_builds_compared():
    run = make_run()
    contrasts = compare_builds(run, "3.14", "3.14t")
    title = "example: 3.14t against 3.14"
    document = comparison_document(title, contrasts, baseline="3.14", sample="3.14t", notes=run.notes)
    check("compare-builds.txt", terminal.render(document))
    check("compare-builds.md", markdown.render(document))


def test_models_compared():
    contrasts = compare_models(make_run(), "serial", "subinterpreters")
    document = comparison_document("example", contrasts, baseline="serial", sample="subinterpreters")
    check("compare-models.txt", terminal.render(document, width=80))
