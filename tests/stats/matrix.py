"""Whole runs with a known truth: groups of arms that share a machine, each process with an error of its own."""

from __future__ import annotations

from itertools import accumulate
from math import exp, log1p
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.log_times import RoundLogs, process_levels

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Mapping, Sequence

GROUPS = {8: (2, 4), 24: (4, 6), 84: (4, 21)}   # cells: workloads, arms of each


def sizes(draw: random.Random, kind: str, arms: int) -> list[float]:
    """How large the errors of each arm are, against the group's."""
    return [exp(draw.gauss(0, 0.3)) if kind.startswith("sizes") else 1.0 for _ in range(arms)]


def process_error(draw: random.Random, kind: str) -> float:
    """What one process is off by for its whole life, in logs; its median may differ from 0."""
    return ERRORS[kind](draw)


def slow(draw: random.Random, share: float) -> float:
    """A share of the processes is 10 to 30 % slow."""
    return draw.gauss(0, 0.015) + (log1p(draw.uniform(0.1, 0.3)) if draw.random() < share else 0.0)


def levels(draw: random.Random, spread: float, share: float, step: float) -> float:
    """A share of the processes is a fixed step slower."""
    return draw.gauss(0, spread) + (step if draw.random() < share else 0.0)


ERRORS = {
    "normal": lambda draw: draw.gauss(0, 0.015),
    "slow": lambda draw: slow(draw, 0.08),
    "slower": lambda draw: slow(draw, 0.2),                    # of pairs 36 %: more than any estimate stands
    "bimodal": lambda draw: levels(draw, 0.005, 0.5, 0.08),    # as with cache colouring
    "levels": lambda draw: levels(draw, 0.01, 0.25, 0.17),     # a hash seed
    "student": lambda draw: draw.gauss(0, 0.012) / (draw.gammavariate(1.5, 2) / 3) ** 0.5,   # 3 degrees of freedom
    "skewed": lambda draw: draw.expovariate(50),
    "sizes": lambda draw: draw.gauss(0, 0.015),
    "sizes and slow": lambda draw: slow(draw, 0.08),
}
KINDS = tuple(ERRORS)


def drift(draw: random.Random, rounds: int, step: float = 0.05) -> list[float]:
    """A machine that wanders from round to round, in logs, shared by all arms."""
    return [*accumulate(draw.gauss(0, step) for _ in range(rounds))]


def group(draw: random.Random, kind: str, rounds: int, effects: list[float]) -> RoundLogs[int]:
    """One workload: arm k is `effects[k]` faster than arm 0, in logs."""
    machine = drift(draw, rounds)
    scales = sizes(draw, kind, len(effects))
    return RoundLogs(levels={
        arm: {r: shared + scale * process_error(draw, kind) - effect for r, shared in enumerate(machine)}
        for arm, (effect, scale) in enumerate(zip(effects, scales, strict=True))
    })


def two_runs(draw: random.Random, kind: str, rounds: int, effects: list[float], step: float) -> list[RoundLogs[int]]:
    """One workload in two runs; in the second, arm k is `effects[k]` faster.  Rounds differ by `step` of their own."""
    scales = sizes(draw, kind, len(effects))
    runs = []
    for faster in ([0.0] * len(effects), effects):
        machine = [draw.gauss(0, step) for _ in range(rounds)]
        runs.append(RoundLogs(levels={
            arm: {r: shared + scale * process_error(draw, kind) - effect for r, shared in enumerate(machine)}
            for arm, (effect, scale) in enumerate(zip(faster, scales, strict=True))
        }))
    return runs


def passes(
    draw: random.Random, rounds: int, effects: list[float], *, count: int = 8, kind: str = "normal",
) -> dict[int, dict[int, list[float]]]:
    """The same as seconds of passes in turn: neighbours from pass to pass, and a burst in one value of ten."""
    found: dict[int, dict[int, list[float]]] = {}
    for r, shared in enumerate(drift(draw, rounds)):
        neighbours = drift(draw, count, 0.08)
        found[r] = {
            arm: [
                exp(shared + near + own - effect + draw.gauss(0, 0.01) + (draw.uniform(0, 0.5) if draw.random() < 0.1
                                                                          else 0.0))
                for near in neighbours
            ]
            for arm, effect in enumerate(effects) for own in (process_error(draw, kind),)
        }
    return found


def of_passes(rounds: Mapping[int, Mapping[int, Sequence[float]]]) -> RoundLogs[int]:
    """Return the logs of arms that took their values in turn, from their seconds by round."""
    levels: dict[int, dict[int, float]] = {}
    for number, seconds in rounds.items():
        for arm, level in process_levels(seconds).items():
            levels.setdefault(arm, {})[number] = level
    return RoundLogs(levels=levels)


SESSION_KINDS = {   # standard deviations, in logs: the shift of all arms with several workers, and of each arm alone
    "nothing": (0.0, 0.0),
    "joint 2 %": (0.02, 0.0),
    "own 1 %": (0.0, 0.01),
    "joint 2 % + own 1 %": (0.02, 0.01),
}


def session_levels(
    draw: random.Random, kind: str, workloads: Sequence[Mapping[int, float]], several: Collection[int], *,
    sessions: int, rounds: int, spread: float = 0.015,
) -> list[list[dict[int, dict[int, float]]]]:
    """Workloads in several sessions: arm k is `effects[k]` faster, and a session shifts arms as `kind` says.

    Args:
        draw: For all random numbers.
        kind: One of SESSION_KINDS.
        workloads: The effects of each workload's arms, in logs.
        several: The arms with several workers, which a session shifts together, in all workloads.
        sessions: The number of sessions.
        rounds: In each session.
        spread: Of a process, in logs.

    Returns:
        By workload and session: the levels by arm and round.
    """
    joint, own = SESSION_KINDS[kind]
    found: list[list[dict[int, dict[int, float]]]] = [[] for _ in workloads]
    for session in range(sessions):
        shift = draw.gauss(0, joint)
        for place, effects in enumerate(workloads):
            machine = drift(draw, rounds)
            levels = {}
            for arm, effect in effects.items():
                level = draw.gauss(0, own) + (shift if arm in several else 0.0) - effect
                levels[arm] = {session * rounds + r: level + shared + draw.gauss(0, spread)
                               for r, shared in enumerate(machine)}
            found[place].append(levels)
    return found
