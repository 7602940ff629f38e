"""What a lock file pins: exact versions, and for most formats the files that an installer chooses from."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.evaluate.requirements.file import requirement_lines
from gilscope.toolkit.reading import read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

_KNOWN = "known are uv.lock, pylock.toml, poetry.lock and pinned requirements files"
_FOLDERS = frozenset({"editable", "virtual", "directory"})   # uv's words for parts of the project itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """One version that a lock file chose.  A lock for several platforms may have two of one name."""

    name: str                    # normalised
    version: str
    wheels: tuple[str, ...]      # file names
    sdist: bool
    marker: str = ""             # where it applies, PEP 508; "" everywhere
    files_known: bool = True     # False: the format does not list files
    url: str = ""                # where it comes from, when that is no index
    needs: tuple[str, ...] = ()  # names of what it asks for, as far as the format tells

    @property
    def pin(self) -> str:
        """Return it as a requirement."""
        if self.url:
            return f"{self.name} @ {self.url}" + (f" ; {self.marker}" if self.marker else "")
        return f"{self.name}=={self.version}" + (f" ; {self.marker}" if self.marker else "")


def read_lock(path: Path) -> tuple[Locked, ...]:
    """Return what the lock file `path` pins, without the project itself, by name.

    uv.lock, pylock.toml (PEP 751), poetry.lock, and requirements files in which every line is pinned.

    Raises:
        BadFileError: it is damaged, of another kind, or not pinned; the message says which.
    """
    if not path.is_file():
        raise BadFileError(f"{path} is a folder, no lock file" if path.is_dir() else f"there is no file {path}")
    if path.suffix not in {".toml", ".lock"}:
        found = _from_requirements(path)
    else:
        document = _document(path)
        try:
            found = list(_reader(document)(document))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise BadFileError(
                f"{path} does not look like a lock file of its kind ({type(error).__name__}: {error}); {_KNOWN}"
            ) from error
    return tuple(sorted(found, key=lambda each: (each.name, each.version)))


def _reader(document: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], Iterator[Locked]]:
    """Return what reads a document of this kind, whatever its file is called."""
    if "lock-version" in document:
        return _from_pylock
    return _from_poetry if "metadata" in document else _from_uv


def _document(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadFileError(f"{path} cannot be read as TOML: {error}; {_KNOWN}") from error


def _from_uv(document: Mapping[str, Any]) -> Iterator[Locked]:
    """Yield uv's packages; those that are folders of the project (editable, virtual) are not pinned by it."""
    if "version" not in document:
        raise ValueError("no version of the format")
    for package in document["package"]:
        if _FOLDERS & package["source"].keys():
            continue
        # A fork has markers of its own; together they say where this version applies.
        markers = [str(each) for each in package.get("resolution-markers", ())]
        yield Locked(
            name=canonicalize_name(package["name"]),
            version=str(package.get("version", "")),
            wheels=_names(package.get("wheels", ())),
            sdist="sdist" in package,
            marker=" or ".join(f"({each})" for each in markers) if len(markers) > 1 else "".join(markers),
            needs=_needs(package.get("dependencies", ())),
        )


def _from_pylock(document: Mapping[str, Any]) -> Iterator[Locked]:
    if not str(document["lock-version"]).startswith("1."):
        raise ValueError(f"lock-version {document['lock-version']!r}, this reads 1.x")
    # `pip lock` names the one file that suits the Python it runs on; other tools name all that there are.
    one_platform = document.get("created-by") == "pip"
    for package in document["packages"]:
        if "directory" in package:
            continue
        yield Locked(
            name=canonicalize_name(package["name"]),
            version=str(package.get("version", "")),
            wheels=_names(package.get("wheels", ())),
            sdist="sdist" in package or "vcs" in package or "archive" in package,
            marker=str(package.get("marker", "")),
            files_known=not one_platform,
            needs=_needs(package.get("dependencies", ())),
        )


def _from_poetry(document: Mapping[str, Any]) -> Iterator[Locked]:
    elsewhere = document.get("metadata", {}).get("files", {})   # lock files before 2.0
    for package in document["package"]:
        if package.get("source", {}).get("type") == "directory":
            continue
        files = [str(each["file"]) for each in package.get("files", elsewhere.get(package["name"], ()))]
        markers = package.get("markers", "")
        yield Locked(
            name=canonicalize_name(package["name"]),
            version=str(package["version"]),
            wheels=tuple(name for name in files if name.endswith(".whl")),
            sdist=any(name.endswith((".tar.gz", ".zip")) for name in files),
            marker=markers if isinstance(markers, str) else "",
            needs=tuple(map(canonicalize_name, package.get("dependencies", {}))),
        )


def _from_requirements(path: Path) -> list[Locked]:
    found = []
    for line in requirement_lines(path):
        try:
            wanted = Requirement(line)
        except InvalidRequirement as error:
            raise BadFileError(f"{path}: {line!r} is not a requirement: {str(error).splitlines()[0]}") from error
        exact = [each.version for each in wanted.specifier if each.operator in {"==", "==="}]
        if wanted.url:
            exact = [""]
        if not exact:
            raise BadFileError(f"{path}: {line!r} has no exact version, so the file is no lock; pin it (==)")
        found.append(Locked(
            name=canonicalize_name(wanted.name), version=exact[0], wheels=(), sdist=False, files_known=False,
            marker=str(wanted.marker or ""), url=wanted.url or "",
        ))
    return found


def _needs(dependencies: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(canonicalize_name(each["name"]) for each in dependencies))


def _names(files: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the names of wheels, which some files have only at the end of a URL or path."""
    return tuple(
        str(each.get("name") or each.get("filename") or each.get("url") or each["path"]).rpartition("/")[2]
        for each in files
    )
