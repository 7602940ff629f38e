"""Ratios over runs: which are followed, and what counts as a change."""

import dataclasses

import pytest

from gilscope.toolkit.publish import without_traces
from gilscope.toolkit.report.cautions import cautions
from gilscope.toolkit.report.table.matrix import build_tables
from gilscope.toolkit.site.page_values import page_values
from gilscope.toolkit.site.pages.history import COST, follow, history_values, workload_values
from gilscope.toolkit.site.sources import LoadedRun, PlannedRun
from tests.fakes import make_run
from tests.site.made import Tags, rendered

pytestmark = pytest.mark.newest


def known(number, host="here", **changed):
    run = dataclasses.replace(without_traces(make_run(seed=number)), started=f"2026-11-{10 + number}T12:00:00+00:00",
                              label=f"run{number}", **changed)
    return LoadedRun(planned=PlannedRun(id=f"{host}-{number}", host=host, path=None, is_experiment=False),
                     run=dataclasses.replace(run, measurements=()), tables=build_tables(run), cautions=cautions(run))


@pytest.fixture(scope="module")
def runs():
    return [known(1), known(2), known(3, host="there")]


def test_ratios_of_each_machine_are_followed_by_themselves(runs):
    series = follow(runs)
    of = [each for each in series if (each.model, each.workers, each.build) == ("subinterpreters", 2, "3.14")
          and each.group[0] == "primes"]
    assert [(each.host, [result.loaded.run.label for result in each.results]) for each in of] == [
        ("here", ["run1", "run2"]), ("there", ["run3"])]


def test_what_a_free_threaded_build_costs_is_followed(runs):
    costs = [each for each in follow(runs) if each.of_builds and each.group[0] == "primes"]
    assert {(each.model, each.build, each.against) for each in costs} == {("serial", "3.14t", "3.14")}
    assert costs[0].name == "3.14t against 3.14, CPU time of one worker"


def test_other_work_of_one_name_is_another_series(runs):
    large = known(4, options={"selection": {"size": "large"}})
    of = [each for each in follow([*runs, large]) if each.host == "here" and each.group[0] == "primes"]
    assert [len(each.results) for each in of if (each.model, each.workers, each.build) == ("threads", 2, "3.13")] == [
        2, 1]


def test_runs_far_apart_are_shown_and_not_judged(runs):
    """As by `gilscope compare`: what the machine did between two runs is in no interval of either."""
    tables = tuple(dataclasses.replace(table, rows=tuple(dataclasses.replace(row, results=tuple(
        dataclasses.replace(result, speedup=result.speedup and result.speedup.inverted()) for result in row.results))
        for row in table.rows)) for table in runs[1].tables)
    several = [runs[0], dataclasses.replace(runs[1], tables=tables)]
    series = follow(several)
    group = next(each.group for each in series if each.group[0] == "primes")
    found = next(each for each in series if each.group == group and len(each.results) == 2
                 and each.results[0].ratio.lo > each.results[1].ratio.hi)
    pages = (rendered("history.html", history_values(several, series) | page_values("t", "d")),
             rendered("history-workload.html", workload_values(group, several, series, {}) | page_values("t", "d")))
    assert found.results[0].day != found.results[1].day
    assert "not judged" in pages[0]
    assert "are not judged against each other" in pages[1]
    assert not any("a change" in page or 'class="changed"' in page for page in pages)


def test_page_of_a_workload_has_every_ratio_and_pictures_over_versions_and_dates(runs):
    series = follow(runs)
    group = next(each.group for each in series if each.group[0] == "primes")
    values = workload_values(group, runs, series, {})
    assert len(values["rows"]) == sum(len(each.results) for each in series if each.group == group)
    here, there = values["hosts"]
    assert [word["text"] for word in here["versions"]["words"]] == ["3.13", "3.14", "3.14t"]
    assert [each["title"] for each in here["dates"]] == [
        f"{build}: ratio over runs" for build in ("3.13", "3.14", "3.14t")]
    assert there["dates"] == []


@pytest.mark.parametrize("order", [list, reversed])
def test_pictures_show_each_model_with_its_most_workers(runs, order):
    series = [each for each in follow(runs) if each.model == "subinterpreters" and each.group[0] == "primes"]
    here, _ = workload_values(series[0].group, runs, [*order(series)], {})["hosts"]
    assert {line["name"] for each in here["dates"] for line in each["lines"]} == {
        f"subinterpreters, N = {most}, on {build}" for build, most in (("3.13", 8), ("3.14", 4), ("3.14t", 8))}


def test_each_ratio_leads_to_the_files_that_it_is_from(runs):
    series = follow(runs)
    group = next(each.group for each in series if each.group[0] == "primes")
    files = {each.id: {build.label: f"data/{each.id}/{build.label}.json" for build in each.run.builds} for each in runs}
    page = Tags(rendered("history-workload.html", workload_values(group, runs, series, files) | page_values("t", "d")))
    followed = [(each, result) for each in series if each.group == group for result in each.results]
    times = sum(result.time is not None for _, result in followed)
    wanted = times + sum(3 if each.of_builds else 2 for each, _ in followed)   # the ratio, its builds, and the time
    assert sum(link.startswith("data/") for link in page.links()) == wanted
    assert {link for link in page.links() if link.startswith("data/")} == {
        file for each in files.values() for file in each.values()}


def test_runs_of_one_day_are_told_by_their_times_and_stand_in_the_order_of_the_picture():
    several = [known(i) for i in (1, 2, 3)]
    several[1] = dataclasses.replace(several[1], run=dataclasses.replace(
        several[1].run, started="2026-11-11T14:03:00+00:00"))
    series = follow(several)
    group = next(each.group for each in series if each.group[0] == "primes")
    values = workload_values(group, several, series, {})
    (here,) = values["hosts"]
    assert [word["text"] for word in here["dates"][0]["words"]] == ["11-11 12:00", "11-11 14:03", "11-13 12:00"]
    assert [row["label"] for row in values["rows"][:3]] == ["run1", "run2", "run3"]


def test_commit_of_a_build_is_told_if_it_is_known():
    run = known(1)
    builds = [dataclasses.replace(each, revision="aaaaaaaaaaaa1" if each.label == "3.14t" else "sha256:12ab")
              for each in run.run.builds]
    several = [dataclasses.replace(run, run=dataclasses.replace(run.run, builds=tuple(builds)))]
    series = follow(several)
    values = workload_values(series[0].group, several, series, {})
    assert {row["commit"] for row in values["rows"] if row["build"] == "3.14"} == {""}
    page = Tags(rendered("history-workload.html", values | page_values("t", "d"))).text
    assert ", commit aaaaaaaaaa" in page


def test_marks_that_do_not_differ_from_1_are_hollow_in_every_picture(runs):
    series = follow(runs)
    group = next(each.group for each in series if each.group[0] == "primes")
    values = workload_values(group, runs, series, {})
    seen = {result.ratio.ratio: result.ratio.verdict() for each in series for result in each.results}
    points = [point for host in values["hosts"] for chart in [host["versions"], *host["dates"]]
              for line in chart["lines"] for point in line["points"]]
    page = rendered("history-workload.html", values | page_values("t", "d"))
    hollow = sum(not point["clear"] for point in points)
    assert 0 < hollow < len(points)
    assert page.count('class="open"') == hollow
    assert "Hollow marks do not differ significantly from 1" in page
    (host, *_), of = values["hosts"], [each for each in series if each.group == group]
    drawn = {line["name"]: line for chart in host["dates"] for line in chart["lines"]}
    for each in of:
        if each.host == host["name"] and each.name in drawn:
            judged = [result.ratio.verdict() in {"faster", "slower"} for result in each.results]
            assert [point["clear"] for point in drawn[each.name]["points"]] == judged
    assert seen


def test_legend_and_introduction_name_the_cost_of_a_build(runs):
    series = follow(runs)
    group = next(each.group for each in series if each.group[0] == "primes")
    values = workload_values(group, runs, series, {})
    assert values["models"][-1]["model"] == f"3.14t against 3.14, {COST}"
    assert values["models"][-1]["shape"] == values["rows"][-1]["shape"]
    assert "to the one with the GIL" in rendered("history-workload.html", values | page_values("t", "d"))
