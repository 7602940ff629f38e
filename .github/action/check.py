"""The check: run the mode, and tell the runner what it found."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import compare
import modes
from findings import annotation, code, unlinked
from inputs import FINDINGS, INCONCLUSIVE, read_inputs
from outcome import CLEAN, FAILED, ModeOutcome
from runner_files import add_summary, set_output

from gilscope.toolkit.escaping import in_command, message

if TYPE_CHECKING:
    from inputs import ActionInputs

RUN = {"race": modes.race, "guard": modes.guard, "doctor": modes.doctor, "dist": modes.dist, "compare": compare.compare}
MARKS = {CLEAN: "✅", FINDINGS: "❌", INCONCLUSIVE: "INCONCLUSIVE:", FAILED: "❌"}


def check() -> int:
    """Run the mode, and set the outputs; `status` is what the job ends with.  Return 0, so that a comment follows."""
    inputs = read_inputs()
    folder = Path(os.environ["FOLDER"])
    outcome = RUN[inputs.mode](inputs, folder)
    for finding in outcome.findings:
        print(annotation(finding))
    for level, text in (("error", outcome.problem), ("warning", outcome.unknown)):
        if text:
            print(f"::{level} title=gilscope {inputs.mode}::{in_command(message(text))}")
    summary = folder / "summary.md"
    summary.write_text(markdown(inputs, outcome), encoding="utf-8")
    add_summary(summary.read_text(encoding="utf-8"))
    sarif = folder / f"{inputs.mode}.sarif"
    if outcome.sarif is not None:
        sarif.write_text(json.dumps(outcome.sarif, indent=2), encoding="utf-8")
    outputs = {
        "result": outcome.result, "findings": str(outcome.count), "status": str(outcome.exit_status(inputs.fail_on)),
        "report": str(outcome.report or ""), "sarif": "" if outcome.sarif is None else str(sarif),
        "summary": str(summary)}
    for name, value in outputs.items():
        set_output(name, value)
    (folder / "outcome.json").write_text(json.dumps(outputs), encoding="utf-8")   # for the comment
    return 0


def markdown(inputs: ActionInputs, outcome: ModeOutcome) -> str:
    """Return the outcome in Markdown, for the job summary and the comment."""
    name = f" ({unlinked(inputs.name)})" if inputs.name else ""
    parts = [f"### {MARKS[outcome.result]} gilscope {inputs.mode}{name}: {outcome.headline}\n"]
    parts += [f"{words}{unlinked(text)}.\n" for words, text in (
        ("Failed: ", outcome.problem), ("Inconclusive: ", outcome.unknown)) if text]
    parts.append(re.sub("^#{1,3} ", "#### ", outcome.detail, flags=re.MULTILINE))   # below the headline
    place = "" if inputs.place == "." else f" in {code(inputs.place)}"
    version = sys.version.split()[0] + ("" if getattr(sys, "_is_gil_enabled", lambda: True)() else ", without the GIL")
    parts.append(f"\n<sub>{inputs.mode} {code(shlex.join(inputs.arguments))}{place}, Python {version}</sub>\n")
    return "\n".join(filter(None, parts))
