"""Starts the workers of `channels` as threads, interpreters or processes, hears what they report, and ends them."""

from __future__ import annotations

import os
import queue
import selectors
import sys
import threading
from contextlib import contextmanager

from gilscope.runners import _interpreters, _worker
from gilscope.toolkit.experiments.channels import worker_roles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

START_SECONDS = 40.0   # for all workers together; 3.13t takes seconds beside busy processes
END_SECONDS = 10.0

_making = threading.Lock()  # 3.12 crashes when interpreters are made or destroyed at the same time; goes with 3.12


class WorkerFailedError(Exception):
    """A worker did not start, raised, or ended before it was told to."""


class Line:
    """The pipes between the main one and one worker: orders there, reports back."""

    def __init__(self, place: int) -> None:
        """Open both pipes."""
        self.place = place
        self.far_orders, self.orders = os.pipe()
        self.reports, self.far_reports = os.pipe()

    def close_far(self) -> None:
        """Close the worker's ends, which it does itself, or which another process holds."""
        os.close(self.far_orders)
        os.close(self.far_reports)

    def close(self) -> None:
        """Close this side's ends."""
        os.close(self.orders)
        os.close(self.reports)


class Crew:
    """Workers, at places from 1 on, and what they say.

    A thread hears them all the time; when one fails meanwhile it calls `alarm` with a message of kind `ALARM`, so
    that whoever waits for messages gets one.
    """

    def __init__(self, lines: list[Line], alarm: Callable[[bytes], object]) -> None:
        """`lines` are those of workers that are starting."""
        self._lines = lines
        self._alarm = alarm
        self._heard: queue.SimpleQueue[tuple[int, bytes]] = queue.SimpleQueue()
        self._listener = threading.Thread(target=self._listen, name="listener", daemon=True)
        self._listener.start()

    def wait_until_ready(self, number: int) -> None:
        """Wait until `number` workers more can take messages.

        Raises:
            WorkerFailedError: one failed, or they took too long.
        """
        self._collect(number, START_SECONDS, "did not start")

    def order(self, number: int) -> None:
        """Have every worker produce `number` messages; 0 ends their role."""
        for line in self._lines:
            _worker.send(line.orders, b"%d" % number)

    def counts(self) -> dict[int, int]:
        """Return how many messages each worker has handled, by place, when all have ended their roles.

        Raises:
            WorkerFailedError: one failed, or they took too long.
        """
        heard = self._collect(len(self._lines), END_SECONDS, "did not end")
        return {place: int(report.removeprefix(worker_roles.DONE)) for place, report in heard.items()}

    def leave(self) -> None:
        """Let every worker go."""
        for line in self._lines:
            os.close(line.orders)
        self._listener.join(END_SECONDS)
        for line in self._lines:
            os.close(line.reports)

    def _collect(self, number: int, seconds: float, late: str) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        while len(found) < number:
            try:
                place, report = self._heard.get(timeout=seconds)
            except queue.Empty:
                raise WorkerFailedError(f"{number - len(found)} workers {late} within {seconds:g} s") from None
            if report.startswith(worker_roles.ERROR):
                raise WorkerFailedError(report.removeprefix(worker_roles.ERROR).decode(errors="replace"))
            found[place] = report
        return found

    def _listen(self) -> None:
        with selectors.DefaultSelector() as selector:
            for line in self._lines:
                selector.register(line.reports, selectors.EVENT_READ, line.place)
            done: set[int] = set()
            while selector.get_map():
                for key, _ in selector.select():
                    report = _worker.receive(key.fd)
                    if report is None:
                        selector.unregister(key.fd)
                    self._hear(key.data, report, done)

    def _hear(self, place: int, report: bytearray | None, done: set[int]) -> None:
        if report is None and place in done:
            return
        said = worker_roles.ERROR + b"a worker ended without a word" if report is None else bytes(report)
        self._heard.put((place, said))
        if said != worker_roles.READY:
            done.add(place)
        if said.startswith(worker_roles.ERROR):
            self._alarm(bytes((worker_roles.ALARM,)) + said.removeprefix(worker_roles.ERROR))


@contextmanager
def crew(
    model: str, roles: list[dict[str, Any]], alarm: Callable[[bytes], object], release: Callable[[], object],
    context: Any,
) -> Iterator[Crew]:
    """Start one worker per entry of `roles`, keyword arguments of `worker_roles.work`, and end them on leaving.

    Args:
        model: "threads", "free-threaded", "subinterpreters"; anything else is processes.
        roles: Without the pipes, which are made here.
        alarm: Called with a message when a worker fails.
        release: Called when something went wrong: it ends the roles of workers that wait for messages.
        context: Of multiprocessing, for processes.

    Raises:
        WorkerFailedError: a worker did not get ready.
    """
    lines = [Line(role["place"]) for role in roles]
    start = _STARTS.get(model, _start_process)
    members, started = Crew(lines, alarm), []
    one_at_a_time = model == "subinterpreters" and _interpreters.ONE_AT_A_TIME
    try:
        for role, line in zip(roles, lines, strict=True):
            started.append(start({**role, "orders": line.far_orders, "reports": line.far_reports}, line, context))
            if one_at_a_time:
                members.wait_until_ready(1)
        if not one_at_a_time:
            members.wait_until_ready(len(lines))
        yield members
    except BaseException:
        release()
        raise
    finally:
        members.leave()
        for each in started:
            each.join(END_SECONDS)
            if each.is_alive() and hasattr(each, "kill"):
                each.kill()
                each.join()


def _start_thread(role: dict[str, Any], line: Line, context: Any) -> threading.Thread:  # noqa: ARG001 - one signature
    def run() -> None:
        try:
            worker_roles.work(**role)
        finally:
            line.close_far()

    thread = threading.Thread(target=run, name="worker", daemon=True)
    thread.start()
    return thread


def _start_interpreter(role: dict[str, Any], line: Line, context: Any) -> threading.Thread:  # noqa: ARG001 - one signature
    path = [entry for entry in sys.path if isinstance(entry, str)]
    code = (f"import sys\nsys.path[:] = {path!r}\n{_interpreters.PRELUDE}"
            f"from gilscope.toolkit.experiments.channels import worker_roles\nworker_roles.work(**{role!r})\n")

    def run() -> None:
        try:
            with _making:
                interpreter = _interpreters.create()
            try:
                interpreter.exec(code)
            finally:
                with _making:
                    interpreter.close()
        except Exception as error:  # noqa: BLE001 - it may fail in its own ways, and that is the cell's result
            _worker.send(line.far_reports, worker_roles.ERROR + f"{type(error).__name__}: {error}".encode())
        finally:
            line.close_far()

    thread = threading.Thread(target=run, name="host", daemon=True)
    thread.start()
    return thread


def _start_process(role: dict[str, Any], line: Line, context: Any) -> Any:
    from multiprocessing.connection import Connection

    # Connections travel to another process, descriptors do not.
    lent = {name: Connection(os.dup(role[name])) for name in ("orders", "reports")}
    process = context.Process(target=_in_process, args=({**role, **lent},), daemon=True)
    process.start()
    for each in lent.values():
        each.close()
    line.close_far()
    return process


def _in_process(role: dict[str, Any]) -> None:
    orders, reports = role["orders"], role["reports"]
    worker_roles.work(**{**role, "orders": orders.fileno(), "reports": reports.fileno()})


_STARTS: dict[str, Any] = {
    "threads": _start_thread, "free-threaded": _start_thread, "subinterpreters": _start_interpreter,
}
