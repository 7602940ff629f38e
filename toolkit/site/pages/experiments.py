"""The classic experiments, then and now: each report with its figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.site.how_to_repeat import build_flags, citation, command, has_budget
from gilscope.toolkit.site.page_values import document_values, link_numbers, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gilscope.toolkit.model import Run
    from gilscope.toolkit.report.document import Document, Picture
    from gilscope.toolkit.site.sources import Known


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What an experiment says of a run of its own; the site knows no experiment."""

    title: str
    claim: str                        # what its source said then
    sources: str                      # cited
    findings: tuple[str, ...]         # what is measured now; of a run that means nothing none
    pictures: tuple[Picture, ...]     # its figures, each with the file that shows it where it was drawn with the run
    document: Callable[[Sequence[Picture]], Document]   # its report with these pictures


def experiment_values(
    about: About, run: Run, pictures: Sequence[Picture], *, data: Mapping[str, str],
) -> dict[str, Any]:
    """Return the values of `experiment.html` but those around it.

    Args:
        about: What the experiment says.
        run: What was measured.
        pictures: Its figures, as the page finds them.
        data: Where the page finds the pyperf file of each build.
    """
    return shown({
        "document": link_numbers(document_values(about.document(pictures)), data), "command": command(run),
        "flags": build_flags(run), "data": dict(data), "citation": citation(run),
        "seed": run.seed, "budget": has_budget(run),
    })


def entry_of(about: About, known: Known, pictures: Sequence[Picture]) -> dict[str, Any]:
    """Return what the list of experiments says of one: what it found, and its first picture."""
    run = known.run
    return shown({
        "title": about.title, "link": known.page, "label": run.label, "host": known.host, "day": run.started[:10],
        "source": about.sources, "claim": about.claim, "finding": next(iter(about.findings), ""),
        "findings": list(about.findings),
        "picture": {"title": pictures[0].title, "path": pictures[0].path} if pictures else None,
        "builds": ", ".join(build.label for build in run.builds), "effort": str(run.options.get("effort")),
    })
