"""Classify objects by looking at their types only, so that no code of the program runs."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from sys import modules

from tests.race.model.state import STORED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Where = tuple[Any, str, str]      # owner, part, key

MISSING: Any = object()
Function: Any = type(lambda: None)
Module: Any = type(__import__("sys"))
Member = type(Function.__dict__["__closure__"])       # a slot of `__slots__` has this type
GetSet = type(Function.__dict__["__code__"])
_mro = type.__dict__["__mro__"].__get__
_namespace = type.__dict__["__dict__"].__get__
_flags = type.__dict__["__flags__"].__get__
_module_dict = Module.__dict__["__dict__"].__get__
_function_dict = Function.__dict__["__dict__"].__get__
_IMMUTABLE = 1 << 8       # Py_TPFLAGS_IMMUTABLETYPE
_PLAIN: tuple[Any, ...] = (
    int, str, float, bytes, bool, complex, tuple, type(None), type(Ellipsis), type(NotImplemented), range, frozenset,
    type(len), type(_mro), type(list.append), type(Function.__call__))
# Their `__getattribute__` is the generic one although their own dict contains it.
_GENERIC = (object, dict, list, set, frozenset, tuple, int, str, float, bytes, bytearray, complex, BaseException,
            deque, OrderedDict, defaultdict, Function)
_OF_ITEMS = ("__getitem__", "__setitem__", "__delitem__")
CONTAINERS = (dict, OrderedDict, defaultdict, list, set, deque, bytearray, memoryview)


def holder(kind: type, name: str) -> Any:
    """Return the class that `name` is found in, or None."""
    for ancestor in _mro(kind):
        if name in _namespace(ancestor):
            return ancestor
    return None


def lookup(kind: type, name: str) -> Any:
    """Return the type's attribute `name` without binding it, or MISSING."""
    for ancestor in _mro(kind):
        found = _namespace(ancestor).get(name, MISSING)
        if found is not MISSING:
            return found
    return MISSING


def one_of(thing: object, several: tuple[Any, ...]) -> bool:
    """Return True if `thing` is one of them, by identity, because a metaclass may define equality."""
    return any(thing is other for other in several)


def descends(kind: type, ancestor: object) -> bool:
    """Return True if `ancestor` is among the base classes of `kind`."""
    return one_of(ancestor, _mro(kind))


def attribute(obj: Any, name: str, *, store: bool = False) -> tuple[Where, ...]:
    """Return the locations that loading (storing) `obj.name` touches; none if the access is not checked.

    A class attribute that an instance does not have belongs to the class that holds it, and, where the program stores
    such a name on instances, to the instance as well: the load saw that it was not there yet.  A module's attribute
    is its global; a property's code is noted where it stands.
    """
    kind = type(obj)
    if one_of(kind, _PLAIN):
        return ()
    home = holder(kind, "__getattribute__")
    if home is type:
        return _of_class(obj, name, store=store)
    if home is Module:
        return _of_module(obj, name, store=store)
    if one_of(home, _GENERIC) or (home is not None and descends(home, BaseException) and _flags(home) & _IMMUTABLE):
        return _of_instance(obj, kind, name, store=store)
    return ()


def _of_instance(obj: Any, kind: type, name: str, *, store: bool) -> tuple[Where, ...]:
    found = lookup(kind, name)
    own = (obj, "attr", name)
    if found is MISSING:
        forwards = lookup(kind, "__getattr__") is not MISSING and not _has(obj, kind, name)
        if forwards and (not store or lookup(kind, "__setattr__") is not object.__setattr__):
            return ()
        return (own,)
    if type(found) is Member:
        return (own,)
    if is_data_descriptor(found):
        return ()
    if store or _has(obj, kind, name):
        return (own,)
    shadowed = _in_class(holder(kind, name), name)
    return (*shadowed, own) if name in STORED and instance_dict(obj, kind) is not None else shadowed


def _of_class(obj: type, name: str, *, store: bool) -> tuple[Where, ...]:
    meta = lookup(type(obj), name)
    if meta is not MISSING and is_data_descriptor(meta):
        return ()
    home = obj if store else holder(obj, name) or (obj if name in STORED else None)
    inherited = home is not None and home is not obj and name in STORED
    return (*_in_class(home, name), *_in_class(obj, name)) if inherited else _in_class(home, name)


def _of_module(obj: Any, name: str, *, store: bool) -> tuple[Where, ...]:
    names = _module_dict(obj)
    if type(names) is not dict or not (store or name in names or name in STORED):
        return ()
    return ((names, "item", name),)


def _in_class(found: Any, name: str) -> tuple[Where, ...]:
    return () if found is None or _flags(found) & _IMMUTABLE else ((found, "attr", name),)


def value_of(obj: Any, name: str) -> Any:
    """Return the entry `name` in an instance's or module's dict, or None, without running a load."""
    kind = type(obj)
    names = _module_dict(obj) if kind is Module else instance_dict(obj, kind)
    return names.get(name) if type(names) is dict else None


def is_data_descriptor(found: object) -> bool:
    """Return True if loads and stores through this class attribute run its own code."""
    kind = type(found)
    return lookup(kind, "__set__") is not MISSING or lookup(kind, "__delete__") is not MISSING


def runs_code(obj: Any, name: str) -> bool:
    """Return True if loading and storing `obj.name` runs code of the program, such as a property's or descriptor's."""
    found = lookup(type(obj), name)
    return found is not MISSING and is_data_descriptor(found) and not one_of(type(found), (Member, GetSet))


def _has(obj: Any, kind: type, name: str) -> bool:
    names = instance_dict(obj, kind)
    return names is not None and dict.__contains__(names, name)


def instance_dict(obj: Any, kind: type) -> Any:
    """Return the object's `__dict__` if it has an ordinary one."""
    if kind is Function:
        return _function_dict(obj)
    getter = lookup(kind, "__dict__")
    if type(getter) is not GetSet:
        return None
    names = getter.__get__(obj)
    return names if isinstance(names, dict) else None


def family(container: Any, method: str) -> Any:
    """Return the builtin container type whose own `method` this object has, or None.

    dict stands for its C subclasses too; Counter, array and ndarray stand for themselves.  Of the environment, which is
    written in Python, the items alone are known.
    """
    kind = type(container)
    if kind is dict or kind is list or kind is set or kind is deque:
        return kind
    home = holder(kind, method)
    if home is None:
        return None
    if one_of(home, CONTAINERS):
        return dict if home is OrderedDict or home is defaultdict else home
    for module, name in (("collections", "Counter"), ("array", "array"), ("numpy", "ndarray")):
        if home is loaded(module, name):
            return home
    return home if method in _OF_ITEMS and is_environ(home) else None


def own_length(container: Any) -> int:
    """Return the length of a list, deque, bytearray or array by its builtin type's own `__len__`.

    A subclass may have its own, which may wait for a lock, fail, or touch what is tracked.
    """
    for base in (list, deque, bytearray, loaded("array", "array")):
        if base is not MISSING and descends(type(container), base):
            length: int = base.__len__(container)
            return length
    return 0


def own_shape(container: Any) -> tuple[int, ...]:
    """Return the lengths of an array's axes by its builtin type's own attribute, whatever a subclass has."""
    for base in (memoryview, loaded("numpy", "ndarray")):
        if base is not MISSING and descends(type(container), base):
            shape: tuple[int, ...] = base.shape.__get__(container)
            return shape
    return (own_length(container),)


def is_fixed(kind: type) -> bool:
    """Return True if the type is one of C that no program changes, so that its special methods are C as well."""
    return bool(_flags(kind) & _IMMUTABLE)


def is_environ(kind: object) -> bool:
    """Return True if the class is that of `os.environ`."""
    return kind is not None and kind is loaded("os", "_Environ")


def loaded(module: str, name: str) -> Any:
    """Return a name of a module, if the program has imported that; MISSING otherwise."""
    there: Mapping[str, Any] = getattr(modules.get(module), "__dict__", {})
    return there.get(name, MISSING)
