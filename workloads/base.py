"""The definition of a workload, which every runner executes unchanged.

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

Payload = Any   # plain data that pickle accepts and every interpreter can rebuild
Result = Any
Task = Callable[..., Result]                  # task(payload) or task(payload, shared)
AsyncTask = Callable[..., Awaitable[Result]]

SIZES: tuple[Size, ...] = ("small", "medium", "large")


class WrongResult(Exception):  # noqa: N818 - a verdict on a result, not a defect of ours
    """A task returned a wrong result: a fast wrong answer is no answer."""


class Maker(Protocol):
    """The function that makes the payloads of a pass."""

    def __call__(self, size: Size, workers: int = 1) -> Sequence[Payload]:
        """Return the payloads of `size`, at least one for each of `workers` workers."""


class Check(Protocol):
    """The function that checks the results of a pass."""

    def __call__(self, size: Size, results: Sequence[Result], workers: int = 1) -> None:
        """Raise WrongResult unless `results` belong to the payloads made with the same arguments."""


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
    shared: Shared | None = None                       # the task's second argument, if the runner can share it
    service: Service | None = None                     # loopback server that must be up; its address is in the
                                                       # environment as GILSCOPE_ECHO or GILSCOPE_HTTP "host:port"
    requires: tuple[str, ...] = ()                     # top-level modules the task imports
    async_requires: tuple[str, ...] = ()               # the same for the async form
    packages: tuple[str, ...] = ()                     # requirement strings that provide both
    units: Callable[[int], Payload] | None = None      # a payload of n units of work, for --task-length
    twin: str | None = None                            # its counterpart in reports: shared and private, for instance
