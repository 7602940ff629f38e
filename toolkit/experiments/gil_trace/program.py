"""Record how the lock changes hands: two CPU threads, one beside an I/O thread, two on one Lock, two on one list.

The shim of `gilscope.toolkit.gil` was preloaded; it records from where the program says so.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.measure.program.interface import Taken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gilscope.toolkit.gil.summary import Summary
    from gilscope.toolkit.measure.program.interface import Clock, Trial

    Turns = Callable[[int], None]

HOST = "127.0.0.1"
WORKERS = ("CPU", "I/O")   # what threads of the work are called
LEAST_REQUESTS = 20
TRACE_SECONDS = 0.2    # of the middle: what the kept trace shows
CLIENT = "gilscope.toolkit.experiments.load.echo_client"


def measure(trial: Trial) -> Taken:
    """Run the cell's "work" and return its time with what the shim recorded of it.

    The value is the wall seconds of the whole count, or for "io" the seconds per request.
    """
    if trial.parameters["work"] == "io":
        return _beside_io(trial)
    return _together(trial)


def _together(trial: Trial) -> Taken:
    """Time the work shared out among `trial.workers` threads."""
    work, count = _turns(trial.parameters["work"]), trial.count(trial.parameters["work"]) // trial.workers
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


def _turns(work: str) -> Turns:
    """Return the function that does `work` a number of times; what its threads share, they share through it."""
    lock, shared = threading.Lock(), [0]

    def on_lock(count: int) -> None:
        for _ in range(count):
            with lock:
                shared[0] += 1

    def on_list(count: int) -> None:
        for _ in range(count):
            shared.append(0)
            shared.pop()

    return {"cpu": _count_down, "lock": on_lock, "list": on_list}[work]


def _count_down(count: int) -> None:
    while count > 0:
        count -= 1


def _beside_io(trial: Trial) -> Taken:
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
    threads[1].join()      # the client has gone
    taken = _taken(trial, clock, 1 / answer["rate"], 1.0 if trial.model == "threads" else 2.0)
    taken.metrics["requests"] = answer["requests"]
    waits = taken.metrics.get("io-waits")
    if waits:
        taken.metrics["io-waits"] = float(waits) / answer["requests"]
    return taken


@contextlib.contextmanager
def _recording(trial: Trial) -> Iterator[None]:
    """Record into the trial's folder while the block runs."""
    shim = ctypes.PyDLL(None)     # of all that is loaded; keeps the GIL during its calls
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


def _folder(trial: Trial) -> Path:
    return Path(trial.folder, f"gil-trace-{os.getpid()}")   # one folder serves all trials of a run


def _name_thread(name: str) -> None:
    """Name the calling thread for the system, which Python does from 3.14 on only."""
    with contextlib.suppress(OSError):
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name, encoding="ascii")


def _taken(trial: Trial, clock: Clock, seconds: float, cores: float) -> Taken:
    # Not before all is measured: what is imported is part of what is measured.
    from gilscope.toolkit.gil.chrome import write_trace
    from gilscope.toolkit.gil.records import read_folder
    from gilscope.toolkit.gil.summary import summarize

    (process,) = read_folder(_folder(trial))
    middle = process.seconds / 2
    path = _folder(trial) / "trace.json"
    write_trace([process], path, (middle - TRACE_SECONDS / 2, middle + TRACE_SECONDS / 2))
    metrics = _metrics(summarize([process]), clock.wall)
    return Taken(seconds=seconds, cpu=clock.cpu, metrics=metrics, files={"trace.json": str(path)}, wanted_cores=cores)


def _metrics(summary: Summary, wall: float) -> dict[str, float | str]:
    """Return what the threads of the work came to, without those of the frame around it."""
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
