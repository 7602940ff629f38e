"""Objects that the workers of one process can share: one per pool, the second argument of every task."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gilscope.runners.base import Shared

IN_PROCESS: frozenset[Shared] = frozenset({"counter", "dict", "list", "object"})


class SharedCounter:
    """A number and the lock that belongs to it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.value = 0


class PlainObject:
    """An object with one attribute and nothing to guard it."""

    def __init__(self) -> None:
        self.value = 0


def make_shared(kind: Shared | None) -> Any:
    """Return a new object of that kind, or None for None."""
    if kind is None:
        return None
    return {"counter": SharedCounter, "dict": dict, "list": list, "object": PlainObject}[kind]()
