"""`hashing`: C code that lets go of the GIL, in threads; one object for all of them, and a copy each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, override

from gilscope.toolkit.experiments.base import Effort, Experiment, Level
from gilscope.toolkit.experiments.citations import SKVORTSOV
from gilscope.toolkit.experiments.hashing import cells
from gilscope.toolkit.experiments.hashing.cells import (
    HUGE,
    KEPT,
    LARGE,
    OBJECTS,
    QUICK_SIZES,
    SIZES,
    SMALL,
    THREADS,
    THRESHOLD,
)
from gilscope.toolkit.experiments.hashing.report import over_sizes, over_threads, seconds_table, speedup_table
from gilscope.toolkit.report.document import Banner
from gilscope.toolkit.report.wording import interval_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.experiments.base import Setting
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Section
    from gilscope.toolkit.report.figures.figure import Figure

SOURCE = replace(
    SKVORTSOV,
    headline="3.30, 1.68, 1.50, 1.60 s with 1, 2, 4, 8 threads for SHA-256 of eight messages of 128 MiB on two cores",
)
# 3.15's Modules/hashlib.h, HASHLIB_EXTERNAL_INSTRUCTIONS_UNLOCKED; the comparisons that it replaced had >=.
LATE = f", one more than up to 3.14: what was `>= {THRESHOLD}` in its source is now `> {THRESHOLD}`"
SHARED = "both count the references to the one object, and wait for each other there"


class Hashing(Experiment):
    """Skvortsov's second measurement, over message sizes and with the shared object taken out."""

    name = "hashing"
    title = "Hashing: C code that lets go of the GIL"
    summary = "SHA-256 of 8 messages of 64 B to 128 MiB in 1, 2, 4 and 8 threads, one object for all or a copy each"
    sources = (SOURCE,)
    claim = (
        "In 2021 two threads hashed eight messages of 128 MiB nearly twice as fast as one, since hashlib lets go of "
        "the GIL while it works; more threads than cores gained nothing."
    )
    program = "hashing"
    levels = {  # noqa: RUF012 - never changed
        Effort.SMOKE: Level(rounds=1, seconds=10, scales={"work": 0.01, "most": 2}),
        Effort.QUICK: Level(rounds=3, seconds=45, scales={"work": 0.25, "most": 2}),
        Effort.FULL: Level(rounds=9, seconds=2400, scales={"work": 1.0, "most": 8}),
    }

    @override
    def candidates(self, setting: Setting, build: Build) -> Iterator[tuple[Cell, str | None]]:
        sizes = {Effort.SMOKE: (SMALL, THRESHOLD), Effort.QUICK: QUICK_SIZES}.get(setting.effort, SIZES)
        for size in sizes:
            yield self.cell(build, "serial", 1, bytes=str(size)), None
        for model in setting.threads(build, control=setting.full()):
            reason = setting.runner_reason(build, model)
            for size, how, count in cells.grid(sizes, setting):
                yield self.cell(build, model, count, bytes=str(size), object=how), reason

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        return (*_libraries(results), seconds_table(results), speedup_table(results))

    @override
    def findings(self, results: Results) -> tuple[str, ...]:
        return (*_thresholds(results), *_large(results), *_kept(results), *_small(results))

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        counts = [count for count in THREADS if count > 1 and results.cells(workers=count)]
        return tuple(over_sizes(results, count) for count in counts[:1]) + (
            (over_threads(results),) if len(counts) > 1 else ())


def _libraries(results: Results) -> Iterator[Section]:
    """Warn when not all builds hash with the same code."""
    found: dict[str, list[str]] = {}
    for build in results.builds:
        known = [text for cell in results.cells(build=build.label) for text in results.texts(cell, "library")]
        for text in dict.fromkeys(known):
            found.setdefault(text, []).append(build.label)
    if len(found) > 1:
        listed = "; ".join(f"{', '.join(labels)}: {text}" for text, labels in found.items())
        yield Banner(f"the builds do not hash with the same code, and their times differ by that, too: {listed}")


def _thresholds(results: Results) -> Iterator[str]:
    """Say from which length of a message each build lets go of the GIL: what another thread's running showed."""
    found: dict[tuple[int, str], list[str]] = {}
    for build in results.builds:
        seen = [value for cell in results.cells(build=build.label, bytes=str(THRESHOLD))
                for value in results.metrics(cell, "gil_let_go_from").values() if value]
        if seen:
            size = int(min(seen))
            why = LATE if size > THRESHOLD and build.version.startswith("3.15") else ""
            # A free-threaded build has a GIL to let go of only where it is the control.
            found.setdefault((size, why), []).append(f"{build.label}, GIL on" if build.free_threaded else build.label)
    for (size, why), labels in found.items():
        yield f"{'; '.join(labels)}: hashlib lets other threads have the GIL from messages of {size} bytes on{why}."


def _large(results: Results) -> Iterator[str]:
    """Say what two threads gain on the longest messages."""
    size = max((size for size in (HUGE, LARGE) if size in cells.sizes(results)), default=LARGE)
    found: dict[str, list[str]] = {}
    for arm in cells.arms(results):
        gain = cells.compare(results, arm, size, "shared", 2)
        if gain is not None and gain.verdict() != "unknown":
            holds = "the claim of 2021 holds" if gain.verdict() == "faster" else "the gain of 2021 was not seen here"
            found.setdefault(holds, []).append(f"{interval_text(gain)} ({arm.title})")
    for holds, gains in found.items():
        yield f"Two threads hash messages of {cells.size_text(size)} {', '.join(gains)} as fast as none: {holds}."


def _kept(results: Results) -> Iterator[str]:
    """Say what they gain where a thread that hashes keeps the GIL."""
    known = [(arm, cells.compare(results, arm, KEPT, "shared", 2)) for arm in cells.arms(results)
             if not arm.free_threaded]
    gains = [f"{interval_text(gain)} ({arm.title})" for arm, gain in known
             if gain is not None and gain.verdict() != "unknown"]
    if gains:
        yield f"With messages of {KEPT} B, for which hashlib keeps the GIL, it is {', '.join(gains)}."


def _small(results: Results) -> Iterator[str]:
    """Say what a copy for each thread changes without the GIL."""
    found: dict[str, list[str]] = {}
    for arm in cells.arms(results):
        one, own = (cells.compare(results, arm, SMALL, how, 2) for how in OBJECTS)
        gain = results.compare(*(cells.find(results, arm, SMALL, how, 2) for how in OBJECTS))
        if arm.free_threaded and one is not None and own is not None and gain is not None \
                and gain.verdict() != "unknown":
            why = SHARED if gain.verdict() == "faster" else "a copy was not shown to be faster"
            found.setdefault(why, []).append(f"{interval_text(one)} and {interval_text(own)} ({arm.title})")
    for why, gains in found.items():
        yield (f"Without the GIL, two threads hash messages of {SMALL} B, all one bytes object and then a copy for "
               f"each thread, {', '.join(gains)} as fast as none: {why}.")
