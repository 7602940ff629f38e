"""Runs of several sessions in reports: what intervals hold, and what tables say that they are about."""

import dataclasses
import json
from math import log
from pathlib import Path

import pytest

from gilscope.toolkit import report
from gilscope.toolkit.model import Cell
from gilscope.toolkit.report import json_, markdown, terminal
from gilscope.toolkit.report.as_json import compare_values, run_values
from gilscope.toolkit.report.comparison import comparison_document
from gilscope.toolkit.report.document import Table
from gilscope.toolkit.report.hosts.agreement import measured_host
from gilscope.toolkit.report.hosts.as_json import hosts_values
from gilscope.toolkit.report.hosts.document import hosts_document
from gilscope.toolkit.report.run_document import run_document
from gilscope.toolkit.report.sessions import scope_of_hosts, scope_text, session_rounds
from gilscope.toolkit.report.table.contrast import compare_builds, compare_models, compare_runs
from gilscope.toolkit.report.table.judgement import rounds_to_tell, unjudged
from gilscope.toolkit.report.table.matrix import build_tables
from gilscope.toolkit.report.table.observations import Index
from gilscope.toolkit.report.table.ratios import Ratios
from gilscope.toolkit.site.pages.run import run_page
from gilscope.toolkit.stats.verdict import Unjudged
from tests.fakes import RunMaker, in_sessions
from tests.report.test_as_json import closed

jsonschema = pytest.importorskip("jsonschema")

BUILDS = ("3.14", "3.14t")
STARTS = {1: (0,), 2: (0, 6), 3: (0, 4, 8), 4: (0, 3, 6, 9)}
MODELS = {"threads": 1.0, "subinterpreters": 1.8, "free-threaded": 1.9}


def cell(runner="serial", workers=1, build="3.14", workload="primes"):
    return Cell(workload=workload, runner=runner, workers=workers, build=build)


def make(sessions, shift=(), rounds=12, times=1.0):
    """Return a run; subinterpreters take `times` as long as usual."""
    maker = RunMaker(rounds=rounds)
    for workload in ("primes", "sha"):
        for build in BUILDS:
            maker.measure(cell(build=build, workload=workload), 0.4)
            maker.twin(cell(build=build, workload=workload), 0.4)
            for runner, faster in MODELS.items():
                slower = times if runner == "subinterpreters" else 1.0
                maker.measure(cell(runner, 2, build, workload), slower * 0.4 / faster)
    run = maker.run(BUILDS, cells=tuple(each.cell for each in maker.measurements))
    return in_sessions(run, STARTS[sessions], shift)


def speedup(run, runner="subinterpreters"):
    return Ratios(Index(run)).compare(cell(), cell(runner, 2))


def without_rounds(run, wanted, kept):
    """Return the run in which a cell has only its first `kept` rounds."""
    return dataclasses.replace(run, measurements=tuple(
        dataclasses.replace(each, observations=each.observations[:kept]) if each.cell == wanted else each
        for each in run.measurements))


SHIFT = (0.97, 1.0, 1.03)
GONE = cell("subinterpreters", 2)


def test_interval_of_three_sessions_holds_how_they_differ():
    alike, unlike = speedup(make(3)), speedup(make(3, SHIFT))
    assert (alike.sessions, unlike.sessions) == (3, 3)
    assert unlike.hi - unlike.lo > 5 * (alike.hi - alike.lo)
    # Three numbers that are 3 % apart, by Student's t with four degrees of freedom to two.
    assert 2.7 < log(unlike.hi / unlike.ratio) / (0.03 / 3**0.5) < 4.4


def test_verdict_of_three_sessions_tells_less_than_that_of_one():
    shift = (0.9, 1.0, 1.1)
    assert speedup(make(1)).verdict() == "faster"
    assert speedup(make(3)).verdict() == "faster"
    apart = speedup(make(3, (0.7, 1.0, 1.5)))
    assert (apart.judgeable, apart.differs) == (True, False)   # another hour may differ
    assert speedup(make(3, shift)).ratio == pytest.approx(1.8, rel=0.02)


def test_rounds_of_two_sessions_count_as_those_of_one():
    apart = speedup(make(2, (0.9, 1.1)))
    assert (apart.sessions, apart.rounds) == (2, 12)
    assert apart.lo < 1.8 / 1.05
    assert apart.hi > 1.8 * 1.05


def between_runs(first, second, runner, workers):
    (found,) = [each for each in compare_runs(first, second) if each.sample == cell(runner, workers)]
    return found


def width(contrast):
    return log(contrast.comparison.hi / contrast.comparison.lo)


def test_two_runs_of_three_sessions_hold_how_sessions_differ():
    found = {(runner, shift): width(between_runs(make(3), make(3, shift), runner, 2 if runner in MODELS else 1))
             for runner in ("serial", "subinterpreters") for shift in ((), SHIFT)}
    assert found["subinterpreters", SHIFT] > 1.5 * found["subinterpreters", ()]
    assert found["serial", SHIFT] == pytest.approx(found["serial", ()], rel=0.1)   # one worker is not shifted


@pytest.mark.parametrize("sessions", [2, 3])
def test_ratio_of_two_runs_with_sessions_is_that_of_their_times(sessions):
    found = between_runs(make(sessions), make(sessions, times=1.25), "subinterpreters", 2).comparison
    assert found.ratio == pytest.approx(1 / 1.25, rel=0.02)
    assert found.lo < 1 / 1.25 < found.hi


def test_two_runs_of_two_sessions_hold_how_these_differ():
    alike, unlike = (between_runs(make(2), make(2, shift), "subinterpreters", 2) for shift in ((), (0.9, 1.1)))
    assert width(unlike) > 2 * width(alike)


def test_models_with_as_many_workers_share_the_shift():
    """Which of two models is faster does not depend on what slows both."""
    ratios = Ratios(Index(make(3, (0.8, 1.0, 1.25))))
    seen = ratios.compare(cell("subinterpreters", 2), cell("free-threaded", 2))
    assert seen.verdict() == "faster"
    assert ratios.best([cell(), *(cell(runner, 2) for runner in MODELS)])[0] == cell("free-threaded", 2)
    assert cell("subinterpreters", 2) not in ratios.best([cell(runner, 2) for runner in MODELS])


def test_sessions_are_no_noise():
    """The noise floor is of a session, however the sessions differ."""
    floors = [Ratios(Index(make(3, shift))).wall.noises["primes", "steady", None].usual.floor(3)
              for shift in ((), (0.8, 1.0, 1.25))]
    assert floors[0] == pytest.approx(floors[1], rel=0.01)


def test_run_with_one_session_is_compared_as_ever():
    assert speedup(make(1)).sessions == 1


@pytest.mark.parametrize(("sessions", "rounds", "found"), [
    (3, 8, (2, "cannot tell")), (3, 4, (1, "cannot tell")), (4, 9, (3, "faster")), (2, 6, (1, "faster")),
])
def test_two_of_several_sessions_tell_nothing_and_three_do(sessions, rounds, found):
    run = without_rounds(make(sessions), GONE, rounds)
    seen = speedup(run)
    assert (seen.sessions, seen.verdict()) == found
    assert (unjudged(seen) is Unjudged.ROUNDS) is (found[1] == "cannot tell")
    few = "fewer than 3 sessions: nothing can be called faster or slower"
    assert (few in {note.text for note in seen.notes}) is (found[1] == "cannot tell")


def test_set_of_the_fastest_keeps_a_cell_of_two_sessions():
    arms = [cell(), *(cell(runner, 2) for runner in MODELS)]
    assert GONE not in Ratios(Index(make(3))).best(arms)
    assert GONE in Ratios(Index(without_rounds(make(3), GONE, 8))).best(arms)


@pytest.mark.parametrize(("sessions", "scope"), [
    (1, "in this session"), (2, "in these 2 sessions"), (3, "over 3 sessions begun within 4 hours"),
])
def test_report_says_what_it_is_about(sessions, scope):
    run = make(sessions)
    assert (scope_text(run), len(session_rounds(run))) == (scope, sessions)
    document = run_document(run)
    shown = [terminal.render(document, width=200), markdown.render(document)]
    assert [f"rounds {scope}, ended by" in text for text in shown] == [True, True]
    values = run_values(run)
    assert (values["scope"], len(values["sessions"])) == (scope, sessions)
    alone = "Times and their ± are of these 3 sessions alone: only ratios include how sessions differ."
    pages = str(run_page(run, {}))
    assert scope in pages
    assert all((alone in text) is (sessions > 2) for text in (*shown[:2], pages))
    contrasts = compare_builds(run, *BUILDS)
    assert (alone in terminal.render(comparison_document("", contrasts, baseline="a", sample="b"), width=200)) is (
        sessions > 2)


@pytest.mark.parametrize(("starts", "text"), [
    (("12:00:00", "12:01:10", "12:02:20"), "3 minutes"),
    (("12:00:00", "12:00:20", "12:00:40"), "1 minute"),
    (("12:00:00", "13:00:00", "13:30:00"), "90 minutes"),
    (("12:00:00", "13:00:00", "14:00:00"), "2 hours"),
])
def test_scope_of_three_sessions_says_how_close_together_they_are(starts, text):
    run = make(3)
    sessions = tuple(dataclasses.replace(each, started=f"2026-11-21T{start}+00:00")
                     for each, start in zip(run.sessions, starts, strict=True))
    run = dataclasses.replace(run, started=sessions[0].started, later_sessions=sessions[1:])
    assert scope_text(run) == f"over 3 sessions begun within {text}"
    assert scope_of_hosts([run, run]) == f"each host over 3 sessions begun within {text}"


@pytest.mark.parametrize(("sessions", "scope"), [
    ((1,), "in this session"), ((1, 1), "each host in this session"),
    ((1, 2, 1), "each host in this session or in these 2 sessions"),
    ((2, 3), "each host in these 2 sessions or over 3 sessions begun within 4 hours"),
])
def test_scope_of_several_runs_has_that_of_each(sessions, scope):
    runs = [make(count) for count in sessions]
    assert scope_of_hosts(runs) == scope
    if len(runs) > 1:
        hosts = [measured_host(f"host-{place}", run) for place, run in enumerate(runs)]
        assert f"; {scope}" in terminal.render(hosts_document("both", hosts), width=200)
        assert hosts_values("both", hosts)["scope"] == scope


def test_sessions_of_several_days_are_so_many_days_apart():
    run = make(3)
    later = tuple(dataclasses.replace(each, started="2026-11-23T23:59:00+00:00") for each in run.later_sessions)
    assert scope_text(dataclasses.replace(run, started="2026-11-21T00:00:00+00:00", later_sessions=later)) == (
        "over 3 sessions begun within 3 days")


@pytest.mark.parametrize(("sessions", "rounds", "text"), [
    (3, 8, "2 of 3 sessions (8 of 12 rounds)"), (2, 6, "1 of 2 sessions (6 of 12 rounds)"),
])
def test_cell_that_lacks_a_session_is_marked(sessions, rounds, text):
    """Its number is of fewer sessions than the scope of its table says."""
    run, gone = make(sessions), cell("subinterpreters", 2)
    run = dataclasses.replace(run, measurements=tuple(
        dataclasses.replace(each, observations=each.observations[:rounds]) if each.cell == gone else each
        for each in run.measurements))
    marked = [result for table in build_tables(run) for row in table.rows for result in row.results
              if text in {note.text for note in result.notes}]
    assert [each.cell for each in marked] == [gone]
    assert terminal.render(run_document(run), width=200).count(text) == 2   # in the overview, too
    assert text in str(run_page(run, {}))
    whole = build_tables(make(sessions))
    assert not any("sessions (" in note.text for table in whole for row in table.rows for result in row.results
                   for note in result.notes)


LACKING = "2 of 3 sessions (8 of 12 rounds)"


@pytest.fixture
def lacking():
    """A run of three sessions, whose one cell lacks a session."""
    return without_rounds(make(3), GONE, 8)


@pytest.mark.parametrize("compared", [
    lambda run: compare_builds(run, *BUILDS), lambda run: compare_models(run, "threads", "subinterpreters")])
def test_ratio_that_lacks_a_session_is_marked_wherever_it_is_compared(compared, lacking):
    for run, marked in ((lacking, True), (make(3), False)):
        contrasts = compared(run)
        assert [each.sample.runner for each in contrasts if each.lacking_sessions] == ["subinterpreters"] * marked
        document = comparison_document("", contrasts, baseline="a", sample="b")
        for text in (terminal.render(document, width=300), markdown.render(document)):
            assert text.count(LACKING) == marked
            assert text.count("1 ratio lacks a session: see the footnotes.") == marked
        values = compare_values(contrasts, baseline="a", sample="b", notes=())
        noted = [each["lacking_sessions"] for each in values["cells"] if each["lacking_sessions"]]
        assert noted == [[LACKING]] * marked
        (row,) = (each for table in document.sections if isinstance(table, Table) and "primes" in table.title
                  for each in table.rows if each[0].value in {"subinterpreters", "3.14"} and each[1].value == "2")
        assert row[4].marks == (1,) * marked


def test_two_runs_mark_the_side_that_lacks_a_session(lacking):
    contrasts = compare_runs(dataclasses.replace(lacking, label="old"), dataclasses.replace(make(3), label="new"))
    (found,) = [each for each in contrasts if each.lacking_sessions]
    assert found.sample == GONE
    assert [note.text for note in found.lacking_sessions] == [f"in old: {LACKING}"]
    text = terminal.render(comparison_document("", contrasts, baseline="old", sample="new"), width=300)
    assert f"in old: {LACKING}" in text
    assert "1 ratio lacks a session" in text


def test_sentences_and_build_ratios_say_what_lacks_a_session():
    lacking = "3 of 4 sessions (9 of 12 rounds)"
    run = without_rounds(make(4), cell("free-threaded", 2), 9)
    said = run_values(run)["in_short"]
    gains = next(each for each in run_document(run).sections
                 if isinstance(each, Table) and each.title.startswith("Speed-up over"))
    assert gains.footnotes == (lacking,)
    (fastest,) = (line for line in said if line.startswith("fastest model of"))
    assert fastest.endswith("within 3 % for primes (3 of 4 sessions), sha")
    assert " ".join(said).count("3 of 4 sessions") == 1
    serial = without_rounds(make(4), cell(build="3.14t"), 9)
    assert "primes (3 of 4 sessions)" in " ".join(run_values(serial)["in_short"])
    (row,) = (each for each in run_values(serial)["build_ratios"]
              if (each["model"], each["workload"]) == ("serial", "primes"))
    assert (row["lacking_sessions"], row["ratio"]["sessions"], row["ratio"]["run_sessions"]) == ([lacking], 3, 4)
    (overhead,) = (each for each in run_document(serial).sections
                   if isinstance(each, Table) and each.title.startswith("Build against") and each.footnotes)
    assert overhead.footnotes == (lacking,)


@pytest.mark.parametrize("sessions", [1, 2, 3])
def test_json_of_sessions_fits_its_schema(sessions):
    values = json.loads(json_.render(run_values(make(sessions))))
    schema = json.loads((Path(report.__file__).parent / "schemas" / "run.json").read_text())
    jsonschema.validate(values, closed(schema), cls=jsonschema.Draft202012Validator)
    assert [each["rounds"] for each in values["sessions"]] == {1: [12], 2: [6, 6], 3: [4, 4, 4]}[sessions]


def test_more_rounds_do_not_tell_how_sessions_differ():
    one, several = (speedup(make(sessions), "threads") for sessions in (1, 3))
    wide = {"lo": 0.97, "hi": 1.03, "verdict_interval": (0.96, 1.05)}
    assert rounds_to_tell(dataclasses.replace(one, **wide)) is not None
    assert rounds_to_tell(dataclasses.replace(several, **wide)) is None


def test_ratio_that_lacks_sessions_needs_sessions_too():
    """The run has three: its remedy is that of the others, though this ratio is of one."""
    run = without_rounds(make(3, times=1.7), GONE, 4)
    contrasts = [dataclasses.replace(each, comparison=dataclasses.replace(
        each.comparison, lo=0.97, hi=1.11, verdict_interval=(0.96, 1.12)))
        for each in compare_models(run, "serial", "subinterpreters") if each.sample == GONE]
    assert [(each.comparison.sessions, each.comparison.run_sessions) for each in contrasts] == [(1, 3)]
    text = terminal.render(comparison_document("", contrasts, baseline="a", sample="b"), width=200)
    assert "  more sessions\n" in text
    assert "more sessions: rounds at other times" in text
    values = compare_values(contrasts, baseline="a", sample="b", notes=())
    assert [each["ratio"]["rounds_to_tell"] for each in values["cells"]] == [None]


def test_compare_of_three_sessions_asks_for_sessions_as_the_report_does():
    run = make(3, (0.7, 1.0, 1.5))
    contrasts = compare_models(run, "serial", "subinterpreters")
    text = terminal.render(comparison_document("", contrasts, baseline="serial", sample="subinterpreters"), width=200)
    assert "more sessions: rounds at other times" in text
    assert text.count("  more sessions\n") == 4   # two workloads on two builds
    assert "less noise" not in text


def test_sessions_are_listed_with_those_that_are_to_come():
    run = dataclasses.replace(make(2), options={"sessions": 3})
    assert "2 of 3 sessions: 2026-11-21 12:00 (6 rounds) and 2026-11-21 14:00 (6 rounds)" in terminal.render(
        run_document(run), width=200)


def test_what_several_sessions_leave_open_takes_more_sessions():
    run = make(3, (0.7, 1.0, 1.5))
    text = terminal.render(run_document(run), width=200)
    assert "`gilscope run --add-session example` would tell more" in text
    few = dataclasses.replace(without_rounds(make(3), GONE, 8), rounds_planned=20)
    assert "`gilscope run --add-session example` would tell more" in terminal.render(run_document(few), width=200)
    assert "--rounds" not in text
