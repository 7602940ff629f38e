"""`gilscope compare --again`: remeasure both sides of a comparison in one run, interleaved.

Each side has its own interpreters, modules and packages.  The work is that of the earlier run, done by the packages
and modules of today, so code of the user that the run did not store has to exist in a folder of its own.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.runners.catalog import RUNNERS
from gilscope.toolkit.builds.pairing import compare_builds
from gilscope.toolkit.commands.run.earlier_run import builds_now
from gilscope.toolkit.commands.run.measuring import RunJob, measure_plan, refuse_empty
from gilscope.toolkit.commands.streams import print_stderr
from gilscope.toolkit.errors import BuildError, ToolkitError
from gilscope.toolkit.measure.cells import expand
from gilscope.toolkit.measure.preparation import Preparation, prepare
from gilscope.toolkit.measure.settings import RunRequest
from gilscope.toolkit.model import Note, Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.measure.cells import Selection
    from gilscope.toolkit.model import Build

LEAST_ROUNDS = 6   # an earlier run with fewer was a first look


@dataclass(frozen=True, slots=True, kw_only=True)
class RemeasureRequest:
    """The options of the new run."""

    label: str | None            # None: date and time
    rounds: int | None           # None: as many as the earlier runs have
    budget: float | None         # seconds
    path: Path | None            # folder of the first side's modules; None: as in its run


@dataclass(frozen=True, slots=True, kw_only=True)
class RemeasuredSide:
    """The interpreters, modules and packages of one side."""

    label: str                   # the label of its run
    builds: tuple[Build, ...]    # renamed if both sides use the same names
    paths: tuple[Path, ...]
    packages: tuple[str, ...]


def measure_again(
    first: Run, second: Run, request: RemeasureRequest, folder: Path,
) -> tuple[Run, list[tuple[str, str]]]:
    """Remeasure both sides of two runs, interleaved.

    Returns:
        The new run, and pairs of its builds: of the first side and of the second.

    Raises:
        ToolkitError: The runs measured different work, both sides would be identical now, or an interpreter is gone or
            has another version.
    """
    requests = [RunRequest.from_options(run.options) for run in (first, second)]
    selection = _common(first, second, requests)
    pairs = _pairs(first, second)
    paths = [_folders(requests[0], request.path), _folders(requests[1])]
    sides = [
        RemeasuredSide(label=run.label, paths=folders, packages=request.packages,
                       builds=builds_now((pair[place] for pair in pairs), run.label,
                                         "so that side cannot be measured again"))
        for place, (run, request, folders) in enumerate(zip((first, second), requests, paths, strict=True))
    ]
    _refuse_equal(sides, selection, request.path)
    sides = _named(sides)
    prepared = _prepared(sides, selection, folder)
    plan = expand(selection, prepared.subjects, prepared.builds, RUNNERS, prepared.abilities)
    refuse_empty(plan)
    settings = replace(
        requests[0].settings, rounds=request.rounds or max(first.rounds_done, second.rounds_done, LEAST_ROUNDS),
        budget=request.budget, resolution=None, where_open=False, seed=random.SystemRandom().randrange(2**32),
    )
    labels = [(one.label, other.label) for one, other in zip(sides[0].builds, sides[1].builds, strict=True)]
    unfair = [note for one, other in zip(sides[0].builds, sides[1].builds, strict=True)
              for note in compare_builds(one, other)]
    done = measure_plan(
        RunJob(selection=selection, settings=settings, paths=sides[1].paths, packages=sides[1].packages,
               label=request.label, timeout_asked=False, again=(first.label, second.label),
               notes=(*unfair, *_notes(sides, selection))),
        prepared, plan, folder)
    return done, labels


def _common(first: Run, second: Run, requests: Sequence[RunRequest]) -> Selection:
    """Return the selection that both runs share."""
    one, other = (request.selection for request in requests)
    for what, values in (
        ("function of yours", [one.user and one.user.function, other.user and other.user.function]),
        ("payloads", [one.user and (one.user.payloads, one.user.payload, one.user.tasks),
                      other.user and (other.user.payloads, other.user.payload, other.user.tasks)]),
        ("size", [one.size, other.size]),
    ):
        if values[0] != values[1]:
            raise ToolkitError(
                f"{first.label} and {second.label} measured different work, so they cannot be measured again together: "
                f"{what} {_shown(values[0])} and {_shown(values[1])}")
    lists: dict[str, Any] = {
        name: tuple(each for each in getattr(one, name) if each in getattr(other, name))
        for name in ("workloads", "models", "workers", "phases", "task_seconds")
    }
    for name, shared in lists.items():
        if not shared and (getattr(one, name) or getattr(other, name)):
            raise ToolkitError(f"{first.label} and {second.label} have no {name.replace('_', ' ')} in common, so there "
                               "is nothing to measure again")
    return replace(one, **lists, controls=one.controls and other.controls)


def _shown(value: object) -> str:
    return "none" if value is None else repr(value)


def _pairs(first: Run, second: Run) -> list[tuple[Build, Build]]:
    """Return pairs of builds of both runs: those of one name, or the only build of each."""
    if len(first.builds) == len(second.builds) == 1:
        return [(first.builds[0], second.builds[0])]
    others = {build.label: build for build in second.builds}
    pairs = [(build, others[build.label]) for build in first.builds if build.label in others]
    if not pairs:
        names = [", ".join(build.label for build in run.builds) for run in (first, second)]
        raise ToolkitError(f"{first.label} has {names[0]} and {second.label} has {names[1]}: no build has the same "
                           "name in both, so it is unclear which to compare with which. Measure them in one run: "
                           "gilscope run --build LABEL=PATH --build LABEL=PATH")
    return pairs


def _folders(request: RunRequest, instead: Path | None = None) -> tuple[Path, ...]:
    if instead is not None and not instead.is_dir():
        raise ToolkitError(f"--path {instead}: {'not a folder' if instead.exists() else 'there is no such folder'}")
    return tuple(map(Path, request.paths)) if instead is None else (instead.resolve(),)


def _refuse_equal(sides: Sequence[RemeasuredSide], selection: Selection, named: Path | None) -> None:
    """Refuse two sides that are identical now."""
    one, other = sides
    if [b.executable for b in one.builds] != [b.executable for b in other.builds] or one.packages != other.packages:
        return
    if selection.user is None or one.paths == other.paths:
        code = "" if selection.user is None else (
            f" and {selection.user.function} in {', '.join(map(str, one.paths))}. {_advice(one, named)}")
        raise ToolkitError(f"both sides would be the same now: {', '.join(b.executable for b in one.builds)}{code}")


def _advice(side: RemeasuredSide, named: Path | None) -> str:
    """Return advice on checking out the earlier code into a new folder."""
    if named is not None:
        return f"--path {named} has the other side's code: name the folder with the code of {side.label}"
    folder = next(name for name in map("../before{}".format, ("", *range(2, 1000))) if not Path(name).exists())
    return (f"The code of {side.label} is not stored with the run: check it out into a folder of its own (git worktree "
            f"add {folder} COMMIT), and add --path {folder}")


def _named(sides: Sequence[RemeasuredSide]) -> list[RemeasuredSide]:
    """Return the sides with distinct names of builds, such as "3.14-before" and "3.14-after"."""
    names = [{build.label for build in side.builds} for side in sides]
    if not names[0] & names[1]:
        return [*sides]
    return [replace(side, builds=tuple(replace(build, label=f"{build.label}-{side.label}") for build in side.builds))
            for side in sides]


def _prepared(sides: Sequence[RemeasuredSide], selection: Selection, folder: Path) -> Preparation:
    preparations = []
    for side in sides:
        try:
            preparations.append(prepare(
                selection, side.builds, paths=side.paths, packages=side.packages, folder=folder, say=print_stderr))
        except BuildError as error:
            raise BuildError(f"the side of {side.label} cannot be measured again: {error}") from error
        except ToolkitError as error:
            raise ToolkitError(f"the side of {side.label} cannot be measured again: {error}") from error
    one, other = preparations
    return Preparation(
        builds=(*one.builds, *other.builds), pythons=one.pythons | other.pythons,
        environments=one.environments | other.environments, abilities=one.abilities | other.abilities,
        notes=tuple(dict.fromkeys((*one.notes, *other.notes))), subjects=one.subjects,
    )


def _notes(sides: Sequence[RemeasuredSide], selection: Selection) -> list[Note]:
    """Return a note on which code of the user each side ran."""
    if selection.user is None:
        return []
    places = [f"{', '.join(map(str, side.paths))} for {side.label}" for side in sides]
    return [Note(text=f"{selection.user.function} is the code as it is now: in {places[0]}, in {places[1]}")]
