"""`countdown`: what is certain of its run in the smallest size, and its tables and sentences from made-up runs."""

import pyperf
import pytest

from tests.fakes import RunMaker
from toolkit.experiments.base import Effort
from toolkit.experiments.countdown import Countdown
from toolkit.experiments.results import Results
from toolkit.model import Cell


def test_every_cell_has_a_value_and_pyperf_reads_the_files(run_smoke):
    smoke = run_smoke("countdown")
    assert not smoke.results.run.failures
    for cell in smoke.results.cells():
        assert smoke.results.value(cell) or smoke.results.absence(cell).word == "starved", cell
    for build in smoke.results.builds:
        names = pyperf.BenchmarkSuite.load(str(smoke.folder / f"{build.label}.json")).get_benchmark_names()
        assert "countdown/runner=serial/workers=1/phase=steady" in names


def test_threads_are_what_the_build_has(run_smoke):
    smoke = run_smoke("countdown")
    models = {cell.runner for cell in smoke.results.cells(build=smoke.gil)}
    assert models == {"serial", "threads"}
    assert {cell.runner for cell in smoke.results.cells(build=smoke.free)} == {"serial", "free-threaded"}


def test_report_says_that_a_smoke_run_means_nothing(run_smoke):
    smoke = run_smoke("countdown")
    assert "WARNING: --smoke" in smoke.out
    assert "Speed-up: sequential / threads" in smoke.out
    assert "\nNow\n" not in smoke.out


def made_up(two_threads, build="3.14", *, rounds=8):
    maker = RunMaker(rounds=rounds)
    model = "free-threaded" if build.endswith("t") else "threads"
    serial = Cell(workload="countdown", runner="serial", workers=1, build=build)
    maker.measure(serial, 1.0)
    maker.twin(serial, 1.0)
    maker.measure(Cell(workload="countdown", runner=model, workers=2, build=build), two_threads)
    return Results(maker.run((build,), options={"experiment": "countdown", "effort": Effort.QUICK}))


@pytest.mark.parametrize(("build", "seconds", "words"), [
    ("3.14", 1.0, "penalty (0.54x) is gone"),
    ("3.14", 1.9, "the penalty of 2009 is seen here"),
    ("3.14t", 0.52, "no longer hold"),
    ("3.14t", 1.0, "a gain beyond the noise is not shown"),
])
def test_sentence_follows_the_numbers(build, seconds, words):
    (sentence,) = Countdown().findings(made_up(seconds, build))
    assert words in sentence


def test_too_few_rounds_give_no_sentence():
    assert Countdown().findings(made_up(0.5, "3.14t", rounds=2)) == ()
