"""What a runner is: a concurrency model in its closed form; a pool is its open form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

Shared = Literal["counter", "dict", "list", "object"]
Payload = Any
Result = Any
Task = Callable[..., Any]


class Pool(Protocol):
    """Workers that are up and waiting."""

    def map(self, task: Task, payloads: Sequence[Payload]) -> list[Result]:
        """Run every payload, return the results in order, raise the first task's exception with its traceback."""


class Runner(Protocol):
    """A concurrency model."""

    name: str
    summary: str                   # one line for `gilscope list`
    awaits: bool                   # takes the async form of a task when there is one
    shares: frozenset[Shared]      # what its workers can share
    parallel: bool                 # can its workers use more than one core at once for Python code
    gil: bool | None               # True: the GIL must be on; False: it must be off; None: either

    def unavailable(self) -> str | None:
        """Return why this build, as this process runs it, cannot use the model, or None when it can."""

    def pool(self, workers: int, shared: Shared | None = None) -> AbstractContextManager[Pool]:
        """Return a context manager whose entry starts every worker and waits until each is ready."""
