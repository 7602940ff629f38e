"""Measure the cost of one more worker: a thread, an interpreter with its own GIL, a new process; a child process.

Runs inside the build under test.  Memory is anonymous pages: what a worker has for itself, without the files
(libraries, the interpreter's code) that all workers map.  Interpreters live on threads of their own, as in pools:
entering one from the main thread costs more (3.14 and later read /proc/self/maps then).
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
import time

from gilscope.toolkit.children.child import (
    Journal,
    begin,
    forget_toolkit,
    interpreters_module,
    run_in,
    stdlib_modules,
)
from gilscope.toolkit.cores import scheduled
from gilscope.toolkit.measure.child.refusal import REFUSAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Numbers of workers: at least, and at most if there is time.  LIVING ones exist at the same time.
THREADS, PROCESSES, LIVING, ROUNDS = (4, 4), (2, 5), (2, 4), (3, 8)
SCRIPT = """import sys
sys.path.extend(path for path in {path!r} if path not in sys.path)
from importlib import import_module
for name in {modules!r}: import_module(name)
"""
# CPython's refusal is at the end of the chain of exceptions, below whatever packages raise.
TRIAL = """
try:
    import_module({name!r})
except BaseException as error:
    import re
    chain = [error]
    while following := chain[-1].__cause__ or chain[-1].__context__: chain.append(following)
    refusals = [found[0] for each in chain if (found := re.search({refusal!r}, str(each)))]
    raise ImportError(refusals[0] if refusals else f'{{type(error).__name__}}: {{error}}') from None
"""


def main() -> None:
    """Start workers of each kind for the job that the command line names, and record the cost of each."""
    job = begin()
    forget_toolkit()
    journal = Journal(job, 0)
    interpreters = interpreters_module()
    if interpreters is None:
        journal.write("unavailable")
        return
    try:
        _measure(job, journal, interpreters)
    except BaseException as error:  # noqa: BLE001  any exception is the answer
        journal.write("failed", error=f"{type(error).__name__}: {error}")
    else:
        journal.write("end")
    os._exit(0)   # imported modules may have waiting threads, and after a failure so may we


def _measure(job: dict[str, Any], journal: Journal, interpreters: Any) -> None:
    # A program has them in its main interpreter, too; and 3.12 and 3.13 crash where a second interpreter imports what
    # the main one never did (gh-136423).
    missing = {name: error for name in job["modules"] if (error := _missing(name))}
    journal.write("imported", missing=missing, stdlib=sorted(stdlib_modules()))
    there = [name for name in job["modules"] if name not in missing]
    refused = _refused(interpreters, job["path"], there)
    journal.write("tried", refused=refused)
    script = SCRIPT.format(path=job["path"], modules=[name for name in there if name not in refused])
    seconds = job["seconds"] / 3
    _threads(journal)
    _processes(journal, script, seconds)
    _living(journal, interpreters, script, seconds)
    _rounds(journal, interpreters, script, seconds)


class WorkerThread(threading.Thread):
    """A thread that is one worker, from `begin` to `end`."""

    def __init__(self) -> None:
        """Create the thread without starting it."""
        super().__init__()
        self.costs: dict[str, Any] = {}
        self._up = threading.Event()
        self._over = threading.Event()
        self._error: BaseException | None = None

    def begin(self) -> None:
        """Start it and wait until it is ready; raise the exception that prevents that."""
        memory, began = own_memory(), time.perf_counter()
        self.start()
        self._up.wait()
        self.costs["start"] = time.perf_counter() - began
        self.costs["memory"] = _grown(memory)
        self._raise()

    def end(self) -> dict[str, Any]:
        """End it, and return its costs."""
        self._over.set()
        self.join()
        self._raise()
        return self.costs

    def run(self) -> None:
        """Run as a worker until `end`."""
        try:
            self.prepare()
            self._up.set()
            self._over.wait()
            self.clear_up()
        except BaseException as error:  # noqa: BLE001  raised in the thread that waits
            self._error = error
        finally:
            self._up.set()
        self.costs["ran"], self.costs["waited"] = scheduled() or (0, 0)

    def prepare(self) -> None:
        """Make this thread a worker; nothing to do for a thread."""

    def clear_up(self) -> None:
        """Undo `prepare`."""

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error


class InterpreterThread(WorkerThread):
    """A thread with its own interpreter, which runs a script."""

    def __init__(self, interpreters: Any, script: str) -> None:
        """Create the thread; `interpreters` is the module that creates interpreters."""
        super().__init__()
        self._interpreters = interpreters
        self._script = script

    def prepare(self) -> None:
        """Create the interpreter and run the script in it."""
        began = time.perf_counter()
        self._ident = self._interpreters.create()
        created = time.perf_counter()
        error = run_in(self._interpreters, self._ident, self._script)
        self.costs |= {"create": created - began, "imports": time.perf_counter() - created}
        if error:
            raise RuntimeError(error)

    def clear_up(self) -> None:
        """Destroy the interpreter."""
        began = time.perf_counter()
        self._interpreters.destroy(self._ident)
        self.costs["destroy"] = time.perf_counter() - began


def _missing(name: str) -> str | None:
    try:
        importlib.import_module(name)
    except BaseException as error:  # noqa: BLE001  any exception means that the module is missing
        return f"{type(error).__name__}: {error}"
    return None


def _refused(interpreters: Any, path: list[str], modules: list[str]) -> dict[str, str]:
    """Return the modules that an interpreter cannot import, with reasons; this first interpreter is not measured."""
    refused = {}

    class TrialThread(InterpreterThread):
        def prepare(self) -> None:
            self._ident = interpreters.create()
            for name in modules:
                script = SCRIPT.format(path=path, modules=[]) + TRIAL.format(name=name, refusal=REFUSAL.pattern)
                if error := run_in(interpreters, self._ident, script):
                    refused[name] = error.strip().splitlines()[-1]

    trial = TrialThread(interpreters, "")
    trial.begin()
    trial.end()
    return refused


def _threads(journal: Journal) -> None:
    hosts = []
    for _ in _times(THREADS, 0.0):
        hosts.append(WorkerThread())
        hosts[-1].begin()
    for host in hosts:
        journal.write("thread", **host.end())


def _processes(journal: Journal, script: str, seconds: float) -> None:
    for _ in _times(PROCESSES, seconds):
        reader, writer = os.pipe()
        code = f"{script}\nimport os; os.write({writer}, b'.'); sys.stdin.read()"
        began = time.perf_counter()
        process = subprocess.Popen(   # "spawn", not preloaded or forked, as `multiprocessing` calls it
            [sys.executable, "-P", "-s", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            pass_fds=[writer])
        os.close(writer)
        ready = os.read(reader, 1)
        start = time.perf_counter() - began
        os.close(reader)
        memory, (ran, waited) = own_memory(process.pid), scheduled(str(process.pid)) or (0, 0)
        process.kill()
        process.communicate()
        if not ready:
            raise RuntimeError("a new process could not import it")
        journal.write("process", start=start, memory=memory, ran=ran, waited=waited)


def _living(journal: Journal, interpreters: Any, script: str, seconds: float) -> None:
    hosts = []
    for _ in _times(LIVING, seconds):
        hosts.append(InterpreterThread(interpreters, script))
        hosts[-1].begin()
    for host in hosts:
        journal.write("interpreter", **host.end())


def _rounds(journal: Journal, interpreters: Any, script: str, seconds: float) -> None:
    for _ in _times(ROUNDS, seconds):
        host = InterpreterThread(interpreters, script)
        host.begin()
        costs = host.end()
        # The growth is not measured: an interpreter reuses memory that an earlier one left.
        journal.write("interpreter", **{**costs, "memory": None})
        journal.write("destroyed", memory=own_memory())


def _times(bounds: tuple[int, int], seconds: float) -> Iterator[int]:
    least, most = bounds
    began = time.monotonic()
    for number in range(most):
        if number >= least and time.monotonic() - began > seconds:
            return
        yield number


def own_memory(pid: int | str = "self") -> int | None:
    """Return the bytes of anonymous memory of this process; None if the system does not report it."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith(b"RssAnon:")), None)
    except OSError:
        return None


def _grown(before: int | None) -> int | None:
    now = own_memory()
    return None if before is None or now is None else now - before
