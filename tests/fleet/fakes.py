"""A cluster whose hosts measure nothing and are told when to go away; no process, no clock, no dask."""

import dataclasses
import functools
import tempfile
from collections import deque
from pathlib import Path

import gilscope
from gilscope.toolkit.fleet.dask_cluster import FleetLostError, FleetWorker
from gilscope.toolkit.model import Cell
from gilscope.toolkit.store.transfer_rounds import cut_block
from tests.fakes import RunMaker
from tests.test_store import write

CELLS = [Cell(workload="primes", runner=runner, workers=workers, build="3.14")
         for runner, workers in (("serial", 1), ("subinterpreters", 2))]


@functools.cache
def block(rounds, since, stopped="running", planned=4):
    """Return what a host sends that has done some of its planned rounds."""
    maker = RunMaker(rounds=planned)
    for number, cell in enumerate(CELLS):
        maker.measure(cell, 0.4 + number / 10)
    run = maker.run(("3.14",), rounds_done=rounds, cells=tuple(CELLS), label="fleet", stopped=stopped)
    run = dataclasses.replace(run, measurements=tuple(
        dataclasses.replace(each, observations=each.observations[:rounds]) for each in run.measurements))
    with tempfile.TemporaryDirectory() as folder:
        return cut_block(write(run, Path(folder), label="fleet", results=Path(folder)), since)


def host_answer(state, *, code=None, last_line="", machine="", block=b"", **status):
    """Return the answer of a host whose child has written these fields of its status."""
    return {"state": state, "code": code, "status": status, "last_line": last_line, "machine": machine, "block": block}


class FakeHost:
    """A host that has done the next round as soon as it is asked."""

    def __init__(self, name, planned=4, machine=""):
        self.name, self.planned, self.machine = name, planned, machine
        self.address = f"tcp://{name}:1"
        self.version = gilscope.__version__
        self.sessions = {}     # session: rounds done
        self.began = []        # (command, since) of each begin
        self.unknown = 0       # questions about runs that are not here
        self.ended = []        # sessions that we were told to end
        self.doing = []        # what its child says before it measures, one line for each answer

    def advance(self, session, command, since):
        if session not in self.sessions:
            if command is None:
                self.unknown += 1
                return host_answer("unknown")
            self.sessions[session] = since
            self.began.append((tuple(command), since))
        if self.doing:
            return host_answer("running", last_line=self.doing.pop(0))
        done = self.sessions[session]
        if done >= self.planned:
            return self.over(since)
        self.sessions[session] = done + 1
        return host_answer("running", machine=self.machine, block=block(done + 1, since, planned=self.planned))

    def over(self, since):
        return host_answer("ended", code=0, last_line="bye", machine=self.machine,
                           block=block(self.planned, since, stopped="rounds", planned=self.planned))

    def restart(self):
        """Come back as a new process, which knows nothing."""
        self.sessions.clear()
        self.address += "1"


class FakeCluster:
    """What a `Connection` is to a run; `events` says what happens after how many answers."""

    address = "tcp://scheduler:8786"

    def __init__(self, *hosts, events=None):
        self.hosts = {each.name: each for each in hosts}
        self.events = events or {}
        self.asked = deque()
        self.answers = 0
        self.lost = False
        self.now = 0.0

    def clock(self):
        return self.now

    def workers(self):
        if self.lost:
            raise FleetLostError("the dask scheduler is gone")
        return [FleetWorker(name=each.name, address=each.address) for each in self.hosts.values()]

    def versions(self, workers):
        return {each.name: self.hosts[each.name].version for each in workers}

    def ask(self, worker, session, command, since, sent):
        assert bool(sent) == bool(since and command is not None)
        self.asked.append((worker, session, command, since))

    def next_answer(self, seconds):
        self.now += seconds   # so that who is there is looked at each time
        if self.answers in self.events:
            self.events.pop(self.answers)()
        if not self.asked:
            return None, None
        worker, session, command, since = self.asked.popleft()
        host = self.hosts.get(worker.name)
        if host is None or host.address != worker.address:
            return None, None   # the future of a host that went away never ends
        self.answers += 1
        return worker.name, host.advance(session, command, since)

    def forget(self, name):
        self.asked = deque(each for each in self.asked if each[0].name != name)

    def end(self, sessions):
        for host in self.hosts.values():
            if host.address in sessions:
                host.ended.append(sessions[host.address])
