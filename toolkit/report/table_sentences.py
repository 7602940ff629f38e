"""The sentences below a workload's table: its noise floor, the spread of its times and its title."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.concurrency_models import find_model
from gilscope.toolkit.model import Phase
from gilscope.toolkit.report.wording import floors_text, or_text
from gilscope.toolkit.stats.sample import CONFIDENCE, needed
from gilscope.toolkit.stats.sessions import FEWEST
from gilscope.toolkit.stats.verdict import MIN_ROUNDS
from gilscope.toolkit.units import format_seconds, list_text, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gilscope.toolkit.model import Cell
    from gilscope.toolkit.report.table.cell_results import NoiseFloor
    from gilscope.toolkit.report.table.matrix import WorkloadTable
    from gilscope.toolkit.report.table.observations import Clock
    from gilscope.toolkit.stats.sample import Summary
    from gilscope.toolkit.stats.verdict import Comparison


def noise_line(floors: Mapping[Clock, NoiseFloor]) -> str:
    """Return the noise floors by each clock, and the differences between cells that were measured twice.

    The noise floor of a cell depends on its rounds and on its noise, so it is a range: "wall 1.2 to 3.4 %".
    """
    named = [("CPU" if clock == "cpu" else clock, floor) for clock, floor in floors.items()]
    known = [(name, floor.range) for name, floor in named if floor.range is not None]
    seen = [(name, floor.aa_error) for name, floor in named if floor.aa_error is not None]
    errors = [f"{'more than 100 %' if error > 1 else percent(error, 1)} ({name})" for name, error in seen]
    most = "up to " if all(error <= 1 for _, error in seen) else ""
    aa_errors = f"; cells measured twice (A/A) differed by {most}{list_text(errors)}" if errors else ""
    if not known:
        return (f"Noise floor: unknown, since there are fewer than {MIN_ROUNDS} rounds, or values do not vary; no "
                f"cell is called faster or slower{aa_errors}.")
    bounds = ", ".join(f"{name} {floors_text(range_)}" for name, range_ in known)
    return f"Noise floor, by cell: {bounds}{aa_errors}."


def spread_line(times: Iterable[Summary]) -> str | None:
    """Return the sentence of `spread_text` on its own: "Times: ± is half of ..."."""
    text = spread_text(times)
    return text and f"Times: {text}"


def spread_text(times: Iterable[Summary]) -> str | None:
    """Return the confidence of the ± of times where it is lower than 95 %, None if it is not."""
    few = sorted({each.count: each.confidence for each in times if 1 < each.count < needed(CONFIDENCE)}.items())
    if not few:
        return None
    counts, levels = or_text([str(count) for count, _ in few]), [f"{level * 100:.3g}" for _, level in few]
    return (f"± is half of the 95 % interval of the median; with {counts} processes it is half of their range, which "
            f"holds with {or_text(levels)} %.")


def times_scope(comparisons: Iterable[Comparison | None]) -> tuple[str, ...]:
    """Return the sentence on what times are about if ratios are about more: those of three sessions or more."""
    sessions = max((each.sessions for each in comparisons if each is not None), default=1)
    if sessions < FEWEST:
        return ()
    return (f"Times and their ± are of these {sessions} sessions alone: only ratios include how sessions differ.",)


def title_text(what: WorkloadTable | Cell) -> str:
    """Return the title of a table or a cell: "primes, tasks of 10.0 ms", "primes, startup"."""
    length = "" if what.task_seconds is None else f", tasks of {format_seconds(what.task_seconds)}"
    phase = "" if what.phase is Phase.STEADY else f", {what.phase}"
    return f"{what.workload}{phase}{length}"


def counts_text(runner: str, counts: Sequence[int]) -> str:
    """Return "1 worker", "2 and 4 workers"; of an event loop, which has one worker, "4 tasks in flight"."""
    plural = "" if list(counts) == [1] else "s"
    noun = f"task{plural} in flight" if find_model(runner).awaits else f"worker{plural}"
    return f"{list_text(counts)} {noun}"
