"""Ratios over versions and dates.

Only ratios within a run are followed: the machine's mood is in both of their sides.  A change is marked where what a
ratio leaves open lies clear of what the ratio it is held against leaves open: beyond the noise floors of both runs and
the intervals that their words go by.  Times of different runs are shown and not judged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.report.document import Duration
from gilscope.toolkit.report.table import judge
from gilscope.toolkit.report.table.judgement import judgeable
from gilscope.toolkit.report.table_sentences import title_text
from gilscope.toolkit.report.wording import interval_text, ratio_text, value_text
from gilscope.toolkit.site.charts.lines import Line, Point, lines
from gilscope.toolkit.site.charts.model_marks import legend, mark_of, shapes
from gilscope.toolkit.site.page_values import shown
from gilscope.toolkit.site.pages.newest import by_host, group_of, in_order, newest, places
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gilscope.toolkit.model import Build
    from gilscope.toolkit.report.table import WorkloadTable
    from gilscope.toolkit.report.table.observations import Group
    from gilscope.toolkit.site.sources import Known
    from gilscope.toolkit.stats.sample import Summary
    from gilscope.toolkit.stats.words import Comparison

COST = "CPU time of one worker"   # what it costs on a free-threaded build is followed, too


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one run says of a ratio that is followed."""

    known: Known
    table: WorkloadTable
    build: Build
    ratio: Comparison
    time: Summary | None      # wall seconds of the sample
    held: Result | None = None   # what it is clear of: the one that began the stretch before it

    @property
    def day(self) -> str:
        """Return when the run was started."""
        return self.known.run.started[:10]

    @property
    def changed(self) -> bool:
        """Return whether it is a change."""
        return self.held is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Results of one ratio on one machine, the oldest first."""

    host: str
    group: Group
    model: str
    workers: int
    build: str
    against: str              # the model or the build that it is a ratio to
    results: tuple[Result, ...]

    @property
    def name(self) -> str:
        """Return the ratio in words."""
        if self.of_builds:
            return f"{self.build} against {self.against}, {COST}"
        return f"{self.model}, N = {self.workers}, on {self.build}"

    @property
    def of_builds(self) -> bool:
        """Return whether a build is compared with a build."""
        return self.model == COST


def follow(known: Sequence[Known]) -> list[Series]:
    """Return every ratio that some run has, each with its results and changes.

    Args:
        known: All runs, the oldest first.  Results count as of one series where the work was the same.
    """
    found: dict[tuple[Any, ...], list[Result]] = {}
    for each in known:
        for table in each.tables:
            for key, result in _results(each, table):
                found.setdefault((each.host, group_of(table), _work(each), *key), []).append(result)
    return [Series(host=host, group=group, model=model, workers=workers, build=build, against=against,
                   results=marked(results))
            for (host, group, _, model, workers, build, against), results in found.items()]


def _work(known: Known) -> tuple[Any, ...]:
    """Return what makes the work of a workload another one: what `compare` refuses to compare, its name beside."""
    asked = known.run.options.get("selection") or {}
    user = asked.get("user") or {}
    return user.get("payload"), user.get("payloads"), asked.get("size") == "large"


def _results(known: Known, table: WorkloadTable) -> Iterable[tuple[tuple[str, int, str, str], Result]]:
    builds = {build.label: build for build in known.run.builds}
    for row in table.rows:
        for result in row.results:
            if result.speedup is not None and result.absence is None:
                cell = result.cell
                yield (cell.runner, cell.workers, cell.build, table.baseline), Result(
                    known=known, table=table, build=builds[cell.build], ratio=result.speedup, time=result.time)
    for each in table.contrasts:
        alone = each.sample.workers == 1 and each.sample.runner == table.baseline
        if alone and each.comparison is not None and builds[each.sample.build].free_threaded:
            yield (COST, 1, each.sample.build, each.baseline.build), Result(
                known=known, table=table, build=builds[each.sample.build], ratio=each.comparison, time=each.sample_time)


def marked(results: Sequence[Result]) -> tuple[Result, ...]:
    """Return results with those marked that are clear of the one that begins their stretch, which they end."""
    found: list[Result] = []
    held: Result | None = None
    for each in results:
        begins = judgeable(each.ratio) and (held is None or clear_of(held.ratio, each.ratio))
        found.append(replace(each, held=held) if begins else each)
        if begins:
            held = each
    return tuple(found)


def clear_of(first: Comparison, second: Comparison) -> bool:
    """Return whether nothing that one ratio leaves open is left open by the other."""
    (lo, hi), (least, most) = first.between, second.between
    return hi < least or most < lo


def workload_pages(known: Sequence[Known]) -> dict[Group, str]:
    """Return the file of each workload's page."""
    files: dict[Group, str] = {}
    for each in known:
        for table in each.tables:
            if group_of(table) not in files:
                plain = re.sub(r"[^a-z0-9]+", "-", title_text(table).lower()).strip("-")[:60] or "workload"
                more = sum(name.startswith(f"history-{plain}") for name in files.values())
                files[group_of(table)] = f"history-{plain}{f'--{more + 1}' if more else ''}.html"
    return files


def history_values(known: Sequence[Known], series: Sequence[Series]) -> dict[str, Any]:
    """Return the values of `history.html` but those around it: what changed, and where each workload is."""
    files = workload_pages(known)
    return shown({
        "changes": [_change(each, at) for each in series for at, result in enumerate(each.results) if result.changed],
        "followed": len(series), "runs": len([each for each in known if each.tables]),
        "workloads": [{"title": title_text(table), "link": files[group], **_extent(group, series)}
                      for group, table in _tables(known).items()],
    })


def _tables(known: Sequence[Known]) -> dict[Group, WorkloadTable]:
    return {group_of(table): table for each in known for table in each.tables}


def _extent(group: Group, series: Sequence[Series]) -> dict[str, Any]:
    results = [result for each in series if each.group == group for result in each.results]
    return {"runs": len({result.known.id for result in results}),
            "builds": ", ".join(in_order(result.build for result in results)),
            "changes": sum(result.changed for result in results)}


def change_text(series: Series, at: int) -> str:
    """Return what changed with the result `at`, in a sentence without its end."""
    now = series.results[at]
    if now.held is None:
        raise AssertionError("what is no change has nothing that it is clear of")
    before = now.held
    return (f"{title_text(now.table)}: {series.name}: {interval_text(now.ratio)} since {now.day}, "
            f"{interval_text(before.ratio)} on {before.day}")


def _change(series: Series, at: int) -> dict[str, Any]:
    now = series.results[at]
    return {"text": change_text(series, at), "host": series.host,
            "label": now.known.run.label, "link": now.known.page, "version": f"CPython {now.build.version}"}


def workload_values(
    group: Group, known: Sequence[Known], series: Sequence[Series], files: Mapping[str, Mapping[str, str]],
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
        "rows": [_row(each, result, files.get(result.known.id, {})) for each in own for result in each.results],
        "several": len({each.host for each in own}) > 1,
    })


def _host(host: str, group: Group, runs: Sequence[Known], series: Sequence[Series]) -> dict[str, Any]:
    there = {result.known.id for each in series for result in each.results}
    days = [each for each in runs if each.id in there]
    at = {each.id: float(i) for i, each in enumerate(days)}
    words = [(at[each.id], text) for each, text in zip(days, _ticks(days), strict=True)]
    charts = []
    for build in dict.fromkeys(each.build for each in series):
        drawn = [_over_dates(each, at) for each in _widest(series) if each.build == build]
        if len(words) > 1 and any(len(line.points) > 1 for line in drawn):
            charts.append(lines(f"{build}: ratio over runs", drawn, words, bands=True))
    return {"name": host, "versions": _over_versions(group, runs), "dates": charts,
            "one": counted(len(words), "run")}


def _ticks(runs: Sequence[Known]) -> list[str]:
    """Return what stands below each run, the oldest first: its day, of more runs of that day their times."""
    days = [each.run.started[5:10] for each in runs]
    return [day if i == 0 or days[i - 1] != day else runs[i].run.started[11:16] for i, day in enumerate(days)]


def _widest(series: Sequence[Series]) -> list[Series]:
    """Return of each model and build the series with the most workers, as a picture has room for one."""
    most: dict[tuple[str, str], Series] = {}
    for each in series:
        key = each.model, each.build
        if key not in most or each.workers > most[key].workers:
            most[key] = each
    return list(most.values())


def _over_dates(series: Series, at: Mapping[str, float]) -> Line:
    points = tuple(
        Point(x=at[each.known.id], y=each.ratio.ratio, lo=each.ratio.between[0], hi=each.ratio.between[1],
              changed=each.changed, says=f"{each.day}, {each.known.run.label}: {interval_text(each.ratio)}"
              + (", a change" if each.changed else ""))
        for each in series.results)
    return Line(model="serial" if series.of_builds else series.model, name=series.name, points=points)


def _over_versions(group: Group, runs: Sequence[Known]) -> dict[str, Any] | None:
    """Return the newest ratios over builds; None where there is one build only."""
    found = {build: place for (about, build), place in newest(places(runs)).items() if about == group}
    order = in_order(place.build for place in found.values())
    models: dict[str, list[Point]] = {}
    for i, build in enumerate(order):
        for option in found[build].advice.shown:
            seen = option.speedup
            models.setdefault(option.cell.runner, []).append(Point(
                x=float(i), y=seen.ratio, lo=seen.lo, hi=seen.hi,
                says=f"{build}, N = {option.cell.workers}: {ratio_text(seen)}"))
    if len(order) < 2 or not models:  # noqa: PLR2004 - one is no history
        return None
    drawn = [Line(model=model, name=model, points=tuple(points)) for model, points in models.items()]
    return lines("The newest ratios over versions", drawn, [(float(i), build) for i, build in enumerate(order)])


def _row(series: Series, result: Result, files: Mapping[str, str]) -> dict[str, Any]:
    time = result.time
    return {
        "day": result.day, "label": result.known.run.label, "link": result.known.page, "host": series.host,
        "build": series.build, "version": result.build.version, "model": series.model, "workers": series.workers,
        **mark_of("serial" if series.of_builds else series.model), "against": series.against,
        "ratio": {"text": interval_text(result.ratio), "sort": result.ratio.ratio}, "verdict": judge(result.ratio),
        "time": None if time is None else {"text": value_text(Duration(time.center)), "sort": time.center},
        "changed": result.changed, "file": files.get(series.build),
        "against_file": files.get(series.against) if series.of_builds else None,
    }
