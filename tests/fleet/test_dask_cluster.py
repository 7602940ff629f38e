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
