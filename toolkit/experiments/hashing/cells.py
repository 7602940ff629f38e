"""The cells of `hashing`: which sizes, objects and numbers of threads, and where they are found in a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.experiments.arms import arms_of
from gilscope.toolkit.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.experiments.arms import Arm
    from gilscope.toolkit.experiments.base import Setting
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Cell
    from gilscope.toolkit.stats.words import Comparison

THREADS = (1, 2, 4, 8)
SMALL, KEPT, THRESHOLD, LARGE, HUGE = 64, 2047, 2048, 64 << 10, 128 << 20
SIZES = (SMALL, KEPT, THRESHOLD, THRESHOLD + 1, LARGE, 4 << 20, HUGE)
QUICK_SIZES = (SMALL, KEPT, THRESHOLD, LARGE)
OBJECTS = {"shared": "one object", "copy": "a copy each"}
THEN = {1: 3.30, 2: 1.68, 4: 1.50, 8: 1.60}   # seconds, by threads: eight messages of 128 MiB, one bytes object
THEN_LABEL = "2021: Python 3.9"
SHORTEST_TASK = 0.025   # seconds of work per thread, below which a speed-up may not show


def grid(sizes: tuple[int, ...], setting: Setting) -> Iterator[tuple[int, str, int]]:
    """Yield sizes, objects and threads; one thread has no copy to make, and only the full grid needs it."""
    for size in sizes:
        for how in OBJECTS:
            for count in THREADS:
                wanted = count > 1 or (setting.full() and how == "shared")
                if wanted and count <= setting.scales["most"]:
                    yield size, how, count


def arms(results: Results) -> list[Arm]:
    """Return the columns of a run's tables: builds with what their threads run under."""
    return [arm for arm in arms_of(results) if arm.model != "serial"]


def sizes(results: Results) -> list[int]:
    """Return the lengths of messages that a run has, ascending."""
    return sorted({int(dict(cell.parameters)["bytes"]) for cell in results.cells()})


def find(results: Results, arm: Arm, size: int, how: str, count: int) -> Cell | None:
    """Return the cell with `count` threads, None when the plan has none."""
    return results.find(build=arm.build.label, runner=arm.model, workers=count, bytes=str(size), object=how)


def baseline(results: Results, arm: Arm, size: int) -> Cell | None:
    """Return the cell that hashes one message after the other, None when the plan has none.

    It is the one without threads; that one has no GIL on a free-threaded build, so the control's is its one thread.
    """
    if arm.build.free_threaded and not arm.free_threaded:
        return find(results, arm, size, "shared", 1)
    return results.find(build=arm.build.label, runner="serial", workers=1, bytes=str(size))


def compare(results: Results, arm: Arm, size: int, how: str, count: int) -> Comparison | None:
    """Return how many times faster the threads are than one after the other; None when either was not measured."""
    return results.compare(baseline(results, arm, size), find(results, arm, size, how, count))


def size_text(size: int) -> str:
    """Return a message's size without rounding the sizes next to the threshold: "2047 B", "64 KiB"."""
    return f"{size} B" if size < LARGE else format_bytes(size).replace(".0", "")
