"""The last words of a report: what to use for each workload on each build, and what would tell where that is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.model import Phase
from gilscope.toolkit.report.wording import list_text, percent_text, ratio_text
from gilscope.toolkit.stats.paired import MIN_ROUNDS
from gilscope.toolkit.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.model import Cell, Run
    from gilscope.toolkit.report.table import Advice, Memory, Open, Option, TwinAdvice, WorkloadTable

GOOD_ROUNDS = 20       # twice as narrow an interval as 6 rounds give, and what a run can be asked for without thinking
MEMORY_APART = 1.1     # times as much: below, nobody would choose by it
AWAITING = "asyncio"   # its N counts tasks in flight
_WHY = {"starved": "starved", "failed": "failed", "not measured": "not measured", "noise": "too noisy to tell"}
_REASON = {   # what leaves all cells open, which need not be listed then
    "rounds": f", as there are fewer than {MIN_ROUNDS} rounds", "floor": ", as no cell was measured twice (A/A)",
}


def advice_lines(tables: Sequence[WorkloadTable], run: Run) -> tuple[str, ...]:
    """Return what to use: per workload, phase and build one line, the lengths of a task together."""
    groups: dict[tuple[str, Phase], list[WorkloadTable]] = {}
    for table in tables:
        groups.setdefault((table.workload, table.phase), []).append(table)
    lines: list[str] = []
    for (workload, phase), group in groups.items():
        title = workload if phase is Phase.STEADY else f"{workload}, {phase}"
        group.sort(key=lambda table: table.task_seconds or 0.0)
        lines += [f"{title} on {advices[0].build}: {_advice(group, advices)}"
                  for advices in zip(*(table.advice for table in group), strict=True)]
        lines += [f"{title}: {_twin_text(twin)}" for twin in group[-1].twins]
    doubts = dict.fromkeys(each.why for table in tables for advice in table.advice for each in advice.open)
    quieter = ["a quieter machine"] if doubts.keys() & {"starved", "noise"} else []
    if remedies := dict.fromkeys([*quieter, *(_remedy(why, run) for why in doubts)]):
        lines.append(f"What would tell more: {'; '.join(remedies)}.")
    return tuple(lines)


def _advice(group: Sequence[WorkloadTable], advices: Sequence[Advice]) -> str:
    """Return what to use on one build; `advices` are for tasks of ascending length."""
    longest = advices[-1]
    if len(advices) == 1:
        return _single(group[-1], longest)
    parts = [_pays_text(group, advices)] if longest.options else []
    lengths: dict[str, list[str]] = {}   # those of which the same is to be said
    for table, advice in zip(group, advices, strict=True):
        if advice is longest or not advice.options:
            lengths.setdefault(_single(table, advice), []).append(format_seconds(table.task_seconds or 0.0))
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


def _single(table: WorkloadTable, advice: Advice) -> str:
    if advice.missing is not None:
        return f"no verdict, as the baseline {table.baseline} has no number ({advice.missing})."
    if advice.options:
        return " ".join([*_use_texts(table, advice), *_open_texts(advice)])
    if advice.best is None and not advice.open:
        return f"nothing was measured beside {table.baseline}."
    if any(each.why != "failed" for each in advice.open) or advice.best is None:
        reason = next((_REASON[each.why] for each in advice.open if each.why in _REASON), "")
        unknown = f"not known whether anything is faster than {_baseline_text(table)}{reason}."
        return " ".join([unknown, *_open_texts(advice)])
    return " ".join([*_stay_texts(table, advice, advice.best), *_open_texts(advice)])


def _use_texts(table: WorkloadTable, advice: Advice) -> Iterator[str]:
    first, *others = advice.options
    baseline = _baseline_text(table)
    ratio = f"{ratio_text(first.speedup)} over {baseline}"
    if table.phase is Phase.STARTUP:
        yield f"{_cell_text(first.cell)} starts, runs and ends fastest, {ratio}."
    else:
        yield f"use {_cell_text(first.cell)}: {ratio}{_memory_text(first.memory, advice.memory, baseline)}."
    if others:
        yield f"Not told apart from it: {', '.join(_beside(each, first) for each in others)}."


def _stay_texts(table: WorkloadTable, advice: Advice, best: Option) -> Iterator[str]:
    beyond = f"beyond the noise floor ({percent_text(advice.floor or 0.0)})"
    if table.phase is Phase.STARTUP:
        yield f"nothing starts, runs and ends faster than {_baseline_text(table)} {beyond}."
        yield f"{_cell_text(best.cell)} comes closest, {ratio_text(best.speedup)}."
        return
    yield f"stay with {_baseline_text(table)}: nothing measured here is faster {beyond}."
    if advice.tasks is not None:
        plural = "s" if advice.tasks > 1 else ""
        yield f"There is work for {advice.tasks} worker{plural} only: more payloads would give others something to do."
    if all(row.workers == 1 for row in table.rows):
        yield "Only one worker was measured; --workers 1,2,4 measures more."


def _open_texts(advice: Advice) -> Iterator[str]:
    """Return which cells are not known, with the reason."""
    reasons: dict[str, list[Open]] = {}
    for each in advice.open:
        if each.why in _WHY:
            reasons.setdefault(_WHY[each.why], []).append(each)
    if reasons:
        yield "Not known: " + "; ".join(f"{_models_text(cells)} ({why})" for why, cells in reasons.items()) + "."


def _remedy(why: str, run: Run) -> str:
    rounds = max(GOOD_ROUNDS, 2 * run.rounds_done)
    more = f"`gilscope run --resume {run.label} --rounds {rounds}`"
    match why:
        case "starved":
            return "fewer workers, for what is starved"
        case "failed":
            return "what failed, made to work: the reasons are under the tables"
        case "not measured":
            return f"more time, as the budget ended first: `gilscope run --resume {run.label}`"
        case "floor":
            return "a run with --workers 1,2, where cells are measured twice"
        case _:
            return f"more rounds: {more}"


def _models_text(several: Sequence[Open]) -> str:
    counts: dict[str, list[int]] = {}
    for each in several:
        counts.setdefault(each.cell.runner, []).append(each.cell.workers)
    return ", ".join(f"{runner} with {_counts_text(runner, workers)}" for runner, workers in counts.items())


def _twin_text(twin: TwinAdvice) -> str:
    free, gil = f"{twin.free.cell.runner} on {twin.free.cell.build}", f"{twin.gil.cell.runner} on {twin.gil.cell.build}"
    memory = ""
    if twin.free.memory is not None and twin.gil.memory is not None and _apart(twin.free.memory, twin.gil.memory):
        memory = f", in {format_bytes(twin.free.memory.count)} against {format_bytes(twin.gil.memory.count)}"
    match twin.comparison.verdict():
        case "faster":
            return f"{free} is {ratio_text(twin.comparison)} as fast as {gil}{memory}."
        case "slower":
            return f"{free} is slower than {gil}, {ratio_text(twin.comparison)}{memory}."
        case _:
            return f"no difference in speed is shown between {free} and {gil}{memory}."


def _cell_text(cell: Cell) -> str:
    """Return "processes-spawn with 4 workers", "asyncio with 4 tasks in flight"."""
    return f"{cell.runner} with {_counts_text(cell.runner, [cell.workers])}"


def _baseline_text(table: WorkloadTable) -> str:
    """Return the baseline in words: what can only be awaited is compared with one task at a time."""
    return f"{AWAITING} with {_counts_text(AWAITING, [1])}" if table.baseline == AWAITING else table.baseline


def _counts_text(runner: str, counts: Sequence[int]) -> str:
    plural = "" if list(counts) == [1] else "s"
    noun = f"task{plural} in flight" if runner == AWAITING else f"worker{plural}"
    return f"{list_text(counts)} {noun}"


def _memory_text(memory: Memory | None, baseline: Memory | None, name: str) -> str:
    if memory is None or baseline is None:
        return ""
    return f", in {format_bytes(memory.count)} of memory ({name}: {format_bytes(baseline.count)})"


def _beside(option: Option, first: Option) -> str:
    """Return an option's name and memory; its number of workers where that is another than of the `first`."""
    cell = option.cell
    name = cell.runner if cell.workers == first.cell.workers else _cell_text(cell)
    return name if option.memory is None else f"{name} ({format_bytes(option.memory.count)})"


def _apart(left: Memory, right: Memory) -> bool:
    small, large = sorted((left.count, right.count))
    return large > MEMORY_APART * small
