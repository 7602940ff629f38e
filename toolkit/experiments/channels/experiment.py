"""`channels`: message passing between threads, interpreters and processes, PEP 554's model beside the others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, override

from gilscope.toolkit.experiments.base import Effort, Experiment, Level, Source
from gilscope.toolkit.experiments.channels import cells
from gilscope.toolkit.experiments.channels.cells import FAN_IN, LARGEST, PING_PONG, SMALLEST
from gilscope.toolkit.experiments.channels.report import figures, tables
from gilscope.toolkit.experiments.citations import SKVORTSOV
from gilscope.toolkit.report.wording import number_text, ratio_number
from gilscope.toolkit.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.experiments.base import Setting
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Section
    from gilscope.toolkit.report.figures.figure import Figure

POLL_SHARE = 0.25   # of the time between two looks: a message that takes longer than this waited for a look

PEP_554 = Source(
    title="PEP 554 - Multiple Interpreters in the Stdlib", author="Eric Snow", year=2017,
    url="https://peps.python.org/pep-0554/",
    headline="no numbers: interpreters that share nothing and pass messages, so that CSP can be built on them",
)
ARTICLE = replace(
    SKVORTSOV,
    headline="no numbers: many GILs, one per interpreter, are likelier than none",
)


class Channels(Experiment):
    """What was announced and could not be measured then."""

    name = "channels"
    title = "Channels: message passing between threads, interpreters and processes"
    summary = "ping-pong, a ring and many-to-one between threads, own-GIL interpreters and processes, by message size"
    sources = (PEP_554, ARTICLE)
    claim = (
        "PEP 554 was to give Python interpreters that share nothing and communicate by messages alone, as Go's and "
        "Clojure's processes do. In 2021 all of them still shared one GIL, and the article expected many GILs rather "
        "than none."
    )
    program = "channels"
    levels = {  # noqa: RUF012 - never changed
        Effort.SMOKE: Level(rounds=1, seconds=12, scales={"seconds": 0.01}),
        Effort.QUICK: Level(rounds=3, seconds=35, scales={"seconds": 0.08}),
        Effort.FULL: Level(rounds=5, seconds=1800, scales={"seconds": 0.3}),
    }

    @override
    def candidates(self, setting: Setting, build: Build) -> Iterator[tuple[Cell, str | None]]:
        for shape, size, way in cells.grid(setting):
            if runner := cells.runner_of(build, way):
                cell = self.cell(build, runner, shape.workers, **cells.parameters(shape, size, way))
                yield cell, cells.reason(setting, build, way)

    @override
    def sections(self, results: Results) -> tuple[Section, ...]:
        return tables(results)

    @override
    def findings(self, results: Results) -> tuple[str, ...]:
        return (*_polling(results), *_pipes(results), *_shared(results), *_queued(results))

    @override
    def figures(self, results: Results) -> tuple[Figure, ...]:
        return figures(results)


def _polling(results: Results) -> Iterator[str]:
    """Say what a message between interpreters takes, and whether that is the queue's sleeping."""
    found: dict[tuple[float, bool], list[str]] = {}
    for build in results.builds:
        cell = cells.find(results, build, PING_PONG, SMALLEST, cells.CROSSING)
        value, interval = results.value(cell), results.metric(cell, "poll")
        if value is not None and interval is not None:
            said = f"{format_seconds(value.center)} ({build.label})"
            found.setdefault((interval.center, _waits(results, cell)), []).append(said)
    for (pause, waits), takes in found.items():
        sentence = f"A message of {SMALLEST} bytes through the queue between two interpreters takes {', '.join(takes)}"
        yield f"{sentence}: its get() does not wait for one but looks every {pause * 1000:g} ms." if waits else \
            f"{sentence}, less than the {pause * 1000:g} ms that its get() sleeps between two looks."


def _waits(results: Results, cell: Cell | None) -> bool:
    """Return whether a message through the interpreters' queue mostly waits for the next look at it."""
    value, interval = results.value(cell), results.metric(cell, "poll")
    return value is not None and interval is not None and value.center >= POLL_SHARE * interval.center


def _pipes(results: Results) -> Iterator[str]:
    """Say how much faster the same interpreters are where nobody sleeps between two looks."""
    said = []
    for build in results.builds:
        polled, pipe = (cells.find(results, build, PING_PONG, SMALLEST, way) for way in (cells.CROSSING, cells.PIPE))
        gain = results.compare(polled, pipe)
        if gain is not None and gain.verdict() == "faster" and _waits(results, polled):
            said.append(f"{ratio_number(gain.ratio)} ({build.label})")
    if said:
        yield (f"Through an os.pipe between the same interpreters it is {', '.join(said)} times as fast: what is slow "
               "is the polling, not the interpreters.")


def _shared(results: Results) -> Iterator[str]:
    """Say what sharing memory instead of copying it gains between interpreters."""
    found: dict[str, list[str]] = {}
    for build in results.builds:
        copied, view = (
            cells.find(results, build, PING_PONG, LARGEST, way) for way in (cells.CROSSING, cells.VIEW))
        gain = results.compare(copied, view)
        if gain is None or gain.verdict() == "unknown":
            continue
        told = f"arrives {ratio_number(gain.ratio)} times as fast as bytes, which are copied"
        if gain.verdict() == "same":
            why = ": both wait for the next look at the queue" if _waits(results, copied) else ""
            told = f"was not seen to arrive sooner or later than bytes, which are copied{why}"
        found.setdefault(told, []).append(build.label)
    for told, labels in found.items():
        yield f"{', '.join(labels)}: 1 MiB between interpreters as a memoryview, whose memory is shared, {told}."


def _queued(results: Results) -> Iterator[str]:
    """Say how many messages get through where the receiver hardly ever has to wait for one."""
    if (size := next(iter(cells.sizes(results, FAN_IN)), None)) is None:
        return
    said, waits = [], False
    for name, way in (("threads", cells.SIMPLE), ("interpreters", cells.CROSSING), ("processes", cells.PROCESS_QUEUE)):
        known = [(build.label, cell) for build in results.builds
                 if (cell := cells.find(results, build, FAN_IN, size, way)) is not None]
        rates = [f"{number_text(rate.value)}/s ({label})" for label, cell in known
                 if (rate := results.rate(cell)) is not None]
        said += [f"between {name} {', '.join(rates)}"] if rates else []
        waits = waits or any(_waits(results, cell) for _, cell in known)
    if said:
        end = "" if waits or len(said) == 1 else "; a look at the interpreters' queue finds something then"
        yield (f"{FAN_IN.workers} senders to one receiver get through, {size} bytes each and by queues: "
               f"{'; '.join(said)}{end}.")
