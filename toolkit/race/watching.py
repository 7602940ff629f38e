"""Check a part of a program: `with gilscope.race.watch() as report:` and `@gilscope.race.checked`."""

from __future__ import annotations

import functools
import inspect
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.own_files import project_root
from gilscope.toolkit.race.program.start import make_spool, remove_spool
from gilscope.toolkit.race.report.text import render
from gilscope.toolkit.race.session import RaceSession
from gilscope.toolkit.race.verdicts.gather import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gilscope.toolkit.race.report.model import Race, RaceReport


class RaceError(AssertionError):
    """A watched part of the program has a data race; the message is the report."""

    def __init__(self, report: WatchReport) -> None:
        super().__init__(str(report))
        self.report = report


class WatchReport:
    """Report on a watched part of the program: partial while it runs, complete afterwards."""

    def __init__(self, spool: str) -> None:
        self._spool = spool
        self._final: RaceReport | None = None

    def whole(self) -> RaceReport:
        """Return the complete report, or the report so far."""
        return self._final or load(self._spool)

    @property
    def races(self) -> tuple[Race, ...]:
        """Data races, each with `variable`, `kind`, `first`, `second` and a repair."""
        return self.whole().races

    @property
    def notes(self) -> tuple[Race, ...]:
        """Notes: unordered accesses that do no harm."""
        return self.whole().notes

    def __str__(self) -> str:
        """Return the report as `gilscope race` shows it."""
        return render(self.whole())

    def close(self) -> None:
        """Load the complete report, before its files are deleted."""
        self._final = load(self._spool)


@contextmanager
def watch(*, raises: bool = False, include: Sequence[str] = ()) -> Iterator[WatchReport]:
    """Check what runs during the block, in all threads.

    Functions of the project's modules are rewritten for that time.  A function that is running already continues
    unchecked, so accesses in the block itself are missed: call functions in it.

    Args:
        raises: Raise RaceError at the end of the block if a race was found.
        include: Globs of modules to check in addition to the project's.

    Yields:
        The report; complete after the block.

    Raises:
        RaceError: With `raises`, if the block itself raised nothing.
        RuntimeError: This process is already being checked, by another block, `gilscope race` or `pytest --race`.
    """
    spool = make_spool()
    report = WatchReport(spool)
    session = RaceSession(spool=spool, include=include, options={"root": project_root(os.getcwd())})
    try:
        session.start()
        session.attach()
        try:
            yield report
        finally:
            session.stop()
            report.close()
    finally:
        remove_spool(spool)
    if raises and report.races:
        raise RaceError(report)


def checked[**P, R](
    function: Callable[P, R] | None = None, /, *, raises: bool = False, include: Sequence[str] = ()
) -> Any:
    """Check every call of a function as `watch` does; its attribute `race_report` is the report of the latest call.

    Use it as `@checked` or `@checked(raises=True)`; for functions and for coroutine functions.

    Raises:
        TypeError: The function is a generator, whose body runs between calls of other functions.
    """
    if function is None:
        return functools.partial(checked, raises=raises, include=include)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{function.__qualname__} is a generator; use `with watch():` around what consumes it")
    return (_checked_coroutine if inspect.iscoroutinefunction(function) else _checked_function)(
        function, {"raises": raises, "include": include})


def _checked_function(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        with watch(**options) as report:
            call.race_report = report  # type: ignore[attr-defined]  # for the user
            return function(*arguments, **named)

    return call


def _checked_coroutine(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def call(*arguments: Any, **named: Any) -> Any:
        with watch(**options) as report:
            call.race_report = report  # type: ignore[attr-defined]  # for the user
            return await function(*arguments, **named)

    return call
