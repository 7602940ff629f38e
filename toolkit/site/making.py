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
from gilscope.toolkit.errors import ToolkitError, cannot_write
from gilscope.toolkit.foreign import in_url
from gilscope.toolkit.private import Private, refuse
from gilscope.toolkit.publish import write_files
from gilscope.toolkit.report.as_json import in_short
from gilscope.toolkit.report.build import run_document
from gilscope.toolkit.site.asking import citation
from gilscope.toolkit.site.badge import badge_values
from gilscope.toolkit.site.checking import site_leaks
from gilscope.toolkit.site.look import ASSETS, load_look
from gilscope.toolkit.site.pages.compare import compare_run, compare_values
from gilscope.toolkit.site.pages.experiments import entry_of, experiment_values, pictures_of
from gilscope.toolkit.site.pages.history import follow, history_values, workload_pages, workload_values
from gilscope.toolkit.site.pages.home import home_values
from gilscope.toolkit.site.pages.machines import machines_values
from gilscope.toolkit.site.pages.run import run_page
from gilscope.toolkit.site.plain import page_values
from gilscope.toolkit.site.renderer import Renderer
from gilscope.toolkit.site.sources import load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gilscope.toolkit.model import Run
    from gilscope.toolkit.private import Leak
    from gilscope.toolkit.report.document import Picture
    from gilscope.toolkit.report.table.ratios import Ratios
    from gilscope.toolkit.site.sources import Known, Source

MARKER = "site.json"         # what a site is made of, and which files are its own
SCHEMA = "gilscope/site/1"
HOME = "index.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a site is to be."""

    sources: Sequence[Source]
    title: str
    kinds: Mapping[str, str]    # of the catalogue's workloads
    python: Path                # that has Jinja2
    address: str = ""           # where the site will be, for the picture that shows with a link to it
    draw: Callable[[Run, Path, Path], Sequence[Picture]] | None = None   # figures of an experiment that has none yet
    say: Callable[[str], None] = field(default=lambda _: None)
    private: Private = field(default_factory=Private)   # what must not go out with it


@dataclass(slots=True)
class _Made:
    """What is known once every run was read."""

    known: list[Known] = field(default_factory=list)
    said: dict[str, list[str]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)      # what compares each run
    defaults: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    experiments: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


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
        with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as folder:
            problems = _write(asked, Path(folder))
            refuse(str(out), site_leaks(Path(folder), asked.private))
            _replace(Path(folder), out, earlier)
    except OSError as error:
        raise cannot_write(str(out), error) from error
    return problems


def check_site(asked: Asked) -> list[Leak]:
    """Return what of the site would tell of a person or a machine; nothing is kept of it."""
    with tempfile.TemporaryDirectory(prefix=temporary.prefix()) as folder:
        _write(asked, Path(folder))
        return list(site_leaks(Path(folder), asked.private))


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
    look, made = load_look(), _Made()
    with Renderer(asked.python, look, linked=True) as renderer:
        site = _Site(asked, folder, renderer, made)
        site.write_assets(look.style, look.script)
        for known, ratios in load(asked.sources, made.problems):
            site.add(known, ratios)
            asked.say(f"{known.run.label}: read")
        if not made.known:
            raise ToolkitError("no run could be read: " + "; ".join(made.problems))
        made.known.sort(key=lambda each: each.run.started)
        site.write_common_pages()
    site.write_marker()
    return made.problems


class _Site:
    """Writes the pages of one site."""

    def __init__(self, asked: Asked, folder: Path, renderer: Renderer, made: _Made) -> None:
        self._asked, self._folder, self._renderer, self._made = asked, folder, renderer, made
        self._several = len(asked.sources) > 1

    def write_assets(self, style: str, script: str) -> None:
        """Write what all pages share."""
        (self._folder / "assets").mkdir()
        (self._folder / "assets/site.css").write_text(style, encoding="utf-8")
        (self._folder / "assets/site.js").write_text(script, encoding="utf-8")
        shutil.copyfile(ASSETS / "compare.js", self._folder / "assets/compare.js")

    def add(self, known: Known, ratios: Ratios) -> None:
        """Write the page of a run and its values, and keep what pages of several runs need."""
        made, run = self._made, ratios.index.run
        target = self._folder / "data" / known.id
        target.mkdir(parents=True)
        data = {build: in_url(path.relative_to(self._folder).as_posix())
                for build, path in write_files(run, known.path, target).items()}
        if known.is_experiment:
            self._add_experiment(known, run, data)
        else:
            self._page("run.html", known.page, run_page(
                run, self._asked.kinds, tables=known.tables, data=data, around=self._around("")))
            made.said[known.id] = in_short(run_document(run, known.tables))
            made.files[known.id] = f"data/{known.id}/compare.js"
            about = compare_run(known, ratios)
            made.defaults[known.id] = next(iter(about["ofBuilds"].values()), [])
            # A script and no JSON: a page from disk may load the one, and is refused the other.
            (self._folder / made.files[known.id]).write_text(
                f"gilscopeRuns[{json.dumps(known.id)}] = {json.dumps(about, separators=(',', ':'))};\n")
        made.known.append(known)

    def _add_experiment(self, known: Known, run: Run, data: Mapping[str, str]) -> None:
        pictures = self._pictures(known, run)
        values = experiment_values(run, known.path, pictures, data=data)
        title = values["document"][0]["text"]
        entry = entry_of(known, run, pictures)
        self._page("experiment.html", known.page, values | page_values(
            title, entry["finding"] or entry["claim"], **self._around("experiments.html")))
        self._made.experiments.append(entry)

    def _pictures(self, known: Known, run: Run) -> list[Picture]:
        """Return an experiment's figures, those that were drawn with it, or drawn now."""
        found = pictures_of(run, known.path)
        folder = self._folder / "figures" / known.id
        if found and self._asked.draw and not all(Path(each.path).is_file() for each in found):
            folder.mkdir(parents=True)
            found = list(self._asked.draw(run, known.path, folder))
        kept = []
        for each in found:
            target = folder / Path(each.path).name
            if not target.is_file():
                if not Path(each.path).is_file():
                    continue
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(each.path, target)
            kept.append(type(each)(each.title, in_url(target.relative_to(self._folder).as_posix())))
        return kept

    def write_common_pages(self) -> None:
        """Write the pages about all runs."""
        made, kinds = self._made, self._asked.kinds
        series = follow(made.known)
        self._page("home.html", HOME, home_values(made.known, made.said, kinds, made.problems) | {
            "experiments": made.experiments, "citation": citation(made.known[-1].run), "badge": self._badge(),
            **page_values(self._asked.title, self._description(), **self._around(HOME))})
        default = next((made.defaults[each.id] for each in reversed(made.known) if made.defaults.get(each.id)), [])
        self._common("compare.html", "Compare", "Any two builds, models, runs or machines, side by side.",
                     compare_values(made.known, made.files, default))
        self._common("history.html", "History", "The same work over versions of CPython and over dates.",
                     history_values(made.known, series))
        for group, name in workload_pages(made.known).items():
            values = workload_values(group, made.known, series)
            self._page("history-workload.html", name, values | page_values(
                f"{values['title']} over versions and dates", "Ratios within runs, and where they changed.",
                **self._around("history.html")))
        self._common("machines.html", "Machines", "On how many machines each verdict holds.",
                     machines_values(made.known, kinds))
        if made.experiments:
            self._common("experiments.html", "The classic experiments", "What was measured then, and what it is now.",
                         {"experiments": made.experiments})

    def _common(self, name: str, title: str, description: str, values: Mapping[str, Any]) -> None:
        self._page(name, name, {**values, **page_values(title, description, **self._around(name))})

    def _description(self) -> str:
        made = self._made
        builds = dict.fromkeys(build.label for each in made.known for build in each.run.builds)
        return (f"What CPython's ways to run in parallel are worth: {len(made.known)} runs on {', '.join(builds)}, "
                f"{made.known[0].run.started[:10]} to {made.known[-1].run.started[:10]}.")

    def _badge(self) -> dict[str, str] | None:
        values = badge_values(self._made.known)
        if values is None:
            return None
        (self._folder / "badge.svg").write_text(self._renderer.page("badge.svg", values), encoding="utf-8")
        address = self._asked.address.rstrip("/") + "/" if self._asked.address else ""
        return {"file": "badge.svg", "text": values["says"],
                "markdown": f"[![{values['says']}]({address}badge.svg)]({address or HOME})"}

    def _around(self, here: str) -> dict[str, Any]:
        """Return what a page needs to know of the site around it."""
        titles = {HOME: "Home", "compare.html": "Compare", "history.html": "History", "machines.html": "Machines"}
        if self._made.experiments:
            titles["experiments.html"] = "Experiments"
        return {"of": self._asked.title, "links": [
            {"address": name, "title": title, "here": name == here} for name, title in titles.items()]}

    def _page(self, template: str, name: str, values: Mapping[str, Any]) -> None:
        (self._folder / name).write_text(self._renderer.page(template, values), encoding="utf-8")

    def write_marker(self) -> None:
        """Write what the site is made of."""
        files = [path.relative_to(self._folder).as_posix() for path in sorted(self._folder.rglob("*"))
                 if path.is_file()]
        (self._folder / MARKER).write_text(json.dumps({
            "schema": SCHEMA, "gilscope": __version__, "title": self._asked.title,
            "runs": [{"id": each.id, "label": each.run.label, "host": each.host, "started": each.run.started,
                      "builds": [build.label for build in each.run.builds], "page": each.page}
                     for each in self._made.known],
            "files": [*files, MARKER],
        }, indent=1) + "\n", encoding="utf-8")
