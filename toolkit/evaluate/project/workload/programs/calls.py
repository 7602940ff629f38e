"""What a worker of the user's function does; every worker interpreter and process imports this, and nothing more."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Of code objects; `inspect` has them by name, and takes longer to import than most workloads.
COROUTINE, GENERATOR, ASYNC_GENERATOR = 0x80, 0x20, 0x200


class NoWorkError(Exception):
    """Calling what the user has named does not run it."""


def call_often(payload: tuple[str, int]) -> None:
    """Call the function "package.module:name" so many times."""
    name, count = payload
    function = function_called(name)
    for _ in range(count):
        function()


def function_called(name: str) -> Callable[[], object]:
    """Return the function "package.module:name"; one that is `async def` is run to its end by each call.

    Raises:
        ImportError: there is no such module.
        AttributeError: there is no such function in it.
        NoWorkError: it is a generator.
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
        return found  # type: ignore[no-any-return]  # what the user named
    from asyncio import run

    return lambda: run(found())


def refuse_unawaited(name: str, result: object) -> None:
    """Refuse a function that gives back something to be awaited, though it is no `async def`.

    Raises:
        NoWorkError: it does.
    """
    if hasattr(result, "__await__"):
        getattr(result, "close", bool)()   # of a coroutine: nobody will await it, and it need not complain of that
        raise NoWorkError(
            f"{name} returns something to be awaited, which nobody does: name an async def, or call asyncio.run in it")
