"""Find data races of a Python program by happens-before, not by chance timing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gilscope.toolkit.race.watching import RaceError, checked, watch

__all__ = ["RaceError", "checked", "watch"]


def __getattr__(name: str) -> object:
    # The checked process imports this package at its start, and most of its users want the command.
    if name in __all__:
        from gilscope.toolkit.race import watching

        return getattr(watching, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
