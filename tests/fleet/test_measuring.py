"""A run on a fleet: rounds are kept as they come, hosts go, come and come back, and none costs another anything."""

import pytest

from gilscope.toolkit.errors import SaveError
from gilscope.toolkit.fleet import measuring
from gilscope.toolkit.fleet.dask_cluster import FleetLostError
from gilscope.toolkit.fleet.measuring import PATIENCE, TRIES, FleetRequest, FleetRun
from gilscope.toolkit.store import Fleet, FleetStore, HostState, load_run, read_fleet
from tests.fleet.fakes import FakeCluster, FakeHost, block, host_answer

BEGIN, AGAIN = ("primes", "--rounds=4"), ("--rounds=4",)


class Fleets:
    """Runs of fleets in a folder."""

    def __init__(self, results):
        self.results = results
        self.said = []

    @property
    def path(self):
        return self.results / "label"

    def go(self, cluster, *, again=(), enough=lambda _path: False):
        if self.path.exists():
            store, before = FleetStore.reopen(self.path)
        else:
            store, before = FleetStore.create("label", self.results), Fleet(hosts=())
        asked = FleetRequest(label="label", command=BEGIN, again=again, enough=enough)
        return FleetRun(cluster, store, before, asked, self.said.append, cluster.clock).go()

    def rounds(self, host):
        return [one.round for one in load_run(self.path / host).measurements[0].observations]

    def states(self):
        return {host.name: host.state for host in read_fleet(self.path).hosts}


@pytest.fixture
def fleets(tmp_path):
    return Fleets(tmp_path)


def test_every_host_measures_all_and_each_has_a_run(fleets):
    hosts = FakeHost("a"), FakeHost("b")
    fleet = fleets.go(FakeCluster(*hosts))
    assert fleet == read_fleet(fleets.path)
    assert fleets.states() == {"a": HostState.FINISHED, "b": HostState.FINISHED}
    assert fleet.command == BEGIN
    for host in hosts:
        assert host.began == [(BEGIN, 0)]
        assert fleets.rounds(host.name) == [0, 1, 2, 3]
        assert load_run(fleets.path / host.name).stopped == "rounds"
        assert load_run(fleets.path / host.name).label == f"label/{host.name}"


def machines(fleet):
    return {host.name: host.machine for host in fleet.hosts}


def test_hosts_of_one_machine_are_kept_as_numbers_alone(fleets):
    fleet = fleets.go(FakeCluster(FakeHost("a", machine="boot-1"), FakeHost("b", machine="boot-2"),
                                  FakeHost("c", machine="boot-1"), FakeHost("d")))
    assert machines(fleet) == {"a": 0, "b": 1, "c": 0, "d": None}, "nobody says where d is"
    assert fleet == read_fleet(fleets.path)
    assert "boot" not in (fleets.path / "fleet.json").read_text()


def test_host_that_joins_after_the_machine_was_started_anew_is_on_it_too(fleets):
    fleets.go(FakeCluster(FakeHost("a", machine="boot-1"), FakeHost("b", machine="boot-2")))
    fleet = fleets.go(FakeCluster(FakeHost("a", planned=6, machine="boot-3"), FakeHost("b", 6, machine="boot-4"),
                                  FakeHost("c", planned=6, machine="boot-3")), again=("--rounds=6",))
    assert machines(fleet) == {"a": 0, "b": 1, "c": 0}


def test_rounds_are_there_as_soon_as_they_are_known(fleets):
    seen = []
    cluster = FakeCluster(FakeHost("a"), events={
        answers: lambda: seen.append((fleets.rounds("a"), fleets.states())) for answers in (1, 2, 3)})
    fleets.go(cluster)
    assert seen == [([*range(done)], {"a": HostState.RUNNING}) for done in (1, 2, 3)]


def test_a_host_that_comes_back_goes_on_after_what_is_kept(fleets):
    host = FakeHost("a")
    fleet = fleets.go(FakeCluster(host, FakeHost("b"), events={5: host.restart}))
    assert {each.state for each in fleet.hosts} == {HostState.FINISHED}
    assert fleets.rounds("a") == [0, 1, 2, 3]
    (first, second) = host.began
    assert first == (BEGIN, 0)
    assert second[0] == ()          # nothing is asked anew of a run that goes on
    assert second[1] >= 2           # and what was kept is not measured again
    assert host.unknown == 0        # a new process is not asked for what only the old one had


def test_a_host_may_go_as_often_as_it_measures_something_in_between(fleets):
    host = FakeHost("a", planned=3 * TRIES)
    fleets.go(FakeCluster(host, events=dict.fromkeys(range(2, 2 + 2 * TRIES), host.restart)))
    assert len(host.began) > TRIES
    assert fleets.states() == {"a": HostState.FINISHED}
    assert fleets.rounds("a") == [*range(3 * TRIES)]


def test_a_host_that_forgot_its_run_is_sent_what_is_kept(fleets):
    host = FakeHost("a")
    fleets.go(FakeCluster(host, events={2: host.sessions.clear}))
    assert [since for _, since in host.began] == [0, 2]
    assert fleets.rounds("a") == [0, 1, 2, 3]


def test_a_host_that_stays_away_is_lost_and_costs_the_others_nothing(fleets):
    cluster = FakeCluster(FakeHost("a"), FakeHost("b"))
    cluster.events = {4: lambda: cluster.hosts.pop("a")}
    fleets.go(cluster)
    assert fleets.states() == {"a": HostState.LOST, "b": HostState.FINISHED}
    assert read_fleet(fleets.path).hosts[0].note == "it went away after 2 rounds"
    assert (fleets.rounds("a"), fleets.rounds("b")) == ([0, 1], [0, 1, 2, 3])
    assert cluster.now >= PATIENCE    # it was waited for


def test_hosts_that_go_and_come_together_are_told_together(fleets):
    hosts = [FakeHost(f"h{number}") for number in range(6)]

    def restart():
        for each in hosts:
            each.restart()

    fleets.go(FakeCluster(*hosts, events={12: restart}))
    assert "h0, h1, h2, h3 and 2 more went away; 12 rounds of them are stored, and they go on when they come back" in (
        fleets.said)
    assert "h0, h1, h2, h3 and 2 more go on after 12 rounds" in fleets.said
    told = [line for line in fleets.said if "finished" in line]
    assert told == ["h0, h1, h2, h3 and 1 more have finished: 20 rounds", "h5 has finished: 4 rounds"]


def test_a_host_that_comes_in_the_middle_measures_too(fleets):
    cluster, late, seen = FakeCluster(FakeHost("a")), FakeHost("late"), []
    cluster.events = {2: lambda: cluster.hosts.update(late=late), 4: lambda: seen.append(fleets.states())}
    fleets.go(cluster)
    assert seen == [{"a": HostState.RUNNING, "late": HostState.RUNNING}]   # a killed client knows of it afterwards
    assert fleets.states() == {"a": HostState.FINISHED, "late": HostState.FINISHED}
    assert fleets.rounds("late") == [0, 1, 2, 3]


def test_a_host_that_comes_with_another_version_is_left_out(fleets):
    cluster, late = FakeCluster(FakeHost("a")), FakeHost("late")
    late.version = "0.0.1"
    cluster.events = {2: lambda: cluster.hosts.update(late=late)}
    fleets.go(cluster)
    assert fleets.states() == {"a": HostState.FINISHED}
    assert ["late has 0.0.1" in line for line in fleets.said if "late" in line] == [True]   # said once
    assert late.began == []


def test_a_scheduler_that_goes_is_an_error_that_says_what_is_kept(fleets):
    cluster = FakeCluster(FakeHost("a"), FakeHost("b"))
    cluster.events = {4: lambda: setattr(cluster, "lost", True)}
    with pytest.raises(FleetLostError) as caught:
        fleets.go(cluster)
    said = str(caught.value)
    assert said.startswith(f"the dask scheduler is gone: {fleets.path} has 5 rounds of 2 hosts. Start it again, and: ")
    assert said.endswith("gilscope run --resume label --fleet tcp://scheduler:8786")
    assert caught.value.exit_code == 3
    assert fleets.states() == {"a": HostState.STOPPED, "b": HostState.STOPPED}


def test_an_interrupted_run_ends_every_host_and_goes_on_later(fleets):
    def interrupt():
        raise KeyboardInterrupt

    hosts = FakeHost("a"), FakeHost("b")
    with pytest.raises(KeyboardInterrupt):
        fleets.go(FakeCluster(*hosts, events={3: interrupt}))
    assert [len(host.ended) for host in hosts] == [1, 1]
    assert fleets.states() == {"a": HostState.STOPPED, "b": HostState.STOPPED}
    kept = {host.name: len(fleets.rounds(host.name)) for host in hosts}
    assert sum(kept.values()) == 3

    anew = FakeHost("a"), FakeHost("b")
    fleets.go(FakeCluster(*anew), again=AGAIN)
    assert [host.began for host in anew] == [[(AGAIN, kept["a"])], [(AGAIN, kept["b"])]]
    assert fleets.states() == {"a": HostState.FINISHED, "b": HostState.FINISHED}
    assert fleets.rounds("a") == fleets.rounds("b") == [0, 1, 2, 3]
    assert read_fleet(fleets.path).command == BEGIN


def test_a_host_that_begins_when_others_go_on_is_told_what_is_wanted_now(fleets):
    fleets.go(FakeCluster(FakeHost("a")))
    late = FakeHost("late")
    fleets.go(FakeCluster(FakeHost("a"), late), again=("--rounds=9", "--timeout=9s"))
    assert late.began == [((*BEGIN, "--rounds=9", "--timeout=9s"), 0)]


def test_what_has_finished_is_not_asked_again_unless_more_is_wanted(fleets):
    cluster = FakeCluster(FakeHost("a"), FakeHost("b"))
    cluster.events = {4: lambda: cluster.hosts.pop("b")}
    fleets.go(cluster)
    again = FakeHost("a"), FakeHost("b")
    fleets.go(FakeCluster(*again))
    assert again[0].began == []
    assert fleets.states() == {"a": HostState.FINISHED, "b": HostState.FINISHED}


def test_a_host_that_refuses_says_why(fleets):
    host = FakeHost("a")
    host.advance = lambda *_: host_answer("ended", code=2, last_line="gilscope: x", error="unknown build '3.99'")
    fleets.go(FakeCluster(host, FakeHost("b")))
    assert [(each.name, each.state, each.note) for each in read_fleet(fleets.path).hosts] == [
        ("a", HostState.STOPPED, "unknown build '3.99'"), ("b", HostState.FINISHED, "")]
    assert "a stopped: unknown build '3.99'" in fleets.said


def test_a_host_that_never_had_a_round_and_is_not_there_is_not_missed(fleets):
    mistaken = FakeHost("wrong")
    mistaken.advance = lambda *_: host_answer("ended", code=2, error="no build there")
    fleets.go(FakeCluster(FakeHost("a", planned=2), FakeHost("b"), mistaken))
    assert fleets.states()["wrong"] is HostState.STOPPED
    fleets.said.clear()
    cluster = FakeCluster(FakeHost("a"), FakeHost("new"))
    fleets.go(cluster, again=AGAIN)
    assert "b is not connected; wrong is left out: not connected, and without a round; new is new" in fleets.said
    assert fleets.states() == {"a": HostState.FINISHED, "b": HostState.LOST, "new": HostState.FINISHED}
    fleets.said.clear()
    fleets.go(FakeCluster(FakeHost("a"), FakeHost("b"), FakeHost("new")), again=AGAIN)
    assert not [line for line in fleets.said if "not connected" in line or "new is new" in line]


@pytest.fixture
def told(fleets, monkeypatch):
    """Return what gives the lines that tell how far a host is, each once; they are said all the time."""
    monkeypatch.setattr(measuring, "REPORT_SECONDS", 0.0)
    return lambda name: [*dict.fromkeys(line for line in fleets.said if line.startswith(f"{name}: "))]


def test_a_host_says_what_it_does_until_it_has_a_round(fleets, told):
    host, cluster = FakeHost("a"), FakeCluster()
    host.doing = ["waiting for another gilscope", "3.14: make an environment"]
    cluster.hosts["a"] = host
    fleets.go(cluster)
    assert told("a") == ["a: waiting for another gilscope", "a: 3.14: make an environment", "a: 1 of 4 rounds",
                         "a: 2 of 4 rounds", "a: 3 of 4 rounds", "a: 4 of 4 rounds"]


def test_hosts_that_do_the_same_are_told_together(fleets, told):
    hosts = [FakeHost(name) for name in "abc"]
    for host in hosts:
        host.doing = ["waiting for another gilscope"] * 3
    hosts[1].doing[1] = "9 cells, 4 rounds"
    fleets.go(FakeCluster(*hosts))
    assert "a, b and c: waiting for another gilscope" in fleets.said
    assert "a and c: waiting for another gilscope; b: 9 cells, 4 rounds" in fleets.said


def test_what_has_not_changed_is_said_again_after_minutes_only(fleets, told):
    host = FakeHost("a")
    host.doing = ["waiting for another gilscope"] * 5
    cluster = FakeCluster(host)
    answer = cluster.next_answer

    def later(timeout):
        cluster.now += measuring.STILL_SECONDS / 4
        return answer(timeout)

    cluster.next_answer = later
    fleets.go(cluster)
    assert fleets.said.count("a: waiting for another gilscope") == 2
    assert fleets.said.count("a: 4 of 4 rounds") == 1


def test_a_host_with_rounds_says_how_long_it_takes(fleets, told):
    host = FakeHost("a")
    advance, seconds_left = host.advance, iter([None, 303.0, None, None, None])
    host.advance = lambda *asked: advance(*asked) | {"status": {"seconds_left": next(seconds_left)}}
    fleets.go(FakeCluster(host))
    assert "a: 2 of 4 rounds (about 5 min 03 s left)" in told("a")


def test_a_host_in_its_first_round_says_how_far_it_is(fleets, told):
    host = FakeHost("a")
    host.doing = ["primes serial"]
    advance, status = host.advance, {"round": 1, "rounds": 4, "done": 3, "cells": 9, "seconds_left": 61.0}
    host.advance = lambda *asked: advance(*asked) | {"status": status}
    fleets.go(FakeCluster(host))
    assert told("a")[0] == "a: round 1 of 4, 3 of 9 cells (about 1 min 01 s left)"


def test_a_host_that_may_stop_early_promises_no_rounds(fleets, told):
    host = FakeHost("a")
    host.doing = ["primes serial"]
    advance, status = host.advance, {"round": 1, "rounds": 12, "may_stop": True, "cells": 9, "seconds_left": 61.0}
    host.advance = lambda *asked: advance(*asked) | {"status": status}
    fleets.go(FakeCluster(host))
    assert told("a")[0] == "a: round 1, up to 12, 0 of 9 cells (at most about 1 min 01 s left)"


def test_of_many_hosts_the_slowest_says_what_it_does(fleets, told):
    hosts = [FakeHost(f"h{number}") for number in range(6)]
    hosts[3].doing = ["3.14: make an environment"] * 3
    fleets.go(FakeCluster(*hosts))
    assert "8 rounds on 6 hosts; 6 still measure, h3: 3.14: make an environment" in fleets.said


def test_a_host_that_does_not_answer_may_be_busy(fleets, told):
    cluster = FakeCluster(FakeHost("a"))
    answer = cluster.next_answer

    def silent(_):
        cluster.next_answer = answer
        return None, None

    cluster.next_answer = silent
    fleets.go(cluster)
    assert told("a")[0] == "a: no answer yet: another run may keep it busy"


def test_rounds_are_counted_of_what_is_asked_now(fleets, told):
    fleets.go(FakeCluster(FakeHost("a", planned=2)))
    fleets.said.clear()
    host = FakeHost("a", planned=4)
    host.doing = ["going on"]
    fleets.go(FakeCluster(host), again=AGAIN)
    assert told("a") == ["a: going on", "a: 3 of 4 rounds", "a: 4 of 4 rounds"]


def test_why_a_host_did_not_finish_is_said_once(fleets):
    gone, refuses, fails = FakeHost("gone"), FakeHost("refuses"), FakeHost("fails")
    refuses.advance = lambda *_: host_answer("ended", code=2, error="no build there")
    fails.advance = lambda *_: ValueError("what came was no task")
    cluster = FakeCluster(gone, refuses, fails)
    cluster.events = {6: lambda: cluster.hosts.pop("gone")}
    fleets.go(cluster)
    assert [sum(why in line for line in fleets.said) for why in (
        "no build there", "what came was no task", "gone lost: it went away")] == [1, 1, 1]
    assert "waiting for gone to come back" in fleets.said


@pytest.mark.parametrize("code", [2, 3])
def test_a_host_that_refuses_to_go_on_has_not_finished_by_what_it_had_before(code, fleets):
    fleets.go(FakeCluster(FakeHost("a")))
    host = FakeHost("a")
    host.advance = lambda *_: host_answer("ended", code=code, error="its rounds are another's")
    fleets.go(FakeCluster(host), again=("--rounds=9",))
    (a,) = read_fleet(fleets.path).hosts
    assert (a.state, a.note) == (HostState.STOPPED, "its rounds are another's")
    assert "a has finished: 4 rounds" not in fleets.said[fleets.said.index("a goes on after 4 rounds"):]


def test_a_host_that_has_enough_is_not_asked(fleets):
    cluster = FakeCluster(FakeHost("a"), FakeHost("b"))
    cluster.events = {4: lambda: cluster.hosts.pop("b")}
    fleets.go(cluster)
    again = FakeHost("b")   # a, which has enough, need not even be there
    fleets.go(FakeCluster(again), again=("--rounds=4",), enough=lambda path: load_run(path).rounds_done >= 4)
    assert again.began == [(("--rounds=4",), 2)]
    assert fleets.states() == {"a": HostState.FINISHED, "b": HostState.FINISHED}


def test_a_host_that_goes_away_before_it_says_that_it_has_ended_has_finished(fleets):
    host = FakeHost("a")
    fleets.go(FakeCluster(host, events={4: host.restart}), enough=lambda path: load_run(path).rounds_done >= 4)
    assert host.began == [(BEGIN, 0)]
    assert fleets.states() == {"a": HostState.FINISHED}


@pytest.mark.parametrize("answer", [
    ValueError("what came was no task"),
    host_answer("ended", code=-9),
    host_answer("running", block=b"no block"),
])
def test_a_host_that_fails_again_and_again_is_given_up(answer, fleets):
    asked = []
    host = FakeHost("a")
    host.advance = lambda *_: asked.append(1) or answer
    fleets.go(FakeCluster(host, FakeHost("b")))
    assert len(asked) == TRIES
    assert fleets.states() == {"a": HostState.LOST, "b": HostState.FINISHED}


def test_a_full_disk_ends_the_run_and_the_hosts(fleets):
    host = FakeHost("a")
    with pytest.raises(SaveError):
        fleets.go(FakeCluster(host, events={2: lambda: (fleets.path / "a" / ".blocks").write_text("in the way")}))
    assert len(host.ended) == 1
    assert fleets.rounds("a") == [0, 1]


def test_block_of_the_fakes_is_one():
    assert block(1, 0) != block(2, 1)
