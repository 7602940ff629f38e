"""Measure in a fork of pytest, between a test and its teardown, whether its call scales; imported only with --scale."""

from __future__ import annotations

import faulthandler
import os
import sys
import sysconfig
import time
import warnings
from argparse import ArgumentTypeError
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gilscope.toolkit.builds.compile_library import announce
from gilscope.toolkit.commands.options.common import duration
from gilscope.toolkit.cores import allowed_cpus
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.escaping import message
from gilscope.toolkit.measure.child.calls import run_to_its_end
from gilscope.toolkit.measure.machine_lock import MachineLock
from gilscope.toolkit.processes.forks import Fork
from gilscope.toolkit.race._core import build
from gilscope.toolkit.records import from_plain, to_plain
from gilscope.toolkit.scale.api import LIMITED, ApiCallable, ApiOutcome, investigated, looked_at
from gilscope.toolkit.scale.api_report import way_text
from gilscope.toolkit.scale.report import UNKNOWN, investigation_sentences, span_text
from gilscope.toolkit.scale.zygote_here import ZygoteHere
from gilscope.toolkit.scale.zygote_process import UnscalableFunctionError
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from types import ModuleType

    from gilscope.toolkit.processes.forks import WriteRecord

THREADS = 2
LIMIT_SECONDS = 300.0     # for one test, with the cause
SILENT_SECONDS = 90.0     # for one request to the zygote, which limits what its forks do, but not the first calls
TITLE = "scaling over threads"
ATTACHED = "gilscope_scale"       # of a report: the answer, as plain values, which a worker of pytest-xdist can send
LONGER = LIMITED | {ApiOutcome.UNSURE}         # are measured again, with the cause
# The order of the summary, and of the counts at its start.
ORDER = (ApiOutcome.SLOWER, ApiOutcome.PLATEAUS, ApiOutcome.UNSURE, ApiOutcome.FAILED, ApiOutcome.TOO_SHORT,
         ApiOutcome.NO_TIME, ApiOutcome.SCALES)
WORDS = {each: each.value for each in ORDER} | {
    ApiOutcome.FAILED: "not measured",      # the test itself has passed
    ApiOutcome.NO_TIME: "left out"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTest:
    """The answer for a test: the outcome, a text for its line in the summary, and sentences below it."""

    outcome: ApiOutcome
    text: str
    sentences: tuple[str, ...] = ()


FOUND = pytest.StashKey[MeasuredTest]()      # of an item that was measured


def begin(budget: str) -> ScalingChecks:
    """Begin to measure the tests of this process, for as long as the budget says, such as "10m".

    Raises:
        pytest.UsageError: Nothing can be measured here, or the budget is no time.
    """
    try:
        limit = duration(budget)
    except ArgumentTypeError as error:
        raise pytest.UsageError(f"--scale-budget: {error}") from None
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        return ScalingChecks(None, limit, "this build has the GIL: --scale has nothing to measure")
    if sys.platform != "linux":
        raise pytest.UsageError("--scale needs Linux, whose scheduler tells how long a thread waited for a core")
    if allowed_cpus() < THREADS:
        raise pytest.UsageError(f"--scale needs {THREADS} CPUs: each thread is pinned to one")
    try:
        core = build.load(partial(announce, "the race checker's core"))
    except (RuntimeError, ToolkitError) as error:
        raise pytest.UsageError(f"--scale: {error}") from error
    return ScalingChecks(core, limit, "")


def _failed(problem: str, outcome: ApiOutcome = ApiOutcome.FAILED) -> MeasuredTest:
    return MeasuredTest(outcome=outcome, text=f": {problem}")


NO_FUNCTION = _failed("it is no function that pytest calls by itself, as those of unittest and doctest")
LEFT_OUT = _failed("the budget was over; --scale-budget sets it", ApiOutcome.NO_TIME)


class ScalingChecks:
    """Measures tests after they have passed, and shows the answers at the end; workers of pytest-xdist measure."""

    def __init__(self, core: ModuleType | None, budget: float, header: str) -> None:
        self._core = core
        self._budget = budget      # seconds
        self._spent = 0.0          # of the budget
        self._header = header      # "" where tests are measured
        self._answers: list[tuple[str, MeasuredTest]] = []     # with the test's id

    def pytest_report_header(self) -> str | None:
        """Return why nothing is measured, or nothing."""
        return f"gilscope: {self._header}" if self._header else None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
        """Measure the call of a test that has passed, before its fixtures are torn down."""
        result = yield
        if self._core is not None:
            pyfuncitem.stash[FOUND] = self._measured(self._core, pyfuncitem)
        return result

    def _measured(self, core: ModuleType, item: pytest.Function) -> MeasuredTest:
        if self._spent >= self._budget:
            return LEFT_OUT
        began = time.monotonic()
        try:
            return _measured(core, item)
        finally:
            self._spent += time.monotonic() - began

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the answer to the report, which a worker of pytest-xdist sends to its controller."""
        report = yield
        if self._core is not None and report.when == "call" and report.passed:
            vars(report)[ATTACHED] = to_plain(item.stash.get(FOUND, NO_FUNCTION))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the answers."""
        if found := vars(report).get(ATTACHED):
            self._answers.append((report.nodeid, from_plain(MeasuredTest, found)))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Count the answers, and show what does not scale with its cause."""
        if self._header:
            if not terminalreporter.showheader:
                terminalreporter.write_line(f"gilscope: {self._header}")
            return
        terminalreporter.section(TITLE)
        outcomes = [found.outcome for _, found in self._answers]
        counts = [f"{outcomes.count(each)} {WORDS[each]}" for each in ORDER if each in outcomes]
        measured = counted(len(outcomes), "test that passed", "tests that passed")
        terminalreporter.write_line(f"{measured}, {THREADS} threads: {', '.join(counts)}." if counts else
                                    "No test passed, so none was measured.")
        for outcome in ORDER:
            for test, found in self._answers:
                if found.outcome is outcome:
                    terminalreporter.write_line(f"{WORDS[outcome]}: {test}{found.text}")
                    for sentence in found.sentences:
                        terminalreporter.write_line(f"    {sentence}")


def _measured(core: ModuleType, item: pytest.Function) -> MeasuredTest:
    """Return the answer for a test."""
    names = item._fixtureinfo.argnames  # noqa: SLF001 - pytest has no public way to tell them
    arguments = {name: item.funcargs[name] for name in names}
    lock = MachineLock(alone="PYTEST_XDIST_WORKER" in os.environ, waiting=lambda: None)
    with lock.hold(), warnings.catch_warnings():
        # A worker of pytest-xdist has threads, of which the fork needs none.
        warnings.simplefilter("ignore", DeprecationWarning)
        records, ending = Fork(partial(_answer, core, os.getpid(), item, arguments)).result(
            LIMIT_SECONDS, silence=SILENT_SECONDS)
    if records:
        return from_plain(MeasuredTest, records[-1])
    if ending.kind == "slow":
        return _failed(f"it took over {LIMIT_SECONDS:g} s, or over {SILENT_SECONDS:g} s for one request; threads that "
                       "fixtures start do not run in the measuring process")
    crashed = f"the measuring process crashed with {ending.reason}"
    return _failed(crashed if ending.kind == "crash" else f"the measuring process {ending.reason}")


def _answer(core: ModuleType, parent: int, item: pytest.Function, arguments: Mapping[str, Any], write: WriteRecord,
            ) -> None:
    """Measure, in a fork, and write the answer."""
    core.end_with_parent(parent)
    faulthandler.disable()      # pytest's, which would print the stacks of a crash, which is an answer
    # What pytest has put there writes to a file that the parent has, too.
    sys.stdout = sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - as long as the fork lives
    seen = ApiCallable(name=item.nodeid, call="", place="", outcome=ApiOutcome.UNSURE)
    try:
        process = ZygoteHere(core, alive=write)
        name = f"{item.obj.__module__}:{item.obj.__qualname__}"
        loaded = process.take(name, partial(_call_of, item, name, arguments), THREADS, arguments)
        if item.instance is not None and not loaded.refused:
            core.immortalize([item.instance])      # the class is pytest's way to group tests: nobody shares its objects
        seen = looked_at(process, THREADS, seen)
        if seen.outcome in LONGER:
            seen = investigated(process, loaded, THREADS, seen)
    except UnscalableFunctionError as error:
        answer = _failed(str(error))
    except Exception as error:  # noqa: BLE001 - of the test, which raises when it is repeated
        first = str(error).partition("\n")[0]      # pytest explains an assertion in further lines
        answer = _failed(message(f"repeated, it raises {type(error).__name__}: {first}"))
    else:
        why = investigation_sentences(seen.found) if seen.found and seen.outcome in LONGER else ()
        answer = MeasuredTest(outcome=seen.outcome, text=_text(seen), sentences=tuple(why))
    write(**to_plain(answer))


def _call_of(item: pytest.Function, name: str, arguments: Mapping[str, Any]) -> Callable[[], object]:
    """Return a call of the test, with its fixtures; the call itself is one thread's own."""
    function = run_to_its_end(getattr(item.obj, "__func__", item.obj), name)
    return partial(function, *([] if item.instance is None else [item.instance]), **arguments)


def _text(seen: ApiCallable) -> str:
    span = seen.evidence.of_ceiling if seen.evidence else None
    reached = f": {span_text(span)} of the ceiling" if span else ""
    way = way_text(seen)
    # An unsure verdict says it already, and the sentence below it says why.
    return f"{reached}; in the way: {way}" if way not in {"", UNKNOWN} else reached
