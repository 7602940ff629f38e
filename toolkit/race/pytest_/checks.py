"""Check each test for data races; imported only with `pytest --race`.

A finding is all races on one variable.  The first test that has one fails, other tests do not; each is described once,
at the end, and makes the exit code 1.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.reports import CollectErrorRepr

from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.escaping import message
from gilscope.toolkit.own_files import project_root
from gilscope.toolkit.race.program.checked_files import NO_RACE, CheckedFiles
from gilscope.toolkit.race.program.start import make_spool, remove_spool
from gilscope.toolkit.race.pytest_.findings import FindingLog
from gilscope.toolkit.race.pytest_.trimmed_stacks import without_pytest
from gilscope.toolkit.race.report.learn import learn
from gilscope.toolkit.race.report.sentences import limits
from gilscope.toolkit.race.report.settings import settings
from gilscope.toolkit.race.report.text import by_variable, message_of, render_finding, render_race, summary_of
from gilscope.toolkit.race.session import RaceSession
from gilscope.toolkit.race.verdicts.gather import Gathering, load
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from gilscope.toolkit.race.report.model import RaceReport
    from gilscope.toolkit.race.report.settings import RaceSettings

TITLE = "data races"
QUIETER = -2      # the verbosity of -qq
FULL = 2          # of -vv
WORKER_SPOOL = "GILSCOPE_PYTEST_RACE"     # the variable with the folder that the workers of pytest-xdist write to
NEW_FINDINGS = pytest.StashKey[str]()     # the text on what an item's current phase was the first to find


def begin(config: pytest.Config, options: Any) -> RaceChecks | RaceXdistController:
    """Begin to check this process, or prepare the checks in the workers of pytest-xdist.

    Raises:
        pytest.UsageError: The process cannot be checked.
    """
    shared = os.environ.get(WORKER_SPOOL, "") if "PYTEST_XDIST_WORKER" in os.environ else ""
    root = project_root(str(config.rootpath))
    chosen = settings(Path(root, "pyproject.toml"))
    if options.gilscope_race_learn and not Path(root, "pyproject.toml").is_file():
        raise pytest.UsageError(f"--race-learn writes into pyproject.toml, and {root} has none")
    if not shared and (getattr(options, "numprocesses", None) or getattr(options, "tx", None)):
        return RaceXdistController(config, options, chosen)
    try:
        return RaceChecks(config, options, chosen, spool=shared)
    except (RuntimeError, ToolkitError) as error:
        raise pytest.UsageError(f"--race: {error}") from error


class RaceReporter:
    """Reports the findings of a session, at its end; the base of both kinds of process."""

    def __init__(self, config: pytest.Config, options: Any, chosen: RaceSettings, spool: str) -> None:
        self.config = config
        self.chosen = chosen
        self.include = [*options.gilscope_race_include, *chosen.include]
        self.spool = spool
        self.log = FindingLog(spool)
        self.root = project_root(str(config.rootpath))
        self.learns: bool = options.gilscope_race_learn
        self.learned = ""      # what that did

    def checked(self) -> CheckedFiles:
        """Return the files that were checked so far."""
        return CheckedFiles(self.spool, self.root, include=self.include, option="--race-include")

    def report(self) -> RaceReport:
        """Return the races of all processes."""
        return without_pytest(load(self.spool, self.chosen.suppressions))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run that passed with a finding, without a complete check or without any."""
        if self.config.option.collectonly:
            return
        found = self.report()
        if self.learns:
            try:
                self.learned = learn(found, Path(self.root, "pyproject.toml"))
            except ToolkitError as error:
                self.learns, self.learned = False, str(error)
        if session.exitstatus != pytest.ExitCode.OK:
            return
        if (found.races and not self.learns) or not found.is_complete or self.checked().is_nothing:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show each finding, what was checked, notes, and the limits of the check itself."""
        found = self.report()
        wants_notes = self.config.option.gilscope_race_notes or self.chosen.notes
        findings = [*self._findings(found)]
        lines = [f"{path} ran unchecked: {reason}" for path, reason in found.unrewritten]
        lines += limits(found)
        lines += [*found.unused_suppressions, *found.unexplained_suppressions]
        if self.learned:
            lines.append(self.learned)
        blocks = [*findings, *(render_race(race, found.root) for race in (found.notes if wants_notes else ()))]
        blocks += map(message, lines)
        if blocks:
            terminalreporter.section("race checker")
        checked = self.checked()
        if not self.config.option.collectonly and (self.config.option.verbose > QUIETER or checked.is_nothing):
            result = counted(len(findings), "finding") if findings else NO_RACE if found.is_complete else ""
            blocks.insert(0, f"gilscope race: {message(checked.words(result, found=bool(findings)))}")
        if blocks:
            terminalreporter.write_line("\n\n".join(blocks))

    def _findings(self, found: RaceReport) -> Iterator[str]:
        """Yield the text of each finding, in the order of their numbers."""
        groups = {group[0].base: group for group in by_variable(found.races)}
        tests = self.log.tests()
        for number, base in enumerate([*tests, *(base for base in groups if base not in tests)], 1):
            if base not in groups:
                continue     # the process that found it could not write its record
            where = _where(tests.get(base, []))
            text = (f"{render_finding(groups[base], found.root)}\n  Found {message(where)}."
                    if self.config.option.verbose >= FULL else summary_of(groups[base], found.root, where))
            yield f"[{number}] {text}"


def _where(tests: Sequence[str]) -> str:
    if not tests:
        return "outside of tests"
    return f"in {tests[0]}" if len(tests) == 1 else f"in {len(tests)} tests, first in {tests[0]}"


class RaceXdistController(RaceReporter):
    """The process that distributes tests to the workers of pytest-xdist, which check them."""

    def __init__(self, config: pytest.Config, options: Any, chosen: RaceSettings) -> None:
        super().__init__(config, options, chosen, make_spool())
        os.environ[WORKER_SPOOL] = self.spool

    def pytest_unconfigure(self) -> None:
        """Remove the races, which have been reported."""
        os.environ.pop(WORKER_SPOOL, None)
        remove_spool(self.spool)


class RaceChecks(RaceReporter):
    """Gives each phase of each test its own section, and fails a phase that is the first to have some finding."""

    def __init__(self, config: pytest.Config, options: Any, chosen: RaceSettings, spool: str) -> None:
        super().__init__(config, options, chosen, spool or make_spool())
        self.own_spool = not spool
        self._gathering = Gathering(self.spool)
        self.session = RaceSession(
            spool=self.spool, include=self.include,
            options={"root": self.root, "target": "pytest", "sections": True})
        try:
            self.session.start()
        except BaseException:
            self._remove_spool()
            raise

    def pytest_report_header(self) -> str:
        """Return the line that names the core."""
        return f"race checker: {self.session.core.name} core"

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Check the fixtures."""
        return (yield from self._phase(item, "setup"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Check the test."""
        return (yield from self._phase(item, "call"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Check the teardown of the fixtures."""
        return (yield from self._phase(item, "teardown"))

    def _phase(self, item: pytest.Item, when: str) -> Generator[None, Any, Any]:
        section = f"{item.nodeid} [{when}]"
        self.session.handler.section(section)
        try:
            return (yield)
        finally:
            item.stash[NEW_FINDINGS] = self._new_findings(section, item.nodeid)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Fail a phase that passed but has a new finding; beside any other outcome, show it.

        An exception would not do: unittest's own failures replace it, and an xfail mark expects it.
        """
        report = yield
        if text := item.stash.get(NEW_FINDINGS, ""):
            item.stash[NEW_FINDINGS] = ""
            _show(report, text, text, fails=not (self.learns or hasattr(report, "wasxfail")))
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector,
                                   ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Check the code that runs when a module is imported."""
        section = f"{collector.nodeid} [collection]"
        self.session.handler.section(section)
        report = yield
        if text := self._new_findings(section, collector.nodeid):
            _show(report, text, CollectErrorRepr(text), fails=not self.learns)
        return report

    def _new_findings(self, section: str, test: str) -> str:
        """Return the text on the findings that no test had before, or ""; later races belong to no section."""
        has_conflicts = self.session.handler.in_section()
        self.session.handler.section(None)
        if not has_conflicts:
            return ""
        found = without_pytest(self._gathering.report(self.chosen.suppressions, section))
        groups = by_variable(found.races)     # the gravest first
        new = [group[0] for group in groups if self.log.add(group[0].base, test)]
        numbered = [(race, *self.log.number(race.base, test)) for race in new]
        texts = [f"[{number}] {message_of(race, self.root)}" for race, number, is_first in numbered if is_first]
        return "\n".join(text if place == 0 else text.partition("\n")[0] for place, text in enumerate(texts))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the records that are complete only at the end, then judge the run, unless another process does."""
        self.session.finish()
        if self.own_spool:
            super().pytest_sessionfinish(session)

    def pytest_unconfigure(self) -> None:
        """Stop checking."""
        self.session.stop()
        self._remove_spool()

    def _remove_spool(self) -> None:
        if self.own_spool:
            remove_spool(self.spool)


def _show(report: pytest.TestReport | pytest.CollectReport, text: str, failure: Any, *, fails: bool) -> None:
    """Fail a report that passed, if `fails`; add the text to any other."""
    if report.passed and fails:
        report.outcome = "failed"
        report.longrepr = failure
    else:
        report.sections.append((TITLE, text))
