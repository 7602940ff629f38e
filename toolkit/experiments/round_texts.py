"""Words for what several rounds measured: ratios, ranges, and what the marks of the tables mean.

A ratio in a sentence pairs values of the same round: a quotient of two medians belongs to no round and has no spread.
Where a table shows the same ratio, sentences use its interval (`wording.interval_text`) instead.
"""

from __future__ import annotations

from math import floor, isfinite, log10
from statistics import median
from typing import TYPE_CHECKING

from gilscope.toolkit.report.document import Quantity, RatioValue, Table
from gilscope.toolkit.report.wording import number_text, or_text, range_text
from gilscope.toolkit.stats.sample import CONFIDENCE, needed
from gilscope.toolkit.stats.verdict import SpeedVerdict
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from gilscope.toolkit.report.document import Section
    from gilscope.toolkit.stats.sample import Summary

DIGITS = 2   # significant ones of a ratio: rounds seldom agree on more


def round_ratios(values: Mapping[int, float], others: Mapping[int, float]) -> list[float]:
    """Return `values` over `others` in each round that has both, by round; rounds in which `others` is 0 are left out.

    Args:
        values: By round.
        others: By round, in the same unit.
    """
    return [value / others[key] for key, value in sorted(values.items()) if others.get(key)]


def two_digits(number: float) -> str:
    """Return a number in two significant digits: "170", "8.8", "0.58"."""
    if number == 0:
        return "0"
    digits = DIGITS - 1 - floor(log10(abs(float(f"{number:.{DIGITS - 1}e}"))))
    return f"{round(number, digits):,.{max(0, digits)}f}"


def rounds_text(values: Collection[float], text: Callable[[float], str] = number_text, unit: str = "") -> str:
    """Return "6,400 to 20,900/s in 3 rounds", the smallest and the largest as `text` words them.

    Raises:
        ValueError: `values` is empty.
    """
    rounds = "one round" if len(values) == 1 else counted(len(values), "round")
    return f"{range_text(values, text)}{unit} in {rounds}"


def times_text(ratios: Collection[float], note: str = "") -> str:
    """Return "about 170 times (160 to 190 in 3 rounds)": the median of `round_ratios` and their range.

    Args:
        ratios: By round, at least one.
        note: Ends the brackets: ", undecided".

    Raises:
        ValueError: `ratios` is empty.
    """
    return f"about {two_digits(median(ratios))} times ({rounds_text(ratios, two_digits)}{note})"


def every_round(count: int) -> str:
    """Return "in every round (3 of 3)", for what holds in each of `count` rounds; "in the one round" for 1."""
    return "in the one round" if count == 1 else f"in every round ({count} of {count})"


def range_words(summaries: Iterable[Summary | None]) -> str:
    """Return the name of the ranges for a legend: "range of 3 rounds (75 %)", "95 % interval of the median".

    Args:
        summaries: Those that are shown; None and those of one round have no range.
    """
    few, enough = _few_rounds(summaries)
    names = [f"{CONFIDENCE * 100:g} % interval of the median"] if enough else []
    if few:
        names.append(f"range of {or_text(map(str, few))} rounds ({or_text(few.values())} %)")
    return ", or ".join(names) or "range of the rounds"


def mark_lines(sections: Iterable[Section], summaries: Iterable[Summary | None]) -> Iterator[str]:
    """Yield the meaning of ±, [ ] and ?, each only if a table has it.

    Args:
        sections: Of the document; its tables are looked through.
        summaries: Of the cells' values, whose numbers of rounds are those behind the tables' ±; None: without.
    """
    values = [entry.value for each in sections if isinstance(each, Table) for row in each.rows for entry in row]
    if any(isinstance(value, Quantity) and value.spread is not None for value in values):
        yield _spread_line(summaries)
    comparisons = [value.comparison for value in values if isinstance(value, RatioValue)]
    if any(isfinite(each.hi) and each.verdict() != SpeedVerdict.SAME for each in comparisons):
        yield "[ ] is the 95 % interval of one ratio by itself, from pairs of values of the same round."
    if any(each.verdict() == SpeedVerdict.CANNOT_TELL for each in comparisons):
        yield ("? marks an undecided ratio: judged together with all others of this run, neither a difference nor its "
               "absence is shown. Its interval is that wider one.")


def _spread_line(summaries: Iterable[Summary | None]) -> str:
    few, enough = _few_rounds(summaries)
    interval = f"half of the {CONFIDENCE * 100:g} % interval of the median"
    if not few:
        return f"± is {interval}."
    held = or_text(f"{level} % ({counted(count, 'round')})" for count, level in few.items())
    if not enough:
        return f"± is half the range of the rounds, which holds with {held}."
    return f"± is {interval}; with fewer rounds half their range, which holds with {held}."


def _few_rounds(summaries: Iterable[Summary | None]) -> tuple[dict[int, str], bool]:
    """Return the percent with which ranges of few rounds hold, by number of rounds, and True if others have enough.

    Enough rounds have an interval of the usual confidence; one round has no range.
    """
    levels = {each.count: each.confidence for each in summaries if each is not None and each.count > 1}
    few = {count: _level_text(level) for count, level in sorted(levels.items()) if count < needed(CONFIDENCE)}
    return few, len(few) < len(levels)


def _level_text(level: float) -> str:
    return f"{level * 100:.3g}"
