"""The answer of a run fits a screen, names what to use, and says what is open and what failed."""

from dataclasses import replace

from gilscope.toolkit.cli import main
from gilscope.toolkit.report import terminal
from gilscope.toolkit.report.answer import answer_document
from gilscope.toolkit.store import load_run
from tests.conformance.builds import ROOT
from tests.fakes import RunMaker
from tests.report.test_screen import BUILDS, cell, look


def answer_of(run, width=100):
    return terminal.render(answer_document(run), width=width)


def test_four_workloads_on_two_builds_fit_a_screen():
    text = answer_of(load_run(ROOT / "results/example/first-look"))
    assert len(text.splitlines()) <= 24
    assert "\nhttp_fetch   threads 31 or 3 others              free-threaded 39 or subinterpreters 66" in text
    assert "CPU time of serial on 3.14t, against 3.14: more by 16 % for primes, 15 % for http_fetch; within" in text
    assert "fastest model of 3.14t against that of 3.14: undecided for all" in text
    assert "open answers: 5; about 140 rounds in all are likely to decide 4 of them" in text


def test_what_is_not_faster_is_not_used_and_what_is_open_is_called_so():
    made = RunMaker(noise=0.002)
    for runner, workers, seconds in (("serial", 1, 1.0), ("threads", 2, 1.0)):
        made.measure(cell(runner, workers), seconds)
    assert "\nw          serial" in answer_of(made.run(("3.14",)))
    noisy = RunMaker(rounds=4, noise=0.4, seed=1)
    for runner, workers, seconds in (("serial", 1, 1.0), ("processes-fork", 2, 0.7)):
        noisy.measure(cell(runner, workers), seconds)
    text = answer_of(noisy.run(("3.14",)))
    assert "\nw          undecided" in text
    assert "open answers: 1; " in text


def test_what_failed_is_named_with_the_number_of_other_reasons():
    made = look()
    for number in range(3):
        made.fail(cell("processes-fork", 2 + number), "crash", f"killed by signal {number}")
    text = answer_of(made.run(BUILDS), width=200)
    assert "failed: processes-fork of w on 3.14: round 1: crash: killed by signal 0 (2 more: --full)" in text


def test_run_without_a_speed_up_says_why_and_has_no_table_of_speed_ups():
    made = RunMaker()
    made.fail(cell(), "crash", "killed by SIGSEGV")
    text = " ".join(answer_of(replace(made.run(("3.14",)), cells=(cell(), cell("threads", 2)))).split())
    assert "w unknown: serial has no number" in text
    assert "failed: serial of w on 3.14: round 1: crash: killed by SIGSEGV" in text
    assert "speed-up over" not in text


def test_comparison_begins_with_its_counts_and_the_cells_that_differ(capsys):
    asked = ["compare", str(ROOT / "results/example/first-look"), "--builds", "3.14,3.14t"]
    assert main(asked) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24
    assert "14 cells compared: 4 slower, 1 same (within 3 %), 9 cannot tell." in " ".join(" ".join(lines[:2]).split())
    verdicts = [word for line in lines[3:] for word in ("slower", "cannot tell", "same") if f"  {word}" in line]
    assert verdicts == ["slower"] * 4 + ["cannot tell"] * 9 + ["same"]
    assert main([*asked, "--full"]) == 0
    assert "In short" in capsys.readouterr().out


def test_report_prints_the_answer_and_with_full_everything(capsys):
    label = str(ROOT / "results/example/first-look")
    assert main(["report", label]) == 0
    answer = capsys.readouterr().out
    assert main(["report", label, "--full"]) == 0
    assert "use (MiB)" in answer
    assert "Noise floor" not in answer
    assert "Noise floor" in capsys.readouterr().out
