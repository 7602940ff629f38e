"""What commands print beside reports: tables, and lines that say how far they are."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

from gilscope.toolkit.commands.streams import put

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def printed() -> Iterator[Console]:
    """Give a console; what it shows is printed at the end, by us: rich makes a reader that has gone an error."""
    console = Console(highlight=False)
    with console.capture() as shown:
        yield console
    put(shown.get(), end="")


def say(text: str) -> None:
    """Print a line about what is being done, on standard error at once."""
    print(text, file=sys.stderr, flush=True)
