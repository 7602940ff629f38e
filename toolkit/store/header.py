"""`run.json`: everything of a run but its values, and whether a process is still writing it."""

from __future__ import annotations

import dataclasses
import datetime
import fcntl
import functools
import os
from typing import IO, TYPE_CHECKING, Any

from gilscope.toolkit.bounded_reading import SETTINGS, parse_json, read_text
from gilscope.toolkit.errors import BadFileError, LabelTakenError, ToolkitError, cannot_write
from gilscope.toolkit.model import Build, Cell, Failure, Machine, Note, Phase, Run, Skip
from gilscope.toolkit.store.checking import REMEDY, DamagedError, check_header, typed

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "run.json"
FORMAT = "gilscope run"
LOCK = ".lock"
VERSION = 1


def read_header(path: Path) -> Run:
    """Return the run in the folder `path` without its values.

    A run that is being measured says "running"; one that says so and that no process holds was killed.

    Raises:
        BadFileError: run.json is missing, damaged or of a later version, or a build's values are gone.
    """
    file = path / HEADER
    fields = read_json(file)
    if fields.get("format") != FORMAT:
        raise BadFileError(f"{file} is not a gilscope run: its format is {fields.get('format')!r}")
    if fields.get("version") != VERSION:
        raise BadFileError(
            f"{file} has version {fields.get('version')!r}, this gilscope reads {VERSION}; "
            "read it with the gilscope that wrote it"
        )
    run = parse_header(fields, file)
    for build in run.builds:
        if _measured(run, build) and not os.path.lexists(suite_path(path, build.label)):
            raise BadFileError(f"{suite_path(path, build.label)} is missing, with all values of {build.label}")
    return dataclasses.replace(run, stopped="killed") if run.stopped == "running" and not is_held(path) else run


def _measured(run: Run, build: Build) -> bool:
    """Return whether there must be values of `build`: it has cells which neither failed nor were skipped."""
    ended = {failure.cell for failure in run.failures} | {skip.cell for skip in run.skips}
    return run.rounds_done > 0 and any(cell.build == build.label and cell not in ended for cell in run.cells)


def suite_path(path: Path, build: str) -> Path:
    """Return where the run in `path` keeps the values of `build`."""
    return path / f"{build}.json"


def locked(path: Path) -> IO[str]:
    """Return the lock of the run in `path`, which is held until it is closed or the process ends, however it ends.

    Raises:
        LabelTakenError: another process holds it.
        ToolkitError: it cannot be had here.
    """
    try:
        lock = (path / LOCK).open("w")
    except OSError as error:
        raise cannot_write(f"to {path.resolve()}", error) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise LabelTakenError(f"another gilscope is writing {path}: wait for it, or choose another --label") from None
    except OSError as error:
        lock.close()
        raise ToolkitError(f"cannot lock {path.resolve()}: {error.strerror}") from error
    return lock


def is_held(path: Path) -> bool:
    """Return whether some process is writing the run in `path`."""
    try:
        with (path / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False   # a copy without its lock, or no locks here: nobody writes that could tell
    return False


def replace_file(path: Path, text: str) -> None:
    """Write `text` to `path` in one step."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)


def read_json(path: Path, most: int = SETTINGS) -> dict[str, Any]:
    """Return the JSON object in the file `path`.

    Raises:
        BadFileError: it is missing, no regular file, cannot be read, is larger than `most` bytes, cut off or no object.
    """
    try:
        found = parse_json(read_text(path, most))
    except FileNotFoundError:
        raise BadFileError(f"{path} is missing") from None
    except OSError as error:
        raise BadFileError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadFileError(f"{path} is cut off or not JSON: {error}{REMEDY}") from error
    if not isinstance(found, dict):
        raise BadFileError(f"{path} holds a {type(found).__name__}, not a run{REMEDY}")
    return found


def _cell(fields: Any, where: str) -> Cell:
    fields = typed(Cell, fields, where)
    parameters = tuple((name, value) for name, value in fields.get("parameters", ()))
    return Cell(**{**fields, "phase": Phase(fields.get("phase", Phase.STEADY)), "parameters": parameters})


def header(run: Run) -> dict[str, Any]:
    """Return what run.json holds of `run`: everything but the values, which are in the suites."""
    fields = {field.name: getattr(run, field.name) for field in dataclasses.fields(run) if field.name != "measurements"}
    return {"format": FORMAT, "version": VERSION} | {name: _plain(value) for name, value in fields.items()}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def parse_header(header: dict[str, Any], path: Path) -> Run:
    """Return the run without its values that `header` tells of; messages name it `path`.

    Raises:
        BadFileError: it says what cannot be.
    """
    fields = {name: value for name, value in header.items() if name not in {"format", "version"}}
    try:
        typed(Run, {**fields, "measurements": []}, "the run")
        datetime.datetime.fromisoformat(fields["started"])
        run = Run(**{name: _parse(name, value) for name, value in fields.items()}, measurements=())
    except (DamagedError, ValueError) as error:
        raise BadFileError(f"{path} lacks what a gilscope run has, or was edited: {error}{REMEDY}") from error
    check_header(run, path)
    return run


def _parse(name: str, value: Any) -> Any:
    if name == "machine":
        return Machine(**typed(Machine, value, name))
    if not isinstance(value, list):
        return value
    each = functools.partial(_ENTRIES[name], where=f"an entry of {name}")
    return tuple(map(each, value))


def _failure(fields: Any, where: str) -> Failure:
    fields = typed(Failure, fields, where)
    return Failure(**fields | {"cell": _cell(fields["cell"], f"{where}.cell")})


def _skip(fields: Any, where: str) -> Skip:
    fields = typed(Skip, fields, where)
    return Skip(**fields | {"cell": _cell(fields["cell"], f"{where}.cell")})


_ENTRIES = {
    "builds": lambda fields, where: Build(**typed(Build, fields, where)),
    "notes": lambda fields, where: Note(**typed(Note, fields, where)),
    "cells": _cell, "answered": _cell, "skips": _skip, "failures": _failure,
}
