"""Progress of a run on standard error: a bar with the time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column

from gilscope.toolkit.escaping import message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Any, Self

    from gilscope.toolkit.model import Cell

LINE_SECONDS = 15.0  # between plain lines: often enough to show progress, rarely enough for a CI log


def format_left(seconds: float) -> str:
    """Return the time left as "about 2 min 05 s left", or "" if it is less than half a second."""
    if round(seconds) == 0:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    return f"about {minutes} min {rest:02d} s left" if minutes else f"about {rest} s left"


class ProgressReporter:
    """Implements the scheduler's `RunProgress`.

    The run continues when the reader of the output goes away, as in `2>&1 | head`.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        """Prepare to show a bar on a terminal; elsewhere, and where that has been closed, `say` prints lines."""
        self._say = say
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
                # Redrawn only between cells: a redrawing thread would take CPU time from the measured processes.
                auto_refresh=False,
            )
        self._task = TaskID(0)
        self._round = ""
        self._arms = self._done = 0
        self._last_line = time.monotonic()

    def __enter__(self) -> Self:
        """Show the bar."""
        with self._showing() as bar:
            if bar is not None:
                bar.start()
                self._task = bar.add_task("", total=None, round="", count="", left="", cell="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away."""
        with self._showing() as bar:
            if bar is not None:
                bar.stop()

    @contextmanager
    def _showing(self) -> Iterator[Progress | None]:
        try:
            yield self._bar
        except OSError:
            self._bar = None   # the terminal has been closed

    def _update(self, **fields: Any) -> None:
        with self._showing() as bar:
            if bar is not None:
                bar.update(self._task, refresh=True, **fields)

    def on_round_start(self, index: int, rounds: int, arms: int) -> None:
        """Show that round `index` of `rounds` begins and has `arms` arms."""
        self._round, self._arms, self._done = f"round {index + 1}/{rounds}", arms, 0
        self._update(total=arms, completed=0, round=self._round, count=f"0/{arms}")

    def on_arm_start(self, cell: Cell) -> None:
        """Show the cell that is being measured."""
        self._update(cell=message(f"{cell.build} {cell.workload} {cell.runner} x{cell.workers}"))

    def on_pass_end(self, done: int, passes: int) -> None:
        """Show that every arm of the workload has taken the value `done` of `passes`."""
        self._update(cell=f"in turn: value {done} of {passes}")

    def on_arms_end(self, count: int, seconds_left: float) -> None:
        """Add `count` arms to those that are done, and show the time left."""
        self._done += count
        left = format_left(seconds_left)
        if self._bar is not None:
            self._update(completed=self._done, count=f"{self._done}/{self._arms}", left=left)
        elif time.monotonic() - self._last_line > LINE_SECONDS:
            self._last_line = time.monotonic()
            self.note(", ".join(filter(None, [self._round, f"{self._done} of {self._arms} cells", left])))

    def note(self, text: str) -> None:
        """Print a message with every character made visible."""
        with self._showing() as bar:
            if bar is not None:
                self._console.print(message(text), markup=False, emoji=False, highlight=False, soft_wrap=True)
                return
        self._say(text)
