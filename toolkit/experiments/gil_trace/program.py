"""Record how the lock changes hands: two CPU threads, one beside an I/O thread, two on one Lock, two on one list.

The shim of `gilscope.toolkit.gil` is preloaded; it records from the moment that this program starts it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.measure.child.program import ProgramValue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gilscope.toolkit.gil.summary import RecordingSummary
    from gilscope.toolkit.measure.child.program import BlockTime, ProgramTrial

    Work = Callable[[int], None]   # does the work a number of times

HOST = "127.0.0.1"
WORKERS = ("CPU", "I/O")   # names of the threads that do the work
LEAST_REQUESTS = 20
TRACE_SECONDS = 0.2    # the stored trace shows this much of the middle
CLIENT = "gilscope.toolkit.experiments.load.echo_client"


def measure(trial: ProgramTrial) -> ProgramValue:
    """Run the cell's "work" and return its time with the shim's counts as metrics.

    The value is the wall seconds of the whole count, or for "io" the seconds per request.
    """
    if trial.parameters["work"] == "io":
        return _beside_io(trial)
    return _together(trial)


def _together(trial: ProgramTrial) -> ProgramValue:
    """Time the work divided among `trial.workers` threads."""
    work, count = _work(trial.parameters["work"]), trial.count(trial.parameters["work"]) // trial.workers
    begin = threading.Barrier(trial.workers + 1)

    def run(name: str) -> None:
        _name_thread(name)
        begin.wait()
        work(count)

    with _recording(trial):
        threads = [threading.Thread(target=run, args=(f"CPU {number + 1}",)) for number in range(trial.workers)]
        for thread in threads:
            thread.start()
        with trial.measuring() as clock:
            begin.wait()
            for thread in threads:
                thread.join()
    return _taken(trial, clock, clock.wall, 1.0 if trial.model == "threads" else float(trial.workers))


def _work(name: str) -> Work:
    """Return the function that does the work `name`; its threads share the lock and the list that it closes over."""
    lock, shared = threading.Lock(), [0]

    def on_lock(count: int) -> None:
        for _ in range(count):
            with lock:
                shared[0] += 1

    def on_list(count: int) -> None:
        for _ in range(count):
            shared.append(0)
            shared.pop()

    return {"cpu": _count_down, "lock": on_lock, "list": on_list}[name]


def _count_down(count: int) -> None:
    while count > 0:
        count -= 1


def _beside_io(trial: ProgramTrial) -> ProgramValue:
    """Time the requests that a thread answers while another one computes."""
    listener = socket.create_server((HOST, 0))
    computing, stop = threading.Event(), threading.Event()

    def compute() -> None:
        _name_thread("CPU")
        computing.wait()
        while not stop.is_set():
            _count_down(1000)

    def serve() -> None:
        _name_thread("I/O")
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection, contextlib.suppress(OSError):
            while request := connection.recv(1):
                connection.sendall(request)

    seconds = trial.number("seconds")
    with _recording(trial), trial.helper(CLIENT) as client:
        threads = [threading.Thread(target=each) for each in (compute, serve)]
        for thread in threads:
            thread.start()
        client.ask(limit=30, do="connect", port=listener.getsockname()[1], connections=1)
        with trial.measuring() as clock:
            computing.set()
            answer = client.ask(limit=60, do="closed", seconds=seconds, least=LEAST_REQUESTS, bound=40)
            stop.set()
            threads[0].join()
    listener.close()
    threads[1].join()      # it ends, since the client has closed its connection
    taken = _taken(trial, clock, 1 / answer["rate"], 1.0 if trial.model == "threads" else 2.0)
    taken.metrics["requests"] = answer["requests"]
    waits = taken.metrics.get("io-waits")
    if waits:
        taken.metrics["io-waits"] = float(waits) / answer["requests"]
    return taken


@contextlib.contextmanager
def _recording(trial: ProgramTrial) -> Iterator[None]:
    """Record waits into the trial's folder for the `with` block."""
    shim = ctypes.PyDLL(None)     # the process with its preloaded shim; PyDLL keeps the GIL during calls
    if not hasattr(shim, "gilscope_gil_start"):
        trial.stop("the library that measures waits could not be preloaded into this build")
    folder = _folder(trial)
    folder.mkdir()
    if error := shim.gilscope_gil_start(os.fsencode(folder)):
        trial.stop(f"waits cannot be recorded: {os.strerror(error)}")
    try:
        yield
    finally:
        shim.gilscope_gil_stop()


def _folder(trial: ProgramTrial) -> Path:
    return Path(trial.folder, f"gil-trace-{os.getpid()}")   # one folder serves all trials of a run


def _name_thread(name: str) -> None:
    """Set the calling thread's name in the kernel, which Python itself does from 3.14 on."""
    with contextlib.suppress(OSError):
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name, encoding="ascii")


def _taken(trial: ProgramTrial, clock: BlockTime, seconds: float, cores: float) -> ProgramValue:
    # Import only now: earlier imports would be part of the measurement.
    from gilscope.toolkit.gil.chrome import write_trace
    from gilscope.toolkit.gil.records import read_folder
    from gilscope.toolkit.gil.summary import summarize

    (process,) = read_folder(_folder(trial))
    middle = process.seconds / 2
    path = _folder(trial) / "trace.json"
    write_trace([process], path, (middle - TRACE_SECONDS / 2, middle + TRACE_SECONDS / 2))
    metrics = _metrics(summarize([process]), clock.wall)
    return ProgramValue(seconds=seconds, cpu=clock.cpu, metrics=metrics, files={"trace.json": str(path)},
                        wanted_cores=cores)


def _metrics(summary: RecordingSummary, wall: float) -> dict[str, float | str]:
    """Return the totals of the threads that do the work, without the main thread."""
    rows = [row for row in summary.threads if row.name.startswith(WORKERS)]
    waits = sum(row.waits for row in rows)
    blocked = sum(row.parked + row.spun for row in rows)
    io = next((row for row in rows if row.name == "I/O"), None)
    found: dict[str, float | str] = {
        "lasted": wall, "waits": waits, "waited": sum(row.waited for row in rows) / (wall * len(rows)),
        "longest": max(row.longest for row in rows), "failed": sum(row.failed for row in rows),
        "handovers": sum(row.handovers for row in rows) / wall, "parks": sum(row.parks for row in rows),
        "blocked": blocked / (wall * len(rows)), "yields": sum(row.yields for row in rows),
        "calls": summary.system_calls / wall, "overhead": summary.overhead / wall,
    }
    if summary.context_switches is not None:
        found["switches"] = summary.context_switches / wall
    if io is not None and io.waits:
        found |= {"io-wait": io.waited / io.waits, "io-waits": io.waits}
    return found
