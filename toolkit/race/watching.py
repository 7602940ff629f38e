"""Check a piece of a program: `with gilscope.race.watch() as report:` and `@gilscope.race.checked`."""

from __future__ import annotations

import functools
import inspect
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.race.program.start import make_spool, remove_spool
from gilscope.toolkit.race.report.gather import load
from gilscope.toolkit.race.report.text import render
from gilscope.toolkit.race.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gilscope.toolkit.race.report.model import Race, RaceReport


class RaceError(AssertionError):
    """A watched piece of the program has a data race; its text is the report."""

    def __init__(self, report: WatchReport) -> None:
        super().__init__(str(report))
        self.report = report


class WatchReport:
    """What was found in a watched piece, so far while it runs and in full afterwards."""

    def __init__(self, spool: str) -> None:
        self._spool = spool
        self._final: RaceReport | None = None

    def whole(self) -> RaceReport:
        """Return everything that is known."""
        return self._final or load(self._spool)

    @property
    def races(self) -> tuple[Race, ...]:
        """The data races; each has `variable`, `kind`, `first`, `second` and a repair."""
        return self.whole().races

    @property
    def notes(self) -> tuple[Race, ...]:
        """What is unordered but harmless."""
        return self.whole().notes

    def __str__(self) -> str:
        """Return the report as `gilscope race` shows it."""
        return render(self.whole())

    def close(self) -> None:
        """Keep what was found: the files go."""
        self._final = load(self._spool)


@contextmanager
def watch(*, raises: bool = False, include: Sequence[str] = (), core: str = "") -> Iterator[WatchReport]:
    """Check what runs between here and the end of the block, in all threads.

    Functions of the project's modules that are imported already are rewritten for that time, those imported meanwhile
    likewise.  A function that is running at this moment goes on as it was, so what the block itself does to shared
    variables is not seen: let it call functions.

    Args:
        raises: Raise RaceError at the end of the block when a race was found.
        include: Globs of modules to check besides the project's.
        core: "c", "python", or "" for the faster one that works.

    Yields:
        The report; complete after the block.

    Raises:
        RaceError: With `raises`, and only where the block itself raised nothing.
        RuntimeError: This process is being checked already: by another block, `gilscope race` or `pytest --race`.
    """
    spool = make_spool()
    report = WatchReport(spool)
    session = Session(spool=spool, core=core, include=include, options={"root": os.getcwd()})
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


def checked[**P, R](function: Callable[P, R] | None = None, /, *, raises: bool = False, include: Sequence[str] = (),
                    core: str = "") -> Any:
    """Check every call of a function as `watch` does; its `race_report` is that of the last call.

    Use it as `@checked` or `@checked(raises=True)`; for functions and for coroutine functions.

    Raises:
        TypeError: The function is a generator, whose body runs between the calls of others.
    """
    if function is None:
        return functools.partial(checked, raises=raises, include=include, core=core)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{function.__qualname__} is a generator; use `with watch():` around what consumes it")
    return (_checked_coroutine if inspect.iscoroutinefunction(function) else _checked_function)(
        function, {"raises": raises, "include": include, "core": core})


def _checked_function(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        with watch(**options) as report:
            call.race_report = report  # type: ignore[attr-defined]  # where the user finds it
            return function(*arguments, **named)

    return call


def _checked_coroutine(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def call(*arguments: Any, **named: Any) -> Any:
        with watch(**options) as report:
            call.race_report = report  # type: ignore[attr-defined]  # where the user finds it
            return await function(*arguments, **named)

    return call
