"""Read lock files: exact versions, and for most formats the files that an installer chooses from."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from packaging.markers import Marker
from packaging.pylock import Pylock, PylockValidationError
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from gilscope.toolkit.bounded_reading import read_text
from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.evaluate.requirements.requirements_file import requirement_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

_SUPPORTED = "supported are uv.lock, pylock.toml, poetry.lock and pinned requirements files"
_SELECTING = re.compile(r"\b(?:extras|dependency_groups)\b")   # marker variables of PEP 751
_SELECTED = re.compile(r"(?<!not )in (?:extras|dependency_groups)\b")
_OPERATOR = re.compile(r"[<>=~!]=?=?(?= *['\"\w])| in ")   # each comparison in a marker has one
_FOLDERS = frozenset({"editable", "virtual", "directory"})   # sources in uv.lock that are parts of the project itself


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedPackage:
    """A version that a lock file pins.  A lock for several platforms may have two with the same name."""

    name: str                    # normalised
    version: str
    wheels: tuple[str, ...]      # file names
    sdist: bool
    marker: str = ""             # PEP 508 marker; "" if it applies everywhere
    files_known: bool = True     # False if the format does not list files
    url: str = ""                # the origin if it is not an index
    needs: tuple[str, ...] = ()  # names of its direct dependencies, if the format records them
    development: bool = False    # the lock marks it as belonging only to a group or an extra

    @property
    def pin(self) -> str:
        """The package as a requirement with an exact version."""
        if self.url:
            return f"{self.name} @ {self.url}" + (f" ; {self.marker}" if self.marker else "")
        return f"{self.name}=={self.version}" + (f" ; {self.marker}" if self.marker else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyGraph:
    """The dependencies between the packages of a lock, including the project's own folders."""

    needs: Mapping[str, tuple[str, ...]]   # direct dependencies by package, including those of requested extras
    roots: tuple[str, ...] | None = None   # the project's own runtime dependencies; None if not recorded
    known: bool = True                     # False if the lock records no dependencies


def read_graph(path: Path) -> DependencyGraph:
    """Return the dependencies between the packages of the lock file `path`.

    Raises:
        BadFileError: As for `read_lock`.
    """
    if path.suffix not in {".toml", ".lock"}:
        return DependencyGraph(needs={}, known=False)
    document = _document(path)
    reader = _reader(document)
    if reader is _from_uv:
        return _graph_of_uv(document)
    needs: dict[str, tuple[str, ...]] = {
        canonicalize_name(each["name"]): _named(each.get("dependencies", ()))
        for each in document.get("package", document.get("packages", ()))}
    # Dependencies are optional in pylock.toml, and most tools leave them out.
    return DependencyGraph(needs=needs, known=reader is _from_poetry or any(needs.values()))


def _graph_of_uv(document: Mapping[str, Any]) -> DependencyGraph:
    needs: dict[str, tuple[str, ...]] = {}
    roots: tuple[str, ...] | None = None
    for package in document["package"]:
        name, own = canonicalize_name(package["name"]), package["source"]
        found = _named(package.get("dependencies", ()))
        if "." in {own.get(kind) for kind in _FOLDERS}:
            roots = (*(roots or ()), *found)
        else:   # an extra is in the lock only if something requests it
            extras = package.get("optional-dependencies", {}).values()
            found = (*found, *(each for extra in extras for each in _named(extra)))
        needs[name] = tuple(dict.fromkeys((*needs.get(name, ()), *found)))
    return DependencyGraph(needs=needs, roots=roots)


def _named(dependencies: Iterable[Any]) -> tuple[str, ...]:
    """Return the names in a list of tables (uv, pylock) or a table by name (poetry)."""
    return tuple(dict.fromkeys(canonicalize_name(each["name"] if isinstance(each, dict) else str(each))
                               for each in dependencies))


def read_lock(path: Path) -> tuple[LockedPackage, ...]:
    """Return the packages that the lock file `path` pins, without the project itself, sorted by name.

    Formats: uv.lock, pylock.toml (PEP 751), poetry.lock, and requirements files in which every line is pinned.

    Raises:
        BadFileError: The file is damaged, in another format, or not pinned; the message says which.
    """
    if not path.is_file():
        raise BadFileError(f"{path} is a folder, not a lock file" if path.is_dir() else f"there is no file {path}")
    if path.suffix not in {".toml", ".lock"}:
        found = _from_requirements(path)
    else:
        document = _document(path)
        try:
            found = list(_reader(document)(document))
        except (PylockValidationError, KeyError, TypeError, AttributeError, ValueError) as error:
            raise BadFileError(
                f"{path} is not a valid lock file of its format ({type(error).__name__}: {error}); {_SUPPORTED}"
            ) from error
    return tuple(sorted(found, key=lambda each: (each.name, each.version)))


def _reader(document: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], Iterator[LockedPackage]]:
    """Return the reader for the format of a document, whatever its file is called."""
    if "lock-version" in document:
        return _from_pylock
    return _from_poetry if "metadata" in document else _from_uv


def _document(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadFileError(f"{path} cannot be read as TOML: {error}; {_SUPPORTED}") from error


def _from_uv(document: Mapping[str, Any]) -> Iterator[LockedPackage]:
    """Yield the packages of a uv.lock, except for folders of the project (editable, virtual)."""
    if "version" not in document:
        raise ValueError("it has no format version")
    for package in document["package"]:
        if _FOLDERS & package["source"].keys():
            continue
        # Each fork of the resolution has its own marker; this version applies where any of them does.
        markers = [str(each) for each in package.get("resolution-markers", ())]
        yield LockedPackage(
            name=canonicalize_name(package["name"]),
            version=str(package.get("version", "")),
            wheels=_names(package.get("wheels", ())),
            sdist="sdist" in package,
            marker=" or ".join(f"({each})" for each in markers) if len(markers) > 1 else "".join(markers),
            needs=_named(package.get("dependencies", ())),
        )


def _from_pylock(document: Mapping[str, Any]) -> Iterator[LockedPackage]:
    pylock = Pylock.from_dict(document)
    for package in pylock.packages:
        if package.directory:
            continue
        marker, development = _split_marker(str(package.marker or ""))
        yield LockedPackage(
            name=package.name,
            version=str(package.version or ""),
            wheels=tuple(wheel.filename for wheel in package.wheels or ()),
            sdist=any((package.sdist, package.vcs, package.archive)),
            marker=marker,
            # `pip lock` lists only the file for the Python that it runs on; other tools list all files.
            files_known=pylock.created_by != "pip",
            needs=_named(package.dependencies or ()),
            development=development,
        )


def _from_poetry(document: Mapping[str, Any]) -> Iterator[LockedPackage]:
    files_by_name = document.get("metadata", {}).get("files", {})   # format before 2.0
    for package in document["package"]:
        if package.get("source", {}).get("type") == "directory":
            continue
        files = [str(each["file"]) for each in package.get("files", files_by_name.get(package["name"], ()))]
        markers = package.get("markers", "")
        yield LockedPackage(
            name=canonicalize_name(package["name"]),
            version=str(package["version"]),
            wheels=tuple(name for name in files if name.endswith(".whl")),
            sdist=any(name.endswith((".tar.gz", ".zip")) for name in files),
            marker=markers if isinstance(markers, str) else "",
            needs=_named(package.get("dependencies", {})),
            development="main" not in package.get("groups", (package.get("category", "main"),)),
        )


def _from_requirements(path: Path) -> list[LockedPackage]:
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
            raise BadFileError(f"{path}: {line!r} has no exact version, so the file is not a lock; pin it (==)")
        found.append(LockedPackage(
            name=canonicalize_name(wanted.name), version=exact[0], wheels=(), sdist=False, files_known=False,
            marker=str(wanted.marker or ""), url=wanted.url or "",
        ))
    return found


def _split_marker(marker: str) -> tuple[str, bool]:
    """Return a PEP 508 marker for a marker of a pylock.toml, and True if it selects only groups or extras.

    PEP 751 adds the variables `extras` and `dependency_groups`, which are empty for users of the project.
    """
    if not _SELECTING.search(marker):
        return marker, False
    if len(_SELECTING.findall(marker)) == len(_OPERATOR.findall(marker)):
        return "", not Marker(marker).evaluate({"extras": set(), "dependency_groups": set()}, context="lock_file")
    # The rest of the marker depends on the build, so alternatives ("or") cannot be decided here.
    return "", " or " not in marker and _SELECTED.search(marker) is not None


def _names(files: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the names of wheels; some locks have them only at the end of a URL or path."""
    return tuple(
        str(each.get("name") or each.get("filename") or each.get("url") or each["path"]).rpartition("/")[2]
        for each in files
    )
