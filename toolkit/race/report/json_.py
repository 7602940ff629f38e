"""A report as JSON and back.

The document: `{"schema": 1, "tool": "gilscope race", "target", "build", "core", "root", "processes", "watched",
"races": [race], "notes": [race], "suppressed": [race], "unused_suppressions": [text], "unexplained_suppressions":
[text], "unrewritten": [[path, reason]], "shared": [shared]}`.

A shared variable (`--shared`): `{"base", "write": frame, "verb", "other": frame, "other_verb", "alike"}`.

A race: `{"ident", "variable", "base", "kind", "severity": "race" | "atomicity violation" | "note", "rule", "count",
"pattern", "missing", "repair", "confirmation", "section", "reason", "first": access, "second": access}`.

An access: `{"thread", "verb", "text", "augmented", "place": frame, "stack": [frame], "started": [frame], "locks":
[{"uid", "name", "taken": frame | null}], "pause": spot, "partner": spot | null}`, with
frame `{"path", "line", "function", "source"}`, spot `{"path", "line", "column", "op", "source"}`; stacks have the
innermost frame first, without the place of the access itself; lines count from 1, columns from 0 in UTF-8 bytes.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.escaping import in_json
from gilscope.toolkit.race.report.model import Access, Frame, Held, Race, RaceReport, Shared, Spot

SCHEMA = 1


def render(report: RaceReport) -> str:
    """Return the report as indented JSON."""
    return in_json(json.dumps(plain(report), indent=2, ensure_ascii=False))


def plain(report: RaceReport) -> dict[str, Any]:
    """Return the document as plain values."""
    return {"schema": SCHEMA, "tool": "gilscope race", **asdict(report)}


def parse(text: str) -> RaceReport:
    """Return the report that `render` made into `text`.

    Raises:
        BadFileError: The text is no such document.
    """
    try:
        document = json.loads(text)
        schema = document.pop("schema")
        if schema != SCHEMA or document.pop("tool") != "gilscope race":
            raise BadFileError(f"this is no race report of schema {SCHEMA}; it says schema {schema!r}")
        for name in ("races", "notes", "suppressed"):
            document[name] = tuple(map(_race, document[name]))
        for name in ("unused_suppressions", "unexplained_suppressions"):
            document[name] = tuple(document[name])
        document["shared"] = tuple(map(_shared, document.get("shared", ())))   # reports of earlier versions have none
        document["unrewritten"] = tuple((path, reason) for path, reason in document["unrewritten"])
        return RaceReport(**document)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadFileError(f"this is no race report: {error!r}; make one with `gilscope race --json`") from error


def _shared(values: dict[str, Any]) -> Shared:
    return Shared(**{**values, "write": Frame(**values["write"]), "other": Frame(**values["other"])})


def _race(values: dict[str, Any]) -> Race:
    return Race(**{**values, "first": _access(values["first"]), "second": _access(values["second"])})


def _access(values: dict[str, Any]) -> Access:
    return Access(**{
        **values,
        "place": Frame(**values["place"]),
        "stack": tuple(Frame(**frame) for frame in values["stack"]),
        "started": tuple(Frame(**frame) for frame in values["started"]),
        "locks": tuple(Held(**{**lock, "taken": Frame(**lock["taken"]) if lock["taken"] else None})
                       for lock in values["locks"]),
        "pause": Spot(**values["pause"]),
        "partner": Spot(**values["partner"]) if values["partner"] else None,
    })
