"""The modes race, guard, doctor and dist: run gilscope, and read its report.  `compare` has a file of its own.

No sentence is read: what is found comes from reports as JSON and from exit statuses.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findings import ActionFinding, SourceLine, listed, moved, sarif
from outcome import ModeOutcome, failed, read_report
from prepare import GILSCOPE, build_variables, run

from gilscope import __version__
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from inputs import ActionInputs

RACE_FOUND = 66
TESTS_FAILED, USAGE = 1, 4    # exit statuses of pytest
LOCKED = re.compile(r"""\s*(?:name\s*=\s*"([\w.-]+)"|([\w.-]+)\s*(?:\[[^\]]*\])?\s*==)""")   # in a lock file


def race(inputs: ActionInputs, folder: Path) -> ModeOutcome:
    """Check a program for data races."""
    report, log = folder / "race.json", folder / "race.sarif"
    status = run([*GILSCOPE, "race", f"--json={report}", "--sarif", str(log), *inputs.arguments], inputs.folder)
    document = read_report(report, "gilscope/race/5")
    if document is None:
        return failed(status, f"gilscope race ended with status {status} and wrote no report")
    found = tuple(_race_finding(each, inputs.workspace) for each in document["races"])
    problem = "" if status in {0, RACE_FOUND} and bool(found) == (status == RACE_FOUND) else (
        f"the program or gilscope ended with status {status}, which is not a race")
    return ModeOutcome(
        headline=counted(len(found), "data race") if found else "no data race in what this run did",
        findings=found, count=len(found), problem=problem, status=status or 1,
        unknown="" if document["processes"] else "no process was checked",
        detail=listed(found), report=report, sarif=_race_log(log, Path(document["root"]), inputs.workspace))


def _race_finding(each: dict[str, Any], workspace: Path) -> ActionFinding:
    sides = (each["second"], each["first"])
    places = (source_line(side["place"]["path"], side["place"]["line"], workspace) for side in sides)
    accesses = " and ".join(f"{side['verb']} by {side['thread']} at {Path(side['place']['path']).name}:"
                            f"{side['place']['line']}" for side in sides)
    return ActionFinding(
        rule=re.sub(r"\W+", "-", each["kind"]), title=f"{each['kind']} on {each['variable']}",
        place=next(filter(None, places), None),
        text=f"{accesses}. {each['pattern']} {each['missing']} Repair: {each['repair']}")


def _race_log(path: Path, root: Path, workspace: Path) -> dict[str, Any] | None:
    """Return gilscope's SARIF, with paths as code scanning expects them: relative to the checkout."""
    if not path.exists():
        return None
    log: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if root == workspace or not root.is_relative_to(workspace):
        return log
    moved_log: dict[str, Any] = moved(log, "SRCROOT", root.relative_to(workspace).as_posix())
    return moved_log


def guard(inputs: ActionInputs, folder: Path) -> ModeOutcome:
    """Run the tests, and find what turns the GIL on."""
    report = folder / "guard.json"
    command = [sys.executable, "-m", "pytest", "--gil=off", "--gil-json", str(report), *inputs.arguments]
    status = run(command, inputs.folder)
    document = read_report(report, "gilscope/guard/1")
    if document is None:
        return failed(status, f"pytest ended with status {status} and wrote no report")
    found = tuple(_guard_finding(each, inputs.workspace) for each in document["findings"])
    by_findings = found and status in {TESTS_FAILED, USAGE} and not document["failed_otherwise"]
    off = document["tests"] - document["with_gil"]
    headline = counted(len(found), "import") + " turned the GIL on" if found else (
        f"the GIL stayed off in {off} of {counted(document['tests'], 'test')}")
    if not document["checked"]:
        headline = "nothing was checked"
    threads = document["in_threads"]
    return ModeOutcome(
        headline=headline, findings=found, count=len(found), status=status or 1,
        problem="" if status == 0 or by_findings else f"pytest ended with status {status} for another reason",
        unknown="" if document["checked"] else "this build has the GIL, or is told to keep it off whatever is imported",
        detail=listed(found) + ("" if threads is None or not document["tests"] else
                                f"\nA second thread ran the project's code in {threads} of "
                                f"{counted(document['tests'], 'test')}.\n"),
        report=report, sarif=sarif("gilscope guard", __version__, found))


def _guard_finding(each: dict[str, Any], workspace: Path) -> ActionFinding:
    places = [source_line(frame["path"], frame["line"], workspace) for frame in each["imported_by"]]
    package = f" ({each['package']} {each['version']})" if each["package"] else ""
    return ActionFinding(rule="gil-turned-on", title=f"GIL turned on by {each['module'] or 'something'}{package}",
                         text=each["text"], place=next((place for place in reversed(places) if place), None))


def doctor(inputs: ActionInputs, folder: Path) -> ModeOutcome:
    """Examine packages."""
    report, status, document = _diagnosed(inputs, inputs.arguments, folder)
    if document is None or "builds" not in document:
        return failed(status, f"gilscope doctor ended with status {status} and wrote no report")
    if document.get("metadata_only"):
        return ModeOutcome(headline="only the lock file was read", unknown="nothing was installed and imported",
                           detail=_markdown(folder), report=report)
    lines = _lines_of_locks(inputs)
    found = tuple(_of_builds(document["builds"], lines))
    unknown = sorted({each["name"] for build in document["builds"] for each in build["packages"]
                      if each["status"] in {"unknown", "interpreter-at-fault"}})
    count = len(found) or int(document["blocked"])
    return ModeOutcome(
        headline=counted(count, "obstacle") + " to running without the GIL" if count else "no obstacle found",
        findings=found, count=count, unknown=f"nothing is known about {', '.join(unknown)}" if unknown else "",
        problem="" if status == int(document["blocked"]) else f"gilscope doctor ended with status {status}",
        status=status or 1, detail=_markdown(folder), report=report, sarif=sarif("gilscope doctor", __version__, found))


def dist(inputs: ActionInputs, folder: Path) -> ModeOutcome:
    """Judge wheels and sdists before their upload."""
    report, status, document = _diagnosed(inputs, inputs.arguments or ("dist/",), folder)
    if document is None or "sets" not in document:
        return failed(status, f"gilscope doctor ended with status {status} and wrote no report on files")
    found = tuple(_of_files(document))
    unknown = sorted({each["code"] for one in document["sets"] for each in one["findings"]
                      if each["effect"] == "unknown"})
    count = len(found) or int(document["blocked"])
    return ModeOutcome(
        headline=counted(count, "obstacle") + " to the upload" if count else "no obstacle to the upload found",
        findings=found, count=count, unknown=f"open: {', '.join(unknown)}" if unknown else "",
        problem="" if status == int(document["blocked"]) else f"gilscope doctor ended with status {status}",
        status=status or 1, detail=_markdown(folder), report=report)


def _diagnosed(
    inputs: ActionInputs, words: Sequence[str], folder: Path,
) -> tuple[Path, int, dict[str, Any] | None]:
    """Run `gilscope doctor`; return its report's path, its exit status, and the report."""
    report = folder / "doctor.json"
    builds = ["--builds", ",".join(inputs.builds)] if inputs.builds else []
    outputs = ["--json", str(report), "--markdown", str(folder / "doctor.md")]
    status = run([*GILSCOPE, "doctor", *words, *builds, *outputs], inputs.folder, **build_variables())
    return report, status, read_report(report, "gilscope/doctor/2")


def _markdown(folder: Path) -> str:
    path = folder / "doctor.md"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _of_builds(builds: Iterable[dict[str, Any]], lines: dict[str, SourceLine]) -> Iterator[ActionFinding]:
    """Yield a finding for each package that is in the way, and for each module that belongs to none."""
    for build in builds:
        for each in build["packages"]:
            if each["blocks"]:
                yield ActionFinding(
                    rule=f"package.{each['status']}", text=" ".join(each["reasons"]) or each["status_words"],
                    title=f"{each['name']} {each['version']} on {build['build']}: {each['status_words']}",
                    place=lines.get(normal(each["name"])))
        for module in build["unowned_modules_that_need_the_gil"]:
            yield ActionFinding(rule="package.turns-gil-on", title=f"{module} on {build['build']}: turns the GIL on",
                                text="No installed package has this extension module.")


def _of_files(document: dict[str, Any]) -> Iterator[ActionFinding]:
    """Yield a finding for each obstacle in a set of wheels, and for each file that cannot be judged."""
    for each in document["unusable_files"]:
        yield ActionFinding(rule=f"file.{each['problem']}", title=each["file"], text=each["reason"])
    for one in document["sets"]:
        for each in one["findings"]:
            if each["effect"] == "blocks":
                builds = f" on {', '.join(each['builds'])}" if each["builds"] else ""
                yield ActionFinding(rule=each["code"], text=each["text"],
                                    title=f"{each['wheel'] or one['name']}{builds}: {each['code']}")


def _lines_of_locks(inputs: ActionInputs) -> dict[str, SourceLine]:
    """Return where each package stands in the lock files that the arguments name."""
    lines: dict[str, SourceLine] = {}
    for word in inputs.arguments:
        path = (inputs.folder / word.rpartition("=")[2]).resolve()
        if not path.is_file() or path.suffix not in {".lock", ".toml", ".txt"}:
            continue
        for number, text in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            place = source_line(str(path), number, inputs.workspace)
            if place and (found := LOCKED.match(text)):
                lines.setdefault(normal(found[1] or found[2]), place)
    return lines


def normal(name: str) -> str:
    """Return the name of a package as all spellings of it are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def source_line(path: str, line: int, workspace: Path) -> SourceLine | None:
    """Return a place in the checkout; None for one elsewhere, or in packages that were installed into it."""
    place = Path(path)
    if not place.is_relative_to(workspace) or {"site-packages", "dist-packages"} & {*place.parts}:
        return None
    return SourceLine(path=place.relative_to(workspace).as_posix(), line=line)
