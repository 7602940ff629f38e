"""A site in a real browser, opened from disk: every page."""

from collections import Counter

import pytest

from gilscope.toolkit.commands.site import _about
from gilscope.toolkit.site.answer_files import find_answers
from gilscope.toolkit.site.making import SiteRequest, make_site
from gilscope.toolkit.site.sources import find_sources
from tests.scale.test_values import ANSWERS
from tests.shared import once
from tests.site.browser.opened import VIEWS, opened
from tests.site.made import EXAMPLE, KINDS, broken_links
from tests.site.test_scale_answers import write

pytestmark = [pytest.mark.slow, pytest.mark.newest]
RUNS = ("first-look", "second-worker", "own-function")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A site of three runs of two machines, one of them with a starved and a failed cell, an experiment, answers."""
    def make(folder):
        answers = [str(write(folder / f"{kind}.json", answer)) for kind, answer in ANSWERS.items()]
        make_site(SiteRequest(sources=find_sources([
            f"one={EXAMPLE / RUNS[0]}", f"two={EXAMPLE / RUNS[1]}", f"two={EXAMPLE / RUNS[2]}",
            f"one={EXAMPLE}/experiments",
        ]), answers=find_answers(answers), title="Results", kinds=KINDS, describe=_about),
            folder / "site")

    return once(tmp_path_factory, "site-of-two-machines", make) / "site"


def pages(folder):
    """Return one page of each kind."""
    kinds = {path.name.split("-")[0]: path for path in sorted(folder.glob("*.html"))}
    return list(kinds.values())


def test_links_resolve(site):
    assert not broken_links(site)


@pytest.mark.parametrize(("size", "scheme"), VIEWS)
def test_pages_open_and_anybody_can_read_them(chromium, site, size, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    for path in pages(site):
        with opened(chromium, path, size=size, scheme=scheme) as found:
            assert found.overflow() <= 0, path.name
            assert not found.problems, path.name
            result = axe.run(found.page, options={"preload": False}).response   # it would load the style sheet again
            serious = [f"{path.name}: {each['id']}: {node['html']}" for each in result["violations"]
                       for node in each["nodes"] if each["impact"] in {"serious", "critical"}]
            assert not serious


def test_pages_say_the_same_without_scripts(chromium, site):
    for path in pages(site):
        with opened(chromium, path) as with_script, opened(chromium, path, script=False) as without:
            both = [Counter(each.page.locator("main").inner_text().split()) for each in (with_script, without)]
            assert not both[1] - both[0], path.name


def test_table_that_goes_on_beside_a_narrow_screen_shows_it(chromium, site):
    with opened(chromium, site / "compare.html", size="narrow") as found:
        wide = found.page.evaluate("""[...document.querySelectorAll(".scroll")].filter(
            each => each.scrollWidth > each.clientWidth).map(each => getComputedStyle(each).backgroundAttachment)""")
    assert wide
    assert all("local" in each and "scroll" in each for each in wide), "paper that moves over shadows that stay"


def test_tables_are_sorted_and_filtered(chromium, site):
    with opened(chromium, site / "run-one-first-look.html") as found:
        table = found.page.locator("table.cells").first
        values = "all => all.map(each => each.cells[3].dataset.v || null)"
        table.locator("thead button").nth(3).click()
        ascending = table.locator("tbody tr").evaluate_all(values)
        known = [float(each) for each in ascending if each is not None]
        assert known == sorted(known)
        assert ascending[len(known):] == [None] * (len(ascending) - len(known)), "what has no number comes last"
        found.page.locator(".filters input[value='3.14']").uncheck()
        builds = table.locator("tbody tr:visible").evaluate_all("all => all.map(each => each.dataset.build)")
        assert set(builds) == {"3.14t"}
        found.page.locator(".filters input[value=io]").uncheck()
        assert found.page.locator("section[data-kind=io]").first.is_hidden()
        assert "rows are shown" in found.page.locator(".filters [role=status]").inner_text()
        found.page.locator(".filters input[value='3.14']").check()
        found.page.locator(".filters input[value=io]").check()
        assert table.locator("tbody tr:visible").count() == len(ascending)
        assert not found.problems


def test_figure_is_enlarged_and_closed_by_keyboard(chromium, site):
    with opened(chromium, site / "experiments.html") as found:
        link = found.page.locator("a.enlarge").first
        link.focus()
        found.page.keyboard.press("Enter")
        assert found.page.locator("dialog").is_visible()
        assert found.page.locator("dialog img").evaluate("each => each.getAttribute('src')").endswith(".svg")
        found.page.keyboard.press("Escape")
        assert found.page.locator("dialog").is_hidden()
        assert not found.problems
