"""The measured process of a program: one cell, one round, in which it takes one value, or one in each of its turns.

Started as `python -c "from gilscope.toolkit.measure.program.child import main; main()" SPEC [LINE]` in the measured
build; LINE is the descriptor by which it is told when to take a value.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.measure.cell.turns import InTurn
from gilscope.toolkit.measure.machine.other_load import is_starved
from gilscope.toolkit.measure.process.child_base import answered, gil_enabled, refuse_wrong_gil, take_values
from gilscope.toolkit.measure.program.interface import Trial, TrialSpec

if TYPE_CHECKING:
    from gilscope.toolkit.measure.program.interface import Taken


def main() -> None:
    """Measure the cell in `sys.argv[1]` and leave the answer in its folder."""
    spec = TrialSpec(**json.loads(sys.argv[1]))
    turns = InTurn(spec, int(sys.argv[2])) if len(sys.argv) > 2 else None  # noqa: PLR2004 - see above
    answered(spec, lambda: _measure(spec, turns))


def _measure(spec: TrialSpec, turns: InTurn | None) -> dict[str, Any]:
    gil_start = gil_enabled()
    trial = Trial(spec, turns)
    # Before any thread of the program runs: an import turns the GIL on for all that follows.
    program = importlib.import_module(spec.program)
    found: Taken | list[Taken] = program.measure(trial)
    values = found if isinstance(found, list) else [found]
    taken = values[-1]
    gil_end = gil_enabled()
    refuse_wrong_gil(spec.model, spec.gil, gil_end)
    evidence = dict(trial.evidence)
    evidence.pop("own_cores", None)
    # pyperf is imported now, so that its memory and its threads are not the program's.
    if spec.suite:
        take_values(spec, lambda _loops: taken.seconds, loops=1)
    return {
        "kind": "measured",
        "seconds": taken.seconds,
        "cpu": [] if taken.cpu is None else [taken.cpu],
        "values": [{"seconds": each.seconds, "cpu": each.cpu, "metrics": each.metrics} for each in values],
        "loops": 1,
        "evidence": evidence,
        "starved": is_starved(taken.wanted_cores, evidence.get("others_cores"), trial.cores, trial.allowed),
        "gil_start": gil_start,
        "gil_end": gil_end,
        "metrics": {name: value for name, value in taken.metrics.items() if value != ""},  # pyperf takes no empty text
        "files": taken.files,
        "metadata": {"gilscope_switch_interval": sys.getswitchinterval(), "gilscope_cores": trial.cores},
    }
