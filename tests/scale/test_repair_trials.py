"""A repair is tried with copies in each thread, and whoever cannot try it says why."""

from dataclasses import replace
from math import inf

import pytest

from gilscope.toolkit.scale.judgement import Span
from gilscope.toolkit.scale.repair_trials import RepairOutcome, RepairTrial, try_copies
from gilscope.toolkit.scale.throughput import CleanCalls
from gilscope.toolkit.scale.zygote_process import (
    CopyTest,
    ProgramObject,
    SampledObject,
    UnscalableFunctionError,
    ZygoteProcess,
)

OBJECT = ProgramObject(name="app.TABLE", owner="app.TABLE", kind="global", type="dict", held=("app", "TABLE"))
VALUE = replace(OBJECT, name="the value of app.TABLE[3]", kind="item", type="float")
HELD = replace(OBJECT, name="cell x of make()", owner="cell x of make()", kind="cell", held=None)
ARGUMENT = replace(OBJECT, name="argument conf", owner="argument conf", kind="argument", held=None, argument=True)
MS = 1_000_000
MEASURED = {RepairOutcome.MEASURED, RepairOutcome.FEW_CLEAN}     # as busy as the machine is


class FakeZygote:
    """A process that is measured at rates which are made up: the ceiling, the control, and the copies."""

    def __init__(self, *, copied=1.9, clean=20, why=None, results=("1",), moved=0.0, fails=False,
                 used=()):
        self.rates = {None: 2.0, True: 0.6, False: copied}      # by whether it is the control
        self.clean, self.why, self.results, self.moved, self.fails, self.used = (
            clean, why, results, moved, fails, used)
        self.asked = []
        self.measured = 0
        self.near = inf

    def test_copies(self, copies, watched=()):
        if copies.control:
            return CopyTest(why=None, results=["1"], originals=[7], used=[7])
        self.asked.append(copies)
        return CopyTest(why=self.why, results=list(self.results), originals=[7], used=list(self.used))

    def sample(self, threads, watched, period, copies):
        self.watched = watched
        return [SampledObject(number=number, moved=self.moved, locked=0.0, waited=0.0) for number in watched]

    def measure_cleanly(self, mode):
        if self.fails:
            raise UnscalableFunctionError("f raised LookupError")
        self.measured += 1
        spent = self.clean * MS + bool(self.clean) * (self.measured % 5)   # what never varies has no known noise
        rate = self.rates[mode.copies and mode.copies.control]
        return CleanCalls(threads=2, calls=int(rate * 500 * self.clean), spent=2 * spent)


def tried(process, *names):
    return try_copies(process, 2, list(enumerate(names)))


def test_copy_that_reaches_the_ceiling_is_told_beside_the_control():
    trial = tried(FakeZygote(), OBJECT)
    assert trial.outcome is RepairOutcome.MEASURED
    assert trial.of_ceiling.ratio == pytest.approx(0.95)
    assert trial.without == pytest.approx(0.3)


@pytest.mark.parametrize(("reached", "gained"), [
    (Span(ratio=0.9, lo=0.8, hi=1.0), True), (Span(ratio=0.7, lo=0.45, hi=1.1), False),
    (Span(ratio=0.55, lo=0.52, hi=0.6), False), (None, False)])
def test_copies_gain_if_their_interval_is_above_what_it_is_without(reached, gained):
    trial = RepairTrial(outcome=RepairOutcome.MEASURED, of_ceiling=reached, without=0.5)
    assert trial.gained is gained


def test_value_that_a_copy_keeps_is_not_tried():
    process = FakeZygote()
    assert tried(process, VALUE) is None
    assert not process.asked
    assert tried(process, OBJECT, VALUE).outcome is RepairOutcome.MEASURED      # what holds it is copied


def test_lock_is_not_copied_without_what_it_protects():
    lock = replace(OBJECT, name="app.LOCK", type="_thread.lock", held=("app", "LOCK"))
    process = FakeZygote()
    assert tried(process, lock).outcome is RepairOutcome.LOCK_ALONE
    assert not process.asked
    part = replace(OBJECT, name="app.TABLE.lock", type="_thread.lock")
    assert tried(process, part).outcome is RepairOutcome.MEASURED


def test_wide_interval_is_measured_again():
    class Unsteady(FakeZygote):
        def measure_cleanly(self, mode):
            self.rates[False] = 1.9 if self.measured >= 9 else 1.0 + (self.measured + 1) / 5
            return super().measure_cleanly(mode)

    unsteady, steady = Unsteady(), FakeZygote()
    for process in (unsteady, steady):
        tried(process, OBJECT)
    assert (steady.measured, unsteady.measured) == (9, 18)


def test_trial_with_little_clean_time_is_measured_again():
    process = FakeZygote(clean=4)      # three rounds are enough for a ratio, not for a statement
    trial = tried(process, OBJECT)
    assert (trial.outcome, process.measured) == (RepairOutcome.MEASURED, 18)


def test_what_holds_the_objects_is_copied_once():
    process = FakeZygote()
    tried(process, OBJECT, VALUE, ARGUMENT)
    (copies,) = process.asked
    assert (copies.held, copies.arguments) == ((("app", "TABLE"),), True)
    assert process.watched == [0, 2, 7]      # not the number, which a deep copy keeps


@pytest.mark.parametrize(("changes", "names", "outcome", "detail"), [
    ({}, [OBJECT, HELD], RepairOutcome.ELSEWHERE, ""),
    ({"why": "TypeError: cannot pickle"}, [OBJECT], RepairOutcome.UNCOPIED, "TypeError: cannot pickle"),
    ({"fails": True}, [OBJECT], RepairOutcome.UNCOPIED, "f raised LookupError"),
    ({"results": ("2",)}, [OBJECT], RepairOutcome.RESULTS, ""),
    ({"used": (7,)}, [OBJECT], RepairOutcome.STILL_USED, ""),
    ({"moved": 0.4}, [OBJECT], RepairOutcome.STILL_USED, ""),
    ({"clean": 1}, [OBJECT], RepairOutcome.FEW_CLEAN, ""),
])
def test_repair_that_could_not_be_tried_says_why(changes, names, outcome, detail):
    trial = tried(FakeZygote(**changes), *names)
    assert (trial.outcome, trial.detail, trial.of_ceiling) == (outcome, detail, None)


PROGRAM = """
import queue
import threading

class Config:
    def __init__(self):
        self.rate = 2.5

    def read(self):
        return CONFIG.rate

CONFIG = Config()
TABLE = {"a": 1.5}
LOCK = threading.Lock()

def through_a_method():
    return CONFIG.read()

def f():
    return TABLE["a"]

JOBS = queue.Queue()

def with_its_lock():
    JOBS.put(1)
    return JOBS.get()

def guarded():
    with LOCK:
        return 1
"""


@pytest.mark.builds("free")
@pytest.mark.parametrize(("function", "name", "outcomes"), [
    ("through_a_method", "CONFIG", {RepairOutcome.STILL_USED}),
    ("guarded", "LOCK", {RepairOutcome.LOCK_ALONE}),
    pytest.param("f", "TABLE", MEASURED, marks=pytest.mark.slow),
    pytest.param("with_its_lock", "JOBS", MEASURED, marks=pytest.mark.slow),
])
def test_program_is_tried_on_a_free_threaded_build(python, function, name, outcomes, tmp_path):
    (tmp_path / "app.py").write_text(PROGRAM)
    with ZygoteProcess(python, [tmp_path]) as process:
        loaded = process.load(f"app:{function}", None, None, 2)
        names = process.names(range(loaded.objects))
        (number,) = (number for number, each in enumerate(names) if each.name == f"app.{name}")
        assert names[number].held == ("app", name)
        assert try_copies(process, 2, [(number, names[number])]).outcome in outcomes
        (places,) = process.places([number])
        assert {place.function for place in places} == ({"through_a_method", "Config.read"} if name == "CONFIG"
                                                        else {function})


@pytest.mark.builds("free")
def test_function_that_fails_while_its_lines_are_watched_has_none(python, tmp_path):
    (tmp_path / "app.py").write_text("import sys\nVALUE = object()\n\ndef f():\n"
                                     "    assert not any(map(sys.monitoring.get_tool, range(6)))\n"
                                     "    return VALUE\n")
    with ZygoteProcess(python, [tmp_path]) as process:
        loaded = process.load("app:f", None, None, 2)
        names = process.names(range(loaded.objects))
        (number,) = (number for number, each in enumerate(names) if each.name == "app.VALUE")
        assert process.places([number]) == [()]
