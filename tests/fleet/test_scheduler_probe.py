"""What answers at an address and is no dask scheduler is told from one, soon and in a sentence."""

import contextlib
import socket
import threading
from importlib.util import find_spec

import pytest

from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.fleet import scheduler_probe

pytestmark = [pytest.mark.slow, pytest.mark.newest,
              pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed")]


@contextlib.contextmanager
def listening(banner=b""):
    """Yield the address of a service that says this to everybody and then waits."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        visitors = []

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    visitors.append(server.accept()[0])
                    visitors[-1].sendall(banner)

        served = threading.Thread(target=serve)
        served.start()
        try:
            yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            served.join()
            for visitor in visitors:
                visitor.close()


@pytest.mark.parametrize("banner", [
    b"SSH-2.0-OpenSSH_9.2p1\r\n",          # as a length, more than any memory
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    (8).to_bytes(8, "little"),             # the beginning of a message that never comes
    b"",
])
def test_service_of_another_kind_is_no_scheduler(banner, monkeypatch):
    monkeypatch.setattr(scheduler_probe, "ASK_SECONDS", 1.0)
    with listening(banner) as address:
        assert scheduler_probe.problem_of(address) == (
            f"the server at {address} is no dask scheduler, or it requires tls://")


def test_nobody_answers(monkeypatch):
    monkeypatch.setattr(scheduler_probe, "CONNECT_SECONDS", 0.1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))   # and does not listen
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        assert scheduler_probe.problem_of(address).startswith(
            f"no dask scheduler answers at {address}; `gilscope fleet start` ")


def test_worker_is_told_from_its_scheduler():
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, processes=False, protocol="tcp", host="127.0.0.1",
                      dashboard_address="127.0.0.1:0") as made:
        assert scheduler_probe.problem_of(made.scheduler_address) == ""
        (worker,) = made.workers.values()
        problem = scheduler_probe.problem_of(worker.address)
        assert problem.startswith(f"a dask worker answers at {worker.address}, not its ")


@pytest.mark.parametrize(("address", "said"), [
    ("http://127.0.0.1:9", "is not the address of a dask scheduler: write tcp://HOST:PORT"),
    ("tls://127.0.0.1:9", "dask has no TLS certificates configured"),
])
def test_what_dask_cannot_speak_is_the_mistake_of_who_asks(address, said):
    with pytest.raises(ToolkitError, match=said) as refused:
        scheduler_probe.problem_of(address)
    assert refused.value.exit_code == 2


def test_certificates_that_are_not_there_are_said(tmp_path):
    import dask

    with (dask.config.set({"distributed.comm.tls.client.cert": str(tmp_path / "absent.pem"),
                           "distributed.comm.tls.ca-file": str(tmp_path / "absent.pem")}),
          pytest.raises(ToolkitError, match="dask cannot use the TLS certificates that its configuration names")):
        scheduler_probe.problem_of("tls://127.0.0.1:9")
