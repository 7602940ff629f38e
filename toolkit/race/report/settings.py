"""The settings for races in the project's pyproject.toml: `[tool.gilscope.race]`.

    [tool.gilscope.race]
    include = ["vendored"]
    notes = true
    suppress = [{ variable = "Account.*", kind = "lost update", file = "bank/*.py", why = "counted again at night" }]

Comments on lines, `# race: ok <why>`, come with the records of the checked program.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.bounded_reading import read_bytes
from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.race.terms import RaceKind

if TYPE_CHECKING:
    from pathlib import Path

    from gilscope.toolkit.race.report.model import Race

TABLE = "tool.gilscope.race"
UNREVIEWED = "unreviewed"     # the reason that --learn gives
KEYS = {"suppress": list, "include": list, "notes": bool}


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """One entry of the list; every pattern that it has must match."""

    variable: str | None
    kind: str | None
    file: str | None      # relative to the root of the report, or absolute; of either side
    why: str

    def covers(self, race: Race, root: str) -> bool:
        """Return True if the entry matches this race."""
        names = (race.variable, race.base)
        if self.variable is not None and not any(_matches(name, self.variable) for name in names):
            return False
        if self.kind is not None and not _matches(race.kind, self.kind):
            return False
        paths = {race.first.place.path, race.second.place.path}
        return self.file is None or any(
            _matches(name, self.file) for path in paths for name in (path, relative(path, root)))

    def describe(self) -> str:
        """Return the entry as a reader finds it."""
        parts = [f"{name} = {value!r}" for name, value in
                 (("variable", self.variable), ("kind", self.kind), ("file", self.file)) if value is not None]
        return f"the entry {{{', '.join(parts)}}} of [{TABLE}] suppress"


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceSettings:
    """The table, with defaults for what it leaves out."""

    suppressions: tuple[Suppression, ...] = ()
    include: tuple[str, ...] = ()
    notes: bool = False


def settings(path: Path | None) -> RaceSettings:
    """Read the table of a pyproject.toml.

    Raises:
        BadFileError: The file is no TOML, or the table holds something else than documented; names file and key.
    """
    if path is None or not path.is_file():
        return RaceSettings()
    try:
        source = read_bytes(path)
    except OSError as error:
        raise BadFileError(f"{path} cannot be read: {error.strerror}") from error
    if b"gilscope" not in source:
        return RaceSettings()      # most projects: spares the parser
    import tomllib

    try:
        document = tomllib.loads(source.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadFileError(f"{path} is no TOML: {error}") from error
    table: Any = document
    for name in ("tool", "gilscope", "race"):
        table = table.get(name, {}) if isinstance(table, dict) else table
    return _settings(path, table)


def _settings(path: Path, table: Any) -> RaceSettings:
    if not isinstance(table, dict):
        raise BadFileError(f"{path}: [{TABLE}] must be a table, not {table!r}")
    for key, value in table.items():
        if key not in KEYS:
            raise BadFileError(f"{path}: [{TABLE}] has no key {key!r}; it may have {', '.join(KEYS)}")
        if not isinstance(value, KEYS[key]):
            raise BadFileError(f"{path}: {TABLE}.{key} must be a {KEYS[key].__name__}, not {value!r}")
    include = table.get("include", [])
    if bad := [each for each in include if not isinstance(each, str)]:
        raise BadFileError(f"{path}: {TABLE}.include must hold names, not {bad[0]!r}")
    entries = tuple(_suppression(path, number, entry) for number, entry in enumerate(table.get("suppress", []), 1))
    return RaceSettings(suppressions=entries, include=tuple(include), notes=table.get("notes", False))


def _suppression(path: Path, number: int, entry: Any) -> Suppression:
    here = f"{path}: entry {number} of {TABLE}.suppress"
    if not isinstance(entry, dict):
        raise BadFileError(f'{here} must be a table such as {{ variable = "Account.*", why = "..." }}, not {entry!r}')
    allowed = ("variable", "kind", "file", "why")
    for key, value in entry.items():
        if key not in allowed:
            raise BadFileError(f"{here} has no key {key!r}; it may have {', '.join(allowed)}")
        if not isinstance(value, str) or not value:
            raise BadFileError(f"{here}: {key} must be a text, not {value!r}")
    if "why" not in entry:
        raise BadFileError(f"{here} needs a why: the reason for whoever reads it next")
    if not set(entry) - {"why"}:
        raise BadFileError(f"{here} needs a variable, kind or file, else it would hide everything")
    kind = entry.get("kind")
    if kind is not None and not any(_matches(known, kind) for known in RaceKind):
        raise BadFileError(f"{here}: no kind is called {kind!r}; there are {', '.join(RaceKind)}")
    return Suppression(variable=entry.get("variable"), kind=kind, file=entry.get("file"), why=entry["why"])


def _matches(text: str, glob: str) -> bool:
    """Match `*` and `?` alone: brackets are part of names like `counts['the']`."""
    return fnmatchcase(text, glob.replace("[", "[[]"))


def relative(path: str, root: str) -> str:
    """Return the path relative to the root where it is below it, with forward slashes; as it is elsewhere."""
    if root and path.startswith(root.rstrip(os.sep) + os.sep):
        path = path[len(root.rstrip(os.sep)) + 1:]
    return path.replace(os.sep, "/")
