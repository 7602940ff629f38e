"""Parts of every panel: scales with their marks, titles, and texts that fit their frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from gilscope.toolkit.report.figures.plots.palette import FAINT, rule_styles
from gilscope.toolkit.report.figures.plots.style import AXIS, LEGEND, PANEL, TICK, points
from gilscope.toolkit.report.figures.plots.ticks import is_power_of_ten, limits, marks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gilscope.toolkit.report.figures.figure import Axis, CategoryPanel, LinePanel, RuledPanel
    from gilscope.toolkit.report.figures.plots.sheet import Sheet

MOST_SUBDIVIDED = 1e5   # a logarithmic axis over more than that gets no marks between its powers of ten


@dataclass(frozen=True, slots=True)
class PlotScale:
    """An axis with its ends and marks, the same in every panel."""

    axis: Axis
    lo: float
    hi: float
    marks: tuple[tuple[float, str], ...]

    @classmethod
    def over(cls, axis: Axis, values: Iterable[float], *, count: int, zero: bool = False,
             places: Sequence[float] = ()) -> PlotScale:
        """Return the scale for `values`, with about `count` marks, at `places` when these are few."""
        lo, hi = limits(axis, values, zero=zero)
        return cls(axis, lo, hi, tuple(marks(axis, lo, hi, count, places)))

    def apply(self, axes: Any, which: str, *, labelled: bool) -> None:
        """Set up one axis, "x" or "y", of a panel; `labelled`: with what the marks say, and the title."""
        if self.axis.log:
            getattr(axes, f"set_{which}scale")("log")
        getattr(axes, f"set_{which}lim")(self.lo, self.hi)
        one = getattr(axes, f"{which}axis")
        one.set_ticks([value for value, _ in self.marks], [text if labelled else "" for _, text in self.marks])
        fine = self.axis.log and not self.axis.ticks and self.hi / self.lo < MOST_SUBDIVIDED
        one.set_minor_locator(LogLocator(subs=range(2, 10)) if fine else NullLocator())
        one.set_minor_formatter(NullFormatter())
        axes.grid(visible=True, axis=which, which="major")
        if labelled:
            one.set_label_text(self.axis.title)


def set_title(sheet: Sheet, index: int, title: str) -> None:
    """Give a panel its title and keep it within the panel's width, as the axes' titles are."""
    axes = sheet.axes[index]
    axes.set_title(title)
    x_title, y_title = axes.get_xlabel(), axes.get_ylabel()

    def fit() -> None:
        box = axes.get_window_extent()
        axes.set_title(sheet.wrapped(title, box.width, PANEL, bold=True))
        axes.set_xlabel(sheet.wrapped(x_title, box.width, AXIS))
        axes.set_ylabel(sheet.wrapped(y_title, box.height, AXIS))

    sheet.on_fit(fit)


def say_empty(axes: Any) -> None:
    """Write "no values" into an empty panel: without it, the frame looks like a bug."""
    axes.text(0.5, 0.5, "no values", transform=axes.transAxes, ha="center", va="center", color=FAINT,
              fontsize=points(LEGEND))


def add_rules(sheet: Sheet, panels: Sequence[RuledPanel]) -> None:
    """Draw the reference lines of each panel, which the legend explains."""
    styles = rule_styles(panels)
    for axes, panel in zip(sheet.axes, panels, strict=True):
        for rule in panel.rules:
            draw = axes.axvline if rule.axis == "x" else axes.axhline
            draw(rule.value, **styles[rule.label])


def thin_marks(sheet: Sheet, axes: Any) -> None:
    """Remove labels of x ticks that would overlap; on a logarithmic axis, powers of ten have precedence."""
    log = axes.get_xscale() == "log"
    texts = [label.get_text() for label in axes.get_xticklabels()]

    def fit() -> None:
        places = [axes.transData.transform((place, 1))[0] for place in axes.get_xticks()]
        widths = [sheet.width_of(text, TICK) for text in texts]
        kept: list[int] = []
        for i in sorted(range(len(texts)), key=lambda i: not (log and is_power_of_ten(axes.get_xticks()[i]))):
            if all(abs(places[i] - places[k]) > (widths[i] + widths[k]) / 2 + 6 for k in kept):
                kept.append(i)
        axes.set_xticklabels([text if i in kept else "" for i, text in enumerate(texts)])

    sheet.on_fit(fit)


def heights(panels: Iterable[CategoryPanel | LinePanel]) -> Iterator[float]:
    """Yield the values that the y axis of these panels must include: values, ends of intervals, and level rules."""
    for panel in panels:
        for series in panel.series:
            yield from (*series.y, *series.lo, *series.hi)
        yield from (rule.value for rule in panel.rules if rule.axis == "y")


def room_for_marks(scale: PlotScale) -> float:
    """Return the width in pixels of an x axis whose every second mark has a text."""
    return sum(14 + 7 * len(text) for _, text in scale.marks) / 2


def fit_categories(sheet: Sheet, axes: Any, names: Sequence[str]) -> None:
    """Name places 0, 1, ... of the x axis, in lines as wide as a place; slanted where a word is wider."""
    axes.set_xticks(range(len(names)), names)
    slanted = False

    def fit() -> None:
        nonlocal slanted   # once it is so, it stays: slanted names leave more room, and would turn back for ever
        lo, hi = axes.get_xlim()
        room = axes.get_window_extent().width / (hi - lo) - 6
        lines = [sheet.wrapped(name, room, TICK) for name in names]
        slanted = slanted or any(sheet.width_of(text, TICK) > room for text in lines)
        axes.set_xticks(range(len(names)), names if slanted else lines)
        for label in axes.get_xticklabels():
            label.set(rotation=35 if slanted else 0, ha="right" if slanted else "center", rotation_mode="anchor",
                      va="top")

    sheet.on_fit(fit)


def widest_word(sheet: Sheet, names: Iterable[str]) -> float:
    """Return the width in pixels of the longest word as the text of a mark."""
    return max((sheet.width_of(word, TICK) for name in names for word in name.split()), default=0.0)
