"""Happens-before edges of weak registries: a lookup that finds nothing is ordered after the death of the key's value.

A registry of locks makes a new one for a key once the old one is dead, thus after all who held it.
"""

from __future__ import annotations

from _weakref import ref
from time import sleep

from gilscope.toolkit.race.sync.layer import ObjectStates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gilscope.toolkit.race.sync.layer import SyncLayer

GROUPS = 256                     # of the keys of one registry, with a clock each: it may see any number of keys
SIMPLE = (str, bytes, int)       # keys whose hash runs no code of the program; the others are one group
LOOKS, A_MOMENT = 20, 0.0001     # seconds; a thread that destroys a value takes microseconds


class KeyGroup:
    """The object that a thread releases its clock to when values of these keys die in it."""

    __slots__ = ("__weakref__",)


class WeakRegistryPatches:
    """Patches of the weakref module."""

    def __init__(self, layer: SyncLayer) -> None:
        self._layer = layer
        self._groups = ObjectStates()

    def patch(self, module: Any) -> None:
        """Patch WeakValueDictionary: the death of a value, and the lookups that miss it."""
        registry, wrap = module.WeakValueDictionary, self._layer.wrap
        wrap(registry, "__init__", None, self.after_init, muted=False)
        for name in ("get", "setdefault"):
            wrap(registry, name, None, self.after_get, muted=False)
        wrap(registry, "__contains__", None, self.after_test, muted=False)
        wrap(registry, "__getitem__", None, None, self.after_failure, muted=False)

    def after_init(self, _state: object, _result: object, registry: Any, *_others: Any, **_named: Any) -> None:
        """Let the thread in which a value dies release its clock to the group of the key."""
        here, core = ref(registry), self._layer.core

        def release(value: Any) -> None:
            if (registry := here()) is not None:
                core.release(self._group(registry, value.key))

        registry._remove = core.wrap(registry._remove, release, muted=False)

    def after_get(self, _state: object, result: object, registry: Any, key: object, default: object = None) -> None:
        """Add the edge to a lookup that returned the default."""
        if result is default:
            self.acquire(registry, key)

    def after_test(self, _state: object, result: object, registry: Any, key: object) -> None:
        """Add the edge to a test that found no such key."""
        if not result:
            self.acquire(registry, key)

    def after_failure(self, _state: object, _error: object, registry: Any, key: object) -> None:
        """Add the edge to a lookup that raised KeyError."""
        self.acquire(registry, key)

    def acquire(self, registry: Any, key: object) -> None:
        """Acquire what the deaths of the key's values released.

        Without a GIL, a value whose last reference is gone cannot be looked up any more, and may not have died yet.
        """
        for _ in range(LOOKS):
            dying = registry.data.get(key) if type(key) in SIMPLE else None
            if dying is None or dying() is not None:
                break
            sleep(A_MOMENT)
        self._layer.core.acquire(self._group(registry, key))

    def _group(self, registry: Any, key: object) -> KeyGroup:
        groups: dict[int, KeyGroup] = self._groups.make(registry, dict)
        return groups.setdefault(hash(key) % GROUPS if type(key) in SIMPLE else -1, KeyGroup())
