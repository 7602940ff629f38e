"""The picture that shows with a link to a site: what each model gains, by the newest runs, as a figure."""

from __future__ import annotations

from math import inf, nan
from typing import TYPE_CHECKING

from gilscope.toolkit.escaping import visible
from gilscope.toolkit.report.figures.figure import Axis, CategoryFigure, CategoryPanel, Rule, Series
from gilscope.toolkit.report.figures.plots.look.palette import MODELS, family
from gilscope.toolkit.site.pages.newest import in_order, newest, places

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gilscope.toolkit.site.pages.newest import Place
    from gilscope.toolkit.site.sources import Known

NAME = "site"
MOST_BUILDS, MOST_WORKLOADS = 2, 5   # that are read in a picture as small as those beside links


def site_figure(known: Sequence[Known], title: str) -> CategoryFigure | None:
    """Return the figure of the newest builds of a machine, of the one with the newest run that has a ratio; else None.

    Args:
        known: All runs, the oldest first.
        title: The site's.
    """
    runs = [each for each in known if each.tables]
    hosts = dict.fromkeys(each.host for each in reversed(runs))
    return next((figure for host in hosts
                 if (figure := _of_machine([each for each in runs if each.host == host], title))), None)


def _of_machine(runs: Sequence[Known], title: str) -> CategoryFigure | None:
    latest = newest(places(runs))
    found = {key: place for key, place in latest.items() if place.advice.shown}
    builds = in_order(place.build for place in found.values())[-MOST_BUILDS:]
    groups = list(dict.fromkeys(group for group, build in found if build in builds))[:MOST_WORKLOADS]
    if not groups:
        return None
    panels = tuple(CategoryPanel(
        title=build, categories=tuple(visible(group[0]) for group in groups),
        series=_series([found.get((group, build)) for group in groups]), rules=(Rule(1.0, "serial", "y"),),
    ) for build in builds)
    return CategoryFigure(
        name=NAME, title=visible(title), y=Axis("times as fast as serial"), panels=panels,
        whiskers="95 % interval", made=f"Measured {_newest_day(found.values())} by gilscope")


def _newest_day(shown: Iterable[Place]) -> str:
    return max(place.known.run.started for place in shown)[:10]


def _series(column: Sequence[Place | None]) -> tuple[Series, ...]:
    """Return a series for each model, NaN where a workload has no number of it."""
    options = [{each.cell.runner: each.speedup for each in place.advice.shown} if place else {} for place in column]
    models = dict.fromkeys(model for each in options for model in each if family(model) in MODELS)
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
