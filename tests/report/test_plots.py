"""Figures as they are drawn: what stands in them, that one can read it, and that the same figure gives the same file.

Golden files hold an SVG's texts and how many things of each kind it has, not its bytes: these differ by version.
"""

import importlib.util
import math
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from gilscope.toolkit.concurrency_models import APPEARANCES
from gilscope.toolkit.report.figures import plots
from gilscope.toolkit.report.figures.figure import (
    Axis,
    CategoryPanel,
    Lane,
    Rule,
    Series,
    TimelinePanel,
)
from gilscope.toolkit.report.figures.plots import palette
from gilscope.toolkit.report.figures.plots.legend_entries import entries
from tests.patience import PATIENCE
from tests.report.figures import FIGURES
from tests.shared import once

GOLDEN = Path(__file__).parents[1] / "golden"
NEEDS = pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="needs matplotlib")
EVERY = pytest.mark.parametrize("name", FIGURES)
TEXT = "{http://www.w3.org/2000/svg}text"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Each figure's SVG and PNG, drawn when they are first asked for."""
    def files(name):
        folder = once(tmp_path_factory, f"figure-{name}", lambda folder: plots.draw(FIGURES[name](), folder))
        return sorted(folder.iterdir(), reverse=True)

    return files


@pytest.fixture(scope="module")
def sheets():
    """Each figure laid out, with its texts as (text, box, turned), when it is first asked for."""
    found = {}

    def sheet(name):
        if name not in found:
            from gilscope.toolkit.report.figures.plots import style
            with style.settings(name):
                composed = plots.compose(FIGURES[name]())
                found[name] = composed, texts_of(composed)
        return found[name]

    return sheet


def texts_of(sheet):
    from matplotlib.text import Text
    sheet.figure.draw(sheet.renderer())
    return [text for text in sheet.figure.findobj(Text) if text.get_visible() and text.get_text().strip()]


def overlap(one, other):
    wide = min(one.x1, other.x1) - max(one.x0, other.x0)
    high = min(one.y1, other.y1) - max(one.y0, other.y0)
    return wide > 1 and high > 2   # boxes have some air above and below their letters


def svg_texts(path):
    return [" ".join("".join(node.itertext()).split()) for node in ET.parse(path).iter(TEXT)]


@NEEDS
@EVERY
def test_no_text_lies_upon_another(sheets, name):
    sheet, texts = sheets(name)
    boxes = [(text.get_text(), text.get_window_extent(sheet.renderer())) for text in texts]
    assert [(a, b) for (a, one), (b, other) in combinations(boxes, 2) if overlap(one, other)] == []


@NEEDS
@EVERY
def test_texts_are_on_the_page_and_large_enough(sheets, name):
    sheet, texts = sheets(name)
    width, height = sheet.figure.get_size_inches() * 96
    for text in texts:
        box = text.get_window_extent(sheet.renderer())
        assert -1 < box.x0 < box.x1 < width + 1, text
        assert -1 < box.y0 < box.y1 < height + 1, text
        assert text.get_fontsize() * 96 / 72 >= 9, text


@NEEDS
@EVERY
def test_legend_covers_no_panel(sheets, name):
    sheet, _ = sheets(name)
    for legend in sheet.figure.legends:
        box = legend.get_window_extent(sheet.renderer())
        assert not any(overlap(box, axes.get_window_extent()) for axes in sheet.axes)


@NEEDS
@EVERY
def test_panels_do_not_shrink_away(sheets, name):
    sheet, _ = sheets(name)
    for axes in sheet.axes:
        assert axes.get_window_extent().width >= 180
        assert axes.get_window_extent().height >= 40


@NEEDS
@EVERY
def test_both_files_are_800_pixels_wide(drawn, name):
    svg, png = drawn(name)
    assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(png.read_bytes()[16:20], "big") == 800
    root = ET.parse(svg).getroot()
    assert root.get("width") == "600pt"   # of 1/72 inch, where a browser's pixel is 1/96
    assert (svg.name, png.name) == (f"{FIGURES[name]().name}.svg", f"{FIGURES[name]().name}.png")


@NEEDS
@EVERY
def test_text_is_text_and_names_a_font_to_fall_back_on(drawn, name):
    found = list(ET.parse(drawn(name)[0]).iter(TEXT))
    assert found
    assert all("sans-serif" in node.get("style") for node in found)


@NEEDS
@EVERY
def test_axes_and_series_are_named(drawn, name):
    figure = FIGURES[name]()
    said = " ".join(svg_texts(drawn(name)[0]))
    words = [figure.title, *(panel.title for panel in figure.panels)]
    words += [axis.title for axis in (getattr(figure, "x", None), getattr(figure, "y", None)) if isinstance(axis, Axis)]
    words += [getattr(figure, key, "") for key in ("note", "x_title", "y_title", "unit")]
    names = {series.name for panel in figure.panels for series in getattr(panel, "series", ())}
    words += names
    words += [rule.label for panel in figure.panels for rule in getattr(panel, "rules", ())]
    words += [*getattr(figure, "states", ()), *getattr(figure, "rows", ()), *getattr(figure, "columns", ())]
    assert [each for each in words if " ".join(each.split()) not in said] == []


@NEEDS
@EVERY
def test_figure_against_its_golden_file(drawn, name):
    root = ET.parse(drawn(name)[0]).getroot()
    kinds = Counter(re.sub(r"_\d+$", "", node.get("id", "")) for node in root.iter())
    counts = [f"{kinds[kind]} {kind}" for kind in ("axes", "legend", "patch")]
    text = "\n".join([*counts, "", *svg_texts(drawn(name)[0])]) + "\n"
    path = GOLDEN / f"figure-{name}.txt"
    if os.environ.get("GILSCOPE_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    # Where lines end and how many columns a legend has depends on the font's measures, and these on the version.
    assert sorted(text.split()) == sorted(path.read_text(encoding="utf-8").split())


@NEEDS
def test_the_same_figure_gives_the_same_bytes(tmp_path):
    import matplotlib
    first = plots.draw(FIGURES["lines"](), tmp_path / "a")
    with matplotlib.rc_context({"svg.hashsalt": "another", "font.size": 30, "svg.fonttype": "path"}):
        before = dict(matplotlib.rcParams)
        again = plots.draw(FIGURES["lines"](), tmp_path / "b")
        assert dict(matplotlib.rcParams) == before, "a user's settings are put back"
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]


@NEEDS
def test_a_value_that_is_missing_is_marked_and_explained(drawn, sheets):
    crosses = [line for line in sheets("lines")[0].axes[0].get_lines() if line.get_marker() == "x"]
    assert [list(line.get_xdata()) for line in crosses] == [[4.0]]   # the control's NaN at 4 threads
    assert "no number: the table says why" in svg_texts(drawn("lines")[0])
    assert "no number: the table says why" not in svg_texts(drawn("log_lines")[0])


@NEEDS
def test_values_missing_at_one_place_stand_side_by_side():
    from gilscope.toolkit.report.figures.plots import style
    gone = tuple(Series(name, (1.0, 2.0), (1.0, math.nan)) for name in "abc")
    figure = FIGURES["lines"]()
    with style.settings("missing"):
        sheet = plots.compose(replace(figure, panels=(replace(figure.panels[0], series=gone),)))
        boxes = [line.get_window_extent(sheet.renderer())
                 for line in sheet.axes[0].get_lines() if line.get_marker() == "x"]
    assert len(boxes) == 3
    assert len({round(box.x0) for box in boxes}) == 3


def boxes_of(figure):
    """Return the figure laid out, and its texts with their boxes."""
    from gilscope.toolkit.report.figures.plots import style
    with style.settings("boxes"):
        sheet = plots.compose(figure)
        return sheet, [(text.get_text(), text.get_window_extent(sheet.renderer())) for text in texts_of(sheet)]


@NEEDS
def test_reference_lines_are_in_the_legend_and_differ():
    rules = tuple(Rule(1 + i / 50, f"line {i}", "y") for i in range(3))
    figure = FIGURES["lines"]()
    sheet, _ = boxes_of(replace(figure, panels=(replace(figure.panels[0], rules=rules),)))
    handles = {text.get_text(): line for text, line in zip(
        sheet.figure.legends[0].get_texts(), sheet.figure.legends[0].get_lines(), strict=True)}
    drawn = {line.get_ydata()[0]: line for line in sheet.axes[0].get_lines()}
    for rule in rules:
        assert drawn[rule.value]._dash_pattern == handles[rule.label]._dash_pattern
    assert len({str(handles[rule.label]._dash_pattern) for rule in rules}) == 3


@NEEDS
def test_a_bar_of_no_height_is_seen():
    figure = FIGURES["bars"]()
    panel = CategoryPanel("", ("none", "all"), (Series("3.14", (0.0, 1.0), (0.0, 100.0)),))
    sheet, _ = boxes_of(replace(figure, panels=(panel,)))
    assert [list(line.get_ydata()) for line in sheet.axes[0].get_lines()
            if line.get_color() == palette.nth_style(0).colour] == [[0.0, 0.0]]


@NEEDS
def test_what_was_published_looks_different(sheets):
    legend = sheets("lines")[0].figure.legends[0]
    lines = {text.get_text(): line for text, line in zip(legend.get_texts(), legend.get_lines(), strict=True)}
    history, now = lines["Beazley 2009, Python 2.6"], lines["3.14 threads"]
    assert (history.get_color(), history.get_markerfacecolor()) == (palette.HISTORY, "white")
    assert (now.get_linestyle(), history.get_linestyle()) == ("-", "--")
    assert now.get_markerfacecolor() == now.get_color() == APPEARANCES["threads"].colour


@NEEDS
def test_a_series_looks_the_same_in_every_panel(sheets):
    fourth = palette.nth_style(3)
    for axes in sheets("log_lines")[0].axes:
        assert [line.get_color() for line in axes.get_lines() if line.get_marker() == fourth.marker] == [fourth.colour]


@NEEDS
def test_what_lies_beyond_the_ends_asked_for_is_shown_all_the_same():
    from gilscope.toolkit.report.figures.plots import style
    figure = FIGURES["lines"]()
    with style.settings("ends"):
        axes = plots.compose(replace(figure, y=replace(figure.y, lo=1.0, hi=2.0))).axes[0]
    assert axes.get_ylim()[0] <= 0.652
    assert axes.get_ylim()[1] >= 4.55


@NEEDS
@EVERY
def test_legend_is_what_occurs_by_the_rule(sheets, name):
    wanted = [entry.name for entry in entries(FIGURES[name]())]
    legends = sheets(name)[0].figure.legends
    found = [" ".join(text.get_text().split()) for legend in legends for text in legend.get_texts()]
    assert sorted(found) == sorted(wanted)


@NEEDS
@EVERY
def test_no_bar_stands_on_a_logarithmic_axis(sheets, name):
    from matplotlib.patches import StepPatch
    for axes in sheets(name)[0].axes:
        bars = [patch for patch in axes.patches if isinstance(patch, StepPatch) or type(patch).__name__ == "Rectangle"]
        assert axes.get_yscale() != "log" or not bars


@NEEDS
def test_dots_have_the_marks_and_whiskers_of_their_series(sheets):
    axes = sheets("log_bars")[0].axes[0]
    dots = [line for line in axes.get_lines() if line.get_linestyle() == "None" and len(line.get_xdata()) == 1]
    assert len(dots) == 7 * 3
    assert {line.get_marker() for line in dots} == {palette.nth_style(nth).marker for nth in range(7)}
    assert len({round(float(line.get_xdata()[0]), 6) for line in dots}) == 7 * 3, "side by side"


@NEEDS
def test_values_of_a_category_stand_together_whichever_series_have_one(sheets):
    figure = FIGURES["bars"]()
    (panel,) = figure.panels
    series = (Series("a", (0.0,), (1.0,)), Series("b", (1.0,), (1.0,)), Series("c", (0.0, 1.0), (2.0, 2.0)))
    sheet, _ = boxes_of(replace(figure, panels=(replace(panel, series=series, rules=()),)))
    middles = [bar.get_x() + bar.get_width() / 2 for bar in sheet.axes[0].patches]
    assert [round(sum(middles[nth : nth + 2]) / 2, 6) for nth in (0, 2)] == [0.0, 1.0]


@NEEDS
def test_titles_below_panels_stand_side_by_side_however_long_the_names_above_are():
    figure = FIGURES["log_bars"]()
    names = ("a name that takes several lines", "b", "c")
    sheet, _ = boxes_of(replace(figure, panels=(figure.panels[0], replace(figure.panels[1], categories=names))))
    tops = [axes.xaxis.label.get_window_extent(sheet.renderer()).y1 for axes in sheet.axes]
    assert tops[0] == pytest.approx(tops[1], abs=1)


@NEEDS
def test_lanes_are_called_threads_and_a_strip_below_counts_them(drawn, sheets):
    from matplotlib.patches import StepPatch
    said = svg_texts(drawn("timelines")[0])
    assert said.count("threads, not cores") == 2   # the third panel has none
    for axes in sheets("timelines")[0].axes[:2]:
        (strip,) = [patch for patch in axes.patches if isinstance(patch, StepPatch)]
        assert strip.get_data().baseline > len(axes.get_yticks()) - 1, "below the last lane"


@NEEDS
def test_strip_counts_the_threads_that_are_in_the_state_at_once():
    from gilscope.toolkit.report.figures.plots.timelines import at_once
    lanes = (Lane("a", ((0.0, 2.0, "runs"), (2.0, 3.0, "waits"), (5.0, 6.0, "runs"))), Lane("b", ((1.0, 3.0, "runs"),)))
    assert at_once(TimelinePanel("", lanes), "runs") == ([0.0, 1.0, 2.0, 3.0, 5.0, 6.0], [1, 2, 1, 0, 1])
    assert at_once(TimelinePanel("", lanes), "sleeps") == ([0.0], [])


@NEEDS
def test_bars_start_at_zero(sheets):
    assert sheets("bars")[0].axes[0].get_ylim()[0] == 0


@NEEDS
def test_many_values_have_a_band(sheets):
    from matplotlib.collections import PolyCollection
    assert [type(each) for each in sheets("band")[0].axes[0].collections if isinstance(each, PolyCollection)]
    assert not [each for each in sheets("lines")[0].axes[0].collections if isinstance(each, PolyCollection)]


@NEEDS
def test_an_unfinished_file_replaces_nothing(tmp_path, monkeypatch):
    from gilscope.toolkit.report.figures.plots.sheet import Sheet
    svg, _ = plots.draw(FIGURES["band"](), tmp_path)
    before = svg.read_bytes()

    def half(_sheet, path, *_):
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(Sheet, "save", half)
    with pytest.raises(OSError, match="disk full"):
        plots.draw(FIGURES["band"](), tmp_path)
    assert svg.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["band.png", "band.svg"]


@NEEDS
def test_figure_without_panels_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no panels"):
        plots.draw(replace(FIGURES["lines"](), panels=()), tmp_path)


@NEEDS
def test_pyplot_is_never_loaded_and_matplotlib_only_to_draw(tmp_path):
    code = ("import sys; from gilscope.toolkit.report.figures import plots; assert 'matplotlib' not in sys.modules\n"
            "from tests.report.figures import bars; plots.draw(bars(), __import__('pathlib').Path(sys.argv[1]))\n"
            "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules")
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=PATIENCE,
                   cwd=Path(__file__).parents[2])



@pytest.mark.parametrize("make", [
    lambda: Series("a", (1.0,), (1.0, 2.0)),
    lambda: Series("a", (1.0, 2.0), (1.0, 2.0), (1.0,), (1.0,)),
    lambda: Series("a", (1.0,), (1.0,), (1.0,)),
    lambda: CategoryPanel("", ("one",), (Series("a", (1.0,), (1.0,)),)),
    lambda: replace(FIGURES["bars"](), y=Axis("time (s)", lo=1.0)),
    lambda: replace(FIGURES["timelines"](), counted="sleeps"),
    lambda: replace(FIGURES["timelines"](), panels=(TimelinePanel("", (Lane("a", ((0.0, 1.0, "sleeps"),)),)),)),
])
def test_parts_that_do_not_fit_together_are_refused_where_they_are_made(make):
    with pytest.raises(ValueError):
        make()
