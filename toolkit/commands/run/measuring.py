"""Plan, measure and store a run; shared by `gilscope run` and `gilscope compare --again`."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from gilscope.runners.catalog import RUNNERS
from gilscope.toolkit.commands.output.dry_run import rounds_text
from gilscope.toolkit.commands.streams import print_stderr
from gilscope.toolkit.cores import usable_cores
from gilscope.toolkit.errors import StarvedError, ToolkitError
from gilscope.toolkit.measure.busy_programs import busy_programs
from gilscope.toolkit.measure.cells import baseline_of, expand
from gilscope.toolkit.measure.loopback_servers import services
from gilscope.toolkit.measure.machine import now, this_machine
from gilscope.toolkit.measure.machine_lock import WAITING, MachineLock
from gilscope.toolkit.measure.preparation import child_environment, sized_tasks
from gilscope.toolkit.measure.rounds import CellStarter
from gilscope.toolkit.measure.run_status import StatusFile
from gilscope.toolkit.measure.scheduler import Scheduler
from gilscope.toolkit.measure.settings import CoreDemands, RunRequest
from gilscope.toolkit.measure.trial import allow_time, failed_cells, try_builds, with_trials
from gilscope.toolkit.measure.turns import InterleavedPasses
from gilscope.toolkit.measure.user_modules import code_sum
from gilscope.toolkit.model import Note, Run
from gilscope.toolkit.report.progress import ProgressReporter
from gilscope.toolkit.report.table.open_cells import open_cells
from gilscope.toolkit.store import Store, default_label
from gilscope.toolkit.units import counted
from gilscope.workloads import catalog

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence
    from pathlib import Path

    from gilscope.toolkit.measure.cells import Plan, Selection
    from gilscope.toolkit.measure.preparation import Preparation
    from gilscope.toolkit.measure.settings import Settings
    from gilscope.toolkit.model import Cell

STARVED_ROUNDS = 2   # in a row without a clean cell: one may be chance, a third tells nothing new
STARVED = "GILSCOPE_STARVED"   # "measure": go on without a clean cell, as for tests, which run beside each other
AGAIN = "again"   # in a run's options: the labels of the two runs that it remeasures


@dataclass(frozen=True, slots=True, kw_only=True)
class RunJob:
    """A run to measure: its cells, settings and the user's code."""

    selection: Selection
    settings: Settings
    paths: Sequence[Path]            # folders of the user's modules
    packages: Sequence[str]          # requirements of the user's code
    label: str | None                # None: date and time
    timeout_asked: bool              # True: the user chose the timeout, so it is not extended
    notes: Sequence[Note] = ()       # shown before the report
    again: Sequence[str] = ()        # labels of the two runs to remeasure
    alone: bool = False              # wait for other runs on this machine that must be alone
    status: StatusFile = field(default_factory=lambda: StatusFile(None))
    sessions: int = 1
    every: float | None = None       # seconds from the start of one session to that of the next


@contextlib.contextmanager
def nothing_kept_yet() -> Iterator[None]:
    """Tell the user who stops the command here that there is no run to resume."""
    try:
        yield
    except KeyboardInterrupt:
        print_stderr("stopped before the first value: nothing is kept, and there is no run to resume")
        raise


def measure_plan(job: RunJob, prepared: Preparation, plan: Plan, folder: Path) -> Run:
    """Try the user's function, make the run, and measure it.

    Raises:
        ToolkitError: The user's function fails on every build, or the label is taken.
        StarvedError: Other programs used the cores.
        KeyboardInterrupt: After the measured values were saved.
    """
    selection = job.selection
    with nothing_kept_yet(), machine_lock(alone=job.alone).hold():
        began = time.monotonic()
        trials = try_builds(selection, prepared, folder, timeout=job.settings.timeout, say=print_stderr)
        units = sized_tasks(selection, prepared, folder)
        spent = time.monotonic() - began
    if selection.user is not None:
        plan = expand(selection, prepared.subjects, prepared.builds, RUNNERS, with_trials(prepared.abilities, trials))
        refuse_empty(plan)
    failed = failed_cells(plan.cells, trials)
    settings = allow_time(job.settings, trials, by_user=job.timeout_asked, say=print_stderr)
    request = RunRequest(
        selection=selection,
        settings=settings,
        units=units,
        paths=tuple(map(str, job.paths)),
        packages=tuple(job.packages),
        code=code_sum(selection.user.modules(), job.paths) if selection.user else "",
        shared_by=max(selection.workers),
        sessions=job.sessions,
        every=job.every,
    )
    new = Run(
        label=job.label or default_label(),
        started=now(),
        builds=prepared.builds,
        machine=this_machine(),
        seed=settings.seed,
        rounds_planned=settings.rounds,
        rounds_done=0,
        stopped="running",
        baseline=baseline_of(prepared.subjects),
        measurements=(),
        cells=plan.cells,
        skips=plan.skips,
        failures=failed,
        notes=(*job.notes, *prepared.notes, *_machine_notes()),
        options=request.to_options() | ({AGAIN: list(job.again)} if job.again else {}),
    )
    store = Store.create(new.label)
    store.save(new)  # so that the run can be resumed, however soon it ends
    print_stderr(f"{counted(len(plan.cells), 'cell')}, {rounds_text(settings)}, seed {settings.seed}, "
                 f"results in {store.path}")
    demands = {label: trial.demand for label, trial in trials.items() if trial.demand is not None}
    return measure(new, request, store, prepared, folder, tried=demands, alone=job.alone,
                   status=job.status, spent=spent)


class _StatusReporter(ProgressReporter):
    """Shows the progress to the user, and writes it to the status file."""

    def __init__(self, status: StatusFile, most_seconds: float | None) -> None:
        super().__init__(print_stderr, most_seconds)
        self._status = status

    def on_round_start(self, index: int, rounds: int, arms: int, *, may_stop: bool) -> None:
        super().on_round_start(index, rounds, arms, may_stop=may_stop)
        self._status.update(round=index + 1, rounds=rounds, done=0, cells=arms, may_stop=may_stop)

    def on_arms_end(self, count: int, seconds_left: float) -> None:
        super().on_arms_end(count, seconds_left)
        self._status.update(done=self._status.status.done + count, seconds_left=seconds_left)


def machine_lock(*, alone: bool) -> MachineLock:
    """Return the lock that this run holds while it measures on this machine."""
    return MachineLock(alone=alone, waiting=lambda: print_stderr(WAITING))


def measure(  # noqa: PLR0913 - a new, a resumed and a repeated run share nothing to group these by
    new: Run, request: RunRequest, store: Store, prepared: Preparation, folder: Path, *, tried: dict[str, float],
    only: Container[Cell] | None = None, alone: bool = False, status: StatusFile, spent: float = 0.0,
) -> Run:
    """Measure the missing rounds, of the cells in `only` if given; close the store however it ends.

    `spent` is the part of the budget, in seconds, that the trial took.

    Raises:
        StarvedError: Other programs used the cores, so the run stopped, after the measured values were saved.
    """
    settings = replace(request.settings, rounds=new.rounds_planned)
    if settings.budget is not None:
        settings = replace(settings, budget=max(0.0, settings.budget - spent))
    chosen = [catalog.find(name) for name in request.selection.workloads]
    user = request.selection.user
    needed = dict.fromkeys(workload.service for workload in chosen if workload.service)
    try:
        with services(needed, child_environment(())) as running, \
                _StatusReporter(status, settings.budget) as reporter:
            arms = CellStarter(
                pythons=prepared.pythons,
                size=request.selection.size,
                user=user,
                units=request.units,
                environments={label: {**each, **running.environment} for label, each in prepared.environments.items()},
                free_threaded=frozenset(build.label for build in new.builds if build.free_threaded),
                services=running.pids,
                folder=folder,
                shared_by=request.shared_by,
                demands=CoreDemands(observations=store.observations, tried=tried, kind=user.kind if user else None),
            )
            undecided = partial(open_cells, resolution=settings.resolution)
            # `compare --fail-on` says itself what it could not judge.
            anyway = AGAIN in new.options or os.environ.get(STARVED) == "measure"
            needs_rounds = undecided if settings.where_open and not only else None
            done = Scheduler(new, store, arms, settings, reporter, InterleavedPasses(), needed=needs_rounds, only=only,
                             hold_machine=machine_lock(alone=alone).hold,
                             most_starved=None if anyway else STARVED_ROUNDS).go()
    except KeyboardInterrupt:
        goes_on = "" if AGAIN in new.options else f"; to continue: gilscope run --resume {new.label}"
        print_stderr(f"the measured values are kept in {store.path}{goes_on}")
        raise
    finally:
        store.close()
    if done.stopped == "starved":
        if programs := busy_programs():
            print_stderr(f"these programs use the cores now: {programs}")
        print_stderr(_go_on_text(done, settings.rounds))   # the error may be a host's, which a fleet continues
        raise StarvedError("other programs used the cores that the cells needed: the run was stopped")
    return done


def _go_on_text(done: Run, rounds: int) -> str:
    """Return how to go on with a starved run; `rounds` are those that it was to have."""
    more = f" --rounds {2 * (rounds - done.sessions[-1].first_round)}" if done.rounds_done >= rounds else ""
    command = f"gilscope run --resume {done.label}{more}"
    return (f"what there is: gilscope report {done.label}; to go on when they have ended: {command}; to wait until the "
            f"cores are idle: {command} --wait-quiet")


def refuse_empty(plan: Plan) -> None:
    """Refuse a plan without a cell.

    Raises:
        ToolkitError: The plan has no cell; the message lists the reasons.
    """
    if not plan.cells:
        reasons = "\n".join(sorted({f"  {skip.cell.build} {skip.cell.runner}: {skip.reason}" for skip in plan.skips}))
        raise ToolkitError(f"none of these cells can be measured:\n{reasons}")


def _machine_notes() -> list[Note]:
    if usable_cores() == 1:
        return [Note(text="this machine has one core: no model can speed up CPU work")]
    return []
