"""Cells of one workload on one build, a row each: how many times faster.

Places along a row are percent of the plot, as a plot is as wide as the screen has room for; heights are pixels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gilscope.toolkit.escaping import visible
from gilscope.toolkit.report.wording import ratio_text
from gilscope.toolkit.site.style import mark_of
from gilscope.toolkit.units import list_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.model import Cell
    from gilscope.toolkit.report.table.cell_results import CellResult
    from gilscope.toolkit.site.charts.scale import ChartScale
    from gilscope.toolkit.stats.verdict import Comparison

ROW, TOP, FOOT = 20, 10, 26   # pixels
START, END = 0, 100      # of the plot; names and numbers of workers are to the left of it
GLANCE_WIDTH, GLANCE_ROW = 160, 13
GLANCE_LETTER = 6        # of the axis, in a font of 11 pixels


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
    placed = [row | {"y": TOP + ROW * i + ROW // 2} for i, row in enumerate(rows)]
    bottom = TOP + ROW * len(rows)
    return {"kind": "dots", "title": visible(title), "height": bottom + FOOT, "rows": placed, "bottom": bottom,
            "marks": scale.marks(), "band": band, "one": scale.place(1), "absent": absent,
            "says": visible("; ".join([*(row["says"] for row in rows), *absent]))}


def _absent_cells(results: Sequence[CellResult]) -> list[str]:
    """Return the cells without a ratio, those with the same reason together: "free-threaded (N = 2): skipped: ..."."""
    found: dict[str, dict[str, list[str]]] = {}
    for result in results:
        if result.speedup is None or result.absence is not None:
            reason = _absence(result)
            found.setdefault(reason, {}).setdefault(result.cell.runner, []).append(str(result.cell.workers))
    return [visible(f"{', '.join(f'{model} (N = {list_text(counts)})' for model, counts in models.items())}: {reason}",
                    most=None) for reason, models in found.items()]


def _named(cell: Cell) -> dict[str, Any]:
    return {"model": cell.runner, "count": cell.workers, "build": cell.build, **mark_of(cell.runner)}


def _dot(cell: Cell, speedup: Comparison, scale: ChartScale) -> dict[str, Any]:
    return {"at": scale.place(speedup.ratio), "interval": _span(scale, speedup.lo, speedup.hi),
            "words": _span(scale, *speedup.between), "clear": speedup.differs,
            "says": f"{cell.runner}, N = {cell.workers}: {ratio_text(speedup)}, {speedup.verdict()}"}


def _absence(result: CellResult) -> str:
    """Return why there is no ratio."""
    if result.absence is not None:
        return f"{result.absence.word}: {result.absence.reason}"
    if not result.is_baseline and result.notes:
        return result.notes[-1].text
    return "what the others are compared with"


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
