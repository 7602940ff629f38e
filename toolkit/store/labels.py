"""Labels and the folders they stand for."""

from __future__ import annotations

import datetime
import os
import re
from pathlib import Path
from typing import IO

from gilscope.toolkit.errors import LabelTakenError, ToolkitError, cannot_write
from gilscope.toolkit.store.header import HEADER, lock_folder

RESULTS = Path("results")
FLEET = "fleet.json"   # in the folder of a run on several hosts, beside a folder for each host's run
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")


def default_label() -> str:
    """Return a label that no other run has: date, time and process id."""
    return datetime.datetime.now().astimezone().strftime("%Y%m%d-%H%M%S") + f"-{os.getpid()}"


def can_be_label(text: str) -> bool:
    """Return True if `text` can be a label, which is a folder's name."""
    return _LABEL.fullmatch(text) is not None


def label_path(label: str, results: Path = RESULTS) -> Path:
    """Return the folder of `label`.

    Raises:
        ToolkitError: `label` cannot be a folder's name.
    """
    if not can_be_label(label):
        raise ToolkitError(
            f"{label!r} cannot be a label: use letters, digits, '.', '_', '+' and '-', a letter or digit first"
        )
    return results / label


def new_folder(label: str, results: Path = RESULTS) -> tuple[Path, IO[str]]:
    """Create the folder of a new run, and return it with its lock.

    Raises:
        LabelTakenError: There is a run of that name.
        ToolkitError: The folder cannot be written.
    """
    path = label_path(label, results)
    if path.exists():
        raise label_taken(path)
    try:
        path.mkdir(parents=True)
    except FileExistsError as error:
        if path.exists():
            raise label_taken(path) from None
        raise ToolkitError(f"cannot write results to {path.resolve()}: {results} is a file") from error
    except OSError as error:
        raise cannot_write(
            f"results to {path.resolve()}", error, "; run gilscope in a folder you may write to") from error
    return path, lock_folder(path)


def label_taken(path: Path) -> LabelTakenError:
    """Return the error for a new run whose folder `path` exists already."""
    return LabelTakenError(f"{path} exists already: choose another --label, or continue that run with --resume "
                           f"{path.name}")


def label_of(label: str, path: Path, results: Path = RESULTS) -> str:
    """Return the label or path under which the run in `path` is found: the stored `label`, unless it is a copy."""
    place = path.absolute()
    if place.as_posix().endswith(f"/{label}"):
        return label
    return place.relative_to(results.absolute()).as_posix() if place.is_relative_to(results.absolute()) else str(path)


def find_fleet(label: str, results: Path = RESULTS) -> Path | None:
    """Return the folder of the fleet's run with a label or at a path; None if there is no such run."""
    for path in (results / label, Path(label)):
        if (path / HEADER).is_file():
            return None
        if (path / FLEET).is_file():
            return path
    return None


def labels(results: Path = RESULTS) -> list[str]:
    """Return the labels under `results`, the oldest first; "LABEL/EXPERIMENT" for experiments."""
    headers = [*results.glob(f"*/{HEADER}"), *results.glob(f"*/*/{HEADER}")]
    headers = [path for path in headers if path.is_file()]   # a dangling or circular link is not
    headers.sort(key=lambda path: path.stat().st_mtime)
    return [path.parent.relative_to(results).as_posix() for path in headers]
