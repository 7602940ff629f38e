"""Golden reports of experiments.  After an intended change run GILSCOPE_GOLDEN=write pytest and read the diff."""

import os
from pathlib import Path

from gilscope.toolkit.report.document import Document, Lines
from gilscope.toolkit.report.terminal import render

GOLDEN = Path(__file__).parents[1] / "golden"


def check_golden(name, experiment, results):
    """Compare tables and sentences of a run with the file `name`."""
    found = Document((*experiment.sections(results), Lines("Now", experiment.findings(results))))
    text = render(found, width=120) + "\n"
    path = GOLDEN / name
    if os.environ.get("GILSCOPE_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
