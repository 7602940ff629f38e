"""An evaluation as values that JSON has; toolkit/report/schemas/evaluate.json describes them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.evaluate.decision import Effort
from gilscope.toolkit.evaluate.evaluation import BuildEvaluation
from gilscope.toolkit.evaluate.facts import Fact
from gilscope.toolkit.evaluate.packages.doctor import BuildReport
from gilscope.toolkit.evaluate.project.discovery import Project
from gilscope.toolkit.evaluate.project.extensions.own_extensions import OwnBuild, OwnExtensions, UnbuiltModule
from gilscope.toolkit.evaluate.sections import Cause, CommandEnding, Missing, RaceFact, Races, cause_of, reason_of
from gilscope.toolkit.evaluate.views import doctor as doctor_document
from gilscope.toolkit.model import Build
from gilscope.toolkit.report.table import judge
from gilscope.toolkit.stats.verdict import Comparison

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gilscope.toolkit.evaluate.evaluation import Evaluation
    from gilscope.toolkit.evaluate.sections import Place

SCHEMA = "gilscope/evaluate/1"
INTERNAL = {"needed", "request", "sections"}   # the facts and the command have what follows from them
IN_FOUND = {"about_requirements", "about_modules", "about_lock_and_tests"}   # `Project.found` has them in their order


def plain(found: Evaluation) -> dict[str, Any]:
    """Return everything that was found; a section that is missing is {"missing": reason, "cause": code}."""
    fields = {name: value for name, value in _fields(found).items() if name not in INTERNAL}
    return {"schema": SCHEMA, "tool": "gilscope evaluate", "command": found.request.command(), **fields}


def _plain(value: Any) -> Any:  # noqa: C901, PLR0911, PLR0912 - one form per kind of value
    match value:
        case Missing():
            return {"missing": value.reason, "cause": value.cause.value}
        case CommandEnding():
            return str(value)
        case Fact():
            return _fact(value)
        case BuildEvaluation():
            return _fields(value) | {"failure": str(value.failure or "")}
        case OwnBuild():
            return _own_build(value)
        case RaceFact():
            return _fields(value) | {"places": _texts(value.places)}
        case Effort():
            return _fields(value) | {"places": _texts(value.places), "beside": _texts(value.beside)}
        case OwnExtensions():
            return _fields(value) | {"limited": _texts(value.limited)}
        case UnbuiltModule():
            return _fields(value) | {"place": str(value.place or "")}
        case Races():
            return _fields(value) | {"lacking": [[of, each.reason] for of, each in value.lacking]}
        case BuildReport():
            (report,) = doctor_document.plain([value])["builds"]
            return _plain(report)
        case Project():
            fields = {name: each for name, each in _fields(value).items() if name not in IN_FOUND}
            return fields | {"found": list(value.found)}
        case Build():
            return {"label": value.label, "version": value.version, "free_threaded": value.free_threaded}
        case Comparison():
            return {"ratio": value.ratio, "lo": value.lo, "hi": value.hi, "verdict": judge(value)}
        case Path():
            return str(value)
        case dict():
            return {str(key): _plain(each) for key, each in value.items()}
        case tuple() | list():
            return [_plain(each) for each in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return _fields(value)
        case _:
            return value


def _own_build(own: OwnBuild) -> dict[str, Any]:
    return {
        "build": own.build, "report": _plain(own.report), "failure": reason_of(own.failure),
        "cause": (cause_of(own.failure) or Cause.OTHER).value, "output": own.output, "elsewhere": own.elsewhere,
        "unbuilt": _plain(own.unbuilt), "names_limited_api": own.names_limited_api}


def _fact(fact: Fact) -> dict[str, Any]:
    return {
        "code": fact.code, "target": fact.target, "effect": fact.effect.value, "subject": fact.subject,
        "text": fact.text, "evidence": fact.evidence, "places": _texts(fact.places),
        "step": fact.step.value if fact.step else None, "action": fact.action, "owner": fact.owner,
        "provisional": fact.provisional}


def _texts(places: Iterable[Place]) -> list[str]:
    return [*map(str, places)]


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
