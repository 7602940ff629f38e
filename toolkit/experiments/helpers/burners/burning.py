"""CPU work that runs beside what is measured: in threads, processes, or subinterpreters with a GIL of their own.

All are started and ready before the first burns, since starting anything beside busy processes may take seconds.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from gilscope.runners import _interpreters
from gilscope.toolkit.experiments.helpers.burners.apart import ProcessBurner, SubinterpreterBurner
from gilscope.toolkit.experiments.helpers.burners.thread import ThreadBurner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.experiments.helpers.burners.thread import Burner

KINDS: dict[str, type[ThreadBurner | ProcessBurner | SubinterpreterBurner]] = {
    "threads": ThreadBurner, "processes": ProcessBurner, "subinterpreters": SubinterpreterBurner,
}


class Burners:
    """All CPU work beside one measurement."""

    def __init__(self, burners: list[Burner]) -> None:
        """All are ready and idle."""
        self._burners = burners

    def go(self) -> None:
        """Let all burn; return when they do."""
        for burner in self._burners:
            burner.begin()
        for burner in self._burners:
            burner.wait_burning()

    def stop(self) -> float:
        """Let all stop, and return the iterations a second that they did together; they stay until the block ends."""
        for burner in self._burners:
            burner.tell_stop()
        return sum(burner.rate() for burner in self._burners)


@contextmanager
def burning(kind: str, count: int) -> Iterator[Burners]:
    """Start `count` burners and give them, ready and idle; end them on leaving, whatever they do then.

    Args:
        kind: "threads", "processes" or "subinterpreters".
        count: 0 for none.

    Raises:
        RuntimeError: one did not start.
        TimeoutError: one did not start or end in time.
    """
    if kind == "subinterpreters":
        _interpreters.prepare_main()
    started: list[Burner] = []
    try:
        started.extend(KINDS[kind]() for _ in range(count))
        yield Burners(started)
    finally:
        _end(started)


def _end(burners: list[Burner]) -> None:
    failures = []
    for burner in burners:
        burner.let_go()
    for burner in burners:
        try:
            burner.end()
        except TimeoutError as error:
            failures.append(error)
    if failures:
        raise failures[0]
