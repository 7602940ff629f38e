"""The bar of a run on a narrow terminal: how far it is and what is left stay on the screen."""

import errno
import os
import threading
from io import StringIO

import pytest
from rich.console import Console

from gilscope.toolkit.model import Cell
from gilscope.toolkit.report import progress
from tests.patience import PATIENCE

CELL = Cell(
    build="3.14t-from-a-folder", workload="a_workload_with_a_long_name", runner="processes-forkserver", workers=16)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_bar_fits_and_keeps_its_numbers(monkeypatch, width):
    screen = StringIO()
    monkeypatch.setattr(progress, "Console", lambda stderr: Console(file=screen, force_terminal=stderr, width=width))
    with progress.ProgressReporter(print) as reporter:
        reporter.on_round_start(0, 5, 44, may_stop=False)
        reporter.on_arm_start(CELL)
        reporter.on_arms_end(1, 125.0)
        reporter.on_arm_start(CELL)
        shown = Console(width=width).render_lines(reporter._bar.get_renderable())
    (line,) = ("".join(segment.text for segment in each) for each in shown)
    assert len(line) == width
    assert "round 1/5" in line
    assert "1/44" in line
    assert "about 2 min 05 s left" in line
    assert "3.14t" in line
    assert "None" not in screen.getvalue()


def test_line_counts_every_cell_that_is_done(monkeypatch):
    monkeypatch.setattr(progress, "TICK_SECONDS", 60.0)
    monkeypatch.setattr(progress.ProgressReporter, "_is_line_due", lambda _self, _now: True)
    lines = []
    with progress.ProgressReporter(lines.append) as reporter:
        reporter.on_round_start(2, 3, 42, may_stop=False)
        reporter.on_arms_end(21, 43.0)
        reporter.on_arms_end(21, 0.0)
    assert lines == ["round 3/3, 21 of 42 cells, about 43 s left", "round 3/3, 42 of 42 cells"]


def test_rounds_that_a_run_may_not_need_are_not_promised(monkeypatch):
    monkeypatch.setattr(progress, "TICK_SECONDS", 60.0)
    monkeypatch.setattr(progress.ProgressReporter, "_is_line_due", lambda _self, _now: True)
    lines = []
    with progress.ProgressReporter(lines.append) as reporter:
        reporter.on_round_start(0, 12, 42, may_stop=True)
        reporter.on_arms_end(21, 43.0)
    assert lines == ["round 1, up to 12, 21 of 42 cells, at most about 43 s left"]


def test_time_that_is_no_longer_left_is_not_told():
    assert [progress.format_left(seconds) for seconds in (0.0, 0.4, 1.2)] == ["", "", "about 1 s left"]


class Gone(StringIO):
    """A terminal that has been closed."""

    def write(self, _):
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_terminal_that_is_closed_ends_no_measuring(monkeypatch):
    monkeypatch.setattr(progress, "Console", lambda stderr: Console(file=Gone(), force_terminal=stderr, width=80))
    said = []
    with progress.ProgressReporter(said.append) as reporter:
        reporter.on_round_start(0, 5, 44, may_stop=False)
        reporter.on_arm_start(CELL)
        reporter.note("a note")
        reporter.on_arms_end(1, 125.0)
    assert said == ["a note"]


def lines_of(count, monkeypatch, **options):
    """Return the first lines that are printed while the first cell is measured and nothing ends."""
    monkeypatch.setattr(progress, "TICK_SECONDS", 0.02)
    lines, begun, enough = [], threading.Event(), threading.Event()

    def say(text):
        if begun.is_set():
            lines.append(text)
        if len(lines) == count:
            enough.set()

    with progress.ProgressReporter(say, **options) as reporter:
        reporter.on_round_start(0, 5, 44, may_stop=False)
        reporter.on_arm_start(CELL)
        begun.set()
        assert enough.wait(PATIENCE), lines
    return lines


def test_lines_go_on_while_one_call_takes_long(monkeypatch):
    for line in lines_of(3, monkeypatch, most_seconds=3600.0):
        assert line.startswith("round 1/5, 0 of 44 cells, 3.14t-from-a-folder a_workload_with_a_long_name")
        assert "left" in line


def test_time_left_is_not_said_before_it_is_known(monkeypatch):
    assert "left" not in lines_of(1, monkeypatch)[0]


def test_bar_goes_on_while_one_call_takes_long(monkeypatch):
    drawn = threading.Event()

    class Screen(StringIO):
        def write(self, text):
            if "3599 s" in text or "59 min" in text:   # it counts down from an hour
                drawn.set()
            return super().write(text)

    monkeypatch.setattr(progress, "Console", lambda stderr: Console(file=Screen(), force_terminal=stderr, width=200))
    monkeypatch.setattr(progress, "TICK_SECONDS", 0.02)
    with progress.ProgressReporter(print, 3600.0) as reporter:
        reporter.on_round_start(0, 5, 44, may_stop=False)
        reporter.on_arm_start(CELL)
        assert drawn.wait(PATIENCE)


@pytest.mark.parametrize(("minutes", "seconds"), [(1, 4.5), (4, 5), (60, 73)])
def test_the_longer_the_run_the_fewer_lines(monkeypatch, minutes, seconds):
    reporter = progress.ProgressReporter(print)
    began, now = reporter._began, reporter._began + 60 * minutes
    assert began == reporter._last_line
    reporter._last_line = now - seconds
    assert reporter._is_line_due(now)
    reporter._last_line = now - 0.7 * seconds
    assert not reporter._is_line_due(now)
