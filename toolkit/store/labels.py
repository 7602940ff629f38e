"""Labels and the folders they stand for.

A new run goes into one folder, see `results_folder`; runs are looked for in all of `results_folders`.
"""

from __future__ import annotations

import datetime
import os
import re
from pathlib import Path
from typing import IO, TYPE_CHECKING

from gilscope.toolkit import user_dirs
from gilscope.toolkit.errors import BadFileError, LabelTakenError, ToolkitError, cannot_write
from gilscope.toolkit.store.header import FORMAT, HEADER, lock_folder, read_json

if TYPE_CHECKING:
    from collections.abc import Iterator

# Build back ends look for packages in folders whose names are identifiers, and the least strict of them, setuptools'
# find_namespace_packages, in all folders without a dot in their names.
DEFAULT_RESULTS = Path(user_dirs.DEFAULT_RESULTS)
EARLIER_RESULTS = Path(user_dirs.EARLIER_RESULTS)
VARIABLE = user_dirs.RESULTS_VARIABLE
FLEET = "fleet.json"   # in the folder of a run on several hosts, beside a folder for each host's run
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")


def results_folder() -> Path:
    """Return the folder for new runs: $GILSCOPE_RESULTS, else `results` if it holds a run, else the default one."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen).expanduser()
    return EARLIER_RESULTS if any(map(_is_run, _headers(EARLIER_RESULTS))) else DEFAULT_RESULTS


def results_folders() -> tuple[Path, ...]:
    """Return the folders in which runs are looked for, that for new runs first."""
    return tuple(dict.fromkeys((results_folder(), DEFAULT_RESULTS, EARLIER_RESULTS)))


def _headers(results: Path) -> Iterator[Path]:
    for depth in ("*", "*/*"):
        yield from results.glob(f"{depth}/{HEADER}")


def _is_run(header: Path) -> bool:
    """Return True if the file is a run's header; other programs write files of that name, too."""
    try:
        return read_json(header).get("format") == FORMAT
    except BadFileError:
        return False


def default_label() -> str:
    """Return a label that no other run has: date, time and process id."""
    return datetime.datetime.now().astimezone().strftime("%Y%m%d-%H%M%S") + f"-{os.getpid()}"


def can_be_label(text: str) -> bool:
    """Return True if `text` can be a label, which is a folder's name."""
    return _LABEL.fullmatch(text) is not None


def label_path(label: str, results: Path | None = None) -> Path:
    """Return the folder of `label` in `results`; by default the existing one, or that of a new run.

    Raises:
        ToolkitError: `label` cannot be a folder's name.
    """
    if not can_be_label(label):
        raise ToolkitError(
            f"{label!r} cannot be a label: use letters, digits, '.', '_', '+' and '-', a letter or digit first"
        )
    if results is not None:
        return results / label
    places = [folder / label for folder in results_folders()]
    return next((place for place in places if place.exists()), places[0])


def new_folder(label: str, results: Path | None = None) -> tuple[Path, IO[str]]:
    """Create the folder of a new run, and return it with its lock.

    Raises:
        LabelTakenError: There is a run of that name.
        ToolkitError: The folder cannot be written.
    """
    path = label_path(label, results)
    if path.exists():
        raise label_taken(path)
    try:
        make_folder(path)
    except FileExistsError as error:
        if path.exists():
            raise label_taken(path) from None
        raise ToolkitError(f"cannot write results to {path.resolve()}: {path.parent} is a file") from error
    except OSError as error:
        raise cannot_write(
            f"results to {path.resolve()}", error, "; run gilscope in a folder you may write to") from error
    return path, lock_folder(path)


def make_folder(path: Path) -> None:
    """Create the folder of a run; git ignores the default folder for results, unless the user chose or made it.

    Raises:
        OSError: It exists, or cannot be written.
    """
    is_new = path.parent == DEFAULT_RESULTS and not os.environ.get(VARIABLE) and not DEFAULT_RESULTS.exists()
    path.mkdir(parents=True)
    if is_new:
        (DEFAULT_RESULTS / ".gitignore").write_text("*\n")


def label_taken(path: Path) -> LabelTakenError:
    """Return the error for a new run whose folder `path` exists already."""
    return LabelTakenError(f"{path} exists already: choose another --label, or continue that run with --resume "
                           f"{path.name}")


def label_of(label: str, path: Path) -> str:
    """Return the label or path under which the run in `path` is found: the stored `label`, unless it is a copy."""
    place = path.absolute()
    if place.as_posix().endswith(f"/{label}"):
        return label
    folders = (folder.absolute() for folder in results_folders())
    return next((place.relative_to(folder).as_posix() for folder in folders if place.is_relative_to(folder)), str(path))


def places_of(label: str, results: Path | None = None) -> list[Path]:
    """Return the paths that a label or path of a run may stand for, in `results` or wherever runs are looked for."""
    return [*(folder / label for folder in ([results] if results else results_folders())), Path(label)]


def find_fleet(label: str) -> Path | None:
    """Return the folder of the fleet's run with a label or at a path; None if there is no such run."""
    for path in places_of(label):
        if (path / HEADER).is_file():
            return None
        if (path / FLEET).is_file():
            return path
    return None


def labels(results: Path | None = None) -> list[str]:
    """Return the labels, the oldest first, in `results` or in all folders; "LABEL/EXPERIMENT" for experiments."""
    # A dangling or circular link is no file.
    headers = [(folder, path) for folder in ([results] if results else results_folders())
               for path in _headers(folder) if path.is_file()]
    headers.sort(key=lambda each: each[1].stat().st_mtime)
    return list(dict.fromkeys(path.parent.relative_to(folder).as_posix() for folder, path in headers))
