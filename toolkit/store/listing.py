"""What runs there are, and how each stands.  Their values are not read: a list of hundreds comes at once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.store.header import LOCK, is_held, read_header
from gilscope.toolkit.store.labels import HEADER, RESULTS

if TYPE_CHECKING:
    from pathlib import Path

    from gilscope.toolkit.model import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A run that is there, or a folder that should hold one."""

    label: str              # of experiments "LABEL/EXPERIMENT"
    run: Run | None         # without its values; None where it cannot be read
    problem: str = ""       # why it cannot be read


def list_runs(results: Path = RESULTS) -> list[Listed]:
    """Return every run under `results`, the oldest first, and those that cannot be read at the end."""
    traces = [f"{depth}/{name}" for depth in ("*", "*/*") for name in (HEADER, LOCK)]
    folders = {path.parent for trace in traces for path in results.glob(trace)}
    found = [_listed(folder, results) for folder in sorted(folders)]
    return sorted((each for each in found if each is not None), key=_started)


def _listed(folder: Path, results: Path) -> Listed | None:
    if not (folder / HEADER).exists() and is_held(folder):
        return None   # a run that has just begun
    label = folder.relative_to(results).as_posix()
    try:
        return Listed(label=label, run=read_header(folder))
    except BadFileError as error:
        return Listed(label=label, run=None, problem=str(error))


def _started(listed: Listed) -> datetime:
    latest = datetime.max.replace(tzinfo=UTC)
    if listed.run is None:
        return latest
    started = datetime.fromisoformat(listed.run.started)
    return started if started.tzinfo else started.replace(tzinfo=UTC)
