"""Look into the checked program's objects without running any of its code.

No attribute of a user's object is asked for, nothing of theirs is compared, hashed or printed: instance dicts and
slots are read through the descriptors that CPython itself made for them.
"""

from __future__ import annotations

from types import GetSetDescriptorType, MappingProxyType, MemberDescriptorType, ModuleType
from typing import TYPE_CHECKING

from gilscope.toolkit.race.core import NO_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# What a metaclass could answer itself, read from the slots of `type`.
_mro = type.__dict__["__mro__"].__get__
_members = type.__dict__["__dict__"].__get__
_qualname = type.__dict__["__qualname__"].__get__
_module_dict = vars(ModuleType)["__dict__"].__get__
PLAIN = (int, float, complex, str, bytes, bool, type(None), type(...), range)
LABELS = ("name", "id", "key", "title", "label", "_name", "_id", "_key", "uid", "number", "owner", "username",
          "path", "url")
LONGEST = 40     # characters of a key or label that a report shows


def is_class(value: Any) -> bool:
    """Tell whether `value` is a class, whatever it says itself."""
    return issubclass(type(value), type)


def mro(cls: type) -> tuple[type, ...]:
    """Return the class and its bases in the order of lookup."""
    found: tuple[type, ...] = _mro(cls)
    return found


def class_members(cls: type) -> MappingProxyType[str, Any]:
    """Return what stands in the class itself."""
    found: MappingProxyType[str, Any] = _members(cls)
    return found


def class_name(cls: type) -> str:
    """Return the class's qualified name without the functions around it."""
    name = _qualname(cls)
    return short_function(name) if type(name) is str else "object"


def short_function(qualname: str) -> str:
    """Return a qualified name without what encloses the innermost named function or class."""
    return qualname.rsplit("<locals>.", 1)[-1]


def instance_dict(value: Any) -> dict[str, Any] | None:
    """Return the instance's dict, or None where it has none."""
    if is_class(value):
        return None
    if issubclass(type(value), ModuleType):
        found = _module_dict(value)
        return found if type(found) is dict else None
    for cls in mro(type(value)):
        descriptor = class_members(cls).get("__dict__")
        if type(descriptor) is GetSetDescriptorType:
            found = descriptor.__get__(value)
            return found if type(found) is dict else None
    return None


def slots(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and value of every slot that is set."""
    for cls in mro(type(value)):
        for name, member in list(class_members(cls).items()):
            if type(member) is MemberDescriptorType and type(name) is str:
                try:
                    yield name, member.__get__(value)
                except (AttributeError, TypeError, ValueError):
                    continue   # unset, or a member of a C struct that gives nothing here


def attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and value of everything stored in the object: instance dict, slots, or the class's members."""
    stored = class_members(value) if is_class(value) else instance_dict(value)
    if stored is not None:
        for name, item in snapshot(stored):
            if type(name) is str:
                yield name, item
    if not is_class(value):
        yield from slots(value)


def attribute(value: Any, name: str) -> Any:
    """Return the attribute stored in the object itself, or NO_VALUE."""
    return next((item for found, item in attributes(value) if found == name), NO_VALUE)


def snapshot(mapping: Any) -> list[tuple[Any, Any]]:
    """Return the items of a dict that other threads may be changing."""
    for _ in range(5):
        try:
            return list(dict.items(mapping)) if issubclass(type(mapping), dict) else list(mapping.items())
        except RuntimeError:   # changed size meanwhile
            continue
    return []


def label(value: Any, without: str) -> str | None:
    """Return the text by which one tells the instance from others: its name, id, key, title ... or None."""
    found = dict(attributes(value)) if type(value) not in PLAIN else {}
    for name in LABELS:
        item = found.get(name, NO_VALUE)
        if name != without and type(item) in {str, int} and len(str(item)) <= LONGEST:
            return repr(item)
    return None


def show(value: Any, depth: int = 0) -> str:
    """Return a key as its author would write it; of anything but plain values the type alone."""
    if type(value) in PLAIN:
        text = repr(value)
        return text if len(text) <= LONGEST else text[:LONGEST - 4] + "..." + text[-1]
    if type(value) is tuple and depth < 3:  # noqa: PLR2004  deeper keys nobody reads
        inner = ", ".join(show(item, depth + 1) for item in value[:6])
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if type(value) is slice:
        parts = ["" if part is None else show(part) for part in (value.start, value.stop, value.step)]
        return ":".join(parts if value.step is not None else parts[:2])
    if is_class(value):
        return class_name(value)
    told = label(value, "")
    return f"<{class_name(type(value))} {told}>" if told else f"<{class_name(type(value))}>"


def same(left: Any, right: Any) -> bool:
    """Tell whether storing one for the other changes nothing: identity, or equal values of plain types."""
    if left is right:
        return True
    return type(left) is type(right) and is_plain(left) and is_plain(right) and bool(left == right)


def is_plain(value: Any) -> bool:
    """Tell whether the value is immutable all through and of exact builtin types."""
    if type(value) in PLAIN:
        return True
    return type(value) in {tuple, frozenset} and all(is_plain(item) for item in value)
