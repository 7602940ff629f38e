"""Where races are looked for, in what order and time, and what comes of several looks together."""

from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.toolkit.evaluate.cache import why_provisional
from gilscope.toolkit.evaluate.project.racing import races as looking
from gilscope.toolkit.evaluate.project.racing.races import RaceCheckRequest, look_for_races
from gilscope.toolkit.evaluate.project.where_to_run import RunSite
from gilscope.toolkit.evaluate.sections import NO_TIME, Missing, RaceFact, Races, SharedFact
from tests.evaluate.made_up import CLEAN, LOOK, PROJECT, suite

RACE = RaceFact(kind="lost update", variable="total", file="app.py", line=3, confirmed=False)
WORKED = replace(CLEAN, looks=(replace(LOOK, of="workload"),), shared=())
BENCHES = {label: RunSite(build=label, python=Path("python"), folders=()) for label in ("3.14t", "3.14")}
FAILS = Missing(reason="the workload failed: No module named 'orjson', under the race checker")


@pytest.fixture
def seen(monkeypatch):
    """Have what is seen of (what, build), and give what was asked for: (what, build, seconds, threads)."""
    found, asked = {}, []

    def look(what):
        def checked(_project, run_site, *_, limit, threads, **_other):
            asked.append((what, run_site.build, limit, threads))
            return found.get((what, run_site.build), replace(CLEAN, shared=None) if what == "tests" else WORKED)
        return checked

    monkeypatch.setattr(looking, "check_races", look("tests"))
    monkeypatch.setattr(looking, "check_workload", look("workload"))
    return found, asked


def looked(workload="app:work", threads=0, run_sites=BENCHES, tests=None, seconds=100.0):
    return look_for_races(RaceCheckRequest(project=PROJECT, workload=workload, threads=threads), run_sites, tests or {},
                          left=lambda: seconds, say=lambda _: None)


def test_workload_comes_before_the_tests_and_both_leave_time_for_speed(seen):
    _, asked = seen
    races = looked()
    assert asked == [("workload", "3.14t", 30.0, 0), ("tests", "3.14t", 40.0, 0)]
    assert [look.of for look in races.looks] == ["workload", "tests"]
    assert (races.found, races.lacking, races.shared) == ((), (), ())


def test_without_a_workload_the_tests_have_all_the_time(seen):
    looked(workload=None)
    assert seen[1] == [("tests", "3.14t", 100.0, 0)]


def test_what_does_not_run_without_the_gil_is_raced_with_it(seen):
    found, asked = seen
    found["workload", "3.14t"] = FAILS
    found["workload", "3.14"] = replace(WORKED, build="3.14", found=(RACE,))
    races = looked()
    assert [build for what, build, *_ in asked if what == "workload"] == ["3.14t", "3.14"]
    assert (races.found, races.lacking, races.build) == ((RACE,), (), "3.14")


def test_build_on_which_tests_pass_is_the_first(seen):
    looked(tests={"3.14t": suite(passed=0), "3.14": suite(build="3.14")})
    assert [build for _, build, *_ in seen[1]] == ["3.14", "3.14"]


def test_what_runs_nowhere_is_said_beside_what_was_seen(seen):
    found, _ = seen
    found["workload", "3.14t"] = FAILS
    found["workload", "3.14"] = Missing(reason="another reason")
    races = looked()
    assert races.lacking == (("workload", FAILS),)
    assert [look.of for look in races.looks] == ["tests"]
    assert races.shared is None
    for build in BENCHES:
        found["tests", build] = Missing(reason="no test ran")
    races = looked()
    assert (races.looks, races.lacking) == ((), (("workload", FAILS), ("tests", Missing(reason="no test ran"))))
    assert looked(workload=None) == Missing(reason="no test ran")


@pytest.mark.parametrize(("reason", "lasts"), [(NO_TIME, False), (Missing(reason="no test ran"), True)])
def test_want_of_time_is_not_kept_as_an_answer(seen, reason, lasts):
    for build in BENCHES:
        seen[0]["tests", build] = reason
    assert (not why_provisional(looked(workload=None))) is lasts


def test_threads_are_those_of_the_workload_and_of_each_test(seen):
    found, asked = seen
    looked(threads=6)
    assert [(what, threads) for what, _, _, threads in asked] == [("workload", 6), ("tests", 6)]
    asked.clear()
    for build in BENCHES:
        found["tests", build] = Missing(reason="takes pytest")
    looked(threads=6)     # then at least as they are
    assert [threads for what, build, _, threads in asked if (what, build) == ("tests", "3.14t")] == [6, 0]


def test_race_that_one_run_confirms_is_told_once(seen):
    found, _ = seen
    sure = replace(RACE, confirmed=True)
    found["workload", "3.14t"] = replace(WORKED, found=(RACE, replace(RACE, line=9)))
    found["tests", "3.14t"] = replace(CLEAN, found=(sure,))
    assert looked().found == (replace(sure, places=(RACE.place, replace(RACE, line=9).place)),)


def test_races_of_one_variable_are_one_thing_to_mend(seen):
    """Another kind of it, another file or what is there with the GIL is another."""
    found, _ = seen
    others = (replace(RACE, file="b.py"), replace(RACE, variable="sum"), replace(RACE, violation=True))
    pair = replace(RACE, kind="check-then-act", line=11, places=(replace(RACE, line=11).place, RACE.place))
    found["workload", "3.14t"] = replace(WORKED, found=(others[-1], RACE, pair, *others[:-1]))
    both = replace(RACE, kind="lost update", places=(RACE.place, replace(RACE, line=11).place))
    assert looked().found == (both, *others)
    assert both.what == "data race on total (lost update, app.py:3, app.py:11)"


def test_shared_state_is_what_the_workload_shares(seen):
    found, _ = seen
    shared = SharedFact(variable="CACHE", file="a.py", line=1)
    found["workload", "3.14t"] = replace(WORKED, shared=(shared,))
    assert looked().shared == (shared,)


@pytest.mark.parametrize("run_sites", [{}, {"3.14t": Missing(reason="no pip")}])
def test_nowhere_to_look(seen, run_sites):
    found = looked(run_sites=run_sites)
    assert isinstance(found, Missing)
    assert seen[1] == []
    assert found.reason == ("no pip" if run_sites else "no build to run the tests on")


def test_scripts_are_looked_at_as_such(seen, tmp_path):
    script = tmp_path / "load.py"
    script.write_text("")
    seen[0]["workload", "3.14t"] = Missing(reason="gone")
    seen[0]["workload", "3.14"] = Missing(reason="gone")
    assert isinstance(races := looked(workload=str(script)), Races)
    assert races.lacking == (("script", Missing(reason="gone")),)


@pytest.mark.parametrize("run", [suite(passed=None, failed=None, ending="1"), suite(passed=0, errors=3, ending="2")])
@pytest.mark.parametrize("threads", [0, 4])
def test_nothing_is_claimed_of_tests_that_did_not_run(seen, run, threads):
    races = looked(tests=dict.fromkeys(BENCHES, run), threads=threads)
    assert [look.of for look in races.looks] == ["workload"]
    assert ("tests", Missing(reason=f"no test runs on 3.14t (exit code {run.ending})")) in races.lacking
    assert {what for what, *_ in seen[1]} == {"workload"}
