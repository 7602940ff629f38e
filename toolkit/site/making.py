"""A site of many runs: every page, in a folder that opens from disk and from any static host."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope import __version__
from gilscope.toolkit import temporary
from gilscope.toolkit.errors import BadFileError, ToolkitError, cannot_write
from gilscope.toolkit.escaping import in_url
from gilscope.toolkit.file_locks import lock
from gilscope.toolkit.redaction import PrivateNames, refuse
from gilscope.toolkit.site.badge import badge_values
from gilscope.toolkit.site.common_pages import HOME, SiteContent, SitePart, all_pages, navigation
from gilscope.toolkit.site.figure_files import is_drawing
from gilscope.toolkit.site.page import TemplatePages
from gilscope.toolkit.site.page_values import page_values
from gilscope.toolkit.site.pages.experiments import entry_of, experiment_values
from gilscope.toolkit.site.run_parts import SiteContext, copy_values, make_all
from gilscope.toolkit.site.saved_answers import saved_answers
from gilscope.toolkit.site.sources import load, plan
from gilscope.toolkit.site.style import ASSETS, load_assets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gilscope.toolkit.model import Run
    from gilscope.toolkit.redaction import Leak
    from gilscope.toolkit.report.document import Picture
    from gilscope.toolkit.site.answer_files import AnswerSource
    from gilscope.toolkit.site.common_pages import RunPart
    from gilscope.toolkit.site.pages.experiments import ExperimentSummary
    from gilscope.toolkit.site.saved_answers import SavedAnswer
    from gilscope.toolkit.site.sources import LoadedRun, PlannedRun, RunSource

    Describe = Callable[[Run, Path], ExperimentSummary]
    Draw = Callable[[Run, Path, Path], Sequence[Picture]]
    Say = Callable[[str], None]

MARKUP = frozenset({".html", ".svg"})   # files that are searched as pages; the others are data
MARKER = "site.json"         # which files are a site's own
SCHEMA = "gilscope/site/1"


def _ignore(_: str) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRequest:
    """The runs of a site, its title, and how its experiments are described and drawn.

    Attributes:
        sources: Where its runs are.
        title: The heading of its first page.
        kinds: The kinds of the catalogue's workloads.
        answers: Where answers of `scale`, `race`, `gil`, `doctor` and `evaluate` are.
        describe: Returns the title, findings and pictures of an experiment's run, from the run and its folder.
        draw: Draws the figures of an experiment that has none yet: of a run, with its folder, into another folder.
        address: Where the site will be, for the badge and the citations; "": not known.
        say: Called with what the site lacks, and why.
        processes: How many processes read runs and write their pages at once.
        private: The names and secrets that must not go out with it.
        by: Who publishes it; "": nobody is named.
        command: The command that makes it.
        works: Of each workload of the catalogue, what it does in a sentence (`summary`), its `source`, and the `file`
            and `line` of that.
        source_url: The address of gilscope's source, to which pages link; "": not known.
    """

    sources: Sequence[RunSource]
    title: str
    kinds: Mapping[str, str]
    describe: Describe
    draw: Draw | None = None
    address: str = ""
    say: Say = _ignore
    processes: int = 1
    private: PrivateNames = field(default_factory=PrivateNames)
    by: str = ""
    command: str = ""
    date: str = ""
    answers: Sequence[AnswerSource] = ()
    works: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    source_url: str = ""

    @property
    def made(self) -> dict[str, str]:
        """How the site is made, for the foot of each page."""
        return {"by": self.by, "command": self.command, "date": self.date, "address": self.address,
                "source": self.source_url.rstrip("/")}


def make_site(request: SiteRequest, out: Path) -> list[str]:
    """Make the site in `out`: a new or empty folder, or one that holds a site already, which it replaces.

    Returns:
        One sentence for each run or answer that could not be read.

    Raises:
        ToolkitError: `out` holds something else or cannot be written, nothing could be read, or a page would reveal a
            person or a machine.
    """
    try:
        if out.is_dir():
            with _only_writer(out, request.say):
                _earlier_files(out)   # what is refused is refused before the work
        else:
            _earlier_files(out)
        out.parent.mkdir(parents=True, exist_ok=True)
        # Beside it, on the same file system: each file is then moved at once or not at all.
        with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as made:
            problems = _write(request, Path(made))
            refuse(str(out), site_leaks(Path(made), request.private))
            out.mkdir(exist_ok=True)
            with _only_writer(out, request.say):
                _replace(Path(made), out, _earlier_files(out))   # perhaps another process has made one meanwhile
    except OSError as error:
        raise cannot_write(str(out), error) from error
    return problems


@contextmanager
def _only_writer(out: Path, say: Say) -> Iterator[None]:
    """Hold a lock on the folder `out`: two sites that are put there at once would be mixed."""
    descriptor = os.open(out, os.O_RDONLY)
    try:
        with suppress(OSError):   # there are file systems on which folders cannot be locked, such as NFS
            lock(descriptor, lambda: say(f"waiting for another process that writes a site into {out}"))
        yield
    finally:
        os.close(descriptor)


def check_site(request: SiteRequest) -> tuple[list[Leak], list[str]]:
    """Return the private texts in the site and the runs that could not be read; write nothing."""
    with tempfile.TemporaryDirectory(prefix=temporary.prefix()) as made:
        problems = _write(request, Path(made))
        return list(site_leaks(Path(made), request.private)), problems


def site_leaks(folder: Path, private: PrivateNames) -> Iterator[Leak]:
    """Yield private texts in the files of a site, each with its file."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and name.parts[0] != ASSETS.name:   # styles and scripts are ours
            text = path.read_text(encoding="utf-8", errors="replace")
            for leak in private.page_leaks(text) if path.suffix in MARKUP else private.leaks(text):
                yield replace(leak, where=f"{name}: {leak.where}")


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


def _write(request: SiteRequest, folder: Path) -> list[str]:
    """Write all pages into a folder, and return a sentence for each run or answer that could not be read."""
    problems: list[str] = []
    planned = plan(request.sources, problems, request.say)
    lost: list[str] = []
    answers = saved_answers(request.answers, lost, request.say)
    parts_of = {SitePart.RUNS: planned, SitePart.EXPERIMENTS: [each for each in planned if each.is_experiment]}
    site = SiteContext(folder=folder, title=request.title, kinds=dict(request.kinds),
                       has=frozenset(part for part, found in parts_of.items() if found), made=request.made,
                       works={name: dict(each) for name, each in request.works.items()})
    assets = load_assets()
    (folder / "assets").mkdir()
    for name, text in zip(assets.files, (assets.style, assets.script), strict=True):
        (folder / name).write_text(text, encoding="utf-8")
    parts = make_all(site, [each for each in planned if not each.is_experiment], request.processes)
    problems += [part.problem for part in parts if part.problem]
    writer = _SiteWriter(site, TemplatePages(assets, linked=True), request)
    for each in planned:
        if each.is_experiment:
            try:
                writer.add_experiment(each)
            except BadFileError as error:
                problems.append(str(error))
    for answer in answers:
        (folder / answer.data).parent.mkdir(parents=True, exist_ok=True)
        (folder / answer.data).write_text(answer.document, encoding="utf-8")
    writer.write({part.run.id: part for part in parts if part.run}, answers, problems, lost)
    _write_marker(folder)
    return problems + lost


class _SiteWriter:
    """Writes the pages of experiments, then the pages about all runs."""

    def __init__(self, site: SiteContext, renderer: TemplatePages, request: SiteRequest) -> None:
        self._site, self._renderer, self._request = site, renderer, request
        self._experiments: dict[str, tuple[LoadedRun, dict[str, Any]]] = {}

    def add_experiment(self, planned: PlannedRun) -> None:
        """Write the page of an experiment.

        Raises:
            BadFileError: It cannot be read.
        """
        loaded, ratios = load(planned)
        run, site = ratios.index.run, self._site
        about = self._request.describe(run, planned.path)
        pictures = self._pictures(planned, run, about.pictures)
        values = experiment_values(about, run, pictures, data=copy_values(site, loaded, run), made=site.made,
                                   page=loaded.page)
        entry = entry_of(about, loaded, pictures)
        links = navigation(site.title, has=site.has, here="experiments.html", made=site.made)
        self._page("experiment.html", loaded.page, values | page_values(
            entry["title"], entry["finding"] or entry["claim"], **links))
        self._experiments[loaded.id] = loaded, entry

    def _pictures(self, planned: PlannedRun, run: Run, found: Sequence[Picture]) -> list[Picture]:
        """Return an experiment's figures: those that were drawn with it, the others drawn now."""
        folder, draw = self._site.folder / "figures" / planned.id, self._request.draw
        drawings = _drawings(found)
        if draw and len(drawings) < len(found):
            drawings = _drawings(draw(run, planned.path, folder)) | drawings
        if not drawings:
            self._request.say(f"{run.label}: no figure, as none was drawn with it and none can be drawn from what its "
                              "folder holds")
        kept = []
        for name in (Path(each.path).name for each in found):
            if (each := drawings.get(name)) is not None:
                folder.mkdir(parents=True, exist_ok=True)
                if Path(each.path) != folder / name:
                    shutil.copyfile(each.path, folder / name)
                address = in_url((folder / name).relative_to(self._site.folder).as_posix())
                kept.append(replace(each, path=address))
        return kept

    def write(
        self, parts: Mapping[str, RunPart], answers: Sequence[SavedAnswer], problems: Sequence[str],
        lost: Sequence[str],
    ) -> None:
        """Write the pages about all runs and answers.

        Args:
            parts: By the id of a run.
            answers: Of commands that do not store runs.
            problems: A sentence for each run that cannot be read.
            lost: Likewise for each answer.

        Raises:
            ToolkitError: There is neither a run nor an answer.
        """
        found = [part.run for part in parts.values() if part.run]
        found += [loaded for loaded, _ in self._experiments.values()]
        if not (found or answers):
            raise ToolkitError("nothing could be read: " + "; ".join([*problems, *lost]))
        runs = sorted(found, key=lambda each: each.run.started)
        content = SiteContent(
            title=self._site.title, address=self._request.address, kinds=self._site.kinds, runs=runs, parts=parts,
            experiments=[entry for _, entry in self._experiments.values()], unreadable=len(problems),
            answers=answers, lost_answers=len(lost), has=self._site.has,
            badge=self._badge(runs), made=self._site.made)
        for page, around in all_pages(content):
            self._page(page.template, page.file, {**page.values, **around})

    def _badge(self, runs: Sequence[LoadedRun]) -> dict[str, str] | None:
        values = badge_values(runs)
        if values is None:
            return None
        (self._site.folder / "badge.svg").write_text(self._renderer.render("badge.svg", values), encoding="utf-8")
        address = self._request.address.rstrip("/") + "/" if self._request.address else ""
        return {"file": "badge.svg", "text": values["says"], "about": values["about"],
                "markdown": f"[![{values['says']}]({address}badge.svg)]({address or HOME})"}

    def _page(self, template: str, name: str, values: Mapping[str, Any]) -> None:
        (self._site.folder / name).write_text(self._renderer.render(template, values), encoding="utf-8")


def _drawings(pictures: Sequence[Picture]) -> dict[str, Picture]:
    """Return the pictures whose files can be shown, by the name of the file."""
    return {path.name: each for each in pictures if is_drawing(path := Path(each.path))}


def _write_marker(folder: Path) -> None:
    """Write the list of the site's files, by which a later site replaces this one."""
    files = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]
    (folder / MARKER).write_text(json.dumps({"schema": SCHEMA, "gilscope": __version__, "files": [*files, MARKER]},
                                            indent=1) + "\n", encoding="utf-8")
