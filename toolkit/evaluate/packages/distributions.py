"""Which distributions an environment holds, and which extension modules each of them brings.

Reads files only: neither the environment's Python is started nor anything of its packages imported.
"""

from __future__ import annotations

import mmap
import re
from importlib.metadata import Distribution as Installed
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.bounded_reading import opened
from gilscope.toolkit.builds.packages.lacking import normalized
from gilscope.toolkit.builds.pairing import minor_of
from gilscope.toolkit.evaluate.packages.damaged_library import damage
from gilscope.toolkit.evaluate.packages.facts import Distribution

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gilscope.toolkit.model import Build

TOOLS = {"pip", "setuptools", "wheel"}   # what an environment comes with is not what was asked about
NOT_THE_PACKAGE = re.compile(r"(tests?|testing|docs?|examples?|benchmarks?|scripts)")
_EXTENSION = re.compile(r"(?P<name>[^.]+)\.(?:(?:cpython-(?P<version>\d+t?)[^.]*|abi3(?P<t>t?)[^.]*)\.)?so")


def site_folders(environment: Path) -> list[Path]:
    """Return the folders that hold the packages of the environment in this folder."""
    found = [path for lib in ("lib", "lib64") for path in environment.glob(f"{lib}/python3*/site-packages")]
    return list({path.resolve(): path for path in reversed(found)}.values())


def installed(folders: Sequence[Path], build: Build) -> tuple[Distribution, ...]:
    """Return the distributions in some folders, by name, as `build` sees them."""
    by_name: dict[str, Distribution] = {}
    for found in distributions(path=[str(folder) for folder in folders]):
        name = own_name(found)
        if name and name not in TOOLS:
            by_name.setdefault(name, _distribution(found, name, build))
    return tuple(by_name[name] for name in sorted(by_name))


def own_name(found: Installed) -> str:
    """Return a distribution's normalised name; "" for a folder without metadata, which pip leaves when interrupted."""
    try:
        return normalized(found.metadata.get("Name") or "")
    except FileNotFoundError:   # 3.15 says so
        return ""


def _distribution(found: Installed, name: str, build: Build) -> Distribution:
    # Names only: `Path(file.locate())` of every file would take longer than all the rest.
    files = [str(file) for file in found.files or () if not str(file).startswith("..")]
    wheel = found.read_text("WHEEL") or ""
    extensions = tuple(_extensions(files, Path(str(found.locate_file(""))), build))
    return Distribution(
        name=name, version=found.version, modules=tuple(_modules(files, [each for each, _ in extensions])),
        inner=tuple(_inner(files)),
        extensions=extensions, tags=tuple(re.findall(r"^Tag: *(\S+)", wheel, re.MULTILINE)),
        pure=not any(file.endswith((".so", ".dylib")) for file in files),
        requires=tuple(dict.fromkeys(normalized(match[0]) for text in found.requires or ()
                                     if "extra ==" not in text and (match := re.match(r"[\w.-]+", text)))))


def _extensions(files: Iterable[str], root: Path, build: Build) -> Iterable[tuple[str, str]]:
    """Yield module name and file of every extension module that `build` could load."""
    tag = minor_of(build).replace(".", "") + "t" * build.free_threaded
    for file in files:
        *folders, last = file.split("/")
        match = _EXTENSION.fullmatch(last)
        if not match or not all(folder.isidentifier() for folder in folders):
            continue   # `pkg.libs/` holds libraries
        if match["version"] not in {None, tag}:
            continue
        has_abi3t = int(tag.rstrip("t")) >= 315  # noqa: PLR2004  PEP 803: the first one
        # An earlier build without a GIL takes abi3 for its own; this one does not look for such a file.
        if (match["t"] and not has_abi3t) or (match["t"] == "" and has_abi3t and build.free_threaded):
            continue
        parts = folders if match["name"] == "__init__" else [*folders, match["name"]]
        # What cannot be read is taken for one: nobody could say that it stands in nobody's way.
        if parts and (has_hook(root / file, parts[-1]) or damage(root / file)):
            yield ".".join(parts), str(root / file)


def has_hook(path: Path, name: str) -> bool:
    """Return whether a shared library has the init function of an extension module called `name`.

    A library that `ctypes` loads lies beside extension modules and looks like one.
    """
    words = (name,) if name.isascii() else (name.encode("punycode").decode(),)
    try:
        with opened(path) as source, mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return any(content.find(f"{hook}{word}\0".replace("-", "_").encode()) >= 0
                       for hook in ("PyInit_", "PyInitU_", "PyModExport_", "PyModExportU_") for word in words)
    except (OSError, ValueError):   # gone, or empty
        return False


def _inner(files: Iterable[str]) -> Iterable[str]:
    """Return the modules inside packages that a program may import, tests and programs left out."""
    for file in sorted(files):
        *folders, last = file.removesuffix(".py").split("/")
        parts = folders if last == "__init__" else [*folders, last]
        if not file.endswith(".py") or len(parts) == 1 or last == "__main__":
            continue
        if all(part.isidentifier() and not NOT_THE_PACKAGE.fullmatch(part) and not part.startswith("test_")
               for part in parts):
            yield ".".join(parts)


def _modules(files: Iterable[str], extensions: Sequence[str]) -> Iterable[str]:
    """Return what a program would import: the outermost packages and modules, public ones where there are any."""
    packages = {tuple(file.split("/")[:-1]) for file in files if re.search(r"/__init__\.(py|.*so)$", file)}
    found = {".".join(package) for package in packages
             if not any(package[:depth] in packages for depth in range(1, len(package)))}
    found |= {file.removesuffix(".py") for file in files if "/" not in file and file.endswith(".py")}
    # What mypyc names after a hash is a part of the other modules.
    found |= {name for name in extensions if "." not in name and not name.endswith("__mypyc")}
    named = [name for name in sorted(found) if all(part.isidentifier() for part in name.split("."))
             and not NOT_THE_PACKAGE.fullmatch(name.partition(".")[0])]
    return [name for name in named if not name.rpartition(".")[2].startswith("_")] or named
