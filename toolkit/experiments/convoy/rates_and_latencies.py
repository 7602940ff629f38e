"""What `convoy` and `convoy-interval` share: rates, latencies and modes of an echo server's cells, for tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.experiments.arms import Arm, arms_of
from gilscope.toolkit.experiments.citations import SKVORTSOV
from gilscope.toolkit.experiments.load.open_loop import LATE_BEGINS
from gilscope.toolkit.experiments.results import middle, shown_duration
from gilscope.toolkit.report.document import Entry
from gilscope.toolkit.report.wording import number_text
from gilscope.toolkit.stats.latency import APART, LogHistogram, Mode, modes
from gilscope.toolkit.store.checking import shown
from gilscope.toolkit.units import few, format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell
    from gilscope.toolkit.report.document import Duration
    from gilscope.toolkit.report.footnotes import Footnotes

ARTICLE = replace(
    SKVORTSOV, headline="30,000 requests/s, 100 beside one CPU thread, 20,000 beside a CPU process (CPython 3.9, macOS)"
)
LATE = ("saturated: the load generator itself was late, at its 99th percentile by more than 10 % of p50; latencies "
        "contain that")
MOST_NAMED = 4   # cells in a figure's note
NUMBERS = {2: "two", 3: "three"}
FEW = 100   # requests: with fewer, the 99th percentile is the longest


def thread_arms(results: Results) -> list[Arm]:
    """Return every way in which threads ran, the builds' own and the controls, in the order of the builds."""
    arms = arms_of(results)
    return [arm for build in results.builds for model in own_first(build) if (arm := Arm(build, model)) in arms]


def own_first(build: Build) -> tuple[str, ...]:
    """Return the names under which threads may run in `build`, with what it is made for first."""
    return ("free-threaded", "threads") if build.free_threaded else ("threads",)


def histogram(results: Results, cell: Cell | None, name: str = "histogram") -> LogHistogram:
    """Return the requests of all rounds in one histogram: the open loop's, or the closed one's by its name."""
    merged = LogHistogram()
    for text in results.texts(cell, name):
        try:
            merged.merge(LogHistogram.decode(text))
        except ValueError as error:
            raise BadFileError(f"{results.run.label}: {name} of a cell was edited: {shown(error.args[0])}") from error
    return merged


def rate_of(results: Results, cell: Cell | None) -> float | None:
    """Return the requests a second of the closed loop, None where there are none."""
    value = middle(results.values(cell))
    return None if value is None else 1 / value


def rate_modes(results: Results, cell: Cell | None) -> list[Mode]:
    """Return the modes of the closed loop's requests, with their shares of the time."""
    return modes(histogram(results, cell, "closed_histogram"), by_time=True)


def latency_modes(results: Results, cell: Cell | None) -> list[Mode]:
    """Return the modes of the open loop's latencies; its requests are spread evenly over the time."""
    return modes(histogram(results, cell))


def modes_text(found: list[Mode]) -> str:
    """Return "13.2 us (40 %) and 5.31 ms (60 %)"; "one" of one."""
    if len(found) < 2:  # noqa: PLR2004 - one mode, or no requests
        return "one" if found else "-"
    *first, last = [f"{format_seconds(mode.center)} ({mode.share * 100:.0f} %)" for mode in found]
    return f"{', '.join(first)} and {last}"


def latency(results: Results, cell: Cell, name: str) -> Duration | None:
    """Return the percentile `name` of the open loop with its spread over the rounds."""
    return shown_duration(results.metric(cell, name))


def longest(results: Results, cell: Cell) -> str | None:
    """Return the longest latency of all rounds."""
    found = results.metrics(cell, "max")
    return format_seconds(max(found.values())) if found else None


def lateness(results: Results, cell: Cell) -> str | None:
    """Return how late the load generator itself was, at its 99th percentile, in the worst round."""
    found = results.metrics(cell, "lag_p99")
    return format_seconds(max(found.values())) if found else None


def offered(results: Results, cell: Cell) -> str | None:
    """Return the load of the open loop."""
    rate = middle(results.metrics(cell, "rate"))
    return None if rate is None else f"{number_text(rate)}/s"


def rate_entry(results: Results, cell: Cell | None, notes: Footnotes) -> Entry:
    """Return requests a second, with a footnote where a mean says little."""
    entry = results.entry(cell, results.rate, notes)
    doubt = rate_doubt(results, cell)
    return entry if doubt is None else Entry(entry.value, entry.marks + notes.marks([doubt]))


def rate_doubt(results: Results, cell: Cell | None) -> str | None:
    """Return why the requests a second of a cell are an average of two things, or None."""
    found = rate_modes(results, cell)
    if len(found) > 1:
        number = NUMBERS.get(len(found), str(len(found)))
        return f"{number} modes, {modes_text(found)} of the time: the mean says nothing of them"
    mean, typical = middle(results.values(cell)), middle(results.metrics(cell, "closed_typical"))
    if mean is not None and typical is not None and typical > APART * mean:
        return f"half of the time a request took {format_seconds(typical)} or longer: the mean is that of fast bursts"
    return None


def doubted(named: Iterable[tuple[Cell, str]], results: Results) -> str:
    """Return the sentence for a figure's note that names the cells whose rates say little; "" without any."""
    names = [name for cell, name in named if rate_doubt(results, cell)]
    if not names:
        return ""
    return (" Some requests take much longer than others, so that the mean says little (see the table): "
            f"{few(names, MOST_NAMED, '; ')}.")


def latency_marks(results: Results, cell: Cell, notes: Footnotes) -> tuple[int, ...]:
    """Return footnotes for what makes a cell's latencies doubtful: few requests, no answers, a late generator."""
    said = []
    sent = results.metrics(cell, "sent")
    if sent and sum(sent.values()) < FEW:
        said.append(f"{number_text(sum(sent.values()))} requests in all rounds: too few for a 99th percentile")
    lost = sum(results.metrics(cell, "unanswered").values())
    if lost:
        said.append(f"{number_text(lost)} requests had no answer when the loop ended; they count with the time they "
                    "had waited")
    said += [LATE if text.startswith(LATE_BEGINS) else text for text in results.texts(cell, "saturated")]
    return notes.marks(said)
