"""Pictures of `gil-trace`: a stretch of the traces that its cells kept, a lane for each thread."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gilscope.toolkit.bounded_reading import RESULTS, parse_json, read_text
from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.gil.chrome import NAMES
from gilscope.toolkit.gil.records import Kind
from gilscope.toolkit.report.figures.figure import Lane, TimelineFigure, TimelinePanel, seconds_axis
from gilscope.toolkit.store.checking import finite

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any

    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Cell

WORKS = {
    "cpu": "2 CPU threads", "io": "I/O beside a CPU thread", "lock": "2 threads, one Lock",
    "list": "2 threads, one list",
}
EXCERPT = 0.06            # seconds of the trace that the picture shows: a dozen switch intervals
PARKED_EXCERPT = 0.001    # of threads that are parked for microseconds
WORKERS = ("CPU", "I/O")  # what the program calls the threads that do the work
RUNS = "runs, or could run"
X = seconds_axis("time since the start of the stretch shown")


def has_gil(cell: Cell) -> bool:
    """Return whether the cell ran with a GIL."""
    return cell.runner == "threads"


def cells_of(results: Results) -> list[Cell]:
    """Return the cells in the order of the tables: by work, then as planned."""
    return [cell for work in WORKS for cell in results.cells(work=work)]


def work_of(cell: Cell) -> str:
    """Return what the cell's threads do, a key of `WORKS`."""
    return dict(cell.parameters)["work"]


def arm_text(results: Results, cell: Cell) -> str:
    """Return the cell's build, and that its GIL is on where it need not be."""
    free = next(build.free_threaded for build in results.builds if build.label == cell.build)
    return f"{cell.build}, GIL on" if free and has_gil(cell) else cell.build


def gil_figure(results: Results) -> TimelineFigure:
    """Return who holds the GIL and who waits for it; without panels where no trace was kept."""
    states = tuple(NAMES[kind] for kind in (Kind.HOLD, Kind.WAIT, Kind.SWITCH))
    panels = [_panel(results, cell, EXCERPT, states, "") for cell in cells_of(results)
              if has_gil(cell) and work_of(cell) in {"cpu", "io"}]
    return TimelineFigure(
        name="gil-trace", title="How the GIL changes hands", x=replace(X, hi=EXCERPT), states=states,
        counted=states[0], strip="how many hold the GIL at once",
        panels=tuple(panel for panel in panels if panel is not None),
        note=f"{1e3 * EXCERPT:g} ms out of the latest round. Where a lane is empty the thread neither has nor "
        "wants the GIL: it waits in a system call, or for a core while it gives the GIL away.",
    )


def parked_figure(results: Results) -> TimelineFigure:
    """Return how threads without a GIL wait for a lock and a list; without panels where no trace was kept."""
    states = (RUNS, NAMES[Kind.PARK], NAMES[Kind.SPIN])
    panels = [_panel(results, cell, PARKED_EXCERPT, states, RUNS) for cell in cells_of(results)
              if not has_gil(cell) and work_of(cell) in {"lock", "list"}]
    return TimelineFigure(
        name="gil-trace-parked", title="Without a GIL: threads wait for what they share",
        x=replace(X, hi=PARKED_EXCERPT), states=states,
        counted=RUNS, strip="how many run, or could run, at once",
        panels=tuple(panel for panel in panels if panel is not None),
        note=f"{1e3 * PARKED_EXCERPT:g} ms out of the latest round. A thread that spins yields its core until the "
        "lock is free; after 40 times it is parked.",
    )


def _panel(results: Results, cell: Cell, length: float, states: tuple[str, ...], rest: str) -> TimelinePanel | None:
    """Return the middle of the cell's trace; None where there is none.

    Args:
        results: Where its trace is kept.
        cell: What was traced.
        length: Seconds to show.
        states: Those to show.
        rest: The state between two others; "": none.
    """
    path = results.file(cell, "trace.json")
    if path is None:
        return None
    lanes, spans = traced(path, states)
    begin = _begin(spans, length)
    if begin is None:
        return None
    shown = [
        Lane(name, _lane([event for event in spans if event["tid"] == tid], begin, length, rest))
        for tid, name in lanes.items()
    ]
    title = f"{WORKS[work_of(cell)]}, {arm_text(results, cell)}"
    return TimelinePanel(title, tuple(lane for lane in shown if lane.spans))


def traced(path: Path, states: Sequence[str]) -> tuple[dict[int, str], list[dict[str, Any]]]:
    """Return the names of the threads that do the work, and their spans in `states`.

    Raises:
        BadFileError: the file is none that `gilscope gil --trace` writes.
    """
    try:
        events = parse_json(read_text(path, RESULTS))["traceEvents"]
        lanes = {event["tid"]: event["args"]["name"] for event in events
                 if event["name"] == "thread_name" and event["args"]["name"].startswith(WORKERS)}
        spans = [event for event in events if event["ph"] == "X" and event["name"] in states and event["tid"] in lanes]
        timed = all(finite(event[name]) for event in spans for name in ("ts", "dur"))
    except OSError as error:
        raise BadFileError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise BadFileError(f"{path} is cut off or no trace of `gil` ({type(error).__name__}: {error})") from error
    if not timed:
        raise BadFileError(f"{path} has a span without its time")
    return lanes, spans


def _begin(spans: list[dict[str, Any]], length: float) -> float | None:
    """Return where the excerpt begins, in seconds: at the middle span's begin, or earlier when the trace ends soon."""
    if not spans:
        return None
    first, last = spans[0]["ts"] / 1e6, max(event["ts"] + event["dur"] for event in spans) / 1e6
    return float(max(first, min(spans[len(spans) // 2]["ts"] / 1e6, last - length)))


def _lane(spans: list[dict[str, Any]], begin: float, length: float, rest: str) -> tuple[tuple[float, float, str], ...]:
    """Return what lies within the excerpt, in seconds from its begin, with `rest` between where it is something."""
    cut = [
        (max(0.0, event["ts"] / 1e6 - begin), min(length, (event["ts"] + event["dur"]) / 1e6 - begin), event["name"])
        for event in spans
        if event["ts"] / 1e6 < begin + length and (event["ts"] + event["dur"]) / 1e6 > begin
    ]
    if not rest:
        return tuple(cut)
    filled, position = [], 0.0
    for start, end, state in sorted(cut):
        if start > position:
            filled.append((position, start, rest))
        filled.append((start, end, state))
        position = max(position, end)
    return tuple([*filled, (position, length, rest)] if position < length else filled)
