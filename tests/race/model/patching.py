"""Functions around functions, and attributes that can be set back."""

from __future__ import annotations

from _thread import _local
from sys import stderr
from types import MethodType

from tests.race.model.state import CHECKER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tests.race.model.threads import ThreadTable

_MISSING: Any = object()
_here = _local()                                   # how many hooks this thread is in
_deferred: list[Callable[[], Any]] = []           # calls of signal handlers, which only the main thread makes
_COPIED = ("__module__", "__name__", "__qualname__", "__doc__", "__text_signature__")


def as_checkers[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Return the function as if it were of a file of the checker's, which passes over frames of such files alone.

    The core in C, which it is made for, leaves no frame.
    """
    function.__code__ = function.__code__.replace(co_filename=f"{CHECKER}model")
    return function


class WrappedFunction:
    """A callable like `original` with calls around it; binds where the original binds.

    A call that fails shows one frame of this module in its traceback; the C core leaves none.
    """

    def __init__(self, threads: ThreadTable, original: Callable[..., Any], hooks: tuple[Any, Any, Any], *,
                 muted: bool) -> None:
        self.__dict__.update(getattr(original, "__dict__", {}))
        for name in _COPIED:
            value = getattr(original, name, _MISSING)
            if value is not _MISSING:
                self.__dict__[name] = value
        self.__wrapped__ = original
        self._threads = threads
        self._hooks = hooks
        self._muted = muted

    @as_checkers
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the original, with our calls around it."""
        level = self._threads.muted()     # the first call of all announces the thread
        if self._muted and level:
            return self.__wrapped__(*args, **kwargs)     # a primitive inside a primitive
        before, after, failed = self._hooks
        state = guarded(before, *args, **kwargs)
        thread = self._threads.current()     # perhaps a logical one that has just begun
        muted = level + 1 if self._muted and state is not NotImplemented else thread.muted
        level = thread.muted
        try:
            thread.muted = muted
            result = self.__wrapped__(*args, **kwargs)
            thread.muted = level
        except BaseException as error:
            thread.muted = level
            guarded(failed, state, error, *args, **kwargs)
            raise
        guarded(after, state, result, *args, **kwargs)
        return result

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None or not hasattr(type(self.__wrapped__), "__get__"):
            return self
        return MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name == "__wrapped__":       # not there yet: a copy is being made
            raise AttributeError(name)
        return getattr(self.__wrapped__, name)

    def __reduce__(self) -> str:
        name: str = self.__dict__["__qualname__"]
        return name       # found by it, as functions are

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


@as_checkers
def guarded(hook: Callable[..., Any] | None, *args: Any, **kwargs: Any) -> Any:
    """Call one of our own hooks; its errors must not reach the program, but those of a deferred signal handler must."""
    if hook is None:
        return None
    depth = getattr(_here, "depth", 0)
    _here.depth = depth + 1
    try:
        return hook(*args, **kwargs)
    except Exception:  # noqa: BLE001  as the docstring says
        complain()
        return None
    finally:
        _here.depth = depth
        while depth == 0 and _deferred and getattr(_here, "defers", False):
            _deferred.pop(0)()


def deferrable(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return a signal handler that waits for the end of a hook that it interrupts."""
    def handle(number: int, frame: Any) -> Any:
        if getattr(_here, "depth", 0):
            _here.defers = True       # the main thread alone gets here
            _deferred.append(lambda: handler(number, frame))
            return None
        return handler(number, frame)
    return handle


def complain() -> None:
    """Write the exception that is being handled to stderr, if somebody looks for our mistakes."""
    from os import environ

    if environ.get("GILSCOPE_RACE_DEBUG"):
        from traceback import print_exc

        print_exc(file=stderr)


def patch(owner: Any, name: str, replacement: object) -> Callable[[], None] | None:
    """Set an attribute, also of an immutable type; return what sets it back, or None when it cannot be set."""
    before = vars(owner).get(name, _MISSING)
    try:
        _set(owner, name, replacement)
    except (TypeError, AttributeError):
        return None
    return lambda: _set(owner, name, before)


def _set(owner: Any, name: str, value: object) -> None:
    try:
        if value is _MISSING:
            delattr(owner, name)
        else:
            setattr(owner, name, value)
    except TypeError:
        if not isinstance(owner, type):
            raise
        # As the core in C does it.
        from ctypes import py_object, pythonapi
        from gc import get_referents

        (namespace,) = get_referents(vars(owner))     # the dict behind the proxy
        if value is _MISSING:
            del namespace[name]
        else:
            namespace[name] = value
        pythonapi.PyType_Modified(py_object(owner))
