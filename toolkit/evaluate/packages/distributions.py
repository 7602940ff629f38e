"""Find the distributions in an environment and the extension modules of each.

Files are only read: neither the environment's Python nor anything in its packages runs.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import struct
import sys
from importlib.metadata import Distribution as Metadata
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from packaging.utils import canonicalize_name

from gilscope.toolkit.bounded_reading import opened
from gilscope.toolkit.builds.missing_packages import distribution_of
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.evaluate.packages.evidence import Distribution
from gilscope.toolkit.evaluate.requirements.extras import is_of_an_extra
from gilscope.toolkit.evaluate.wheel_tags import kind_of, suffix_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gilscope.toolkit.model import Build

TOOLS = {"pip", "setuptools", "wheel"}   # part of every environment, not requested by anybody
NOT_THE_PACKAGE = re.compile(r"(tests?|testing|docs?|examples?|benchmarks?|scripts)")


def site_folders(environment: Path) -> list[Path]:
    """Return the site-packages folders of an environment."""
    found = [path for lib in ("lib", "lib64") for path in environment.glob(f"{lib}/python3*/site-packages")]
    return list({path.resolve(): path for path in reversed(found)}.values())


def installed(folders: Sequence[Path], build: Build) -> tuple[Distribution, ...]:
    """Return the distributions in some folders, sorted by name, with the extension modules that `build` can load."""
    by_name: dict[str, Distribution] = {}
    for found in distributions(path=[str(folder) for folder in folders]):
        name = own_name(found)
        if name and name not in TOOLS:
            by_name.setdefault(name, _distribution(found, name, build))
    return tuple(by_name[name] for name in sorted(by_name))


def own_name(found: Metadata) -> str:
    """Return a distribution's normalised name; "" for a folder without metadata, as an interrupted pip leaves it."""
    try:
        return canonicalize_name(found.metadata.get("Name") or "")
    except FileNotFoundError:   # raised since 3.15
        return ""


def _distribution(found: Metadata, name: str, build: Build) -> Distribution:
    # Names only: `Path(file.locate())` of every file would take longer than all the rest.
    files = [str(file) for file in found.files or () if not str(file).startswith("..")]
    wheel = found.read_text("WHEEL") or ""
    extensions = tuple(_extensions(files, Path(str(found.locate_file(""))), build))
    return Distribution(
        name=name, version=found.version, modules=tuple(_modules(files, [each for each, _ in extensions])),
        inner=tuple(_inner(files)),
        extensions=extensions, tags=tuple(re.findall(r"^Tag: *(\S+)", wheel, re.MULTILINE)),
        pure=not any(file.endswith((".so", ".dylib")) for file in files),
        requires=_requires(found))


def _requires(found: Metadata) -> tuple[str, ...]:
    return tuple(dict.fromkeys(distribution_of(text) for text in found.requires or () if not is_of_an_extra(text)))


def _extensions(files: Iterable[str], root: Path, build: Build) -> Iterable[tuple[str, str]]:
    """Yield name and file of every extension module that `build` can load."""
    kind = kind_of(build)
    for file in files:
        *folders, last = file.split("/")
        suffix = suffix_of(last)
        # `pkg.libs/` contains shared libraries, not modules.
        if not suffix or not suffix.loads(kind) or not all(folder.isidentifier() for folder in folders):
            continue
        parts = folders if suffix.module == "__init__" else [*folders, suffix.module]
        # An unreadable file counts as an extension module, so that it is reported.
        if parts and (has_hook(root / file, parts[-1]) or damage(root / file)):
            yield ".".join(parts), str(root / file)


def has_hook(path: Path, name: str) -> bool:
    """Return True if a shared library has the init function of an extension module called `name`.

    Libraries for `ctypes` are often beside extension modules and look like them.
    """
    try:
        with opened(path) as source, mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return names_hook(content, name)
    except (OSError, ValueError):   # removed meanwhile, or empty
        return False


def names_hook(content: bytes | mmap.mmap, name: str) -> bool:
    """Return True if a shared library names the init function of an extension module called `name`."""
    word = name if name.isascii() else name.encode("punycode").decode()
    return any(content.find(f"{hook}{word}\0".replace("-", "_").encode()) >= 0
               for hook in ("PyInit_", "PyInitU_", "PyModExport_", "PyModExportU_"))


def _inner(files: Iterable[str]) -> Iterable[str]:
    """Yield the modules inside packages that a program may import, without tests and scripts."""
    for file in sorted(files):
        *folders, last = file.removesuffix(".py").split("/")
        parts = folders if last == "__init__" else [*folders, last]
        if not file.endswith(".py") or len(parts) == 1 or last == "__main__":
            continue
        if all(part.isidentifier() and not NOT_THE_PACKAGE.fullmatch(part) and not part.startswith("test_")
               for part in parts):
            yield ".".join(parts)


def _modules(files: Iterable[str], extensions: Sequence[str]) -> Iterable[str]:
    """Return the top-level packages and modules, only public ones if there are any."""
    packages = {tuple(file.split("/")[:-1]) for file in files if re.search(r"/__init__\.(py|.*so)$", file)}
    found = {".".join(package) for package in packages
             if not any(package[:depth] in packages for depth in range(1, len(package)))}
    found |= {file.removesuffix(".py") for file in files if "/" not in file and file.endswith(".py")}
    # Modules that mypyc names after a hash are parts of other modules.
    found |= {name for name in extensions if "." not in name and not name.endswith("__mypyc")}
    named = [name for name in sorted(found) if all(part.isidentifier() for part in name.split("."))
             and not NOT_THE_PACKAGE.fullmatch(name.partition(".")[0])]
    return [name for name in named if not name.rpartition(".")[2].startswith("_")] or named


OURS = "gilscope"


def current_requirements() -> dict[str, tuple[str, ...]]:
    """Return "name==version" of each package in the active virtual environment, or else in our own, with its needs.

    Packages installed from a folder or a repository are left out, because they have no wheel on an index.

    Raises:
        ToolkitError: The environment contains no packages.
    """
    place = Path(os.environ.get("VIRTUAL_ENV") or sys.prefix)
    found = {own_name(each): each
             for each in distributions(path=[str(folder) for folder in site_folders(place)])}
    wanted = {f"{name}=={each.version}": _requires(each) for name, each in sorted(found.items())
              if name and name not in TOOLS | {OURS} and not _is_local(each)}
    if not wanted:
        raise ToolkitError(f"no packages are installed in {place}; name some, or activate an environment")
    return wanted


def _is_local(found: Metadata) -> bool:
    try:
        origin = json.loads(found.read_text("direct_url.json") or "{}")
    except ValueError:
        return False
    return "dir_info" in origin or "vcs_info" in origin


_MACH_O = {bytes.fromhex(magic) for magic in ("feedface", "feedfacf", "cefaedfe", "cffaedfe", "cafebabe", "bebafeca")}
# Fields of an ELF header: offsets of the program and section tables, size and number of their entries.
_HEADER = {1: "4xII4x2xHHHH", 2: "8xQQ4x2xHHHH"}   # from e_entry on, for 32 and 64 bits
_LOADED = {1: "IIIII", 2: "I4xQ16xQ"}              # of a program header: type, offset, ..., size in the file
_PT_LOAD = 1


def damage(path: Path) -> str:
    """Return why a file is not a complete shared library; "" if its headers show no damage.  Nothing is loaded.

    Source: System V ABI, chapter 4 (object files); elf(5).
    """
    try:
        size = path.stat().st_size
        with opened(path) as file:
            start = file.read(64)
            if start[:4] in _MACH_O:
                return ""
            if start[:4] != b"\x7fELF":
                return "its file is empty" if not size else "its file is not a shared library"
            whole = _end(file, start)
    except OSError as error:
        return f"its file cannot be read: {error.strerror}"
    except (struct.error, KeyError, IndexError):
        return "its file is cut off or damaged: its headers make no sense"
    return f"its file is cut off: {size} bytes of {whole}" if whole > size else ""


def _end(file: BinaryIO, start: bytes) -> int:
    """Return the smallest possible size of an ELF file, from its tables and loaded segments."""
    kind, order = start[4], "<" if start[5] == 1 else ">"
    numbers: tuple[int, ...] = struct.unpack_from(order + _HEADER[kind], start, 24)
    programs, sections, program_size, program_count, section_size, section_count = numbers
    file.seek(programs)
    table = file.read(program_size * program_count)
    end = max(programs + program_size * program_count, sections + section_size * section_count if sections else 0)
    for number in range(program_count):
        entry: tuple[int, ...] = struct.unpack_from(order + _LOADED[kind], table, number * program_size)
        if entry[0] == _PT_LOAD:
            end = max(end, entry[1] + entry[-1])
    return end
