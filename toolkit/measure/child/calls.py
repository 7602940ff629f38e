"""Find the user's function by its name, and call it; the only module of ours that worker interpreters import for it.

`run` and `evaluate` find names here alone.  Nothing of the callable is ever pickled: each worker process and
interpreter imports its module and finds the object there, so objects, methods and partials work like functions.
The file imports nothing of gilscope, because a checked program loads it by its path.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Flags of code objects; importing `inspect` for their names takes longer than most workloads.
COROUTINE, GENERATOR, ASYNC_GENERATOR = 0x80, 0x20, 0x200
PLAIN = (int, float, complex, str, bytes, bool, type(None))
MOST_COMPARED = 100_000   # items or characters of a result: comparing more would show in the measurement
_found: dict[str, Callable[[], object]] = {}   # by `call_often`
LONGEST = 80              # characters of a result to show; longer ones are shown as a checksum


class NoWorkError(Exception):
    """Calling the user's function does not run it."""


class NameMissingError(AttributeError):
    """An object has no attribute of this name."""

    def __init__(self, owner: object, part: str) -> None:
        super().__init__(f"{getattr(owner, '__name__', type(owner).__name__)} has no {part!r}")
        self.owner = owner
        self.part = part


class NamedTask:
    """A callable with the name by which workers find it: in a worker, it is replaced by the callable itself."""

    def __init__(self, name: str, found: Callable[[Any], Any]) -> None:
        """Set the module and the qualified name that runners send in place of the callable."""
        self.__module__, _, self.__qualname__ = name.partition(":")
        self._found = found

    def __call__(self, payload: Any) -> Any:
        """Call it here."""
        return self._found(payload)

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        """Send the name alone."""
        return find, (f"{self.__module__}:{self.__qualname__}",)


def find(name: str) -> Any:
    """Return the object that "package.module:attribute.path" names.

    Raises:
        ImportError: There is no such module.
        NameMissingError: There is no such attribute.
    """
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise NameMissingError(found, part) from None
    return found


def code_flags(found: object) -> int:
    """Return the flags of the code that a call runs, through partials, methods and `__call__`; 0 if there is none."""
    while hasattr(found, "func") and hasattr(found, "keywords"):   # functools.partial
        found = found.func
    found = getattr(found, "__func__", found)
    if not hasattr(found, "__code__") and callable(found) and not isinstance(found, type):
        found = type(found).__call__
    flags: int = getattr(getattr(found, "__code__", None), "co_flags", 0)
    return flags


def awaits(found: object) -> bool:
    """Return True if a call returns a coroutine, and runs nothing until that is awaited."""
    # inspect.markcoroutinefunction sets the attribute, for functions that only return a coroutine.
    return bool(code_flags(found) & COROUTINE) or hasattr(found, "_is_coroutine_mark")


def yields(found: object) -> bool:
    """Return True if a call returns a generator, and runs nothing until that is used up."""
    return bool(code_flags(found) & (GENERATOR | ASYNC_GENERATOR))


def call_named(name: str) -> Any:
    """Call the function "package.module:name" without arguments: a task whose payload is the function's name."""
    return find(name)()


def call_often(payload: tuple[str, int]) -> None:
    """Call the function that `function_called` finds by this name so many times."""
    name, count = payload
    if name not in _found:   # in a worker of its own; making the payloads would be measured each time
        _found[name] = function_called(name)
    function = _found[name]
    for _ in range(count):
        function()


def function_called(name: str) -> Callable[[], object]:
    """Return the function "package.module:name"; an `async def` is wrapped so that each call runs it to its end.

    After "package.module:name package.module:payloads", a call calls it with each of the payloads in turn.

    Raises:
        ImportError: There is no such module.
        AttributeError: The module has no such function.
        NoWorkError: It is a generator.
    """
    function, _, payloads = name.partition(" ")
    call = run_to_its_end(find(function), function)
    if not payloads:
        return call
    made: Any = find(payloads)
    listed = list(made() if callable(made) else made)
    return lambda: [call(each) for each in listed]


def run_to_its_end(found: Any, name: str) -> Callable[..., Any]:
    """Return the function itself, or for an `async def` one that runs it to its end.

    Raises:
        NoWorkError: It is a generator.
    """
    if yields(found):
        raise NoWorkError(f"{name} is a generator: calling it runs nothing; name a function that uses it up")
    return _awaited(found) if awaits(found) else found


def _awaited(found: Callable[..., Any]) -> Callable[..., object]:
    from asyncio import run

    return lambda *args, **kwargs: run(found(*args, **kwargs))


def refuse_unawaited(name: str, result: object) -> None:
    """Refuse a function that returns an awaitable although it is not an `async def`.

    Raises:
        NoWorkError: It returns an awaitable.
    """
    each = result[0] if " " in name and isinstance(result, list) and result else result   # of the first payload
    if hasattr(each, "__await__"):
        for one in result if each is not result else [result]:   # type: ignore[attr-defined]
            getattr(one, "close", bool)()   # a coroutine that is never awaited would warn
        name = name.partition(" ")[0]
        raise NoWorkError(
            f"{name} returns something to be awaited, which nobody does: name an async def, or call asyncio.run in it")


def shown(result: object) -> str | None:
    """Return a short text that identifies a result of plain values; None for any other result."""
    parts: list[str] = []
    if not _written(result, parts, 3) or len(text := "".join(parts)) > MOST_COMPARED:
        return None
    if len(text) <= LONGEST:
        return text
    from binascii import crc32

    summed = crc32(text.encode("utf-8", "surrogatepass"))
    return f"{text[:LONGEST]}... ({len(text)} characters, sum {summed:08x})"


def _written(result: Any, parts: list[str], deep: int) -> bool:
    """Append the texts of a result to `parts`; return True if it consists of plain values and is not too long."""
    kind = type(result)
    if len(parts) > MOST_COMPARED or (isinstance(result, str | bytes) and len(result) > MOST_COMPARED):
        return False
    if kind in PLAIN:
        # Python refuses to convert a very long integer to decimal.
        parts.append(hex(result) if kind is int and result.bit_length() > 64 * LONGEST else repr(result))
        return True
    if not deep or (kind is not tuple and kind is not list and kind is not dict):
        return False
    inner = [each for item in result.items() for each in item] if kind is dict else result
    parts.append(f"{kind.__name__}(")
    for number, each in enumerate(inner):
        parts.append(", " if number else "")
        if not _written(each, parts, deep - 1):
            return False
    parts.append(")")
    return True
