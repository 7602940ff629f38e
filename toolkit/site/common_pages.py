"""The pages about all runs of a site.  `PAGES` lists them: each is values in `pages/`, a template and an entry here."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.site.how_to_repeat import days_text, site_citation
from gilscope.toolkit.site.page_values import page_values
from gilscope.toolkit.site.pages.compare import compare_values
from gilscope.toolkit.site.pages.fleets import fleet_values
from gilscope.toolkit.site.pages.history import follow, history_values, workload_pages, workload_values
from gilscope.toolkit.site.pages.home import home_values
from gilscope.toolkit.site.saved_answers import TEMPLATES
from gilscope.toolkit.units import counted, list_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from gilscope.toolkit.site.pages.history import HistorySeries
    from gilscope.toolkit.site.saved_answers import SavedAnswer
    from gilscope.toolkit.site.sources import LoadedRun

HOME = "index.html"


class SitePart(StrEnum):
    """What a site may have or lack; a common page may be about one of them."""

    RUNS = "runs"     # experiments among them
    EXPERIMENTS = "experiments"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPart:
    """A run whose own page was written, with what the common pages show of it; or why it has none."""

    run: LoadedRun | None = None
    compared: list[dict[str, Any]] = field(default_factory=list)   # its builds, pair by pair
    files: dict[str, str] = field(default_factory=dict)            # of pyperf, by build, as a page finds them
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class SiteContent:
    """Everything that the pages about all runs can show."""

    title: str
    address: str                                # where the site will be; "": not known
    kinds: Mapping[str, str]                    # of the catalogue's workloads
    runs: Sequence[LoadedRun]                   # experiments among them, the oldest first
    parts: Mapping[str, RunPart]                # by id; experiments have none
    experiments: Sequence[Mapping[str, Any]] = ()
    answers: Sequence[SavedAnswer] = ()         # of commands that do not store runs
    has: Collection[SitePart] = (SitePart.RUNS,)
    unreadable: int = 0                         # how many runs could not be read
    lost_answers: int = 0                       # likewise answers
    badge: Mapping[str, str] | None = None
    made: Mapping[str, str] = field(default_factory=dict)   # how the site was made; see `page_values`

    @cached_property
    def files(self) -> dict[str, dict[str, str]]:
        """The pyperf files of each run by its id, each by build."""
        return {name: part.files for name, part in self.parts.items()}

    @cached_property
    def series(self) -> list[HistorySeries]:
        """Every ratio over the runs that have it."""
        return follow(self.runs)

    @cached_property
    def fleets(self) -> list[dict[str, Any]]:
        """Runs on several hosts, each with the values of its page."""
        return fleet_values(self.runs, self.files)

    @property
    def description(self) -> str:
        """The whole site in one sentence."""
        if self.runs:
            builds = dict.fromkeys(build.label for each in self.runs for build in each.run.builds)
            return (f"What CPython's concurrency models gain: {counted(len(self.runs), 'run')} on {', '.join(builds)}, "
                    f"{days_text(each.run.started for each in self.runs)}.")
        return f"Answers of gilscope: {list_text(each.title for each in self.answers)}."


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePage:
    """One page, ready to be rendered."""

    file: str
    template: str
    title: str
    description: str   # one sentence, shown by search engines
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonPage:
    """A page about all runs; every page of the site links to it."""

    link: str                                             # the text of the link
    template: str                                         # also the name of its file, unless `file` is given
    description: str
    values: Callable[[SiteContent], Mapping[str, Any]]
    title: str = ""                                       # the text of the link, unless it is given
    file: str = ""
    details: Callable[[SiteContent], Iterable[SitePage]] = lambda _: ()   # pages that it leads to
    only_with: SitePart | None = None

    @property
    def address(self) -> str:
        """The page's file."""
        return self.file or self.template


def _home(content: SiteContent) -> Mapping[str, Any]:
    return home_values(content.runs, content.kinds, content.unreadable, lost_answers=content.lost_answers) | {
        "experiments": content.experiments, "fleets": content.fleets, "badge": content.badge,
        "answers": [{"title": each.title, "link": each.page, "short": each.short} for each in content.answers],
        "citation": site_citation(content.title, [each.run for each in content.runs], content.made,
                                  answers=len(content.answers))}


def _compare(content: SiteContent) -> Mapping[str, Any]:
    parts = content.parts
    return compare_values([(each, parts[each.id].compared) for each in content.runs if each.id in parts])


def _workloads(content: SiteContent) -> Iterator[SitePage]:
    for group, file in workload_pages(content.runs).items():
        values = workload_values(group, content.runs, content.series, content.files)
        yield SitePage(file=file, template="history-workload.html", values=values,
                       title=f"{values['title']} over versions and dates",
                       description="Ratios within runs, over versions and dates.")


def _fleets(content: SiteContent) -> Iterator[SitePage]:
    for each in content.fleets:
        yield SitePage(file=each["page"], template="fleet.html", values=each, title=f"{each['label']} on all hosts",
                       description="What several hosts measured, side by side.")


def _answers(content: SiteContent) -> Iterator[SitePage]:
    for each in content.answers:
        yield SitePage(file=each.page, template=TEMPLATES[each.kind], values=each.values, title=each.title,
                       description=each.short)


PAGES = (
    CommonPage(link="Home", file=HOME, template="home.html", description="", values=_home,
               details=lambda content: [*_fleets(content), *_answers(content)]),
    CommonPage(link="Compare", template="compare.html", values=_compare, only_with=SitePart.RUNS,
               description="Builds side by side."),
    CommonPage(link="History", template="history.html", details=_workloads, only_with=SitePart.RUNS,
               description="The same work over versions of CPython and over dates.",
               values=lambda content: history_values(content.runs, content.series)),
    CommonPage(link="Experiments", template="experiments.html", title="The classic experiments",
               description="What was measured then, and what it is now.", only_with=SitePart.EXPERIMENTS,
               values=lambda content: {"experiments": content.experiments}),
)


def all_pages(content: SiteContent) -> Iterator[tuple[SitePage, dict[str, Any]]]:
    """Yield each page about all runs with the values of its head and of the links around it."""
    for page in PAGES:
        if page not in shown_pages(content.has):
            continue
        links = navigation(content.title, here=page.address, has=content.has, made=content.made)
        title, description = page.title or page.link, page.description
        if page.address == HOME:
            title, description = content.title, content.description
        yield (SitePage(file=page.address, template=page.template, title=title, description=description,
                        values=page.values(content)),
               page_values(title, description, **links))
        for detail in page.details(content):
            yield detail, page_values(detail.title, detail.description, **links)


def shown_pages(has: Collection[SitePart]) -> list[CommonPage]:
    """Return the common pages of a site with some parts."""
    return [page for page in PAGES if page.only_with is None or page.only_with in has]


def navigation(
    site: str, *, has: Collection[SitePart], here: str = "", made: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the site's title and the links that each of its pages has, for `page_values`.

    Args:
        site: The title of the site.
        has: Its parts.
        here: The common page that the page is, or belongs to.
        made: How the site was made; see `page_values`.
    """
    return {"of": site, "made": dict(made or {}), "links": [
        {"address": page.address, "title": page.link, "here": page.address == here} for page in shown_pages(has)]}
