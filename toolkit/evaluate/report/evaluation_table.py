"""The table of an evaluation: one row per target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from gilscope.toolkit.evaluate.packages.judge.status import InterpreterStatus, Status
from gilscope.toolkit.evaluate.report.worker_cost import growth
from gilscope.toolkit.evaluate.sections import Missing, Workers
from gilscope.toolkit.evaluate.verdict.costs_and_gains import may_tell_speed, times
from gilscope.toolkit.evaluate.verdict.own_extensions import findings
from gilscope.toolkit.report.document import Column, Entry, Inflation, Table
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.units import counted, format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.evaluate.evaluation import BuildEvaluation, Conclusion, Evaluation, InterpretersEvaluation
    from gilscope.toolkit.evaluate.packages.doctor import BuildReport, Finding
    from gilscope.toolkit.evaluate.project.extensions.facts import OwnBuild
    from gilscope.toolkit.evaluate.sections import Cost, MachineFacts, TestRun
    from gilscope.toolkit.model import Build

TITLES = ("target", "verdict", "packages", "C files", "GIL off", "C lost", "tests", "1 thread", "memory")
IN_PLACE = {"workload": [], "script": ["CPU time of the script with all of its threads"],
            "tests": ["CPU time of the tests, their start with it: no --workload was measured"]}
AT_IMPORT = "off after the imports; whether it is at the end of the project's tests is not known"
NOT_QUIET = "the machine is too busy or too small, see below"


def table(found: Evaluation) -> Table:
    """Return a row for each build, and for subinterpreters and processes on each build with a GIL."""
    notes = Footnotes()
    rows = [_build_row(each, _conclusion_of(found, each.build.label), found.machine, notes) for each in found.builds]
    rows += [_interpreters_row(each, found, notes) for each in found.interpreters]
    for each in found.processes:
        target = f"processes on {each.build.label}"
        word = Entry(_conclusion_of(found, target).word)
        memory = _own_memory(found, each.build, "process")
        rows.append((Entry(_shown(target)), word, *[Entry()] * (len(TITLES) - 3), memory))
    columns = tuple(Column(title=title, align="left", key=title == "target") for title in TITLES)
    return Table(title="", columns=columns, rows=tuple(rows), footnotes=notes.texts())


def _conclusion_of(found: Evaluation, target: str) -> Conclusion:
    return next(each for each in found.conclusions if each.target == target)


def _build_row(
    found: BuildEvaluation, conclusion: Conclusion, machine: MachineFacts | Missing, notes: Footnotes
) -> tuple[Entry, ...]:
    report = found.readiness
    if isinstance(report, Missing):
        looked = [_absent(report, notes)] * 4
    else:
        lost = [each.name for each in (*report.findings, *_itself(found.own)) if each.verdict.status is Status.LOST]
        looked = [Entry(_installed(report)), Entry(_extensions(report, found.own)),
                  _gil_off(found, report, notes), Entry(_some(lost))]
    cost = found.cost
    return (
        Entry(found.build.label), Entry(conclusion.word), *looked, _tests(found.tests, notes),
        _one_thread(cost, machine, notes),
        _memory(cost, notes),
    )


def _shown(target: str) -> str:
    return target.replace("subinterpreters", "subint").replace(" on ", " ")   # the table has little room


def _absent(missing: Missing, notes: Footnotes) -> Entry:
    return Entry("-", notes.marks([missing.reason]))


def _installed(report: BuildReport) -> str:
    missing = sum(each.verdict.status in {Status.NO_WHEEL, Status.NOT_FOUND} for each in report.findings)
    total = len(report.findings) + report.others
    return f"{total - missing}/{total}"


def _extensions(report: BuildReport, own: OwnBuild | None) -> str:
    files = [extension for each in (*report.findings, *findings(own)) for extension in each.seen.extensions]
    fine = sum(extension.gil == "not-used" for extension in files)
    return f"{fine}/{len(files)}" if files else "none"


def _gil(found: BuildEvaluation, report: BuildReport) -> str:
    culprits = [*(each.name for each in (*findings(found.own), *report.findings) if each.verdict.status is Status.GIL),
                *report.unowned]
    if culprits:
        return f"no: {culprits[0] if len(culprits) == 1 else len(culprits)}"   # they are named below
    if isinstance(found.tests, Missing) or not (found.tests.ran or found.tests.gil_end):
        return "at import"
    return {True: "no: tests", False: "yes", None: "at import"}[found.tests.gil_end]


def _gil_off(found: BuildEvaluation, report: BuildReport, notes: Footnotes) -> Entry:
    text = _gil(found, report)
    return Entry(text, notes.marks([AT_IMPORT] if text == "at import" else []))


def _one_thread(cost: Cost | Missing, machine: MachineFacts | Missing, notes: Footnotes) -> Entry:
    """Return how many times the CPU time one thread takes."""
    if isinstance(cost, Missing):
        return _absent(cost, notes)
    if not may_tell_speed(machine):
        seen = times(cost, told=False)
        return Entry(f"{seen.lo:.2f}-{seen.hi:.2f}x", notes.marks([f"an interval twice as wide, as {NOT_QUIET}"]))
    part = [f"a sample of them: {cost.sample}"] if cost.sample else []
    return Entry(Inflation(cost.cpu.inverted()), notes.marks([*IN_PLACE[cost.by], *part]))


def _memory(cost: Cost | Missing, notes: Footnotes) -> Entry:
    """Return how much more memory which process has."""
    if isinstance(cost, Missing) or cost.memory is None:
        return Entry()
    more = cost.memory.here - cost.memory.there
    return Entry(f"{'+' if more >= 0 else '-'}{format_bytes(abs(more))}", notes.marks([cost.memory.process]))


def _itself(own: OwnBuild | None) -> tuple[Finding, ...]:
    """Return the project itself as one more package, whether or not it has extension modules left there."""
    return (own.finding,) if own and own.finding else ()


def _some(names: Sequence[str]) -> str:
    """Return a name for a narrow column, and how many more there are."""
    return f"{names[0]}{f' +{len(names) - 1}' if len(names) > 1 else ''}" if names else "none"


def _tests(tests: TestRun | Missing, notes: Footnotes) -> Entry:
    if isinstance(tests, Missing):
        return _absent(tests, notes)
    if tests.passed is None:
        return Entry(f"exit code {tests.ending}" if tests.ending.isdecimal() else tests.ending.partition(":")[0])
    files = counted(len(tests.left_out), "file")
    left = [f"without {files} of tests, which cannot be collected, see below"] if tests.left_out else []
    return Entry(f"{tests.passed}/{tests.passed + tests.broken}", notes.marks(left))


def _interpreters_row(each: InterpretersEvaluation, found: Evaluation, notes: Footnotes) -> tuple[Entry, ...]:
    target = f"subinterpreters on {each.build.label}"
    report = each.readiness
    if isinstance(report, Missing):
        looked = [_absent(report, notes), Entry(), Entry(), Entry()]
    else:
        able = sum(finding.interpreters is InterpreterStatus.OK for finding in report.findings) + report.others
        lost = [finding.name for finding in (*report.findings, *_itself(each.own))
                if finding.interpreters is InterpreterStatus.LOST]
        loadable = Entry(f"{able}/{len(report.findings) + report.others}",
                         notes.marks(["packages that load all they have in an interpreter with its own GIL"]))
        looked = [loadable, Entry(), Entry(), Entry(_some(lost))]
    memory = _own_memory(found, each.build, "interpreter")
    return Entry(_shown(target)), Entry(_conclusion_of(found, target).word), *looked, Entry(), Entry(), memory


def _own_memory(found: Evaluation, build: Build, kind: Literal["interpreter", "process"]) -> Entry:
    """Return what each interpreter or process on a build has for itself; a section of its own tells more."""
    workers = next((each.workers for each in found.interpreters if each.build == build), None)
    if not isinstance(workers, Workers):
        return Entry()
    return Entry(growth(workers.interpreter if kind == "interpreter" else workers.process))
