"""Each of the project's tests in several threads at once: what is asked of pytest for that, and what it tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.bounded_reading import parse_json, read_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NEEDED = ("pytest-run-parallel",)   # where it cannot be had, the plugin of ours does the same by simpler rules
PLUGIN = "gilscope_at_once"         # beside the witness, which is on the path of the project's processes
TOLD = "at-once.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class AtOnce:
    """What a run of the tests says of itself."""

    together: int = 0                # tests that ran in several threads
    alone: tuple[str, ...] = ()      # "test: why" of those that ran in one
    failing: tuple[str, ...] = ()    # of those that ran in several


def understood(words: Sequence[str]) -> bool:
    """Return whether it is pytest that these words of a program run."""
    return list(words[:2]) == ["-m", "pytest"]


def variables(threads: int, folder: str) -> dict[str, str]:
    """Return what tells the plugin how many threads, and the folder for what it says."""
    return {"GILSCOPE_AT_ONCE": str(threads), "GILSCOPE_AT_ONCE_TOLD": f"{folder}/{TOLD}",
            "PYTEST_ADDOPTS": f"-p {PLUGIN}"}


def told(place: Path) -> AtOnce:
    """Return what the plugin wrote into the run's folder; nothing where it came to no end."""
    try:
        found = parse_json(read_text(place / TOLD))
        return AtOnce(together=int(found["together"]), failing=tuple(map(str, found["failing"])),
                      alone=tuple(f"{name}: {why}" for name, why in found["alone"].items()))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):   # or a test has written over it
        return AtOnce()
