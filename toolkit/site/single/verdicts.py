"""The verdicts of `evaluate` and `doctor` as cards: one for each build, from their JSON documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gilscope.toolkit.report.document import Document, Heading
from gilscope.toolkit.site.page_values import document_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

UNTITLED = "gilscope"
# How a word looks; each stands there as a word, too.
TONES = {"READY": "good", "READY-WITH-COST": "fair", "BLOCKED": "bad", "NOT WORTH IT": "fair"}


def verdict_values(document: Document, cards: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the values of `verdict.html`: the cards, and the report below its own heading, which is the page's."""
    title, sections = titled(document)
    return {"title": title, "cards": list(cards), "document": sections}


def titled(document: Document) -> tuple[str, list[dict[str, Any]]]:
    """Return the heading that a report begins with, and the sections below it."""
    first, *rest = document.sections
    if not isinstance(first, Heading):
        return UNTITLED, document_values(document)
    return first.text, document_values(Document(tuple(rest)))


def conclusion_cards(evaluation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a card for each target of the document of `evaluate --json`."""
    return [
        {"title": each["target"], "word": each["word"], "tone": TONES.get(each["word"], "open"),
         "beside": f"{each['confidence']} confidence", "reasons": []}   # they stand in the report
        for each in evaluation["conclusions"]
    ]


def build_cards(doctor: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a card for each build of the document of `doctor --json`; none where that is of metadata alone."""
    if doctor.get("metadata_only"):
        return []
    found = []
    for build in doctor["builds"]:
        blocking = [each for each in build["packages"] if each["blocks"]]
        found.append({
            "title": build["build"], "word": "in the way" if build["blocked"] else "nothing in the way",
            "tone": "bad" if build["blocked"] else "good",
            "beside": f"against {build['reference']}" if build["reference"] else "",
            "reasons": [f"{each['name']} {each['version']}: {each['status_words']}" for each in blocking],
        })
    return found
