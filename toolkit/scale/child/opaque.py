"""Find what objects of C types store where the garbage collector does not tell, such as a numpy array's data type.

The collector does not track such objects, so it names no referents of theirs; their attributes do.
"""

from __future__ import annotations

import types
import warnings

from gilscope.toolkit.scale.child.reachable import mro_of, namespace_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Readers = dict[str, types.GetSetDescriptorType | types.MemberDescriptorType]

TRACKED = 1 << 14      # Py_TPFLAGS_HAVE_GC: the collector knows what its objects store
# Of each type by its address, which it keeps: a metaclass may refuse to be hashed.
_KNOWN: dict[int, tuple[type, Readers]] = {}


def readers(kind: type) -> Readers:
    """Return the public attributes that C code reads from an object of a type that names no referents; often none."""
    if id(kind) not in _KNOWN:
        of_c = (types.GetSetDescriptorType, types.MemberDescriptorType)
        _KNOWN[id(kind)] = kind, {
            name: value for base in reversed(mro_of(kind)) if _is_opaque(base)
            for name, value in namespace_of(base).items() if isinstance(value, of_c) and not name.startswith("_")}
    return _KNOWN[id(kind)][1]


def _is_opaque(kind: type) -> bool:
    """Return True for a type that the collector does not track, but for the interpreter's own, which store nothing."""
    # Without what a metaclass does with attributes.
    tracked = type.__dict__["__flags__"].__get__(kind) & TRACKED
    return not tracked and type.__dict__["__module__"].__get__(kind) != "builtins"


def stored(each: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and value of what an object stores: attributes that are the same object at two reads.

    What is computed at a read is another object at the next.
    """
    for name, reader in readers(type(each)).items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                first, second = reader.__get__(each), reader.__get__(each)
        except Exception:  # noqa: BLE001, S112 - C code raises what it likes
            continue
        if first is second and first is not each:
            yield name, first


def stored_values(each: Any) -> list[Any]:
    """Return the values of `stored`."""
    return [value for _, value in stored(each)]
