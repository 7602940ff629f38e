"""Turns to measure on a machine: who must be alone is, who need not be is with others of that kind, nobody starves."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gilscope.toolkit.measure import machine_lock as alone
from gilscope.toolkit.measure.machine_lock import HOLDER, MachineLock
from tests.patience import PATIENCE, wait_until


class Measuring(threading.Thread):
    """Holds the lock until `end`."""

    def __init__(self, folder, *, alone, children_join=False):
        super().__init__(daemon=True)
        self.waits, self.has, self.go = threading.Event(), threading.Event(), threading.Event()
        self._machine = MachineLock(
            alone=alone, waiting=self.waits.set, children_join=children_join, folder=str(folder))
        self.start()

    def run(self):
        with self._machine.hold():
            self.has.set()
            assert self.go.wait(PATIENCE)

    def end(self):
        self.go.set()
        self.join(PATIENCE)


@pytest.fixture
def measuring(tmp_path):
    started = []

    def start(**how):
        started.append(Measuring(tmp_path, **how))
        return started[-1]

    yield start
    for each in started:
        each.end()


@pytest.mark.parametrize("first", [True, False])
def test_who_must_be_alone_waits_and_is_waited_for(first, measuring):
    one = measuring(alone=first)
    assert one.has.wait(PATIENCE)
    other = measuring(alone=not first)
    assert other.waits.wait(PATIENCE)
    assert not other.has.is_set()
    one.end()
    assert other.has.wait(PATIENCE)


def test_who_need_not_be_alone_is_not_waited_for(measuring):
    one, other = measuring(alone=False), measuring(alone=False)
    assert one.has.wait(PATIENCE)
    assert other.has.wait(PATIENCE)


NESTED = """
import sys
from gilscope.toolkit.measure.machine_lock import MachineLock
with MachineLock(alone=False, waiting=lambda: print("waits", flush=True), folder=sys.argv[1]).hold():
    print("has", flush=True)
"""


@pytest.mark.parametrize(("still_there", "said"), [(True, "has\n"), (False, "waits\nhas\n")])
def test_what_is_started_while_the_lock_is_held_does_not_wait_behind_who_waits_for_its_end(
        still_there, said, measuring, tmp_path):
    outer = measuring(alone=False, children_join=True)
    assert outer.has.wait(PATIENCE)
    behind = measuring(alone=True)
    assert behind.waits.wait(PATIENCE)
    environment = dict(os.environ)
    if not still_there:   # it was killed, and what it had started lives on
        with subprocess.Popen([sys.executable, "-c", ""]) as gone:
            gone.wait(PATIENCE)
        environment[HOLDER] = str(gone.pid)
    with subprocess.Popen([sys.executable, "-c", NESTED, str(tmp_path)], stdout=subprocess.PIPE, text=True,
                          env=environment) as inner:
        try:
            assert inner.stdout.readline() == said.splitlines(keepends=True)[0]
            outer.end()
            behind.go.set()
            assert inner.stdout.read() == "".join(said.splitlines(keepends=True)[1:])
        finally:
            inner.kill()   # a test that fails is not to wait for who waits for its end


@pytest.mark.parametrize("told", [True, False])
def test_holder_is_told_to_what_may_be_another_gilscope_until_the_lock_is_released(told, tmp_path, monkeypatch):
    monkeypatch.delenv(HOLDER, raising=False)
    with MachineLock(alone=True, waiting=lambda: None, children_join=told, folder=str(tmp_path)).hold():
        assert os.environ.get(HOLDER) == (str(os.getpid()) if told else None)
    assert HOLDER not in os.environ


def test_lock_of_another_users_process_counts(tmp_path, monkeypatch):
    def forbidden(*_):
        raise PermissionError

    monkeypatch.setenv(HOLDER, "1")
    monkeypatch.setattr(alone.os, "kill", forbidden)
    with MachineLock(alone=True, waiting=lambda: None, folder=str(tmp_path)).hold():
        assert list(tmp_path.iterdir()) == []   # nothing is locked inside of it


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="nothing tells who waits for a lock")
def test_turns_go_round(tmp_path):
    # Who lets go and wants it again stands behind who waits: without the queue it would nearly always be first.
    rounds, order, begun = 5, [], threading.Barrier(2)

    def measure(name, other):
        machine = MachineLock(alone=True, waiting=lambda: None, folder=str(tmp_path))
        begun.wait(PATIENCE)
        for _ in range(rounds):
            with machine.hold():
                order.append(name)
                assert wait_until_one_waits(tmp_path, unless=lambda: order.count(other) == rounds)

    threads = [threading.Thread(target=measure, args=names, daemon=True) for names in ("ab", "ba")]
    for each in threads:
        each.start()
    for each in threads:
        each.join(PATIENCE)
    assert order in (["a", "b"] * rounds, ["b", "a"] * rounds)


def wait_until_one_waits(folder, unless):
    """Return whether somebody waits for a lock in `folder`, or nobody will."""
    files = {str(path.stat().st_ino) for path in folder.iterdir()}

    def one_waits():
        lines = Path("/proc/locks").read_text().splitlines()
        return unless() or any("->" in line and line.split()[6].rpartition(":")[2] in files for line in lines)

    return wait_until(one_waits)
