"""Check in each phase of each test whether the GIL was turned on; imported only with `pytest --gil=off`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.reports import CollectErrorRepr

from gilscope.toolkit import temporary
from gilscope.toolkit.gil_guard.extension_loads import gil_is_on, record_extension_loads
from gilscope.toolkit.gil_guard.load_records import VARIABLE, WITNESS, GilFlip, parse_records, read_records
from gilscope.toolkit.gil_guard.project_threads import ProjectCode, ProjectThreads
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

TITLE = "GIL"
ANSWER = "gilscope_gil"      # of a worker of pytest-xdist to its controller
REPLAY_SECONDS = 60.0
MOST_FRAMES = 12             # of a chain of imports
# Frames of these are no part of a chain: every test and plugin is imported by way of them.
RUNNERS = ("_pytest", "pluggy", "xdist", "execnet", "pytest", "importlib")
OURS = str(Path(__file__).parents[1])
REPLAY = """
import importlib, json, sys
path, names = json.load(sys.stdin)
sys.path[:] = path
for name in names:
    if sys._is_gil_enabled():
        break
    try:
        importlib.import_module(name)
    except BaseException:
        pass
"""


def begin(config: pytest.Config, options: Any) -> GilReporter:
    """Begin to guard this process, or prepare for what the workers of pytest-xdist report.

    Raises:
        pytest.UsageError: The GIL is on already.
    """
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        return GilReporter("this build has the GIL: --gil=off has nothing to check")
    if gil_is_on():
        raise pytest.UsageError(f"--gil=off: {_why_on(config.rootpath)}")
    header = "the GIL is off"
    if _forced() == "0":
        header += ", whatever is imported (PYTHON_GIL=0 or -X gil=0): --gil=off cannot see what would turn it on"
    if "PYTEST_XDIST_WORKER" not in os.environ and (
            getattr(options, "numprocesses", None) or getattr(options, "tx", None)):
        return XdistController(header, config)
    return GilGuard(header, config)


class GilReporter:
    """Says at the start whether the GIL is off; all that is done on builds that have it."""

    def __init__(self, header: str) -> None:
        self.header = header

    def pytest_report_header(self) -> str:
        """Return the line for the start of the session."""
        return f"gilscope: {self.header}"

    def check_start(self) -> None:
        """Check what pytest has imported before the tests."""


class GilSummary(GilReporter):
    """Says at the end what became of the GIL, and how many tests used threads."""

    def __init__(self, header: str, config: pytest.Config) -> None:
        super().__init__(header)
        self.config = config
        self.tests = 0           # that have run
        self.with_gil = 0        # of these, with the GIL on
        self.in_threads = 0      # of these, with project code in a second thread
        self.threads_known = True
        self.late: list[str] = []   # texts on what turned the GIL on when no test ran

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show the result."""
        terminalreporter.section(TITLE)
        for text in self.late:
            terminalreporter.write_line(text, red=True)
        off = self.tests - self.with_gil
        line = f"The GIL was off in {off} of {counted(self.tests, 'test')}."
        if self.with_gil:
            line += " Once on it stays on, so the others were not checked."
        terminalreporter.write_line(line)
        if self.threads_known:
            terminalreporter.write_line(
                f"A second thread ran the project's code in {self.in_threads} of {counted(self.tests, 'test')}.")
            if not self.in_threads and self.tests:
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


class XdistController(GilSummary):
    """The process that distributes tests to the workers of pytest-xdist, each of which guards itself."""

    def check_start(self) -> None:
        """Check that no plugin and no conftest.py has turned the GIL on, as the workers import them, too."""
        if gil_is_on():
            raise pytest.UsageError(f"--gil=off: {_why_on(self.config.rootpath)}")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add what a worker reports at its end; one that crashed reports nothing."""
        answer = getattr(node, "workeroutput", {}).get(ANSWER)
        if answer:
            self.tests += answer["tests"]
            self.with_gil += answer["with_gil"]
            self.in_threads += answer["in_threads"]
            self.threads_known &= answer["threads_known"]
            self.late += [text for text in answer["late"] if text not in self.late]


class GilGuard(GilSummary):
    """Fails the phase of a test, or the collection of a file, in which the GIL was turned on."""

    def __init__(self, header: str, config: pytest.Config) -> None:
        super().__init__(header, config)
        self._folder = tempfile.mkdtemp(prefix=temporary.prefix("gil"))
        self._file = os.path.join(self._folder, "loads")
        record_extension_loads(self._file)
        self._read = 0             # bytes of the file
        self._told = False         # that the GIL is on in this process
        self._threads = ProjectThreads(ProjectCode(config.rootpath))
        self.threads_known = self._threads.works
        self._before: dict[str, str | None] = {}
        self._change_environment({
            VARIABLE: self._file,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(WITNESS), os.environ.get("PYTHONPATH", "")]))})

    def check_start(self) -> None:
        """Check what plugins and conftest.py files have imported.

        Raises:
            pytest.UsageError: That turned the GIL on.
        """
        if text := self._turned_on():
            self._end()
            raise pytest.UsageError(f"--gil=off: before any test, {text}")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Count the test, and watch its threads."""
        if text := self._turned_on():    # between two tests
            self.late.append(f"Before {item.nodeid}, {text}")
        self.tests += 1
        self._threads.begin_test()
        try:
            return (yield)
        finally:
            self._threads.end_test(item.nodeid)
            self.in_threads = len(self._threads.tests)
            self.with_gil += gil_is_on()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Check the fixtures."""
        return (yield from self._phase(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Check the test."""
        return (yield from self._phase(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Check the teardown of the fixtures."""
        return (yield from self._phase(item))

    def _phase(self, item: pytest.Item) -> Generator[None, Any, Any]:
        try:
            result = yield
        except BaseException:
            if text := self._turned_on():
                item.add_report_section("call", TITLE, text)   # shown beside the failure
            raise
        if text := self._turned_on():
            pytest.fail(text, pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector,
                                   ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Check the code that runs when a module is imported."""
        report = yield
        if text := self._turned_on():
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
        if text := self._turned_on():
            self.late.append(f"After the tests, {text}")
        answers = getattr(self.config, "workeroutput", None)
        if answers is not None:
            answers[ANSWER] = {name: getattr(self, name)
                               for name in ("tests", "with_gil", "in_threads", "threads_known", "late")}
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

    def _turned_on(self) -> str:
        """Return what turned the GIL on since the last call, here or in a process that was started from here, or ""."""
        try:
            size = os.stat(self._file).st_size
        except OSError:
            size = self._read
        flips: list[GilFlip] = []
        if size > self._read:
            records = read_records(Path(self._file))   # all: a module is loaded before it turns the GIL on
            told = len(read_flips(self._file, self._read))
            flips = list(records.flips[told:])
            self._read = size
        texts = [describe(flip, self.config.rootpath) for flip in flips]
        if gil_is_on() and not self._told:
            self._told = True
            if not any(flip.pid == os.getpid() for flip in flips):
                texts.append("the GIL was turned on, and not by the import of an extension module.")
        return "\n".join(texts)


def read_flips(file: str, size: int) -> Sequence[GilFlip]:
    """Return the flips in the first `size` bytes of a record file."""
    with open(file, "rb") as opened:
        return parse_records(opened.read(size).splitlines()).flips


def describe(flip: GilFlip, root: Path) -> str:
    """Return what turned the GIL on, who imported it, and what to do."""
    owner = _owner(flip, root)
    lines = [f"the GIL was turned on by the import of {flip.module}{f' ({owner})' if owner else ''}"]
    if flip.thread:
        lines[0] += f", in thread {flip.thread}"
    if flip.pid != os.getpid():
        lines[0] += f", in another process (PID {flip.pid}) that was started from here"
    lines[0] += "."
    chain = _chain(flip, root)
    if chain:
        lines += ["Imported by, outermost first:", *(f"  {frame}" for frame in chain)]
    if owner:
        name = owner.split()[0]
        lines.append(f"It does not declare that it can do without the GIL. `gilscope doctor {name}` says whether a "
                     "newer version does.")
    else:
        lines.append("It does not declare that it can do without the GIL: Py_mod_gil in its module definition does, "
                     "once its code is safe without it.")
    return "\n".join(lines)


def _owner(flip: GilFlip, root: Path) -> str:
    """Return distribution and version of a module; "" for one in the project's own folder or of no distribution."""
    file = flip.load.file if flip.load else ""
    if file and _is_below(file, root):
        return ""
    for name in packages_distributions().get(flip.module.partition(".")[0], ()):
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    return ""


def _is_below(file: str, root: Path) -> bool:
    path = Path(file)
    return path.is_relative_to(root) and not {"site-packages", "dist-packages"}.intersection(path.parts)


def _chain(flip: GilFlip, root: Path) -> list[str]:
    """Return the frames behind an import as "file:line", outermost first, without those of pytest."""
    runners = tuple(_folder(name) for name in RUNNERS if name in sys.modules)
    frames = [f"{_shown(file, root)}:{line}" for file, line in reversed(flip.load.chain if flip.load else ())
              if not file.startswith((OURS, *runners)) and Path(file).name not in {"pytest", "py.test"}]
    if len(frames) > MOST_FRAMES:
        half = MOST_FRAMES // 2
        left_out = len(frames) - 2 * half
        frames[half:-half] = [f"... {counted(left_out, 'frame')} left out"]
    return frames


def _folder(package: str) -> str:
    return os.path.join(os.path.dirname(str(sys.modules[package].__file__)), "")


def _shown(file: str, root: Path) -> str:
    """Return the path of a file as seen from the project, or from the folder of installed packages."""
    if _is_below(file, root):
        return str(Path(file).relative_to(root))
    return file.rpartition(f"site-packages{os.sep}")[2]


def _forced() -> str:
    """Return the value of -X gil or PYTHON_GIL, "" if neither is given."""
    given = sys._xoptions.get("gil")
    return str(given) if given else "" if sys.flags.ignore_environment else os.environ.get("PYTHON_GIL", "")


def _why_on(root: Path) -> str:
    """Return why the GIL is on before we could watch."""
    if _forced() == "1":
        how = "-X gil=1" if sys._xoptions.get("gil") else "PYTHON_GIL=1"
        return f"{how} keeps the GIL on. Run the tests without it."
    flip = _replayed()
    if flip is None:
        return "the GIL was turned on before the tests, by a plugin or a .pth file that could not be found out."
    return f"before any test, {describe(flip, root)}"


def _replayed() -> GilFlip | None:
    """Import this process's modules again, in another process and in the same order; return what turns the GIL on."""
    names = [name for name in sys.modules if name.partition(".")[0] not in sys.stdlib_module_names]
    with tempfile.TemporaryDirectory(prefix=temporary.prefix("gil"), ignore_cleanup_errors=True) as folder:
        file = Path(folder, "loads")
        variables = os.environ | {VARIABLE: str(file), "PYTHONPATH": os.pathsep.join(
            filter(None, [str(WITNESS), os.environ.get("PYTHONPATH", "")]))}
        try:
            subprocess.run([sys.executable, "-c", REPLAY], input=json.dumps([sys.path, names]).encode(),
                           env=variables, capture_output=True, timeout=REPLAY_SECONDS, check=False)
        except (OSError, subprocess.SubprocessError):
            return None
        return next(iter(read_records(file).flips), None)
