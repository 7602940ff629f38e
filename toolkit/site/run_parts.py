"""Writes the part of a site that belongs to one run: its page, its values, its builds compared; several at once."""

from __future__ import annotations

import signal
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.escaping import in_url
from gilscope.toolkit.publish import without_traces, write_files
from gilscope.toolkit.site.common_pages import RunPart, SitePart, navigation
from gilscope.toolkit.site.page import TemplatePages
from gilscope.toolkit.site.pages.compare import compared_builds
from gilscope.toolkit.site.pages.run import run_page
from gilscope.toolkit.site.sources import LoadedRun, PlannedRun, load
from gilscope.toolkit.site.style import load_assets
from gilscope.toolkit.store import Fleet, Host, HostState, fleet_text, load_run, read_fleet
from gilscope.toolkit.store.labels import FLEET

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gilscope.toolkit.model import Run

FEW = 4   # runs; with fewer, another process takes longer to start than it saves


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteContext:
    """The folder and title of a site, for the page of each run."""

    folder: Path
    title: str
    kinds: dict[str, str]       # of the catalogue's workloads
    has: frozenset[SitePart]
    made: dict[str, str] = field(default_factory=dict)       # how the site was made; see `page_values`
    works: dict[str, dict[str, str]] = field(default_factory=dict)   # what each workload of the catalogue does


def copy_values(site: SiteContext, loaded: LoadedRun, run: Run) -> dict[str, str]:
    """Write the published values of a run into the site; return the address of each build's file.

    The values of several hosts on one machine stay in files of their own, of which the keys name build and host.
    """
    target = site.folder / "data" / loaded.id
    target.mkdir(parents=True)
    if not loaded.planned.hosts:
        return _addresses(site, write_files(run, loaded.planned.path, target))
    files: dict[str, Path] = {}
    for name, path in loaded.planned.hosts:
        with suppress(BadFileError):   # the run has a note about it
            own = without_traces(load_run(path))
            (target / name).mkdir()
            files |= {f"{build} ({name})": file for build, file in write_files(own, path, target / name).items()}
    (target / FLEET).write_text(fleet_text(_published(loaded.planned)), encoding="utf-8")
    return _addresses(site, files)


def _addresses(site: SiteContext, files: Mapping[str, Path]) -> dict[str, str]:
    return {name: in_url(path.relative_to(site.folder).as_posix()) for name, path in files.items()}


def _published(planned: PlannedRun) -> Fleet:
    """Return the fleet of the hosts of one machine, so that `gilscope report` reads their folder."""
    names = [name for name, _ in planned.hosts]
    hosts = {name: Host(name=name, state=HostState.STOPPED, machine=0) for name in names}
    with suppress(BadFileError):   # then nothing says how they stand
        hosts |= {each.name: replace(each, note="", machine=0)
                  for each in read_fleet(planned.path.parent).hosts if each.name in hosts}
    return Fleet(hosts=tuple(hosts.values()))


def make_all(site: SiteContext, planned: Sequence[PlannedRun], processes: int) -> list[RunPart]:
    """Write the part of each run in several processes at once, and return them in the order of `planned`.

    Raises:
        OSError: The folder cannot be written.
    """
    if processes < 2 or len(planned) < FEW:  # several
        return make_several(site, planned)
    shares = [planned[i::processes] for i in range(processes)]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_ignore_interrupts) as pool:
        made = list(pool.map(make_several, [site] * processes, shares))
    parts = [RunPart()] * len(planned)
    for i, share in enumerate(made):
        parts[i::processes] = share
    return parts


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C, which a terminal sends to every process: the pool ends the processes that it started."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def make_several(site: SiteContext, planned: Sequence[PlannedRun]) -> list[RunPart]:
    """Write the parts of some runs, one after the other."""
    renderer = TemplatePages(load_assets(), linked=True)
    return [_make(site, each, renderer) for each in planned]


def _make(site: SiteContext, planned: PlannedRun, renderer: TemplatePages) -> RunPart:
    try:
        loaded, ratios = load(planned)
    except BadFileError as error:
        return RunPart(problem=str(error))
    run = ratios.index.run
    data = copy_values(site, loaded, run)
    links = navigation(site.title, has=site.has, made=site.made)
    values = run_page(run, site.kinds, tables=loaded.tables, data=data, around=links, works=site.works,
                      page=loaded.page)
    (site.folder / loaded.page).write_text(renderer.render("run.html", values), encoding="utf-8")
    return RunPart(run=loaded, compared=compared_builds(ratios), files=data, problem="; ".join(loaded.problems))
