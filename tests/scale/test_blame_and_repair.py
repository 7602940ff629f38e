"""From measurements to objects, lines and repairs, on a process whose program is made up."""

import pytest

from gilscope.toolkit.scale.investigation import TRIAL_SECONDS, investigate
from gilscope.toolkit.scale.judgement import Doubt, Obstacle, ScalingVerdict
from gilscope.toolkit.scale.repair_trials import RepairOutcome
from gilscope.toolkit.scale.throughput import CleanCalls
from gilscope.toolkit.scale.zygote_process import CodePlace, CopyTest, LoadedFunction, ProgramObject, SampledObject

MS = 1_000_000
LOADED = LoadedFunction(seconds_per_call=1e-5, payloads=0, dealt=False, objects=100, gil=False, refused=None,
                        bytecode=True)


class FakeProgram:
    """A program whose threads lose to the counts of the objects in `needed`, or to `lock`."""

    def __init__(self, *needed, moved=None, lock=None, queued=0.0, clean=20):
        self.needed, self.lock, self.queued, self.clean = set(needed), lock, queued, clean
        self.moved = dict.fromkeys(needed, 0.5) if moved is None else moved
        self.measurements = 0

    def results(self, *, immortal):
        return ["1"]

    def measure_cleanly(self, mode):
        self.measurements += 1
        threads = mode.threads > 1 and not mode.processes
        clean = 0 if threads and self.lock and self.queued else self.clean
        rate = (2.0 if mode.threads > 1 else 1.0) * (1 if not threads else self.speed(mode))
        lasted = 2 * max(self.clean, 20) * MS
        return CleanCalls(threads=mode.threads, calls=int(rate * 500 * clean), spent=mode.threads * clean * MS,
                          made=int(rate * 500 * 20), lasted=lasted, queued=int(self.queued * lasted))

    def speed(self, mode):
        if self.lock:
            return 0.4
        return 1.0 if mode.everything or mode.copies or self.needed <= set(mode.immortal) else 0.3

    def sample(self, threads, watched=None, period=500, copies=None, longer=1.0):
        if copies:
            return []
        locks = {} if self.lock is None else {self.lock: 0.6}
        return [SampledObject(number=number, moved=self.moved.get(number, 0.0), locked=locks.get(number, 0.0),
                              parked=0.0) for number in sorted({*self.moved, *locks})
                if watched is None or number in watched]

    def names(self, numbers):
        return [ProgramObject(name=f"app.G{number}", owner=f"app.G{number}", kind="global", type="list",
                              held=("app", f"G{number}")) for number in numbers]

    def places(self, numbers):
        return [(CodePlace(file="app.py", line=number, function="f"),) for number in numbers]

    def test_copies(self, copies, watched=()):
        return CopyTest(why=None, results=["1"], originals=[], used=[])


def found_in(program, clock=lambda: 0.0):
    return investigate(program, LOADED, 2, clock=clock)


def test_object_has_its_line_and_its_repair_is_tried():
    found = found_in(FakeProgram(7, moved={3: 0.9, 7: 0.5, 8: 0.1}))
    assert found.judgement.obstacle is Obstacle.COUNTS
    assert [(each.name, each.places[0].line) for each in found.objects] == [("app.G7", 7)]
    (trial,) = found.trials
    assert trial.outcome is RepairOutcome.MEASURED
    assert trial.of_ceiling.ratio == pytest.approx(1.0)
    assert found.explained == pytest.approx(1.0)


@pytest.mark.parametrize(("moved", "queued", "named"), [
    (0.006, 0.8, True),       # in 0.03 of the looks while threads had cores
    (0.006, 0.0, False), (0.03, 0.0, True)])
def test_counts_move_seldom_where_threads_seldom_run(moved, queued, named):
    found = found_in(FakeProgram(7, moved={7: moved}, queued=queued))
    assert [each.name for each in found.objects] == (["app.G7"] if named else [])
    assert found.judgement.doubt is (None if named else Doubt.SET)


def test_search_whose_time_is_over_names_nobody():
    class Slow(FakeProgram):
        def measure_cleanly(self, mode):
            nonlocal now
            now += 10.0 if mode.immortal else 0.1
            return super().measure_cleanly(mode)

    now = 0.0
    found = found_in(Slow(1, 2, 3), lambda: now)
    assert found.judgement.doubt is Doubt.SET
    assert (found.objects, found.also, found.trials) == ((), (), ())


def test_no_repair_is_tried_where_measuring_took_too_long():
    class Slow(FakeProgram):
        def measure_cleanly(self, mode):
            nonlocal now
            now += TRIAL_SECONDS + 1 if mode.everything and now == 0.0 else 0.0
            return super().measure_cleanly(mode)

    now = 0.0
    found = found_in(Slow(7), lambda: now)
    assert [each.name for each in found.objects] == ["app.G7"]
    assert [trial.outcome for trial in found.trials] == [RepairOutcome.FEW_CLEAN]


def test_lock_whose_waiters_are_never_undisturbed_is_named_by_disturbed_calls():
    found = found_in(FakeProgram(lock=5, queued=0.4))
    assert (found.judgement.verdict, found.judgement.obstacle) == (ScalingVerdict.PLATEAUS, Obstacle.LOCK)
    assert [(each.name, each.kind, each.held) for each in found.objects] == [("app.G5", "lock", 0.6)]
    assert found.evidence.disturbed.ratio == pytest.approx(0.4)
    assert found.evidence.of_ceiling is None


def test_lock_that_costs_nothing_among_disturbed_calls_is_seen_and_not_blamed():
    class Free(FakeProgram):
        def speed(self, mode):
            return 0.95

    found = found_in(Free(lock=5, queued=0.4))
    assert (found.judgement.verdict, found.judgement.doubt) == (ScalingVerdict.UNSURE, Doubt.YIELDING)
    assert (found.objects, [each.name for each in found.also]) == ((), ["app.G5"])
