"""Check each test for data races; imported only with `pytest --race`."""

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
from gilscope.toolkit.race.pytest_.trimmed_stacks import without_pytest
from gilscope.toolkit.race.report.gather import load
from gilscope.toolkit.race.report.sentences import limits
from gilscope.toolkit.race.report.settings import settings
from gilscope.toolkit.race.report.text import render_race
from gilscope.toolkit.race.session import RaceSession

if TYPE_CHECKING:
    from collections.abc import Generator

    from gilscope.toolkit.race.report.model import RaceReport
    from gilscope.toolkit.race.report.settings import RaceSettings

TITLE = "data races"
QUIETER = -2      # the verbosity of -qq
WORKER_SPOOL = "GILSCOPE_PYTEST_RACE"     # the variable with the folder that the workers of pytest-xdist write to
RACES = pytest.StashKey[str]()     # the text on races in an item's current phase


def begin(config: pytest.Config, options: Any) -> RaceChecks | RaceXdistController:
    """Begin to check this process, or prepare the checks in the workers of pytest-xdist.

    Raises:
        pytest.UsageError: The process cannot be checked.
    """
    shared = os.environ.get(WORKER_SPOOL, "") if "PYTEST_XDIST_WORKER" in os.environ else ""
    chosen = settings(Path(project_root(str(config.rootpath)), "pyproject.toml"))
    if not shared and (getattr(options, "numprocesses", None) or getattr(options, "tx", None)):
        return RaceXdistController(config, options, chosen)
    try:
        return RaceChecks(config, options, chosen, spool=shared)
    except (RuntimeError, ToolkitError) as error:
        raise pytest.UsageError(f"--race: {error}") from error


class RaceReporter:
    """Reports what belongs to no test, at the end; the base of both kinds of process."""

    def __init__(self, config: pytest.Config, options: Any, chosen: RaceSettings, spool: str) -> None:
        self.config = config
        self.chosen = chosen
        self.include = [*options.gilscope_race_include, *chosen.include]
        self.spool = spool
        self.root = project_root(str(config.rootpath))

    def checked(self) -> CheckedFiles:
        """Return the files that were checked so far."""
        return CheckedFiles(self.spool, self.root)

    def report(self, section: str | None = None) -> RaceReport:
        """Return the races in one section or in all."""
        return without_pytest(load(self.spool, self.chosen.suppressions, section))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run that passed without a complete check, or without any: it must not look like one without races."""
        if session.exitstatus != pytest.ExitCode.OK or self.config.option.collectonly:
            return
        if self.checked().is_nothing or not self.report().is_complete:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show what was checked, notes, and the limits of the check itself."""
        found = self.report()
        wants_notes = self.config.option.gilscope_race_notes or self.chosen.notes
        lines = [f"{path} ran unchecked: {reason}" for path, reason in found.unrewritten]
        lines += limits(found)
        lines += [*found.unused_suppressions, *found.unexplained_suppressions]
        blocks = [render_race(race, found.root) for race in (found.notes if wants_notes else ())]
        blocks += map(message, lines)
        if blocks:
            terminalreporter.section("race checker")
        checked = self.checked()
        if not self.config.option.collectonly and (self.config.option.verbose > QUIETER or checked.is_nothing):
            result = NO_RACE if found.is_complete and not found.races else ""   # else it is said beside the tests
            blocks.insert(0, f"gilscope race: {message(checked.words(result, found=bool(found.races)))}")
        if blocks:
            terminalreporter.write_line("\n\n".join(blocks))


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
    """Gives each phase of each test its own section, and fails a phase that has a race."""

    def __init__(self, config: pytest.Config, options: Any, chosen: RaceSettings, spool: str) -> None:
        super().__init__(config, options, chosen, spool or make_spool())
        self.own_spool = not spool
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
            result = yield
        except BaseException:
            item.stash[RACES] = self._races(section)   # shown beside the failure
            raise
        if races := self._races(section):
            pytest.fail(races, pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Show the races of a failing test beside its failure."""
        report = yield
        if races := item.stash.get(RACES, ""):
            report.sections.append((TITLE, races))
            item.stash[RACES] = ""
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector,
                                   ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Check the code that runs when a module is imported."""
        section = f"{collector.nodeid} [collection]"
        self.session.handler.section(section)
        report = yield
        if races := self._races(section):
            if report.passed:
                report.outcome = "failed"
                report.longrepr = CollectErrorRepr(races)
            else:
                report.sections.append((TITLE, races))
        return report

    def _races(self, section: str) -> str:
        """Return the section's races as text, or ""; later races belong to no section."""
        found = self.session.handler.failed()
        self.session.handler.section(None)
        if not found:
            return ""
        report = self.report(section)
        return "\n\n".join(render_race(race, report.root) for race in report.races)

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
