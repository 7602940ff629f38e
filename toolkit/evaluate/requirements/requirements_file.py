"""Read requirements files in pip's format, with the requirements and constraints files that they include."""

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
class RequirementsFile:
    """The contents of a requirements file, including the files that it names."""

    requirements: tuple[str, ...]
    left_out: tuple[str, ...]        # paths, repositories and editable installs: they have no name and no version
    options: tuple[str, ...] = ()    # options for pip, which are ignored: "--hash", "--index-url"


def requirement_lines(path: Path) -> tuple[str, ...]:
    """Return the requirements in a requirements file; see `read_requirements_file`."""
    return read_requirements_file(path).requirements


def read_requirements_file(path: Path) -> RequirementsFile:
    """Return the contents of a requirements file and the files that it includes, with constraints applied.

    Raises:
        BadFileError: One of the files cannot be read.
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
    return RequirementsFile(requirements=tuple(_constrain(found, limits)), left_out=tuple(left_out),
                            options=tuple(dict.fromkeys(options)))


def _entries(path: Path, seen: tuple[Path, ...]) -> Iterator[tuple[str, str]]:
    """Yield the lines of a file: ("", requirement) or (option, its value), and ("-c", requirement) for constraints."""
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


def _constrain(requirements: Iterable[str], constraints: Iterable[str]) -> Iterator[str]:
    """Yield the requirements, narrowed by the constraints; constraints on dependencies of theirs are ignored."""
    limits: dict[str, SpecifierSet] = {}
    for text in constraints:
        with contextlib.suppress(InvalidRequirement):
            constraint = Requirement(text)
            limits[canonicalize_name(constraint.name)] = constraint.specifier
    for text in requirements:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            yield text   # the caller reports it
            continue
        limit = limits.get(canonicalize_name(requirement.name))
        if limit is not None and not requirement.url:
            requirement.specifier &= limit
            yield str(requirement)
        else:
            yield text
