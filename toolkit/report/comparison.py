"""The document of a comparison: cells of two builds, models or runs side by side."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from enum import StrEnum
from math import exp, log
from statistics import median
from typing import TYPE_CHECKING

from gilscope.toolkit.model import Note, Phase
from gilscope.toolkit.report.document import (
    Banner,
    Column,
    Document,
    Entry,
    Heading,
    Lines,
    Quantity,
    RatioValue,
    Section,
    Table,
    summary_lines,
)
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.report.table.judgement import rounds_to_tell
from gilscope.toolkit.report.table_sentences import spread_text, times_scope, title_text
from gilscope.toolkit.report.wording import first_text, floors_text, ratio_number
from gilscope.toolkit.stats.verdict import MARGIN, MIN_ROUNDS, SpeedVerdict
from gilscope.toolkit.units import clock_text, counted, format_seconds, list_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gilscope.toolkit.model import Cell
    from gilscope.toolkit.report.table.contrast import Contrast
    from gilscope.toolkit.stats.sample import Summary
    from gilscope.toolkit.stats.verdict import Comparison

TWO_RUNS = "between these two runs"   # the scope: two other runs of the same builds may differ by another ratio
LONGEST = 16   # characters of a name in a heading; a longer one is called A or B
MOST_ROWS = 14    # of the table on one screen
_FIRST = [SpeedVerdict.SLOWER, SpeedVerdict.FASTER, SpeedVerdict.CANNOT_TELL, SpeedVerdict.SAME]


class _Remedy(StrEnum):
    """The remedies for a comparison without a verdict, as a table has them."""

    ROUNDS = "rounds"   # after their number
    QUIET = "less noise"
    SESSIONS = "more sessions"
    FIRST_ROUNDS = "more rounds"


_NEEDS = {   # in the legend
    _Remedy.ROUNDS: ("about so many rounds with both cells for a verdict, with a probability of 80 %, if noise and "
                     "ratio stay as they are"),
    _Remedy.QUIET: "less noise: a quieter machine",
    _Remedy.SESSIONS: "more sessions: rounds at other times (`gilscope run --add-session`)",
    _Remedy.FIRST_ROUNDS: f"more rounds: at least {MIN_ROUNDS}",
}


def comparison_document(  # noqa: PLR0913 - the parts of a comparison
    title: str, contrasts: Sequence[Contrast], *, baseline: str, sample: str, notes: Sequence[Note] = (),
    margin: float = MARGIN, again: bool = False, remarks: Iterable[str] = (),
) -> Document:
    """Return the report of a comparison.

    Args:
        title: The document's heading.
        contrasts: In the order of the rows.
        baseline: The side that the ratios are relative to, in words.
        sample: The other side of the ratios, in words.
        notes: Warnings above the tables.
        margin: Differences up to this share are called none.
        again: The two sides were measured again for it: its cells are judged together, without others of that run.
        remarks: Further notes below the tables.
    """
    sections: list[Section] = [
        Heading(title, 1), *(Banner(note.text) for note in notes)]
    seen = dict.fromkeys(remarks)
    seen |= dict.fromkeys(note.text for each in contrasts if each.comparison for note in each.comparison.notes)
    compared = [each for each in contrasts if each.comparison is not None]
    missing = [each for each in contrasts if each.comparison is None]
    if compared:
        sections.append(Lines("", tuple(_legend(compared, baseline, sample, margin, again=again))))
        sections += _tables(compared, _titles(baseline, sample), margin)
    if seen:
        sections.append(Lines("Notes", tuple(seen)))
    if missing:
        sections.append(Lines("Not compared", tuple(_not_compared(missing))))
    sections.append(summary_lines(in_short(contrasts, baseline, sample, margin)))
    return Document(tuple(sections))


def comparison_answer(
    title: str, contrasts: Sequence[Contrast], *, baseline: str, sample: str, notes: Sequence[Note] = (),
    margin: float = MARGIN,
) -> Document:
    """Return the answer of a comparison on one screen: the counts, then the cells that differ most, then the others.

    The arguments are those of `comparison_document`.
    """
    compared = [each for _, each in sorted(
        ((_place(each.comparison, margin), each) for each in contrasts if each.comparison), key=lambda pair: pair[0])]
    counts = _counts_text(contrasts, margin)
    sections: list[Section] = [Lines("", (f"{title} (ratio above 1: {sample} is faster): {counts}",))]
    if compared:
        across_models = any(each.baseline.runner != each.sample.runner for each in compared)
        one_build = len({each.sample.build for each in compared}) == 1
        keys = ("workload", *(() if across_models else ("model",)), *(() if one_build else ("build",)), "N")
        table = _table("", keys, (), compared[:MOST_ROWS], margin)
        rows = tuple(tuple(replace(entry, marks=()) for entry in row) for row in table.rows)
        sections.append(replace(table, title="", rows=rows, footnotes=()))
    cautions = [note.text for note in notes]
    left = f"{len(compared) - MOST_ROWS} more cells, " if len(compared) > MOST_ROWS else ""
    floors = "" if _are_apart(contrasts) else ", noise floors"
    sections.append(Lines("", (
        *([f"careful: {first_text(cautions)}"] if cautions else []),
        *filter(None, [_lacking_text(contrasts), _apart_text(contrasts, baseline, sample)]),
        f"{left}times{floors}, and why cells were not compared: --full")))
    return Document(tuple(sections))


def _place(comparison: Comparison, margin: float) -> float:
    """Return the place of a cell on one screen: by its verdict; of two runs, the one that moved most first."""
    return _FIRST.index(comparison.verdict(margin)) if comparison.paired else -abs(log(comparison.ratio))


def _are_apart(contrasts: Iterable[Contrast]) -> bool:
    """Return True if the sides were measured in two runs."""
    return any(each.comparison is not None and not each.comparison.paired for each in contrasts)


def _titles(baseline: str, sample: str) -> tuple[str, str]:
    """Return the headings of the columns with the two sides' times."""
    return (baseline, sample) if max(len(baseline), len(sample)) <= LONGEST else ("A", "B")


def _legend(
    contrasts: Sequence[Contrast], baseline: str, sample: str, margin: float, *, again: bool,
) -> Iterable[str]:
    """Yield how to read the tables."""
    first, second = _titles(baseline, sample)
    if (first, second) != (baseline, sample):
        yield f"A is {baseline}, B is {sample}."
    spread = spread_text(time for each in contrasts for time in (each.baseline_time, each.sample_time) if time)
    yield " ".join(filter(None, [f"Times: medians over rounds; {_clock_text(contrasts)}.", spread]))
    yield from times_scope(each.comparison for each in contrasts)
    interval = "its 95 % interval" if _are_apart(contrasts) else "an interval"
    yield (f"Ratio: how many times as fast {second} is as {first}, with {interval}: 0.80x takes 1.25 times as long. "
           "It compares robust means over rounds, not these medians: where rounds differ, it is not their quotient.")
    if _are_apart(contrasts):
        return
    share = f"{margin * 100:g} %"
    yield f"same: every difference above {share} is excluded."
    yield (f"cannot tell: by the wider intervals of verdicts, a difference above {share} is possible, and none is "
           "significant.")
    if any(each.comparison and each.comparison.verdict_interval for each in contrasts):
        yield ("Intervals: 95 % for each ratio alone; where no difference is significant, the wider one that decides "
               f"the verdict: {_family_text(len(contrasts), again=again)}.")
    wanted = {_need(each.comparison, margin) for each in contrasts if each.comparison} - {None}
    if wanted:
        yield f"needs: {'; '.join(text for remedy, text in _NEEDS.items() if remedy in wanted)}."


def _family_text(cells: int, *, again: bool) -> str:
    """Return which verdicts hold at once; in the report of a run, the same ratio has the same verdict."""
    if again:
        return (f"those of the {counted(cells, 'cell')} of this comparison hold at once with 95 % confidence. The "
                "report of the run judges more ratios together, so its verdicts may differ")
    return ("as wide as those of the run's report, which hold for all its cells at once with 95 % confidence. So a "
            "speed-up or a build ratio has the same verdict in both; a * goes by 5 % for its own set, so a model "
            "may lack it though no difference is shown here")


def _clock_text(contrasts: Sequence[Contrast]) -> str:
    clocks = {(each.clock, _workers(each) > 1) for each in contrasts}
    if len({clock for clock, _ in clocks}) == 1:
        return clock_text(contrasts[0].clock)
    return "CPU time with one worker, wall time with more"


def _workers(contrast: Contrast) -> int:
    return max(contrast.baseline.workers, contrast.sample.workers)


def _tables(contrasts: Sequence[Contrast], titles: tuple[str, str], margin: float) -> list[Table]:
    """Return a table for each workload, phase and task length; of two runs also for each build."""
    across_builds = any(each.baseline.build != each.sample.build for each in contrasts)
    across_models = any(each.baseline.runner != each.sample.runner for each in contrasts)
    with_build = not across_builds and not across_models
    groups: dict[str, list[Contrast]] = {}
    for each in contrasts:
        title = title_text(each.sample) + (f" on {each.sample.build}" if with_build else "")
        groups.setdefault(title, []).append(each)
    keys = ("build", "N") if across_models else ("model", "N")
    return [_table(title, keys, titles, rows, margin) for title, rows in groups.items()]


def _table(
    title: str, keys: Sequence[str], titles: tuple[str, str] | tuple[()], contrasts: Sequence[Contrast], margin: float,
) -> Table:
    rows = [(each, each.comparison) for each in contrasts if each.comparison is not None]
    columns = [
        *(Column(title=each, key=True, align="right" if each == "N" else "left") for each in keys),
        *(Column(title=each) for each in titles), Column(title="ratio"),
    ]
    judged = not _are_apart(contrasts)
    if judged:
        columns.append(Column(title="verdict", align="left"))
    needs = [_need(seen, margin) for _, seen in rows]
    if any(needs):
        columns.append(Column(title="needs", align="left"))
    notes = Footnotes()
    entries = tuple(
        (
            *(Entry(_KEYS[key](each)) for key in keys),
            *((_time(each.baseline_time, _marks(notes, each.baseline_notes)),
               _time(each.sample_time, _marks(notes, each.sample_notes))) if titles else ()),
            Entry(RatioValue(seen, "interval"), _marks(notes, each.lacking_sessions)),
            *([Entry(seen.verdict(margin))] if judged else []),
            *([Entry(_need_text(need, seen, margin))] if any(needs) else []),
        )
        for (each, seen), need in zip(rows, needs, strict=True)
    )
    return Table(title=title + _floor_text([seen for _, seen in rows]), columns=tuple(columns), rows=entries,
                 footnotes=notes.texts())


def _marks(footnotes: Footnotes, notes: Iterable[Note]) -> tuple[int, ...]:
    return footnotes.marks(note.text for note in notes)


def _floor_text(comparisons: Iterable[Comparison]) -> str:
    """Return the noise floors that the verdicts used: ", noise floor 0.5 to 1.2 %"."""
    floors = [each.floor for each in comparisons if each.floor is not None]
    return f", noise floor {floors_text(floors)}" if floors else ""


def _time(summary: Summary | None, marks: tuple[int, ...]) -> Entry:
    if summary is None:
        raise AssertionError("what is compared has a time on both sides")
    return Entry(Quantity(summary.center, "seconds", summary.spread if summary.count > 1 else None), marks)


def _need(comparison: Comparison, margin: float) -> _Remedy | None:
    """Return the remedy for a verdict of "cannot tell"; None for other verdicts, for two runs, or if there is none."""
    if not comparison.paired or comparison.verdict(margin) != SpeedVerdict.CANNOT_TELL:
        return None
    if comparison.run_sessions > 1:   # rounds of the same session do not tell how sessions differ
        return _Remedy.SESSIONS
    if not comparison.has_enough_rounds:
        return _Remedy.FIRST_ROUNDS
    if not comparison.judgeable:   # values that do not vary, which a note says
        return None
    return _Remedy.QUIET if rounds_to_tell(comparison, margin) is None else _Remedy.ROUNDS


def _need_text(need: _Remedy | None, comparison: Comparison, margin: float) -> str:
    """Return "34 rounds", "less noise"; of each run, in all."""
    return f"{rounds_to_tell(comparison, margin)} rounds" if need is _Remedy.ROUNDS else str(need or "")


def _counts(contrast: Contrast) -> str:
    first, second = contrast.baseline.workers, contrast.sample.workers
    return str(second) if first == second else f"{second} vs {first}"


_KEYS: dict[str, Callable[[Contrast], str]] = {
    "workload": lambda each: workload_text(each.sample), "model": lambda each: each.sample.runner,
    "build": lambda each: each.sample.build, "N": _counts,
}


def in_short(contrasts: Sequence[Contrast], baseline: str, sample: str, margin: float = MARGIN) -> list[str]:
    """Return the number of cells with each verdict, and what must be known of some of them."""
    return [_counts_text(contrasts, margin), *filter(None, [_lacking_text(contrasts)]),
            *filter(None, [_apart_text(contrasts, baseline, sample)])]


def _apart_text(contrasts: Iterable[Contrast], baseline: str, sample: str) -> str:
    """Return why ratios of two runs have no verdict, and what has one; "" if both sides were measured together."""
    if not _are_apart(contrasts):
        return ""
    return (f"No verdict: the machine may have changed between the runs. `gilscope compare {baseline} {sample} "
            "--again` measures both in turn, and judges.")


def _lacking_text(contrasts: Iterable[Contrast]) -> str:
    """Return how many ratios lack sessions, which the scope of the tables does not tell of them; "" if none does."""
    lacking = sum(bool(each.lacking_sessions) for each in contrasts if each.comparison is not None)
    return f"{counted(lacking, 'ratio lacks', 'ratios lack')} a session: see the footnotes." if lacking else ""


def _counts_text(contrasts: Sequence[Contrast], margin: float) -> str:
    """Return "3 cells compared: 2 slower, 1 cannot tell. 3 not compared."."""
    seen = [each.comparison for each in contrasts if each.comparison is not None]
    if not seen:
        return "No cell could be compared."
    if _are_apart(contrasts):
        said = f"in the median {ratio_number(exp(median(log(each.ratio) for each in seen)))}x"
    else:
        counts = Counter(each.verdict(margin) for each in seen)
        words = {word: str(word) for word in SpeedVerdict} | {SpeedVerdict.SAME: f"same (within {margin * 100:g} %)"}
        said = ", ".join(f"{counts[word]} {text}" for word, text in words.items() if counts[word])
    missing = len(contrasts) - len(seen)
    compared = f"{counted(len(seen), 'cell')} compared: {said}."
    return f"{compared} {missing} not compared." if missing else compared


def _not_compared(missing: Iterable[Contrast]) -> Iterator[str]:
    """Yield the models and workloads without a comparison, a line for each reason."""
    reasons: dict[str, list[Cell]] = {}
    for each in missing:
        reasons.setdefault(each.reason or "", []).append(each.sample)
    for reason, cells in reasons.items():
        models = list_text(dict.fromkeys(cell.runner for cell in cells))
        works = list_text(dict.fromkeys(map(workload_text, cells)))
        yield f"{models} of {works} ({counted(len(cells), 'cell')}): {reason}"


def workload_text(cell: Cell) -> str:
    """Return a workload with its phase and task length, unless they are the usual ones: "noop (startup)"."""
    phase = [] if cell.phase is Phase.STEADY else [str(cell.phase)]
    length = [] if cell.task_seconds is None else [f"tasks of {format_seconds(cell.task_seconds)}"]
    return cell.workload + (f" ({', '.join([*phase, *length])})" if phase or length else "")
