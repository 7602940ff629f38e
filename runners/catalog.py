"""Every runner there is, in the order that tables show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.runners.asyncio_ import AsyncioRunner
from gilscope.runners.dask_ import DASK, DASK_THREADS, PACKAGE
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

# What runners need beside the standard library, as an installer is asked for it: they take part only when named.
PACKAGES: dict[str, str] = {DASK.name: PACKAGE, DASK_THREADS.name: PACKAGE}


def find(name: str) -> Runner:
    """Return the runner of that name.

    Raises:
        KeyError: there is none.
    """
    for runner in RUNNERS:
        if runner.name == name:
            return runner
    raise KeyError(name)
