"""Reasons under a table: each distinct one once, however many cells point to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Footnotes:
    """Numbers reasons in the order in which they come up."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def marks(self, reasons: Iterable[str]) -> tuple[int, ...]:
        """Return the numbers of the reasons, new ones for those not seen yet."""
        return tuple(self._numbers.setdefault(reason, len(self._numbers) + 1) for reason in dict.fromkeys(reasons))

    def texts(self) -> tuple[str, ...]:
        """Return the reasons, the first being number 1."""
        return tuple(self._numbers)
