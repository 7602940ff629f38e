"""`switch-interval`: under which interval and timer its threads really run; what it says of made-up runs."""

import sys
from textwrap import dedent

import pytest

from gilscope.toolkit.experiments.base import EffortLevel
from gilscope.toolkit.experiments.helpers import timers
from gilscope.toolkit.experiments.report import document
from gilscope.toolkit.experiments.results import Results
from gilscope.toolkit.experiments.switch_interval import INTERVALS, THEN, SwitchIntervalExperiment
from gilscope.toolkit.report.document import RatioValue
from gilscope.toolkit.report.terminal import render
from gilscope.toolkit.report.wording import interval_text
from tests.conformance.builds import run_child
from tests.fakes import RunMaker

every_build = pytest.mark.builds("gil", "free")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a timer slack")

TRIAL = dedent("""
    import sys, tempfile, threading
    from gilscope.toolkit.experiments.countdown import program as countdown
    from gilscope.toolkit.experiments.helpers import timers
    from gilscope.toolkit.measure.child.program import ProgramTrial, ProgramSpec
    from gilscope.toolkit.measure.child.base import NoValueError

    def trial(**parameters):
        return ProgramTrial(ProgramSpec(
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
        taken = countdown.measure(trial(interval=interval))
        assert seen == [(seconds, usual)] * 2, seen
        assert sorted(counts) == [500, 501]
        assert taken.seconds > 0 and taken.cpu > 0
""")

FINE_TIMER = dedent("""
    countdown.measure(trial(interval="1us", slack="1ns"))
    assert seen == [(1e-6, 1)] * 2, seen
    for path, words in (("/dev/full", "cannot be set: No space"), ("/dev/null", "cannot be set to 1 ns, it stays  ns")):
        timers.SLACK_FILE = path
        try:
            countdown.measure(trial(interval="1us", slack="1ns"))
        except NoValueError as stopped:
            assert stopped.answer["kind"] == "unavailable" and words in stopped.answer["reason"], stopped.answer
        else:
            raise AssertionError(path)
""")


def passes(python, code):
    done = run_child(python, "-c", TRIAL + code)
    assert done.returncode == 0, done.stderr


@every_build
def test_threads_run_under_the_interval_asked_for(python):
    passes(python, RUNS)


@on_linux
@every_build
def test_threads_have_the_fine_timer_or_the_cell_says_why_not(python):
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
    monkeypatch.setattr(timers.sys, "platform", "darwin")
    assert "only Linux" in timers.slack_reason()


def made_up(build="3.14", *, rounds=8, serial=1.0, slow=1.4, fine=None):
    """Return a run of 8 threads that take as long as none at 5 ms and `slow` times as long at 1 µs.

    A list has the seconds of each round.
    """
    maker, experiment = RunMaker(rounds=rounds, noise=1e-6), SwitchIntervalExperiment()
    (known,) = maker.run((build,)).builds
    model = "free-threaded" if known.free_threaded else "threads"
    alone = experiment.cell(known, "serial", 1)
    maker.measure(alone, serial)
    maker.twin(alone, serial)
    usual = [1.01 * each for each in serial] if isinstance(serial, list) else 1.01 * serial
    maker.measure(experiment.cell(known, model, 8, interval="5ms"), usual)
    maker.measure(experiment.cell(known, model, 8, interval="1us"), slow)
    if fine is not None:
        maker.measure(experiment.cell(known, model, 8, interval="1us", slack=timers.FINE_SLACK), fine)
    return maker.run((build,), options={"experiment": "switch-interval", "effort": EffortLevel.QUICK})


@pytest.mark.parametrize(("build", "times", "words"), [
    ("3.14", {"slow": 1.4}, ["1.400x [1.400, 1.400] as long at 1 µs",
                              "12.5 times in 2021: the claim does not hold"]),
    ("3.14", {"slow": 11.0}, ["11.0x [11.0, 11.0] as long at 1 µs", "2021: the claim holds"]),
    ("3.14", {"fine": 9.0}, ["does not hold", "the cost of 2021 still exists"]),
    ("3.14", {"fine": 1.3}, ["does not hold", "the timer slack does not explain the difference"]),
    ("3.14t", {"slow": 0.6}, ["no thread waits for a GIL here"]),
])
def test_sentences_follow_the_numbers(build, times, words):
    sentences = SwitchIntervalExperiment().findings(Results(made_up(build, **times)))
    for word in words:
        assert any(word in sentence for sentence in sentences), (word, sentences)
    assert len(sentences) == 1 + ("fine" in times)


def test_slow_down_is_the_ratio_of_the_table_inverted():
    # As measured: 6.2 to 14 times by round.
    serial, fine = [0.109, 0.118, 0.118, 0.125, 0.114], [1.03, 1.66, 1.17, 0.793, 0.706]
    experiment, run = SwitchIntervalExperiment(), made_up(rounds=5, serial=serial, slow=0.2, fine=fine)
    *_, sentence = experiment.findings(Results(run))
    *_, table = experiment.sections(Results(run))
    (speedup,) = (entry.value.comparison for row in table.rows if row[0].value == "1 µs, fine timer"
                  for entry in row if isinstance(entry.value, RatioValue))
    assert f"8 threads take {interval_text(speedup.inverted())} as long at 1 µs" in sentence
    assert speedup.inverted().ratio == pytest.approx(1 / speedup.ratio)


def test_undecided_ratio_is_called_so():
    slow = [0.8, 1.3, 1.0, 1.2, 0.9]
    (sentence,) = SwitchIntervalExperiment().findings(Results(made_up(rounds=5, serial=[1.0] * 5, slow=slow)))
    assert ", undecided, as long at 1 µs as the same work" in sentence
    decided, = SwitchIntervalExperiment().findings(Results(made_up(slow=2.0)))
    assert "undecided" not in decided.partition(" at 5 ms ")[2]


def test_claim_is_open_where_the_interval_holds_both():
    slow = [5.0, 7.0, 6.0, 8.0, 6.5]   # the claim holds from 6.3 times on
    (sentence,) = SwitchIntervalExperiment().findings(Results(made_up(rounds=5, serial=[1.0] * 5, slow=slow)))
    assert sentence.endswith("this run is too noisy to say whether the claim holds.")


def test_too_few_rounds_give_no_sentence():
    assert SwitchIntervalExperiment().findings(Results(made_up(rounds=2, fine=9.0))) == ()


def test_tables_have_the_old_numbers_beside():
    text = render(document(SwitchIntervalExperiment(), made_up(fine=9.0), None), width=120)
    (seconds, ratios) = (line for line in text.splitlines() if line.strip().startswith("1 µs  "))
    assert seconds.split()[-4:] == ["6.89", "s", "86.44", "s"]
    assert ratios.split()[-1] == "0.0797x"   # 6.89 / 86.44
    assert "1 µs, fine timer" in text


def test_picture_has_a_point_per_interval_and_the_old_line():
    (figure,) = SwitchIntervalExperiment().figures(Results(made_up(fine=9.0)))
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
    maker, experiment = RunMaker(rounds=3), SwitchIntervalExperiment()
    with_gil, without = maker.run(("3.14", "3.14t")).builds
    for build, model, count in ((with_gil, "threads", 8), (with_gil, "threads", 2), (without, "free-threaded", 4)):
        for interval in ("5ms", "1us"):
            maker.measure(experiment.cell(build, model, count, interval=interval), 1.0)
    maker.measure(experiment.cell(with_gil, "serial", 1), 1.0)
    options = {"experiment": "switch-interval", "effort": EffortLevel.QUICK}
    results = Results(maker.run(("3.14", "3.14t"), options=options))
    tables = experiment.sections(results)
    assert [(table.title.partition(":")[0], len(table.rows)) for table in tables] == [
        ("3.14, threads", 2), ("3.14t, free-threaded", 2)] * 2
    titles = [[column.title for column in table.columns if column.group == "now"] for table in tables]
    assert titles == [["no threads", "2 threads", "8 threads"], ["no threads", "4 threads"],
                      ["2 threads", "8 threads"], ["4 threads"]]


def test_then_has_every_interval_of_the_grid():
    asked = {interval for each in INTERVALS.values() for interval in each}
    assert asked <= set(THEN)
