"""What the trial of a user's function means for the run: refuse it, leave builds out, warn, allow more time."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from gilscope.runners.catalog import RUNNERS
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.measure.plan import estimate
from gilscope.toolkit.measure.prepare.preparation import question_spec
from gilscope.toolkit.measure.prepare.trial import Trial, try_out
from gilscope.toolkit.model import Failure
from gilscope.toolkit.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gilscope.toolkit.measure.plan.cells import Selection
    from gilscope.toolkit.measure.plan.settings import Settings
    from gilscope.toolkit.measure.prepare.preparation import Prepared, Say
    from gilscope.toolkit.model import Cell

LONG_SECONDS = 600.0   # a run that may take longer is worth a warning
SLOWER = 4.0           # than on its own a pass may be beside others, or where its tasks get in each other's way


def try_builds(
    selection: Selection, prepared: Prepared, folder: Path, *, timeout: float, say: Say
) -> dict[str, Trial]:
    """Call the user's function for a second in every build that can import it; return what came of it, by build.

    Raises:
        ToolkitError: it fails in all of them, or does not return in the first.
    """
    if selection.user is None:
        return {}
    (subject,) = prepared.subjects
    question = dataclasses.replace(
        question_spec(folder, user=selection.user, workload=subject.name), progress_timeout=timeout
    )
    awaits = any(runner.awaits and runner.name in selection.models for runner in RUNNERS)
    trials: dict[str, Trial] = {}
    for build in prepared.builds:
        if any(prepared.abilities[build.label].modules.get(module) for module in subject.requires):
            continue  # its cells are skipped with the reason
        say(f"trying {subject.name} on {build.label}")
        trial = try_out(
            question, prepared.pythons[build.label], prepared.environments[build.label], build=build.label,
            awaits=awaits, say=say,
        )
        trials[build.label] = trial
        if trial.problem is not None and trial.problem.kind == "hang" and len(trials) == 1:
            break  # to wait as long in every other build would tell nothing new
    if trials and all(trial.problem is not None for trial in trials.values()):
        raise ToolkitError("\n".join(group_problems(trials)))
    for text in (*group_problems(trials), *warnings(trials, subject.name, selection.models)):
        say(text)
    return trials


def group_problems(trials: Mapping[str, Trial]) -> list[str]:
    """Return each distinct problem once, with the builds that have it."""
    builds: dict[str, list[str]] = {}
    for build, trial in trials.items():
        if trial.problem is not None:
            builds.setdefault(trial.problem.text, []).append(build)
    return [f"on {', '.join(labels)}: {text}" for text, labels in builds.items()]


def failed_cells(cells: Sequence[Cell], trials: Mapping[str, Trial]) -> tuple[Failure, ...]:
    """Return the cells that need not be measured, as their function fails on its own there already."""
    awaiting = {runner.name for runner in RUNNERS if runner.awaits}
    found = []
    for cell in cells:
        problem = trials[cell.build].problem if cell.build in trials else None
        if problem is not None and (cell.runner in awaiting or not problem.awaits):
            found.append(Failure(cell=cell, kind=problem.kind, reason=problem.reason, output=problem.text, round=0))
    return tuple(found)


def allow_time(settings: Settings, trials: Mapping[str, Trial], *, asked: bool, say: Say) -> Settings:
    """Return the settings with a time limit that one pass keeps to; only warn where the limit was asked for."""
    seconds = max((trial.pass_seconds for trial in trials.values()), default=0.0)
    if seconds <= settings.timeout / SLOWER:
        return settings
    told = f"one serial pass over all payloads takes about {format_seconds(seconds)}"
    if asked:
        if seconds > settings.timeout:
            say(f"{told}, more than --timeout allows ({format_seconds(settings.timeout)}): the cells will fail")
        return settings
    longer = SLOWER * seconds
    say(f"{told}, so it may take up to {format_seconds(longer)} (--timeout) before it counts as hanging")
    return dataclasses.replace(settings, timeout=longer)


def warn_of_length(cells: Sequence[Cell], settings: Settings, trials: Mapping[str, Trial], say: Say) -> None:
    """Say how long the run may take where that is long; with a budget it ends in time anyway."""
    seconds = [trials[cell.build].pass_seconds for cell in cells if cell.build in trials]
    passes = estimate.passes(settings, max(seconds, default=0.0))
    total = sum(seconds) * passes * settings.rounds
    if settings.budget is None and total > LONG_SECONDS:
        say(f"{len(cells)} cells, {settings.rounds} rounds and {passes} passes over the payloads in each may take "
            f"{total / 60:.0f} min: --budget 5m ends it in time; fewer payloads, --models or --rounds make it shorter")


def warnings(trials: Mapping[str, Trial], function: str, models: Sequence[str]) -> list[str]:
    """Return what a user should know before the rounds begin."""
    told = []
    others = ("processes", "subinterpreters", "interpreter-pool", "dask")
    apart = [model for model in models if model.startswith(others)]
    printing = [build for build, trial in trials.items() if trial.printed]
    if printing:
        told.append(f"{function} prints: that goes to a file and is not shown, and its time is measured, too")
    if apart and (reason := next((each.unpicklable for each in trials.values() if each.unpicklable), None)):
        told.append(f"{function}: {reason}, so no worker of {', '.join(apart)} can hand it back")
    return told
