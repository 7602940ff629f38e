"""How far a run is: a bar with the time left on a terminal, plain lines elsewhere; always on standard error."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column

from gilscope.toolkit.foreign import message

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from gilscope.toolkit.model import Cell

LINE_SECONDS = 15.0  # between plain lines: enough to see that it lives, few enough for a CI log


def format_left(seconds: float | None) -> str:
    """Return the time left as "about 2 min 05 s left"."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    return f"about {minutes} min {rest:02d} s left" if minutes else f"about {rest} s left"


class ProgressReporter:
    """Implements the scheduler's Reporter."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._bar: Progress | None = None
        if self._console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.fields[round]}"),
                BarColumn(bar_width=12),
                TextColumn("{task.fields[count]}"),
                TextColumn("{task.fields[left]}"),
                # The only one that gives way on a narrow terminal.
                TextColumn("{task.fields[cell]}", markup=False,
                           table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
                expand=True,
                console=self._console,
                transient=True,
                # Drawn only between cells: a thread that redraws would take CPU time from what is measured.
                auto_refresh=False,
            )
        self._task = TaskID(0)
        self._round = ""
        self._arms = self._done = 0
        self._told = time.monotonic()

    def __enter__(self) -> Self:
        """Show the bar."""
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("", total=None, round="", count="", left="", cell="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()

    def round_begins(self, index: int, rounds: int, arms: int) -> None:
        """Say that round `index` of `rounds` begins and has `arms` arms."""
        self._round, self._arms, self._done = f"round {index + 1}/{rounds}", arms, 0
        if self._bar is not None:
            self._bar.update(self._task, total=arms, completed=0, round=self._round, count=f"0/{arms}", refresh=True)

    def arm_begins(self, cell: Cell) -> None:
        """Show which cell is being measured."""
        if self._bar is not None:
            words = f"{cell.build} {cell.workload} {cell.runner} x{cell.workers}"
            self._bar.update(self._task, cell=message(words), refresh=True)

    def pass_ends(self, done: int, passes: int) -> None:
        """Show that every arm of the workload has taken the value `done` of `passes`."""
        if self._bar is not None:
            self._bar.update(self._task, cell=f"in turn: value {done} of {passes}", refresh=True)

    def arm_ends(self, cell: Cell, seconds_left: float | None) -> None:  # noqa: ARG002 - the Reporter's form
        """Count the cell and show the time left."""
        self._done += 1
        left = format_left(seconds_left)
        if self._bar is not None:
            self._bar.update(
                self._task, completed=self._done, count=f"{self._done}/{self._arms}", left=left, refresh=True)
        elif time.monotonic() - self._told > LINE_SECONDS:
            self._told = time.monotonic()
            self.note(f"{self._round}, {self._done} of {self._arms} cells, {left}")

    def note(self, text: str) -> None:
        """Print a message, whatever it holds."""
        if self._bar is not None:
            self._console.print(message(text), markup=False, emoji=False, highlight=False, soft_wrap=True)
        else:
            print(message(text), file=sys.stderr, flush=True)
