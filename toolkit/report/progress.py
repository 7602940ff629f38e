"""Progress of a run on standard error: a bar with the time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
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

TICK_SECONDS = 4.5   # between updates, even if nothing has ended: a call of a user's function may take minutes
SHARE_OF_LINES = 0.02   # of the time so far passes between plain lines, if that is longer: a CI log must stay readable


def format_left(seconds: float, *, most: bool = False) -> str:
    """Return the time left as "about 2 min 05 s left", or "at most about ..."; "" for less than half a second."""
    if round(seconds) == 0:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    time_left = f"about {minutes} min {rest:02d} s left" if minutes else f"about {rest} s left"
    return f"at most {time_left}" if most else time_left


class ProgressReporter:
    """Implements the scheduler's `RunProgress`.

    A thread shows every few seconds that the run goes on: 1 ms of CPU time, which disturbs no value.  The run continues
    when the reader of the output goes away, as in `2>&1 | head`.
    """

    def __init__(self, say: Callable[[str], None], most_seconds: float | None = None) -> None:
        """Prepare to show a bar on a terminal; elsewhere, and where that has been closed, `say` prints lines.

        Args:
            say: Prints a line.
            most_seconds: The longest that the run may take; None: unknown until the first cells are done.
        """
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
                # Redrawn when something has happened, and by `_tick`: rich would redraw it ten times per second.
                auto_refresh=False,
            )
        self._task = TaskID(0)
        self._round = self._activity = ""
        self._arms = self._done = 0
        self._may_stop = most_seconds is not None
        self._began = self._last_line = self._active_since = self._estimated_at = time.monotonic()
        self._left = most_seconds
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick_until_over, name="gilscope-progress", daemon=True)

    def __enter__(self) -> Self:
        """Show the bar."""
        self._ticker.start()
        with self._showing() as bar:
            if bar is not None:
                bar.start()
                self._task = bar.add_task("", total=None, round="", count="", left="", cell="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away."""
        self._over.set()
        self._ticker.join()
        with self._showing() as bar:
            if bar is not None:
                bar.stop()

    @contextmanager
    def _showing(self) -> Iterator[Progress | None]:
        try:
            yield self._bar
        except OSError:
            self._bar = None   # the terminal has been closed

    def _tick_until_over(self) -> None:
        while not self._over.wait(TICK_SECONDS):
            self._tick()

    def _tick(self) -> None:
        """Show the time left, and how long the current activity has taken."""
        with self._lock:
            took = time.monotonic() - self._active_since
            activity = f"{self._activity}, {took:.0f} s so far" if self._activity and took > 1 else self._activity
            if self._bar is not None:
                self._update(left=self._time_left(), cell=activity)
            else:
                self._line(activity)

    def _time_left(self) -> str:
        if self._left is None:
            return ""
        return format_left(max(0.0, self._left - (time.monotonic() - self._estimated_at)), most=self._may_stop)

    def _line(self, activity: str = "") -> None:
        """Print how far the run is, unless a line was printed a moment ago."""
        now = time.monotonic()
        if self._is_line_due(now):
            self._last_line = now
            count = f"{self._done} of {self._arms} cells" if self._arms else ""
            self.note(", ".join(filter(None, [self._round, count, activity, self._time_left()])))

    def _is_line_due(self, now: float) -> bool:
        return now - self._last_line >= max(TICK_SECONDS - 1, SHARE_OF_LINES * (now - self._began))

    def _start_activity(self, text: str) -> None:
        with self._lock:
            self._activity, self._active_since = text, time.monotonic()
            self._update(cell=text)

    def _update(self, **fields: Any) -> None:
        with self._lock, self._showing() as bar:
            if bar is not None:
                bar.update(self._task, refresh=True, **fields)

    def on_round_start(self, index: int, rounds: int, arms: int, *, may_stop: bool) -> None:
        """Show that round `index` of `rounds` begins and has `arms` arms; with `may_stop` of at most so many."""
        of = f", up to {rounds}" if may_stop else f"/{rounds}"
        self._round, self._arms, self._done, self._may_stop = f"round {index + 1}{of}", arms, 0, may_stop
        self._update(total=arms, completed=0, round=self._round, count=f"0/{arms}")

    def on_arm_start(self, cell: Cell) -> None:
        """Show the cell that is being measured."""
        self._start_activity(message(f"{cell.build} {cell.workload} {cell.runner} x{cell.workers}"))

    def on_pass_end(self, done: int, passes: int) -> None:
        """Show that every arm of the workload has taken the value `done` of `passes`."""
        self._start_activity(f"in turn: value {done} of {passes}")

    def on_arms_end(self, count: int, seconds_left: float) -> None:
        """Add `count` arms to those that are done, and show the time left."""
        with self._lock:
            self._done += count
            self._left, self._estimated_at = seconds_left, time.monotonic()
            if self._bar is not None:
                self._update(completed=self._done, count=f"{self._done}/{self._arms}", left=self._time_left())
            else:
                self._line()

    def note(self, text: str) -> None:
        """Print a message with every character made visible."""
        with self._lock, self._showing() as bar:
            if bar is not None:
                self._console.print(message(text), markup=False, emoji=False, highlight=False, soft_wrap=True)
                return
        self._say(text)
