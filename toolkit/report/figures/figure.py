"""Figures as plain values: experiments make them, `plots` draws them in another process, so they travel as JSON.

A missing value is NaN: it is drawn as a cross at the foot of the axis, never left out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Literal, get_args

from gilscope.toolkit.escaping import visible_all, visible_lines
from gilscope.toolkit.records import from_plain, to_plain

if TYPE_CHECKING:
    from collections.abc import Sequence

@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: its title, scale and marks.

    Attributes:
        title: What is measured, with its unit, as "requests per second (1/s)"; no unit where `seconds` is on.
        log: Logarithmic.  What is not positive is drawn as a value that is missing.
        ticks: Where there are marks, and what they say; empty: chosen by the values.
        lo: Where the axis starts; None: chosen by the values (bars start at 0).
        hi: Where the axis ends; None: chosen by the values.
        seconds: Values are seconds: the marks carry the unit themselves, as "10 µs", "1 ms", "0.1 s".
    """

    title: str
    log: bool = False
    ticks: tuple[tuple[float, str], ...] = ()
    lo: float | None = None
    hi: float | None = None
    seconds: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """One line, or the bars or dots of one colour.

    Attributes:
        name: In the legend, unless it is empty; the same name has the same colour and marker in all panels of a figure.
        x: Places on the x axis, ascending; for bars the index of the category, from 0.
        y: One value each; NaN: missing.
        lo: Lower ends of the values' intervals, as values of the axis, not as distances; empty: no intervals.
        hi: Upper ends, in the same form.  An end that is not finite is not drawn.
        style: "history": what a source published, drawn grey, dashed and hollow.
        model: The concurrency model that was measured: it has the same colour and mark in all figures.  Empty: the
            series differ in something else; the series of a figure are all models, or none is.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    lo: tuple[float, ...] = ()
    hi: tuple[float, ...] = ()
    style: Literal["measured", "history"] = "measured"
    model: str = ""

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError(f"series {self.name!r}: {len(self.x)} places for {len(self.y)} values")
        if len(self.lo) != len(self.hi) or (self.lo and len(self.lo) != len(self.y)):
            raise ValueError(f"series {self.name!r}: {len(self.lo)} lower and {len(self.hi)} upper ends of intervals "
                             f"for {len(self.y)} values")


@dataclass(frozen=True, slots=True)
class Rule:
    """A reference line across a panel, at `value` of the axis named: "x" makes it upright, "y" level.

    The legend has its label.
    """

    value: float
    label: str
    axis: Literal["x", "y"] = "x"


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureNotes:
    """The notes and footers that every figure has beside its panels.

    Attributes:
        note: Small below the panels: the source, how it was measured.  Marks are explained in the legend, not here.
        made: When, where and with how much effort it was measured; the last line below the panels.
        whiskers: What the lines through values reach from and to.
        missing: What a cross stands for.
    """

    note: str = ""
    made: str = ""
    whiskers: str = "95 % interval"
    missing: str = "no number: the table says why"

    @property
    def footer(self) -> str:
        """The lines below the panels."""
        return "\n".join(filter(None, (self.note, self.made)))


@dataclass(frozen=True, slots=True)
class LinePanel:
    """Lines in one frame; `title` may be empty where there is one panel."""

    title: str
    series: tuple[Series, ...]
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class LineFigure(FigureNotes):
    """Values over something that varies; panels share both axes."""

    name: str    # the files' name: "countdown-threads"
    title: str
    x: Axis
    y: Axis
    panels: tuple[LinePanel, ...]


@dataclass(frozen=True, slots=True)
class CategoryPanel:
    """Groups of values, one group per category, one value of each series in it that names the category."""

    title: str
    categories: tuple[str, ...]
    series: tuple[Series, ...]   # Series.x: indices of categories
    rules: tuple[Rule, ...] = ()   # those of axis "y" alone

    def __post_init__(self) -> None:
        for series in self.series:
            if any(place not in range(len(self.categories)) for place in series.x):
                raise ValueError(f"series {series.name!r}: a place that is no category's index")


@dataclass(frozen=True, slots=True)
class CategoryFigure(FigureNotes):
    """Values of a few things that have no order; panels share the y axis.

    They are drawn as bars, which start at 0; on a logarithmic axis, where a bar's length means nothing, as dots.
    """

    name: str
    title: str
    y: Axis
    panels: tuple[CategoryPanel, ...]
    x_title: str = ""   # what the categories are: "how the work is run"

    def __post_init__(self) -> None:
        if not self.y.log and self.y.lo:
            raise ValueError(f"figure {self.name!r}: bars that do not start at 0")


@dataclass(frozen=True, slots=True)
class Lane:
    """One thread over time: stretches in a state, and moments."""

    name: str
    spans: tuple[tuple[float, float, str], ...]       # start, end, state
    points: tuple[tuple[float, str], ...] = ()        # when, what: "request"


@dataclass(frozen=True, slots=True)
class TimelinePanel:
    """Lanes of one program below one another."""

    title: str
    lanes: tuple[Lane, ...]


@dataclass(frozen=True, slots=True)
class TimelineFigure(FigureNotes):
    """Threads over time; panels stand below one another and share the x axis.

    Every state a lane names stands in `states`; their order is that of the colours.  Below the lanes of each panel a
    strip shows how many of them are in the state `counted` at once, and `strip` says so: lanes are threads, not cores.
    """

    name: str
    title: str
    x: Axis
    states: tuple[str, ...]
    counted: str                # one of `states`
    strip: str                  # "how many hold the GIL at once"
    panels: tuple[TimelinePanel, ...]

    def __post_init__(self) -> None:
        named = {state for panel in self.panels for lane in panel.lanes for _, _, state in lane.spans}
        if unknown := (named | {self.counted}) - set(self.states):
            raise ValueError(f"states that the figure does not list: {', '.join(sorted(unknown))}")


RuledPanel = LinePanel | CategoryPanel
Figure = LineFigure | CategoryFigure | TimelineFigure


def seconds_axis(title: str, *, log: bool = False) -> Axis:
    """Return an axis whose values are seconds and whose marks carry their units: "10 µs", "1 ms", "0.1 s"."""
    return Axis(title, log=log, seconds=True)


def shows_something(figure: Figure) -> bool:
    """Return True if `figure` has a measured value, beside published ones."""
    match figure:
        case LineFigure() | CategoryFigure():
            return any(isfinite(value) for panel in figure.panels for each in panel.series for value in each.y
                       if each.style == "measured")
        case TimelineFigure():
            return any(panel.lanes for panel in figure.panels)


KINDS: dict[str, type[Figure]] = {kind.__name__: kind for kind in get_args(Figure)}


def dump(figures: Sequence[Figure]) -> str:
    """Return the figures as JSON, with texts in which every character shows: what draws them obeys what it is given."""
    return json.dumps([{"kind": type(figure).__name__, **to_plain(visible_all(figure, visible_lines))}
                       for figure in figures])


def load(text: str) -> list[Figure]:
    """Return the figures that `dump` wrote."""
    return [from_plain(KINDS[fields.pop("kind")], fields, finite=False) for fields in json.loads(text)]
