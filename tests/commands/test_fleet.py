"""`gilscope fleet`: what a cluster has is shown, what would not match is said, and so is who may listen."""

import json
import re
import sys

import pytest

import gilscope
from gilscope.toolkit.cli import main
from gilscope.toolkit.commands.fleet.cluster import meet_ours
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.fleet.dask_cluster import FleetLostError, FleetWorker
from tests.fleet.test_host_differences import host


class Cluster:
    """Stands for a connection to hosts that tell these facts."""

    def __init__(self, **facts):
        self.hosts = facts

    def __call__(self, address):
        self.address = address
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def workers(self):
        return [FleetWorker(name=name, address=f"tcp://{name}:1") for name in self.hosts]

    def versions(self, workers):
        return {each.name: self.hosts[each.name]["gilscope"] for each in workers}

    def facts(self, workers):
        return {each.name: self.hosts[each.name] for each in workers if self.hosts[each.name]["pair"] is not None}

    def notes(self):
        return ["1 worker has no resources"]


@pytest.fixture
def shown(monkeypatch, capfd):
    def call(cluster, *words):
        monkeypatch.setattr("gilscope.toolkit.commands.fleet.command.Connection", cluster)
        code = main(["fleet", *words])
        return code, *capfd.readouterr()
    return call


def test_hosts_that_match(shown):
    code, out, err = shown(Cluster(rome=host(), oslo=host(others=1.5)), "tcp://127.0.0.1:8786")
    assert (code, err) == (0, "")
    assert "rome" in out
    assert "Made-up CPU" in out
    assert "3.14, 3.14t" in out
    assert "1.5 cores (busy)" in out
    assert "2 hosts; all match" in out


def test_hosts_that_do_not(shown):
    cluster = Cluster(rome=host(), oslo=host(pair=[]))
    code, out, _ = shown(cluster, "localhost:8786")
    assert code == 1
    assert "differs: hosts measure different builds unless --builds names them (rome: 3.14, 3.14t; " in out
    code, out, _ = shown(cluster, "localhost:8786", "--json")
    assert code == 1
    assert list(json.loads(out)["hosts"]) == ["rome", "oslo"]
    assert len(json.loads(out)["differences"]) == 1


def test_an_open_address_is_warned_about(shown):
    _, _, err = shown(Cluster(rome=host()), "tcp://10.0.0.5:8786")
    assert "warning: tcp://10.0.0.5:8786 is not encrypted and can be reached from other machines" in err
    _, _, err = shown(Cluster(rome=host()), "tls://10.0.0.5:8786")
    assert err == ""


def test_a_cluster_without_hosts_says_how_to_get_one(shown):
    code, _, err = shown(Cluster(), "tcp://127.0.0.1:8786")
    assert code == 3
    assert "start a worker on each machine that is to measure: dask worker tcp://127.0.0.1:8786 --name NAME" in err
    assert "has no host; 1 worker has no resources: start" in err
    assert "--resources gilscope=1" in err


def test_other_version_is_a_row_of_the_table(shown):
    cluster = Cluster(rome=host(gilscope=gilscope.__version__), newer=host(gilscope="9.9"))
    code, out, _ = shown(cluster, "tcp://127.0.0.1:8786")
    assert code == 1
    assert re.search(rf"^newer +not asked .* 9\.9 \(not {re.escape(gilscope.__version__)}\)$", out, re.MULTILINE), out
    assert re.search(r"^rome .*Made-up CPU", out, re.MULTILINE), out
    assert f"differs: this is gilscope {gilscope.__version__}, and newer has 9.9: hosts run" in out
    code, out, _ = shown(cluster, "tcp://127.0.0.1:8786", "--json")
    assert (code, json.loads(out)["others"], [*json.loads(out)["hosts"]]) == (1, {"newer": "9.9"}, ["rome"])


def test_fleet_of_other_versions_alone_is_shown(shown):
    code, out, _ = shown(Cluster(rome=host(gilscope="")), "tcp://127.0.0.1:8786")
    assert code == 1
    assert "rome has none: hosts run their own gilscope" in out


def test_who_is_no_host_or_does_not_answer_is_told(shown):
    _, out, _ = shown(Cluster(rome=host(), silent=host(pair=None)), "tcp://127.0.0.1:8786")
    assert "1 worker has no resources\n" in out
    assert "no answer from silent\n" in out


def test_hosts_that_are_one_machine_are_named(shown):
    elsewhere = host(machine=host()["machine"] | {"hostname": "another"})
    _, out, _ = shown(Cluster(rome=host(), oslo=host(), bonn=elsewhere), "tcp://127.0.0.1:8786")
    assert "rome and oslo are on one machine, and measure in turn\n" in out


def test_whom_a_command_goes_on_with(capfd):
    rome, newer = host(gilscope=gilscope.__version__), host(gilscope="9.9")
    mixed = Cluster(rome=rome, newer=newer)("tcp://x:1")
    met = meet_ours(mixed)
    assert ([*met.facts], met.others) == (["rome"], {"newer": "9.9"})
    assert capfd.readouterr().err == "1 worker has no resources\n"
    with pytest.raises(ToolkitError, match=r"newer has 9\.9"):
        meet_ours(mixed, strict=True)
    with pytest.raises(ToolkitError, match=r"newer has 9\.9"):
        meet_ours(Cluster(newer=newer)("tcp://x:1"))
    with pytest.raises(FleetLostError, match=r"no host of the cluster at tcp://x:1 answers"):
        meet_ours(Cluster(silent=rome | {"pair": None})("tcp://x:1"))


@pytest.mark.parametrize("where", ["local", "local:2"])
def test_what_run_starts_is_not_looked_for(where, shown):
    code, out, err = shown(Cluster(), where)
    assert (code, out) == (2, "")
    assert f"{where} is started by the command that uses it: gilscope run --fleet {where}." in err


@pytest.mark.parametrize(("words", "said"), [
    (["tcp://127.0.0.1:1", "--hosts", "2"], "--hosts, --port and --ssh go with start"),
    (["tcp://127.0.0.1:1", "--port", "0"], "--hosts, --port and --ssh go with start"),
    (["start", "--ssh", "node1", "--hosts", "2"], "leave them out beside --ssh"),
    (["start", "--ssh", "node1", "--port", "0"], "leave them out beside --ssh"),
    (["start", "--json"], "gilscope fleet ADDRESS --json"),
])
def test_options_that_do_not_go_together(words, said, shown):
    code, _, err = shown(Cluster(), *words)
    assert code == 2
    assert said in err


@pytest.mark.parametrize("port", ["65536", "-1", "x"])
def test_what_is_no_port_is_refused(port, capfd):
    with pytest.raises(SystemExit, match="2"):
        main(["fleet", "start", f"--port={port}"])
    assert f"'{port}' is no port: write a number from 0, for any free port, to 65535" in capfd.readouterr().err


@pytest.mark.parametrize("words", [
    ["fleet", "start"], ["fleet", "tcp://127.0.0.1:1"], ["run", "primes", "--fleet", "local:2"],
    ["run", "primes", "--fleet", "tcp://127.0.0.1:1"],
])
def test_who_lacks_the_extra_is_told_how_to_get_it(words, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "distributed", None)   # as if it was not installed
    assert main(words) == 2
    said = capfd.readouterr().err
    assert "not installed: pip install 'gilscope[fleet]' (in a checkout: pip install '.[fleet]')" in said


@pytest.mark.parametrize("address", ["bogus", "tcp://rome", "rome:", "tcp://:8786", "a b:1", "rome:8786/x"])
def test_what_is_no_address_is_asked_nothing(shown, address):
    cluster = Cluster(rome=host())
    code, out, err = shown(cluster, address)
    assert (code, out, hasattr(cluster, "address")) == (2, "", False)
    assert "tcp://HOST:PORT" in err
