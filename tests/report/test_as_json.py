"""Reports as JSON: they fit the schemas that are shipped, and say what the tables say."""

import dataclasses
import functools
import json
import math
import re
from pathlib import Path

import pytest

from gilscope.toolkit import cli, report
from gilscope.toolkit.experiments.report import experiments_values
from gilscope.toolkit.report import as_json
from gilscope.toolkit.report.document import Lines
from gilscope.toolkit.report.run_document import run_document
from gilscope.toolkit.report.table.contrast import compare_builds, compare_runs
from gilscope.toolkit.report.table.judgement import gate
from gilscope.toolkit.report.table.matrix import build_tables
from gilscope.toolkit.report.wording import interval_text
from gilscope.toolkit.store import list_runs, load_run
from tests.conformance.builds import ROOT
from tests.fakes import make_run
from tests.test_store import write

jsonschema = pytest.importorskip("jsonschema")
SCHEMAS = Path(report.__file__).parent / "schemas"
EXAMPLE = ROOT / "results" / "example"


def closed(schema):
    """Return the schema with nothing allowed that it does not name: what is not described is not documented."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: closed(each) for name, each in schema.items()}
    return {"additionalProperties": False} | found if "properties" in found and "required" in found else found


def check(values):
    text = json.dumps(values, allow_nan=False)   # no NaN, no Infinity: other languages cannot read them
    name = re.fullmatch(r"gilscope/(\w+)/\d+", values["schema"])[1]
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    jsonschema.validate(json.loads(text), closed(schema), cls=jsonschema.Draft202012Validator)
    return json.loads(text)


@functools.cache
def example_run():
    return make_run()


@functools.cache
def example_values():
    return check(as_json.run_values(example_run()))


@pytest.mark.parametrize("name", [path.stem for path in sorted(SCHEMAS.glob("*.json"))])
def test_schema_is_one(name):
    jsonschema.Draft202012Validator.check_schema(json.loads((SCHEMAS / f"{name}.json").read_text()))


@pytest.mark.parametrize("run", [
    make_run(), make_run(rounds=1), make_run(twins=False, rounds=3), load_run(EXAMPLE),
    dataclasses.replace(make_run(), stopped="killed", rounds_done=0, measurements=()),
    dataclasses.replace(make_run(), stopped="answered", looks=2, measurements=tuple(
        dataclasses.replace(each, observations=each.observations[:4 + k % 5])   # some cells have fewer rounds
        for k, each in enumerate(make_run().measurements))),
], ids=["whole", "one round", "no floor", "example", "nothing measured", "cells with fewer rounds"])
def test_run_fits_its_schema(run):
    check(as_json.run_values(run))


def test_run_has_every_cell_of_the_tables_with_its_digits():
    values, tables = example_values(), build_tables(example_run())
    results = [result for table in tables for row in table.rows for result in row.results]
    assert len(values["cells"]) == len(results)
    for found, result in zip(values["cells"], results, strict=True):
        assert (found["workload"], found["model"], found["workers"], found["build"]) == (
            result.cell.workload, result.cell.runner, result.cell.workers, result.cell.build)
        assert (found["time"] or {}).get("median") == (result.time.center if result.time else None)
        assert (found["speedup"] or {}).get("lo") == (result.speedup.lo if result.speedup else None)
        assert (found["status"] == "measured") == (result.absence is None)
        assert found["reason"] == (result.absence.reason if result.absence else None)
    assert [(each["clock"], each["smallest"], each["largest"]) for each in values["floors"]] == [
        (clock, *floor.range) for table in tables for clock, floor in table.floors.items()]


def test_what_to_use_is_a_set_for_each_build():
    values = example_values()
    found = {(each["workload"], each["build"]): each for each in values["best"]}
    assert set(found) == {(name, build) for name in ("primes", "sleep") for build in ("3.13", "3.14", "3.14t")}
    first = found["primes", "3.14"]
    assert [(each["model"], each["workers"]) for each in first["models"]] == [("interpreter-pool", 8)]
    assert first["models"][0]["memory"]["kind"] == "PSS"
    assert first["not_known"] == [{"model": "subinterpreters", "workers": 8, "why": "starved"}]
    assert "hang" in found["sleep", "3.14t"]["reason"]


def test_verdicts_go_by_an_interval_that_is_told():
    cells = [each["speedup"] for each in example_values()["cells"] if each["speedup"]]
    assert all(each["between"]["lo"] < each["lo"] < each["hi"] < each["between"]["hi"] for each in cells)
    assert all(each["between"]["lo"] > 1 for each in cells if each["verdict"] == "faster")
    assert all(each["between"]["hi"] < 1.03 for each in cells if each["verdict"] == "same")


def test_sentences_are_those_of_the_report():
    (short,) = [each for each in run_document(example_run()).sections if isinstance(each, Lines) and each.is_summary]
    assert example_values()["in_short"] == [*short.items] != []


def test_nothing_is_told_that_the_report_does_not_show():
    run = make_run()
    build = dataclasses.replace(
        run.builds[0], config_args="'--prefix=/secret/prefix'", base_executable="/secret/python", revision="abc")
    secret = dataclasses.replace(
        run, builds=(build, *run.builds[1:]), machine=dataclasses.replace(run.machine, hostname="my-secret-host"),
        failures=tuple(dataclasses.replace(each, output="secret output") for each in run.failures),
        options={"paths": ["/secret/path"], "selection": {}})
    assert "secret" not in json.dumps(as_json.run_values(secret))


def test_number_that_json_does_not_have_is_null():
    assert as_json.finite({"a": [math.inf, -math.inf, math.nan, 1.5, 2, "x", None, True]}) == {
        "a": [None, None, None, 1.5, 2, "x", None, True]}


@pytest.mark.parametrize("limit", [None, 0.05])
def test_comparison_fits_its_schema(limit):
    run = make_run()
    contrasts = compare_builds(run, "3.14", "3.14t")
    values = check(as_json.compare_values(
        contrasts, baseline="3.14", sample="3.14t", notes=run.notes,
        gate=None if limit is None else gate(contrasts, limit), sentences=["one"]))
    assert len(values["cells"]) == len(contrasts)
    first = values["cells"][0]
    assert first["ratio"]["verdict"] == "slower"
    assert first["baseline_time"]["median"] < first["sample_time"]["median"]
    assert f"{first['ratio']['ratio']:.3f}x" in interval_text(contrasts[0].comparison)
    if limit is not None:
        numbers = values["gate"]
        assert sum(numbers[name] for name in ("past", "within", "untold", "one_sided", "empty")) == len(contrasts)


def test_comparison_of_what_cannot_be_told_does_not_say_same():
    contrasts = compare_builds(make_run(twins=False, rounds=2), "3.14", "3.14t")
    values = check(as_json.compare_values(contrasts, baseline="A", sample="B", notes=()))
    assert {each["ratio"]["verdict"] for each in values["cells"] if each["ratio"]} == {"cannot tell"}


@pytest.mark.parametrize("limit", [None, 0.05])
def test_comparison_of_two_runs_fits_the_schema(limit):
    contrasts = compare_runs(make_run(), make_run(seed=2))
    values = check(as_json.compare_values(contrasts, baseline="A", sample="B", notes=(),
                                          gate=None if limit is None else gate(contrasts, limit)))
    assert {each["ratio"]["verdict"] for each in values["cells"] if each["ratio"]} == {None}


def test_experiments_fit_their_schema():
    folders = sorted((EXAMPLE / "experiments").glob("*/run.json"))
    values = check(experiments_values([(load_run(each.parent), each.parent) for each in folders]))
    found = {each["name"]: each for each in values["experiments"]}
    assert len(found) == len(folders) > 10
    signals = found["signals"]
    assert all(each["findings"] for each in values["experiments"])
    assert any(each["parameters"] and each["metrics"] for each in signals["cells"])


def test_list_fits_its_schema(tmp_path):
    run = make_run(rounds=3)
    write(dataclasses.replace(run, cells=tuple(each.cell for each in run.measurements)), tmp_path, "whole")
    (write(run, tmp_path, "broken") / "run.json").write_text("{")
    values = check(as_json.listed_values(list_runs(tmp_path / "results")))
    whole, broken = values["runs"]
    assert (whole["label"], whole["workloads"], whole["problem"]) == ("whole", ["primes", "sleep"], None)
    assert "cut off" in broken["problem"]


@pytest.mark.parametrize("argv", [
    ("report", str(EXAMPLE)), ("report", str(EXAMPLE / "experiments" / "signals")), ("report",),
    ("compare", str(EXAMPLE), "--builds", "3.13,3.13t", "--fail-on", "5%"),
    ("experiment", "show", str(EXAMPLE / "experiments" / "countdown"), "--no-figures"),
])
def test_only_json_goes_to_standard_output(argv, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if argv[0] == "experiment":   # `show` writes report.md beside the run
        import shutil
        argv = ("experiment", "show", shutil.copytree(argv[2], tmp_path / "countdown").name, "--no-figures")
    cli.main([*argv, "--json"])
    alone = capsys.readouterr().out
    check(json.loads(alone))
    cli.main([*argv, "--json", "out.json", "--markdown", "out.md"])
    assert "{" not in capsys.readouterr().out
    assert json.loads((tmp_path / "out.json").read_text()) == json.loads(alone)
    cli.main([*argv, "--markdown"])
    assert capsys.readouterr().out == (tmp_path / "out.md").read_text()
