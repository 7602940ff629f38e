"""Fleets with a known truth: each host's own ratio lies about the mean, what it measures about its own."""

import random

# Standard errors of the hosts' log ratios, in percent, repeated for as many hosts as there are.
PRECISIONS = {"equal": (2.0,), "unequal": (1.0, 2.0, 4.0), "one precise": (0.5, *(4.0,) * 9),
              "one noisy": (8.0, *(1.0,) * 9)}
MEAN = 0.6   # 1.82x


def errors_of(kind: str, hosts: int) -> list[float]:
    """Return the hosts' standard errors, in logs."""
    few = PRECISIONS[kind]
    return [few[k % len(few)] / 100 for k in range(hosts)]


def fleet(draw: random.Random, errors: list[float], between: float) -> tuple[list[float], float]:
    """Return what each host measures of a ratio whose mean is `MEAN`, and what one host more would, in logs."""
    def measured(error: float) -> float:
        return draw.gauss(draw.gauss(MEAN, between), error)

    return [measured(error) for error in errors], measured(draw.choice(errors))
