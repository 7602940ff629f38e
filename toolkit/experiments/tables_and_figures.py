"""Building blocks of the experiments' tables and figures.

A `TableBuilder` collects rows and footnotes. A figure's points are (x, (value, lower end, upper end)); NaN stands for
an unknown number, which a figure draws as a cross.
"""

from __future__ import annotations

from math import isnan, nan
from typing import TYPE_CHECKING, NamedTuple

from gilscope.toolkit.experiments.load.open_loop import has_p99
from gilscope.toolkit.report.document import Column, Entry, Table
from gilscope.toolkit.report.figures.figure import Series
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.report.wording import number_text, range_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gilscope.toolkit.experiments.results import BuildArm, Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Value
    from gilscope.toolkit.stats.sample import Summary
    from gilscope.toolkit.stats.verdict import Comparison

    Show = Callable[[Cell], Value | None]   # turns a measured cell into a table's value
    Bounded = tuple[float, float, float]    # value, lower and upper end of its interval

UNKNOWN = (nan, nan, nan)


def label_column(title: str) -> Column:
    """Return a column of words that name the row."""
    return Column(title=title, key=True, align="left")


def key_column(title: str) -> Column:
    """Return a column of numbers that name the row."""
    return Column(title=title, key=True)


def value_columns(titles: Iterable[str], group: str = "", source: str = "") -> list[Column]:
    """Return a column for each title, under the heading `group` unless it is empty.

    Args:
        titles: The titles of the columns.
        group: The heading above them.
        source: The label of the build that they are measured on; "": they are not of one build.
    """
    return [Column(title=title, group=group, source=source) for title in titles]


def build_columns(builds: Iterable[Build], group: str = "") -> list[Column]:
    """Return a column for each build."""
    return [Column(title=build.label, group=group, source=build.label) for build in builds]


def arm_columns(arms: Iterable[BuildArm], group: str = "") -> list[Column]:
    """Return a column for each arm."""
    return [Column(title=arm.title, group=group, source=arm.build.label) for arm in arms]


class PublishedColumn(NamedTuple):
    """The heading of published numbers: the Python they were measured on, under the year."""

    year: str
    python: str

    @property
    def text(self) -> str:
        """The heading on one line, for a legend: "2021: Python 3.9"."""
        return f"{self.year}: {self.python}"


def published_columns(*headings: PublishedColumn) -> list[Column]:
    """Return the columns of published numbers."""
    return [Column(title=each.python, group=each.year) for each in headings]


class TableBuilder:
    """Collects the rows of one table; reasons for missing and doubtful numbers become its footnotes."""

    def __init__(self, results: Results, title: str, *columns: Column) -> None:
        """Start without rows; the columns are those of every row."""
        self._results = results
        self._title = title
        self._columns = columns
        self._rows: list[tuple[Entry, ...]] = []
        self._footnotes = Footnotes()

    def entry(self, cell: Cell | None, show: Show, doubts: Iterable[str] = ()) -> Entry:
        """Return the value that `show` makes of `cell`, or a word with the reason why there is none.

        Args:
            cell: None, for a cell that the plan does not have, gives an empty entry.
            show: Called only for a measured cell.
            doubts: Become footnotes of the entry.
        """
        entry = self._results.entry(cell, show, self._footnotes)
        return self.doubted(entry, doubts)

    def doubted(self, entry: Entry, doubts: Iterable[str]) -> Entry:
        """Return the entry with a footnote for each doubt."""
        return Entry(entry.value, (*entry.marks, *self._footnotes.marks(doubts)))

    def add(self, *entries: Entry | Value) -> None:
        """Add a row; a value without footnotes may stand for its entry."""
        self._rows.append(tuple(each if isinstance(each, Entry) else Entry(each) for each in entries))

    def build(self) -> Table:
        """Return the table."""
        return Table(title=self._title, columns=self._columns, rows=tuple(self._rows),
                     footnotes=self._footnotes.texts())


def show_metric(results: Results, name: str, make: Callable[[Summary], Value | None]) -> Show:
    """Return a function that shows a cell's metric `name` as `make` words it."""
    def show(cell: Cell) -> Value | None:
        found = results.metric(cell, name)
        return None if found is None else make(found)

    return show


def p99_doubts(counts: Mapping[int, float], what: str = "requests") -> list[str]:
    """Return why a cell has no 99th percentile, [] if it has one or nothing was counted.

    Each process has a 99th percentile of its own, so that their sum does not help where one timed too few.

    Args:
        counts: How many each round's process timed.
        what: What it timed.
    """
    if has_p99(counts.values()):
        return []
    return [f"{range_text(counts.values(), number_text)} {what} a process: too few for a 99th percentile"]


def show_longest(results: Results, name: str) -> Show:
    """Return a function that shows the largest of a cell's metric `name` of all rounds."""
    return lambda cell: results.longest(cell, name)


def bounded(summary: Summary | None, convert: Callable[[float], float] = float) -> Bounded:
    """Return a summary's centre and the ends of its range for a figure, each converted; UNKNOWN for None.

    The figure's `whiskers` must be `round_texts.range_words` of the summaries: few rounds have no 95 % interval.
    """
    if summary is None:
        return UNKNOWN
    lo, hi = sorted((convert(summary.lo), convert(summary.hi)))
    return convert(summary.center), lo, hi


def relative_speed(comparison: Comparison | None) -> Bounded:
    """Return the speed-up, with the ends of its interval."""
    if comparison is None:
        return UNKNOWN
    return (comparison.ratio, comparison.lo, comparison.hi) if comparison.lo > 0 else (comparison.ratio, nan, nan)


def relative_time(comparison: Comparison | None) -> Bounded:
    """Return the time over the baseline's, with the ends of its interval."""
    ratio, lo, hi = relative_speed(comparison)
    return 1 / ratio, 1 / hi, 1 / lo


def measured_series(name: str, points: Iterable[tuple[float, Bounded]], model: str = "") -> Series:
    """Return measured values with their intervals as one line, or as the bars of one colour."""
    known = list(points)
    x = tuple(float(place) for place, _ in known)
    y, lo, hi = zip(*(each for _, each in known), strict=True) if known else ((), (), ())
    return Series(name, x, y, lo=lo, hi=hi, model=model)


def published_series(name: str, points: Iterable[tuple[float, float]]) -> Series:
    """Return values that a publication gives."""
    known = list(points)
    return Series(name, tuple(float(x) for x, _ in known), tuple(y for _, y in known), style="history")


def without_empty(series: Iterable[Series]) -> tuple[Series, ...]:
    """Return the series that have a value."""
    return tuple(each for each in series if not all(map(isnan, each.y)))


def number_ticks(numbers: Iterable[int]) -> tuple[tuple[float, str], ...]:
    """Return a tick at each number, labelled with it."""
    return tuple((float(number), str(number)) for number in numbers)
