"""`switch-interval`: under which interval and timer its threads really run; what it says of made-up runs."""

import sys
from textwrap import dedent

import pytest

from gilscope.toolkit.experiments import short_switch_intervals
from gilscope.toolkit.experiments.base import Effort
from gilscope.toolkit.experiments.report import document
from gilscope.toolkit.experiments.results import Results
from gilscope.toolkit.experiments.short_switch_intervals import FINE
from gilscope.toolkit.experiments.switch_interval import experiment as switch_interval
from gilscope.toolkit.experiments.switch_interval import report as switch_interval_report
from gilscope.toolkit.experiments.switch_interval.experiment import SwitchInterval
from gilscope.toolkit.report.terminal import render
from tests.conformance.builds import builds, run_child
from tests.fakes import RunMaker

every_build = pytest.mark.parametrize(("label", "python"), builds().items(), ids=list(builds()))
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a timer slack")

TRIAL = dedent("""
    import sys, tempfile, threading
    from gilscope.toolkit.experiments.countdown import program as countdown
    from gilscope.toolkit.experiments.helpers import timer_slack
    from gilscope.toolkit.experiments.switch_interval import program as switch_interval
    from gilscope.toolkit.measure.program.interface import Trial, TrialSpec
    from gilscope.toolkit.measure.process.child_base import StoppedError

    def trial(**parameters):
        return Trial(TrialSpec(
            name="t", progress_timeout=60.0, folder=tempfile.gettempdir(), program="p", build="b", model="threads",
            workers=2, gil=None, parameters=parameters, host=sys.executable, scales={"count": 1001}))

    seen, counts = [], []

    def slack():
        try:
            with open(f"/proc/{threading.get_native_id()}/timerslack_ns") as file:
                return int(file.read())
        except FileNotFoundError:
            return None

    def watched(count):
        counts.append(count)
        seen.append((round(sys.getswitchinterval(), 9), slack()))

    countdown.countdown, usual = watched, slack()
""")

RUNS = dedent("""
    for interval, seconds in (("100ms", 0.1), ("10us", 1e-5), ("1us", 1e-6)):
        seen.clear(); counts.clear()
        taken = switch_interval.measure(trial(interval=interval))
        assert seen == [(seconds, usual)] * 2, seen
        assert sorted(counts) == [500, 501]
        assert taken.seconds > 0 and taken.cpu > 0
""")

FINE_TIMER = dedent("""
    switch_interval.measure(trial(interval="1us", slack="1ns"))
    assert seen == [(1e-6, 1)] * 2, seen
    for path, words in (("/dev/full", "cannot be set: No space"), ("/dev/null", "cannot be set to 1 ns, it stays  ns")):
        timer_slack.TIMER_SLACK = path
        try:
            switch_interval.measure(trial(interval="1us", slack="1ns"))
        except StoppedError as stopped:
            assert stopped.answer["kind"] == "unavailable" and words in stopped.answer["reason"], stopped.answer
        else:
            raise AssertionError(path)
""")


def passes(python, code):
    done = run_child(python, "-c", TRIAL + code)
    assert done.returncode == 0, done.stderr


@every_build
def test_threads_run_under_the_interval_asked_for(label, python):
    passes(python, RUNS)


@on_linux
@every_build
def test_threads_have_the_fine_timer_or_the_cell_says_why_not(label, python):
    passes(python, FINE_TIMER)


def test_every_cell_has_a_value(run_smoke):
    smoke = run_smoke("switch-interval")
    assert not smoke.results.run.failures
    for cell in smoke.results.cells():
        assert smoke.results.value(cell) or smoke.results.absence(cell).word in {"starved", "skipped"}, cell
    assert smoke.results.find(build=smoke.gil, runner="threads", workers=2, interval="1us", slack="1ns")
    assert "1 µs, fine timer" in smoke.out


def test_nobody_waits_for_a_gil_without_one_so_there_is_no_fine_timer(run_smoke):
    smoke = run_smoke("switch-interval")
    assert not [cell for cell in smoke.results.cells(build=smoke.free) if "slack" in dict(cell.parameters)]


def test_other_systems_skip_the_fine_timer(monkeypatch):
    monkeypatch.setattr(short_switch_intervals.sys, "platform", "darwin")
    assert "only Linux" in short_switch_intervals.no_slack()


def made_up(build="3.14", *, rounds=8, slow=1.4, fine=None):
    """Return a run of 8 threads that take as long as none at 5 ms and `slow` times as long at 1 µs."""
    maker, experiment = RunMaker(rounds=rounds, noise=0.0), SwitchInterval()
    (known,) = maker.run((build,)).builds
    model = "free-threaded" if known.free_threaded else "threads"
    serial = experiment.cell(known, "serial", 1)
    maker.measure(serial, 1.0)
    maker.twin(serial, 1.0)
    maker.measure(experiment.cell(known, model, 8, interval="5ms"), 1.01)
    maker.measure(experiment.cell(known, model, 8, interval="1us"), slow)
    if fine is not None:
        maker.measure(experiment.cell(known, model, 8, interval="1us", slack=FINE), fine)
    return maker.run((build,), options={"experiment": "switch-interval", "effort": Effort.QUICK})


@pytest.mark.parametrize(("build", "times", "words"), [
    ("3.14", {"slow": 1.4}, ["1.40 times at 1 µs", "12.5 times in 2021: the claim does not hold"]),
    ("3.14", {"slow": 11.0}, ["11.0 times at 1 µs", "2021: the claim holds"]),
    ("3.14", {"fine": 9.0}, ["does not hold", "the price of 2021 is still there"]),
    ("3.14", {"fine": 1.3}, ["does not hold", "the timer is not what separates"]),
    ("3.14t", {"slow": 0.6}, ["nobody waits for a GIL here"]),
])
def test_sentences_follow_the_numbers(build, times, words):
    sentences = SwitchInterval().findings(Results(made_up(build, **times)))
    for word in words:
        assert any(word in sentence for sentence in sentences), (word, sentences)
    assert len(sentences) == 1 + ("fine" in times)


def test_too_few_rounds_give_no_sentence():
    assert SwitchInterval().findings(Results(made_up(rounds=2, fine=9.0))) == ()


def test_tables_have_the_old_numbers_beside():
    text = render(document(SwitchInterval(), made_up(fine=9.0), None), width=120)
    (seconds, ratios) = (line for line in text.splitlines() if line.strip().startswith("1 µs  "))
    assert seconds.split()[-4:] == ["6.89", "s", "86.44", "s"]
    assert ratios.split()[-1] == "0.0797x"   # 6.89 / 86.44
    assert "1 µs, fine timer" in text


def test_picture_has_a_point_per_interval_and_the_old_line():
    (figure,) = SwitchInterval().figures(Results(made_up(fine=9.0)))
    (panel,) = figure.panels
    lines = {each.name: each for each in panel.series}
    assert set(lines) == {"8 threads", "8 threads, fine timer", "8 threads, 2021"}
    assert lines["8 threads"].x == (1e-6, 5e-3)
    assert lines["8 threads"].y == pytest.approx((1.4, 1.01))
    assert lines["8 threads, fine timer"].x == (1e-6,)
    assert lines["8 threads, 2021"].y[0] == pytest.approx(86.44 / 6.89)
    measured = [each for each in lines.values() if each.style == "measured"]
    assert all(low <= y <= high for each in measured for low, y, high in zip(each.lo, each.y, each.hi, strict=True))


def test_tables_are_of_one_build_and_model():
    maker, experiment = RunMaker(rounds=3), SwitchInterval()
    with_gil, without = maker.run(("3.14", "3.14t")).builds
    for build, model, count in ((with_gil, "threads", 8), (with_gil, "threads", 2), (without, "free-threaded", 4)):
        for interval in ("5ms", "1us"):
            maker.measure(experiment.cell(build, model, count, interval=interval), 1.0)
    maker.measure(experiment.cell(with_gil, "serial", 1), 1.0)
    results = Results(maker.run(("3.14", "3.14t"), options={"experiment": "switch-interval", "effort": Effort.QUICK}))
    arms = [(build.label, model) for build, model in switch_interval_report.arms(results)]
    assert arms == [("3.14", "threads"), ("3.14t", "free-threaded")]
    assert switch_interval_report.counts_of(results, with_gil, "threads") == [2, 8]
    assert switch_interval_report.counts_of(results, without, "free-threaded") == [4]
    assert [len(switch_interval_report.seconds_table(results, build, model).rows)
            for build, model in switch_interval_report.arms(results)] == [2, 2]


def test_then_has_every_interval_of_the_grid():
    asked = {interval for each in switch_interval.INTERVALS.values() for interval in each}
    assert asked <= set(switch_interval_report.THEN)
