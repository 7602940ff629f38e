"""Leave out test files that cannot be collected, or that take too long."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from gilscope.toolkit.evaluate.project.discovery import PYTEST
from gilscope.toolkit.evaluate.sections import LeftOut, TestRun

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.sections import Missing

UNCOLLECTED = "collection failure"   # pytest's word for it in its XML


def is_pytest(command: Sequence[str]) -> bool:
    """Return True if pytest's options can be added to a command."""
    return tuple(command[:1]) in {("pytest",), ("py.test",)} or (
        tuple(command[1:3]) == PYTEST[1:3] and command[0].startswith("python"))


def ignoring(command: Sequence[str], files: Iterable[str]) -> tuple[str, ...]:
    """Return pytest's command without those files."""
    return (*command, *(f"--ignore={file}" for file in files))


def without(project: Project, runs: Iterable[TestRun | Missing]) -> Project:
    """Return the project with a test command that leaves out files that could not be collected on any build."""
    files = dict.fromkeys(each.file for run in runs if isinstance(run, TestRun) for each in run.left_out)
    return replace(project, tests=ignoring(project.tests, files)) if project.tests and files else project


def uncollected(junit: Path, root: Path, why: Callable[[str], str]) -> tuple[LeftOut, ...]:
    """Return the files that pytest could not collect, from its XML.

    Args:
        junit: The XML of a run.
        root: The project's folder.
        why: Extracts the error from pytest's output for a file.
    """
    found = []
    for case in _cases(junit):
        error = case.find("error")
        if error is None or error.get("message") != UNCOLLECTED:
            continue
        file = _file_of(f"{case.get('classname') or ''}.{case.get('name')}".strip("."), root)
        if file:
            found.append(LeftOut(file=file, why=why(error.text or "") or UNCOLLECTED))
    return tuple(found)


def failing(junit: Path, root: Path) -> tuple[str, ...]:
    """Return the tests that fail or end in an error, named as on pytest's command line, from its XML."""
    found = []
    for case in _cases(junit):
        error = case.find("error")
        if case.find("failure") is None and (error is None or error.get("message") == UNCOLLECTED):
            continue
        dotted = case.get("classname") or ""
        file = _file_of(dotted, root)
        inside = dotted.removeprefix(file.removesuffix(".py").replace("/", ".")).strip(".") if file else dotted
        found.append("::".join(filter(None, (file, inside.replace(".", "::"), case.get("name")))))
    return tuple(dict.fromkeys(found))


def seconds_by_file(junit: Path, root: Path) -> dict[str, float]:
    """Return the seconds that the tests of each file took, from pytest's XML."""
    found: dict[str, float] = {}
    for case in _cases(junit):
        if file := _file_of(case.get("classname") or "", root):
            found[file] = found.get(file, 0.0) + float(case.get("time") or 0.0)
    return found


def sampled(seconds: Mapping[str, float], most: float, draw: random.Random) -> list[str]:
    """Return randomly drawn files whose tests take at most so many seconds together; [] if there are none."""
    chosen, left = [], most
    for file in draw.sample(sorted(seconds), len(seconds)):
        if seconds[file] <= left:
            chosen.append(file)
            left -= seconds[file]
    return chosen


def _cases(junit: Path) -> Iterator[ET.Element]:
    try:
        root = ET.parse(junit).getroot()  # noqa: S314  written by the pytest that we started, and bounded by its limit
    except (OSError, ET.ParseError):
        return
    yield from root.iter("testcase")


def _file_of(dotted: str, root: Path) -> str:
    """Return the file of "tests.unit.test_app.TestCase", from the longest prefix that exists; "" if there is none."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        file = root.joinpath(*parts[:end]).with_suffix(".py")
        if parts[end - 1] and file.is_file():
            return file.relative_to(root).as_posix()
    return ""
