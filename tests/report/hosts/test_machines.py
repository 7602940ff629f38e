"""Hosts on one machine are counted as one, with the rounds of all."""

import dataclasses
import datetime

import pytest

from gilscope.toolkit.model import Failure, Note
from gilscope.toolkit.report.hosts.agreement import hosts_speedups, measured_host
from gilscope.toolkit.report.hosts.as_json import hosts_values
from gilscope.toolkit.report.hosts.document import hosts_document
from gilscope.toolkit.report.hosts.machines import MachineHosts, merge_runs
from gilscope.toolkit.report.run_document import run_document
from gilscope.toolkit.report.terminal import render
from tests.report.hosts.made_up import STATES, cell, host_run
from tests.report.hosts.test_agreement import banners
from tests.report.test_as_json import check

pytestmark = pytest.mark.newest
ONE = MachineHosts(("host-1", "host-2"))


def merged():
    return merge_runs(ONE, [(name, host_run(name)) for name in ONE.hosts])


@pytest.mark.parametrize(("hosts", "name"), [
    (("a",), "a"), (("a", "b"), "a+b"), (("a", "b", "c"), "a+2 more")])
def test_machine_is_named_after_its_hosts(hosts, name):
    assert MachineHosts(hosts).name == name


def begun(run, starts):
    """Return the run with the start of each of its rounds, in seconds after it began itself."""
    first = datetime.datetime.fromisoformat(run.started).timestamp()
    return dataclasses.replace(run, measurements=tuple(
        dataclasses.replace(each, observations=tuple(
            dataclasses.replace(one, began=(first + starts[one.round], first + starts[one.round] + 0.5))
            for one in each.observations))
        for each in run.measurements))


def test_rounds_are_numbered_in_the_order_in_which_they_began():
    first, second = begun(host_run("host-1", rounds=3), (10, 30, 50)), begun(host_run("host-2", rounds=3), (20, 40, 45))
    failed = dataclasses.replace(second, failures=(Failure(
        cell=cell("threads", 2, "3.14"), kind="crash", reason="it crashed", output="", round=1),))
    run = merge_runs(ONE, [("host-1", first), ("host-2", failed)])
    for found in run.measurements:
        starts = [one.began[0] for one in found.observations]
        assert [one.round for one in found.observations] == [*range(6)]
        assert starts == sorted(starts)
    assert [each.round for each in run.failures] == [3], "of host-1's 0 and 1, and of host-2's 0"


def test_round_without_a_value_comes_last():
    first, second = begun(host_run("host-1", rounds=2), (20, 40)), begun(host_run("host-2", rounds=2), (10, 30))
    lost = dataclasses.replace(
        second, rounds_done=3, failures=(Failure(
            cell=cell("serial", 1, "3.14"), kind="crash", reason="it crashed", output="", round=1),),
        measurements=tuple(
            dataclasses.replace(each, observations=tuple(
                dataclasses.replace(one, round=2 * one.round) for one in each.observations))
            for each in second.measurements))
    run = merge_runs(ONE, [("host-1", first), ("host-2", lost)])
    assert [each.round for each in run.failures] == [4]
    assert {tuple(one.round for one in each.observations) for each in run.measurements} == {(0, 1, 2, 3)}


def test_rounds_without_a_start_follow_those_of_the_host_before():
    run, parts = merged(), [host_run(name) for name in ONE.hosts]
    (found,) = [each for each in run.measurements if each.cell == cell("serial", 1, "3.14") and not each.cell.twin]
    values = [one.wall for part in parts for each in part.measurements
              if each.cell == found.cell for one in each.observations]
    assert [one.wall for one in found.observations] == values
    assert [one.round for one in found.observations] == [*range(16)], "8 of each"
    assert (run.rounds_done, run.rounds_planned, run.label) == (16, 16, "night/host-1+host-2")
    assert run.notes[0].text.startswith("host-1 and host-2 are one machine")


def test_failed_round_of_the_second_host_is_a_later_one():
    failed = dataclasses.replace(host_run("host-2"), failures=(Failure(
        cell=cell("threads", 2, "3.14"), kind="crash", reason="it crashed", output="", round=3),))
    run = merge_runs(ONE, [("host-1", host_run("host-1")), ("host-2", failed)])
    assert [each.round for each in run.failures] == [11]



def test_values_of_other_builds_are_not_put_together():
    first, second = host_run("host-1"), host_run("host-2", rounds=6)
    other = dataclasses.replace(second, builds=(dataclasses.replace(second.builds[0], debug=True), second.builds[1]))
    run = merge_runs(ONE, [("host-1", first), ("host-2", other)])
    assert (run.rounds_done, run.measurements) == (8, first.measurements)
    assert run.notes[0].text == ("host-1 and host-2 are one machine: only the 8 rounds of host-1 count, as host-2 "
                                 "measured other work or other builds")


def test_notes_of_both_are_kept_once():
    runs = [(name, dataclasses.replace(host_run(name), notes=(Note(text="odd builds"),))) for name in ONE.hosts]
    assert [note.text for note in merge_runs(ONE, runs).notes[1:]] == ["odd builds"]


def test_one_machine_counts_once():
    hosts = [measured_host(ONE.name, merged(), ONE.hosts), measured_host("host-4", host_run("host-4"))]
    (found,) = [each for each in hosts_speedups(hosts) if each.sample == cell("subinterpreters", 2, "3.14")]
    assert set(found.by) == {"host-1+host-2", "host-4"}
    assert len(found.agreement.holds) == 2
    found = hosts_document("night", hosts, [state for state in STATES if state.name in {"host-1", "host-2", "host-4"}])
    (said,) = banners(found)
    assert said.endswith("host-1 and host-2 are one machine: their rounds are counted together, as those of one host")
    assert "`gilscope report night/host-1` has" in render(found, width=200)


def test_json_says_which_hosts_are_counted_as_one():
    hosts = [measured_host(ONE.name, merged(), ONE.hosts), measured_host("host-4", host_run("host-4"))]
    values = check(hosts_values("night", hosts, STATES))
    assert {each["name"]: each["counted_as"] for each in values["hosts"]} == {
        "host-1": "host-1+host-2", "host-2": "host-1+host-2", "host-3": None, "host-4": "host-4", "host-5": None}


def test_command_for_more_rounds_is_that_of_the_fleet():
    run = dataclasses.replace(merge_runs(ONE, [(name, host_run(name, rounds=4)) for name in ONE.hosts]), label="night")
    text = " ".join(render(run_document(run), width=400).split())
    assert "gilscope run --resume night --rounds " in text
    assert " --fleet ADDRESS`" in text
