"""Cells set against one another: build against build, runner against runner, run against run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from gilscope.toolkit.errors import UnknownNameError
from gilscope.toolkit.model import Note, Phase
from gilscope.toolkit.report.table.observations import Absence, Clock, Index, group_of
from gilscope.toolkit.report.table.ratios import Ratios
from gilscope.toolkit.stats.looks import at_last
from gilscope.toolkit.stats.paired import conclude
from gilscope.toolkit.stats.ratios import simultaneous
from gilscope.toolkit.stats.sample import Summary, summarize
from gilscope.toolkit.stats.unpaired import Apart, level

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gilscope.toolkit.model import Cell, Run
    from gilscope.toolkit.stats.words import Comparison

DRIFT = Note(text="the two runs were made at different times: how the machine changed between them "
                  "is not in the intervals")
Choice = Literal["wall", "cpu", "auto"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """One cell against another.  `comparison.ratio` > 1: the sample is faster."""

    baseline: Cell
    sample: Cell
    clock: Clock
    comparison: Comparison | None = None
    reason: str | None = None   # why there is no comparison
    baseline_time: Summary | None = None   # seconds on `clock`; None where that side has no number
    sample_time: Summary | None = None
    half: float | None = None              # of the interval, a share, of two runs: they were not measured together
    half_together: float | None = None     # that one run with both would have; None: not known


def pick_clock(choice: Choice, workers: int) -> Clock:
    """Return the clock to compare by: CPU time is steadier, but more workers are there to save wall time."""
    if choice == "auto":
        return "cpu" if workers == 1 else "wall"
    return choice


def compare_builds(
    run: Run, first: str, second: str, clock: Choice = "auto", *, noise: Ratios | None = None,
) -> tuple[Contrast, ...]:
    """Set build `second` against build `first` of one run, cell by cell, paired by round.

    Args:
        run: Of which the builds are.
        first: The baseline.
        second: What it is compared with.
        clock: Which to compare by.
        noise: Of the run, where it is known already: who asks for many pairs of one run waits for it once.

    Raises:
        UnknownNameError: The run has no such build.
    """
    index = noise.index if noise else Index(run)
    for label in (first, second):
        if label not in index.builds:
            raise UnknownNameError(f"{run.label!r} has no build {label!r}; it has {', '.join(index.builds)}")
    cells = index.cells()
    keys = {replace(cell, build=first) for cell in cells if cell.build in {first, second}}
    ratios = _showing(index, noise, len(keys))
    return tuple(
        contrast
        for group in dict.fromkeys(map(group_of, cells))
        for contrast in contrast_builds(
            ratios, [cell for cell in cells if group_of(cell) == group], first, second, clock)
    )


def contrast_builds(
    ratios: Ratios, cells: Sequence[Cell], first: str, second: str, clock: Choice = "auto",
) -> list[Contrast]:
    """Set build `second` against `first` for every runner and number of workers among `cells` of one group."""
    keys = dict.fromkeys(replace(cell, build=first) for cell in cells if cell.build in {first, second})
    return [_paired(ratios, cell, replace(cell, build=second), clock) for cell in keys]


def _showing(index: Index, noise: Ratios | None, words: int) -> Ratios:
    return noise.showing(words) if noise else Ratios(index, words)


def compare_models(
    run: Run, first: str, second: str, clock: Choice = "auto", *, noise: Ratios | None = None,
) -> tuple[Contrast, ...]:
    """Set runner `second` against runner `first` of one run, build by build, paired by round.

    Cells with the same number of workers are compared; where `first` has only one worker, as the baseline has, that
    cell is compared with every number of workers of `second`.  The arguments are those of `compare_builds`.

    Raises:
        UnknownNameError: The run has no such runner.
    """
    index = noise.index if noise else Index(run)
    cells = index.cells()
    known = list(dict.fromkeys(cell.runner for cell in cells))
    for name in (first, second):
        if name not in known:
            raise UnknownNameError(f"{run.label!r} has no model {name!r}; it has {', '.join(known)}")
    pairs = []
    counted: dict[Cell, set[int]] = {}
    for cell in cells:
        if cell.runner == first:
            counted.setdefault(replace(cell, workers=0), set()).add(cell.workers)
    for cell in cells:
        if cell.runner == second:
            counts = counted.get(replace(cell, runner=first, workers=0))
            workers = 1 if counts == {1} else cell.workers
            pairs.append((replace(cell, runner=first, workers=workers), cell))
    ratios = _showing(index, noise, len(pairs))
    return tuple(_paired(ratios, baseline, cell, clock) for baseline, cell in pairs)


def compare_runs(first: Run, second: Run, clock: Choice = "auto") -> tuple[Contrast, ...]:
    """Set run `second` against run `first`, cell by cell.  They were made at different times: nothing is paired."""
    left, right = Index(first), Index(second)
    before, after = (Ratios(index) for index in (left, right))
    shared = {*left.cells()} & {*right.cells()}
    confidence = simultaneous(len(shared), at_last(max(first.looks, second.looks)))
    contrasts = []
    for cell in dict.fromkeys([*left.cells(), *right.cells()]):
        chosen = pick_clock(clock, cell.workers)
        a, b = left.by(cell, chosen), right.by(cell, chosen)
        result = Contrast(
            baseline=cell, sample=cell, clock=chosen, baseline_time=_time(a), sample_time=_time(b))
        if unlike := unlike_work(left, right, cell):
            contrasts.append(replace(result, reason=unlike))
        elif a and b:
            contrasts.append(_apart(result, before, after, confidence))
        else:
            contrasts.append(replace(result, reason=_why_apart(left, right, cell)))
    return tuple(contrasts)


def _apart(contrast: Contrast, first: Ratios, second: Ratios, confidence: float) -> Contrast:
    """Return a contrast of two runs with its comparison; both have numbers."""
    cell, clock = contrast.sample, contrast.clock
    group, sides = group_of(cell), (first.by(clock), second.by(clock))
    before, after = (level(each.logs[group], each.noises[group], cell) for each in sides)
    twins_off = max(each.error(group, clock, cell.workers) or 0.0 for each in (first, second))
    seen = Apart(before=before, after=after, twins_off=twins_off)
    # Both sides are checked, or it is not; what is too narrow on one is too narrow.
    check = max((each.check for each in sides), key=lambda check: (not check.arms, check.widening))
    return replace(
        contrast, half=seen.half, half_together=seen.half_together,
        comparison=conclude(seen, check, confidence, clock=clock, notes=(DRIFT,)),
    )


def _why_apart(left: Index, right: Index, cell: Cell) -> str:
    """Return why two runs cannot be compared in a cell: one was not asked for it, or has no numbers."""
    sides = (left, right)
    asked = [index for index in sides if cell in index.cells()]
    if len(asked) == 1:
        return f"only in {asked[0].run.label}"
    return _why((f"in {index.run.label}", index, cell) for index in sides)


def _time(seconds: Mapping[int, float]) -> Summary | None:
    return summarize(list(seconds.values())) if seconds else None


def unlike_work(left: Index, right: Index, cell: Cell) -> str | None:
    """Return what makes the work of `cell` another one in the two runs, None where nothing is known to."""
    asked = [index.run.options.get("selection") or {} for index in (left, right)]
    users = [each.get("user") or {} for each in asked]
    sizes = [each.get("size") for each in asked]
    large = [size == "large" for size in sizes]  # small and medium tasks are equally long, and their number is below
    units = [_units(index, cell) for index in (left, right)]
    tasks = [index.tasks(cell) if cell.phase is Phase.STEADY else None for index in (left, right)]
    said = (
        ("payload", [each.get("payload") for each in users]),
        ("payloads", [each.get("payloads") for each in users]),
        ("size", sizes if None not in sizes and large[0] != large[1] else []),
        ("units a task", units if None not in units else []),
        ("tasks", tasks if None not in tasks else []),
    )
    for what, values in said:
        if len(set(values)) > 1:
            return f"not the same work: {what} {values[0]} in {left.run.label}, {values[1]} in {right.run.label}"
    return None


def _units(index: Index, cell: Cell) -> int | None:
    """Return how many units of work a task of `cell` has, None where its length was not asked for."""
    listed = index.run.options.get("units") or ()
    return next((units for name, seconds, units, _ in listed if (name, seconds) == (cell.workload, cell.task_seconds)),
                None)


def _paired(ratios: Ratios, baseline: Cell, sample: Cell, choice: Choice) -> Contrast:
    index, clock = ratios.index, pick_clock(choice, max(baseline.workers, sample.workers))
    a, b = index.by(baseline, clock), index.by(sample, clock)
    result = Contrast(
        baseline=baseline, sample=sample, clock=clock, baseline_time=_time(a), sample_time=_time(b))
    if (seen := ratios.compare(baseline, sample, clock)) is not None:
        return replace(result, comparison=seen)
    names = (
        (baseline.build, sample.build) if baseline.build != sample.build else (baseline.runner, sample.runner)
    )
    return replace(result, reason=_why([(names[0], index, baseline), (names[1], index, sample)]))


def _why(sides: Iterable[tuple[str, Index, Cell]]) -> str:
    """Return which side has no numbers and why."""
    names: dict[str, list[str]] = {}   # sides with the same reason together
    for name, index, cell in sides:
        found = index.look_up(cell)
        if isinstance(found, Absence):
            names.setdefault(f"{found.word}: {found.reason}", []).append(name)
    return "; ".join(f"{' and '.join(both)}: {reason}" for reason, both in names.items()) or (
        "they share no round on this clock")
