"""The screen against its golden files (see tests/report/test_golden.py), and what it does not say."""

from dataclasses import replace

import pytest

from tests.evaluate.made_up import NOT_DONE, QUIET, evaluation, found, report
from tests.report.test_golden import check
from toolkit.evaluate.evaluation import Word
from toolkit.evaluate.screen import document, exit_code
from toolkit.report import markdown, terminal

BUSY = replace(QUIET, effective=1.1, run_queue=0.4, doubts=("2 cores do only 1.10 cores' work at once",))


@pytest.mark.parametrize("width", [80, 100])
def test_terminal(width):
    check(f"evaluate-{width}.txt", terminal.render(document(evaluation()), width=width))


def test_markdown():
    check("evaluate.md", markdown.render(document(evaluation())))


def test_fits_on_a_screen_with_something_in_every_section():
    lines = terminal.render(document(evaluation()), width=100).splitlines()
    assert len(lines) <= 70
    assert max(map(len, lines)) <= 100


def test_busy_machine_shows_no_speed():
    shown = " ".join(terminal.render(document(evaluation(machine=BUSY)), width=100).split())
    assert "no prediction and nothing measured: the machine is too busy or too small" in shown
    assert not any(number in shown for number in ("1.50x", "1.60x", "1.25x", "2.90 times"))
    assert "so no word on speed" in shown


def test_nothing_found_at_all_is_rendered():
    empty = replace(evaluation(), races=NOT_DONE, machine=NOT_DONE, next_steps=(), interpreters=(), processes=(),
                    builds=(found(readiness=report(), gain=NOT_DONE, contention=NOT_DONE),))
    assert "Gain" not in terminal.render(document(replace(empty, conclusions=empty.conclusions[:1])), width=80)


def test_exit_code_is_1_when_every_build_is_blocked():
    given = evaluation()
    first, second, *others = given.conclusions
    assert (first.word, second.word, exit_code(given)) == (Word.BLOCKED, Word.BLOCKED, 1)
    assert exit_code(replace(given, conclusions=(first, replace(second, word=Word.INCONCLUSIVE), *others))) == 0


def test_way_to_a_culprit_names_each_package_once():
    way = ("site-packages/bs4/__init__.py:3", "site-packages/bs4/builder.py:7",
           "lib/python3.14t/importlib/__init__.py:88", "site-packages/six.py:9", "site-packages/lxml/html.py:41")
    given = evaluation()
    first, *others = given.builds
    told = replace(first, tests=replace(first.tests, imports=(replace(first.tests.imports[0], way=way),)))
    shown = " ".join(terminal.render(document(replace(given, builds=(told, *others))), width=100).split())
    assert "through src/myapp/io.py:3 -> bs4 -> six; 7.0, the newest" in shown


def test_waits_of_a_busy_moment_and_uneven_threads_are_said():
    first, *others = evaluation().builds
    uneven = replace(first, gain=replace(first.gain, queued=0.4, threads=3, busiest=0.8))
    shown = " ".join(terminal.render(document(replace(evaluation(), builds=(uneven, *others))), width=100).split())
    assert "which is not to be relied on: they waited 40 % of theirs for a core" in shown
    assert "the busiest of 4 threads takes 80 % of the CPU time" in shown


def test_cost_by_the_tests_has_a_footnote():
    first, *others = evaluation().builds
    by_tests = replace(first, cost=replace(first.cost, by="tests"))
    shown = " ".join(terminal.render(document(replace(evaluation(), builds=(by_tests, *others))), width=100).split())
    assert "CPU time of the tests, their start with it" in shown
