"""Which CPUs a process may run on: asked, narrowed for a while, put back.  Runs in the measured process.

Through psutil where the measured build has it, so on Windows and FreeBSD as on Linux; where psutil has no wheel (3.15t
today) Linux is asked through `os.sched_setaffinity`.  macOS has nothing of the kind: its affinity tags are hints.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Protocol

    class System(Protocol):
        """How a system is asked.  Linux knows threads apart by their number; elsewhere there are only processes."""

        def get(self, number: int) -> set[int]:
            """Return the CPUs that process or thread `number` may run on."""

        def set(self, number: int, cpus: set[int]) -> None:
            """Let process or thread `number` run on `cpus` only."""


SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


class PinningError(Exception):
    """A process cannot be pinned; the message says why."""


def unavailable() -> str | None:
    """Return why this process cannot be pinned to CPUs on this system and build, or None when it can."""
    found = _system()
    return found if isinstance(found, str) else None


def allowed() -> tuple[int, ...]:
    """Return the numbers of the CPUs that this process may run on, ascending.

    Raises:
        PinningError: the system does not tell.
    """
    return tuple(sorted(_needed_system().get(os.getpid())))


def separate() -> tuple[int, ...]:
    """Return one allowed CPU of each physical core, ascending: two of them share no core by hyper-threading.

    Where the system does not say which CPUs share a core, every one counts as its own.

    Raises:
        PinningError: the system does not tell which are allowed.
    """
    return first_of_each_core(allowed(), {cpu: _siblings(cpu) for cpu in allowed()})


def first_of_each_core(cpus: Sequence[int], siblings: dict[int, str]) -> tuple[int, ...]:
    """Return the first of `cpus` for each distinct text in `siblings`; an empty text is a core of its own."""
    cores: dict[str, int] = {}
    for cpu in sorted(cpus):
        cores.setdefault(siblings[cpu] or f"cpu{cpu}", cpu)
    return tuple(sorted(cores.values()))


@contextmanager
def pinned(cpus: Sequence[int], *, pid: int | None = None) -> Iterator[None]:
    """Let a process and all its threads run on `cpus` only, for the `with` block.

    Threads and processes that are started meanwhile inherit it.  On leaving every thread gets back what it had, a new
    one what the process had; processes that were started meanwhile stay as they are.

    Args:
        cpus: Numbers of CPUs that the process may run on now.
        pid: The process; None: this one.

    Raises:
        PinningError: the system cannot, or it refused.
    """
    system, process = _needed_system(), os.getpid() if pid is None else pid
    before: dict[int, set[int]] = {}
    try:
        _narrow(system, process, set(cpus), before)
        yield
    finally:
        _put_back(system, process, before)


def _narrow(system: System, process: int, cpus: set[int], before: dict[int, set[int]]) -> None:
    """Pin every thread; `before` is filled as they are pinned, so that a half-done pinning can be put back."""
    if not cpus:
        raise PinningError("cannot pin a process to no CPU at all")
    # A thread that was not pinned yet may have started one meanwhile: look again until there is nobody new.
    while fresh := [thread for thread in _threads(process) if thread not in before]:
        for thread in fresh:
            try:
                before[thread] = system.get(thread)
                system.set(thread, cpus)
            except ProcessLookupError:
                before.setdefault(thread, set())  # it has ended
            except OSError as error:
                raise PinningError(f"cannot pin process {process} to CPU {_shown(cpus)}: {error}") from error
    if process not in before or not before[process]:
        raise PinningError(f"cannot pin process {process}: it has ended")
    if (got := system.get(process)) != cpus:
        raise PinningError(f"process {process} was to run on CPU {_shown(cpus)}, but runs on {_shown(got)}")


def _put_back(system: System, process: int, before: dict[int, set[int]]) -> None:
    usual = before.get(process)
    for thread in _threads(process) if usual else ():
        # A helper may have ended, a cpuset may have changed: nothing is left to be put back then.
        with suppress(OSError):
            system.set(thread, before.get(thread) or usual or set())


def _threads(process: int) -> list[int]:
    """Return the numbers of a process's threads, or just the process's where an affinity is one for all of them."""
    try:
        return [int(entry) for entry in os.listdir(f"/proc/{process}/task")]
    except OSError:
        return [process]


def _siblings(cpu: int) -> str:
    try:
        with open(SIBLINGS.format(cpu)) as file:
            return file.read().strip()
    except OSError:
        return ""


def _shown(cpus: set[int]) -> str:
    return ",".join(map(str, sorted(cpus)))


class _Psutil:
    """Any system that psutil can ask."""

    def __init__(self) -> None:
        import psutil

        self._process = psutil.Process
        self._ended: type[Exception] = psutil.NoSuchProcess
        self._refused: tuple[type[Exception], ...] = (psutil.Error, ValueError)  # ValueError: there is no such CPU
        self.works = hasattr(psutil.Process, "cpu_affinity")  # not on macOS

    def get(self, number: int) -> set[int]:
        return set(self._asked(number, None))

    def set(self, number: int, cpus: set[int]) -> None:
        self._asked(number, sorted(cpus))

    def _asked(self, number: int, cpus: list[int] | None) -> list[int]:
        try:
            return self._process(number).cpu_affinity(cpus) or []
        except self._ended as error:
            raise ProcessLookupError(str(error)) from error
        except self._refused as error:
            raise OSError(str(error)) from error


class _Linux:
    """Linux without psutil."""

    def get(self, number: int) -> set[int]:
        return os.sched_getaffinity(number)

    def set(self, number: int, cpus: set[int]) -> None:
        os.sched_setaffinity(number, cpus)


def _needed_system() -> System:
    found = _system()
    if isinstance(found, str):
        raise PinningError(found)
    return found


def _system() -> System | str:
    """Return how this system is asked, or why it cannot be."""
    if sys.platform == "darwin":
        return "macOS has no way to pin a process to a CPU"
    try:
        if (system := _Psutil()).works:
            return system
    except ImportError:
        pass
    if hasattr(os, "sched_setaffinity"):
        return _Linux()
    return f"pinning on {sys.platform} needs psutil, which this build does not have (pip install psutil)"
