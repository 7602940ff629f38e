"""Fleets for real: a scheduler, workers and measured processes; killed, interrupted and gone on with."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from gilscope.toolkit.fleet.start_dask import quiet_variables, worker_command
from gilscope.toolkit.measure.machine_lock import MachineLock
from gilscope.toolkit.processes.supervised import Supervised
from gilscope.toolkit.store import load_run, read_fleet
from tests.conformance.builds import ROOT
from tests.fleet.test_scheduler_probe import listening
from tests.measure.children import MARK, still_alive
from tests.patience import PATIENCE, wait_until
from tests.test_run_end_to_end import Folder

pytestmark = [pytest.mark.slow, pytest.mark.newest,
              # Not imported here: that takes half a second, in each process that collects tests.
              pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed")]

LITTLE = ["noop", "--build", f"host={sys.executable}", "--models", "serial", "--size", "small"]


class Fleets(Folder):
    """A user's folder, `gilscope` called in it, and clusters that it starts."""

    def start(self, *argv, **environment):
        # Nobody else's measuring is waited for, and nobody waits for ours.
        return super().start(*argv, **{"GILSCOPE_MACHINE": str(self.temporary), "PYTHONUNBUFFERED": "1", **environment})

    @contextlib.contextmanager
    def cluster(self, hosts=2, **environment):
        """Yield the address of a cluster and the command that started it."""
        with self.start("fleet", "start", "--hosts", str(hosts), "--port", "0", **environment) as starting:
            try:
                address = re.search(r"at (tcp://\S+)", starting.stdout.readline())[1]
                wait_until(lambda: len(self.workers()) == hosts, starting)
                yield address, starting
            finally:
                starting.send_signal(signal.SIGINT)
                starting.communicate(timeout=PATIENCE)

    @contextlib.contextmanager
    def running(self, *argv, address, label):
        """Yield `gilscope run` on a fleet, which does not outlive a test that fails."""
        with self.start("run", *LITTLE, *argv, "--fleet", address, "--label", label) as running:
            try:
                yield running
            finally:
                running.kill()

    def dask(self, command, at=(), **environment):
        """Return one of dask's commands, started; it ends with the block."""
        own = {"TMPDIR": str(self.temporary), "GILSCOPE_MACHINE": str(self.temporary), "PYTHONPATH": str(ROOT),
               MARK: self.mark}
        return Supervised([*at, sys.executable, "-m", *command], cwd=self.temporary,
                          env=os.environ | quiet_variables() | own | environment)

    def workers(self):
        """Return the ids of the processes of `dask worker`, by name of host, which have told the scheduler of them."""
        return dict(self.processes(r"dask\0worker\0.*--name\0(host-\d+)\0"))

    def processes(self, pattern):
        """Yield what `pattern` finds in the command lines of our processes, as `python -m ...`, with their ids."""
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if ((found := re.match(rf"[^\0]+\0-m\0{pattern}", (folder / "cmdline").read_text()))
                        and f"{MARK}={self.mark}" in (folder / "environ").read_text(errors="replace")):
                    yield found[1], int(folder.name)

    def fleet(self, label):
        return read_fleet(self.path / "results" / label)

    def rounds(self, label, host):
        """Return the rounds that each cell of a host has, once for all cells."""
        run = load_run(self.path / "results" / label / host)
        (rounds,) = {tuple(one.round for one in each.observations) for each in run.measurements}
        return rounds

    def values(self, label, host):
        """Return the values that a host has, by cell and round."""
        run = load_run(self.path / "results" / label / host)
        return {(each.cell, one.round): one.wall for each in run.measurements for one in each.observations}

    def wait_for_rounds(self, label, host, rounds, command):
        file = self.path / "results" / label / host / "run.json"
        wait_until(lambda: file.exists() and json.loads(file.read_text())["rounds_done"] >= rounds, command)


@pytest.fixture
def fleets(tmp_path, tmp_path_factory):
    made = Fleets(tmp_path, tmp_path_factory.mktemp("temporary"))
    yield made
    assert not still_alive(made.mark)


def states(fleet):
    return {host.name: str(host.state) for host in fleet.hosts}


def test_two_hosts_on_this_machine(fleets):
    code, out, err = fleets.call("run", *LITTLE, "--rounds", "2", "--fleet", "local:2", "--label", "two")
    assert code == 0, err
    assert states(fleets.fleet("two")) == {"host-1": "finished", "host-2": "finished"}
    for host in ("host-1", "host-2"):
        assert fleets.rounds("two", host) == (0, 1)
        code, shown, _ = fleets.call("report", f"two/{host}")
        assert code == 0
        assert "noop" in shown
    assert "4 rounds" in out   # of both
    assert "are one machine: their rounds are counted together" in " ".join(out.split())
    assert not list(fleets.temporary.glob("gilscope-*-*"))   # the lock stays, nothing else
    code, _, err = fleets.call("run", *LITTLE, "--rounds", "2", "--fleet", "local:2", "--label", "two")
    assert code == 2
    assert "two exists already" in err


def test_hosts_are_shown_and_asked_for_more(fleets):
    with fleets.cluster() as (address, _):
        code, out, err = fleets.call("fleet", address, "--json")
        shown = json.loads(out)
        assert (code, shown["differences"]) == (0, []), err
        assert list(shown["hosts"]) == ["host-1", "host-2"]
        assert fleets.call("run", *LITTLE, "--rounds", "1", "--fleet", address, "--label", "more")[0] == 0
        code, _, err = fleets.call("run", "--resume", "more", "--rounds", "3", "--fleet", address)
        assert code == 0, err
        assert fleets.rounds("more", "host-1") == fleets.rounds("more", "host-2") == (0, 1, 2)
        code, _, err = fleets.call("run", "nothing", "--fleet", address, "--label", "no")
        assert code == 2
        assert "unknown workload 'nothing'" in err
        code, _, err = fleets.call("run", "noop", "--builds", "9.9", "--fleet", address, "--label", "no")
        assert code == 3
        assert re.search(r"host-1 stopped: .*9\.9", err), err


def test_host_that_is_killed_comes_back_and_goes_on(fleets):
    with fleets.cluster() as (address, _):
        with fleets.running("--rounds", "6", address=address, label="killed") as running:
            fleets.wait_for_rounds("killed", "host-1", 2, running)
            kept = fleets.values("killed", "host-1")
            (child,) = children(fleets.workers()["host-1"])
            os.kill(child, signal.SIGKILL)   # its nanny starts another
            _, err = running.communicate(timeout=PATIENCE)
        assert running.returncode == 0, err
        assert "host-1 went away" in err
        assert "host-1 goes on after" in err
        assert fleets.rounds("killed", "host-1") == fleets.rounds("killed", "host-2") == tuple(range(6))
        assert kept.items() <= fleets.values("killed", "host-1").items()   # and they were not measured again


def children(pid):
    """Return the processes that `pid` has started and that are workers: dask's tracker of resources is none."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += map(int, (task / "children").read_text().split())
    return [each for each in found if "spawn_main" in Path(f"/proc/{each}/cmdline").read_text()]


@pytest.mark.parametrize("victim", ["scheduler", "client"])
def test_what_was_measured_survives_a_kill(victim, fleets):
    with fleets.cluster() as (address, starting):
        with fleets.running("--rounds", "50", address=address, label="kept") as running:
            fleets.wait_for_rounds("kept", "host-1", 2, running)
            fleets.wait_for_rounds("kept", "host-2", 1, running)
            if victim == "client":
                running.kill()
            else:
                ((_, scheduler),) = fleets.processes(r"dask\0(scheduler)\0")
                os.kill(scheduler, signal.SIGKILL)
            _, err = running.communicate(timeout=PATIENCE)
        if victim == "scheduler":
            assert running.returncode == 3, err
            said = r"the dask scheduler at \S+ is gone: results/kept has \d+ rounds of 2 hosts\."
            assert re.search(said, err), err
            assert not re.search("distributed|reconnect|Traceback", err), err   # dask's own complaints
            starting.wait(PATIENCE)
            assert not [pid for _, pid in fleets.processes(r"dask\0(worker|scheduler)\0")]
    before = {host: fleets.rounds("kept", host) for host in states(fleets.fleet("kept"))}
    assert len(before["host-1"]) >= 2
    most = max(map(len, before.values())) + 1
    with fleets.cluster() as (address, _):
        code, _, err = fleets.call("run", "--resume", "kept", "--rounds", str(most), "--fleet", address)
    assert code == 0, err
    assert fleets.rounds("kept", "host-1") == fleets.rounds("kept", "host-2") == tuple(range(most))


ASKS = """
import sys, time
from gilscope.toolkit.fleet.dask_cluster import Connection
cluster = Connection(sys.argv[1])
cluster.ask(*cluster.workers(), "session", sys.argv[2:], 1000, b"")   # which is not answered for 10 s
time.sleep(600)
"""


def test_a_host_ends_its_run_when_the_client_that_waits_for_it_is_killed(fleets, tmp_path):
    def measured():
        return [*fleets.processes(r"(gilscope)\0run\0noop.*--take-turns")]

    # Then the run does not end because nobody has asked for so long.
    (preload := tmp_path / "without_lease.py").write_text(
        "from gilscope.toolkit.fleet import on_host\non_host.LEASE = float('inf')\n")
    with fleets.cluster(hosts=1, DASK_DISTRIBUTED__WORKER__PRELOAD=str(preload)) as (address, starting):
        with subprocess.Popen([sys.executable, "-c", ASKS, address, *LITTLE, "--rounds", "1000"],
                              env=os.environ | {"PYTHONPATH": str(ROOT)}) as client:
            wait_until(measured, client)
            client.kill()
        assert wait_until(lambda: not measured(), starting)


def test_host_that_is_added_in_the_middle_measures_too(fleets):
    alone = MachineLock(alone=True, waiting=lambda: None, folder=str(fleets.temporary))
    with (fleets.cluster(hosts=1) as (address, _),
          fleets.running("--rounds", "3", address=address, label="more") as running):
        fleets.wait_for_rounds("more", "host-1", 1, running)
        with contextlib.ExitStack() as nobody_measures:
            nobody_measures.enter_context(alone.hold())
            with fleets.dask(worker_command(address, "late")):
                wait_until(lambda: "late" in states(fleets.fleet("more")), running)
                nobody_measures.close()
                _, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, err
    assert states(fleets.fleet("more")) == {"host-1": "finished", "late": "finished"}
    assert fleets.rounds("more", "host-1") == fleets.rounds("more", "late") == (0, 1, 2)


def test_interrupt_ends_everything_on_every_host(fleets):
    with fleets.cluster() as (address, _):
        with fleets.running("--rounds", "50", address=address, label="stopped") as running:
            fleets.wait_for_rounds("stopped", "host-1", 1, running)
            running.send_signal(signal.SIGINT)
            _, err = running.communicate(timeout=PATIENCE)
        assert running.returncode == 130, err
        assert "gilscope run --resume stopped --fleet" in err
        # The workers live; of what they measured nothing does.
        assert not [pid for _, pid in fleets.processes(r"(gilscope)\0run\0noop")]
        assert set(states(fleets.fleet("stopped")).values()) == {"stopped"}
        assert sorted(fleets.workers()) == ["host-1", "host-2"]


def test_another_version_on_the_hosts_is_refused(fleets, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "gilscope-9.9.dist-info").mkdir()
    (other / "gilscope-9.9.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: gilscope\nVersion: 9.9\n")
    with fleets.cluster(hosts=1, PYTHONPATH=f"{other}{os.pathsep}{ROOT}") as (address, _):
        code, _, err = fleets.call("run", *LITTLE, "--fleet", address, "--label", "no")
    assert code == 2
    assert "host-1 has 9.9" in err
    assert not (fleets.path / "results").exists()


def test_what_is_no_scheduler_is_refused_in_one_line(fleets):
    with listening(b"SSH-2.0-OpenSSH_9.2p1\r\n") as address:
        code, out, err = fleets.call("fleet", address)
    assert (code, out) == (3, "")
    assert re.fullmatch(r"gilscope: the server at \S+ is no dask scheduler, .*\n", err), err


def test_port_that_is_taken_is_the_reason(fleets):
    with listening() as address:
        code, _, err = fleets.call("fleet", "start", "--port", address.rpartition(":")[2])
    assert code == 3
    assert re.search(r"the scheduler did not start: OSError: \[Errno \d+\] .*already in use", err), err


def test_nobody_answers(fleets):
    code, _, err = fleets.call("fleet", "tcp://127.0.0.1:9")
    assert code == 3
    assert "no dask scheduler answers at tcp://127.0.0.1:9" in err
