"""The measured process: one cell, one round.

Started as `python -c "from gilscope.toolkit.measure.cell.child import main; main()" SPEC`, not as a script: `spawn`
would import a script again in each worker, and that import would be counted as the runner's start-up cost.  What it has
to say goes into the files of its spec before the pool is closed, so that a crash in teardown costs nothing.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from statistics import median
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.cores import allowed_cpus, queued_seconds, usable_cores
from gilscope.toolkit.measure.abilities.asking import ISOLATED
from gilscope.toolkit.measure.cell.subject import RefusedError, Subject, load
from gilscope.toolkit.measure.machine.noise import Window, core_demand, is_starved, wanted_cores
from gilscope.toolkit.measure.machine.tree import cpu_seconds, descendants, memory
from gilscope.toolkit.measure.process import lifeline
from gilscope.toolkit.measure.process.frame import (
    StoppedError,
    answered,
    deliver,
    describe_error,
    gil_enabled,
    refuse_wrong_gil,
    report_progress,
    set_alarm,
    shown,
    take_values,
)
from gilscope.toolkit.measure.process.spec import ChildSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gilscope.runners.base import Runner


SECONDS_TO_SIZE = 0.02  # of a task by which the others are sized: long enough to read past timer and scheduler


def main() -> None:
    """Measure the cell in `sys.argv[1]` and leave the answer in its folder."""
    spec = ChildSpec.from_json(sys.argv[1])
    answered(spec, lambda: _measure(spec))


def _measure(spec: ChildSpec) -> dict[str, Any] | None:
    gil_start = gil_enabled()
    runner = _runner(spec)
    subject = _load(spec)
    task = _task(runner, subject)
    if runner.name in ISOLATED:
        _import_here_first(subject)
    if spec.phase == "startup":
        seconds = _checked_pass(spec, subject, lambda: _cycle(runner, spec, subject, task, subject.payloads))
        # One task whatever the number of workers: what is compared is starting and ending them.
        clock = Clock(spec, lambda: _cycle(runner, spec, subject, task, subject.payloads[:1]))
        _values(spec, clock, seconds)
        # The workers are gone, so there is no memory of this model to speak of.
        deliver(spec, _answer(spec, subject, clock, runner, [gil_start, gil_enabled()]))
        return None
    with runner.pool(spec.workers, subject.shared) as pool:
        report_progress(spec)
        seconds = _checked_pass(spec, subject, lambda: pool.map(task, subject.payloads))
        clock = Clock(spec, lambda: pool.map(task, subject.payloads))
        _values(spec, clock, seconds)
        _check(subject.check, clock.forget_results())
        clock.evidence["rss_bytes"], clock.evidence["pss_bytes"] = memory(clock.pids)
        from gilscope.runners._worker import gil_state

        states = [state for state, _pid in pool.map(gil_state, [None] * spec.workers)]
        deliver(spec, _answer(spec, subject, clock, runner, [gil_start, gil_enabled(), *states]))
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


class Clock:
    """pyperf's time function: wall seconds of `loops` passes; keeps their CPU seconds and the evidence beside them."""

    def __init__(self, spec: ChildSpec, run: Callable[[], list[Any]]) -> None:
        """`run` has run before, so that every process which lives on is there."""
        self._spec = spec
        self._run = run
        self._calls = 0
        self._results: list[Any] = []
        self.pids = [os.getpid(), *descendants(os.getpid())]
        # From here, not from the first value: ticks of 10 ms say little about a window of a few of them.
        self._window = Window([*self.pids, *spec.services])
        self.cpu: list[float] = []
        self.demands: list[float] = []
        self.evidence: dict[str, float | int | None] = {}

    def __call__(self, loops: int) -> float:
        """Run `loops` passes and return their wall seconds."""
        # Each of these can end in a queue for a CPU, too: what was queued counts from after `began` to before the end.
        began, queued, cpu = time.perf_counter(), queued_seconds(), cpu_seconds(self.pids)
        wall = time.perf_counter()
        for _ in range(loops):
            self._results = self._run()
        wall = time.perf_counter() - wall
        used, queued = cpu_seconds(self.pids) - cpu, queued_seconds() - queued
        self.cpu.append(used / loops)
        self.demands.append(core_demand(time.perf_counter() - began, used, queued))
        self._calls += 1
        if self._calls == self._spec.warmups + self._spec.values:
            self.evidence = self._window.close()
        report_progress(self._spec)
        return wall

    def forget_results(self) -> list[Any]:
        """Return the last results and let go of them: their memory is not the workload's."""
        results, self._results = self._results, []
        return results


def _values(spec: ChildSpec, clock: Clock, seconds: float) -> None:
    """Take the values with pyperf's worker and write its file; one pass took `seconds`."""
    loops = 1 if spec.phase == "startup" else spec.loops or calibrated_loops(seconds, spec.min_seconds)
    take_values(spec, clock, loops=loops, values=spec.values, warmups=spec.warmups)
    clock.evidence["loops"] = loops


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
    spec: ChildSpec, subject: Subject, clock: Clock, runner: Runner, gil: Sequence[bool | None]
) -> dict[str, Any]:
    """Return what was measured; `gil` is its state at the start, then here and in the workers at the end."""
    gil_start, *states = gil
    on = None if all(state is None for state in states) else any(states)
    refuse_wrong_gil(runner.name, runner.gil, on)
    evidence = dict(clock.evidence)
    others = evidence.get("others_cores")
    own = evidence.pop("own_cores", 0.0) or 0.0
    cores, allowed = usable_cores(), allowed_cpus()
    wanted = wanted_cores(
        subject.kind,
        spec.workers,
        parallel=runner.parallel,
        own=own,
        left=min(cores, allowed - (others or 0.0)),
        # Starting workers needs cores, whatever their tasks do.
        demand=None if spec.phase == "startup" else spec.demand,
    )
    return {
        "kind": "measured",
        "cpu": clock.cpu[-spec.values :],
        "loops": evidence.pop("loops"),
        "rss_bytes": evidence.pop("rss_bytes", None),
        "pss_bytes": evidence.pop("pss_bytes", None),
        "evidence": evidence,
        "starved": is_starved(wanted, others, cores, allowed),
        "demand": median(clock.demands) if runner.name == "serial" else None,
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
