"""Write recorded processes in the Trace Event Format, which Perfetto and chrome://tracing open.

Source: "Trace Event Format", Google (complete events "X", metadata "M"; times in microseconds).
"""

from __future__ import annotations

import json
from pathlib import Path

from gilscope.toolkit.gil.records import Kind
from gilscope.toolkit.gil.summary import thread_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from gilscope.toolkit.gil.records import Process, Span, Thread

ALL = (float("-inf"), float("inf"))
NAMES = {
    Kind.WAIT: "waits for the GIL", Kind.HOLD: "holds the GIL", Kind.SWITCH: "hands the GIL over", Kind.PARK: "parked",
    Kind.IDLE: "idle", Kind.SPIN: "spins",
}


def write_trace(processes: Sequence[Process], path: str | Path, window: tuple[float, float] = ALL) -> None:
    """Write the trace of `processes` to `path`; see `trace`."""
    Path(path).write_text(json.dumps(trace(processes, window), separators=(",", ":")), encoding="utf-8")


def trace(processes: Sequence[Process], window: tuple[float, float] = ALL) -> dict[str, Any]:
    """Return the trace: of each process and thread its name, then every span that was kept, in order of time.

    Args:
        processes: What was recorded.
        window: Spans that end before its first or begin after its second number of seconds, since the first process's
            start, are left out.
    """
    first = min((process.started for process in processes), default=0.0)
    named = [event for process in processes for event in _metadata(process)]
    spans = [event for process in processes for event in _spans(process, process.started - first, window)]
    spans.sort(key=lambda event: (event["ts"], -event["dur"]))
    return {
        "traceEvents": named + spans, "displayTimeUnit": "ms",
        "otherData": {"tool": "gilscope", "spans_lost": sum(t.spans_lost for p in processes for t in p.threads)},
    }


def _metadata(process: Process) -> Iterator[dict[str, Any]]:
    build = f"Python {process.version}{'t' if process.free_threaded else ''}"
    yield _named("process_name", process.pid, process.pid, name=f"{build}: {' '.join(process.command)[:200]}")
    for thread, name in zip(process.threads, thread_names(process), strict=True):
        yield _named("thread_name", process.pid, thread.tid, name=name)
        yield _named("thread_sort_index", process.pid, thread.tid, sort_index=thread.number)


def _named(what: str, pid: int, tid: int, **values: Any) -> dict[str, Any]:
    return {"name": what, "ph": "M", "ts": 0, "pid": pid, "tid": tid, "args": values}


def _spans(process: Process, offset: float, window: tuple[float, float]) -> Iterator[dict[str, Any]]:
    for thread in process.threads:
        for span in thread.spans:
            if span.end + offset < window[0] or span.begin + offset > window[1]:
                continue
            yield {
                "name": NAMES[span.kind], "cat": span.kind.name.lower(), "ph": "X", "pid": process.pid,
                "tid": thread.tid, "ts": round((offset + span.begin) * 1e6, 3), "dur": round(span.seconds * 1e6, 3),
                "args": _arguments(process, thread, span),
            }


def _arguments(process: Process, thread: Thread, span: Span) -> dict[str, Any]:
    found: dict[str, Any] = {}
    site = process.sites[span.site] if span.site else None
    if site is not None:
        found["at"] = f"{site.file}:{site.line} in {site.function}"
        if span.kind in {Kind.PARK, Kind.IDLE, Kind.SPIN}:
            found["on"] = site.on or site.reason.name.lower()
    if span.kind is Kind.WAIT:
        found |= {"attempts": span.attempts, "requests": span.timeouts}
        holder = next((each for each in process.threads if each.number == span.holder), None)
        if holder is not None and holder is not thread:
            found["holder"] = holder.tid
    if span.gil:
        found["gil"] = span.gil
    return found
