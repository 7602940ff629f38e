"""`countdown`: what is certain of its run in the smallest size, and its tables and sentences from made-up runs."""

import pyperf
import pytest

from gilscope.toolkit.experiments.base import EffortLevel
from gilscope.toolkit.experiments.countdown.experiment import CountdownExperiment
from gilscope.toolkit.experiments.results import Results
from gilscope.toolkit.model import Cell
from gilscope.toolkit.report.document import Document
from gilscope.toolkit.report.terminal import render
from tests.fakes import RunMaker


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


def made_up(two_threads, build="3.14", *, rounds=8, **noise):
    maker = RunMaker(rounds=rounds, **noise)
    model = "free-threaded" if build.endswith("t") else "threads"
    serial = Cell(workload="countdown", runner="serial", workers=1, build=build)
    maker.measure(serial, 1.0)
    maker.twin(serial, 1.0)
    maker.measure(Cell(workload="countdown", runner=model, workers=2, build=build), two_threads)
    return Results(maker.run((build,), options={"experiment": "countdown", "effort": EffortLevel.QUICK}))


@pytest.mark.parametrize(("build", "seconds", "words"), [
    ("3.14", 1.0, "No gain beyond the noise is shown"),
    ("3.14", 1.3, "They are slower all the same"),
    ("3.14t", 1.3, "they are slower"),
    ("3.14", 0.8, "not by running in parallel"),
    ("3.14", 1.9, "the penalty of 2009 is reproduced here"),
    ("3.14t", 0.52, "no longer hold"),
    ("3.14t", 1.0, "no gain beyond the noise is shown"),
])
def test_sentence_follows_the_numbers(build, seconds, words):
    (sentence,) = CountdownExperiment().findings(made_up(seconds, build))
    assert words in sentence


def test_penalty_that_the_noise_does_not_exclude_is_not_called_gone():
    (sentence,) = CountdownExperiment().findings(made_up(1.3, noise=0.5))
    assert "the wider interval of verdicts leaves open whether the penalty of 2009 (0.54x) is gone" in sentence


def test_too_few_rounds_give_no_sentence():
    assert CountdownExperiment().findings(made_up(0.5, "3.14t", rounds=2)) == ()


def test_each_build_is_compared_with_its_own_count_without_threads():
    maker = RunMaker(rounds=8, noise=1e-6)
    for build, model, alone, seconds in (("3.14", "threads", 1.0, 1.25), ("3.14t", "free-threaded", 3.0, 1.5)):
        serial = Cell(workload="countdown", runner="serial", workers=1, build=build)
        maker.measure(serial, alone)
        maker.twin(serial, alone)
        for count in (2, 4):
            maker.measure(Cell(workload="countdown", runner=model, workers=count, build=build), seconds * count / 2)
    results = Results(maker.run(("3.14", "3.14t"), options={"experiment": "countdown", "effort": EffortLevel.QUICK}))
    text = render(Document(CountdownExperiment().sections(results)), width=140).partition("Speed-up")[2]
    assert [line.split() for line in text.splitlines() if line.startswith(("threads", "free"))] == [
        ["threads", "2", "0.800x", "[0.800,", "0.800]", "0.54x", "0.99x"],
        ["threads", "4", "0.40x", "[0.40,", "0.40]", "-", "0.99x"],
        ["free-threaded", "2", "2.00x", "[2.00,", "2.00]"], ["free-threaded", "4", "none", "beyond", "3", "%"]]
    (figure,) = CountdownExperiment().figures(results)
    assert [(panel.title, panel.series[0].name, panel.series[0].x, panel.series[0].y) for panel in figure.panels] == [
        ("3.14", "threads", (2.0, 4.0), pytest.approx((1.25, 2.5))),
        ("3.14t", "free-threaded", (2.0, 4.0), pytest.approx((0.5, 1.0)))]
    first, second = CountdownExperiment().findings(results)
    assert "a penalty as large as in 2009 (0.54x) is excluded" in first
    assert "no longer hold" in second
