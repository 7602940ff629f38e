"""What `--quick`, `--rigorous` and neither of them stand for."""

from __future__ import annotations

from dataclasses import dataclass

# One of each kind: the interpreter pool is another way to have subinterpreters, and processes start in other ways, too.
QUICK_MODELS = ("serial", "threads", "free-threaded", "subinterpreters", "processes-forkserver", "asyncio")
QUICK_KINDS = ("cpu", "native", "io", "mixed")


@dataclass(frozen=True, slots=True)
class Preset:
    """How hard to measure when nothing else is said."""

    size: str
    rounds: int      # at most, where a budget or a resolution has cells stop that are clear
    values: int
    warmups: int
    min_seconds: float
    budget: float | None


PRESETS = {
    "quick": Preset("small", rounds=12, values=6, warmups=0, min_seconds=0.02, budget=180.0),
    "default": Preset("small", rounds=12, values=6, warmups=1, min_seconds=0.05, budget=None),
    "rigorous": Preset("medium", rounds=30, values=6, warmups=1, min_seconds=0.1, budget=None),
}
