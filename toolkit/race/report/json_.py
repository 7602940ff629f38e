"""A race report as JSON; toolkit/report/schemas/race.json describes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.escaping import in_json
from gilscope.toolkit.records import to_plain

if TYPE_CHECKING:
    from gilscope.toolkit.race.report.model import RaceReport

SCHEMA = 1
TOOL = "gilscope race"


def render(report: RaceReport) -> str:
    """Return the report as indented JSON."""
    return in_json(json.dumps(plain(report), indent=2, ensure_ascii=False))


def plain(report: RaceReport) -> dict[str, Any]:
    """Return the document as plain values."""
    return {"schema": SCHEMA, "tool": TOOL, **to_plain(report)}
