"""The connection to a dask.distributed cluster: its hosts answer requests and may disconnect at any time."""

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
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import gilscope
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.fleet import on_host
from gilscope.toolkit.fleet.scheduler_probe import problem_of
from gilscope.toolkit.store.labels import can_be_label
from gilscope.toolkit.units import counted, few

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType


RESOURCE = "gilscope"       # an abstract dask resource: a worker with one unit of it measures, one task at a time
CONNECT_SECONDS = 15.0
END_SECONDS = 3.0           # time limit for ending everything; users wait about 5 s after Ctrl-C
MEET_SECONDS = 1.0          # between two checks which hosts are connected
EXTRA = "gilscope[fleet]"
LOST = ("closed", "closing", "connecting")   # states of dask's client when its scheduler is gone
_MOST_TOLD = 4
_NUMBER = re.compile(r"\d+")
_ADDRESS = re.compile(r"(wss?://[^/\s]+|([a-z][a-z0-9+.-]*://)?[^/\s]+:\d{1,5})/?")


class FleetLostError(ToolkitError):
    """The cluster cannot be reached, or the connection to it was lost. Exit code 3."""

    exit_code = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetWorker:
    """A host of the cluster."""

    name: str         # also the name of its folder
    address: str


def named(workers: Mapping[str, Any], known: dict[str, str]) -> list[FleetWorker]:
    """Return the workers that measure, in order of name; those without a usable name become host-1, host-2 ...

    Args:
        workers: Dask's information by address: `name`, which is the address if none was given, and `resources`.
        known: The names of all earlier workers by address, so that none is used twice; new names are added.
    """
    measuring = {address: info.get("name") for address, info in workers.items()
                 if RESOURCE in (info.get("resources") or {})}
    plain = Counter(name for name in measuring.values() if is_plain(name))
    for address in sorted(measuring.keys() - known.keys(), key=_by_number):
        name = measuring[address]
        if plain[name] == 1:
            known[address] = str(name)
    taken = {*known.values()}
    free = (name for number in itertools.count(1) if (name := f"host-{number}") not in taken)
    for address in sorted(measuring.keys() - known.keys(), key=_by_number):
        known[address] = next(free)
    return sorted((FleetWorker(name=known[address], address=address) for address in measuring),
                  key=lambda each: _by_number(each.name))


def naming_notes(workers: Mapping[str, Any], known: Mapping[str, str]) -> list[str]:
    """Return sentences about workers that cannot measure, and about hosts that do not have the names given to them.

    Args:
        workers: Dask's information by address, see `named`.
        known: The names of the hosts by address.
    """
    idle = [address for address, info in workers.items() if RESOURCE not in (info.get("resources") or {})]
    notes = []
    if idle:
        have, measure = ("has", "measures") if len(idle) == 1 else ("have", "measure")
        notes.append(f"{counted(len(idle), 'worker')} {have} no `--resources {RESOURCE}=1` and {measure} nothing: "
                    f"{few(idle, _MOST_TOLD)}")
    renamed: dict[str, list[str]] = {}
    for address in workers.keys() - set(idle):
        name = workers[address].get("name")
        if name != known[address] and isinstance(name, str) and name != address and not _NUMBER.fullmatch(name):
            renamed.setdefault(name, []).append(known[address])
    for name, hosts in sorted(renamed.items()):
        why = "several have that name" if is_plain(name) else "no folder can have that name"
        them = f"worker named {name!r} is" if len(hosts) == 1 else f"workers named {name!r} are"
        notes.append(f"the {them} called {', '.join(sorted(hosts, key=_by_number))}: {why}")
    return notes


def is_plain(name: object) -> bool:
    """Return True if a worker's name was given by a person and can name a folder; dask numbers the others."""
    return isinstance(name, str) and can_be_label(name) and not _NUMBER.fullmatch(name)


def _by_number(text: str) -> list[tuple[int, str]]:
    """Return a sort key that puts host-2 before host-10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text)]


def is_open(address: str) -> bool:
    """Return True if others can read the traffic to `address` and run code there: it is not loopback and has no TLS.

    Raises:
        ToolkitError: It is no address.
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
            ToolkitError: dask.distributed is not installed, does not know the protocol of `address`, or has no
                certificates for it.
            FleetLostError: No scheduler answers at `address`.
        """
        self._distributed = dask_distributed()
        self.address = address
        if why := problem_of(address):
            raise FleetLostError(why)
        try:
            self._client = self._connected()
        except Exception as error:  # its versions are incompatible with ours, or it is shutting down
            reason = f"{type(error).__name__}: {error}".splitlines()[0].removesuffix(": ")
            raise FleetLostError(f"the dask scheduler at {address} does not let us in ({reason})") from error
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._names: dict[str, str] = {}
        self._futures: dict[str, Any] = {}   # the pending request of each host, by name

    def _connected(self) -> Any:
        """Return dask's client; on a thread, because it waits forever if it is let in and gets no answer."""
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
        """Return the connection itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect, even if the scheduler does not answer."""
        self._futures.clear()
        with contextlib.suppress(Exception):   # dask raises several errors if the scheduler is gone
            self._client.close(timeout=END_SECONDS)

    @property
    def lost(self) -> bool:
        """True if the scheduler is gone."""
        return self._client.status in LOST

    def workers(self) -> list[FleetWorker]:
        """Return the hosts that are connected now.

        Raises:
            FleetLostError: The scheduler is gone.
        """
        return named(self._workers(), self._names)

    def notes(self) -> list[str]:
        """Return sentences about workers that cannot measure, and about hosts with another name than the given one."""
        workers = self._workers()
        named(workers, self._names)
        return naming_notes(workers, self._names)

    def _workers(self) -> Mapping[str, Any]:
        try:
            workers: Mapping[str, Any] = self._client.scheduler_info(n_workers=-1)["workers"]   # default: only five
        except Exception as error:
            raise self._gone() from error
        if self.lost:
            raise self._gone()
        return workers

    def _gone(self) -> FleetLostError:
        return FleetLostError(f"the dask scheduler at {self.address} is gone")

    def versions(self, workers: Sequence[FleetWorker]) -> dict[str, str]:
        """Return the version of gilscope on each host by name; "" if it is not installed.  Runs none of our code there.

        Raises:
            FleetLostError: The scheduler is gone.
        """
        try:
            answers = self._client.run(importlib.metadata.version, "gilscope", on_error="return",
                                       workers=[each.address for each in workers])
        except Exception as error:
            raise self._gone() from error
        return {each.name: answer if isinstance(answer := answers.get(each.address), str) else "" for each in workers}

    def facts(self, workers: Sequence[FleetWorker]) -> dict[str, dict[str, Any]]:
        """Return the `on_host.facts` of each host by name, in order, without those that disconnect meanwhile.

        Raises:
            FleetLostError: The scheduler is gone.
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
        self.workers()   # raises if some did not answer because the scheduler is gone
        return {each.name: found[each.name] for each in workers if each.name in found}

    def ask(self, worker: FleetWorker, session: str, command: Sequence[str] | None, since: int, block: bytes) -> None:
        """Ask a host to continue a run, see `on_host.advance`; `next_answer` returns its answer."""
        self._submit(worker, _advance, session, None if command is None else [*command], since, block)

    def _submit(self, worker: FleetWorker, function: Callable[..., Any], *words: Any) -> None:
        try:
            future = self._client.submit(
                function, *words, workers=[worker.address], allow_other_workers=False, resources={RESOURCE: 1},
                pure=False, retries=0, key=f"gilscope-{worker.name}-{time.monotonic_ns()}")
        except Exception as error:
            raise self._gone() from error
        self._futures[worker.name] = future
        future.add_done_callback(lambda done: self._ended.put((worker.name, done)))

    def next_answer(self, seconds: float) -> tuple[str | None, Any]:
        """Return the name of a host with its answer or error; (None, None) if there is none within `seconds`."""
        try:
            name, done = self._ended.get(timeout=seconds)
        except queue.Empty:
            return None, None
        future = self._futures.get(name)
        if future is None or future is not done:
            return None, None   # `forget` was called for it
        del self._futures[name]
        try:
            return name, future.result(timeout=END_SECONDS)
        except Exception as error:  # noqa: BLE001  any exception of the function, or dask's if the host is gone
            return name, error

    def forget(self, name: str) -> None:
        """Cancel the pending request of a host."""
        future = self._futures.pop(name, None)
        if future is not None:
            with contextlib.suppress(Exception):
                future.cancel()

    def end(self, sessions: Mapping[str, str]) -> None:
        """End sessions, by address of the host; on a host that does not answer, the lease ends its session."""
        if sessions:
            self._end_at_once(list(sessions.values()), list(sessions))

    def _end_at_once(self, sessions: Sequence[str], addresses: Sequence[str]) -> None:
        """End sessions on the hosts at these addresses beside their current request."""
        def call() -> None:
            with contextlib.suppress(Exception):
                self._client.run(_end_all, sessions, workers=addresses, on_error="return")

        if not self.lost:
            thread = threading.Thread(target=call, daemon=True)   # the call waits forever for an unreachable host
            thread.start()
            thread.join(END_SECONDS)


def _quiet(client_class: Any) -> Any:
    """Return a subclass of dask's client that prints nothing if it is deleted before it could connect."""
    class Quiet(client_class):   # type: ignore[misc]  # dask has no types here
        def __del__(self) -> None:
            with contextlib.suppress(Exception):
                super().__del__()

    return Quiet


def _advance(session: str, command: list[str] | None, since: int, block: bytes) -> on_host.HostAnswer:
    """Continue a run while the client waits for the answer: dask cancels the tasks of a client that is gone."""
    from distributed import get_worker

    worker = get_worker()
    task = worker.state.tasks[worker.get_current_task()]
    return on_host.advance(session, command, since, block, wanted=lambda: task.state != "cancelled")


def _end_all(sessions: Sequence[str]) -> None:
    for session in sessions:
        on_host.end(session)


def other_versions(versions: Mapping[str, str]) -> dict[str, str]:
    """Return the hosts with another version of gilscope than ours."""
    return {name: version for name, version in versions.items() if version != gilscope.__version__}


def another_version(others: Mapping[str, str]) -> str:
    """Return the message about hosts with other versions than this machine."""
    listed = ", ".join(f"{name} has {version or 'none'}" for name, version in others.items())
    return (f"this is gilscope {gilscope.__version__}, and {listed}: hosts run their own gilscope, so install this "
            f"version there ({EXTRA}) and start their workers again")


def dask_distributed() -> Any:
    """Import dask.distributed, which is optional.

    Raises:
        ToolkitError: It is not installed.
    """
    try:
        import distributed
    except ImportError:
        raise ToolkitError(
            f"--fleet takes dask.distributed, which is not installed: pip install '{EXTRA}' "
            "(in a checkout: pip install '.[fleet]')") from None
    log_nothing_here()
    return distributed


@cache
def log_nothing_here() -> None:
    """Remove dask's log from the terminal, since we report each problem once; log files of dask's settings stay."""
    for name in [*logging.root.manager.loggerDict, "asyncio"]:
        if name.partition(".")[0] in {"distributed", "tornado", "asyncio"}:
            logger = logging.getLogger(name)
            for handler in [each for each in logger.handlers if type(each) is logging.StreamHandler]:
                logger.removeHandler(handler)
            logger.addHandler(logging.NullHandler())   # without any handler, Python prints warnings and errors
