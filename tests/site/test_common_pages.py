"""Pages about all runs: what is shown of others' texts, and what the first page says."""

import dataclasses
import re

import pytest

from gilscope.toolkit.model import Cell, Note
from gilscope.toolkit.publish import without_traces
from gilscope.toolkit.report.cautions import cautions
from gilscope.toolkit.report.table.matrix import build_tables
from gilscope.toolkit.report.table.observations import Index
from gilscope.toolkit.report.table.ratios import Ratios
from gilscope.toolkit.report.table.recommendation import OpenCell
from gilscope.toolkit.site.badge import badge_values
from gilscope.toolkit.site.charts.cells import glance
from gilscope.toolkit.site.charts.scale import ratio_scale
from gilscope.toolkit.site.page_values import page_values, shown
from gilscope.toolkit.site.pages.compare import compare_values, compared_builds
from gilscope.toolkit.site.pages.history import follow, history_values, workload_pages, workload_values
from gilscope.toolkit.site.pages.home import home_values
from gilscope.toolkit.site.pages.run import run_title
from gilscope.toolkit.site.sources import LoadedRun, PlannedRun
from gilscope.toolkit.stats.verdict import Comparison
from tests.fakes import make_run
from tests.site.made import KINDS, Tags, rendered
from tests.site.test_run_page import ATTACKS, attacked

pytestmark = pytest.mark.newest
ALL = " ".join(ATTACKS)


def known(run, host, number):
    public = without_traces(dataclasses.replace(run, started=f"2026-11-1{number}T12:00:00+00:00"))
    ratios = Ratios(Index(public))
    return LoadedRun(planned=PlannedRun(id=f"run{number}", host=host, path=None, is_experiment=False),
                     run=dataclasses.replace(public, measurements=()), tables=build_tables(public, ratios),
                     cautions=cautions(public)), ratios


def all_pages(text):
    """Return every page about all runs, of two runs of two machines with `text` wherever others may write."""
    run = make_run(rounds=3)
    pairs = [known(attacked(run, text), f"host {i}{text}", i) for i in (1, 2)]
    runs = [each for each, _ in pairs]
    around = page_values(
        f"Results{text}", text, of=text, links=[{"address": "index.html", "title": "Home", "here": True}])
    series, group, files = follow(runs), next(iter(workload_pages(runs))), {text: "x.json"}
    fleets = [{"label": text, "page": "fleet-x.html"}]
    entry = {"title": text, "link": "x.html", "finding": text, "findings": [text], "claim": text, "source": text,
             "builds": text, "day": text, "effort": text, "host": text, "picture": {"title": text, "path": "x.svg"}}
    return {
        "home.html": home_values(runs, KINDS, 1) | {
            "experiments": [entry], "citation": text,
            "badge": {"file": "badge.svg", "text": text, "about": text, "markdown": text}, "fleets": fleets,
            "answers": shown([{"title": text, "link": "x.html", "short": text}])} | around,
        "history.html": history_values(runs, series) | around,
        "history-workload.html": workload_values(group, runs, series, {each.id: files for each in runs}) | around,
        "compare.html": compare_values([(each, compared_builds(ratios)) for each, ratios in pairs]) | around,
        "experiments.html": {"experiments": [entry]} | around,
        "fleet.html": {"document": [], "sources": [{"label": text, "page": "x.html", "files": files}]} | around,
    }


def test_nothing_of_others_becomes_markup_on_any_page():
    harmless, hostile = all_pages(""), all_pages(ALL)
    for name, values in hostile.items():
        ours, page = Tags(rendered(name, harmless[name])), Tags(rendered(name, values))
        assert {tag for tag, _ in page.tags} <= {tag for tag, _ in ours.tags} | {"code", "strong"}, name
        assert {attr for _, attrs in page.tags for attr in attrs} == {attr for _, attrs in ours.tags for attr in attrs}
        assert not [link for link in page.links() if "evil" in link or "script:" in link], name
        assert len(page.named("script")) == len(ours.named("script")), name


def test_badge_is_escaped():
    values = {"label": "<b>", "text": "</text><script>", "left": 10, "right": 20, "says": '"><script>',
              "about": "</title><script>"}
    assert "<script>" not in rendered("badge.svg", values)


@pytest.fixture(scope="module")
def runs():
    notes = (Note(text="a note"),)
    return [known(dataclasses.replace(make_run(seed=i), label=f"run{i}", notes=notes), "here", i)[0] for i in (1, 2)]


def beside(values):
    """Return the values of the first page with those around them."""
    return values | {"experiments": [], "citation": "", "badge": None, "fleets": [], "answers": [],
                     } | page_values("t", "d")


def test_warnings_say_of_which_run(runs):
    values = home_values(runs, KINDS, 2)
    texts = [each["text"] for each in values["warnings"]]
    assert texts[0] == "2 runs could not be read and are left out."
    assert "run1 and run2: a note" in texts
    assert any("cells failed" in each for each in texts)


def test_warnings_of_runs_of_one_label_name_the_machine(runs):
    first, second = runs
    there = dataclasses.replace(second, planned=dataclasses.replace(second.planned, host="there"),
                                run=dataclasses.replace(second.run, label="run1"))
    texts = [each["text"] for each in home_values([first, there], KINDS)["warnings"]]
    assert len(set(texts)) == len(texts)
    assert "run1 (here) and run1 (there): a note" in texts
    again = dataclasses.replace(there, planned=dataclasses.replace(there.planned, host="here"))
    texts = [each["text"] for each in home_values([first, again], KINDS)["warnings"]]
    assert "run1 (here, 2026-11-11 12:00) and run1 (here, 2026-11-12 12:00): a note" in texts


def test_first_page_shows_the_newest_run_of_each_workload_and_build(runs):
    (host,) = home_values(runs, KINDS)["hosts"]
    assert host["builds"] == ["3.13", "3.14", "3.14t"]
    primes = next(row for row in host["rows"] if row["title"] == "primes")
    assert all(place["link"].startswith("run-run2.html#w") for place in primes["places"])
    assert primes["places"][2]["answer"].split(", ")[-1].startswith("6.")   # eight workers, sigma 0.03: 6.0x


def test_first_page_says_where_the_gil_was_turned_on(runs):
    def with_control(table, **changes):
        return dataclasses.replace(table, advice=tuple(dataclasses.replace(each, shown=tuple(
            dataclasses.replace(option, **changes) for option in each.shown)) for each in table.advice))

    plain, turned_on = (dataclasses.replace(runs[1], tables=tuple(
        with_control(table, control=control) for table in runs[1].tables)) for control in (False, True))
    captions = [rendered("home.html", beside(home_values([each], KINDS))) for each in (plain, turned_on)]
    assert [": with the GIL turned on</caption>" in caption for caption in captions] == [False, True]


def test_picture_of_an_open_ratio_has_the_interval_that_leaves_it_open():
    seen = Comparison(ratio=1.3, lo=1.1, hi=1.5, floor=0.01, rounds=20, verdict_interval=(0.9, 1.9))
    scale = ratio_scale([0.9, 1.9], 0, 100)
    (row,) = glance("w", [(Cell(workload="w", runner="threads", workers=2, build="3.14"), seen)], scale)["rows"]
    assert row["interval"] == {"at": scale.place(0.9), "end": scale.place(1.9)}


def test_first_page_has_no_sentence_before_its_picture_and_its_labels_end_between_words(runs):
    page = rendered("home.html", beside(home_values([dataclasses.replace(runs[1], tables=tuple(
        dataclasses.replace(table, workload="own:perfect_numbers") for table in runs[1].tables))], KINDS)))
    before, _, rest = page.partition('<table class="glance">')
    assert "<p" not in before.partition("</defs>")[2]
    assert "own:perfect_<wbr>numbers" in rest
    assert page.index("How to read it") > page.index("</table>")


@pytest.mark.parametrize(("names", "title"), [
    (["primes", "sleep"], "primes, sleep on 3.13, 3.14 and 3.14t"),
    (list("abcdef"), "a, b, c, d and 2 more on 3.13, 3.14 and 3.14t"), ([], "nothing on 3.13, 3.14 and 3.14t")])
def test_run_is_titled_by_what_it_measured(runs, names, title):
    cell = runs[0].tables[0].rows[0].results[0].cell
    run = dataclasses.replace(runs[0].run, cells=tuple(dataclasses.replace(cell, workload=each) for each in names))
    assert run_title(run) == title


def test_first_page_names_every_model_to_use(runs):
    def also_processes(advice):
        return dataclasses.replace(advice, options=(*advice.options, *(
            dataclasses.replace(each, cell=dataclasses.replace(each.cell, runner="processes-fork"))
            for each in advice.options)))

    tables = tuple(dataclasses.replace(table, advice=tuple(map(also_processes, table.advice)))
                   for table in runs[1].tables)
    (host,) = home_values([dataclasses.replace(runs[1], tables=tables)], KINDS)["hosts"]
    primes = next(row for row in host["rows"] if row["title"] == "primes")
    names = re.sub(r" [\d.]+x( ±\d+ %)?", "", primes["places"][2]["answer"])
    assert names.endswith("subinterpreters or processes-fork")
    assert primes["places"][2]["answer"].count("x") == 2, "each model has a number of its own"


def test_first_page_has_the_warnings_of_its_runs_reports(runs):
    first, second = (dataclasses.replace(each, cautions=texts) for each, texts in zip(
        runs, (("no build has PGO",), ("no build has PGO", "it was busy")), strict=True))
    values = home_values([first, second], KINDS)
    texts = [each["text"] for each in values["warnings"]]
    assert "run1 and run2: no build has PGO" in texts
    assert "run2: it was busy" in texts


def advised(of, **changes):
    """Return the run with changed advice for every workload and build."""
    tables = tuple(dataclasses.replace(table, advice=tuple(
        dataclasses.replace(each, options=(), **changes) for each in table.advice)) for table in of.tables)
    return dataclasses.replace(of, tables=tables)


@pytest.mark.parametrize(("whys", "said"), [
    (["starved"], "starved"), (["starved", "failed", "noise"], "starved, failed, undecided"), (["failed"], "failed"),
    ([], "nothing to compare")])
def test_first_page_says_of_what_is_open_that_it_is_not_known(runs, whys, said):
    cell = runs[1].tables[0].rows[0].results[0].cell
    only = advised(runs[1], shown=(), open=tuple(OpenCell(cell=cell, why=why) for why in whys))
    (host,) = home_values([only], KINDS)["hosts"]
    assert {place["answer"] for row in host["rows"] for place in row["places"]
            if ":" not in place["answer"]} == {said}


def test_first_page_names_the_baseline_where_no_model_is_faster(runs):
    (host,) = home_values([advised(runs[1], open=())], KINDS)["hosts"]
    assert "serial" in {place["answer"] for row in host["rows"] for place in row["places"]}


def test_badge_is_of_free_threads_alone(runs):
    badge = badge_values(runs)
    assert badge["says"] == "3.14t: 5.9x with 8 threads"
    for said in ("8 threads without the GIL against serial", "(3.14t)", "primes", "measured 2026-11-12", "run run2"):
        assert said in badge["about"]
    assert badge["about"] in rendered("badge.svg", badge)
    gil_only = [dataclasses.replace(runs[0], run=dataclasses.replace(runs[0].run, builds=runs[0].run.builds[:2]))]
    assert badge_values(gil_only) is None
