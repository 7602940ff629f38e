"""An investigation from the first round to the named object, with a measuring process whose rates are planted.

The fake has no noise and no busy machine, so that each answer is the only right one: an investigation that is always
unsure fails here.
"""

from dataclasses import dataclass, field, replace
from math import exp

import pytest

from gilscope.toolkit.scale.child.names import UNNAMED
from gilscope.toolkit.scale.counts_search import MOST_ALONE
from gilscope.toolkit.scale.investigation import LONG_CALL, MOST_ROUNDS, TRIAL_SECONDS, investigate
from gilscope.toolkit.scale.investigation_text import investigation_sentences
from gilscope.toolkit.scale.judgement import Doubt, Obstacle, ScalingVerdict
from gilscope.toolkit.scale.repair_trials import RepairOutcome
from gilscope.toolkit.scale.throughput import LEAST_CLEAN, CleanCalls, near_limit
from gilscope.toolkit.scale.zygote_process import (
    CodePlace,
    CopyTest,
    LoadedFunction,
    ProgramObject,
    SampledObject,
    UnscalableFunctionError,
)

ALONE = 10_000.0      # calls a second of one thread, and of each process
CLEAN = 100 * LEAST_CLEAN
LOADED = LoadedFunction(seconds_per_call=1e-4, payloads=0, dealt=False, objects=100, gil=False, refused=None,
                        bytecode=True, package="app")


@dataclass
class PlantedProcess:
    """Stands for `ZygoteProcess`: answers what the planted program would."""

    counted: dict[int, float] = field(default_factory=dict)   # objects in the way: throughput lost to each, in calls
    other_loss: float = 0.0         # that immortality does not give back
    collecting: float = 0.0         # thereof lost to the collector
    locked: dict[int, float] = field(default_factory=dict)
    unwaited: tuple[int, ...] = ()  # of these, held without anybody waiting
    moving: tuple[int, ...] = ()    # their counts move, and nobody waits for them
    moved: dict[int, float] = field(default_factory=dict)     # share of samples, where it is not about a half
    clean: float = CLEAN            # seconds of each measurement that were undisturbed
    queued: float = 0.0             # share of the threads' time without a core
    owned: tuple[int, ...] = ()     # objects that N1 holds
    errors: dict[tuple[int, ...], int] = field(default_factory=dict)   # sets, and how often they seem to be enough
    hides: bool = False             # no single object gives anything back
    fades: bool = False             # what the search found is gone when it is measured beside the ceiling once more
    changes: bool = False           # results differ with everything immortal
    searched: bool = False
    measurements: int = 0
    on_one_core: int = 0
    handoffs: list[float] = field(default_factory=list)

    @property
    def near(self):
        return near_limit(self.handoffs)

    def rate(self, mode):
        """Return the calls a second of all threads together."""
        if self.fades and mode.immortal:
            self.searched = True
        if self.searched and mode.processes:
            self.hides = True
        if mode.processes or mode.threads == 1:
            return ALONE * mode.threads
        erring = self.errors.get(mode.immortal, 0) > 0
        if erring:
            self.errors[mode.immortal] -= 1
        everything = mode.everything or (mode.copies and not mode.copies.control) or erring
        relieved = self.counted if everything else () if self.hides else mode.immortal
        lost = self.other_loss + sum(cost for number, cost in self.counted.items() if number not in relieved)
        return ALONE * mode.threads - lost - self.collecting * mode.collector

    def measure_cleanly(self, mode):
        self.measurements += 1
        waits = self.locked and self.queued and mode.threads > 1 and not mode.processes
        spent = 0 if waits else round(self.clean * mode.threads * 1e9)     # waiters yield their cores
        lasted = round(max(self.clean, CLEAN) * mode.threads * 1e9)
        calls = self.rate(mode) / mode.threads / 1e9
        spent += bool(spent) * 20 * (self.measurements % 5)    # times that never vary would have no known noise
        lasted += 20 * (self.measurements % 5)
        queued = round(self.queued * lasted)
        return CleanCalls(threads=mode.threads, calls=round(calls * spent), made=round(calls * (lasted - queued)),
                          spent=spent, lasted=lasted, queued=queued, collections=bool(self.collecting) * 5)

    def sample(self, threads, watched=None, period=0, copies=None, longer=1.0):
        seen = {*self.counted, *self.moving, *self.moved, *self.locked} & set(watched or range(100))
        return [] if copies else [
            SampledObject(number=number, locked=self.locked.get(number, 0.0), waited=self._waited(number),
                          moved=self.moved.get(number, 0.0 if number in self.locked else 0.5 + number / 1000))
            for number in sorted(seen)]

    def _waited(self, number):
        return 0.0 if number in self.unwaited else self.locked.get(number, 0.0) / 2

    def names(self, numbers):
        owners = dict.fromkeys(self.owned, "app.N1")
        return [ProgramObject(name=f"app.N{number}", owner=owners.get(number, f"app.N{number}"), kind="global",
                              type="app.T", held=("app", f"N{number}")) for number in numbers]

    def places(self, numbers):
        return [(CodePlace(file="app.py", line=number, function="f"),) for number in numbers]

    def test_copies(self, copies, watched=()):
        return CopyTest(why=None, results=["1"], originals=[], used=[])

    def results(self, *, immortal):
        return ["immortal" if immortal and self.changes else "42"]


class SlowProcess(PlantedProcess):
    """One whose measurements take time; `now` is the clock's."""

    now = 0.0

    def measure_cleanly(self, mode):
        self.now += self.seconds(mode)
        return super().measure_cleanly(mode)


def found(kind=PlantedProcess, **planted):
    process = kind(**planted)
    answer = investigate(process, LOADED, 2, clock=lambda: getattr(process, "now", 0.0),
                         rest=getattr(process, "rest", lambda _: None))
    assert answer.measurements == process.measurements > 0
    return answer


class ChangingProcess(PlantedProcess):
    """One whose machine changes after the first answer: threads lose a part of what they lost, or lose some more."""

    part = 1.0
    more = 0.0

    def rest(self, seconds):
        self.counted = {number: self.part * cost for number, cost in self.counted.items()}
        self.other_loss = self.more
        self.part = 1.0      # once


@pytest.mark.parametrize(("lost", "changes", "verdict", "doubt"), [
    (14_000.0, {}, ScalingVerdict.SLOWER, None),
    (14_000.0, {"part": 0.6}, ScalingVerdict.PLATEAUS, None),              # slower than one thread at first alone
    (8_000.0, {"part": 1.75}, ScalingVerdict.PLATEAUS, None),              # or later alone
    (14_000.0, {"part": 0.1}, ScalingVerdict.UNSURE, Doubt.DISAGREE),
    (1_000.0, {"more": 12_000.0}, ScalingVerdict.UNSURE, Doubt.DISAGREE),
])
def test_verdict_is_what_later_looks_leave_of_it(lost, changes, verdict, doubt):
    answer = found(type("Changing", (ChangingProcess,), changes), counted={42: lost})
    assert (answer.judgement.verdict, answer.judgement.doubt) == (verdict, doubt)
    assert len(answer.evidence.later) == 2
    named = [each.name for each in answer.objects]
    assert named == (["app.N42"] if lost > 4_000 else [])      # it was in the way all the same


def test_function_that_reaches_the_ceiling_scales_and_blames_nothing():
    answer = found(moving=(7,))
    assert (answer.judgement.verdict, answer.judgement.obstacle) == (ScalingVerdict.SCALES, Obstacle.NONE)
    assert answer.objects == ()
    assert answer.evidence.of_ceiling.ratio == pytest.approx(1.0)


@pytest.mark.parametrize(("lost", "verdict"), [(8_000.0, ScalingVerdict.PLATEAUS), (14_000.0, ScalingVerdict.SLOWER)])
def test_the_object_whose_counts_are_in_the_way_is_named_among_others_that_move(lost, verdict):
    answer = found(counted={42: lost}, moving=(7, 8, 43, 60))
    assert (answer.judgement.verdict, answer.judgement.obstacle) == (verdict, Obstacle.COUNTS)
    assert answer.judgement.doubt is None
    assert [(each.name, each.places[0].line) for each in answer.objects] == [("app.N42", 42)]
    assert answer.explained == pytest.approx(1.0)
    assert answer.without == pytest.approx(1.0)


def test_object_is_named_where_the_verdict_is_open_because_it_is_near_the_threshold():
    class Varying(PlantedProcess):
        def rate(self, mode):
            return super().rate(mode) * (1.05, 0.96, 0.99)[self.measurements // 2 % 3]

    answer = found(Varying, counted={42: 4_200.0}, moving=(7,))
    assert (answer.judgement.verdict, answer.judgement.doubt) == (ScalingVerdict.UNSURE, Doubt.NEAR)
    assert (answer.judgement.obstacle, [each.name for each in answer.objects]) == (Obstacle.COUNTS, ["app.N42"])


def test_two_objects_that_both_cost_something_are_both_named():
    answer = found(counted={42: 5_000.0, 50: 5_000.0}, moving=(7, 45))
    assert {each.name for each in answer.objects} == {"app.N42", "app.N50"}


def test_what_the_objects_do_not_explain_is_no_part_of_their_share():
    answer = found(counted={42: 8_000.0}, other_loss=4_000.0)
    assert [each.name for each in answer.objects] == ["app.N42"]
    assert answer.explained == pytest.approx(2 / 3, abs=0.01)


def test_many_objects_are_in_doubt_rather_than_one_of_them_blamed():
    answer = found(counted=dict.fromkeys(range(40, 40 + 3 * MOST_ALONE), 1_000.0))
    assert answer.judgement.obstacle is Obstacle.COUNTS
    assert len(answer.objects) != 1


def test_hundreds_of_objects_of_one_owner_that_seldom_move_are_blamed_together():
    owned = range(10, 80)
    answer = found(counted=dict.fromkeys(owned, 130.0), owned=tuple(owned), moving=(1, 90),
                   moved=dict.fromkeys(owned, 0.005))
    assert (answer.judgement.obstacle, answer.judgement.doubt) == (Obstacle.COUNTS, None)
    assert [(each.name, each.count) for each in answer.objects] == [("app.N1", 71)]


def test_search_that_a_wrong_measurement_misled_begins_anew():
    planted = {42: 5_000.0, 50: 5_000.0}
    answer = found(counted=planted, errors={(50,): 2})
    assert {each.name for each in answer.objects} == {"app.N42", "app.N50"}


def test_lock_that_was_seen_held_is_named():
    answer = found(other_loss=9_000.0, locked={3: 0.6}, moving=(7,))
    assert answer.judgement.obstacle is Obstacle.LOCK
    assert [(each.name, each.kind, each.held) for each in answer.objects] == [("app.N3", "lock", 0.6)]


@pytest.mark.parametrize(("locked", "unwaited", "named"), [
    ({3: 0.9, 4: 0.4}, (4,), ["app.N3"]),           # a dict that is used under a lock
    ({3: 0.9, 4: 0.4}, (), ["app.N3", "app.N4"]),
    ({3: 0.4, 4: 0.9}, (4,), ["app.N4", "app.N3"]),    # it is held without the other
    ({3: 0.9, 4: 0.4}, (3, 4), ["app.N3", "app.N4"]),
])
def test_lock_that_nobody_waits_for_is_not_named_beside_the_one_it_is_held_under(locked, unwaited, named):
    answer = found(other_loss=9_000.0, locked=locked, unwaited=unwaited)
    assert [each.name for each in answer.objects] == named


def test_collector_is_to_blame_if_threads_are_faster_without_it():
    answer = found(collecting=9_000.0, moving=(7,))
    assert answer.judgement.obstacle is Obstacle.COLLECTOR
    assert answer.objects == ()


def test_collector_that_is_to_blame_by_chance_is_acquitted_by_a_second_measurement():
    class Lucky(PlantedProcess):
        lucky = 3      # measurements without the collector that seem faster

        def rate(self, mode):
            if mode.collector or not self.lucky:
                return super().rate(mode)
            self.lucky -= 1
            return super().rate(mode) + 8_000.0

    answer = found(Lucky, collecting=1.0, other_loss=9_000.0)
    assert answer.judgement.obstacle is Obstacle.NOT_YOUR_OBJECTS
    assert answer.evidence.no_collector.ratio == pytest.approx(1.0, abs=0.01)


def test_loss_that_nothing_gives_back_is_not_the_programs_objects():
    answer = found(other_loss=9_000.0, moving=(7, 8))
    assert answer.judgement.obstacle is Obstacle.NOT_YOUR_OBJECTS
    assert answer.objects == ()


@pytest.mark.parametrize("planted", ["hides", "fades"])
def test_set_that_experiment_does_not_confirm_is_not_named(planted):
    answer = found(counted={42: 9_000.0}, **{planted: True})
    assert (answer.judgement.obstacle, answer.judgement.doubt) == (Obstacle.COUNTS, Doubt.SET)
    assert answer.objects == ()


def test_copy_of_the_programs_globals_is_tried_where_no_set_is_found():
    answer = found(counted={42: 9_000.0}, hides=True)
    assert (answer.judgement.doubt, answer.objects) == (Doubt.SET, ())
    trial = answer.trial
    assert (trial.gained, trial.copied) == (True, ("app.N42",))
    assert trial.of_ceiling.ratio == pytest.approx(1.0)


def test_copies_of_other_packages_are_no_repair():
    class Elsewhere(PlantedProcess):
        def names(self, numbers):
            return [replace(each, held=("library.core", "CACHE")) for each in super().names(numbers)]

    assert found(Elsewhere, counted={42: 9_000.0}, hides=True).trial is None


def test_without_undisturbed_time_the_answer_is_open_after_a_bounded_number_of_measurements():
    answer = found(counted={42: 9_000.0}, clean=LEAST_CLEAN / 100)
    assert (answer.judgement.verdict, answer.judgement.doubt) == (ScalingVerdict.UNSURE, Doubt.FEW_CLEAN)
    assert answer.objects == ()
    assert answer.measurements < 100


def test_immortality_that_changes_results_is_not_used():
    answer = found(counted={42: 9_000.0}, changes=True)
    assert answer.evidence.refused is Doubt.RESULTS
    assert answer.evidence.immortal is None
    assert answer.objects == ()


def test_function_that_fails_with_immortal_objects_has_a_verdict_without_them():
    class Counting(PlantedProcess):
        def results(self, *, immortal):
            if immortal:
                raise UnscalableFunctionError("app:f raised AssertionError")
            return ["42"]

    answer = found(Counting, counted={42: 9_000.0})
    assert (answer.judgement.verdict, answer.evidence.refused) == (ScalingVerdict.PLATEAUS, Doubt.RESULTS)


def test_collector_is_found_where_immortality_is_refused():
    answer = found(collecting=9_000.0, changes=True)
    assert (answer.judgement.verdict, answer.judgement.obstacle) == (ScalingVerdict.PLATEAUS, Obstacle.COLLECTOR)
    assert found(other_loss=9_000.0, collecting=1.0, changes=True).judgement.doubt is Doubt.RESULTS


def test_search_without_undisturbed_time_is_no_statement_about_the_objects():
    class Disturbed(PlantedProcess):
        def measure_cleanly(self, mode):
            calls = super().measure_cleanly(mode)
            return replace(calls, calls=0, spent=0) if mode.immortal else calls

    answer = found(Disturbed, counted={42: 9_000.0})
    assert (answer.judgement.obstacle, answer.judgement.doubt) == (Obstacle.COUNTS, Doubt.FEW_CLEAN)
    assert (answer.objects, answer.explained) == ((), None)


def test_set_that_gains_too_little_explains_nothing():
    class Fading(PlantedProcess):
        searching = confirming = False

        def rate(self, mode):
            self.searching = self.searching or bool(mode.immortal)
            self.confirming = self.confirming or (self.searching and mode.processes)     # measured then alone
            if mode.immortal and self.confirming:
                return super().rate(replace(mode, immortal=())) + 4_000.0      # less than 60 % of the gain
            return super().rate(mode)

    answer = found(Fading, counted={42: 9_000.0})
    assert answer.judgement.doubt is Doubt.SET
    assert answer.trial      # of globals, as no set was confirmed
    assert (answer.explained, answer.without) == (None, None)


def test_earlier_measurements_of_the_process_are_not_counted():
    process = PlantedProcess(counted={42: 9_000.0}, measurements=1_000)
    assert investigate(process, LOADED, 2, rest=lambda _: None).measurements == process.measurements - 1_000


@dataclass
class MovedProcess(PlantedProcess):
    """One whose host runs both CPUs as hyperthreads of one core for some measurements: nothing is lost there."""

    together: range = range(0)      # numbers of these measurements

    def measure_cleanly(self, mode):
        if mode.threads == 1 or self.measurements not in self.together:
            return super().measure_cleanly(mode)
        self.on_one_core += 1
        return replace(super().measure_cleanly(replace(mode, everything=True)), one_core=1)


def test_rounds_on_hyperthreads_of_one_core_are_set_aside():
    answer = found(MovedProcess, counted={42: 9_000.0}, together=range(8))      # two of the first four rounds
    assert answer.judgement.verdict is ScalingVerdict.PLATEAUS
    assert answer.evidence.of_ceiling.hi < 0.6      # all four together: 0.55 and 1.0
    assert answer.set_aside == 6
    assert [each.name for each in answer.objects] == ["app.N42"]


def test_function_that_loses_nothing_on_one_core_is_open():
    answer = found(MovedProcess, counted={42: 9_000.0}, together=range(10**6))
    assert (answer.judgement.verdict, answer.judgement.doubt) == (ScalingVerdict.UNSURE, Doubt.ONE_CORE)
    assert answer.set_aside == 0      # there are no others


def test_search_on_one_core_finds_no_set_that_was_not_looked_for_there():
    class Searching(MovedProcess):
        def measure_cleanly(self, mode):
            self.together = range(10**6) if mode.immortal else range(0)      # sets alone
            return super().measure_cleanly(mode)

    answer = found(Searching, counted={42: 9_000.0})
    assert (answer.judgement.obstacle, answer.judgement.doubt) == (Obstacle.COUNTS, Doubt.FEW_CLEAN)
    assert answer.objects == ()


def test_object_that_seems_to_be_enough_on_one_core_is_not_taken_for_the_cause():
    class Searching(MovedProcess):
        searching = confirming = False

        def measure_cleanly(self, mode):
            self.searching = self.searching or bool(mode.immortal)
            self.confirming = self.confirming or (self.searching and mode.processes)
            self.together = range(10**6) if self.searching and not self.confirming else range(0)
            return super().measure_cleanly(mode)

    answer = found(Searching, counted={42: 9_000.0}, moved={7: 0.9})      # the first suspect is innocent
    assert (answer.judgement.doubt, answer.objects) == (Doubt.FEW_CLEAN, ())


def test_trial_on_one_core_shows_no_gain():
    class Copying(MovedProcess):
        def measure_cleanly(self, mode):
            self.together = range(10**6) if mode.copies else range(0)
            return super().measure_cleanly(mode)

    answer = found(Copying, counted={42: 9_000.0})
    assert answer.trial.outcome is RepairOutcome.FEW_CLEAN


def test_cause_that_a_wide_interval_leaves_open_is_measured_longer():
    @dataclass
    class Unsteady(PlantedProcess):
        unsteady: int = 40      # measurements

        def measure_cleanly(self, mode):
            self.other_loss = 12_000.0 + 4_000.0 * mode.everything * (
                self.measurements % 3 - 1) * (self.measurements < self.unsteady)
            return super().measure_cleanly(mode)

    steady, answer = found(Unsteady, unsteady=0), found(Unsteady)
    assert steady.judgement.obstacle is answer.judgement.obstacle is Obstacle.NOT_YOUR_OBJECTS
    assert answer.measurements > steady.measurements


@pytest.mark.parametrize(("spread", "verdict"), [
    (0.35, ScalingVerdict.PLATEAUS),
    (2.0, ScalingVerdict.UNSURE),       # whatever is measured: it ends
])
def test_verdict_that_a_wide_interval_leaves_open_is_measured_longer(spread, verdict):
    class Noisy(PlantedProcess):
        def measure_cleanly(self, mode):
            found = super().measure_cleanly(mode)
            up = exp(spread * (self.measurements % 3 - 1))
            return found if mode.processes or mode.threads == 1 else replace(found, calls=round(found.calls * up))

    answer = found(Noisy, other_loss=6_000.0)
    assert answer.judgement.verdict is verdict
    assert answer.measurements > 4 * MOST_ROUNDS


def test_lock_that_is_in_the_way_by_exclusion_is_named_on_a_machine_that_is_not_quite_quiet():
    class Disturbed(PlantedProcess):
        def measure_cleanly(self, mode):
            self.queued = 0.0
            found = super().measure_cleanly(mode)
            return replace(found, queued=round(0.15 * found.lasted))

    answer = found(Disturbed, other_loss=12_000.0, locked={5: 0.028})
    assert answer.judgement.obstacle is Obstacle.LOCK
    assert [each.name for each in answer.objects] == ["app.N5"]


def test_what_is_known_is_told_at_once():
    told = []
    investigate(PlantedProcess(counted={42: 12_000.0}), LOADED, 2, clock=lambda: 0.0, rest=lambda _: None,
                say=told.append)
    assert told == [
        "gets slower, 0.40 of the ceiling so far", "looking for what is in the way",
        "reference counts are in the way; searching for the objects",
        "reference counts of app.N42; trying a copy in each thread"]


def test_lock_that_may_be_in_the_way_or_not_is_told():
    answer = found(other_loss=12_000.0, locked={5: 0.02, 6: 0.002})
    assert (answer.judgement.obstacle, answer.judgement.doubt) == (Obstacle.UNKNOWN, Doubt.SELDOM)
    assert (answer.objects, [each.name for each in answer.also]) == ((), ["app.N5"])


def test_lock_to_which_no_way_leads_is_not_blamed():
    class Inside(PlantedProcess):
        def names(self, numbers):
            return [replace(each, kind=UNNAMED, name="an object of type dict") for each in super().names(numbers)]

    answer = found(Inside, other_loss=12_000.0, locked={5: 0.06})
    assert (answer.judgement.obstacle, answer.objects, answer.also) == (Obstacle.NOT_YOUR_OBJECTS, (), ())
    assert any("one that it cannot reach was, in 6 %" in each for each in investigation_sentences(answer))
    assert found(Inside, other_loss=12_000.0, locked={5: 0.6}).judgement.obstacle is Obstacle.LOCK


def test_later_look_on_one_core_contradicts_no_loss():
    class Late(MovedProcess):
        def rest(self, seconds):
            self.together = range(10**6)

    answer = found(Late, counted={42: 9_000.0})
    assert answer.judgement.verdict is ScalingVerdict.PLATEAUS
    assert answer.evidence.later == ()


class SpreadProcess(PlantedProcess):
    """One whose host runs the CPUs far apart in some measurements, where counting costs more."""

    counts_far = 15_000.0

    def is_far(self, mode):
        return False

    def measure_cleanly(self, mode):
        far = self.is_far(mode)
        if mode.threads > 1:
            self.handoffs.append(160.0 if far else 26.0 + self.measurements % 3)
        before = self.counted
        self.counted = dict.fromkeys(before, self.counts_far) if far else before
        try:
            measured = super().measure_cleanly(mode)
        finally:
            self.counted = before
        return replace(measured, handoff=self.handoffs[-1]) if mode.threads > 1 else measured


def test_time_of_a_cache_line_is_that_of_this_investigation():
    seen = found(SpreadProcess, counted={42: 9_000.0}, handoffs=[20.0] * 100).handoff
    assert (seen.median, seen.lo, seen.hi) == (27.0, 26.0, 28.0)
    assert found(counted={42: 9_000.0}, handoffs=[33.0] * 100).handoff is None     # none of its own


def test_what_is_measured_on_far_cpus_does_not_count_and_is_told():
    class Moving(SpreadProcess):
        def is_far(self, mode):
            return self.measurements in range(12)      # three of the first four rounds

    answer = found(Moving, counted={42: 3_000.0})
    assert (answer.judgement.verdict, answer.evidence.far) == (ScalingVerdict.SCALES, False)
    assert answer.evidence.of_ceiling.ratio == pytest.approx(0.85, abs=0.01)
    assert answer.handoff.hi < 30
    assert (answer.far.count, answer.far.handoff) == (9, 160.0)      # without those of one thread
    assert answer.far.of_ceiling.ratio == pytest.approx(0.25, abs=0.01)


def test_one_stray_measurement_of_the_cause_does_not_change_which_rounds_count():
    class Stray(SpreadProcess):
        def is_far(self, mode):
            return not mode.collector and self.measurements % 2 == 0

    answer = found(Stray, other_loss=12_000.0, counted={})
    assert (answer.evidence.far, answer.judgement.obstacle) == (False, Obstacle.NOT_YOUR_OBJECTS)
    assert len(answer.evidence.later) == 2


def test_far_measurements_count_where_even_those_on_one_core_do():
    class Together(SpreadProcess):
        def is_far(self, mode):
            return self.measurements < 6

        def measure_cleanly(self, mode):
            together = mode.threads > 1 and self.measurements > 2
            return replace(super().measure_cleanly(mode), one_core=int(together))

    answer = found(Together, counted={42: 9_000.0})
    assert (answer.evidence.one_core, answer.far) == (True, None)


def test_later_look_goes_on_until_enough_of_it_is_on_near_cpus():
    class Moving(SpreadProcess):
        looks = 0

        def rest(self, seconds):
            self.looks = self.measurements

        def is_far(self, mode):
            return bool(self.looks) and self.measurements < self.looks + 6      # two of its first three rounds

    answer = found(Moving, counted={42: 9_000.0})
    assert len(answer.evidence.later) == 2
    assert all(each.of_ceiling.ratio == pytest.approx(0.55, abs=0.01) for each in answer.evidence.later)


def test_function_is_measured_anew_once_the_cpus_turn_out_to_have_been_far_apart():
    class Late(SpreadProcess):
        rested = False

        def is_far(self, mode):
            return not self.rested

        def rest(self, seconds):
            self.rested = True

    answer = found(Late, counted={42: 3_000.0})
    assert (answer.judgement.verdict, answer.evidence.far) == (ScalingVerdict.SCALES, False)
    assert answer.evidence.of_ceiling.ratio == pytest.approx(0.85, abs=0.01)
    assert (answer.objects, answer.trial) == ((), None)


def test_function_whose_threads_are_on_far_cpus_always_has_the_answer_of_these():
    class Far(SpreadProcess):
        def is_far(self, mode):
            return not mode.everything

    answer = found(Far, counted={42: 3_000.0})
    assert (answer.judgement.verdict, answer.evidence.far, answer.far) == (ScalingVerdict.SLOWER, True, None)
    assert [each.name for each in answer.objects] == ["app.N42"]


def test_objects_of_gilscope_are_no_suspects():
    class Own(PlantedProcess):
        def names(self, numbers):
            return [replace(each, ours=each.name == "app.N50") for each in super().names(numbers)]

    answer = found(Own, counted={42: 9_000.0, 50: 500.0})
    assert [each.name for each in answer.objects] == ["app.N42"]
    assert found(Own, counted={50: 9_000.0}).objects == ()


def test_repair_is_tried_for_the_object():
    answer = found(counted={7: 14_000.0}, moving=(3, 8))
    assert [each.name for each in answer.objects] == ["app.N7"]
    assert answer.trial.outcome is RepairOutcome.MEASURED
    assert answer.trial.of_ceiling.ratio == pytest.approx(1.0)


@pytest.mark.parametrize(("moved", "queued", "named"), [
    (0.006, 0.8, True),       # in 0.03 of the samples while threads had cores
    (0.006, 0.0, False), (0.03, 0.0, True)])
def test_counts_move_seldom_where_threads_seldom_run(moved, queued, named):
    answer = found(counted={7: 14_000.0}, moved={7: moved}, queued=queued)
    assert [each.name for each in answer.objects] == (["app.N7"] if named else [])
    assert answer.judgement.doubt is (None if named else Doubt.SET)


def test_search_whose_time_is_over_names_nobody():
    class Searching(SlowProcess):
        def seconds(self, mode):
            return 10.0 if mode.immortal else 0.1

    answer = found(Searching, counted=dict.fromkeys((1, 2, 3), 4_500.0))
    assert answer.judgement.doubt is Doubt.SET
    assert (answer.objects, answer.also) == ((), ())
    assert answer.trial.copied == ("app.N3", "app.N2", "app.N1")


@pytest.mark.parametrize(("seconds_per_call", "outcome"), [(1e-4, RepairOutcome.NO_TIME),
                                                           (LONG_CALL, RepairOutcome.MEASURED)])
def test_no_repair_is_tried_where_measuring_took_too_long_for_such_calls(seconds_per_call, outcome):
    class Beginning(SlowProcess):
        def seconds(self, mode):
            return TRIAL_SECONDS + 1 if mode.everything and self.now == 0.0 else 0.0

    process = Beginning(counted={7: 14_000.0})
    answer = investigate(process, replace(LOADED, seconds_per_call=seconds_per_call), 2, clock=lambda: process.now,
                         rest=lambda _: None)
    assert [each.name for each in answer.objects] == ["app.N7"]
    assert answer.trial.outcome is outcome


def test_lock_whose_waiters_are_never_undisturbed_is_named_by_disturbed_calls():
    answer = found(other_loss=12_000.0, locked={5: 0.6}, queued=0.4)
    assert (answer.judgement.verdict, answer.judgement.obstacle) == (ScalingVerdict.PLATEAUS, Obstacle.LOCK)
    assert [(each.name, each.kind, each.held) for each in answer.objects] == [("app.N5", "lock", 0.6)]
    assert answer.evidence.disturbed.ratio == pytest.approx(0.4)
    assert answer.evidence.of_ceiling is None


def test_lock_that_costs_nothing_among_disturbed_calls_is_seen_and_not_blamed():
    answer = found(other_loss=1_000.0, locked={5: 0.6}, queued=0.4)
    assert (answer.judgement.verdict, answer.judgement.doubt) == (ScalingVerdict.UNSURE, Doubt.YIELDING)
    assert (answer.objects, [each.name for each in answer.also]) == ((), ["app.N5"])


def test_lock_that_is_seldom_seen_among_neighbours_is_told_and_not_blamed():
    class Disturbed(PlantedProcess):
        def measure_cleanly(self, mode):
            self.queued = 0.0       # some calls were undisturbed all the same
            found = super().measure_cleanly(mode)
            return replace(found, queued=round(0.6 * found.lasted))

    answer = found(Disturbed, other_loss=12_000.0, locked={5: 0.03})
    assert (answer.judgement.obstacle, answer.judgement.doubt) == (Obstacle.UNKNOWN, Doubt.YIELDING)
    assert (answer.objects, [each.name for each in answer.also]) == ((), ["app.N5"])


def test_set_that_seems_to_be_enough_on_far_cpus_is_not_taken_for_the_cause():
    class Erring(SpreadProcess):
        times = 0       # that the innocent set is measured; the first five times, it seems to gain everything

        def measure_cleanly(self, mode):
            self.times += mode.immortal == (7,)
            if mode.immortal != (7,) or self.times > 5:
                return super().measure_cleanly(mode)
            return replace(super().measure_cleanly(replace(mode, immortal=(7, 42))), handoff=160.0)

    answer = found(Erring, counted={42: 9_000.0}, moved={7: 0.9})      # the first suspect is innocent
    assert [each.name for each in answer.objects] == ["app.N42"]


def test_share_of_a_set_is_of_two_pairs_on_near_cpus_at_least():
    sampled = []

    class Erring(SpreadProcess):
        times = 0       # that the true set is measured: first on far CPUs, then it seems to gain less than a half once

        def measure_cleanly(self, mode):
            self.times += mode.immortal == (42,)
            measured = super().measure_cleanly(mode)
            if mode.immortal != (42,) or self.times > 2:
                return measured
            return replace(measured, handoff=160.0) if self.times == 1 else replace(
                measured, calls=round(measured.calls * 0.75))

        def sample(self, *args, **options):
            sampled.append(args)
            return super().sample(*args, **options)

    answer = found(Erring, counted={42: 9_000.0})
    assert [each.name for each in answer.objects] == ["app.N42"]
    looked = len(sampled)
    Erring.times = 10
    found(Erring, counted={42: 9_000.0})
    assert len(sampled) == 2 * looked      # no suspect seemed to be missed, as in this run without an error


def test_confirmation_near_to_its_threshold_is_measured_longer():
    measured = []       # of the true set: twice in the search, then in the confirmation

    class Erring(SpreadProcess):
        def measure_cleanly(self, mode):
            calls = super().measure_cleanly(mode)
            if mode.immortal != (42,):
                return calls
            measured.append(calls)
            # In the first three rounds it seems to gain a half.
            return replace(calls, calls=round(calls.calls * 0.775)) if 2 < len(measured) < 6 else calls

    assert [each.name for each in found(Erring, counted={42: 9_000.0}).objects] == ["app.N42"]
    assert len(measured) == 8      # with a second search, 10


def test_search_takes_what_there_is_if_the_cpus_stay_far_apart():
    class Searching(SpreadProcess):
        def is_far(self, mode):
            return bool(mode.immortal)

    near, far = found(SpreadProcess, counted={42: 9_000.0}), found(Searching, counted={42: 9_000.0})
    assert [each.name for each in far.objects] == ["app.N42"]
    assert far.measurements > near.measurements


def test_search_and_trial_go_on_until_the_cpus_are_near():
    class Moving(SpreadProcess):
        sets = copied = 0

        def is_far(self, mode):
            self.sets += bool(mode.immortal)
            self.copied += bool(mode.copies)
            return (self.sets in {1, 2} and bool(mode.immortal)) or (self.copied in {1, 2} and bool(mode.copies))

    answer = found(Moving, counted={42: 9_000.0})
    assert [each.name for each in answer.objects] == ["app.N42"]
    assert answer.measurements > found(SpreadProcess, counted={42: 9_000.0}).measurements
    assert answer.judgement.doubt is None
    assert answer.trial.outcome is RepairOutcome.MEASURED


def test_collector_is_blamed_by_rounds_on_near_cpus():
    class Moving(SpreadProcess):
        def is_far(self, mode):
            return not mode.collector and 30 < self.measurements < 36

    assert found(Moving, collecting=9_000.0, counted={}).judgement.obstacle is Obstacle.COLLECTOR
