"""Requirements files in the format of pip, with the files and constraints that they name; reads files only."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from gilscope.toolkit.bounded_reading import read_text
from gilscope.toolkit.errors import BadFileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from packaging.specifiers import SpecifierSet

_OPTION = re.compile(r"(-\w|--[\w-]+)[\s=]*(.*)")
_NAMELESS = re.compile(r"[./~]|\w:[\\/]|[\w+]+://|[^@;]+[/\\][^@;]*$|[^@;\s]+\.(whl|zip|tar\.gz)$")   # paths and URLs


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What a requirements file asks for."""

    requirements: tuple[str, ...]
    left_out: tuple[str, ...]        # paths, repositories and editable installs: they have no name and no version
    options: tuple[str, ...] = ()    # options for pip, which are not followed: "--hash", "--index-url"


def requirement_lines(path: Path) -> tuple[str, ...]:
    """Return the requirements in a requirements file and in those that it includes; see `listed`."""
    return listed(path).requirements


def listed(path: Path) -> Listed:
    """Return what a requirements file and those that it includes ask for, within the constraints that they name.

    Raises:
        BadFileError: one cannot be read.
    """
    found: list[str] = []
    limits: list[str] = []
    left_out: list[str] = []
    options: list[str] = []
    for option, text in _entries(path, ()):
        if option == "-c":
            limits.append(text)
        elif option in {"-e", "--editable"} or (not option and _NAMELESS.match(text)):
            left_out.append(text)
        elif option:
            options.append(option)
        else:
            found.append(text)
    return Listed(requirements=tuple(_limited(found, limits)), left_out=tuple(left_out),
                  options=tuple(dict.fromkeys(options)))


def _entries(path: Path, seen: tuple[Path, ...]) -> Iterator[tuple[str, str]]:
    """Yield what the lines of a file ask for: "" and a requirement, or an option and what it is about.

    The requirements of a file of constraints come with the option that names the file.
    """
    for line in re.sub(r"\\\n", " ", _text(path)).splitlines():
        words = re.sub(r"(^|\s)#.*", "", line).strip()
        option = _OPTION.match(words)
        if option is None:
            text, *own = re.split(r"\s(?=--\w)", words)
            if text.strip():
                yield "", text.strip()
            yield from ((re.split(r"[\s=]", each)[0], "") for each in own)   # --hash and the like
            continue
        name, about = option[1], option[2].strip()
        kind = {"-r": "", "--requirement": "", "-c": "-c", "--constraint": "-c"}.get(name)
        included = path.parent / about
        if kind is None:
            yield name, about
        elif included.resolve() not in seen:
            for inner, text in _entries(included, (*seen, path.resolve())):
                yield (kind or inner), text


def _text(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BadFileError(f"{path} cannot be read: {why}") from error


def _limited(requirements: Iterable[str], limits: Iterable[str]) -> Iterator[str]:
    """Yield the requirements, each with what the constraints say of it; those of what these need are not applied."""
    said: dict[str, SpecifierSet] = {}
    for text in limits:
        with contextlib.suppress(InvalidRequirement):
            limit = Requirement(text)
            said[canonicalize_name(limit.name)] = limit.specifier
    for text in requirements:
        try:
            wanted = Requirement(text)
        except InvalidRequirement:
            yield text   # who asked says so
            continue
        limit_said = said.get(canonicalize_name(wanted.name))
        if limit_said is not None and not wanted.url:
            wanted.specifier &= limit_said
            yield str(wanted)
        else:
            yield text
