"""Values in turn: real processes that are alive together, one value of each after the other."""

import itertools
import os
import signal
import sys
import time
import uuid
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from gilscope.toolkit.measure.child.process_tree import running_cpu_seconds
from gilscope.toolkit.measure.measured_process import MeasuredProcess
from gilscope.toolkit.measure.preparation import child_environment
from gilscope.toolkit.measure.rounds import CellStarter, Round
from gilscope.toolkit.measure.scheduler import Scheduler
from gilscope.toolkit.measure.settings import Settings
from gilscope.toolkit.measure.turns import InterleavedPasses
from gilscope.toolkit.model import Cell, Run, SkipKind
from gilscope.toolkit.store import Store, load_run
from tests.conformance.builds import run_child
from tests.fakes import MACHINE, make_build
from tests.measure.children import LIMITS, MARK, THREADS, USERCODE, gil_on, still_alive, target

pytestmark = pytest.mark.newest   # the oldest takes turns in test_run_end_to_end

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


class Listener:
    """A reporter that calls `after` with the number of each pass that has ended."""

    def __init__(self, after=lambda done: None):
        self.after = after
        self.notes = []

    def on_round_start(self, index, rounds, arms, *, may_stop):
        pass

    def on_arm_start(self, cell):
        pass

    def on_pass_end(self, done, passes):
        self.after(done)

    def on_arms_end(self, count, seconds_left):
        pass

    def note(self, text):
        self.notes.append(text)


class Bench:
    """Arms of one workload, each a build of its own, all on one Python; their function knows whose it is."""

    def __init__(self, folder, labels=("a", "b", "c"), *, runner="serial", workers=1, function="turning:work",
                 payload=None, python=sys.executable, paths=(), kind=None, **settings):
        self.folder = folder
        self.mark = uuid.uuid4().hex
        self.cells = [self.cell(label, runner, workers) for label in labels]
        self.settings = Settings(**{"rounds": 1, "values": 3, "warmups": 0, "min_seconds": 0.0, "timeout": 120.0,
                                    "retakes": 0, "seed": 7} | settings)
        environment = {**child_environment([USERCODE, *paths]), MARK: self.mark}
        work = folder / "arms"
        work.mkdir(exist_ok=True, parents=True)
        self.arms = CellStarter(
            pythons=dict.fromkeys(labels, python), environments={each: {**environment, "ARM": each} for each in labels},
            free_threaded=frozenset(), size="small", units={}, services=(), folder=work,
            user=target(function, payload=repr(str(folder)) if payload is None else payload, tasks=workers, kind=kind))

    @staticmethod
    def cell(label, runner="serial", workers=1, **changes):
        return Cell(workload="user", runner=runner, workers=workers, build=label, **changes)

    def ask(self, arm, call, what):
        """Have `arm` do that in its call; 0 is the checked pass, 1 the first value."""
        (self.folder / f"{arm}.{call}").write_text(what)

    def log(self):
        """Return (arm, process id, call) in the order in which they began."""
        rows = (line.split() for line in (self.folder / "log").read_text().splitlines())
        return [(arm, int(pid), int(call)) for arm, pid, call, _ in rows]

    def parents(self):
        """Return the process ids of those whose workers began calls."""
        return {int(line.split()[3]) for line in (self.folder / "log").read_text().splitlines()}

    def pid(self, arm):
        return next(pid for each, pid, _ in self.log() if each == arm)

    def around(self, after=lambda done: None, index=0, left=lambda: None):
        return Round(
            index=index, settings=self.settings, baseline="serial", keep_loops=lambda cell, loops: None,
            start=lambda cell: self.arms.start(cell, self.settings, 1), reporter=Listener(after), seconds_left=left)

    def take(self, after=lambda done: None, method=None, **changes):
        """Measure all in turn and return the answers and what the scheduler adds to them, by build; nobody is left."""
        try:
            taken = (method or InterleavedPasses()).measure(self.cells, self.around(after, **changes))
        finally:
            assert not still_alive(self.mark)
        return {each.cell.build: (each.answer, each.details) for each in taken}

    def scheduler(self, *, reporter=None, method=None, clock=time.monotonic):
        """Return a scheduler of a new run, or of the one that was begun."""
        if (self.folder / "results").exists():
            store, run = Store.reopen(self.folder / "results" / "label")
        else:
            store = Store.create("label", self.folder / "results")
            builds = tuple(make_build(cell.build, version="3.14.0") for cell in self.cells)
            run = Run(label="label", started="2026-11-22T12:00:00+00:00", builds=builds, machine=MACHINE, seed=7,
                      rounds_planned=self.settings.rounds, rounds_done=0, stopped="running", baseline="serial",
                      measurements=(), cells=tuple(self.cells))
            store.save(run)
        method = method or InterleavedPasses()
        return store, Scheduler(run, store, self.arms, self.settings, reporter or Listener(), method, clock=clock)

    def go(self, **options):
        store, scheduler = self.scheduler(**options)
        try:
            return scheduler.go()
        finally:
            store.close()
            assert not still_alive(self.mark)


def turns(bench):
    """Return the arms in the order of their values: the checked passes left out."""
    return [arm for arm, _pid, call in bench.log() if call]


def in_passes(order, arms):
    return [order[start:start + arms] for start in range(0, len(order), arms)]


def test_every_pass_has_every_arm_once_in_an_order_that_the_seed_gives(tmp_path):
    orders = {}
    for place, seed in (("first", 7), ("again", 7), ("other", 8)):
        (tmp_path / place).mkdir()
        bench = Bench(tmp_path / place, "abcd", values=4, seed=seed)
        answers = bench.take()
        assert [answer.kind for answer, _ in answers.values()] == ["measured"] * 4
        assert {details["passes"] == [0, 1, 2, 3] for _, details in answers.values()} == {True}
        orders[place] = in_passes(turns(bench), 4)
    assert [sorted(each) for each in orders["first"]] == [list("abcd")] * 4
    assert orders["first"] == orders["again"] != orders["other"]
    assert len({tuple(each) for each in orders["first"]}) > 1


def test_all_are_ready_before_the_first_value(tmp_path):
    bench = Bench(tmp_path, "abc")
    bench.take()
    assert [call for _, _, call in bench.log()[:3]] == [0, 0, 0]
    assert {call for _, _, call in bench.log()[3:]} == {1, 2, 3}


def test_values_of_a_pass_lie_between_those_of_its_neighbours(tmp_path):
    answers = Bench(tmp_path, "abc", values=3).take()
    passes = list(zip(*(answer.fields["began"] for answer, _ in answers.values()), strict=True))
    assert all(max(early) < min(late) for early, late in itertools.pairwise(passes))


@pytest.mark.slow
def test_order_of_another_round_is_another(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for place, index in ((first, 0), (second, 1)):
        place.mkdir()
        Bench(place, "abcdef", values=2).take(index=index)
    assert (first / "log").read_text().split()[::3] != (second / "log").read_text().split()[::3]


def test_processes_end_side_by_side(tmp_path):
    heard = []

    class LoggingProcess(MeasuredProcess):
        def send(self, **fields):
            heard.append(fields["order"])
            super().send(**fields)

        def answer(self):
            heard.append("gone")
            return super().answer()

    Bench(tmp_path, "abc", values=1).take(method=InterleavedPasses(LoggingProcess))
    assert heard == ["take"] * 3 + ["end"] * 3 + ["gone"] * 3


def test_process_tells_how_long_each_stage_before_its_first_turn_took(tmp_path):
    reached = []

    class Heard(MeasuredProcess):
        def receive(self):
            said = super().receive()
            reached.append(said.get("reached"))
            return said

    began = time.monotonic()
    Bench(tmp_path, "a", values=1).take(method=InterleavedPasses(Heard))
    assert list(reached[0]) == ["started", "loaded", "opened", "checked", "ready"]
    moments = [began, *reached[0].values(), time.monotonic()]
    assert moments == sorted(moments)


FAILURES = [("crash", "crash"), ("complain", "exception")]


@pytest.mark.parametrize(("what", "kind"), FAILURES)
@pytest.mark.parametrize("call", [0, 1, 3])
def test_arm_that_fails_loses_its_own_cell_alone(what, kind, call, tmp_path):
    bench = Bench(tmp_path, "abc", values=4)
    bench.ask("b", call, what)
    answers = bench.take()
    assert {arm: answer.kind for arm, (answer, _) in answers.items()} == {"a": "measured", "b": kind, "c": "measured"}
    assert all(len(answers[arm][0].fields["cpu"]) == 4 for arm in "ac")
    assert Counter(turns(bench)) == {"a": 4, "c": 4} | ({"b": call} if call else {})


def outcome_of_a_hang(folder, place, prepare):
    """Return the answers' kinds, and whether b hangs in `place`, with a limit that is long enough for the others."""
    for limit in LIMITS:
        bench = Bench(folder / f"{limit:g}", "abc", timeout=limit)
        prepare(bench)
        answers = {arm: answer for arm, (answer, _) in bench.take().items()}
        outcome = [answers[arm].kind for arm in "abc"], f"in {place}" in answers["b"].output
        if outcome == LOST_ALONE:
            break
    return outcome


LOST_ALONE = ["measured", "hang", "measured"], True


def test_arm_that_hangs_in_its_turn_loses_its_own_cell_alone(tmp_path):
    assert outcome_of_a_hang(tmp_path, "hang_here", lambda bench: bench.ask("b", 2, "hang_here")) == LOST_ALONE


@pytest.mark.slow
def test_arm_that_hangs_at_its_end_loses_its_own_cell_alone(tmp_path):
    def prepare(bench):
        bench.arms = replace(bench.arms, user=replace(bench.arms.user, check="turning:hang_in_the_last_check"))

    assert outcome_of_a_hang(tmp_path, "hang_in_the_last_check", prepare) == LOST_ALONE


@pytest.mark.parametrize("runner", [("serial", 1), ("processes-fork", 2)])
def test_arm_that_is_killed_while_it_waits_loses_its_own_cell_alone(runner, tmp_path):
    bench = Bench(tmp_path, "abc", values=4, runner=runner[0], workers=runner[1])
    children = {}

    def begin(python, spec, environment, **options):
        child = children[environment["ARM"]] = MeasuredProcess(python, spec, environment, **options)
        return child

    def kill(done):
        if done == 2:
            os.kill(children["b"].pid, signal.SIGKILL)

    answers = bench.take(kill, InterleavedPasses(begin))
    assert {arm: answer.kind for arm, (answer, _) in answers.items()} == {
        "a": "measured", "b": "killed", "c": "measured"}
    assert answers["b"][0].reason.startswith("killed by SIGKILL")


def test_nothing_is_late_while_others_have_their_turn(tmp_path):
    for limit in LIMITS:
        bench = Bench(tmp_path / f"{limit:g}", "ab", values=2, timeout=limit)
        answers = bench.take(lambda done, late=limit + 2.0: time.sleep(late) if done == 1 else None)
        if [answer.kind for answer, _ in answers.values()] == ["measured"] * 2:
            break
    assert [answer.kind for answer, _ in answers.values()] == ["measured"] * 2
    assert not any("Timeout" in answer.output for answer, _ in answers.values())   # faulthandler's word


def in_own_process(function, *arguments):
    """Call a function of this module where nothing else has descriptors."""
    words = ", ".join(map(repr, map(str, arguments)))
    done = run_child(sys.executable, "-c", f"from tests.measure import test_turns; test_turns.{function}({words})")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_with_many_arms_alive_leaves_nothing(stop, tmp_path):
    in_own_process("interrupt", tmp_path, int(stop))


def interrupt(folder, stop):
    bench = Bench(Path(folder), [f"arm{number}" for number in range(6)], values=3)
    seen = []

    def stop_it(done):
        seen.append(sum(pid_lives(pid) for pid in {pid for _, pid, _ in bench.log()}))
        os.kill(os.getpid(), int(stop))

    def terminate(_number, _frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, terminate)   # as the command has it
    files = open_files()
    with pytest.raises(KeyboardInterrupt):
        bench.take(stop_it)
    assert seen == [6]
    assert open_files() == files


def pid_lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def open_files():
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def test_no_descriptor_is_left_of_arms_that_end_or_fail(tmp_path):
    in_own_process("take_with_a_crash", tmp_path)


def take_with_a_crash(folder):
    files = open_files()
    bench = Bench(Path(folder), "abc")
    bench.ask("b", 1, "crash")
    bench.take()
    assert open_files() == files


STARVED = """
import dataclasses, os
from gilscope.toolkit.measure.child import other_load as noise
usual, seen = noise.LoadWindow.span, []

def span(self):
    seen.append(self)
    starved = len(seen) <= int(os.environ["STARVED"])
    return dataclasses.replace(usual(self), elapsed=1.0, own=0.2 if starved else 2.0, ours=0.0, busy=2.0, total=2.0)

noise.LoadWindow.span = span
"""


def starving(tmp_path, monkeypatch, times, **settings):
    """Return a bench of one arm whose first values get none of their cores."""
    (tmp_path / "sitecustomize.py").write_text(STARVED)
    monkeypatch.setenv("STARVED", str(times))
    return Bench(tmp_path, "a", runner="processes-fork", workers=2, kind="cpu", paths=[tmp_path], values=3,
                 **{"retakes": 2} | settings)


def test_starved_value_is_taken_again_in_the_same_process(tmp_path, monkeypatch):
    bench = starving(tmp_path, monkeypatch, 1)
    ((answer, details),) = bench.take().values()
    assert (answer.kind, answer.fields["again"], details["passes"]) == ("measured", 1, [0, 1, 2])
    assert not answer.fields["starved"]
    assert len(answer.fields["cpu"]) == len(answer.fields["began"]) == 3
    assert answer.fields["began"] == sorted(answer.fields["began"])


def test_machine_that_stays_busy_costs_each_pass_no_more_than_once_more(tmp_path, monkeypatch):
    ((answer, _),) = starving(tmp_path, monkeypatch, 100, retakes=5).take().values()
    assert (answer.kind, answer.fields["again"], answer.fields["starved"]) == ("measured", 1, True)


def test_arm_that_stays_starved_is_taken_again_by_a_process_of_its_own(tmp_path, monkeypatch):
    bench = starving(tmp_path, monkeypatch, 100, retakes=1)
    done = bench.go()
    assert len(bench.parents()) == 2   # the process that took turns, and another: which of its workers calls is chance
    ((observation,),) = (each.observations for each in done.measurements)
    assert observation.starved


def test_run_goes_on_and_keeps_pass_and_time_of_each_value(tmp_path):
    bench = Bench(tmp_path, "abc", rounds=3, values=2)
    store, scheduler = bench.scheduler(reporter=Listener(lambda done: interrupt_in_round_1(bench)))
    with pytest.raises(KeyboardInterrupt):
        scheduler.go()
    store.close()
    kept = load_run(tmp_path / "results" / "label")
    assert (kept.rounds_done, kept.stopped) == (1, "interrupted")
    done = bench.go()
    assert (done.rounds_done, done.stopped) == (3, "rounds")
    whole = load_run(tmp_path / "results" / "label")
    assert whole.measurements == done.measurements
    for measurement in whole.measurements:
        assert [each.round for each in measurement.observations] == [0, 1, 2]
        assert [each.passes for each in measurement.observations] == [(0, 1)] * 3
        assert all(len(each.began) == len(each.wall) == len(each.cpu) == 2 for each in measurement.observations)
        assert all(each.seconds > sum(each.wall) for each in measurement.observations)
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    other = Bench(undisturbed, "abc", rounds=3, values=2)
    other.go()
    assert turns(bench)[-12:] == turns(other)[-12:]   # the last two rounds, as they would have been


def interrupt_in_round_1(bench):
    if len({pid for _, pid, _ in bench.log()}) > 3:
        raise KeyboardInterrupt


def test_budget_that_ends_while_arms_start_measures_those_that_have_started(tmp_path):
    bench = Bench(tmp_path, "ab", budget=10.0)
    bench.cells += [Bench.cell(label, runner, 1) for runner in (THREADS, "asyncio") for label in "ab"]
    moment = itertools.chain([0.0] * 2, itertools.repeat(11.0))   # it is over before the first arm has started
    done = bench.go(clock=lambda: next(moment))
    assert (done.stopped, done.rounds_done) == ("budget", 1)
    measured = {each.cell for each in done.measurements}
    assert measured == {Bench.cell("a"), Bench.cell("b")}   # the baselines
    assert {skip.cell for skip in done.skips} == set(bench.cells) - measured
    assert {skip.kind for skip in done.skips} == {SkipKind.OUT_OF_BUDGET}


def test_baselines_take_no_values_for_batches_that_the_budget_has_no_time_for(tmp_path):
    bench = Bench(tmp_path, "ab", function="turning:nap", payload="0.1")
    bench.cells += [Bench.cell(label, runner, 1) for runner in (THREADS, "asyncio") for label in "ab"]
    # A value of each baseline takes 0.2 s, and two more arms would take 0.4 s.
    taken = InterleavedPasses().measure(bench.cells, bench.around(left=lambda: 0.3))
    assert {each.cell: each.details["passes"] for each in taken} == {Bench.cell("a"): [0], Bench.cell("b"): [0]}


def test_values_are_as_many_as_the_budget_has_time_for(tmp_path):
    bench = Bench(tmp_path, "ab", function="turning:nap", payload="0.1", values=50)
    answers = bench.take(left=lambda: 1.0)   # 0.2 s a pass: at most 5
    counts = {len(answer.fields["cpu"]) for answer, _ in answers.values()}
    assert len(counts) == 1
    assert 1 <= counts.pop() <= 5


@pytest.mark.slow
def test_long_values_are_fewer(tmp_path):
    bench = Bench(tmp_path, "a", function="turning:nap", payload="1.6", values=50)
    ((answer, _),) = bench.take().values()
    assert len(answer.fields["cpu"]) == 2


def test_without_room_for_all_the_baseline_takes_part_in_every_batch(tmp_path):
    bench = Bench(tmp_path, "ab", values=2)
    bench.cells += [Bench.cell(label, runner, 1) for runner in (THREADS, "asyncio") for label in "ab"]
    taken = InterleavedPasses(room=lambda: 0).measure(bench.cells, bench.around())
    assert not still_alive(bench.mark)
    passes = {(each.cell.runner, each.cell.build): each.details["passes"] for each in taken}
    assert passes["serial", "a"] == passes["serial", "b"] == [0, 1, 2, 3]
    for runner in (THREADS, "asyncio"):   # the builds of one model are always together
        assert passes[runner, "a"] == passes[runner, "b"]
    assert sorted([passes[THREADS, "a"], passes["asyncio", "a"]]) == [[0, 1], [2, 3]]


# They wait in unlike ways; a build has all but two of them at least.
MODELS = [("serial", 1), ("threads", 2), ("free-threaded", 2), ("asyncio", 1), ("subinterpreters", 2),
          ("interpreter-pool", 2), ("processes-spawn", 2), ("processes-forkserver", 2)]


@LINUX
@pytest.mark.quiet
@pytest.mark.builds("gil", "free")
def test_waiting_arms_use_no_cpu(build, python, tmp_path):
    bench = Bench(tmp_path, [build.label], function="turning:burn", payload="0.1", values=3, python=python)
    bench.arms = replace(bench.arms, free_threaded=frozenset({build.label} if build.free_threaded else ()))
    bench.cells = [Bench.cell(build.label, runner, workers) for runner, workers in MODELS]
    watched = []

    class Watched(MeasuredProcess):
        """Knows the CPU time that its processes use between two turns."""

        def receive(self):
            said = super().receive()
            self.pids = said.get("pids") or self.pids if said else ()
            self.spent = running_cpu_seconds(self.pids)
            return said

        def send(self, **fields):
            if fields["order"] != "end" or fields["ours"]:
                watched.append((self.spec.name, running_cpu_seconds(self.pids) - self.spent))
            super().send(**fields)

    taken = InterleavedPasses(Watched).measure(bench.cells, bench.around())
    assert not still_alive(bench.mark)
    kinds = Counter(each.answer.kind for each in taken)
    assert kinds["measured"] >= len(MODELS) - 2
    assert kinds["measured"] + kinds["unavailable"] == len(MODELS)
    spent = defaultdict(list)
    for name, seconds in watched:
        spent[name].append(seconds)
    assert {len(each) for each in spent.values()} == {3}
    assert len(spent) == kinds["measured"]
    # Meanwhile the others burn half a second and more; to go to sleep takes under a millisecond.  Who waits busily does
    # so before every turn.  Before one, multiprocessing's resource tracker may still be starting: nobody waits for it.
    assert {name: each for name, each in spent.items() if median(each) > 0.02} == {}


@LINUX
@pytest.mark.parametrize("runner", [("serial", 1), ("processes-forkserver", 2)])
def test_memory_of_an_arm_is_the_same_whoever_waits(runner, tmp_path):
    mapped = 32 * 2**20
    (tmp_path / "file").write_bytes(b"x" * mapped)
    found = []
    for waiting in (0, 4):
        place = tmp_path / str(waiting)
        place.mkdir()
        labels = ["a", *(f"b{number}" for number in range(waiting))]
        bench = Bench(place, labels, values=1, runner=runner[0], workers=runner[1], function="turning:map_file",
                      payload=repr(str(tmp_path / "file")))
        bench.cells = bench.cells[:1] + [Bench.cell(label) for label in labels[1:]]
        found.append(bench.take()["a"][0].fields["metrics"]["pss_bytes"])
    assert found[0] > mapped
    # Who shared the file's pages with those that wait would have a fifth of them.
    assert found[1] == pytest.approx(found[0], abs=mapped / 4)


def test_startup_cells_take_turns_too(tmp_path):
    bench = Bench(tmp_path, "ab", runner=THREADS if gil_on() else "free-threaded", workers=2)
    bench.cells = [replace(cell, phase="startup") for cell in bench.cells]
    answers = bench.take()
    assert [answer.kind for answer, _ in answers.values()] == ["measured"] * 2
    assert {tuple(details["passes"]) for _, details in answers.values()} == {(0, 1, 2)}
