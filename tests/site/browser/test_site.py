"""A site in a real browser, opened from disk: every page, and what the page that compares says against `compare`."""

import json
import re
import shutil
import sys
from collections import Counter

import pytest

from gilscope.toolkit.commands.compare import differences, run_notes, run_remarks
from gilscope.toolkit.commands.site import _about
from gilscope.toolkit.publish import without_traces
from gilscope.toolkit.report.comparison import TWO_RUNS, comparison_document
from gilscope.toolkit.report.document import Banner, Lines, Table, with_scope
from gilscope.toolkit.report.sessions import scope_text
from gilscope.toolkit.report.table import compare_builds, compare_models, compare_runs
from gilscope.toolkit.report.wording import value_text
from gilscope.toolkit.site.making import SiteRequest, make_site
from gilscope.toolkit.site.scale_answers import find_answers
from gilscope.toolkit.site.sources import find_sources
from gilscope.toolkit.store import load_run
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
        ]), answers=find_answers(answers), title="Results", kinds=KINDS, python=sys.executable, describe=_about),
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
        if path.name == "compare.html":   # there a script offers what to compare
            continue
        with opened(chromium, path) as with_script, opened(chromium, path, script=False) as without:
            both = [Counter(each.page.locator("main").inner_text().split()) for each in (with_script, without)]
            assert not both[1] - both[0], path.name


def said(page):
    """Return what the page that compares shows: warnings, tables by title, lists by the heading before them."""
    return page.evaluate("""() => {
        const found = { banners: [], tables: {}, lists: {} };
        let heading = "";
        for (const each of document.getElementById("compared").children) {
            if (each.matches("h3")) heading = each.textContent;
            if (each.matches(".banner")) found.banners.push(each.textContent);
            if (each.matches("ul")) found.lists[heading] = [...each.children].map(item => item.textContent);
            const table = each.querySelector("table");
            if (table) found.tables[table.caption.textContent] =
                [...table.rows].map(row => [...row.cells].map(cell => cell.textContent));
        }
        return found;
    }""")


def as_shown(text):
    """Return a sentence without the backticks around its commands: a page shows them as code."""
    return re.sub(r"`([^`]*)`", r"\1", text)


def report(contrasts, first, second, notes=(), scope="", remarks=()):
    """Return the same of the report of `gilscope compare`."""
    document = with_scope(comparison_document("", contrasts, baseline=first, sample=second, notes=notes,
                                              remarks=remarks),
                          scope)
    found = {"banners": [], "tables": {}, "lists": {}}
    for section in document.sections:
        match section:
            case Banner():
                found["banners"].append(f"Warning: {as_shown(section.text)}")
            case Table():
                found["tables"][section.heading] = [
                    [column.title for column in section.columns],
                    *([value_text(entry.value) + " ".join(map(str, entry.marks)) for entry in row]
                      for row in section.rows)]
            case Lines():
                found["lists"][section.heading] = [as_shown(each) for each in section.items]
    return found


def compared(chromium, site, address):
    path = site / "compare.html"
    with opened(chromium, path) as found:
        found.page.goto(f"{path.as_uri()}#{address}")
        found.page.locator("#choose [role=status]:not(:empty)").wait_for()
        result = said(found.page)
        assert not found.problems
    return result


def runs_report(first, second):
    runs = [without_traces(load_run(EXAMPLE / label)) for label in (first, second)]
    return report(compare_runs(*runs), first, second, [*differences(*runs), *run_notes(*runs)], TWO_RUNS,
                  run_remarks(*runs))


@pytest.mark.parametrize(("first", "second"), [
    ("one-first-look", "two-second-worker"), ("two-second-worker", "one-first-look"),
    ("two-own-function", "two-second-worker"),
])
def test_two_runs_are_compared_as_the_command_does_it(chromium, site, first, second):
    labels = [each.partition("-")[2] for each in (first, second)]
    assert compared(chromium, site, f"what=runs&first={first}&second={second}") == runs_report(*labels)


def test_two_machines_are_compared_by_their_newest_runs(chromium, site):
    newest = max(RUNS[1:], key=lambda label: load_run(EXAMPLE / label).started)
    found = compared(chromium, site, f"what=hosts&first=one-first-look&second=two-{newest}")
    assert found == runs_report("first-look", newest)


def test_four_machines_have_room_on_a_screen_of_1280_pixels(chromium, tmp_path):
    make_site(SiteRequest(sources=find_sources([
        f"{name}={EXAMPLE / run}" for name, run in (
            ("first-machine", "own-function"), ("second-machine", "second-worker"), ("third-machine", "first-look"),
            ("fourth-machine", "two-hosts/host-1"))]),
        title="Results", kinds=KINDS, python=sys.executable, describe=_about), tmp_path / "site")
    with opened(chromium, tmp_path / "site" / "machines.html", size="usual") as found:
        assert found.page.locator("th", has_text="fourth-machine").last.is_visible()
        assert found.page.evaluate(
            "[...document.querySelectorAll('.scroll')].every(each => each.scrollWidth <= each.clientWidth)")


def test_table_that_goes_on_beside_a_narrow_screen_shows_it(chromium, site):
    with opened(chromium, site / "machines.html", size="narrow") as found:
        wide = found.page.evaluate("""[...document.querySelectorAll(".scroll")].filter(
            each => each.scrollWidth > each.clientWidth).map(each => getComputedStyle(each).backgroundAttachment)""")
    assert wide
    assert all("local" in each and "scroll" in each for each in wide), "paper that moves over shadows that stay"


def test_page_opens_with_the_comparison_that_its_form_names(chromium, tmp_path):
    """The newest run has one build, so the comparison is that of an older one."""
    newest = shutil.copytree(EXAMPLE / "own-function", tmp_path / "newest")
    header = json.loads((newest / "run.json").read_text())
    header |= {"started": "2026-12-01T12:00:00+00:00", "builds": header["builds"][:1], "label": "newest",
               "cells": [each for each in header["cells"] if each["build"] == header["builds"][0]["label"]],
               "skips": []}
    (newest / "run.json").write_text(json.dumps(header))
    (newest / "3.14t.json").unlink()
    make_site(SiteRequest(sources=find_sources([str(newest), str(EXAMPLE / "second-worker")]), title="Results",
                          kinds=KINDS, python=sys.executable, describe=_about), tmp_path / "site")
    with opened(chromium, tmp_path / "site" / "compare.html") as found:
        chosen = {name: found.page.locator(f"select[name={name}]").input_value() for name in ("run", "first", "second")}
        assert chosen == {"run": "second-worker", "first": "3.14", "second": "3.14t"}
        title = found.page.locator("#compared h1, #compared h2").first.inner_text()
        assert "second-worker: 3.14t against 3.14" in title
        found.page.locator("select[name=run]").select_option("newest")
        assert found.page.locator("#compared").inner_text() == ""
        assert "Choose two" in found.page.locator("#choose [role=status]").inner_text()


def test_two_builds_are_compared_as_the_command_does_it(chromium, site):
    run = without_traces(load_run(EXAMPLE / "first-look"))
    for first, second in (("3.14", "3.14t"), ("3.14t", "3.14")):
        expected = report(compare_builds(run, first, second), first, second, run_notes(run), scope_text(run),
                          run_remarks(run))
        assert compared(chromium, site, f"what=builds&run=one-first-look&first={first}&second={second}") == expected


@pytest.mark.parametrize(("first", "second"), [
    ("serial", "threads"), ("threads", "free-threaded"), ("processes-forkserver", "subinterpreters")])
def test_two_models_are_compared_as_the_command_does_it(chromium, site, first, second):
    run = without_traces(load_run(EXAMPLE / "first-look"))
    expected = report(compare_models(run, first, second), first, second, run_notes(run), scope_text(run),
                      run_remarks(run))
    assert compared(chromium, site, f"what=models&run=one-first-look&first={first}&second={second}") == expected


def leading(page):
    """Return the addresses behind the numbers of each row: of both times and the ratio."""
    return page.locator("#compared tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.querySelectorAll('td a')].map(each => each.getAttribute('href')))")


@pytest.mark.parametrize("script", [True, False])
def test_numbers_that_are_there_before_a_choice_lead_to_their_pyperf_files(chromium, site, script):
    with opened(chromium, site / "compare.html", script=script) as found:
        files = found.page.locator("#from a").evaluate_all("all => all.map(each => each.getAttribute('href'))")[1:]
        assert {tuple(row) for row in leading(found.page)} == {(files[0], files[1], files[1])}


@pytest.mark.parametrize(("address", "files"), [
    ("what=builds&run=one-first-look&first=3.14&second=3.14t", {("one-first-look/3.14", "one-first-look/3.14t")}),
    ("what=models&run=one-first-look&first=serial&second=threads", {("one-first-look/3.14",) * 2}),
    ("what=runs&first=one-first-look&second=two-second-worker", {
        (f"one-first-look/{build}", f"two-second-worker/{build}") for build in ("3.14", "3.14t")}),
])
def test_compared_numbers_lead_to_their_pyperf_files(chromium, site, address, files):
    path = site / "compare.html"
    with opened(chromium, path) as found:
        found.page.goto(f"{path.as_uri()}#{address}")
        found.page.locator("#choose [role=status]:not(:empty)").wait_for()
        wanted = {tuple(f"data/{each}.json" for each in (first, second, second)) for first, second in files}
        assert {tuple(row) for row in leading(found.page)} == wanted


def test_choosing_compares(chromium, site):
    with opened(chromium, site / "compare.html") as found:
        choose = found.page.locator("#choose")
        choose.locator("[name=what]").select_option("runs")
        choose.locator("[name=first]").select_option("one-first-look")
        choose.locator("[name=second]").select_option("two-second-worker")
        found.page.get_by_role("heading", name="second-worker against first-look").wait_for()
        assert "first=one-first-look&second=two-second-worker" in found.page.url
        choose.locator("[name=second]").select_option("one-first-look")
        assert choose.locator("[role=status]").inner_text() == "Choose two that differ."
        assert not found.problems


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
