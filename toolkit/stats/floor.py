"""The noise floor: what a build differs by from itself in one session.  Nothing smaller is a change."""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, log
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.paired import compare_paired
from gilscope.toolkit.stats.sample import CONFIDENCE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gilscope.toolkit.model import Note


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """What the worst A/A arm of a session shows."""

    error: float              # |median ratio - 1|: what the session got wrong
    bound: float              # what it may have got wrong; verdicts use this one
    rounds: int               # of the arm that gave the bound
    notes: tuple[Note, ...] = ()


def noise_floor(
    pairs: Sequence[tuple[Mapping[int, float], Mapping[int, float]]], *, confidence: float = CONFIDENCE,
) -> Floor:
    """Return the floor that arms measured twice show.

    Args:
        pairs: Per A/A arm, seconds by round of the cell and of its twin.
        confidence: Of the intervals whose farther end from 1 is the bound.

    Returns:
        The worst error and the worst bound.  The bound holds in either direction: an interval that reaches
        down to 0.9 bounds a difference of 1 / 0.9 - 1 = 11.1 %.

    Raises:
        ValueError: There is no pair, or a pair shares no round.
    """
    if not pairs:
        raise ValueError("a noise floor needs at least one A/A arm")
    arms = [compare_paired(cell, twin, confidence=confidence) for cell, twin in pairs]
    bounds = [expm1(max(abs(log(arm.lo)), abs(log(arm.hi)))) for arm in arms]
    worst = max(range(len(arms)), key=bounds.__getitem__)
    return Floor(
        error=max(abs(arm.ratio - 1) for arm in arms), bound=bounds[worst], rounds=arms[worst].rounds,
        notes=arms[worst].notes,
    )
