"""Series with a known truth, as a shared machine makes them."""

import random
from collections.abc import Iterator
from itertools import accumulate


def drift(draw: random.Random, rounds: int) -> list[float]:
    """A machine that wanders: a random walk of the log by 5 % a round, shared by all arms."""
    return [2.718281828 ** x for x in accumulate(draw.gauss(0, 0.05) for _ in range(rounds))]


def series(draw: random.Random, kind: str, machine: list[float], seconds: float) -> dict[int, float]:
    """One arm on that machine; its own noise is `kind`, the true time on the quiet machine `seconds`."""
    return {r: seconds * shared * _own_noise(draw, kind) for r, shared in enumerate(machine)}


def _own_noise(draw: random.Random, kind: str) -> float:
    if kind == "gauss":
        return 2.718281828 ** draw.gauss(0, 0.01)
    if kind == "bursts":    # one process in five loses its core for a while
        return 2.718281828 ** draw.gauss(0, 0.01) * (1 + draw.expovariate(2) if draw.random() < 0.2 else 1)
    if kind == "bimodal":   # two modes, 8 % apart, as with cache colouring
        return 2.718281828 ** draw.gauss(0, 0.005) * (1.08 if draw.random() < 0.5 else 1)
    raise AssertionError(kind)


def pairs(seed: int, kind: str, rounds: int, ratio: float, count: int) -> Iterator[tuple[dict, dict]]:
    """`count` pairs of arms; the second is `ratio` times faster."""
    for number in range(count):
        draw = random.Random(seed * 100_003 + number)
        machine = drift(draw, rounds)
        yield series(draw, kind, machine, 1.0), series(draw, kind, machine, 1.0 / ratio)
