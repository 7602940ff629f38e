"""`scaling`: its operations on every build at hand, a real run in the smallest size, and reports of made-up runs."""

import dataclasses
import subprocess
import sys
from types import SimpleNamespace
from typing import ClassVar

import pytest

from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.experiments import running
from gilscope.toolkit.experiments.base import EffortLevel
from gilscope.toolkit.experiments.report import experiments_values
from gilscope.toolkit.experiments.results import Results
from gilscope.toolkit.experiments.running import ExperimentRequest, PreparedBuilds, begin, measure
from gilscope.toolkit.experiments.scaling.experiment import ScalingExperiment, _way_text
from gilscope.toolkit.experiments.scaling.measuring import AreaRounds, BuildZygotes
from gilscope.toolkit.experiments.scaling.operation_calls import maker
from gilscope.toolkit.experiments.scaling.operations import AREAS, OPERATIONS, SHARED, Operation
from gilscope.toolkit.experiments.scaling.shares import CAUSE, FoundCause, OperationShares, _handoffs, is_cause
from gilscope.toolkit.measure.abilities import Abilities
from gilscope.toolkit.measure.measured_process import ProcessAnswer
from gilscope.toolkit.measure.rounds import ArmResult
from gilscope.toolkit.model import Cell
from gilscope.toolkit.report.document import Document
from gilscope.toolkit.report.terminal import render
from gilscope.toolkit.scale.judgement import ScalingVerdict
from gilscope.toolkit.scale.throughput import near_limit
from gilscope.toolkit.store import Store, load_run
from tests.conformance.builds import ROOT
from tests.experiments.made_up import calls
from tests.fakes import RunMaker, make_build
from tests.patience import PATIENCE

EVERY = """
import sys
from gilscope.toolkit.experiments.scaling.operation_calls import maker
from gilscope.toolkit.experiments.scaling.operations import OPERATIONS
for each in OPERATIONS.values():
    for way in each.ways:
        if sys.version_info[:2] >= each.needs:
            try:
                make, operations = maker(each.preparation, each.own, each.statement, way)
                make()()
                make()()
                assert operations >= 1
            except Exception as error:
                print(f"{each.name}, {way}: {error!r}")
"""


@pytest.mark.builds("gil", "free")
def test_every_operation_runs(python):
    # Some setups ignore warnings or let files be collected: a program of its own.
    done = subprocess.run([python, "-c", EVERY], cwd=ROOT, text=True,
                          capture_output=True, check=False, timeout=PATIENCE)
    assert (done.stdout, done.returncode) == ("", 0), done.stdout + done.stderr


def test_names_of_operations_are_unique_and_fit_into_names_of_cells():
    assert len(OPERATIONS) == sum(map(len, AREAS.values())) >= 150
    assert not [name for name in OPERATIONS if {"/", "="} & {*name.replace("==", "")} or len(name) > 48]
    assert not [each.name for each in OPERATIONS.values() if SHARED in each.ways and not each.setup]


def objects_of(operation, way):
    """Return the object that each of two threads finds under the name `data`."""
    make, _ = maker(operation.preparation, operation.own, operation.statement, way)
    return [call.__globals__["data"] for call in (make(), make())]


def test_shared_data_is_one_object_and_private_data_one_for_each_thread():
    operation = Operation("x", "data", "data = [1]\n")
    first, second = objects_of(operation, "shared")
    assert first is second
    first, second = objects_of(operation, "private")
    assert first is not second


def test_own_lines_run_in_each_thread_and_share_the_class():
    operation = Operation("x", "data", "class Data:\n    pass\n", own="data = Data()")
    first, second = objects_of(operation, "shared")
    assert first is not second
    assert type(first) is type(second)
    first, second = objects_of(operation, "private")
    assert type(first) is not type(second)


def test_statement_finds_classes_and_capitals_as_globals_and_other_names_as_locals():
    make, _ = maker("class Kind: pass\nNAME = [1]\ndata = [2]\n", "", "Kind, NAME, data", "shared")
    code = make().__code__
    assert {"Kind", "NAME"} <= {*code.co_names}
    assert code.co_varnames[:1] == ("data",)


def test_call_lasts_long_enough_that_binding_its_names_does_not_count():
    _, operations = maker("value = 1\n", "", "value", "shared")
    assert operations > 100


# ------------------------------------------------------------------------------------------------ made-up runs

LIST, MATCH, SUM = "list appended and popped", "re pattern, match", "int added, small"


def cell(operation, data, build="3.14t", **more):
    return Cell(workload="scaling", runner="free-threaded", workers=2, build=build,
                parameters=(("operation", operation), ("data", data), *more.items()))


def near(share):
    """Return metrics by round, one percent around the share."""
    rounds = [calls(share * factor) for factor in (0.99, 1.0, 1.01, 1.0)]
    return {name: [each[name] for each in rounds] for name in rounds[0]}


def made_up(**shares):
    """Return results of two builds and two operations."""
    maker_ = RunMaker(rounds=4)
    old, new = shares.get("old", 0.3), shares.get("new", 1.0)
    maker_.measure(cell(LIST, "shared", "3.13t"), 1e-7, **near(0.2))
    maker_.measure(cell(LIST, "private", "3.13t"), 1e-7, **near(1.0))
    maker_.measure(cell(MATCH, "shared", "3.13t"), 1e-7, **near(old))
    maker_.measure(cell(LIST, "shared"), 1e-7, **near(0.2))
    maker_.measure(cell(LIST, "private"), 1e-7, **near(1.0))
    maker_.measure(cell(MATCH, "shared"), 1e-7, **near(new))
    maker_.measure(cell(LIST, "shared", cause="yes"), 9.0, verdict=shares.get("found", "gets slower"), obstacle="lock",
                   object_1="operation.numbers (list)", repair_1="shard-what-the-lock-protects")
    maker_.skip(Cell(workload="scaling", runner="free-threaded", workers=2, build="3.14"), "the GIL is enabled here")
    return Results(maker_.run(("3.14", "3.13t", "3.14t"), options={"experiment": "scaling", "effort": "quick"},
                              cells=tuple(each.cell for each in maker_.measurements)))


def text_of(results):
    text = render(Document(ScalingExperiment().sections(results)), width=160)
    return [line.split() for line in text.splitlines() if line.strip()]


def test_table_says_what_does_not_scale_on_each_build():
    lines = text_of(made_up())
    assert [*LIST.split(), "0.20", "no", "1.00", "0.20", "no", "1.00"] in lines
    assert [*MATCH.split(), "0.30", "no", "1.00"] in lines


def test_what_is_in_the_way_is_named_with_the_interval():
    (line,) = [line for line in text_of(made_up()) if "lock:" in line]
    assert " ".join(line).startswith(f"{LIST} shared 3.14t 0.20 [0.")
    assert " ".join(line).endswith("gets slower lock: operation.numbers (list)")


def test_builds_with_a_gil_are_said_to_have_nothing_to_measure():
    assert "3.14: nothing to measure: the GIL is enabled here" in "\n".join(map(" ".join, text_of(made_up())))


def test_findings_count_and_compare_builds():
    old, new, causes, change = ScalingExperiment().findings(made_up())
    assert old.startswith("3.13t: of 3 measurements, 1 scales, 2 do not (2 of them are slower than one thread), 0 are")
    assert new.startswith("3.14t: of 3 measurements, 2 scale, 1 does not")
    assert causes == "In the way of the 1 loss whose cause was looked for: lock (1)."
    assert change == "From 3.13t to 3.14t: 1 more scales, none no longer does."


def test_what_no_longer_scales_is_named():
    *_, change = ScalingExperiment().findings(made_up(old=1.0, new=0.3))
    assert change == f"From 3.13t to 3.14t: 0 more scale, 1 no longer does: {MATCH} (shared)."


def test_investigation_that_contradicts_the_share_leaves_the_verdict_open():
    shares = OperationShares(made_up(found="scales"))
    assert shares.verdict(cell(LIST, "shared")) is ScalingVerdict.UNSURE
    assert shares.verdict(cell(LIST, "shared", "3.13t")) is ScalingVerdict.SLOWER
    assert [*LIST.split(), "0.20", "no", "1.00", "0.20", "?", "1.00"] in text_of(made_up(found="scales"))


def test_share_of_threads_that_were_always_disturbed_is_a_limit():
    maker_ = RunMaker(rounds=4)
    for operation, share in ((LIST, 0.3), (MATCH, 0.9)):
        rounds = [calls(share * factor, clean=0.0) for factor in (0.99, 1.0, 1.01, 1.0)]
        maker_.measure(cell(operation, "shared"), 1e-7, **{name: [each[name] for each in rounds] for name in rounds[0]})
    results = Results(maker_.run(("3.14t",), cells=tuple(each.cell for each in maker_.measurements)))
    assert [*LIST.split(), "<0.30", "no"] in text_of(results)
    assert [*MATCH.split(), "<0.90", "?"] in text_of(results)


AGAIN = "not found again: {} when it was investigated; held meanwhile: app.TABLE"


@pytest.mark.parametrize(("verdict", "obstacle", "proven", "said"), [
    ("gets slower", "reference counts", True, "reference counts: app.TABLE"),
    ("unsure", "reference counts", True, "reference counts: app.TABLE; unsure when it was investigated"),
    ("unsure", "reference counts", False, AGAIN.format("unsure")),
    ("unsure", "unknown", False, AGAIN.format("unsure")),
    ("scales", "nothing to blame", False, AGAIN.format("scales"))])
def test_cause_of_an_open_verdict_is_told_as_such(verdict, obstacle, proven, said):
    cause = FoundCause(verdict=ScalingVerdict(verdict), obstacle=obstacle, doubt="", objects=("app.TABLE",),
                       proven=proven)
    assert _way_text(cause) == said


def test_json_has_the_counted_calls_and_the_cause():
    (report,) = experiments_values([(made_up().run, None)])["experiments"]
    (cause,) = [each for each in report["cells"] if CAUSE in each["parameters"]]
    assert cause["texts"]["object_1"] == ["operation.numbers (list)"]
    (share,) = [each for each in report["cells"] if each["parameters"] == {"operation": LIST, "data": "shared"}
                and each["build"] == "3.14t"]
    assert share["metrics"]["threads_calls"]["median"] == calls(0.2)["threads_calls"]
    assert share["scaling"]["verdict"] == "gets slower"
    assert share["scaling"]["of_ceiling"]["ratio"] == pytest.approx(0.2, abs=0.01)


# ------------------------------------------------------------------------------- the rounds that the experiment adds

class MadeUpRounds(AreaRounds):
    """Delivers calls as if threads reached a share that depends on the operation, and counts what it is asked for."""

    asked = ()

    def __init__(self, share, stop=None):
        super().__init__({})
        self.share, self.stop, self.asked = share, stop, []

    def measure(self, cells, around):
        self.asked += [(around.index, each) for each in cells if not each.twin]
        if self.stop and is_cause(cells[0]):
            raise self.stop
        metrics = {each: {"verdict": "gets slower", "obstacle": "lock"} if is_cause(each)
                   else calls(self.share(each, around.index)) for each in cells}
        return [ArmResult(cell=each, start=None, values=(1e-7,), answer=ProcessAnswer(
            kind="measured", reason="", output="", fields={
                "cpu": [], "loops": 1, "starved": False, "metrics": metrics[each]})) for each in cells]


class Quiet:
    """Hears what is going on."""

    def __getattr__(self, name):
        return lambda *_, **__: None


class MadeUpExperiment(ScalingExperiment):
    """Measures by a method of the test's."""

    levels: ClassVar = {EffortLevel.QUICK: dataclasses.replace(
        ScalingExperiment.levels[EffortLevel.QUICK], rounds=3, scales={"every": 60, "causes": 2, "more": 2})}

    def __init__(self, method):
        self.method = method

    def round_method(self, pythons, effort):
        return self.method


REQUEST = ExperimentRequest(experiment="scaling", effort=EffortLevel.QUICK, rounds=3, budget=None, timeout=60.0, seed=1)
FREE = make_build("3.14t")
PREPARED = PreparedBuilds(
    builds=(FREE,), pythons={"3.14t": sys.executable}, environment={}, notes=(),
    abilities={"3.14t": Abilities(runners={"free-threaded": None}, modules={}, isolated={})})


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    """Have a machine with as many cores as the experiment needs."""
    monkeypatch.setattr(running, "usable_cores", lambda: 2)


def run_made_up(tmp_path, method):
    experiment = MadeUpExperiment(method)
    store, run = begin(experiment, REQUEST, PREPARED, tmp_path / "label")
    try:
        return measure(experiment, REQUEST, PREPARED, store, run, folder=tmp_path, reporter=Quiet())
    finally:
        store.close()


def losing(operations, share=0.2):
    """Return shares: these operations lose, the others scale, a little different in each round."""
    return lambda each, index: (share if dict(each.parameters)["operation"] in operations else 1.0) * (1 + index / 99)


ALL = [*OPERATIONS][::60]


def test_the_largest_losses_are_investigated_once_after_the_rounds(tmp_path):
    method = MadeUpRounds(losing(ALL[:1]))
    run = run_made_up(tmp_path, method)
    ways = OPERATIONS[ALL[0]].ways
    assert [each for index, each in method.asked if index == 3] == [cell(ALL[0], way, cause="yes") for way in ways]
    assert run.stopped == "rounds"
    stored = load_run(tmp_path / "label" / "scaling")
    shares = OperationShares(Results(stored))
    assert shares.cause(cell(ALL[0], "shared")).obstacle == "lock"
    assert {each for each in shares.cells if shares.limited(each)} == {cell(ALL[0], way) for way in ways}


def test_open_verdicts_get_more_rounds_but_not_for_ever(tmp_path):
    method = MadeUpRounds(lambda each, index: (0.6, 1.1)[index % 2] if dict(each.parameters)["operation"] == ALL[0]
                          else 1 + index / 99)
    run_made_up(tmp_path, method)
    later = {index: {dict(each.parameters)["operation"] for at, each in method.asked if at == index}
             for index in (3, 4, 5)}
    assert later == {3: {ALL[0]}, 4: {ALL[0]}, 5: set()}


def test_interrupted_search_for_causes_goes_on(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run_made_up(tmp_path, MadeUpRounds(losing(ALL[:1]), stop=KeyboardInterrupt()))
    method = MadeUpRounds(losing(ALL[:1]))
    store, run = Store.reopen(tmp_path / "label" / "scaling")
    assert (run.stopped, run.rounds_done) == ("interrupted", 3)
    try:
        done = measure(MadeUpExperiment(method), REQUEST, PREPARED, store, run, folder=tmp_path, reporter=Quiet())
    finally:
        store.close()
    assert {index for index, _ in method.asked} == {3}
    assert all(is_cause(each) for _, each in method.asked)
    assert done.stopped == "rounds"


def test_builds_with_a_gil_alone_are_refused_with_the_reason(tmp_path):
    prepared = dataclasses.replace(
        PREPARED, builds=(make_build("3.14"),), abilities={"3.14": Abilities(
            runners={"free-threaded": "the GIL is enabled in this process"}, modules={}, isolated={})})
    with pytest.raises(ToolkitError, match=r"nothing of scaling can be measured:\n.*the GIL is enabled"):
        begin(ScalingExperiment(), REQUEST, prepared, tmp_path / "label")


# ----------------------------------------------------------------------------------------------------- a real run

@pytest.mark.builds("free")
def test_operation_that_fails_or_ends_the_process_costs_itself_alone(python, monkeypatch):
    monkeypatch.setitem(OPERATIONS, "raises", Operation("raises", "1 / 0"))
    monkeypatch.setitem(OPERATIONS, "ends", Operation("ends", "1", "import os\nos._exit(3)\n"))
    with BuildZygotes({"3.14t": python}) as zygotes:
        kinds = {name: zygotes.measured(cell(name, "private"), reverse=False)[1] for name in ("raises", "ends", SUM)}
    assert {name: answer.kind for name, answer in kinds.items()} == {
        "raises": "exception", "ends": "exit", SUM: "measured"}
    assert "division" in kinds["raises"].reason


def test_build_whose_process_cannot_start_is_asked_once(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho started >> " + str(tmp_path / "starts") + "\nexit 3\n")
    python.chmod(0o755)
    with BuildZygotes({"3.14t": str(python)}) as zygotes:
        kinds = [zygotes.measured(cell(name, "private"), reverse=False)[1].kind for name in (LIST, SUM)]
    assert kinds == ["exit", "exit"]
    assert (tmp_path / "starts").read_text() == "started\n"


def test_real_run_counts_calls_of_threads_and_processes(run_smoke):
    smoke = run_smoke("scaling")
    measured = [each for each in smoke.results.cells(build=smoke.free) if smoke.results.value(each)]
    assert len(measured) >= 5, smoke.err
    assert not smoke.results.run.failures
    for each in measured:
        assert smoke.results.center(each, "processes_made") > 0
        assert smoke.results.center(each, "threads_made") > 0
        assert 1e-10 < smoke.results.value(each).center < 0.1
    assert f"{smoke.gil}: nothing to measure:" in " ".join(smoke.out.split())


def test_limit_of_near_cpus_leaves_out_hyperthreads_of_one_core():
    """A cache line of theirs takes less than between any two cores, which would all be far."""
    def metrics(handoff, one_core):
        return SimpleNamespace(metrics=tuple({
            "threads_handoff": handoff, "threads_one_core": one_core, "threads_calls": 7}.items()))

    kept = {"cell": [metrics(10.0, 1), metrics(26.0, 0)], "older": [SimpleNamespace(metrics=(("threads_calls", 7),))]}
    found = [*_handoffs(SimpleNamespace(observations=kept.get), kept)]
    assert [each for each in found if each] == [26.0]
    assert near_limit(found) == 52.0
