"""Futures: what makes one done comes before whoever sees it done.

The conditions inside are muted, callbacks are not.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from types import FunctionType

from gilscope.toolkit.race.sync.layer import like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from gilscope.toolkit.race.core import Core
    from gilscope.toolkit.race.sync.layer import Layer

PENDING = ("PENDING", "RUNNING")     # states in which a future orders nothing yet


class Futures:
    """Patches concurrent.futures._base."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer
        self._core: Core = layer.core

    def patch(self, module: Any) -> None:
        """Patch Future, wait and as_completed."""
        future, hook = module.Future, self._layer.hook
        for name in ("set_result", "set_exception", "cancel"):
            hook(future, name, self.settling)
        for name in ("set_running_or_notify_cancel", "running", "__repr__"):
            hook(future, name)
        for name in ("result", "exception", "done", "cancelled", "_get_snapshot"):    # the last: 3.14
            hook(future, name, None, self.looked, self.looked)
        self._layer.unmuted(future, "_invoke_callbacks")
        self._layer.put(future, "add_done_callback", adds_callbacks(self._layer, future.add_done_callback))
        self._patch_wait(module)
        hook(module._AcquireFutures, "__enter__")  # noqa: SLF001  it has the futures' mutexes in hand, all at once
        hook(module._AcquireFutures, "__exit__")  # noqa: SLF001
        self._layer.put(module, "_yield_finished_futures", yields_finished(self._core, module))

    def _patch_wait(self, module: Any) -> None:
        """Patch wait(), also where the package has imported it; not muted: its futures may come from a generator."""
        original = module.wait
        ours = self._core.wrap(original, None, self.waited, muted=False)
        package = sys.modules.get("concurrent.futures")

        def give_back() -> None:
            package = sys.modules.get("concurrent.futures")
            if package is not None and vars(package).get("wait") is ours:
                package.wait = original   # type: ignore[attr-defined]  # it is one of the package's names

        self._layer.on_undo(give_back)
        for owner in (module, package):
            if owner is not None and vars(owner).get("wait") is original:
                self._layer.put(owner, "wait", ours)

    def settling(self, future: Any, *_outcome: Any, **_named: Any) -> None:
        """Give the future the clock of what makes it done."""
        self._core.release(future)

    def looked(self, _state: object, _result: object, future: Any, *_timeout: Any, **_named: Any) -> None:
        """Order whoever looked at a future that is done after what made it so."""
        if future._state not in PENDING:  # noqa: SLF001
            self._core.acquire(future)

    def waited(self, _state: object, result: Any, *_arguments: Any, **_named: Any) -> None:
        """Order whoever waited after all that is done."""
        for future in result.done:
            self._core.acquire(future)


def adds_callbacks(layer: Layer, original: Callable[..., Any]) -> Callable[..., Any]:
    """Return an `add_done_callback` whose callbacks know what made the future done, also if it is already."""

    def add_done_callback(self: Any, fn: Callable[[Any], Any]) -> Any:
        if not callable(fn):
            return original(self, fn)
        # asyncio's own passes the future on to the loop, which asks it for its result in a callback to come.
        if type(fn) is FunctionType and fn.__module__ == "asyncio.futures":
            return original(self, in_its_turn(layer, fn) if get_ident() in layer.in_executor else fn)
        return original(self, layer.core.wrap(fn, layer.core.acquire, muted=False))

    return like(original, add_done_callback)


def in_its_turn(layer: Layer, fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a callback that `run_in_executor` gives a future, which may be done by then.

    That is luck, and the callback, called here and now, would order all that the loop does from here on after the task.
    So the loop calls it in a turn to come, as where the task takes longer, and as CPython 3.12 always does.
    """
    def call(future: Any) -> None:
        loop = layer.in_executor.get(get_ident())
        if loop is not None and sys.modules["asyncio.events"]._get_running_loop() is loop:  # noqa: SLF001  it asks so itself
            loop.call_soon(fn, future)
        else:
            fn(future)

    return call


def yields_finished(core: Core, module: Any) -> Callable[..., Any]:
    """Return the generator inside as_completed; whoever gets a future from it comes after what made that one done."""
    original = module._yield_finished_futures  # noqa: SLF001

    def yield_finished_futures(fs: list[Any], waiter: Any, ref_collect: Iterable[Any]) -> Iterator[Any]:
        finished = original(fs, waiter, ref_collect)
        while fs:
            core.acquire(fs[-1])
            # Not by a loop variable: as_completed keeps no future alive that it has handed out.
            yield next(finished)

    return like(original, yield_finished_futures)
