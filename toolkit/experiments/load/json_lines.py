"""The HTTP helpers' side of their protocol: a JSON line when ready, then one JSON line for each line read."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

async def answer_lines(ready: dict[str, Any], answer: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]) -> None:
    """Print `ready` and answer every line of standard input until it ends.

    An exception becomes the answer {"error": ...}, with which the caller fails its cell.
    """
    _print_line(ready)
    loop = asyncio.get_running_loop()
    # In a thread, since epoll does not accept every kind of standard input.
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        try:
            reply = await answer(json.loads(line))
        except Exception as error:  # noqa: BLE001 - returned to the caller
            reply = {"error": f"{type(error).__name__}: {error}"}
        _print_line(reply)


def _print_line(fields: dict[str, Any]) -> None:
    print(json.dumps(fields), flush=True)
