"""Seconds, percentages, bytes, counts and long lists as people read them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
TIMES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}  # as they are written -> seconds
_BYTES = ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))
MOST_NAMED = 4   # names, places or reasons in one line of a terminal; their number stands for the others


def format_seconds(seconds: float) -> str:
    """Return `seconds` with three significant digits and its unit, e.g. "94.0 ms"."""
    if seconds == 0:
        return "0 s"
    for factor, unit in _SECONDS:
        # 0.9995 of a unit rounds to 1.00 of it, so it belongs there.
        if abs(seconds) >= 0.9995 * factor:
            return f"{_three_digits(seconds / factor)} {unit}"
    return f"{_three_digits(seconds / 1e-9)} ns"


def percent(share: float, digits: int = 0) -> str:
    """Return a share, 1 for the whole, as "58 %", or with digits after the point as "57.6 %".

    A positive share that would round to nothing is "<1 %", or "<0.1 %".
    """
    return f"{percent_number(share, digits)} %"


def percent_number(share: float, digits: int) -> str:
    """Return the number of `percent` without its unit."""
    least = 10.0**-digits
    return f"<{least:g}" if 0 < share * 100 < least else f"{share * 100:.{digits}f}"


def format_minutes(seconds: float) -> str:
    """Return a duration as people read it: "30 s", "25 min", "1 h 10 min"."""
    if seconds < 90:  # minutes are said where they are more than one
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min"


def counted(number: int, singular: str, plural: str = "") -> str:
    """Return "1 round", "2 rounds", "0 rounds"."""
    return f"{number} {inflect(number, singular, plural)}"


def inflect(number: int, singular: str, plural: str = "") -> str:
    """Return the form of a word that agrees with `number`; without `plural`, the plural is the singular with an s."""
    return singular if number == 1 else plural or f"{singular}s"


def clock_text(clock: str) -> str:
    """Return the name of a clock: "wall time", "CPU time"."""
    return "CPU time" if clock == "cpu" else f"{clock} time"


def few(names: Sequence[str], most: int = 3, between: str = ", ") -> str:
    """Return the first `most` of many names, and how many there are beside: "a, b and 3 more"."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more


def format_bytes(count: float) -> str:
    """Return `count` bytes in binary units, e.g. "1.2 MiB"."""
    for factor, unit in _BYTES:
        # 1023.95 of a unit rounds to 1024.0 of it, so it belongs here.
        if abs(count) >= 1023.95 / 1024 * factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count:.0f} B"


def parse_seconds(text: str) -> float:
    """Return the seconds in "250ms", "10s", "5m" or "1h"; "µs" is the same as "us".

    Raises:
        ValueError: `text` is not a positive duration.
    """
    written = text.strip().replace("µ", "u")
    number = written.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = written[len(number) :]
    if unit not in TIMES:
        raise ValueError(f"{text!r} is not a duration; write it like 250ms, 10s, 5m or 1h")
    try:
        seconds = float(number) * TIMES[unit]
    except ValueError:
        raise ValueError(f"{text!r} is not a duration; write it like 250ms, 10s, 5m or 1h") from None
    if not 0 < seconds < float("inf"):
        raise ValueError(f"{text!r} is not a positive duration")
    return seconds


def _three_digits(value: float) -> str:
    # Where rounding to one digit less reaches the next power of ten.
    for limit, digits in ((9.995, 2), (99.95, 1)):
        if abs(value) < limit:
            return f"{value:.{digits}f}"
    return f"{value:.0f}"


def list_text(items: Iterable[object]) -> str:
    """Return "a, b and c"."""
    *first, last = map(str, items)
    return f"{', '.join(first)} and {last}" if first else last
