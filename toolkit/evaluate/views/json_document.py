"""An evaluation as values that JSON has; toolkit/report/schemas/evaluate.json describes what scripts may rely on.

Each promised field is written here by its name, so that renaming a field of a dataclass changes no document.  Under
`details` are the dataclasses of all sections as they are; nothing of gilscope reads them.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope import __version__
from gilscope.toolkit.evaluate.packages.doctor import BuildReport
from gilscope.toolkit.evaluate.sections import Missing
from gilscope.toolkit.evaluate.views import doctor as doctor_document
from gilscope.toolkit.model import Build
from gilscope.toolkit.stats.verdict import Comparison

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gilscope.toolkit.evaluate.decision import Answer, Blocker, Effort, Gained, Paid, Step
    from gilscope.toolkit.evaluate.evaluation import Conclusion, Evaluation
    from gilscope.toolkit.evaluate.facts import Fact
    from gilscope.toolkit.evaluate.sections import Memory, Place

SCHEMA = "gilscope/evaluate/3"
PROMISED = {"facts", "conclusions", "answer", "plan", "next_steps"}
INTERNAL = {"named", "needed", "request"}   # sources, facts and the command have what follows from them


def plain(found: Evaluation) -> dict[str, Any]:
    """Return the fields that scripts may rely on, and all sections under `details`."""
    return {
        "schema": SCHEMA, "tool": "gilscope evaluate", "gilscope": __version__, "command": found.request.command(),
        "answer": _answer(found.answer) if found.answer else None,
        "conclusions": [*map(_conclusion, found.conclusions)],
        "facts": [*map(_fact, found.facts)],
        "plan": [*map(_step, found.plan)],
        "next_steps": list(found.next_steps),
        "details": {field.name: _plain(getattr(found, field.name)) for field in dataclasses.fields(found)
                    if field.name not in PROMISED | INTERNAL}}


def _fact(fact: Fact) -> dict[str, Any]:
    return {
        "code": fact.code, "target": fact.target, "effect": fact.effect.value, "subject": fact.subject,
        "text": fact.text, "evidence": fact.evidence, "places": _lines(fact.places),
        "step": fact.step.key if fact.step else None, "action": fact.action, "owner": fact.owner,
        "provisional": fact.provisional}


def _conclusion(conclusion: Conclusion) -> dict[str, Any]:
    return {
        "target": conclusion.target, "word": conclusion.word.value, "confidence": conclusion.confidence,
        "reasons": list(conclusion.reasons), "unexercised": list(conclusion.unexercised)}


def _answer(answer: Answer) -> dict[str, Any]:
    gain, cost = answer.gain, answer.cost
    return {
        "decision": answer.decision.value, "target": answer.target, "because": answer.because,
        "gain": _missing(gain) if isinstance(gain, Missing) else _gained(gain),
        "cost": _missing(cost) if isinstance(cost, Missing) else _paid(cost),
        "blockers": [*map(_blocker, answer.blockers)], "effort": _effort(answer.effort),
        "instead": list(answer.instead), "more": answer.more, "failing": answer.failing}


def _missing(missing: Missing) -> dict[str, Any]:
    return {"missing": missing.reason, "cause": missing.cause.value}


def _gained(gain: Gained) -> dict[str, Any]:
    return {
        "how": gain.how, "ratio": gain.ratio, "lo": gain.lo, "hi": gain.hi, "threads": gain.threads,
        "against": gain.against, "today": gain.today, "busiest": gain.busiest}


def _paid(cost: Paid) -> dict[str, Any]:
    return {
        "times": cost.times, "lo": cost.lo, "hi": cost.hi, "against": cost.against, "by": cost.by, "busy": cost.busy,
        "memory": _memory(cost.memory) if cost.memory else None, "forced": cost.forced, "of": cost.of}


def _memory(memory: Memory) -> dict[str, Any]:
    return {"here": memory.here, "there": memory.there, "process": memory.process}


def _blocker(blocker: Blocker) -> dict[str, Any]:
    return {
        "what": blocker.what, "who": blocker.who, "action": blocker.action, "package": blocker.package,
        "mend": blocker.mend}


def _effort(effort: Effort) -> dict[str, Any]:
    return {
        "files": list(effort.files), "places": _lines(effort.places), "packages": list(effort.packages),
        "unknown": effort.unknown, "beside": _lines(effort.beside)}


def _step(step: Step) -> dict[str, Any]:
    return {"key": step.key, "name": step.name, "state": step.state, "says": step.says}


def _lines(places: Iterable[Place]) -> list[str]:
    """Return "file:line" of each place."""
    return [*map(str, places)]


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}


def _plain(value: Any) -> Any:  # noqa: PLR0911 - one form per kind of value
    """Return a detail as values that JSON has."""
    match value:
        case Missing():
            return _missing(value)
        case BuildReport():
            (report,) = doctor_document.plain([value])["builds"]
            return _plain(report)
        case Build():
            return {"label": value.label, "version": value.version, "free_threaded": value.free_threaded}
        case Comparison():
            return {"ratio": value.ratio, "lo": value.lo, "hi": value.hi, "verdict": value.verdict()}
        case Path():
            return str(value)
        case dict():
            return {" on ".join(key) if isinstance(key, tuple) else str(key): _plain(each)
                    for key, each in value.items()}
        case tuple() | list():
            return [_plain(each) for each in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return _fields(value)
        case _:
            return value
