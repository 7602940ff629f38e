"""Locks of standard modules under which no code of the program relies on them: a log line is not synchronisation."""

from __future__ import annotations

import sys

from gilscope.toolkit.race.sync.quiet_lock import Quiet, quieten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gilscope.toolkit.race.sync.layer import Layer

INSTALLED = ("site-packages", "dist-packages")

# Locks around caches and counters of a module's own.
MODULE_LOCKS = {
    "logging": ("_lock",),
    "_strptime": ("_cache_lock",),
    "tempfile": ("_once_lock",),
}


def quieten_module(layer: Layer, module: Any) -> None:
    """Make a module's own locks order nothing."""
    for name in MODULE_LOCKS[module.__name__]:
        quieten(layer, module, name)


class Logging:
    """Patches the logging module."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer
        self._foreign: dict[type, bool] = {}

    def patch(self, module: Any) -> None:
        """Quieten the module's lock, and those of handlers without code of the program."""
        quieten_module(self._layer, module)
        self._layer.hook(module.Handler, "createLock", None, self.created, muted=False)
        for handler in {getattr(module, "lastResort", None)} - {None}:
            self.created(None, None, handler)

    def created(self, _state: object, _result: object, handler: Any) -> None:
        """Give a handler a quiet lock, which counts while the handler runs code of the program under it."""
        if handler.lock is not None and not isinstance(handler.lock, Quiet):
            handler.lock = Quiet(self._layer.core, handler.lock, self._counts(handler))

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
    """Return whether a class is the standard library's or an installed package's: not the program's own."""
    name = kind.__module__
    if name.partition(".")[0] in sys.stdlib_module_names:
        return name != "__main__"
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    return any(folder in file for folder in INSTALLED)
