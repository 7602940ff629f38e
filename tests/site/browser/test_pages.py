"""Every page in a real browser, opened from disk: nothing fails, all is reached, and everybody can read it."""

import re
from functools import cache
from itertools import batched
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from gilscope.toolkit.cli import main
from gilscope.toolkit.site.single.waits import MOST_THREADS
from tests.shared import once
from tests.site.browser.opened import VIEWS, opened
from tests.site.made import EXAMPLE
from tests.site.pages import PAGES
from tests.site.test_single import HOSTILE, race_of, verdict_of, waits_of

pytestmark = [pytest.mark.slow, pytest.mark.newest]
HOSTILE_PAGES = {"race": race_of, "verdict": verdict_of, "waits": waits_of}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return the files of all pages by their names."""
    def make(folder):
        for name, page in PAGES.items():
            (folder / f"{name}.html").write_text(page(), encoding="utf-8")

    folder = once(tmp_path_factory, "single-pages", make)
    return {name: folder / f"{name}.html" for name in PAGES}


@pytest.mark.parametrize(("size", "scheme"), VIEWS)
@pytest.mark.parametrize("name", PAGES)
def test_page_opens_and_anybody_can_read_it(chromium, pages, name, size, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with opened(chromium, pages[name], size=size, scheme=scheme) as found:
        assert found.overflow() <= 0
        assert not serious(axe, found.page)
        assert not found.problems


@pytest.mark.parametrize("name", PAGES)
def test_links_and_pictures_lead_somewhere(chromium, pages, name):
    with opened(chromium, pages[name]) as found:
        assert not broken(found.page)
        assert not found.problems


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder of the site of all examples."""
    def make(folder):
        assert main(["site", str(EXAMPLE), "--out", str(folder / "site")]) == 0

    return once(tmp_path_factory, "example-site", make) / "site"


@pytest.mark.parametrize(("size", "scheme"), [("wide", "light"), ("narrow", "dark")])
def test_every_page_of_a_site_opens_and_anybody_can_read_it(chromium, site, size, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    wrong = []
    for file in sorted(site.glob("*.html")):
        with opened(chromium, file, size=size, scheme=scheme) as found:
            wrong += [(file.name, each) for each in (*serious(axe, found.page), *found.problems)]
            if found.overflow() > 0:
                wrong.append((file.name, "is wider than the screen"))
            if size == "wide":   # there is room for every table
                scrolled = "all => all.filter(each => each.scrollWidth > each.clientWidth).map(each => each.ariaLabel)"
                wrong += [(file.name, each) for each in found.page.eval_on_selector_all(".scroll", scrolled)]
    assert not wrong


def test_every_link_and_picture_of_a_site_leads_somewhere(chromium, site):
    wrong = []
    for file in sorted(site.glob("*.html")):
        with opened(chromium, file) as found:
            found.page.evaluate("document.querySelectorAll('img').forEach(each => { each.loading = 'eager'; })")
            found.page.wait_for_load_state("networkidle")
            wrong += [(file.name, each) for each in broken(found.page)]
    assert not wrong


def test_rows_are_filtered_by_keyboard(chromium, site):
    file = next(file for file in sorted(site.glob("run-*.html")) if "second-worker" in file.name)
    with opened(chromium, file) as found:
        rows = found.page.locator("tr[data-model]:visible")
        every = rows.count()
        choice = found.page.locator("form.filters select, form.filters input").first
        choice.focus()
        found.page.keyboard.press("ArrowDown" if choice.evaluate("each => each.tagName") == "SELECT" else "Space")
        assert 0 < rows.count() < every
        assert not found.problems


def test_heading_of_a_group_is_over_the_middle_of_its_columns(chromium, site):
    """Compare the middle of each heading's words with the middle of the columns that it spans."""
    places = """all => all.flatMap(table => {
        const [groups, columns] = table.tHead.rows, found = [];
        let next = 0;
        for (const each of groups.cells) {
            const first = columns.cells[next].getBoundingClientRect();
            const last = columns.cells[(next += each.colSpan) - 1].getBoundingClientRect();
            const words = document.createRange();
            words.selectNodeContents(each);
            const {left, right} = words.getBoundingClientRect();
            if (each.tagName === "TH")
                found.push([each.textContent, (left + right) / 2, (first.left + last.right) / 2]);
        }
        return found;
    })"""
    seen = 0
    for file in sorted(site.glob("experiment-*.html")):
        with opened(chromium, file) as found:
            for words, middle, wanted in found.page.eval_on_selector_all("table:has([scope=colgroup])", places):
                assert abs(middle - wanted) < 2, (file.name, words)   # pixels
                seen += 1
    assert seen > 10


def serious(axe, page):
    """Return what keeps some people from reading a page."""
    result = axe.run(page, options={"preload": False}).response   # it would ask for the style sheet once more
    assert len(result["passes"]) > 10, "it has looked"
    return [f"{each['id']}: {node['html']}" for each in result["violations"] for node in each["nodes"]
            if each["impact"] in {"serious", "critical"}]


def broken(page):
    """Return the addresses of links and pictures behind which there is nothing."""
    wrong = []
    for address in page.eval_on_selector_all("a[href]", "all => all.map(each => each.href)"):
        parts = urlsplit(address)
        if parts.scheme == "file":
            target = unquote(parts.path)
            text = ids_of(target)
            if text is None or (parts.fragment and unquote(parts.fragment) not in text):
                wrong.append(address)
    there = "each => each.complete && each.naturalWidth"
    addresses = f"all => all.filter(each => !({there})(each)).map(each => each.src.slice(0, 200))"
    return wrong + page.eval_on_selector_all("img[src]", addresses)


@cache
def ids_of(path):
    """Return what a page's addresses may end with, of another file nothing; None where there is none."""
    if not Path(path).is_file():
        return None
    text = Path(path).read_text(encoding="utf-8") if path.endswith("html") else ""
    return {*re.findall(r'\sid="([^"]*)"', text)}


def test_table_is_sorted_by_keyboard(chromium, pages):
    with opened(chromium, pages["gil"]) as found:
        table = found.page.locator("table.sortable", has_text="Where each thread's time went")
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
