"""Read wheels and sdists: names, metadata, and what the extension files inside are for.  Nothing is run or unpacked."""

from __future__ import annotations

import hashlib
import re
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from email.errors import HeaderParseError
from email.parser import HeaderParser
from enum import StrEnum
from typing import TYPE_CHECKING, BinaryIO

from packaging.tags import Tag, parse_tag
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    canonicalize_version,
    parse_sdist_filename,
    parse_wheel_filename,
)

from gilscope.toolkit.bounded_reading import MIB, SETTINGS, opened
from gilscope.toolkit.evaluate.packages.distributions import names_hook
from gilscope.toolkit.evaluate.requirements.extras import is_of_an_extra
from gilscope.toolkit.evaluate.wheel_tags import Suffix, suffix_of
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

WHEEL, SDISTS = ".whl", (".tar.gz", ".zip")
LARGEST_EXTENSION = 512 * MIB   # unpacked; larger ones are not searched for what they were compiled for
_SHARED = (".so", ".dylib", ".pyd", ".dll")
_FREE_THREADING = re.compile(r"Programming Language :: Python :: Free Threading(?: :: (.+))?")
_IN_DATA = re.compile(r"[^/]+\.data/(?:plat|pure)lib/")


class FileProblem(StrEnum):
    """Why a file could not be judged."""

    ABSENT = "absent"
    BAD_NAME = "bad-name"
    UNREADABLE = "unreadable"
    NOT_AN_ARCHIVE = "not-an-archive"
    NO_METADATA = "no-metadata"
    OTHER_NAME = "other-name"      # the metadata has another name or version than the file's name


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusableFile:
    """A file that is no valid wheel or sdist."""

    path: Path
    problem: FileProblem
    reason: str


class Layout(StrEnum):
    """The layout of objects that an extension file was compiled for, told by the functions that it refers to."""

    GIL = "gil"
    FREE_THREADED = "free-threaded"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionFile:
    """An extension file inside a wheel."""

    path: str         # inside the wheel
    module: str       # "lxml.etree"
    suffix: Suffix
    layout: Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageMetadata:
    """The fields of METADATA or PKG-INFO that concern builds."""

    requires: tuple[str, ...] = ()        # without those of extras
    requires_python: str = ""
    free_threading: str | None = None     # the classifier's level: "2 - Beta", "" without one; None: no classifier


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """An sdist."""

    path: Path
    sha256: str
    name: str
    version: str
    metadata: PackageMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFile:
    """A wheel."""

    path: Path
    sha256: str
    name: str                             # normalised
    version: str
    number: tuple[int, str] | None        # build number, which makes an installer prefer one of equal wheels
    tags: frozenset[Tag]                  # of the file's name, which installers go by
    written_tags: frozenset[Tag]          # in its WHEEL
    metadata: PackageMetadata
    extensions: tuple[ExtensionFile, ...]
    libraries: int                        # other shared libraries, for ctypes or for the extension files

    @property
    def platforms(self) -> tuple[str, ...]:
        """Platform tags, sorted."""
        return tuple(sorted({tag.platform for tag in self.tags}))

    @property
    def abis(self) -> str:
        """The tags without platforms, compressed as in the file's name: "cp314-cp314t"."""
        return "-".join(self.path.name.removesuffix(WHEEL).split("-")[-3:-1])

    @property
    def any_platform(self) -> bool:
        """True if the name says that it has no compiled code."""
        return all(tag.platform == "any" for tag in self.tags)

    @property
    def has_c_code(self) -> bool:
        """True if there are any compiled files inside."""
        return bool(self.extensions or self.libraries)


Distributable = WheelFile | SourceFile


class _RefusedError(Exception):
    """A file cannot be judged."""

    def __init__(self, problem: FileProblem, reason: str) -> None:
        super().__init__(reason)
        self.problem = problem


def read(path: Path) -> Distributable | UnusableFile:
    """Return the contents of a wheel or sdist, or the reason why it cannot be judged."""
    try:
        return _wheel(path) if path.name.endswith(WHEEL) else _sdist(path)
    except _RefusedError as refusal:
        return UnusableFile(path=path, problem=refusal.problem, reason=str(refusal))
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        return UnusableFile(path=path, problem=FileProblem.NOT_AN_ARCHIVE,
                            reason=f"it cannot be unpacked: {error or type(error).__name__}")
    except OSError as error:
        absent = isinstance(error, FileNotFoundError)
        return UnusableFile(path=path, problem=FileProblem.ABSENT if absent else FileProblem.UNREADABLE,
                            reason="there is no such file" if absent else f"it cannot be read: {error.strerror}")


def _digest(path: Path) -> str:
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _wheel(path: Path) -> WheelFile:
    digest = _digest(path)
    try:
        name, version, number, tags = parse_wheel_filename(path.name)
    except InvalidWheelFilename as error:
        raise _RefusedError(FileProblem.BAD_NAME, f"its name is not that of a wheel: {error}") from error
    with opened(path) as file, zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        headers = _headers(_member(archive, names, "METADATA"))
        written = HeaderParser().parsestr(_member(archive, names, "WHEEL"))
        tagged = frozenset(tag for text in written.get_all("Tag", []) for tag in _tags(text))
        _check_names(headers, name, str(version))
        extensions = tuple(sorted(_extensions(archive, names), key=lambda each: each.path))
    modules = {each.path for each in extensions}
    libraries = [each for each in names if each not in modules and _is_shared(each)]
    return WheelFile(
        path=path, sha256=digest, name=name, version=str(version), number=number or None, tags=tags,
        written_tags=tagged, metadata=_metadata(headers), extensions=extensions, libraries=len(libraries))


def _tags(text: str) -> Iterable[Tag]:
    try:
        return parse_tag(text.strip())
    except ValueError:
        return ()


def _is_shared(name: str) -> bool:
    return name.endswith(_SHARED) or ".so." in name.rpartition("/")[2]


def _sdist(path: Path) -> SourceFile:
    digest = _digest(path)
    try:
        name, version = parse_sdist_filename(path.name)
    except InvalidSdistFilename as error:
        raise _RefusedError(FileProblem.BAD_NAME, f"its name is not that of an sdist: {error}") from error
    with opened(path) as file:
        text = _from_zip(file) if path.suffix == ".zip" else _from_tar(file)
    headers = _headers(text)
    _check_names(headers, name, str(version))
    return SourceFile(path=path, sha256=digest, name=name, version=str(version), metadata=_metadata(headers))


def _from_tar(file: BinaryIO) -> str:
    with tarfile.open(fileobj=file) as archive:
        for entry in archive:
            if re.fullmatch(r"[^/]+/PKG-INFO", entry.name) and entry.size <= SETTINGS:
                content = archive.extractfile(entry)
                if content:
                    return content.read().decode("utf-8", "replace")
    raise _RefusedError(FileProblem.NO_METADATA, "it has no PKG-INFO")


def _from_zip(file: BinaryIO) -> str:
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            if re.fullmatch(r"[^/]+/PKG-INFO", name) and archive.getinfo(name).file_size <= SETTINGS:
                return archive.read(name).decode("utf-8", "replace")
    raise _RefusedError(FileProblem.NO_METADATA, "it has no PKG-INFO")


def _member(archive: zipfile.ZipFile, names: Sequence[str], wanted: str) -> str:
    """Return the text of a file in the wheel's own dist-info folder."""
    found = [each for each in names if re.fullmatch(rf"[^/]+\.dist-info/{wanted}", each)]
    if len(found) != 1:
        many = "it has no" if not found else f"it has {len(found)} files"
        raise _RefusedError(FileProblem.NO_METADATA, f"{many} .dist-info/{wanted}")
    if archive.getinfo(found[0]).file_size > SETTINGS:
        raise _RefusedError(FileProblem.NO_METADATA, f"its {wanted} has more than {SETTINGS // MIB} MiB")
    return archive.read(found[0]).decode("utf-8", "replace")


def _headers(text: str) -> dict[str, list[str]]:
    try:
        message = HeaderParser().parsestr(text)
    except HeaderParseError as error:
        raise _RefusedError(FileProblem.NO_METADATA, f"its metadata cannot be read: {error}") from error
    found: dict[str, list[str]] = {}
    for key, value in message.items():
        found.setdefault(key.lower(), []).append(str(value).strip())
    return found


def _check_names(headers: dict[str, list[str]], name: str, version: str) -> None:
    told, told_version = headers.get("name", [""])[0], headers.get("version", [""])[0]
    if canonicalize_name(told) != name or canonicalize_version(told_version) != canonicalize_version(version):
        raise _RefusedError(FileProblem.OTHER_NAME, f"its metadata says {told or 'no name'} "
                            f"{told_version or 'without a version'}, and its name {name} {version}")


def _metadata(headers: dict[str, list[str]]) -> PackageMetadata:
    levels = [match[1] or "" for text in headers.get("classifier", ()) if (match := _FREE_THREADING.fullmatch(text))]
    return PackageMetadata(
        requires=tuple(text for text in headers.get("requires-dist", ()) if not is_of_an_extra(text)),
        requires_python=headers.get("requires-python", [""])[0], free_threading=max(levels, default=None))


def _extensions(archive: zipfile.ZipFile, names: Iterable[str]) -> Iterator[ExtensionFile]:
    for name in names:
        *folders, last = _IN_DATA.sub("", name).split("/")
        suffix = suffix_of(last)
        if suffix is None or not all(folder.isidentifier() for folder in folders):
            continue   # `pkg.libs/` contains shared libraries, not modules
        parts = folders if suffix.module == "__init__" else [*folders, suffix.module]
        content = archive.read(name) if archive.getinfo(name).file_size <= LARGEST_EXTENSION else b""
        # Libraries for ctypes are called `name.so`, too.
        if parts and (suffix.tagged or names_hook(content, parts[-1])):
            yield ExtensionFile(path=name, module=".".join(parts), suffix=suffix, layout=layout_of(content))


def layout_of(content: bytes) -> Layout:
    """Return the layout of objects that a shared library was compiled for.

    `Py_DECREF` is inlined: on free-threaded builds it calls the first two functions, with the GIL only the last one.
    Code that is not C, or is compiled for the limited API of 3.12 and later, may refer to none of them.

    Source: Include/refcount.h of CPython 3.13 to 3.15.
    """
    if b"_Py_DecRefShared\0" in content or b"_Py_MergeZeroLocalRefcount\0" in content:
        return Layout.FREE_THREADED
    return Layout.GIL if b"_Py_Dealloc\0" in content else Layout.UNKNOWN


def read_all(paths: Iterable[Path]) -> tuple[list[Distributable], list[UnusableFile]]:
    """Return the usable and the unusable ones of files, and of the wheels and sdists in folders."""
    usable: list[Distributable] = []
    unusable: list[UnusableFile] = []
    for path in paths:
        inside = _in_folder(path) if path.is_dir() else [path]
        if not inside:
            unusable.append(UnusableFile(path=path, problem=FileProblem.ABSENT,
                                         reason="there is no wheel and no sdist in this folder; for a project: "
                                                f"gilscope evaluate {path}"))
        for found in map(read, dict.fromkeys(inside)):
            if isinstance(found, UnusableFile):
                unusable.append(found)
            elif all(found.path.resolve() != other.path.resolve() for other in usable):
                usable.append(found)
    return usable, unusable


def _in_folder(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if each.name.endswith((WHEEL, *SDISTS)))


def named(found: Distributable) -> str:
    """Return name and version."""
    return f"{found.name} {found.version}"


def files_in_words(files: Sequence[Distributable]) -> str:
    """Return how many wheels and sdists there are: "3 wheels, 1 sdist"."""
    wheels = sum(isinstance(each, WheelFile) for each in files)
    sources = len(files) - wheels
    return ", ".join(counted(number, word) for number, word in ((wheels, "wheel"), (sources, "sdist")) if number)
