"""Load the measured work: a workload of the catalogue, or the user's own function.  Runs inside the measured process.

A user's function may be any callable that a module holds, since workers find it by its name: see `calls`.  What
cannot be called so is refused here, before any measurement; the message names the obstacle.  Payloads that cannot be
sent exclude only models that send them.  Modules that only these checks need are imported there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.measure.child import calls
from gilscope.toolkit.measure.child.user_code import RefusedError, first_line, resolve

if TYPE_CHECKING:
    from gilscope.toolkit.measure.child.spec import CellSpec, UserTarget


class PayloadsError(Exception):
    """The user's payloads raised an exception; the message says what raised."""

    def __init__(self, message: str, raised: BaseException) -> None:
        super().__init__(message)
        self.raised = raised


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
    sent: Callable[..., Any] | None = None  # the task for models that send it, if it is not found by its own name
    home: str = ""  # the module that workers import to find the user's function
    notes: tuple[str, ...] = ()  # what to know of the user's function before it is measured


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
    found = resolve(target.function)
    if reason := _call_reason(found, target.function, with_payload=target.has_payloads):
        raise RefusedError(reason)
    awaited = _async_form(target.async_function, target) if target.async_function else None
    check = resolve(target.check) if target.check else lambda _results: None
    if not callable(check):
        raise RefusedError(f"{target.check} is {_a(type(check).__name__)}, not a function")
    home, task, sent = target.function.partition(":")[0], found, None
    if not target.has_payloads:
        task = calls.call_named   # its payload is the function's name
    elif _found_by_name(found):
        home = found.__module__
    else:
        sent = calls.NamedTask(target.function, found)
    if calls.awaits(found):
        task, awaited = None, _async_form(target.function, target)
    payloads = _payloads(target)
    unpicklable = next((reason for index, payload in enumerate(payloads)
                        if (reason := pickle_reason(payload, f"payload {index}"))), None)
    return LoadedSubject(task, awaited, payloads, None, check, kind=target.kind, unpicklable=unpicklable, sent=sent,
                         home=home, notes=tuple(_notes(found, target.function)))


def _async_form(name: str, target: UserTarget) -> Callable[..., Any]:
    """Return the coroutine function of this name as a function of one payload."""
    found = resolve(name)
    if not calls.awaits(found):
        raise RefusedError(f"{name} is not a coroutine function: asyncio awaits what `async def` makes")
    if reason := _call_reason(found, name, with_payload=target.has_payloads):
        raise RefusedError(reason)
    from inspect import iscoroutinefunction

    # An event loop knows the method of an object as a coroutine function, but not the object.
    awaitable: Callable[..., Any] = found if iscoroutinefunction(found) else found.__call__

    async def without_payload(_name: str) -> Any:
        return await awaitable()

    return awaitable if target.has_payloads else without_payload


def _payloads(target: UserTarget) -> list[Any]:
    if not target.has_payloads:
        return [target.function] * target.tasks   # which `call_named` calls
    if target.payload is not None:
        import ast

        return [ast.literal_eval(target.payload)] * target.tasks
    assert target.payloads is not None, "there are payloads"
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


def _call_reason(found: Any, name: str, *, with_payload: bool) -> str | None:
    """Return the reason why a call of `found`, with one payload or without arguments, is no work; None if it is."""
    if not callable(found):
        return f"{name} is {_a(type(found).__name__)}, not a function"
    if calls.yields(found):
        word = "an async" if calls.code_flags(found) & calls.ASYNC_GENERATOR else "a"
        return f"{name} is {word} generator function: calling it does no work; return a list instead of yielding"
    return _argument_reason(found, name, with_payload=with_payload)


def _argument_reason(found: Any, name: str, *, with_payload: bool) -> str | None:
    import inspect

    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):   # of some functions in C: the trial calls them
        return None
    try:
        signature.bind(*[None] * with_payload)
    except TypeError as error:
        if next(iter(signature.parameters), "") == "self":
            owner = name.rpartition(".")[0]
            return (f"{name} is a method, and needs an object: make one in the module, as `thing = "
                    f"{owner.rpartition(':')[2] or 'Thing'}(...)`, and name its method")
        if with_payload:
            return f"{name} is called with one payload, and that does not fit: {error}"
        return (f"{name} is called without arguments, and that does not fit: {error}; give it payloads "
                "(--payloads MODULE:NAME, one for each task, or --payload LITERAL)")
    return None


def _notes(found: Any, name: str) -> Iterator[str]:
    """Yield what to know of the function before it is measured."""
    if hasattr(found, "cache_info"):
        yield (f"{name} keeps its results (functools.cache): a call with a payload that it has seen does no work; "
               f"{name}.__wrapped__ names the function beneath")
    owner = getattr(found, "__self__", None)   # of a bound method
    is_method = owner is not None and not isinstance(owner, (type, ModuleType))
    if is_method or not (_found_by_name(found) or isinstance(found, type) or hasattr(found, "__code__")):
        what = f"a method of {_a(type(owner).__name__)} object" if is_method else f"{_a(type(found).__name__)} object"
        yield (f"{name} is {what}: each worker process and interpreter makes its own when it imports the module, and "
               "only threads share one")


def _a(word: str) -> str:
    return f"{'an' if word[:1].lower() in set('aeiou') else 'a'} {word}"


def _found_by_name(found: Any) -> bool:
    """Return True if the callable is found by the name that it has itself, as pickle finds functions."""
    module, qualname = getattr(found, "__module__", None), getattr(found, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(qualname, str) or module == "__main__":
        return False
    try:
        return calls.find(f"{module}:{qualname}") is found
    except (ImportError, AttributeError, ValueError):
        return False


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
