"""What runs there are, and how each stands.  Their values are not read: a list of hundreds comes at once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import BadFileError, SaveError
from gilscope.toolkit.store.fleet import Fleet, is_fleet, read_fleet
from gilscope.toolkit.store.header import LOCK, is_held, read_header
from gilscope.toolkit.store.labels import FLEET, HEADER, RESULTS
from gilscope.toolkit.store.rounds import put_waiting

if TYPE_CHECKING:
    from pathlib import Path

    from gilscope.toolkit.model import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A run that is there, or a folder that should hold one."""

    label: str              # of experiments "LABEL/EXPERIMENT"
    run: Run | None         # without its values; of a fleet the first of its hosts' runs; None where none can be read
    problem: str = ""       # why it cannot be read
    fleet: Fleet | None = None   # of a run on several hosts: how they stand


def list_runs(results: Path = RESULTS) -> list[Listed]:
    """Return every run under `results`, the oldest first, and those that cannot be read at the end.

    The run of a fleet is one, however many hosts it has.
    """
    traces = [f"{depth}/{name}" for depth in ("*", "*/*") for name in (HEADER, LOCK, FLEET)]
    folders = {path.parent for trace in traces for path in results.glob(trace)}
    fleets = {folder for folder in folders if is_fleet(folder)}
    found = [_fleet(folder, results) if folder in fleets else _listed(folder, results)
             for folder in sorted(folders) if folder.parent not in fleets]
    return sorted((each for each in found if each is not None), key=_started)


def _listed(folder: Path, results: Path) -> Listed | None:
    if not (folder / HEADER).exists() and is_held(folder):
        return None   # a run that has just begun
    label = folder.relative_to(results).as_posix()
    try:
        return Listed(label=label, run=read_header(folder))
    except BadFileError as error:
        return Listed(label=label, run=None, problem=str(error))


def _fleet(folder: Path, results: Path) -> Listed | None:
    label = folder.relative_to(results).as_posix()
    try:
        fleet = read_fleet(folder)
    except BadFileError as error:
        return Listed(label=label, run=None, problem=str(error))
    problem = "no host has a round"
    for host in fleet.hosts:
        try:
            put_waiting(folder / host.name, f"{folder.name}/{host.name}")
        except (BadFileError, SaveError) as error:
            problem = str(error)
        if (folder / host.name / HEADER).exists():
            try:
                return Listed(label=label, fleet=fleet, run=read_header(folder / host.name))
            except BadFileError as error:
                problem = str(error)
    return None if is_held(folder) else Listed(label=label, fleet=fleet, run=None, problem=problem)


def _started(listed: Listed) -> datetime:
    latest = datetime.max.replace(tzinfo=UTC)
    if listed.run is None:
        return latest
    started = datetime.fromisoformat(listed.run.started)
    return started if started.tzinfo else started.replace(tzinfo=UTC)
