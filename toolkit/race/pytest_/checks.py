"""What `pytest --race` does with each test, loaded with that option alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.reports import CollectErrorRepr

from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.escaping import message
from gilscope.toolkit.race.program.start import make_spool, remove_spool
from gilscope.toolkit.race.pytest_.installed_project import unwatched
from gilscope.toolkit.race.pytest_.trimmed_stacks import without_pytest
from gilscope.toolkit.race.report.gather import load
from gilscope.toolkit.race.report.settings import settings
from gilscope.toolkit.race.report.text import render_race
from gilscope.toolkit.race.session import Session

if TYPE_CHECKING:
    from collections.abc import Generator

    from gilscope.toolkit.race.report.model import RaceReport
    from gilscope.toolkit.race.report.settings import Settings

TITLE = "data races"
WORKER_SPOOL = "GILSCOPE_PYTEST_RACE"     # tells the workers of pytest-xdist where to write
RACES = pytest.StashKey[str]()     # of an item: what its current phase has found


def begin(config: pytest.Config, options: Any) -> Checks | Controller:
    """Begin to check this process, or prepare what the workers of pytest-xdist will do.

    Raises:
        pytest.UsageError: The process cannot be checked.
    """
    shared = os.environ.get(WORKER_SPOOL, "") if "PYTEST_XDIST_WORKER" in os.environ else ""
    chosen = settings(config.rootpath / "pyproject.toml")
    if not shared and (getattr(options, "numprocesses", None) or getattr(options, "tx", None)):
        return Controller(config, options, chosen)
    try:
        return Checks(config, options, chosen, spool=shared)
    except (RuntimeError, ToolkitError) as error:
        raise pytest.UsageError(f"--race: {error}") from error


class Told:
    """What both kinds of process do at the end: say what belongs to no test."""

    def __init__(self, config: pytest.Config, options: Any, chosen: Settings, spool: str) -> None:
        self.config = config
        self.chosen = chosen
        self.include = [*options.gilscope_race_include, *chosen.include]
        self.spool = spool

    def report(self, section: str | None = None) -> RaceReport:
        """Return what was found, in one section or in all."""
        return without_pytest(load(self.spool, self.chosen.suppressions, section))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show notes, and what ought to be known about the checking itself."""
        found = self.report()
        wants_notes = self.config.option.gilscope_race_notes or self.chosen.notes
        lines = [f"{path} ran unchecked: {reason}" for path, reason in found.unrewritten]
        lines += unwatched(self.config.rootpath, self.include)
        lines += [*found.unused_suppressions, *found.unexplained_suppressions]
        notes = [render_race(note, found.root) for note in found.notes] if wants_notes else []
        if lines or notes:
            terminalreporter.section("race checker")
            terminalreporter.write_line("\n\n".join([*notes, *map(message, lines)]))


class Controller(Told):
    """The process that hands tests to the workers of pytest-xdist: they check, it knows where they write."""

    def __init__(self, config: pytest.Config, options: Any, chosen: Settings) -> None:
        super().__init__(config, options, chosen, make_spool())
        os.environ[WORKER_SPOOL] = self.spool

    def pytest_unconfigure(self) -> None:
        """Remove what was found: it has been told."""
        os.environ.pop(WORKER_SPOOL, None)
        remove_spool(self.spool)


class Checks(Told):
    """Gives every phase of every test a section of its own, and fails the phase in which a race was found."""

    def __init__(self, config: pytest.Config, options: Any, chosen: Settings, spool: str) -> None:
        super().__init__(config, options, chosen, spool or make_spool())
        self.own_spool = not spool
        self.session = Session(
            spool=self.spool, core=options.gilscope_race_core,
            include=self.include,
            options={"root": str(config.rootpath), "target": "pytest", "sections": True})
        try:
            self.session.start()
        except BaseException:
            self._remove_spool()
            raise

    def pytest_report_header(self) -> str:
        """Say that the tests are checked, and with what."""
        slow = f" ({self.session.slow_because}: slower)" if self.session.slow_because else ""
        return f"race checker: {self.session.core.name} core{slow}"

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
        """Check what takes the fixtures down."""
        return (yield from self._phase(item, "teardown"))

    def _phase(self, item: pytest.Item, when: str) -> Generator[None, Any, Any]:
        section = f"{item.nodeid} [{when}]"
        self.session.handler.section(section)
        try:
            result = yield
        except BaseException:
            item.stash[RACES] = self._races(section)   # beside the failure
            raise
        if races := self._races(section):
            pytest.fail(races, pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Show a failing test's races, too."""
        report = yield
        if races := item.stash.get(RACES, ""):
            report.sections.append((TITLE, races))
            item.stash[RACES] = ""
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector,
                                   ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Check what runs when a module is imported."""
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
        """Return the section's races as text, "" when there are none; what comes later belongs to no section."""
        found = self.session.handler.failed()
        self.session.handler.section(None)
        if not found:
            return ""
        report = self.report(section)
        return "\n\n".join(render_race(race, report.root) for race in report.races)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Write what is known only at the end."""
        self.session.finish()

    def pytest_unconfigure(self) -> None:
        """Stop checking."""
        self.session.stop()
        self._remove_spool()

    def _remove_spool(self) -> None:
        if self.own_spool:
            remove_spool(self.spool)
