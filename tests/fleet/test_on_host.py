"""What a host does when it is asked: the child that measures is real here in all but what it runs."""

import json
import signal
import sys
import threading

import pytest

from gilscope.toolkit.fleet import on_host
from gilscope.toolkit.measure.machine import machine_mark
from gilscope.toolkit.measure.run_status import RunStatus, StatusFile
from gilscope.toolkit.processes.supervised import Supervised
from gilscope.toolkit.records import to_plain
from gilscope.toolkit.store import load_run
from gilscope.toolkit.store.transfer_rounds import RoundReceiver, cut_block
from tests.fakes import MACHINE
from tests.fleet.fakes import block, host_answer
from tests.patience import PATIENCE


class Child:
    """Stands for `gilscope run`: a process that waits, whose rounds the test writes."""

    def __init__(self, words, cwd, env, stdout, stderr):
        self.words, self.folder = words, cwd
        self.process = Supervised([sys.executable, "-c", "import signal; signal.pause()"])
        self.poll, self.end_politely = self.process.poll, self.process.end_politely
        stdout.write(b"first\n\nsecond\nthird\nlast words\n")

    def do(self, rounds, **changes):
        with RoundReceiver(self.folder / "results" / on_host.LABEL, on_host.LABEL) as arriving:
            arriving.receive(block(rounds, rounds - 1, **changes))


@pytest.fixture
def children(monkeypatch, tmp_path):
    started = []
    monkeypatch.setattr(on_host, "Supervised", lambda *words, **options: started.append(Child(*words, **options))
                        or started[-1])
    monkeypatch.setattr(on_host.tempfile, "tempdir", str(tmp_path))
    yield started
    for each in [*on_host.SESSIONS]:
        on_host.end(each)
    assert list(tmp_path.iterdir()) == []   # nothing stays of a run


def rounds_of(sent, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sent") / "run"
    with RoundReceiver(folder, "run") as arriving:
        arriving.receive(sent)
        arriving.merge()
    return [one.round for one in load_run(folder).measurements[0].observations]


def test_a_run_begins_and_its_rounds_are_sent_as_they_come(children, tmp_path_factory):
    assert on_host.advance("s", ["noop", "--rounds=4"], 0, wait=0)["block"] == b""
    (child,) = children
    assert child.words[1:] == ["-m", "gilscope", "run", "noop", "--rounds=4", "--label", "fleet", "--take-turns",
                               "--status-file", str(child.folder / "status.json")]
    child.do(1)
    answer = on_host.advance("s", None, 0, wait=PATIENCE)
    assert (answer["state"], answer["last_line"]) == ("running", "last words")
    assert rounds_of(answer["block"], tmp_path_factory) == [0]
    assert on_host.advance("s", None, 1, wait=0)["block"] == b""   # nothing new
    child.do(2)
    assert rounds_of(on_host.advance("s", None, 1, wait=PATIENCE)["block"], tmp_path_factory) == [1]
    assert children == [child]


def test_the_status_of_a_run_is_sent(children):
    assert on_host.advance("s", ["noop"], 0, wait=0)["status"] == to_plain(RunStatus())
    StatusFile(children[0].folder / "status.json").update(round=1, rounds=4, cells=9, seconds_left=12.5)
    assert on_host.advance("s", None, 0, wait=0)["status"] == {
        "round": 1, "rounds": 4, "may_stop": False, "done": 0, "cells": 9, "seconds_left": 12.5, "error": ""}


def test_a_run_of_another_machine_does_not_go_on_here(children):
    answer = on_host.advance("s", ["--rounds=4"], 3, block(3, 0), wait=0)
    assert (answer["state"], answer["code"], children) == ("ended", 2, [])
    assert answer["status"]["error"].startswith("its rounds were measured on Made-up CPU with 8 cores, and this is ")


def test_a_run_goes_on_after_what_was_sent(children, monkeypatch):
    monkeypatch.setattr(on_host, "this_machine", lambda: MACHINE)
    on_host.advance("s", ["--rounds=4"], 3, block(3, 0), wait=0)
    (child,) = children
    assert child.words[3:] == ["run", "--resume", "fleet", "--rounds=4", "--take-turns", "--status-file",
                               str(child.folder / "status.json")]
    assert load_run(child.folder / "results" / "fleet").rounds_done == 3
    assert cut_block(child.folder / "results" / "fleet")


def test_a_child_that_refuses_to_go_on_says_nothing_of_the_rounds_that_were_sent(children, monkeypatch):
    monkeypatch.setattr(on_host, "this_machine", lambda: MACHINE)
    on_host.advance("s", ["--rounds=9"], 4, block(4, 0, stopped="rounds"), wait=0)
    children[0].process.signal_group(signal.SIGKILL)
    answer = on_host.advance("s", None, 4, wait=PATIENCE)
    assert (answer["state"], answer["block"]) == ("ended", b"")


def test_a_run_that_ends_is_told_with_its_last_words_and_forgotten(children):
    on_host.advance("s", ["noop"], 0, wait=0)
    children[0].do(1, stopped="rounds")
    children[0].process.signal_group(signal.SIGKILL)
    answer = on_host.advance("s", None, 1, wait=PATIENCE)
    assert (answer["state"], answer["code"]) == ("ended", -signal.SIGKILL)
    assert on_host.advance("s", None, 1, wait=0) == host_answer("unknown", machine=machine_mark())


def test_a_run_that_nobody_asks_for_is_ended(children, monkeypatch):
    on_host.advance("s", ["noop"], 0, wait=0)
    monkeypatch.setattr(on_host, "LEASE", 0.0)
    for each in threading.enumerate():
        if each.name == "gilscope-lease":
            each.join(PATIENCE)
    assert children[0].poll() is not None
    assert on_host.advance("s", None, 0, wait=0)["state"] == "unknown"
    monkeypatch.setattr(on_host, "LEASE", 60.0)
    assert on_host.advance("s", ["noop"], 0, wait=0)["state"] == "running"   # who comes back begins anew
    assert len(children) == 2


def test_a_run_is_ended_when_nobody_waits_for_the_answer_any_more(children):
    waits = iter([True, True, False])
    on_host.advance("s", ["noop"], 0, wait=PATIENCE, wanted=lambda: next(waits, False))
    assert children[0].poll() is not None
    assert on_host.advance("s", None, 0, wait=0)["state"] == "unknown"


def test_a_run_is_ended_when_its_client_says_so(children):
    on_host.advance("s", ["noop"], 0, wait=0)
    on_host.end("s")
    on_host.end("s")   # and again is no harm
    assert children[0].poll() is not None


def test_what_dask_set_for_itself_does_not_reach_measured_processes():
    of = {"PATH": "/bin", "OMP_NUM_THREADS": "1", "DASK_INTERNAL_INHERIT_CONFIG": "x", "OMP_PROC_BIND": "true"}
    assert on_host.environment(of) == {"PATH": "/bin", "OMP_PROC_BIND": "true"}


def test_what_a_host_tells_of_itself_is_plain():
    facts = on_host.facts()
    assert json.loads(json.dumps(facts)) == facts
    assert {"gilscope", "code", "packages", "machine", "others", "builds", "pair"} <= set(facts)
    assert facts["code"] == on_host.code_sum()
