"""Every page in a real browser, opened from disk: nothing fails, all is reached, and everybody can read it."""

import re
from functools import cache
from itertools import batched
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from gilscope.toolkit.site.single.waits import MOST_THREADS
from tests.site.browser.opened import SCHEMES, SIZES, opened
from tests.site.pages import PAGES
from tests.site.test_single import HOSTILE, race_of, verdict_of, waits_of

pytestmark = [pytest.mark.slow, pytest.mark.newest]
HOSTILE_PAGES = {"race": race_of, "verdict": verdict_of, "waits": waits_of}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return the files of all pages by their names."""
    folder = tmp_path_factory.mktemp("pages")
    files = {name: folder / f"{name}.html" for name in PAGES}
    for name, file in files.items():
        file.write_text(PAGES[name](), encoding="utf-8")
    return files


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PAGES)
def test_page_opens_and_anybody_can_read_it(chromium, pages, name, size, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with opened(chromium, pages[name], size=size, scheme=scheme) as found:
        assert found.overflow() <= 0
        result = axe.run(found.page).response
        serious = [f"{each['id']}: {node['html']}" for each in result["violations"] for node in each["nodes"]
                   if each["impact"] in {"serious", "critical"}]
        assert not serious
        assert len(result["passes"]) > 10, "it has looked"
        assert not found.problems


@pytest.mark.parametrize("name", PAGES)
def test_links_and_pictures_lead_somewhere(chromium, pages, name):
    with opened(chromium, pages[name]) as found:
        assert not broken(found.page, pages[name])
        assert not found.problems


def broken(page, file):
    """Return the addresses of links and pictures behind which there is nothing."""
    wrong = []
    for address in page.eval_on_selector_all("a[href]", "all => all.map(each => each.href)"):
        parts = urlsplit(address)
        if parts.scheme == "file":
            target = unquote(parts.path)
            text = ids_of(target)
            if text is None or (parts.fragment and unquote(parts.fragment) not in text):
                wrong.append(address)
    wrong += page.eval_on_selector_all(
        "img", "all => all.filter(each => !each.complete || !each.naturalWidth).map(each => each.src.slice(0, 200))")
    return wrong


@cache
def ids_of(path):
    """Return what a page's addresses may end with, of another file nothing; None where there is none."""
    if not Path(path).is_file():
        return None
    return {*re.findall(r'\sid="([^"]*)"', Path(path).read_text(encoding="utf-8"))} if path.endswith("html") else set()


def test_table_is_sorted_by_keyboard(chromium, pages):
    with opened(chromium, pages["gil"]) as found:
        table = found.page.locator("table.sortable").first
        column = "all => all.map(each => parseFloat(each.cells[1].dataset.v))"
        for key, way in (("Enter", "ascending"), ("Space", "descending")):
            table.locator("thead button").nth(1).focus()
            found.page.keyboard.press(key)
            values = table.locator("tbody tr").evaluate_all(column)
            assert values == sorted(values, reverse=way == "descending")
            assert table.locator("thead th").nth(1).get_attribute("aria-sort") == way
        assert len(set(values)) > 1
        assert not found.problems


@pytest.mark.parametrize("name", PAGES)
def test_page_says_the_same_without_scripts(chromium, pages, name):
    with opened(chromium, pages[name]) as with_script, opened(chromium, pages[name], script=False) as without:
        both = [each.page.locator("main").inner_text().split() for each in (with_script, without)]
        assert both[0] == both[1]
        assert not with_script.problems + without.problems


@pytest.mark.parametrize("kind", HOSTILE_PAGES)
def test_hostile_texts_stay_texts(chromium, tmp_path, kind):
    file = tmp_path / "hostile.html"
    for texts in batched(HOSTILE.values(), MOST_THREADS):
        file.write_text(HOSTILE_PAGES[kind](*texts), encoding="utf-8")
        with opened(chromium, file) as found:
            assert found.page.locator("script, iframe, base, object, embed").count() == 1   # our own script
            assert found.page.locator("[onload], [onerror], [onmouseover], [onfocus]").count() == 0
            assert not found.problems
