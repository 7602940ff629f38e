"""Facts about what the project's files do about builds without a GIL: CI, classifiers, images without bytecode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.facts import FREE_THREADING, Effect, Fact, PlanStep

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.decision import State
    from gilscope.toolkit.evaluate.evaluation import Evaluation

NO_BYTECODE = (
    "sets PYTHONDONTWRITEBYTECODE: without a .pyc, these builds count references to the numbers, tuples and bytes in "
    "the code, and threads that use one of them at the same time slow each other down")
COMPILE = ("run `python -m compileall` when the image is built, or leave PYTHONDONTWRITEBYTECODE unset: constants that "
           "come from a .pyc are not counted")
CLASSIFIER = "Programming Language :: Python :: Free Threading :: 2 - Beta"


def facts(found: Evaluation) -> Iterator[Fact]:
    """Yield the steps for CI and the classifier, and each place where an image is told to have no .pyc."""
    ci, classifier = found.upkeep.ci or found.request.ci_file, found.upkeep.classifier
    yield _step(PlanStep.CI, "ci", "done" if ci else "open", ci or "gilscope evaluate --ci github writes a job")
    if classifier:
        yield _step(PlanStep.CLASSIFIER, "classifier", "done", classifier)
    elif not found.upkeep.published:
        yield _step(PlanStep.CLASSIFIER, "classifier", "not needed", "the project has no metadata that is published")
    else:
        # It says too much while something is in the way.
        yield _step(PlanStep.CLASSIFIER, "classifier", "open",
                    f"add the classifier '{CLASSIFIER}' once the steps above are done")
    for place in found.upkeep.no_bytecode:
        yield Fact(code="upkeep.no-bytecode", target=FREE_THREADING, effect=Effect.CAUTION, subject=place,
                   text=NO_BYTECODE, action=f"{place}: {COMPILE}")


def _step(step: PlanStep, what: str, state: State, text: str) -> Fact:
    code = f"upkeep.{what}" if state == "done" else f"upkeep.no-{what}"
    return Fact(code=code, target=FREE_THREADING, effect=Effect.NOTE, subject=what, text=text, step=step, state=state)
