"""Print tables on standard output with rich."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

from gilscope.toolkit.commands.streams import cannot_print, put
from gilscope.toolkit.escaping import without_commands

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def printed() -> Iterator[Console]:
    """Yield a console whose output is printed at the end, by `put`, because rich raises an error if a reader has gone.

    Everything it gets has to be `visible_all`; it interprets neither markup nor emoji.

    Raises:
        OutputError: Standard output cannot be written, because the disk is full.
    """
    console = Console(highlight=False, markup=False, emoji=False)
    console.begin_capture()
    yield console
    try:
        shown = console.end_capture()
    except OSError as error:   # a full device refuses even an empty write
        raise cannot_print(error) from error
    put(without_commands(shown), end="")
