"""Locks of standard modules that the program does not rely on: writing a log line is no synchronisation."""

from __future__ import annotations

import sys

from gilscope.toolkit.own_files import split_installed
from gilscope.toolkit.race.sync.layer import UntrackedLock, untrack_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gilscope.toolkit.race.sync.layer import SyncLayer

# Locks that protect a module's own caches and counters.
MODULE_LOCKS = {
    "logging": ("_lock",),
    "_strptime": ("_cache_lock",),
    "tempfile": ("_once_lock",),
}


def untrack_module_locks(layer: SyncLayer, module: Any) -> None:
    """Replace the module's own locks by untracked ones, unless the module itself is checked."""
    for name in () if layer.is_checked(module.__name__, module.__file__) else MODULE_LOCKS[module.__name__]:
        untrack_lock(layer, module, name)


class LoggingPatches:
    """Patches of the logging module."""

    def __init__(self, layer: SyncLayer) -> None:
        self._layer = layer
        self._foreign: dict[type, bool] = {}

    def patch(self, module: Any) -> None:
        """Untrack the module's lock, and those of handlers that run no code of the program."""
        if self._layer.is_checked(module.__name__, module.__file__):
            return
        untrack_module_locks(self._layer, module)
        self._layer.wrap(module.Handler, "createLock", None, self.after_create_lock, muted=False)
        for handler in {getattr(module, "lastResort", None)} - {None}:
            self.after_create_lock(None, None, handler)

    def after_create_lock(self, _state: object, _result: object, handler: Any) -> None:
        """Give a handler an untracked lock, which is tracked while the handler runs code of the program under it."""
        if handler.lock is not None and not isinstance(handler.lock, UntrackedLock):
            handler.lock = UntrackedLock(self._layer.core, handler.lock, self._counts(handler))

    def _counts(self, handler: Any) -> Callable[[], bool]:
        def counts() -> bool:
            if self._is_foreign(type(handler)):
                return True
            parts = vars(handler)
            return any(self._is_foreign(type(parts.get(name))) for name in ("formatter", "stream"))
        return counts

    def _is_foreign(self, kind: type) -> bool:
        foreign = self._foreign.get(kind)
        if foreign is None:
            foreign = self._foreign[kind] = not all(comes_with_python(base) for base in kind.__mro__)
        return foreign


def comes_with_python(kind: type) -> bool:
    """Return True if a class belongs to the standard library or an installed package, not to the program."""
    name = kind.__module__
    if name.partition(".")[0] in sys.stdlib_module_names:
        return name != "__main__"
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    return bool(split_installed(file)[0])
