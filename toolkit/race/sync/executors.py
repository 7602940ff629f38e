"""ThreadPoolExecutor: submit before the task, the task before its result; a finished task before no other.

A worker's queue and its idle semaphore are muted, the tasks are not.  Two short tasks often come to run in one worker,
and are in order there by luck alone; so the first tasks are threads of their own to the core.  What ties tasks to
their worker links them again: an executor with one worker, thread-locals (the core sees those), `get_ident()`,
`current_thread()` and context variables.
"""

from __future__ import annotations

import sys
from _thread import get_ident

from gilscope.toolkit.race.sync.layer import Attached, like
from gilscope.toolkit.race.sync.threads import OURS, Chain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gilscope.toolkit.race.core import Core
    from gilscope.toolkit.race.sync.layer import Layer
    from gilscope.toolkit.race.sync.threads import Threads

OWN_THREADS = 512            # tasks that are threads of their own, in a process: each makes the core's clocks longer
OWN_THREADS_A_WORKER = 16    # and of one worker; luck plays no role in what the seventeenth shows


class Executors:
    """Patches concurrent.futures.thread."""

    def __init__(self, layer: Layer, threads: Threads) -> None:
        self._layer = layer
        self._core: Core = layer.core
        self._threads = threads
        self._submitted = Attached()        # work item -> clock and stack of its submission
        self._begun: dict[int, int] = {}    # worker's ident -> tasks so far that were threads of their own
        self._left = OWN_THREADS

    def patch(self, module: Any) -> None:
        """Patch ThreadPoolExecutor, its workers and work items."""
        hook, item = self._layer.hook, module._WorkItem  # noqa: SLF001
        hook(module.ThreadPoolExecutor, "submit")
        hook(module.ThreadPoolExecutor, "_initializer_failed")
        hook(item, "__init__", None, self.created, muted=False)
        hook(item, "run", self.running, self.ran, self.ran, muted=False)
        context = getattr(module, "WorkerContext", None)
        if context is None:      # 3.12, 3.13
            self._layer.put(module, "_worker", self.works(module._worker))  # noqa: SLF001
        else:
            hook(module, "_worker", self.worker_begins, self.worker_ends, self.worker_ends)
            for name in ("initialize", "finalize"):
                self._layer.unmuted(context, name)
        self._patch_ties()

    def works(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return a `_worker` that is muted except for the initializer."""
        muted = self._core.wrap(original, self.worker_begins, self.worker_ends, self.worker_ends)

        def _worker(executor_reference: Any, work_queue: Any, initializer: Any, initargs: Any) -> None:
            if initializer is not None:
                layer = self._layer
                initializer = self._core.wrap(initializer, layer.unmute, layer.remute, layer.remute, muted=False)
            muted(executor_reference, work_queue, initializer, initargs)

        return like(original, _worker)

    def worker_begins(self, executor_reference: Callable[[], Any], *_arguments: Any) -> None:
        """Note how many threads of their own this worker's tasks may be: none, if programs rely on their order."""
        executor = executor_reference()
        alone = executor is not None and executor._max_workers == 1  # noqa: SLF001
        self._begun[get_ident()] = OWN_THREADS_A_WORKER if alone else 0

    def worker_ends(self, *_arguments: Any) -> None:
        """Forget the worker; its ident may come again."""
        self._begun.pop(get_ident(), None)

    # -- tasks -----------------------------------------------------------------------------------------------------

    def created(self, _state: object, _result: object, item: object, *_arguments: Any, **_named: Any) -> None:
        """Keep the submitter's clock with the work item, and where it was submitted."""
        lines = self._threads.lines() if self._left > 0 else ()
        self._submitted.set(item, (self._core.snapshot(), lines, self._core.thread_uid()))

    def running(self, item: object, *_context: Any) -> tuple[int, Chain | None]:
        """Order the task after its submission, and let it count as the program's code."""
        level = self._layer.unmute()
        clock, lines, parent = self._submitted.get(item) or (None, (), 0)
        begun = self._begun.get(get_ident(), OWN_THREADS_A_WORKER)
        chain = None
        if clock is not None and begun < OWN_THREADS_A_WORKER and self._left > 0:
            self._begun[get_ident()] = begun + 1
            self._left -= 1
            chain = self._begin(clock, lines, begun + 1, parent)
        elif clock is not None:
            self._core.join(clock)
        self._layer.pause()
        return level, chain

    def _begin(self, clock: object, lines: Any, number: int, parent: int) -> Chain:
        worker = self._core.snapshot()      # with its initializer
        uid = self._core.thread_begin(None, clock)
        self._core.join(worker)
        self._threads.remember_task(uid, number, lines, parent)
        return self._threads.chains.setdefault(get_ident(), Chain())

    def ran(self, state: tuple[int, Chain | None], *_arguments: Any) -> None:
        """Go on as the worker; what it does at its end comes after its tasks."""
        level, chain = state
        if chain is not None:
            self._core.release(chain)
            self._core.thread_end()
        self._core.restore(level)

    # -- what ties a task to its worker ----------------------------------------------------------------------------

    def _patch_ties(self) -> None:
        module = sys.modules["threading"]
        for name in ("get_ident", "get_native_id", "current_thread"):
            self._layer.hook(module, name, None, self.asked_who, muted=False)
        # On the C type, which the pure core cannot patch.
        import _contextvars
        self._layer.hook(_contextvars.ContextVar, "get", None, self.asked_who, muted=False)

    def asked_who(self, *_arguments: Any, **_named: Any) -> None:
        """Order a task that asks for its thread after the earlier ones there: it may look for what they left."""
        if self._threads.chains and asked_by_the_program():
            self._threads.link()


def asked_by_the_program() -> bool:
    """Return whether the code that called what is patched is not the standard library's, which asks all the time."""
    frame = sys._getframe(1)  # noqa: SLF001
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back   # type: ignore[assignment]  # the loop ends there
    name = str(frame.f_globals.get("__name__")) if frame is not None else ""
    return name == "__main__" or name.partition(".")[0] not in sys.stdlib_module_names
