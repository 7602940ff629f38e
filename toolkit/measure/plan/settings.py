"""How hard a run measures."""

from __future__ import annotations

from dataclasses import dataclass

LONG_SECONDS = 3.0   # of all values of one process ...
FEWEST_VALUES = 2    # ... unless that were fewer than these


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How hard to measure."""

    rounds: int
    values: int  # pyperf values per process, of long ones fewer: see `values_of`
    warmups: int  # pyperf warm-ups per process, after one checked pass
    min_seconds: float  # shortest value; shorter passes are looped
    timeout: float  # seconds a process may make no progress
    budget: float | None = None  # seconds for the whole run
    resolution: float | None = None  # half of the interval that each ratio is to have, as a share
    where_open: bool = False  # cells whose answer is clear get no more rounds
    retakes: int = 2  # tries to measure a starved cell again, per round
    seed: int = 0

    def values_of(self, seconds: float) -> int:
        """Return how many values of `seconds` each a process takes: of long ones fewer, and more processes instead."""
        if self.values * seconds <= LONG_SECONDS:
            return self.values
        return max(min(FEWEST_VALUES, self.values), int(LONG_SECONDS / seconds))
