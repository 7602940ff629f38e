"""A report as SARIF 2.1.0, for code scanning: one rule per kind, both stacks as code flows.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", sections 3.14 to 3.52.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from gilscope import __version__
from gilscope.toolkit.escaping import in_json, in_sarif_message, in_url, visible_all
from gilscope.toolkit.race.report.sentences import limits
from gilscope.toolkit.race.report.settings import relative
from gilscope.toolkit.race.report.text import shown
from gilscope.toolkit.race.terms import RaceKind, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.race.report.model import Access, Frame, Race, RaceReport

Json = dict[str, Any]
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
BASE = "SRCROOT"      # what relative paths are relative to
RULES = {
    RaceKind.LOST_UPDATE: (
        "lost-update", "A write depends on an earlier read, and a write of another thread in between is lost."),
    RaceKind.CHECK_THEN_ACT: ("check-then-act", "What was checked may no longer hold when the act is done."),
    RaceKind.TORN_WRITE: (
        "torn-multi-step-write", "A write takes several steps, and another thread can see or leave a mixture."),
    RaceKind.ITERATION: ("iteration-during-change", "A container is changed while another thread iterates over it."),
    RaceKind.UNSYNCHRONISED: ("unsynchronised-access", "A read and a write, or two writes, that nothing orders."),
}
LEVELS = {Severity.RACE: "error", Severity.VIOLATION: "warning", Severity.NOTE: "note"}


def render(report: RaceReport, *, notes: bool = False) -> str:
    """Return the report as a SARIF log with one run; suppressed races are in it as suppressed results."""
    races = [*report.races, *(report.notes if notes else ()), *report.suppressed]
    run: Json = {
        "tool": {"driver": {
            "name": "gilscope race", "semanticVersion": __version__, "rules": [_rule(kind) for kind in RULES],
        }},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {BASE: {"description": {"text": "The folder that the program was started in."}}},
        "results": [_result(race, report.root) for race in races],
    }
    if notifications := list(_notifications(report)):
        run["invocations"] = [{"executionSuccessful": report.is_complete, "toolExecutionNotifications": notifications}]
    # The places are URLs by now, so they still lead to the files.
    log = visible_all({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, shown)
    return in_json(json.dumps(log, indent=2, ensure_ascii=False))


def _rule(kind: RaceKind) -> Json:
    ident, text = RULES[kind]
    return {"id": ident, "name": "".join(word.title() for word in ident.split("-")),
            "shortDescription": {"text": kind}, "fullDescription": {"text": text},
            "defaultConfiguration": {"level": "error"}}


def _result(race: Race, root: str) -> Json:
    ident = RULES[race.kind][0]
    confirmed = f" ({race.confirmation})" if race.confirmation else ""
    text = f"{race.kind} on {race.variable}{confirmed}. {race.pattern}"
    if race.severity != Severity.NOTE:
        text += f" {race.missing} {race.repair}"
    sides = (race.second, race.first)
    result: Json = {
        "ruleId": ident, "ruleIndex": list(RULES).index(race.kind), "level": LEVELS[race.severity],
        "message": _message(text),
        "locations": [_location(race.second.place, root, _said(race.second))],
        "relatedLocations": [{"id": 1, **_location(race.first.place, root, _said(race.first))}],
        "codeFlows": [{"message": _message(side.thread), "threadFlows": [_flow(side, root)]} for side in sides],
        "occurrenceCount": race.count,
        "partialFingerprints": {"gilscopeRace/v1": race.ident},
    }
    if race.reason is not None:
        result["suppressions"] = [{"kind": "inSource", "justification": race.reason}]
    return result


def _said(side: Access) -> str:
    held = ", ".join(lock.name for lock in side.locks) or "nothing"
    return f"{side.verb} by {side.thread}, holding {held}"


def _flow(side: Access, root: str) -> Json:
    """Return a thread's way to its access, the outermost frame first, from where it was started."""
    steps = [(frame, f"{side.thread} is started in {frame.function}") for frame in side.started[:1]]
    steps += [(frame, f"in {frame.function}") for frame in reversed(side.stack)]
    steps.append((side.place, _said(side)))
    return {"id": side.thread, "locations": [{"location": _location(frame, root, text)} for frame, text in steps]}


def _location(frame: Frame, root: str, text: str) -> Json:
    region: Json = {"startLine": max(1, frame.line)}
    if frame.source:
        region["snippet"] = {"text": frame.source}
    return {
        "physicalLocation": {"artifactLocation": _artifact(frame.path, root), "region": region},
        "logicalLocations": [{"fullyQualifiedName": frame.function, "kind": "function"}],
        "message": _message(text),
    }


def _artifact(path: str, root: str) -> Json:
    place = relative(path, root)
    if os.path.isabs(place):
        return {"uri": "file://" + in_url(place)}
    return {"uri": in_url(place), "uriBaseId": BASE}


def _message(text: str) -> Json:
    return {"text": in_sarif_message(text)}


def _notifications(report: RaceReport) -> Iterator[Json]:
    """Yield a warning for each module that ran unchecked, and an error for each limit of the check."""
    for path, reason in report.unrewritten:
        yield {"level": "warning", "message": _message(f"not watched: {reason}"),
               "locations": [{"physicalLocation": {"artifactLocation": _artifact(path, report.root)}}]}
    for sentence in limits(report):
        yield {"level": "error", "message": _message(sentence)}
