"""The echo server, what burns beside it, and the client that asks it: nothing omitted, nothing left behind."""

import json
import socket
import subprocess
import sys
import threading
from collections import deque
from contextlib import contextmanager, suppress
from math import inf

import pytest

from gilscope.toolkit.experiments.helpers.echo import EchoServer, serving
from gilscope.toolkit.experiments.latency import LogHistogram
from gilscope.toolkit.experiments.load import echo_client
from gilscope.toolkit.experiments.load.echo_client import closed_loop, open_loop, typical
from gilscope.toolkit.experiments.load.open_loop import OpenLoopTally, schedule
from tests.conformance.builds import ROOT, environment, run_child
from tests.patience import PATIENCE


@contextmanager
def connected(serve):
    """Give a connection whose other end is `serve(connection)` in a thread; both have ended afterwards."""
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)   # room for all requests of a test at once

    def run():
        with theirs:
            serve(theirs)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        with ours:
            yield ours
    finally:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def echo(connection, before=lambda number: None):
    """Answer each request after `before(its number)`."""
    number = 0
    with suppress(ConnectionError):   # the client has gone
        while request := connection.recv(1):
            number += 1
            before(number)
            connection.sendall(request)


def slower_than(report, seconds):
    """Return how many of a report's requests took longer than the bucket of `seconds`."""
    histogram = LogHistogram.decode(report["histogram"])
    only = LogHistogram([seconds])
    return sum(histogram.counts[only.counts.index(1) + 1:])


# --- the server


def test_server_answers_several_clients_and_ends_all_of_them():
    with serving() as port:
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
        for place, client in enumerate(clients):
            client.sendall(b"%d" % place)
        assert [client.recv(1) for client in clients] == [b"0", b"1", b"2"]
        clients[0].close()
    assert [client.recv(1) for client in clients[1:]] == [b"", b""]
    for client in clients[1:]:
        client.close()


THREADS = """
import socket, threading
from gilscope.toolkit.experiments.helpers.echo import serving
with serving() as port:
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
    for client in clients:
        client.sendall(b"0")
        client.recv(1)
    assert threading.active_count() > 1
assert threading.enumerate() == [threading.main_thread()], threading.enumerate()
for client in clients:
    client.close()
"""


def test_server_leaves_no_thread():
    done = run_child(sys.executable, "-c", THREADS)
    assert done.returncode == 0, done.stderr


def test_requests_that_piled_up_are_answered_one_by_one():
    with serving() as port, socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"abc")
        got = b""
        while len(got) < 3:
            got += client.recv(16)
        assert got == b"abc"


def test_server_closed_twice_is_closed():
    server = EchoServer()
    server.close()
    server.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port))


# --- what burns beside it

BURN = """
import os, sys, threading
from gilscope.runners import _interpreters
from gilscope.toolkit.experiments.helpers.burners import burning
kind = sys.argv[1]
if kind == "subinterpreters" and (reason := _interpreters.unavailable()):
    sys.exit(f"skip: {reason}")
descriptors = len(os.listdir("/dev/fd"))
with burning(kind, 2) as burners:
    burners.go()
    rate = burners.stop()
assert rate > 0, rate
with burning(kind, 2):
    pass                       # never begun
try:
    with burning(kind, 2) as burners:
        burners.go()
        raise KeyError         # never stopped
except KeyError:
    pass
with burning(kind, 0) as burners:
    burners.go()
    assert burners.stop() == 0
assert threading.active_count() == 1, threading.enumerate()
assert len(os.listdir("/dev/fd")) == descriptors
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("none left")
"""


@pytest.mark.parametrize("kind", ["threads", "processes", "subinterpreters"])
@pytest.mark.builds("gil", "free")
def test_burners_burn_and_are_gone(python, kind):
    done = run_child(python, "-c", BURN, kind)
    if done.stderr.startswith("skip: "):
        pytest.skip(done.stderr.strip())
    assert (done.returncode, done.stdout) == (0, "none left\n"), done.stderr


REFUSE = """
from gilscope.toolkit.experiments.helpers import burners
from gilscope.toolkit.experiments.helpers.burners import burning
burners.REMOTE_CODE = "def burn(orders, reports):\\n    raise ValueError('not today')\\n"
try:
    with burning("{kind}", 1):
        print("entered")
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize("kind", ["processes", "subinterpreters"])
def test_what_cannot_start_to_burn_is_told(kind):
    done = run_child(sys.executable, "-c", REFUSE.format(kind=kind))
    assert done.stdout.startswith("CPU work beside ended before it could start"), done
    assert "not today" in done.stdout + done.stderr


DEAF = """
import subprocess, sys
from gilscope.toolkit.experiments.helpers import burners
from gilscope.toolkit.experiments.helpers.burners import burning
burners.REMOTE_CODE = (
    "import os, time\\ndef burn(orders, reports):\\n    os.write(reports, b'r')\\n    time.sleep(1000)\\n")
with burning("processes", 1) as started:
    pass
print("ended")
"""


def test_process_that_does_not_listen_is_ended():
    assert run_child(sys.executable, "-c", DEAF).stdout == "ended\n"


# --- the open loop


def test_schedule_is_even_and_does_not_drift():
    times = schedule(10.0, 100.0)
    assert [next(times) for _ in range(31)][-1] == 103.0   # sums of 0.1 would be off by now


class MadeUpServer:
    """A clock, and a connection to a server that answers by it, one request after the other."""

    def __init__(self, served=lambda number: 1e-4):
        self.served = served      # the seconds for a request, by its number
        self.now = self.idle_from = 0.0
        self.asked = 0
        self.answers = deque()    # when they come
        self.pauses = {}          # of the client: the seconds, by the number of requests it has sent

    def __call__(self):
        self.now += 1e-6
        return self.now

    def settimeout(self, seconds):
        assert seconds == 0

    def send(self, request):
        self.asked += 1
        self.idle_from = max(self.idle_from, self.now) + self.served(self.asked)
        self.answers.append(self.idle_from)

    def select(self, readers, _writers, _errors, seconds):
        self.now += self.pauses.pop(self.asked, 0.0)
        come = bool(self.answers) and self.answers[0] <= self.now + seconds
        self.now = max(self.now, self.answers[0]) if come else self.now + seconds
        return readers if come else [], [], []

    def recv(self, most):
        found = b""
        while self.answers and self.answers[0] <= self.now and len(found) < most:
            self.answers.popleft()
            found += b"0"
        return found

    def loaded(self, monkeypatch, **load):
        monkeypatch.setattr(echo_client, "perf_counter", self)
        monkeypatch.setattr(echo_client, "select", self)
        return open_loop(self, least=1, **load)


def test_one_stall_shows_in_all_requests_that_were_due_in_it(monkeypatch):
    # 200 ms at 500 requests a second: 100 are due while the server stalls, and wait 0 to 200 ms each.
    server = MadeUpServer(lambda number: 0.2 if number == 50 else 1e-4)
    report = server.loaded(monkeypatch, rate=500, seconds=0.6, bound=10.0)
    assert report["requests"] == report["sent"] == 300
    assert report["max"] == pytest.approx(0.2, rel=0.01)
    # Whoever counts from the sending of a closed loop finds one slow request.
    assert slower_than(report, 0.02) == pytest.approx(500 * (0.2 - 0.02), abs=6)   # buckets are 13 % wide
    assert report["saturated"] == ""


def test_open_loop_over_a_real_connection_counts_every_answer():
    with connected(echo) as near:
        report = open_loop(near, rate=500, seconds=0.1, least=1, bound=PATIENCE)
    assert (report["requests"], report["sent"], report["unanswered"]) == (50, 50, 0)


@pytest.fixture
def made_up_clock(monkeypatch):
    """Give the client a clock by which every request takes 1 ms: it goes on when it is read, and with `pass_by`."""
    class Clock:
        now = 0.0

        def __call__(self):
            self.now += 0.001
            return self.now

        def pass_by(self, seconds):
            self.now += seconds

    clock = Clock()
    monkeypatch.setattr(echo_client, "perf_counter", clock)
    return clock


def test_the_same_stall_shows_once_in_a_closed_loop(made_up_clock):
    with connected(lambda far: echo(far, lambda number: made_up_clock.pass_by(0.2) if number == 50 else None)) as near:
        report = closed_loop(near, seconds=0.0, least=100, bound=PATIENCE)
    assert report["requests"] == 100
    assert report["max"] == pytest.approx(0.201)
    assert slower_than(report, 0.19 / 1.13) == 1


def test_a_pause_of_the_generator_counts_as_latency_and_is_told(monkeypatch):
    server = MadeUpServer()
    server.pauses = {20: 0.2}
    report = server.loaded(monkeypatch, rate=500, seconds=0.5, bound=10.0)
    assert report["sent"] == 250
    assert slower_than(report, 0.02) == pytest.approx(500 * (0.2 - 0.02), abs=4)   # they are answered one by one
    assert "up to" in report["saturated"]


def test_rate_beyond_the_generator_is_saturation():
    with connected(echo) as near:
        report = open_loop(near, rate=5_000_000, seconds=0.02, least=1, bound=PATIENCE)
    assert report["saturated"].startswith(("the load generator itself was up to", "the load generator sent"))


def test_more_in_flight_than_allowed_is_saturation(monkeypatch):
    monkeypatch.setattr(echo_client, "MOST_IN_FLIGHT", 10)
    report = MadeUpServer(lambda number: inf).loaded(monkeypatch, rate=1000, seconds=0.1, bound=0.1)
    assert (report["sent"], report["unanswered"], report["requests"]) == (10, 10, 0)
    assert report["saturated"] == "the load generator sent 10 of 100 requests: too many were unanswered"
    assert report["p50"] == pytest.approx(0.1 + echo_client.PATIENCE_SECONDS, rel=0.01)   # as long as it was awaited


def _wait_for_end(connection):
    while connection.recv(64):
        pass


def test_slow_server_is_not_the_generators_fault():
    tally = OpenLoopTally(10.0)
    for number in range(100):
        tally.sent(number / 10, number / 10 + 0.0001)
        tally.finished(number / 10, number / 10 + 0.005)
    report = tally.report()
    assert report["saturated"] == ""
    assert (report["p50"], report["max"]) == (pytest.approx(0.005), pytest.approx(0.005))


def test_late_generator_is_told_with_its_lag():
    tally = OpenLoopTally(10.0)
    for number in range(100):
        tally.sent(float(number), number + 0.001)
        tally.finished(float(number), number + 0.005)
    assert "up to 1.00 ms late" in tally.report()["saturated"]
    assert tally.report()["lag_p99"] == pytest.approx(0.001)


def test_loop_without_requests_has_counts_alone():
    assert OpenLoopTally(5.0).report() == {
        "rate": 5.0, "sent": 0, "requests": 0, "unanswered": 0, "saturated": "no request was sent"}


def test_server_that_ends_ends_the_open_loop():
    with connected(lambda far: far.recv(1)) as near, pytest.raises(ConnectionError):
        open_loop(near, rate=100, seconds=5, least=1, bound=PATIENCE)


# --- the closed loop


def test_closed_loop_goes_on_until_it_has_enough():
    with connected(echo) as near:
        report = closed_loop(near, seconds=0.0, least=500, bound=PATIENCE)
    assert (report["requests"], report["unanswered"]) == (500, 0)
    assert report["rate"] == pytest.approx(500 / report["seconds"])


def test_closed_loop_without_enough_ends_at_its_bound(monkeypatch, made_up_clock):
    monkeypatch.setattr(echo_client, "PATIENCE_SECONDS", PATIENCE)
    with connected(echo) as near:
        report = closed_loop(near, seconds=0.0, least=1_000_000, bound=0.0995)
    assert (report["requests"], report["unanswered"]) == (100, 0)   # of 1 ms


def test_request_that_is_never_answered_took_its_time(monkeypatch, made_up_clock):
    unanswered, asked = threading.Event(), []

    class Timer(threading.Thread):
        """Ends the patience when the request that is not answered has come, and all of it has passed by."""

        def __init__(self, seconds, function):
            super().__init__(daemon=True)
            self.end = lambda: (made_up_clock.pass_by(seconds), function())
            asked.append(seconds)

        def run(self):
            unanswered.wait()
            self.end()

        def cancel(self): ...

    def never_answer(number):
        if number == 11:
            unanswered.set()
            _wait_for_end(far_end[0])

    monkeypatch.setattr(echo_client.threading, "Timer", Timer)
    monkeypatch.setattr(echo_client, "PATIENCE_SECONDS", 0.2)
    far_end = []
    with connected(lambda far: (far_end.append(far), echo(far, never_answer))) as near:
        report = closed_loop(near, seconds=0.0, least=100, bound=0.1)
    assert asked == [pytest.approx(0.3)]    # bound and patience
    assert (report["requests"], report["unanswered"]) == (10, 1)
    assert report["seconds"] == pytest.approx(0.311)
    assert report["rate"] == pytest.approx(10 / 0.311)   # not that of the ten fast ones


def test_server_that_never_answers_has_no_latencies(monkeypatch):
    monkeypatch.setattr(echo_client, "PATIENCE_SECONDS", 0.05)
    with connected(_wait_for_end) as near:
        report = closed_loop(near, seconds=0.0, least=1, bound=0.05)
    assert (report["requests"], report["rate"], report["unanswered"]) == (0, 0, 1)
    assert "p50" not in report


def test_typical_request_is_the_one_that_is_going_on():
    assert typical([0.001] * 900 + [0.1] * 100) == 0.1    # 0.9 s fast, 10 s slow
    assert typical([0.001] * 9 + [0.005]) == 0.001        # 9 ms fast, 5 ms slow
    assert typical([0.3]) == 0.3


# --- the client's process


@contextmanager
def client_process():
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "gilscope.toolkit.experiments.load.echo_client"], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, bufsize=1, cwd=ROOT, env=environment())

    def ask(**command):
        process.stdin.write(json.dumps(command) + "\n")
        return json.loads(process.stdout.readline())

    try:
        assert json.loads(process.stdout.readline()) == {"ready": True}
        yield ask
    finally:
        process.stdin.close()
        try:
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
            process.stdout.close()


def test_client_answers_each_command_with_one_line():
    with serving() as port, client_process() as ask:
        assert ask(do="connect", port=port, connections=2) == {"connections": 2}
        closed = ask(do="closed", seconds=0.01, least=50, bound=PATIENCE)
        paced = ask(do="open", rate=200, seconds=0.1, least=10, bound=PATIENCE)
        assert closed["requests"] >= 50
        assert (paced["requests"], paced["sent"]) == (20, 20)
        # Both connections are used up; mistakes are answers, and it goes on.
        assert ask(do="closed", seconds=0.01, least=5, bound=1) == {"error": "IndexError: pop from empty list"}
        assert ask(do="dance") == {"error": "KeyError: 'dance'"}
        assert ask(do="connect", port=port, connections=1) == {"connections": 1}


def test_client_that_cannot_connect_says_so():
    with socket.socket() as deaf, client_process() as ask:
        deaf.bind(("127.0.0.1", 0))     # and so refuses all, as does no port that another server may take meanwhile
        port = deaf.getsockname()[1]
        assert "ConnectionRefusedError" in ask(do="connect", port=port, connections=1)["error"]
