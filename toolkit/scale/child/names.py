"""Name objects as a reader of the program knows them, by the shortest way to each from the user's modules.

Run it in a fork: looking at attributes may create dictionaries.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import types

from gilscope.toolkit.escaping import message
from gilscope.toolkit.measure.child.calls import find
from gilscope.toolkit.scale.child.opaque import stored
from gilscope.toolkit.scale.child.reachable import mro_of, namespace_of, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

MOST = 400_000        # objects that are looked at
LONGEST_KEY = 40      # characters
LATER = 4             # steps: constants of code come after what is so much farther away
ITEM = "the value of "
LOG_HANDLER = "log handler"     # kind of the lock that one has
ARGUMENT = "argument "
UNNAMED = "unknown"             # kind of an object to which no way was found
HEAP_TYPE = 1 << 9     # Py_TPFLAGS_HEAPTYPE: made while the program runs
# A class statement leaves one of these in the namespace of a class; before 3.13 perhaps only in that of its base.
FROM_CLASS_STATEMENT = ("__static_attributes__", "__firstlineno__", "__weakref__", "__dict__", "__slots__")


class _Way:
    """The way to an object: how it is written in the program, what it belongs to, and what it is there.

    `text` is the name, `path` the expression that further parts are appended to, `owner` the global, argument or
    function at the beginning of the way, `module` the module that has it, `held` its name there if it is a global.
    """

    __slots__ = ("argument", "held", "kind", "module", "owner", "path", "text")

    def __init__(self, kind: str, path: str, *, owner: str = "", text: str = "", module: str = "", held: str = "",
                 argument: bool = False) -> None:
        self.kind = kind
        self.path = path
        self.owner = owner or path
        self.text = text or path
        self.module = module
        self.held = held
        self.argument = argument

    def part(self, kind: str, path: str, text: str = "") -> _Way:
        """Return the way to a part of the object."""
        return _Way(kind, path, owner=self.owner, text=text, module=self.module, held=self.held,
                    argument=self.argument)


def names_of(wanted: Sequence[Any], function: str, payloads: list[Any] | None) -> list[dict[str, Any]]:
    """Return the fields of `zygote_process.ProgramObject` for each; the kind UNNAMED has the name of its type alone.

    Args:
        wanted: The objects.
        function: "package.module:name".
        payloads: Arguments of its only parameter.
    """
    found = _ways({id(each) for each in wanted}, _roots(function, payloads))
    return [_described(each, found.get(id(each))) for each in wanted]


def unnamed(wanted: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the same fields of objects that are not searched for."""
    return [_described(each, None) for each in wanted]


def _described(each: Any, way: _Way | None) -> dict[str, Any]:
    kind = type(each)
    told = f"{kind.__module__}.{kind.__qualname__}" if kind.__module__ != "builtins" else kind.__qualname__
    if way is None:
        way = _Way(UNNAMED, f"an object of type {told}", module=_of(kind))
    return {"name": message(way.text), "owner": message(way.owner), "kind": way.kind, "type": message(told),
            "held": [way.module, way.held] if way.held else None, "argument": way.argument, "ours": within(way.module)}


def _roots(function: str, payloads: list[Any] | None) -> list[tuple[_Way, Any]]:
    """Return the roots of paths to objects, nearest to the reader first: own module, arguments, function, others."""
    own, found = function.partition(":")[0], find(function)
    roots: list[tuple[_Way, Any]] = [(_Way("module", own, text=f"module {own}", module=own), sys.modules[own])]
    parameter = _parameter(found)
    for number, payload in enumerate(payloads or ()):
        which = f" of payload {number + 1}" if payloads and len(payloads) > 1 else ""
        # Threads use all of theirs, so what is in the way is seldom in one of them alone: they belong together.
        roots.append((_Way("argument", f"{ARGUMENT}{parameter}{which}", owner=f"{ARGUMENT}{parameter}", argument=True),
                      payload))
    roots.append((_Way("function", f"{function.replace(':', '.')}()", module=own), found))
    others = [(name, module) for name, module in [*sys.modules.items()]
              if isinstance(module, types.ModuleType) and name != own and not within(name)]
    # Modules of the same package first, then those that are not of the standard library.
    package = own.partition(".")[0]
    others.sort(key=lambda each: (each[0].partition(".")[0] != package,
                                  each[0].partition(".")[0] in sys.stdlib_module_names, each[0] == "__main__"))
    return roots + [(_Way("module", name, text=f"module {name}", module=name), module) for name, module in others]


def _parameter(found: Any) -> str:
    bound = isinstance(found, types.MethodType) or not hasattr(found, "__code__")
    called = getattr(found, "__func__", found)
    code = getattr(called, "__code__", None) or getattr(type(called).__call__, "__code__", None)
    names = code.co_varnames[:code.co_argcount] if code is not None else ()
    return names[int(bound)] if len(names) > int(bound) else "1"


def _ways(wanted: set[int], roots: list[tuple[_Way, Any]]) -> dict[int, _Way]:
    """Return the shortest way to each of the wanted objects."""
    found: dict[int, _Way] = {}
    seen: set[int] = set()
    levels: list[list[tuple[_Way, Any]]] = [roots]
    for depth, level in enumerate(levels):
        if len(found) == len(wanted) or len(seen) > MOST:
            break
        for way, each in level:
            if id(each) in seen:
                continue
            seen.add(id(each))
            if id(each) in wanted:
                found[id(each)] = way
            # What code begins with as a constant and is stored elsewhere, too, is known by that place.
            further = LATER if type(each) is types.CodeType else 1
            place = depth + further
            levels += [[] for _ in range(place + 1 - len(levels))]
            levels[place] += _parts(way, each)
    return found


def _parts(way: _Way, each: Any) -> Iterator[tuple[_Way, Any]]:
    """Return the parts of an object with the way to each, those that a program writes first."""
    if isinstance(each, type):
        return _class_parts(way, each)
    return _PARTS.get(type(each), _instance_parts)(way, each)


def _dict_parts(way: _Way, each: dict[Any, Any]) -> Iterator[tuple[_Way, Any]]:
    for key, value in [*each.items()]:
        yield _item(way, _key(key)), value
        yield way.part("key", f"key {_key(key)} of {way.path}"), key


def _sequence_parts(way: _Way, each: list[Any] | tuple[Any, ...]) -> Iterator[tuple[_Way, Any]]:
    for number, value in enumerate(each):
        yield _item(way, str(number)), value


def _set_parts(way: _Way, each: set[Any] | frozenset[Any]) -> Iterator[tuple[_Way, Any]]:
    for value in [*each]:
        yield way.part("item", f"{way.path}{{...}}", f"a member of {way.path}"), value


def _method_parts(way: _Way, each: types.MethodType) -> Iterator[tuple[_Way, Any]]:
    yield way.part("attribute", f"{way.path}.__self__"), each.__self__
    yield way.part("function", f"{way.path}.__func__"), each.__func__


def _cell_parts(way: _Way, each: types.CellType) -> Iterator[tuple[_Way, Any]]:
    try:
        yield way.part("item", way.path, ITEM + way.path), each.cell_contents
    except ValueError:      # it is empty
        return


def _partial_parts(way: _Way, each: functools.partial[Any]) -> Iterator[tuple[_Way, Any]]:
    yield way.part("attribute", f"{way.path}.func"), each.func
    yield way.part("attribute", f"{way.path}.args"), each.args
    yield way.part("attribute", f"{way.path}.keywords"), each.keywords


def _item(way: _Way, key: str) -> _Way:
    path = f"{way.path}[{key}]"
    return way.part("item", path, path if path.startswith(ARGUMENT) else ITEM + path)


def _globals(_way: _Way, module: types.ModuleType) -> Iterator[tuple[_Way, Any]]:
    own = module.__name__
    for name, value in [*vars(module).items()]:
        if name.startswith("__"):
            continue
        path = f"{own}.{name}"
        if isinstance(value, types.FunctionType):
            if value.__module__ == own:
                yield _Way("function", f"{path}()", module=own), value
            else:
                yield _Way("function", f"{value.__module__}.{value.__qualname__}()", module=_of(value)), value
        elif isinstance(value, type):
            yield _class_way(value), value
        elif not isinstance(value, types.ModuleType):
            yield _Way("global", path, module=own, held=name if sys.modules.get(own) is module else ""), value
    yield _Way("namespace", f"globals of {own}", module=own), vars(module)


def _class_way(value: type) -> _Way:
    name = f"{value.__module__}.{value.__qualname__}" if value.__module__ != "builtins" else value.__qualname__
    own = any(base.__flags__ & HEAP_TYPE and any(each in namespace_of(base) for each in FROM_CLASS_STATEMENT)
              for base in mro_of(value))
    return _Way("class" if own else "class of C", f"class {name}", module=_of(value))


def _of(value: Any) -> str:
    """Return the name of the module that a class or function says it is from; "" if it says something else."""
    name = value.__module__
    return name if isinstance(name, str) else ""


def _class_parts(way: _Way, each: type) -> Iterator[tuple[_Way, Any]]:
    space = namespace_of(each)
    for name, value in [*space.items()]:
        if isinstance(value, types.FunctionType):
            yield way.part("function", f"{value.__module__}.{value.__qualname__}()"), value
        elif not isinstance(value, type) and not (name.startswith("__") and name.endswith("__")):
            yield way.part("class attribute", f"{way.path.removeprefix('class ')}.{name}",
                           f"{way.path} (attribute {name})"), value
    for base in mro_of(each):
        yield _class_way(base), base
    for inner in gc.get_referents(space):
        yield way.part("class namespace", f"{way.path} (attributes)"), inner
    for inner in gc.get_referents(each):
        yield way.part("class namespace", f"{way.path} (attributes)"), inner


def _function_parts(way: _Way, each: types.FunctionType) -> Iterator[tuple[_Way, Any]]:
    outer = each.__qualname__.partition(".<locals>")[0]
    maker = f"{outer}()" if "<locals>" in each.__qualname__ else way.path
    for name, cell in zip(each.__code__.co_freevars, each.__closure__ or (), strict=True):
        yield way.part("cell", f"cell {name} of {maker}"), cell
    yield way.part("code", f"code of {each.__qualname__}()"), each.__code__
    for name, value in [*each.__dict__.items()]:
        yield way.part("attribute", f"{way.path}.{name}"), value
    yield way.part("defaults", f"defaults of {way.path}"), each.__defaults__
    yield way.part("defaults", f"defaults of {way.path}"), each.__kwdefaults__
    yield way.part("namespace", f"attributes of {way.path}"), each.__dict__
    yield _Way("namespace", f"globals of {each.__module__}", module=_of(each)), each.__globals__


def _code_parts(way: _Way, each: types.CodeType) -> Iterator[tuple[_Way, Any]]:
    for value in each.co_consts:
        if isinstance(value, types.CodeType):
            yield way.part("code", f"code of {value.co_qualname}()"), value
        else:
            yield way.part("constant", f"constant {_key(value)} in {each.co_qualname}()"), value
    for name in each.co_names:
        yield way.part("constant", f"name {name} in {each.co_qualname}()"), name


def _instance_parts(way: _Way, each: Any) -> Iterator[tuple[_Way, Any]]:
    try:
        space = object.__getattribute__(each, "__dict__")
    except Exception:  # noqa: BLE001 - a class may answer with anything
        space = None
    if type(space) is dict:
        for name, value in [*space.items()]:
            kind = LOG_HANDLER if name == "lock" and _handles_logs(each) else "attribute"
            yield way.part(kind, f"{way.path}.{name}"), value
        yield way.part("namespace", f"attributes of {way.path}"), space
    for base in type(each).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            with contextlib.suppress(Exception):      # it is not set, or its name is mangled
                yield way.part("attribute", f"{way.path}.{name}"), object.__getattribute__(each, name)
    for name, value in stored(each):
        yield way.part("attribute", f"{way.path}.{name}"), value
    yield _class_way(type(each)), type(each)
    for inner in gc.get_referents(each):
        if not isinstance(inner, type):
            yield way.part("inside", way.path, f"{_a(type(inner).__qualname__)} inside {way.path}"), inner


def _handles_logs(each: Any) -> bool:
    logging = sys.modules.get("logging")
    return logging is not None and logging.Handler in type(each).__mro__


def _a(noun: str) -> str:
    return f"an {noun}" if noun[:1].lower() in "aeiou" else f"a {noun}"


def _key(key: object) -> str:
    if isinstance(key, (str, int, float, bytes, bool, type(None))):
        text = repr(key)
        return text if len(text) <= LONGEST_KEY else f"{text[:LONGEST_KEY]}..."
    return f"<{type(key).__qualname__}>"


_PARTS: dict[type, Callable[[_Way, Any], Iterator[tuple[_Way, Any]]]] = {
    types.ModuleType: _globals, dict: _dict_parts, list: _sequence_parts, tuple: _sequence_parts, set: _set_parts,
    frozenset: _set_parts, types.FunctionType: _function_parts, types.CodeType: _code_parts,
    types.MethodType: _method_parts, types.CellType: _cell_parts, functools.partial: _partial_parts,
}
