"""Find and call the user's function; the only module of ours that worker interpreters and processes import."""

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
LONGEST = 80              # characters of a result to show; longer ones are shown as a checksum


class NoWorkError(Exception):
    """Calling the user's function does not run it."""


def call_often(payload: tuple[str, int]) -> None:
    """Call the function "package.module:name" so many times."""
    name, count = payload
    function = function_called(name)
    for _ in range(count):
        function()


def function_called(name: str) -> Callable[[], object]:
    """Return the function "package.module:name"; an `async def` is wrapped so that each call runs it to its end.

    Raises:
        ImportError: There is no such module.
        AttributeError: The module has no such function.
        NoWorkError: It is a generator.
    """
    module, _, attribute = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    code = getattr(getattr(found, "__func__", found), "__code__", None)
    flags = code.co_flags if code else 0
    if flags & (GENERATOR | ASYNC_GENERATOR):
        raise NoWorkError(f"{name} is a generator: calling it runs nothing; name a function that uses it up")
    if not flags & COROUTINE:
        return found  # type: ignore[no-any-return]  # any object that the user named
    from asyncio import run

    return lambda: run(found())


def refuse_unawaited(name: str, result: object) -> None:
    """Refuse a function that returns an awaitable although it is not an `async def`.

    Raises:
        NoWorkError: It returns an awaitable.
    """
    if hasattr(result, "__await__"):
        getattr(result, "close", bool)()   # a coroutine that is never awaited would warn
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
        parts.append(", " * bool(number))
        if not _written(each, parts, deep - 1):
            return False
    parts.append(")")
    return True
