"""Figures that go out with a site can do nothing by themselves."""

import pytest

from gilscope.toolkit.site.figure_files import MOST_BYTES, is_drawing
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


def test_what_is_not_there_or_too_large_is_none(tmp_path):
    assert not is_drawing(tmp_path / "nowhere.svg")
    path = tmp_path / "x.svg"
    path.write_text(HEAD + " " * MOST_BYTES + "</svg>")
    assert not is_drawing(path)
