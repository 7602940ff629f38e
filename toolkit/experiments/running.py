"""Runs one experiment: plans it for the builds, measures it in rounds, keeps it in `results/<label>/<experiment>`."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.builds.packages.environment import build_environment
from gilscope.toolkit.cores import usable_cores
from gilscope.toolkit.errors import BadFileError, BuildError, ToolkitError
from gilscope.toolkit.experiments.base import Effort, Setting
from gilscope.toolkit.measure.abilities.probe import ask_build, version_mismatches
from gilscope.toolkit.measure.machine.alone import Turns
from gilscope.toolkit.measure.machine.described import now, this_machine
from gilscope.toolkit.measure.plan.settings import Settings
from gilscope.toolkit.measure.prepare.preparation import (
    PYPERF,
    child_environment,
    needed_packages,
    with_installer_reasons,
)
from gilscope.toolkit.measure.program.interface import TrialSpec
from gilscope.toolkit.measure.schedule.failing import still_lacking
from gilscope.toolkit.measure.schedule.scheduler import Scheduler
from gilscope.toolkit.measure.schedule.start_child import Start, gil_control
from gilscope.toolkit.model import Note, Run
from gilscope.toolkit.store import Store
from gilscope.toolkit.store.checking import typed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gilscope.toolkit.experiments.base import Experiment
    from gilscope.toolkit.measure.abilities.probe import Abilities
    from gilscope.toolkit.measure.plan.cells import Plan
    from gilscope.toolkit.measure.prepare.preparation import Say
    from gilscope.toolkit.measure.schedule.scheduler import Reporter
    from gilscope.toolkit.model import Build, Cell

BASELINE = "serial"
PROGRAM = "gilscope.toolkit.experiments.{}.program"
RETAKES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How an experiment is to be run; kept with its run, so that it can go on as it began."""

    experiment: str
    effort: Effort
    rounds: int
    budget: float | None   # seconds
    timeout: float         # seconds a measured process may be silent
    seed: int

    def to_options(self) -> dict[str, Any]:
        """Return the form that JSON holds."""
        return dataclasses.asdict(self)

    @classmethod
    def from_options(cls, fields: Mapping[str, Any]) -> Asked:
        """Return what `to_options` was made from.

        Raises:
            BadFileError: a field is missing or unknown.
        """
        try:
            return cls(**{**typed(cls, fields, "the experiment"), "effort": Effort(fields["effort"])})
        except (KeyError, TypeError, ValueError) as error:
            raise BadFileError(f"run.json does not say how the experiment was made, so it cannot go on ({error})") \
                from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The builds with what is needed to start trials in them."""

    builds: tuple[Build, ...]
    pythons: Mapping[str, str]
    environment: Mapping[str, str]
    abilities: Mapping[str, Abilities]
    notes: tuple[Note, ...]


def prepare(experiments: Sequence[Experiment], builds: Sequence[Build], say: Say) -> Prepared:
    """Give every build the experiments' packages, as far as they can be had, and ask it what it can do.

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
        # Of what is needed only a tox environment can lack something; without the backport it lacks one model.
        if reason := made.missing.get(PYPERF):
            raise BuildError(f"{build.label} cannot be measured: pyperf is {reason}")
        pythons[build.label] = str(made.python)
        say(f"asking {build.label} what it can run")
        found = ask_build(
            str(made.python), environment, free_threaded=build.free_threaded,
            modules=[package.module for package in packages],
        )
        abilities[build.label] = with_installer_reasons(found, made.missing)
    notes = tuple(Note(text=sentence) for sentence in version_mismatches(abilities))
    return Prepared(builds=tuple(builds), pythons=pythons, environment=environment, abilities=abilities, notes=notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """Says how the trials of one experiment are started."""

    experiment: Experiment
    prepared: Prepared
    scales: Mapping[str, float]
    folder: Path

    def start(self, cell: Cell, settings: Settings, loops: int) -> Start:  # noqa: ARG002 - a trial is one loop
        """Return how the trial of `cell` is started."""
        free_threaded = {build.label for build in self.prepared.builds if build.free_threaded}
        spec = TrialSpec(
            name=cell.name,
            progress_timeout=settings.timeout,
            folder=str(self.folder),
            program=PROGRAM.format(self.experiment.program),
            build=cell.build,
            model=cell.runner,
            workers=cell.workers,
            gil=wanted_gil(cell.runner),
            parameters=dict(cell.parameters),
            scales=dict(self.scales),
            host=sys.executable,
        )
        environment = {
            **self.prepared.environment, **gil_control(cell, free_threaded), **self.experiment.environment(cell)
        }
        return Start(python=self.prepared.pythons[cell.build], spec=spec, environment=environment)


def wanted_gil(model: str) -> bool | None:
    """Return the state of the GIL that the model stands for; None: as the build has it."""
    if model.startswith("free-threaded"):
        return False
    return True if model == "threads" else None


def plan(experiment: Experiment, asked: Asked, prepared: Prepared) -> Plan:
    """Return the experiment's cells on these builds."""
    return experiment.plan(Setting(
        builds=prepared.builds, abilities=prepared.abilities, cores=usable_cores(), effort=asked.effort,
        scales=experiment.levels[asked.effort].scales,
    ))


def begin(experiment: Experiment, asked: Asked, prepared: Prepared, results: Path) -> tuple[Store, Run]:
    """Plan the experiment and make its folder below `results`.

    Raises:
        ToolkitError: nothing of it can be measured; the message says why.
        LabelTakenError: it was run under this label before.
    """
    planned = plan(experiment, asked, prepared)
    if not planned.cells:
        reasons = sorted({f"  {skip.cell.build} {skip.cell.runner}: {skip.reason}" for skip in planned.skips})
        raise ToolkitError("\n".join([f"nothing of {experiment.name} can be measured:", *reasons]))
    run = Run(
        label=f"{results.name}/{experiment.name}",
        started=now(),
        builds=prepared.builds,
        machine=this_machine(),
        seed=asked.seed,
        rounds_planned=asked.rounds,
        rounds_done=0,
        stopped="running",
        baseline=BASELINE,
        measurements=(),
        cells=planned.cells,
        skips=planned.skips,
        notes=prepared.notes,
        options=asked.to_options(),
    )
    store = Store.create(experiment.name, results)
    store.save(run)  # there to go on with, however soon this one ends
    return store, run


def measure(
    experiment: Experiment, asked: Asked, prepared: Prepared, store: Store, run: Run, *, folder: Path,
    reporter: Reporter,
) -> Run:
    """Measure the rounds that `run` lacks and return it; it is saved whatever ends it.

    Of a run that has all its rounds they are those in which a cell failed; it is returned as it is where none did.

    Raises:
        KeyboardInterrupt: after what was measured was saved.
    """
    only, rounds = None, asked.rounds
    if run.rounds_done >= rounds:
        more, only = still_lacking(run, rounds)
        if not more:
            return run
        rounds = run.rounds_done + more
        run = dataclasses.replace(run, rounds_planned=rounds)
    settings = Settings(
        rounds=rounds, values=1, warmups=0, min_seconds=0.0, timeout=asked.timeout, budget=asked.budget,
        retakes=0 if asked.effort is Effort.SMOKE else RETAKES, seed=asked.seed,
    )
    trials = Trials(
        experiment=experiment, prepared=prepared, scales=experiment.levels[asked.effort].scales, folder=folder
    )
    turns = Turns(alone=False, waiting=lambda: reporter.note("waiting for a fleet's run that measures on this machine"))
    return Scheduler(run, store, trials, settings, reporter, only=only, turn=turns.turn).go()
