"""A scheduler that lets a client in and does not answer it, or goes away, is an error, not something to wait for."""

import threading
from types import SimpleNamespace

import pytest

from gilscope.toolkit.fleet import connection
from gilscope.toolkit.fleet.connection import Connection, FleetLostError, Worker

A = Worker(name="a", address="tcp://10.0.0.1:1")


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
        monkeypatch.setattr(connection, "dask_distributed", lambda: SimpleNamespace(Client=client_class))
        monkeypatch.setattr(connection, "problem_of", lambda address: "")
        return Connection("tcp://x:1")
    return make


def test_who_is_let_in_and_not_answered_does_not_wait_for_ever(monkeypatch, connect):
    answered = threading.Event()

    class Waiting(Client):
        def __init__(self, *_, **__):
            answered.wait()

    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.01)
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


def test_items_go_only_to_the_hosts_that_are_named(connect):
    asked = []

    class Two(Client):
        status = "running"

        def scheduler_info(self, **_):
            return {"workers": {f"tcp://{name}:1": {"name": name, "resources": {"gilscope": 1}}
                                for name in ("rome", "oslo")}}

        def submit(self, *words, workers, key, **_):
            asked.append(workers)
            answer = SimpleNamespace(key=key, result=lambda timeout: ("tcp://rome:1", words[-1]))
            answer.add_done_callback = lambda call: call(answer)
            return answer

    cluster = connect(Two)
    assert [*cluster.spread(print, ["x", "y"], among=["rome"])] == [("x", "rome", "x"), ("y", "rome", "y")]
    assert [*cluster.spread(print, ["x"])] == [("x", "rome", "x")]
    assert asked == [["tcp://rome:1"], ["tcp://rome:1"], None]


@pytest.mark.slow   # who is still there is looked at each second
def test_items_wait_for_no_host_but_those_that_are_named(connect):
    class Left(Client):
        status = "running"
        names = ("rome", "oslo")

        def scheduler_info(self, **_):
            return {"workers": {f"tcp://{name}:1": {"name": name, "resources": {"gilscope": 1}}
                                for name in self.names}}

        def submit(self, *_, key, **__):
            self.names = ("oslo",)
            return SimpleNamespace(key=key, add_done_callback=lambda call: None, cancel=lambda: None)

    with pytest.raises(FleetLostError, match="the last host of the cluster at tcp://x:1 is gone"):
        [*connect(Left).spread(print, ["x"], among=["rome"])]
