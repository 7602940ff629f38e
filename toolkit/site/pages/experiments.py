"""The classic experiments, then and now: each report with its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gilscope.toolkit.experiments.base import Effort
from gilscope.toolkit.experiments.report import document, experiment_of, figures_of
from gilscope.toolkit.experiments.results import Results
from gilscope.toolkit.report.document import Picture
from gilscope.toolkit.site.asking import citation, command
from gilscope.toolkit.site.plain import document_values, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gilscope.toolkit.model import Run
    from gilscope.toolkit.site.sources import Known


def pictures_of(run: Run, folder: Path) -> list[Picture]:
    """Return the figures of an experiment's run, each with the file that shows it where it was drawn."""
    return [Picture(figure.title, str(folder / f"{figure.name}.svg"))
            for figure in figures_of(experiment_of(run), run, folder)]


def experiment_values(
    run: Run, folder: Path, pictures: Sequence[Picture], *, data: Mapping[str, str],
) -> dict[str, Any]:
    """Return the values of `experiment.html` but those around it.

    Args:
        run: With its values.
        folder: Where they are.
        pictures: Its figures, as the page finds them.
        data: Where the page finds the pyperf file of each build.
    """
    return shown({
        "document": document_values(document(experiment_of(run), run, folder, pictures)), "command": command(run),
        "data": dict(data), "citation": citation(run), "seed": run.seed,
    })


def entry_of(known: Known, run: Run, pictures: Sequence[Picture]) -> dict[str, Any]:
    """Return what the list of experiments says of one: what it found, and its first picture."""
    experiment = experiment_of(run)
    smoke = run.options.get("effort") == Effort.SMOKE
    findings = () if smoke else experiment.findings(Results(run, known.path))
    return shown({
        "title": experiment.title, "link": known.page, "label": run.label, "host": known.host, "day": run.started[:10],
        "source": "; ".join(each.cited() for each in experiment.sources), "claim": experiment.claim,
        "finding": findings[0] if findings else "", "findings": list(findings),
        "picture": {"title": pictures[0].title, "path": pictures[0].path} if pictures else None,
        "builds": ", ".join(build.label for build in run.builds), "effort": str(run.options.get("effort")),
    })
