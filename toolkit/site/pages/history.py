"""Ratios over versions and dates.

Only ratios within a run are followed, as the state of the machine affects both of their sides.
Runs of different times are shown beside each other and not judged, as by `gilscope compare`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.report.document import Quantity, RatioValue
from gilscope.toolkit.report.table_sentences import title_text
from gilscope.toolkit.report.wording import interval_text, ratio_text
from gilscope.toolkit.site.charts.lines import ChartLine, ChartPoint, lines, ratio_point
from gilscope.toolkit.site.page_values import shown, shown_value
from gilscope.toolkit.site.pages.newest import by_host, group_of, in_order, newest, places
from gilscope.toolkit.site.style import legend, mark_of, shapes
from gilscope.toolkit.stats.sessions import FEWEST
from gilscope.toolkit.units import counted, inflect

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gilscope.toolkit.model import Build
    from gilscope.toolkit.report.table.matrix import WorkloadTable
    from gilscope.toolkit.report.table.observations import Group
    from gilscope.toolkit.site.sources import LoadedRun
    from gilscope.toolkit.stats.sample import Summary
    from gilscope.toolkit.stats.verdict import Comparison

COMMIT = 10     # characters of a commit that are shown, as by git
_SeriesKey = tuple[bool, str, int, str, str]   # of builds, model, workers, build, against
COST = "CPU time of one worker"   # followed on free-threaded builds, beside speed-ups


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryResult:
    """One run's result for a ratio that is followed."""

    loaded: LoadedRun
    table: WorkloadTable
    build: Build
    ratio: Comparison
    time: Summary | None      # wall seconds of the sample

    @property
    def day(self) -> str:
        """Return when the run was started."""
        return self.loaded.run.started[:10]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySeries:
    """Results of one ratio on one machine, the oldest first."""

    host: str
    group: Group
    of_builds: bool           # a build is compared with a build: the cost of one worker
    model: str                # of a series of builds: the baseline
    workers: int
    build: str
    against: str              # the model or the build that it is a ratio to
    results: tuple[HistoryResult, ...]

    @property
    def name(self) -> str:
        """Return the ratio in words."""
        if self.of_builds:
            return f"{self.build} against {self.against}, {COST}"
        return f"{self.model}, N = {self.workers}, on {self.build}"

    @property
    def mark(self) -> str:
        """The model whose mark it has: that of the baseline where builds are compared."""
        return "serial" if self.of_builds else self.model


def follow(runs: Sequence[LoadedRun]) -> list[HistorySeries]:
    """Return every ratio that some run has, each with its results.

    Args:
        runs: All runs, the oldest first.  Results count as of one series where the work was the same.
    """
    found: dict[tuple[Any, ...], list[HistoryResult]] = {}
    for each in runs:
        for table in each.tables:
            for key, result in _results(each, table):
                found.setdefault((each.host, group_of(table), _work(each), *key), []).append(result)
    return [HistorySeries(host=host, group=group, of_builds=of_builds, model=model, workers=workers, build=build,
                          against=against, results=tuple(results))
            for (host, group, _, of_builds, model, workers, build, against), results in found.items()]


def _work(loaded: LoadedRun) -> tuple[Any, ...]:
    """Return the options that change the work of a workload: those that `compare` refuses to mix."""
    selection = loaded.run.options.get("selection") or {}
    user = selection.get("user") or {}
    return user.get("payload"), user.get("payloads"), selection.get("size") == "large"


def _results(loaded: LoadedRun, table: WorkloadTable) -> Iterable[tuple[_SeriesKey, HistoryResult]]:
    builds = {build.label: build for build in loaded.run.builds}
    for row in table.rows:
        for result in row.results:
            if result.speedup is not None and result.absence is None:
                cell = result.cell
                yield (False, cell.runner, cell.workers, cell.build, table.baseline), HistoryResult(
                    loaded=loaded, table=table, build=builds[cell.build], ratio=result.speedup, time=result.time)
    for each in table.contrasts:
        alone = each.sample.workers == 1 and each.sample.runner == table.baseline
        if alone and each.comparison is not None and builds[each.sample.build].free_threaded:
            yield (True, table.baseline, 1, each.sample.build, each.baseline.build), HistoryResult(
                loaded=loaded, table=table, build=builds[each.sample.build], ratio=each.comparison,
                time=each.sample_time)


def workload_pages(runs: Sequence[LoadedRun]) -> dict[Group, str]:
    """Return the file of each workload's page."""
    files: dict[Group, str] = {}
    for each in runs:
        for table in each.tables:
            if group_of(table) not in files:
                plain = re.sub(r"[^a-z0-9]+", "-", title_text(table).lower()).strip("-")[:60] or "workload"
                more = sum(name.startswith(f"history-{plain}") for name in files.values())
                files[group_of(table)] = f"history-{plain}{f'--{more + 1}' if more else ''}.html"
    return files


def history_values(runs: Sequence[LoadedRun], series: Sequence[HistorySeries]) -> dict[str, Any]:
    """Return the values of `history.html` but those around it: where each workload is."""
    files = workload_pages(runs)
    return shown({
        "followed": f"{counted(len(series), 'ratio')} of {counted(len([each for each in runs if each.tables]), 'run')} "
                    f"{inflect(len(series), 'is', 'are')}",
        "workloads": [{"title": title_text(table), "link": files[group], **_extent(group, series)}
                      for group, table in _tables(runs).items()],
    })


def _tables(runs: Sequence[LoadedRun]) -> dict[Group, WorkloadTable]:
    return {group_of(table): table for each in runs for table in each.tables}


def _extent(group: Group, series: Sequence[HistorySeries]) -> dict[str, Any]:
    results = [result for each in series if each.group == group for result in each.results]
    return {"runs": len({result.loaded.id for result in results}),
            "builds": ", ".join(in_order(result.build for result in results))}


def workload_values(
    group: Group, known: Sequence[LoadedRun], series: Sequence[HistorySeries], files: Mapping[str, Mapping[str, str]],
) -> dict[str, Any]:
    """Return the values of `history-workload.html` but those around it.

    Args:
        group: The workload.
        known: All runs, the oldest first.
        series: What `follow` returned.
        files: By a run's id and build, where the page finds its pyperf file.
    """
    table = _tables(known)[group]
    own = [each for each in series if each.group == group]
    return shown({
        "title": title_text(table), "baseline": table.baseline, "shapes": shapes(),
        "models": legend([each.model for each in own if not each.of_builds])
                  + [{"model": each, **mark_of("serial")} for each in dict.fromkeys(
                      f"{one.build} against {one.against}, {COST}" for one in own if one.of_builds)],
        "of_builds": any(each.of_builds for each in own),
        "hosts": [_host(host, group, runs, [each for each in own if each.host == host])
                  for host, runs in by_host([each for each in known if each.tables]).items()
                  if any(each.host == host for each in own)],
        "rows": [_row(each, result, files.get(result.loaded.id, {})) for each in own for result in each.results],
        "several": len({each.host for each in own}) > 1, "fewest": FEWEST,
    })


def _host(host: str, group: Group, runs: Sequence[LoadedRun], series: Sequence[HistorySeries]) -> dict[str, Any]:
    there = {result.loaded.id for each in series for result in each.results}
    days = [each for each in runs if each.id in there]
    at = {each.id: float(i) for i, each in enumerate(days)}
    words = [(at[each.id], text)
             for each, text in zip(days, _ticks([one.run.started for one in days]), strict=True)]
    charts = []
    for build in dict.fromkeys(each.build for each in series):
        drawn = [_over_dates(each, at) for each in _widest(series) if each.build == build]
        if len(words) > 1 and any(len(line.points) > 1 for line in drawn):
            charts.append(lines(f"{build}: ratio over runs", drawn, words, bands=True))
    return {"name": host, "versions": _over_versions(group, runs), "dates": charts,
            "one": counted(len(words), "run")}


def commit_of(build: Build) -> str:
    """Return the commit that a build was made from; "": it does not say."""
    return "" if ":" in build.revision else build.revision   # "sha256:..." is that of a tarball


def _ticks(starts: Sequence[str]) -> list[str]:
    """Return the label below each run, the oldest first: its day, with the time if two have one day."""
    days = [each[5:10] for each in starts]
    return days if len(set(days)) == len(days) else [f"{each[5:10]} {each[11:16]}" for each in starts]


def _widest(series: Sequence[HistorySeries]) -> list[HistorySeries]:
    """Return the series with the most workers for each model and build: a picture has room for one."""
    most: dict[tuple[bool, str, str], HistorySeries] = {}
    for each in series:
        key = each.of_builds, each.model, each.build
        if key not in most or each.workers > most[key].workers:
            most[key] = each
    return list(most.values())


def _over_dates(series: HistorySeries, at: Mapping[str, float]) -> ChartLine:
    points = tuple(
        ratio_point(at[each.loaded.id], each.ratio,
                    f"{each.day}, {each.loaded.run.label}: {interval_text(each.ratio)}")
        for each in series.results if each.loaded.id in at)
    return ChartLine(model=series.mark, name=series.name, points=points)


def _over_versions(group: Group, runs: Sequence[LoadedRun]) -> dict[str, Any] | None:
    """Return the newest ratios over builds; None where there is one build only."""
    found = {build: place for (about, build), place in newest(places(runs)).items() if about == group}
    order = in_order(place.build for place in found.values())
    models: dict[str, list[ChartPoint]] = {}
    for i, build in enumerate(order):
        for option in found[build].advice.shown:
            models.setdefault(option.cell.runner, []).append(ratio_point(
                i, option.speedup, f"{build}, N = {option.cell.workers}: {ratio_text(option.speedup)}"))
    if len(order) < 2 or not models:  # one is no history
        return None
    drawn = [ChartLine(model=model, name=model, points=tuple(points)) for model, points in models.items()]
    return lines("The newest ratios over versions", drawn, [(float(i), build) for i, build in enumerate(order)])


def _row(series: HistorySeries, result: HistoryResult, files: Mapping[str, str]) -> dict[str, Any]:
    time = result.time
    return {
        "day": result.day, "label": result.loaded.run.label, "link": result.loaded.page, "host": series.host,
        "build": series.build, "version": result.build.version, "commit": commit_of(result.build)[:COMMIT],
        "model": COST if series.of_builds else series.model, "workers": series.workers,
        **mark_of(series.mark), "against": series.against,
        "ratio": shown_value(RatioValue(result.ratio, "interval")),
        "verdict": result.ratio.verdict(),
        "time": None if time is None else shown_value(Quantity(time.center, "seconds")),
        "sessions": result.ratio.sessions, "file": files.get(series.build),
        "against_file": files.get(series.against) if series.of_builds else None,
    }
