"""What an environment of ours is known to hold, kept in a file in it; that it is there says that the rest is whole."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gilscope.toolkit.model import Build

STAMP = "gilscope-environment.json"


@dataclass(slots=True, kw_only=True)
class Stamp:
    """What was installed, and what could not be."""

    base: str                       # identity of the interpreter it was made for
    installed: list[str] = field(default_factory=list)           # requirement strings
    failed: dict[str, tuple[float, str]] = field(default_factory=dict)  # requirement -> when, why


def identity(build: Build) -> str:
    """Return what changes when the interpreter is replaced by another one."""
    status = Path(build.base_executable).stat()
    return f"{build.base_executable}|{status.st_mtime_ns}|{status.st_size}"


def read_stamp(folder: Path, build: Build, python: Path) -> Stamp | None:
    """Return the stamp of an environment that is whole, made for this very interpreter, and has its `python`."""
    try:
        fields = json.loads((folder / STAMP).read_text())
        stamp = Stamp(base=fields["base"], installed=list(fields["installed"]),
                      failed={text: (float(when), str(why)) for text, (when, why) in fields["failed"].items()})
        return stamp if stamp.base == identity(build) and os.access(python, os.X_OK) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write_stamp(folder: Path, stamp: Stamp) -> None:
    """Put `stamp` in place in one step: a half-written one would make the environment again."""
    fresh = folder / f"{STAMP}.new"
    fresh.write_text(json.dumps({"base": stamp.base, "installed": stamp.installed, "failed": stamp.failed}, indent=1))
    fresh.replace(folder / STAMP)
