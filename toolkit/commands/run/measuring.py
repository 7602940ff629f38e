"""A run from what is asked to its stored values, whoever asks: `gilscope run`, or `gilscope compare --again`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from gilscope.toolkit.commands.output.dry_run import rounds_text
from gilscope.toolkit.commands.output.printing import say
from gilscope.toolkit.cores import usable_cores
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.measure.machine.alone import WAITING, Turns
from gilscope.toolkit.measure.machine.described import now, this_machine
from gilscope.toolkit.measure.plan.cells import baseline_of
from gilscope.toolkit.measure.plan.core_demand import Demands
from gilscope.toolkit.measure.plan.record import Request
from gilscope.toolkit.measure.prepare.find_module import code_sum
from gilscope.toolkit.measure.prepare.preparation import child_environment, sized_tasks
from gilscope.toolkit.measure.prepare.services import services
from gilscope.toolkit.measure.prepare.trial_outcome import allow_time, failed_cells, try_builds, warn_of_length
from gilscope.toolkit.measure.schedule.scheduler import Scheduler
from gilscope.toolkit.measure.schedule.start_child import Arms
from gilscope.toolkit.measure.schedule.turns import InTurn
from gilscope.toolkit.model import Note, Run
from gilscope.toolkit.report.progress import ProgressReporter
from gilscope.toolkit.report.table.open_cells import open_cells
from gilscope.toolkit.store import Store, default_label
from gilscope.toolkit.units import counted
from gilscope.workloads import catalog

if TYPE_CHECKING:
    from collections.abc import Container, Sequence
    from pathlib import Path

    from gilscope.toolkit.measure.plan.cells import Plan, Selection
    from gilscope.toolkit.measure.plan.settings import Settings
    from gilscope.toolkit.measure.prepare.preparation import Prepared
    from gilscope.toolkit.model import Cell

AGAIN = "again"   # in a run's options: the two runs whose sides it measures anew


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be measured, and how hard."""

    selection: Selection
    settings: Settings
    paths: Sequence[Path]            # folders of the user's modules
    packages: Sequence[str]          # requirements of the user's
    label: str | None                # None: date and time
    timeout_asked: bool              # by the user, so it is not made longer
    notes: Sequence[Note] = ()       # what a reader must know first
    again: Sequence[str] = ()        # labels of the two runs that are measured anew
    alone: bool = False              # nothing else that takes turns measures on this machine meanwhile


def measure_plan(asked: Asked, prepared: Prepared, plan: Plan, folder: Path) -> Run:
    """Try the user's function, make the run, and measure it.

    Raises:
        ToolkitError: the user's function fails everywhere, or the label is taken.
        KeyboardInterrupt: after what was measured was saved.
    """
    selection = asked.selection
    with turns(alone=asked.alone).turn():
        trials = try_builds(selection, prepared, folder, timeout=asked.settings.timeout, say=say)
        units = sized_tasks(selection, prepared, folder)
    settings = allow_time(asked.settings, trials, asked=asked.timeout_asked, say=say)
    warn_of_length(plan.cells, settings, trials, say)
    request = Request(
        selection=selection,
        settings=settings,
        units=units,
        paths=tuple(map(str, asked.paths)),
        packages=tuple(asked.packages),
        code=code_sum(selection.user.modules(), asked.paths) if selection.user else "",
        shared_by=max(selection.workers),
    )
    new = Run(
        label=asked.label or default_label(),
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
        failures=failed_cells(plan.cells, trials),
        notes=(*asked.notes, *prepared.notes, *_machine_notes()),
        options=request.to_options() | ({AGAIN: list(asked.again)} if asked.again else {}),
    )
    store = Store.create(new.label)
    store.save(new)  # there to go on with, however soon this one ends
    say(f"{counted(len(plan.cells), 'cell')}, {rounds_text(settings)}, seed {settings.seed}, results in {store.path}")
    demands = {label: trial.demand for label, trial in trials.items() if trial.demand is not None}
    return measure(new, request, store, prepared, folder, tried=demands, alone=asked.alone)


def turns(*, alone: bool) -> Turns:
    """Return this run's turns to measure on this machine."""
    return Turns(alone=alone, waiting=lambda: say(WAITING))


def measure(
    new: Run, request: Request, store: Store, prepared: Prepared, folder: Path, *, tried: dict[str, float],
    only: Container[Cell] | None = None, alone: bool = False,
) -> Run:
    """Measure the rounds that are missing, of `only` these cells; close the store whatever ends it."""
    settings = replace(request.settings, rounds=new.rounds_planned)
    chosen = [catalog.find(name) for name in request.selection.workloads]
    user = request.selection.user
    needed = dict.fromkeys(workload.service for workload in chosen if workload.service)
    try:
        with services(needed, child_environment(())) as running, ProgressReporter(say) as reporter:
            arms = Arms(
                pythons=prepared.pythons,
                size=request.selection.size,
                user=user,
                units=request.units,
                environments={label: {**each, **running.environment} for label, each in prepared.environments.items()},
                free_threaded=frozenset(build.label for build in new.builds if build.free_threaded),
                services=running.pids,
                folder=folder,
                shared_by=request.shared_by,
                demands=Demands(observations=store.observations, tried=tried, kind=user.kind if user else None),
            )
            asked = partial(open_cells, resolution=settings.resolution) if settings.where_open and not only else None
            return Scheduler(new, store, arms, settings, reporter, InTurn(), needed=asked, only=only,
                             turn=turns(alone=alone).turn).go()
    except KeyboardInterrupt:
        goes_on = "" if AGAIN in new.options else f": gilscope run --resume {new.label} goes on"
        say(f"what was measured is kept in {store.path}{goes_on}")
        raise
    finally:
        store.close()


def refuse_empty(plan: Plan) -> None:
    """Refuse a plan without a cell.

    Raises:
        ToolkitError: it has none; the message has the reasons.
    """
    if not plan.cells:
        reasons = "\n".join(sorted({f"  {skip.cell.build} {skip.cell.runner}: {skip.reason}" for skip in plan.skips}))
        raise ToolkitError(f"nothing of this can be measured:\n{reasons}")


def _machine_notes() -> list[Note]:
    if usable_cores() == 1:
        return [Note(text="one core only: no model can show a speed-up of CPU work here")]
    return []
