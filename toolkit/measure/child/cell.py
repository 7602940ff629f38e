"""The measured process: one cell, one round.

Started as `python -c "from gilscope.toolkit.measure.child.cell import main; main()" SPEC [LINE]`, not as a script:
`spawn` would import a script again in each worker, and that import would be counted as the runner's start-up cost.
LINE is the file descriptor of the channel that tells it when to take a value; without one it takes all values in a row.
The answer is written before the pool is closed, so that a crash in teardown costs nothing.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.cores import allowed_cpus, queued_seconds, usable_cores
from gilscope.toolkit.measure.child.base import (
    NoValueError,
    answered,
    deliver,
    describe_error,
    gil_enabled,
    hash_seed,
    import_pyperf,
    refuse_wrong_gil,
    report_progress,
    set_alarm,
    take_values,
)
from gilscope.toolkit.measure.child.metrics import read_metrics
from gilscope.toolkit.measure.child.other_load import (
    LoadWindow,
    WindowLoad,
    bearable_others,
    core_demand,
    load_average,
    starvation,
    wanted_cores,
)
from gilscope.toolkit.measure.child.process_tree import cpu_seconds, descendants
from gilscope.toolkit.measure.child.spec import CellSpec
from gilscope.toolkit.measure.child.subject import LoadedSubject, PayloadsError, load
from gilscope.toolkit.measure.child.turns import NoTurns, ScheduledTurns, ValueTurns, take_value
from gilscope.toolkit.measure.child.user_code import (
    ImportMissingError,
    ModuleMissingError,
    RefusedError,
    own_frames,
    shown,
)
from gilscope.toolkit.processes import lifeline

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gilscope.runners.base import Runner


SHARE_TO_WARM = 0.15  # of a value, at most, is run untimed before it; longer tasks do not suffer from cold caches
SECONDS_TO_SIZE = 0.02  # of the task that sizes the others: long enough to exceed timer and scheduler noise


def main() -> None:
    """Measure the cell in `sys.argv[1]` and write the answer to its folder."""
    spec = CellSpec.from_json(sys.argv[1])
    turns = ScheduledTurns(spec, int(sys.argv[2])) if len(sys.argv) > 2 else NoTurns(spec.values)
    answered(spec, lambda: _measure(spec, turns))


def _measure(spec: CellSpec, turns: ValueTurns) -> dict[str, Any] | None:
    runner = _runner(spec)
    subject = _load(spec)
    if runner.pickles and subject.unpicklable:
        raise NoValueError("unavailable", subject.unpicklable)
    task = _task(runner, subject)
    if runner.isolated:
        _import_here_first(subject)
    needs = StarvationCheck(spec, runner, subject)
    turns.reach("loaded")
    if spec.phase == "startup":
        seconds = _checked_pass(spec, subject, lambda: _cycle(runner, spec, subject, task, subject.payloads))
        turns.reach("checked")
        # One task for any number of workers: this phase compares starting and stopping them.
        clock = ValueTimer(spec, turns, needs, lambda: _cycle(runner, spec, subject, task, subject.payloads[:1]))
        loops = _values(spec, clock, seconds)
        # The workers have ended, so the memory of this model cannot be read.
        deliver(spec, _answer(subject, clock, needs, loops, [gil_enabled()]) | _threads_left(set()))
        return None
    before = set(threading.enumerate())
    with runner.pool(spec.workers, subject.shared) as pool:
        ours = set(threading.enumerate()) - before
        turns.reach("opened")
        report_progress(spec)
        seconds = _checked_pass(spec, subject, lambda: pool.map(task, subject.payloads))
        turns.reach("checked")
        few = subject.payloads[: spec.workers]
        clock = ValueTimer(spec, turns, needs, lambda: pool.map(task, subject.payloads),
                           warm=lambda loops: len(few) <= SHARE_TO_WARM * len(subject.payloads) * loops
                           and pool.map(task, few))
        loops = _values(spec, clock, seconds)
        _check(subject.check, clock.forget_results())
        clock.metrics = read_metrics(clock.pids)
        from gilscope.runners._worker import gil_state

        states = [state for state, _pid in pool.map(gil_state, [None] * spec.workers)]
        answer = _answer(subject, clock, needs, loops, [gil_enabled(), *states])
        deliver(spec, answer | _threads_left(ours))
    return None


def _threads_left(ours: set[threading.Thread]) -> dict[str, list[str]]:
    """Return the field with the names of the threads that keep the process from ending, without the pool's own."""
    left = (each.name for each in threading.enumerate()
            if not each.daemon and each is not threading.main_thread() and each not in ours)
    return {"threads_left": list(dict.fromkeys(map(str, left)))}


def _load(spec: CellSpec) -> LoadedSubject:
    try:
        return load(spec)
    except RefusedError as refused:
        raise NoValueError("refused", str(refused)) from None
    except PayloadsError as failed:
        raise failed.raised from None


def _runner(spec: CellSpec) -> Runner:
    from gilscope.runners import catalog

    runner: Runner = catalog.find(spec.runner)
    if reason := runner.unavailable():
        raise NoValueError("unavailable", reason)
    return runner


def _import_here_first(subject: LoadedSubject) -> None:
    """Import the workers' modules in the main interpreter first.

    On 3.12 and 3.13 the process crashes if several interpreters import some C modules of the standard library
    (_datetime, used by urllib3) at the same time and the main interpreter has not imported them before.
    """
    if sys.version_info < (3, 14):
        for module in subject.modules:
            importlib.import_module(module)


def _task(runner: Runner, subject: LoadedSubject) -> Callable[..., Any]:
    if runner.awaits and subject.async_task is not None:
        return subject.async_task
    if subject.task is None:
        raise NoValueError("unavailable", "it is a coroutine function: only asyncio awaits it")
    return subject.sent if runner.pickles and subject.sent is not None else subject.task


def _cycle(
    runner: Runner, spec: CellSpec, subject: LoadedSubject, task: Callable[..., Any], payloads: Sequence[Any]
) -> list[Any]:
    with runner.pool(spec.workers, subject.shared) as pool:
        return pool.map(task, payloads)


def _checked_pass(spec: CellSpec, subject: LoadedSubject, run: Callable[[], list[Any]]) -> float:
    """Run every payload once, check the results, and return the wall seconds, which calibration uses."""
    began = time.perf_counter()
    results = run()
    seconds = time.perf_counter() - began
    report_progress(spec)
    _check(subject.check, results)
    return seconds


class StarvationCheck:
    """Decides if a cell got the cores that it needs."""

    def __init__(self, spec: CellSpec, runner: Runner, subject: LoadedSubject) -> None:
        self.runner = runner
        self._spec = spec
        self._kind = subject.kind
        self._cores, self._allowed = usable_cores(), allowed_cpus()

    def fields(self, load: WindowLoad) -> dict[str, float | None]:
        """Return the fields of the answer, given the load over all values."""
        others = load.likely_others_cores
        wanted = self._wanted(load.own / load.elapsed, others)
        return starvation(wanted, others, self._cores, self._allowed)

    def bearable(self, own: float, others: float) -> float | None:
        """Return the cores' worth that others may use before a value is starved, given that of it and of others."""
        return bearable_others(self._wanted(own, others), self._cores, self._allowed)

    def _wanted(self, own: float, others: float) -> float:
        return wanted_cores(
            self._kind,
            self._spec.workers,
            parallel=self.runner.parallel,
            own=own,
            left=min(self._cores, self._allowed - others),
            # Starting workers needs cores, whatever their tasks do.
            demand=None if self._spec.phase == "startup" else self._spec.demand,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedValue:
    """The result of one call of pyperf's time function."""

    wall: float     # seconds of all loops
    cpu: float      # CPU seconds of one loop
    demand: float   # cores' worth that the tasks keep busy when they need not wait for a core
    began: float    # seconds since the epoch
    span: WindowLoad      # the load of the machine meanwhile


class ValueTimer:
    """pyperf's time function: returns the wall seconds of `loops` passes; stores CPU seconds and load."""

    def __init__(
        self, spec: CellSpec, turns: ValueTurns, needs: StarvationCheck, run: Callable[[], list[Any]],
        warm: Callable[[int], object] = bool,
    ) -> None:
        """Start after the first run, so that all long-lived processes exist.

        `warm` is called with the number of loops before each value that follows another process's turn.
        """
        self._spec = spec
        self._run = run
        self._warm = warm
        self._needs = needs
        self._turns = turns
        self._warmups = spec.warmups
        self._results: list[Any] = []
        self.pids = [os.getpid(), *descendants(os.getpid())]
        self.load_average: float | None = None
        self.values: list[TimedValue] = []
        self.again = 0   # values that were taken again
        self.metrics: dict[str, float] = {}

    def begin(self, loops: int, seconds: float) -> int:
        """Report that the process is warm and a loop takes `seconds`; return the number of values at its first turn."""
        self.load_average = load_average()
        return self._turns.begin(loops=loops, seconds=loops * seconds, pids=self.pids)

    def __call__(self, loops: int) -> float:
        """Run `loops` passes and return their wall seconds."""
        if self._warmups:
            self._warmups -= 1
            return self._take(loops).wall
        value, _, again = take_value(self._turns, lambda: self._take_warm(loops), self._load_of)
        self.again += again
        self.values.append(value)
        return value.wall

    def _take_warm(self, loops: int) -> TimedValue:
        """Take a value with warm caches: other processes may have run since the last one."""
        if self._turns.others:
            self._warm(loops)
        return self._take(loops)

    def _take(self, loops: int) -> TimedValue:
        window = LoadWindow([*self.pids, *self._spec.services], self._turns.ours)
        began = time.time()
        # The process may be descheduled during each of these calls: `around` encloses all queueing that is counted.
        around, queued, cpu = time.perf_counter(), queued_seconds(), cpu_seconds(self.pids)
        wall = time.perf_counter()
        for _ in range(loops):
            self._results = self._run()
        wall = time.perf_counter() - wall
        used, queued = cpu_seconds(self.pids) - cpu, queued_seconds() - queued
        demand = core_demand(time.perf_counter() - around, used, queued)
        span = window.span()
        report_progress(self._spec)
        return TimedValue(wall=wall, cpu=used / loops, demand=demand, began=began, span=span)

    def _load_of(self, value: TimedValue) -> tuple[float, float | None]:
        # One short window says little, so others' least possible load counts; all windows are judged at the end.
        others = value.span.least_others_cores
        return others, self._needs.bearable(value.span.own / value.span.elapsed, others)

    def load(self) -> WindowLoad:
        """Return the load of the machine over all values."""
        first, *rest = [value.span for value in self.values]
        return sum(rest, first)

    def forget_results(self) -> list[Any]:
        """Return the last results and drop them: their memory must not count as the workload's."""
        results, self._results = self._results, []
        return results


def _values(spec: CellSpec, clock: ValueTimer, seconds: float) -> int:
    """Take the values with pyperf's worker, write its file and return the loops of a value; a pass takes `seconds`."""
    loops = 1 if spec.phase == "startup" else spec.loops or calibrated_loops(seconds, spec.min_seconds)
    import_pyperf()
    take_values(spec, clock, loops=loops, values=clock.begin(loops, seconds), warmups=spec.warmups)
    return loops


def _check(check: Callable[[Sequence[Any]], None], results: list[Any]) -> None:
    from gilscope.workloads.base import WrongResult

    try:
        check(results)
    except WrongResult as wrong:
        raise NoValueError("wrong-result", str(wrong)) from None
    except Exception as error:
        # A user's check may be a plain assertion; its traceback is in the output.
        raise NoValueError("wrong-result", f"the check refused the results: {shown(error)}") from error


def calibrated_loops(seconds: float, min_seconds: float) -> int:
    """Return the power of two that makes a value at least `min_seconds` long: pyperf's rule, applied to one pass."""
    loops = 1
    while loops * seconds < min_seconds and loops < 2**20:
        loops *= 2
    return loops


def _answer(
    subject: LoadedSubject, clock: ValueTimer, needs: StarvationCheck, loops: int, states: Sequence[bool | None]
) -> dict[str, Any]:
    """Return the answer; `states` are those of the GIL at the end, in this process and in the workers."""
    on = None if all(state is None for state in states) else any(states)
    runner = needs.runner
    refuse_wrong_gil(runner.name, runner.gil, on)
    load = clock.load()
    return {
        **needs.fields(load),
        "kind": "measured",
        "cpu": [value.cpu for value in clock.values],
        "began": [value.began for value in clock.values],
        "again": clock.again,
        "loops": loops,
        "metrics": clock.metrics,
        "evidence": load.evidence(clock.load_average),
        "demand": median(value.demand for value in clock.values) if runner.name == "serial" else None,
        "tasks": len(subject.payloads),
        "gil_end": on,
        "hash_seed": hash_seed(),
        "metadata": {"gilscope_switch_interval": sys.getswitchinterval(), "gilscope_cores": usable_cores()},
    }


def describe() -> None:
    """Load the subject of `sys.argv[1]` without measuring it; answer with its properties, or why it is refused."""
    spec = CellSpec.from_json(sys.argv[1])
    lifeline.end_with_parent()
    set_alarm(spec)
    try:
        subject = load(spec)
        answer: dict[str, Any] = {
            "kind": "described",
            "tasks": len(subject.payloads),
            "sync": subject.task is not None,
            "async": subject.async_task is not None,
            "module": subject.home,
            "notes": list(subject.notes),
            "unpicklable": subject.unpicklable,
        }
    except ModuleMissingError as refused:
        answer = {"kind": "refused", "reason": str(refused), "missing_module": refused.missing}
    except ImportMissingError as refused:
        answer = {"kind": "refused", "reason": str(refused), "missing_import": refused.missing}
    except RefusedError as refused:
        answer = {"kind": "refused", "reason": str(refused)}
    except PayloadsError as failed:
        answer = {"kind": "exception", "reason": shown(failed.raised), "raising": str(failed),
                  "frames": own_frames(failed.raised)}
    except BaseException as error:  # noqa: BLE001 - the user's module may raise anything
        answer = describe_error(error)
        # CPython names the module in every ImportError but that of a relative import outside a package.
        answer["outside_package"] = isinstance(error, ImportError) and error.name is None
    deliver(spec, answer)


def rate() -> None:
    """Measure the units of work per second that a task of `sys.argv[1]` does here, serially; for --task-length."""
    from gilscope.workloads import catalog

    spec = CellSpec.from_json(sys.argv[1])
    lifeline.end_with_parent()
    workload = catalog.find(spec.workload)
    assert workload.units is not None, "only workloads with units are sized"
    units, best = 1, float("inf")
    while best == float("inf"):
        seconds = min(_seconds(workload.task, workload.units(units)) for _ in range(3))
        if seconds < SECONDS_TO_SIZE:
            units *= 2
        else:
            best = seconds
    deliver(spec, {"kind": "rate", "units_per_second": units / best})


def _seconds(task: Callable[..., Any], payload: Any) -> float:
    began = time.perf_counter()
    task(payload)
    return time.perf_counter() - began
