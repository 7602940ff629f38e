"""Findings of a check, as annotations beside the lines, as Markdown and as SARIF.  Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.escaping import (
    in_command,
    in_command_property,
    in_markdown,
    in_sarif_message,
    in_url,
    message,
    visible,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_LISTED = 50   # of the findings in the Markdown
SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLine:
    """A line of a file of the checkout."""

    path: str   # as seen from the checkout
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionFinding:
    """One thing that a check found."""

    rule: str                          # stable
    title: str                         # some words
    text: str                          # for people
    place: SourceLine | None = None


def annotation(finding: ActionFinding) -> str:
    """Return the workflow command that shows a finding, beside its line if there is one."""
    properties = {"title": visible(finding.title)}
    if finding.place:
        properties |= {"file": visible(finding.place.path), "line": str(finding.place.line)}
    written = ",".join(f"{name}={in_command_property(value)}" for name, value in properties.items())
    return f"::error {written}::{in_command(message(finding.text))}"


def listed(findings: Sequence[ActionFinding]) -> str:
    """Return the findings as a list in Markdown."""
    lines = []
    for finding in findings[:MOST_LISTED]:
        at = f" at {code(f'{finding.place.path}:{finding.place.line}')}" if finding.place else ""
        lines.append(f"- **{unlinked(finding.title)}**{at}  \n  {unlinked(finding.text)}\n")
    if more := findings[MOST_LISTED:]:
        lines.append(f"- and {len(more)} more: see the log\n")
    return "".join(lines)


def unlinked(text: str) -> str:
    """Return text of others in one line of Markdown, in which no `@name` notifies anybody."""
    return re.sub(r"@(?=\w)", "@<!-- -->", in_markdown(text))


def code(text: str) -> str:
    """Return a text as code in Markdown."""
    text = visible(text)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    space = " " if "`" in text else ""
    return f"{fence}{space}{text}{space}{fence}"


def sarif(tool: str, version: str, findings: Iterable[ActionFinding]) -> dict[str, Any]:
    """Return a SARIF log of those findings that have a place: code scanning takes no others."""
    placed = [(each, each.place) for each in findings if each.place]
    rules = sorted({each.rule for each, _ in placed})
    return {"$schema": SARIF, "version": "2.1.0", "runs": [{
        "tool": {"driver": {"name": tool, "semanticVersion": version, "rules": [{"id": rule} for rule in rules]}},
        "results": [
            {"ruleId": each.rule, "ruleIndex": rules.index(each.rule), "level": "error",
             "message": {"text": in_sarif_message(message(f"{each.title}. {each.text}"))},
             "locations": [{"physicalLocation": {"artifactLocation": {"uri": in_url(place.path)},
                                                 "region": {"startLine": max(1, place.line)}}}]}
            for each, place in placed],
    }]}


def moved(log: Any, base: str, folder: str) -> Any:
    """Return a SARIF log whose paths relative to `base` are relative to the checkout, of which `folder` is a part."""
    if isinstance(log, list):
        return [moved(each, base, folder) for each in log]
    if not isinstance(log, dict):
        return log
    if log.get("uriBaseId") == base and "uri" in log:
        return {**log, "uri": f"{in_url(folder)}/{log['uri']}"}
    return {name: moved(each, base, folder) for name, each in log.items()}
