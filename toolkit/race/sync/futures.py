"""Happens-before edges through futures: observing a finished future is ordered after finishing it.

The conditions inside of futures are muted, callbacks are not.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from types import FunctionType

from gilscope.toolkit.race.sync.layer import imitate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from gilscope.toolkit.race.core import Core
    from gilscope.toolkit.race.sync.layer import SyncLayer

UNFINISHED = ("PENDING", "RUNNING")     # states in which a future adds no edge


class FuturePatches:
    """Patches of concurrent.futures._base."""

    def __init__(self, layer: SyncLayer) -> None:
        self._layer = layer
        self._core: Core = layer.core

    def patch(self, module: Any) -> None:
        """Patch Future, wait and as_completed."""
        future, wrap = module.Future, self._layer.wrap
        for name in ("set_result", "set_exception", "cancel"):
            wrap(future, name, self.before_completion)
        for name in ("set_running_or_notify_cancel", "running", "__repr__"):
            wrap(future, name)
        for name in ("result", "exception", "done", "cancelled", "_get_snapshot"):    # the last: 3.14
            wrap(future, name, None, self.after_inspection, self.after_inspection)
        wrap(future, "_invoke_callbacks")
        self._layer.replace(future, "add_done_callback", make_add_done_callback(self._layer, future.add_done_callback))
        self._patch_wait(module)
        wrap(module._AcquireFutures, "__enter__")  # it holds the mutexes of all futures at once
        wrap(module._AcquireFutures, "__exit__")
        self._layer.replace(module, "_yield_finished_futures", make_yield_finished(self._core, module))

    def _patch_wait(self, module: Any) -> None:
        """Patch wait(), also where the package has imported it; unmuted, as a generator may yield its futures."""
        original = module.wait
        ours = self._core.wrap(original, None, self.after_wait, muted=False)
        package = sys.modules.get("concurrent.futures")

        def give_back() -> None:
            package = sys.modules.get("concurrent.futures")
            if package is not None and vars(package).get("wait") is ours:
                package.wait = original   # type: ignore[attr-defined]  # the package exports it

        self._layer.on_undo(give_back)
        for owner in (module, package):
            if owner is not None and vars(owner).get("wait") is original:
                self._layer.replace(owner, "wait", ours)

    def before_completion(self, future: Any, *_outcome: Any, **_named: Any) -> None:
        """Release the clock of the completion to the future."""
        self._core.release(future)

    def after_inspection(self, _state: object, _result: object, future: Any, *_timeout: Any, **_named: Any) -> None:
        """Add the edge from the completion to a call that found the future finished."""
        if future._state not in UNFINISHED:
            self._core.acquire(future)

    def after_wait(self, _state: object, result: Any, *_arguments: Any, **_named: Any) -> None:
        """Add the edges from the completions to wait()."""
        for future in result.done:
            self._core.acquire(future)


def make_add_done_callback(layer: SyncLayer, original: Callable[..., Any]) -> Callable[..., Any]:
    """Return an `add_done_callback` whose callbacks are ordered after the completion, even of a finished future.

    Only they are tracked: not the list of callbacks, and not the lock that is held for it.
    """
    add = layer.core.wrap(original)

    def begin(future: Any) -> int:
        level = layer.unmute()
        layer.core.acquire(future)
        return level

    def add_done_callback(self: Any, fn: Callable[[Any], Any]) -> Any:
        if not callable(fn):
            return add(self, fn)
        # asyncio's own callback passes the future to the loop, which gets the result in a later callback.
        if type(fn) is FunctionType and fn.__module__ == "asyncio.futures":
            fn = defer_to_loop(layer, fn) if get_ident() in layer.in_executor else fn
            return add(self, layer.core.wrap(fn, layer.unmute, layer.remute, layer.remute, muted=False))
        return add(self, layer.core.wrap(fn, begin, layer.remute, layer.remute, muted=False))

    return imitate(original, add_done_callback)


def defer_to_loop(layer: SyncLayer, fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the callback for a future of `run_in_executor`, which may be finished by now.

    That depends on timing, and a callback that ran now would order everything that the loop does next after the task.
    So the loop calls it in a later iteration, as it does for a longer task, and as CPython 3.12 always does.
    """
    def call(future: Any) -> None:
        loop = layer.in_executor.get(get_ident())
        if loop is not None and sys.modules["asyncio.events"]._get_running_loop() is loop:  # as asyncio does
            loop.call_soon(fn, future)
        else:
            fn(future)

    return call


def make_yield_finished(core: Core, module: Any) -> Callable[..., Any]:
    """Return the generator inside of as_completed, with an edge from each future's completion to its being yielded."""
    original = module._yield_finished_futures

    def yield_finished_futures(fs: list[Any], waiter: Any, ref_collect: Iterable[Any]) -> Iterator[Any]:
        finished = original(fs, waiter, ref_collect)
        while fs:
            core.acquire(fs[-1])
            # Without a loop variable: as_completed keeps no future alive that it has yielded.
            yield next(finished)

    return imitate(original, yield_finished_futures)
