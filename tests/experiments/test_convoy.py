"""`convoy` and `convoy-interval`: what is certain of the smallest runs; tables and figures of made-up ones."""

import math

import pytest

from gilscope.toolkit.experiments.base import EffortLevel
from gilscope.toolkit.experiments.convoy.experiment import (
    AT_WORST,
    LATE,
    ConvoyExperiment,
    latency_doubts,
    merged_histogram,
    percentile,
    percentile_entry,
    rate_doubt,
)
from gilscope.toolkit.experiments.convoy_interval import GRID, THEN, ConvoyIntervalExperiment
from gilscope.toolkit.experiments.helpers.timers import DEFAULT_SECONDS
from gilscope.toolkit.experiments.latency import LogHistogram, modes
from gilscope.toolkit.experiments.results import Results
from gilscope.toolkit.experiments.tables_and_figures import TableBuilder
from gilscope.toolkit.model import Cell
from tests.experiments.golden import check_golden
from tests.fakes import RunMaker

EXPERIMENTS = {"convoy": ConvoyExperiment, "convoy-interval": ConvoyIntervalExperiment}


def histogram(*groups):
    """Return the encoded histogram of (seconds, count) groups."""
    counted = LogHistogram()
    for seconds, count in groups:
        counted.add(seconds, count)
    return counted.encode()


def test_few_requests_have_no_99th_percentile():
    # 99 and 300 are enough together, but the 99th percentile of 99 is the longest of them.
    for sent, shown in (([30, 30], None), ([99, 300], None), ([100, 100], 0.2)):
        maker, cell = RunMaker(rounds=2), Cell(build="3.14", workload="echo", runner="threads", workers=1)
        maker.measure(cell, 0.1, p50=0.1, p99=0.2, sent=sent)
        results = Results(maker.run(("3.14",)))
        table = TableBuilder(results, "latency")
        entries = [percentile_entry(results, table, cell, name) for name in ("p50", "p99")]
        assert [each.value and getattr(each.value, "value", None) for each in entries] == [0.1, shown]
        footnotes = table.build().footnotes
        assert [each.endswith("too few for a 99th percentile") for each in footnotes] == [True] * (shown is None)
        assert (percentile(results, cell, "p99") is None) is (shown is None)


def test_latest_of_few_requests_is_no_percentile():
    late = {"saturated": "the load generator itself was up to 30 ms late", "p50": 0.1, "lag_p99": 0.03}
    for sent, doubt in ((20, AT_WORST), (200, LATE)):
        maker, cell = RunMaker(rounds=1), Cell(build="3.14", workload="echo", runner="threads", workers=1)
        maker.measure(cell, 0.1, sent=sent, **late)
        assert latency_doubts(Results(maker.run(("3.14",))), cell) == [doubt]
    assert "percentile" not in AT_WORST


def test_latencies_of_a_late_generator_are_in_doubt_in_one_line():
    late = {"saturated": "the load generator itself was up to 30 ms late", "p50": 0.1, "lag_p99": 0.03, "sent": 200}
    busy = {"saturated": "the load generator used 97 % of a core", "p50": 0.1, "lag_p99": 0.001, "sent": 200}
    for metrics, doubts in ((late, [LATE] * 2), (busy, [busy["saturated"]] * 2), (busy | {"saturated": ""}, [])):
        maker, cell = RunMaker(rounds=2), Cell(build="3.14", workload="echo", runner="threads", workers=1)
        maker.measure(cell, 0.1, **metrics)
        assert latency_doubts(Results(maker.run(("3.14",))), cell) == doubts


# --- for real, in the smallest size


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_cell_has_a_number_or_did_not_get_its_cores(run_smoke, name):
    smoke = run_smoke(name)
    assert not smoke.results.run.failures
    for cell in smoke.results.cells():
        assert smoke.results.value(cell) or smoke.results.absence(cell).word in {"starved", "skipped"}, cell


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_trials_tell_what_they_did(run_smoke, name):
    smoke = run_smoke(name)
    for each in smoke.results.run.measurements:
        metrics, (observation,) = dict(each.observations[0].metrics), each.observations
        assert metrics["closed_requests"] > 0, each.cell
        assert metrics["closed_rate"] == pytest.approx(1 / observation.wall_value)
        assert metrics["p50"] <= metrics["p90"] <= metrics["p99"] <= metrics["max"]
        assert LogHistogram.decode(metrics["histogram"]).count == metrics["requests"] + metrics["unanswered"]
        assert (metrics["burnt"] > 0) is (each.cell.workers > 0)


def test_a_request_waits_for_the_switch_interval_with_a_gil(smoke_in_which):
    def told(smoke, runner="threads"):
        cell = smoke.results.find(build=smoke.gil, runner=runner, workers=1)
        (found,) = (dict(each.observations[0].metrics) for each in smoke.results.run.measurements if each.cell == cell)
        return found

    def longest(smoke):
        return max(told(smoke)["max"], told(smoke)["closed_max"])

    # How many do depends on when the CPU thread gets a core.  One that counts half as fast as a process beside has held
    # the GIL for half of the time, and does not give it away sooner.
    smoke = smoke_in_which("convoy", lambda smoke: longest(smoke) >= DEFAULT_SECONDS or (
        told(smoke)["burnt"] >= told(smoke, "processes")["burnt"] / 2))
    assert longest(smoke) >= DEFAULT_SECONDS


def test_models_are_where_the_cpu_work_is(run_smoke):
    smoke = run_smoke("convoy")
    models = {cell.runner for cell in smoke.results.cells(build=smoke.free)}
    assert models == {"threads", "free-threaded", "processes", "subinterpreters"}   # "threads" is the control
    assert {cell.runner for cell in smoke.results.cells(build=smoke.gil)} == models - {"free-threaded"}


# --- from made-up runs


def arm(maker, name, build, runner, workers, *, rate, p50, parameters=(), groups=None, closed=None, **metrics):
    cell = Cell(workload=name, runner=runner, workers=workers, build=build, parameters=parameters)
    maker.measure(
        cell, 1 / rate, rate=min(2000.0, rate / 2), sent=1000, requests=1000, unanswered=0, p50=p50, p90=1.1 * p50,
        p99=1.5 * p50, max=2 * p50, lag_p50=1e-6, lag_p99=metrics.pop("lag_p99", 2e-6), closed_typical=1 / rate,
        histogram=histogram(*(groups or [(p50, 1000)])),
        closed_histogram=histogram(*(closed or [(1 / rate, 1000)])), **metrics)
    return cell


def convoy_run(*, bimodal=False, rounds=8):
    maker = RunMaker(rounds=rounds, noise=0.002)
    two = {"groups": [(13e-6, 500), (5.1e-3, 500)], "closed": [(13e-6, 38_000), (5.1e-3, 100)]} if bimodal else {}
    arm(maker, "convoy", "3.14", "threads", 0, rate=23_000, p50=50e-6)
    arm(maker, "convoy", "3.14", "threads", 1, rate=19_000 if bimodal else 230, p50=5.1e-3, **two)
    arm(maker, "convoy", "3.14", "threads", 4, rate=28, p50=28e-3,
        saturated="the load generator sent 10 of 100 requests")
    arm(maker, "convoy", "3.14", "processes", 1, rate=21_000, p50=60e-6)
    maker.skip(Cell(workload="convoy", runner="subinterpreters", workers=1, build="3.14"), "no interpreters")
    arm(maker, "convoy", "3.14t", "free-threaded", 0, rate=17_300, p50=55e-6)
    arm(maker, "convoy", "3.14t", "free-threaded", 1, rate=75_800, p50=13e-6, lag_p99=9e-6,
        saturated="the load generator itself was up to 9.00 µs late (99th percentile)")
    arm(maker, "convoy", "3.14t", "threads", 1, rate=205, p50=5.1e-3)
    return Results(maker.run(("3.14", "3.14t"), options={"experiment": "convoy", "effort": EffortLevel.QUICK}))


def interval_run():
    maker = RunMaker(rounds=8, noise=0.002)
    rates = {"100ms": 7, "5ms": 230, "100us": 5300, "10us": 11_800}
    for interval, rate in rates.items():
        named = (("interval", interval),)
        arm(maker, "convoy-interval", "3.14", "threads", 1, rate=rate, p50=1 / rate, parameters=named)
        arm(maker, "convoy-interval", "3.14t", "free-threaded", 1, rate=72_000, p50=13e-6, parameters=named)
    arm(maker, "convoy-interval", "3.14", "threads", 0, rate=23_000, p50=50e-6, parameters=(("interval", "5ms"),))
    arm(maker, "convoy-interval", "3.14", "threads", 1, rate=14_000, p50=70e-6,
        parameters=(("interval", "10us"), ("slack", "1ns")))
    return Results(maker.run(("3.14", "3.14t"), options={"experiment": "convoy-interval", "effort": EffortLevel.QUICK}))


@pytest.mark.parametrize(("name", "results"), [
    ("convoy", convoy_run()), ("convoy-bimodal", convoy_run(bimodal=True)), ("convoy-interval", interval_run())])
def test_tables_and_sentences(name, results):
    check_golden(f"{name}.txt", EXPERIMENTS[results.run.options["experiment"]](), results)


def test_two_modes_are_named_and_the_mean_is_doubted():
    results = convoy_run(bimodal=True)
    cell = results.find(build="3.14", runner="threads", workers=1)
    assert rate_doubt(results, cell).startswith("two modes, ")
    fast_mode, slow_mode = modes(merged_histogram(results, cell))
    assert (fast_mode.share, slow_mode.share) == (0.5, 0.5)


def test_rounds_are_added_up():
    results = convoy_run(rounds=4)
    cell = results.find(build="3.14", runner="threads", workers=1)
    assert merged_histogram(results, cell).count == 4 * 1000


def test_bursts_too_few_for_a_mode_are_told():
    maker = RunMaker(rounds=1)
    cell = arm(maker, "convoy", "3.14", "threads", 1, rate=500, p50=5e-3)
    assert rate_doubt(Results(maker.run(("3.14",))), cell) is None
    maker = RunMaker(rounds=1)
    maker.measure(cell, 1 / 500, closed_typical=0.1, closed_histogram=histogram((13e-6, 700), (0.1, 4)))
    assert "took 100 ms or longer" in rate_doubt(Results(maker.run(("3.14",))), cell)


@pytest.mark.parametrize(("build", "rates", "words"), [
    ("3.14", (23_000, 230), "is still here"),
    ("3.14", (23_000, 12_000), "is not reproduced here"),
    ("3.14t", (17_300, 75_800), "convoy of 2021 is gone"),
    ("3.14t", (17_300, 900), "did not get its core"),
])
def test_sentence_follows_the_numbers(build, rates, words):
    maker, model = RunMaker(rounds=8), "free-threaded" if build.endswith("t") else "threads"
    for workers, rate in enumerate(rates):
        arm(maker, "convoy", build, model, workers, rate=rate, p50=5e-3)
    sentence, last = ConvoyExperiment().findings(Results(maker.run((build,))))
    assert words in sentence
    assert last.endswith("by chance alone, 8 rounds would all agree in <1 % of cases.")


@pytest.mark.parametrize(("alone", "beside", "words"), [
    # The quotient of the medians is 100 in all three; by round it is 50 to 200, and 5 to 200.
    ([1e-4, 1e-4, 1e-4], [0.005, 0.01, 0.02],
     "falls in every round (3 of 3), from 10,000 to 100 requests/s in the median (1/50 to 1/200 in 3 rounds)"),
    ([1e-4, 1e-4, 1e-4], [0.0005, 0.01, 0.02],
     "(1/5.0 to 1/200 in 3 rounds): the rounds do not agree whether the collapse of 2021 is still here"),
    # Pairs of the same round: the slow ones belong together.
    ([1e-4, 2e-4, 4e-4], [0.01, 0.02, 0.04], "(1/100 in 3 rounds)"),
])
def test_fall_is_that_of_the_rounds(alone, beside, words):
    maker = RunMaker(rounds=3)
    for workers, seconds in enumerate((alone, beside)):
        maker.measure(Cell(workload="convoy", runner="threads", workers=workers, build="3.14"), seconds, p50=5e-3)
    sentence, _ = ConvoyExperiment().findings(Results(maker.run(("3.14",))))
    assert words in sentence


def test_rates_beside_the_most_threads_are_a_range():
    maker = RunMaker(rounds=3)
    for workers, seconds in ((0, 1e-4), (1, 2e-5), (4, [1 / 6_400, 1 / 9_500, 1 / 20_900])):
        cell = Cell(workload="convoy", runner="free-threaded", workers=workers, build="3.14t")
        maker.measure(cell, seconds, p50=5e-5)
    sentence, _ = ConvoyExperiment().findings(Results(maker.run(("3.14t",))))
    assert "Beside 4 CPU threads it answers 6,400 to 20,900 requests/s in 3 rounds." in sentence
    assert "Alone the server is slower than beside one CPU thread, in every round (3 of 3), probably" in sentence


@pytest.mark.parametrize(("fine", "more"), [([5e-5] * 3, True), ([5e-5, 5e-5, 2e-4], False)])
def test_fine_timer_gains_in_every_round_or_nothing_is_said(fine, more):
    maker = RunMaker(rounds=3)
    for seconds, parameters in (([5e-3] * 3, {"interval": "5ms"}), ([1e-4] * 3, {"interval": "10us"}),
                                (fine, {"interval": "10us", "slack": "1ns"})):
        maker.measure(Cell(workload="convoy-interval", runner="threads", workers=1, build="3.14",
                           parameters=tuple(parameters.items())), seconds)
    _, *found = ConvoyIntervalExperiment().findings(Results(maker.run(("3.14",))))
    assert [sentence.endswith("more in every round (3 of 3).") for sentence in found] == [True] * more


@pytest.mark.parametrize(("short", "words"), [
    ([1e-4] * 3, "a shorter interval still brings requests back, in every round (3 of 3)."),
    ([1e-4, 1e-4, 4e-3], "the rounds do not agree whether a shorter interval brings requests back."),
])
def test_requests_are_brought_back_in_every_round_or_not(short, words):
    maker = RunMaker(rounds=3)
    for interval, seconds in (("5ms", [5e-3] * 3), ("100us", short)):
        maker.measure(Cell(workload="convoy-interval", runner="threads", workers=1, build="3.14",
                           parameters=(("interval", interval),)), seconds)
    (sentence,) = ConvoyIntervalExperiment().findings(Results(maker.run(("3.14",))))
    assert sentence.endswith(words)


@pytest.mark.parametrize(("build", "rates", "words"), [
    ("3.14", (230, 5300), "still brings requests back"),
    ("3.14", (230, 240), "does not bring requests back"),
    ("3.14", (5300, 230), "there are fewer of them"),
    ("3.14t", (72_000, 71_900), "no difference beyond the noise is shown"),
    ("3.14t", (20_000, 72_000), "more requests, though there is no GIL to wait for"),
    ("3.14t", (72_000, 50_000), "fewer requests, though there is no GIL to wait for"),
])
def test_interval_sentence_follows_the_numbers(build, rates, words):
    maker, model = RunMaker(rounds=8), "free-threaded" if build.endswith("t") else "threads"
    for interval, rate in zip(("5ms", "100us"), rates, strict=True):
        arm(maker, "convoy-interval", build, model, 1, rate=rate, p50=5e-3, parameters=(("interval", interval),))
    (sentence,) = ConvoyIntervalExperiment().findings(Results(maker.run((build,))))
    assert words in sentence


@pytest.mark.parametrize(("rate", "words"), [
    (20_000, "more than 10 times as many as beside a CPU thread in every round (8 of 8): CPU work that does not share"),
    (300, "with the CPU work in processes."),
])
def test_sentence_on_work_elsewhere_follows_the_numbers(rate, words):
    maker = RunMaker(rounds=8)
    for workers, each in enumerate((23_000, 230)):
        arm(maker, "convoy", "3.14", "threads", workers, rate=each, p50=5e-3)
    arm(maker, "convoy", "3.14", "processes", 1, rate=rate, p50=5e-5)
    _, sentence, _ = ConvoyExperiment().findings(Results(maker.run(("3.14",))))
    assert words in sentence


def test_longer_intervals_alone_give_no_sentence():
    maker = RunMaker(rounds=8)
    for interval, rate in (("100ms", 8), ("5ms", 230)):
        arm(maker, "convoy-interval", "3.14", "threads", 1, rate=rate, p50=5e-3, parameters=(("interval", interval),))
    assert ConvoyIntervalExperiment().findings(Results(maker.run(("3.14",)))) == ()


def test_figures_show_what_is_there_and_what_is_not():
    bars, latencies = ConvoyExperiment().figures(convoy_run())
    assert [panel.title for panel in bars.panels] == ["3.14", "3.14t"]
    missing = next(each for each in bars.panels[0].series if each.name == "subinterpreters")
    assert all(math.isnan(value) for value in missing.y)
    assert [panel.title for panel in latencies.panels] == ["3.14", "3.14t", "3.14t, GIL on"]
    for panel in latencies.panels:
        assert sum(panel.series[0].y) == pytest.approx(100)
        assert [rule.value for rule in panel.rules] == [DEFAULT_SECONDS]


def test_figures_name_the_cells_whose_mean_says_little():
    assert "see the table" not in ConvoyExperiment().figures(convoy_run())[0].note
    note = ConvoyExperiment().figures(convoy_run(bimodal=True))[0].note
    assert note.endswith("so that the mean says little (see the table): 3.14 (threads, GIL, 1).")


def test_interval_figure_has_a_panel_per_build_and_2021_beside_the_gil():
    (figure,) = ConvoyIntervalExperiment().figures(interval_run())
    then = [[each.name for each in panel.series if each.style == "history"] for panel in figure.panels]
    assert then == [["no CPU threads, 2021", "1 CPU thread, 2021"], []]
    assert [each.name for each in figure.panels[0].series][:3] == [
        "no CPU threads", "1 CPU thread", "1 CPU thread, fine timer"]


def test_full_grid_is_that_of_the_article():
    assert {interval: tuple(rates) for interval, rates in THEN.items()} == GRID[EffortLevel.FULL]
    assert sum(map(len, THEN.values())) == 28
