"""The first page: what to use, by workload and build, and warnings."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.report.answer import control_text, without_option
from gilscope.toolkit.report.document import GainValue
from gilscope.toolkit.report.run_list import status_text
from gilscope.toolkit.report.wording import beside, gain_text, or_text
from gilscope.toolkit.site.charts.cells import glance, glance_axis
from gilscope.toolkit.site.charts.scale import ratio_scale
from gilscope.toolkit.site.how_to_repeat import days_text
from gilscope.toolkit.site.page_values import shown
from gilscope.toolkit.site.pages.newest import by_host, in_order, newest, places, run_names, sorted_by_kind
from gilscope.toolkit.site.pages.run import run_title
from gilscope.toolkit.site.style import legend, shapes
from gilscope.toolkit.units import counted, format_bytes, list_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gilscope.toolkit.site.charts.scale import ChartScale
    from gilscope.toolkit.site.pages.newest import WorkloadOnBuild
    from gilscope.toolkit.site.sources import LoadedRun

def home_values(
    known: Sequence[LoadedRun], kinds: Mapping[str, str], lost: int = 0, *, lost_answers: int = 0,
) -> dict[str, Any]:
    """Return the values of `home.html` but those around it.

    Args:
        known: All runs, the oldest first.
        kinds: Of the catalogue's workloads.
        lost: How many runs could not be read.
        lost_answers: How many answers could not be read.
    """
    runs = [each for each in known if not each.is_experiment]
    hosts = [_host(name, found, kinds) for name, found in by_host(runs).items()]
    models = [row.runner for each in runs for table in each.tables for row in table.rows]
    return shown({
        "warnings": [*_lost(lost, "run"), *_lost(lost_answers, "answer"), *_warnings(known)],
        "hosts": hosts, "models": legend(models),
        "runs": [_run(each) for each in reversed(known)], "several": len({each.host for each in known}) > 1,
        "shapes": shapes(),
    })


def _lost(count: int, *words: str) -> Iterator[dict[str, str]]:
    """Yield a warning if so many of something could not be read."""
    if count:
        yield {"text": f"{counted(count, *words)} could not be read and {'is' if count == 1 else 'are'} left out.",
               "link": ""}


def _warnings(runs: Sequence[LoadedRun]) -> Iterator[dict[str, str]]:
    """Yield warnings, each with the page that has the details."""
    notes: dict[str, list[LoadedRun]] = {}
    names = run_names(runs)
    for each in runs:
        for text in each.cautions:
            notes.setdefault(text, []).append(each)
        absent = [result.absence.word for table in each.tables for row in table.rows for result in row.results
                  if result.absence is not None]
        for word in ("failed", "starved"):
            if count := absent.count(word):
                yield {"text": f"{names[each.id]}: {counted(count, 'cell')} {word}.", "link": each.page}
    for text, found in notes.items():
        yield {"text": f"{list_text(names[each.id] for each in found)}: {text}", "link": found[-1].page}


def _host(name: str, runs: Sequence[LoadedRun], kinds: Mapping[str, str]) -> dict[str, Any]:
    latest = newest(places(runs))
    tables = {group: place.table for (group, _), place in latest.items()}
    machine = runs[-1].run.machine
    memory = "" if machine.memory_bytes is None else f", {format_bytes(machine.memory_bytes)}"
    builds = in_order(place.build for place in latest.values())
    scale = ratio_scale([each for place in latest.values() for option in place.advice.shown
                         for each in (option.speedup.ratio, *option.speedup.printed)], 6, 154)
    return {
        "name": name, "builds": builds, "axis": glance_axis(scale),
        "control": control_text(place.table for place in latest.values()),
        "machine": f"{machine.cpu_model} ({machine.cores} cores{memory}), {machine.system}",
        "dates": days_text(each.run.started for each in runs),
        "rows": [{"kind": kind, "title": title, "places": [
            _place(latest.get((group, build)), title, build, scale) for build in builds]}
            for kind, group, title in sorted_by_kind(tables, kinds)],
    }


def _place(place: WorkloadOnBuild | None, title: str, build: str, scale: ChartScale) -> dict[str, Any] | None:
    """Return a small picture of one workload on one build, and its result in a few words."""
    if place is None:
        return None
    advice = place.advice
    picture = glance(f"{title} on {build}", [(each.cell, each.speedup) for each in advice.shown], scale)
    if advice.options:
        gains: dict[str, str] = {}   # by model: of several worker counts the preferred one
        for each in advice.options:
            gains.setdefault(each.cell.runner, gain_text(GainValue(each.speedup)) + beside(each.speedup))
        between = " " if len(gains) > 1 else ", "
        answer = or_text(f"{model}{between}{gain}" for model, gain in gains.items())
    else:
        answer = without_option(place.table, advice) or place.table.baseline
    return {"picture": picture, "answer": answer, "link": place.link}


def _run(loaded: LoadedRun) -> dict[str, Any]:
    run = loaded.run
    started = datetime.fromisoformat(run.started)
    return {"title": run_title(run), "label": run.label, "link": loaded.page, "host": loaded.host,
            "started": started.strftime("%Y-%m-%d %H:%M"),
            "rounds": run.rounds_done, "planned": run.rounds_planned, "status": status_text(run)}
