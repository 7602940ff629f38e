"""What a worker of the user's function does; every worker interpreter and process imports this, and nothing more."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def call_often(payload: tuple[str, int]) -> None:
    """Call the function "package.module:name" so many times."""
    name, count = payload
    function = function_called(name)
    for _ in range(count):
        function()


def function_called(name: str) -> Callable[[], object]:
    """Return the function "package.module:name".

    Raises:
        ImportError: there is no such module.
        AttributeError: there is no such function in it.
    """
    module, _, attribute = name.partition(":")
    found: object = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found  # type: ignore[return-value]  # what the user named
