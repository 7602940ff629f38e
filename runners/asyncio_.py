"""One event loop in the calling thread: async forms overlap, sync forms run one after another."""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gilscope.runners._shared_objects import IN_PROCESS, make_shared
from gilscope.runners.base import Appearance, Runner

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator, Sequence

    from gilscope.runners.base import Payload, Result, Shared, Task


class AsyncioPool:
    """An event loop with a limit of tasks in flight."""

    def __init__(self, loop: asyncio.AbstractEventLoop, in_flight: int, shared: Any) -> None:
        self._loop = loop
        self._in_flight = in_flight
        self._rest = () if shared is None else (shared,)

    def map(self, task: Task, payloads: Sequence[Payload]) -> list[Result]:
        """Run every payload on the loop, return the results in order, raise the first task's exception."""
        run = self._overlap if inspect.iscoroutinefunction(task) else self._one_by_one
        # Runner.run is not used: its SIGINT handler only cancels, which a sync task would not notice before its end.
        return self._loop.run_until_complete(run(task, payloads))

    async def _one_by_one(self, task: Task, payloads: Sequence[Payload]) -> list[Result]:
        return [task(payload, *self._rest) for payload in payloads]

    async def _overlap(self, task: Task, payloads: Sequence[Payload]) -> list[Result]:
        import asyncio

        gate = asyncio.Semaphore(self._in_flight)

        async def pass_gate(payload: Payload) -> Result:
            async with gate:
                return await task(payload, *self._rest)

        started = [asyncio.ensure_future(pass_gate(payload)) for payload in payloads]
        try:
            return await asyncio.gather(*started)
        except BaseException:
            for future in started:
                future.cancel()
            await asyncio.gather(*started, return_exceptions=True)
            raise


class AsyncioRunner(Runner):
    """Run tasks on one event loop; `workers` is the number of tasks in flight."""

    name = "asyncio"
    summary = "one event loop: async forms overlap, sync forms run one after another"
    awaits = True
    shares: frozenset[Shared] = IN_PROCESS
    parallel = False
    effort = 7
    appearance = Appearance("#E69F00", "v", "dash-dots", "\\\\\\\\")

    def unavailable(self) -> str | None:
        """Return None: this runs everywhere."""
        return None

    @contextmanager
    def pool(self, workers: int, shared: Shared | None = None) -> Iterator[AsyncioPool]:
        """Open an event loop that has run once; close it with all its remaining tasks."""
        import asyncio  # 24 ms, which the catalog's other runners need not pay

        with asyncio.Runner() as runner:
            loop = runner.get_loop()
            loop.run_until_complete(asyncio.sleep(0))
            yield AsyncioPool(loop, workers, make_shared(shared))
