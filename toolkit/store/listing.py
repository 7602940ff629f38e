"""What runs there are, by label, and how each stands.  Values are not read: a list of hundreds comes at once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import BadFileError, SaveError, UnknownNameError
from gilscope.toolkit.store.fleet import Fleet, is_fleet, read_fleet
from gilscope.toolkit.store.header import HEADER, LOCK, is_held, read_header, read_json
from gilscope.toolkit.store.labels import FLEET, RESULTS, labels
from gilscope.toolkit.store.transfer_rounds import put_waiting

if TYPE_CHECKING:
    from gilscope.toolkit.model import Run

_UNREADABLE = "~"


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
    try:
        put_waiting(folder)
    except (BadFileError, SaveError) as error:
        problem = str(error)
    for host in fleet.hosts:
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


def find_label(label: str, results: Path = RESULTS) -> Path:
    """Return the folder of one existing run, given its label or its path.

    Raises:
        UnknownNameError: there is no such run, or there are several under that label; the message lists them.
    """
    found = find_runs(label, results)
    if len(found) > 1 or not _is_there(found[0] / HEADER):
        names = ", ".join(f"{label.rstrip('/')}/{path.name}" for path in found)
        raise UnknownNameError(f"{label!r} holds several runs: name one of {names}")
    return found[0]


def find_runs(label: str, results: Path = RESULTS) -> list[Path]:
    """Return the folders of the runs that `label` or a path stands for: one, or several that were made together.

    Raises:
        UnknownNameError: there is none; the message lists those there are.
        SaveError: of a host's run nothing is in its files yet, and what waits cannot be put there.
        BadFileError: likewise, as it is damaged.
    """
    for path in (results / label, Path(label)):
        put_waiting(path)
        if _is_there(path / HEADER):
            return [path]
        if below := sorted((each.parent for each in path.glob(f"*/{HEADER}")), key=_begun):
            return below
    known = ", ".join(labels(results)[-8:]) or "none yet"
    raise UnknownNameError(f"no run called {label!r} under {results.resolve()}; there: {known}")


def _is_there(header: Path) -> bool:
    """Return whether anything of that name is there: who reads a pipe or a loop as a run says what it is."""
    return header.exists(follow_symlinks=False)


def _begun(path: Path) -> str:
    """Return when the run in `path` was started, something later than all of them where that cannot be read."""
    try:
        return str(read_json(path / HEADER).get("started", _UNREADABLE))
    except BadFileError:
        return _UNREADABLE
