"""`scaling`: for each free-threaded build and some 200 operations, the throughput of two threads against two processes.

How it is measured was decided by its price.  A process for each cell and round, as in other experiments, would cost a
second for a value that takes a fifth of one.  So one process of each build serves the operations of an area, see
`measuring`: the scheduler's `RoundMethod` is the place for that, and everything around it stays as it is, from the
rounds of fresh processes to how a run is stored, interrupted and resumed.  What `scale.throughput` counts in a round is
stored as metrics of the cell; the verdict comes from them by `scale.judgement` whenever somebody asks.

After the planned rounds come rounds of their own: one in which the investigation of `gilscope scale` looks for the
cause of the largest losses, each on the newest build that has it, and some for the cells whose verdict is open.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any, override

from gilscope.toolkit.experiments.base import EffortLevel, EffortSettings, Experiment, Publication
from gilscope.toolkit.experiments.results import parameter
from gilscope.toolkit.experiments.scaling.measuring import AreaRounds
from gilscope.toolkit.experiments.scaling.operations import AREAS, OPERATIONS, PRIVATE, SHARED
from gilscope.toolkit.experiments.scaling.shares import CAUSE, WORKERS, OperationShares, is_cause
from gilscope.toolkit.experiments.tables_and_figures import TableBuilder, label_column, value_columns
from gilscope.toolkit.report.document import Column, Entry, Lines
from gilscope.toolkit.scale.judgement import LOST, SCALES, Obstacle, ScalingVerdict
from gilscope.toolkit.units import counted, few, inflect

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gilscope.toolkit.experiments.base import PlanningContext
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.experiments.scaling.shares import FoundCause, OperationShare
    from gilscope.toolkit.measure.rounds import RoundMethod
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Section, Table

WAYS = (SHARED, PRIVATE)
OTHERS = "others"       # operations of an earlier gilscope's run
NO_LINUX = "it needs Linux, whose scheduler tells how long a thread waited for a core"
WITH_GIL = "the GIL is enabled in this build"
ONE_CORE = "two threads need two cores"
LEGEND = (
    "A number is the throughput of 2 threads as a share of that of 2 processes, which share no objects.",
    f"A number alone: it scales, its 95 % interval begins at {SCALES:g} or above.",
    f"'no': it does not scale, the interval ends below {SCALES:g}. '?': open.",
    "'<': threads were hardly ever undisturbed, and reach less than the number.",
    f"{SHARED}: both threads use the same data. {PRIVATE}: each has its own, or there is no data to share.",
)


class ScalingExperiment(Experiment):
    """The atlas: what scales over free threads, build by build."""

    name = "scaling"
    title = "Scaling: what two threads reach of two processes"
    summary = f"{len(OPERATIONS)} operations of Python and its library, shared and private data; what is in the way"
    sources = (Publication(
        title="ftscalingbench.py", author="CPython's developers", year=2024,
        url="https://github.com/python/cpython/blob/main/Tools/ftscalingbench/ftscalingbench.py",
        headline="20 patterns that ought to scale well, but did not in the past; one speed-up for each"),)
    claim = (
        "Free-threaded builds run threads at the same time, but reference counts and locks of shared objects can make "
        "them wait for each other; CPython's own script measures some patterns that once did."
    )
    levels = {
        EffortLevel.SMOKE: EffortSettings(rounds=1, seconds=20, scales={"every": 40, "causes": 1, "more": 0}),
        EffortLevel.QUICK: EffortSettings(rounds=3, seconds=660, scales={"every": 1, "causes": 20, "more": 3}),
        EffortLevel.FULL: EffortSettings(rounds=8, seconds=2700, scales={"every": 1, "causes": 60, "more": 4}),
    }

    @override
    def candidates(self, context: PlanningContext, build: Build) -> Iterator[tuple[Cell, str | None]]:
        model = "free-threaded"
        if not build.free_threaded:      # one reason for all operations
            yield self.cell(build, model, WORKERS), context.runner_reason(build, model) or WITH_GIL
            return
        reason = context.runner_reason(build, model)
        if sys.platform != "linux":
            reason = NO_LINUX
        elif context.cores < WORKERS:
            reason = ONE_CORE
        version = tuple(map(int, build.minor.split(".")))
        for operation in list(OPERATIONS.values())[::int(context.scales["every"])]:
            needed = ".".join(map(str, operation.needs))
            lacking = f"it needs Python {needed} or newer" if version < operation.needs else None
            for way in operation.ways:
                yield self.cell(build, model, WORKERS, operation=operation.name, data=way), reason or lacking

    @override
    def round_method(self, pythons: Mapping[str, str], effort: EffortLevel) -> RoundMethod | None:
        return AreaRounds(pythons)

    @override
    def further_cells(self, results: Results, effort: EffortLevel, rounds: int) -> tuple[Cell, ...]:
        scales, shares = self.levels[effort].scales, OperationShares(results)
        ended = {*(each.cell for each in results.run.failures), *(each.cell for each in results.run.skips)}
        planned = [cell for cell in results.cells() if is_cause(cell)]
        causes = planned or _causes(shares, int(scales["causes"]))
        if wanted := tuple(cell for cell in causes if not results.observations(cell) and cell not in ended):
            return wanted
        most = rounds + int(scales["more"])
        return tuple(cell for cell in shares.cells
                     if cell not in ended and 0 < len(results.values(cell)) < most
                     and shares.verdict(cell) is ScalingVerdict.UNSURE)

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        shares = OperationShares(results)
        without = tuple(f"{build.label}: nothing to measure: {results.reason(cell)}" for build in results.builds
                        if not build.free_threaded for cell in results.cells(build=build.label)[:1])
        areas = [_area_table(shares, area, names) for area, names in _by_area(shares).items()]
        return (*areas, *([Lines("", LEGEND)] if areas else []), *([Lines("", without)] if without else []),
                *_causes_table(shares), *_changes(shares))

    @override
    def findings(self, results: Results) -> tuple[str, ...]:
        shares = OperationShares(results)
        return (*filter(None, (_build_finding(shares, build) for build in shares.builds)),
                *_causes_finding(shares), *_change_findings(shares))

    @override
    def judged(self, results: Results) -> Mapping[Cell, dict[str, Any]]:
        shares = OperationShares(results)
        return {cell: {"scaling": _judged(shares, cell)} for cell in shares.cells}


def _by_area(shares: OperationShares) -> dict[str, list[str]]:
    """Return the names of the measured operations by area, in the order of the table of operations."""
    areas = {each.name: area for area, members in AREAS.items() for each in members}
    found: dict[str, list[str]] = {}
    for name in shares.operations:
        found.setdefault(areas.get(name, OTHERS), []).append(name)
    return found


def _causes(shares: OperationShares, most: int) -> tuple[Cell, ...]:
    """Return the cells that look for the cause of the largest losses, each on the newest build that has it."""
    order = [build.label for build in shares.builds]
    newest: dict[tuple[str, str], Cell] = {}
    for cell in shares.losses():
        key = parameter(cell, "operation"), parameter(cell, "data")
        if key not in newest or order.index(cell.build) > order.index(newest[key].build):
            newest[key] = cell
    chosen = [cell for cell in shares.losses() if cell in newest.values()][:most]
    return tuple(replace(cell, parameters=(*cell.parameters, (CAUSE, "yes"))) for cell in chosen)


def _area_table(shares: OperationShares, area: str, names: Sequence[str]) -> Table:
    table = TableBuilder(shares.results, area[0].upper() + area[1:], label_column("operation"), *(
        column for build in shares.builds for column in value_columns(WAYS, group=build.label, source=build.label)))
    for name in names:
        table.add(name, *(table.entry(shares.operations[name].get((build.label, way)), lambda cell: _text(shares, cell))
                          for build in shares.builds for way in WAYS))
    return table.build()


def _text(shares: OperationShares, cell: Cell) -> str | None:
    share = shares.share(cell)
    if share is None or share.span is None:
        return "?" if share else None
    sign = " no" if shares.limited(cell) else " ?" if shares.verdict(cell) is ScalingVerdict.UNSURE else ""
    return f"{'<' if share.at_most else ''}{share.span.ratio:.2f}{sign}"


def _judged(shares: OperationShares, cell: Cell) -> dict[str, Any] | None:
    share, verdict = shares.share(cell), shares.verdict(cell)
    if share is None or verdict is None:
        return None
    return {"verdict": verdict.value, "at_most": share.at_most, "of_ceiling": share.span and {
        "ratio": share.span.ratio, "lo": share.span.lo, "hi": None if share.span.hi == inf else share.span.hi}}


def _interval(share: OperationShare | None) -> str:
    if share is None or share.span is None:
        return "-"
    return f"{'<' if share.at_most else ''}{share.span.ratio:.2f} [{share.span.lo:.2f}, {share.span.hi:.2f}]"


def _causes_table(shares: OperationShares) -> Iterator[Section]:
    found = [(cell, cause) for cell in shares.cells if (cause := shares.cause(cell)) is not None]
    if not found:
        return
    table = TableBuilder(shares.results, "What is in the way of the largest losses", label_column("operation"),
                         label_column("data"), label_column("build"), *value_columns(("of the ceiling",)),
                         Column(title="verdict", align="left"), Column(title="in the way", align="left"))
    for cell, cause in sorted(found, key=lambda each: shares.ratio(each[0]) or 0.0):
        verdict = shares.verdict(cell)
        table.add(parameter(cell, "operation"), parameter(cell, "data"), cell.build, _interval(shares.share(cell)),
                  verdict.value if verdict else "-", Entry(_way_text(cause)))
    yield table.build()


def _way_text(cause: FoundCause) -> str:
    objects = ", ".join(cause.objects)
    if cause.verdict not in LOST:
        how = f"{cause.verdict.value} when it was investigated"
        if cause.proven:
            return f"{cause.obstacle}: {objects}; {how}"
        return f"not found again: {how}" + (f"; held meanwhile: {objects}" if objects else "")
    if cause.obstacle == Obstacle.UNKNOWN:
        return f"not found ({cause.doubt})" + (f"; held meanwhile: {objects}" if objects else "")
    if cause.doubt:
        return f"{cause.obstacle}, of which objects was not found ({cause.doubt})"
    return f"{cause.obstacle}: {objects}" if objects else cause.obstacle


def _build_finding(shares: OperationShares, build: Build) -> str:
    cells = [cell for cell in shares.cells if cell.build == build.label]
    verdicts = Counter(verdict for cell in cells if (verdict := shares.verdict(cell)) is not None)
    if not verdicts:
        return ""
    private = [parameter(cell, "operation") for cell in shares.losses()
               if cell.build == build.label and parameter(cell, "data") == PRIVATE]
    slower = verdicts[ScalingVerdict.SLOWER]
    scales, open_ = verdicts[ScalingVerdict.SCALES], verdicts[ScalingVerdict.UNSURE]
    lost = verdicts[ScalingVerdict.PLATEAUS] + slower
    return (f"{build.label}: of {counted(verdicts.total(), 'measurement')}, {scales} "
            f"{inflect(scales, 'scales', 'scale')}, {lost} {inflect(lost, 'does', 'do')} not ({slower} of them "
            f"{inflect(slower, 'is', 'are')} slower than one thread), {open_} {inflect(open_, 'is', 'are')} open. "
            f"Among those that do not, {len(private) or 'none'} "
            f"{'has' if len(private) <= 1 else 'have'} private data or none"
            f"{': ' + few(private, 5) if private else ''}.")


def _causes_finding(shares: OperationShares) -> Iterator[str]:
    obstacles = Counter(cause.obstacle for cell in shares.losses()
                        if (cause := shares.cause(cell)) is not None and cause.verdict in LOST)
    if obstacles:
        words = ", ".join(f"{obstacle} ({count})" for obstacle, count in obstacles.most_common())
        yield f"In the way of the {counted(obstacles.total(), 'loss', 'losses')} whose cause was looked for: {words}."


def _changed(shares: OperationShares, before: Build, after: Build) -> tuple[list[str], list[str]]:
    """Return the names that scale on the later build alone, and on the earlier alone; open verdicts do not count."""
    better, worse = [], []
    for name, cells in shares.operations.items():
        for way in WAYS:
            first, second = cells.get((before.label, way)), cells.get((after.label, way))
            if shares.limited(first) and shares.verdict(second) is ScalingVerdict.SCALES:
                better.append(f"{name} ({way})")
            elif shares.limited(second) and shares.verdict(first) is ScalingVerdict.SCALES:
                worse.append(f"{name} ({way})")
    return better, worse


def _change_findings(shares: OperationShares) -> Iterator[str]:
    for before, after in pairwise(shares.builds):
        better, worse = _changed(shares, before, after)
        if better or worse:
            yield (f"From {before.label} to {after.label}: {len(better)} more "
                   f"{inflect(len(better), 'scales', 'scale')}, {len(worse) or 'none'} no longer "
                   f"{'does' if len(worse) <= 1 else 'do'}{': ' + few(worse) if worse else ''}.")


def _changes(shares: OperationShares) -> Iterator[Section]:
    lines = []
    for before, after in pairwise(shares.builds):
        better, worse = _changed(shares, before, after)
        lines += [f"on {after.label}, not on {before.label}: {'; '.join(better)}"] if better else []
        lines += [f"on {before.label}, not on {after.label}: {'; '.join(worse)}"] if worse else []
    if lines:
        yield Lines("What scales on one build and not on the next", tuple(lines))
