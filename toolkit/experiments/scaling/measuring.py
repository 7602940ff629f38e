"""Measure the cells of a round: one process for each build serves the operations of an area, one after the other.

It is the process of `gilscope scale`, and its measuring: a zygote that forks for each measurement.  The builds take
turns at each operation, so that what is compared was measured in the same moments.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from gilscope.toolkit.errors import UnknownNameError
from gilscope.toolkit.experiments.results import parameter
from gilscope.toolkit.experiments.scaling.operations import AREAS, OPERATIONS
from gilscope.toolkit.experiments.scaling.shares import WORKERS, is_cause, metrics_of
from gilscope.toolkit.measure.measured_process import ProcessAnswer
from gilscope.toolkit.measure.rounds import ArmResult, Round
from gilscope.toolkit.scale.investigation import investigate
from gilscope.toolkit.scale.judgement import SURELY_NOT
from gilscope.toolkit.scale.repairs import repairs
from gilscope.toolkit.scale.scaling_rounds import ONE, PROCESSES, THREADS, compared_modes
from gilscope.toolkit.scale.zygote_process import GIL_ON, LostZygoteError, UnscalableFunctionError, ZygoteProcess

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gilscope.toolkit.model import Cell, FailureKind
    from gilscope.toolkit.scale.investigation import ScalingInvestigation
    from gilscope.toolkit.scale.throughput import CleanCalls
    from gilscope.toolkit.scale.zygote_process import LoadedFunction

MAKER = "gilscope.toolkit.experiments.scaling.operation_calls:maker"
TRIES = 2            # windows of a mode: threads that wait for a lock are never undisturbed on a busy machine
MOST_OBJECTS = 6     # named in the results; an operation has few
LONGEST = 200        # characters of a name


class AreaRounds:
    """The method that measures the operations of an area in one process of each build."""

    def __init__(self, pythons: Mapping[str, str]) -> None:
        """Prepare to measure; `pythons` are those of the builds, by label."""
        self._pythons = pythons

    def groups(self, cells: Sequence[Cell], around: Round) -> list[list[Cell]]:
        """Return the cells of each area, in random order; one at a time where the cause is looked for."""
        areas = {each.name: area for area, operations in AREAS.items() for each in operations}
        groups: dict[object, list[Cell]] = {}
        for cell in cells:
            groups.setdefault(cell if is_cause(cell) else areas.get(parameter(cell, "operation")), []).append(cell)
        order = list(groups.values())
        around.random("areas").shuffle(order)
        return order

    def measure(self, cells: Sequence[Cell], around: Round) -> list[ArmResult]:
        """Measure one group; see `RoundMethod`."""
        turns: dict[tuple[str, str], list[Cell]] = {}
        for cell in cells:
            turns.setdefault((parameter(cell, "operation"), parameter(cell, "data")), []).append(cell)
        draw, order = around.random(*min(turns), "operations"), list(turns.values())
        draw.shuffle(order)
        taken: list[ArmResult] = []
        with BuildZygotes(self._pythons) as zygotes:
            for arms in order:
                if taken and around.spent() and around.seconds_left() is not None:
                    break
                draw.shuffle(arms)
                for cell in arms:
                    around.reporter.on_arm_start(cell)
                    began = time.monotonic()
                    values, answer = zygotes.measured(cell, reverse=around.index % 2 == 1)
                    taken.append(ArmResult(cell=cell, start=None, answer=answer, values=values,
                                           details={"seconds": time.monotonic() - began}))
        return taken


class BuildZygotes:
    """The running process of each build; leaving the `with` block ends them."""

    def __init__(self, pythons: Mapping[str, str]) -> None:
        """Start none: each starts when it is needed."""
        self._pythons = pythons
        self._processes: dict[str, ZygoteProcess] = {}
        self._unstarted: dict[str, str] = {}     # why there is none
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Return the processes."""
        return self

    def __exit__(self, *_: object) -> None:
        """End them."""
        self._stack.close()

    def measured(self, cell: Cell, *, reverse: bool) -> tuple[tuple[float, ...], ProcessAnswer]:
        """Measure a cell once; return its values and the answer, or no values and why there are none.

        Args:
            cell: A share, or the search for the cause.
            reverse: Processes come before threads.
        """
        try:
            process = self._process_of(cell.build)
            loaded = load(process, cell)
            if loaded.gil:
                return (), _failed("gil", GIL_ON)
            if is_cause(cell):
                found = investigate(process, loaded, WORKERS)
                return (found.seconds,), _answered(_cause_metrics(found))
            calls = take_round(process, reverse=reverse)
            return (_seconds(calls[THREADS], loaded.operations),), _answered(metrics_of(calls))
        except (UnscalableFunctionError, UnknownNameError) as error:
            return (), _failed("exception", str(error))
        except LostZygoteError as error:
            if self._processes.pop(cell.build, None) is None:
                self._unstarted[cell.build] = str(error)     # it may have taken minutes: not again for each operation
            return (), _failed("exit", str(error))

    def _process_of(self, build: str) -> ZygoteProcess:
        if build in self._unstarted:
            raise LostZygoteError(self._unstarted[build])
        if build not in self._processes:     # none yet, or an operation has ended it
            self._processes[build] = self._stack.enter_context(ZygoteProcess(self._pythons[build], []))
        return self._processes[build]


def load(process: ZygoteProcess, cell: Cell) -> LoadedFunction:
    """Have the process load the operation of a cell."""
    operation, data = OPERATIONS[parameter(cell, "operation")], parameter(cell, "data")
    return process.load("operation:call", None, None, WORKERS, look=not is_cause(cell),
                        maker=(MAKER, operation.preparation, operation.own, operation.statement, data))


def take_round(process: ZygoteProcess, *, reverse: bool) -> dict[str, CleanCalls]:
    """Return the calls of threads and processes, and of one thread where threads do not reach the processes.

    Args:
        process: It has loaded the operation.
        reverse: Processes come before threads.
    """
    modes = compared_modes(WORKERS)
    order = (PROCESSES, THREADS) if reverse else (THREADS, PROCESSES)
    calls = {mode: process.measure_cleanly(modes[mode], tries=TRIES) for mode in order}
    threads = calls[THREADS]
    if not threads.enough() or threads.rate < SURELY_NOT * calls[PROCESSES].rate:
        calls[ONE] = process.measure_cleanly(modes[ONE], tries=TRIES)
    return calls


def _seconds(threads: CleanCalls, operations: int) -> float:
    """Return the seconds of an operation in one of the threads; by disturbed calls if there are no others."""
    return WORKERS / (threads.rate or threads.rate_on_cores or 1.0) / operations


def _cause_metrics(found: ScalingInvestigation) -> dict[str, float | str]:
    judgement, span = found.judgement, found.evidence.of_ceiling
    objects = (found.objects or found.also)[:MOST_OBJECTS]
    numbers: dict[str, float | None] = {
        "explained": found.explained, "without": found.without, "of_ceiling": span.ratio if span else None}
    return {
        "verdict": judgement.verdict.value, "obstacle": judgement.obstacle.value,
        "doubt": judgement.doubt.value if judgement.doubt else "",
        **{f"object_{number}": f"{each.name} ({each.type})"[:LONGEST] for number, each in enumerate(objects, 1)},
        **{f"repair_{number}": code.value for number, code in enumerate(repairs(judgement.obstacle, objects), 1)},
        **{name: number for name, number in numbers.items() if number is not None}}


def _answered(metrics: dict[str, float | str]) -> ProcessAnswer:
    fields: dict[str, Any] = {
        "cpu": [], "loops": 1, "starved": False, "evidence": {}, "gil_end": False,
        "metrics": {name: value for name, value in metrics.items() if value != ""}}    # pyperf takes no empty text
    return ProcessAnswer(kind="measured", reason="", fields=fields, output="")


def _failed(kind: FailureKind, reason: str) -> ProcessAnswer:
    return ProcessAnswer(kind=kind, reason=reason.partition("\n")[0], fields={}, output="")
