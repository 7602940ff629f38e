"""List every object that can be reached, so that its header can be read and its count be taken out of the way."""

from __future__ import annotations

import gc
import types

from gilscope.toolkit.scale.child.layout import IMMORTAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import ModuleType
    from typing import Any

# Objects of running code, which change under our hands.
RUNNING = (types.FrameType, types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, types.TracebackType)
OURS = "gilscope"


def reachable(
    roots: Sequence[Any], own: Sequence[Any], further_of: Callable[[Any], Iterable[Any]] = lambda _: (),
) -> list[Any]:
    """Return everything that can be reached from `roots`, without what is `own`; it stays alive, and so its address.

    The modules, functions and classes of gilscope are left out.

    Args:
        roots: Objects.
        own: Objects of gilscope.
        further_of: Returns what an object stores and the garbage collector does not tell.
    """
    seen = {id(each) for each in own} | {id(roots), id(own)}
    found: list[Any] = []
    waiting = list(roots)
    while waiting:
        further: list[Any] = []
        for each in waiting:
            if id(each) in seen or isinstance(each, RUNNING):
                continue
            seen.add(id(each))
            if _is_ours(each):
                continue
            found.append(each)
            further += [*_referents(each), *further_of(each)]
        waiting = further
    return found


def is_immortal(headers: ModuleType, item: Any) -> bool:
    """Return True if nothing counts the references to an object."""
    return bool(headers.header(item)[2] == IMMORTAL)


def namespace_of(each: type) -> Mapping[str, Any]:
    """Return the namespace of a class, whatever its metaclass does with attributes."""
    return type.__dict__["__dict__"].__get__(each)  # type: ignore[no-any-return]


def mro_of(each: type) -> tuple[type, ...]:
    """Return the method resolution order of a class, whatever its metaclass does with attributes."""
    return type.__dict__["__mro__"].__get__(each)  # type: ignore[no-any-return]


def _referents(each: Any) -> Iterable[Any]:
    found: list[Any] = [type(each)]
    if isinstance(each, type):
        # The collector does not name the namespace of a type.
        found += [namespace_of(each), *mro_of(each)]
    if isinstance(each, types.CodeType):
        found += each.co_consts
    return [*found, *gc.get_referents(each)]


def _is_ours(each: Any) -> bool:
    kind = type(each)
    if kind is types.ModuleType:
        return within(getattr(each, "__name__", ""))
    if kind is types.FunctionType:
        return within(each.__module__)
    if kind is dict:
        return within(each.get("__name__")) and "__spec__" in each      # of a module
    return isinstance(each, type) and within(each.__dict__.get("__module__", ""))


def within(name: object) -> bool:
    """Return True if it is the name of gilscope or of a module in it."""
    return isinstance(name, str) and (name == OURS or name.startswith(f"{OURS}."))
