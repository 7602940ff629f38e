"""Facts about what the project's files do about builds without a GIL: CI, classifiers, images without bytecode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.facts import FREE_THREADING, Codes, Effect, Fact, Kind, PlanStep

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.evaluation import Evaluation

NO_BYTECODE = (
    "sets PYTHONDONTWRITEBYTECODE: without a .pyc, these builds count references to the numbers, tuples and bytes in "
    "the code, and threads that use one of them at the same time slow each other down")
COMPILE = ("run `python -m compileall` when the image is built, or leave PYTHONDONTWRITEBYTECODE unset: constants that "
           "come from a .pyc are not counted")
CLASSIFIER = "Programming Language :: Python :: Free Threading :: 2 - Beta"
CODES = Codes({
    "upkeep.no-bytecode": Kind(Effect.CAUTION),
    "upkeep.ci": Kind(Effect.NOTE, step=PlanStep.CI, state="done"),
    "upkeep.classifier": Kind(Effect.NOTE, step=PlanStep.CLASSIFIER, state="done"),
    "upkeep.no-ci": Kind(Effect.NOTE, step=PlanStep.CI, state="open"),
    "upkeep.no-classifier": Kind(Effect.NOTE, step=PlanStep.CLASSIFIER, state="open"),
})
fact = CODES.fact


def facts(found: Evaluation) -> Iterator[Fact]:
    """Yield the steps for CI and the classifier, and each place where an image is told to have no .pyc."""
    ci, classifier = found.upkeep.ci or found.request.ci_file, found.upkeep.classifier
    if ci:
        yield fact("upkeep.ci", FREE_THREADING, ci, subject="ci")
    else:
        yield fact("upkeep.no-ci", FREE_THREADING, "gilscope evaluate --ci github writes a job", subject="ci")
    if classifier:
        yield fact("upkeep.classifier", FREE_THREADING, classifier, subject="classifier")
    elif not found.upkeep.published:
        yield fact("upkeep.no-classifier", FREE_THREADING, "the project has no metadata that is published",
                   subject="classifier", state="not needed")
    else:
        # It says too much while something is in the way.
        yield fact("upkeep.no-classifier", FREE_THREADING, subject="classifier",
                   text=f"add the classifier '{CLASSIFIER}' once the steps above are done")
    for place in found.upkeep.no_bytecode:
        yield fact("upkeep.no-bytecode", FREE_THREADING, NO_BYTECODE, subject=place, action=f"{place}: {COMPILE}")
