"""What a project needs to run and to be tested, by the conventions of packaging tools; reads files only."""

from __future__ import annotations

import configparser
import re
from email.parser import HeaderParser
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from gilscope.toolkit.bounded_reading import read_bytes, read_text
from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.evaluate.requirements.file import listed, requirement_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from email.message import Message
    from pathlib import Path


NONE_FOUND = "requirements: none found"   # how it is said; where was looked comes next
TEST_GROUPS = ("test", "tests", "testing", "dev")   # names of groups and extras that hold what the tests need
TEST_EXTRAS = TEST_GROUPS[:3]   # of a setup.cfg or an sdist: "dev" is asked only where there is none of these
TEST_FILES = ("requirements-test.txt", "requirements-tests.txt", "test-requirements.txt", "tests/requirements.txt",
              "requirements/test.txt", "requirements/tests.txt", "requirements-dev.txt", "dev-requirements.txt")
_FACTOR = re.compile(r"!?[\w,{}!-]+: ")   # tox: "py312: thing" holds for some environments only
_POETRY_VERSION = re.compile(r"(\^|~)?\s*(\d+(?:\.\d+)*)$")


def find_requirements(
    root: Path, pyproject: Mapping[str, Any], said: list[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what it needs to run, and what its tests need beside; say by which convention in `said`.

    Raises:
        BadFileError: a file is damaged, or a requirement is none.
    """
    project, poetry = table_below(pyproject, "project"), table_below(pyproject, "tool", "poetry")
    if "dependencies" in project:
        found = _strings(project["dependencies"])
        said.append(_listed("[project] of pyproject.toml", found))
    elif poetry:
        found = tuple(_from_poetry({name: wanted for name, wanted in table_below(poetry, "dependencies").items()
                                    if not (isinstance(wanted, dict) and wanted.get("optional"))}))
        said.append(_listed("[tool.poetry] of pyproject.toml", found))
    elif (setup := root / "setup.cfg").is_file() and (text := _ini(setup, "options", "install_requires")):
        found = _lines(text)
        said.append(_listed("setup.cfg", found))
    elif (path := root / "requirements.txt").is_file():
        told = listed(path)
        found = told.requirements
        said.append(_listed("requirements.txt", (*found, *told.left_out)))
        if told.left_out:
            said.append(f"not looked at, as it is no release: {', '.join(told.left_out)}")
    elif found := tuple(_from_metadata(root / "PKG-INFO")):
        said.append("requirements: PKG-INFO")
    elif where := declares_none(root, project):
        said.append(f"requirements: none, as {where} declares none")
    else:
        unread = "; setup.py is not run: put them into a requirements.txt" if (root / "setup.py").is_file() else ""
        said.append(f"{NONE_FOUND} (no [project], [tool.poetry], setup.cfg, requirements.txt or PKG-INFO"
                    f"{unread})")
    needed = _needed_by_tests(root, pyproject, said)
    return (_checked(root, tuple(_without_itself(project, found))),
            _checked(root, tuple(_without_itself(project, needed))))


def _listed(where: str, found: Sequence[str]) -> str:
    """Return by which file it is known what the project needs to run, if only that this is nothing."""
    return f"requirements: {where}" if found else f"requirements: none, as {where} lists none"


def find_extras(root: Path, pyproject: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return what each extra of the project holds, by its name.

    Raises:
        BadFileError: a file is damaged, or a requirement is none.
    """
    project, poetry = table_below(pyproject, "project"), table_below(pyproject, "tool", "poetry")
    if declared := table_below(project, "optional-dependencies"):
        found = {name: tuple(_without_itself(project, _strings(texts))) for name, texts in declared.items()}
    elif declared := table_below(poetry, "extras"):
        optional = {canonicalize_name(name): text for name, table in table_below(poetry, "dependencies").items()
                    for text in _from_poetry({name: table})}
        found = {name: tuple(optional[key] for text in _strings(texts)
                             if (key := canonicalize_name(text)) in optional) for name, texts in declared.items()}
    else:
        found = {name: _lines(text) for name, text in _options(root / "setup.cfg", "options.extras_require").items()}
    return {name: _checked(root, texts) for name, texts in found.items()}


def declares_none(root: Path, project: Mapping[str, Any]) -> str:
    """Return which file says that the project needs nothing, by not saying what; "": none does."""
    if project and "dependencies" not in _strings(project.get("dynamic", ())):
        return "[project] of pyproject.toml"
    if not (root / "setup.py").is_file() and _ini(root / "setup.cfg", "metadata", "name"):
        return "setup.cfg"
    return ""


def _without_itself(
    project: Mapping[str, Any], requirements: Iterable[str], seen: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Yield "shop[excel]" of the project shop as what that extra holds: what is evaluated is its source, no release."""
    own = canonicalize_name(str(project.get("name", "")))
    extras = {canonicalize_name(name): texts for name, texts in table_below(project, "optional-dependencies").items()}
    for text in requirements:
        asked = _read(text)
        if asked is None or canonicalize_name(asked.name) != own:
            yield text
            continue
        for extra in sorted(set(map(canonicalize_name, asked.extras)) - seen):
            yield from _without_itself(project, _strings(extras.get(extra, ())), seen | {extra})


def _read(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None   # _checked says so


def _from_metadata(path: Path) -> Iterator[str]:
    """Yield what an sdist's metadata says it needs, as built when it was published; not what its extras need."""
    yield from (text for text in _required(path) if "extra ==" not in text)


def _required(path: Path) -> tuple[str, ...]:
    return tuple(map(str, _metadata(path).get_all("Requires-Dist", ())))


def name_in_metadata(root: Path) -> str:
    """Return the name that an sdist's metadata gives the project; "" where there is none."""
    return str(_metadata(root / "PKG-INFO").get("Name", ""))


def _metadata(path: Path) -> Message:
    return HeaderParser().parsestr(read_bytes(path).decode(errors="replace") if path.is_file() else "")


def _needed_by_tests(root: Path, pyproject: Mapping[str, Any], said: list[str]) -> tuple[str, ...]:
    if found := tuple(_for_tests(pyproject)):
        said.append("for the tests: groups and extras of pyproject.toml")
        return found
    if found := _first_of(lambda name: _lines(_ini(root / "setup.cfg", "options.extras_require", name))):
        said.append("for the tests: extras of setup.cfg")
        return found
    for name in TEST_FILES:
        if (root / name).is_file() and (found := requirement_lines(root / name)):
            said.append(f"for the tests: {name}")
            return found
    if found := tuple(_from_tox(root / "tox.ini")):
        said.append("for the tests: [testenv] of tox.ini")
    elif found := _first_of(lambda name: _of_extra(root / "PKG-INFO", name)):
        said.append("for the tests: extras of PKG-INFO")
    return found


def _first_of(extra: Callable[[str], Iterable[str]]) -> tuple[str, ...]:
    """Return what the extras for tests hold, all of them; without any, what "dev" holds."""
    return tuple(text for name in TEST_EXTRAS for text in extra(name)) or tuple(extra("dev"))


def _of_extra(path: Path, name: str) -> Iterator[str]:
    """Yield what an extra holds by an sdist's metadata, as requirements without an extra."""
    asked = re.compile(rf"""extra == ["']{name}["']""")
    # What else the marker says (a version of Python) is decided on each build.
    yield from (asked.sub('python_version >= "3"', text) for text in _required(path) if asked.search(text))


def _from_tox(path: Path) -> Iterator[str]:
    """Yield the plain requirements of tox's [testenv]; not those of single environments, nor files that it names."""
    for line in _ini(path, "testenv", "deps").splitlines() if path.is_file() else ():
        text = line.partition(" #")[0].strip()
        if text and not text.startswith(("-", "{", "#", ".")) and not _FACTOR.match(text):
            yield text


def _for_tests(pyproject: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the tests need: groups and extras with the usual names."""
    groups = table_below(pyproject, "dependency-groups")
    extras = table_below(pyproject, "project", "optional-dependencies")
    poetry = table_below(pyproject, "tool", "poetry", "group")
    for name in TEST_GROUPS:
        yield from _group(groups, name, ())
        yield from _strings(extras.get(name, ()))
        yield from _from_poetry(table_below(poetry, name, "dependencies"))


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
    return _options(path, section).get(option, "")


def _options(path: Path, section: str) -> Mapping[str, str]:
    """Return the options of a section of a file in INI format; none when it is not there.

    Raises:
        BadFileError: it cannot be read.
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


def _checked(root: Path, requirements: Sequence[str]) -> tuple[str, ...]:
    """Return the requirements, each once.

    Raises:
        BadFileError: one is none.
    """
    for text in requirements:
        try:
            Requirement(text)
        except InvalidRequirement as error:
            raise BadFileError(f"{root}: {text!r} is not a requirement: {str(error).splitlines()[0]}") from error
    return tuple(dict.fromkeys(requirements))


def table_below(document: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return a table below a table, empty where there is none."""
    found: Any = document
    for name in names:
        found = found.get(name, {}) if isinstance(found, dict) else {}
    return found if isinstance(found, dict) else {}


def _strings(value: Sequence[Any]) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list | tuple) else ()
