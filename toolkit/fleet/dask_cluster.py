"""A cluster of dask.distributed as gilscope sees it: hosts that are asked, and may go away.  Only this knows dask."""

from __future__ import annotations

import contextlib
import importlib.metadata
import ipaddress
import itertools
import logging
import queue
import re
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import gilscope
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.fleet import on_host
from gilscope.toolkit.fleet.scheduler_probe import problem_of
from gilscope.toolkit.store.labels import can_be_label
from gilscope.toolkit.units import counted, few

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from types import TracebackType


RESOURCE = "gilscope"       # of dask's, abstract: a worker that offers one of it measures, one thing at a time
CONNECT_SECONDS = 15.0
END_SECONDS = 3.0           # that ending everything may take, of the 5 a user waits
MEET_SECONDS = 1.0          # between looks at who is there
BACK_SECONDS = 30.0         # that the last host which went away is waited for: a nanny starts another in a few
TRIES = 3                   # of hosts that go away while they are asked for the same, until it is given up
EXTRA = "gilscope[fleet]"
LOST = ("closed", "closing", "connecting")   # how a client of dask's stands when its scheduler is gone
_MOST_TOLD = 4
_NUMBER = re.compile(r"\d+")
_ADDRESS = re.compile(r"(wss?://[^/\s]+|([a-z][a-z0-9+.-]*://)?[^/\s]+:\d{1,5})/?")


class FleetLostError(ToolkitError):
    """The cluster cannot be reached, or not any more. Exit code 3."""

    exit_code = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A host of the cluster."""

    name: str         # a plain one: its folder's
    address: str


def named(workers: Mapping[str, Any], known: dict[str, str]) -> list[Worker]:
    """Return the workers that measure, in order of name; who has no plain name is called host-1, host-2 ...

    Args:
        workers: By address what dask tells: `name`, which is the address where none was given, and `resources`.
        known: By address the names of all that were there before, so that nobody gets another's; new ones are added.
    """
    measuring = {address: told.get("name") for address, told in workers.items()
                 if RESOURCE in (told.get("resources") or {})}
    plain = Counter(name for name in measuring.values() if is_plain(name))
    for address in sorted(measuring.keys() - known.keys(), key=_by_number):
        name = measuring[address]
        if plain[name] == 1:
            known[address] = str(name)
    taken = {*known.values()}
    free = (name for number in itertools.count(1) if (name := f"host-{number}") not in taken)
    for address in sorted(measuring.keys() - known.keys(), key=_by_number):
        known[address] = next(free)
    return sorted((Worker(name=known[address], address=address) for address in measuring),
                  key=lambda each: _by_number(each.name))


def named_otherwise(workers: Mapping[str, Any], known: Mapping[str, str]) -> list[str]:
    """Return, as sentences, which workers are no hosts, and which hosts have not the names that they were given.

    Args:
        workers: What dask tells, see `named`.
        known: The names of the hosts by address.
    """
    idle = [address for address, told in workers.items() if RESOURCE not in (told.get("resources") or {})]
    said = []
    if idle:
        have, measure = ("has", "measures") if len(idle) == 1 else ("have", "measure")
        said.append(f"{counted(len(idle), 'worker')} {have} no `--resources {RESOURCE}=1` and {measure} nothing: "
                    f"{few(idle, _MOST_TOLD)}")
    renamed: dict[str, list[str]] = {}
    for address in workers.keys() - set(idle):
        name = workers[address].get("name")
        if name != known[address] and isinstance(name, str) and name != address and not _NUMBER.fullmatch(name):
            renamed.setdefault(name, []).append(known[address])
    for name, hosts in sorted(renamed.items()):
        why = "several have that name" if is_plain(name) else "no folder can have that name"
        them = f"worker named {name!r} is" if len(hosts) == 1 else f"workers named {name!r} are"
        said.append(f"the {them} called {', '.join(sorted(hosts, key=_by_number))}: {why}")
    return said


def is_plain(name: object) -> bool:
    """Return whether a worker's name is one that somebody gave it, and a folder can have: dask numbers others."""
    return isinstance(name, str) and can_be_label(name) and not _NUMBER.fullmatch(name)


def _by_number(text: str) -> list[tuple[int, str]]:
    """Return what sorts host-2 before host-10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text)]


def is_open(address: str) -> bool:
    """Return whether others can read what goes to `address`, and send there what is run: not loopback, no TLS.

    Raises:
        ToolkitError: it is no address.
    """
    if _ADDRESS.fullmatch(address) is None:
        raise ToolkitError(f"{address} is not the address of a dask scheduler: write tcp://HOST:PORT")
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if parts.scheme in {"tls", "wss", "inproc"}:
        return False
    try:
        return not ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return parts.hostname != "localhost"


class Connection:
    """A client of one cluster."""

    def __init__(self, address: str) -> None:
        """Connect.

        Raises:
            ToolkitError: dask.distributed is not installed.
                It cannot speak as `address` begins, or has no certificates for it.
            FleetLostError: nobody answers at `address`, or no scheduler.
        """
        self._distributed = dask_distributed()
        self.address = address
        if why := problem_of(address):
            raise FleetLostError(why)
        try:
            self._client = self._connected()
        except Exception as error:  # its versions do not go with ours, or it ends just now
            said = f"{type(error).__name__}: {error}".splitlines()[0].removesuffix(": ")
            raise FleetLostError(f"the dask scheduler at {address} does not let us in ({said})") from error
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._names: dict[str, str] = {}
        self._futures: dict[str, Any] = {}   # by name of host, what it is asked

    def _connected(self) -> Any:
        """Return dask's client, which waits without an end where it is let in and not answered."""
        made: queue.SimpleQueue[Any] = queue.SimpleQueue()
        client_class = _quiet(self._distributed.Client)

        def connect() -> None:
            try:
                made.put(client_class(
                    self.address, timeout=CONNECT_SECONDS, set_as_default=False, name="gilscope"))
            except Exception as error:  # noqa: BLE001  raised where it is waited for
                made.put(error)

        threading.Thread(target=connect, daemon=True).start()
        try:
            client = made.get(timeout=2 * CONNECT_SECONDS)
        except queue.Empty:
            raise TimeoutError from None
        if isinstance(client, Exception):
            raise client
        return client

    def __enter__(self) -> Self:
        """Stay connected."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go, whether anybody answers or not."""
        self._futures.clear()
        with contextlib.suppress(Exception):   # dask's own complaints of a scheduler that is gone
            self._client.close(timeout=END_SECONDS)

    @property
    def lost(self) -> bool:
        """Whether the scheduler is gone."""
        return self._client.status in LOST

    def workers(self) -> list[Worker]:
        """Return the hosts there are now.

        Raises:
            FleetLostError: the scheduler is gone.
        """
        return named(self._workers(), self._names)

    def notes(self) -> list[str]:
        """Return, as sentences, who is no host, and who has another name than the one it was given; see `workers`."""
        told = self._workers()
        named(told, self._names)
        return named_otherwise(told, self._names)

    def _workers(self) -> Mapping[str, Any]:
        try:
            told: Mapping[str, Any] = self._client.scheduler_info(n_workers=-1)["workers"]   # else five at most
        except Exception as error:
            raise self._gone() from error
        if self.lost:
            raise self._gone()
        return told

    def _gone(self) -> FleetLostError:
        return FleetLostError(f"the dask scheduler at {self.address} is gone")

    def versions(self, workers: Sequence[Worker]) -> dict[str, str]:
        """Return by name of host which gilscope it has; "" where it has none.  Runs nothing of ours there.

        Raises:
            FleetLostError: the scheduler is gone.
        """
        try:
            told = self._client.run(importlib.metadata.version, "gilscope", on_error="return",
                                    workers=[each.address for each in workers])
        except Exception as error:
            raise self._gone() from error
        return {each.name: answer if isinstance(answer := told.get(each.address), str) else "" for each in workers}

    def facts(self, workers: Sequence[Worker]) -> dict[str, dict[str, Any]]:
        """Return by name, in order, what `on_host.facts` tells on each host; one that goes away meanwhile is left out.

        Raises:
            FleetLostError: the scheduler is gone.
        """
        for each in workers:
            self._submit(each, on_host.facts)
        found: dict[str, dict[str, Any]] = {}
        waiting = {each.name for each in workers}
        while waiting:
            name, answer = self.next_answer(1.0)
            if name is None:
                waiting &= {each.name for each in self.workers()}
            else:
                waiting.discard(name)
                if not isinstance(answer, Exception):
                    found[name] = answer
        self.workers()   # where the scheduler is gone, that is why some did not answer
        return {each.name: found[each.name] for each in workers if each.name in found}

    def ask(self, worker: Worker, session: str, command: Sequence[str] | None, since: int, block: bytes) -> None:
        """Ask a host to go on with a run; see `on_host.advance`.  `next_answer` has what comes of it."""
        self._submit(worker, _advance, session, None if command is None else [*command], since, block)

    def _submit(self, worker: Worker, function: Callable[..., Any], *words: Any) -> None:
        try:
            future = self._client.submit(
                function, *words, workers=[worker.address], allow_other_workers=False, resources={RESOURCE: 1},
                pure=False, retries=0, key=f"gilscope-{worker.name}-{time.monotonic_ns()}")
        except Exception as error:
            raise self._gone() from error
        self._futures[worker.name] = future
        future.add_done_callback(lambda done: self._ended.put((worker.name, done)))

    def next_answer(self, seconds: float) -> tuple[str | None, Any]:
        """Return what some host has answered, or the error that it ended with; (None, None) after `seconds`."""
        try:
            name, done = self._ended.get(timeout=seconds)
        except queue.Empty:
            return None, None
        future = self._futures.get(name)
        if future is None or future is not done:
            return None, None   # it was forgotten
        del self._futures[name]
        try:
            return name, future.result(timeout=END_SECONDS)
        except Exception as error:  # noqa: BLE001  what failed there, or dask's word for a host that is gone
            return name, error

    def forget(self, name: str) -> None:
        """Wait for nothing any more that a host was asked."""
        future = self._futures.pop(name, None)
        if future is not None:
            with contextlib.suppress(Exception):
                future.cancel()

    def end(self, sessions: Mapping[str, str]) -> None:
        """End runs, by address of the host; those that nobody answers for end by themselves."""
        if sessions:
            self.tell(_end_all, list(sessions.values()), addresses=list(sessions))

    def tell(self, function: Callable[..., object], *words: Any, addresses: Sequence[str] | None = None) -> None:
        """Call `function` at once on the hosts at `addresses`, None: on all; beside what else they do."""
        def call() -> None:
            with contextlib.suppress(Exception):
                self._client.run(function, *words, workers=addresses, on_error="return")

        if not self.lost:
            telling = threading.Thread(target=call, daemon=True)   # a host that is cut off would be waited for
            telling.start()
            telling.join(END_SECONDS)

    def spread(
        self, function: Callable[..., Any], items: Sequence[str], *words: Any, among: Sequence[str] | None = None
    ) -> Generator[tuple[str, str, Any]]:
        """Have hosts call `function(*words, item)`, each for one item at a time; what dies with one goes to another.

        Args:
            function: Of this package.
            items: What it is called for.
            words: What it is called with before.
            among: Names of hosts, None: all, also those that come later.

        Yields:
            An item, the name of the host that answered ("": none), and what it answered or the error that it ended
            with, in the order in which they come.

        Raises:
            FleetLostError: the scheduler is gone, or the last host, and none has come back.
        """
        waiting, tries = deque(items), Counter[str]()
        asked: dict[str, tuple[Worker, str]] = {}   # by name of host
        here: list[Worker] = []
        met, seen = -inf, time.monotonic()
        try:
            while waiting or asked:
                if (now := time.monotonic()) - met >= MEET_SECONDS:
                    here, met = self._those_of(among), now
                    seen = now if here else seen
                    if now - seen > BACK_SECONDS:
                        raise FleetLostError(f"the last host of the cluster at {self.address} is gone")
                for item in self._left_behind(asked, here):
                    tries[item] += 1
                    if tries[item] < TRIES:
                        waiting.append(item)
                    else:
                        yield item, "", FleetLostError(f"{counted(TRIES, 'host')} went away while they were at it")
                for worker in [each for each in here if each.name not in asked][:len(waiting)]:
                    item = waiting.popleft()
                    self._submit(worker, function, *words, item)
                    asked[worker.name] = worker, item
                name, answer = self.next_answer(MEET_SECONDS)
                if name is not None and name in asked:
                    if isinstance(answer, Exception) and self.lost:
                        raise self._gone()
                    yield asked.pop(name)[1], name, answer
        finally:
            for name in asked:
                self.forget(name)

    def _those_of(self, names: Sequence[str] | None) -> list[Worker]:
        return [each for each in self.workers() if names is None or each.name in names]

    def _left_behind(self, asked: dict[str, tuple[Worker, str]], here: Sequence[Worker]) -> Iterator[str]:
        """Yield what hosts were asked that are not here any more, and wait for nothing from these."""
        for name in [name for name, (worker, _) in asked.items() if worker not in here]:
            self.forget(name)
            yield asked.pop(name)[1]


def _quiet(client_class: Any) -> Any:
    """Return a class of clients that say nothing on the terminal when they go without having been let in."""
    class Quiet(client_class):   # type: ignore[misc]  # dask has no types here
        def __del__(self) -> None:
            with contextlib.suppress(Exception):
                super().__del__()

    return Quiet


def _advance(session: str, command: list[str] | None, since: int, block: bytes) -> on_host.Answer:
    """Have a run go on here while somebody waits for the answer: dask cancels what a client that is gone has asked."""
    from distributed import get_worker  # noqa: PLC0415  see `dask_distributed`

    worker = get_worker()
    task = worker.state.tasks[worker.get_current_task()]
    return on_host.advance(session, command, since, block, wanted=lambda: task.state != "cancelled")


def _end_all(sessions: Sequence[str]) -> None:
    for session in sessions:
        on_host.end(session)


def other_versions(versions: Mapping[str, str]) -> dict[str, str]:
    """Return those that have another gilscope than ours."""
    return {name: version for name, version in versions.items() if version != gilscope.__version__}


def same_version(versions: Mapping[str, str]) -> None:
    """Refuse hosts with another gilscope than ours.

    Raises:
        ToolkitError: some have; names them.
    """
    if others := other_versions(versions):
        raise ToolkitError(another_version(others))


def another_version(others: Mapping[str, str]) -> str:
    """Return what is said of hosts with other versions than ours."""
    told = ", ".join(f"{name} has {version or 'none'}" for name, version in others.items())
    return (f"this is gilscope {gilscope.__version__}, and {told}: hosts run their own gilscope, so install this "
            f"version there ({EXTRA}) and start their workers again")


def dask_distributed() -> Any:
    """Return dask's package, which is optional.

    Raises:
        ToolkitError: it is not installed.
    """
    try:
        import distributed  # noqa: PLC0415  optional, and slow to import
    except ImportError:
        raise ToolkitError(
            f"--fleet takes dask.distributed, which is not installed: pip install '{EXTRA}' "
            "(in a checkout: pip install '.[fleet]')") from None
    log_nothing_here()
    return distributed


@cache
def log_nothing_here() -> None:
    """Take dask's log off the terminal: what goes wrong is said once, by us.  A file that its settings name has it."""
    for name in [*logging.root.manager.loggerDict, "asyncio"]:
        if name.partition(".")[0] in {"distributed", "tornado", "asyncio"}:
            logger = logging.getLogger(name)
            for handler in [each for each in logger.handlers if type(each) is logging.StreamHandler]:
                logger.removeHandler(handler)
            logger.addHandler(logging.NullHandler())   # where nothing takes it, Python prints what is serious
