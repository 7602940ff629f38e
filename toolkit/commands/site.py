"""`gilscope site`: static pages of any number of runs."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.commands.options.addresses import web_address
from gilscope.toolkit.commands.output.figures import draw_pictures, python_that_draws
from gilscope.toolkit.commands.output.printing import say
from gilscope.toolkit.commands.streams import inform
from gilscope.toolkit.cores import usable_cores
from gilscope.toolkit.experiments.base import Effort
from gilscope.toolkit.experiments.report import document, experiment_of, figures_of
from gilscope.toolkit.experiments.results import Results
from gilscope.toolkit.redaction import of_this_machine, told
from gilscope.toolkit.report.document import Picture
from gilscope.toolkit.report.figures.drawing import CannotDrawError, draw_figures
from gilscope.toolkit.site.making import Asked, check_site, make_site
from gilscope.toolkit.site.pages.experiments import About
from gilscope.toolkit.site.renderer_process import rendering_python
from gilscope.toolkit.site.run_parts import HOME
from gilscope.toolkit.site.sources import find_sources, hosts_of
from gilscope.workloads import catalog

if TYPE_CHECKING:
    import argparse

    from gilscope.toolkit.model import Run
    from gilscope.toolkit.report.figures.figure import Figure

TITLE = "gilscope results"
DAMAGED = 2   # exit code: some run could not be read


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope site`."""
    parser = commands.add_parser(
        "site",
        help="make static pages of results",
        description="Make a folder of static pages of any number of runs: what they say, pictures and tables of each, "
        "any two compared, their history, the machines, the classic experiments. It opens from disk and from any "
        "static host, and asks for nothing from elsewhere. Paths and host names stay out.",
    )
    parser.add_argument(
        "results", nargs="*", metavar="RESULTS",
        help="Folders with runs, or labels (default: results). NAME=FOLDER gives the machine of that folder's runs a "
        "name: results of several machines, copied together, are told by it.",
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", metavar="FOLDER", type=Path,
                       help="Where the pages go: a new folder, or one with a site, which is replaced.")
    where.add_argument("--check", action="store_true",
                       help="Write nothing: list what of the pages would tell of a person or a machine, and where it "
                       "stands. Exit with 1 when there is something; --out refuses it then.")
    parser.add_argument("--title", default=TITLE, help=f"What the site is called (default: {TITLE}).")
    parser.add_argument("--url", metavar="URL", type=web_address, default=None,
                        help="Where the site will be, e.g. https://me.github.io/results/ (default: not said). Use it "
                        "for the badge, and for the picture that shows with a link.")
    parser.add_argument("--open", action="store_true", help="Open the first page in the browser.")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Make the site."""
    sources, drawing = find_sources(args.results), None if args.check else _Drawing(args.out)
    asked = Asked(
        sources=sources, title=args.title, kinds={each.name: each.kind for each in catalog.WORKLOADS},
        python=rendering_python(say), tell=_about, address=args.url or "", say=lambda text: say(f"gilscope: {text}"),
        processes=usable_cores(),
        draw=drawing.experiment if drawing else None, draw_figure=drawing.figure if drawing else None,
        private=of_this_machine(os.environ, hosts_of(sources)))
    if args.check:
        return _check(asked)
    problems = make_site(asked, args.out)
    for problem in problems:
        say(f"gilscope: {problem}")
    home = args.out / HOME
    inform(f"made {home}")
    if args.open and not webbrowser.open(home.resolve().as_uri()):
        say(f"gilscope: no browser is found here to open {home} in")
    return DAMAGED if problems else 0


def _check(asked: Asked) -> int:
    leaks, problems = check_site(asked)
    for problem in problems:
        say(f"gilscope: {problem}")
    lines = told(leaks)
    inform("\n".join(lines) or f"nothing private would go out{' of what could be read' if problems else ''}")
    return int(bool(lines)) or (DAMAGED if problems else 0)


def _about(of: Run, folder: Path) -> About:
    """Return what an experiment says of a run in `folder`."""
    experiment = experiment_of(of)
    smoke = of.options.get("effort") == Effort.SMOKE
    return About(
        title=experiment.title, claim=experiment.claim, sources="; ".join(each.cited() for each in experiment.sources),
        findings=() if smoke else experiment.findings(Results(of, folder)),
        pictures=tuple(Picture(figure.title, str(folder / f"{figure.name}.svg"))
                       for figure in figures_of(experiment, of, folder)),
        document=lambda pictures: document(experiment, of, folder, pictures),
    )


class _Drawing:
    """Draws figures; what draws is looked for once, when it is needed."""

    def __init__(self, out: Path) -> None:
        self._later = f"gilscope site --out {out}"
        self._found: list[Path | None] = []

    def experiment(self, of: Run, folder: Path, into: Path) -> list[Picture]:
        """Return the pictures of an experiment's run in `folder`; none after having said why."""
        return draw_pictures(of, folder, self._python(), into)

    def figure(self, figure: Figure, into: Path) -> bool:
        """Write a figure as SVG and PNG; return whether it could be drawn, and say why not."""
        if (python := self._python()) is None:
            return False
        try:
            draw_figures(python, [figure], into)
        except CannotDrawError as error:
            say(str(error))
            return False
        return True

    def _python(self) -> Path | None:
        if not self._found:
            self._found.append(python_that_draws(self._later))
        return self._found[0]
