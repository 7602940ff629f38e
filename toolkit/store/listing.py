"""The list of stored runs, by label, with the state of each.  Values are not read, so that hundreds list at once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import BadFileError, SaveError, UnknownNameError
from gilscope.toolkit.store.fleet import Fleet, is_fleet, read_fleet
from gilscope.toolkit.store.header import HEADER, LOCK, is_held, read_header, read_json
from gilscope.toolkit.store.labels import FLEET, labels, places_of, results_folder, results_folders
from gilscope.toolkit.store.transfer_rounds import merge_pending

if TYPE_CHECKING:
    from pathlib import Path

    from gilscope.toolkit.model import Run

_UNREADABLE = "~"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunListing:
    """A stored run, or a folder that should hold one."""

    label: str              # "LABEL/EXPERIMENT" for experiments
    run: Run | None         # without its values; for a fleet the first readable run of a host; None: unreadable
    problem: str = ""       # the reason why it cannot be read
    fleet: Fleet | None = None   # the hosts and their states, for a run on several hosts


def list_runs(results: Path | None = None) -> list[RunListing]:
    """Return every run under `results`, by default of all folders, the oldest first, with unreadable ones at the end.

    The run of a fleet is listed once, however many hosts it has.
    """
    listings: dict[str, RunListing] = {}
    for folder in [results] if results else results_folders():
        for each in _all_in(folder):
            listings.setdefault(each.label, each)   # that is the one that its label stands for
    return sorted(listings.values(), key=_started)


def _all_in(results: Path) -> list[RunListing]:
    traces = [f"{depth}/{name}" for depth in ("*", "*/*") for name in (HEADER, LOCK, FLEET)]
    folders = {path.parent for trace in traces for path in results.glob(trace)}
    fleets = {folder for folder in folders if is_fleet(folder)}
    listings = [_fleet(folder, results) if folder in fleets else _listed(folder, results)
             for folder in sorted(folders) if folder.parent not in fleets]
    return [each for each in listings if each is not None]


def _listed(folder: Path, results: Path) -> RunListing | None:
    if not (folder / HEADER).exists() and is_held(folder):
        return None   # a run that has just begun
    label = folder.relative_to(results).as_posix()
    try:
        return RunListing(label=label, run=read_header(folder))
    except BadFileError as error:
        return RunListing(label=label, run=None, problem=str(error))


def _fleet(folder: Path, results: Path) -> RunListing | None:
    label = folder.relative_to(results).as_posix()
    try:
        fleet = read_fleet(folder)
    except BadFileError as error:
        return RunListing(label=label, run=None, problem=str(error))
    problem = "no host has a round"
    try:
        merge_pending(folder)
    except (BadFileError, SaveError) as error:
        problem = str(error)
    for host in fleet.hosts:
        if (folder / host.name / HEADER).exists():
            try:
                return RunListing(label=label, fleet=fleet, run=read_header(folder / host.name))
            except BadFileError as error:
                problem = str(error)
    return None if is_held(folder) else RunListing(label=label, fleet=fleet, run=None, problem=problem)


def _started(listed: RunListing) -> datetime:
    latest = datetime.max.replace(tzinfo=UTC)
    if listed.run is None:
        return latest
    started = datetime.fromisoformat(listed.run.started)
    return started if started.tzinfo else started.replace(tzinfo=UTC)


def find_label(label: str, results: Path | None = None) -> Path:
    """Return the folder of one existing run, given its label or its path.

    Raises:
        UnknownNameError: There is no such run, or several have that label; the message lists them.
    """
    runs = find_runs(label, results)
    if len(runs) > 1 or not _is_there(runs[0] / HEADER):
        names = ", ".join(f"{label.rstrip('/')}/{path.name}" for path in runs)
        raise UnknownNameError(f"{label!r} holds several runs: name one of {names}")
    return runs[0]


def find_runs(label: str, results: Path | None = None) -> list[Path]:
    """Return the folders of the runs with a label or at a path: one run, or several that were made together.

    Raises:
        UnknownNameError: There is none; the message lists the existing labels.
        SaveError: A host's first rounds cannot be merged into its files.
        BadFileError: A host's first rounds are damaged.
    """
    for path in places_of(label, results):
        merge_pending(path)
        if _is_there(path / HEADER):
            return [path]
        if below := sorted((each.parent for each in path.glob(f"*/{HEADER}")), key=_begun):
            return below
    known = ", ".join(labels(results)[-8:]) or "none yet"
    folder = (results or results_folder()).resolve()
    raise UnknownNameError(f"no run called {label!r} under {folder}; existing labels: {known}")


def _is_there(header: Path) -> bool:
    """Return True if the path exists in any form; readers report pipes and symlink loops."""
    return header.exists(follow_symlinks=False)


def _begun(path: Path) -> str:
    """Return the start time of the run in `path`; a text that sorts after all times if it cannot be read."""
    try:
        return str(read_json(path / HEADER).get("started", _UNREADABLE))
    except BadFileError:
        return _UNREADABLE
