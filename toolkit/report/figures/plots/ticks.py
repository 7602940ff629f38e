"""Positions and texts of the marks of an axis.  Works without matplotlib."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gilscope.toolkit.report.figures.figure import Axis

FEW = 10          # so many different places or fewer: each gets its mark
MANY_DECADES = 3  # from here on a mark per decade is enough
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def limits(axis: Axis, values: Iterable[float], *, zero: bool) -> tuple[float, float]:
    """Return the start and the end of `axis`: its own limits, or all values with some room.

    Args:
        axis: Its limits are extended to show values outside of them.
        values: In any order; those that cannot be drawn do not count.
        zero: Start at 0 when nothing is below it and the axis is not logarithmic.
    """
    fixed = [end for end in (axis.lo, axis.hi) if end is not None]
    inside = [value for value in (*values, *fixed) if drawable(value, axis)]
    lo, hi = (min(inside), max(inside)) if inside else (1.0, 10.0) if axis.log else (0.0, 1.0)
    if axis.log:
        room = max((hi / lo) ** 0.05, 1.12)
        lo, hi = (lo if lo == axis.lo else lo / room), (hi if hi == axis.hi else hi * room)
        return (lo / 2, hi * 2) if lo == hi else (lo, hi)
    room = (hi - lo) * 0.05 or abs(hi) * 0.1 or 0.5
    start = 0.0 if zero and lo >= 0 else lo if lo == axis.lo else lo - room
    return start, hi if hi == axis.hi and hi > start else hi + room


def drawable(value: float, axis: Axis) -> bool:
    """Return True if `value` has a place on `axis`."""
    return math.isfinite(value) and (value > 0 or not axis.log)


def has_interval(lo: float, hi: float) -> bool:
    """Return True if both ends are finite and differ."""
    return math.isfinite(lo) and math.isfinite(hi) and lo != hi


def marks(axis: Axis, lo: float, hi: float, count: int, places: Sequence[float] = ()) -> list[tuple[float, str]]:
    """Return the marks between `lo` and `hi` and their texts.

    Args:
        axis: Its own marks are taken where it has some.
        lo: Where the axis starts.
        hi: Where it ends.
        count: About how many there is room for.
        places: The values; when there are few of them, the marks stand at them.
    """
    if axis.ticks:
        return [(value, text) for value, text in axis.ticks if lo <= value <= hi]
    places = sorted({place for place in places if drawable(place, axis)})
    steps = log_steps if axis.log else linear_steps
    found = places if 0 < len(places) <= FEW else steps(lo, hi, count)
    if axis.seconds:
        unit = None if axis.log or found == places else _unit(max(map(abs, found), default=1.0))
        return [(value, seconds_text(value, unit)) for value in found]
    return list(zip(found, number_texts(found), strict=True))


def log_steps(lo: float, hi: float, count: int) -> list[float]:
    """Return powers of ten, or those times 1, 2, 5 where there are few of them."""
    first, last = math.floor(math.log10(lo)), math.ceil(math.log10(hi))
    factors: tuple[float, ...] = (1,) if math.log10(hi / lo) >= MANY_DECADES else (1, 2, 5)
    found = [_power(exponent) * factor for exponent in range(first, last + 1) for factor in factors]
    found = [value for value in found if lo * (1 - 1e-9) <= value <= hi * (1 + 1e-9)]
    step = math.ceil(len(found) / max(count * 1.5, 2))
    if step > 1 and len(factors) > 1:
        return log_steps_of_ten(found) or found[::step]
    return found[::step] if len(found) > 1 else linear_steps(lo, hi, count)


def log_steps_of_ten(values: Iterable[float]) -> list[float]:
    """Return the powers of ten among `values`; empty when there are fewer than two."""
    found = [value for value in values if is_power_of_ten(value)]
    return found if len(found) > 1 else []


def is_power_of_ten(value: float) -> bool:
    """Return True if the positive `value` is a power of ten."""
    return math.isclose(math.log10(value), round(math.log10(value)), abs_tol=1e-9)


def linear_steps(lo: float, hi: float, count: int) -> list[float]:
    """Return round numbers at equal distances: at most about `count`, steps of 1, 2, 2.5 or 5 times a power of ten."""
    raw = (hi - lo) / max(count, 2)
    size = 10 ** math.floor(math.log10(raw))
    step = next(factor * size for factor in (1, 2, 2.5, 5, 10) if factor * size >= raw * (1 - 1e-9))
    first, last = math.ceil(lo / step - 1e-9), math.floor(hi / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def seconds_text(seconds: float, unit: float | None = None) -> str:
    """Return a mark's text: "10 µs", "1 ms", "0.1 s"; in the unit given where one axis keeps to one unit."""
    if seconds == 0:
        return "0"
    # A tenth of a second is read more easily than a hundred milliseconds.
    whole = abs(seconds) * (10 if abs(seconds) > 0.05 else 1) * (1 + 1e-9)
    factor = unit or next((size for size, _ in _UNITS if whole >= size), _UNITS[-1][0])
    return f"{number_texts([seconds / factor])[0]} {dict(_UNITS)[factor]}"


def number_texts(values: Sequence[float]) -> list[str]:
    """Return numbers with thousands separated, from a million on as "2 M"."""
    top = max(map(abs, values), default=0.0)
    return [_number(value, top) for value in values]


def _number(value: float, top: float) -> str:
    for size, letter in ((1e9, " G"), (1e6, " M")):
        if abs(value) >= size or (top >= size * 1.5 and abs(value) >= size / 10):
            return f"{value / size:.4g}{letter}"
    if abs(value) >= 1000:  # where thousands begin
        return f"{value:,.0f}"
    if abs(value) < 1e-12:  # what is left of 0 after adding steps
        return "0"
    return f"{value:.4g}".replace("e-0", "e-")


def _unit(top: float) -> float:
    return next((size for size, _ in _UNITS if top >= size), _UNITS[-1][0])


def _power(exponent: int) -> float:
    # 10.0 ** -3 is not 0.001 on every platform; the text's number is.
    return float(f"1e{exponent}")
