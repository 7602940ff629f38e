"""Inspect the checked program's objects without running any of its code.

The program's objects are never asked for an attribute, compared, hashed or printed: instance dicts and slots are read
through the descriptors that CPython made for them.
"""

from __future__ import annotations

from types import GetSetDescriptorType, MappingProxyType, MemberDescriptorType, ModuleType

from gilscope.toolkit.race.core import NO_VALUE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# What a metaclass could answer itself, read from the slots of `type`.
_mro = type.__dict__["__mro__"].__get__
_members = type.__dict__["__dict__"].__get__
_qualname = type.__dict__["__qualname__"].__get__
_name = type.__dict__["__name__"].__get__
_module_dict = vars(ModuleType)["__dict__"].__get__
PLAIN = (int, float, complex, str, bytes, bool, type(None), type(...), range)
LABELS = ("name", "id", "key", "title", "label", "_name", "_id", "_key", "uid", "number", "owner", "username",
          "path", "url")
LONGEST = 40     # characters of a key or label that a report shows


def is_class(value: Any) -> bool:
    """Return True if `value` is a class, whatever its `__class__` claims."""
    return issubclass(type(value), type)


def mro(cls: type) -> tuple[type, ...]:
    """Return the method resolution order of a class."""
    found: tuple[type, ...] = _mro(cls)
    return found


def class_members(cls: type) -> MappingProxyType[str, Any]:
    """Return the class's own namespace."""
    found: MappingProxyType[str, Any] = _members(cls)
    return found


def class_name(cls: type) -> str:
    """Return the class's qualified name without enclosing functions."""
    name = _qualname(cls)
    return short_function(name) if type(name) is str else "object"


def own_name(cls: type) -> str:
    """Return the class's name."""
    name: str = _name(cls)
    return name


def short_function(qualname: str) -> str:
    """Return the part of a qualified name for the innermost named function or class."""
    return qualname.rsplit("<locals>.", 1)[-1]


def instance_dict(value: Any) -> dict[str, Any] | None:
    """Return the instance's dict, or None if it has none."""
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
                    continue   # unset, or a member of a C struct that cannot be read


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
        except RuntimeError:   # another thread has changed its size
            continue
    return []


def label(value: Any, without: str) -> str | None:
    """Return a text that distinguishes the instance from others: its name, id, key, title ... or None."""
    found = dict(attributes(value)) if type(value) not in PLAIN else {}
    for name in LABELS:
        item = found.get(name, NO_VALUE)
        if name != without and type(item) in {str, int} and len(str(item)) <= LONGEST:
            return repr(item)
    return None


def show(value: Any, depth: int = 0) -> str:
    """Return a key as it would be written in the source; for objects other than plain values, their type."""
    if type(value) in PLAIN:
        text = repr(value)
        return text if len(text) <= LONGEST else text[:LONGEST - 4] + "..." + text[-1]
    if type(value) is tuple and depth < 3:  # deeper keys are unreadable
        inner = ", ".join(show(item, depth + 1) for item in value[:6])
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if type(value) is slice:
        parts = ["" if part is None else show(part) for part in (value.start, value.stop, value.step)]
        return ":".join(parts if value.step is not None else parts[:2])
    if is_class(value):
        return class_name(value)
    distinguishing = label(value, "")
    return f"<{class_name(type(value))} {distinguishing}>" if distinguishing else f"<{class_name(type(value))}>"


def item_key(key: Any) -> str:
    """Return a subscript's key as it would be written between the brackets."""
    if type(key) is tuple and key:
        return ", ".join(map(show, key))
    return show(key)


def same(left: Any, right: Any) -> bool:
    """Return True if replacing one by the other changes nothing: identical, or equal values of plain types."""
    if left is right:
        return True
    return type(left) is type(right) and is_plain(left) and is_plain(right) and bool(left == right)


def is_plain(value: Any) -> bool:
    """Return True if the value and its parts are immutable and of exact builtin types."""
    if type(value) in PLAIN:
        return True
    return type(value) in {tuple, frozenset} and all(is_plain(item) for item in value)
