"""Numbers as text, the same in every renderer."""

from __future__ import annotations

import re
from math import ceil, floor, isfinite, log10
from typing import TYPE_CHECKING, Literal, assert_never

from gilscope.toolkit.report.document import Entry, GainValue, Quantity, RatioForm, RatioValue, Value
from gilscope.toolkit.report.table.judgement import gains_nothing
from gilscope.toolkit.stats.verdict import MARGIN, SpeedVerdict
from gilscope.toolkit.units import format_bytes, format_seconds, percent, percent_number

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from gilscope.toolkit.stats.verdict import Comparison

GainForm = Literal["none", "range", "ratio", "spread"]

SAME = f"none beyond {MARGIN * 100:g} %"   # no difference
SHOWN_SPREAD = 0.04   # of a gain: half an interval up to it, rounded as it is printed, goes without saying
ANYTHING = 100.0      # the ratio of the ends of an interval from which it is no information
SHARP = 2.0     # percentage points: a decimal of a wider interval says nothing
NARROW = 0.02   # two in the second digit
SMALL = 0.2     # of the logarithm: from 0.63 to 1.6
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_SUPERSCRIPTS = str.maketrans("0123456789", _RAISED)
_LOWERED = str.maketrans(_RAISED, "0123456789")


def value_text(value: Value) -> str:
    """Return a table entry's value as text."""
    match value:
        case str():
            return value
        case Quantity():
            return quantity_text(value)
        case RatioValue():
            return _RATIO_TEXTS[value.form](value.comparison)
        case GainValue():
            return gain_text(value)
        case _:
            assert_never(value)


def entry_text(entry: Entry) -> str:
    """Return a table entry with the marks of its footnotes: "skipped¹ ²"."""
    return value_text(entry.value) + " ".join(mark_text(mark) for mark in entry.marks)


def mark_text(number: int) -> str:
    """Return a footnote's mark: ¹²."""
    return str(number).translate(_SUPERSCRIPTS)


def quantity_text(value: Quantity) -> str:
    """Return "412 ms ±1 %", "85 %", "23,100/s ±4 %": a unit that is none of `_UNITS` after three significant digits."""
    known = _UNITS.get(value.unit)
    number = known(value.value) if known else number_text(value.value) + value.unit
    return number if value.spread is None else f"{number} {half_width_text(value.spread)}"


def half_width_text(spread: float) -> str:
    """Return "±4 %"; where it is as large as the number itself only that, as a number below zero means nothing."""
    return f"±{percent(spread)}" if spread < 1 else "±100 % or more"


def number_text(number: float) -> str:
    """Return a number with three significant digits and thousands separated: "23,100", "0.0412"; 0 as "0"."""
    if number == 0:
        return "0"
    exponent = floor(log10(abs(float(f"{number:.2e}"))))
    rounded = round(number, 2 - exponent)
    whole = float(number).is_integer() and abs(number) < 1000  # three digits: a count needs no zeros
    return f"{rounded:,.0f}" if whole else f"{rounded:,.{max(0, 2 - exponent)}f}"


def ratio_text(comparison: Comparison) -> str:
    """Return "3.40x [3.32, 3.49]", "none beyond 3 %" for no difference, or "1.05x [...] ?" for an open one."""
    match comparison.verdict():
        case SpeedVerdict.SAME:
            return SAME
        case SpeedVerdict.CANNOT_TELL:
            return f"{interval_text(comparison)} ?"
        case _:
            return interval_text(comparison)


def interval_text(comparison: Comparison) -> str:
    """Return "3.40x [3.32, 3.49]", with a third digit where two would hide that something was measured."""
    lo, hi = comparison.printed
    if not isfinite(hi):
        return f"{ratio_number(comparison.ratio)}x"   # one process on each side has no interval
    # Two digits would hide a narrow interval around a small difference: "0.96x [0.96, 0.96]".
    extra = int(hi - lo < NARROW and abs(log10(comparison.ratio)) < SMALL)
    return f"{ratio_number(comparison.ratio, extra)}x [{ratio_number(lo, extra)}, {ratio_number(hi, extra)}]"


def inflation_text(comparison: Comparison) -> str:
    """Return "1.31x", "same" for no difference beyond the margin, or "1.31x ?"."""
    if comparison.verdict() == SpeedVerdict.SAME:
        return "same"
    doubt = " ?" if comparison.verdict() == SpeedVerdict.CANNOT_TELL else ""
    return f"{ratio_number(comparison.ratio)}x{doubt}"


def cost_text(comparison: Comparison) -> str:
    """Return "+7.5 % [+6.2, +8.7]": how much more time the sample takes than the baseline."""
    if comparison.verdict() == SpeedVerdict.SAME:
        return SAME
    doubt = " ?" if comparison.verdict() == SpeedVerdict.CANNOT_TELL else ""
    return f"{(1 / comparison.ratio - 1) * 100:+.1f} %{cost_interval(comparison)}{doubt}"


_RATIO_TEXTS: dict[RatioForm, Callable[[Comparison], str]] = {
    "verdict": ratio_text, "interval": interval_text, "cost": cost_text}
_UNITS: dict[str, Callable[[float], str]] = {
    "seconds": format_seconds, "bytes": format_bytes, "share": lambda share: f"{share * 100:.0f} %"}


def gain_text(gain: GainValue) -> str:
    """Return "1.88x*"; with a wide interval "1.31x ±9 %", a very wide one "at least 1.2x"; "none"; "0.90-2.20x?"."""
    seen, star = gain.comparison, "*" if gain.best else ""
    workers = "" if gain.workers is None else f" N={gain.workers}"
    match gain_form(seen):
        case "none":
            return "none"
        case "range":
            return f"{range_of(*seen.between)}?{workers}"   # no star: what may gain nothing is not to be used
        case "spread" if gain.bare:
            return f"{ratio_number(seen.ratio)}x{star}{workers}"
        case "spread" if _half_of(seen) >= 1:   # half an interval as large as its number says nothing
            lo, hi = seen.between
            end = (f"at least {rounded_down(lo, _digits(lo))}x" if seen.ratio > 1
                   else f"at most {rounded_up(hi, _digits(hi))}x")
            return f"{end}{star}{workers}"
        case "spread":
            return f"{ratio_number(seen.ratio)}x{star} ±{percent(_half_of(seen))}{workers}"
        case "ratio":
            return f"{ratio_number(seen.ratio)}x{star}{workers}"


def gain_form(comparison: Comparison) -> GainForm:
    """Return the form in which a gain is shown: none, the range of an open one, or its ratio, with a wide interval."""
    word = comparison.verdict()
    if word == SpeedVerdict.CANNOT_TELL and not gains_nothing(comparison):
        return "range"
    if word not in {SpeedVerdict.FASTER, SpeedVerdict.SLOWER}:
        return "none"
    half = _half_of(comparison)
    # Rounded as it is printed: "±4 %" beside "where wider than 4 %" would contradict itself.
    return "spread" if half >= 1 or round(half * 100) > SHOWN_SPREAD * 100 else "ratio"


def _half_of(comparison: Comparison) -> float:
    return comparison.hi / comparison.ratio - 1


def range_of(lo: float, hi: float) -> str:
    """Return "0.96-1.08x", rounded outward, as all inside is possible; "" if that says nothing."""
    if lo <= 0 or hi / lo >= ANYTHING:
        return ""
    digits = 2
    while not float(rounded_down(lo, digits)):   # no ratio is 0
        digits += 1
    return f"{rounded_down(lo, digits)}-{rounded_up(hi, digits)}x"


def rounded_down(number: float, digits: int) -> str:
    """Return the lower end of a range of what is not excluded, rounded outward, with so many digits after the point."""
    return f"{floor(round(number * 10**digits, 6)) / 10**digits:.{digits}f}"


def rounded_up(number: float, digits: int) -> str:
    """Return the upper end of such a range, rounded outward."""
    return f"{ceil(round(number * 10**digits, 6)) / 10**digits:.{digits}f}"


def beside(comparison: Comparison) -> str:
    """Return what stands beside a ratio that lacks sessions of its run: " (2 of 3 sessions)"; "" of others."""
    if comparison.sessions >= comparison.run_sessions:
        return ""
    return f" ({comparison.sessions} of {comparison.run_sessions} sessions)"


def limits_text(comparison: Comparison) -> str:
    """Return the costs that an open comparison does not exclude: "-1 to +5 %"; nothing if its interval has no end."""
    lo, hi = comparison.between
    if lo <= 0:
        return ""
    least, most = int(rounded_down((1 / hi - 1) * 100, 0)), int(rounded_up((1 / lo - 1) * 100, 0))
    return f"{_signed(least)} to {_signed(most)} %"


def _signed(percents: int) -> str:
    return f"{percents:+}" if percents else "0"


def floors_text(floors: Iterable[float]) -> str:
    """Return a range of noise floors: "1.2 to 3.4 %", "3.4 to above 100 %"; a figure above that says nothing more."""
    ends = list(floors)
    if min(ends) > 1:
        return "above 100 %"
    if max(ends) > 1:
        return f"{percent_number(min(ends), 1)} to above 100 %"
    return f"{range_text([min(ends), max(ends)], lambda share: percent_number(share, 1))} %"


def cost_interval(comparison: Comparison) -> str:
    """Return " [+6.2, +8.7]", the printed interval in percent; nothing where it has no end."""
    lo, hi = comparison.printed
    if not isfinite(hi) or lo <= 0:
        return ""
    return f" [{(1 / hi - 1) * 100:+.1f}, {(1 / lo - 1) * 100:+.1f}]"


def price_text(comparison: Comparison, *, interval: bool) -> str:
    """Return "11 % [5, 18]": how much more, or less, time a sample takes that differs from its baseline."""
    cost, *ends = (abs(1 / each - 1) * 100 for each in (comparison.ratio, comparison.lo, comparison.hi))
    if not interval:
        return f"{cost:.0f} %"
    digits = int(max(ends) - min(ends) < SHARP)   # as many as the interval is sharp
    return f"{cost:.{digits}f} % [{min(ends):.{digits}f}, {max(ends):.{digits}f}]"


def ratio_number(ratio: float, extra: int = 0) -> str:
    """Return a ratio with three significant digits, two just below 1, and `extra` ones: "0.97", "3.40", "12.5"."""
    return f"{ratio:.{_digits(ratio) + extra}f}"


def _digits(ratio: float) -> int:
    """Return the digits after the point of `ratio_number`."""
    exponent = floor(log10(float(f"{ratio:.2e}")))   # of the rounded number: 9.996 is written as 10.0
    return 2 if exponent in {-1, 0} else max(0, 2 - exponent)


def range_text(numbers: Collection[float], text: Callable[[float], str]) -> str:
    """Return "1.84x to 1.92x", the smallest and the largest number as `text` formats them; one if they look equal."""
    least, most = text(min(numbers)), text(max(numbers))
    return least if least == most else f"{least} to {most}"


def first_text(texts: Sequence[str]) -> str:
    """Return the first text, and how many more there are in the whole report."""
    return texts[0] + (f" ({len(texts) - 1} more: --full)" if len(texts) > 1 else "")


def or_text(items: Iterable[str]) -> str:
    """Return "a, b or c"."""
    *first, last = items
    return f"{', '.join(first)} or {last}" if first else last


def spelling(encoding: str | None) -> Callable[[str], str]:
    """Return a function that spells text so that `encoding` can write every character of it.

    In a text that it cannot write, "skipped¹" becomes "skipped (1)", "±" becomes "+-" and "µ" becomes "u"; any other
    character that it lacks is escaped.

    Args:
        encoding: As a stream names it; None, and one that Python does not know, counts as ASCII.
    """
    known = encoding if encoding and _writes(encoding, "") else "ascii"

    def spell(text: str) -> str:
        if not _writes(known, text):
            text = re.sub(f" ?([{_RAISED}]+)", _in_brackets, text)
            text = text.replace("±", "+-").replace("µ", "u").encode(known, "backslashreplace").decode(known)
        return text

    return spell


def _in_brackets(found: re.Match[str]) -> str:
    return f"{' ' if found.start() else ''}({found[1].translate(_LOWERED)})"


def _writes(encoding: str, text: str) -> bool:
    try:
        text.encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def ascii_text(text: str) -> str:
    """Return `text` in ASCII: "skipped¹" as "skipped (1)", "±" as "+-"; any other character that is not is escaped."""
    return spelling("ascii")(text)
