"""Projects that look as if they could move, most of which must not: evaluated for real, judged by what is known.

`tests/corpus/planted/truth.toml` says what its words mean.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from gilscope.toolkit.builds.find import find_builds, select_builds
from gilscope.toolkit.evaluate import shared_sections
from gilscope.toolkit.evaluate.decision import Decision
from gilscope.toolkit.evaluate.pipeline import Evaluator
from gilscope.toolkit.evaluate.project.cost_and_gain import CostsAndGains, OtherModel
from gilscope.toolkit.evaluate.project.workload.rounds import OTHER_MODELS
from gilscope.toolkit.evaluate.request import EvaluationRequest
from gilscope.toolkit.evaluate.sections import BuildSpeed
from gilscope.toolkit.evaluate.views.json_document import plain
from gilscope.toolkit.evaluate.views.screen import document
from gilscope.toolkit.report.terminal import render
from tests.conformance.builds import ROOT
from tests.evaluate import made_up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from gilscope.toolkit.model import Build

FOLDER = ROOT / "tests" / "corpus" / "planted"
GOOD = ("READY", "READY-WITH-COST")
MOVES = (Decision.MOVE, Decision.CAN)
# Codes of facts that say a clean project is not clean.
ALARMS = {"race.confirmed", "race.unconfirmed", "code.not-watched", "workload.other-work-in-threads"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What is known of one project; see truth.toml."""

    name: str
    planted: str
    never: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    no_gain: bool = False
    measured: bool = False   # it shows in measured rounds alone
    clean: bool = False
    script: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What an evaluation said of one model."""

    model: str           # "threads", "subinterpreters", "processes"
    word: str
    confidence: str
    reasons: tuple[str, ...]
    alarms: tuple[str, ...] = ()   # texts of facts that say something is wrong with the project


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationOutcome:
    """The outcome of an evaluation."""

    decision: str        # "" if none was made
    because: str
    verdicts: tuple[Verdict, ...]
    output: str

    def word(self, model: str) -> str:
        """Return the verdict on a model, "-" where there is none."""
        return next((each.word for each in self.verdicts if each.model == model), "-")


def truths() -> dict[str, Truth]:
    """Return what is known of each project, by its name."""
    told = tomllib.loads((FOLDER / "truth.toml").read_text())
    return {name: Truth(name=name, **{key: tuple(value) if isinstance(value, list) else value
                                      for key, value in each.items()}) for name, each in told.items()}


def evaluated(truth: Truth, folder: Path, builds: Sequence[str], free: str, *options: str) -> EvaluationOutcome:
    """Evaluate a copy of a project in `folder`, on the build labelled `free`.

    Args:
        truth: Of which project.
        folder: For the copy, and where the command is run.
        builds: "LABEL=PATH" of each, as far as gilscope does not find them.
        free: The label of the build without a GIL.
        options: More of `gilscope evaluate`.
    """
    copy, report = folder / truth.name, folder / f"{truth.name}.json"
    shutil.copytree(FOLDER / truth.name, copy, ignore=shutil.ignore_patterns("__pycache__"))
    named = [word for each in builds for word in ("--build", each)]
    command = [sys.executable, "-m", "gilscope", "evaluate", truth.name, "--workload", truth.script or "load:work",
               "--builds", free, *named, "--json", report.name, "--fresh", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return told_by(json.loads(report.read_text()) if report.exists() else {}, done.stdout + done.stderr)


def evaluated_as_if_fast(
    truth: Truth, folder: Path, builds: Sequence[str], free: str, *, budget: float, say: Callable[[str], None],
) -> EvaluationOutcome:
    """Evaluate as `evaluated` does, but for the rounds: each model is taken to cost nothing and to gain.

    What a busy machine would leave open hides no false word so, and takes no time.
    """
    copy = folder / truth.name
    shutil.copytree(FOLDER / truth.name, copy, ignore=shutil.ignore_patterns("__pycache__"))
    at_hand = find_builds(builds)
    workload = str(copy / truth.script) if truth.script else "load:work"
    asked = EvaluationRequest(path=copy, workload=workload, budget=budget)
    with patch.object(shared_sections, "CostAndGainMeasurer", _Fast):
        done = Evaluator(asked, select_builds(at_hand, free), at_hand.builds, say).run()
    return told_by(plain(done), render(document(done)))


class _Fast:
    """Stands in for the rounds."""

    def __init__(
        self, _project: object, _workload: object, builds: Sequence[Build], counterparts: Mapping[str, str],
        **_others: object,
    ) -> None:
        self._builds = builds
        self._counterparts = counterparts

    def compare(self, *_places: object) -> CostsAndGains:
        """Return that one thread costs nothing, and two are nearly twice as fast, in each model."""
        fine = made_up.found(gain=made_up.gain({2: made_up.ratio(1.8)}))
        speed = BuildSpeed(cost=fine.cost, gain=fine.gain, contention=fine.contention)
        others = {(model, build.label): OtherModel(measured=made_up.ratio(1.8), failure="") for build in self._builds
                  for model in OTHER_MODELS}
        return CostsAndGains(machine=made_up.QUIET, others=others, models_compared=True,
                             speed=dict.fromkeys(self._counterparts, speed))


def told_by(values: dict[str, Any], output: str) -> EvaluationOutcome:
    """Return what a report in JSON says, with what the command printed."""
    answer = values.get("answer") or {}
    facts = [fact for fact in values.get("facts", ()) if fact["code"] in ALARMS]
    verdicts = tuple(Verdict(model=_model(each["target"]), word=each["word"], confidence=each["confidence"],
                             reasons=tuple(each["reasons"]), alarms=tuple(fact["text"] for fact in facts))
                     for each in values.get("conclusions", ()))
    return EvaluationOutcome(decision=answer.get("decision", ""), because=answer.get("because", ""), verdicts=verdicts,
                output=output)


def _model(target: str) -> str:
    model, on, _ = target.partition(" on ")
    return model if on else "threads"


def falsely_good(truth: Truth, told: EvaluationOutcome) -> Iterator[str]:
    """Yield each word that is falsely good."""
    for each in told.verdicts:
        if each.word in GOOD and each.model in truth.never:
            yield f"{each.model} are {each.word}"
        if each.word in GOOD and each.model in truth.unsure and each.confidence == "high":
            yield f"{each.model} are {each.word} with high confidence"
    if ("threads" in truth.never and told.decision in MOVES) or (truth.no_gain and told.decision == Decision.MOVE):
        yield f'"{told.decision}"'


def falsely_bad(truth: Truth, told: EvaluationOutcome) -> Iterator[str]:
    """Yield each word against a project with which nothing is wrong."""
    for each in told.verdicts if truth.clean else ():
        if each.model == "threads" and (each.word == "BLOCKED" or each.alarms):
            yield f"threads are {each.word}: {(each.alarms or each.reasons)[0]}"
