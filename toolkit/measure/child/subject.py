"""Load the measured work: a workload of the catalogue, or the user's own function.  Runs inside the measured process.

A user's function is refused here, before any measurement, if it cannot be sent to another interpreter or process; the
message names the obstacle.  Payloads that cannot be sent exclude only models that send them.  Modules that only these
checks need are imported there.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.measure.child.base import first_line

if TYPE_CHECKING:
    from gilscope.toolkit.measure.child.spec import CellSpec, UserTarget


class RefusedError(Exception):
    """The user's function, payloads or check cannot be used; the message has the reason and the remedy."""


class PayloadsError(Exception):
    """The user's payloads raised an exception; the message says what raised."""

    def __init__(self, message: str, raised: BaseException) -> None:
        super().__init__(message)
        self.raised = raised


class ModuleMissingError(RefusedError):
    """The user's module, or a package that it should be in, was not found."""

    def __init__(self, message: str, missing: str) -> None:
        super().__init__(message)
        self.missing = missing


@dataclass(frozen=True, slots=True)
class LoadedSubject:
    """The work that one measured process runs."""

    task: Callable[..., Any] | None  # None: there is only an async form
    async_task: Callable[..., Any] | None
    payloads: Sequence[Any]
    shared: Any  # gilscope.runners.base.Shared or None
    check: Callable[[Sequence[Any]], None]
    modules: tuple[str, ...] = ()  # that the task imports on its first run
    kind: str | None = None  # gilscope.workloads.base.Kind; None: the user's function, of unknown kind
    unpicklable: str | None = None  # why the payloads cannot be sent to another interpreter or process


def load(spec: CellSpec) -> LoadedSubject:
    """Return the work that `spec` names, with its payloads.

    Raises:
        RefusedError: The user's function cannot be measured.
        PayloadsError: The user's payloads raised an exception.
    """
    if spec.user is not None:
        return _user_subject(spec.user)
    from gilscope.workloads import catalog

    workload = catalog.find(spec.workload)
    if spec.task_units is not None:
        return _sized_subject(workload, spec.task_units, spec.tasks or 1)
    size: Any = spec.size
    return LoadedSubject(
        workload.task,
        workload.async_task,
        workload.payloads(size, spec.shared_by),
        workload.shared,
        lambda results: workload.check(size, results, spec.shared_by),
        modules=workload.requires,
        kind=workload.kind,
    )


def _sized_subject(workload: Any, units: int, tasks: int) -> LoadedSubject:
    """Return a subject whose payloads are all `units` of work, so every result must equal that of a run here."""
    # A payload object for each task, as in the workloads themselves: no task shares one.
    payloads = [workload.units(units) for _ in range(tasks)]
    expected = workload.task(payloads[0])

    def check(results: Sequence[Any]) -> None:
        from gilscope.workloads.base import WrongResult

        for index, result in enumerate(results):
            if result != expected:
                raise WrongResult(f"task {index} returned {result!r:.80}, a serial run {expected!r:.80}")

    return LoadedSubject(
        workload.task,
        workload.async_task,
        payloads,
        workload.shared,
        check,
        modules=workload.requires,
        kind=workload.kind,
    )


def _user_subject(target: UserTarget) -> LoadedSubject:
    function = resolve(target.function)
    if reason := travel_reason(function, target.function):
        raise RefusedError(reason)
    async_function = _async_function(target.async_function) if target.async_function else None
    from inspect import iscoroutinefunction

    if iscoroutinefunction(function):
        function, async_function = None, function
    payloads = _payloads(target)
    unpicklable = next((reason for index, payload in enumerate(payloads)
                        if (reason := pickle_reason(payload, f"payload {index}"))), None)
    check = resolve(target.check) if target.check else lambda _results: None
    if not callable(check):
        raise RefusedError(f"{target.check} is a {type(check).__name__}, not a function")
    return LoadedSubject(function, async_function, payloads, None, check, kind=target.kind, unpicklable=unpicklable)


def _async_function(name: str) -> Callable[..., Any]:
    from inspect import iscoroutinefunction

    function: Callable[..., Any] = resolve(name)
    if not iscoroutinefunction(function):
        raise RefusedError(f"{name} is not a coroutine function: asyncio awaits what `async def` makes")
    return function


def _payloads(target: UserTarget) -> list[Any]:
    if target.payloads is None:
        import ast

        return [ast.literal_eval(target.payload or "None")] * target.tasks
    maker = resolve(target.payloads)
    try:
        payloads = maker() if callable(maker) else maker
        no_sequence = isinstance(payloads, (str, bytes, Mapping)) or not hasattr(payloads, "__iter__")
        listed = [] if no_sequence else list(payloads)
    except (Exception, SystemExit) as error:
        called = ", called without arguments," if callable(maker) else ""
        raise PayloadsError(f"{target.payloads}{called} raises", error) from error
    if no_sequence:
        raise RefusedError(f"{target.payloads} must be or return a sequence of payloads, not {type(payloads).__name__}")
    if not listed:
        raise RefusedError(f"{target.payloads} gave no payloads: return a list with one entry per task")
    return listed


def resolve(name: str) -> Any:
    """Return the object that "package.module:attribute.path" names.

    Raises:
        RefusedError: there is no such module or attribute.
    """
    module_name, _, path = name.partition(":")
    try:
        target: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if module_name == missing or module_name.startswith(missing + "."):
            outer, _, last = missing.rpartition(".")
            if outer in sys.modules:
                raise ModuleMissingError(
                    f"there is no module {missing!r}: {outer} was found, and has no {last!r}", missing) from error
            raise ModuleMissingError(
                f"there is no module {missing!r} (looked for {name}); "
                "run from the folder that holds it, or name that folder with --path or PYTHONPATH", missing
            ) from error
        raise RefusedError(
            f"{module_name} imports {missing!r}, which this build does not have; add it with --with {missing}"
        ) from error
    for part in path.split("."):
        try:
            target = getattr(target, part)
        except AttributeError:
            own = [each for each in dir(target) if not isinstance(getattr(target, each, None), ModuleType)]
            raise RefusedError(f"{module_name} has no {path!r}{_hint(part, own)}") from None
    return target


def _hint(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    public = [each for each in known if not each.startswith("_")]
    close = get_close_matches(name, public, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    more = f" and {len(public) - MOST_NAMES} more" if len(public) > MOST_NAMES else ""
    return f"; it has {', '.join(public[:MOST_NAMES]) or 'nothing public'}{more}"


def travel_reason(function: Any, name: str) -> str | None:
    """Return the reason why `function` cannot be sent to another interpreter or process by name, or None."""
    return _kind_reason(function, name) or _name_reason(function, name)


MOST_NAMES = 8   # in a message
_ADVICE = "put it at the top level of an importable module"


def _kind_reason(function: Any, name: str) -> str | None:
    import inspect

    if isinstance(function, functools.partial):
        return f"{name} is a functools.partial: write a function and put its arguments into the payload"
    if inspect.ismethod(function):
        return f"{name} is a bound method: its {type(function.__self__).__name__} object cannot travel; {_ADVICE}"
    if not callable(function):
        return f"{name} is a {type(function).__name__}, not a function"
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        word = "a" if inspect.isgeneratorfunction(function) else "an async"
        return f"{name} is {word} generator function: calling it does no work; return a list instead of yielding"
    return None


def _name_reason(function: Any, name: str) -> str | None:
    module, qualname = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if module == "__main__":
        return f"{name} lives in __main__, which workers cannot import; {_ADVICE}"
    if _found_by_name(function, module, qualname):
        return None
    captured = getattr(getattr(function, "__code__", None), "co_freevars", ())
    if captured:
        return f"{name} is a closure over {', '.join(captured)}: pass that in the payload and {_ADVICE}"
    if "<lambda>" in qualname:
        return f"{name} is a lambda: give it a name with def and {_ADVICE}"
    return f"{name} cannot be found again as {module}:{qualname}; {_ADVICE}"


def _found_by_name(function: Any, module: str | None, qualname: str) -> bool:
    try:
        target: Any = importlib.import_module(module or "")
        for part in qualname.split("."):
            target = getattr(target, part)
    except (ImportError, AttributeError, ValueError):
        return False
    return target is function


def pickle_reason(value: Any, where: str) -> str | None:
    """Return the reason why `value`, called `where`, cannot be pickled, with the part that is to blame; None if it can.

    For example "result cannot be pickled: lock in result.lock (cannot pickle '_thread.lock' object)".
    """
    found = _unpicklable_part(value, where, frozenset())
    if found is None:
        return None
    path, part, why = found
    return f"{where} cannot be pickled: {type(part).__name__}{f' in {path}' if path != where else ''} ({why})"


def _unpicklable_part(value: Any, path: str, enclosing: frozenset[int]) -> tuple[str, Any, str] | None:
    """Return the innermost part that cannot be pickled: its path, itself, the reason.  `enclosing` are ids."""
    import pickle

    try:
        pickle.dumps(value, protocol=5)
    except RecursionError:
        return path, value, "it is nested too deeply"
    except Exception as error:  # noqa: BLE001 - a user's __reduce__ may raise anything
        enclosing |= {id(value)}
        for part_name, part in _parts(value):
            if id(part) not in enclosing and (found := _unpicklable_part(part, f"{path}{part_name}", enclosing)):
                return found
        return path, value, first_line(error) or type(error).__name__
    return None


def _parts(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [(f"[{key!r}]", part) for key, part in value.items()]
    if isinstance(value, (list, tuple)):
        return [(f"[{index}]", part) for index, part in enumerate(value)]
    return [(f".{key}", part) for key, part in getattr(value, "__dict__", {}).items()]
