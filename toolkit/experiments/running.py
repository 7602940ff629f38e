"""Run one experiment: plan it for the builds, measure it in rounds, store it in `results/<label>/<experiment>`."""

from __future__ import annotations

import dataclasses
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.builds.environment import build_environment
from gilscope.toolkit.concurrency_models import find_model
from gilscope.toolkit.cores import usable_cores
from gilscope.toolkit.errors import BadFileError, BuildError, ToolkitError
from gilscope.toolkit.experiments.base import EffortLevel, PlanningContext
from gilscope.toolkit.measure.abilities import ask_build, version_mismatches
from gilscope.toolkit.measure.child.program import ProgramSpec
from gilscope.toolkit.measure.failed_cells import still_lacking
from gilscope.toolkit.measure.machine import now, this_machine
from gilscope.toolkit.measure.machine_lock import MachineLock
from gilscope.toolkit.measure.preparation import (
    PYPERF,
    child_environment,
    needed_packages,
    with_installer_reasons,
)
from gilscope.toolkit.measure.rounds import ProcessStart, gil_control
from gilscope.toolkit.measure.scheduler import Scheduler
from gilscope.toolkit.measure.settings import Settings
from gilscope.toolkit.model import Note, Run
from gilscope.toolkit.records import DamagedError, from_plain, to_plain
from gilscope.toolkit.store import Store

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence
    from pathlib import Path

    from gilscope.toolkit.experiments.base import Experiment
    from gilscope.toolkit.measure.abilities import Abilities
    from gilscope.toolkit.measure.cells import Plan
    from gilscope.toolkit.measure.preparation import Say
    from gilscope.toolkit.measure.scheduler import RunProgress
    from gilscope.toolkit.model import Build, Cell, RunEnd

BASELINE = "serial"
PROGRAM = "gilscope.toolkit.experiments.{}.program"
RETAKES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentRequest:
    """Settings of an experiment's run, stored with it, so that `--resume` continues with the same ones."""

    experiment: str
    effort: EffortLevel
    rounds: int
    budget: float | None   # seconds
    timeout: float         # seconds a measured process may be silent
    seed: int

    def to_options(self) -> dict[str, Any]:
        """Return the request as JSON values."""
        return to_plain(self)

    @classmethod
    def from_options(cls, fields: Mapping[str, Any]) -> ExperimentRequest:
        """Return the request that `to_options` wrote.

        Raises:
            BadFileError: a field is missing or unknown.
        """
        try:
            return from_plain(cls, fields, "options")
        except DamagedError as error:
            raise BadFileError(f"run.json does not say how the experiment was made, so it cannot go on ({error})") \
                from error


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedBuilds:
    """The builds with all that starting a trial in them takes."""

    builds: tuple[Build, ...]
    pythons: Mapping[str, str]          # by build label: the python of its environment
    environment: Mapping[str, str]
    abilities: Mapping[str, Abilities]  # by build label
    notes: tuple[Note, ...]


def prepare(experiments: Sequence[Experiment], builds: Sequence[Build], say: Say) -> PreparedBuilds:
    """Install the experiments' packages into every build's environment, as far as possible, and probe the builds.

    Raises:
        BuildError: an environment could not be made.
    """
    packages = list(dict.fromkeys(package for each in experiments for package in each.packages))
    environment = child_environment(())
    pythons, abilities = {}, {}
    for build in builds:
        made = build_environment(
            build, needed_packages(build), [package.requirement for package in packages], on_progress=say
        )
        # Only a tox environment can lack pyperf; a missing backport of interpreters costs one model and no more.
        if reason := made.missing.get(PYPERF):
            raise BuildError(f"{build.label} cannot be measured: pyperf is {reason}")
        pythons[build.label] = str(made.python)
        say(f"asking {build.label} what it can run")
        found = ask_build(
            str(made.python), environment, free_threaded=build.free_threaded,
            modules=[package.module for package in packages],
        )
        abilities[build.label] = with_installer_reasons(found, made.missing)
    return PreparedBuilds(
        builds=tuple(builds), pythons=pythons, environment=environment, abilities=abilities,
        notes=tuple(Note(text=sentence) for sentence in version_mismatches(abilities)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialStarter:
    """Describes to the scheduler how the trials of one experiment start."""

    experiment: Experiment
    prepared: PreparedBuilds
    scales: Mapping[str, float]
    folder: Path

    def start(self, cell: Cell, settings: Settings, loops: int) -> ProcessStart:  # noqa: ARG002 - a trial is one loop
        """Return the command, environment and specification of the trial of `cell`."""
        free_threaded = {build.label for build in self.prepared.builds if build.free_threaded}
        spec = ProgramSpec(
            name=cell.name,
            progress_timeout=settings.timeout,
            folder=str(self.folder),
            program=PROGRAM.format(self.experiment.program),
            build=cell.build,
            model=cell.runner,
            workers=cell.workers,
            gil=find_model(cell.runner).gil,
            parameters=dict(cell.parameters),
            scales=dict(self.scales),
            host=sys.executable,
        )
        environment = {
            **self.prepared.environment, **gil_control(cell, free_threaded), **self.experiment.environment(cell)
        }
        return ProcessStart(python=self.prepared.pythons[cell.build], spec=spec, environment=environment)


def plan(experiment: Experiment, request: ExperimentRequest, prepared: PreparedBuilds) -> Plan:
    """Return the experiment's cells on these builds."""
    return experiment.plan(PlanningContext(
        builds=prepared.builds, abilities=prepared.abilities, cores=usable_cores(), effort=request.effort,
        scales=experiment.levels[request.effort].scales,
    ))


def begin(
    experiment: Experiment, request: ExperimentRequest, prepared: PreparedBuilds, results: Path,
) -> tuple[Store, Run]:
    """Plan the experiment and make its folder below `results`.

    Raises:
        ToolkitError: none of its cells can be measured; the message says why.
        LabelTakenError: it was run under this label before.
    """
    planned = plan(experiment, request, prepared)
    if not planned.cells:
        reasons = sorted({f"  {skip.cell.build} {skip.cell.runner}: {skip.reason}" for skip in planned.skips})
        raise ToolkitError("\n".join([f"nothing of {experiment.name} can be measured:", *reasons]))
    run = Run(
        label=f"{results.name}/{experiment.name}",
        started=now(),
        builds=prepared.builds,
        machine=this_machine(),
        seed=request.seed,
        rounds_planned=request.rounds,
        rounds_done=0,
        stopped="running",
        baseline=BASELINE,
        measurements=(),
        cells=planned.cells,
        skips=planned.skips,
        notes=prepared.notes,
        options=request.to_options(),
    )
    store = Store.create(experiment.name, results)
    store.save(run)  # so that --resume finds it however soon this process ends
    return store, run


def measure(
    experiment: Experiment, request: ExperimentRequest, prepared: PreparedBuilds, store: Store, run: Run, *,
    folder: Path, reporter: RunProgress,
) -> Run:
    """Measure the rounds that `run` lacks and return it; it is saved even if this is interrupted.

    A run with all its rounds repeats those in which a cell failed.  Then come the rounds that the experiment adds.

    Raises:
        KeyboardInterrupt: after the values measured so far were saved.
    """
    began = time.monotonic()
    method = experiment.round_method(prepared.pythons, request.effort)
    settings = Settings(
        rounds=request.rounds, values=1, warmups=0, min_seconds=0.0, timeout=request.timeout, budget=request.budget,
        retakes=0 if request.effort is EffortLevel.SMOKE else RETAKES, seed=request.seed,
    )
    starter = TrialStarter(
        experiment=experiment, prepared=prepared, scales=experiment.levels[request.effort].scales, folder=folder
    )
    machine = MachineLock(
        alone=False, waiting=lambda: reporter.note("waiting for a fleet's run that measures on this machine"))

    def measured(run: Run, rounds: int, only: Container[Cell] | None) -> Run:
        left = None if settings.budget is None else settings.budget - (time.monotonic() - began)
        return Scheduler(dataclasses.replace(run, rounds_planned=max(run.rounds_planned, rounds)), store, starter,
                         dataclasses.replace(settings, rounds=rounds, budget=left), reporter, method, only=only,
                         hold_machine=machine.hold).go()

    stopped: RunEnd = "rounds"
    if run.rounds_done < request.rounds:
        run = measured(run, request.rounds, None)
        stopped = run.stopped
    else:
        more, lacking = still_lacking(run, request.rounds)
        if more:
            run = measured(run, run.rounds_done + more, lacking)
            stopped = run.stopped
    while stopped == "rounds" and (settings.budget is None or time.monotonic() - began < settings.budget):
        cells = experiment.further_cells(experiment.results(run), request.effort, request.rounds)
        if not cells:
            break
        new = tuple(cell for cell in cells if cell not in run.cells)
        run = measured(dataclasses.replace(run, cells=(*run.cells, *new)), run.rounds_done + 1, frozenset(cells))
        stopped = run.stopped
    return run
