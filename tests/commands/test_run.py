"""`gilscope run` before its first value: what is known to make it worth little is said."""

from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.toolkit.commands.run import measuring, running
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.measure.cells import Selection
from gilscope.toolkit.measure.child.spec import UserTarget
from gilscope.toolkit.measure.settings import RunRequest, Settings
from gilscope.toolkit.measure.user_modules import code_sum
from gilscope.toolkit.model import Cell, Phase
from tests.fakes import RunMaker

SETTINGS = Settings(rounds=5, values=2, warmups=0, min_seconds=0.01, timeout=1.0, budget=None, resolution=None, seed=0)


def warnings(monkeypatch, *, others, rounds=5, workers=2, cores=2, programs=""):
    monkeypatch.setattr(running, "others_now", lambda: others)
    monkeypatch.setattr(running, "busy_programs", lambda: programs)
    monkeypatch.setattr(running, "usable_cores", lambda: cores)
    monkeypatch.setattr(running, "allowed_cpus", lambda: cores)
    return list(running._warnings(replace(SETTINGS, rounds=rounds), workers))


@pytest.mark.parametrize(("rounds", "told"), [(1, "1 round cannot show"), (2, "2 rounds cannot show")])
def test_too_few_rounds_are_said_to_tell_nothing(monkeypatch, rounds, told):
    (said,) = warnings(monkeypatch, others=0.0, rounds=rounds)
    assert told in said


def test_busy_machine_is_told_before_the_first_value(monkeypatch):
    (said,) = warnings(monkeypatch, others=1.2, programs="make (process 9: 1.2 cores)")
    assert "as other programs use 1.2 of 2 cores now: make (process 9: 1.2 cores). End them" in said
    (said,) = warnings(monkeypatch, others=1.2, workers=1)   # of another container
    assert "as other programs use 1.2 of 2 cores now. End them" in said


@pytest.mark.parametrize("seen", [
    {"others": 0.1}, {"others": None}, {"others": 1.0, "workers": 1}, {"others": 1.2, "cores": 4},
])
def test_machine_with_room_is_not_worth_a_word(monkeypatch, seen):
    assert warnings(monkeypatch, **seen) == []


@pytest.mark.parametrize(("changes", "command"), [
    ({"rounds_done": 2}, "gilscope run --resume x"),
    ({"rounds_done": 5}, "gilscope run --resume x --rounds 10"),   # it has the rounds that it was to have
])
def test_starved_run_names_the_command_that_goes_on(changes, command):
    run = replace(RunMaker(rounds=5).run(("b",), label="x"), **changes)
    assert measuring._go_on_text(run, 5) == (
        f"what there is: gilscope report x; to go on when they have ended: {command}; to wait until the cores are "
        f"idle: {command} --wait-quiet")


def test_run_does_not_go_on_with_another_function(tmp_path):
    (tmp_path / "work.py").write_text("def f(n): return n\n")
    user = UserTarget(function="work:f", payload="1")
    selection = Selection(workloads=(), user=user, models=(), workers=(1,), phases=(Phase.STEADY,), size="small")
    request = RunRequest(selection=selection, settings=SETTINGS, units={}, paths=(str(tmp_path),), packages=(),
                         code=code_sum(user.modules(), [tmp_path]))
    running._refuse_changed_code("before", RunRequest.from_options(request.to_options()))
    (tmp_path / "work.py").write_text("def f(n): return n + 1\n")
    with pytest.raises(ToolkitError, match="the code of work:f has changed since before began"):
        running._refuse_changed_code("before", request)
    running._refuse_changed_code("before", replace(request, code=""))   # of a run from before there was a sum


def test_failed_cells_are_counted_without_their_twins():
    maker = RunMaker(rounds=2)
    serial, threads = (Cell(workload="w", runner=name, workers=1, build="b") for name in ("serial", "threads"))
    maker.measure(serial, 1.0)
    for cell in (threads, replace(threads, twin=True)):
        maker.fail(cell, "crash", "SIGSEGV")
    (line,) = running.failure_lines(maker.run(("b",)), Path("x"))
    assert line.startswith("1 cell failed; their last output is in x/run.json")
    maker.failures = []
    maker.fail(replace(serial, twin=True), "crash", "SIGSEGV")
    (line,) = running.failure_lines(maker.run(("b",)), Path("x"))
    assert line.startswith("1 A/A arm failed: fewer cells, or none, check the noise")
