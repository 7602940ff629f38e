"""What a lock file pins: exact versions, and for most formats the files that an installer chooses from."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from gilscope.toolkit.bounded_reading import read_text
from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.evaluate.requirements.file import requirement_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

_KNOWN = "known are uv.lock, pylock.toml, poetry.lock and pinned requirements files"
_SELECTING = re.compile(r"\b(?:extras|dependency_groups)\b")   # words of PEP 751's markers
_SELECTED = re.compile(r"(?<!not )in (?:extras|dependency_groups)\b")
_COMPARED = re.compile(r"[<>=~!]=?=?(?= *['\"\w])| in ")   # one in each comparison of a marker
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
    development: bool = False    # the lock itself says that it is for a group or an extra alone

    @property
    def pin(self) -> str:
        """Return it as a requirement."""
        if self.url:
            return f"{self.name} @ {self.url}" + (f" ; {self.marker}" if self.marker else "")
        return f"{self.name}=={self.version}" + (f" ; {self.marker}" if self.marker else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """What the packages of a lock need, the project's own folders with them."""

    needs: Mapping[str, tuple[str, ...]]   # by name; what a package's extras need counts, as somebody asked for it
    # What the project itself needs to run, without its extras and groups; None: the lock does not tell.
    roots: tuple[str, ...] | None = None
    known: bool = True                     # False: the format does not tell


def read_graph(path: Path) -> Graph:
    """Return what the packages of the lock file `path` need, which `read_lock` reads.

    Raises:
        BadFileError: as `read_lock`.
    """
    if path.suffix not in {".toml", ".lock"}:
        return Graph(needs={}, known=False)
    document = _document(path)
    reader = _reader(document)
    if reader is _from_uv:
        return _graph_of_uv(document)
    needs: dict[str, tuple[str, ...]] = {
        canonicalize_name(each["name"]): _named(each.get("dependencies", ()))
        for each in document.get("package", document.get("packages", ()))}
    # A pylock.toml may leave out what its packages need, and most do.
    return Graph(needs=needs, known=reader is _from_poetry or any(needs.values()))


def _graph_of_uv(document: Mapping[str, Any]) -> Graph:
    needs: dict[str, tuple[str, ...]] = {}
    roots: tuple[str, ...] | None = None
    for package in document["package"]:
        name, own = canonicalize_name(package["name"]), package["source"]
        found = _named(package.get("dependencies", ()))
        if "." in {own.get(kind) for kind in _FOLDERS}:
            roots = (*(roots or ()), *found)
        else:   # what an extra of a package needs is in the lock because somebody asked for it
            extras = package.get("optional-dependencies", {}).values()
            found = (*found, *(each for extra in extras for each in _named(extra)))
        needs[name] = tuple(dict.fromkeys((*needs.get(name, ()), *found)))
    return Graph(needs=needs, roots=roots)


def _named(dependencies: Iterable[Any]) -> tuple[str, ...]:
    """Return the names in a list of tables (uv, pylock) or a table by name (poetry)."""
    return tuple(dict.fromkeys(canonicalize_name(each["name"] if isinstance(each, dict) else str(each))
                               for each in dependencies))


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
            needs=_named(package.get("dependencies", ())),
        )


def _from_pylock(document: Mapping[str, Any]) -> Iterator[Locked]:
    if not str(document["lock-version"]).startswith("1."):
        raise ValueError(f"lock-version {document['lock-version']!r}, this reads 1.x")
    # `pip lock` names the one file that suits the Python it runs on; other tools name all that there are.
    one_platform = document.get("created-by") == "pip"
    for package in document["packages"]:
        if "directory" in package:
            continue
        marker, development = _for_whom(str(package.get("marker", "")))
        yield Locked(
            name=canonicalize_name(package["name"]),
            version=str(package.get("version", "")),
            wheels=_names(package.get("wheels", ())),
            sdist="sdist" in package or "vcs" in package or "archive" in package,
            marker=marker,
            files_known=not one_platform,
            needs=_named(package.get("dependencies", ())),
            development=development,
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
            needs=_named(package.get("dependencies", {})),
            development="main" not in package.get("groups", (package.get("category", "main"),)),
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


def _for_whom(marker: str) -> tuple[str, bool]:
    """Return a marker of a pylock.toml as installers know them, and whether it is for a group or an extra alone.

    PEP 751 has `extras` and `dependency_groups`, which are empty for who just uses the project.
    """
    if not _SELECTING.search(marker):
        return marker, False
    if len(_SELECTING.findall(marker)) == len(_COMPARED.findall(marker)):
        return "", not Marker(marker).evaluate({"extras": set(), "dependency_groups": set()}, context="lock_file")
    # What else it says is decided on each build; of alternatives nobody can tell before.
    return "", " or " not in marker and _SELECTED.search(marker) is not None


def _names(files: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the names of wheels, which some files have only at the end of a URL or path."""
    return tuple(
        str(each.get("name") or each.get("filename") or each.get("url") or each["path"]).rpartition("/")[2]
        for each in files
    )
