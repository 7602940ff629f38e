"""Stored runs in one page: their reports, and the pictures of experiments within it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gilscope.toolkit.site.page_values import document_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.report.document import Document


def report_values(documents: Sequence[Document], label: str) -> dict[str, Any]:
    """Return the values of `report.html`; pictures are named by their files.

    Args:
        documents: Of one run, or of several experiments.
        label: What they are called together; the page's own heading where there are several.
    """
    sections = [each for document in documents for each in document_values(document)]
    if len(documents) > 1:   # the heading of each becomes one below the page's
        for each in sections:
            if each["kind"] == "heading":
                each["level"] += 1
        sections.insert(0, {"kind": "heading", "text": label, "level": 1})
    return {"title": next(each["text"] for each in sections if each["kind"] == "heading"), "document": sections}
