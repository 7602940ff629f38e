"""What `gilscope experiment run` and `show` do: choose, measure one experiment after the other, report each."""

from __future__ import annotations

import dataclasses
import json
import random
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit import temporary
from gilscope.toolkit.builds.find import default_pair, find_builds, select_builds
from gilscope.toolkit.builds.pairing import compare_builds
from gilscope.toolkit.commands.output.dry_run import skipped
from gilscope.toolkit.commands.output.figures import draw_pictures, python_that_draws
from gilscope.toolkit.commands.output.printing import say
from gilscope.toolkit.commands.output.reports import Output, refuse_beside_dry_run
from gilscope.toolkit.commands.streams import inform
from gilscope.toolkit.errors import (
    BadFileError,
    BuildError,
    LabelTakenError,
    ToolkitError,
    UnknownNameError,
    cannot_write,
)
from gilscope.toolkit.experiments import catalog
from gilscope.toolkit.experiments.as_json import experiments_values
from gilscope.toolkit.experiments.base import Effort
from gilscope.toolkit.experiments.report import beside, document, experiment_of
from gilscope.toolkit.experiments.running import Asked, Prepared, begin, measure, plan, prepare
from gilscope.toolkit.model import Build
from gilscope.toolkit.report import RENDERERS
from gilscope.toolkit.report.progress import ProgressReporter
from gilscope.toolkit.store import RESULTS, Store, default_label, find_runs, label_path, load_run, read_json
from gilscope.toolkit.store.checking import DamagedError, typed
from gilscope.toolkit.units import format_minutes

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gilscope.toolkit.model import Run

ALL = "all"
REQUEST = "experiments.json"  # in results/LABEL: what was asked for together
FAILED = 3
FIXED = {  # what a resumed run cannot change: attribute of the command line, how a user writes it
    "name": "NAME", "effort": "--quick or --smoke", "builds": "--builds", "build": "--build", "rounds": "--rounds",
    "seed": "--seed", "label": "--label", "dry_run": "--dry-run",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for together; kept in results/LABEL."""

    builds: tuple[Build, ...]
    asked: tuple[Asked, ...]  # in the order in which they are run

    def save(self, target: Path) -> None:
        """Write it into the folder `target`."""
        fields = {
            "builds": [dataclasses.asdict(build) for build in self.builds],
            "asked": [each.to_options() for each in self.asked],
        }
        (target / REQUEST).write_text(json.dumps(fields, indent=1) + "\n")

    @classmethod
    def load(cls, target: Path) -> Request:
        """Return what `save` wrote.

        Raises:
            BadFileError: it is damaged.
        """
        fields = read_json(target / REQUEST)
        try:
            builds = tuple(Build(**typed(Build, each, "an entry of builds")) for each in fields["builds"])
            return cls(builds=builds, asked=tuple(Asked.from_options(each) for each in fields["asked"]))
        except (KeyError, TypeError, DamagedError) as error:
            raise BadFileError(f"{target / REQUEST} was edited: {type(error).__name__}: {error}") from error


def run(args: argparse.Namespace) -> int:
    """Measure what the command line asks for; return the exit code."""
    refuse_beside_dry_run(args)
    with tempfile.TemporaryDirectory(prefix=temporary.prefix()) as folder:
        return _start(args, Path(folder)) if args.resume is None else _resume(args, Path(folder))


def _start(args: argparse.Namespace, folder: Path) -> int:
    names = _chosen(args.name)
    label = args.label or default_label()
    target = label_path(label)
    if target.exists():
        raise LabelTakenError(f"{target} exists already: choose another --label, or go on with it by --resume {label}")
    builds = _builds(args)
    effort = args.effort or Effort.FULL
    seed = random.SystemRandom().randrange(2**32) if args.seed is None else args.seed
    request = Request(builds=builds, asked=tuple(_asked(args, name, effort, seed) for name in names))
    prepared = prepare([catalog.find(name) for name in names], builds, say)
    if args.dry_run:
        return _show_plans(request, prepared)
    try:
        target.mkdir(parents=True)
        request.save(target)
    except OSError as error:
        raise cannot_write(
            f"results to {target.resolve()}", error, "; run gilscope in a folder you may write to") from error
    say(f"{', '.join(names)} on {', '.join(build.label for build in builds)}, seed {seed}, results in {target}")
    return _go_through(request, prepared, target, folder, args)


def _chosen(names: Sequence[str]) -> list[str]:
    if not names:
        raise ToolkitError("name an experiment, or all; `gilscope experiment list` shows what there is")
    if ALL in names:
        return list(catalog.EXPERIMENTS)
    return [catalog.find(name).name for name in dict.fromkeys(names)]


def _builds(args: argparse.Namespace) -> tuple[Build, ...]:
    found = find_builds(args.build, project_dir=Path.cwd())
    if args.builds is not None:
        return select_builds(found, args.builds)
    if args.build:
        return select_builds(found, ",".join(each.partition("=")[0] for each in args.build))
    return default_pair(found)


def _asked(args: argparse.Namespace, name: str, effort: Effort, seed: int) -> Asked:
    level = catalog.find(name).levels[effort]
    budget = args.budget or (level.seconds if args.rounds is None and effort is Effort.QUICK else None)
    return Asked(
        experiment=name, effort=effort, rounds=args.rounds or level.rounds, budget=budget,
        timeout=args.timeout or catalog.find(name).timeout, seed=seed,
    )


def _show_plans(request: Request, prepared: Prepared) -> int:
    for asked in request.asked:
        experiment = catalog.find(asked.experiment)
        planned, level = plan(experiment, asked, prepared), experiment.levels[asked.effort]
        seconds = level.seconds * asked.rounds / level.rounds * len(request.builds) / 2  # a level's are for two builds
        counts = Counter(cell.build for cell in planned.cells)
        cells = ", ".join(f"{number} on {build}" for build, number in counts.items()) or "none"
        inform(f"{asked.experiment}: cells: {cells}; {asked.rounds} rounds, one process each; "
               f"about {format_minutes(min(seconds, asked.budget or seconds))}")
        for line in filter(None, skipped(planned)):
            inform(f"  {line}")
    return 0


def _resume(args: argparse.Namespace, folder: Path) -> int:
    if given := [option for name, option in FIXED.items() if getattr(args, name) not in (None, False, [])]:
        raise ToolkitError(f"{', '.join(given)} cannot be changed in a run that has begun: leave it out")
    target = _find_target(args.resume)
    request = Request.load(target)
    for build in request.builds:
        if not Path(build.executable).exists():
            raise BuildError(f"{build.label} is gone from {build.executable}, so {args.resume} cannot go on")
    asked = tuple(
        dataclasses.replace(each, budget=args.budget or each.budget, timeout=args.timeout or each.timeout)
        for each in request.asked
    )
    request = dataclasses.replace(request, asked=asked)
    prepared = prepare([catalog.find(each.experiment) for each in asked], request.builds, say)
    return _go_through(request, prepared, target, folder, args)


def _find_target(label: str) -> Path:
    for path in (RESULTS / label, Path(label)):
        if (path / REQUEST).is_file():
            return path
    known = ", ".join(sorted(path.parent.name for path in RESULTS.glob(f"*/{REQUEST}"))) or "none yet"
    raise UnknownNameError(f"no experiments called {label!r} under {RESULTS.resolve()}; there: {known}")


def _go_through(request: Request, prepared: Prepared, target: Path, folder: Path, args: argparse.Namespace) -> int:
    """Run what is not finished, one after the other, each with its report; one that cannot be run costs only itself."""
    mismatches = tuple(note for build in request.builds[1:] for note in compare_builds(request.builds[0], build))
    prepared = dataclasses.replace(prepared, notes=(*mismatches, *prepared.notes))
    python = _python_that_draws(args, target.name)   # before a measurement takes the machine
    output, reported = Output(args), []
    failed = False
    try:
        for number, asked in enumerate(request.asked, 1):
            say(f"{asked.experiment} ({number} of {len(request.asked)})")
            try:
                done = _finished(asked, prepared, target, folder, more_time=bool(args.resume and args.budget))
            except LabelTakenError:
                raise
            except ToolkitError as error:
                say(f"{asked.experiment}: {error}")
                failed = True
                continue
            failed = failed or bool(done.failed)
            _report(done, target / asked.experiment, output, python, keep=True)
            reported.append((done, target / asked.experiment))
    except KeyboardInterrupt:
        say(f"what was measured is kept: gilscope experiment run --resume {target.name} goes on")
        raise
    output.finish(lambda: experiments_values(reported))
    return FAILED if failed else 0


def _finished(asked: Asked, prepared: Prepared, target: Path, folder: Path, *, more_time: bool) -> Run:
    """Return the whole run of one experiment: begun, gone on with, or as it is when it ended and nothing failed.

    With `more_time` one that its budget ended goes on, too.
    """
    experiment = catalog.find(asked.experiment)
    path = target / experiment.name
    if (path / "run.json").is_file():
        store, run = Store.reopen(path)
        goes_on = {"running", "interrupted", "failures", *(["budget"] if more_time else [])}
        if run.stopped not in goes_on and run.rounds_done < run.rounds_planned:
            store.close()
            return load_run(path)
    else:
        store, run = begin(experiment, asked, prepared, target)
    try:
        with ProgressReporter(say) as reporter:
            return measure(experiment, asked, prepared, store, run, folder=folder, reporter=reporter)
    finally:
        store.close()


def _report(done: Run, path: Path, output: Output, python: Path | None, *, keep: bool) -> None:
    experiment = experiment_of(done)
    pictures = draw_pictures(done, path, python)
    if keep or pictures:   # else the figures that are named in it, drawn earlier, would be lost from it
        stored = document(experiment, done, path, beside(pictures))
        (path / "report.md").write_text(RENDERERS["markdown"](stored) + "\n", encoding="utf-8")
    output.show(document(experiment, done, path, pictures))


def show_again(args: argparse.Namespace) -> int:
    """Print the reports of earlier runs, and draw their figures again."""
    output = Output(args)
    runs = [(load_run(path), path) for path in find_runs(args.label)]
    python = _python_that_draws(args, args.label)
    for run_, path in runs:
        _report(run_, path, output, python, keep=False)
    output.finish(lambda: experiments_values(runs))
    return 0


def _python_that_draws(args: argparse.Namespace, label: str) -> Path | None:
    return None if args.no_figures else python_that_draws(f"gilscope experiment show {label}")
