"""Find a project's requirements, lock, tests and modules by the usual conventions of Python packaging.

Files are only read; no code of the project is imported or run.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from gilscope.toolkit.bounded_reading import read_text
from gilscope.toolkit.builds.missing_packages import has_exact_version
from gilscope.toolkit.errors import BadFileError, ToolkitError
from gilscope.toolkit.evaluate.requirements.closure import is_for_developers
from gilscope.toolkit.evaluate.requirements.declared import (
    declares_none,
    find_extras,
    find_requirements,
    name_in_metadata,
    table_below,
    tox_tests,
)
from gilscope.toolkit.evaluate.requirements.requirements_file import requirement_lines
from gilscope.toolkit.own_files import SOURCE_FOLDERS, TEST_FOLDERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

LOCKS = ("uv.lock", "pylock.toml", "poetry.lock")
NOT_THE_PROJECT = frozenset({
    "tests", "test", "testing", "docs", "doc", "examples", "example", "bench", "benchmark", "benchmarks", "scripts",
    "tools", "build", "dist", "venv", "env", "node_modules", "setup", "conftest", "noxfile", "tasks", "fabfile",
    "versioneer",
})
# In the __init__.py of a namespace package, before PEP 420.
_DECLARES_NAMESPACE = re.compile(r"\bdeclare_namespace\s*\(|\bextend_path\s*\(")
NO_MODULES = "modules: none found, so its own imports are not exercised"
PYTEST = ("python", "-m", "pytest", "-q")
# Otherwise pytest takes a package in a namespace package for a top-level one, whose imports it cannot resolve.
IN_NAMESPACE = ("-o", "consider_namespace_packages=true")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project as its files describe it."""

    root: Path
    name: str
    requirements: tuple[str, ...]        # what it needs to run
    test_requirements: tuple[str, ...]   # what its tests need in addition
    lock: Path | None
    tests: tuple[str, ...] | None        # the command that runs them; "python" stands for the build under test
    sources: tuple[Path, ...]            # folders that its modules are imported from
    modules: tuple[str, ...]             # its top-level modules and packages
    about_requirements: tuple[str, ...]  # the conventions by which they were found, one sentence for each kind
    about_modules: str                   # the convention by which they were found
    about_lock_and_tests: tuple[str, ...]
    installable: bool                    # it can be installed, so that its entry points and metadata exist
    declares: bool = True                # it declares its runtime requirements, even if it has none
    requirements_known: bool = True      # a file that could list them was found
    extras: tuple[str, ...] = ()         # extras for users that `requirements` does not include
    measuring: str = ""                  # a file in its root that contains the workload and is not part of it
    with_tests: tuple[str, ...] = ()     # its packages that contain the tests; empty if they stand beside them

    @property
    def found(self) -> tuple[str, ...]:
        """One sentence for each item and the convention by which it was found."""
        without = f"; without {self.measuring}, which holds the workload" if self.measuring else ""
        return (*self.about_requirements, f"{self.about_modules}{without}", *self.about_lock_and_tests)


def find_project(
    path: Path, *, lock: Path | None = None, tests: str | None = None, extras: Sequence[str] = (),
) -> Project:
    """Return a description of the project in the folder `path`.

    Args:
        path: The project's root.
        lock: The lock file, if the user names one.
        tests: The command that runs the tests, if the user names one.
        extras: Extras of the project that count as runtime requirements.

    Raises:
        ToolkitError: The folder, the lock or an extra does not exist, or the folder contains no Python project.
        BadFileError: A file of the project is damaged.
    """
    root = path.resolve()
    if not root.is_dir():
        raise ToolkitError(f"{path} is not a folder: name the root of a project")
    about_requirements: list[str] = []
    notes: list[str] = []
    pyproject = _pyproject(root)
    declared = find_requirements(root, pyproject, about_requirements)
    from_extras, left = _extras(find_extras(root, pyproject), extras)
    sources, modules, about_modules = _modules(root, pyproject)
    if not (declared.runtime or modules or pyproject):
        raise ToolkitError(f"{root} holds no pyproject.toml, requirements.txt or module: is it a project's root?")
    locked = _lock(root, lock, notes)
    command, with_tests = _tests(root, pyproject, tests, sources, modules, notes)
    return Project(
        root=root,
        name=_name(root, pyproject),
        requirements=tuple(dict.fromkeys((*declared.runtime, *from_extras))),
        test_requirements=declared.tests,
        lock=locked,
        tests=command,
        sources=sources,
        modules=modules,
        about_requirements=tuple(about_requirements),
        about_modules=about_modules,
        about_lock_and_tests=tuple(notes),
        installable="build-system" in pyproject or "project" in pyproject or (root / "setup.py").is_file(),
        declares=bool(declared.runtime or declares_none(root, table_below(pyproject, "project"))),
        requirements_known=bool(declared.found or from_extras),
        extras=left,
        with_tests=with_tests,
    )


def _extras(
    known: Mapping[str, tuple[str, ...]], requested: Sequence[str],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the requirements of the requested extras, and the names of the other extras for users."""
    by_name = {canonicalize_name(name): texts for name, texts in known.items()}
    names = list(map(canonicalize_name, requested))
    if unknown := next((text for text, name in zip(requested, names, strict=True) if name not in by_name), None):
        raise ToolkitError(f"--extra {unknown}: the project's extras are {', '.join(sorted(known)) or 'none'}")
    left = tuple(name for name in known if canonicalize_name(name) not in names and not is_for_developers(name))
    return tuple(text for name in names for text in by_name[name]), left


def _pyproject(root: Path) -> dict[str, Any]:
    path = root / "pyproject.toml"
    try:
        return tomllib.loads(read_text(path))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise BadFileError(f"{path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadFileError(f"{path} cannot be read: {error}") from error


def _name(root: Path, pyproject: Mapping[str, Any]) -> str:
    for table in (table_below(pyproject, "project"), table_below(pyproject, "tool", "poetry")):
        if isinstance(name := table.get("name"), str):
            return name
    return name_in_metadata(root) or root.name


def _lock(root: Path, named: Path | None, notes: list[str]) -> Path | None:
    if named is not None:
        if not named.is_file():
            raise ToolkitError(f"--lock {named}: there is no such file")
        return named.resolve()
    everything = [*(root / name for name in LOCKS), *sorted(root.glob("pylock.*.toml")), root / "requirements.txt"]
    for path in everything:
        if path.is_file() and (path.suffix != ".txt" or _pinned(path)):
            notes.append(f"lock: {path.name}")
            return path
    notes.append("lock: none found, so versions are chosen today")
    return None


def _pinned(path: Path) -> bool:
    """Return True if every requirement in the file has an exact version, which makes it a lock."""
    lines = requirement_lines(path)
    return bool(lines) and all(map(has_exact_version, lines))


def _tests(
    root: Path, pyproject: Mapping[str, Any], named: str | None, sources: Sequence[Path], modules: Sequence[str],
    notes: list[str],
) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Return the command that runs the tests, None without tests; and the packages that contain them."""
    if named is not None:
        try:
            return tuple(shlex.split(named)), ()
        except ValueError as error:
            raise ToolkitError(f"--tests {named!r}: {error}") from error
    configured = "pytest" in table_below(pyproject, "tool") or (root / "pytest.ini").is_file()
    folder = next((name for name in TEST_FOLDERS if (root / name).is_dir()), None)
    beside = folder or ("test_*.py" if list(root.glob("test_*.py")) else "")
    inside = tuple(name for name in modules if any(_contains_tests(path_of(each, name)) for each in sources))
    if configured or beside or inside:
        why = "pytest is configured" if configured else beside or f"tests in {', '.join(inside)}"
        pytest = (*PYTEST, *IN_NAMESPACE) if any("." in name for name in inside) else PYTEST
        notes.append(f"tests: {' '.join(pytest)} ({why})")
        return pytest, () if beside else inside
    if command := tox_tests(root):
        notes.append(f"tests: {' '.join(command)} (tox.ini)")
        return command, ()
    notes.append("tests: none found in pytest's settings, a folder tests, the packages' folders or tox.ini")
    return None, ()


def _contains_tests(package: Path) -> bool:
    return any(map(any, (package.glob("test_*.py"), *(package.glob(f"{name}/test_*.py") for name in TEST_FOLDERS))))


def path_of(folder: Path, module: str) -> Path:
    """Return the path of a package, or that of a module without its suffix, in the folder that it is imported from."""
    return folder.joinpath(*module.split("."))


def _modules(root: Path, pyproject: Mapping[str, Any]) -> tuple[tuple[Path, ...], tuple[str, ...], str]:
    """Return the folders with the project's modules, their names, and the convention by which they were found."""
    name = _name(root, pyproject)
    src = root / "src"
    folder = src if any(src.glob("*/__init__.py")) or any(src.glob("*.py")) or [*_namespaced(src, name)] else root
    packages = {*_packages(folder, name)}
    names = {*packages, *(path.stem for path in folder.glob("*.py") if _is_ours(path.stem))}
    # A package such as "_bindings" counts only if there is nothing else; beside others it is their private part.
    found = sorted({each for each in names if not each.startswith("_")} or packages)
    if not found and (named := _named_packages(root, pyproject, name)):
        found, folders = sorted(each for _, each in named), tuple(dict.fromkeys(place for place, _ in named))
        return folders, tuple(found), f"modules: {', '.join(found)} (pyproject.toml)"
    listed = _listed_by_sdist(root, folder)
    found = [each for each in found if each.partition(".")[0] in listed] or found
    where = ("src/",) if folder != root else ()
    return (folder,), tuple(found), said_modules(found, *where) if found else NO_MODULES


def said_modules(names: Iterable[str], folder: str = "in the folder of the project") -> str:
    """Return where modules were found."""
    return f"modules: {', '.join(names)} ({folder})"


def _listed_by_sdist(root: Path, folder: Path) -> frozenset[str]:
    """Return the top-level modules that an sdist of setuptools lists: a script beside them is none; empty elsewhere."""
    lists = [*folder.glob("*.egg-info/top_level.txt")] if (root / "PKG-INFO").is_file() else []
    try:
        return frozenset(word for path in lists for word in read_text(path).split())
    except (OSError, UnicodeDecodeError, BadFileError):
        return frozenset()


def _named_packages(root: Path, pyproject: Mapping[str, Any], name: str) -> list[tuple[Path, str]]:
    """Return (folder, name) of the packages whose folders, or whose parent folders, the build settings name."""
    settings = [table_below(pyproject, "tool", "scikit-build", "wheel").get("packages", ()),
                table_below(pyproject, "tool", "hatch", "build", "targets", "wheel").get("packages", ()),
                table_below(pyproject, "tool", "setuptools", "package-dir")]
    texts = [text for each in settings for text in (each.values() if isinstance(each, dict) else each)]
    paths = [root / text for text in texts if isinstance(text, str)]
    found = [(path.parent, path.name) for path in paths if (path / "__init__.py").is_file()]
    found += [(folder, each) for folder in _where(root, pyproject) for each in sorted(_packages(folder, name))]
    return [each for each in dict.fromkeys(found) if each[0].is_relative_to(root)]


def _where(root: Path, pyproject: Mapping[str, Any]) -> list[Path]:
    """Return the folders in which the build settings say to search for packages."""
    texts = [table_below(pyproject, "tool", "maturin").get("python-source", ""),
             table_below(pyproject, "tool", "setuptools", "package-dir").get("", ""),
             *table_below(pyproject, "tool", "setuptools", "packages", "find").get("where", ())]
    return [root / text for text in texts if text and isinstance(text, str)]


def _packages(folder: Path, project: str) -> Iterator[str]:
    """Yield the packages in a folder, in place of a namespace package those inside of it: "zope.interface"."""
    for path in folder.glob("*/__init__.py"):
        if _is_ours(path.parent.name) and not _is_namespace(path.parent):
            yield path.parent.name
    yield from _namespaced(folder, project)


def _namespaced(folder: Path, project: str) -> Iterator[str]:
    """Yield the packages and modules inside the namespace packages in a folder, by dotted names.

    A folder without an `__init__.py` may be anything.  It is a namespace package if the project's name begins with its
    name: "zope" in "zope.interface".
    """
    words = canonicalize_name(project).split("-")
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        first = canonicalize_name(path.name).split("-")
        if path.is_dir() and _is_ours(path.name) and _is_namespace(path) and (
                (words[:len(first)] == first and path.name not in SOURCE_FOLDERS) or (path / "__init__.py").is_file()):
            yield from _inside(path, path.name)


def _inside(namespace: Path, name: str) -> Iterator[str]:
    for path in sorted(namespace.iterdir()):
        if not path.stem.isidentifier() or path.stem.startswith(("__", "test_")) or path.stem in TEST_FOLDERS:
            continue
        if path.suffix == ".py" and path.is_file():
            yield f"{name}.{path.stem}"
        elif path.is_dir() and not path.is_symlink():
            if (path / "__init__.py").is_file() and not _is_namespace(path):
                yield f"{name}.{path.name}"
            else:
                yield from _inside(path, f"{name}.{path.name}")


def _is_namespace(folder: Path) -> bool:
    """Return True for a folder without an `__init__.py`, or with one that only declares that others add to it."""
    init = folder / "__init__.py"
    if not init.is_file():
        return True
    if any(path != init for path in folder.glob("*.py")):
        return False
    try:
        return bool(_DECLARES_NAMESPACE.search(read_text(init))) and any(folder.glob("*/__init__.py"))
    except (OSError, UnicodeDecodeError, BadFileError):
        return False


def _is_ours(name: str) -> bool:
    return name.isidentifier() and name not in NOT_THE_PROJECT and not name.startswith(("__", "test_"))
