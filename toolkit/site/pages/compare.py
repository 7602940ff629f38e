"""Builds side by side: for each machine, the newest run with several builds, by what `gilscope compare` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gilscope.toolkit.builds.pairing import compare_builds as unfair
from gilscope.toolkit.model import Note
from gilscope.toolkit.report.cautions import cautions_beside_pairs, stopping_text
from gilscope.toolkit.report.comparison import comparison_document
from gilscope.toolkit.report.sessions import scope_text
from gilscope.toolkit.report.table.build_pairs import build_pairs
from gilscope.toolkit.report.table.contrast import compare_builds
from gilscope.toolkit.site.page_values import document_values, shown
from gilscope.toolkit.site.pages.run import run_title

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.report.table.ratios import Ratios
    from gilscope.toolkit.site.sources import LoadedRun


def compared_builds(ratios: Ratios) -> list[dict[str, Any]]:
    """Return the comparison of each pair of builds of a run: its title, its sections, how to read it."""
    run = ratios.index.run
    found = []
    for first, second in build_pairs(run.builds):
        notes = [*unfair(first, second), *(Note(text=text) for text in cautions_beside_pairs(run))]
        contrasts = compare_builds(run, first.label, second.label, ratios=ratios)
        document = comparison_document(
            f"{second.label} against {first.label} {scope_text(run)}", contrasts, baseline=first.label,
            sample=second.label, notes=notes, remarks=filter(None, [stopping_text(run)]))
        heading, *sections = document_values(document)
        legend = [each for each in sections if each["kind"] == "lines" and not each["title"]]
        found.append({"title": heading["text"], "sections": [each for each in sections if each not in legend],
                      "legend": [text for each in legend for text in each["items"]]})
    return found


def compare_values(compared: Sequence[tuple[LoadedRun, Sequence[Any]]]) -> dict[str, Any]:
    """Return the values of `compare.html` but those around it.

    Args:
        compared: All runs, the oldest first, each with what `compared_builds` returned.
    """
    newest = {loaded.host: (loaded, pairs) for loaded, pairs in compared if pairs}
    return {"runs": [shown({"title": run_title(each.run), "label": each.run.label, "link": each.page, "host": each.host,
                            "day": each.run.started[:10]}) | {"pairs": pairs} for each, pairs in newest.values()]}
