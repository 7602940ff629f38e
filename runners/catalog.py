"""Every runner, in the order of tables and legends; a new one is a class in a file of its own and a line here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.runners.asyncio_ import AsyncioRunner
from gilscope.runners.dask_ import DASK, DASK_THREADS
from gilscope.runners.interpreter_pool import InterpreterPoolRunner
from gilscope.runners.processes import FORK, FORKSERVER, SPAWN
from gilscope.runners.serial import SerialRunner
from gilscope.runners.subinterpreters import SubinterpretersRunner
from gilscope.runners.threads import FREE_THREADED, THREADS

if TYPE_CHECKING:
    from gilscope.runners.base import Runner

RUNNERS: tuple[Runner, ...] = (
    SerialRunner(), THREADS, FREE_THREADED, SubinterpretersRunner(), InterpreterPoolRunner(),
    SPAWN, FORKSERVER, FORK, AsyncioRunner(), DASK, DASK_THREADS,
)

# Requirements of runners that need more than the standard library.
PACKAGES: dict[str, str] = {runner.name: runner.package for runner in RUNNERS if runner.package}


def find(name: str) -> Runner:
    """Return the runner of that name.

    Raises:
        KeyError: there is none.
    """
    for runner in RUNNERS:
        if runner.name == name:
            return runner
    raise KeyError(name)
