"""`gilscope fleet`: what a cluster has is shown, what would not match is said, and so is who may listen."""

import json

import pytest

import gilscope
from gilscope.toolkit.cli import main
from gilscope.toolkit.fleet.connection import Worker
from tests.fleet.test_fairness import host


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
        return [Worker(name=name, address=f"tcp://{name}:1") for name in self.hosts]

    def versions(self, workers):
        return {each.name: self.hosts[each.name]["gilscope"] for each in workers}

    def facts(self, workers):
        return {each.name: self.hosts[each.name] for each in workers}


@pytest.fixture
def shown(monkeypatch, capfd):
    def call(cluster, *words):
        monkeypatch.setattr("gilscope.toolkit.commands.fleet.Connection", cluster)
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
    assert "2 hosts, and nothing that would not match" in out


def test_hosts_that_do_not(shown):
    cluster = Cluster(rome=host(), oslo=host(pair=[]))
    code, out, _ = shown(cluster, "localhost:8786")
    assert code == 1
    assert "would not match: hosts measure different builds unless --builds names them (rome: 3.14, 3.14t; " in out
    code, out, _ = shown(cluster, "localhost:8786", "--json")
    assert code == 1
    assert list(json.loads(out)["hosts"]) == ["rome", "oslo"]
    assert len(json.loads(out)["differences"]) == 1


def test_an_open_address_is_warned_about(shown):
    _, _, err = shown(Cluster(rome=host()), "tcp://10.0.0.5:8786")
    assert "warning: tcp://10.0.0.5:8786 is not encrypted and not this machine" in err
    _, _, err = shown(Cluster(rome=host()), "tls://10.0.0.5:8786")
    assert err == ""


def test_a_cluster_without_hosts_says_how_to_get_one(shown):
    code, _, err = shown(Cluster(), "tcp://127.0.0.1:8786")
    assert code == 3
    assert "start a worker on each machine that is to measure: dask worker tcp://127.0.0.1:8786 --name NAME" in err
    assert "--resources gilscope=1" in err


def test_other_versions_are_refused(shown):
    code, _, err = shown(Cluster(rome=host(gilscope="0.0.9")), "tcp://127.0.0.1:8786")
    assert code == 2
    assert f"this is gilscope {gilscope.__version__}, and rome has 0.0.9" in err


@pytest.mark.parametrize(("words", "said"), [
    (["tcp://127.0.0.1:1", "--hosts", "2"], "--hosts and --ssh go with start"),
    (["start", "--ssh", "node1", "--hosts", "2"], "leave it out beside --ssh"),
])
def test_options_that_do_not_go_together(words, said, shown):
    code, _, err = shown(Cluster(), *words)
    assert code == 2
    assert said in err


@pytest.mark.parametrize("address", ["bogus", "tcp://rome", "rome:", "tcp://:8786", "a b:1", "rome:8786/x"])
def test_what_is_no_address_is_asked_nothing(shown, address):
    cluster = Cluster(rome=host())
    code, out, err = shown(cluster, address)
    assert (code, out, hasattr(cluster, "address")) == (2, "", False)
    assert "tcp://HOST:PORT" in err
