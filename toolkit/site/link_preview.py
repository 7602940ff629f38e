"""The badge for a README, and the picture that shows with a link to a site."""

from __future__ import annotations

from math import inf, nan
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.escaping import visible
from gilscope.toolkit.model import Phase
from gilscope.toolkit.report.figures.figure import Axis, CategoryFigure, CategoryPanel, Rule, Series
from gilscope.toolkit.report.wording import range_text
from gilscope.toolkit.site.pages.newest import in_order, newest, places, version_key
from gilscope.toolkit.stats.verdict import Significance
from gilscope.toolkit.units import counted, list_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gilscope.toolkit.site.pages.newest import WorkloadOnBuild
    from gilscope.toolkit.site.sources import LoadedRun

NAME = "site"
MOST_BUILDS, MOST_WORKLOADS = 2, 5   # more would be illegible in the small picture beside a link
FREE = "free-threaded"
CHARACTER = 6.6   # width in pixels at a font size of 11: enough for any font


def site_figure(known: Sequence[LoadedRun], title: str) -> CategoryFigure | None:
    """Return the figure of the newest builds of the machine with the latest run that has a ratio, or None.

    Args:
        known: All runs, the oldest first.
        title: The site's.
    """
    runs = [each for each in known if each.tables]
    hosts = dict.fromkeys(each.host for each in reversed(runs))
    return next((figure for host in hosts
                 if (figure := _of_machine([each for each in runs if each.host == host], title))), None)


def _of_machine(runs: Sequence[LoadedRun], title: str) -> CategoryFigure | None:
    latest = newest(places(runs))
    shown = {key: place for key, place in latest.items() if place.advice.shown}
    builds = in_order(place.build for place in shown.values())[-MOST_BUILDS:]
    groups = list(dict.fromkeys(group for group, build in shown if build in builds))[:MOST_WORKLOADS]
    if not groups:
        return None
    panels = tuple(CategoryPanel(
        title=build, categories=tuple(visible(group[0]) for group in groups),
        series=_series([shown.get((group, build)) for group in groups]), rules=(Rule(1.0, "serial", "y"),),
    ) for build in builds)
    return CategoryFigure(
        name=NAME, title=visible(title), y=Axis("times as fast as serial"), panels=panels,
        whiskers="95 % interval", made=f"Measured {_newest_day(shown.values())} by gilscope")


def _newest_day(shown: Iterable[WorkloadOnBuild]) -> str:
    return max(place.loaded.run.started for place in shown)[:10]


def _series(column: Sequence[WorkloadOnBuild | None]) -> tuple[Series, ...]:
    """Return a series for each model, with NaN for workloads that it has no number for."""
    options = [{each.cell.runner: each.speedup for each in place.advice.shown} if place else {} for place in column]
    models = dict.fromkeys(model for each in options for model in each)
    found = []
    for model in models:
        seen = [each.get(model) for each in options]
        at = [i for i, each in enumerate(seen) if each is not None]
        known = [each for each in seen if each is not None]
        found.append(Series(
            name=model, x=tuple(map(float, at)), y=tuple(each.ratio for each in known),
            lo=tuple(each.lo if each.lo > 0 else nan for each in known),
            hi=tuple(each.hi if each.hi < inf else nan for each in known), model=model))
    return tuple(found)


def badge_values(runs: Sequence[LoadedRun]) -> dict[str, Any] | None:
    """Return the text of the badge, on the newest free-threaded build: "3.14t: 1.9x with 2 threads".

    Args:
        runs: All runs, the oldest first.

    Returns:
        None where no free-threaded build was measured with threads.
    """
    free = [place for place in places([each for each in runs if not each.is_experiment])
            if place.build.free_threaded and place.table.phase is Phase.STEADY and _gains(place)]
    if not free:
        return None
    newest = max(free, key=lambda place: (version_key(place.build.version), place.loaded.run.started))
    of_run = [place for place in free if (place.loaded.id, place.build) == (newest.loaded.id, newest.build)]
    workers = max(workers for place in of_run for workers, _ in _gains(place))
    gains = [ratio for place in of_run for count, ratio in _gains(place) if count == workers]
    label = visible(newest.build.label)
    text = f"{range_text(gains, lambda gain: f'{gain:.1f}x')} with {counted(workers, 'thread')}"
    left, right = (len(each) * CHARACTER + 12 for each in (label, text))
    run = newest.loaded.run
    names = list_text(dict.fromkeys(place.table.workload for place in of_run
                                    if any(count == workers for count, _ in _gains(place))))
    about = (f"{counted(workers, 'thread')} without the GIL against {run.baseline}, both on CPython "
             f"{newest.build.version} ({newest.build.label}): {names}, measured {run.started[:10]} in the run "
             f"{run.label}; estimates, without their intervals")
    return {"label": label, "text": text, "left": round(left), "right": round(right), "says": f"{label}: {text}",
            "about": visible(about, most=None)}


def _gains(place: WorkloadOnBuild) -> list[tuple[int, float]]:
    """Return the numbers of free threads, each with the ratio that is shown for it."""
    return [(result.cell.workers, result.speedup.ratio) for result in place.results
            if result.cell.runner == FREE and result.speedup is not None and result.absence is None
            and result.speedup.significance() != Significance.UNKNOWN]
