"""Cells of one workload on one build, a row each: how many times faster, and how their rounds lie.

Places along a row are percent of the plot, as a plot is as wide as the screen has room for; heights are pixels.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.escaping import visible
from gilscope.toolkit.report.wording import ratio_text
from gilscope.toolkit.site.charts.scale import ChartScale
from gilscope.toolkit.site.style import mark_of
from gilscope.toolkit.units import counted, list_text, percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gilscope.toolkit.model import Cell, Observation
    from gilscope.toolkit.report.table import CellResult
    from gilscope.toolkit.stats.verdict import Comparison

ROW, TOP, FOOT = 20, 10, 26   # pixels
START, END = 0, 100      # of the plot; names and numbers of workers are to the left of it
GLANCE_WIDTH, GLANCE_ROW = 160, 13
GLANCE_LETTER = 6        # of the axis, in a font of 11 pixels
MOST_OFF = 0.5     # deviation of a round from the median of its cell; larger ones are counted at the edge
LEAST_OFF = 0.02


def dots(title: str, results: Sequence[CellResult], scale: ChartScale, floor: float | None) -> dict[str, Any]:
    """Return the speed-ups of cells over their baseline: a dot, its interval, the noise floor as a band.

    Args:
        title: What the picture is of.
        results: Of one build; cells without a number are listed below the picture, by their reason.
        scale: Of the ratios; pictures beside each other share it.
        floor: A share; None: not known.
    """
    rows = [_named(result.cell) | _dot(result.cell, result.speedup, scale) for result in results
            if result.speedup is not None and result.absence is None]
    band = None if floor is None else _span(scale, 1 / (1 + floor), 1 + floor)
    absent = _absent_cells(results)
    return _chart(title, rows, scale.marks(), kind="dots") | {
        "band": band, "one": scale.place(1), "absent": absent,
        "says": visible("; ".join([*(row["says"] for row in rows), *absent]))}


def _absent_cells(results: Sequence[CellResult]) -> list[str]:
    """Return the cells without a ratio, those with the same reason together: "free-threaded (N = 2): skipped: ..."."""
    found: dict[str, dict[str, list[str]]] = {}
    for result in results:
        if result.speedup is None or result.absence is not None:
            _, reason = _absent(result)
            found.setdefault(reason, {}).setdefault(result.cell.runner, []).append(str(result.cell.workers))
    return [visible(f"{', '.join(f'{model} (N = {list_text(counts)})' for model, counts in models.items())}: {reason}",
                    most=None) for reason, models in found.items()]


def _chart(
    title: str, rows: Sequence[dict[str, Any]], marks: Sequence[dict[str, Any]], *, kind: str,
) -> dict[str, Any]:
    """Return a picture of rows, each below the one before it: `y` is its middle."""
    placed, bottom = [], TOP
    for row in rows:
        placed.append(row | {"y": bottom + row["height"] // 2})
        bottom += row["height"]
    return {"kind": kind, "title": visible(title), "height": bottom + FOOT, "rows": placed, "bottom": bottom,
            "marks": marks, "band": None}


def _named(cell: Cell) -> dict[str, Any]:
    return {"model": cell.runner, "count": cell.workers, "build": cell.build, "height": ROW, **mark_of(cell.runner)}


def _dot(cell: Cell, speedup: Comparison, scale: ChartScale) -> dict[str, Any]:
    return {"at": scale.place(speedup.ratio), "interval": _span(scale, speedup.lo, speedup.hi),
            "words": _between(scale, speedup), "clear": speedup.differs,
            "says": f"{cell.runner}, N = {cell.workers}: {ratio_text(speedup)}, {speedup.verdict()}"}


def _absent(result: CellResult) -> tuple[str, str]:
    """Return why there is no ratio, in a word and in full."""
    if result.absence is not None:
        return result.absence.word, f"{result.absence.word}: {result.absence.reason}"
    if not result.is_baseline and result.notes:
        return "no ratio", result.notes[-1].text
    return "baseline", "what the others are compared with"


def _between(scale: ChartScale, seen: Comparison) -> dict[str, float]:
    return _span(scale, *seen.between)


def _span(scale: ChartScale, lo: float, hi: float) -> dict[str, float]:
    """Return the positions of the ends of an interval; infinite ends are at the edge."""
    first, last = scale.place(lo if lo > 0 else scale.lo), scale.place(hi)
    return {"at": first, "end": last}


def glance(title: str, found: Sequence[tuple[Cell, Comparison]], scale: ChartScale) -> dict[str, Any]:
    """Return a picture for a place of a table: a dot with its interval for each model, distinct by its mark."""
    rows = [{"y": GLANCE_ROW * (i + 0.5) + 2, "model": visible(cell.runner), **mark_of(cell.runner),
             "at": scale.place(seen.ratio), "interval": _span(scale, *seen.printed),
             "clear": seen.differs,
             "says": visible(f"{cell.runner}, N = {cell.workers}: {ratio_text(seen)}")}
            for i, (cell, seen) in enumerate(found)]
    says = "; ".join(f"{cell.runner}, N = {cell.workers}: {ratio_text(seen)}" for cell, seen in found) or "no ratio"
    return {"width": GLANCE_WIDTH, "height": GLANCE_ROW * max(len(rows), 1) + 4, "rows": rows, "one": scale.place(1),
            "marks": scale.marks(GLANCE_LETTER), "says": visible(f"{title}: {says}")}


def glance_axis(scale: ChartScale) -> dict[str, Any]:
    """Return the marks of an axis that small pictures share."""
    return {"width": GLANCE_WIDTH, "marks": scale.marks(GLANCE_LETTER)}


def strip(
    title: str, results: Sequence[CellResult], observations: Mapping[Cell, Sequence[Observation]],
) -> dict[str, Any]:
    """Return the rounds themselves: of each cell how far its rounds lie from their median, one stroke each."""
    off = {result.cell: _off(observations.get(result.cell, ())) for result in results}
    widest = max((abs(share) for each in off.values() for share, _ in each), default=0.0)
    reach = min(max(widest, LEAST_OFF), MOST_OFF)
    scale = ChartScale(-reach * 1.05, reach * 1.05, START, END)
    rows = []
    for result in results:
        shares = off[result.cell]
        rows.append(_named(result.cell) | {
            "strokes": _strokes(scale, [share for share, starved in shares if not starved and abs(share) <= reach]),
            "starved": _strokes(scale, [share for share, starved in shares if starved and abs(share) <= reach]),
            "below": sum(share < -reach for share, _ in shares), "above": sum(share > reach for share, _ in shares),
            "word": "" if shares else _absent(result)[0],
            "says": f"{result.cell.runner}, N = {result.cell.workers}: {_off_text([share for share, _ in shares])}"})
    ends = [-reach, -reach / 2, 0.0, reach / 2, reach]
    marks = [{"at": scale.place(each), "text": f"{each * 100:+.2g} %" if each else "0"} for each in ends]
    chart = _chart(title, rows, marks, kind="strip")
    beyond = any(row["below"] or row["above"] for row in rows)
    far = f" Rounds more than {percent(reach, 1)} off are counted at the edges." if beyond else ""
    return chart | {"one": scale.place(0), "sentence": _spread_sentence(off) + far,
                    "says": visible("; ".join(row["says"] for row in chart["rows"]))}


def _off(observations: Sequence[Observation]) -> list[tuple[float, bool]]:
    """Return by how much each round is off the median of those that count, and whether it was starved."""
    if not observations:
        return []
    usual = median([each.wall_value for each in observations if not each.starved]
                   or [each.wall_value for each in observations])
    return [(each.wall_value / usual - 1, each.starved) for each in observations]


def _spread_sentence(off: Mapping[Cell, Sequence[tuple[float, bool]]]) -> str:
    """Return how far rounds lie from the median of their cell: half of all, and the farthest with its cell."""
    known = [(abs(share), cell) for cell, shares in off.items() for share, _ in shares]
    if len(known) < 2:  # one round has no distance
        return ""
    farthest, cell = max(known, key=lambda each: each[0])
    half = median(share for share, _ in known)
    return visible(f"Half of the rounds lie within {percent(half, 1)} of the median of their cell; the farthest, of "
                   f"{cell.runner} with N = {cell.workers}, is {percent(farthest, 1)} off.")


def _off_text(shares: Sequence[float]) -> str:
    if not shares:
        return "no rounds"
    return f"{counted(len(shares), 'round')}, at most {percent(max(map(abs, shares)), 1)} off their median"


def _strokes(scale: ChartScale, shares: Sequence[float]) -> str:
    """Return a path of upright strokes, one high."""
    return "".join(f"M{scale.place(share):g} 0v1" for share in shares)
