"""Sample the headers of objects while threads work: whose reference counts move, and which are locked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.scale.judgement import ContendedLock
from gilscope.toolkit.scale.zygote_process import CLOSE_PERIOD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.scale.zygote_process import SampledObject, ZygoteProcess

PASSES = 3                # over all objects: a busy machine may hide one
MOVED = 0.02              # share of samples in which the count of a suspect had moved, of those while threads had cores
LEAST_MOVED = 0.004       # of all samples
LONGEST = 4.0             # times the usual time, on a busy machine


class ObjectSampler:
    """Samples objects at a share of the threads' time in which they have cores."""

    def __init__(self, process: ZygoteProcess, threads: int, on_cores: float) -> None:
        """Sample nothing yet; `on_cores` is that share."""
        self.on_cores = on_cores
        self._process = process
        self._threads = threads
        self._longer = min(LONGEST, 1 / max(on_cores, 0.01))

    def sample(self) -> list[SampledObject]:
        """Return the objects whose counts moved, or that were locked, with their shares of closer samples."""
        numbers = {each.number for _ in range(PASSES)
                   for each in self._process.sample(self._threads, longer=self._longer)
                   if each.moved >= MOVED / 10 or each.locked}
        return self._process.sample(
            self._threads, sorted(numbers), CLOSE_PERIOD, longer=self._longer) if numbers else []

    def suspects(self, seen: Sequence[SampledObject]) -> list[SampledObject]:
        """Return the objects whose counts moved often enough while the threads had cores, most often first."""
        least = max(LEAST_MOVED, MOVED * self.on_cores)
        return sorted((each for each in seen if each.moved >= least), key=lambda each: -each.moved)


def contended_locks(seen: Sequence[SampledObject]) -> tuple[ContendedLock, ...]:
    """Return the locks that may be in the way, those held most often first.

    One that nobody was seen to wait for is left out beside one that was held as often: it is used under the other.
    """
    waited_for = max((each.locked for each in seen if each.waited), default=0.0)
    return tuple(ContendedLock(number=each.number, held=each.locked)
                 for each in sorted(seen, key=lambda each: -each.locked)
                 if each.locked and (each.waited or each.locked > waited_for))
