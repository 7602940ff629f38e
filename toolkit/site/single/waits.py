"""The page of `gilscope gil`: a bar for each thread that shows how it spent its time."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.escaping import visible_all
from gilscope.toolkit.report.document import Document, Lines
from gilscope.toolkit.site.single.verdicts import titled
from gilscope.toolkit.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_THREADS = 20
WIDTH = 1000          # units of a bar as long as the longest life
# In the order of a bar: the class, the fields of a thread that say how long, what that is in words.
PARTS = (
    ("ran", ("cpu",), "ran"), ("gil", ("waited",), "waited for the GIL"),
    ("locks", ("parked", "spun"), "waited for locks and shared objects"),
    ("core", ("run_queue",), "could have run, but no core was free"),
    ("idle", ("idle",), "waited as the program wants it"),
)


def wait_values(found: Mapping[str, Any], document: Document) -> dict[str, Any]:
    """Return the values of `waits.html`; what is not known is not in the bars.

    Args:
        found: The document of `gil --json`.
        document: The report.
    """
    # The terminal's last words come first here.
    short = [each for each in document.sections if isinstance(each, Lines) and each.is_summary]
    title, sections = titled(Document(tuple(each for each in document.sections if each not in short)))
    threads = sorted(found["threads"], key=lambda each: -(each["waited"] + each["parked"] + each["spun"]))
    longest = max((each["seconds"] for each in threads), default=0.0)
    several = found.get("processes", 1) > 1
    bars = [_bar(each, longest, several=several) for each in threads[:MOST_THREADS] if longest]
    there = {part["name"] for bar in bars for part in bar["parts"]}
    return {
        "title": title, "document": sections,
        "short": [item for each in short for item in visible_all(each.items)], "program": shlex.join(found["program"]),
        "width": WIDTH, "left_out": max(0, len(threads) - MOST_THREADS),
        "bars": bars, "parts": [{"name": name, "says": says} for name, _, says in PARTS if name in there],
    }


def _bar(thread: Mapping[str, Any], longest: float, *, several: bool) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    begin, life = 0.0, thread["seconds"]
    for name, fields, says in PARTS:
        seconds = sum(thread.get(each) or 0.0 for each in fields)
        width = min(seconds, max(0.0, life - begin))   # the clocks differ: no part ends after the thread
        if width > 0:
            parts.append({"name": name, "says": f"{says}: {format_seconds(seconds)}", "x": _units(begin, longest),
                          "width": _units(width, longest)})
            begin += width
    name = f"{thread['process']} {thread['name']}" if several else thread["name"]
    says = "; ".join([f"{name}: there for {format_seconds(life)}", *(part["says"] for part in parts)])
    return {"name": name, "says": says, "width": _units(life, longest), "parts": parts}


def _units(seconds: float, longest: float) -> float:
    return round(seconds / longest * WIDTH, 1)
