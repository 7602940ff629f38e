"""A stored run as an experiment reads it: numbers, reasons, and what a helper or a program that fails becomes."""

import dataclasses
import sys

import pytest

from gilscope.runners.catalog import RUNNERS
from gilscope.toolkit.concurrency_models import find_model
from gilscope.toolkit.errors import ToolkitError, UnknownNameError
from gilscope.toolkit.experiments import catalog
from gilscope.toolkit.experiments.base import EffortLevel, PlanningContext, make_plan
from gilscope.toolkit.experiments.report import SCOPE, document, experiment_of, experiments_values
from gilscope.toolkit.experiments.results import Results, as_quantity
from gilscope.toolkit.experiments.running import ExperimentRequest
from gilscope.toolkit.measure.abilities import Abilities
from gilscope.toolkit.measure.child.base import NoValueError
from gilscope.toolkit.measure.child.program import ProgramSpec, ProgramTrial
from gilscope.toolkit.model import Cell, SkipKind
from gilscope.toolkit.report.document import Quantity
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.report.provenance import WITHOUT_PGO
from gilscope.toolkit.report.terminal import render
from gilscope.toolkit.report.wording import entry_text, value_text
from gilscope.toolkit.stats.sample import summarize
from tests.fakes import RunMaker, make_build


def cell(workers=1, runner="serial", build="3.14", **parameters):
    return Cell(workload="convoy", runner=runner, workers=workers, build=build, parameters=tuple(parameters.items()))


@pytest.fixture
def maker():
    return RunMaker(rounds=8)


def results_of(maker):
    return Results(maker.run(("3.14", "3.14t")))


def test_cells_are_found_by_their_parameters(maker):
    for interval in ("5ms", "1ms"):
        maker.measure(cell(2, "threads", interval=interval, client="near"), 1.0)
    maker.measure(cell(2, "threads", interval="5ms"), 1.0)
    results = results_of(maker)
    assert len(results.cells(interval="5ms")) == 2
    assert results.find(build="3.14", runner="threads", workers=2, interval="5ms") == cell(2, "threads", interval="5ms")
    assert results.find(build="3.14", runner="threads", workers=2, interval="2ms") is None


def test_cells_are_found_by_build_model_and_workers(maker):
    there = [cell(), cell(2), cell(2, "threads"), cell(2, "threads", build="3.14t")]
    for each in there:
        maker.measure(each, 1.0)
    results = results_of(maker)
    assert results.cells() == there
    assert results.cells(build="3.14t") == there[3:]
    assert results.cells(runner="serial") == there[:2]
    assert results.cells(workers=1) == there[:1]
    assert results.find(build="3.14t", runner="threads", workers=2) == there[3]
    assert results.find(build="3.14", runner="serial", workers=2) == there[1]


def test_longest_is_the_largest_of_all_rounds_without_a_spread(maker):
    maker.measure(cell(), 1.0, starved=1, longest=[9.0, *(1.0,) * 6, 2.0])   # the starved round does not count
    assert results_of(maker).longest(cell(), "longest") == Quantity(2.0, "seconds")
    assert results_of(maker).longest(cell(), "unknown") is None


def test_zero_has_no_spread():
    assert as_quantity(summarize([0.0, 0.0, 0.0])) == Quantity(0.0, "seconds")
    assert as_quantity(summarize([1.0, 1.0, 3.0])) == Quantity(1.0, "seconds", 1.0)


def test_values_are_compared_by_the_rounds_that_both_have(maker):
    maker.measure(cell(), 2.0, p50=0.5, kind=1)
    maker.measure(cell(2), 1.0, starved=3)
    maker.measure(cell(4), 1.0, starved=8)
    results = results_of(maker)
    assert results.value(cell()).center == pytest.approx(2.0, rel=0.2)
    assert results.compare(cell(), cell(2)).rounds == 5
    assert "3 of 8 rounds were starved" in results.notes(cell(2))[0]
    assert results.notes(cell(4)) == ()
    assert results.compare(cell(), cell(4)) is None
    assert results.compare(cell(), None) is results.value(None) is results.value(cell(4)) is None
    assert results.texts(cell(), "p50") == []
    assert results.rate(cell(4)) is None


def test_cell_that_differs_when_it_is_measured_twice_widens_the_intervals(maker):
    maker.measure(cell(2), 1.0)
    maker.twin(cell(2), 1.3)
    maker.measure(cell(), 1.2)
    found = results_of(maker).compare(cell(), cell(2))
    assert "times wider" in found.notes[-1].text


def test_metrics_leave_starved_rounds_out_and_tell_texts_from_numbers(maker):
    maker.measure(cell(), 1.0, starved=3, p50=0.005, histogram="3:1")
    results = results_of(maker)
    assert results.metrics(cell(), "p50") == dict.fromkeys(range(3, 8), 0.005)
    assert results.texts(cell(), "histogram") == ["3:1"] * 5
    assert results.metric(cell(), "histogram") is None
    assert results.metric(cell(), "p99") is None


def test_cell_that_is_starved_has_no_number_but_a_reason(maker):
    maker.measure(cell(2, "threads"), 1.0, starved=5)
    results = results_of(maker)
    footnotes = Footnotes()
    entry = results.entry(cell(2, "threads"), results.duration, footnotes)
    assert entry_text(entry) == "starved¹"
    assert "cores" in footnotes.texts()[0]
    assert results.value(cell(2, "threads")) is None
    assert results.compare(cell(2, "threads"), cell(2, "threads")) is None


def test_skipped_failed_and_unplanned_cells_say_so(maker):
    maker.measure(cell(), 1.0)
    maker.skip(cell(2), "no gevent")
    maker.fail(cell(4), "crash", "killed by SIGSEGV")
    results = results_of(maker)
    footnotes = Footnotes()
    shown = [entry_text(results.entry(each, results.duration, footnotes)) for each in (cell(2), cell(4), None)]
    assert shown == ["skipped¹", "failed²", ""]
    assert footnotes.texts() == ("no gevent", "round 1: crash: killed by SIGSEGV")


def test_rate_is_one_over_the_value(maker):
    maker.noise = 0.0
    maker.machine = [1.0] * 8
    maker.measure(cell(), 0.005)
    assert results_of(maker).rate(cell()) == Quantity(pytest.approx(200.0), "/s", 0.0)


def test_one_value_has_no_spread():
    maker = RunMaker(rounds=1)
    maker.measure(cell(), 2.0)
    assert results_of(maker).duration(cell()).spread is None


@pytest.mark.parametrize(("value", "text"), [
    (Quantity(23144, "/s", 0.04), "23,100/s ±4 %"), (Quantity(0.04123, " MiB"), "0.0412 MiB"), (Quantity(0, ""), "0"),
    (Quantity(7, "/s"), "7/s"), (Quantity(7.5, "/s"), "7.50/s"), (Quantity(999.9, "/s"), "1,000/s"),
    (Quantity(0.0051, "seconds"), "5.10 ms"),
])
def test_quantities_have_three_digits(value, text):
    assert value_text(value) == text


def test_first_measured_cell_gets_the_twin():
    plan = make_plan([(cell(1), "cannot"), (cell(2), None), (cell(4), None)])
    assert plan.cells == (cell(2), cell(4), dataclasses.replace(cell(2), twin=True))
    assert [skip.reason for skip in plan.skips] == ["cannot"]


def test_request_survives_json():
    asked = ExperimentRequest(experiment="countdown", effort="quick", rounds=3, budget=30.0, timeout=60.0, seed=1)
    assert ExperimentRequest.from_options(asked.to_options()) == asked


@pytest.mark.parametrize(("model", "state"), [
    ("threads", True), ("free-threaded", False), ("serial", None), ("tornado", None)])
def test_models_have_the_state_of_the_gil_that_they_need(model, state):
    assert find_model(model).gil is state


def test_main_jobs_run_is_no_experiment(maker):
    with pytest.raises(ToolkitError, match="gilscope report"):
        experiment_of(maker.run(("3.14",)))


def planned(name, effort, **reasons):
    """Return the experiment and its plan for a GIL and a free-threaded build that can do everything but `reasons`."""
    experiment = catalog.find(name)
    builds = (make_build("3.14"), make_build("3.14t"))
    modules = {package.module: reasons.get(package.module) for package in experiment.packages}
    able = Abilities(runners=dict.fromkeys(runner.name for runner in RUNNERS), modules=modules, isolated=modules)
    context = PlanningContext(builds=builds, abilities={build.label: able for build in builds}, cores=2, effort=effort,
                              scales=experiment.levels[effort].scales)
    return experiment, experiment.plan(context)


ALL = pytest.mark.parametrize("name", catalog.EXPERIMENTS)


@ALL
@pytest.mark.parametrize("effort", EffortLevel)
def test_plans_have_each_cell_once_an_arm_measured_twice_and_names_that_survive(name, effort):
    _, plan = planned(name, effort)
    everything = [*plan.cells, *(skip.cell for skip in plan.skips)]
    assert len(set(everything)) == len(everything)
    assert any(cell.twin for cell in plan.cells)
    assert all(Cell.parse(cell.name, cell.build) == cell for cell in everything)
    # What scales over free threads, a build with a GIL has no answer to.
    assert {cell.build for cell in plan.cells} == {"3.14", "3.14t"} - ({"3.14"} if name == "scaling" else set())


@ALL
def test_each_can_be_reported_when_nothing_was_measured(name, maker):
    experiment, plan = planned(name, EffortLevel.QUICK)
    for each in plan.cells:
        maker.skip(each, "nothing works here")
    run = maker.run(("3.14", "3.14t"), options={"experiment": name, "effort": "quick"})
    assert "nothing works here" in render(document(experiment, run, None))
    assert experiment.findings(Results(run)) == ()
    experiment.figures(Results(run))


def test_experiment_that_the_budget_cut_says_how_to_go_on(maker, tmp_path):
    experiment, plan = planned("convoy", EffortLevel.QUICK)
    for each in plan.cells:
        maker.skip(each, "no time", SkipKind.OUT_OF_BUDGET)
    run = maker.run(("3.14", "3.14t"), cells=plan.cells, rounds_done=1, rounds_planned=3, stopped="budget",
                    options={"experiment": "convoy", "effort": "quick"})
    text = " ".join(render(document(experiment, run, tmp_path / "today" / "convoy")).split())
    assert "1 of 3 rounds (incomplete: " in text
    assert "`gilscope experiment run --resume today --budget TIME` measures the rest" in text
    published = dataclasses.replace(run, machine=dataclasses.replace(run.machine, hostname=""))
    assert "--resume" not in render(document(experiment, published, tmp_path))


@ALL
def test_each_can_be_reported_when_every_cell_has_a_value_and_nothing_else(name, maker):
    experiment, plan = planned(name, EffortLevel.QUICK)
    for number, each in enumerate(plan.cells, 1):
        maker.measure(each, number / 100)
    run = maker.run(("3.14", "3.14t"), options={"experiment": name, "effort": "quick"})
    text = " ".join(render(document(experiment, run, None)).split())
    assert SCOPE in text
    assert WITHOUT_PGO in text
    assert experiments_values([(run, None)])["experiments"][0]["scope"] == "in this session"
    experiment.figures(Results(run))


@pytest.mark.parametrize("name", [name for name in catalog.EXPERIMENTS if catalog.find(name).packages])
def test_missing_packages_cost_their_cells_alone(name):
    experiment = catalog.find(name)
    _, plan = planned(name, EffortLevel.QUICK, **{each.module: f"no {each.module}" for each in experiment.packages})
    # Some are done without, as psutil is on Linux.
    assert any(f"no {each.module}" in skip.reason for each in experiment.packages for skip in plan.skips)
    assert all(Cell.parse(cell.name, cell.build) == cell for cell in plan.cells)


def test_unknown_experiment_is_named():
    with pytest.raises(UnknownNameError, match="convoi"):
        catalog.find("convoi")


def make_trial(folder):
    return ProgramTrial(ProgramSpec(
        name="t", progress_timeout=60.0, folder=str(folder), program="gilscope.toolkit.experiments.countdown.program",
        build="current", model="serial",
        workers=1, gil=None, parameters={"interval": "5ms", "depth": "3"}, scales={"count": 7}, host=sys.executable))


def test_numbers_come_from_parameters_and_scales(tmp_path):
    trial = make_trial(tmp_path)
    assert [trial.number("interval"), trial.count("depth"), trial.count("count")] == [0.005, 3, 7]
    with pytest.raises(KeyError):
        trial.number("width")


@pytest.mark.parametrize(("module", "said"), [
    ("gilscope.toolkit.no_such_module", "the helper process gilscope.toolkit.no_such_module ended"),
    ("this", "said 'The Zen of Python"),
])
def test_helper_that_does_not_get_ready_is_an_error_with_its_words(module, said, tmp_path):
    with pytest.raises(NoValueError, match=said), make_trial(tmp_path).helper(module):
        pytest.fail("it is ready")


def test_helper_is_gone_when_the_block_is_left(tmp_path):
    with make_trial(tmp_path).helper("gilscope.toolkit.experiments.load.echo_client") as helper:
        assert helper.ready
        process = helper._process
    assert process.returncode is not None


def test_evidence_covers_all_blocks_and_counts_helpers_as_ours(tmp_path):
    trial = make_trial(tmp_path)
    for _ in range(2):
        with trial.measuring() as clock:
            sum(range(3_000_000))
    assert clock.cpu > 0
    assert clock.wall > 0
    assert set(trial.evidence) >= {"others_cores", "steal", "pressure"}
