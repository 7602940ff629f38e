"""Message passing between threads, interpreters or processes: a token through a ring, or many to one.

The main one takes part: it is the first of the ring, or it receives what all others send.  Ping-pong is a ring of two.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass

from gilscope.toolkit.experiments.channels import worker_roles
from gilscope.toolkit.experiments.channels.open_channels import any_of, open_channels, polling
from gilscope.toolkit.experiments.channels.start_workers import WorkerFailedError, crew
from gilscope.toolkit.measure.program.interface import Taken
from gilscope.toolkit.stats.latency import percentiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gilscope.toolkit.experiments.channels.start_workers import Crew
    from gilscope.toolkit.measure.program.interface import Clock, Trial

LEAST_LAPS = 8            # of a ring, in the measured stretch
MOST = 1_000_000          # laps or messages of one sender at a time
MOST_BYTES = 64 << 20     # that may wait in a channel without a bound
STOP = bytes((worker_roles.STOP, 0, 0))
GROWTH = 8                # at most, from one stretch of the calibration to the next


class WrongMessageError(Exception):
    """What was received is not what was sent."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """One stretch of exchanged messages."""

    number: int                    # of laps, or of messages of each sender
    seconds: float
    laps: tuple[float, ...] = ()   # seconds of each lap of a ring


def measure(trial: Trial) -> Taken:
    """Return the wall seconds per message, from one end of a channel to the other.

    Parameters of the cell: "pattern" ("ring", "ping-pong", "fan-in"), "channel", "form" ("bytes", "memoryview"),
    "bytes", the length of a message.  `workers` counts everybody in a ring, of a fan-in the senders.
    """
    try:
        return _fan_in(trial) if trial.parameters["pattern"] == "fan-in" else _ring(trial)
    except WorkerFailedError as error:
        trial.stop(str(error).strip().splitlines()[-1], "exception")  # an interpreter's has its traceback before it
    except WrongMessageError as error:
        trial.stop(str(error), "wrong-result")


def _ring(trial: Trial) -> Taken:
    members, channel = trial.workers, trial.parameters["channel"]
    with ExitStack() as stack:
        links, addresses, context = open_channels(trial.model, channel, members, stack)
        roles = [_role(trial, "forward", addresses[place - 1], addresses[place], place) for place in range(1, members)]
        send, receive = worker_roles.sender(channel, links[0]), worker_roles.receiver(channel, links[-1])
        alarm = worker_roles.sender(channel, links[-1])

        def stop() -> None:
            for link in links[:-1]:  # to each of them: whoever would pass it on may be what failed
                worker_roles.sender(channel, link)(STOP)

        with crew(trial.model, roles, alarm, stop, context) as workers:
            token = Token(trial, send, receive)
            taken, clock = _calibrated(trial, token.laps, enough=0.2)
            token.check_order(members)
            token.check_content()
            stop()
            _check_counts(workers.counts(), dict.fromkeys(range(1, members), token.count))
    hops = members * taken.number
    found = percentiles(taken.laps)
    return Taken(
        seconds=clock.wall / hops, cpu=clock.cpu / hops,
        metrics={
            "messages": hops, "lap_p50": found.p50, "lap_p99": found.p99, "lap_max": found.max, **polling(channel),
        },
    )


class Token:
    """What goes around a ring, seen from the main one."""

    def __init__(self, trial: Trial, send: worker_roles.Send, receive: worker_roles.Receive) -> None:
        """The workers are ready."""
        self.count = 0
        self._size = trial.count("bytes")
        self._messages = [worker_roles.message(0, turn, self._size) for turn in range(worker_roles.TURNS)]
        self._shared = trial.parameters["form"] == "memoryview"
        self._send, self._receive = send, receive

    def laps(self, number: int) -> Stretch:
        """Send so many messages around, one after the other."""
        send, receive, size, messages = self._send, self._receive, self._size, self._formed()
        clock, times = time.perf_counter, []
        begin = before = clock()
        for turn in range(number):
            send(messages[turn % worker_roles.TURNS])
            received = receive()
            if received[2] != turn % worker_roles.TURNS or len(received) != size or received[0] != worker_roles.DATA:
                _received(received)
                raise WrongMessageError(f"lap {turn}: another message than the one sent came back")
            now = clock()
            times.append(now - before)
            before = now
        self.count += number
        return Stretch(number, before - begin, tuple(times))

    def check_order(self, members: int) -> None:
        """Refuse a ring in which a token does not pass every member in order."""
        self._send(bytes((worker_roles.TRACE,)))
        places = list(bytes(_received(self._receive()))[1:])
        if places != list(range(1, members)):
            raise WrongMessageError(f"the token passed {places}, not 1 to {members - 1}")

    def check_content(self) -> None:
        """Refuse a ring that changes a message."""
        self._send(self._formed()[-1])
        if bytes(_received(self._receive())) != self._messages[-1]:
            raise WrongMessageError("a message came back changed")
        self.count += 1

    def _formed(self) -> list[bytes] | list[memoryview]:
        return [memoryview(each) for each in self._messages] if self._shared else self._messages


def _fan_in(trial: Trial) -> Taken:
    senders, size, channel = trial.workers, trial.count("bytes"), trial.parameters["channel"]
    merged = channel in {"os.pipe", "multiprocessing.Pipe"}  # a pipe has one sender: a large message is not one write
    most = max(1, MOST_BYTES // (senders * size))
    with ExitStack() as stack:
        links, addresses, context = open_channels(trial.model, channel, senders if merged else 1, stack)
        roles = [_role(trial, "produce", None, addresses[place - 1 if merged else 0], place)
                 for place in range(1, senders + 1)]
        receive = stack.enter_context(any_of(channel, links)) if merged else worker_roles.receiver(channel, links[0])
        # Senders wait for orders alone, and those end with the crew.
        with crew(trial.model, roles, worker_roles.sender(channel, links[0]), lambda: None, context) as workers:
            inbox = Inbox(workers, receive, senders, size, most)
            taken, clock = _calibrated(trial, inbox.messages, enough=0.5)
            inbox.check_content()
            workers.order(0)
            _check_counts(workers.counts(), dict.fromkeys(range(1, senders + 1), inbox.count))
    number = senders * taken.number
    parallel = trial.model != "threads"
    return Taken(
        seconds=clock.wall / number, cpu=clock.cpu / number, wanted_cores=2.0 if parallel else 1.0,
        metrics={"messages": number, **polling(channel)},
    )


class Inbox:
    """Where the messages of all senders come in.

    Not more than `most` of each sender are on their way, as what waits needs memory.  They are ordered in halves of
    that, the next one while the one before arrives: a queue that runs dry is slower where its reader sleeps.
    """

    def __init__(self, workers: Crew, receive: worker_roles.Receive, senders: int, size: int, most: int) -> None:
        """The workers are ready."""
        self.count = 0
        self._workers, self._receive, self._senders, self._size = workers, receive, senders, size
        # A sender begins each order with its first turn.
        self._half = max(1, most // 2 // worker_roles.TURNS) * worker_roles.TURNS

    def messages(self, number: int) -> Stretch:
        """Receive `number` messages of each sender, in each sender's order."""
        halves = [min(self._half, number - start) for start in range(0, number, self._half)]
        turns = [0] * (self._senders + 1)
        begin = time.perf_counter()
        self._workers.order(halves[0])
        for half, following in zip(halves, [*halves[1:], 0], strict=True):
            if following:
                self._workers.order(following)
            self._take(half * self._senders, turns)
        self.count += number
        stretch = Stretch(number, time.perf_counter() - begin)
        if turns[1:] != [number] * self._senders:
            raise WrongMessageError(f"{turns[1:]} messages from each sender instead of {number}")
        return stretch

    def _take(self, number: int, turns: list[int]) -> None:
        receive, size = self._receive, self._size
        for _ in range(number):
            received = receive()
            place = received[1]
            in_turn = received[0] == worker_roles.DATA and received[2] == turns[place] % worker_roles.TURNS
            if not in_turn or len(received) != size:
                _received(received)
                raise WrongMessageError(f"sender {place}: a message is missing, or came out of order")
            turns[place] += 1

    def check_content(self) -> None:
        """Refuse a channel that changes a message."""
        self._workers.order(worker_roles.TURNS)
        for _ in range(worker_roles.TURNS * self._senders):
            received = bytes(_received(self._receive()))
            if received != worker_roles.message(received[1], received[2], self._size):
                raise WrongMessageError("a message came in changed")
        self.count += worker_roles.TURNS


def _calibrated(trial: Trial, run: Callable[[int], Stretch], *, enough: float) -> tuple[Stretch, Clock]:
    """Find how many laps take about as long as the scale "seconds" says, then measure so many.

    A stretch that takes the share `enough` of that tells how many.  Many-to-one needs more of it: a queue that is
    looked at now and then takes as long for the first message as for thousands.
    """
    target, number = trial.scales["seconds"], 1
    while True:
        seconds = max(run(number).seconds, 1e-6)
        trial.progress()
        wanted = max(LEAST_LAPS, min(MOST, round(number * target / seconds)))
        if seconds >= target * enough or number >= wanted:
            break
        number = min(wanted, number * GROWTH)
    with trial.measuring() as clock:
        taken = run(wanted)
    return taken, clock


def _role(trial: Trial, role: str, inbound: Any, outbound: Any, place: int) -> dict[str, Any]:
    return {
        "role": role, "channel": trial.parameters["channel"], "inbound": inbound, "outbound": outbound,
        "place": place, "size": trial.count("bytes"), "form": trial.parameters["form"],
    }


def _received(received: Any) -> Any:
    if received[0] == worker_roles.ALARM:
        raise WorkerFailedError(bytes(received)[1:].decode(errors="replace"))
    return received


def _check_counts(found: dict[int, int], expected: dict[int, int]) -> None:
    if found != expected:
        raise WrongMessageError(f"the workers handled {found} messages, by place, instead of {expected}")
