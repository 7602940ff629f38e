"""Write today's findings into the `suppress` list of pyproject.toml, for `--learn`: from then on only new ones fail.

The text is edited, so that its comments and order survive: there is a list of places where entries can be inserted, and
the first counts with which the file parses to what it was and the new entries.
"""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.own_files import known_as
from gilscope.toolkit.race.report.settings import TABLE, UNREVIEWED, relative
from gilscope.toolkit.race.report.text import by_variable
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from gilscope.toolkit.race.report.model import Race, RaceReport

    Entry = Mapping[str, str]


def learn(report: RaceReport, path: Path) -> str:
    """Add an entry for each variable with a race to the file; return the sentence on it, "" if there is none.

    Raises:
        BadFileError: The file is missing, cannot be read or written, or has a form in which no entry can be inserted.
    """
    entries = [_entry(group, report.root) for group in by_variable(report.races)]
    if not entries:
        return ""
    try:
        text = path.read_bytes().decode()
        _replace(path.resolve(), with_entries(text, entries).encode())    # a symbolic link remains one
    except OSError as error:
        raise BadFileError(f"--learn writes into {path}: {error.strerror}") from error
    except ValueError as error:
        rows = "\n".join(f"    {_inline(entry)}," for entry in entries)
        raise BadFileError(f"--learn cannot edit {path}: {error}; add these to the list suppress of [{TABLE}]:\n"
                           f"{rows}") from error
    added = counted(len(entries), "new entry", "new entries")
    return f"{path.name}: {added} in suppress of [{TABLE}], {UNREVIEWED}: write why in each"


def _replace(path: Path, content: bytes) -> None:
    """Replace a file's content at once: a full disk or a killed process leaves the old one."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_bytes(content)
        shutil.copymode(path, aside)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def _entry(group: Sequence[Race], root: str) -> Entry:
    """Return the entry that suppresses the races of one variable, and those alone as far as an entry can say so."""
    paths = [{side.place.path for side in (race.first, race.second)} for race in group]
    file = {"file": _file(min(common), root)} if (common := set.intersection(*paths)) else {}
    return {"variable": _printable(group[0].base), **file, "why": UNREVIEWED}


def _file(path: str, root: str) -> str:
    """Return a pattern for the path that holds on other machines, too."""
    inside = relative(path, root)
    return _printable(inside if not os.path.isabs(inside) else f"*/{known_as(path).lstrip('/')}")


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)


def with_entries(text: str, entries: Sequence[Entry]) -> str:
    """Return the text of a pyproject.toml with more entries in its `suppress` list.

    Raises:
        ValueError: The text is no TOML, or the list has a form that is not known here.
    """
    document = tomllib.loads(text)
    table = document.setdefault("tool", {}).setdefault("gilscope", {}).setdefault("race", {})
    table["suppress"] = [*table.get("suppress", []), *entries]
    for candidate in _candidates(text, entries):
        if _parsed(candidate) == document:
            return candidate
    raise ValueError("its suppress list has a form that is not known")


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _candidates(text: str, entries: Sequence[Entry]) -> Iterator[str]:
    """Yield texts with the entries inserted at every place that may be the right one, the most likely first."""
    end = "\r\n" if "\r\n" in text else "\n"
    rows = "".join(f"    {_inline(entry)},{end}" for entry in entries)
    begin = text.find("suppress")
    closings = [place for place in range(begin, len(text)) if text[place] == "]"] if begin >= 0 else []
    for place in closings:     # a list that is there; its last entry may lack the comma
        before, after = text[:place].rstrip(" \t"), text[place:]
        if before.endswith("\n"):
            yield before + rows + after
            yield _with_comma(before) + rows + after
        else:
            yield f"{before},{end}{rows}{after}"
            yield f"{before}{end}{rows}{after}"
    whole = f"suppress = [{end}{rows}]{end}"
    head = f"[{TABLE}]"
    if (place := text.find(head)) >= 0 and (line := text.find("\n", place)) >= 0:
        yield text[:line + 1] + whole + text[line + 1:]
    ended = text if not text or text.endswith("\n") else text + end
    yield f"{ended}{end}[[{TABLE}.suppress]]{end}" + f"{end}[[{TABLE}.suppress]]{end}".join(
        "".join(f"{name} = {_quoted(value)}{end}" for name, value in entry.items()) for entry in entries)
    yield f"{ended}{end}{head}{end}{whole}"


def _with_comma(text: str) -> str:
    """Return the text with a comma behind its last inline table, which may have a comment behind it."""
    place = text.rfind("}") + 1
    return f"{text[:place]},{text[place:]}"


def _inline(entry: Entry) -> str:
    return f"{{ {', '.join(f'{name} = {_quoted(value)}' for name, value in entry.items())} }}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
