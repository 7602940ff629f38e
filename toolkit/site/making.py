"""A site of many runs: every page, in a folder that opens from disk and from any static host."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope import __version__
from gilscope.toolkit import temporary
from gilscope.toolkit.errors import BadFileError, ToolkitError, cannot_write
from gilscope.toolkit.escaping import in_url
from gilscope.toolkit.redaction import Private, refuse
from gilscope.toolkit.site.badge import badge_values
from gilscope.toolkit.site.figure_files import is_drawing, lean
from gilscope.toolkit.site.how_to_repeat import site_citation
from gilscope.toolkit.site.leaks import site_leaks
from gilscope.toolkit.site.link_preview import site_figure
from gilscope.toolkit.site.look import ASSETS, load_look
from gilscope.toolkit.site.page_values import page_values
from gilscope.toolkit.site.pages.compare import compare_values, source_of
from gilscope.toolkit.site.pages.experiments import entry_of, experiment_values
from gilscope.toolkit.site.pages.fleets import fleet_values
from gilscope.toolkit.site.pages.history import follow, history_values, workload_pages, workload_values
from gilscope.toolkit.site.pages.home import home_values
from gilscope.toolkit.site.pages.machines import machines_values
from gilscope.toolkit.site.renderer_process import Renderer
from gilscope.toolkit.site.run_parts import HOME, Site, around, copy_values, make_all
from gilscope.toolkit.site.sources import load, plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gilscope.toolkit.model import Run
    from gilscope.toolkit.redaction import Leak
    from gilscope.toolkit.report.document import Picture
    from gilscope.toolkit.report.figures.figure import Figure
    from gilscope.toolkit.site.pages.experiments import About
    from gilscope.toolkit.site.run_parts import Part
    from gilscope.toolkit.site.sources import Known, Planned, Source

    Tell = Callable[[Run, Path], About]
    Draw = Callable[[Run, Path, Path], Sequence[Picture]]
    Say = Callable[[str], None]
    DrawFigure = Callable[[Figure, Path], bool]

MARKER = "site.json"         # what a site is made of, and which files are its own
SCHEMA = "gilscope/site/1"


def _say_nothing(_: str) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a site is to be."""

    sources: Sequence[Source]
    title: str
    kinds: Mapping[str, str]    # of the catalogue's workloads
    python: Path                # that has Jinja2
    tell: Tell                  # what an experiment says of a run, with its folder
    draw: Draw | None = None    # figures of an experiment that has none yet: of a run, with its folder, into another
    draw_figure: DrawFigure | None = None   # writes a figure as SVG and PNG into a folder, or says why not
    address: str = ""           # where the site will be, for the badge and the picture beside links; "": not known
    say: Say = _say_nothing     # told what a site is without, and why
    processes: int = 1          # how many read runs and write their pages at once
    private: Private = field(default_factory=Private)   # what must not go out with it


def make_site(asked: Asked, out: Path) -> list[str]:
    """Make the site in `out`: a new or empty folder, or one that holds a site already, which it replaces.

    Returns:
        What could not be read, a sentence each.

    Raises:
        ToolkitError: `out` holds something else, cannot be written, no run could be read, or a page would tell of a
            person or a machine.
        CannotRenderError: What renders the pages failed.
    """
    earlier = _earlier_files(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        # Beside it: what is moved there is then there at once, or not at all.
        with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as made:
            problems = _write(asked, Path(made))
            refuse(str(out), site_leaks(Path(made), asked.private))
            _replace(Path(made), out, earlier)
    except OSError as error:
        raise cannot_write(str(out), error) from error
    return problems


def check_site(asked: Asked) -> tuple[list[Leak], list[str]]:
    """Return what of the site would tell of a person or a machine, and what could not be read; nothing is kept."""
    with tempfile.TemporaryDirectory(prefix=temporary.prefix()) as made:
        problems = _write(asked, Path(made))
        return list(site_leaks(Path(made), asked.private)), problems


def _earlier_files(out: Path) -> list[str]:
    """Return the files of the site in `out`."""
    if not out.exists():
        return []
    if not out.is_dir():
        raise ToolkitError(f"{out} is a file: name a folder")
    try:
        made = json.loads((out / MARKER).read_text(encoding="utf-8"))
        if made["schema"] == SCHEMA:
            return [each for each in made["files"] if isinstance(each, str) and _is_inside(each)]
    except FileNotFoundError:
        if not any(out.iterdir()):
            return []
    except (OSError, ValueError, TypeError, KeyError):
        pass
    raise ToolkitError(f"{out} holds something that is no site of gilscope's: name a new folder")


def _is_inside(name: str) -> bool:
    path = Path(name)
    return not path.is_absolute() and ".." not in path.parts


def _replace(made: Path, out: Path, earlier: Sequence[str]) -> None:
    """Put a site in place of an earlier one; what others have put there stays, as CNAME does."""
    out.mkdir(exist_ok=True)
    for name in earlier:
        (out / name).unlink(missing_ok=True)
    for path in sorted(made.rglob("*")):
        target = out / path.relative_to(made)
        if path.is_dir():
            target.mkdir(exist_ok=True)
        else:
            path.replace(target)
    for folder in sorted({(out / name).parent for name in earlier} - {out}, reverse=True):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _write(asked: Asked, folder: Path) -> list[str]:
    """Write all pages into a folder, and return what could not be read."""
    problems: list[str] = []
    planned = plan(asked.sources, problems, asked.say)
    site = Site(folder=folder, title=asked.title, kinds=dict(asked.kinds), python=asked.python, address=asked.address,
                has_experiments=any(each.is_experiment for each in planned))
    look = load_look()
    (folder / "assets").mkdir()
    for name, text in zip(look.files, (look.style, look.script), strict=True):
        (folder / name).write_text(text, encoding="utf-8")
    shutil.copyfile(ASSETS / "compare.js", folder / "assets/compare.js")
    runs = make_all(site, [each for each in planned if not each.is_experiment], asked.processes)
    problems += [part.problem for part in runs if part.problem]
    with Renderer(site.python, look, linked=True) as renderer:
        common = _Common(site, renderer, [part for part in runs if part.known], asked)
        for each in planned:
            if each.is_experiment:
                try:
                    common.add_experiment(each, asked.tell, asked.draw)
                except BadFileError as error:
                    problems.append(str(error))
        if not common.known:
            raise ToolkitError("no run could be read: " + "; ".join(problems))
        common.write(len(problems))
    _write_marker(site, common.known)
    return problems


class _Common:
    """Writes the experiments, and the pages about all runs."""

    def __init__(
        self, site: Site, renderer: Renderer, runs: Sequence[Part], asked: Asked,
    ) -> None:
        self._site, self._renderer, self._runs = site, renderer, runs
        self._draw_figure, self._say = asked.draw_figure, asked.say
        self.known = [part.known for part in runs if part.known]
        self._experiments: list[dict[str, Any]] = []

    def add_experiment(self, planned: Planned, tell: Tell, draw: Draw | None) -> None:
        """Write the page of an experiment.

        Raises:
            BadFileError: It cannot be read.
        """
        known, ratios = load(planned)
        run, site = ratios.index.run, self._site
        about = tell(run, planned.path)
        pictures = self._pictures(planned, run, about.pictures, draw)
        values = experiment_values(about, run, pictures, data=copy_values(site, known, run))
        entry = entry_of(about, known, pictures)
        self._page("experiment.html", known.page, values | page_values(
            entry["title"], entry["finding"] or entry["claim"], **around(site, "experiments.html")))
        self._experiments.append(entry)
        self.known.append(known)

    def _pictures(
        self, planned: Planned, run: Run, found: Sequence[Picture], draw: Draw | None,
    ) -> list[Picture]:
        """Return an experiment's figures: those that were drawn with it, or drawn now."""
        folder = self._site.folder / "figures" / planned.id
        if found and draw and not all(is_drawing(Path(each.path)) for each in found):
            found = draw(run, planned.path, folder)
        kept = []
        for each in found:
            if is_drawing(Path(each.path)):
                target = folder / Path(each.path).name
                folder.mkdir(parents=True, exist_ok=True)
                target.write_text(lean(Path(each.path)), encoding="utf-8")
                kept.append(type(each)(each.title, in_url(target.relative_to(self._site.folder).as_posix())))
        return kept

    def write(self, lost: int) -> None:
        """Write the pages about all runs; `lost`: how many could not be read."""
        site, kinds = self._site, self._site.kinds
        self.known.sort(key=lambda each: each.run.started)
        files = {part.known.id: part.files for part in self._runs if part.known}
        series, fleets = follow(self.known), fleet_values(self.known, files)
        self._page("home.html", HOME, {
            **home_values(self.known, {part.known.id: part.said for part in self._runs if part.known}, kinds, lost,
                          series),
            **page_values(site.title, self._description(), picture=self._picture(), **around(site, HOME)),
            "experiments": self._experiments, "fleets": fleets, "badge": self._badge(),
            "citation": site_citation(site.title, [each.run for each in self.known], site.address)})
        newest = max((part for part in self._runs if part.known and part.compared), default=None,
                     key=lambda part: part.known.run.started if part.known else "")
        self._common("compare.html", "Compare", "Any two builds, models, runs or machines, side by side.",
                     compare_values(self.known, newest.compared, source_of(newest.known, newest.files))
                     if newest and newest.known else compare_values(self.known, []))
        self._common("history.html", "History", "The same work over versions of CPython and over dates.",
                     history_values(self.known, series))
        for group, name in workload_pages(self.known).items():
            values = workload_values(group, self.known, series, files)
            self._page("history-workload.html", name, values | page_values(
                f"{values['title']} over versions and dates", "Ratios within runs, and where they changed.",
                **around(site, "history.html")))
        self._common("machines.html", "Machines", "On how many machines each verdict holds.",
                     machines_values(self.known, kinds) | {"fleets": fleets})
        for each in fleets:
            self._page("fleet.html", each["page"], each | page_values(
                f"{each['label']} over all hosts", "What several hosts say together.", **around(site, "machines.html")))
        if self._experiments:
            self._common("experiments.html", "The classic experiments", "What was measured then, and what it is now.",
                         {"experiments": self._experiments})

    def _common(self, name: str, title: str, description: str, values: Mapping[str, Any]) -> None:
        self._page(name, name, {**values, **page_values(title, description, **around(self._site, name))})

    def _description(self) -> str:
        builds = dict.fromkeys(build.label for each in self.known for build in each.run.builds)
        first, last = (each.run.started[:10] for each in (self.known[0], self.known[-1]))
        when = first if first == last else f"{first} to {last}"
        return (f"What CPython's ways to run in parallel are worth: {len(self.known)} "
                f"run{'s' * (len(self.known) > 1)} on {', '.join(builds)}, {when}.")

    def _picture(self) -> dict[str, str] | None:
        """Return what shows with a link to the site; whoever shows it wants its whole address."""
        figure = site_figure(self.known, self._site.title)
        if not self._site.address or self._draw_figure is None:
            return None
        if figure is None:
            self._say("no picture for links to the site: no run has a ratio to show")
            return None
        if not self._draw_figure(figure, self._site.folder):
            return None
        (self._site.folder / f"{figure.name}.svg").unlink()   # who shows links takes no SVG
        return {"address": f"{self._site.address.rstrip('/')}/{figure.name}.png",
                "says": f"{figure.title}: how many times as fast as serial each model is"}

    def _badge(self) -> dict[str, str] | None:
        values = badge_values(self.known)
        if values is None:
            return None
        (self._site.folder / "badge.svg").write_text(self._renderer.page("badge.svg", values), encoding="utf-8")
        address = self._site.address.rstrip("/") + "/" if self._site.address else ""
        return {"file": "badge.svg", "text": values["says"],
                "markdown": f"[![{values['says']}]({address}badge.svg)]({address or HOME})"}

    def _page(self, template: str, name: str, values: Mapping[str, Any]) -> None:
        (self._site.folder / name).write_text(self._renderer.page(template, values), encoding="utf-8")


def _write_marker(site: Site, known: Sequence[Known]) -> None:
    """Write what the site is made of."""
    files = [path.relative_to(site.folder).as_posix() for path in sorted(site.folder.rglob("*")) if path.is_file()]
    (site.folder / MARKER).write_text(json.dumps({
        "schema": SCHEMA, "gilscope": __version__, "title": site.title,
        "runs": [{"id": each.id, "label": each.run.label, "host": each.host, "started": each.run.started,
                  "builds": [build.label for build in each.run.builds], "page": each.page} for each in known],
        "files": [*files, MARKER],
    }, indent=1) + "\n", encoding="utf-8")
