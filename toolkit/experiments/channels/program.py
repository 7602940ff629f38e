"""Message passing between threads, interpreters or processes: a token through a ring, or many to one.

The main thread takes part: it is the first member of the ring, or the receiver of all others' messages.  Ping-pong is a
ring of two.  `start_workers` starts the workers, which run `worker_roles`.
"""

from __future__ import annotations

import os
import queue
import selectors
import time
from collections import deque
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from gilscope.runners import _interpreters
from gilscope.toolkit.experiments.channels import worker_roles
from gilscope.toolkit.experiments.channels.start_workers import WorkerFailedError, started_workers
from gilscope.toolkit.experiments.latency import percentiles
from gilscope.toolkit.measure.child.program import ProgramValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from gilscope.toolkit.experiments.channels.start_workers import WorkerCrew
    from gilscope.toolkit.measure.child.program import BlockTime, ProgramTrial

LEAST_LAPS = 8            # of a ring, in the measured run
MOST = 1_000_000          # laps, or messages of each sender, in one run
MOST_BYTES = 64 << 20     # that may wait in an unbounded channel
STOP = bytes((worker_roles.STOP, 0, 0))
GROWTH = 8                # at most, from one calibration run to the next


class WrongMessageError(Exception):
    """A message was lost, changed or out of order."""


@dataclass(frozen=True, slots=True)
class ExchangeRun:
    """One timed run of exchanged messages."""

    number: int                    # laps, or messages of each sender
    seconds: float
    laps: tuple[float, ...] = ()   # seconds of each lap of a ring


def measure(trial: ProgramTrial) -> ProgramValue:
    """Return the wall seconds per message, from one end of a channel to the other.

    The cell's parameters are "pattern" ("ring", "ping-pong", "fan-in"), "channel", "form" ("bytes", "memoryview") and
    "bytes", the length of a message.  `workers` counts all members of a ring, or the senders of a fan-in.
    """
    try:
        return _fan_in(trial) if trial.parameters["pattern"] == "fan-in" else _ring(trial)
    except WorkerFailedError as error:
        trial.stop(str(error).strip().splitlines()[-1], "exception")  # the last line of an interpreter's traceback
    except WrongMessageError as error:
        trial.stop(str(error), "wrong-result")


def _ring(trial: ProgramTrial) -> ProgramValue:
    members, channel = trial.workers, trial.parameters["channel"]
    with ExitStack() as stack:
        links, addresses, context = _open_channels(trial.model, channel, members, stack)
        roles = [_role(trial, "forward", addresses[place - 1], addresses[place], place) for place in range(1, members)]
        send, receive = worker_roles.sender(channel, links[0]), worker_roles.receiver(channel, links[-1])
        alarm = worker_roles.sender(channel, links[-1])

        def stop() -> None:
            for link in links[:-1]:  # to each worker, since the one that would forward it may have failed
                worker_roles.sender(channel, link)(STOP)

        with started_workers(trial.model, roles, alarm, stop, context) as workers:
            token = RingToken(trial, send, receive)
            taken, clock = _calibrated(trial, token.laps, enough=0.2)
            token.check_order(members)
            token.check_content()
            stop()
            _check_counts(workers.counts(), dict.fromkeys(range(1, members), token.count))
    hops = members * taken.number
    found = percentiles(taken.laps)
    return ProgramValue(
        seconds=clock.wall / hops, cpu=clock.cpu / hops,
        metrics={
            "messages": hops, "lap_p50": found.p50, "lap_p99": found.p99, "lap_max": found.max, **_polling(channel),
        },
    )


class RingToken:
    """The token of a ring, sent and received by the main thread."""

    def __init__(self, trial: ProgramTrial, send: worker_roles.Send, receive: worker_roles.Receive) -> None:
        """The workers are ready."""
        self.count = 0
        self._size = trial.count("bytes")
        self._messages = [worker_roles.message(0, index, self._size) for index in range(worker_roles.VARIANTS)]
        self._shared = trial.parameters["form"] == "memoryview"
        self._send, self._receive = send, receive

    def laps(self, number: int) -> ExchangeRun:
        """Send `number` messages around, one after the other."""
        send, receive, size, messages = self._send, self._receive, self._size, self._formed()
        clock, times = time.perf_counter, []
        begin = before = clock()
        for index in range(number):
            send(messages[index % worker_roles.VARIANTS])
            received = receive()
            wrong = received[2] != index % worker_roles.VARIANTS or received[0] != worker_roles.DATA
            if wrong or len(received) != size:
                _received(received)
                raise WrongMessageError(f"lap {index}: another message than the one sent came back")
            now = clock()
            times.append(now - before)
            before = now
        self.count += number
        return ExchangeRun(number, before - begin, tuple(times))

    def check_order(self, members: int) -> None:
        """Raise if a token does not pass every member in order."""
        self._send(bytes((worker_roles.TRACE,)))
        places = list(bytes(_received(self._receive()))[1:])
        if places != list(range(1, members)):
            raise WrongMessageError(f"the token passed {places}, not 1 to {members - 1}")

    def check_content(self) -> None:
        """Raise if the ring changes a message."""
        self._send(self._formed()[-1])
        if bytes(_received(self._receive())) != self._messages[-1]:
            raise WrongMessageError("a message came back changed")
        self.count += 1

    def _formed(self) -> list[bytes] | list[memoryview]:
        return [memoryview(each) for each in self._messages] if self._shared else self._messages


def _fan_in(trial: ProgramTrial) -> ProgramValue:
    senders, size, channel = trial.workers, trial.count("bytes"), trial.parameters["channel"]
    # One pipe per sender, since a large message takes several writes.
    merged = channel in {"os.pipe", "multiprocessing.Pipe"}
    most = max(1, MOST_BYTES // (senders * size))
    with ExitStack() as stack:
        links, addresses, context = _open_channels(trial.model, channel, senders if merged else 1, stack)
        roles = [_role(trial, "produce", None, addresses[place - 1 if merged else 0], place)
                 for place in range(1, senders + 1)]
        receive = stack.enter_context(_any_of(channel, links)) if merged else worker_roles.receiver(channel, links[0])
        # Nothing to release: senders wait only for orders, which end with the workers.
        alarm = worker_roles.sender(channel, links[0])
        with started_workers(trial.model, roles, alarm, lambda: None, context) as workers:
            inbox = Inbox(workers, receive, senders, size, most)
            taken, clock = _calibrated(trial, inbox.messages, enough=0.5)
            inbox.check_content()
            workers.order(0)
            _check_counts(workers.counts(), dict.fromkeys(range(1, senders + 1), inbox.count))
    number = senders * taken.number
    parallel = trial.model != "threads"
    return ProgramValue(
        seconds=clock.wall / number, cpu=clock.cpu / number, wanted_cores=2.0 if parallel else 1.0,
        metrics={"messages": number, **_polling(channel)},
    )


class Inbox:
    """Receives the messages of all senders.

    At most `most` messages of each sender are under way, since waiting ones take memory.  They are ordered in two
    halves, the second while the first arrives, so that the queue does not run dry and its reader does not sleep.
    """

    def __init__(self, workers: WorkerCrew, receive: worker_roles.Receive, senders: int, size: int, most: int) -> None:
        """The workers are ready."""
        self.count = 0
        self._workers, self._receive, self._senders, self._size = workers, receive, senders, size
        # A multiple of VARIANTS, since a sender begins each order with its first message.
        self._half = max(1, most // 2 // worker_roles.VARIANTS) * worker_roles.VARIANTS

    def messages(self, number: int) -> ExchangeRun:
        """Receive `number` messages of each sender, in each sender's order."""
        halves = [min(self._half, number - start) for start in range(0, number, self._half)]
        counts = [0] * (self._senders + 1)
        begin = time.perf_counter()
        self._workers.order(halves[0])
        for half, following in zip(halves, [*halves[1:], 0], strict=True):
            if following:
                self._workers.order(following)
            self._take(half * self._senders, counts)
        self.count += number
        stretch = ExchangeRun(number, time.perf_counter() - begin)
        if counts[1:] != [number] * self._senders:
            raise WrongMessageError(f"{counts[1:]} messages from each sender instead of {number}")
        return stretch

    def _take(self, number: int, counts: list[int]) -> None:
        receive, size = self._receive, self._size
        for _ in range(number):
            received = receive()
            place = received[1]
            in_turn = received[0] == worker_roles.DATA and received[2] == counts[place] % worker_roles.VARIANTS
            if not in_turn or len(received) != size:
                _received(received)
                raise WrongMessageError(f"sender {place}: a message is missing, or came out of order")
            counts[place] += 1

    def check_content(self) -> None:
        """Raise if the channel changes a message."""
        self._workers.order(worker_roles.VARIANTS)
        for _ in range(worker_roles.VARIANTS * self._senders):
            received = bytes(_received(self._receive()))
            if received != worker_roles.message(received[1], received[2], self._size):
                raise WrongMessageError("a message came in changed")
        self.count += worker_roles.VARIANTS


def _calibrated(
    trial: ProgramTrial, run: Callable[[int], ExchangeRun], *, enough: float,
) -> tuple[ExchangeRun, BlockTime]:
    """Find the number of laps that take about as long as the scale "seconds", then measure that many.

    A run that takes the share `enough` of that time determines the number.  Many-to-one needs a larger share: a polled
    queue takes as long for the first message as for thousands.
    """
    target, number = trial.scales["seconds"], 1
    while True:
        seconds = max(run(number).seconds, 1e-6)
        trial.progress()
        needed = max(LEAST_LAPS, min(MOST, round(number * target / seconds)))
        if seconds >= target * enough or number >= needed:
            break
        number = min(needed, number * GROWTH)
    with trial.measuring() as clock:
        taken = run(needed)
    return taken, clock


def _role(trial: ProgramTrial, role: str, inbound: Any, outbound: Any, place: int) -> dict[str, Any]:
    return {
        "role": role, "channel": trial.parameters["channel"], "inbound": inbound, "outbound": outbound,
        "place": place, "size": trial.count("bytes"), "form": trial.parameters["form"],
    }


def _received(received: Any) -> Any:
    """Return a message, or raise if it is a worker's alarm."""
    if received[0] == worker_roles.ALARM:
        raise WorkerFailedError(bytes(received)[1:].decode(errors="replace"))
    return received


def _check_counts(found: dict[int, int], expected: dict[int, int]) -> None:
    if found != expected:
        raise WrongMessageError(f"the workers handled {found} messages, by place, instead of {expected}")


def _open_channels(model: str, channel: str, number: int, stack: ExitStack) -> tuple[list[Any], list[Any], Any]:
    """Return that many channels, the address of each for workers, and multiprocessing's context for processes.

    `stack` closes the channels that need closing.
    """
    context: Any = None
    if model.startswith("processes-"):
        import multiprocessing

        from gilscope.runners.processes import name_semaphores

        name_semaphores()
        context = multiprocessing.get_context(model.removeprefix("processes-"))
        if model == "processes-forkserver":
            context.set_forkserver_preload([])
    if model == "subinterpreters":
        _interpreters.prepare_main()
    links = [_channel(channel, context, stack) for _ in range(number)]
    addresses = [link.id if channel == "interpreters.Queue" else link for link in links]
    return links, addresses, context


def _channel(channel: str, context: Any, stack: ExitStack) -> Any:
    if channel == "SimpleQueue":
        return queue.SimpleQueue()
    if channel == "queue.Queue":
        return queue.Queue()
    if channel == "interpreters.Queue":
        return worker_roles.interpreters_module().create_queue()
    if channel == "multiprocessing.Queue":
        opened = context.Queue()
        stack.callback(opened.close)
        return opened
    if channel == "multiprocessing.Pipe":
        connections = context.Pipe(duplex=False)
        for each in connections:
            stack.callback(each.close)
        return connections
    descriptors = os.pipe()
    for descriptor in descriptors:
        stack.callback(os.close, descriptor)
    return descriptors


@contextmanager
def _any_of(channel: str, links: list[Any]) -> Iterator[worker_roles.Receive]:
    """Yield a function that waits for the next message on any of several pipes; ready pipes take turns."""
    ready: deque[worker_roles.Receive] = deque()
    with selectors.DefaultSelector() as selector:
        for link in links:
            selector.register(link[0], selectors.EVENT_READ, worker_roles.receiver(channel, link))

        def receive() -> Any:
            while not ready:
                ready.extend(key.data for key, _ in selector.select())
            return ready.popleft()()

        yield receive


def _polling(channel: str) -> dict[str, float]:
    """Return the polling interval of the queue's own get(), from its signature."""
    if channel != "interpreters.Queue":
        return {}
    import inspect

    parameter = inspect.signature(worker_roles.interpreters_module().Queue.get).parameters.get("_delay")
    return {} if parameter is None else {"poll": float(parameter.default)}
