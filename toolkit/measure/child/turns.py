"""The turns in which a measured process takes its values; without other processes, it takes them in a row.

Both kinds of measured process, of a cell and of a program, take each value with `take_value`.  This runs in the build
being measured and imports little.
"""

from __future__ import annotations

import faulthandler
import time
from typing import TYPE_CHECKING, Any, Literal, Protocol

from gilscope.toolkit.measure.child.base import NoValueError, set_alarm
from gilscope.toolkit.measure.child.channel import SealedChannel
from gilscope.toolkit.measure.child.process_tree import peak_resident

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gilscope.toolkit.measure.child.spec import ProcessSpec

Order = Literal["take", "again", "end"]  # one more value; the last one again, as all arms do; no more values
Stage = Literal["started", "loaded", "opened", "checked", "ready"]  # on the way to the first turn


class ValueTurns(Protocol):
    """Decides when the next value is taken."""

    others: bool         # other processes take values between two of this one
    ours: Sequence[int]  # gilscope's processes beside the measured ones: their CPU time is no other load

    def reach(self, stage: Stage, /) -> None:
        """Note the time at which the process reached a stage."""

    def begin(self, *, loops: int, seconds: float, pids: Sequence[int]) -> int:
        """Report that all is warm; return the number of values when the first is to be taken.

        Args:
            loops: The loops of each value.
            seconds: The approximate duration of a value.
            pids: The measured processes.
        """

    def next(self, *, others: float, bearable: float | None) -> tuple[Order, int]:
        """Report the load during the last value, and return the next order when it is this process's turn.

        Args:
            others: Cores' worth of CPU time that other programs used at least.
            bearable: More than this starves the value; None: nothing does.

        Returns:
            The order, and the number of the attempt at the last value that counts, from 0 on.
        """


def take_value[T](
    turns: ValueTurns, take: Callable[[], T], load: Callable[[T], tuple[float, float | None]],
) -> tuple[T, Order, int]:
    """Take one value, and take it again as often as the scheduler has all arms of the pass repeat theirs.

    The scheduler decides which attempt counts, the same for all arms: if each arm kept its own best, those that are
    taken again would gain what their baseline does not.

    Args:
        turns: Decides if the value is retaken, and which attempt counts.
        take: Takes a value.
        load: Returns `others` and `bearable` of a value, see `ValueTurns.next`.

    Returns:
        The value of the attempt that counts, the next order, and the number of retakes.
    """
    attempts: list[T] = []
    order: Order = "again"
    counts = 0
    while order == "again":
        attempts.append(take())
        others, bearable = load(attempts[-1])
        order, counts = turns.next(others=others, bearable=bearable)
    return attempts[counts], order, len(attempts) - 1


class NoTurns:
    """Takes one value after the other, as no other process takes turns."""

    others = False
    ours: Sequence[int] = ()

    def __init__(self, values: int) -> None:
        self._values = values

    def reach(self, _stage: Stage, /) -> None:
        """Do nothing: nobody reads the times."""

    def begin(self, **_fields: object) -> int:
        """Return the number of values at once."""
        return self._values

    def next(self, **_fields: object) -> tuple[Order, int]:
        """Return at once."""
        return "take", 0


class ScheduledTurns:
    """Waits for the scheduler's order before each value."""

    others = True

    def __init__(self, spec: ProcessSpec, fd: int) -> None:
        self._spec = spec
        self._line = SealedChannel(fd, spec.secret)
        self.ours: Sequence[int] = ()
        self._reached: dict[Stage, float] = {}   # seconds of the monotonic clock, which all processes share
        self.reach("started")

    def reach(self, stage: Stage, /) -> None:
        """Note the time at which the process reached a stage (`tests/benchmarks/harness.py` shows its start by it)."""
        self._reached[stage] = time.monotonic()

    def begin(self, *, loops: int, seconds: float, pids: Sequence[int]) -> int:
        """Report that all is warm, and wait for the first turn."""
        self.reach("ready")
        values: int = self._ask(loops=loops, seconds=seconds, pids=pids, peak=peak_resident(pids),
                                reached=self._reached)["values"]
        return values

    def next(self, *, others: float, bearable: float | None) -> tuple[Order, int]:
        """Report the load during the last value, and wait for the next order."""
        answer = self._ask(others=others, bearable=bearable)
        return answer["order"], answer.get("keep", 0)

    def _ask(self, **fields: Any) -> dict[str, Any]:
        # Time limits apply to this process's own turns only.
        faulthandler.cancel_dump_traceback_later()
        self._line.send(**fields)
        if (answer := self._line.receive()) is None:
            raise NoValueError("killed", "the scheduler let go of it")
        set_alarm(self._spec)
        self.ours = answer["ours"]
        return answer
