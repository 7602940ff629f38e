"""Both sides of a comparison measured anew, in turn, in one run: each with its own interpreters, modules and packages.

A side's work is that of its run; what it is done by is what is there now, so whatever a run did not keep (the user's
code of then) has to be there still, in a folder of its own.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.runners.catalog import RUNNERS
from gilscope.toolkit.builds.pairing import compare_builds
from gilscope.toolkit.commands.output.printing import say
from gilscope.toolkit.commands.run.builds_of_earlier_run import builds_now
from gilscope.toolkit.commands.run.measuring import Asked, measure_plan, refuse_empty
from gilscope.toolkit.errors import BuildError, ToolkitError
from gilscope.toolkit.measure.plan.cells import expand
from gilscope.toolkit.measure.plan.record import Request
from gilscope.toolkit.measure.prepare.preparation import Prepared, prepare
from gilscope.toolkit.model import Note, Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.measure.plan.cells import Selection
    from gilscope.toolkit.model import Build

LEAST_ROUNDS = 6   # fewer in the earlier runs were a first look


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """What the user wants of the new run."""

    label: str | None            # None: date and time
    rounds: int | None           # None: as many as the earlier runs had
    budget: float | None         # seconds
    path: Path | None            # where the first side's modules are now; None: where they were


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one side is measured with."""

    label: str                   # of its run
    builds: tuple[Build, ...]    # named anew where both sides have the same names
    paths: tuple[Path, ...]
    packages: tuple[str, ...]


def measure_again(
    first: Run, second: Run, asked: Again, folder: Path,
) -> tuple[Run, list[tuple[str, str]]]:
    """Measure both sides of two runs anew, in turn.

    Returns:
        The new run, and which build of it stands for the first and for the second side, in pairs.

    Raises:
        ToolkitError: the runs have not the same work, both sides would be the same now, or an interpreter is gone or
            another version now.
    """
    requests = [Request.from_options(run.options) for run in (first, second)]
    selection = _common(first, second, requests)
    pairs = _pairs(first, second)
    paths = [_folders(requests[0], asked.path), _folders(requests[1])]
    sides = [
        Side(label=run.label, paths=folders, packages=request.packages,
             builds=builds_now((pair[place] for pair in pairs), run.label, "so that side cannot be measured again"))
        for place, (run, request, folders) in enumerate(zip((first, second), requests, paths, strict=True))
    ]
    _refuse_equal(sides, selection, asked.path)
    sides = _named(sides)
    prepared = _prepared(sides, selection, folder)
    plan = expand(selection, prepared.subjects, prepared.builds, RUNNERS, prepared.abilities)
    refuse_empty(plan)
    settings = replace(
        requests[0].settings, rounds=asked.rounds or max(first.rounds_done, second.rounds_done, LEAST_ROUNDS),
        budget=asked.budget, resolution=None, where_open=False, seed=random.SystemRandom().randrange(2**32),
    )
    labels = [(one.label, other.label) for one, other in zip(sides[0].builds, sides[1].builds, strict=True)]
    unfair = [note for one, other in zip(sides[0].builds, sides[1].builds, strict=True)
              for note in compare_builds(one, other)]
    done = measure_plan(
        Asked(selection=selection, settings=settings, paths=sides[1].paths, packages=sides[1].packages,
              label=asked.label, timeout_asked=False, again=(first.label, second.label),
              notes=(*unfair, *_notes(sides, selection))),
        prepared, plan, folder)
    return done, labels


def _common(first: Run, second: Run, requests: Sequence[Request]) -> Selection:
    """Return what both runs were asked for."""
    one, other = (request.selection for request in requests)
    for what, values in (
        ("function of yours", [one.user and one.user.function, other.user and other.user.function]),
        ("payloads", [one.user and (one.user.payloads, one.user.payload, one.user.tasks),
                      other.user and (other.user.payloads, other.user.payload, other.user.tasks)]),
        ("size", [one.size, other.size]),
    ):
        if values[0] != values[1]:
            raise ToolkitError(
                f"{first.label} and {second.label} have not the same work, so there is nothing to measure again: "
                f"{what} {_said(values[0])} and {_said(values[1])}")
    lists: dict[str, Any] = {
        name: tuple(each for each in getattr(one, name) if each in getattr(other, name))
        for name in ("workloads", "models", "workers", "phases", "task_seconds")
    }
    for name, shared in lists.items():
        if not shared and (getattr(one, name) or getattr(other, name)):
            raise ToolkitError(f"{first.label} and {second.label} have no {name.replace('_', ' ')} in common, so there "
                               "is nothing to measure again")
    return replace(one, **lists, controls=one.controls and other.controls)


def _said(value: object) -> str:
    return "none" if value is None else repr(value)


def _pairs(first: Run, second: Run) -> list[tuple[Build, Build]]:
    """Return which build of the first run stands against which of the second: of one name, or the only ones."""
    if len(first.builds) == len(second.builds) == 1:
        return [(first.builds[0], second.builds[0])]
    others = {build.label: build for build in second.builds}
    pairs = [(build, others[build.label]) for build in first.builds if build.label in others]
    if not pairs:
        names = [", ".join(build.label for build in run.builds) for run in (first, second)]
        raise ToolkitError(f"{first.label} has {names[0]} and {second.label} has {names[1]}: no build has the same "
                           "name in both, so it is not known which to measure against which. Measure them in one run: "
                           "gilscope run --build LABEL=PATH --build LABEL=PATH")
    return pairs


def _folders(request: Request, instead: Path | None = None) -> tuple[Path, ...]:
    if instead is not None and not instead.is_dir():
        raise ToolkitError(f"--path {instead}: {'not a folder' if instead.exists() else 'there is no such folder'}")
    return tuple(map(Path, request.paths)) if instead is None else (instead.resolve(),)


def _refuse_equal(sides: Sequence[Side], selection: Selection, named: Path | None) -> None:
    """Refuse to measure twice what is one thing now."""
    one, other = sides
    if [b.executable for b in one.builds] != [b.executable for b in other.builds] or one.packages != other.packages:
        return
    if selection.user is None or one.paths == other.paths:
        code = "" if selection.user is None else (
            f" and {selection.user.function} in {', '.join(map(str, one.paths))}. {_advice(one, named)}")
        raise ToolkitError(f"both sides would be the same now: {', '.join(b.executable for b in one.builds)}{code}")


def _advice(side: Side, named: Path | None) -> str:
    """Return how the code of then is had beside that of now, in a folder that is not there yet."""
    if named is not None:
        return f"--path {named} is where the other side's code is: name the folder that has that of {side.label}"
    folder = next(name for name in map("../before{}".format, ("", *range(2, 1000))) if not Path(name).exists())
    return (f"What it was when {side.label} was made is not kept: have that code in a folder of its own (git worktree "
            f"add {folder} COMMIT) and name it: --path {folder}")


def _named(sides: Sequence[Side]) -> list[Side]:
    """Return the sides with names of builds that tell them apart: "3.14-before" and "3.14-after"."""
    names = [{build.label for build in side.builds} for side in sides]
    if not names[0] & names[1]:
        return [*sides]
    return [replace(side, builds=tuple(replace(build, label=f"{build.label}-{side.label}") for build in side.builds))
            for side in sides]


def _prepared(sides: Sequence[Side], selection: Selection, folder: Path) -> Prepared:
    found = []
    for side in sides:
        try:
            found.append(prepare(
                selection, side.builds, paths=side.paths, packages=side.packages, folder=folder, say=say))
        except BuildError as error:
            raise BuildError(f"the side of {side.label} cannot be measured again: {error}") from error
        except ToolkitError as error:
            raise ToolkitError(f"the side of {side.label} cannot be measured again: {error}") from error
    one, other = found
    return Prepared(
        builds=(*one.builds, *other.builds), pythons=one.pythons | other.pythons,
        environments=one.environments | other.environments, abilities=one.abilities | other.abilities,
        notes=tuple(dict.fromkeys((*one.notes, *other.notes))), subjects=one.subjects,
    )


def _notes(sides: Sequence[Side], selection: Selection) -> list[Note]:
    """Return whose code of when it is."""
    if selection.user is None:
        return []
    places = [f"{', '.join(map(str, side.paths))} for {side.label}" for side in sides]
    return [Note(text=f"{selection.user.function} is what is there now: in {places[0]}, in {places[1]}")]
