"""Happens-before edges of ThreadPoolExecutor: from submit() to the task, and from the task to its result.

The queue of a worker and its idle semaphore are muted, the tasks are not.  Two short tasks often run in one worker, and
are ordered there only by chance, so the core treats the first tasks of a worker as threads of their own.  The program
may rely on the worker's order if an executor has one worker, or after it used thread-locals (tracked by the core),
`get_ident()`, `current_thread()` or context variables: these add the edges.
"""

from __future__ import annotations

import sys
from _thread import get_ident

from gilscope.toolkit.race.sync.layer import ObjectStates, imitate
from gilscope.toolkit.race.sync.threads import OURS, WorkerChain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gilscope.toolkit.race.core import Core
    from gilscope.toolkit.race.sync.layer import SyncLayer
    from gilscope.toolkit.race.sync.threads import ThreadTracker

OWN_THREADS = 512            # tasks per process that are threads of their own: each makes the vector clocks longer
OWN_THREADS_PER_WORKER = 16  # the chance that more tasks of a worker show another race is small


class ExecutorPatches:
    """Patches of concurrent.futures.thread."""

    def __init__(self, layer: SyncLayer, threads: ThreadTracker) -> None:
        self._layer = layer
        self._core: Core = layer.core
        self._threads = threads
        self._submitted = ObjectStates()        # work item -> clock and stack of its submission
        self._begun: dict[int, int] = {}    # worker's ident -> tasks so far that were threads of their own
        self._left = OWN_THREADS

    def patch(self, module: Any) -> None:
        """Patch ThreadPoolExecutor, its workers and work items."""
        wrap, item = self._layer.wrap, module._WorkItem
        wrap(module.ThreadPoolExecutor, "submit")
        wrap(module.ThreadPoolExecutor, "_initializer_failed")
        wrap(item, "__init__", None, self.after_work_item_init, muted=False)
        wrap(item, "run", self.before_task, self.after_task, self.after_task, muted=False)
        context = getattr(module, "WorkerContext", None)
        if context is None:      # 3.12, 3.13
            self._layer.replace(module, "_worker", self.make_worker(module._worker))
        else:
            wrap(module, "_worker", self.before_worker, self.after_worker, self.after_worker)
            for name in ("initialize", "finalize"):
                self._layer.unmuted(context, name)
        self._patch_ties()

    def make_worker(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return a `_worker` that is muted, except for its initializer."""
        muted = self._core.wrap(original, self.before_worker, self.after_worker, self.after_worker)

        def _worker(executor_reference: Any, work_queue: Any, initializer: Any, initargs: Any) -> None:
            if initializer is not None:
                layer = self._layer
                initializer = self._core.wrap(initializer, layer.unmute, layer.remute, layer.remute, muted=False)
            muted(executor_reference, work_queue, initializer, initargs)

        return imitate(original, _worker)

    def before_worker(self, executor_reference: Callable[[], Any], *_arguments: Any) -> None:
        """Set how many tasks of this worker become threads of their own: none if it is the only worker."""
        executor = executor_reference()
        alone = executor is not None and executor._max_workers == 1
        self._begun[get_ident()] = OWN_THREADS_PER_WORKER if alone else 0

    def after_worker(self, *_arguments: Any) -> None:
        """Forget the worker: its ident may be used again."""
        self._begun.pop(get_ident(), None)

    # -- tasks -----------------------------------------------------------------------------------------------------

    def after_work_item_init(self, _state: object, _result: object, item: object, *_arguments: Any,
                             **_named: Any) -> None:
        """Store the submitter's clock and stack with the work item."""
        lines = self._threads.lines() if self._left > 0 else ()
        self._submitted.set(item, (self._core.snapshot(), lines))

    def before_task(self, item: object, *_context: Any) -> tuple[int, WorkerChain | None]:
        """Add the edge from submit() to the task, and track the task."""
        level = self._layer.unmute()
        clock, lines = self._submitted.get(item) or (None, ())
        begun = self._begun.get(get_ident(), OWN_THREADS_PER_WORKER)
        chain = None
        if clock is not None and begun < OWN_THREADS_PER_WORKER and self._left > 0:
            self._begun[get_ident()] = begun + 1
            self._left -= 1
            chain = self._begin(clock, lines, begun + 1)
        elif clock is not None:
            self._core.join(clock)
        self._layer.pause()
        return level, chain

    def _begin(self, clock: object, lines: Any, number: int) -> WorkerChain:
        worker = self._core.snapshot()      # including its initializer
        uid = self._core.thread_begin(None, clock)
        self._core.join(worker)
        self._threads.remember_task(uid, number, lines)
        return self._threads.chains.setdefault(get_ident(), WorkerChain())

    def after_task(self, state: tuple[int, WorkerChain | None], *_arguments: Any) -> None:
        """Continue as the worker, whose end is ordered after its tasks."""
        level, chain = state
        if chain is not None:
            self._core.release(chain)
            self._core.thread_end()
        self._core.restore(level)

    # -- what ties a task to its worker ----------------------------------------------------------------------------

    def _patch_ties(self) -> None:
        module = sys.modules["threading"]
        for name in ("get_ident", "get_native_id", "current_thread"):
            self._layer.wrap(module, name, None, self.after_identity_call, muted=False)
        import _contextvars
        self._layer.wrap(_contextvars.ContextVar, "get", None, self.after_identity_call, muted=False)

    def after_identity_call(self, *_arguments: Any, **_named: Any) -> None:
        """Order a task that asks for its thread's identity after earlier tasks of the worker: it may use their data."""
        if self._threads.chains and called_by_program():
            self._threads.order_after_tasks()


def called_by_program() -> bool:
    """Return True if the caller of the patched function is the program, not the standard library."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back   # type: ignore[assignment]  # the loop ends there
    name = str(frame.f_globals.get("__name__")) if frame is not None else ""
    return name == "__main__" or name.partition(".")[0] not in sys.stdlib_module_names
