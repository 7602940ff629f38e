"""`gil-trace`: what is certain of its run in the smallest size, and its tables, sentences and pictures."""

import dataclasses
import json
import sys

import pytest

from gilscope.toolkit.experiments.base import EffortLevel
from gilscope.toolkit.experiments.gil_trace import program
from gilscope.toolkit.experiments.gil_trace.experiment import GilTraceExperiment
from gilscope.toolkit.experiments.report import figures_of
from gilscope.toolkit.experiments.results import Results
from gilscope.toolkit.gil import preload
from gilscope.toolkit.gil.chrome import write_trace
from gilscope.toolkit.gil.summary import summarize
from gilscope.toolkit.measure.child.base import NoValueError
from gilscope.toolkit.model import Cell
from gilscope.toolkit.report.document import Quantity
from gilscope.toolkit.report.wording import entry_text
from gilscope.toolkit.store import file_path
from tests.experiments.trials import make_trial
from tests.fakes import RunMaker
from tests.gil.recorded import make_process
from tests.gil.traces import checked

needs_shim = pytest.mark.skipif(preload.unavailable() is not None, reason=str(preload.unavailable()))


def cell(build, work, model=None):
    model = model or ("free-threaded" if build.endswith("t") else "threads")
    return Cell(workload="gil-trace", runner=model, workers=2, build=build, parameters=(("work", work),))


@needs_shim
def test_every_cell_has_a_value_and_a_trace(run_smoke):
    smoke = run_smoke("gil-trace")
    assert not smoke.results.run.failures
    assert not smoke.results.run.skips
    for each in smoke.results.cells():
        checked(json.loads(smoke.results.file(each, "trace.json").read_text()))


@needs_shim
def test_one_of_two_cpu_threads_waits_where_there_is_a_gil(smoke_in_which):
    def metrics_by_cell(smoke):
        return {each.cell: dict(each.observations[0].metrics) for each in smoke.results.run.measurements}

    smoke = smoke_in_which("gil-trace", lambda smoke: metrics_by_cell(smoke)[
        cell(smoke.gil, "cpu", "threads")]["waits"] > 0)   # where one ends before the other begins, nobody waits
    by_cell = metrics_by_cell(smoke)
    on, off = by_cell[cell(smoke.gil, "cpu", "threads")], by_cell[cell(smoke.free, "cpu", "free-threaded")]
    assert 0 < on["longest"] <= on["waited"] * on["lasted"] * 2 * (1 + 1e-9)   # the share is of both threads' time
    assert on["longest"] * on["waits"] >= on["waited"] * on["lasted"] * 2 * (1 - 1e-9)
    assert (off["waits"], off["waited"], off["handovers"]) == (0, 0, 0)
    for found in by_cell.values():
        assert found["blocked"] >= 0
        assert found["overhead"] > 0   # how much is the machine's business


def test_shares_are_of_the_time_of_all_threads_of_the_work():
    work = named(make_process())     # of one second, in which each waits for half of it
    found = program._metrics(summarize([work]), 1.0)
    assert (found["waited"], found["waits"], found["longest"]) == (pytest.approx(0.5), 10, pytest.approx(0.1))
    assert (found["blocked"], found["handovers"]) == (0, 6)


@needs_shim
def test_requests_are_answered_beside_a_cpu_thread(run_smoke):
    smoke = run_smoke("gil-trace")
    for each in smoke.results.run.measurements:
        if dict(each.cell.parameters)["work"] == "io":
            assert dict(each.observations[0].metrics)["requests"] >= program.LEAST_REQUESTS


def test_without_the_shim_the_cell_says_why(tmp_path, monkeypatch):
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    trial = make_trial(tmp_path, scales={"cpu": 1000}, work="cpu")
    with pytest.raises(NoValueError, match="could not be preloaded"):
        program.measure(trial)


def test_systems_without_the_shim_skip_every_cell_with_the_reason(monkeypatch):
    from tests.experiments.test_results import planned

    monkeypatch.setattr(sys, "platform", "darwin")
    _, plan = planned("gil-trace", EffortLevel.QUICK)
    assert not plan.cells
    assert {skip.reason for skip in plan.skips} == {
        "GIL waits are measured on Linux alone: what it takes, LD_PRELOAD, is not there on darwin"}


GIL = {"waits": 100, "waited": 0.48, "longest": 0.0052, "failed": 105, "handovers": 200, "calls": 900.0, "lasted": 0.5,
       "blocked": 0.0, "parks": 0, "yields": 0}
FREE = {**GIL, "waits": 0, "waited": 0.0, "longest": 0.0, "failed": 0, "handovers": 0}


def made_up(build, **works):
    maker = RunMaker(rounds=4)
    for work, metrics in works.items():
        maker.measure(cell(build, work), 0.005, **metrics)
    return maker.run((build,), options={"experiment": "gil-trace", "effort": EffortLevel.QUICK})


@pytest.mark.parametrize(("changes", "words"), [
    ({}, "48 % of their time waiting for the GIL; the longest of all waits was 5.20 ms. The GIL changes hands 200 "),
    ({"longest": [0.0052, 0.0052, 0.0103, 0.0052]}, "; the longest of all waits was 10.3 ms."),
    # By round 1, 1, 1 and 10; the quotient of the medians is 2.
    ({"failed": [50, 50, 100, 100], "waits": [50, 50, 100, 10]}, "a wait has 1.0 failed tries."),
    ({"calls": 1030}, "All of this takes about 1,030 system calls a second, without those of mutexes; in 2009 it"),
    ({"failed": 105}, "a wait has 1.1 failed tries. In 2009 there were hundreds"),
    ({"failed": 20000}, "a wait has 200.0 failed tries: in 2009 there were hundreds, as here"),
])
def test_sentence_on_cpu_threads_follows_the_numbers(changes, words):
    (sentence,) = GilTraceExperiment().findings(Results(made_up("3.14", cpu={**GIL, **changes})))
    assert words in sentence


def test_tables_count_the_system_calls_of_a_process_and_say_what_recording_took():
    run = made_up("3.14", cpu={**GIL, "lasted": [0.5, 0.5, 1.0, 1.0], "overhead": 0.13}, lock={**GIL, "overhead": 0.02})
    for table, calls, recorded in zip(
            GilTraceExperiment().sections(Results(run))[:2], ("675 ±33 %", "450 ±0 %"), ("13 %", "2 %"), strict=True):
        titles = [column.title for column in table.columns]
        row = dict(zip(titles, map(entry_text, table.rows[0]), strict=True))
        assert (row["system calls"], row["recording"]) == (calls, recorded)


@pytest.mark.parametrize(("wait", "waits", "words"), [
    (0.0051, 1.5, "waits for the GIL 1.5 times, 5.10 ms at a time: it releases the GIL with each system call"),
    (0.0051, 0.01, "waits for the GIL 0.01 times, 5.10 ms at a time: mostly it has the GIL again"),
    (0.00002, 1.5, "waits for the GIL 1.5 times, 20.0 µs at a time."),
])
def test_convoy_is_said_where_most_requests_wait_for_the_interval(wait, waits, words):
    run = made_up("3.14", io={**GIL, "io-wait": wait, "io-waits": waits})
    (sentence,) = GilTraceExperiment().findings(Results(run))
    assert words in sentence
    assert ("convoy effect" in sentence) is (wait > 0.001 and waits > 1)


def test_sentence_on_a_free_threaded_build_tells_what_threads_share():
    run = made_up("3.14t", cpu=FREE, list={**FREE, "blocked": 0.3}, lock={**FREE, "blocked": 0.4})
    (sentence,) = GilTraceExperiment().findings(Results(run))
    assert "there is no GIL to wait for" in sentence
    assert "append to one list wait 30 % of their time, two that take one Lock 40 %" in sentence


def test_longest_wait_in_the_table_is_that_of_all_rounds_without_a_spread():
    run = made_up("3.14", cpu={**GIL, "longest": [0.0052, 0.0052, 0.0103, 0.0052]})
    waits, _, _ = GilTraceExperiment().sections(Results(run))
    titles = [column.title for column in waits.columns]
    assert waits.rows[0][titles.index("longest")].value == Quantity(0.0103, "seconds")


def test_starved_cells_give_no_sentence():
    run = made_up("3.14", cpu=GIL)
    starved = tuple(dataclasses.replace(o, starved=True) for o in run.measurements[0].observations)
    measurement = dataclasses.replace(run.measurements[0], observations=starved)
    assert GilTraceExperiment().findings(Results(dataclasses.replace(run, measurements=(measurement,)))) == ()


def named(process, threads=()):
    """Return the process with the names of the program's threads; the first of three is the frame's."""
    threads = [dataclasses.replace(each, name="main" if each.main else f"CPU {each.number}")
               for each in threads or process.threads]
    return dataclasses.replace(process, threads=tuple(threads))


def test_picture_is_the_middle_of_the_kept_trace(tmp_path):
    each = cell("3.14", "cpu")
    path = file_path(tmp_path, each, "trace.json")
    path.parent.mkdir(parents=True)
    write_trace([named(make_process())], path)
    (figure,) = figures_of(GilTraceExperiment(), made_up("3.14", cpu=GIL), tmp_path)
    (panel,) = figure.panels
    assert panel.title == "2 CPU threads, 3.14"
    assert [lane.name for lane in panel.lanes] == ["CPU 1", "CPU 2"]
    assert [lane.spans for lane in panel.lanes] == [
        ((0.0, 0.06, "waits for the GIL"),), ((0.0, 0.06, "holds the GIL"),)]


def test_threads_without_a_gil_run_where_they_are_not_parked(tmp_path):
    each = cell("3.14t", "list")
    path = file_path(tmp_path, each, "trace.json")
    path.parent.mkdir(parents=True)
    process = make_process()
    (main, first, _) = process.threads
    write_trace([named(process, (dataclasses.replace(main, main=False), first))], path)
    (figure,) = figures_of(GilTraceExperiment(), made_up("3.14t", list=FREE), tmp_path)
    (panel,) = figure.panels
    assert [[(round(end - start, 6), state) for start, end, state in lane.spans] for lane in panel.lanes] == [
        [(0.001, "parked")], [(0.001, "runs, or could run")]]
