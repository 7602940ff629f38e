"""Comparisons of cells: build against build, runner against runner, run against run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from gilscope.toolkit.errors import UnknownNameError
from gilscope.toolkit.model import Note, Phase
from gilscope.toolkit.report.table.footnotes_of_cells import note_on_ratio, note_on_time, notes_on_processes
from gilscope.toolkit.report.table.observations import Absence, Clock, Index, group_of
from gilscope.toolkit.report.table.ratios import Ratios
from gilscope.toolkit.stats.sample import Summary, summarize
from gilscope.toolkit.stats.unpaired import UnpairedRatio
from gilscope.toolkit.stats.verdict import Comparison

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gilscope.toolkit.model import Cell, Run

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
    baseline_notes: tuple[Note, ...] = ()  # on the processes of that side, beside its time
    sample_notes: tuple[Note, ...] = ()
    lacking_sessions: tuple[Note, ...] = ()   # beside the ratio, if it lacks sessions: of its run, or of either run


def pick_clock(choice: Choice, workers: int) -> Clock:
    """Return the clock to compare by: CPU time is steadier, but more workers are there to save wall time."""
    if choice == "auto":
        return "cpu" if workers == 1 else "wall"
    return choice


def compare_builds(
    run: Run, first: str, second: str, clock: Choice = "auto", *, ratios: Ratios | None = None,
) -> tuple[Contrast, ...]:
    """Compare build `second` with build `first` of one run, cell by cell, paired by round.

    Args:
        run: The run with both builds.
        first: The label of the baseline build.
        second: The label of the build that is compared with it.
        clock: The clock to compare by.
        ratios: The ratios of the run; None: those of its report, so that both have the same verdict on the same ratio.

    Raises:
        UnknownNameError: The run has no such build.
    """
    ratios = ratios or Ratios(Index(run))
    index = ratios.index
    for label in (first, second):
        if label not in index.builds:
            raise UnknownNameError(f"{run.label!r} has no build {label!r}; it has {', '.join(index.builds)}")
    cells = index.cells()
    return tuple(
        contrast
        for group in dict.fromkeys(map(group_of, cells))
        for contrast in contrast_builds(
            ratios, [cell for cell in cells if group_of(cell) == group], first, second, clock)
    )


def build_keys(run: Run, first: str, second: str) -> list[Cell]:
    """Return the cells that `compare_builds` pairs, those of both builds as cells of `first`, each once."""
    return [*dict.fromkeys(replace(cell, build=first) for cell in Index(run).cells() if cell.build in {first, second})]


def contrast_builds(
    ratios: Ratios, cells: Sequence[Cell], first: str, second: str, clock: Choice = "auto",
) -> list[Contrast]:
    """Compare build `second` with `first` for every runner and number of workers among `cells` of one group."""
    keys = dict.fromkeys(replace(cell, build=first) for cell in cells if cell.build in {first, second})
    return [_paired(ratios, cell, replace(cell, build=second), clock) for cell in keys]


def compare_models(run: Run, first: str, second: str, clock: Choice = "auto") -> tuple[Contrast, ...]:
    """Compare runner `second` with runner `first` of one run, build by build, paired by round.

    Cells are compared if they have the same number of workers; if `first` was only measured with one worker, as the
    baseline is, that cell is compared with every number of workers of `second`.  For the arguments see
    `compare_builds`.

    Raises:
        UnknownNameError: The run has no such runner.
    """
    ratios = Ratios(Index(run))
    cells = ratios.index.cells()
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
    return tuple(_paired(ratios, baseline, cell, clock) for baseline, cell in pairs)


def compare_runs(first: Run, second: Run, clock: Choice = "auto") -> tuple[Contrast, ...]:
    """Compare run `second` with run `first`, cell by cell: ratios with intervals, and no verdicts.

    Rounds of two runs cannot be paired, and what the machine did in between cannot be told from what the code did.

    Args:
        first: The baseline run.
        second: The run that is compared with it.
        clock: The clock to compare by.
    """
    left, right = Index(first), Index(second)
    before, after = (Ratios(index) for index in (left, right))
    shared = {*left.cells()} & {*right.cells()}
    contrasts = []
    for cell in dict.fromkeys([*left.cells(), *right.cells()]):
        chosen = pick_clock(clock, cell.workers)
        a, b = left.by(cell, chosen), right.by(cell, chosen)
        result = Contrast(
            baseline=cell, sample=cell, clock=chosen, baseline_time=_time(a), sample_time=_time(b))
        if unlike := _unlike_work(left, right, cell):
            contrasts.append(replace(result, reason=_unlike_text(*unlike, (first.label, second.label))))
        elif a and b:
            contrasts.append(_with_side_notes(
                replace(result, comparison=_unpaired(cell, chosen, before, after)), (before, after),
                (first.label, second.label)))
        elif cell not in shared:
            only = first.label if cell in left.cells() else second.label
            contrasts.append(replace(result, reason=f"only in {only}"))
        else:
            contrasts.append(_without_comparison(
                result, [(f"in {first.label}", left, cell), (f"in {second.label}", right, cell)]))
    return tuple(contrasts)


def _unpaired(cell: Cell, clock: Clock, first: Ratios, second: Ratios) -> Comparison:
    """Return the ratio of two runs; both have numbers."""
    ratio = UnpairedRatio(before=first.level(cell, clock), after=second.level(cell, clock))
    lo, hi = ratio.interval()
    return Comparison(ratio=ratio.ratio, lo=lo, hi=hi, floor=None, rounds=ratio.rounds, paired=False)


def _with_side_notes(contrast: Contrast, sides: tuple[Ratios, Ratios], names: tuple[str, str]) -> Contrast:
    """Return a contrast of two runs, both of which have numbers, with the notes on its cell in either run."""
    cell, clock = contrast.sample, contrast.clock
    before, after = (notes_on_processes(each, cell, clock) for each in sides)
    lacking = tuple(Note(text=f"in {name}: {note.text}") for name, each in zip(names, sides, strict=True)
                    if (note := note_on_time(each, cell, clock)) is not None)
    return replace(contrast, baseline_notes=before, sample_notes=after, lacking_sessions=lacking)


def _time(seconds: Mapping[int, float]) -> Summary | None:
    return summarize(list(seconds.values())) if seconds else None


def _unlike_work(left: Index, right: Index, cell: Cell) -> tuple[str, list[object]] | None:
    """Return a difference between the work of `cell` in the two runs, with both values; None if none is known."""
    selections = [index.run.options.get("selection") or {} for index in (left, right)]
    users = [each.get("user") or {} for each in selections]
    sizes = [each.get("size") for each in selections]
    large = [size == "large" for size in sizes]  # small and medium tasks are equally long, and their number is below
    units = [_units(index, cell) for index in (left, right)]
    tasks = [index.tasks(cell) if cell.phase is Phase.STEADY else None for index in (left, right)]
    options: tuple[tuple[str, list[object]], ...] = (
        ("payload", [each.get("payload") for each in users]),
        ("payloads", [each.get("payloads") for each in users]),
        ("size", sizes if None not in sizes and large[0] != large[1] else []),
        ("units a task", [*units] if None not in units else []),
        ("tasks", [*tasks] if None not in tasks else []),
    )
    return next(((what, values) for what, values in options if len(set(values)) > 1), None)


def _unlike_text(what: str, values: Sequence[object], names: Sequence[str]) -> str:
    """Return a difference between the work in two runs: "payloads m:A in a, m:B in b", "no payloads in a, ..."."""
    first, second = (f"no {what}" if value is None else f"{what} {value}" for value in values)
    if None not in values:
        second = str(values[1])
    return f"not the same work: {first} in {names[0]}, {second} in {names[1]}"


def _units(index: Index, cell: Cell) -> int | None:
    """Return the units of work in a task of `cell`, None if no task length was requested."""
    listed = index.run.options.get("units") or ()
    return next((units for name, seconds, units, _ in listed if (name, seconds) == (cell.workload, cell.task_seconds)),
                None)


def _paired(ratios: Ratios, baseline: Cell, sample: Cell, choice: Choice) -> Contrast:
    index, clock = ratios.index, pick_clock(choice, max(baseline.workers, sample.workers))
    a, b = index.by(baseline, clock), index.by(sample, clock)
    result = Contrast(
        baseline=baseline, sample=sample, clock=clock, baseline_time=_time(a), sample_time=_time(b))
    if (comparison := ratios.compare(baseline, sample, clock)) is not None:
        lack = note_on_ratio(ratios, baseline, sample, clock)
        return replace(
            result, comparison=comparison, baseline_notes=notes_on_processes(ratios, baseline, clock),
            sample_notes=notes_on_processes(ratios, sample, clock), lacking_sessions=(lack,) if lack else ())
    names = (
        (baseline.build, sample.build) if baseline.build != sample.build else (baseline.runner, sample.runner)
    )
    return _without_comparison(result, [(names[0], index, baseline), (names[1], index, sample)])


def _without_comparison(contrast: Contrast, sides: Iterable[tuple[str, Index, Cell]]) -> Contrast:
    """Return the contrast with the reason: a side has no numbers, or the sides share no round."""
    names: dict[str, list[str]] = {}   # sides with the same reason together
    for name, index, cell in sides:
        result = index.look_up(cell)
        if isinstance(result, Absence):
            names.setdefault(f"{result.word}: {result.reason}", []).append(name)
    if not names:
        return replace(contrast, reason="they share no round on this clock")
    return replace(contrast, reason="; ".join(f"{' and '.join(both)}: {reason}" for reason, both in names.items()))
