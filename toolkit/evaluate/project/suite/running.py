"""The project's own tests on a build: how many pass, how they end, and whether the GIL is off at their end.

The command runs in a session of its own, in the project's folder, with the packages of a scratch environment.  A crash,
a hang and an exit are results.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import textwrap
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from gilscope.toolkit import temporary
from gilscope.toolkit.bounded_reading import parse_json, read_text
from gilscope.toolkit.evaluate.project.discovery import PYTEST
from gilscope.toolkit.evaluate.project.suite.leaving_out import (
    failing,
    ignoring,
    is_pytest,
    seconds_by_file,
    uncollected,
)
from gilscope.toolkit.evaluate.project.where_to_run import Bench, Shown, compiled_into, short
from gilscope.toolkit.evaluate.sections import NO_TIME, Missing, Place, TestRun
from gilscope.toolkit.measure.process.running import last_lines
from gilscope.toolkit.processes.supervised import Supervised

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.sections import LeftOut

WITNESS = Path(__file__).parent / "witness"
NOT_FOUND = 127   # the status of what cannot be started, as shells say it
UNFINISHED = "unfinished"
QUIET_SECONDS = 120.0           # without a word: pytest says something for each file
MOST_TRIES = 3                  # to leave out what cannot be collected
MOST_OUTPUT_BYTES = 64 * 2**20
_POLL_SECONDS = 0.25
_UNITTEST = re.compile(r"Ran (\d+) tests? in ")
_TOLD = re.compile(   # an exception, pytest's in a conftest.py, too; what argparse says; pytest of itself
    r"(?:E +)?((?:\w+\.)*\w*(?:Error|Exception|Exit)\b(?:: .+)?)$|[\w.-]+: error: (.+)|ERROR: (?!usage)(.+)")
_PERCENT = re.compile(r"\[ *(\d+)%\]$", re.MULTILINE)
_ENDS = re.compile(r" in [\d.]+s\b")   # of pytest's summary
_SUMMARY = re.compile(r"(\d+) (passed|failed|errors?|skipped)\b")


def run_tests(project: Project, bench: Bench, *, limit: float, quiet: float = QUIET_SECONDS) -> TestRun | Missing:
    """Run the project's tests on one build and return what came of them.

    Args:
        project: Whose tests.
        bench: Where.
        limit: Seconds they may take altogether.
        quiet: Seconds they may go without printing anything.
    """
    if project.tests is None:
        return Missing(reason="the project has no tests that could be found")
    if limit <= 0:
        return NO_TIME
    began = time.monotonic()
    found = _run_once(project, project.tests, bench, limit=limit, quiet=quiet)
    left_out: tuple[LeftOut, ...] = ()
    for _ in range(MOST_TRIES if is_pytest(project.tests) else 0):   # a file's error may hide those of others
        left = limit - (time.monotonic() - began)
        if not found.left_out or found.passed or found.failed or left <= 0:
            break
        left_out = (*left_out, *found.left_out)
        command = ignoring(project.tests, [each.file for each in left_out])
        again = _run_once(project, command, bench, limit=left, quiet=quiet)
        if not (again.passed or again.failed or again.left_out):
            break   # nothing is left: the first run says more
        found = again
    return replace(found, left_out=left_out if found.passed or found.failed else ())


def _run_once(project: Project, tests: Sequence[str], bench: Bench, *, limit: float, quiet: float) -> TestRun:
    command = own_command(tests, bench.python)
    with tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as name:
        place = Path(name)
        began = time.monotonic()
        ending = run_bounded(
            command, project.root, environment(bench, place), place / "output", limit=limit, quiet=quiet)
        seconds = time.monotonic() - began
        output = last_lines(place / "output")
        counted = counts(place)
        gil, culprits, imports = _witnessed(place / "witness", Shown(project, bench))
        return TestRun(
            build=bench.build, command=command, passed=counted.get("passed"), failed=counted.get("failed"),
            errors=counted.get("errors"), skipped=counted.get("skipped"), seconds=seconds,
            ending=ending + _how_far(ending, output), gil_end=gil, culprits=culprits, output=output, imports=imports,
            lacking=bench.lacking, left_out=uncollected(place / "junit.xml", project.root, told_by),
            by_file=seconds_by_file(place / "junit.xml", project.root),
            failing=failing(place / "junit.xml", project.root),
        )


def _how_far(ending: str, output: str) -> str:
    """Return how much of the tests was done when their time was up, where pytest's output tells."""
    done = _PERCENT.findall(output) if ending.startswith(UNFINISHED) else []
    return f", at {done[-1]} %" if done else ""


def own_command(command: Sequence[str], python: Path) -> tuple[str, ...]:
    """Return the command with the build's Python in the place of "python", and of the script of a test runner."""
    first, *rest = command
    if re.fullmatch(r"python(3(\.\d+)?t?)?", first):
        return (str(python), *rest)
    if first in {"pytest", "py.test"}:
        return (str(python), "-m", "pytest", *rest)
    return (first, *rest)


def needed_by(tests: Sequence[str] | None) -> tuple[str, ...]:
    """Return what the command itself needs in the environment."""
    words = tuple(tests or ())
    return ("pytest",) if words[:1] in {("pytest",), ("py.test",)} or words[:3] == PYTEST[:3] else ()


def environment(bench: Bench, place: Path) -> dict[str, str]:
    """Return the variables of the project's processes: the user's, the scratch environment in front of all else."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    options = " ".join(filter(None, [kept.get("PYTEST_ADDOPTS", ""), f"--junitxml={place / 'junit.xml'}",
                                     "-p no:cacheprovider"]))
    scripts = bench.python.parent
    return kept | {
        # What was installed into a folder of its own has its commands there.
        "PATH": os.pathsep.join([*(str(folder / "bin") for folder in bench.folders), str(scripts),
                                 kept.get("PATH", os.defpath)]),
        "VIRTUAL_ENV": str(scripts.parent),
        "PYTHONPATH": os.pathsep.join(map(str, (WITNESS, *bench.folders))),
        **compiled_into(place / "pycache"),
        "PYTEST_ADDOPTS": options,
        "GILSCOPE_WITNESS": str(place / "witness"),
    }


def run_bounded(
    command: Sequence[str], folder: Path, env: Mapping[str, str], path: Path, *, limit: float, quiet: float
) -> str:
    """Run a command in a session of its own and return how it ended; nothing of it is left.

    Args:
        command: What is run.
        folder: Where.
        env: All of its variables.
        path: The file that gets its output.
        limit: Seconds it may take.
        quiet: Seconds it may print nothing.

    Returns:
        Its exit code, or "crash: SIGNAL", or "hang: WHY", or "unfinished: WHY" when only its time was short.
    """
    with path.open("wb") as output:
        try:
            process = Supervised(command, cwd=folder, env=env, stdout=output, stderr=output)
        except OSError as error:
            output.write(f"{type(error).__name__}: {error}\n".encode())
            return str(NOT_FOUND)
        with process:
            reason = _wait(process, path, limit=limit, quiet=quiet)
    return reason or ending_of(process.returncode)


def ending_of(status: int) -> str:
    """Return what a command's status says: its exit code, or the signal that ended it."""
    return f"crash: {signal.Signals(-status).name}" if status < 0 else str(status)


def _wait(process: subprocess.Popen[bytes], output: Path, *, limit: float, quiet: float) -> str:
    """Wait for the end; return "" or why it has to be ended."""
    began = heard = time.monotonic()
    size = 0
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_POLL_SECONDS)
            return ""
        now = time.monotonic()
        if (grown := output.stat().st_size) != size:
            size, heard = grown, now
        if size > MOST_OUTPUT_BYTES:
            return f"hang: printed more than {MOST_OUTPUT_BYTES >> 20} MiB"
        # First: a limit of silence that is what was left of the time is no hang.
        if now - began > limit:
            return f"{UNFINISHED}: not done within {limit:.0f} s"
        if now - heard > quiet:
            return f"hang: no output for {quiet:.0f} s"


def counts(place: Path) -> dict[str, int]:
    """Return how many tests passed, failed and so on, by what a run left in `place`; empty: not known."""
    output = last_lines(place / "output")
    return _without_parts(_junit(place / "junit.xml"), output) or _counted(output)


def _without_parts(counted: Mapping[str, int], output: str) -> dict[str, int]:
    """Return the counts of pytest's XML without subtests, which are parts of tests, as far as its summary tells."""
    last = "".join(output.splitlines()[-1:])
    summed = _counted(last) if _ENDS.search(last) else {}
    return {name: min(count, summed.get(name, count)) if name == "passed" else count for name, count in counted.items()}


def _junit(path: Path) -> dict[str, int]:
    """Return the counts in pytest's XML, empty when there is none or it is cut off."""
    try:
        root = ET.parse(path).getroot()  # noqa: S314  written by the pytest that we started, and bounded by its limit
    except (OSError, ET.ParseError):
        return {}
    found = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for suite in root.iter("testsuite"):
        for name in found:
            found[name] += int(suite.get(name, 0))
    passed = found["tests"] - found["failures"] - found["errors"] - found["skipped"]
    return {"passed": passed, "failed": found["failures"], "errors": found["errors"], "skipped": found["skipped"]}


def told_by(output: str) -> str:
    """Return the last line of an output that names an error: an exception, an option that nobody knows; "" for none."""
    found = [match for line in output.splitlines() if (match := _TOLD.match(line))]
    return textwrap.shorten(next(filter(None, found[-1].groups())), 120) if found else ""


def _counted(output: str) -> dict[str, int]:
    """Return the counts in the last line that looks like a summary of pytest (a crash leaves no XML) or unittest."""
    lines = output.splitlines()
    for number, line in enumerate(reversed(lines), 1):
        if ran := _UNITTEST.match(line):
            return _counted_by_unittest(int(ran[1]), " ".join(lines[len(lines) - number + 1:]))
        if found := {name.rstrip("s") if name.startswith("error") else name: int(count)
                     for count, name in _SUMMARY.findall(line)}:
            usual = {"passed": 0, "failed": 0, "errors": found.pop("error", 0), "skipped": 0}
            return usual | found
    return {}


def _is_code(file: str) -> bool:
    return not file.startswith(str(WITNESS)) and not file.startswith("<")


def _counted_by_unittest(ran: int, ending: str) -> dict[str, int]:
    """Return the counts of "Ran 3 tests in 0.1s" and what follows: "FAILED (failures=1, errors=1, skipped=1)"."""
    told = {name: int(count) for name, count in re.findall(r"(failures|errors|skipped)=(\d+)", ending)}
    found = {"failed": told.get("failures", 0), "errors": told.get("errors", 0), "skipped": told.get("skipped", 0)}
    return found | {"passed": max(0, ran - sum(found.values()))}


def _witnessed(path: Path, shown: Shown) -> tuple[bool | None, tuple[str, ...], tuple[Place, ...]]:
    """Return what the run's Pythons wrote down.

    Returns:
        Whether the GIL was on at the end of any of them, None when none came to its end; the modules that turned it
        on; and of each extension module that was loaded the project's line that asked for it.
    """
    try:
        lines = read_text(path).splitlines()
        told = [parse_json(line) for line in lines if line.endswith("}")]
    except (OSError, ValueError):   # none was written, or a test has written over it
        return None, (), ()
    culprits = tuple(dict.fromkeys(str(each["flip"]) for each in told if "flip" in each))
    ends = [bool(each["gil"]) for each in told if "gil" in each]
    places: dict[str, Place] = {}
    for each in told:
        chain = each.get("chain", ())
        for depth, (file, line) in enumerate(chain):
            if (name := shown.path(file)) is not None:
                way = tuple(f"{short(file)}:{line}" for file, line in reversed(chain[:depth]) if _is_code(file))
                places.setdefault(each["load"], Place(file=name, line=int(line), what=each["load"], way=way))
                break
    on = (any(ends) or bool(culprits)) if ends or culprits else None
    return on, culprits, tuple(places.values())
