"""An evaluation as values that JSON has."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.evaluate.packages.doctor import BuildReport
from gilscope.toolkit.evaluate.report import doctor as doctor_document
from gilscope.toolkit.evaluate.sections import Missing
from gilscope.toolkit.model import Build
from gilscope.toolkit.stats.words import Comparison

if TYPE_CHECKING:
    from gilscope.toolkit.evaluate.evaluation import Evaluation

SCHEMA = 1


def plain(found: Evaluation) -> dict[str, Any]:
    """Return everything that was found; a section that could not be had is {"missing": reason}."""
    fields = {field.name: _plain(getattr(found, field.name)) for field in dataclasses.fields(found)}
    return {"schema": SCHEMA, "tool": "gilscope evaluate", **fields}


def _plain(value: Any) -> Any:  # noqa: PLR0911 - one form per kind of value
    match value:
        case Missing():
            return {"missing": value.reason}
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
            return {str(key): _plain(each) for key, each in value.items()}
        case tuple() | list():
            return [_plain(each) for each in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        case _:
            return value
