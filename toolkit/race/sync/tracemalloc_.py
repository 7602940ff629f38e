"""tracemalloc: its `start` and `stop` replace the hook through which the core learns that objects die."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gilscope.toolkit.race.sync.layer import SyncLayer

NAMES = ("start", "stop")


def patch(layer: SyncLayer, module: Any) -> None:
    """Let the core install its hook again after each call; `module` is _tracemalloc."""
    core = layer.core
    for name in NAMES:
        layer.wrap(module, name, None, core.hook_changed, core.hook_changed, muted=False)


def patch_public(layer: SyncLayer, module: Any) -> None:
    """Give the module tracemalloc, which may be imported already, the functions that `patch` has made."""
    for name in NAMES:
        layer.replace(module, name, getattr(sys.modules["_tracemalloc"], name))
