"""The cells of `channels`: which channels each model has, which grid each effort measures, and how they are named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.experiments.base import Effort

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.experiments.base import Setting
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell

THREADS, CONTROL = "threads", "threads, GIL on"   # of a build as it is; of a free-threaded one with its GIL
INTERPRETERS, PROCESSES = "subinterpreters", "processes-forkserver"
POLLED = "interpreters.Queue"
SIZES = (8, 1 << 10, 64 << 10, 1 << 20)
SMALLEST, LARGEST = SIZES[0], SIZES[-1]


@dataclass(frozen=True, slots=True)
class Way:
    """How a message travels: between what, through what, and as what."""

    between: str
    channel: str
    form: str = "bytes"

    @property
    def label(self) -> str:
        """The channel as tables and figures name it."""
        return self.channel if self.form == "bytes" else f"{self.channel}, {self.form}"


@dataclass(frozen=True, slots=True)
class Shape:
    """Who sends to whom."""

    pattern: str   # "ping-pong", "ring", "fan-in"
    workers: int   # in a ring everybody, of a fan-in the senders

    @property
    def label(self) -> str:
        """What it is called in the tables."""
        return {"ping-pong": "ping-pong of 2", "ring": f"ring of {self.workers}",
                "fan-in": f"{self.workers} to one"}[self.pattern]


PING_PONG, RING, FAN_IN = Shape("ping-pong", 2), Shape("ring", 4), Shape("fan-in", 4)
SHAPES = (PING_PONG, RING, Shape("ring", 8), Shape("fan-in", 2), FAN_IN)


SIMPLE, QUEUE = Way(THREADS, "SimpleQueue"), Way(THREADS, "queue.Queue")
CROSSING, VIEW = Way(INTERPRETERS, POLLED), Way(INTERPRETERS, POLLED, "memoryview")
PIPE = Way(INTERPRETERS, "os.pipe")
PROCESS_PIPE, PROCESS_QUEUE = Way(PROCESSES, "multiprocessing.Pipe"), Way(PROCESSES, "multiprocessing.Queue")
CONTROLS = (Way(CONTROL, "SimpleQueue"), Way(CONTROL, "queue.Queue"))
WAYS = (SIMPLE, QUEUE, *CONTROLS, CROSSING, VIEW, PIPE, PROCESS_PIPE, PROCESS_QUEUE)   # in the order of the tables


def grid(setting: Setting) -> Iterator[tuple[Shape, int, Way]]:
    """Yield what is measured on each build: everything, or the few cells that show the point."""
    if setting.effort is Effort.SMOKE:
        yield from ((PING_PONG, SMALLEST, way) for way in (SIMPLE, CROSSING, PIPE, PROCESS_PIPE))
        yield from ((Shape("ring", 3), SMALLEST, way) for way in (SIMPLE, VIEW, PROCESS_QUEUE))
        yield from ((Shape("fan-in", 2), SIZES[1], way) for way in (SIMPLE, CROSSING, PIPE, PROCESS_PIPE))
    elif setting.effort is Effort.QUICK:
        yield from ((PING_PONG, SMALLEST, way) for way in (SIMPLE, CROSSING, PIPE, PROCESS_PIPE))
        yield from ((PING_PONG, LARGEST, way) for way in (CROSSING, VIEW, PROCESS_PIPE))
        yield from ((RING, SMALLEST, way) for way in (SIMPLE, CROSSING))
        yield from ((FAN_IN, SIZES[1], way) for way in (SIMPLE, CROSSING))
    else:
        yield from ((shape, size, way) for shape in SHAPES for size in SIZES for way in WAYS)


def reason(setting: Setting, build: Build, way: Way) -> str | None:
    """Return why `build` has no such way, or None when it has."""
    if found := setting.runner_reason(build, runner_of(build, way) or THREADS):
        return found
    if way.form == "memoryview" and version(build) < (3, 14):
        return "before 3.14 the queue is that of backports-interpreters, which pickles: it takes no memoryview"
    return None


def runner_of(build: Build, way: Way) -> str | None:
    """Return the runner's name that stands for what the way is between; None when it means nothing on this build."""
    if way.between == CONTROL:
        return "threads" if build.free_threaded else None
    return "free-threaded" if build.free_threaded and way.between == THREADS else way.between


def version(build: Build) -> tuple[int, int]:
    """Return the build's major and minor version."""
    major, minor = build.version.split(".")[:2]
    return int(major), int(minor)


def parameters(shape: Shape, size: int, way: Way) -> dict[str, str]:
    """Return the parameters of such a cell."""
    return {"pattern": shape.pattern, "bytes": str(size), "channel": way.channel, "form": way.form}


def find(results: Results, build: Build, shape: Shape, size: int, way: Way) -> Cell | None:
    """Return the cell, None when the plan has none."""
    runner = runner_of(build, way)
    return None if runner is None else results.find(
        build=build.label, runner=runner, workers=shape.workers, **parameters(shape, size, way))


def shapes(results: Results) -> list[Shape]:
    """Return the shapes of a run in the order of the tables."""
    known = {Shape(dict(cell.parameters)["pattern"], cell.workers) for cell in results.cells()}
    return sorted(known, key=lambda shape: (("ping-pong", "ring", "fan-in").index(shape.pattern), shape.workers))


def sizes(results: Results, shape: Shape) -> list[int]:
    """Return the sizes of the messages that a run has for a shape, ascending."""
    found = results.cells(workers=shape.workers, pattern=shape.pattern)
    return sorted({int(dict(cell.parameters)["bytes"]) for cell in found})


def ways(results: Results, shape: Shape, size: int) -> list[Way]:
    """Return the ways in which a run sends messages of one size, on any of its builds."""
    return [way for way in WAYS if any(find(results, build, shape, size, way) for build in results.builds)]
