"""Hostile functions in one model: the cells beside it keep their values, and nothing of what they did stays."""

import os
import subprocess
import sys

import pytest

from gilscope.toolkit.store import load_run
from tests.conformance.builds import ROOT
from tests.faults.calling import RAW
from tests.faults.commands import HOST, Disturbed
from tests.faults.hostile_functions import FUNCTIONS, source
from tests.patience import PATIENCE

pytestmark = pytest.mark.newest

ROUNDS = 2
OFTEN = {"os_exit_0", "fork_and_hang", "replaces_clocks"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [
    name if name in OFTEN else pytest.param(name, marks=pytest.mark.nightly) for name in FUNCTIONS])
def test_hostile_function_costs_no_other_cell_its_values(name, tmp_path):
    hostile = FUNCTIONS[name]
    (tmp_path / "mine.py").write_text(source(name))
    disturbed = Disturbed(tmp_path, (
        "run", "mine:work", "--payload", "20000", "--tasks", "2", "--models", hostile.model, "--workers", "2",
        "--quick", "--rounds", str(ROUNDS), "--timeout", "8s", "--label", "one", *HOST))
    code = disturbed.process.wait(PATIENCE)
    said = disturbed.said()
    assert code in hostile.codes, said
    assert "which is a bug" not in said
    assert "gilscope/toolkit/commands" not in said   # a traceback of ours, not of the function
    assert not RAW.search(said)
    run = load_run(tmp_path / "results" / "one")
    if not hostile.everywhere:
        counts = {each.cell.runner: len(each.observations) for each in run.measurements if not each.cell.twin}
        assert counts["serial"] == ROUNDS
        assert {each.cell.runner for each in run.failures} <= {hostile.model}
    report = subprocess.run([sys.executable, "-m", "gilscope", "report", "one"], cwd=tmp_path, capture_output=True,
                            text=True, check=False, timeout=PATIENCE, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert report.returncode == 0, report.stderr
    assert not RAW.search(report.stdout)
    assert not disturbed.left(), said
    disturbed.temporary.rmdir()
