"""What commands print beside reports: tables, and lines that say how far they are."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

from gilscope.toolkit.commands.streams import cannot_print, complain, put
from gilscope.toolkit.escaping import without_commands

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def printed() -> Iterator[Console]:
    """Give a console; what it shows is printed at the end, by us: rich makes a reader that has gone an error.

    What it is given has to be `visible_all`; it reads neither markup nor emoji in it.

    Raises:
        OutputError: standard output cannot be written: the disk is full.
    """
    console = Console(highlight=False, markup=False, emoji=False)
    console.begin_capture()
    yield console
    try:
        shown = console.end_capture()
    except OSError as error:   # it writes nothing there, and a device that is full refuses even that
        raise cannot_print(error) from error
    put(without_commands(shown), end="")


def say(text: str) -> None:
    """Print a line about what is being done, on standard error at once."""
    complain(text)
