"""From the stored calls of an operation to its share of the ceiling, and its verdict; the report and the plan ask here.

A round of a cell keeps the calls of each mode as `scale.throughput.CleanCalls` counts them, one metric for each field,
so that what `gilscope scale` computes from calls is computed from stored ones by the same functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.experiments.results import parameter
from gilscope.toolkit.scale.judgement import LOST, Doubt, ScalingEvidence, ScalingVerdict, Span, verdict_of_many
from gilscope.toolkit.scale.scaling_rounds import ONE, PROCESSES, THREADS, RoundCalls
from gilscope.toolkit.scale.throughput import LEAST_CLEAN, CleanCalls, near_limit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build, Cell

WORKERS = 2
MODES = (ONE, THREADS, PROCESSES)
FIELDS = ("calls", "spent", "made", "lasted", "queued", "one_core", "handoff")
OLDER = {"one_core": 0, "handoff": 0.0}      # results lack them
CAUSE = "cause"      # the parameter of cells that look for the cause; the others measure shares
THREADS_OF = {ONE: 1, THREADS: WORKERS, PROCESSES: WORKERS}


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationShare:
    """How much of the ceiling threads reach with an operation on a build, and what follows from it."""

    verdict: ScalingVerdict
    doubt: Doubt | None
    span: Span | None         # of the ceiling; None: too few rounds with a value
    at_most: bool             # the span is that of disturbed calls: the truth is below


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCause:
    """The answer of the investigation of an operation; see `scale.investigation`."""

    verdict: ScalingVerdict
    obstacle: str
    doubt: str
    objects: tuple[str, ...]     # each with its type
    proven: bool                 # making them immortal gained most of what can be gained


def metrics_of(calls: Mapping[str, CleanCalls]) -> dict[str, float | str]:
    """Return the metrics that keep the calls of each mode."""
    return {f"{mode}_{name}": getattr(each, name) for mode, each in calls.items() for name in FIELDS}


def is_cause(cell: Cell) -> bool:
    """Return True for a cell that looks for the cause."""
    return CAUSE in dict(cell.parameters)


class OperationShares:
    """A run of the experiment, read as shares of the ceiling and verdicts; each is computed once."""

    def __init__(self, results: Results) -> None:
        """Compute nothing yet."""
        self.results = results
        self.builds: list[Build] = [build for build in results.builds if build.free_threaded]
        # The cells with shares: by operation, then by build and whose the data is.
        self.operations: dict[str, dict[tuple[str, str], Cell]] = {}
        for cell in results.cells():
            if "operation" in dict(cell.parameters) and not is_cause(cell):
                self.operations.setdefault(parameter(cell, "operation"), {})[cell.build, parameter(cell, "data")] = cell
        self._shares: dict[Cell, OperationShare | None] = {}
        self._near = near_limit(_handoffs(results, self.cells))

    @property
    def cells(self) -> list[Cell]:
        """The cells with shares, in plan order of the operations."""
        return [cell for cells in self.operations.values() for cell in cells.values()]

    def share(self, cell: Cell) -> OperationShare | None:
        """Return the share of a cell; None if it has no value."""
        if cell not in self._shares:
            rounds = _round_calls(self.results, cell, self._near)
            self._shares[cell] = None if rounds is None else operation_share(rounds)
        return self._shares[cell]

    def ratio(self, cell: Cell) -> float | None:
        """Return the share as a number; None if too few rounds have a value."""
        share = self.share(cell)
        return share.span.ratio if share and share.span else None

    def cause(self, cell: Cell) -> FoundCause | None:
        """Return the answer of the investigation of this cell's operation; None if there was none."""
        looked = self.results.find(build=cell.build, runner=cell.runner, workers=cell.workers,
                                   **dict(cell.parameters), **{CAUSE: "yes"})
        metrics = next((dict(each.metrics) for each in self.results.observations(looked)), None)
        if metrics is None or metrics.get("verdict") not in tuple(ScalingVerdict):
            return None
        return FoundCause(
            verdict=ScalingVerdict(str(metrics["verdict"])), obstacle=str(metrics.get("obstacle", "")),
            doubt=str(metrics.get("doubt", "")), objects=tuple(_numbered(metrics, "object")),
            proven="explained" in metrics)

    def verdict(self, cell: Cell | None) -> ScalingVerdict | None:
        """Return the verdict; it is open if the investigation, which measures anew, contradicts the share."""
        share = None if cell is None else self.share(cell)
        if share is None or cell is None:
            return None
        cause = self.cause(cell)
        if cause is not None and _contradict(share.verdict, cause.verdict):
            return ScalingVerdict.UNSURE
        return share.verdict

    def limited(self, cell: Cell | None) -> bool:
        """Return True if it does not scale."""
        return self.verdict(cell) in LOST

    def losses(self) -> list[Cell]:
        """Return the cells that do not scale, the largest loss first."""
        found = [(ratio, number, cell) for number, cell in enumerate(self.cells)
                 if self.limited(cell) and (ratio := self.ratio(cell)) is not None]
        return [cell for *_, cell in sorted(found)]


def operation_share(rounds: RoundCalls) -> OperationShare:
    """Return the share that follows from rounds of threads and processes, and of one thread where there are any."""
    evidence = _evidence(rounds)
    verdict, doubt = verdict_of_many(evidence)
    at_most = not evidence.enough and evidence.disturbed is not None
    return OperationShare(verdict=verdict, doubt=doubt, span=evidence.disturbed if at_most else evidence.of_ceiling,
                          at_most=at_most)


def _contradict(one: ScalingVerdict, other: ScalingVerdict) -> bool:
    return {one in LOST, other in LOST} == {True, False} and ScalingVerdict.SCALES in {one, other}


def _handoffs(results: Results, cells: Iterable[Cell]) -> Iterator[float]:
    """Yield the times of a cache line of all measurements on cores apart, in nanoseconds."""
    for cell in cells:
        for each in results.observations(cell):
            metrics = dict(each.metrics)
            for mode in (THREADS, PROCESSES):
                handoff = metrics.get(f"{mode}_handoff", 0.0)
                if not metrics.get(f"{mode}_one_core") and not isinstance(handoff, str):
                    yield handoff


def _round_calls(results: Results, cell: Cell | None, near: float) -> RoundCalls | None:
    found: dict[str, dict[int, CleanCalls]] = {mode: {} for mode in MODES}
    for each in results.observations(cell):
        metrics = dict(each.metrics)
        for mode in MODES:
            counts = OLDER | {name: metrics[key] for name in FIELDS if (key := f"{mode}_{name}") in metrics}
            if len(counts) == len(FIELDS) and not any(isinstance(count, str) for count in counts.values()):
                found[mode][each.round] = CleanCalls(threads=THREADS_OF[mode], **counts)  # type: ignore[arg-type]
    return RoundCalls(found, near) if found[THREADS] and found[PROCESSES] else None


def _evidence(rounds: RoundCalls) -> ScalingEvidence:
    compared = (THREADS, PROCESSES)
    enough = rounds.enough(compared)
    # Threads that wait for each other's lock are never undisturbed beside neighbours.
    seldom = not enough and rounds.total(PROCESSES).enough(3 * LEAST_CLEAN)
    return ScalingEvidence(
        threads=WORKERS, clean_seconds=rounds.clean_seconds(compared), enough=enough,
        of_ceiling=rounds.span(PROCESSES, THREADS),
        speedup=rounds.span_on_cores(ONE, THREADS) if seldom else rounds.span(ONE, THREADS), ceiling=None,
        one_core=rounds.on_one_core,
        disturbed=rounds.span_on_cores(PROCESSES, THREADS) if seldom else None)


def _numbered(texts: Mapping[str, float | str], name: str) -> Iterator[str]:
    number = 1
    while f"{name}_{number}" in texts:
        yield str(texts[f"{name}_{number}"])
        number += 1
