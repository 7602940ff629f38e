"""What a workload is: one definition that every runner executes.

Task modules (`cpu.py`, `io.py`, ...) do not import this module: every worker imports the task's module afresh, and
dataclasses alone would cost more than the interpreter's own start.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Kind = Literal["cpu", "native", "io", "mixed", "contention", "transfer"]
Size = Literal["small", "medium", "large"]
Shared = Literal["counter", "dict", "list", "object"]
Service = Literal["echo", "http"]

Payload = Any   # plain data: what pickle takes and every interpreter can rebuild
Result = Any
Task = Callable[..., Result]                  # task(payload) or task(payload, shared)
AsyncTask = Callable[..., Awaitable[Result]]

SIZES: tuple[Size, ...] = ("small", "medium", "large")


class WrongResult(Exception):  # noqa: N818 - a verdict on a result, not a defect of ours
    """A task returned something else than it must: a fast wrong answer is no answer."""


class Maker(Protocol):
    """Makes the payloads of a pass."""

    def __call__(self, size: Size, workers: int = 1) -> Sequence[Payload]:
        """Return the payloads of `size`, as many as give each of `workers` workers one."""


class Check(Protocol):
    """Checks the results of a pass."""

    def __call__(self, size: Size, results: Sequence[Result], workers: int = 1) -> None:
        """Raise WrongResult unless `results` are those of the payloads that are made for the same arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One piece of work, cut into tasks.

    All cells of a run share the payloads, made for the largest number of workers: speed-up and efficiency mean strong
    scaling.
    """

    name: str
    kind: Kind
    summary: str                                       # one line for `gilscope list`
    task: Task                                         # module-level: workers import it by name
    payloads: Maker
    check: Check
    async_task: AsyncTask | None = None                # the same result, awaiting instead of blocking
    shared: Shared | None = None                       # handed to the task second, when the runner can share it
    service: Service | None = None                     # loopback server that must be up; its address is in the
                                                       # environment as GILSCOPE_ECHO or GILSCOPE_HTTP "host:port"
    requires: tuple[str, ...] = ()                     # top-level modules the task imports
    async_requires: tuple[str, ...] = ()               # the same for the async form
    packages: tuple[str, ...] = ()                     # requirement strings that provide both
    units: Callable[[int], Payload] | None = None      # a payload of n units of work, for --task-length
    twin: str | None = None                            # the workload it is read beside: shared and private, ...
