"""The classic experiments, then and now: each report with its figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.site.how_to_repeat import build_flags, citation, command
from gilscope.toolkit.site.page_values import document_values, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gilscope.toolkit.model import Run
    from gilscope.toolkit.report.document import Document, Picture
    from gilscope.toolkit.site.sources import LoadedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentSummary:
    """The title, findings and pictures of an experiment's run; the site itself knows no experiment."""

    title: str
    claim: str                        # what its source said then
    sources: str                      # cited
    findings: tuple[str, ...]         # what is measured now; of a run that means nothing none
    pictures: tuple[Picture, ...]     # its figures, each with the file that shows it where it was drawn with the run
    document: Callable[[Sequence[Picture]], Document]   # its report with these pictures


def experiment_values(
    about: ExperimentSummary, run: Run, pictures: Sequence[Picture], *, data: Mapping[str, str],
    made: Mapping[str, str] | None = None, page: str = "",
) -> dict[str, Any]:
    """Return the values of `experiment.html` but those around it.

    Args:
        about: What the experiment says.
        run: What was measured.
        pictures: Its figures, as the page finds them.
        data: Where the page finds the pyperf file of each build.
        made: How the page is made, for the citation; see `page_values`.
        page: The file of the page in the site.
    """
    return shown({
        "document": document_values(about.document(pictures), data), "command": command(run),
        "flags": build_flags(run), "data": dict(data),
        "citation": citation(run, made or {}, page),
    })


def entry_of(about: ExperimentSummary, loaded: LoadedRun, pictures: Sequence[Picture]) -> dict[str, Any]:
    """Return the entry of an experiment in the list: its finding and its first picture."""
    run = loaded.run
    return shown({
        "title": about.title, "link": loaded.page, "label": run.label, "host": loaded.host, "day": run.started[:10],
        "source": about.sources, "claim": about.claim, "finding": next(iter(about.findings), ""),
        "findings": list(about.findings),
        "picture": {"title": pictures[0].title, "path": pictures[0].path} if pictures else None,
        "builds": ", ".join(build.label for build in run.builds), "effort": str(run.options.get("effort")),
    })
