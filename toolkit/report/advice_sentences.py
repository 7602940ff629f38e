"""The answer in words: what to use for each workload on each build, and what would tell where that is open."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from gilscope.toolkit.model import Phase
from gilscope.toolkit.report.table import rounds_to_tell
from gilscope.toolkit.report.wording import (
    between_text,
    interval_text,
    list_text,
    range_text,
    ratio_number,
)
from gilscope.toolkit.stats.words import MIN_ROUNDS
from gilscope.toolkit.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gilscope.toolkit.model import Cell, Run
    from gilscope.toolkit.report.table import Advice, Open, Option, WorkloadTable
    from gilscope.toolkit.stats.words import Comparison

QUIETER = "a quieter machine"
FEW_WORKERS = 2        # fewer than these are no answer to whether a second one helps
GOOD_ROUNDS = 20       # twice as narrow an interval as 6 rounds give, and what a run can be asked for without thinking
MIB = 1024 * 1024
COMPUTES, WAITS = 0.75, 0.25   # of a core that the baseline keeps busy: from the one on, up to the other
AWAITING = "asyncio"   # its N counts tasks in flight
_WHY = {"starved": "starved", "failed": "failed", "not measured": "not measured"}
_REASON = {   # what leaves all cells open, which need not be listed then
    "rounds": f", as there are fewer than {MIN_ROUNDS} rounds", "floor": ", as there are too few processes",
}


def advice_lines(tables: Sequence[WorkloadTable], *, intervals: bool = False) -> tuple[str, ...]:
    """Return what to use: per workload, phase and build, the lengths of a task together; what is alike in one line.

    Args:
        tables: Of a run.
        intervals: Whether each of several that are equally fast is told with its interval, where there is room for it.
    """
    groups: dict[tuple[str, Phase], list[WorkloadTable]] = {}
    for table in tables:
        groups.setdefault((table.workload, table.phase), []).append(table)
    heads: dict[str, dict[str, list[str]]] = {}   # by what is said: workloads and their builds
    for (workload, phase), group in groups.items():
        title = workload if phase is Phase.STEADY else f"{workload}, {phase}"
        group.sort(key=lambda table: table.task_seconds or 0.0)
        for advices in zip(*(table.advice for table in group), strict=True):
            builds = heads.setdefault(_advice(group, advices, intervals=intervals), {})
            builds.setdefault(title + _kind(group[0]), []).append(advices[0].build)
    return tuple(
        f"{'; '.join(f'{name} on {list_text(builds)}' for name, builds in names.items())}: {text}"
        for text, names in heads.items()
    )


def remedy_lines(tables: Sequence[WorkloadTable], run: Run, untold: Sequence[Comparison] = ()) -> Iterator[str]:
    """Yield what would tell more, where something is open; `untold` are comparisons that other lines have left so."""
    open_ = [each for table in tables for advice in table.advice for each in advice.open]
    unclear = [*untold, *(each.speedup for each in open_ if each.speedup is not None)]
    doubts = dict.fromkeys([*(each.why for each in open_), *(["noise"] if untold else [])])
    if "rounds" in doubts:
        doubts.pop("noise", None)   # how large it is cannot be known yet
    if remedies := dict.fromkeys(remedy for why in doubts for remedy in _remedies(why, unclear, run)):
        yield f"What would tell more: {'; '.join(remedies)}."


def _kind(table: WorkloadTable) -> str:
    """Return what the workload does with a core of its own."""
    if table.busy is None:
        return ""
    if WAITS < table.busy < COMPUTES:
        return " (mixed)"
    return " (waiting)" if table.busy <= WAITS else " (CPU work)"


def _advice(group: Sequence[WorkloadTable], advices: Sequence[Advice], *, intervals: bool) -> str:
    """Return what to use on one build; `advices` are for tasks of ascending length."""
    longest = advices[-1]
    if len(advices) == 1:
        return _single(group[-1], longest, intervals=intervals)
    parts = [_pays_text(group, advices)] if longest.options else []
    lengths: dict[str, list[str]] = {}   # those of which the same is to be said
    for table, advice in zip(group, advices, strict=True):
        if advice is longest or not advice.options:
            said = _single(table, advice, intervals=intervals)
            lengths.setdefault(said, []).append(format_seconds(table.task_seconds or 0.0))
    parts += [f"tasks of {list_text(several)}: {text}" for text, several in lengths.items()]
    return " ".join(part[0].upper() + part[1:] if i else part for i, part in enumerate(parts))


def _pays_text(group: Sequence[WorkloadTable], advices: Sequence[Advice]) -> str:
    """Return from which length of a task on each model pays, for those that pay in the longest."""
    shortest: dict[str, float] = {}
    paying = {option.cell.runner for option in advices[-1].faster}
    for table, advice in reversed(list(zip(group, advices, strict=True))):
        paying &= {option.cell.runner for option in advice.faster}
        shortest |= dict.fromkeys(paying, table.task_seconds or 0.0)
    lengths: dict[float, list[str]] = {}
    for option in advices[-1].faster:
        lengths.setdefault(shortest[option.cell.runner], []).append(option.cell.runner)
    return "; ".join(
        f"from tasks of {format_seconds(seconds)} on, {list_text(lengths[seconds])} "
        f"{'is' if len(lengths[seconds]) == 1 else 'are'} faster than {group[0].baseline}"
        for seconds in sorted(lengths)
    ) + "."


def _single(table: WorkloadTable, advice: Advice, *, intervals: bool) -> str:
    if advice.missing is not None:
        return f"no verdict, as the baseline {table.baseline} has no number ({advice.missing})."
    if advice.options:
        return " ".join([*_use_texts(table, advice, intervals=intervals), *_open_texts(table, advice)])
    if advice.closest is None and not advice.open:
        place = table.builds.index(advice.build)
        if any(row.results[place].absence is None for row in table.rows if row.runner != table.baseline):
            return f"nothing has a round in common with {table.baseline}, so nothing is compared."
        return f"nothing was measured beside {table.baseline}."
    if any(each.why != "failed" for each in advice.open) or advice.closest is None:
        reason = next((_REASON[each.why] for each in advice.open if each.why in _REASON), "")
        unknown = f"not known whether anything is faster than {_baseline_text(table)}{reason}."
        return " ".join([unknown, *_open_texts(table, advice)])
    return " ".join([*_stay_texts(table, advice, advice.closest), *_open_texts(table, advice)])


def _use_texts(table: WorkloadTable, advice: Advice, *, intervals: bool) -> Iterator[str]:
    several = intervals and len(advice.options) > 1
    names = _or_text(_name(each, table) + (f" {interval_text(each.speedup)}" if several else "")
                     for each in advice.options)
    gain = "" if several else f", {_gain_text(advice.options)}"
    if table.phase is Phase.STARTUP:
        yield f"{names} starts, runs and ends fastest{gain}."
    else:
        yield f"{names}{gain}{_memory_text(advice.options)}."


def _gain_text(options: Sequence[Option]) -> str:
    """Return how many times faster: of one with its interval, of several the range of their estimates."""
    if len(options) == 1:
        return interval_text(options[0].speedup)
    return range_text(ratio_number(each.speedup.ratio) + "x" for each in options)


def _stay_texts(table: WorkloadTable, advice: Advice, closest: Option) -> Iterator[str]:
    most = max(each.speedup.between[1] for each in advice.shown) - 1
    beyond = f"by more than {max(ceil(most * 100), 1)} %"
    if table.phase is Phase.STARTUP:
        yield f"nothing starts, runs and ends faster than {_baseline_text(table)} {beyond}."
        yield f"{_cell_text(closest.cell)} comes closest, {interval_text(closest.speedup)}."
        return
    yield f"stay with {_baseline_text(table)}: nothing measured here is faster {beyond}."
    if advice.tasks is not None:
        plural = "s" if advice.tasks > 1 else ""
        yield f"There is work for {advice.tasks} worker{plural} only: more payloads would give others something to do."
    if all(row.workers == 1 for row in table.rows):
        yield "Only one worker was measured; --workers 1,2,4 measures more."


def _open_texts(table: WorkloadTable, advice: Advice) -> Iterator[str]:
    """Return which cells are not known, with the reason."""
    reasons: dict[str, list[Open]] = {}
    for each in advice.open:
        if each.why in _WHY:
            reasons.setdefault(_WHY[each.why], []).append(each)
        elif each.why == "noise" and each.speedup is not None:
            reasons.setdefault(f"cannot tell: {between_text(each.speedup)}", []).append(each)
    if reasons:
        yield "Not known: " + "; ".join(f"{_models_text(cells, table)} ({why})" for why, cells in reasons.items()) + "."


def _remedies(why: str, unclear: Iterable[Comparison], run: Run) -> Iterator[str]:
    needed = [rounds_to_tell(each) for each in unclear]
    told = [rounds for rounds in needed if rounds is not None]
    more = f"`gilscope run --resume {run.label} --rounds {max(told, default=max(GOOD_ROUNDS, 2 * run.rounds_done))}`"
    match why:
        case "starved":
            yield QUIETER
            if any(measurement.cell.workers > FEW_WORKERS for measurement in run.measurements):
                yield "fewer workers, for what is starved"
        case "failed":
            yield "what failed, made to work"
        case "not measured":
            yield f"more time, as the budget ended first: `gilscope run --resume {run.label}`"
        case "noise":
            if told or not needed:
                yield f"more rounds: {more}"
            if len(told) < len(needed):
                yield QUIETER
        case _:
            rounds = max(run.rounds_planned, MIN_ROUNDS + 2)
            yield f"more rounds: `gilscope run --resume {run.label} --rounds {rounds}`"


def _models_text(several: Sequence[Open], table: WorkloadTable) -> str:
    """Return models with their numbers of workers, where several were measured."""
    if len({row.workers for row in table.rows if row.runner != table.baseline}) == 1:
        return list_text(dict.fromkeys(each.cell.runner for each in several))
    counts: dict[str, list[int]] = {}
    for each in several:
        counts.setdefault(each.cell.runner, []).append(each.cell.workers)
    return ", ".join(f"{runner} with {counts_text(runner, workers)}" for runner, workers in counts.items())


def _cell_text(cell: Cell) -> str:
    """Return "processes-spawn with 4 workers", "asyncio with 4 tasks in flight"."""
    return f"{cell.runner} with {counts_text(cell.runner, [cell.workers])}"


def _baseline_text(table: WorkloadTable) -> str:
    """Return the baseline in words: what can only be awaited is compared with one task at a time."""
    return f"{AWAITING} with {counts_text(AWAITING, [1])}" if table.baseline == AWAITING else table.baseline


def counts_text(runner: str, counts: Sequence[int]) -> str:
    """Return "1 worker", "2 and 4 workers"; of an event loop, which has one worker, "4 tasks in flight"."""
    plural = "" if list(counts) == [1] else "s"
    noun = f"task{plural} in flight" if runner == AWAITING else f"worker{plural}"
    return f"{list_text(counts)} {noun}"


def _name(option: Option, table: WorkloadTable) -> str:
    """Return an option's model; its number of workers where they are not the most."""
    cell, widest = option.cell, max(row.workers for row in table.rows)
    return cell.runner if cell.workers == widest else _cell_text(cell)


def _memory_text(options: Sequence[Option]) -> str:
    """Return what each option takes, which may decide among equals: ", in 26, 35 or 60 MiB"."""
    if any(each.memory is None for each in options):
        return ""
    counts = [f"{each.memory.count / MIB:.0f}" for each in options if each.memory is not None]
    return f", in {counts[0] if len(set(counts)) == 1 else _or_text(counts)} MiB"


def _or_text(items: Iterable[str]) -> str:
    *first, last = items
    return f"{', '.join(first)} or {last}" if first else last
