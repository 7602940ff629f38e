"""`signals`: Ctrl-C arrives in real processes, what does not arrive is said, and nothing is left behind."""

import mmap
import os
import signal
import subprocess
import sys
import uuid
from types import SimpleNamespace

import pytest

from gilscope.toolkit.experiments.base import EffortLevel
from gilscope.toolkit.experiments.report import figures_of
from gilscope.toolkit.experiments.results import Results
from gilscope.toolkit.experiments.signals import interrupted_process, program
from gilscope.toolkit.experiments.signals.experiment import SignalsExperiment, chance_of_shares, why_late
from gilscope.toolkit.measure.child.base import NoValueError
from gilscope.toolkit.model import Cell
from gilscope.toolkit.report.document import Document
from gilscope.toolkit.report.terminal import render
from tests.conformance.builds import ROOT
from tests.experiments.trials import make_trial
from tests.fakes import RunMaker
from tests.measure.children import MARK, still_alive
from tests.patience import PATIENCE, wait_until

SCALES = {"attempts": 2, "limit": 60, "call": 0.05}   # a signal that Python misses takes the whole limit
WAITS_TO_INTERRUPT = """
import sys
from tests.experiments.trials import make_trial
from gilscope.toolkit.experiments.signals import program as signals
signals._delays = lambda trial: [3600.0]
signals.measure(make_trial(sys.argv[1], scales={"attempts": 1, "limit": 9, "call": 1}, main=sys.argv[2], cpu="1"))
"""
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends it on Linux alone")


def trial(folder, main, cpu=0, **scales):
    return make_trial(folder, scales={**SCALES, **scales}, main=main, cpu=str(cpu))


def test_ctrl_c_arrives_in_every_cell(run_smoke):
    smoke = run_smoke("signals")
    assert not smoke.results.run.failures
    handled = 0
    for cell in smoke.results.cells():
        for observation in (o for each in smoke.results.run.measurements if each.cell == cell
                            for o in each.observations):
            metrics = dict(observation.metrics)
            assert 1 <= metrics["signals"] <= 2, cell
            assert 0 < metrics["best"] <= observation.wall_value <= metrics["worst"] <= metrics["limit"], cell
            assert (metrics["late"] > 0) is (metrics["worst"] == metrics["limit"]), cell
            handled += metrics["late"] == 0    # one that comes just as a wait begins is missed by Python
    assert handled


@pytest.mark.builds("gil", "free")
@pytest.mark.parametrize("cpu", [0, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("main", sorted(program.BLOCKED - program.BESIDE))
def test_ctrl_c_ends_each_kind_of_waiting_again_and_again(tmp_path, monkeypatch, python, main, cpu):
    monkeypatch.setattr(sys, "executable", python)   # that of the process that is interrupted
    for _ in range(3):    # one that comes just as a wait begins is missed by Python: what `lock-at-once` is about
        taken = program.measure(trial(tmp_path, main, cpu))
        if not taken.metrics["late"]:
            break
    assert (taken.metrics["late"], taken.metrics["signals"]) == (0, 2)


@pytest.mark.builds("gil", "free")
@pytest.mark.parametrize("main", ["calls", "same-list", "computing", *(
    pytest.param(main, marks=pytest.mark.slow)
    for main in sorted({*program.CALLS, "looking-call"} - {"calls", "same-list"}))])
def test_ctrl_c_arrives_after_the_c_call_at_the_latest(tmp_path, monkeypatch, python, main):
    monkeypatch.setattr(sys, "executable", python)
    assert program.measure(trial(tmp_path, main)).metrics["late"] == 0


def test_signal_that_is_not_handled_counts_as_the_limit_and_ends_the_trial(tmp_path, monkeypatch):
    monkeypatch.setattr(program, "_delays", lambda _trial: [0.0] * 3)
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    taken = program.measure(trial(tmp_path, "calls", attempts=3, limit=0.05, call=60))
    assert taken.seconds == 0.05
    assert (taken.metrics["late"], taken.metrics["signals"]) == (1, 1)
    assert not still_alive(mark)


def test_second_signal_is_sent_for_one_that_was_missed(tmp_path):
    class Deaf:
        """Misses the first signal of each attempt."""

        def __init__(self):
            self.sent = []

        def await_begin(self, attempt):
            self.sent.append([attempt, 0])

        def interrupt(self, attempt, limit):
            assert self.sent[-1][0] == attempt
            self.sent[-1][1] += 1
            return limit if self.sent[-1][1] == 1 else 0.001

    deaf = Deaf()
    assert list(program._interrupt(trial(tmp_path, program.AT_ONCE), deaf, 0.5)) == [0.5, 0.5]
    assert deaf.sent == [[1, 2], [2, 2]]


def test_target_that_ends_by_itself_is_said(tmp_path):
    with pytest.raises(NoValueError, match=r"ended by itself \(1\)"):
        program.measure(trial(tmp_path, "no such thing"))


def test_moments_lie_all_over_the_call_and_are_the_same_for_every_build(tmp_path):
    first, again = (program._delays(trial(tmp_path, "calls", attempts=10, call=1.0)) for _ in range(2))
    assert first == again
    assert [int(10 * each) for each in sorted(first)] == list(range(10))
    assert first != program._delays(trial(tmp_path, "beside-calls", attempts=10, call=1.0))


@LINUX
@pytest.mark.parametrize("main", ["lock", "looking-call"])   # the latter never gives the GIL away
def test_target_ends_with_whoever_started_it(tmp_path, main):
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS_TO_INTERRUPT, str(tmp_path), main],
        env={**os.environ, "PYTHONPATH": str(ROOT), MARK: mark})
    assert wait_until(lambda: begun(tmp_path / "page"), process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not still_alive(mark)


def begun(page):
    """Return True if the target's main thread says that it begins."""
    if not page.exists() or not page.stat().st_size:
        return False
    with page.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as numbers:
        return int.from_bytes(numbers[:8], sys.byteorder) == 1


@LINUX
def test_target_whose_starter_is_gone_already_ends(tmp_path):
    (tmp_path / "page").write_bytes(bytes(16))
    done = subprocess.run(
        [sys.executable, interrupted_process.__file__, str(tmp_path / "page"), "lock", "0", "1", "1"], input="",
        text=True, timeout=PATIENCE, capture_output=True, check=False)
    assert done.returncode in {1, -signal.SIGKILL}
    assert (tmp_path / "page").read_bytes() == bytes(16)


def made_up(**cells):
    """Return a quick run of 3.14 and 3.14t: name_cpu -> (median on 3.14, median on 3.14t, late of 4)."""
    maker = RunMaker(rounds=3)
    for name, (with_gil, without, late) in cells.items():
        main, _, cpu = name.rpartition("_")
        for build, model, seconds in (("3.14", "threads", with_gil), ("3.14t", "free-threaded", without)):
            if seconds is not None:
                cell = Cell(workload="signals", runner=model, workers=int(cpu) + 1, build=build,
                            parameters=(("main", main.replace("_", "-")), ("cpu", cpu)))
                maker.measure(cell, seconds, best=seconds / 2, worst=2.0 if late else seconds * 2, signals=4,
                              late=late, limit=2.0, call=0.1)
    return Results(maker.run(("3.14", "3.14t"), options={"experiment": "signals", "effort": EffortLevel.QUICK}))


def signals_late(with_gil, without):
    """Return three rounds whose main thread began to wait for a lock: so many of 4 signals were late in each."""
    maker = RunMaker(rounds=3)
    for build, model, late in (("3.14", "threads", with_gil), ("3.14t", "free-threaded", without)):
        cell = Cell(workload="signals", runner=model, workers=3, build=build,
                    parameters=(("main", "lock-at-once"), ("cpu", "2")))
        maker.measure(cell, 1e-3, best=1e-3, worst=2.0, signals=4, late=late, limit=2.0)
    return " ".join(SignalsExperiment().findings(
        Results(maker.run(("3.14", "3.14t"), options={"experiment": "signals", "effort": EffortLevel.QUICK}))))


def test_few_late_signals_are_not_told_from_none():
    # Fisher's exact test, two-sided: 2 and 0 of 12 have p = 0.48, 12 and 0 of 12 p < 0.001.
    assert ("3.14t: 2 of 12 signals that came while the main thread began to wait for a lock, beside CPU threads, were "
            "not handled within 2.00 s; 0 of 12 on 3.14 do not differ significantly from that") in signals_late(
                0, [1, 1, 0])
    assert "differ significantly" not in signals_late(0, 4)
    assert chance_of_shares(0, 12, 2, 12) == pytest.approx(0.478, abs=0.001)
    assert chance_of_shares(0, 12, 12, 12) == pytest.approx(7.4e-7, rel=0.01)


def shown(results):
    return render(Document(SignalsExperiment().sections(results)), width=140)


def test_table_says_never_only_where_it_was_so():
    lines = shown(made_up(join_0=(1e-4, 1e-4, 0), join_2=(6e-3, 1e-4, 0), sleep_2=(6e-3, 1e-4, 0))).splitlines()
    ends = {line.split("  ")[0]: line.split()[-1] for line in lines if line.startswith(("joins", "sleeps"))}
    assert ends == {"joins a thread": "never", "sleeps": "-"}
    assert sum(line.endswith("never") for line in lines) == 1


def test_table_counts_signals_that_were_not_handled():
    text = shown(made_up(lock_at_once_2=(5e-3, 2.0, 3)))
    assert "9 of 12 not within 2.00 s" in text
    assert "> 2.00 s" in text


def joins(beside, limit=2.0):
    """Return three rounds of 3.14 whose main thread joins another: 0.1 ms alone, `beside` two CPU threads."""
    maker = RunMaker(rounds=3)
    for cpu, seconds in ((0, [1e-4] * 3), (2, beside)):
        cell = Cell(workload="signals", runner="threads", workers=cpu + 1, build="3.14",
                    parameters=(("main", "join"), ("cpu", str(cpu))))
        maker.measure(cell, seconds, best=1e-5, worst=[1.5 * each for each in seconds], signals=4, late=0, limit=limit)
    return Results(maker.run(("3.14",), options={"experiment": "signals", "effort": EffortLevel.QUICK}))


def test_times_are_medians_with_the_range_of_the_rounds():
    sentence, _ = SignalsExperiment().findings(joins([0.00465, 0.00317, 0.0091]))
    assert sentence.endswith(
        "; beside 2 CPU threads after 4.65 ms in the median (3.17 ms to 9.10 ms in 3 rounds), slowest 13.7 ms.")


def test_limit_leaves_no_spread():
    assert "4.65 ms ±64 %" in shown(joins([0.00465, 0.00317, 0.0091]))
    text = shown(joins([0.00465, 0.00317, 2.0]))   # one round was cut off at 2 s: its range is not known
    assert "4.65 ms" in text
    assert "4.65 ms ±" not in text


@pytest.mark.parametrize(("cells", "words", "absent"), [
    ({"join_0": (1e-4, 1e-4, 0), "join_2": (6e-3, 1e-4, 0)},
     ["3.14: Ctrl-C reaches", "gets it within the switch interval", "3.14t: Ctrl-C reaches", "Without the GIL it"],
     "2009 holds here"),
    ({"join_0": (1e-4, 1e-4, 0), "join_2": (2.0, None, 4)}, ["3.14: beside 2 CPU threads, 12 of 12", "2009 holds here"],
     "reaches"),
    ({"join_0": (1e-4, None, 0)}, [], "Ctrl-C"),
    ({"lock_at_once_2": (5e-3, 2.0, 2)}, ["3.14: 6 of 12 signals", "Without the GIL that window is long"], "reaches"),
    ({"lock_at_once_2": (5e-3, 1e-4, 0)}, [], "2009"),
    ({"join_0": (1e-4, None, 0), "join_2": (6e-3, None, 0)}, ["gets it within"], "Without the GIL"),
    ({"join_0": (None, 1e-4, 0), "join_2": (None, 1e-4, 0), "sleep_4": (1e-3, 1e-3, 0)},
     ["beside 2 CPU threads", "Without the GIL it just runs"], "With the GIL"),
    ({"join_0": (None, 1e-4, 0), "join_2": (2.0, 1e-4, 0)}, ["3.14t: Ctrl-C reaches"], "3.14: Ctrl-C"),
    ({"lock_at_once_2": (5e-3, None, 2)}, ["3.14: 6 of 12 signals"], "Without the GIL"),
    ({"lock_at_once_0": (5e-3, None, 1), "lock_at_once_2": (5e-3, 5e-3, 2), "join_2": (5e-3, None, 3)},
     ["3.14: 9 of 24 signals", "3.14t: 6 of 12 signals"], "of 36"),
    ({"calls_0": (0.05, 0.05, 2), "beside_calls_0": (0.05, 0.05, 0)}, [], "in a C call"),
    ({"calls_0": (0.05, 0.05, 0), "beside_calls_0": (0.05, 0.05, 2)}, [], "in a C call"),
    ({"calls_0": (None, 0.05, 0), "beside_calls_0": (0.05, 0.05, 0)}, ["3.14t: in a C call"], "3.14: in"),
    ({"calls_0": (0.05, 0.05, 0), "beside_calls_0": (None, 0.05, 0)}, ["3.14t: in a C call"], "sorts"),
    ({"calls_0": (0.05, 0.05, 0), "beside_calls_0": (0.011, 0.009, 0)}, ["since it holds the GIL", "does not matter."],
     "unless"),
    ({"calls_0": (0.05, 0.05, 0), "beside_calls_0": (0.009, 0.011, 0)}, ["3.14: in a C call of about"],
     "call in another thread also"),
    ({"calls_0": (0.05, 0.05, 0), "beside_calls_0": (0.05, 1e-4, 0), "same_list_0": (0.05, 0.05, 0)},
     ["since it holds the GIL", "a call in another thread does not matter, unless it holds a lock"], "2009"),
    ({"calls_0": (None, 0.05, 0), "beside_calls_0": (None, 1e-4, 0), "same_list_0": (None, 1e-4, 0)},
     ["a call in another thread does not matter."], "unless"),
    ({"calls_0": (0.05, 0.05, 0), "beside_calls_0": (1e-4, 0.05, 0)},
     ["If another thread is in such a call, it waits"], "call in another thread also"),
])
def test_sentences_follow_the_numbers(cells, words, absent):
    text = "\n".join(SignalsExperiment().findings(made_up(**cells)))
    for each in words:
        assert each in text
    assert absent not in text


def reasons(*told):
    """`told`: is the GIL off, what a call in another thread delays, and one that holds a list; one's own delays 1.0."""
    return why_late([
        (SimpleNamespace(free_threaded=free), *(each and SimpleNamespace(typical=each) for each in (1.0, beside, same)))
        for free, beside, same in told])


@pytest.mark.parametrize(("told", "absent"), [
    ([(False, 0.5, None), (False, 0.1, None)], "holds the GIL"), ([(True, 0.1, None), (True, 0.5, None)], "not matter"),
    ([(True, 0.1, 0.5), (True, 0.1, 0.1)], "unless"), ([(True, 0.1, None), (False, 0.5, 0.5)], "unless"),
    ([(True, 0.5, None)], "holds the GIL"),
])
def test_reason_is_given_only_where_all_builds_bear_it_out(told, absent):
    assert absent not in reasons(*told)
    assert "unless it holds a lock" in reasons((False, 0.5, 0.1), (True, 0.1, 0.5), (True, 0.1, None))


def drawn(results):
    return [figure.name for figure in figures_of(SignalsExperiment(), results.run, None)]


def test_pictures_show_what_was_measured():
    assert drawn(made_up(join_0=(1e-4, 1e-4, 0), join_2=(6e-3, 1e-4, 0))) == ["signals"]
    cells = {f"join_{count}": (1e-4, 1e-4, 0) for count in (0, 1, 2, 4)}
    names = drawn(made_up(**cells, calls_0=(0.05, 0.05, 0)))
    assert names == ["signals", "signals-c-calls", "signals-threads"]
