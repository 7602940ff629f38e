"""The programs in tests/corpus/scaling with the truth about each, and what gilscope's answer is worth beside it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.scale.investigation import investigate
from gilscope.toolkit.scale.judgement import Obstacle, ScalingVerdict
from gilscope.toolkit.scale.zygote_process import ZygoteProcess
from tests.conformance.builds import builds

if TYPE_CHECKING:
    from gilscope.toolkit.scale.investigation import ScalingInvestigation

FREE = {label: path for label, path in builds().items() if label.rstrip("d")[-2:] in {"3t", "4t", "5t"}}
CORPUS = Path(__file__).parents[1] / "corpus" / "scaling"
RIGHT, UNSURE, WRONG, CURED = "right", "unsure", "WRONG", "scales"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedProgram:
    """A program, written before the rules were tuned, and its truth."""

    name: str
    obstacles: tuple[str, ...]      # any of these is right
    objects: tuple[str, ...]        # patterns; each named object must match one
    payloads: bool

    @property
    def function(self) -> str:
        return f"{self.name}:f"

    @property
    def clean(self) -> bool:
        """True if there is nothing to blame."""
        return self.obstacles == (Obstacle.NONE.value,)


def programs() -> dict[str, PlantedProgram]:
    truth = json.loads((CORPUS / "truth.json").read_text(encoding="utf-8"))
    return {name: PlantedProgram(name=name, obstacles=tuple(each["obstacles"]), objects=tuple(each["objects"]),
                                 payloads=each.get("payloads", False)) for name, each in truth.items()}


def investigated(program: PlantedProgram, python: str, threads: int = 2) -> ScalingInvestigation:
    with ZygoteProcess(python, [CORPUS]) as process:
        loaded = process.load(program.function, f"{program.name}:payloads" if program.payloads else None, None, threads)
        return investigate(process, loaded, threads)


def score(program: PlantedProgram, found: ScalingInvestigation) -> str:
    """Return RIGHT, UNSURE or WRONG for an answer, or CURED if the build cures its cause, so that it scales."""
    judgement = found.judgement
    if judgement.verdict is ScalingVerdict.UNSURE:
        return UNSURE
    if judgement.verdict is ScalingVerdict.SCALES:
        return RIGHT if Obstacle.NONE.value in program.obstacles else CURED
    names = [each.name for each in (*found.objects, *found.also)]
    if any(not any(re.fullmatch(pattern, name) for pattern in program.objects) for name in names):
        return WRONG
    if judgement.obstacle is Obstacle.UNKNOWN or judgement.doubt is not None:
        return WRONG if program.clean else UNSURE
    return RIGHT if judgement.obstacle.value in program.obstacles else WRONG
