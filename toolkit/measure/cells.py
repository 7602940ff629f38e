"""Expand a selection into cells and skips.  Pure: the abilities of the builds are arguments."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import UnknownNameError, suggestion
from gilscope.toolkit.measure.child.spec import UserTarget  # noqa: TC001 - run.json is checked against it
from gilscope.toolkit.model import Build, Cell, Phase, Skip, SkipKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gilscope.runners.base import Runner
    from gilscope.toolkit.measure.abilities import Abilities
    from gilscope.workloads.base import Workload

BASELINE = "serial"
CONTROL = "threads"  # on a free-threaded build it has the GIL turned on
AWAITING = "asyncio"  # the baseline of a coroutine function, with one task in flight


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The cells to compare, as the user selected them."""

    workloads: tuple[str, ...]  # names in gilscope.workloads.catalog
    user: UserTarget | None
    models: tuple[str, ...]  # runner names
    workers: tuple[int, ...]  # ascending
    phases: tuple[Phase, ...]
    size: str
    task_seconds: tuple[float, ...] = ()  # lengths of a task; empty: the workload's own
    controls: bool = True  # include threads with the GIL on a free-threaded build, which nobody would choose


@dataclass(frozen=True, slots=True)
class PlannedSubject:
    """The properties of a workload, or of the user's function, that a plan depends on."""

    name: str
    has_sync: bool
    has_async: bool
    has_units: bool = False
    shared: str | None = None
    requires: tuple[str, ...] = ()  # modules that the blocking form imports
    async_requires: tuple[str, ...] = ()  # modules that the async form imports
    unpicklable: str | None = None  # why its payloads cannot be sent to another interpreter or process
    notes: tuple[str, ...] = ()  # what to know of the user's function before it is measured

    @classmethod
    def of(cls, workload: Workload) -> PlannedSubject:
        """Return the properties of a workload of the catalogue."""
        return cls(
            workload.name,
            has_sync=True,
            has_async=workload.async_task is not None,
            has_units=workload.units is not None,
            shared=workload.shared,
            requires=workload.requires,
            async_requires=workload.async_requires,
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """The cells to measure, in the order of the tables, and the skipped ones."""

    cells: tuple[Cell, ...]
    skips: tuple[Skip, ...] = field(default=())


def expand(
    selection: Selection,
    subjects: Sequence[PlannedSubject],
    builds: Sequence[Build],
    runners: Sequence[Runner],
    abilities: Mapping[str, Abilities],
) -> Plan:
    """Return every cell of the matrix, each either to be measured or skipped with its reason.

    The baseline is always measured on every build: without it there is no ratio.  Each workload has two A/A arms: the
    baseline of the first build and the widest parallel cell, each measured a second time.

    Args:
        selection: The user's selection.
        subjects: The workloads, in order.
        builds: The builds, in order; the others are compared with the first.
        runners: All runners, in the order of the tables.
        abilities: By build label.
    """
    cells: list[Cell] = []
    skips: list[Skip] = []
    for subject in subjects:
        for phase in selection.phases:
            for task_seconds in selection.task_seconds or (None,):
                group: list[Cell] = []
                for build in builds:
                    for cell, runner in _cells(selection, subject, phase, task_seconds, build, runners):
                        reason = skip_reason(cell, runner, subject, abilities[build.label])
                        if build.free_threaded and runner.name == CONTROL and not selection.controls:
                            reason = "the control, with the GIL turned on: not part of a first look"
                        if reason is not None:
                            skips.append(Skip(cell=cell, reason=reason))
                        elif obstacle := work_obstacle(runner, subject, abilities[build.label]):
                            skips.append(Skip(cell=cell, reason=obstacle, kind=SkipKind.WORK_CANNOT))
                        else:
                            group.append(cell)
                cells += [*group, *_aa_arms(group, runners)]
    return Plan(tuple(cells), tuple(skips))


def baseline_of(subjects: Sequence[PlannedSubject]) -> str:
    """Return the baseline's runner: "serial", or "asyncio" for a coroutine function, which has no serial form."""
    return BASELINE if all(subject.has_sync for subject in subjects) else AWAITING


def _cells(
    selection: Selection,
    subject: PlannedSubject,
    phase: Phase,
    task_seconds: float | None,
    build: Build,
    runners: Sequence[Runner],
) -> Iterator[tuple[Cell, Runner]]:
    for runner in runners:
        if runner.name != BASELINE and runner.name not in selection.models:
            continue
        for workers in _workers(runner, subject, selection.workers):
            yield (
                Cell(
                    workload=subject.name,
                    runner=runner.name,
                    workers=workers,
                    build=build.label,
                    phase=phase,
                    task_seconds=task_seconds,
                ),
                runner,
            )


def _workers(runner: Runner, subject: PlannedSubject, requested: Sequence[int]) -> Sequence[int]:
    """Return the worker counts of a runner: one for the baseline, and for an event loop that has nothing to await."""
    if runner.name == BASELINE or (runner.awaits and not subject.has_async and 1 in requested):
        return (1,)
    if runner.awaits and not subject.has_async:
        return requested[-1:]  # `skip_reason` skips it
    if runner.awaits and not subject.has_sync:
        return sorted({1, *requested})  # one task in flight is its baseline
    return requested


def skip_reason(cell: Cell, runner: Runner, subject: PlannedSubject, abilities: Abilities) -> str | None:
    """Return the reason why the build or the model cannot run the cell, or None; one text for all cells of a reason."""
    if reason := abilities.runners[runner.name]:
        return reason
    if not subject.has_sync and not runner.awaits:
        return "it is a coroutine function: only asyncio awaits it"
    if runner.awaits and not subject.has_async and cell.workers > 1:
        return "it awaits nothing, so its tasks would run one after another"
    if cell.task_seconds is not None and not subject.has_units:
        return "its tasks have no adjustable length (gilscope list shows which have)"
    if subject.shared is not None and subject.shared not in runner.shares:
        return f"its workers cannot share a {subject.shared}"
    return None


def work_obstacle(runner: Runner, subject: PlannedSubject, abilities: Abilities) -> str | None:
    """Return the reason why the work cannot run in a cell that build and model could run, or None."""
    if runner.pickles and (obstacle := subject.unpicklable or abilities.results):
        return obstacle
    importable = abilities.isolated if runner.isolated else abilities.modules
    needed = subject.async_requires if runner.awaits and subject.has_async else subject.requires
    return next((reason for module in needed if (reason := importable.get(module))), None)


def _aa_arms(group: Sequence[Cell], runners: Sequence[Runner]) -> list[Cell]:
    """Return the A/A arms of one workload: the first baseline, and the widest parallel cell of the last build.

    An event loop is the latter only if there is no other parallel cell: one thread has the noise of one core.
    """
    loops = {runner.name for runner in runners if runner.awaits}
    baselines = [cell for cell in group if cell.runner == BASELINE]
    several = [cell for cell in group if cell.workers > 1]
    parallel = [cell for cell in several if cell.runner not in loops] or several
    widest = [cell for cell in parallel if cell.workers == max(each.workers for each in parallel)]
    return [replace(cell, twin=True) for cell in (*baselines[:1], *widest[-1:])]


def choose_runners(names: Sequence[str], runners: Sequence[Runner]) -> tuple[str, ...]:
    """Return the runners of these names; the name of a family, as "processes", stands for all of its runners.

    Raises:
        UnknownNameError: there is no such runner.
    """
    chosen: list[str] = []
    for name in names:
        matching = [runner.name for runner in runners if name in {runner.name, runner.family}]
        if not name or not matching:
            known = [runner.name for runner in runners]
            hint = suggestion(name, known, f"; there are {', '.join(known)}")
            raise UnknownNameError(f"unknown model {name!r}{hint}; `gilscope list` shows all")
        chosen += [each for each in matching if each not in chosen]
    return tuple(chosen)
