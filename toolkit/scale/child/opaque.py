"""Find what objects of C types store, where the garbage collector does not tell: a numpy array's data type, a time zone.

Such a type is not tracked by the collector, so it names no referents; its attributes do.
"""

from __future__ import annotations

import functools
import types
import warnings

from gilscope.toolkit.scale.child.reachable import mro_of, namespace_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

TRACKED = 1 << 14      # Py_TPFLAGS_HAVE_GC: the collector knows what its objects store


@functools.cache
def stored_names(kind: type) -> tuple[str, ...]:
    """Return the public attributes that C code reads from an object of a type that names no referents; often none."""
    if kind.__flags__ & TRACKED or kind.__module__ == "builtins":
        return ()
    of_c = (types.GetSetDescriptorType, types.MemberDescriptorType)
    return tuple(dict.fromkeys(name for base in mro_of(kind) for name, value in namespace_of(base).items()
                               if isinstance(value, of_c) and not name.startswith("_")))


def stored(each: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and value of what an object stores: attributes that are the same object at two reads.

    What is computed at a read is another object at the next.
    """
    for name in stored_names(type(each)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                first, second = getattr(each, name), getattr(each, name)
        except Exception:  # noqa: BLE001, S112 - C code raises what it likes
            continue
        if first is second and first is not each:
            yield name, first


def stored_values(each: Any) -> list[Any]:
    """Return what an object stores."""
    return [value for _, value in stored(each)]
