"""Run the project's own tests on a build: how many pass, how they end, and if the GIL is off at the end.

The command runs in its own session, in the project's folder, with the packages of a scratch environment.  A crash, a
hang and an exit are results.
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
from gilscope.toolkit.bounded_reading import last_lines
from gilscope.toolkit.children.asking import users_variables
from gilscope.toolkit.escaping import uncoloured
from gilscope.toolkit.evaluate.project.discovery import PYTEST
from gilscope.toolkit.evaluate.project.suite.leaving_out import (
    failing,
    ignoring,
    is_pytest,
    seconds_by_file,
    uncollected,
)
from gilscope.toolkit.evaluate.project.where_to_run import ProjectPaths, RunSite, compiled_into, short
from gilscope.toolkit.evaluate.sections import NO_TIME, CommandEnding, Missing, Place, TestRun
from gilscope.toolkit.gil_guard.extension_loads import VARIABLE, WITNESS
from gilscope.toolkit.gil_guard.load_records import read_records
from gilscope.toolkit.processes.supervised import Supervised

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.sections import LeftOut

PLUGINS = Path(__file__).parent / "witness"   # plugins of pytest for the project's process
NOT_FOUND = 127   # the exit status of shells for a command that cannot be started
QUIET_SECONDS = 120.0           # without output; pytest prints something for each file
MOST_TRIES = 3                  # to leave out files that cannot be collected
MOST_OUTPUT_BYTES = 64 * 2**20
_POLL_SECONDS = 0.25
_UNITTEST = re.compile(r"Ran (\d+) tests? in ")
_ZOPE = re.compile(   # of zope.testrunner: of one layer of tests, indented, or of all of several
    r"(?: *Ran|Total:) (\d+) tests?(?: with|,) (\d+) failures?, (\d+) errors?(?:,| and) (\d+) skipped in ")
_TOLD = re.compile(   # an exception, also in a conftest.py; a message of argparse; an error of pytest
    r"(?:E +)?((?:\w+\.)*\w*(?:Error|Exception|Exit)\b(?:: .+)?)$|[\w.-]+: error: (.+)|ERROR: (?!usage)(.+)")
_NO_MODULE = re.compile(r"No module named '(\w+)")
_PERCENT = re.compile(r"\[ *(\d+)%\]$", re.MULTILINE)
_ENDS = re.compile(r" in [\d.]+s\b")   # at the end of pytest's summary
_SUMMARY = re.compile(r"(\d+) (passed|failed|errors?|skipped)\b")


def run_tests(project: Project, run_site: RunSite, *, limit: float, quiet: float = QUIET_SECONDS) -> TestRun | Missing:
    """Run the project's tests on one build and return the result.

    Args:
        project: The project.
        run_site: The site to run them on.
        limit: Seconds for the whole run.
        quiet: Seconds without any output after which the run counts as hanging.
    """
    if project.tests is None:
        return Missing(reason="the project has no tests that could be found")
    if limit <= 0:
        return NO_TIME
    began = time.monotonic()
    found = _run_once(project, project.tests, run_site, limit=limit, quiet=quiet)
    left_out: tuple[LeftOut, ...] = ()
    for _ in range(MOST_TRIES if is_pytest(project.tests) else 0):   # one file's error may hide those of others
        left = limit - (time.monotonic() - began)
        if not found.left_out or found.passed or found.failed or left <= 0:
            break
        left_out = (*left_out, *found.left_out)
        command = ignoring(project.tests, [each.file for each in left_out])
        again = _run_once(project, command, run_site, limit=left, quiet=quiet)
        if not (again.passed or again.failed or again.left_out):
            break   # nothing is left to run, and the first run says more
        found = again
    found = replace(found, left_out=left_out if found.passed or found.failed else ())
    return replace(found, missing_modules=missing_modules(found))


def _run_once(project: Project, tests: Sequence[str], run_site: RunSite, *, limit: float, quiet: float) -> TestRun:
    command = own_command(tests, run_site.python)
    with tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as name:
        place = Path(name)
        began = time.monotonic()
        ending = run_bounded(
            command, project.root, environment(run_site, place), place / "output", limit=limit, quiet=quiet)
        seconds = time.monotonic() - began
        output = last_lines(place / "output")
        counted = counts(place)
        left_out = uncollected(place / "junit.xml", project.root, error_line)
        gil, culprits, imports = _witnessed(place / "witness", ProjectPaths(project, run_site))
        return TestRun(
            build=run_site.build, command=command, passed=counted.get("passed"), failed=counted.get("failed"),
            errors=counted.get("errors"), seconds=seconds,
            ending=replace(ending, percent=_how_far(ending, output)), gil_end=gil, culprits=culprits, output=output,
            error=error_line(output), imports=imports,
            lacking=run_site.lacking, left_out=left_out, uncollected=len(left_out),
            by_file=seconds_by_file(place / "junit.xml", project.root),
            failing=failing(place / "junit.xml", project.root),
        )


def _how_far(ending: CommandEnding, output: str) -> int | None:
    """Return the percentage of tests done when time was up, if pytest's output shows it."""
    done = _PERCENT.findall(output) if ending.kind == "unfinished" else []
    return int(done[-1]) if done else None


def own_command(command: Sequence[str], python: Path) -> tuple[str, ...]:
    """Replace "python" in the command by the build's Python, and a test runner's script by its module."""
    first, *rest = command
    if re.fullmatch(r"python(3(\.\d+)?t?)?", first):
        return (str(python), *rest)
    if first in {"pytest", "py.test"}:
        return (str(python), "-m", "pytest", *rest)
    return (first, *rest)


def needed_by(tests: Sequence[str] | None) -> tuple[str, ...]:
    """Return the packages that the command itself needs in the environment."""
    words = tuple(tests or ())
    if words[:3] == ("python", "-m", "zope.testrunner"):
        return ("zope.testrunner",)
    return ("pytest",) if words[:1] in {("pytest",), ("py.test",)} or words[:3] == PYTEST[:3] else ()


def environment(run_site: RunSite, place: Path) -> dict[str, str]:
    """Return the variables of the project's processes: the user's, with the scratch environment first."""
    kept = users_variables()
    options = " ".join(filter(None, [kept.get("PYTEST_ADDOPTS", ""), f"--junitxml={place / 'junit.xml'}",
                                     "-p no:cacheprovider"]))
    scripts = run_site.python.parent
    return kept | {
        # The commands of packages in a target folder are there.
        "PATH": os.pathsep.join([*(str(folder / "bin") for folder in run_site.folders), str(scripts),
                                 kept.get("PATH", os.defpath)]),
        "VIRTUAL_ENV": str(scripts.parent),
        "PYTHONPATH": os.pathsep.join(map(str, (WITNESS, PLUGINS, *run_site.folders))),
        **compiled_into(place / "pycache"),
        "PYTEST_ADDOPTS": options,
        VARIABLE: str(place / "witness"),
    }


def run_bounded(
    command: Sequence[str], folder: Path, env: Mapping[str, str], path: Path, *, limit: float, quiet: float
) -> CommandEnding:
    """Run a command in its own session and return how it ended; all its processes are ended.

    Args:
        command: The command.
        folder: The working folder.
        env: All its variables.
        path: The file for its output.
        limit: Seconds for the whole run.
        quiet: Seconds without any output after which it counts as hanging.
    """
    with path.open("wb") as output:
        try:
            process = Supervised(command, cwd=folder, env=env, stdout=output, stderr=output)
        except OSError as error:
            output.write(f"{type(error).__name__}: {error}\n".encode())
            return CommandEnding(kind="exit", code=NOT_FOUND)
        with process:
            cut_off = _wait(process, path, limit=limit, quiet=quiet)
    return cut_off or ending_of(process.returncode)


def ending_of(status: int) -> CommandEnding:
    """Return a command's exit code or signal from its status."""
    if status < 0:
        return CommandEnding(kind="crash", detail=signal.Signals(-status).name)
    return CommandEnding(kind="exit", code=status)


def _wait(process: subprocess.Popen[bytes], output: Path, *, limit: float, quiet: float) -> CommandEnding | None:
    """Wait for the end; return None, or why the command must be ended."""
    began = heard = time.monotonic()
    size = 0
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_POLL_SECONDS)
            return None
        now = time.monotonic()
        if (grown := output.stat().st_size) != size:
            size, heard = grown, now
        if size > MOST_OUTPUT_BYTES:
            return CommandEnding(kind="hang", detail=f"printed more than {MOST_OUTPUT_BYTES >> 20} MiB")
        # First, because a limit for silence that equals the time left does not indicate a hang.
        if now - began > limit:
            return CommandEnding(kind="unfinished", detail=f"not done within {limit:.0f} s")
        if now - heard > quiet:
            return CommandEnding(kind="hang", detail=f"no output for {quiet:.0f} s")


def counts(place: Path) -> dict[str, int]:
    """Return how many tests passed, failed and so on, from the files of a run in `place`; empty if unknown."""
    output = last_lines(place / "output")
    return _without_parts(_junit(place / "junit.xml"), output) or _counted(output)


def _without_parts(counted: Mapping[str, int], output: str) -> dict[str, int]:
    """Return the counts in pytest's XML without subtests, as far as its summary shows them."""
    last = "".join(output.splitlines()[-1:])
    summed = _counted(last) if _ENDS.search(last) else {}
    return {name: min(count, summed.get(name, count)) if name == "passed" else count for name, count in counted.items()}


def _junit(path: Path) -> dict[str, int]:
    """Return the counts in pytest's XML, empty if it is missing or cut off."""
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


def error_line(output: str) -> str:
    """Return the last line of an output that names an error, such as an exception or an unknown option; "" if none."""
    found = [match for line in output.splitlines() if (match := _TOLD.match(line))]
    return textwrap.shorten(next(filter(None, found[-1].groups())), 120) if found else ""


def missing_modules(run: TestRun) -> tuple[str, ...]:
    """Return the modules for want of which tests did not run or could not be collected."""
    texts = [*([] if run.ran else [run.output]), *(each.why for each in run.left_out)]
    return tuple(dict.fromkeys(_NO_MODULE.findall("\n".join(texts))))


def _counted(output: str) -> dict[str, int]:
    """Return the counts in the last line that is a summary of a test runner; a crash leaves no XML."""
    lines = uncoloured(output).splitlines()
    for number, line in enumerate(reversed(lines), 1):
        if ran := _UNITTEST.match(line):
            return _counted_by_unittest(int(ran[1]), " ".join(lines[len(lines) - number + 1:]))
        if ran := _ZOPE.match(line):
            count, failed, errors, skipped = map(int, ran.groups())
            return {"passed": max(0, count - failed - errors - skipped), "failed": failed, "errors": errors,
                    "skipped": skipped}
        if found := {name.rstrip("s") if name.startswith("error") else name: int(count)
                     for count, name in _SUMMARY.findall(line)}:
            usual = {"passed": 0, "failed": 0, "errors": found.pop("error", 0), "skipped": 0}
            return usual | found
    return {}


def _is_code(file: str) -> bool:
    return not file.startswith(WITNESS) and not file.startswith("<")


def _counted_by_unittest(ran: int, ending: str) -> dict[str, int]:
    """Return the counts of "Ran 3 tests in 0.1s" and the line after: "FAILED (failures=1, errors=1, skipped=1)"."""
    told = {name: int(count) for name, count in re.findall(r"(failures|errors|skipped)=(\d+)", ending)}
    found = {"failed": told.get("failures", 0), "errors": told.get("errors", 0), "skipped": told.get("skipped", 0)}
    return found | {"passed": max(0, ran - sum(found.values()))}


def _witnessed(path: Path, shown: ProjectPaths) -> tuple[bool | None, tuple[str, ...], tuple[Place, ...]]:
    """Return the records of the run's processes.

    Returns:
        True if the GIL was on at the end of any process, None if no process came to its end; the modules that turned it
        on; and for each extension module that was loaded the project's line that imports it.
    """
    records = read_records(path)
    culprits = tuple(dict.fromkeys(flip.module for flip in records.flips))
    places: dict[str, Place] = {}
    for load in records.loads:
        for depth, (file, line) in enumerate(load.chain):
            if (name := shown.path(file)) is not None:
                way = tuple(f"{short(file)}:{line}" for file, line in reversed(load.chain[:depth]) if _is_code(file))
                places.setdefault(load.module, Place(file=name, line=line, what=load.module, way=way))
                break
    on = (any(records.ends) or bool(culprits)) if records.ends or culprits else None
    return on, culprits, tuple(places.values())
