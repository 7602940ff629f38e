"""Figures that go out with a site can do nothing by themselves."""

import re
from xml.etree import ElementTree

import pytest

from gilscope.toolkit.site.figure_files import MOST_BYTES, is_drawing, lean
from tests.site.made import EXAMPLE

pytestmark = pytest.mark.newest
HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'


@pytest.mark.parametrize("path", sorted(EXAMPLE.glob("experiments/*/*.svg")), ids=lambda path: path.stem)
def test_figure_of_ours_is_a_drawing(path):
    assert is_drawing(path)


@pytest.mark.parametrize("text", [
    f"{HEAD}<script>alert(1)</script></svg>", f'{HEAD}<g onload="alert(1)"/></svg>',
    f'{HEAD}<use xlink:href="https://evil.example/x.svg#a"/></svg>', f'{HEAD}<a href="javascript:alert(1)"/></svg>',
    f'{HEAD}<image href="https://evil.example/x.png"/></svg>', f"{HEAD}<foreignObject/></svg>",
    f"{HEAD}<style>@import url(https://evil.example)</style></svg>",
    f'{HEAD}<path style="fill: url(https://evil.example#a)"/></svg>',
    f'{HEAD}<animate attributeName="href" values="javascript:alert(1)"/></svg>',
    f'<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY a "b">]>{HEAD}<text>&a;</text></svg>',
    f'<?xml-stylesheet href="https://evil.example/x.css"?>{HEAD}</svg>',
    '<html xmlns="http://www.w3.org/1999/xhtml"><script/></html>', "<svg", "",
])
def test_what_could_do_something_is_none(tmp_path, text):
    path = tmp_path / "x.svg"
    path.write_text(text)
    assert not is_drawing(path)


NUMBER = re.compile(r"\d+\.\d+")
CLASS = re.compile(r"\.(s\d+)\{([^}]*)\}")
SVG = "{http://www.w3.org/2000/svg}"


def drawn(path):
    """Return elements, attributes and texts of a drawing: a style's where it is used, and no turn by nothing."""
    root = ElementTree.parse(path).getroot()
    classes = dict(CLASS.findall("".join(each.text or "" for each in root.iter(f"{SVG}style"))))
    elements = []
    for each in root.iter():
        attributes = {name: value for name, value in each.attrib.items() if not value.startswith("rotate(-0 ")}
        if "class" in attributes:
            attributes["style"] = classes[attributes.pop("class")]
        elements.append((each.tag, attributes, CLASS.sub("", each.text or "").split()))
    return elements


def shapes(path):
    """Return what is drawn without fractions and blanks between words."""
    return [(tag, {name: NUMBER.sub("", value).split() for name, value in sorted(attributes.items())}, text)
            for tag, attributes, text in drawn(path)]


def places(path):
    """Return what numbers with a fraction the attributes of a drawing have."""
    return [float(number) for _, attributes, _ in drawn(path) for _, value in sorted(attributes.items())
            for number in NUMBER.findall(value)]


def test_figure_shows_the_same_when_it_is_lean(tmp_path):
    for path in EXAMPLE.glob("experiments/*/*.svg"):
        thin = tmp_path / path.name
        thin.write_text(lean(path), encoding="utf-8")
        assert is_drawing(thin)
        assert shapes(thin) == shapes(path)
        assert places(thin) == pytest.approx(places(path), abs=0.01)
        assert thin.stat().st_size < 0.8 * path.stat().st_size


def test_scales_and_words_keep_their_digits(tmp_path):
    path = tmp_path / "x.svg"
    path.write_text(f'{HEAD}<g transform="translate(1.2345 6.789) scale(0.015625)"><path d="M 1.2345 2L3 4.999"/>'
                    "<text>x 1.2345</text></g></svg>")
    assert 'translate(1.23 6.78) scale(0.015625)"><path d="M 1.23 2L3 4.99"/><text>x 1.2345<' in lean(path)


def test_what_is_not_there_or_too_large_is_none(tmp_path):
    assert not is_drawing(tmp_path / "nowhere.svg")
    path = tmp_path / "x.svg"
    path.write_text(HEAD + " " * MOST_BYTES + "</svg>")
    assert not is_drawing(path)
