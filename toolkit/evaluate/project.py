"""What somebody's project says of itself, found by the ecosystem's conventions: requirements, lock, tests, modules.

Reads files only; nothing of the project is imported or run.
"""

from __future__ import annotations

import configparser
import re
import shlex
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement

from toolkit.errors import BadFileError, ToolkitError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

LOCKS = ("uv.lock", "pylock.toml", "poetry.lock")
TEST_GROUPS = ("test", "tests", "testing", "dev")   # names of groups and extras that hold what the tests need
TEST_FILES = ("requirements-test.txt", "requirements-tests.txt", "test-requirements.txt", "tests/requirements.txt",
              "requirements/test.txt", "requirements/tests.txt", "requirements-dev.txt", "dev-requirements.txt")
TEST_FOLDERS = ("tests", "test")
NOT_THE_PROJECT = frozenset({
    "tests", "test", "testing", "docs", "doc", "examples", "example", "benchmarks", "scripts", "tools", "build", "dist",
    "venv", "env", "node_modules", "setup", "conftest", "noxfile", "tasks", "fabfile", "versioneer",
})
PYTEST = ("python", "-m", "pytest", "-q")
_FACTOR = re.compile(r"!?[\w,{}!-]+: ")   # tox: "py312: thing" holds for some environments only
_POETRY_VERSION = re.compile(r"(\^|~)?\s*(\d+(?:\.\d+)*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project as its files describe it."""

    root: Path
    name: str
    requirements: tuple[str, ...]        # what it needs to run
    test_requirements: tuple[str, ...]   # what its tests need beside
    lock: Path | None
    tests: tuple[str, ...] | None        # the command that runs them; "python" is the build's
    sources: tuple[Path, ...]            # folders that its modules are imported from
    modules: tuple[str, ...]             # its top-level modules and packages
    found: tuple[str, ...]               # by which convention each was found, one sentence each
    installable: bool                    # it can be installed, so that its entry points and metadata are there


def find_project(path: Path, *, lock: Path | None = None, tests: str | None = None) -> Project:
    """Return what is known of the project in the folder `path`.

    Args:
        path: Its root.
        lock: The lock file, when the user names one.
        tests: The command that runs the tests, when the user names one.

    Raises:
        ToolkitError: there is no such folder, no such lock, or nothing of Python in it.
        BadFileError: a file of the project is damaged.
    """
    root = path.resolve()
    if not root.is_dir():
        raise ToolkitError(f"{path} is not a folder: name the root of a project")
    said: list[str] = []
    pyproject = _pyproject(root)
    requirements, needed_by_tests = _requirements(root, pyproject, said)
    sources, modules = _modules(root, said)
    if not (requirements or modules or pyproject):
        raise ToolkitError(f"{root} holds no pyproject.toml, requirements.txt or module: is it a project's root?")
    return Project(
        root=root,
        name=_name(root, pyproject),
        requirements=requirements,
        test_requirements=needed_by_tests,
        lock=_lock(root, lock, said),
        tests=_tests(root, pyproject, tests, said),
        sources=sources,
        modules=modules,
        found=tuple(said),
        installable="build-system" in pyproject or "project" in pyproject or (root / "setup.py").is_file(),
    )


def _pyproject(root: Path) -> dict[str, Any]:
    path = root / "pyproject.toml"
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadFileError(f"{path} cannot be read: {error}") from error


def _name(root: Path, pyproject: Mapping[str, Any]) -> str:
    for table in (_table(pyproject, "project"), _table(pyproject, "tool", "poetry")):
        if isinstance(name := table.get("name"), str):
            return name
    return root.name


def _requirements(
    root: Path, pyproject: Mapping[str, Any], said: list[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    project, poetry = _table(pyproject, "project"), _table(pyproject, "tool", "poetry")
    if "dependencies" in project:
        said.append("requirements: [project] of pyproject.toml")
        found = _strings(project["dependencies"])
    elif poetry:
        said.append("requirements: [tool.poetry] of pyproject.toml")
        found = tuple(_from_poetry(_table(poetry, "dependencies")))
    elif (setup := root / "setup.cfg").is_file() and (text := _ini(setup, "options", "install_requires")):
        said.append("requirements: setup.cfg")
        found = tuple(line.strip() for line in text.splitlines() if line.strip())
    elif (listed := root / "requirements.txt").is_file():
        said.append("requirements: requirements.txt")
        found = requirement_lines(listed)
    else:
        said.append("requirements: none found (no [project], [tool.poetry], setup.cfg or requirements.txt)")
        found = ()
    return _checked(root, found), _checked(root, _needed_by_tests(root, pyproject, said))


def _needed_by_tests(root: Path, pyproject: Mapping[str, Any], said: list[str]) -> tuple[str, ...]:
    if found := tuple(_for_tests(pyproject)):
        said.append("for the tests: groups and extras of pyproject.toml")
        return found
    for name in TEST_FILES:
        if (root / name).is_file() and (found := requirement_lines(root / name)):
            said.append(f"for the tests: {name}")
            return found
    if found := tuple(_from_tox(root / "tox.ini")):
        said.append("for the tests: [testenv] of tox.ini")
    return found


def _from_tox(path: Path) -> Iterator[str]:
    """Yield the plain requirements of tox's [testenv]; not those of single environments, nor files that it names."""
    for line in _ini(path, "testenv", "deps").splitlines() if path.is_file() else ():
        text = line.partition(" #")[0].strip()
        if text and not text.startswith(("-", "{", "#", ".")) and not _FACTOR.match(text):
            yield text


def _for_tests(pyproject: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the tests need: groups and extras with the usual names."""
    groups, extras = _table(pyproject, "dependency-groups"), _table(pyproject, "project", "optional-dependencies")
    poetry = _table(pyproject, "tool", "poetry", "group")
    for name in TEST_GROUPS:
        yield from _group(groups, name, ())
        yield from _strings(extras.get(name, ()))
        yield from _from_poetry(_table(poetry, name, "dependencies"))


def _group(groups: Mapping[str, Any], name: str, seen: tuple[str, ...]) -> Iterator[str]:
    """Yield the requirements of a dependency group and of those that it includes (PEP 735)."""
    for entry in groups.get(name, ()) if name not in seen else ():
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, dict) and isinstance(included := entry.get("include-group"), str):
            yield from _group(groups, included, (*seen, name))


def _from_poetry(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield poetry's requirements in the form that everybody else reads; those by path or URL have none."""
    for name, wanted in table.items():
        version = wanted.get("version", "") if isinstance(wanted, dict) else wanted
        if name.lower() != "python" and isinstance(version, str) and version:
            extras = ",".join(_strings(wanted.get("extras", ()))) if isinstance(wanted, dict) else ""
            yield f"{name}{f'[{extras}]' if extras else ''}{_poetry_specifier(version)}"


def _poetry_specifier(version: str) -> str:
    """Return "^1.2" as ">=1.2,<2", "~1.2" as ">=1.2,<1.3", "1.2" as "==1.2"; poetry's own words for ranges."""
    if version == "*":
        return ""
    parts = []
    for each in (part.strip() for part in version.split(",")):
        match = _POETRY_VERSION.match(each)
        parts.append(_range(match[1], match[2]) if match else each)
    return ",".join(parts)


def _range(sign: str | None, version: str) -> str:
    if sign is None:
        return f"=={version}"
    numbers = [int(part) for part in version.split(".")]
    # ^ keeps the first number that is not 0; ~ keeps the minor one.
    kept = next((place for place, number in enumerate(numbers) if number), len(numbers) - 1)
    place = kept if sign == "^" else min(1, len(numbers) - 1)
    ceiling = [*numbers[:place], numbers[place] + 1]
    return f">={version},<{'.'.join(map(str, ceiling))}"


def _ini(path: Path, section: str, option: str) -> str:
    """Return an option of a file in INI format, "" when it is not there.

    Raises:
        BadFileError: it cannot be read.
    """
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError) as error:
        raise BadFileError(f"{path} cannot be read: {error}") from error
    return parser.get(section, option, fallback="")


def requirement_lines(path: Path, seen: tuple[Path, ...] = ()) -> tuple[str, ...]:
    """Return the requirements in a requirements file and in those that it includes; options are left out.

    Raises:
        BadFileError: it cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFileError(f"{path} cannot be read: {error}") from error
    found: list[str] = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        words = re.sub(r"(^|\s)#.*", "", line).split(" --hash")[0].strip()
        if words.startswith(("-r ", "--requirement ")):
            included = path.parent / words.split(maxsplit=1)[1]
            if included.resolve() not in seen:
                found += requirement_lines(included, (*seen, path.resolve()))
        elif words and not words.startswith("-"):
            found.append(words)
    return tuple(found)


def _checked(root: Path, requirements: Iterable[str]) -> tuple[str, ...]:
    """Return the requirements, each once.

    Raises:
        BadFileError: one is none.
    """
    for text in requirements:
        try:
            Requirement(text)
        except InvalidRequirement as error:
            raise BadFileError(f"{root}: {text!r} is not a requirement: {error}") from error
    return tuple(dict.fromkeys(requirements))


def _lock(root: Path, named: Path | None, said: list[str]) -> Path | None:
    if named is not None:
        if not named.is_file():
            raise ToolkitError(f"--lock {named}: there is no such file")
        return named.resolve()
    everything = [*(root / name for name in LOCKS), *sorted(root.glob("pylock.*.toml")), root / "requirements.txt"]
    for path in everything:
        if path.is_file() and (path.suffix != ".txt" or _pinned(path)):
            said.append(f"lock: {path.name}")
            return path
    said.append("lock: none found, so versions are chosen today")
    return None


def _pinned(path: Path) -> bool:
    """Return whether every requirement of the file has one version: only then it is a lock."""
    lines = requirement_lines(path)
    return bool(lines) and all("==" in line for line in lines)


def _tests(
    root: Path, pyproject: Mapping[str, Any], named: str | None, said: list[str]
) -> tuple[str, ...] | None:
    if named is not None:
        try:
            return tuple(shlex.split(named))
        except ValueError as error:
            raise ToolkitError(f"--tests {named!r}: {error}") from error
    configured = "pytest" in _table(pyproject, "tool") or (root / "pytest.ini").is_file()
    folder = next((name for name in TEST_FOLDERS if (root / name).is_dir()), None)
    if configured or folder or list(root.glob("test_*.py")):
        said.append(f"tests: {' '.join(PYTEST)} ({'pytest is configured' if configured else folder or 'test_*.py'})")
        return PYTEST
    said.append("tests: none found (no pytest configuration, no folder tests)")
    return None


def _modules(root: Path, said: list[str]) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    folder = root / "src" if any((root / "src").glob("*/__init__.py")) or any((root / "src").glob("*.py")) else root
    found = sorted({*_packages(folder), *_single_modules(folder)})
    said.append(f"modules: {', '.join(found)} ({'src/' if folder != root else 'the root'})" if found
                else "modules: none found, so its own imports are not exercised")
    return (folder,), tuple(found)


def _packages(folder: Path) -> Iterator[str]:
    for path in folder.glob("*/__init__.py"):
        if _is_ours(path.parent.name):
            yield path.parent.name


def _single_modules(folder: Path) -> Iterator[str]:
    for path in folder.glob("*.py"):
        if _is_ours(path.stem):
            yield path.stem


def _is_ours(name: str) -> bool:
    return name.isidentifier() and name not in NOT_THE_PROJECT and not name.startswith(("_", "test_"))


def _table(document: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return a table below a table, empty where there is none."""
    found: Any = document
    for name in names:
        found = found.get(name, {}) if isinstance(found, dict) else {}
    return found if isinstance(found, dict) else {}


def _strings(value: Sequence[Any]) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list | tuple) else ()
