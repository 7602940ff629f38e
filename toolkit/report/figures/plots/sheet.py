"""One page of panels: title, legend, grid of panels, note, from top to bottom, all in pixels.

What stands around a panel is measured and the panels share what is left, so no text lies upon another.
Places are given to matplotlib as shares of the page, as an SVG has another resolution than the measuring canvas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from gilscope.toolkit.report.figures.plots.palette import FAINT
from gilscope.toolkit.report.figures.plots.style import DPI, LEGEND, NOTE, TITLE, WIDTH, points

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

PAD, GAP, ROW_GAP = 12, 14, 14
MOST_LEGEND_COLUMNS = 6


class Sheet:
    """A page being made: draw on `axes`, then call `arrange`."""

    def __init__(self, *, title: str, note: str, panels: int, columns: int, height: float) -> None:
        self.columns = columns
        self.figure = Figure(figsize=(WIDTH / DPI, 600 / DPI))
        self.canvas = FigureCanvasAgg(self.figure)
        self.axes: list[Any] = [self.figure.add_axes((0.1, 0.1, 0.8, 0.8), label=str(i)) for i in range(panels)]
        self._heights = [height] * -(-panels // columns)
        self._title = self._text(self.wrapped(title, WIDTH - 2 * PAD, TITLE, bold=True), TITLE, weight="bold")
        self._note = self._text(self.wrapped(note, WIDTH - 2 * PAD, NOTE), NOTE, color=FAINT)
        self._legend: Any = None
        self._fits: list[Callable[[], None]] = []

    def set_height(self, row: int, pixels: float) -> None:
        """Give the panels of one row a height of their own."""
        self._heights[row] = pixels

    def is_left(self, index: int) -> bool:
        """Return True if panel `index` stands in the first column, which has the marks of the y axis."""
        return index % self.columns == 0

    def is_bottom(self, index: int) -> bool:
        """Return True if no panel stands below panel `index`, so that it has the marks of the x axis."""
        return index + self.columns >= len(self.axes)

    def on_fit(self, fit: Callable[[], None]) -> None:
        """Have `fit` adapt texts to the panels' size, each time that it has changed."""
        self._fits.append(fit)

    def legend(self, explained: Sequence[tuple[str, Any]]) -> None:
        """Explain the handles by their names between title and panels, where no value can lie."""
        rows = [(handle, self.wrapped(name, WIDTH - 80, LEGEND)) for name, handle in explained]
        for columns in range(min(len(rows), MOST_LEGEND_COLUMNS), 0, -1):
            # Rows of even length: six and one more would look like an afterthought.
            self._legend = self._legend_of(rows, -(-len(rows) // -(-len(rows) // columns)))
            if columns == 1 or self._size(self._legend)[0] <= WIDTH - 2 * PAD:
                return
            self._legend.remove()

    def _legend_of(self, rows: Sequence[tuple[Any, str]], columns: int) -> Any:
        # Matplotlib fills columns from the top down; one reads rows.
        handles, names = zip(*(row for column in range(columns) for row in rows[column::columns]), strict=True)
        return self.figure.legend(
            handles, names, loc="upper left", ncols=columns, frameon=False, borderaxespad=0, borderpad=0,
            handlelength=2.6, columnspacing=1.6, handletextpad=0.6, labelspacing=0.35,
        )

    def arrange(self) -> None:
        """Give everything its place."""
        for _ in range(3):   # fitted texts change the room that panels have, which changes the texts, a little
            self._place()
            for fit in self._fits:
                fit()
        self._place()

    def save(self, path: Path, kind: str, metadata: Mapping[str, str | None]) -> None:
        """Write the page as "svg" or "png"."""
        self.figure.savefig(path, format=kind, metadata=dict(metadata))

    def renderer(self) -> Any:
        """Return the renderer that measures texts at the page's present size."""
        return self.canvas.get_renderer()

    def width_of(self, text: str, pixels: float, *, bold: bool = False) -> float:
        """Return the width of the widest line of `text` in a font of `pixels` height."""
        font = FontProperties(size=points(pixels), weight="bold" if bold else "normal")
        measure = self.renderer().get_text_width_height_descent
        return max(float(measure(line, font, ismath=False)[0]) if line else 0.0 for line in text.split("\n"))

    def wrapped(self, text: str, width: float, pixels: float, *, bold: bool = False) -> str:
        """Return `text` cut into lines of at most `width` pixels, between words; a longer word stands alone."""
        lines: list[str] = []
        for paragraph in text.split("\n"):
            line = ""
            for word in paragraph.split():
                longer = f"{line} {word}".strip()
                if line and self.width_of(longer, pixels, bold=bold) > width:
                    lines.append(line)
                    longer = word
                line = longer
            lines.append(line)
        return "\n".join(lines)

    def _text(self, text: str, pixels: float, **options: Any) -> Any:
        return self.figure.text(0, 0, text, fontsize=points(pixels), ha="left", va="top", linespacing=1.25, **options)

    def _size(self, artist: Any) -> tuple[float, float]:
        if artist is None or (hasattr(artist, "get_text") and not artist.get_text()):
            return 0.0, 0.0
        box = artist.get_window_extent(self.renderer())
        return float(box.width), float(box.height)

    def _overhang(self, axes: Any) -> tuple[float, float, float, float]:
        """Return the distances by which texts exceed the frame: left, right, top, bottom."""
        frame, box = axes.get_window_extent(), axes.get_tightbbox(self.renderer())
        return frame.x0 - box.x0, box.x1 - frame.x1, box.y1 - frame.y1, frame.y0 - box.y0

    def _place(self) -> None:
        margins = [self._overhang(axes) for axes in self.axes]
        by_column = [margins[column :: self.columns] for column in range(self.columns)]
        lefts = [max(margin[0] for margin in column) for column in by_column]
        rights = [max(margin[1] for margin in column) for column in by_column]
        room = WIDTH - 2 * PAD - GAP * (self.columns - 1) - sum(lefts) - sum(rights)
        width = room / self.columns
        legend = PAD + self._size(self._title)[1] + 8
        y = legend + self._size(self._legend)[1] + (12 if self._legend else 4)
        boxes: list[tuple[float, float, float]] = []
        for row, height in enumerate(self._heights):
            around = margins[row * self.columns : (row + 1) * self.columns]
            y += max(margin[2] for margin in around)
            x = float(PAD)
            for column in range(len(around)):
                x += lefts[column]
                boxes.append((x, y, height))
                x += width + rights[column] + GAP
            y += height + max(margin[3] for margin in around) + ROW_GAP
        note = self._size(self._note)[1]
        total = round(y + note + (PAD if note else 0))
        self.figure.set_size_inches(WIDTH / DPI, total / DPI)
        for axes, (x, top, height) in zip(self.axes, boxes, strict=True):
            axes.set_position((x / WIDTH, 1 - (top + height) / total, width / WIDTH, height / total))
        self._put_texts(legend, y, total)

    def _put_texts(self, legend: float, bottom: float, total: float) -> None:
        self._title.set_position((PAD / WIDTH, 1 - PAD / total))
        self._note.set_position((PAD / WIDTH, 1 - bottom / total))
        if self._legend:
            self._legend.set_bbox_to_anchor((PAD / WIDTH, 1 - legend / total))


def column_count(panels: int, needed: Sequence[float]) -> int:
    """Return the number of panels side by side that fit, given the pixels that each needs inside its frame."""
    widest = max(needed, default=0)
    if panels == 3 and widest <= 205:  # what is left of 800 beside marks and titles
        return 3
    return 2 if panels > 1 and widest <= 325 else 1  # pixels


def mark_count(height: float) -> int:
    """Return the number of marks that fit on a y axis of this height in pixels."""
    return round(height / 42)


def row_height(panels: int, columns: int) -> float:
    """Return the height of a panel in pixels: lower if there are more rows."""
    rows = -(-panels // columns)
    return {1: 340.0 if columns == 1 else 280.0, 2: 230.0}.get(rows, 190.0)
