"""Check in each phase of each test whether the GIL was turned on; imported only with `pytest --gil=off`.

What explains a cause is imported where there is one: most sessions need none.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
import tempfile
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.reports import CollectErrorRepr

from gilscope.toolkit import temporary
from gilscope.toolkit.gil_guard.extension_loads import forced, gil_is_on, record_extension_loads, witness_variables
from gilscope.toolkit.gil_guard.json_report import BETWEEN, COLLECTION, END, START, TEST, GuardRecord
from gilscope.toolkit.gil_guard.project_threads import ProjectCode, ProjectThreads
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from gilscope.toolkit.gil_guard.causes import GilCause

TITLE = "GIL"
FLIP = b'"flip":'             # in each record of a module that turned the GIL on
ANSWER = "gilscope_gil"      # of a worker of pytest-xdist to its controller


def begin(config: pytest.Config, options: Any) -> GilReporter:
    """Begin to guard this process, or prepare for what the workers of pytest-xdist report.

    Raises:
        pytest.UsageError: The GIL is on already, or the file of --gil-json cannot be written.
    """
    path = "" if hasattr(config, "workerinput") else _writable(options.gilscope_gil_json)
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        return GilReporter("this build has the GIL: --gil=off has nothing to check", path, GuardRecord(checked=False))
    if gil_is_on():
        raise _on_at_start(config, GuardRecord(), path)
    header, record = "the GIL is off", GuardRecord()
    if forced() == "0":
        header += ", whatever is imported (PYTHON_GIL=0 or -X gil=0): --gil=off cannot see what would turn it on"
        record.checked = False
    if "PYTEST_XDIST_WORKER" not in os.environ and (
            getattr(options, "numprocesses", None) or getattr(options, "tx", None)):
        return GuardXdistController(header, path, record, config)
    return GilGuard(header, path, record, config)


def _writable(path: str) -> str:
    """Return the absolute path of --gil-json, whose file exists now; "" if there is none."""
    if not path:
        return ""
    try:
        with open(path, "w", encoding="utf-8"):
            return os.path.abspath(path)   # tests may change the folder
    except OSError as error:
        raise pytest.UsageError(f"--gil-json: {path} cannot be written: {error.strerror}") from error


def _on_at_start(config: pytest.Config, record: GuardRecord, path: str) -> pytest.UsageError:
    """Return the error for a session that cannot begin, after the file of --gil-json was written."""
    from gilscope.toolkit.gil_guard.causes import why_on

    cause = why_on(config.rootpath)
    record.add(cause, START)
    if path:
        record.write(path)
    return pytest.UsageError(f"--gil=off: {cause.text}")


class GilReporter:
    """Says at the start whether the GIL is off; all that is done on builds that have it, but for --gil-json."""

    def __init__(self, header: str, path: str, record: GuardRecord) -> None:
        self.header = header
        self.path = path        # of the file of --gil-json; "" without one
        self.record = record

    def pytest_report_header(self) -> str:
        """Return the line for the start of the session."""
        return f"gilscope: {self.header}"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say the same at the end of a session without a header, as with -q."""
        if not terminalreporter.showheader:
            terminalreporter.write_line(f"gilscope: {self.header}")

    def check_start(self) -> None:
        """Check what pytest has imported before the tests."""

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:  # noqa: ARG002 - subclasses use it
        """Write the file of --gil-json."""
        if self.path:
            self.record.write(self.path)


class GilSummary(GilReporter):
    """Says at the end what became of the GIL, and how many tests used threads."""

    def __init__(self, header: str, path: str, record: GuardRecord, config: pytest.Config) -> None:
        super().__init__(header, path, record)
        self.config = config
        self.late: list[str] = []   # texts on what turned the GIL on when no test ran

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show the result."""
        terminalreporter.section(TITLE)
        for text in self.late:
            terminalreporter.write_line(text, red=True)
        if self.late:
            terminalreporter.write_line("So the session fails, even if all tests pass.", red=True)
        record = self.record
        if not record.tests:
            terminalreporter.write_line("No test ran.")
            return
        off = record.tests - record.with_gil
        line = f"The GIL was off in {off} of {counted(record.tests, 'test')}."
        if record.with_gil:
            line += " Once on it stays on, so the others were not checked."
        terminalreporter.write_line(line)
        if record.threads_known:
            terminalreporter.write_line(
                f"A second thread ran the project's code in {record.in_threads} of {counted(record.tests, 'test')}.")
            if not record.in_threads:
                terminalreporter.write_line(
                    "So these tests say nothing about whether the project is thread-safe. `pytest --race`, "
                    "pytest-run-parallel or tests with threads do.")
        else:
            terminalreporter.write_line("Threads were not watched: other tools use all IDs of sys.monitoring.")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the session if something turned the GIL on when no test ran."""
        if self.late and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        super().pytest_sessionfinish(session)


class GuardXdistController(GilSummary):
    """The process that distributes tests to the workers of pytest-xdist, each of which guards itself."""

    def check_start(self) -> None:
        """Check that no plugin and no conftest.py has turned the GIL on, as the workers import them, too."""
        if gil_is_on():
            raise _on_at_start(self.config, self.record, self.path)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add what a worker reports at its end; one that crashed reports nothing."""
        answer = getattr(node, "workeroutput", {}).get(ANSWER)
        if answer:
            self.record.merge(answer["record"])
            self.late += [text for text in answer["late"] if text not in self.late]
        else:
            self.record.failed_otherwise = True


class GilGuard(GilSummary):
    """Fails the phase of a test, or the collection of a file, in which the GIL was turned on."""

    def __init__(self, header: str, path: str, record: GuardRecord, config: pytest.Config) -> None:
        super().__init__(header, path, record, config)
        self._folder = tempfile.mkdtemp(prefix=temporary.prefix("gil"))
        self._file = os.path.join(self._folder, "loads")
        self._records = record_extension_loads(self._file)
        self._read = 0             # bytes of the file
        self._flips = 0            # that were told
        self._told = False         # that the GIL is on in this process
        self._threads = ProjectThreads(ProjectCode(config.rootpath))
        record.threads_known = self._threads.works
        self._before: dict[str, str | None] = {}
        self._change_environment(witness_variables(self._file))

    def check_start(self) -> None:
        """Check what plugins and conftest.py files have imported.

        Raises:
            pytest.UsageError: That turned the GIL on.
        """
        if text := self._turned_on(START):
            self._end()
            if self.path:
                self.record.write(self.path)
            raise pytest.UsageError(f"--gil=off: before any test, {text}")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Watch the threads of a test."""
        if text := self._turned_on(BETWEEN):
            self.late.append(f"Before {nodeid}, {text}")
        self._threads.begin_test()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Check each phase of a test: its fixtures, itself, and their teardown.

        Its report is changed, as that takes one hook for all phases, which run for every test.
        """
        report = yield
        self.record.failed_otherwise |= report.failed
        if text := self._turned_on(TEST, item):
            if report.failed:
                report.sections.append((TITLE, text))   # shown beside the failure
            else:
                report.outcome = "failed"
                report.longrepr = text
                vars(report).pop("wasxfail", None)   # pytest does not count a failure that has it
        return report

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Count the test."""
        self._threads.end_test(nodeid)
        self.record.tests += 1
        self.record.in_threads = len(self._threads.tests)
        self.record.with_gil += gil_is_on()

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector,
                                   ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Check the code that runs when a module is imported."""
        report = yield
        self.record.failed_otherwise |= report.failed
        if text := self._turned_on(COLLECTION, collector):
            text = f"while {collector.nodeid or 'the tests'} was collected, {text}"
            if report.passed:
                report.outcome = "failed"
                report.longrepr = CollectErrorRepr(text)
            else:
                report.sections.append((TITLE, text))
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Check once more, and report to the controller."""
        if text := self._turned_on(END):
            self.late.append(f"After the tests, {text}")
        answers = getattr(self.config, "workeroutput", None)
        if answers is not None:
            answers[ANSWER] = {"record": self.record.plain(), "late": self.late}
        super().pytest_sessionfinish(session)

    def pytest_unconfigure(self) -> None:
        """Stop guarding."""
        self._end()

    def _end(self) -> None:
        self._threads.stop()
        self._change_environment(self._before)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _change_environment(self, variables: Mapping[str, str | None]) -> None:
        """Set variables, or remove those that are None; keep what they were in `_before`."""
        self._before = {name: os.environ.get(name) for name in variables}
        for name, value in variables.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def _turned_on(self, when: str, where: pytest.Item | pytest.Collector | None = None) -> str:
        """Return the cause if the GIL was turned on since the last call, here or in a process started from here, or "".

        Args:
            when: One of the words of `json_report`.
            where: The test that ran, or what was collected, if anything.
        """
        size = os.fstat(self._records).st_size   # a test may remove the file
        is_new = gil_is_on() and not self._told
        if size == self._read and not is_new:
            return ""
        records = os.pread(self._records, size, 0)   # all: a module is loaded before it turns the GIL on
        has_flips = FLIP in records[self._read:]
        self._read = size
        if not has_flips and not is_new:
            return ""
        self._told |= is_new
        causes = self._causes(records, is_new)
        for cause in causes:
            self.record.add(cause, when, where.nodeid if where else "")
        return "\n".join(cause.text for cause in causes)

    def _causes(self, records: bytes, is_new: bool) -> list[GilCause]:  # noqa: FBT001
        """Return the causes in the new records; one without a module if the GIL is on here and no record says why."""
        from gilscope.toolkit.gil_guard.causes import GilCause, cause_of
        from gilscope.toolkit.gil_guard.load_records import parse_records

        flips = parse_records(records.splitlines()).flips[self._flips:]
        self._flips += len(flips)
        causes = [cause_of(flip, self.config.rootpath) for flip in flips]
        if is_new and not any(flip.pid == os.getpid() for flip in flips):
            causes.append(GilCause(text="the GIL was turned on, and not by the import of an extension module."))
        return causes
