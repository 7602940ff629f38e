"""Rounds: interleaved, saved, resumed, kept in their budget; no process is started and no clock is waited for."""

import dataclasses
import json
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pyperf
import pytest

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.measure import scheduler
from gilscope.toolkit.measure.failed_cells import HANGS, MOST_HANGS, TRIES, still_lacking
from gilscope.toolkit.measure.inherited_limits import InheritedLimits
from gilscope.toolkit.measure.measured_process import ProcessAnswer
from gilscope.toolkit.measure.rounds import CellStarter, OneAtATime
from gilscope.toolkit.measure.scheduler import Scheduler
from gilscope.toolkit.measure.settings import Settings
from gilscope.toolkit.model import MOST_LOOKS, Cell, Phase, Run, RunSession, SkipKind
from gilscope.toolkit.processes.lifeline import OPEN_FILES
from gilscope.toolkit.store import Store, load_run
from tests.fakes import MACHINE, make_build

BUILDS = ("3.14", "3.14t")


def cell(runner="serial", workers=1, build="3.14", **changes):
    return Cell(workload="primes", runner=runner, workers=workers, build=build, **changes)


CELLS = (
    cell(), cell("threads", 2), cell("subinterpreters", 2), cell(build="3.14t"), cell("threads", 2, "3.14t"),
    cell("free-threaded", 2, "3.14t"), cell(twin=True), cell("free-threaded", 2, "3.14t", twin=True),
)


class Laboratory:
    """Stands for the measured processes and the clock: each takes `seconds`, and answers what it was told to."""

    def __init__(self, seconds=1.0):
        self.seconds = seconds
        self.now = 1000.0
        self.taken = []          # (cell, loops asked for), in order
        self.environments = []
        # By cell and how many times it was measured before: a ProcessAnswer, an exception, or changes of the fields.
        self.answers = {}

    def clock(self):
        return self.now

    def measure(self, python, spec, environment):
        build = Path(python).parts[-3]
        measured = Cell.parse(spec.name, build)
        nth = sum(each == measured for each, _ in self.taken)
        self.taken.append((measured, spec.loops))
        self.environments.append((measured, dict(environment)))
        self.now += self.seconds
        told = self.answers.get((measured, nth), self.answers.get((measured, None), {}))
        if isinstance(told, BaseException):
            raise told
        if isinstance(told, ProcessAnswer):
            return told
        write_values(spec)
        note, late = told.get("note"), told.get("late", False)
        fields = {"cpu": [0.1] * spec.values, "loops": spec.loops or 4, "evidence": {"others_cores": 0.0},
                  "starved": False, "bearable": 0.3 if measured.workers > 1 else 1.15, "wanted": measured.workers,
                  **{name: value for name, value in told.items() if name not in {"note", "late"}}}
        return ProcessAnswer(kind="measured", reason="", fields=fields, output="", note=note, ended_late=late)

    def rounds(self):
        order = [each for each, _ in self.taken]
        return [order[start:start + len(CELLS)] for start in range(0, len(order), len(CELLS))]


def write_values(spec):
    # The length of the name is a value as good as any, and tells cells apart.
    run = pyperf.Run([len(spec.name) / 1000] * spec.values, metadata={"name": spec.name, "loops": spec.loops or 4},
                     collect_metadata=False)
    pyperf.Benchmark([run]).dump(str(spec.result_path), replace=True)


def make_arms(folder):
    return CellStarter(
        pythons={build: f"/opt/{build}/bin/python" for build in BUILDS}, environments={build: {} for build in BUILDS},
        free_threaded=frozenset({"3.14t"}), size="small", user=None, units={}, services=(), folder=folder)


class Silent:
    def __init__(self):
        self.notes = []
        self.done = []
        self.left = []
        self.begun = []

    def on_round_start(self, index, rounds, arms, *, may_stop):
        self.begun.append((index, rounds, may_stop))

    def on_arm_start(self, cell):
        pass

    def on_pass_end(self, done, passes):
        pass

    def on_arms_end(self, count, seconds_left):
        self.done.append(count)
        self.left.append(seconds_left)

    def note(self, text):
        self.notes.append(text)


@pytest.fixture
def laboratory():
    return Laboratory()


USUAL = InheritedLimits(nice=0, policy="", cpus=(0,), online=1, files=OPEN_FILES, limits={}, cpu_seconds=None)


@pytest.fixture(autouse=True)
def usual(monkeypatch):
    """Let the machine of these tests, which may be part of another one, be as any."""
    monkeypatch.setattr(scheduler, "inherited_limits", lambda: USUAL)


@pytest.fixture
def bench(tmp_path, laboratory):
    """Make schedulers of one run: the first call begins it, later ones go on with it."""
    stores = []

    def make(
        *, cells=CELLS, seed=7, needed=None, only=None, hold_machine=nullcontext, way=None,
        session=False, most_starved=None, **settings,
    ):
        results = tmp_path / "results"
        wanted = Settings(**{"rounds": 3, "values": 2, "warmups": 0, "min_seconds": 0.01, "timeout": 60.0,
                             "seed": seed} | settings)
        if stores:
            stores[-1].close()
            store, run = Store.reopen(results / "label")
            run = dataclasses.replace(run, rounds_planned=wanted.rounds)
            if session:
                run = dataclasses.replace(run, later_sessions=(*run.later_sessions, RunSession(
                    started="2026-11-22T12:00:00+00:00", first_round=run.rounds_done)), answered=())
        else:
            store = Store.create("label", results)
            run = Run(label="label", started="2026-11-21T12:00:00+00:00", builds=tuple(map(make_build, BUILDS)),
                      machine=MACHINE,
                      seed=seed, rounds_planned=wanted.rounds, rounds_done=0, stopped="running", baseline="serial",
                      measurements=(), cells=tuple(cells))
            store.save(run)
        stores.append(store)
        return Scheduler(
            run, store, make_arms(tmp_path), wanted, make.reporter, way or OneAtATime(laboratory.measure),
            clock=laboratory.clock, needed=needed, only=only,
            hold_machine=hold_machine, most_starved=most_starved)

    make.reporter = Silent()
    make.path = tmp_path / "results" / "label"
    yield make
    stores[-1].close()


def test_each_round_has_every_arm_once(bench, laboratory):
    done = bench(rounds=4).go()
    assert len(laboratory.rounds()) == 4
    for order in laboratory.rounds():
        assert sorted(order, key=str) == sorted(CELLS, key=str)
    assert (done.rounds_done, done.stopped, done.failures, done.skips) == (4, "rounds", (), ())
    assert {each.cell: [one.round for one in each.observations] for each in done.measurements} == {
        each: [0, 1, 2, 3] for each in CELLS}


def test_each_round_holds_the_machine_by_itself(bench, laboratory):
    held = []

    @contextmanager
    def hold():
        before = len(laboratory.taken)
        yield
        held.append(len(laboratory.taken) - before)

    bench(rounds=3, hold_machine=hold).go()
    assert held == [len(CELLS)] * 3   # whole rounds, and nothing between them


def test_rounds_have_different_orders_that_the_seed_gives_again(tmp_path):
    def orders(seed, place):
        laboratory = Laboratory()
        store = Store.create("label", place)
        run = Run(label="label", started="", builds=tuple(map(make_build, BUILDS)), machine=MACHINE, seed=seed,
                  rounds_planned=3,
                  rounds_done=0, stopped="running", baseline="serial", measurements=(), cells=CELLS)
        arms = make_arms(tmp_path)
        settings = Settings(rounds=3, values=1, warmups=0, min_seconds=0.0, timeout=1.0, seed=seed)
        Scheduler(run, store, arms, settings, Silent(), OneAtATime(laboratory.measure), clock=laboratory.clock).go()
        store.close()
        return laboratory.rounds()

    first = orders(7, tmp_path / "first")
    assert first[0] != first[1] != first[2]
    assert orders(7, tmp_path / "again") == first
    assert orders(8, tmp_path / "other") != first


def test_loops_are_found_once_and_shared_with_the_twin(bench, laboratory):
    bench(rounds=2).go()
    asked = {}
    for measured, loops in laboratory.taken:
        asked.setdefault(dataclasses.replace(measured, twin=False), []).append(loops)
    assert all(loops[0] == 0 and set(loops[1:]) == {4} for loops in asked.values())


def test_control_runs_with_the_gil_on_in_a_free_threaded_build_alone(bench, laboratory):
    bench(rounds=1).go()
    with_gil = {measured for measured, environment in laboratory.environments if environment.get("PYTHON_GIL") == "1"}
    assert with_gil == {cell("threads", 2, "3.14t")}


CRASH = ProcessAnswer(kind="crash", reason="crashed with SIGSEGV", fields={}, output="last words")
HANG = ProcessAnswer(kind="hang", reason="hung", fields={}, output="")


def times(laboratory, wanted):
    return sum(each == wanted for each, _ in laboratory.taken)


def test_failure_costs_its_cell_one_round(bench, laboratory):
    bad = CELLS[1]
    laboratory.answers[bad, 1] = CRASH
    done = bench(rounds=4).go()
    (failure,) = done.failures
    assert (failure.cell, failure.kind, failure.round, failure.output) == (bad, "crash", 1, "last words")
    assert [each.round for each in observations(done, bad)] == [0, 2, 3]
    assert done.failed == ()
    assert bench.reporter.notes == ["primes, threads with 2 workers on 3.14: crashed with SIGSEGV"]


def test_cell_that_fails_each_time_is_given_up(bench, laboratory):
    laboratory.answers[CELLS[1], None] = CRASH
    done = bench(rounds=6).go()
    assert times(laboratory, CELLS[1]) == TRIES
    assert done.failed == (CELLS[1],)
    assert done.rounds_done == 6
    assert len(bench.reporter.notes) == 1   # not once more in each round


def test_values_that_are_gone_or_cannot_be_cost_their_round(bench, laboratory):
    laboratory.answers |= {(CELLS[1], 0): {"cpu": [0.1]}, (CELLS[2], 1): {"cpu": [float("inf"), 1.0]}}
    take = laboratory.measure

    def lose(python, spec, environment):
        answer = take(python, spec, environment)
        if laboratory.taken[-1][0] == CELLS[3] and times(laboratory, CELLS[3]) == 1:
            spec.result_path.unlink()
        return answer

    laboratory.measure = lose
    done = bench(rounds=2).go()
    assert {failure.cell: failure.reason for failure in done.failures} == {
        CELLS[1]: "a measured value is impossible: gilscope_cpu has 1 numbers for 2 values",
        CELLS[2]: "a measured value is impossible: gilscope_cpu has inf, not a number from 0 to 1e+10",
        CELLS[3]: "its values cannot be read: No such file or directory"}
    assert load_run(bench.path).failures == done.failures   # and the rest of it can be read


def test_cell_with_a_value_is_tried_to_the_end(bench, laboratory):
    laboratory.answers |= {(CELLS[1], nth): CRASH for nth in range(1, 9)}
    bench(rounds=6).go()
    assert times(laboratory, CELLS[1]) == 6


def test_hangs_are_tried_again_less_often(bench, laboratory):
    laboratory.answers |= {(CELLS[1], nth): HANG for nth in range(1, 9)}
    bench(rounds=6).go()
    assert times(laboratory, CELLS[1]) == 1 + HANGS


def test_many_hangs_are_not_tried_again(bench, laboratory):
    for each in CELLS[:MOST_HANGS]:
        laboratory.answers[each, None] = HANG
    bench(rounds=6).go()
    assert sum(each in CELLS[:MOST_HANGS] for each, _ in laboratory.taken) == MOST_HANGS


def test_wrong_result_ends_its_cell(bench, laboratory):
    laboratory.answers[CELLS[1], 1] = ProcessAnswer(kind="wrong-result", reason="167 primes", fields={}, output="")
    done = bench(rounds=4).go()
    assert times(laboratory, CELLS[1]) == 2
    assert done.failed == (CELLS[1],)


def test_cells_that_fail_alike_are_told_once_and_counted(bench, laboratory):
    for cell in CELLS[:3]:
        laboratory.answers[cell, 0] = ProcessAnswer(kind="exception", reason="ValueError: x", output="", fields={
            "frames": [["mine.py:7 in work", "parse(it)"], ["mine.py:12 in parse", "raise ValueError('x')"]]})
    done = bench(rounds=2).go()
    assert {failure.cell for failure in done.failures} == set(CELLS[:3])
    first, count = bench.reporter.notes
    assert first.endswith(": ValueError: x\n  mine.py:7 in work    parse(it)\n"
                          "  mine.py:12 in parse  raise ValueError('x')")
    assert count == "2 more cells failed in the same way"


def failing(number, *, code="ValueError", line=12):
    return ProcessAnswer(kind="exception", reason=f"{code}: bad item {number}", output="", code=code,
                         fields={"frames": [[f"mine.py:{line} in parse", ""]]})


def test_cells_fail_alike_by_their_cause_and_not_by_their_text(bench, laboratory):
    for number, cell in enumerate(CELLS[:3]):
        laboratory.answers[cell, 0] = failing(number)
    bench(rounds=2).go()
    _, count = bench.reporter.notes
    assert count == "2 more cells failed in the same way"


@pytest.mark.parametrize("other", [{"code": "KeyError"}, {"line": 99}])
def test_failures_with_another_cause_are_each_reported(other, bench, laboratory):
    laboratory.answers[CELLS[0], 0] = failing(0)
    laboratory.answers[CELLS[1], 0] = failing(0, **other)
    bench(rounds=2).go()
    assert ["bad item 0" in note for note in bench.reporter.notes] == [True, True]


def test_cell_that_turns_out_unavailable_is_skipped(bench, laboratory):
    laboratory.answers[CELLS[2], 0] = ProcessAnswer(kind="unavailable", reason="not here", fields={}, output="")
    done = bench().go()
    assert [(skip.cell, skip.kind, skip.reason) for skip in done.skips] == [
        (CELLS[2], SkipKind.WORK_CANNOT, "not here")]
    assert sum(each == CELLS[2] for each, _ in laboratory.taken) == 1
    assert not done.failures


def test_all_cells_may_fail(bench, laboratory):
    for each in CELLS:
        laboratory.answers[each, None] = ProcessAnswer(kind="exit", reason="no", fields={}, output="")
    done = bench().go()
    assert (len(done.failed), done.rounds_done) == (len(CELLS), 3)
    assert len(laboratory.taken) == TRIES * len(CELLS)
    assert load_run(bench.path).failures == done.failures


def test_run_ends_when_no_cell_is_left_to_try(bench, laboratory):
    for each in CELLS:
        laboratory.answers[each, None] = ProcessAnswer(kind="exit", reason="no", fields={}, output="")
    done = bench(rounds=9).go()
    assert (done.rounds_done, done.stopped) == (TRIES, "failures")


@pytest.mark.parametrize(("needed", "first"), [(None, False), (lambda _run, cells: cells, True)])
def test_rounds_are_promised_only_if_no_look_can_end_the_run(bench, needed, first):
    bench(rounds=2, needed=needed).go()
    assert bench.reporter.begun == [(0, 2, first), (1, 2, False)]


def test_processes_that_end_late_have_one_note_with_the_thread(bench, laboratory):
    for cell in CELLS[:2]:
        laboratory.answers[cell, None] = {"note": "did not end", "late": True, "threads_left": ["poller"]}
    done = bench().go()
    assert [note.text for note in done.notes] == [
        "measured processes did not end within 10 s after their values were taken: 1 thread (poller) still ran"]


def test_note_of_a_process_is_kept_once(bench, laboratory):
    laboratory.answers[CELLS[0], None] = {"note": "did not end"}
    done = bench().go()
    assert [note.text for note in done.notes] == ["3.14, serial: a measured process did not end"]


def test_how_gilscope_was_started_is_kept_with_the_run_and_said_once(bench, monkeypatch):
    monkeypatch.setattr(scheduler, "inherited_limits", lambda: dataclasses.replace(USUAL, nice=5))
    bench(rounds=1).go()
    done = bench(rounds=2).go()   # goes on
    assert [note.text for note in done.notes] == ["gilscope was started with nice 5; so were the measured processes"]
    assert load_run(bench.path).notes == done.notes


def busy(others, *, starved=True):
    """Return the answer of a process beside which others used so many cores: more than two workers can bear."""
    return {"starved": starved, "evidence": {"others_cores": others}}


def observations(done, wanted):
    (found,) = (each.observations for each in done.measurements if each.cell == wanted)
    return found


def retakes(done):
    """Return the attempt that is kept of each cell in its first round."""
    return {each.cell: each.observations[0].retakes for each in done.measurements}


def test_starved_cell_is_taken_again_with_all_that_it_is_compared_with(bench, laboratory):
    laboratory.answers |= {(CELLS[1], 0): busy(1.0), (CELLS[1], 1): busy(0.9)}
    done = bench(rounds=1).go()
    (first,) = observations(done, CELLS[1])
    assert (first.starved, first.retakes) == (False, 2)
    assert retakes(done) == dict.fromkeys(CELLS, 2)   # the baselines among them


def test_baseline_that_others_disturbed_is_taken_again_too(bench, laboratory):
    laboratory.answers[CELLS[0], 0] = busy(1.0, starved=False)
    assert retakes(bench(rounds=1).go()) == dict.fromkeys(CELLS, 1)


def test_cells_that_are_not_compared_with_a_starved_one_are_not_taken_again(bench, laboratory):
    others = [dataclasses.replace(each, workload="other") for each in CELLS[:3]]
    laboratory.answers[CELLS[1], 0] = busy(1.0)
    done = bench(rounds=1, cells=(*CELLS, *others)).go()
    assert retakes(done) == dict.fromkeys(CELLS, 1) | dict.fromkeys(others, 0)


@pytest.mark.parametrize(("others", "times"), [(1.0, 1), (1.9, 2)])
def test_one_worker_is_taken_again_if_it_lacked_its_core(bench, laboratory, others, times):
    cells = [each for each in CELLS if each.workers == 1]
    laboratory.answers |= {(each, None): busy(others) for each in cells}
    bench(rounds=1, cells=cells).go()
    assert len(laboratory.taken) == times * len(cells)


def test_least_disturbed_attempt_is_kept_of_all_cells(bench, laboratory):
    laboratory.answers |= {(CELLS[1], 0): busy(1.5), (CELLS[1], 1): busy(0.7), (CELLS[1], 2): busy(1.9)}
    done = bench(rounds=1, retakes=2).go()
    (first,) = observations(done, CELLS[1])
    assert (first.starved, first.evidence.others_cores) == (True, 0.7)
    assert retakes(done) == dict.fromkeys(CELLS, 1)


def test_first_attempt_is_kept_of_all_cells_when_it_was_the_best(bench, laboratory):
    laboratory.answers |= {(CELLS[1], 0): busy(0.5), (CELLS[2], 1): busy(0.7), (CELLS[2], 2): busy(1.9)}
    done = bench(rounds=1, retakes=2).go()
    (first,) = observations(done, CELLS[1])
    assert (first.starved, first.evidence.others_cores) == (True, 0.5)
    assert retakes(done) == dict.fromkeys(CELLS, 0)


def test_retakes_begin_no_later_than_a_round_takes(bench, laboratory):
    for attempt in range(9):   # less disturbed each time, so that no retake is futile
        laboratory.answers[CELLS[1], attempt] = busy(2.0 - attempt / 10)
    bench(rounds=1, retakes=50).go()
    assert len(laboratory.taken) == 3 * len(CELLS)


def test_retakes_end_when_one_is_as_disturbed(bench, laboratory):
    for each in CELLS:
        laboratory.answers[each, None] = busy(1.0)
    bench(rounds=1, retakes=50).go()
    assert len(laboratory.taken) == 2 * len(CELLS)


def test_retake_that_fails_keeps_what_there_was_of_all_cells(bench, laboratory):
    laboratory.answers |= {(CELLS[1], 0): busy(1.0), (CELLS[1], 1): HANG}
    done = bench(rounds=2).go()
    assert [failure.cell for failure in done.failures] == [CELLS[1]]
    assert [each.starved for each in observations(done, CELLS[1])] == [True, False]
    assert retakes(done) == dict.fromkeys(CELLS, 0)


PARALLEL = [each for each in CELLS if each.workers > 1]


def starve(laboratory, *rounds):
    """Let other programs use the cores of the parallel cells in these rounds, which are measured without retakes."""
    laboratory.answers |= {(each, number): busy(1.0) for each in PARALLEL for number in rounds}


@pytest.mark.parametrize(("starved", "rounds", "ended"), [
    ((0, 1), 9, (2, "starved")),
    ((0, 2, 3), 9, (4, "starved")),        # in a row
    ((0, 2, 4), 6, (6, "rounds")),
    ((0, 1), 2, (2, "starved")),
    ((0,), 1, (1, "rounds")),
    ((1,), 2, (2, "rounds")),
])
def test_run_stops_after_two_rounds_without_a_clean_cell(bench, laboratory, starved, rounds, ended):
    starve(laboratory, *starved)
    done = bench(rounds=rounds, retakes=0, most_starved=2).go()
    assert (done.rounds_done, done.stopped) == ended
    assert load_run(bench.path).stopped == done.stopped


def test_one_clean_cell_keeps_a_run_going(bench, laboratory):
    starve(laboratory, 0, 1, 2)
    laboratory.answers[PARALLEL[0], 1] = {}
    done = bench(rounds=3, retakes=0, most_starved=2).go()
    assert (done.rounds_done, done.stopped) == (3, "rounds")


def test_cell_that_fails_is_not_clean_because_it_was(bench, laboratory):
    starve(laboratory, 1, 2)
    laboratory.answers |= {(PARALLEL[0], number): HANG for number in (1, 2)}
    done = bench(rounds=9, retakes=0, most_starved=2).go()
    assert (done.rounds_done, done.stopped) == (3, "starved")


def test_retake_may_give_a_clean_cell(bench, laboratory):
    starve(laboratory, 0)   # the retake of the first round is the second measurement
    done = bench(rounds=1, retakes=1, most_starved=2).go()
    assert done.stopped == "rounds"


def test_budget_that_ends_after_one_round_without_a_clean_cell_is_not_the_reason(bench, laboratory):
    starve(laboratory, 0)
    done = bench(rounds=9, retakes=0, budget=9.0, most_starved=2).go()   # a round takes 8 s
    assert (done.rounds_done, done.stopped) == (1, "starved")


def test_starved_run_goes_on(bench, laboratory):
    starve(laboratory, 0, 1, 2)
    assert bench(rounds=5, retakes=0, most_starved=2).go().rounds_done == 2
    done = bench(rounds=5, retakes=0, most_starved=2).go()
    assert (done.rounds_done, done.stopped) == (5, "rounds")


def test_starved_rounds_are_all_measured_where_they_count(bench, laboratory):
    starve(laboratory, 0, 1, 2)
    assert bench(rounds=3, retakes=0).go().stopped == "rounds"   # as in an experiment


def test_budget_stops_before_a_round_that_would_not_fit(bench, laboratory):
    done = bench(rounds=100, budget=20.0).go()   # a round takes 8 s: two fit
    assert (done.rounds_done, done.stopped) == (2, "budget")
    assert laboratory.now - 1000.0 <= 20.0


def test_first_round_is_cut_by_the_budget_with_reasons(bench, laboratory):
    done = bench(rounds=100, budget=2.5).go()
    assert (done.rounds_done, done.stopped) == (1, "budget")
    assert len(laboratory.taken) == 3   # the third ends past the budget, the fourth does not begin
    assert len(done.skips) == len(CELLS) - 3
    assert {(skip.kind, skip.reason) for skip in done.skips} == {
        (SkipKind.OUT_OF_BUDGET, "the budget ended before its first value")}
    assert {skip.cell for skip in done.skips} | {each.cell for each in done.measurements} == set(CELLS)


def test_run_that_goes_on_keeps_its_budget_too(bench, laboratory):
    bench(rounds=1).go()
    began = laboratory.now
    done = bench(rounds=100, budget=2.5).go()
    assert laboratory.now - began <= 2.5 + laboratory.seconds
    assert (done.rounds_done, done.stopped) == (1, "budget")
    assert not done.skips   # they have a value


def test_what_had_no_value_for_want_of_time_gets_one_when_the_run_goes_on(bench):
    bench(rounds=100, budget=2.5).go()
    done = bench(rounds=3).go()
    assert not done.skips
    assert {len(observations(done, cell)) for cell in CELLS} == {2, 3}   # the first round lacks some


def test_cut_again_before_its_first_value_it_is_skipped_again(bench, laboratory):
    bench(rounds=100, budget=2.5).go()
    done = bench(rounds=100, budget=0.5).go()
    measured = {each.cell for each in done.measurements}
    assert {skip.cell for skip in done.skips} == set(CELLS) - measured
    assert len(laboratory.taken) == 4


def test_time_left_is_never_more_than_the_budget(bench):
    bench(rounds=100, budget=20.0).go()
    assert all(0 <= left <= 20.0 for left in bench.reporter.left)


def test_time_left_counts_rounds(bench):
    bench(rounds=3).go()
    assert bench.reporter.left == pytest.approx([23.0 - done for done in range(24)])


def test_time_left_of_a_slow_round_counts_the_cells_to_come(bench, laboratory):
    @contextmanager
    def slower_each_round():
        laboratory.seconds *= 3
        yield

    bench(rounds=2, hold_machine=slower_each_round).go()
    assert bench.reporter.left[8:] == pytest.approx([3.0 * to_come for to_come in reversed(range(8))])


def test_time_left_counts_starved_cells_that_are_measured_again(bench, laboratory):
    laboratory.answers |= {(cell, 1): busy(0.7) for cell in CELLS[:3]}   # in the second round
    bench(rounds=2, retakes=1).go()
    assert bench.reporter.left[-1] == pytest.approx(len(CELLS))


def test_arms_that_end_together_are_reported_together(bench, laboratory):
    class InTwo(OneAtATime):
        def groups(self, cells, around):
            return [list(cells[:2]), list(cells[2:])]

        def measure(self, cells, around):
            return [result for cell in cells for result in super(InTwo, self).measure([cell], around)]

    laboratory.answers |= {(cell, None): HANG for cell in CELLS}   # failures share no file of values
    bench(rounds=1, way=InTwo(laboratory.measure)).go()
    assert bench.reporter.done == [2, 6]
    assert bench.reporter.left == pytest.approx([6.0, 0.0])


class Asked:
    """Stands for the statistics: after the rounds that it was told of, the cells that need more of them."""

    def __init__(self, **needed):
        self.needed = {int(name[1:]): cells for name, cells in needed.items()}
        self.asked = []

    def __call__(self, run, cells):
        assert {each.cell: len(each.observations) for each in run.measurements}[CELLS[0]] == run.rounds_done
        self.asked.append((run.rounds_done, len(cells)))
        return self.needed[run.rounds_done]


def rounds_of(run):
    return {each.cell: [one.round for one in each.observations] for each in run.measurements}


def test_rounds_go_to_cells_that_need_them(bench, laboratory):
    asked = Asked(r4=CELLS[:3], r6=CELLS[:2], r8=CELLS[:2])
    done = bench(rounds=10, needed=asked).go()
    assert asked.asked == [(4, 8), (6, 8), (8, 8)]   # not after the last
    # A clear cell takes part in every third round: the third, the sixth and the ninth.
    assert rounds_of(done) == {
        each: [*range(10)] if each in CELLS[:2] else [*range(6), 8] if each == CELLS[2] else [0, 1, 2, 3, 5, 8]
        for each in CELLS}
    assert (done.rounds_done, done.stopped, done.looks) == (10, "rounds", 3)
    assert set(done.answered) == set(CELLS[2:])
    kept = load_run(bench.path)
    assert (kept.looks, kept.answered, rounds_of(kept)) == (done.looks, done.answered, rounds_of(done))
    suite = pyperf.BenchmarkSuite.load(str(bench.path / "3.14.json"))
    assert {each.get_name(): each.get_nrun() for each in suite} == {
        each.name: len(rounds) for each, rounds in rounds_of(done).items() if each.build == "3.14"}
    assert bench.reporter.notes == [
        f"after {rounds} rounds the answers of {clear} of 6 cells are clear: most rounds now go to the others"
        for rounds, clear in ((4, 3), (6, 4))]   # after 8 it was the same


@pytest.mark.parametrize(("resolution", "stopped"), [(None, "answered"), (0.01, "resolution")])
def test_run_stops_when_no_cell_needs_more(resolution, stopped, bench):
    done = bench(rounds=20, resolution=resolution, needed=Asked(r4=CELLS, r6=())).go()
    assert (done.rounds_done, done.stopped, done.looks, set(done.answered)) == (6, stopped, 2, set(CELLS))
    again = bench(rounds=20, resolution=resolution, needed=Asked()).go()   # goes on
    assert (again.rounds_done, again.stopped, again.looks) == (6, stopped, 2)


def test_without_a_question_every_cell_gets_every_round(bench):
    done = bench(rounds=20).go()
    assert {len(rounds) for rounds in rounds_of(done).values()} == {20}
    assert (done.stopped, done.looks, done.answered) == ("rounds", 0, ())


def test_cell_may_come_back(bench):
    done = bench(rounds=9, needed=Asked(r4=CELLS[:2], r6=CELLS[:3], r8=CELLS[:2])).go()
    assert rounds_of(done)[CELLS[2]] == [0, 1, 2, 3, 5, 6, 7, 8]   # of them the sixth and the ninth with all cells


def test_run_that_goes_on_leaves_alone_what_was_clear(bench, laboratory):
    laboratory.answers[CELLS[0], 5] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        bench(rounds=8, needed=Asked(r4=CELLS[:2])).go()
    del laboratory.answers[CELLS[0], 5]
    asked = Asked(r6=CELLS[:1])
    done = bench(rounds=8, needed=asked).go()
    assert asked.asked == [(6, 8)]
    assert [len(rounds_of(done)[each]) for each in CELLS[:3]] == [8, 6, 5]   # the sixth round has all cells
    assert done.looks == 2


def test_clear_cells_take_part_in_rounds_early_on_alone(bench):
    done = bench(rounds=20, needed=Asked(**{f"r{n}": CELLS[:2] for n in (4, 6, 8, 11, 15)})).go()
    assert rounds_of(done)[CELLS[2]] == [0, 1, 2, 3, 5, 8, 11]


def test_budget_has_room_for_more_rounds_of_fewer_cells(bench, laboratory):
    done = bench(rounds=100, budget=40.0, needed=Asked(r4=CELLS[:2], r6=CELLS[:2], r8=CELLS[:2])).go()
    assert (done.rounds_done, done.stopped) == (8, "budget")   # four of 8 s and four of 2 s: 40
    assert laboratory.now - 1000.0 <= 40.0


def test_time_left_is_that_of_the_cells_that_are_measured(bench):
    bench(rounds=6, needed=Asked(r4=CELLS[:2])).go()
    assert bench.reporter.left[-4:] == pytest.approx([3.0, 2.0, 1.0, 0.0])


def test_ctrl_c_keeps_what_was_measured(bench, laboratory):
    laboratory.answers[CELLS[0], 1] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        bench().go()
    kept = load_run(bench.path)
    assert (kept.rounds_done, kept.stopped) == (1, "interrupted")
    assert all(each.observations[0].round == 0 for each in kept.measurements)
    assert len(kept.measurements) == len(CELLS)


def test_run_goes_on_as_it_would_have(bench, laboratory, tmp_path):
    laboratory.answers[CELLS[0], 1] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        bench().go()
    interrupted = len(laboratory.taken)
    del laboratory.answers[CELLS[0], 1]
    done = bench().go()

    assert (done.rounds_done, done.stopped) == (3, "rounds")
    assert {each.cell: [one.round for one in each.observations] for each in done.measurements} == {
        each: [0, 1, 2] for each in CELLS}
    after = laboratory.taken[interrupted:]
    assert all(loops == 4 for _, loops in after)   # as found in the first session
    undisturbed = Laboratory()
    whole = Store.create("whole", tmp_path)
    run = dataclasses.replace(load_run(bench.path), rounds_done=0, measurements=())
    arms = make_arms(tmp_path)
    settings = Settings(rounds=3, values=1, warmups=0, min_seconds=0.0, timeout=1.0, seed=7)
    Scheduler(run, whole, arms, settings, Silent(), OneAtATime(undisturbed.measure), clock=undisturbed.clock).go()
    whole.close()
    assert [[each for each, _ in after][:8], [each for each, _ in after][8:]] == undisturbed.rounds()[1:]


def test_failed_cell_is_tried_again_when_the_run_goes_on(bench, laboratory):
    laboratory.answers |= {(CELLS[1], nth): CRASH for nth in range(TRIES)}
    bench(rounds=TRIES + 2).go()
    done = bench(rounds=TRIES + 3).go()
    assert [each.round for each in observations(done, CELLS[1])] == [TRIES + 2]
    assert [failure.round for failure in done.failures] == list(range(TRIES))


def test_failure_in_a_round_that_is_made_again_is_forgotten(bench, laboratory):
    laboratory.answers |= {(CELLS[1], nth): CRASH for nth in (0, 1)}
    laboratory.answers |= {(each, 1): KeyboardInterrupt() for each in CELLS if each != CELLS[1]}
    with pytest.raises(KeyboardInterrupt):
        bench().go()
    laboratory.answers = {}
    assert [failure.round for failure in bench().go().failures] == [0]


def test_rounds_lost_by_failures_are_made_up_for_with_all_they_are_compared_with(bench, laboratory):
    other = Cell(workload="sort", runner="serial", workers=1, build="3.14")
    laboratory.answers |= {(CELLS[1], nth): CRASH for nth in (0, 2)}
    lacking = bench(cells=(*CELLS, other), rounds=5).go()
    more, only = still_lacking(lacking, requested=5)
    assert (more, only) == (2, frozenset(CELLS))
    whole = bench(rounds=5 + more, only=only).go()
    assert [each.round for each in observations(whole, CELLS[1])] == [1, 3, 4, 5, 6]
    assert [len(observations(whole, each)) for each in (CELLS[0], other)] == [7, 5]
    assert still_lacking(whole, requested=5) == (0, frozenset())


def test_nothing_is_lacking_where_nothing_failed_or_the_work_is_wrong(bench, laboratory):
    laboratory.answers[CELLS[1], 1] = ProcessAnswer(kind="wrong-result", reason="167 primes", fields={}, output="")
    assert still_lacking(bench(rounds=4).go(), requested=4) == (0, frozenset())


def test_session_measures_every_cell_again_and_its_rounds_say_so(bench, laboratory):
    asked = []

    def needed(run, cells):
        asked.append({one.round for each in run.measurements for one in each.observations})
        return [cell(), cell("threads", 2)]

    first = bench(rounds=12, needed=needed).go()
    assert {len(each.observations) for each in first.measurements} == {7, 12}   # after the look, clear ones every third
    del laboratory.taken[:]
    done = bench(rounds=18, session=True, needed=needed).go()
    assert {each for each, _ in laboratory.taken[:len(CELLS)]} == set(CELLS)   # also those that were clear
    assert [session.first_round for session in done.sessions] == [0, 12]
    for each in load_run(bench.path).measurements:
        assert all(one.session == (1 if one.round < 12 else 2) for one in each.observations)
    # Looks come 4, 6, 8, 11 rounds after the session began, and see no round of another session.
    assert asked == [{*range(n)} for n in (4, 6, 8, 11)] + [{*range(12, 16)}]
    assert done.looks == 5   # of one error budget


def test_sessions_have_no_more_looks_than_the_error_budget(bench):
    looks = []

    def needed(run, cells):
        looks.append(run.rounds_done)
        return cells

    bench(rounds=5, needed=needed).go()
    made = bench(rounds=10, session=True, needed=needed)
    made._looks = MOST_LOOKS
    made.go()
    assert looks == [4]


def test_session_whose_first_round_the_budget_cuts_is_readable(bench, laboratory):
    bench(rounds=2).go()
    done = bench(rounds=4, session=True, budget=3.5, way=OneAtATime(laboratory.measure)).go()
    assert done.rounds_done == 3
    assert load_run(bench.path).session_of(2) == 2


@pytest.mark.parametrize(("change", "words"), [
    ({"later_sessions": [{"started": "2026-11-22T12:00:00+00:00", "first_round": 0}]}, "begins with round 0"),
    ({"later_sessions": [{"started": "2026-11-22T12:00:00+00:00", "first_round": 9}]}, "begins with round 9"),
    ({"later_sessions": [{"started": "yesterday", "first_round": 2}]}, "yesterday"),
    ({"later_sessions": []}, "gilscope_session is 2, and the round is of session 1"),
])
def test_sessions_that_contradict_the_rounds_are_damage(change, words, bench):
    bench(rounds=2).go()
    bench(rounds=4, session=True).go()
    header = json.loads((bench.path / "run.json").read_text())
    (bench.path / "run.json").write_text(json.dumps(header | change))
    with pytest.raises(BadFileError, match=words):
        load_run(bench.path)


def test_run_is_on_disk_after_each_round(bench, laboratory):
    rounds = []
    take = laboratory.measure

    def look_first(python, spec, environment):
        path = bench.path / "run.json"
        rounds.append(json.loads(path.read_text())["rounds_done"])
        return take(python, spec, environment)

    laboratory.measure = look_first
    bench(rounds=3).go()
    assert rounds == [0] * 8 + [1] * 8 + [2] * 8


def test_spec_says_all_of_its_cell(bench, laboratory, tmp_path):
    specs = []
    take = laboratory.measure
    laboratory.measure = lambda python, spec, environment: (specs.append(spec), take(python, spec, environment))[1]
    startup = cell("threads", 2, phase=Phase.STARTUP)
    bench(cells=[startup], rounds=1, values=3, warmups=1, min_seconds=0.5, timeout=9.0).go()
    (spec,) = specs
    assert (spec.workload, spec.runner, spec.workers) == ("primes", "threads", 2)
    assert (spec.phase, spec.size) == ("startup", "small")
    assert (spec.values, spec.warmups, spec.min_seconds, spec.progress_timeout) == (3, 1, 0.5, 9.0)
    assert spec.folder == str(tmp_path)
