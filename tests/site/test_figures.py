"""Figures that go out with a site can do nothing by themselves."""

from xml.etree import ElementTree

import pytest

from gilscope.toolkit.site.figures import MOST_BYTES, is_drawing, not_indented
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


def shapes(path):
    """Return elements, attributes and texts of a drawing; how many blanks are between words says nothing."""
    return [(each.tag, {name: value.split() for name, value in each.attrib.items()}, (each.text or "").split())
            for each in ElementTree.parse(path).iter()]


def test_figure_says_the_same_without_its_indentation(tmp_path):
    for path in EXAMPLE.glob("experiments/*/*.svg"):
        plain = tmp_path / path.name
        plain.write_text(not_indented(path), encoding="utf-8")
        assert shapes(plain) == shapes(path)
        assert plain.stat().st_size < path.stat().st_size


def test_what_is_not_there_or_too_large_is_none(tmp_path):
    assert not is_drawing(tmp_path / "nowhere.svg")
    path = tmp_path / "x.svg"
    path.write_text(HEAD + " " * MOST_BYTES + "</svg>")
    assert not is_drawing(path)
