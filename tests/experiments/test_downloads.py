"""`downloads`: real runs in the smallest size, what ends them badly, and its tables and sentences from made-up runs."""

import importlib.util
import re
import sys
import threading

import pytest

from gilscope.toolkit.experiments.base import EffortLevel
from gilscope.toolkit.experiments.downloads import program
from gilscope.toolkit.experiments.downloads.experiment import DownloadsExperiment, knee, knee_text
from gilscope.toolkit.experiments.results import Results
from gilscope.toolkit.measure.child.base import NoValueError
from gilscope.toolkit.model import Cell
from gilscope.toolkit.report.document import Document
from gilscope.toolkit.report.terminal import render
from gilscope.workloads import server_pages
from tests.experiments.golden import check_golden
from tests.experiments.trials import make_trial
from tests.fakes import RunMaker
from tests.matplotlib_missing import matplotlib_missing

PAGES = 20
LATENCY = 0.02


def test_every_cell_has_a_number_that_can_be(run_smoke):
    smoke = run_smoke("downloads")
    assert not smoke.results.run.failures
    cells = smoke.results.cells()
    assert {cell.runner for cell in cells} >= {"threads", "asyncio", "loops"}
    for cell in cells:
        if smoke.results.reason(cell) is None:
            assert smoke.results.value(cell).center >= PAGES / cell.workers * LATENCY   # less would be a page too few
            assert smoke.results.metric(cell, "pages").center == PAGES
        else:
            assert smoke.results.absence(cell).word in {"skipped", "starved"}


def test_concurrency_is_what_was_asked_for(run_smoke):
    results = run_smoke("downloads").results
    threads = {"asyncio": 1, "threads": 1 + 5, "free-threaded": 1 + 5}
    for cell in results.cells(workers=5):
        if (connections := results.metric(cell, "connections")) is not None:
            assert 1 < connections.center <= 5
            assert results.metric(cell, "threads").center <= threads.get(cell.runner, 1 + 5)
            assert results.metric(cell, "pss").center > results.metric(cell, "added").center >= 0


def test_free_threads_are_free(run_smoke):
    smoke = run_smoke("downloads")
    found = [seen for cell in smoke.results.cells(build=smoke.free) for seen in smoke.results.observations(cell)]
    assert not any(seen.gil_end for seen in found)


def test_report_and_figures_are_there(run_smoke):
    smoke = run_smoke("downloads")
    for words in ("Time for all pages, each answered after 20 ms", "What it takes", "near 20", "about 2x"):
        assert words in smoke.out
    # On a busy machine every cell may be starved; then there is no figure.
    measured = any(smoke.results.value(cell) for cell in smoke.results.cells())
    if measured and not matplotlib_missing(smoke.err):
        drawn = {path.name for path in smoke.folder.glob("*.png")}
        assert drawn == {"downloads.png", "downloads-memory.png"}, smoke.err


def needs(model):
    name = "requests" if model == "threads" else "aiohttp"
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed here")


def trial_of(model, folder, **scales):
    trial = make_trial(folder, workers=3, scales={"pages": PAGES, **scales}, latency="1ms")
    trial.model = model
    return trial


each_model = pytest.mark.parametrize("model", ["threads", "asyncio", "loops"])


@each_model
def test_nothing_is_left_of_a_pass(model, tmp_path):
    needs(model)
    before = set(threading.enumerate())
    taken = program.measure(trial_of(model, tmp_path))
    assert taken.metrics["connections"] <= 3
    assert taken.seconds > 0
    assert set(threading.enumerate()) <= before   # one of an earlier test may end meanwhile


@each_model
def test_wrong_page_is_a_wrong_result(model, tmp_path, monkeypatch):
    needs(model)
    right = server_pages.page
    monkeypatch.setattr(program.server_pages, "page", lambda number, words: right(number + (number == 7), words))
    with pytest.raises(NoValueError, match="not the right ones") as caught:
        program.measure(trial_of(model, tmp_path))
    assert caught.value.answer["kind"] == "wrong-result"


@each_model
def test_server_that_refuses_ends_the_trial_and_leaves_nothing(model, tmp_path, monkeypatch):
    needs(model)
    before = set(threading.enumerate())
    monkeypatch.setattr(program.server_pages, "path", lambda number, _words: f"/nothing/{number}")
    with pytest.raises(Exception, match="404"):
        program.measure(trial_of(model, tmp_path))
    assert set(threading.enumerate()) <= before   # one of an earlier test may end meanwhile


def test_module_that_turns_the_gil_on_ends_the_trial(tmp_path, monkeypatch):
    needs("threads")
    states = iter([False])   # before; afterwards it is on
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: next(states, True), raising=False)
    with pytest.raises(NoValueError, match="needs the GIL off") as caught:
        program.measure(trial_of("threads", tmp_path))
    assert caught.value.answer["kind"] == "gil"


@pytest.mark.parametrize(("times", "expected"), [
    ({5: 4.0, 20: 1.05, 100: 1.0}, 20),    # 100 are less than 10 % faster
    ({5: 4.0, 20: 1.2, 100: 1.0}, 100),
    ({5: 1.0, 20: 1.0, 100: 1.3}, 5),
    ({5: 1.0, 20: 0.5}, None),             # no line
    ({}, None),
])
def test_knee_is_where_more_workers_gain_less_than_a_tenth(times, expected):
    assert knee(times) == expected


def test_knee_at_the_end_is_none():
    assert knee_text({5: 4.0, 20: 1.2, 100: 1.0}) == "above 20"
    assert knee_text({}) == "-"


def made_up(threads, asyncio, *, build="3.14", **others):
    """Return a run with these seconds of 5, 20 and 100 threads, and of 100 requests at a time with asyncio."""
    return made_up_of({build: (threads, asyncio)}, **others)


def made_up_of(builds, *, rounds=8, **others):
    maker = RunMaker(rounds=rounds)
    for build, (threads, asyncio) in builds.items():
        measure(maker, build, threads, asyncio, **others)
    return Results(maker.run(tuple(builds), options={"experiment": "downloads", "effort": EffortLevel.QUICK}))


def measure(maker, build, threads, asyncio, *, cost=0.001, loop_cost=0.001, starved=0, latency="20ms", opened=100):
    pool = "free-threaded" if build.endswith("t") else "threads"

    def cell(model, workers):
        return Cell(workload="downloads", runner=model, workers=workers, build=build,
                    parameters=(("latency", latency),))

    measured = {"pages": 200, "cpu_per_page": cost, "threads": 5, "pss": 2e7, "added": 1e6}
    for workers, seconds in zip((5, 20, 100), threads, strict=True):
        maker.measure(cell(pool, workers), seconds, starved=starved, connections=min(workers, opened), **measured)
    maker.twin(cell(pool, 5), threads[0])
    maker.measure(cell("asyncio", 100), asyncio, starved=starved, **measured | {"cpu_per_page": loop_cost})
    maker.skip(cell("loops", 100), "aiohttp cannot be installed: no wheel for this build")


@pytest.mark.parametrize(("asyncio", "words"), [
    (0.05, "more than 2x (published: about 2x)"), (0.1, "which does not exclude 2x (published: about 2x)"),
    (0.17, "less than 2x (published: about 2x)"), (0.2, "it is not shown to be faster"), (0.25, "it is slower"),
])
def test_sentences_follow_the_numbers(asyncio, words):
    pool, loop = DownloadsExperiment().findings(made_up((0.9, 0.21, 0.2), asyncio))
    assert "stops gaining at 20 threads" in pool
    # 20 ms of latency over 1 ms of CPU time.
    assert "if all of it holds the GIL, about 20 requests in flight keep it busy" in pool
    assert words in loop


@pytest.mark.parametrize(("opened", "words"), [
    (52, "with up to 100 threads, the most measured, of which 52 in the median opened a connection; it is 1."),
    (100, "with up to 100 threads, the most measured; it is 1."),
])
def test_threads_that_a_large_pool_did_not_need_are_told(opened, words):
    pool, _ = DownloadsExperiment().findings(made_up((0.9, 0.3, 0.2), 0.1, opened=opened))
    assert words in pool


def test_each_build_has_sentences_of_its_own():
    results = made_up_of({"3.13": ((0.9, 0.3, 0.2), 0.1), "3.14": ((0.9, 0.21, 0.2), 0.25)})
    first, first_loop, second, second_loop = DownloadsExperiment().findings(results)
    assert first.startswith("3.13, pages of 20 ms: the pool takes 212 ms with up to 100 threads, the most")
    assert second.startswith("3.14, pages of 20 ms: the pool stops gaining at 20 threads")
    assert "which does not exclude 2x (published: about 2x)" in first_loop
    assert "it is slower" in second_loop


UNEXPLAINED = "That does not explain where the pool stops here."


@pytest.mark.parametrize(("threads", "cost", "words"), [
    ((0.9, 0.21, 0.2), 0.001, "about 20 requests in flight keep it busy, which fits: it stops between 5 and 20."),
    ((0.9, 0.3, 0.2), 0.001, "Between 20 and 100 nothing was measured, so where the pool stops gaining is not known."),
    ((0.9, 0.3, 0.2), 0.0001, "about 200 requests in flight keep it busy, so more threads may gain."),
    ((0.9, 0.3, 0.2), 0.005, UNEXPLAINED),     # 4 would keep it busy, but 100 threads are faster than 20
    ((0.9, 0.21, 0.2), 0.0002, UNEXPLAINED),   # 100 are needed to keep it busy, but more than 20 gain nothing
])
def test_cause_is_given_only_where_it_agrees_with_the_table(threads, cost, words):
    pool, _ = DownloadsExperiment().findings(made_up(threads, 0.1, cost=cost))
    assert pool.endswith(words)


def test_gain_of_the_largest_pool_is_a_ratio_with_its_doubt():
    pool, _ = DownloadsExperiment().findings(made_up((0.9, 0.3, 0.2), 0.1))
    assert re.search(r"; it is 1\.\d+x \[1\.\d+, 1\.\d+\] as fast as with 20\.", pool)
    noisy = made_up((0.9, [0.1, 0.9, 0.3, 0.25, 0.3], [0.2, 0.1, 0.5, 0.2, 0.4]), 0.1, rounds=5, cost=0.005)
    pool, _ = DownloadsExperiment().findings(noisy)
    assert ", undecided, as fast as with 20." in pool
    assert UNEXPLAINED not in pool   # no gain is shown, so nothing is to be explained


def test_cost_of_a_page_is_stated_not_called_the_cause():
    _, loop = DownloadsExperiment().findings(made_up((0.9, 0.21, 0.2), 0.1, loop_cost=0.0003))
    assert loop.endswith("(published: about 2x). A page costs it 300 µs of CPU time, the threads 1.00 ms.")


def test_nothing_is_said_of_what_has_no_number():
    assert list(DownloadsExperiment().findings(made_up((0.9, 0.21, 0.2), 0.1, starved=8))) == []


def test_rows_are_of_one_latency():
    maker = RunMaker(rounds=3)
    measure(maker, "3.14", (0.9, 0.3, 0.2), 0.1)
    measure(maker, "3.14t", (0.9, 0.3, 0.2), 0.1, latency="200ms")
    results = Results(maker.run(("3.14", "3.14t"), options={"experiment": "downloads", "effort": EffortLevel.QUICK}))
    assert {model for model, _ in results.rows(latency="200ms")} == {"free-threaded", "asyncio", "loops"}


def test_free_threads_have_no_lock_to_keep_busy():
    pool, _ = DownloadsExperiment().findings(made_up((0.9, 0.3, 0.2), 0.1, build="3.14t"))
    assert "as fast as with 20. A page" in pool
    assert "on every core at once" in pool


def test_missing_library_is_named_in_the_tables_and_crossed_in_the_figures():
    results = made_up((0.9, 0.21, 0.2), 0.1)
    text = render(Document(DownloadsExperiment().sections(results)))
    assert "no wheel for this build" in text
    figure, _ = DownloadsExperiment().figures(results)
    (loops,) = (series for series in figure.panels[0].series if series.model == "loops")
    assert [value == value for value in loops.y] == [False]   # noqa: PLR0124 - NaN


def test_tables_and_sentences_of_a_whole_run():
    # Pages of 1 ms with the GIL, 1.3 ms on two cores without; asyncio 0.3 ms; one cell starved, aiohttp as it comes.
    maker = RunMaker(rounds=6)
    costs = {"threads": 1.0, "free-threaded": 1.3, "asyncio": 0.3, "loops": 0.35}   # ms of CPU time of a page
    for build, pool in (("3.14", "threads"), ("3.14t", "free-threaded")):
        for latency in (20, 100):
            for model in (pool, "asyncio", "loops"):
                for workers in (2, 20, 100):
                    cell = Cell(workload="downloads", runner=model, workers=workers, build=build,
                                parameters=(("latency", f"{latency}ms"),))
                    cores = 2 if model in {"free-threaded", "loops"} and build == "3.14t" else 1
                    seconds = 0.4 * max(latency / workers, costs[model] / cores)
                    maker.measure(
                        cell, seconds, starved=6 if (model, workers) == ("loops", 100) else 0, pages=400,
                        cpu_per_page=costs[model] / 1000, threads=workers + 1, added=workers * 2e5, connections=workers,
                        server_late=0.012 if latency == 20 and workers == 100 else 0.001,
                        parser="Python" if build == "3.14t" and model == "asyncio" else "C")
                    if (latency, model, workers) == (20, "threads", 2):
                        maker.twin(cell, seconds)
    results = Results(maker.run(("3.14", "3.14t"), options={"experiment": "downloads", "effort": EffortLevel.FULL}))
    check_golden("downloads.txt", DownloadsExperiment(), results)
