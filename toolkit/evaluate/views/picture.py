"""Gain and cost of an evaluation as one figure: times the build with the GIL, each with its interval.  Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gilscope.toolkit.evaluate.decision import Gained
from gilscope.toolkit.evaluate.facts import processes_on, subinterpreters_on
from gilscope.toolkit.evaluate.sections import known
from gilscope.toolkit.report.figures.figure import Axis, CategoryFigure, CategoryPanel, Rule, Series
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.evaluate.evaluation import Evaluation

NAME = "free-threading"   # of its files
NOTE = "1: as the build with the GIL. Left: more is better. Right: less is better."


class Bar(NamedTuple):
    """One value with its interval."""

    category: str
    value: float
    lo: float
    hi: float


def figure(found: Evaluation) -> CategoryFigure | None:
    """Return the figure of gain and cost; None if neither was measured."""
    panels = [_panel(title, bars) for title, bars in (
        ("speed", [*_gains(found), *_models(found)]), ("cost", [*_costs(found)])) if bars]
    if not panels:
        return None
    return CategoryFigure(name=NAME, title=f"{found.project.name} without a GIL", panels=tuple(panels),
                          y=Axis("times the build with the GIL"), note=NOTE)


def _panel(title: str, bars: Sequence[Bar]) -> CategoryPanel:
    series = Series(name="", x=tuple(map(float, range(len(bars)))), y=tuple(bar.value for bar in bars),
                    lo=tuple(bar.lo for bar in bars), hi=tuple(bar.hi for bar in bars))
    return CategoryPanel(title, tuple(bar.category for bar in bars), (series,), rules=(Rule(1.0, "with the GIL", "y"),))


def _gains(found: Evaluation) -> Iterator[Bar]:
    """Yield the gain from threads on each build, without bounds, which have no interval."""
    for fact in found.facts:
        match fact.gain:
            case Gained(lo=float(lo), hi=float(hi)) as gain:
                with_threads = f", {counted(gain.threads, 'thread')}" if gain.threads else ""
                how = "" if gain.how == "measured" else f" ({gain.how})"
                yield Bar(f"{fact.target}{with_threads}{how}", gain.ratio, lo, hi)


def _models(found: Evaluation) -> Iterator[Bar]:
    """Yield the results of other models on the builds with a GIL, against threads there."""
    targets = {**{processes_on(each.label): f"processes {each.label}" for each in found.with_processes},
               **{subinterpreters_on(each.label): f"subinterpreters {each.label}" for each in found.with_gil}}
    for target, category in targets.items():
        yield from (Bar(category, fact.value.ratio, fact.value.lo, fact.value.hi)
                    for fact in found.facts if fact.target == target and fact.value)


def _costs(found: Evaluation) -> Iterator[Bar]:
    for fact in found.facts:
        if fact.cost is None or (cost := known(fact.cost)) is None:
            continue
        label = f"{fact.target}{', the GIL forced off' * cost.forced}"
        yield Bar(f"{label}, CPU", cost.times, cost.lo, cost.hi)
        if cost.memory is not None:
            share = cost.memory.here / cost.memory.there
            yield Bar(f"{label}, memory", share, share, share)
