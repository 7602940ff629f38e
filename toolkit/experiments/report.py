"""An experiment's stored run as a document and as pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import BadFileError, ToolkitError
from gilscope.toolkit.experiments import catalog
from gilscope.toolkit.experiments.base import Effort
from gilscope.toolkit.experiments.results import Results
from gilscope.toolkit.report.document import Banner, Document, Heading, Lines, Picture
from gilscope.toolkit.report.figures.drawing import draw_figures
from gilscope.toolkit.report.figures.figure import shows_something
from gilscope.toolkit.report.run_document import about, builds_table
from gilscope.toolkit.report.table_sentences import noise_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.experiments.base import Experiment, Source
    from gilscope.toolkit.model import Run
    from gilscope.toolkit.report.document import Section
    from gilscope.toolkit.report.figures.figure import Figure

SMOKE = "--smoke: everything is tiny and was done once; the numbers say that it works here and nothing else"


def experiment_of(run: Run) -> Experiment:
    """Return the experiment that `run` is one of.

    Raises:
        ToolkitError: it is none, or says so in another way than gilscope does.
    """
    name = run.options.get("experiment")
    if not isinstance(name, str):
        raise ToolkitError(f"{run.label} is no experiment's run: `gilscope report {run.label}` shows it")
    if (effort := run.options.get("effort", Effort.FULL)) not in tuple(Effort):
        raise BadFileError(f"run.json of {run.label} says effort {effort!r}, not one of {', '.join(Effort)}")
    return catalog.find(name)


def document(experiment: Experiment, run: Run, folder: Path | None, pictures: Sequence[Picture] = ()) -> Document:
    """Return the report of a run of `experiment` that is stored in `folder`.

    Args:
        experiment: What was run.
        run: What was measured of it.
        folder: Where its values and files are; None: nowhere.
        pictures: Its figures, as `draw` returns them.
    """
    results = Results(run, folder)
    sections: list[Section] = [Heading(experiment.title, 1), about(run), builds_table(run.builds)]
    sections += [Banner(note.text) for note in run.notes]
    if run.options.get("effort") == Effort.SMOKE:
        sections.append(Banner(SMOKE))
    sections.append(Lines("Then", (experiment.claim, *map(_source_line, experiment.sources))))
    sections += experiment.sections(results)
    findings = () if run.options.get("effort") == Effort.SMOKE else experiment.findings(results)
    if findings:
        sections.append(Lines("Now", findings))
    sections.append(Lines("", (noise_line(results.floors()),)))
    return Document((*sections, *pictures))


def _source_line(source: Source) -> str:
    where = f", {source.url}" if source.url else ""
    return f"{source.cited()}{where}: {source.headline}"


def figures_of(experiment: Experiment, run: Run, folder: Path | None) -> list[Figure]:
    """Return the figures of a run that is stored in `folder`, each with where and when it was measured.

    Those without a single value are left out: the tables say why there is none.
    """
    return [replace(figure, made=made_on(run)) for figure in experiment.figures(Results(run, folder))
            if shows_something(figure)]


def made_on(run: Run) -> str:
    """Return when, where and with how much effort `run` was measured, in a line."""
    machine, effort = run.machine, Effort(str(run.options.get("effort", Effort.FULL)))
    how = {Effort.FULL: "in full", Effort.QUICK: "--quick", Effort.SMOKE: "--smoke: the numbers mean nothing"}[effort]
    return (f"Measured {run.started[:10]} on {machine.cpu_model}, {machine.cores} cores, "
            f"{machine.system.partition('-')[0]}; {how}, {run.rounds_done} round{'s' * (run.rounds_done != 1)}")


def draw(experiment: Experiment, run: Run, folder: Path, python: Path, into: Path | None = None) -> list[Picture]:
    """Draw the figures of a run that is stored in `folder`, as SVG and PNG, and return the former.

    Args:
        experiment: What was run.
        run: What was measured of it.
        folder: Where its values and files are.
        python: What `report.drawing` found to draw with.
        into: The folder of the figures; None: there, too.

    Raises:
        CannotDrawError: The process that draws failed.
    """
    figures = figures_of(experiment, run, folder)
    drawn = draw_figures(python, figures, into or folder) if figures else []
    return [Picture(figure.title, str(path)) for figure, path in zip(figures, drawn, strict=True)]


def beside(pictures: Sequence[Picture]) -> list[Picture]:
    """Return pictures as a file in their own folder names them."""
    return [replace(picture, path=Path(picture.path).name) for picture in pictures]
