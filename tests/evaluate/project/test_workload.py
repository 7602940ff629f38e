"""Real small workloads in rounds on a build without a GIL and its counterpart, and what their numbers come to."""

import functools
import json
import random
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from importlib.machinery import EXTENSION_SUFFIXES
from math import exp
from pathlib import Path
from types import SimpleNamespace

import pytest

from gilscope.toolkit.evaluate.project.discovery import find_project
from gilscope.toolkit.evaluate.project.machine_calibration import Calibration, Spin
from gilscope.toolkit.evaluate.project.measured import CellMeasurements
from gilscope.toolkit.evaluate.project.where_to_run import RunSite
from gilscope.toolkit.evaluate.project.workload import rounds as workload
from gilscope.toolkit.evaluate.project.workload.rounds import LEAST_ROUNDS, UserWorkload, WorkloadMeasurer
from gilscope.toolkit.evaluate.project.workload.schedule import WorkloadCell, seconds_of
from gilscope.toolkit.evaluate.project.workload.speed import Speed, ceiling
from gilscope.toolkit.evaluate.project.workload.waits import (
    busiest,
    by_line,
    contended,
    parked_share,
    queued_share,
    wait_share,
)
from gilscope.toolkit.evaluate.project.workload.workload_program import WorkloadCaller, loaded
from gilscope.toolkit.evaluate.sections import NO_TIME, Cause, Missing, NativePool
from gilscope.toolkit.gil import preload
from gilscope.toolkit.gil.records import WaitReason
from gilscope.toolkit.gil.summary import WaitPlace
from gilscope.toolkit.measure.child.calls import (
    NoWorkError,
    call_often,
    function_called,
    refuse_unawaited,
    shown,
)
from gilscope.toolkit.measure.measured_process import ProcessAnswer, hang_reason
from gilscope.toolkit.measure.rounds import ArmResult, OneAtATime
from gilscope.toolkit.measure.turns import InterleavedPasses
from tests.evaluate.made_up import PROJECT, QUIET
from tests.fakes import make_build

APP = """
SHARED = {}

def busy():
    total = 0
    for number in range(3000):
        total += number
    return total

def share():
    for number in range(2000):
        SHARED[number % 50] = SHARED.get(number % 50, 0) + 1

def broken():
    raise RuntimeError("no")

def crash():
    import os
    os.abort()
"""
NO_SHIM = preload.unavailable()
SUFFIX = EXTENSION_SUFFIXES[0]


@pytest.fixture
def project(tmp_path):
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "script.py").write_text("import app\nassert __name__ == '__main__'\napp.busy()\n"
                                        "import sys\nassert sys.argv[1:] == ['3']\n")
    (tmp_path / "exits.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "hangs.py").write_text("import threading\nthreading.Event().wait()\n")
    return find_project(tmp_path)


@pytest.fixture
def measurer(project, pair, monkeypatch, tmp_path_factory):
    """Give a function that measures a workload of the project, each cell as rarely as it goes."""
    monkeypatch.setattr(workload, "PASS_SECONDS", 0.05)
    monkeypatch.setattr(workload, "usable_cores", lambda: 2)
    compiled = tmp_path_factory.mktemp("compiled")

    def measure(name, *, models=(), left=lambda: 0.01, rounds=1):
        monkeypatch.setattr(workload, "OTHER_MODELS", models)
        monkeypatch.setattr(workload, "LEAST_ROUNDS", rounds)
        run_sites = {each.label: RunSite(build=each.label, python=Path(each.executable), folders=project.sources,
                                         compiled=compiled / each.label) for each in pair}
        said = []
        made = WorkloadMeasurer(project, UserWorkload.of(name, project.root), run_sites,
                                {each.label: each for each in pair}, left=left, say=said.append)
        made.measure()
        return made

    return measure


@pytest.mark.parametrize(("text", "kind"), [("script.py", "script"), ("app:busy", "function")])
def test_script_and_function_are_told_apart(project, text, kind):
    assert UserWorkload.of(text, project.root).kind == kind


def test_script_has_its_arguments(project):
    (project.root / "two words.py").write_text("")
    assert UserWorkload.of("script.py --n 3 'a b'", project.root).words == ("--n", "3", "a b")
    assert UserWorkload.of("two words.py", project.root).name.endswith("two words.py")
    assert UserWorkload.of("script.py a:b", project.root).kind == "script"


@pytest.mark.parametrize(("text", "reason"), [
    ("missing.py", "there is no such script"), ("app", "no module:function is named"),
    ("gilscope.toolkit.cli:main", "'gilscope' is gilscope itself")])
def test_workload_that_is_none_has_a_reason(project, text, reason):
    assert reason in UserWorkload.of(text, project.root).reason


@pytest.mark.slow
def test_function_is_measured_in_threads_interpreters_and_processes_in_turn(measurer, pair, monkeypatch):
    build, counterpart = pair
    models = ("subinterpreters", "processes")
    taken = []

    class Watched(InterleavedPasses):
        def measure(self, *words):
            taken.append(super().measure(*words))
            return taken[-1]

    monkeypatch.setattr(workload, "InterleavedPasses", Watched)
    made = measurer("app:busy", models=models, rounds=3)
    assert len(taken) == 3
    assert [made.found[WorkloadCell(each.label, count)].given for each in pair for count in (1, 2)] == [
        [], [["4498500"] * 3] * 3] * 2
    assert {(tuple(each.details["passes"]), len(each.answer.fields["values"])) for arms in taken for each in arms
            if each.answer.kind == "measured"} == {((0, 1), 2)}
    assert set(made.found) == {*(WorkloadCell(each.label, count) for each in pair for count in (1, 2)),
                               *(WorkloadCell(counterpart.label, 2, model) for model in models),
                               WorkloadCell(counterpart.label, 1, twin=True)}
    # Before 3.14 interpreters need a package that is not there.
    assert not [measured.failure for measured in made.found.values() if measured.failure and not measured.unavailable]
    assert all(measured.cpu and measured.rss for measured in made.found.values() if not measured.unavailable)
    assert not list(made.project.root.rglob("__pycache__"))
    speed = Speed(made, QUIET)
    sections = speed.on(build.label, counterpart.label)
    assert sections.cost.against == counterpart.label
    assert sections.cost.import_seconds > 0
    assert speed.models_compared
    assert speed.failure(counterpart.label, "subinterpreters") == ""


def test_script_is_measured_as_it_is(measurer, pair):
    build, counterpart = pair
    made = measurer("script.py 3", models=("processes",), rounds=3)
    assert set(made.found) == {WorkloadCell(each.label, 0) for each in pair}
    speed = Speed(made, QUIET)
    sections = speed.on(build.label, counterpart.label)
    assert sections.cost.by == "script"
    assert not speed.models_compared


@pytest.mark.parametrize(("name", "reason"), [
    ("app:broken", "RuntimeError: no"), ("app:crash", "SIGABRT"), ("app:absent", "absent"), ("gone:f", "gone"),
    ("exits.py", "exit code 3")])
def test_workload_that_fails_is_the_reason_of_every_section(measurer, pair, name, reason):
    build, counterpart = pair
    sections = Speed(measurer(name), QUIET).on(build.label, counterpart.label)
    for section in (sections.cost, sections.gain, sections.contention):
        assert isinstance(section, Missing)
        assert reason in section.reason
    assert sections.failure is None   # it fails with the GIL, too


def test_function_that_fails_with_the_gil_is_not_tried_elsewhere(measurer, pair, monkeypatch):
    asked = []
    def fail(_, spec, __):
        asked.append(spec.build)
        return ProcessAnswer(kind="exception", reason="no", fields={}, output="")

    one_by_one(monkeypatch, fail)
    made = measurer("app:broken")
    assert asked == [pair[1].label]
    assert {measured.failure for measured in made.found.values()} == {"no"}
    asked.clear()
    measurer("exits.py")
    assert sorted(asked) == sorted(each.label for each in pair)


def one_by_one(monkeypatch, measure):
    """Have all processes measured one by one, by `measure`."""
    monkeypatch.setattr(workload, "run_child", measure)
    monkeypatch.setattr(workload, "InterleavedPasses", lambda: OneAtATime(measure))


METRICS = {"rss": 5e6, "import": 0.5, "queued": 0.25, "pools": "OpenBLAS=2 OpenMP=4", "compiled": "app._a app._b"}


def measured(**changes):
    fields = {"seconds": 2.0, "cpu": [1.5], "starved": False, "gil_end": False, "metrics": METRICS} | changes
    value = {"seconds": fields["seconds"], "cpu": fields["cpu"][0], "metrics": fields["metrics"]}
    return ProcessAnswer(kind="measured", reason="", output="", fields=fields | {"values": [value]})


@pytest.fixture
def answered(monkeypatch):
    """Give a function that measures a function in a round of made-up answers, by build, and returns what was asked."""
    monkeypatch.setattr(workload, "usable_cores", lambda: 2)

    def measure(answer, *, kind="function", left=lambda: 100.0, rounds=1, forced=False, hold_machine=nullcontext):
        asked = []
        monkeypatch.setattr(workload, "MOST_ROUNDS", rounds)
        def answered(_, spec, __):
            asked.append(spec)
            return answer(spec)

        one_by_one(monkeypatch, answered)
        run_sites = {label: RunSite(build=label, python=Path("python"), folders=()) for label in ("3.14t", "3.14")}
        made = WorkloadMeasurer(
            PROJECT, UserWorkload(kind=kind, name="app:busy"), run_sites,
            {label: make_build(label) for label in run_sites}, left=left, say=lambda _: None, forced=forced,
            hold_machine=hold_machine)
        made.calibration = Calibration(lambda cores: Spin(cores=cores, effective=cores, ran=2, waited=0, lasted=1))
        made.measure()
        return made, asked

    return measure


def test_what_a_process_tells_is_kept_by_round(answered):
    made, _ = answered(lambda spec: measured(starved=spec.build == "3.14", gil_end=True, gil_culprit="a._b"))
    found, counterpart = made.found[WorkloadCell("3.14t", 2)], made.found[WorkloadCell("3.14", 2)]
    assert (found.wall, found.cpu, found.rss, found.imports, found.pools) == (
        {0: pytest.approx(2.0)}, {0: pytest.approx(1.5)}, [5e6], [0.5], {"OpenBLAS": 2, "OpenMP": 4})
    # Starved: CPU time is known all the same.
    assert (counterpart.wall, counterpart.cpu) == ({}, {0: pytest.approx(1.5)})
    assert (found.flipped, counterpart.flipped) == ("the GIL was on at the end of the workload: a._b turned it on", "")
    assert set(made.found) == {*(WorkloadCell(label, count) for label in ("3.14t", "3.14") for count in (1, 2)),
                               WorkloadCell("3.14", 2, "subinterpreters"), WorkloadCell("3.14", 2, "processes"),
                               WorkloadCell("3.14", 1, twin=True)}


def test_cost_knows_which_extension_modules_of_the_projects_own_were_loaded(answered):
    made, asked = answered(lambda spec: measured(metrics=METRICS | {"compiled": "app._c" * (spec.build == "3.14t")}),
                           rounds=3)
    cost = Speed(made, QUIET).on("3.14t", "3.14").cost
    assert (cost.compiled, cost.compiled_there) == (("app._c",), ())
    assert json.loads(asked[-1].parameters["folders"]) == [str(PROJECT.root)]


def test_loaded_extension_modules_are_the_projects_own(tmp_path, monkeypatch):
    files = {"app._c": tmp_path / f"app/_c{SUFFIX}", "app.plain": tmp_path / "app/plain.py",
             "other._c": f"/elsewhere/_c{SUFFIX}", "lib._c": tmp_path / f".venv/lib/site-packages/lib/_c{SUFFIX}"}
    for name, file in files.items():
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(__file__=str(file)))
    assert loaded([str(tmp_path)]) == ["app._c"]


def test_turn_is_held_while_anything_is_measured(answered):
    held, taken = [], []

    @contextmanager
    def turn():
        assert not held   # two turns at once would wait for each other
        held.append(True)
        taken.append(len(taken))
        yield
        held.clear()

    def answer(_):
        assert held
        return measured()

    made, asked = answered(answer, rounds=2, hold_machine=turn)
    assert len(asked) > len(taken) == 3   # what tells how long a call takes, then the rounds
    made.watched(WorkloadCell("3.14t", 2))
    assert held == []
    assert len(taken) == 3 + (not NO_SHIM)


def test_what_the_workload_gives_is_asked_in_the_first_rounds_alone(answered):
    told = measured(metrics=METRICS | {"given": json.dumps(["a", "b", "b"])})
    made, asked = answered(lambda _: told, rounds=5)
    assert sum("results" in spec.parameters for spec in asked) == workload.ROUNDS_COMPARED * len(made.found)
    assert made.found[WorkloadCell("3.14t", 2)].given == [["a", "b",
                                                           "b"]] * 5   # of made-up answers, which do not listen


@pytest.mark.slow
def test_processes_that_cannot_be_alive_together_are_measured_one_after_the_other(measurer, pair, project):
    (project.root / "server.py").write_text(
        "import socket\n"
        "taken = socket.socket(socket.AF_UNIX)\n"
        f"taken.bind('\\0gilscope-{project.root.name}-{id(project)}')\n"   # gone with its process
        "from app import busy\n")
    made = measurer("server:busy")
    assert not [measured.failure for measured in made.found.values() if measured.failure]
    assert all(made.found[WorkloadCell(each.label, count)].cpu[0] > 0 for each in pair for count in (1, 2))


def process(cell, passes, seconds, *, starved=False):
    values = [{"seconds": each, "cpu": 2 * each, "metrics": {}} for each in seconds]
    return ArmResult(cell=cell.arm, start=None, details={"passes": passes} if passes else {}, answer=ProcessAnswer(
        kind="measured", reason="", output="", fields={"starved": starved, "values": values}))


def test_pass_in_which_the_machine_was_slow_slows_both_sides_of_a_ratio():
    one, two, rare = WorkloadCell("3.14", 1), WorkloadCell("3.14t", 1), WorkloadCell("3.14t", 2)
    found = [process(one, [0, 1, 2], [1.0, 1.0, 10.0]), process(two, [0, 1, 2], [2.0, 2.0, 20.0]),
             process(rare, [2], [5.0])]
    for clock in ("wall", "cpu"):
        seconds = seconds_of(found, clock)
        assert seconds[two] / seconds[one] == pytest.approx(2.0)
        assert seconds[rare] / seconds[one] == pytest.approx(0.5)


def test_starved_process_has_cpu_time_alone():
    one, two = WorkloadCell("3.14", 1), WorkloadCell("3.14t", 2)
    found = [process(one, None, [1.0]), process(two, None, [3.0], starved=True)]
    assert seconds_of(found, "wall") == {one: pytest.approx(1.0)}
    assert seconds_of(found, "cpu") == {one: pytest.approx(2.0), two: pytest.approx(6.0)}


def test_a_twin_that_differs_widens_what_is_said():
    same = filled(t_1=(ONE, ONE), t_2=(ONE, [0.5] * 10), g_1=(ONE, ONE), g_2=(ONE, ONE))
    twin = WorkloadCell("3.14", 1, twin=True)
    halves = []
    for away in (1.0, 1.3):
        draw = random.Random(3)
        for measured in same.found.values():
            measured.wall = {number: each * exp(draw.gauss(0, 0.002)) for number, each in measured.wall.items()}
        same.found[twin] = CellMeasurements(wall=dict(enumerate([away] * 10)), cpu=dict(enumerate(ONE)), rss=[1e6])
        seen = Speed(same, QUIET).on("3.14t", "3.14").gain.measured[2]
        assert not [note.text for note in seen.notes if "no cell was measured twice" in note.text]
        halves.append(seen.hi - seen.lo)
    assert halves[1] > 2 * halves[0]


def test_with_the_gil_forced_off_there_are_threads_only(answered):
    made, _ = answered(lambda _: measured(), forced=True)
    assert set(made.found) == {WorkloadCell(label, count) for label in ("3.14t", "3.14") for count in (1, 2)}


@pytest.mark.parametrize(("left", "rounds"), [(1e-9, LEAST_ROUNDS), (600.0, 5), (0.0, 0)])
def test_rounds_are_taken_while_there_is_time_and_a_few_in_any_case(answered, left, rounds):
    made, _ = answered(lambda _: measured(), left=lambda: left, rounds=5)
    assert {len(found.cpu) for found in made.found.values()} <= {rounds}
    assert len(made.calibration.spins) == rounds
    assert made.out_of_time is (rounds == LEAST_ROUNDS)


def test_script_that_fails_with_the_gil_is_tried_once(answered):
    failing = ProcessAnswer(kind="exception", reason="no", fields={}, output="")
    _, asked = answered(lambda spec: failing if spec.build == "3.14" else measured(), kind="script", rounds=5)
    assert sorted(spec.build for spec in asked) == ["3.14", "3.14t"]
    _, asked = answered(lambda spec: failing if spec.build == "3.14t" else measured(), kind="script", rounds=5)
    assert sorted(spec.build for spec in asked) == [*["3.14"] * 5, "3.14t"]


@pytest.mark.parametrize(("call", "queued", "import_", "calls", "patience"), [
    (0.01, 0.0, 0.5, 30, 60.0),       # PASS_SECONDS of calls
    (0.011, 0.0, 0.5, 28, 60.0),      # as many for each of two threads
    (0.012, 0.5, 0.5, 50, 60.0),      # what it waited for a core is no time of a call, a tenth of it at least
    (3.0, 0.0, 2.0, 2, 100.0),        # 20 times import and call
    (30.0, 0.0, 2.0, 2, 300.0),
])
def test_calls_fill_a_pass_and_a_hang_is_known_by_them(answered, call, queued, import_, calls, patience):
    def answer(spec):
        return measured(seconds=call * spec.scales["calls"],
                        metrics=METRICS | {"queued": queued, "import": import_})

    _, asked = answered(answer)
    assert asked[0].build == "3.14"   # with the GIL
    assert (asked[0].scales["calls"], asked[-1].scales["calls"]) == (1, calls)
    assert asked[-1].progress_timeout == pytest.approx(patience)


@pytest.mark.parametrize(("left", "patience"), [(10.0, 60.0), (100.0, 100.0), (1000.0, 300.0)])
def test_script_that_is_silent_costs_what_is_left_at_most(answered, left, patience):
    _, asked = answered(lambda _: measured(), kind="script", left=lambda: left)
    assert {(spec.progress_timeout, spec.scales["calls"]) for spec in asked} == {(patience, 1)}


def test_model_that_a_build_does_not_have_is_no_failure_of_the_workload(answered):
    def answer(spec):
        lacking = ProcessAnswer(kind="unavailable", reason="no interpreters", fields={}, output="")
        return lacking if spec.model == "subinterpreters" else measured()

    found = answered(answer)[0].found[WorkloadCell("3.14", 2, "subinterpreters")]
    assert (found.failure, found.unavailable) == ("no interpreters", True)


def test_hang_of_several_threads_says_what_it_may_be():
    hang = ProcessAnswer(kind="hang", reason="it hung; raise --timeout", fields={}, output="", hung_seconds=60.0)
    assert workload._why(hang, WorkloadCell("3.14t", 1)) == hang_reason(60.0)
    assert workload._why(hang,
                         WorkloadCell("3.14t", 2)).endswith("; its threads are in each other's way, or wait for ever")


def test_async_def_is_run_to_its_end(monkeypatch):
    ended = []

    async def task():
        ended.append(1)

    monkeypatch.setattr(workload, "task", task, raising=False)
    call_often((f"{workload.__name__}:task", 3))
    assert ended == [1, 1, 1]


class Till:
    def __call__(self, price=0):
        return price + 1

    async def later(self, price=0):
        return price + 2


@pytest.mark.parametrize(("task", "once", "with_payloads"), [
    (lambda price=0: price, 0, [1, 2]), (Till(), 1, [2, 3]), (Till().later, 2, [3, 4]),
    (functools.partial(Till().later), 2, [3, 4]), (functools.partial(max, 5, 1), 5, [5, 5]),
])
@pytest.mark.parametrize("prices", [[1, 2], lambda: iter([1, 2])], ids=["sequence", "function"])
def test_any_callable_is_called_alone_or_with_each_payload(monkeypatch, task, once, with_payloads, prices):
    monkeypatch.setattr(workload, "task", task, raising=False)
    monkeypatch.setattr(workload, "prices", prices, raising=False)
    name = f"{workload.__name__}:task"
    assert function_called(name)() == once
    assert function_called(f"{name} {workload.__name__}:prices")() == with_payloads


def test_payload_whose_result_is_not_awaited_is_refused(monkeypatch):
    async def later(price):
        return price

    def task(price):
        return later(price)

    monkeypatch.setattr(workload, "task", task, raising=False)
    monkeypatch.setattr(workload, "prices", [1, 2], raising=False)
    name = f"{workload.__name__}:task {workload.__name__}:prices"
    with pytest.raises(NoWorkError, match="task returns something to be awaited"):
        refuse_unawaited(name, function_called(name)())


def test_function_that_runs_nothing_is_refused(monkeypatch):
    async def task(): ...
    def numbers():
        yield 1
    monkeypatch.setattr(workload, "task", numbers, raising=False)
    with pytest.raises(NoWorkError, match="is a generator: calling it runs nothing"):
        function_called(f"{workload.__name__}:task")
    with pytest.raises(NoWorkError, match="name an async def"):
        refuse_unawaited("app:task", task())
    refuse_unawaited("app:task", 3)


@pytest.mark.parametrize(("limit", "made"), [(0.0, 10), (600.0, 640)])   # one part of 64 in any case
def test_calls_end_when_their_time_is_over(monkeypatch, limit, made):
    calls = []
    monkeypatch.setattr(workload, "task", lambda: calls.append(1), raising=False)
    caller = WorkloadCaller(f"{workload.__name__}:task", 640)
    caller.work(limit)
    assert (caller.failure, caller.made, len(calls)) == (None, made, made)


def test_threads_that_crawl_are_stopped_and_what_they_did_is_reckoned_up(measurer, pair, monkeypatch):
    monkeypatch.setattr(workload, "LONGEST_SECONDS", 0.0)   # no thread makes more than its first calls
    made = measurer("app:busy")
    for each in pair:
        cells = [made.found[WorkloadCell(each.label, count)] for count in (1, 2)]
        assert not [cell.failure for cell in cells if cell.failure]
        assert all(cell.cpu[0] > 0 for cell in cells)


@pytest.mark.slow
def test_workload_that_hangs_costs_its_limit(measurer, pair, monkeypatch):
    monkeypatch.setattr(workload, "LEAST_SILENT_SECONDS", 0.5)
    made = measurer("hangs.py")
    assert {measured.failure for measured in made.found.values()} == {
        "it hung, or takes more than 0.5 s for one pass over its payloads, so it was killed"}


def test_without_time_nothing_is_measured(measurer, pair):
    build, counterpart = pair
    made = measurer("app:busy", left=lambda: 0.0)
    assert made.found == {}
    assert "no time" in Speed(made, QUIET).on(build.label, counterpart.label).cost.reason


@pytest.mark.slow
@pytest.mark.skipif(NO_SHIM is not None, reason=str(NO_SHIM))
def test_places_of_contention_are_the_projects(measurer, pair, monkeypatch):
    build, counterpart = pair
    monkeypatch.setattr(workload, "PASS_SECONDS", 0.03)   # 3.13t takes up to hundreds of times as long with two threads
    made = measurer("app:share")
    contention = Speed(made, QUIET).on(build.label, counterpart.label).contention
    if isinstance(contention, Missing):   # the more the cores are free, the longer 3.13t takes
        assert "they are in each other's way" in contention.reason
        pytest.skip(contention.reason)
    places = contention.places
    assert not [place for place in places if "gilscope" in place.file]
    # Two threads on a machine with other things to do may never have met there; where they did is in the function.
    assert {place.line for place in places if place.file == "app.py"} <= {10, 11, 12}


def waiting(file, *, idle=False):
    return WaitPlace(file=file, line=1, function="f", reason=WaitReason.LOCK, on="", idle=idle, count=1, seconds=1.0,
                     longest=1.0, thread=None)


def test_neither_our_own_code_nor_what_the_program_wants_is_contention(tmp_path):
    from gilscope.toolkit.builds.environment import harness_path

    theirs = waiting("/src/toolkit/app.py")   # a project's folder of that name is not ours
    child = harness_path() / "gilscope" / "toolkit" / "measure" / "child" / "base.py"
    ours = [waiting(str(child)), waiting(workload.__file__)]
    importing = waiting("<frozen importlib._bootstrap>")
    assert contended([*ours, theirs, waiting("/src/app.py", idle=True), waiting(""), importing]) == [theirs]


def test_places_of_one_line_are_one():
    spun = replace(waiting("app.py"), reason=WaitReason.SPIN, seconds=5.0)
    other, lock = replace(spun, reason=WaitReason.OBJECT, on="dict", seconds=2.0), replace(waiting("b.py"), seconds=6.0)
    assert [(each.file, each.what, each.wait, each.seconds) for each in by_line([spun, other, lock])] == [
        ("app.py", "a dict", WaitReason.OBJECT, 7.0), ("b.py", "a lock", WaitReason.LOCK, 6.0)]


def filled(**cells):
    """Return a measurer that has found the given CPU and wall seconds, by label and number of threads."""
    found = {}
    for name, (cpu, wall) in cells.items():
        label, count = name.rsplit("_", 1)
        found[WorkloadCell(label.replace("t", "3.14t").replace("g", "3.14"), int(count))] = CellMeasurements(
            cpu=dict(enumerate(cpu)), wall={number: each for number, each in enumerate(wall) if each}, rss=[1e6])
    spins = dict.fromkeys(range(10), Spin(cores=2, effective=1.7, ran=39, waited=1, lasted=20))
    return type("Made", (), {
        "found": found, "calibration": type("Calibration", (), {"spins": spins}),
        "thread_counts": lambda _: (1, 2), "has_time": lambda _: True, "out_of_time": False,
        "watched": lambda *_: Missing(reason="not watched")})()


ONE, TWO, STARVED = [1.0] * 10, [2.0] * 10, [0.0] * 10


SAME = "the workload gives b in threads, and c on 3.14"
INHERITED = ("in the main thread b, too: without the GIL a thread begins, from 3.14 on, with the context of the thread "
             "that starts it, decimal's among it, with the GIL with a new one")


@pytest.mark.parametrize(("here", "there", "said"), [
    ([["a", "b", "b"]] * 2, [["a", "b", "b"]] * 2, ""), ([["a", "b", "b"]] * 2, [["a", "c", "c"]] * 2, SAME),
    ([["b", "b", "b"]] * 2, [["b", "c", "c"]] * 2,
     f"{SAME} ({INHERITED})"),
    ([["a", "b", "d"]] * 2, [["a", "c", "c"]] * 2, ""), ([["a", "b", "b"]] * 2, [["a", "c", "c"], ["a", "d", "d"]], ""),
    ([["a", "b", "b"]], [], ""), ([], [], "")],
    ids=["the same", "another", "the context", "each time another", "each process another", "not there", "nowhere"])
def test_work_that_is_another_on_the_other_build_is_told(here, there, said):
    made = filled(t_1=(ONE, ONE), t_2=(ONE, ONE), g_1=(ONE, ONE), g_2=(ONE, ONE))
    made.found[WorkloadCell("3.14t", 2)].given, made.found[WorkloadCell("3.14", 2)].given = here, there
    seen = Speed(made, QUIET).on("3.14t", "3.14")
    assert seen.differs == said
    assert isinstance(seen.gain.measured, Missing) is bool(said)
    assert not isinstance(seen.cost, Missing)   # of one thread, which is the first


@pytest.mark.parametrize(("result", "text"), [
    ([1, ("a", {"b": None})], "list(1, tuple('a', dict('b', None)))"), (object(), None), ([1, {2}], None),
    (10**5000, f"{hex(10**5000)[:80]}... (4155 characters, sum "), ("x" * 200, f"'{'x' * 79}... (202 characters, sum "),
    ("x" * 200_000, None), ([0] * 200_000, None), ([[[[[0]]]]], None)],
    ids=["nested", "no value", "none inside", "a long number", "a long text", "a longer one", "a long list", "deep"])
def test_text_stands_for_a_result(result, text):
    assert shown(result) == text if text is None or not text.endswith("sum ") else shown(result).startswith(text)


def test_results_that_differ_late_have_texts_that_differ():
    assert shown([0] * 1000 + [1]) != shown([0] * 1000 + [2])


@pytest.mark.slow
def test_work_that_is_another_in_threads_of_the_other_build(measurer, pair, project):
    (project.root / "where.py").write_text(
        "import sys, threading\n"
        "def work():\n    return 't' in sys.abiflags or threading.current_thread() is threading.main_thread()\n")
    build, counterpart = pair
    made = measurer("where:work", rounds=3, left=lambda: 60.0)
    assert Speed(made, QUIET).on(build.label, counterpart.label).differs.startswith(
        f"the workload gives True in threads, and False on {counterpart.label} (in the main thread True, too")


def test_inflation_is_of_rounds_in_which_threads_ran_at_the_same_time():
    made = filled(t_1=(ONE, ONE), t_2=([2.5] * 5 + [1.0] * 5, [1.25] * 5 + [0.0] * 5), g_1=(ONE, ONE), g_2=(ONE, ONE))
    found = Speed(made, QUIET).on("3.14t", "3.14")
    assert found.contention.inflation == pytest.approx(2.5)


def test_gain_is_what_was_measured():
    made = filled(t_1=(ONE, ONE), t_2=(ONE, [0.5] * 10), g_1=(ONE, ONE), g_2=(ONE, ONE))
    found = Speed(made, QUIET).on("3.14t", "3.14")
    assert (found.failure, found.cost.by, list(found.gain.measured)) == (None, "workload", [2])
    assert found.gain.measured[2].ratio == pytest.approx(2.0)


def test_numbers_are_of_the_rounds_in_which_all_was_measured():
    ten = range(10)
    made = filled(t_1=([3.0 for _ in ten], ONE), t_2=([4.5 for _ in ten], [2.5] * 10), g_1=([2.0 for _ in ten], ONE),
                  g_2=([9.0 for _ in ten], [2.4] * 10))
    here, several, there, with_gil = (made.found[WorkloadCell(label, count)] for label in ("3.14t",
                                                                                           "3.14") for count in (1, 2))
    del here.cpu[0], there.cpu[1], several.wall[2], with_gil.wall[3]
    several.cpu[4] = 99.0   # of one round
    several.rss, with_gil.rss, here.imports, there.imports = [9e6, 5e6, 1e6], [4e6], [9.0, 1.0, 2.0], [8.0, 1.0, 1.0]
    found = Speed(made, QUIET).on("3.14t", "3.14")
    cost = found.cost
    assert found.contention.inflation == 1.5
    assert (cost.cpu.ratio, cost.memory.here, cost.memory.there) == (pytest.approx(2 / 3), 5e6, 4e6)
    assert (cost.import_seconds, cost.import_there) == (2.0, 1.0)
    assert found.gain.measured[2].ratio == pytest.approx(2.4 / 2.5)
    there.cpu = {2: 1.0, 3: 1.0}
    few = Speed(made, QUIET).on("3.14t", "3.14").cost
    assert few.reason == "there was time for fewer than 3 rounds: a larger --budget takes more"


def test_ratios_go_by_the_noise_of_all_cells():
    draw = random.Random(2)
    calm, wild = ([exp(draw.gauss(0, spread)) for _ in range(10)] for spread in (0.01, 0.1))
    halves = []
    for other in (calm, wild):
        made = filled(t_1=(ONE, ONE), t_2=(ONE, [each / 2 for each in calm]), g_1=(ONE, other), g_2=(ONE, ONE))
        seen = Speed(made, QUIET).on("3.14t", "3.14").gain.measured[2]
        assert (seen.verdict(), seen.ratio) == ("faster", pytest.approx(2.0, rel=0.05))
        halves.append(seen.hi - seen.ratio)
    assert halves[1] > 1.5 * halves[0]


def test_two_rounds_are_no_ratio():
    made = filled(t_1=(ONE, ONE), t_2=(ONE, [*ONE[:2], *STARVED[2:]]), g_1=(ONE, ONE), g_2=(ONE, ONE))
    starved = Speed(made, QUIET).on("3.14t", "3.14").gain.measured
    assert starved.reason.startswith("fewer than 3 of the rounds taken had the cores that they needed")
    assert starved.cause is Cause.BUSY   # the same command measures it again
    few = filled(t_1=(ONE[:2], ONE[:2]), t_2=(ONE[:2], ONE[:2]), g_1=(ONE, ONE), g_2=(ONE, ONE))
    assert "time for fewer than 3 rounds" in Speed(few, QUIET).on("3.14t", "3.14").gain.measured.reason


@pytest.mark.parametrize("cut", [False, True])
def test_larger_budget_is_advised_only_if_it_ended_the_rounds(cut):
    made = filled(t_1=(ONE, STARVED), t_2=(ONE, STARVED), g_1=(ONE, STARVED), g_2=(ONE, STARVED))
    made.out_of_time = cut
    starved = Speed(made, QUIET).on("3.14t", "3.14").gain.measured
    assert "--wait-quiet" in starved.reason
    assert ("--budget" in starved.reason) is cut
    assert starved.cause is Cause.BUSY


def test_places_that_cost_little_are_left_out():
    made = filled(t_0=(ONE, ONE), g_0=(ONE, ONE))
    made.thread_counts = lambda: (0,)
    made.project = type("Project", (), {"sources": (), "root": Path("/src")})
    made.run_sites = {"3.14t": RunSite(build="3.14t", python=Path("python"), folders=())}
    places = [replace(waiting(file), seconds=seconds) for file, seconds in (
        ("/src/app.py", 0.03), ("/env/site-packages/lib.py", 0.02), ("/src/seldom.py", 0.019))]
    places += [replace(waiting("/src/many.py"), line=line, seconds=0.5) for line in range(8)]
    made.watched = lambda _: Seen((Thread("a", 3.0, 0.0, idle=1.0, parked=1.0),), places)
    found = Speed(made, QUIET).on("3.14t", "3.14").contention
    assert [place.file for place in found.places] == ["many.py"] * 8 + ["app.py", "site-packages/lib.py"]
    assert [place.own for place in found.places] == [True] * 9 + [False]
    assert (found.inflation, found.parked, found.threads, found.cores) == (None, 0.5, 2, workload.usable_cores())
    places += [replace(waiting("/src/app.py"), line=2, seconds=0.4)]
    assert len(Speed(made, QUIET).on("3.14t", "3.14").contention.places) == 10


def test_starved_rounds_are_no_measurement():
    made = filled(t_1=(ONE, STARVED), t_2=(ONE, STARVED), g_1=(ONE, STARVED), g_2=(ONE, STARVED))
    found = Speed(made, QUIET).on("3.14t", "3.14")
    assert found.gain.measured.reason.startswith("fewer than 3 of the rounds taken had the cores")
    assert found.contention.reason == "not watched"
    assert not isinstance(found.cost, Missing)   # CPU time is known all the same


def test_workload_that_fails_on_one_build_only_keeps_what_was_measured():
    made = filled(t_1=(ONE, ONE), t_2=(ONE, ONE), g_1=(ONE, ONE), g_2=(ONE, ONE))
    made.found[WorkloadCell("3.14t", 2)].failure = "crashed with SIGSEGV"
    found = Speed(made, QUIET).on("3.14t", "3.14")
    assert str(found.failure) == "the workload fails, and does not with the GIL: with 2 threads: crashed with SIGSEGV"
    assert found.cost.cpu.ratio == pytest.approx(1.0)
    assert found.gain.measured.reason == "the workload failed on 3.14t: with 2 threads: crashed with SIGSEGV"
    made.found[WorkloadCell("3.14", 2)].failure = "crashed with SIGSEGV"
    found = Speed(made, QUIET).on("3.14t", "3.14")
    assert found.failure is None
    assert found.cost.reason == "the workload failed on 3.14: with 2 threads: crashed with SIGSEGV"


def test_workload_that_turns_the_gil_on_shows_its_waits_on_the_other_build_alone():
    made = filled(t_1=(ONE, ONE), t_2=(ONE, ONE), g_1=(ONE, ONE), g_2=(ONE, ONE))
    made.found[WorkloadCell("3.14t", 2)].flipped = "the GIL was on at the end of the workload: a._b turned it on"
    made.watched = lambda cell: seen(Thread("a", 1.0, 0.5)) if cell.label == "3.14" else None
    found = Speed(made, QUIET).on("3.14t", "3.14")
    assert str(found.failure) == found.cost.reason == found.contention.reason
    assert str(found.failure) == found.gain.measured.reason
    assert (found.gain.wait_share, found.gain.ceiling) == (0.5, 1.95)   # no more than the cores do
    assert "a._b turned it on" in found.failure.detail
    for machine in (replace(QUIET, doubts=("busy",)), Missing(reason="not calibrated")):   # what it can do is not known
        assert Speed(made, machine).on("3.14t", "3.14").gain.ceiling == 2.0


def test_gain_is_of_the_most_threads_and_needs_two():
    made = filled(**{f"{build}_{count}": (ONE, ONE) for build in "tg" for count in (1, 2, 4)})
    made.thread_counts = lambda: (1, 2, 4)
    asked = set()
    made.watched = lambda cell: (asked.add(cell), Missing(reason="not watched"))[1]
    gain = Speed(made, QUIET).on("3.14t", "3.14").gain
    assert (list(gain.measured), asked) == ([2, 4], {WorkloadCell("3.14", 4), WorkloadCell("3.14t", 4)})
    made.thread_counts = lambda: (1,)
    assert Speed(made, QUIET).on("3.14t", "3.14").gain.reason == "there is one core only"


@pytest.mark.parametrize(("share", "effective", "most"), [
    (0.0, 2.0, 1.0), (0.5, None, 2.0), (0.5, 1.5, 1.5), (0.75, 8.0, 4.0), (1.0, 8.0, 8.0)])
def test_ceiling(share, effective, most):
    assert ceiling(share, effective) == pytest.approx(most)


def test_script_has_one_cost():
    made = filled(t_0=(TWO, ONE), g_0=(ONE, ONE))
    made.thread_counts = lambda: (0,)
    found = Speed(made, QUIET).on("3.14t", "3.14")
    assert (found.cost.by, found.cost.cpu.ratio, list(found.gain.measured)) == ("script", 0.5, [0])


def test_workload_that_fails_in_one_thread_has_no_cost():
    made = filled(t_1=(ONE, ONE), t_2=(ONE, ONE), g_1=(ONE, ONE), g_2=(ONE, ONE))
    made.found[WorkloadCell("3.14t", 1)].failure = "crashed with SIGSEGV"
    found = Speed(made, QUIET).on("3.14t", "3.14")
    assert found.cost.reason == found.contention.reason == "the workload failed on 3.14t: crashed with SIGSEGV"
    made.found[WorkloadCell("3.14", 1)].failure = "RuntimeError: no"
    found = Speed(made, QUIET).on("3.14t", "3.14")
    assert (found.failure, found.cost.reason) == (None, "the workload failed on 3.14: RuntimeError: no")


def test_what_turns_the_gil_on_elsewhere_is_not_charged_here():
    made = filled(t_1=(ONE, ONE), t_2=(ONE, ONE), g_1=(ONE, ONE), g_2=(ONE, ONE))
    made.found[WorkloadCell("3.15t", 1)] = CellMeasurements(flipped="the GIL was on at the end of the workload",
                                                            failure="no")
    made.found[WorkloadCell("3.14", 2, "processes")] = CellMeasurements(failure="no")
    assert Speed(made, QUIET).on("3.14t", "3.14").failure is None


def test_nothing_measured_for_want_of_time():
    found = Speed(filled(), QUIET).on("3.14t", "3.14")
    assert found.cost == found.gain == found.contention == NO_TIME


def test_build_without_a_counterpart_has_a_reason():
    made = filled(t_1=(ONE, ONE), t_2=(ONE, ONE))
    assert "no build like 3.14t with a GIL" in Speed(made, QUIET).on("3.14t", "").cost.reason


def test_rounds_that_slow_parallel_cells_do_not_hide_what_builds_differ_by():
    draw = random.Random(1)
    slow = [draw.gauss(0, 0.2) for _ in range(10)]

    def walls(scale, *, parallel):
        return [scale * exp(draw.gauss(0, 0.005) + (each if parallel else 0.0)) for each in slow]

    made = filled(t_1=(ONE, walls(1.0, parallel=False)), g_1=(ONE, walls(1.0, parallel=False)),
                  t_2=(ONE, walls(1.0, parallel=True)), g_2=(ONE, walls(1.05, parallel=True)))
    found = Speed(made, QUIET).on("3.14t", "3.14").gain.measured[2]
    assert 1.03 < found.lo < found.ratio == pytest.approx(1.05, abs=0.01)
    assert found.verdict() == "faster"


def test_other_models_are_compared_with_threads():
    made = filled(g_1=(ONE, ONE), g_2=(ONE, ONE))
    made.found[WorkloadCell("3.14", 2, "processes")] = CellMeasurements(wall=dict(enumerate([0.5] * 10)),
                                                                        cpu=dict(enumerate(ONE)))
    made.found[WorkloadCell("3.14", 2, "subinterpreters")] = CellMeasurements(failure="ImportError: no")
    speed = Speed(made, QUIET)
    assert speed.other_model("3.14", "processes").ratio == pytest.approx(2.0)
    assert speed.other_model("3.14", "subinterpreters").reason == "the workload failed: ImportError: no"
    assert speed.failure("3.14", "subinterpreters") == "ImportError: no"
    assert speed.failure("3.14", "processes") == ""
    assert speed.models_compared
    starved = made.found[WorkloadCell("3.14", 2, "processes")]
    starved.wall = {10: 1.0}
    assert "had the cores that they needed" in speed.other_model("3.14", "processes").reason
    assert speed.other_model("3.15", "processes").reason == "no function was measured in several workers"
    assert speed.failure("3.15", "processes") == ""
    made.found[WorkloadCell("3.14", 2)].failure = "RuntimeError: no"
    assert speed.other_model("3.14", "processes").reason == "the workload failed: RuntimeError: no"
    assert speed.failure("3.14", "subinterpreters") == ""   # it fails in threads, too
    made.found[WorkloadCell("3.14", 2)].failure = ""
    made.found[WorkloadCell("3.14", 2, "subinterpreters")].unavailable = True
    assert speed.failure("3.14", "subinterpreters") == ""
    assert speed.other_model("3.14", "subinterpreters").reason == "subinterpreters on 3.14: ImportError: no"


class Seen:
    at_once = 2

    def __init__(self, threads, places=()):
        self.threads, self.places = threads, places


def seen(*threads):
    return Seen(threads)


class Thread:
    def __init__(self, name, seconds, waited, idle=0.0, parked=0.0, cpu=None, run_queue=None, **changes):
        self.name, self.seconds, self.waited, self.idle = name, seconds, waited, idle
        self.parked, self.spun, self.cpu, self.run_queue = parked, 0.0, cpu, run_queue
        self.held = self.handing_over = 0.0
        self.__dict__ |= changes


def test_the_most_waits_of_several_runs_are_asked_for_once():
    runs = iter([0.1, 0.4, 0.2])
    made = filled(t_1=(ONE, ONE), t_2=(ONE, ONE), g_1=(ONE, ONE), g_2=(ONE, ONE))
    made.watched = lambda cell: (
        seen(Thread("a", 1.0, next(runs), cpu=0.6, run_queue=0.2), Thread("main", 9.0, 0.0, cpu=0.2, run_queue=9.0))
        if cell.label == "3.14" else Missing(reason="not watched"))
    speed = Speed(made, QUIET)
    gains = [speed.on("3.14t", "3.14").gain for _ in range(2)]
    assert [gain.wait_share for gain in gains] == [0.4, 0.4]
    assert gains[0].ceiling == pytest.approx(1 / 0.6)
    # Both threads that ran at once are ours, which call the function.
    assert (gains[0].queued, gains[0].threads, gains[0].busiest) == (pytest.approx(0.25), None, None)


def test_threads_beyond_those_that_call_the_function_are_the_projects():
    made = filled(t_1=(ONE, ONE), t_2=(ONE, ONE), g_1=(ONE, ONE), g_2=(ONE, ONE))
    summary = seen(Thread("a", 1.0, 0.1, cpu=0.6, run_queue=0.2))
    summary.at_once = 5
    made.watched = lambda cell: summary if cell.label == "3.14" else Missing(reason="not watched")
    assert Speed(made, QUIET).on("3.14t", "3.14").gain.threads == 3   # 2 are ours


@pytest.mark.parametrize(("main", "others", "share"), [
    (0.2, [0.6, 0.2], 0.75),    # it has started them
    (3.0, [0.6, 0.4], 0.75),    # it does the work
    (1.0, [], 1.0), (None, [], None)])
def test_share_of_the_busiest_thread(main, others, share):
    threads = [Thread("main", 1.0, 0.0, cpu=main), *(Thread("a", 1.0, 0.0, cpu=cpu) for cpu in others)]
    assert busiest(seen(*threads)) == (None if share is None else pytest.approx(share))


@pytest.mark.parametrize(("queued", "parked"), [(0.0, 0.3), (0.5, None)])
def test_parked_beside_other_load_says_nothing(queued, parked):
    made = filled(t_1=(ONE, ONE), t_2=(ONE, ONE), g_1=(ONE, ONE), g_2=(ONE, ONE))
    made.run_sites = {"3.14t": RunSite(build="3.14t", python=Path("python"), folders=())}
    made.project = None
    made.found[WorkloadCell("3.14t", 2)].pools = {"OpenBLAS": 2}
    made.watched = lambda _: seen(Thread("main", 5.0, 0.0, parked=5.0),
                                  Thread("a", 1.0, 0.0, parked=0.3, cpu=0.5, run_queue=queued))
    contention = Speed(made, QUIET).on("3.14t", "3.14").contention
    assert contention.parked == parked
    assert (contention.threads, contention.pools) == (2, (NativePool(library="OpenBLAS", threads=2),))


@pytest.mark.parametrize(("threads", "share"), [
    ([Thread("main", 1.0, 0.1, 0.9), Thread("a", 1.0, 0.5), Thread("b", 1.0, 0.5)], 0.5),
    ([Thread("main", 2.0, 0.0), Thread("a", 1.0, 0.2, 0.6)], 0.5),
    ([Thread("main", 2.0, 0.5)], 0.25),
    ([Thread("main", 1.0, 0.0), Thread("a", 1.0, 0.0, 1.0)], 0.0),
    ([Thread("a", 1.0, 0.5, cpu=0.5), Thread("b", 1.0, 0.5, cpu=0.5), Thread("watches files", 9.0, 0.1, cpu=0.01)],
     0.5),
    ([Thread("computes", 1.0, 0.0, cpu=1.0), Thread("reads", 1.0, 0.9, cpu=0.02)], 0.45),
    ([Thread("a", 1.0, 0.0, cpu=0.001), Thread("b", 1.0, 0.0, cpu=0.001)], 0.0),   # they sleep, and that is the work
    ([Thread("a", 1.0, 0.5, cpu=0.5), Thread("now and then", 1.0, 0.0, cpu=0.19)], 0.5),
    ([Thread("a", 1.0, 0.5, cpu=0.5), Thread("often", 1.0, 0.0, cpu=0.21)], 0.25),
    *(([Thread("a", 1.0, 0.5, cpu=0.5), Thread("wants to", 1.0, 0.0, cpu=0.01, **{wants: 0.9})], 0.25)
      for wants in ("parked", "spun", "handing_over")),
    ([], 0.0),
])
def test_share_of_waits_is_of_the_workers_time(threads, share):
    assert wait_share(seen(*threads)) == pytest.approx(share)


def test_share_of_parked_time_is_of_what_threads_do_not_idle():
    assert parked_share(seen(Thread("a", 3.0, 0.0, idle=1.0, parked=0.5, spun=0.25))) == pytest.approx(0.375)
    assert parked_share(seen()) == 0.0


def test_time_in_the_run_queue_is_of_threads_of_which_all_is_known():
    known = Thread("a", 1.0, 0.0, cpu=0.6, run_queue=0.2)
    assert queued_share(seen(known, Thread("b", 1.0, 0.0, cpu=0.6), Thread("c", 1.0, 0.6, run_queue=0.2))) == 0.25
    assert queued_share(seen(Thread("b", 1.0, 0.0, cpu=0.6))) is None
