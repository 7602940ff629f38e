"""Pin a process to CPUs for a while and restore its affinity afterwards.  Runs in the measured process.

Uses psutil where the measured build has it, so it works on Windows and FreeBSD as on Linux; where psutil has no wheel
(3.15t today) it uses `os.sched_setaffinity` on Linux.  macOS cannot pin: its affinity tags are hints.  It is apart from
the program, since it is about operating systems and knows no experiment.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress

from gilscope.toolkit.cores import first_of_each_core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Protocol

    class AffinityApi(Protocol):
        """Reads and sets CPU affinity; on Linux of single threads, elsewhere only of processes."""

        def get(self, number: int) -> set[int]:
            """Return the CPUs that process or thread `number` may run on."""

        def set(self, number: int, cpus: set[int]) -> None:
            """Restrict process or thread `number` to `cpus`."""


class PinningError(Exception):
    """A process cannot be pinned; the message says why."""


def unavailable() -> str | None:
    """Return why this process cannot be pinned to CPUs on this system and build, or None when it can."""
    found = _find_api()
    return found if isinstance(found, str) else None


def allowed() -> tuple[int, ...]:
    """Return the numbers of the CPUs that this process may run on, ascending.

    Raises:
        PinningError: the system does not report them.
    """
    return tuple(sorted(_require_api().get(os.getpid())))


def separate() -> tuple[int, ...]:
    """Return one allowed CPU of each physical core, ascending, so that no two share a core by hyper-threading.

    Where the system does not report which CPUs share a core, every CPU counts as a core of its own.

    Raises:
        PinningError: the system does not report the allowed CPUs.
    """
    return tuple(first_of_each_core(allowed()))


@contextmanager
def pinned(cpus: Sequence[int], *, pid: int | None = None) -> Iterator[None]:
    """Restrict a process and all its threads to `cpus` for the `with` block.

    Threads and processes started within the block inherit the restriction.  On leaving, every thread gets its former
    affinity back and a new thread that of the process; processes started meanwhile stay restricted.

    Args:
        cpus: Numbers of CPUs that the process may run on now.
        pid: The process, None for this one.

    Raises:
        PinningError: the system cannot pin, or it refused.
    """
    system, process = _require_api(), os.getpid() if pid is None else pid
    before: dict[int, set[int]] = {}
    try:
        _restrict(system, process, set(cpus), before)
        yield
    finally:
        _restore(system, process, before)


def _restrict(system: AffinityApi, process: int, cpus: set[int], before: dict[int, set[int]]) -> None:
    """Pin every thread, and fill `before` with their affinities, so that an interrupted pinning can be undone."""
    if not cpus:
        raise PinningError("cannot pin a process to no CPU at all")
    # A thread that was not pinned yet may have started another one: repeat until no new thread appears.
    while fresh := [thread for thread in _threads(process) if thread not in before]:
        for thread in fresh:
            try:
                before[thread] = system.get(thread)
                system.set(thread, cpus)
            except ProcessLookupError:
                before.setdefault(thread, set())  # the thread has ended
            except OSError as error:
                raise PinningError(f"cannot pin process {process} to CPU {_shown(cpus)}: {error}") from error
    if process not in before or not before[process]:
        raise PinningError(f"cannot pin process {process}: it has ended")
    if (got := system.get(process)) != cpus:
        raise PinningError(f"process {process} was to run on CPU {_shown(cpus)}, but runs on {_shown(got)}")


def _restore(system: AffinityApi, process: int, before: dict[int, set[int]]) -> None:
    usual = before.get(process)
    for thread in _threads(process) if usual else ():
        # The thread may have ended, or its cpuset may have changed: then there is nothing to restore.
        with suppress(OSError):
            system.set(thread, before.get(thread) or usual or set())


def _threads(process: int) -> list[int]:
    """Return the ids of a process's threads, or only the process's where all threads share one affinity."""
    try:
        return [int(entry) for entry in os.listdir(f"/proc/{process}/task")]
    except OSError:
        return [process]


def _shown(cpus: set[int]) -> str:
    return ",".join(map(str, sorted(cpus)))


class _Psutil:
    """Affinity by psutil, on any system that it supports."""

    def __init__(self) -> None:
        import psutil

        self._process = psutil.Process
        self._ended: type[Exception] = psutil.NoSuchProcess
        self._refused: tuple[type[Exception], ...] = (psutil.Error, ValueError)  # ValueError: there is no such CPU
        self.works = hasattr(psutil.Process, "cpu_affinity")  # macOS has none

    def get(self, number: int) -> set[int]:
        return set(self._affinity(number, None))

    def set(self, number: int, cpus: set[int]) -> None:
        self._affinity(number, sorted(cpus))

    def _affinity(self, number: int, cpus: list[int] | None) -> list[int]:
        try:
            return self._process(number).cpu_affinity(cpus) or []
        except self._ended as error:
            raise ProcessLookupError(str(error)) from error
        except self._refused as error:
            raise OSError(str(error)) from error


class _Linux:
    """Affinity on Linux without psutil."""

    def get(self, number: int) -> set[int]:
        return os.sched_getaffinity(number)

    def set(self, number: int, cpus: set[int]) -> None:
        os.sched_setaffinity(number, cpus)


def _require_api() -> AffinityApi:
    found = _find_api()
    if isinstance(found, str):
        raise PinningError(found)
    return found


def _find_api() -> AffinityApi | str:
    """Return the way to pin on this system, or the reason why there is none."""
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
