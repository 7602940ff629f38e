"""Gain and cost of an evaluation as one figure: times the build with the GIL, each with its interval.  Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gilscope.toolkit.evaluate.sections import Missing
from gilscope.toolkit.evaluate.verdict.answer import gained, paid
from gilscope.toolkit.evaluate.verdict.costs_and_gains import may_tell_speed
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
    """Return what was measured of gain and cost; None where nothing was."""
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
    """Yield what threads gain on each build; a bound is no value with an interval."""
    for each in found.builds:
        gain = gained(each, found.machine)
        if isinstance(gain, Missing) or gain.lo is None or gain.hi is None:
            continue
        with_threads = f", {counted(gain.threads, 'thread')}" if gain.threads else ""
        how = "" if gain.how == "measured" else f" ({gain.how})"
        yield Bar(f"{each.build.label}{with_threads}{how}", gain.ratio, gain.lo, gain.hi)


def _models(found: Evaluation) -> Iterator[Bar]:
    """Yield what other models do on the builds with a GIL, against threads there."""
    if not may_tell_speed(found.machine):
        return
    models = [*((f"processes {each.build.label}", each.measured) for each in found.processes),
              *((f"subinterpreters {each.build.label}", each.measured) for each in found.interpreters)]
    for name, measured in models:
        if not isinstance(measured, Missing) and measured.verdict() != "unknown":
            yield Bar(name, measured.ratio, measured.lo, measured.hi)


def _costs(found: Evaluation) -> Iterator[Bar]:
    for each in found.builds:
        cost = paid(each, told=may_tell_speed(found.machine))
        if isinstance(cost, Missing):
            continue
        label = f"{each.build.label}, the GIL forced off" if cost.forced else each.build.label
        yield Bar(f"{label}, CPU", cost.times, cost.lo, cost.hi)
        if cost.memory is not None:
            share = cost.memory.here / cost.memory.there
            yield Bar(f"{label}, memory", share, share, share)
