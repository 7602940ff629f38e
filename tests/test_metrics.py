"""A metric of a cell is declared once and read in one place: a new one is measured, stored, read back and shown."""

import os
import re

import pytest

from gilscope.toolkit import metrics
from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.measure.child import metrics as readings
from gilscope.toolkit.model import Cell
from gilscope.toolkit.report.as_json import run_values
from gilscope.toolkit.report.run_document import run_document
from gilscope.toolkit.report.terminal import render
from gilscope.toolkit.site.pages.run import run_page
from gilscope.toolkit.store import Store, load_run
from tests.fakes import RunMaker, make_run
from tests.measure.children import make_spec, measure, target
from tests.measure.usercode import energy
from tests.report.test_as_json import check
from tests.site.made import KINDS

VALUES = 3


@pytest.fixture
def energy_metric(monkeypatch, tmp_path):
    """Add the metric here and, by a file that every Python imports at its start, in measured processes."""
    monkeypatch.setattr(metrics, "CELL_METRICS", metrics.CELL_METRICS)   # to have them restored
    monkeypatch.setattr(readings, "READERS", readings.READERS)
    energy.install()
    (tmp_path / "sitecustomize.py").write_text("import energy\nenergy.install()\n")
    return tmp_path


def stored_run(folder):
    """Return a run of one cell that was measured for real, as it is read back."""
    cell = Cell(workload="waiting:sleep", runner="serial", workers=1, build="3.14")
    spec = make_spec(folder, target(cell.workload), name=cell.name, values=VALUES)
    answer = measure(spec, paths=[folder])
    assert answer.kind == "measured", answer.output
    store = Store.create("label", folder / "results")
    store.add(cell, spec.result_path, {**answer.fields, "round": 0})
    store.save(RunMaker(rounds=1).run(("3.14",), cells=(cell,)))
    store.close()
    return load_run(store.path)


def test_a_metric_that_is_declared_and_read_is_stored_and_shown(energy_metric):
    run = stored_run(energy_metric)
    (observation,) = run.measurements[0].observations
    assert dict(observation.metrics)["energy_joules"] == energy.JOULES
    (cell,) = check(run_values(run))["cells"]
    assert cell["metrics"] == {"energy": {"value": energy.JOULES, "unit": "J", "kind": ""}}
    text = render(run_document(run), width=200)
    assert re.search(r"memory +energy", text)
    assert "2.50 J" in text
    (workload,) = run_page(run, KINDS)["workloads"]
    assert workload["metrics"] == ["memory", "energy"]
    assert workload["rows"][0]["metrics"][1]["text"] == "2.50 J"


def test_a_metric_that_cannot_be_is_refused(energy_metric):
    run = stored_run(energy_metric)
    suite = energy_metric / "results/label/3.14.json"
    suite.write_text(suite.read_text().replace('"gilscope_energy_joules":2.5', '"gilscope_energy_joules":"much"'))
    with pytest.raises(BadFileError, match="energy_joules is 'much', not a number"):
        load_run(suite.parent)
    assert run.measurements


def test_every_reader_reads_what_is_declared():
    names = readings.read_metrics([os.getpid()])
    assert set(names) <= {each.name for each in metrics.CELL_METRICS}


def test_nothing_beside_memory_has_no_field_of_its_own():
    assert all("metrics" not in cell for cell in check(run_values(make_run()))["cells"])
