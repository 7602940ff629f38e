"""A race report as JSON; toolkit/report/schemas/race.json describes it."""

from __future__ import annotations

import json
from typing import Any

from gilscope.toolkit.bounded_reading import parse_json
from gilscope.toolkit.escaping import in_json
from gilscope.toolkit.race.report.model import RaceReport
from gilscope.toolkit.records import DamagedError, from_plain, shown, to_plain

SCHEMA = "gilscope/race/5"
TOOL = "gilscope race"


def render(report: RaceReport) -> str:
    """Return the report as indented JSON."""
    return in_json(json.dumps(plain(report), indent=2, ensure_ascii=False))


def plain(report: RaceReport) -> dict[str, Any]:
    """Return the document as plain values."""
    return {"schema": SCHEMA, "tool": TOOL, **to_plain(report)}


def read(text: str) -> RaceReport:
    """Return the report that `render` wrote.

    Raises:
        ValueError: `text` is no JSON; a `DamagedError` names the field that does not fit.
    """
    document = parse_json(text)
    if not isinstance(document, dict):
        raise DamagedError(f"it is {shown(document)}, not an object")
    for name, wanted in (("schema", SCHEMA), ("tool", TOOL)):
        if document.get(name) != wanted:
            raise DamagedError(f"{name} is {shown(document.get(name))}, not {wanted}")
    return from_plain(RaceReport, {name: each for name, each in document.items() if name not in {"schema", "tool"}})
