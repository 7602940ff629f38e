"""Write recorded processes in the Trace Event Format, which Perfetto and chrome://tracing open.

Source: "Trace Event Format", Google (complete events "X", metadata "M"; times in microseconds).
"""

from __future__ import annotations

import json
from pathlib import Path

from gilscope.toolkit.gil.records import SpanKind
from gilscope.toolkit.gil.summary import thread_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from gilscope.toolkit.gil.records import CodeLine, Process, Thread, ThreadSpan

ALL = (float("-inf"), float("inf"))
HAVING_IT = frozenset({SpanKind.HOLD, SpanKind.SWITCH})
SHORTEST = 1e-6   # seconds: shorter gaps between two spans are not drawn
NAMES = {
    SpanKind.WAIT: "waits for the GIL", SpanKind.HOLD: "holds the GIL", SpanKind.SWITCH: "hands the GIL over",
    SpanKind.PARK: "parked", SpanKind.IDLE: "idle", SpanKind.SPIN: "spins",
}


def write_trace(processes: Sequence[Process], path: str | Path, window: tuple[float, float] = ALL) -> None:
    """Write the trace of `processes` to `path`; see `trace`."""
    Path(path).write_text(json.dumps(trace(processes, window), separators=(",", ":")), encoding="utf-8")


def trace(processes: Sequence[Process], window: tuple[float, float] = ALL) -> dict[str, Any]:
    """Return the trace: the names of processes and threads, then all stored spans and the gaps between them, by time.

    A free-threaded build with its GIL off has a GIL for a moment at its start and while it imports an extension module;
    those spans are left out.

    Args:
        processes: The recorded processes.
        window: Begin and end, in seconds since the start of the first process; spans outside are left out.
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
    def event(thread: Thread, name: str, kind: str, begin: float, end: float, **arguments: Any) -> dict[str, Any]:
        return {
            "name": name, "cat": kind, "ph": "X", "pid": process.pid, "tid": thread.tid,
            "ts": round((offset + begin) * 1e6, 3), "dur": round((end - begin) * 1e6, 3), "args": arguments,
        }

    def inside(begin: float, end: float) -> bool:
        return end + offset >= window[0] and begin + offset <= window[1]

    for thread in process.threads:
        spans = [span for span in thread.spans if process.gil_used or span.kind not in HAVING_IT]
        for span in spans:
            if inside(span.begin, span.end):
                yield event(thread, NAMES[span.kind], span.kind.name.lower(), span.begin, span.end,
                            **_arguments(process, thread, span))
        for begin, end in _between(thread, spans):
            if inside(begin, end):
                yield event(thread, _running(process), "run", begin, end)


def _running(process: Process) -> str:
    """Return the label of the time in which a thread neither waits nor has the GIL, as far as it is known."""
    if not process.gil_used:
        return "runs, or is in a system call"
    return "without the GIL: C code or a system call" if process.all_holds else "does not wait"


def _between(thread: Thread, spans: Sequence[ThreadSpan]) -> Iterator[tuple[float, float]]:
    """Yield begin and end of the gaps between a thread's spans, without the time of lost spans."""
    position = thread.start
    if thread.spans_lost:
        position = spans[0].begin if spans else thread.end
    for begin, end in [*((span.begin, span.end) for span in spans), (thread.end, thread.end)]:
        if begin - position > SHORTEST:
            yield position, begin
        position = max(position, end)


def _line(line: CodeLine) -> str:
    return f"{line.file}:{line.line} in {line.function}"


def _arguments(process: Process, thread: Thread, span: ThreadSpan) -> dict[str, Any]:
    found: dict[str, Any] = {}
    site = process.sites[span.site] if span.site else None
    if site is not None:
        found["at"] = _line(site.own)
        if site.inside is not None:
            found["inside"] = _line(site.inside)
        if span.kind in {SpanKind.PARK, SpanKind.IDLE, SpanKind.SPIN}:
            found["on"] = site.on or site.reason.name.lower()
    if span.kind is SpanKind.WAIT:
        found |= {"attempts": span.attempts, "requests": span.timeouts}
        holder = next((each for each in process.threads if each.number == span.holder), None)
        if holder is not None and holder is not thread:
            found["holder"] = holder.tid
    if span.gil:
        found["gil"] = span.gil
    return found
