"""How hard a run measures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How hard to measure."""

    rounds: int
    values: int  # pyperf values per process
    warmups: int  # pyperf warm-ups per process, after one checked pass
    min_seconds: float  # shortest value; shorter passes are looped
    timeout: float  # seconds a process may make no progress
    budget: float | None = None  # seconds for the whole run
    resolution: float | None = None  # stop when every interval is narrower than this share
    retakes: int = 2  # tries to measure a starved cell again, per round
    seed: int = 0
