"""Give a thread copies of its own of some objects: the repair that `gilscope scale` tries.

The thread calls a copy of the user's function whose globals, and those of the other functions of these modules, are its
own; in them, the objects are replaced.  Methods of classes keep the globals of their module: what they use is not
replaced, and whoever tries the repair sees that the original is still used.
"""

from __future__ import annotations

import copy
import copyreg
import functools
import sys
import types
from _thread import RLock, allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def _copy_locks_as_new() -> None:
    """Have copies hold new locks where originals hold locks, which `copy` cannot copy.

    For a process that ends afterwards: the program itself may count on the error.
    """
    kinds: dict[type, Callable[[Any], tuple[Any, tuple[Any, ...]]]] = {
        type(allocate_lock()): lambda _: (allocate_lock, ()), RLock: lambda _: (RLock, ())}
    if threading := sys.modules.get("threading"):
        # It keeps methods of its lock, which copies have in common.
        kinds[threading.Condition] = lambda each: (threading.Condition, (each._lock,))  # noqa: SLF001
    for kind, reduced in kinds.items():
        copyreg.dispatch_table.setdefault(kind, reduced)


class UncopiedError(Exception):
    """An object cannot be copied, or the function cannot be given a copy; the message says why."""


class ThreadCopy:
    """The function and the payloads that one thread works with; made inside that thread."""

    def __init__(self, call: Callable[..., object], payloads: list[Any] | None, *,
                 held: Sequence[tuple[str, str]], arguments: bool, control: bool = False) -> None:
        """Copy.

        Args:
            call: The user's function.
            payloads: The thread's payloads; None: it takes no argument.
            held: Module and name of the globals to copy.
            arguments: True to copy the payloads, too.
            control: True to copy nothing, but to have globals of the thread's own all the same.

        Raises:
            UncopiedError: Something cannot be copied.
        """
        _copy_locks_as_new()
        copied: Callable[[Any], Any] = (lambda each: each) if control else self._copied
        self.payloads = copied(payloads) if arguments else payloads
        self.call = call
        if held:
            originals = [vars(sys.modules[module])[name] for module, name in held]
            self._copies = {id(each): copied(each) for each in originals}
            self._spaces: dict[int, dict[str, Any]] = {}
            self.call = self._private(call, {module for module, _ in held})

    @staticmethod
    def _copied(each: Any) -> Any:
        try:
            return copy.deepcopy(each)
        except Exception as error:  # noqa: BLE001 - a class may refuse with anything
            raise UncopiedError(f"{type(error).__name__}: {error}") from None

    def _private(self, call: Callable[..., object], modules: set[str]) -> Callable[..., object]:
        """Return the function with globals of the thread's own."""
        if isinstance(call, functools.partial):
            return functools.partial(self._private(call.func, modules), *call.args, **call.keywords)
        if not isinstance(call, types.FunctionType):
            raise UncopiedError("the function is no plain Python function, whose globals could be replaced")
        package = call.__module__.partition(".")[0]
        own = {name: module for name, module in [*sys.modules.items()] if isinstance(module, types.ModuleType)
               and (name in modules or name.partition(".")[0] == package)}
        clones = {id(vars(module)): types.ModuleType(name) for name, module in own.items()}
        if id(call.__globals__) not in clones:
            raise UncopiedError("the function's globals are no module's")
        for module in own.values():
            self._fill(vars(clones[id(vars(module))]), vars(module), clones)
        return self._function(call, clones)

    def _fill(self, space: dict[str, Any], original: dict[str, Any], clones: dict[int, types.ModuleType]) -> None:
        for name, value in [*original.items()]:
            if id(value) in self._copies:
                space[name] = self._copies[id(value)]
            elif isinstance(value, types.ModuleType) and id(vars(value)) in clones:
                space[name] = clones[id(vars(value))]
            elif isinstance(value, types.FunctionType) and id(value.__globals__) in clones:
                space[name] = self._function(value, clones)
            else:
                space[name] = value

    @staticmethod
    def _function(each: types.FunctionType, clones: dict[int, types.ModuleType]) -> types.FunctionType:
        made = types.FunctionType(each.__code__, vars(clones[id(each.__globals__)]), each.__name__, each.__defaults__,
                                  each.__closure__)
        made.__kwdefaults__ = each.__kwdefaults__
        made.__dict__.update(each.__dict__)
        return made
