"""Recipes as calls that can be made, and which compiled functions and types of a module they reach.

Runs in the build under test: imports little.
"""

from __future__ import annotations

import builtins
import sys
import types
from types import BuiltinFunctionType, FunctionType, ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence
    from typing import Any, Self

    from gilscope.toolkit.hammer.calls import CallRecipe

SUFFIX = ".so"     # of an extension module's file
TOOL = 4    # of sys.monitoring; 0 to 3 and 5 are a debugger, a coverage tool, a profiler and an optimizer
MUTABLE = (list, dict, set, bytearray)


class RepeatableCall:
    """A recipe, compiled: makes its object, its arguments, and the bound function."""

    def __init__(self, recipe: CallRecipe) -> None:
        """Compile a recipe and run its imports.

        Raises:
            Exception: An import fails.
        """
        self.recipe = recipe
        self._globals: dict[str, Any] = {"__name__": "gilscope_hammer"}
        if recipe.module:
            __import__(recipe.module)
            self._globals |= {name: value for name, value in vars(sys.modules[recipe.module]).items()
                              if not name.startswith("__")}
        for text in recipe.imports:
            exec(text, self._globals)  # noqa: S102  of the project's own tests, in a process for that
        self._setup = compile("\n".join(recipe.setup), recipe.place, "exec")
        words = [*recipe.args, *(value for _, value in recipe.kwargs)]
        self._args = compile(f"({''.join(f'{word}, ' for word in words)})", recipe.place, "eval")
        self._keywords = tuple(name for name, _ in recipe.kwargs)
        self._callee = compile(recipe.receiver or recipe.callee, recipe.place, "eval")

    def scope(self) -> dict[str, Any]:
        """Return the variables of a new run of the setup: new objects."""
        scope = self._globals.copy()
        exec(self._setup, scope)  # noqa: S102  as above
        return scope

    def receiver(self, scope: dict[str, Any]) -> Any:
        """Return the object whose method is called; None for a function or a type."""
        return eval(self._callee, scope) if self.recipe.receiver else None  # noqa: S307  as above

    def function(self, scope: dict[str, Any], receiver: Any = None) -> Callable[..., Any]:
        """Return the callable: a method of the receiver, or a function or type.

        Raises:
            Exception: There is none.
        """
        if self.recipe.receiver:
            found: Callable[..., Any] = getattr(receiver, self.recipe.callee)
            return found
        return eval(self._callee, scope)  # type: ignore[no-any-return]  # noqa: S307  as above

    def arguments(self, scope: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments; those that the setup made are the same objects each time."""
        values = eval(self._args, scope)  # noqa: S307  as above
        count = len(self.recipe.args)
        return values[:count], dict(zip(self._keywords, values[count:], strict=True))

    def once(self) -> Any:
        """Make the call with new objects and return its result.

        Raises:
            Exception: The setup or the call raises it.
        """
        scope = self.scope()
        function = self.function(scope, self.receiver(scope))
        args, kwargs = self.arguments(scope)
        return function(*args, **kwargs)


def public_callables(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the functions, types and methods that a module offers, with their names: of `__all__`, or of its package.

    Exceptions are left out.  Of several names, an object has its own.
    """
    listed = getattr(module, "__all__", None)
    names: dict[int, str] = {}
    for name, value in list(vars(module).items()):
        own = not name.startswith("_") and _top(module.__name__) in {_top(owner(value)), _top(home(value))}
        if not (own if listed is None else name in listed) or isinstance(value, ModuleType) or not callable(value) or (
                isinstance(value, type) and issubclass(value, BaseException)):
            continue
        if id(value) not in names or name == getattr(value, "__name__", ""):
            names[id(value)] = name
    for name in names.values():
        value = vars(module)[name]
        yield name, value
        for each in list(vars(value)) if isinstance(value, type) else ():
            if not each.startswith("_") and callable(member := getattr(value, each, None)):
                yield f"{name}.{each}", member


def home(found: Any) -> str:
    """Return the loaded module that defines a function, method or type, or "".

    For a type of C that states a module that does not exist, or none, it is the extension module that holds it.
    """
    stated, kind = owner(found), found if isinstance(found, type) else _type_of_method(found)
    if kind is None or (stated in sys.modules and stated != "builtins"):
        return stated if stated in sys.modules else ""
    return next((name for name, each in list(sys.modules.items())
                 if isinstance(each, ModuleType) and str(getattr(each, "__file__", "")).endswith(SUFFIX)
                 and any(value is kind for value in list(vars(each).values())) and _defines(each, kind, ())), "")


def _top(module: str) -> str:
    return module.partition(".")[0].removeprefix("_")   # the C code of bisect is in _bisect


class DefinedCallables:
    """The functions, types and methods that modules define, C or Python, by their names in reports: "Counter.add".

    If another module has defined that name, the name of the module is before it: "pkg.other.Counter.add".
    """

    def __init__(self, modules: Sequence[str]) -> None:
        """Look through loaded modules, and through the submodules that their C code made."""
        self._types: dict[type, str] = {}
        self._functions: dict[int, str] = {}    # by identity; some compare by value, and some cannot be hashed
        self._names: set[str] = set()
        self.public: list[str] = []
        found = dict.fromkeys(inner for name in modules for inner in _made_inside(sys.modules[name]))
        self._modules = frozenset(each.__name__ for each in found)
        for module in found:
            for name, value in _defined_in(module, self._modules):
                self._add(module.__name__, name, value)

    def _add(self, module: str, name: str, value: Any) -> None:
        if (value in self._types) if isinstance(value, type) else (id(_unbound(value)) in self._functions):
            return   # another name of it
        shown = f"{module}.{name}" if name in self._names else name
        self._names.add(name)
        is_public = not name.startswith("_")
        if is_public:
            self.public.append(shown)
        if not isinstance(value, type):
            self._functions[id(_unbound(value))] = shown
            return
        self._types[value] = shown
        for inner, member in list(vars(value).items()):
            if callable(member):
                self._functions.setdefault(id(_unbound(member)), f"{shown}.{inner}")
                if is_public and not inner.startswith("_"):
                    self.public.append(f"{shown}.{inner}")

    def name(self, called: Any) -> str:
        """Return the name of a function, type or method, bound or not; "" if no module of these defines it."""
        if isinstance(called, type) and called in self._types:
            return self._types[called]
        if known := self._functions.get(id(_unbound(called))):
            return known
        if (kind := _type_of_method(called)) is not None and not isinstance(_unbound(called), FunctionType):
            own = next((each for each in kind.__mro__ if each in self._types), None)
            return f"{self._types[own]}.{called.__name__}" if own and hasattr(called, "__name__") else ""   # inherited
        return full_name(called) if owner(called) in self._modules else ""

    def name_of_slot(self, called: Any, value: Any) -> str:
        """Return the name of a call that gets an object of such a type, `len(value)`; "" for another object."""
        kind = type(value)
        known = self._types.get(kind, kind.__qualname__ if kind.__module__ in self._modules else "")
        return f"{known}.{getattr(called, '__name__', '')}" if known else ""


def _made_inside(module: ModuleType, seen: frozenset[ModuleType] = frozenset()) -> Iterator[ModuleType]:
    """Yield a module and the submodules that its C code made: no file was found for these."""
    yield module
    for value in list(vars(module).values()):
        if (isinstance(value, ModuleType) and value not in seen and getattr(value, "__spec__", None) is None
                and (value.__name__.startswith(f"{module.__name__}.") or not hasattr(value, "__file__"))):
            yield from _made_inside(value, seen | {module})


def _defined_in(module: ModuleType, modules: Container[str]) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of the functions and types of a module that are not imported from elsewhere.

    A type that has several names comes first with its own.
    """
    found = [(name, value) for name, value in list(vars(module).items())
             if callable(value) and _defines(module, value, modules)]
    yield from sorted(found, key=lambda each: each[0] != getattr(each[1], "__name__", ""))


def _defines(module: ModuleType, value: Any, modules: Container[str]) -> bool:
    stated = owner(value)
    if stated == module.__name__ or not isinstance(value, type) or stated in modules:
        return stated == module.__name__
    # C code gives a type any module's name: that of its package, of a module that does not exist, or none.
    if "__firstlineno__" in vars(value) or any(isinstance(each, FunctionType) for each in vars(value).values()):
        return False   # a class of Python
    if stated == "builtins":
        return not any(value is each for names in (builtins, types) for each in vars(names).values())
    package = module.__name__.rpartition(".")[0] or module.__name__.lstrip("_")
    return stated not in sys.modules or f"{stated}.".startswith(f"{package}.")


def owner(found: Any) -> str:
    """Return the module that a function, method or type is defined in, or ""."""
    if isinstance(found, BuiltinFunctionType):
        if isinstance(found.__self__, ModuleType):
            return found.__self__.__name__
        if isinstance(found.__module__, str):   # of pybind11: `self` is a record of its own
            return found.__module__
    kind = _type_of_method(found)
    name = getattr(found if kind is None else kind, "__module__", "")
    return name if isinstance(name, str) else ""


def _type_of_method(found: Any) -> type | None:
    """Return the type whose method is given, or of the object that it is bound to; None for a function or a type."""
    if isinstance(found, type) or (isinstance(found, BuiltinFunctionType) and isinstance(found.__module__, str)):
        return None
    kind = getattr(found, "__objclass__", None)
    bound = getattr(found, "__self__", None)
    if kind is None and bound is not None and not isinstance(bound, ModuleType):
        kind = bound if isinstance(bound, type) else type(bound)
    return kind if isinstance(kind, type) else None


def _unbound(found: Any) -> Any:
    """Return the function in a bound, static, class or instance method."""
    return getattr(found, "__func__", found)


def full_name(found: Any) -> str:
    """Return the name that a function, method or type has itself: "Counter.add" for a method."""
    return str(getattr(found, "__qualname__", "") or getattr(found, "__name__", ""))


class ReachedFunctions:
    """The functions, types and methods of some modules that are called in the `with` block."""

    def __init__(self, defined: DefinedCallables) -> None:
        """Watch for these."""
        self._defined = defined
        self.names: set[str] = set()

    def __enter__(self) -> Self:
        """Watch all calls."""
        monitoring = sys.monitoring
        monitoring.use_tool_id(TOOL, "gilscope hammer")
        monitoring.register_callback(TOOL, monitoring.events.CALL, self._called)
        monitoring.set_events(TOOL, monitoring.events.CALL)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop watching."""
        sys.monitoring.set_events(TOOL, 0)
        sys.monitoring.free_tool_id(TOOL)

    def _called(self, _code: object, _offset: int, called: Any, first: Any) -> None:
        name = self._defined.name(called)
        if not name and first is not sys.monitoring.MISSING:
            name = self._defined.name_of_slot(called, first)
        if name:
            self.names.add(name)
