"""The open-loop HTTP load generator and its back ends: nothing omitted, every failure with its reason, nothing left."""

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager

import pytest

from gilscope.toolkit.experiments.latency import LogHistogram
from gilscope.toolkit.experiments.load import http_generator
from gilscope.toolkit.experiments.load.backend_answers import BACKENDS, merge, merged, part
from gilscope.toolkit.experiments.load.http_generator import LoadGenerator, LoadRequest, answer_defect, growth, parse
from gilscope.toolkit.experiments.load.open_loop import OpenLoopTally
from gilscope.toolkit.units import format_seconds
from gilscope.workloads import server_pages
from tests.conformance.builds import ROOT, environment
from tests.patience import PATIENCE


@contextmanager
def serving(answer):
    """Serve one connection after another in one thread with what `answer(number, head)` returns; yield the address.

    `answer` may return None, so that the connection is closed without one.
    """
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        def run():
            number = 0
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    try:
                        head = connection.recv(4096)
                        if (found := answer(number, head)) is not None:
                            connection.sendall(found)
                    except OSError:
                        pass   # the generator has given up
                number += 1

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(PATIENCE)
            assert not thread.is_alive()


def response(body, status="200 OK"):
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def right(_number, head):
    product = int(head.split(b" ")[1].rpartition(b"/")[2])
    return response(json.dumps(merged(product)).encode())


def load(address, **changes):
    fields = {"users": 4, "rate": 20, "seconds": 0.5, "timeout": PATIENCE, "address": address}
    return asyncio.run(LoadGenerator(LoadRequest(**fields | changes)).run())


def test_requests_of_all_users_are_spread_evenly():
    times = LoadRequest(address="", users=4, rate=2, seconds=3, timeout=1).times()
    assert times == [index / 8 for index in range(24)]   # 4 users x 2/s: one each 1/8 s, for 3 s


def test_right_answers_succeed_and_count_once():
    with serving(right) as address:
        report = load(address)
    assert (report["success"], report["requests"], report["scheduled"], report["failures"]) == (1.0, 40, 40, "")
    assert LogHistogram.decode(report["histogram"]).count == 40


class MadeUpLoop(asyncio.SelectorEventLoop):
    """Passes the time by a clock of its own, which jumps to the next thing to do."""

    now = 0.0

    def __init__(self):
        super().__init__()
        select = self._selector.select

        def jump(seconds):
            self.now += seconds or 0.0
            return select(0 if seconds else seconds)

        self._selector.select = jump

    def time(self):
        return self.now


def test_stall_shows_in_every_latency_that_it_caused(monkeypatch):
    # A server of one thread stalls for 0.5 s with its tenth request: the 40 scheduled meanwhile, 80 a second, wait for
    # its end, the last of them for nothing and the first for nearly all.  A generator that waits for answers sees one.
    idle_from = 0.0

    async def ask(_address, number):
        nonlocal idle_from
        loop = asyncio.get_running_loop()
        idle_from = max(idle_from, loop.time()) + (0.5 if number == 10 else 1e-6)
        await asyncio.sleep(idle_from - loop.time())
        return ""

    monkeypatch.setattr(http_generator, "ask", ask)
    with asyncio.Runner(loop_factory=MadeUpLoop) as runner:
        report = runner.run(LoadGenerator(LoadRequest(address="", users=4, rate=20, seconds=1, timeout=60)).run())
    slow = sum(LogHistogram.decode(report["histogram"]).counts[LogHistogram([0.25]).counts.index(1):])
    assert report["max"] == pytest.approx(0.5, rel=0.01)
    assert slow == pytest.approx(80 * 0.25, abs=3)   # due in the first half of the stall; buckets are 13 % wide
    assert report["p90"] >= 0.25
    assert report["success"] == 1.0


def test_dead_server_answers_nothing_and_the_reason_is_said():
    with socket.socket() as deaf:     # its port is taken, so that no other server of this machine answers
        deaf.bind(("127.0.0.1", 0))
        report = load(f"127.0.0.1:{deaf.getsockname()[1]}")
    assert (report["success"], report["requests"], report["failures"]) == (0.0, 0, "40 x connection refused")
    assert report["p50"] == pytest.approx(PATIENCE)   # a failure is never quick


@pytest.mark.parametrize(("answer", "reason"), [
    (lambda _number, _head: response(b"{}", "500 Internal Server Error"), "status 500"),
    (lambda _number, _head: response(b'{"product": 1}'), "wrong body"),
    (lambda _number, _head: response(b"<html>"), "wrong body"),
    (lambda _number, _head: b"SSH-2.0-OpenSSH\r\n\r\n", "not an HTTP answer"),
    (lambda _number, _head: None, "connection closed before the answer was complete"),
    (lambda _number, _head: b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12", "connection closed before the answer"),
])
def test_wrong_answer_fails_with_its_reason(answer, reason):
    with serving(answer) as address:
        report = load(address, seconds=0.1)
    assert report["success"] == 0.0
    assert report["failures"].startswith(f"8 x {reason}")


@contextmanager
def silent():
    """Accept connections in the backlog and never answer."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def test_server_that_never_answers_does_not_hold_the_generator():
    with silent() as address:
        report = load(address, seconds=0.2, timeout=0.3)
    assert report["failures"] == "16 x no answer within 300 ms"
    assert report["p50"] == pytest.approx(0.3)


def test_no_more_than_allowed_are_in_flight():
    # All are due within 2 ms: who is late sends none of the 13 either, until the first three are given up.
    for timeout in (1.0, 10.0, PATIENCE):
        with silent() as address:
            report = load(address, rate=2000, seconds=0.002, timeout=timeout, most=3)
        if report["failures"].startswith("13 x"):
            break
    assert report["in_flight"] == 3
    assert report["failures"] == f"13 x not sent: 3 were in flight; 3 x no answer within {format_seconds(timeout)}"
    assert "sent 3 of 16 requests" in report["saturated"]


def test_generator_that_cannot_keep_the_rate_says_so():
    with serving(right) as address:
        report = load(address, users=1, rate=1_000_000, seconds=0.0005)   # 500 requests
    assert report["saturated"].startswith("the load generator")


def test_generator_that_uses_a_whole_core_says_so(monkeypatch):
    # As if it had used four times the CPU time that passed, and had been punctual all the same.
    monkeypatch.setattr(http_generator.time, "process_time", lambda: 4 * time.perf_counter())
    monkeypatch.setattr(OpenLoopTally, "_saturated", lambda *_: "")
    with serving(right) as address:
        report = load(address, seconds=0.1)
    assert "of a core" in report["saturated"]


@pytest.mark.parametrize(("received", "expected"), [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", None),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{", None),
    (b"HTTP/1.1 200 OK\r\ncontent-length:2\r\n\r\n{}", (200, b"{}")),
    (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", (404, b"")),
    (b"HTTP/1.1 200 OK\r\n\r\n{}", (0, b"")),            # no length
    (b"HTTP/1.1 OK\r\nContent-Length: 0\r\n\r\n", (0, b"")),
    (b"nonsense\r\n\r\n", (0, b"")),
])
def test_answers_are_parsed(received, expected):
    assert parse(received) == expected


def test_only_the_answer_to_what_was_asked_is_right():
    assert answer_defect(7, 200, json.dumps(merged(7)).encode()) == ""
    assert answer_defect(7, 200, json.dumps(merged(8)).encode()) == "wrong body"


def test_growth_compares_the_last_third_with_the_first():
    rising = [(due, 1.0 + due) for due in range(90)]   # seconds 1..30 first, 61..90 last: medians 15.5 and 75.5
    assert growth(rising[::-1]) == pytest.approx(75.5 / 15.5)
    assert growth(rising[:59]) == 1.0   # thirds of 19


def test_parts_of_another_product_or_back_end_are_not_merged():
    parts = [part(name, 5) for name in BACKENDS]
    assert merge(5, parts) == merged(5)
    with pytest.raises(ValueError, match="product 6"):
        merge(6, parts)
    with pytest.raises(ValueError, match="product 5"):
        merge(5, parts[::-1])


@contextmanager
def helper(module, *words):
    """Start a helper as trials do; afterwards it has ended by itself, as its standard input has, and said nothing."""
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-P", "-m", f"gilscope.toolkit.experiments.load.{module}", *words],
        cwd=ROOT, text=True, env=environment(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=1,
    ) as process:
        try:
            def ask(**fields):
                process.stdin.write(json.dumps(fields) + "\n")
                return json.loads(process.stdout.readline())

            yield json.loads(process.stdout.readline()), ask
            process.stdin.close()
            assert process.wait(PATIENCE) == 0
            assert process.stderr.read() == ""
        finally:
            process.kill()


def test_helper_loads_warms_and_outlives_its_errors():
    with helper("http_generator") as (ready, ask), serving(right) as address:
        assert ready == {"ready": True}
        assert ask(do="warm", address=address, requests=2, each=PATIENCE) == {"requests": 2}
        assert "KeyError" in ask(rate=1)["error"]
        report = ask(do="load", address=address, users=2, rate=10, seconds=0.2, timeout=PATIENCE)
        assert report["success"] == 1.0


def test_warming_a_service_that_is_wrong_is_an_error():
    with helper("http_generator") as (_, ask), serving(lambda *_: response(b"{}")) as address:
        assert "wrong body" in ask(do="warm", address=address, requests=1, each=PATIENCE)["error"]


def get(address, target):
    # A handler of its own: a proxy that the environment names is not asked for loopback addresses.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://{address}{target}", timeout=PATIENCE) as answer:
        return answer.read()


def test_pages_come_after_their_latency_and_are_counted():
    with helper("backends", "pages", "0.2") as (ready, ask):
        began = time.perf_counter()
        assert get(ready["addresses"]["pages"], server_pages.path(3, 20)) == server_pages.page(3, 20)
        assert time.perf_counter() - began >= 0.2
        told = ask(do="reset")
        assert (told["requests"], told["connections"]) == (1, 1)
        assert ask(do="report")["requests"] == 0


def test_each_back_end_knows_its_part_and_nothing_else():
    with helper("backends", "backends", "0") as (ready, _):
        assert list(ready["addresses"]) == list(BACKENDS)
        for name, address in ready["addresses"].items():
            assert json.loads(get(address, "/part/12")) == part(name, 12)
        with pytest.raises(urllib.error.HTTPError, match="404") as refused:
            get(address, "/part/x")
        refused.value.close()   # an answer, too, with a connection behind it
