"""`run.json`: everything of a run except its values; and the lock of the process that writes it."""

from __future__ import annotations

import dataclasses
import datetime
import os
from typing import IO, TYPE_CHECKING, Any

from gilscope.toolkit.bounded_reading import SETTINGS, parse_json, read_text
from gilscope.toolkit.errors import BadFileError, LabelTakenError, SaveError, ToolkitError, cannot_write
from gilscope.toolkit.file_locks import try_lock
from gilscope.toolkit.model import Run
from gilscope.toolkit.records import from_plain, shown, to_plain
from gilscope.toolkit.store.checking import REMEDY, check_header

if TYPE_CHECKING:
    from pathlib import Path

    from gilscope.toolkit.model import Build

HEADER = "run.json"
FORMAT = "gilscope run"
LOCK = ".lock"
PENDING = ".blocks"   # folder of received rounds that are not merged into the suites yet, see `transfer_rounds`
VERSION = 1
FORMER_OF_MACHINE = {"autogroup"}   # fields that earlier gilscopes wrote, and none reads


def read_header(path: Path) -> Run:
    """Return the run in the folder `path` without its values.

    A run that is stored as running, but that no process has locked, was killed.

    Raises:
        BadFileError: run.json is missing, damaged or of a later version, or a build's values are gone.
    """
    file = path / HEADER
    run = parse_header(read_versioned(file, FORMAT, VERSION), file)
    for build in run.builds:
        if _measured(run, build) and not os.path.lexists(suite_path(path, build.label)):
            raise BadFileError(f"{suite_path(path, build.label)} is missing, with all values of {build.label}")
    return dataclasses.replace(run, stopped="killed") if run.stopped == "running" and not is_held(path) else run


def _measured(run: Run, build: Build) -> bool:
    """Return True if `build` must have values: some of its cells neither failed nor were skipped."""
    ended = {failure.cell for failure in run.failures} | {skip.cell for skip in run.skips}
    return run.rounds_done > 0 and any(cell.build == build.label and cell not in ended for cell in run.cells)


def suite_path(path: Path, build: str) -> Path:
    """Return the path of the values of `build` in the run in `path`."""
    return path / f"{build}.json"


def lock_folder(path: Path) -> IO[str]:
    """Lock the run in `path`, and return the lock, which lasts until it is closed or the process ends.

    Raises:
        LabelTakenError: Another process has locked it.
        ToolkitError: The file cannot be written or locked.
    """
    try:
        file = (path / LOCK).open("w")
    except OSError as error:
        raise cannot_write(f"to {path.resolve()}", error) from error
    try:
        if try_lock(file):
            return file
    except OSError as error:
        file.close()
        raise ToolkitError(f"cannot lock {path.resolve()}: {error.strerror}") from error
    file.close()
    raise LabelTakenError(f"another gilscope is writing {path}: wait for it, or choose another --label")


def is_held(path: Path) -> bool:
    """Return True if a process is writing the run in `path`."""
    try:
        with (path / LOCK).open() as file:
            return not try_lock(file, shared=True)
    except OSError:
        return False   # a copy without a lock file, or a file system without locks: a writer cannot be detected


def replace_file(path: Path, text: str) -> None:
    """Replace the file `path` by one with `text`, atomically."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)


def read_versioned(file: Path, form: str, version: int) -> dict[str, Any]:
    """Return the fields of a JSON file that says of which form and version it is, without these two.

    Raises:
        BadFileError: It cannot be read, or is of another form or version.
    """
    fields = read_json(file)
    found, number = fields.pop("format", None), fields.pop("version", None)
    if found != form:
        raise BadFileError(f"{file} is not a {form}: its format is {shown(found)}")
    if number != version:
        raise BadFileError(f"{file} has version {shown(number)}, this gilscope reads {version}; read it with the "
                           "gilscope that wrote it")
    return fields


def cannot_save(path: Path, error: OSError, label: str = "") -> SaveError:
    """Return the error of a run, or of the fleet's run `label`, that cannot be written to `path`."""
    resume = " ".join(filter(None, ["--resume", label]))
    return SaveError(f"cannot save {path.resolve()}: {error.strerror}; everything saved before is intact: free disk "
                     f"space, then continue with {resume}")


def read_json(path: Path, most: int = SETTINGS) -> dict[str, Any]:
    """Return the JSON object in the file `path`.

    Raises:
        BadFileError: It is missing, no regular file, unreadable, larger than `most` bytes, cut off or no JSON object.
    """
    try:
        fields = parse_json(read_text(path, most))
    except FileNotFoundError:
        raise BadFileError(f"{path} is missing") from None
    except OSError as error:
        raise BadFileError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadFileError(f"{path} is cut off or not JSON: {error}{REMEDY}") from error
    if not isinstance(fields, dict):
        raise BadFileError(f"{path} holds a {type(fields).__name__}, not a run{REMEDY}")
    return fields


def header(run: Run) -> dict[str, Any]:
    """Return the content of run.json: everything of `run` except the values, which are in the suites."""
    fields = to_plain(dataclasses.replace(run, measurements=()))
    del fields["measurements"]
    return {"format": FORMAT, "version": VERSION} | fields


def parse_header(header: dict[str, Any], path: Path) -> Run:
    """Return the run, without its values, that `header` describes; messages name the file `path`.

    Raises:
        BadFileError: A field is damaged or was edited.
    """
    fields = {name: value for name, value in header.items() if name not in {"format", "version"}}
    if isinstance(machine := fields.get("machine"), dict):
        fields["machine"] = {name: value for name, value in machine.items() if name not in FORMER_OF_MACHINE}
    try:
        run = from_plain(Run, fields | {"measurements": []})
        for session in run.sessions:
            datetime.datetime.fromisoformat(session.started)
    except ValueError as error:
        raise BadFileError(f"{path} lacks what a gilscope run has, or was edited: {error}{REMEDY}") from error
    check_header(run, path)
    return run
