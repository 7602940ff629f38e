"""The last lines of a report: what free-threading costs, what failed, what is open, and what would tell."""

from __future__ import annotations

import shlex
from collections import Counter
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from gilscope.toolkit.model import Phase
from gilscope.toolkit.report.sessions import MERGED, where_text
from gilscope.toolkit.report.table.judgement import rounds_to_tell
from gilscope.toolkit.report.table_sentences import title_text
from gilscope.toolkit.report.wording import (
    beside,
    first_text,
    interval_text,
    limits_text,
    price_text,
    range_of,
    ratio_number,
)
from gilscope.toolkit.stats.ratios import MOST_ROUNDS
from gilscope.toolkit.stats.verdict import MARGIN, MIN_ROUNDS, SpeedVerdict
from gilscope.toolkit.units import format_seconds, list_text

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from gilscope.toolkit.model import Run
    from gilscope.toolkit.report.table.matrix import WorkloadTable
    from gilscope.toolkit.report.table.recommendation import Advice
    from gilscope.toolkit.stats.verdict import Comparison


def closing_lines(tables: Sequence[WorkloadTable], run: Run, *, full: bool) -> Iterator[str]:
    """Yield how free-threaded builds compare with those with a GIL, what failed, and what would give clearer answers.

    Args:
        tables: Those of the run.
        run: The run.
        full: Whether to yield intervals and each failure.
    """
    steady = [table for table in tables if table.phase is Phase.STEADY]
    lines, undecided = _build_lines(steady, run, intervals=full)
    yield from lines
    yield from dict.fromkeys(text for table in steady for advice in table.advice for text in _dispatch_texts(advice))
    yield from _ceiling_lines(steady, run)
    if failed := list(_failures(tables)):
        yield from (f"failed: {text}" for text in (failed if full else [first_text(failed)]))
    yield from next_steps(tables, run, undecided)


def _failures(tables: Iterable[WorkloadTable]) -> Iterator[str]:
    """Yield the failed cells with their reason, each reason once."""
    about: dict[str, dict[str, None]] = {}
    for table in tables:
        for result in (result for row in table.rows for result in row.results):
            absence, cell = result.absence, result.cell
            if absence is not None and absence.word == "failed":
                about.setdefault(absence.reason, {})[f"{cell.runner} of {title_text(table)} on {cell.build}"] = None
    for reason, cells in about.items():
        yield f"{list_text(cells)}: {reason}"


def _build_lines(
    tables: Sequence[WorkloadTable], run: Run, *, intervals: bool,
) -> tuple[list[str], list[Comparison]]:
    """Return how free-threaded builds compare with those with a GIL, in sentences, and the undecided comparisons.

    Args:
        tables: Those of steady work.
        run: The run.
        intervals: Whether each difference has its interval.
    """
    costs = _costs_of_builds(tables, {build.label for build in run.builds if build.free_threaded})
    fastest = _fastest_of_builds(tables)
    lines = [f"CPU time of {tables[0].baseline} on {build}, against {gil_build}: "
             f"{_cost_text(found, intervals=intervals)}" for (build, gil_build), found in costs.items()]
    lines += [f"fastest model of {build} against that of {gil_build}: {_gain_text(found, intervals=intervals)}"
              for (build, gil_build), found in fastest.items()]
    return lines, [each for found in (*costs.values(), *fastest.values()) for each in found.values()
                   if each.verdict() == SpeedVerdict.CANNOT_TELL]


def _costs_of_builds(
    tables: Iterable[WorkloadTable], free: Container[str],
) -> dict[tuple[str, str], dict[str, Comparison]]:
    """Compare one thread without and with the GIL, by builds and workload, at the longest tasks."""
    pairs: dict[tuple[str, str], dict[str, Comparison]] = {}
    for table in sorted(tables, key=lambda each: each.task_seconds or 0.0):
        for each in table.contrasts:
            gil, cell = each.baseline, each.sample
            alone = cell.workers == 1 and cell.runner == table.baseline
            if each.comparison is not None and alone and cell.build in free and gil.build not in free:
                pairs.setdefault((cell.build, gil.build), {})[table.workload] = each.comparison
    return pairs


def _fastest_of_builds(tables: Iterable[WorkloadTable]) -> dict[tuple[str, str], dict[str, Comparison]]:
    """Compare the fastest models without and with the GIL, by builds and by workload with its length of tasks."""
    pairs: dict[tuple[str, str], dict[str, Comparison]] = {}
    for table in tables:
        for each in table.fastest_of_builds:
            pairs.setdefault((each.free.build, each.gil.build), {})[title_text(table)] = each.comparison
    return pairs


def _ceiling_lines(tables: Iterable[WorkloadTable], run: Run) -> Iterator[str]:
    """Name the command that finds the object in the way of free threads that are far below processes.

    Only for a function of the user's: gilscope's own workloads are as they are on purpose.
    """
    user = (run.options.get("selection") or {}).get("user")
    gaps = [gap for table in tables for advice in table.advice if (gap := advice.below_ceiling) is not None]
    if not gaps or not user:
        return
    shares = [f"{gap.comparison.ratio:.2f} on {gap.cell.build}" for gap in gaps]
    given = [word for option in ("payloads", "payload") if user.get(option) is not None
             for word in (f"--{option}", user[option])]
    words = ["gilscope", "scale", user["function"], *given, "--builds", ",".join(gap.cell.build for gap in gaps)]
    yield (f"{gaps[0].cell.workers} free threads reach {list_text(shares)} of the throughput of as many processes, "
           f"which share no objects: `{shlex.join(words)}` finds out which object or lock is in the way.")


def _cost_text(found: Mapping[str, Comparison], *, intervals: bool) -> str:
    """Return "more by 16 % for primes, 15 % for http_fetch; within 3 % for a; undecided for ..."."""
    return _by_verdict(found, {SpeedVerdict.SLOWER: "more by ", SpeedVerdict.FASTER: "less by "},
                       partial(price_text, interval=intervals), limits_text)


def _gain_text(found: Mapping[str, Comparison], *, intervals: bool) -> str:
    """Return "1.80x for primes; within 3 % for sha256_64k; undecided for http_fetch", or "undecided for all"."""
    heads = dict.fromkeys((SpeedVerdict.FASTER, SpeedVerdict.SLOWER), "")
    if intervals:
        return _by_verdict(found, heads, interval_text, lambda each: range_of(*each.between))
    if len(found) > 1 and all(each.verdict() is SpeedVerdict.CANNOT_TELL for each in found.values()):
        return "undecided for all"
    return _by_verdict(found, heads, lambda each: f"{ratio_number(each.ratio)}x", lambda _: "")


def _by_verdict(
    found: Mapping[str, Comparison], differing: Mapping[SpeedVerdict, str],
    size: Callable[[Comparison], str], limits: Callable[[Comparison], str],
) -> str:
    """Return comparisons by their verdict: those that differ with their size, open ones with what is possible."""
    heads = {**differing, SpeedVerdict.SAME: f"within {MARGIN * 100:g} % for ",
             SpeedVerdict.CANNOT_TELL: "undecided for "}
    texts: dict[SpeedVerdict, list[str]] = {}
    for name, comparison in sorted(found.items(), key=lambda item: item[1].ratio):
        verdict = comparison.verdict()
        words = name + beside(comparison)
        if verdict in differing:
            words = f"{size(comparison)} for {words}"
        elif verdict is SpeedVerdict.CANNOT_TELL and (possible := limits(comparison)):
            words = f"{words} ({possible})"
        texts.setdefault(verdict, []).append(words)
    return "; ".join(head + ", ".join(texts[verdict]) for verdict, head in heads.items() if verdict in texts)


def _dispatch_texts(advice: Advice) -> Iterator[str]:
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


def next_steps(tables: Sequence[WorkloadTable], run: Run, undecided: Sequence[Comparison]) -> Iterator[str]:
    """Yield how many answers are open and what would decide them, if any are.

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
    if whys["starved"]:
        step = (f"{whys['starved']} starved, as other programs used their cores: end those programs, or measure with "
                "`run --wait-quiet`")
    elif whys["not measured"]:
        step = f"the budget ended first: {_resume_text(run)} goes on"
    elif len(run.sessions) > 1:   # more rounds in these tell nothing about others
        step = f"`gilscope run --add-session {run.label}`{where_text(run)} would tell more"
    elif (whys["rounds"] or not any(each.judgeable for each in ratios)) and (rounds := _rounds_to_ask(run)):
        step = f"too few rounds: {_resume_text(run, rounds)} would tell how noisy they are"
    elif sufficient:
        all_ = "it" if count == 1 else "all"
        which = all_ if len(sufficient) == count else f"{len(sufficient)} of them"
        rounds = max(sufficient)
        what = f"about {rounds} rounds in all are" if where_text(run) else f"{_resume_text(run, rounds)} is"
        step = f"{what} likely to decide {which}"
    elif any(each.judgeable for each in ratios):
        step = "a quieter machine would tell"
    else:   # values do not vary
        return
    yield f"open answers: {count}; {step}"


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
