"""The measured process: one cell, one round.

Started as `python -c "from gilscope.toolkit.measure.cell.child import main; main()" SPEC [LINE]`, not as a script:
`spawn` would import a script again in each worker, and that import would be counted as the runner's start-up cost.
LINE is the descriptor by which it is told when to take a value; without one it takes all at once.  What it has to say
goes into the files of its spec before the pool is closed, so that a crash in teardown costs nothing.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.cores import allowed_cpus, queued_seconds, usable_cores
from gilscope.toolkit.measure.abilities.probe_child import ISOLATED
from gilscope.toolkit.measure.cell.subject import RefusedError, Subject, load
from gilscope.toolkit.measure.cell.turns import Alone, InTurn, Turns
from gilscope.toolkit.measure.machine.other_load import (
    Span,
    Window,
    core_demand,
    is_starved,
    load_average,
    wanted_cores,
)
from gilscope.toolkit.measure.machine.tree import cpu_seconds, descendants, memory, peak_resident
from gilscope.toolkit.measure.process.child_base import (
    StoppedError,
    answered,
    deliver,
    describe_error,
    gil_enabled,
    import_pyperf,
    refuse_wrong_gil,
    report_progress,
    set_alarm,
    shown,
    take_values,
)
from gilscope.toolkit.measure.process.spec import ChildSpec
from gilscope.toolkit.processes import lifeline

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gilscope.runners.base import Runner


SHARE_TO_WARM = 0.15  # of a value, at most, is run untimed before it; a longer one does not notice that others ran
SECONDS_TO_SIZE = 0.02  # of a task by which the others are sized: long enough to read past timer and scheduler


def main() -> None:
    """Measure the cell in `sys.argv[1]` and leave the answer in its folder."""
    spec = ChildSpec.from_json(sys.argv[1])
    turns = InTurn(spec, int(sys.argv[2])) if len(sys.argv) > 2 else Alone(spec)  # noqa: PLR2004 - see above
    answered(spec, lambda: _measure(spec, turns))


def _measure(spec: ChildSpec, turns: Turns) -> dict[str, Any] | None:
    gil_start = gil_enabled()
    runner = _runner(spec)
    subject = _load(spec)
    task = _task(runner, subject)
    if runner.name in ISOLATED:
        _import_here_first(subject)
    needs = Needs(spec, runner, subject)
    turns.reach("loaded")
    if spec.phase == "startup":
        seconds = _checked_pass(spec, subject, lambda: _cycle(runner, spec, subject, task, subject.payloads))
        turns.reach("checked")
        # One task whatever the number of workers: what is compared is starting and ending them.
        clock = Clock(spec, turns, needs, lambda: _cycle(runner, spec, subject, task, subject.payloads[:1]))
        loops = _values(spec, clock, seconds)
        # The workers are gone, so there is no memory of this model to speak of.
        deliver(spec, _answer(subject, clock, needs, loops, [gil_start, gil_enabled()]))
        return None
    with runner.pool(spec.workers, subject.shared) as pool:
        turns.reach("opened")
        report_progress(spec)
        seconds = _checked_pass(spec, subject, lambda: pool.map(task, subject.payloads))
        turns.reach("checked")
        few = subject.payloads[: spec.workers]
        clock = Clock(spec, turns, needs, lambda: pool.map(task, subject.payloads),
                      warm=lambda loops: len(few) <= SHARE_TO_WARM * len(subject.payloads) * loops
                      and pool.map(task, few))
        loops = _values(spec, clock, seconds)
        _check(subject.check, clock.forget_results())
        clock.rss_bytes, clock.pss_bytes = memory(clock.pids)
        from gilscope.runners._worker import gil_state

        states = [state for state, _pid in pool.map(gil_state, [None] * spec.workers)]
        deliver(spec, _answer(subject, clock, needs, loops, [gil_start, gil_enabled(), *states]))
    return None


def _load(spec: ChildSpec) -> Subject:
    try:
        return load(spec)
    except RefusedError as refused:
        raise StoppedError("refused", str(refused)) from None


def _runner(spec: ChildSpec) -> Runner:
    from gilscope.runners import catalog

    runner: Runner = catalog.find(spec.runner)
    if reason := runner.unavailable():
        raise StoppedError("unavailable", reason)
    return runner


def _import_here_first(subject: Subject) -> None:
    """Import in the main interpreter what the workers will import.

    On 3.12 and 3.13 interpreters that import some C modules of the standard library (_datetime, below urllib3) for the
    first time at once crash the process; after the main interpreter has them they do not.
    """
    if sys.version_info < (3, 14):
        for module in subject.modules:
            importlib.import_module(module)


def _task(runner: Runner, subject: Subject) -> Callable[..., Any]:
    if runner.awaits and subject.async_task is not None:
        return subject.async_task
    if subject.task is None:
        raise StoppedError("unavailable", "it is a coroutine function: only asyncio awaits it")
    return subject.task


def _cycle(
    runner: Runner, spec: ChildSpec, subject: Subject, task: Callable[..., Any], payloads: Sequence[Any]
) -> list[Any]:
    with runner.pool(spec.workers, subject.shared) as pool:
        return pool.map(task, payloads)


def _checked_pass(spec: ChildSpec, subject: Subject, run: Callable[[], list[Any]]) -> float:
    """Run every payload once, uncounted, check the results, and return the wall seconds: what calibration goes by."""
    began = time.perf_counter()
    results = run()
    seconds = time.perf_counter() - began
    report_progress(spec)
    _check(subject.check, results)
    return seconds


class Needs:
    """Says whether a cell got the cores that it needs."""

    def __init__(self, spec: ChildSpec, runner: Runner, subject: Subject) -> None:
        self.runner = runner
        self._spec = spec
        self._kind = subject.kind
        self._cores, self._allowed = usable_cores(), allowed_cpus()

    def starved(self, own: float, others: float | None) -> bool:
        """Return whether it did not, when it used `own` cores' worth and everybody else `others`."""
        wanted = wanted_cores(
            self._kind,
            self._spec.workers,
            parallel=self.runner.parallel,
            own=own,
            left=min(self._cores, self._allowed - (others or 0.0)),
            # Starting workers needs cores, whatever their tasks do.
            demand=None if self._spec.phase == "startup" else self._spec.demand,
        )
        return is_starved(wanted, others, self._cores, self._allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What one call of pyperf's time function came to."""

    wall: float     # seconds of all loops
    cpu: float      # CPU seconds of one loop
    demand: float   # cores' worth that the tasks keep busy while nobody is in the way
    began: float    # seconds since the epoch
    span: Span      # what ran meanwhile


class Clock:
    """pyperf's time function: wall seconds of `loops` passes; keeps their CPU seconds and the evidence beside them."""

    def __init__(
        self, spec: ChildSpec, turns: Turns, needs: Needs, run: Callable[[], list[Any]],
        warm: Callable[[int], object] = bool,
    ) -> None:
        """`run` has run before, so that every process which lives on is there.

        `warm` is called with the number of loops before each value between whose turn and the last others had theirs.
        """
        self._spec = spec
        self._run = run
        self._warm = warm
        self._needs = needs
        self._turns = turns
        self._warmups = spec.warmups
        self._results: list[Any] = []
        self.pids = [os.getpid(), *descendants(os.getpid())]
        self._load: float | None = None
        self.values: list[Value] = []
        self.again = 0   # values that were taken again
        self.rss_bytes: int | None = None
        self.pss_bytes: int | None = None

    def begin(self, loops: int, seconds: float) -> int:
        """Say that all is warm and a loop takes `seconds`; return, in the first turn, how many values there will be."""
        self._load = load_average()
        return self._turns.begin(loops=loops, seconds=loops * seconds, pids=self.pids, peak=peak_resident(self.pids))

    def __call__(self, loops: int) -> float:
        """Run `loops` passes and return their wall seconds."""
        if self._warmups:
            self._warmups -= 1
            return self._take(loops).wall
        kept = self._take_warm(loops)
        while self._turns.next(starved=self._surely_starved(kept)) == "again":
            self.again += 1
            kept = min(kept, self._take_warm(loops), key=self._disturbance)
        self.values.append(kept)
        return kept.wall

    def _take_warm(self, loops: int) -> Value:
        """Take a value as if the last one had just been: others were in the caches meanwhile."""
        if self._turns.others:
            self._warm(loops)
        return self._take(loops)

    def _take(self, loops: int) -> Value:
        window = Window([*self.pids, *self._spec.services], self._turns.ours)
        began = time.time()
        # Each of these can end in a queue for a CPU, too: what was queued counts from after `around` to before the end.
        around, queued, cpu = time.perf_counter(), queued_seconds(), cpu_seconds(self.pids)
        wall = time.perf_counter()
        for _ in range(loops):
            self._results = self._run()
        wall = time.perf_counter() - wall
        used, queued = cpu_seconds(self.pids) - cpu, queued_seconds() - queued
        demand = core_demand(time.perf_counter() - around, used, queued)
        span = window.span()
        report_progress(self._spec)
        return Value(wall=wall, cpu=used / loops, demand=demand, began=began, span=span)

    def _surely_starved(self, value: Value) -> bool:
        # One short window tells little; what all of them saw is judged at the end.
        return self._needs.starved(value.span.own / value.span.elapsed, value.span.least_others_cores)

    def _disturbance(self, value: Value) -> tuple[bool, float]:
        return self._surely_starved(value), value.span.least_others_cores

    def seen(self) -> dict[str, float | int | None]:
        """Return the fields of `model.Evidence` for all values that were kept, and `own_cores`."""
        first, *rest = [value.span for value in self.values]
        return sum(rest, first).evidence(self._load)

    def forget_results(self) -> list[Any]:
        """Return the last results and let go of them: their memory is not the workload's."""
        results, self._results = self._results, []
        return results


def _values(spec: ChildSpec, clock: Clock, seconds: float) -> int:
    """Take the values with pyperf's worker and write its file; one pass took `seconds`; return the loops of a value."""
    loops = 1 if spec.phase == "startup" else spec.loops or calibrated_loops(seconds, spec.min_seconds)
    import_pyperf()
    take_values(spec, clock, loops=loops, values=clock.begin(loops, seconds), warmups=spec.warmups)
    return loops


def _check(check: Callable[[Sequence[Any]], None], results: list[Any]) -> None:
    from gilscope.workloads.base import WrongResult

    try:
        check(results)
    except WrongResult as wrong:
        raise StoppedError("wrong-result", str(wrong)) from None
    except Exception as error:
        # A user's check may be a plain assertion; where it failed is in the output.
        raise StoppedError("wrong-result", f"the check refused the results: {shown(error)}") from error


def calibrated_loops(seconds: float, min_seconds: float) -> int:
    """Return the power of two that makes a value at least `min_seconds` long; pyperf's rule, from one pass."""
    loops = 1
    while loops * seconds < min_seconds and loops < 2**20:
        loops *= 2
    return loops


def _answer(
    subject: Subject, clock: Clock, needs: Needs, loops: int, gil: Sequence[bool | None]
) -> dict[str, Any]:
    """Return what was measured; `gil` is its state at the start, then here and in the workers at the end."""
    gil_start, *states = gil
    on = None if all(state is None for state in states) else any(states)
    runner = needs.runner
    refuse_wrong_gil(runner.name, runner.gil, on)
    evidence = clock.seen()
    own = evidence.pop("own_cores") or 0.0
    return {
        "kind": "measured",
        "cpu": [value.cpu for value in clock.values],
        "began": [value.began for value in clock.values],
        "again": clock.again,
        "loops": loops,
        "rss_bytes": clock.rss_bytes,
        "pss_bytes": clock.pss_bytes,
        "evidence": evidence,
        "starved": needs.starved(own, evidence["others_cores"]),
        "demand": median(value.demand for value in clock.values) if runner.name == "serial" else None,
        "tasks": len(subject.payloads),
        "gil_start": gil_start,
        "gil_end": on,
        "metadata": {"gilscope_switch_interval": sys.getswitchinterval(), "gilscope_cores": usable_cores()},
    }


def describe() -> None:
    """Load the subject of `sys.argv[1]` without measuring it and leave what it is, or why it is refused."""
    spec = ChildSpec.from_json(sys.argv[1])
    lifeline.hold()
    set_alarm(spec)
    try:
        subject = load(spec)
        answer: dict[str, Any] = {
            "kind": "described",
            "tasks": len(subject.payloads),
            "sync": subject.task is not None,
            "async": subject.async_task is not None,
            "module": (subject.task or subject.async_task).__module__,
        }
    except RefusedError as refused:
        answer = {"kind": "refused", "reason": str(refused)}
    except BaseException as error:  # noqa: BLE001 - the user's module may raise anything
        answer = describe_error(error)
    deliver(spec, answer)


def rate() -> None:
    """Measure how many units of work per second a task of `sys.argv[1]` does here, serially; for --task-length."""
    from gilscope.workloads import catalog

    spec = ChildSpec.from_json(sys.argv[1])
    lifeline.hold()
    workload = catalog.find(spec.workload)
    assert workload.units is not None, "the plan asks only workloads that have units"
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
