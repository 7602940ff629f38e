"""Advice in sentences: the model to use for each workload on each build, and what to do where that is open."""

from __future__ import annotations

from collections import Counter
from math import ceil, inf
from typing import TYPE_CHECKING

from gilscope.toolkit.concurrency_models import find_model
from gilscope.toolkit.model import Phase
from gilscope.toolkit.report.sessions import MERGED, where_text
from gilscope.toolkit.report.table import rounds_to_tell
from gilscope.toolkit.report.wording import (
    beside,
    interval_text,
    or_text,
    undecided_text,
)
from gilscope.toolkit.stats.ratios import MOST_ROUNDS
from gilscope.toolkit.stats.verdict import MIN_ROUNDS
from gilscope.toolkit.units import counted, format_seconds, list_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.model import Cell, Run
    from gilscope.toolkit.report.table import Advice, OpenCell, Option, WorkloadTable
    from gilscope.toolkit.stats.verdict import Comparison

MIB = 1024 * 1024
COMPUTES, WAITS = 0.75, 0.25   # of a core that the baseline keeps busy: from the one on, up to the other
ONE_MORE_LOOK = (
    "To go on because an answer is not clear is one more look at the run: error probabilities hold for each of its "
    "reports, not for all of them together.")
_WHY = {"starved": "starved", "failed": "failed", "not measured": "not measured"}
_REASON = {   # reasons that leave all cells open: then the cells are not listed
    "rounds": f", since there are fewer than {MIN_ROUNDS} rounds or sessions", "floor": ", since the noise is unknown",
}


def advice_lines(tables: Sequence[WorkloadTable]) -> tuple[str, ...]:
    """Return the advice for each workload, phase and build; task lengths together, equal advice in one line."""
    groups: dict[tuple[str, Phase], list[WorkloadTable]] = {}
    for table in tables:
        groups.setdefault((table.workload, table.phase), []).append(table)
    heads: dict[str, dict[str, list[str]]] = {}   # by their advice: workloads and their builds
    for (workload, phase), group in groups.items():
        title = workload if phase is Phase.STEADY else f"{workload}, {phase}"
        group.sort(key=lambda table: table.task_seconds or 0.0)
        for advices in zip(*(table.advice for table in group), strict=True):
            builds = heads.setdefault(_advice(group, advices), {})
            builds.setdefault(title + _kind(group[0]), []).append(advices[0].build)
    return tuple(
        f"{'; '.join(f'{name} on {list_text(builds)}' for name, builds in names.items())}: {text}"
        for text, names in heads.items()
    )


def next_steps(tables: Sequence[WorkloadTable], run: Run, undecided: Sequence[Comparison]) -> Iterator[str]:
    """Yield how many answers are open and what would decide them, then what to know before going on; or nothing.

    Args:
        tables: The tables of the run.
        run: The run.
        undecided: Comparisons beside the speed-ups that are open.
    """
    open_ = [each for table in tables for advice in table.advice for each in advice.open if each.why != "failed"]
    whys = Counter(each.why for each in open_)
    count = len(undecided) + len(open_)
    if not count:
        return
    ratios = [*undecided, *(each.speedup for each in open_ if each.speedup)]
    sufficient = [rounds for each in ratios if (rounds := _rounds_of_run(each, run)) is not None]
    is_look = False   # to go on because the report is unclear
    if whys["starved"]:
        step = (f"{whys['starved']} starved, as other programs used their cores: close those programs, or measure "
                "fewer workers")
    elif whys["not measured"]:
        step, is_look = f"the budget ended first: {_resume_text(run)} goes on", True
    elif len(run.sessions) > 1:   # more rounds in these tell nothing about others
        step, is_look = f"`gilscope run --add-session {run.label}`{where_text(run)} would tell more", True
    elif (whys["rounds"] or not any(each.judgeable for each in ratios)) and (rounds := _rounds_to_ask(run)):
        step = f"too few rounds: {_resume_text(run, rounds)} would tell how noisy they are"
    elif sufficient:
        all_ = "it" if count == 1 else "all"
        which = all_ if len(sufficient) == count else f"{len(sufficient)} of them"
        rounds, is_look = max(sufficient), True
        what = f"about {rounds} rounds in all are" if where_text(run) else f"{_resume_text(run, rounds)} is"
        step = f"{what} likely to decide {which}"
    elif any(each.judgeable for each in ratios):
        step = "a quieter machine would tell"
    else:   # values do not vary
        return
    yield f"open answers: {count}; {step}"
    if is_look:
        yield ONE_MORE_LOOK


def _kind(table: WorkloadTable) -> str:
    """Return the workload's use of a core: computing, waiting or both."""
    if table.busy is None:
        return ""
    if WAITS < table.busy < COMPUTES:
        return " (mixed)"
    return " (waiting)" if table.busy <= WAITS else " (CPU work)"


def _advice(group: Sequence[WorkloadTable], advices: Sequence[Advice]) -> str:
    """Return the advice for one build; `advices` are for tasks of ascending length."""
    longest = advices[-1]
    if len(advices) == 1:
        return _single(group[-1], longest)
    parts = [_pays_text(group, advices)] if longest.options else []
    lengths: dict[str, list[str]] = {}   # lengths of tasks by their advice
    for table, advice in zip(group, advices, strict=True):
        if advice is longest or not advice.options:
            advice_text = _single(table, advice)
            lengths.setdefault(advice_text, []).append(format_seconds(table.task_seconds or 0.0))
    parts += [f"tasks of {list_text(several)}: {text}" for text, several in lengths.items()]
    return " ".join(part[0].upper() + part[1:] if i else part for i, part in enumerate(parts))


def _pays_text(group: Sequence[WorkloadTable], advices: Sequence[Advice]) -> str:
    """Return the shortest task for which each model pays, of those that pay with the longest task."""
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
        return f"no verdict, since the baseline {table.baseline} has no number ({advice.missing})."
    if advice.options:
        return " ".join([*_use_texts(table, advice), *_open_texts(table, advice)])
    if advice.closest is None and not advice.open:
        place = table.builds.index(advice.build)
        if any(row.results[place].absence is None for row in table.rows if row.runner != table.baseline):
            return f"no model has a round in common with {table.baseline}, so nothing is compared."
        return f"only {table.baseline} was measured."
    if any(each.why != "failed" for each in advice.open) or advice.closest is None:
        reason = next((_REASON[each.why] for each in advice.open if each.why in _REASON), "")
        unknown = f"it is unknown whether any model is faster than {_baseline_text(table)}{reason}."
        return " ".join([unknown, *_open_texts(table, advice), *dispatch_texts(advice)])
    return " ".join([
        *_stay_texts(table, advice, advice.closest), *_open_texts(table, advice), *dispatch_texts(advice)])


def dispatch_texts(advice: Advice) -> Iterator[str]:
    """Yield that the tasks are too short, and how long they must be to pay."""
    if advice.task is None or not advice.dispatch:
        return
    cheapest, *_, dearest = (*advice.dispatch, advice.dispatch[-1])
    costs = f"{format_seconds(cheapest.seconds)} ({cheapest.runner})"
    if dearest is not cheapest:
        costs += f" to {format_seconds(dearest.seconds)} ({dearest.runner})"
    first = min(advice.dispatch, key=lambda cost: cost.pays_from)
    yield (f"The tasks are too short: one takes {format_seconds(advice.task)}, and handing it to a worker costs "
           f"{costs}, at least {cheapest.seconds / advice.task:.0f} times as much. Only tasks of about "
           f"{format_seconds(first.pays_from)} or more can gain: do more work in each call.")


def _use_texts(table: WorkloadTable, advice: Advice) -> Iterator[str]:
    """Yield what to use, each model with its own interval: a range of several estimates would look like one."""
    several = len(advice.options) > 1
    gains = [interval_text(each.speedup) + beside(each.speedup) for each in advice.options]
    names = or_text(name_text(each, table) + (f" {gain}" if several else "")
                    for each, gain in zip(advice.options, gains, strict=True))
    gain = "" if several else f", {gains[0]}"
    if table.phase is Phase.STARTUP:
        yield f"{names} starts, runs and ends fastest{gain}."
    else:
        yield f"{names}{gain}{_memory_text(advice.options)}."


def _stay_texts(table: WorkloadTable, advice: Advice, closest: Option) -> Iterator[str]:
    beyond = excluded_gain(advice)
    if table.phase is Phase.STARTUP:
        yield f"no measured model starts, runs and ends faster than {_baseline_text(table)} {beyond}."
        yield f"{_cell_text(closest.cell)} comes closest, {interval_text(closest.speedup)}{beside(closest.speedup)}."
        return
    yield f"stay with {_baseline_text(table)}: no measured model is faster {beyond}."
    if advice.tasks is not None:
        yield f"The payloads keep only {counted(advice.tasks, 'worker')} busy: pass more payloads to use more workers."
    if all(row.workers == 1 for row in table.rows):
        yield "Only one worker was measured; --workers 1,2,4 measures more."


def excluded_gain(advice: Advice) -> str:
    """Return the gain that is excluded for every compared cell: "by more than 5 %"."""
    return f"by more than {max(ceil(((advice.most or 1.0) - 1) * 100), 1)} %"


def _open_texts(table: WorkloadTable, advice: Advice) -> Iterator[str]:
    """Yield the cells with an unknown result, with the reason."""
    reasons: dict[str, list[OpenCell]] = {}
    for each in advice.open:
        if each.why in _WHY:
            reasons.setdefault(_WHY[each.why], []).append(each)
        elif each.why == "noise" and each.speedup is not None:
            reasons.setdefault(undecided_text(each.speedup) + beside(each.speedup), []).append(each)
    if reasons:
        yield "Unknown: " + "; ".join(f"{_models_text(cells, table)} ({why})" for why, cells in reasons.items()) + "."


def _rounds_to_ask(run: Run) -> int:
    """Return the rounds after which the noise should be known; 0 if the run has as many: its values do not vary."""
    rounds = max(run.rounds_planned, MIN_ROUNDS + 2)
    return rounds if rounds > run.rounds_done else 0


def _rounds_of_run(comparison: Comparison, run: Run) -> int | None:
    """Return the rounds of the run after which a comparison, which may lack some, should have a verdict."""
    rounds = rounds_to_tell(comparison)
    needed = inf if rounds is None else rounds + max(run.rounds_done - comparison.rounds, 0)
    return int(needed) if needed <= MOST_ROUNDS else None


def _resume_text(run: Run, rounds: int | None = None) -> str:
    """Return the command that continues a run until it has this number of rounds; None: as many as were planned."""
    hosts = run.options.get(MERGED, 1)   # each of them measures its part of the rounds
    more = "" if rounds is None else f" --rounds {-(-rounds // hosts)}"
    fleet = " --fleet ADDRESS" if hosts > 1 else ""
    return f"`gilscope run --resume {run.label}{more}{fleet}`{where_text(run)}"


def _models_text(several: Sequence[OpenCell], table: WorkloadTable) -> str:
    """Return models, with their numbers of workers if several were measured."""
    if len({row.workers for row in table.rows if row.runner != table.baseline}) == 1:
        return list_text(dict.fromkeys(each.cell.runner for each in several))
    counts: dict[str, list[int]] = {}
    for each in several:
        counts.setdefault(each.cell.runner, []).append(each.cell.workers)
    return ", ".join(f"{runner} with {counts_text(runner, workers)}" for runner, workers in counts.items())


def _cell_text(cell: Cell) -> str:
    """Return "processes-spawn with 4 workers", "asyncio with 4 tasks in flight"."""
    return _with_count(cell.runner, cell.workers)


def _with_count(runner: str, workers: int) -> str:
    return f"{runner} with {counts_text(runner, [workers])}"


def _baseline_text(table: WorkloadTable) -> str:
    """Return the baseline in words; work that can only be awaited is compared with one task at a time."""
    return _with_count(table.baseline, 1) if find_model(table.baseline).awaits else table.baseline


def counts_text(runner: str, counts: Sequence[int]) -> str:
    """Return "1 worker", "2 and 4 workers"; of an event loop, which has one worker, "4 tasks in flight"."""
    plural = "" if list(counts) == [1] else "s"
    noun = f"task{plural} in flight" if find_model(runner).awaits else f"worker{plural}"
    return f"{list_text(counts)} {noun}"


def name_text(option: Option, table: WorkloadTable) -> str:
    """Return an option's model, with its number of workers unless that is the largest."""
    cell, widest = option.cell, max(row.workers for row in table.rows)
    return cell.runner if cell.workers == widest else _cell_text(cell)


def _memory_text(options: Sequence[Option]) -> str:
    """Return the memory of each option, which may decide among equals: ", in 26, 35 or 60 MiB"."""
    if any(each.memory is None for each in options):
        return ""
    counts = [f"{each.memory.number / MIB:.0f}" for each in options if each.memory is not None]
    return f", in {counts[0] if len(set(counts)) == 1 else or_text(counts)} MiB"
