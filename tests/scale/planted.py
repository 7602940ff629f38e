"""The programs in tests/corpus/scaling with the truth about each, and what gilscope's answer is worth beside it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.scale.investigation import investigate
from gilscope.toolkit.scale.judgement import Obstacle, ScalingVerdict
from gilscope.toolkit.scale.throughput import FAR
from gilscope.toolkit.scale.zygote_process import ZygoteProcess

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.scale.investigation import ScalingInvestigation

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


@dataclass(slots=True)
class ChildCounts:
    """The forks of some investigations, and what the sampler's passes over all objects cost in them."""

    forks: int = 0
    passes: list[tuple[int, float]] = field(default_factory=list)      # objects, and seconds of a pass


class CountedZygote(ZygoteProcess):
    """Counts the forks that its requests start."""

    def __init__(self, python: str, paths: Sequence[Path], counts: ChildCounts) -> None:
        self._counts = counts
        super().__init__(python, paths)

    def _ask(self, **request: Any) -> Any:
        forks = {"load": 2, "measure": request["threads"] if request.get("processes") else 1}.get(request["do"], 1)
        self._counts.forks += forks
        answer = super()._ask(**request)
        sampled = answer["sampled"] if request["do"] == "measure" else None
        if sampled is not None and request["watched"] is None and sampled["passes"]:
            self._counts.passes.append((sampled["objects"], sampled["spent"] / 1e9 / sampled["passes"]))
        return answer


def investigated(
    program: PlantedProgram, python: str, threads: int = 2, counts: ChildCounts | None = None,
) -> ScalingInvestigation:
    with CountedZygote(python, [CORPUS], ChildCounts() if counts is None else counts) as process:
        loaded = process.load(program.function, f"{program.name}:payloads" if program.payloads else None, None, threads)
        return investigate(process, loaded, threads)


def score(program: PlantedProgram, found: ScalingInvestigation) -> str:
    """Return RIGHT, UNSURE or WRONG for an answer, or CURED if the build cures its cause, so that it scales."""
    judgement = found.judgement
    if judgement.verdict is ScalingVerdict.UNSURE:
        return UNSURE
    if judgement.verdict is ScalingVerdict.SCALES:
        return RIGHT if judgement.obstacle.value in program.obstacles else CURED
    names = [each.name for each in (*found.objects, *found.also)]
    if any(not any(re.fullmatch(pattern, name) for pattern in program.objects) for name in names):
        return WRONG
    if judgement.obstacle is Obstacle.UNKNOWN or judgement.doubt is not None:
        return WRONG if program.clean else UNSURE
    return RIGHT if judgement.obstacle.value in program.obstacles else WRONG


class Agreement(StrEnum):
    """How two answers about the same program and build go together; no order."""

    SAME = "the same verdict, obstacle and names"
    SLOWER = "the same, but once slower than one thread"
    FEWER = "the same obstacle, one with a part of the other's names"
    NAMES = "the same obstacle, other names"
    OPEN = "one or both unsure"
    MOVED = "another verdict or obstacle, and CPUs at another distance"
    CONTRADICTION = "CONTRADICTION"


def agreement(one: ScalingInvestigation, two: ScalingInvestigation) -> Agreement:
    """Return how the answers go together: an unsure one contradicts none."""
    if any(each.judgement.verdict is ScalingVerdict.UNSURE or each.judgement.obstacle is Obstacle.UNKNOWN
           or each.judgement.doubt is not None for each in (one, two)):
        return Agreement.OPEN
    if one.judgement.obstacle is not two.judgement.obstacle:
        apart = [each.handoff.median for each in (one, two) if each.handoff]
        return Agreement.MOVED if len(apart) == 2 and max(apart) > FAR * min(apart) else Agreement.CONTRADICTION
    names, others = ({each.name for each in answer.objects} for answer in (one, two))
    if names != others:
        return Agreement.FEWER if names < others or others < names else Agreement.NAMES
    return Agreement.SAME if one.judgement.verdict is two.judgement.verdict else Agreement.SLOWER
