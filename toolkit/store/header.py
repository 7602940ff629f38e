"""`run.json`: everything of a run but its values, and whether a process is still writing it."""

from __future__ import annotations

import dataclasses
import datetime
import fcntl
import json
import os
from typing import IO, TYPE_CHECKING, Any

from gilscope.toolkit.errors import BadFileError, LabelTakenError, ToolkitError
from gilscope.toolkit.model import MOST_LOOKS, Build, Cell, Failure, Machine, Note, Phase, Run, Skip

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FORMAT = "gilscope run"
LOCK = ".lock"
VERSION = 1


def read_header(path: Path) -> Run:
    """Return the run in the folder `path` without its values.

    A run that is being measured says "running"; one that says so and that no process holds was killed.

    Raises:
        BadFileError: run.json is missing, damaged or of a later version, or a build's values are gone.
    """
    file = path / "run.json"
    fields = read_json(file)
    if fields.get("format") != FORMAT:
        raise BadFileError(f"{file} is not a gilscope run: its format is {fields.get('format')!r}")
    if fields.get("version") != VERSION:
        raise BadFileError(
            f"{file} has version {fields.get('version')!r}, this gilscope reads {VERSION}; "
            "read it with the gilscope that wrote it"
        )
    run = _parse_header(fields, file)
    for build in run.builds:
        if _measured(run, build) and not suite_path(path, build.label).exists():
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
        raise ToolkitError(f"cannot write to {path.resolve()}: {error.strerror}") from error
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


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in the file `path`.

    Raises:
        BadFileError: it is missing, cannot be read, is cut off or no object.
    """
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        raise BadFileError(f"{path} is missing") from None
    except OSError as error:
        raise BadFileError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadFileError(f"{path} is cut off or not JSON: {error}") from error
    if not isinstance(found, dict):
        raise BadFileError(f"{path} holds a {type(found).__name__}, not a run")
    return found


def _cell(fields: Mapping[str, Any]) -> Cell:
    parameters = tuple((name, value) for name, value in fields.get("parameters", ()))
    return Cell(**{**fields, "phase": Phase(fields["phase"]), "parameters": parameters})


def header(run: Run) -> dict[str, Any]:
    """Return what run.json holds of `run`: everything but the values, which are in the suites."""
    fields = {field.name: getattr(run, field.name) for field in dataclasses.fields(run) if field.name != "measurements"}
    return {"format": FORMAT, "version": VERSION} | {name: _plain(value) for name, value in fields.items()}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


_PLAIN = {
    "label": str, "started": str, "seed": int, "rounds_planned": int, "rounds_done": int, "stopped": str,
    "baseline": str, "options": dict,
}


def _parse_header(header: dict[str, Any], path: Path) -> Run:
    fields = {name: value for name, value in header.items() if name not in {"format", "version"}}
    try:
        for name, kind in _PLAIN.items():
            if not isinstance(fields[name], kind):
                raise TypeError(f"{name} is {fields[name]!r}")   # noqa: TRY301 - one sentence for all that is wrong
        if (looks := fields.get("looks", 0)) not in range(MOST_LOOKS + 1):
            raise ValueError(f"looks is {looks!r}")   # noqa: TRY301 - likewise
        datetime.datetime.fromisoformat(fields["started"])
        return Run(
            **fields
            | {
                "builds": tuple(Build(**each) for each in fields["builds"]),
                "machine": Machine(**fields["machine"]),
                "skips": tuple(Skip(cell=_cell(each["cell"]), reason=each["reason"]) for each in fields["skips"]),
                "failures": tuple(Failure(**each | {"cell": _cell(each["cell"])}) for each in fields["failures"]),
                "cells": tuple(_cell(each) for each in fields["cells"]),
                "answered": tuple(_cell(each) for each in fields.get("answered", ())),
                "notes": tuple(Note(**each) for each in fields["notes"]),
                "measurements": (),
            }
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        detail = f"{type(error).__name__}: {error}"
        raise BadFileError(f"{path} lacks what a gilscope run has, or was edited: {detail}") from error
