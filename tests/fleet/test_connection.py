"""A scheduler that lets a client in and does not answer it is an error, not something to wait for."""

import threading
from types import SimpleNamespace

import pytest

from gilscope.toolkit.fleet import connection


def test_who_is_let_in_and_not_answered_does_not_wait_for_ever(monkeypatch):
    class ClosedError(Exception):
        pass

    answered = threading.Event()
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.01)
    dask = SimpleNamespace(Client=lambda *_, **__: answered.wait(),
                           comm=SimpleNamespace(core=SimpleNamespace(CommClosedError=ClosedError)))
    monkeypatch.setattr(connection, "_distributed", lambda: dask)
    with pytest.raises(connection.FleetLostError, match=r"no dask scheduler answers at tcp://x:1 \(TimeoutError\)"):
        connection.Connection("tcp://x:1")
    answered.set()
