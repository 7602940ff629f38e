"""The table of an evaluation: a row for each target, with what its sections count and measure.  Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.facts import processes_on, subinterpreters_on
from gilscope.toolkit.evaluate.packages.evidence import InterpreterStatus, Status
from gilscope.toolkit.evaluate.readings import cpu_time_factor, is_quiet, own_finding
from gilscope.toolkit.evaluate.sections import InterpreterTrial, Missing, known
from gilscope.toolkit.report.document import Column, Entry, Table
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.report.wording import inflation_text
from gilscope.toolkit.units import counted, format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.evaluate.evaluation import Conclusion, Evaluation
    from gilscope.toolkit.evaluate.packages.doctor import BuildReport, Finding
    from gilscope.toolkit.evaluate.sections import Cost, Measure, TestRun

# The columns in their order.
COLUMNS = ("packages", "C files", "GIL off", "C lost", "tests", "1 thread", "memory")
AT_IMPORT = "off after the imports; whether it is at the end of the project's tests is not known"
LOADABLE = "packages that load all they have in an interpreter with its own GIL"
NOT_QUIET = "an interval twice as wide, as the machine is too busy or too small, see below"
IN_PLACE: dict[Measure, tuple[str, ...]] = {
    "workload": (), "script": ("CPU time of the script with all of its threads",),
    "tests": ("CPU time of the tests, their start with it: no --workload was measured",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """A value for the table of targets."""

    column: str                     # its title
    value: str
    notes: tuple[str, ...] = ()     # footnotes


def table(found: Evaluation) -> Table:
    """Return a row for each build, and for subinterpreters and processes on each build with a GIL."""
    notes = Footnotes()
    cells = {(target, cell.column): cell for target, cell in _cells(found)}

    # The table has little room.
    short = {**{subinterpreters_on(each.label): f"subint {each.label}" for each in found.with_gil},
             **{processes_on(each.label): f"processes {each.label}" for each in found.with_processes}}

    def row(conclusion: Conclusion) -> tuple[Entry, ...]:
        own = [cells.get((conclusion.target, title)) for title in COLUMNS]
        return (Entry(short.get(conclusion.target, conclusion.target)), Entry(conclusion.word),
                *(Entry(cell.value, notes.marks(cell.notes)) if cell else Entry() for cell in own))

    rows = tuple(map(row, found.conclusions))
    columns = tuple(Column(title=title, align="left", key=title == "target")
                    for title in ("target", "verdict", *COLUMNS))
    return Table(title="", columns=columns, rows=rows, footnotes=notes.texts())


def _cells(found: Evaluation) -> Iterator[tuple[str, TableCell]]:
    for label in found.labels:
        yield from ((label, cell) for cell in _build(found, label))
    for build in found.with_gil:
        yield from ((subinterpreters_on(build.label), cell) for cell in _interpreters(found, build.label))
    for build in found.with_processes:
        match found.trials[build.label]:
            case InterpreterTrial(process_memory=float() | int() as memory):
                yield processes_on(build.label), _growth(memory)


def _build(found: Evaluation, label: str) -> Iterator[TableCell]:
    match found.packages[label]:
        case Missing(reason=reason):
            yield from (_cell(column, "-", reason) for column in ("packages", "C files", "GIL off", "C lost"))
        case report:
            yield from _packages(found, label, report)
    match found.tests[label]:
        case Missing(reason=reason):
            yield _cell("tests", "-", reason)
        case tests:
            yield _tests(tests)
    match found.speed[label].cost:
        case Missing(reason=reason):
            yield _cell("1 thread", "-", reason)
        case cost:
            yield from _cost(cost, sure=is_quiet(found.machine))


def _packages(found: Evaluation, label: str, report: BuildReport) -> Iterator[TableCell]:
    missing = sum(each.verdict.status.not_installed for each in report.findings)
    total = len(report.findings) + report.others
    yield _cell("packages", f"{total - missing}/{total}")
    itself = own_finding(found, label)
    files = [extension for each in (*report.findings, *itself) for extension in each.seen.extensions]
    fine = sum(extension.gil == "not-used" for extension in files)
    yield _cell("C files", f"{fine}/{len(files)}" if files else "none")
    yield _gil_off(found.tests[label], (*itself, *report.findings), report.unowned)
    yield _cell("C lost", _first([each.name for each in (*report.findings, *itself)
                                  if each.verdict.status is Status.LOST]))


def _gil_off(run: TestRun | Missing, findings: Sequence[Finding], unowned: Sequence[str]) -> TableCell:
    culprits = [*(each.name for each in findings if each.verdict.status is Status.GIL), *unowned]
    if culprits:
        # They have lines of their own.
        return _cell("GIL off", f"no: {culprits[0] if len(culprits) == 1 else len(culprits)}")
    tests = known(run)
    if tests is None or tests.gil_end is None or not (tests.ran or tests.gil_end):
        return _cell("GIL off", "at import", AT_IMPORT)
    return _cell("GIL off", "no: tests" if tests.gil_end else "yes")


def _tests(tests: TestRun) -> TableCell:
    if tests.passed is None:
        return _cell("tests", f"exit code {tests.ending}" if tests.ending.kind == "exit" else tests.ending.kind)
    out = [f"without {counted(len(tests.left_out), 'file')} of tests, which cannot be collected, see below"]
    return _cell("tests", f"{tests.passed}/{tests.passed + tests.broken}", *out * bool(tests.left_out))


def _cost(cost: Cost, *, sure: bool) -> Iterator[TableCell]:
    if sure:
        part = [f"a sample of them: {cost.sample}"] if cost.sample else []
        yield _cell("1 thread", inflation_text(cost.cpu.inverted()), *IN_PLACE[cost.by], *part)
    else:
        wide = cpu_time_factor(cost, sure=sure)
        yield _cell("1 thread", f"{wide.lo:.2f}-{wide.hi:.2f}x", NOT_QUIET)
    if of := cost.memory:
        sign = "+" if of.here >= of.there else "-"
        yield _cell("memory", f"{sign}{format_bytes(abs(of.here - of.there))}", of.process)


def _interpreters(found: Evaluation, label: str) -> Iterator[TableCell]:
    match found.packages[label]:
        case Missing(reason=reason):
            yield _cell("packages", "-", reason)
        case report:
            able = sum(each.interpreters is InterpreterStatus.OK for each in report.findings) + report.others
            yield _cell("packages", f"{able}/{len(report.findings) + report.others}", LOADABLE)
            itself = own_finding(found, label)
            yield _cell("C lost", _first([each.name for each in (*report.findings, *itself)
                                          if each.interpreters is InterpreterStatus.LOST]))
    match found.trials[label]:
        case InterpreterTrial(memory=float() | int() as memory):
            yield _growth(memory)


def _growth(memory: float) -> TableCell:
    return _cell("memory", f"+{format_bytes(memory)}")


def _first(names: Sequence[str]) -> str:
    """Return a name for a narrow column, and how many more there are."""
    return f"{names[0]}{f' +{len(names) - 1}' if len(names) > 1 else ''}" if names else "none"


def _cell(column: str, value: str, *notes: str) -> TableCell:
    return TableCell(column=column, value=value, notes=notes)
