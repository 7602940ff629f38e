"""When a measured process takes its values: in its turns, or one after the other where there is nobody to wait for.

Runs in the build being measured: imports little.
"""

from __future__ import annotations

import faulthandler
import time
from typing import TYPE_CHECKING, Any, Literal, Protocol

from gilscope.toolkit.measure.process.child_base import StoppedError, set_alarm
from gilscope.toolkit.measure.process.line import Line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.measure.process.spec import Spec

Order = Literal["take", "again", "end"]  # one more value; the last one once more; the last one was the last
Stage = Literal["started", "loaded", "opened", "checked", "ready"]  # on the way to the first turn


class Turns(Protocol):
    """Who says when the next value is taken."""

    others: bool         # whether others take values between two of this process
    ours: Sequence[int]  # processes whose CPU time is nobody else's, beside the measured ones

    def reach(self, stage: Stage, /) -> None:
        """Note when it got so far."""

    def begin(self, **fields: Any) -> int:
        """Say that all is warm; return, when the first value is to be taken, how many there will be."""

    def next(self, **fields: Any) -> Order:
        """Tell what came of a value; return, when there is a turn, what is to be done."""


class Alone:
    """One value after the other."""

    others = False
    ours: Sequence[int] = ()

    def __init__(self, spec: Any) -> None:
        self._values: int = spec.values

    def reach(self, _stage: Stage, /) -> None:
        """Nobody asks."""

    def begin(self, **_fields: Any) -> int:
        """Return at once how many values there are."""
        return self._values

    def next(self, **_fields: Any) -> Order:
        """Return at once."""
        return "take"


class InTurn:
    """Waits for the scheduler's word before each value."""

    others = True

    def __init__(self, spec: Spec, fd: int) -> None:
        self._spec = spec
        self._line = Line(fd, spec.secret)
        self.ours: Sequence[int] = ()
        self._reached: dict[Stage, float] = {}   # seconds of the monotonic clock, which all processes share
        self.reach("started")

    def reach(self, stage: Stage, /) -> None:
        """Note when it got so far; what a fresh process costs is read from that (`tests/benchmarks/harness.py`)."""
        self._reached[stage] = time.monotonic()

    def begin(self, **fields: Any) -> int:
        """Say that all is warm; return, when the first value is to be taken, how many there will be."""
        self.reach("ready")
        values: int = self._ask({**fields, "reached": self._reached})["values"]
        return values

    def next(self, **fields: Any) -> Order:
        """Tell what came of a value; return, when there is a turn, what is to be done."""
        order: Order = self._ask(fields)["order"]
        return order

    def _ask(self, fields: dict[str, Any]) -> dict[str, Any]:
        # Time limits are those of a turn: while others have theirs, nothing is late.
        faulthandler.cancel_dump_traceback_later()
        self._line.say(**fields)
        if (told := self._line.hear()) is None:
            raise StoppedError("killed", "the scheduler let go of it")
        set_alarm(self._spec)
        self.ours = told["ours"]
        return told
