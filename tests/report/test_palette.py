"""Colours that a colour-blind reader tells apart, and forms for grey print."""

from itertools import combinations, pairwise

import pytest

from gilscope.toolkit.concurrency_models import APPEARANCES
from gilscope.toolkit.report.figures.figure import Series
from gilscope.toolkit.report.figures.plots import palette

# What is left of colours, of linear RGB: Machado, Oliveira & Fernandes (2009), "A Physiologically-based Model for
# Simulation of Color Vision Deficiency", IEEE TVCG 15(6), the table of severity 1.0.
VISIONS = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
# The edge of what one notices is 2.3 (Mahy 1994).  Closest come the green and the grey of history, 15.7 to a
# deuteranope, who has the hollow markers to go by.
DIFFERENT = 15
OF_MODELS = list(dict.fromkeys(look.colour for look in APPEARANCES.values()))
PAIRS = [*combinations((*OF_MODELS, palette.HISTORY, "#FFFFFF"), 2), *combinations((*palette.SHADES, "#FFFFFF"), 2)]


def seen(colour, vision):
    """Return a colour as CIE L*a*b* (1976, D65) as it is seen."""
    light = [min(max(sum(a * b for a, b in zip(row, palette.linear(colour), strict=True)), 0), 1)
             for row in VISIONS[vision]]
    to_xyz = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))   # IEC 61966-2-1
    x, y, z = (sum(a * b for a, b in zip(row, light, strict=True)) / white
               for row, white in zip(to_xyz, (0.9505, 1.0, 1.089), strict=True))
    f = [t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z)]
    return 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])


def distance(one, other, vision):
    return sum((a - b) ** 2 for a, b in zip(seen(one, vision), seen(other, vision), strict=True)) ** 0.5


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_colours_are_told_apart(one, other, vision):
    assert distance(one, other, vision) > DIFFERENT


def test_distances_are_those_of_the_literature():
    # The corners of the sRGB cube: L* of black is 0 and of white 100; red is (53.24, 80.09, 67.20).
    assert distance("#000000", "#FFFFFF", "normal") == pytest.approx(100, abs=0.1)
    assert seen("#FF0000", "normal") == pytest.approx((53.24, 80.09, 67.20), abs=0.1)


@pytest.mark.parametrize("colour", [
    *(APPEARANCES[model].colour for model in ("threads", "free-threaded", "subinterpreters", "processes")),
    *palette.SHADES, palette.HISTORY, palette.TEXT, palette.FAINT])
def test_lines_and_texts_stand_out_from_white(colour):
    # WCAG 2.2, 1.4.11: 3 to 1 for what is drawn; these are what most figures need.
    wanted = 4.5 if colour in {palette.TEXT, palette.FAINT} else 3.0   # 4.5 for text
    assert 1.05 / (palette.luminance(colour) + 0.05) >= wanted


def test_each_model_has_a_mark_of_its_own_and_lines_and_bars_that_grey_print_keeps_apart():
    found = [palette.model_style(model) for model in APPEARANCES]
    assert len({look.marker for look in found}) == len(found)
    assert len({look.hatch for look in found}) == len(found)
    assert len({(look.marker, str(look.dash)) for look in found}) == len(found)


def test_a_model_looks_the_same_whatever_stands_beside_it():
    alone = palette.series_styles([Series("x", (), (), model="processes")])["x"]
    models = ("asyncio", "processes-spawn", "threads")
    beside = palette.series_styles([Series(model, (), (), model=model) for model in models])
    assert beside["processes-spawn"] == alone == palette.model_style("processes")
    assert list(beside) == ["threads", "processes-spawn", "asyncio"], "the order of the table, not that of the plan"


def test_a_model_without_a_colour_is_drawn_as_other_things_are():
    found = palette.series_styles([Series(model, (), (), model=model) for model in ("of tomorrow", "threads")])
    assert list(found) == ["threads", "of tomorrow"]
    assert found["of tomorrow"] == palette.nth_style(0)


def test_series_of_one_model_keep_its_colour_and_have_a_mark_each():
    found = [palette.model_style("threads", nth) for nth in range(6)]
    assert {look.colour for look in found} == {APPEARANCES["threads"].colour}
    assert [look.marker for look in found[:2]] == ["o", "o"], "two, as of two builds, keep the mark of the model"
    # A mark that is half full looks hollow where a line goes through it: full or hollow, else another shape.
    assert {look.fill for look in found} == {"full", "none"}
    assert len({(look.marker, look.fill) for look in found}) == 6
    others = {look.marker for name, look in APPEARANCES.items() if not name.startswith("dask")}
    assert not {look.marker for look in found[2:]} & others
    for form in ("dash", "hatch"):
        assert len({str(getattr(look, form)) for look in found}) == 6


def test_what_is_no_model_has_no_models_colour():
    found = [palette.nth_style(i) for i in range(24)]
    assert not {look.colour for look in found} & {*OF_MODELS}
    assert len({(look.colour, look.marker) for look in found}) == 24
    # As grey print shows them: each darker than the next, by what one sees at a glance.
    dark = [seen(colour, "normal")[0] for colour in palette.SHADES]
    assert all(after - before > 15 for before, after in pairwise(dark))


def test_names_keep_their_looks_and_history_takes_no_colour():
    series = [Series(name, (), (), style=style) for name, style in
              (("then", "history"), ("a", "measured"), ("b", "measured"), ("earlier", "history"), ("a", "measured"))]
    found = palette.series_styles(series)
    assert [found[name].colour for name in ("a", "b")] == list(palette.SHADES[:2])
    assert [found[name].hollow for name in ("then", "earlier", "a")] == [True, True, False]
    assert found["then"].marker != found["earlier"].marker
    assert list(found) == ["a", "b", "then", "earlier"]
