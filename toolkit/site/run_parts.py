"""The part of a site that is one run's own: its page, its values, what compares it.  Several are made at once."""

from __future__ import annotations

import json
import signal
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.escaping import in_url
from gilscope.toolkit.publish import write_files
from gilscope.toolkit.report.advice_sentences import advice_lines
from gilscope.toolkit.report.overview import closing_lines
from gilscope.toolkit.site.look import load_look
from gilscope.toolkit.site.pages.compare import compare_file, compare_run
from gilscope.toolkit.site.pages.run import run_page
from gilscope.toolkit.site.renderer_process import Renderer
from gilscope.toolkit.site.sources import Known, Planned, load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gilscope.toolkit.model import Run

HOME = "index.html"
FEW = 4   # runs: with so few another process would take longer to start than it saves


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What every part of a site needs to know of it."""

    folder: Path                # where it is made
    title: str
    kinds: dict[str, str]       # of the catalogue's workloads
    python: Path                # that has Jinja2
    address: str                # where it will be; "": not known
    has_experiments: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What is known of a run whose part was made, or why it was not."""

    known: Known | None = None
    said: list[str] = field(default_factory=list)                    # in short
    compared: list[dict[str, Any]] = field(default_factory=list)     # its first two builds
    files: dict[str, str] = field(default_factory=dict)              # pyperf's, by build, as a page finds them
    problem: str = ""


def around(site: Site, here: str) -> dict[str, Any]:
    """Return what a page needs to know of the site around it; `here` is the page of the way around that it is."""
    titles = {HOME: "Home", "compare.html": "Compare", "history.html": "History", "machines.html": "Machines"}
    if site.has_experiments:
        titles["experiments.html"] = "Experiments"
    return {"of": site.title, "links": [
        {"address": name, "title": title, "here": name == here} for name, title in titles.items()]}


def copy_values(site: Site, known: Known, run: Run) -> dict[str, str]:
    """Write the values of a run for others to read, and return where a page finds those of each build."""
    target = site.folder / "data" / known.id
    target.mkdir(parents=True)
    return {build: in_url(path.relative_to(site.folder).as_posix())
            for build, path in write_files(run, known.planned.path, target).items()}


def make_all(site: Site, planned: Sequence[Planned], processes: int) -> list[Part]:
    """Make the part of each run, in so many processes.

    Raises:
        OSError: The folder cannot be written.
        CannotRenderError: What renders the pages failed.
    """
    if processes < 2 or len(planned) < FEW:  # noqa: PLR2004 - one has no other beside it
        return make_several(site, planned)
    shares = [planned[i::processes] for i in range(processes)]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_leave_stopping_to_us) as pool:
        made = list(pool.map(make_several, [site] * processes, shares))
    parts = [Part()] * len(planned)
    for i, share in enumerate(made):
        parts[i::processes] = share   # in the order in which they were planned
    return parts


def _leave_stopping_to_us() -> None:
    """Let Ctrl-C, which a terminal sends to every process, be ours alone: the pool ends those that it started."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def make_several(site: Site, planned: Sequence[Planned]) -> list[Part]:
    """Make the parts of some runs, one after the other."""
    with Renderer(site.python, load_look(), linked=True) as renderer:
        return [_make(site, each, renderer) for each in planned]


def _make(site: Site, planned: Planned, renderer: Renderer) -> Part:
    try:
        known, ratios = load(planned)
    except BadFileError as error:
        return Part(problem=str(error))
    run = ratios.index.run
    data = copy_values(site, known, run)
    values = run_page(run, site.kinds, tables=known.tables, data=data, around=around(site, ""))
    (site.folder / known.page).write_text(renderer.page("run.html", values), encoding="utf-8")
    about = compare_run(known, ratios, data)
    # A script and no JSON: a page from disk may load the one, and is refused the other.
    (site.folder / compare_file(known)).write_text(
        f"gilscopeRuns[{json.dumps(known.id)}] = {json.dumps(about, separators=(',', ':'))};\n", encoding="utf-8")
    said = [*advice_lines(known.tables, intervals=True), *closing_lines(known.tables, run, intervals=True)]
    return Part(known=known, said=said, compared=next(iter(about["ofBuilds"].values()), []), files=data)
