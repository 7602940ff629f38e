"""`lost-updates`: additions and losses add up, the lock loses none, the race checker sees what luck hides."""

import sys

import pytest

from gilscope.toolkit.experiments.base import EffortLevel
from gilscope.toolkit.experiments.lost_updates import program, updates
from gilscope.toolkit.experiments.lost_updates.experiment import VARIANTS, LostUpdatesExperiment, share_text
from gilscope.toolkit.experiments.results import Results
from gilscope.toolkit.measure.child.base import NoValueError
from gilscope.toolkit.model import Cell
from gilscope.toolkit.report.document import Document
from gilscope.toolkit.report.terminal import render
from gilscope.toolkit.stats.sample import summarize
from tests.experiments.trials import make_trial
from tests.fakes import RunMaker

SCALES = {"count": 2000, "locked": 2000, "starts": 10}


def trial(folder, variant="bare", loop="long", **others):
    return make_trial(folder, scales=SCALES, variant=variant, loop=loop, interval="1us", **others)


def metrics_of(smoke, **which):
    """Return the metrics of every observation of these cells, starved or not."""
    cells = smoke.results.cells(**which)
    found = [dict(o.metrics) for each in smoke.results.run.measurements if each.cell in cells
             for o in each.observations]
    assert found
    return found


def test_counted_and_lost_are_what_was_expected(run_smoke):
    smoke = run_smoke("lost-updates")
    assert not smoke.results.run.failures
    for metrics in metrics_of(smoke):
        assert metrics["counted"] + metrics["lost"] == metrics["expected"]
        assert metrics["lost"] >= 0


def test_lock_loses_nothing_and_is_clean(run_smoke):
    smoke = run_smoke("lost-updates")
    for build in smoke.results.builds:
        for metrics in metrics_of(smoke, build=build.label, variant="locked"):
            assert (metrics["lost"], metrics["verdict"], metrics["races"]) == (0, "clean", 0)


def test_race_checker_finds_what_has_no_lock_on_every_build(run_smoke):
    smoke = run_smoke("lost-updates")
    for build in smoke.results.builds:
        for variant in ("bare", "called"):
            for metrics in metrics_of(smoke, build=build.label, variant=variant, loop="long"):
                assert metrics["verdict"] == "race"


def test_bare_addition_loses_nothing_with_a_gil(run_smoke):
    """From 3.10 on a thread gives the GIL away at calls and at the end of a loop's turn only."""
    smoke = run_smoke("lost-updates")
    assert all(metrics["lost"] == 0 for metrics in metrics_of(smoke, build=smoke.gil, variant="bare"))


@pytest.mark.parametrize("variant", updates.VARIANTS)
@pytest.mark.parametrize("run", [updates.at_once, updates.as_they_come])
def test_every_variant_adds_once_a_turn(variant, run):
    assert run(updates.VARIANTS[variant], 1, 50) == 50   # one thread: nobody can cover its writes


@pytest.mark.parametrize(("loop", "expected"), [("long", 2000), ("short", 1000)])
def test_expected_is_what_the_threads_did(tmp_path, loop, expected):
    calls = []

    def adds(count):
        calls.append(count)
        updates.locked(count)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(updates.VARIANTS, "counted", adds)
        taken = program.measure(trial(tmp_path, "counted", loop))
    assert sum(calls) == taken.metrics["expected"] == taken.metrics["counted"] == expected


def test_lost_is_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(updates.VARIANTS, "short", lambda count: updates.locked(count - 100))
    metrics = program.measure(trial(tmp_path, "short")).metrics
    assert (metrics["lost"], metrics["counted"], metrics["share"]) == (200, 1800, pytest.approx(0.1))


def test_more_than_was_added_is_a_wrong_result(tmp_path, monkeypatch):
    monkeypatch.setitem(updates.VARIANTS, "twice", lambda count: updates.locked(2 * count))
    with pytest.raises(NoValueError, match="2,000 additions made 4,000") as stopped:
        program.measure(trial(tmp_path, "twice"))
    assert stopped.value.answer["kind"] == "wrong-result"


@pytest.fixture(autouse=True)
def interval():
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


def test_checker_that_cannot_be_run_is_said(tmp_path):
    answer = program.check(trial(tmp_path, host=str(tmp_path / "nothing")))
    assert answer["verdict"] == "no answer"
    assert "FileNotFoundError" in answer["checker"]


def test_checker_that_fails_is_said(tmp_path):
    answer = program.check(trial(tmp_path, variant="no such variant"))
    assert answer["verdict"] == "exit code 1"
    assert "KeyError" in answer["checker"]


@pytest.mark.parametrize(("shares", "text"), [
    ([0.0, 0.0], "none"), ([0.3, 0.4, 0.5], "40 % [30, 50]"), ([0.31], "31 %"), ([0.0, 0.00001, 0.2], "<0.1 % [0, 20]"),
    ([0.025, 0.025], "2.5 % [2.5, 2.5]"), ([0.0009], "<0.1 %"), ([0.0011], "0.1 %"), ([0.0949], "9.5 %"),
    ([0.104], "10 %"), ([0.98], "98 %"),
])
def test_share_is_none_only_when_nothing_was_lost(shares, text):
    assert share_text(summarize(shares)) == text


def made_up(build="3.14", *, starved=0, **shares):
    """Return a quick run: variant -> (share lost at 5 ms, at 1 µs, verdict)."""
    return made_up_of({build: shares}, starved=starved)


def made_up_of(builds, *, starved=0, rounds=3):
    """Return a quick run of several builds."""
    maker = RunMaker(rounds=rounds)
    for build, shares in builds.items():
        measure(maker, build, shares, starved)
    return Results(maker.run(tuple(builds), options={"experiment": "lost-updates", "effort": EffortLevel.QUICK}))


def measure(maker, build, shares, starved):
    model = "free-threaded" if build.endswith("t") else "threads"
    for name, (usual, short, verdict) in shares.items():
        variant, _, loop = name.partition("_")
        for interval, share in (("5ms", usual), ("1us", short)):
            if share is None:
                continue
            told = {"verdict": verdict} if interval == "5ms" else {}
            parameters = {"variant": variant, "interval": interval, "loop": loop or "long"}
            cell = Cell(workload="lost-updates", runner=model, workers=2, build=build,
                        parameters=(*parameters.items(), *({"check": "1"} if told else {}).items()))
            maker.measure(cell, 1e-7, starved=starved, share=share, expected=1000, lost=1000 * share, **told)


def sentences(results):
    return "\n".join(LostUpdatesExperiment().findings(results))


@pytest.mark.parametrize(("build", "shares", "words"), [
    ("3.14", {"bare": (0.0, 0.0, "race"), "called": (0.3, 0.3, "race"), "locked": (0.0, None, "clean")},
     ["lose none of 3,000 updates at 5 ms; with total += one() they lose 30 % [30, 30]",
      "The intervals show no difference",
      "a bare += in a loop no longer loses updates",
      "in all 2 programs without a lock, including the 1 where nothing was lost, and none in the 1 with one"]),
    ("3.14", {"bare": (0.1, 0.1, "race"), "called": (0.3, 0.5, "race")},
     ["as it did in 2021", "they lose 30 % [30, 30], at 1 µs 50 % [50, 50]."]),
    ("3.14t", {"bare": (0.4, 0.4, "race"), "called": (0.3, 0.3, "race")},
     ["lose 40 % [40, 40] of", "Without the GIL the threads run at the same time"]),
    ("3.14", {"bare": (0.0, 0.0, "clean"), "called": (0.1, 0.1, "race"), "locked": (0.0, None, "clean")},
     ["the race checker reported clean, not race, for total += 1"]),
    ("3.14", {"bare": (0.0, 0.0, "race"), "called": (0.1, 0.1, "race"), "bare_short": (None, 0.0, "")},
     ["in each of 2 threads at 1 µs, lost nothing in 3 rounds on 3.14."]),
    ("3.14", {"bare_short": (None, 0.2, "")}, ["lost 20 % [20, 20] on 3.14."]),
])
def test_sentences_follow_the_numbers(build, shares, words):
    text = sentences(made_up(build, **shares))
    for each in words:
        assert each in text


@pytest.mark.parametrize(("build", "shares", "absent"), [
    ("3.14", {"bare": (0.0, 0.0, "race"), "called": (0.0, 0.0, "race")}, "no longer loses updates"),
    ("3.14", {"bare": (0.0, 0.0, "race"), "called": (0.3, 0.5, "race")}, "No difference"),
    ("3.14t", {"bare": (0.0, 0.0, "race"), "called": (0.3, 0.3, "race")}, "at the same time"),
    ("3.14t", {"bare": (0.0, 0.0, "race"), "called": (0.3, 0.3, "race")}, "No difference"),
])
def test_reasons_are_given_only_where_the_numbers_bear_them_out(build, shares, absent):
    assert absent not in sentences(made_up(build, **shares))


NONE, SOME = (0.0, 0.0, "race"), (0.3, 0.3, "race")
USUAL = {"bare": NONE, "called": SOME}


@pytest.mark.parametrize(("builds", "said", "absent"), [
    ({"3.13": {"bare": SOME, "called": SOME}, "3.14": USUAL}, "as it did in 2021", "no longer"),
    ({"3.13": {"bare": NONE, "called": NONE}, "3.14": USUAL}, "3.14:", "no longer loses"),
    ({"3.13": USUAL, "3.14t": {"bare": SOME, "called": SOME}},
     "no longer loses updates", "as it did"),
    ({"3.13": USUAL, "3.14t": {"bare": SOME, "called": SOME}}, "run at the same time", ";;"),
    ({"3.14t": {"bare": SOME, "called": SOME}, "3.15t": USUAL}, "3.15t:", "at the same time"),
    ({"3.13": {"bare": NONE, "called": (0.3, 0.5, "race")}, "3.14": USUAL}, "3.14:", "No difference"),
    ({"3.13": {"bare": NONE, "called": (0.5, 0.3, "race")}}, "at 1 µs 30 % [30, 30]", "No difference"),
    ({"3.13": {"bare": NONE, "called": (0.3, None, "race")}, "3.14": USUAL}, "3.14:", "No difference"),
    ({"3.13": {"bare": NONE, "called": NONE}}, "3.13:", "No difference"),
    ({"3.13": {"bare": NONE}, "3.14": USUAL}, "3.14: in 3 rounds, 2 threads", "3.13"),
    ({"3.13": {"bare_short": (None, 0.0, "")}, "3.14": {"bare_short": (None, 0.2, "")}},
     "lost none on 3.13 and 20 % [20, 20] on 3.14.", "any more"),
    ({"3.14": {"called_short": (None, 0.5, ""), "bare_short": (0.4, 0.2, "")}}, "at 1 µs, lost 20 %", "0.5"),
    ({"3.14": {"bare": SOME, "called": SOME, "bare_short": (None, 0.1, "")}}, "at 1 µs, lost 10 %", ";;"),
    ({"3.14": {"bare_short": (None, 0.1, ""), "bare": SOME, "called": SOME}}, "+= 1 lose 30 %", ";;"),
    ({"3.14": {"bare": (0.3, 0.3, ""), "called": SOME, "locked": (0.0, None, "clean")}},
     "in all 1 programs without a lock, and none", "said None"),
])
def test_what_is_said_of_several_builds_holds_for_each(builds, said, absent):
    text = sentences(made_up_of(builds))
    assert said in text
    assert absent not in text


def test_one_round_in_which_nothing_was_lost_says_so():
    text = sentences(made_up_of({"3.14": {"bare_short": (None, 0.0, "")}}, rounds=1))
    assert text.endswith("at 1 µs, lost nothing in this one round on 3.14.")


def test_one_round_shows_no_sameness():
    assert "No difference" not in sentences(made_up_of({"3.14": {"bare": NONE, "called": SOME}}, rounds=1))


def test_starved_runs_tell_no_share_but_the_checkers_word():
    text = sentences(made_up("3.14", starved=3, bare=NONE, locked=(0.0, None, "clean"), bare_short=(None, 0.2, "")))
    assert text.startswith("The race checker reports the race in all 1 programs without a lock, and none in the 1")


def test_checker_is_not_praised_when_it_was_wrong():
    text = sentences(made_up(bare=(0.0, 0.0, "race"), called=(0.1, 0.1, "clean"), locked=(0.0, None, "clean")))
    assert "reported clean, not race" in text
    assert "reports the race in all" not in text


def test_nothing_is_said_of_what_was_not_measured():
    assert sentences(made_up(bare=(0.0, 0.0, "race"), starved=3)) == ""


def test_verdict_counts_although_the_run_was_starved():
    results = made_up("3.14t", bare=(0.2, 0.2, "race"), locked=(0.0, None, "clean"), starved=3)
    text = render(Document(LostUpdatesExperiment().sections(results)), width=140)
    rows = [line.split() for line in text.splitlines() if line.startswith(("total += 1 ", "with lock"))]
    assert [row[-1] for row in rows if row[-1] in {"race", "clean"}] == ["race", "clean"]
    assert "starved" in text


def test_pictures_show_variants_and_intervals():
    shares = {"bare": (0.0, 0.0, "race"), "called": (0.3, 0.3, "race"), "locked": (0.0, None, "clean")}
    bars, lines = LostUpdatesExperiment().figures(made_up(**shares))
    assert bars.panels[0].categories == tuple(VARIANTS[name] for name in shares)
    assert [panel.title for panel in lines.panels] == [VARIANTS["bare"], VARIANTS["called"]]
