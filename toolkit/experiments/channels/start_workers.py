"""Start the workers of `channels` as threads, interpreters or processes, collect their reports, and end them."""

from __future__ import annotations

import os
import queue
import selectors
import sys
import threading
from contextlib import contextmanager

from gilscope.runners import _interpreters
from gilscope.toolkit.experiments.channels import worker_roles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

START_SECONDS = 40.0   # for all workers together; 3.13t takes seconds beside busy processes
END_SECONDS = 10.0

# 3.12 crashes when interpreters are created or destroyed at the same time.  Delete with 3.12 support.
_making = threading.Lock()


class WorkerFailedError(Exception):
    """A worker did not start, raised, or ended too early."""


class WorkerPipes:
    """The pipes between the main thread and one worker: orders there, reports back."""

    def __init__(self, place: int) -> None:
        """Open both pipes."""
        self.place = place
        self.far_orders, self.orders = os.pipe()
        self.reports, self.far_reports = os.pipe()

    def close_far(self) -> None:
        """Close the worker's ends, of which another process may hold copies."""
        os.close(self.far_orders)
        os.close(self.far_reports)

    def close(self) -> None:
        """Close this side's ends."""
        os.close(self.orders)
        os.close(self.reports)


class WorkerCrew:
    """The workers, at places from 1 on, with their reports.

    A thread reads their reports all the time; if one fails, it calls `alarm` with a message of kind `ALARM`, so that
    a thread that waits for messages gets one.
    """

    def __init__(self, pipes: list[WorkerPipes], alarm: Callable[[bytes], object]) -> None:
        """`pipes` are those of workers that are starting."""
        self._pipes = pipes
        self._alarm = alarm
        self._reports: queue.SimpleQueue[tuple[int, bytes]] = queue.SimpleQueue()
        self._listener = threading.Thread(target=self._listen, name="listener", daemon=True)
        self._listener.start()

    def wait_until_ready(self, number: int) -> None:
        """Wait until `number` more workers can take messages.

        Raises:
            WorkerFailedError: one failed, or they took too long.
        """
        self._collect(number, START_SECONDS, "did not start")

    def order(self, number: int) -> None:
        """Have every worker produce `number` messages; 0 ends their role."""
        for each in self._pipes:
            worker_roles.send_frame(each.orders, b"%d" % number)

    def counts(self) -> dict[int, int]:
        """Return the number of messages that each worker handled, by place, once all have ended their roles.

        Raises:
            WorkerFailedError: one failed, or they took too long.
        """
        reports = self._collect(len(self._pipes), END_SECONDS, "did not end")
        return {place: int(report.removeprefix(worker_roles.DONE)) for place, report in reports.items()}

    def leave(self) -> None:
        """Let every worker end."""
        for each in self._pipes:
            os.close(each.orders)
        self._listener.join(END_SECONDS)
        for each in self._pipes:
            os.close(each.reports)

    def _collect(self, number: int, seconds: float, late: str) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        while len(found) < number:
            try:
                place, report = self._reports.get(timeout=seconds)
            except queue.Empty:
                raise WorkerFailedError(f"{number - len(found)} workers {late} within {seconds:g} s") from None
            if report.startswith(worker_roles.ERROR):
                raise WorkerFailedError(report.removeprefix(worker_roles.ERROR).decode(errors="replace"))
            found[place] = report
        return found

    def _listen(self) -> None:
        with selectors.DefaultSelector() as selector:
            for each in self._pipes:
                selector.register(each.reports, selectors.EVENT_READ, each.place)
            done: set[int] = set()
            while selector.get_map():
                for key, _ in selector.select():
                    report = worker_roles.receive_frame(key.fd)
                    if report is None:
                        selector.unregister(key.fd)
                    self._note(key.data, report, done)

    def _note(self, place: int, report: bytearray | None, done: set[int]) -> None:
        if report is None and place in done:
            return
        text = worker_roles.ERROR + b"a worker ended without a word" if report is None else bytes(report)
        self._reports.put((place, text))
        if text != worker_roles.READY:
            done.add(place)
        if text.startswith(worker_roles.ERROR):
            self._alarm(bytes((worker_roles.ALARM,)) + text.removeprefix(worker_roles.ERROR))


@contextmanager
def started_workers(
    model: str, roles: list[dict[str, Any]], alarm: Callable[[bytes], object], release: Callable[[], object],
    context: Any,
) -> Iterator[WorkerCrew]:
    """Start a worker for each entry of `roles`, keyword arguments of `worker_roles.work`, and end them on leaving.

    Args:
        model: "threads", "free-threaded", "subinterpreters"; anything else means processes.
        roles: The arguments without the pipes, which are created here.
        alarm: Called with a message when a worker fails.
        release: Called after an exception, to end the roles of workers that wait for messages.
        context: The context of multiprocessing, for processes.

    Raises:
        WorkerFailedError: a worker did not become ready.
    """
    pipes = [WorkerPipes(role["place"]) for role in roles]
    start = _STARTS.get(model, _start_process)
    crew, started = WorkerCrew(pipes, alarm), []
    one_at_a_time = model == "subinterpreters" and _interpreters.ONE_AT_A_TIME
    try:
        for role, own in zip(roles, pipes, strict=True):
            started.append(start({**role, "orders": own.far_orders, "reports": own.far_reports}, own, context))
            if one_at_a_time:
                crew.wait_until_ready(1)
        if not one_at_a_time:
            crew.wait_until_ready(len(pipes))
        yield crew
    except BaseException:
        release()
        raise
    finally:
        crew.leave()
        for each in started:
            each.join(END_SECONDS)
            if each.is_alive() and hasattr(each, "kill"):
                each.kill()
                each.join()


def _start_thread(role: dict[str, Any], pipes: WorkerPipes, context: Any) -> threading.Thread:  # noqa: ARG001 - one signature
    def run() -> None:
        try:
            worker_roles.work(**role)
        finally:
            pipes.close_far()

    thread = threading.Thread(target=run, name="worker", daemon=True)
    thread.start()
    return thread


def _start_interpreter(role: dict[str, Any], pipes: WorkerPipes, context: Any) -> threading.Thread:  # noqa: ARG001 - one signature
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
        except Exception as error:  # noqa: BLE001 - whatever an interpreter raises is the cell's result
            worker_roles.send_frame(pipes.far_reports, worker_roles.ERROR + f"{type(error).__name__}: {error}".encode())
        finally:
            pipes.close_far()

    thread = threading.Thread(target=run, name="host", daemon=True)
    thread.start()
    return thread


def _start_process(role: dict[str, Any], pipes: WorkerPipes, context: Any) -> Any:
    from multiprocessing.connection import Connection

    # Connections travel to another process, descriptors do not.
    lent = {name: Connection(os.dup(role[name])) for name in ("orders", "reports")}
    process = context.Process(target=_in_process, args=({**role, **lent},), daemon=True)
    process.start()
    for each in lent.values():
        each.close()
    pipes.close_far()
    return process


def _in_process(role: dict[str, Any]) -> None:
    orders, reports = role["orders"], role["reports"]
    worker_roles.work(**{**role, "orders": orders.fileno(), "reports": reports.fileno()})


_STARTS: dict[str, Any] = {
    "threads": _start_thread, "free-threaded": _start_thread, "subinterpreters": _start_interpreter,
}
