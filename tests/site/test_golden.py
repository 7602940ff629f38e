"""What pages show, as plain values: golden files of the data of a site of two small runs, and none of markup."""

import dataclasses
import json

import pytest

from gilscope.toolkit.model import Cell
from gilscope.toolkit.publish import without_traces
from gilscope.toolkit.report.cautions import cautions
from gilscope.toolkit.report.table import build_tables
from gilscope.toolkit.report.table.observations import Index
from gilscope.toolkit.report.table.ratios import Ratios
from gilscope.toolkit.site.pages.compare import compare_run
from gilscope.toolkit.site.pages.history import follow, history_values, workload_pages, workload_values
from gilscope.toolkit.site.pages.home import home_values
from gilscope.toolkit.site.pages.machines import machines_values
from gilscope.toolkit.site.pages.run import run_page
from gilscope.toolkit.site.sources import LoadedRun, PlannedRun
from tests.fakes import RunMaker
from tests.report.test_golden import check
from tests.site.made import KINDS

pytestmark = pytest.mark.newest
FILES = {"3.14": "data/one/3.14.json", "3.14t": "data/one/3.14t.json"}
DRAWN = {"charts", "dates", "dots", "picture", "resources", "scaling", "shapes", "strips", "versions"}   # places


def small(number, gain):
    """Return a run of 4 cells on 2 builds, in which two free threads are `gain` times as fast as one."""
    maker = RunMaker(rounds=5, seed=number)
    for build, alone in (("3.14", 0.4), ("3.14t", 0.416)):
        def cell(runner, workers, build=build):
            return Cell(workload="primes", runner=runner, workers=workers, build=build)

        maker.measure(cell("serial", 1), alone)
        maker.twin(cell("serial", 1), alone)
        maker.measure(cell("subinterpreters", 2), alone / 1.9)
        if build == "3.14":
            maker.skip(cell("free-threaded", 2), "the GIL is enabled in this build")
        else:
            maker.measure(cell("free-threaded", 2), alone / gain)
    run = without_traces(maker.run(("3.14", "3.14t"), label=f"run{number}",
                                   started=f"2026-11-1{number}T12:00:00+00:00"))
    ratios = Ratios(Index(run))
    known = LoadedRun(planned=PlannedRun(id=f"run{number}", host="here", path=None, is_experiment=False),
                      run=dataclasses.replace(run, measurements=()), tables=build_tables(run, ratios),
                      cautions=cautions(run))
    return run, known, ratios


@pytest.fixture(scope="module")
def runs():
    return small(1, 1.9), small(2, 1.2)


def check_data(name, values):
    """Check values but those of pictures, numbers to six digits, as the last ones are a matter of the processor."""
    check(f"site-{name}.json", json.dumps(plain(values), indent=1, ensure_ascii=False))


def plain(value):
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items() if name not in DRAWN}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def test_page_of_a_run(runs):
    run, known, _ = runs[0]
    values = run_page(run, KINDS, tables=known.tables, data=FILES)
    check_data("run", {name: values[name] for name in ("workloads", "command", "data", "choices")})


def test_data_that_the_page_that_compares_loads(runs):
    _, known, ratios = runs[0]
    values = compare_run(known, ratios, FILES)
    of_builds, of_models = (values.pop(name) for name in ("ofBuilds", "ofModels"))
    check_data("compare", values | {"ofBuilds": of_builds["3.14,3.14t"],
                                    "ofModels": of_models["serial,subinterpreters"]})


def test_history(runs):
    known = [each for _, each, _ in runs]
    series = follow(known)
    (group,) = workload_pages(known)
    check_data("history", history_values(known, series) | {
        "rows": workload_values(group, known, series, {"run1": FILES})["rows"]})


def test_first_page_and_machines(runs):
    known = [each for _, each, _ in runs]
    home = home_values(known, {each.id: [] for each in known}, KINDS, 0, follow(known))
    machines = machines_values(known, KINDS)
    check_data("home", {name: home[name] for name in ("warnings", "hosts", "missing", "runs")} | {
        "verdicts": machines["rows"], "sentence": machines["sentence"]})
