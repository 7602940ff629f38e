"""One worker and no pool: the calling thread, the baseline of every speedup."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gilscope.runners._shared_objects import IN_PROCESS, make_shared
from gilscope.runners.base import Appearance, Runner

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.runners.base import Payload, Result, Shared, Task


class SerialPool:
    """The calling thread."""

    def __init__(self, shared: Any) -> None:
        self._rest = () if shared is None else (shared,)

    def map(self, task: Task, payloads: Sequence[Payload]) -> list[Result]:
        """Run every payload in order and return the results."""
        return [task(payload, *self._rest) for payload in payloads]


class SerialRunner(Runner):
    """Run tasks one after another in the calling thread."""

    name = "serial"
    summary = "one after another in the calling thread: the baseline"
    shares: frozenset[Shared] = IN_PROCESS
    parallel = False
    appearance = Appearance("#222222", "p", "solid", "||||")

    def unavailable(self) -> str | None:
        """Return None: this runs everywhere."""
        return None

    @contextmanager
    def pool(self, workers: int, shared: Shared | None = None) -> Iterator[SerialPool]:
        """Open the pool; it has one worker.

        Raises:
            ValueError: more than one worker is asked for.
        """
        if workers != 1:
            raise ValueError(f"serial has one worker, not {workers}")
        yield SerialPool(make_shared(shared))
