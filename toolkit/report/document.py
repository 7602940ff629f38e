"""Documents as plain values: `run_document` and others make them, renderers lay them out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gilscope.toolkit.stats.verdict import SpeedVerdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gilscope.toolkit.stats.verdict import Comparison


RatioForm = Literal["verdict", "interval", "cost"]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit and spread: 0.412 s ±1 %, 85 %, 23,100/s ±4 %."""

    value: float
    unit: str                     # "seconds", "bytes", "share" of 1; others as they are printed: "/s", " MiB"
    spread: float | None = None   # half the interval as a share of the value


@dataclass(frozen=True, slots=True)
class RatioValue:
    """A speed-up in one of its forms.

    "verdict" is 3.40x [3.32, 3.49], or none; "interval" has it whatever the verdict; "cost" is the additional time of
    the sample over the baseline: +7.5 % [+6.2, +8.7].
    """

    comparison: Comparison
    form: RatioForm = "verdict"


@dataclass(frozen=True, slots=True)
class GainValue:
    """A speed-up over the baseline in short form: 1.88x*, 1.31x ±9 %, none, 0.90-2.20x?"""

    comparison: Comparison
    best: bool = False            # no measured model is significantly faster
    workers: int | None = None    # where that is not the table's number of workers
    bare: bool = False            # without its interval


Value = Quantity | RatioValue | GainValue | SpeedVerdict | str


@dataclass(frozen=True, slots=True)
class Entry:
    """One place of a table; `marks` are numbers of its footnotes, from 1."""

    value: Value = ""
    marks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column's heading.  Columns of one `group` stand under its name."""

    title: str
    group: str = ""
    key: bool = False       # names the row: repeated wherever a table is cut
    detail: bool = False    # may go to a table of its own where the width does not suffice
    align: Literal["left", "right"] = "right"
    source: str = ""        # the build or the host that its numbers are of, whose file a page may link


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of entries under columns, with footnotes."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Entry, ...], ...]
    footnotes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 1 is the document's own."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Banner:
    """A warning that belongs above the numbers it is about."""

    text: str


@dataclass(frozen=True, slots=True)
class Lines:
    """Sentences, one a line, under a title that may be empty."""

    title: str
    items: tuple[str, ...]
    is_summary: bool = False   # what the report says in short, which other pages quote


def summary_lines(items: Iterable[str]) -> Lines:
    """Return the section that says in short what a report has found."""
    return Lines("In short", tuple(items), is_summary=True)


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure's file, and what to say where it cannot be shown."""

    title: str
    path: str


Section = Heading | Banner | Lines | Picture | Table


@dataclass(frozen=True, slots=True)
class Document:
    """Sections from top to bottom."""

    sections: tuple[Section, ...]
