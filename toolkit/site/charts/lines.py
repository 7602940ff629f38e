"""Lines: how cells scale over workers, and how ratios go from run to run."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.escaping import visible
from gilscope.toolkit.site.charts.scale import ChartScale, ratio_scale
from gilscope.toolkit.site.style import mark_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.stats.verdict import Comparison

WIDTH, HEIGHT, TOP, FOOT, LEFT, RIGHT = 360, 230, 10, 30, 40, 26   # pixels
WIDER = 720         # of a picture with more points than this: pixels
MOST_WORDS = 8      # under the axis
CHARACTER = 6.2     # pixels of one, at 11 pixels: wide enough for whatever font it is
STEPS = 24          # of a curve
PLOTTED = 0.1       # no ratio is taken for less


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartPoint:
    """A value with its interval; `clear`: it differs significantly from 1."""

    x: float
    y: float
    lo: float
    hi: float
    says: str
    clear: bool = True


def ratio_point(x: float, ratio: Comparison, says: str) -> ChartPoint:
    """Return the point of a ratio at `x`."""
    return ChartPoint(x=x, y=max(ratio.ratio, PLOTTED), lo=ratio.lo, hi=ratio.hi, says=says, clear=ratio.differs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartLine:
    """Points of one model."""

    model: str
    name: str
    points: tuple[ChartPoint, ...]


def lines(
    title: str, found: Sequence[ChartLine], words: Sequence[tuple[float, str]], *, ideal: bool = False,
    bands: bool = False,
) -> dict[str, Any]:
    """Return lines of ratios over something.

    Args:
        title: What the picture is of.
        found: The lines.
        words: What stands below the axis, and where, ascending.
        ideal: Whether to draw the line where twice the x is twice the y.
        bands: Whether intervals are areas behind the lines; else they are whiskers.
    """
    points = [point for line in found for point in line.points]
    wide = WIDER if len(words) > MOST_WORDS else WIDTH
    widest = max(len(text) for _, text in words) * CHARACTER
    right = max(RIGHT, round(widest / 2))
    first, last = min(at for at, _ in words), max(at for at, _ in words)
    across = ChartScale(first, last if last > first else first + 1, max(LEFT + 8, round(widest / 2)), wide - right)
    tops = [last] if ideal else []
    up = ratio_scale([each for p in points for each in (p.y, p.lo, p.hi)] + tops, HEIGHT - FOOT, TOP)
    every = ceil(len(words) / min(MOST_WORDS * wide // WIDTH, max((across.end - across.start) // (widest + 8), 1)))
    return {
        "kind": "lines", "title": visible(title), "width": wide, "height": HEIGHT, "bottom": HEIGHT - FOOT,
        "start": LEFT, "end": wide - right, "one": up.place(1), "marks": up.marks(),
        "words": [{"at": across.place(at), "text": visible(text)} for at, text in words[::every]],
        "ideal": _path([(across.place(x), up.place(x)) for x in _spread(first, last)]) if ideal else None,
        "lines": [_line(each, across, up, bands=bands) for each in found],
        "says": visible("; ".join(f"{line.name}: {', '.join(p.says for p in line.points)}" for line in found)),
    }


def _line(line: ChartLine, across: ChartScale, up: ChartScale, *, bands: bool) -> dict[str, Any]:
    at = [(across.place(p.x), up.place(p.y)) for p in line.points]
    ends = [(up.place(p.lo if p.lo > 0 else up.lo), up.place(p.hi)) for p in line.points]
    points = [{"x": x, "y": y, "says": visible(f"{line.name}, {p.says}"), "clear": p.clear}
              for p, (x, y) in zip(line.points, at, strict=True)]
    both = [(x, lo, hi) for (x, _), (lo, hi) in zip(at, ends, strict=True)]
    area = [(x, hi) for x, _, hi in both] + [(x, lo) for x, lo, _ in reversed(both)]
    return {
        "name": visible(line.name), "model": visible(line.model), **mark_of(line.model), "points": points,
        "path": _path(at), "band": _path(area) if bands and len(points) > 1 else "",
        "whiskers": "" if bands and len(points) > 1 else "".join(f"M{x:g} {lo:g}V{hi:g}" for x, lo, hi in both),
    }


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points) if points else ""


def _spread(first: float, last: float) -> list[float]:
    """Return places from first to last, close enough that straight pieces look like a curve."""
    return [first + (last - first) * i / STEPS for i in range(STEPS + 1)] if last > first else [first]
