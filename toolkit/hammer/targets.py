"""Recipes as calls that can be made, and which compiled functions and types of a module they reach.

Runs in the build under test: imports little.
"""

from __future__ import annotations

import sys
from types import BuiltinFunctionType, ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Self

    from gilscope.toolkit.hammer.calls import CallRecipe

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


def public_names(modules: Sequence[str]) -> list[str]:
    """Return the names of the functions, types and methods of loaded `modules`: "label", "Counter", "Counter.add"."""
    return list(dict.fromkeys(name for module in modules for name, found in public_callables(sys.modules[module])
                              if owner(found) == module))


def public_callables(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the functions, types and methods that a module offers, with their names: of `__all__`, or of its package.

    Exceptions are left out.  Of several names, an object has its own.
    """
    listed = getattr(module, "__all__", None)
    names: dict[int, str] = {}
    for name, value in list(vars(module).items()):
        own = not name.startswith("_") and _top(owner(value)) == _top(module.__name__)
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


def _top(module: str) -> str:
    return module.partition(".")[0].removeprefix("_")   # the C code of bisect is in _bisect


def owner(found: Any) -> str:
    """Return the module that a function, method or type is defined in, or ""."""
    if isinstance(found, BuiltinFunctionType) and isinstance(found.__self__, ModuleType):
        return found.__self__.__name__
    kind = getattr(found, "__objclass__", None)
    if kind is None and not isinstance(found, type) and getattr(found, "__self__", None) is not None:
        kind = found.__self__ if isinstance(found.__self__, type) else type(found.__self__)
    name = getattr(found if kind is None else kind, "__module__", "")
    return name if isinstance(name, str) else ""


def full_name(found: Any) -> str:
    """Return the name as `public_names` gives it: "Counter.add" for a method."""
    return str(getattr(found, "__qualname__", "") or getattr(found, "__name__", ""))


class ReachedFunctions:
    """The functions, types and methods of some modules that are called in the `with` block: "label", "Counter.add"."""

    def __init__(self, modules: Sequence[str]) -> None:
        """Watch for functions, types and methods of `modules`."""
        self._modules = frozenset(modules)
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
        if owner(called) in self._modules:
            self.names.add(full_name(called))
        elif first is not sys.monitoring.MISSING and type(first).__module__ in self._modules:
            # A slot: len(obj), or a method found on a base class.
            name = getattr(called, "__name__", "")
            self.names.add(f"{type(first).__qualname__}.{name}")
