"""Read the requirements that a project declares for running and testing, by the conventions of packaging tools."""

from __future__ import annotations

import configparser
import re
import shlex
from dataclasses import dataclass
from email.parser import HeaderParser
from typing import TYPE_CHECKING, Any

from packaging.dependency_groups import resolve_dependency_groups
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from gilscope.toolkit.bounded_reading import read_bytes, read_text
from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.evaluate.requirements.extras import for_extra, is_of_an_extra
from gilscope.toolkit.evaluate.requirements.requirements_file import read_requirements_file, requirement_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from email.message import Message
    from pathlib import Path


TEST_GROUPS = ("test", "tests", "testing", "dev")   # usual names of groups and extras with the tests' requirements
TEST_EXTRAS = TEST_GROUPS[:3]   # in setup.cfg and sdists, "dev" counts only if none of these exists
TEST_FILES = ("requirements-test.txt", "requirements-tests.txt", "test-requirements.txt", "tests/requirements.txt",
              "requirements/test.txt", "requirements/tests.txt", "requirements-dev.txt", "dev-requirements.txt")
_FACTOR = re.compile(r"!?[\w,{}!-]+: ")   # tox: "py312: thing" applies to some environments only
# The programs of tox's commands that run tests, and tox's substitutions that have an equivalent here.
_RUNNERS = {"pytest", "unittest", "nose2", "trial", "ward", "stestr", "zope.testrunner"}
_RUNNER_SCRIPTS = {"py.test": "pytest", "zope-testrunner": "zope.testrunner"}
_TOX_VALUES = {"envpython": "python", "envbindir": "", "toxinidir": ".", "tox_root": ".", "posargs": ""}
_TOX_VARIABLE = re.compile(r"\{(\w+)(?::([^{}]*))?\}")
_VERSION = re.compile(r"\d+\.\d+")
STATIC_METADATA = (2, 2)   # from this version on, what is not listed as dynamic is the same in the wheel
_POETRY_VERSION = re.compile(r"(\^|~)?\s*(\d+(?:\.\d+)*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredRequirements:
    """The requirements that a project's files declare."""

    runtime: tuple[str, ...]
    tests: tuple[str, ...]    # what the tests need in addition
    found: bool               # False if no file that could declare runtime requirements was found


def find_requirements(root: Path, pyproject: Mapping[str, Any], notes: list[str]) -> DeclaredRequirements:
    """Return the declared requirements; append to `notes` the convention by which each kind was found.

    Raises:
        BadFileError: A file is damaged, or an entry is not a requirement.
    """
    known = True
    project, poetry = table_below(pyproject, "project"), table_below(pyproject, "tool", "poetry")
    if "dependencies" in project:
        found = _strings(project["dependencies"])
        notes.append(_listed("[project] of pyproject.toml", found))
    elif poetry:
        found = tuple(_from_poetry({name: entry for name, entry in table_below(poetry, "dependencies").items()
                                    if not (isinstance(entry, dict) and entry.get("optional"))}))
        notes.append(_listed("[tool.poetry] of pyproject.toml", found))
    elif (setup := root / "setup.cfg").is_file() and (text := _ini(setup, "options", "install_requires")):
        found = _lines(text)
        notes.append(_listed("setup.cfg", found))
    elif (path := root / "requirements.txt").is_file():
        file = read_requirements_file(path)
        found = file.requirements
        notes.append(_listed("requirements.txt", (*found, *file.left_out)))
        if file.left_out:
            notes.append(f"not evaluated, because they are not releases: {', '.join(file.left_out)}")
    elif found := tuple(_from_metadata(root / "PKG-INFO")):
        notes.append("requirements: PKG-INFO")
    elif where := declares_none(root, project):
        notes.append(f"requirements: none, as {where} declares none")
    else:
        known = False
        unread = " (setup.py is not run: put them into a requirements.txt)" if (root / "setup.py").is_file() else ""
        notes.append("requirements: none found in [project], [tool.poetry], setup.cfg, requirements.txt or PKG-INFO"
                     f"{unread}")
    for_tests = _find_test_requirements(root, pyproject, notes)
    return DeclaredRequirements(
        runtime=_checked(root, _resolve_own_extras(project, found)),
        tests=_checked(root, _resolve_own_extras(project, for_tests)), found=known)


def _listed(where: str, found: Sequence[str]) -> str:
    """Return the note for a file that declares the runtime requirements, which may be none."""
    return f"requirements: {where}" if found else f"requirements: none, as {where} lists none"


def find_extras(root: Path, pyproject: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the requirements of each extra of the project, by its name.

    Raises:
        BadFileError: A file is damaged, or an entry is not a requirement.
    """
    project, poetry = table_below(pyproject, "project"), table_below(pyproject, "tool", "poetry")
    if declared := table_below(project, "optional-dependencies"):
        found = {name: tuple(_resolve_own_extras(project, _strings(texts))) for name, texts in declared.items()}
    elif declared := table_below(poetry, "extras"):
        optional = {canonicalize_name(name): text for name, table in table_below(poetry, "dependencies").items()
                    for text in _from_poetry({name: table})}
        found = {name: tuple(optional[key] for text in _strings(texts)
                             if (key := canonicalize_name(text)) in optional) for name, texts in declared.items()}
    else:
        found = {name: _lines(text) for name, text in _options(root / "setup.cfg", "options.extras_require").items()}
    return {name: _checked(root, texts) for name, texts in found.items()}


def declares_none(root: Path, project: Mapping[str, Any]) -> str:
    """Return the file that declares no requirements although it could; "" if there is none."""
    if project and "dependencies" not in _strings(project.get("dynamic", ())):
        return "[project] of pyproject.toml"
    if not (root / "setup.py").is_file() and _ini(root / "setup.cfg", "metadata", "name"):
        return "setup.cfg"
    return "PKG-INFO" if _requirements_are_complete(_metadata(root / "PKG-INFO")) else ""


def _requirements_are_complete(metadata: Message) -> bool:
    """Return True if an sdist's metadata lists all requirements: version 2.2 or newer, and none are dynamic (PEP 643).

    Older metadata may lack requirements that the wheel has.
    """
    version = str(metadata.get("Metadata-Version", ""))
    dynamic = {str(each).strip().lower() for each in metadata.get_all("Dynamic", ())}
    return _VERSION.fullmatch(version) is not None and tuple(
        map(int, version.split("."))) >= STATIC_METADATA and "requires-dist" not in dynamic


def _resolve_own_extras(
    project: Mapping[str, Any], requirements: Iterable[str], seen: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Replace requirements like "shop[excel]" of the project shop by the contents of that extra.

    The project's source is evaluated, so none of its releases must be installed.
    """
    own = canonicalize_name(str(project.get("name", "")))
    extras = {canonicalize_name(name): texts for name, texts in table_below(project, "optional-dependencies").items()}
    for text in requirements:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            yield text   # _checked reports it
            continue
        if canonicalize_name(requirement.name) != own:
            yield text
            continue
        for extra in sorted(set(map(canonicalize_name, requirement.extras)) - seen):
            yield from _resolve_own_extras(project, _strings(extras.get(extra, ())), seen | {extra})


def _from_metadata(path: Path) -> Iterator[str]:
    """Yield the requirements in an sdist's metadata, which was built when it was published; not those of extras."""
    yield from (text for text in _required(path) if not is_of_an_extra(text))


def _required(path: Path) -> tuple[str, ...]:
    return tuple(map(str, _metadata(path).get_all("Requires-Dist", ())))


def name_in_metadata(root: Path) -> str:
    """Return the project's name in an sdist's metadata; "" if there is no metadata."""
    return str(_metadata(root / "PKG-INFO").get("Name", ""))


def _metadata(path: Path) -> Message:
    return HeaderParser().parsestr(read_bytes(path).decode(errors="replace") if path.is_file() else "")


def _find_test_requirements(root: Path, pyproject: Mapping[str, Any], notes: list[str]) -> tuple[str, ...]:
    if found := tuple(_from_pyproject(root, pyproject)):
        notes.append("for the tests: groups and extras of pyproject.toml")
        return found
    if found := _first_of(lambda name: _lines(_ini(root / "setup.cfg", "options.extras_require", name))):
        notes.append("for the tests: extras of setup.cfg")
        return found
    for name in TEST_FILES:
        if (root / name).is_file() and (found := requirement_lines(root / name)):
            notes.append(f"for the tests: {name}")
            return found
    if found := tuple(_from_tox(root / "tox.ini")):
        notes.append("for the tests: [testenv] of tox.ini")
    elif found := _first_of(lambda name: _of_extra(root / "PKG-INFO", name)):
        notes.append("for the tests: extras of PKG-INFO")
    return found


def _first_of(extra: Callable[[str], Iterable[str]]) -> tuple[str, ...]:
    """Return the requirements of all extras for tests; those of "dev" if there are none."""
    return tuple(text for name in TEST_EXTRAS for text in extra(name)) or tuple(extra("dev"))


def _of_extra(path: Path, name: str) -> Iterator[str]:
    """Yield the requirements of an extra in an sdist's metadata, without the condition on the extra."""
    yield from (found for text in _required(path) if (found := for_extra(text, name)) is not None)


def _from_tox(path: Path) -> Iterator[str]:
    """Yield the plain requirements of tox's [testenv], except those of single environments and of files."""
    for line in _ini(path, "testenv", "deps").splitlines() if path.is_file() else ():
        text = line.partition(" #")[0].strip()
        if text and not text.startswith(("-", "{", "#", ".")) and not _FACTOR.match(text):
            yield text


def tox_tests(root: Path) -> tuple[str, ...]:
    """Return the first command of tox's [testenv] that runs tests, with "python" for the build's Python; () if none.

    Commands of single environments, and those that need a value that only tox knows, are left out.

    Raises:
        BadFileError: The file cannot be read.
    """
    for line in _ini(root / "tox.ini", "testenv", "commands").replace("\\\n", " ").splitlines():
        text = _TOX_VARIABLE.sub(lambda match: _TOX_VALUES.get(match[1], match[0]) or match[2] or "", line)
        try:
            words = shlex.split(text.strip().lstrip("-").strip(), comments=True)
        except ValueError:
            continue
        if not words or "{" in text or _FACTOR.match(line.strip()):
            continue
        first, *rest = words
        program = first.rpartition("/")[2]
        if program.startswith("python") and rest[:2] == ["-m", "coverage"]:
            program, rest = "coverage", rest[2:]
        if program == "coverage" and rest[:1] == ["run"] and "-m" in rest:   # its options do not change the tests
            program, rest = "python", rest[rest.index("-m"):]
        if program.startswith("python") and rest[:1] == ["-m"] and rest[1:] and rest[1] in _RUNNERS:
            return ("python", *rest)
        if (runner := _RUNNER_SCRIPTS.get(program, program)) in _RUNNERS:
            return ("python", "-m", runner, *rest)
    return ()


def _from_pyproject(root: Path, pyproject: Mapping[str, Any]) -> Iterator[str]:
    """Yield the requirements in groups and extras with the usual names."""
    extras = table_below(pyproject, "project", "optional-dependencies")
    poetry = table_below(pyproject, "tool", "poetry", "group")
    for name in TEST_GROUPS:
        yield from _from_group(root, table_below(pyproject, "dependency-groups"), name)
        yield from _strings(extras.get(name, ()))
        yield from _from_poetry(table_below(poetry, name, "dependencies"))


def _from_group(root: Path, groups: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the requirements of a dependency group and of the groups that it includes (PEP 735)."""
    if name not in groups:
        return ()
    try:
        return resolve_dependency_groups(groups, name)
    except ExceptionGroup as errors:
        first, *_ = errors.exceptions
        while isinstance(first, ExceptionGroup):
            first, *_ = first.exceptions
        raise BadFileError(f"{root / 'pyproject.toml'}: [dependency-groups]: {first}") from errors


def _from_poetry(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield poetry's requirements in the standard form, except for those by path or URL."""
    for name, entry in table.items():
        version = entry.get("version", "") if isinstance(entry, dict) else entry
        if name.lower() != "python" and isinstance(version, str) and version:
            extras = ",".join(_strings(entry.get("extras", ()))) if isinstance(entry, dict) else ""
            yield f"{name}{f'[{extras}]' if extras else ''}{_poetry_specifier(version)}"


def _poetry_specifier(version: str) -> str:
    """Translate poetry's version ranges: "^1.2" is ">=1.2,<2", "~1.2" is ">=1.2,<1.3", "1.2" is "==1.2"."""
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
    # ^ fixes the first number that is not 0; ~ fixes the minor one.
    first = next((place for place, number in enumerate(numbers) if number), len(numbers) - 1)
    place = first if sign == "^" else min(1, len(numbers) - 1)
    ceiling = [*numbers[:place], numbers[place] + 1]
    return f">={version},<{'.'.join(map(str, ceiling))}"


def _ini(path: Path, section: str, option: str) -> str:
    """Return an option of a file in INI format, "" if it is missing.

    Raises:
        BadFileError: The file cannot be read.
    """
    return _options(path, section).get(option, "")


def _options(path: Path, section: str) -> Mapping[str, str]:
    """Return the options in a section of a file in INI format; empty if it is missing.

    Raises:
        BadFileError: The file cannot be read.
    """
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(read_text(path), source=str(path))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise BadFileError(f"{path} cannot be read: {error.strerror}") from error
    except (configparser.Error, UnicodeDecodeError) as error:
        raise BadFileError(f"{path} cannot be read: {error}") from error
    return dict(parser[section]) if parser.has_section(section) else {}


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def _checked(root: Path, requirements: Iterable[str]) -> tuple[str, ...]:
    """Return the requirements without duplicates.

    Raises:
        BadFileError: An entry is not a requirement.
    """
    unique = tuple(dict.fromkeys(requirements))
    for text in unique:
        try:
            Requirement(text)
        except InvalidRequirement as error:
            raise BadFileError(f"{root}: {text!r} is not a requirement: {str(error).splitlines()[0]}") from error
    return unique


def table_below(document: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return a nested table, empty if it does not exist."""
    found: Any = document
    for name in names:
        found = found.get(name, {}) if isinstance(found, dict) else {}
    return found if isinstance(found, dict) else {}


def _strings(value: Sequence[Any]) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list | tuple) else ()
