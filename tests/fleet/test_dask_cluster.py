"""A scheduler that lets a client in and does not answer it, or goes away, is an error, not something to wait for."""

import threading
from types import SimpleNamespace

import pytest

from gilscope.toolkit.fleet import dask_cluster
from gilscope.toolkit.fleet.dask_cluster import Connection, FleetLostError, FleetWorker

A = FleetWorker(name="a", address="tcp://10.0.0.1:1")


class Future:
    """One that ends with the scheduler."""

    def add_done_callback(self, call):
        call(self)

    def result(self, timeout):
        raise RuntimeError("lost connection to the scheduler")


class Client:
    """dask's client of a scheduler that is gone by the time it is asked anything."""

    status = "connecting"

    def __init__(self, *_, **__):
        pass

    def submit(self, *_, **__):
        return Future()

    def scheduler_info(self, **_):
        return {"workers": {}}

    def run(self, *_, **__):
        raise OSError("Timed out during handshake")


@pytest.fixture
def connect(monkeypatch):
    def make(client_class):
        monkeypatch.setattr(dask_cluster, "dask_distributed", lambda: SimpleNamespace(Client=client_class))
        monkeypatch.setattr(dask_cluster, "problem_of", lambda address: "")
        return Connection("tcp://x:1")
    return make


def test_who_is_let_in_and_not_answered_does_not_wait_for_ever(monkeypatch, connect):
    answered = threading.Event()

    class Waiting(Client):
        def __init__(self, *_, **__):
            answered.wait()

    monkeypatch.setattr(dask_cluster, "CONNECT_SECONDS", 0.01)
    with pytest.raises(FleetLostError, match=r"the dask scheduler at tcp://x:1 does not let us in \(TimeoutError\)"):
        connect(Waiting)
    answered.set()


def test_client_that_was_not_let_in_goes_in_silence(connect, recwarn):
    class Refused(Client):
        def __init__(self, *_, **__):
            raise ImportError("Version mismatch\nwith a table")

        def __del__(self):
            raise TimeoutError   # as dask's does, which closes what was never open

    with pytest.raises(FleetLostError, match=r"does not let us in \(ImportError: Version mismatch\)$"):
        connect(Refused)
    assert not recwarn   # pytest makes a warning of what __del__ raises


@pytest.mark.parametrize("ask", [Connection.facts, Connection.versions])
def test_scheduler_that_goes_while_hosts_are_asked_what_they_are_is_gone(ask, connect):
    with pytest.raises(FleetLostError, match="the dask scheduler at tcp://x:1 is gone"):
        ask(connect(Client), [A])


MOST_LOOKS = 1000


class Hosts(Client):
    """dask's client of workers called rome and oslo; `answers` says whether one at an address comes to an answer."""

    status = "running"

    def __init__(self, *_, **__):
        self.addresses = {"rome": "tcp://rome:1", "oslo": "tcp://oslo:1"}
        self.asked, self.looks = [], 0

    def scheduler_info(self, **_):
        self.looks += 1
        if self.looks > MOST_LOOKS:
            pytest.fail("it waits for ever")
        return {"workers": {address: {"name": name, "resources": {"gilscope": 1}}
                            for name, address in self.addresses.items()}}

    def submit(self, *words, workers, **_):
        (address,) = workers
        self.asked.append((address, words[-1]))
        future = SimpleNamespace(result=lambda timeout: words[-1], cancel=lambda: None)
        future.add_done_callback = lambda call: call(future) if self.answers(address) else None
        return future

    def answers(self, address):
        return True


def test_items_go_only_to_the_hosts_that_are_named(connect):
    cluster = connect(Hosts)
    assert [*cluster.spread(print, ["x", "y"], among=["rome"])] == [("x", "rome", "x"), ("y", "rome", "y")]
    assert cluster._client.asked == [("tcp://rome:1", "x"), ("tcp://rome:1", "y")]
    assert sorted(cluster.spread(print, ["x", "y"])) == [("x", "oslo", "x"), ("y", "rome", "y")]


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(dask_cluster, "MEET_SECONDS", 0.0)


def test_items_wait_for_no_host_but_those_that_are_named(connect, at_once, monkeypatch):
    class Left(Hosts):
        def answers(self, address):
            self.addresses.pop("rome", None)
            return False

    monkeypatch.setattr(dask_cluster, "BACK_SECONDS", 0.0)
    with pytest.raises(FleetLostError, match="the last host of the cluster at tcp://x:1 is gone"):
        [*connect(Left).spread(print, ["x"], among=["rome"])]


def test_a_worker_that_its_nanny_starts_again_gets_items_again(connect, at_once):
    class Restarted(Hosts):
        def answers(self, address):
            self.addresses["rome"] = "tcp://rome:2"
            return address != "tcp://rome:1"

    cluster = connect(Restarted)
    assert [*cluster.spread(print, ["x"], among=["rome"])] == [("x", "rome", "x")]
    assert cluster._client.asked == [("tcp://rome:1", "x"), ("tcp://rome:2", "x")]


def test_an_item_that_every_host_dies_of_is_given_up(connect, at_once):
    class Dying(Hosts):
        def answers(self, address):
            self.addresses["rome"] = f"{address}1"
            return False

    (answered,) = connect(Dying).spread(print, ["x"], among=["rome"])
    assert answered[:2] == ("x", "")
    assert str(answered[2]) == "3 hosts went away while they were at it"


def test_an_item_goes_to_nobody_when_the_scheduler_is_gone(connect, at_once):
    class Gone(Hosts):
        def answers(self, address):
            self.status = "closed"
            return False

    with pytest.raises(FleetLostError, match="the dask scheduler at tcp://x:1 is gone"):
        [*connect(Gone).spread(print, ["x"])]
