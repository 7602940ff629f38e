"""Scaling: fit two models of contention to a cell's times over worker counts.

Both models are linear in their unknowns once written for N x T(N), the time that N workers occupy together:

    N T(N) = T(1) (1 + serial (N - 1))                       Amdahl (1967)
    N T(N) = T(1) (1 + sigma (N - 1) + kappa N (N - 1))      Gunther's Universal Scalability Law

`sigma` is contention (workers wait for one another), `kappa` is coherence (they keep one another up to date); only
coherence can make more workers slower than fewer.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from math import exp, inf, log, sqrt
from statistics import fmean, median
from typing import TYPE_CHECKING

from gilscope.toolkit.model import Note
from gilscope.toolkit.stats.distributions import NORMAL, t_quantile
from gilscope.toolkit.stats.sample import CONFIDENCE
from gilscope.toolkit.stats.verdict import MIN_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COUNTS_NEEDED = 4  # the USL has three unknowns, and three points always fit
RESAMPLES = 500
GOOD_FIT = 0.1     # largest relative error of a curve that counts as a fit


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedValue:
    """A fitted number with its bootstrap interval over rounds."""

    value: float
    lo: float
    hi: float

    @property
    def has_interval(self) -> bool:
        """Return False if all resamples agree, as they do where the value is at its bound."""
        return self.lo < self.hi


@dataclass(frozen=True, slots=True, kw_only=True)
class _Curves:
    """The parameters of both models that come nearest to some times, and how near they come."""

    serial: float         # above 1: a slow-down
    sigma: float
    kappa: float
    amdahl_error: float   # the largest relative one at a measured count
    usl_error: float

    @property
    def amdahl_fits(self) -> bool:
        return self.amdahl_error <= GOOD_FIT and self.serial <= 1 + GOOD_FIT   # above 1 by less is flat, with noise

    @property
    def usl_fits(self) -> bool:
        return self.usl_error <= GOOD_FIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """The parameters of both models for a cell's times over worker counts; None of one whose curve misses a time."""

    counts: tuple[int, ...]
    rounds: int
    serial: FittedValue | None = None   # Amdahl's serial fraction, 0..1
    sigma: FittedValue | None = None    # USL contention, >= 0
    kappa: FittedValue | None = None    # USL coherence, >= 0
    notes: tuple[Note, ...] = ()


def efficiency(speedup: float, workers: int) -> float:
    """Return the speedup per worker: 1.0 for perfect scaling."""
    return speedup / workers


def fit_scaling(
    times: Mapping[int, Mapping[int, float]], *, confidence: float = CONFIDENCE, seed: int = 0,
) -> Scaling:
    """Fit Amdahl's law and the USL to times over worker counts.

    The times of a round are divided by their geometric mean first: a slow minute shifts a round, but keeps its shape.
    The fit minimises relative errors with non-negative coefficients, and is repeated for every resample of the rounds.

    Args:
        times: Seconds by worker count and round.  Only rounds with all worker counts are used.
        confidence: The confidence of the intervals.
        seed: The seed of the resampling.

    Returns:
        The fit; a note with the reason instead of a model's parameters if its curve misses a measured time, or if there
        are fewer than four worker counts or three common rounds.

    The bootstrap of a few rounds is too narrow, as it takes their spread for the true one and lacks Student's tails.
    Its distances from the estimate are stretched by both (Hesterberg 2015, "What Teachers Should Know about the
    Bootstrap").  `tests.benchmarks.coverage --only fits` counts how often the intervals then contain the truth.

    Source: Amdahl (1967), AFIPS 30, 483-485; Gunther (2007), "Guerrilla Capacity Planning", chapters 4-5,
    and Gunther, Puglia & Tomasette (2015), ACM Queue 13(5), for T(1) as a fitted unknown.
    """
    counts = tuple(sorted(times))
    rounds = sorted(set.intersection(*(set(times[n]) for n in counts))) if counts else []
    if reason := _obstacle(counts, rounds):
        return Scaling(counts=counts, rounds=len(rounds), notes=(Note(text=f"cannot fit: {reason}"),))
    shapes = [_shape([times[n][r] for n in counts]) for r in rounds]
    whole, count = _fit(counts, shapes), len(rounds)
    draw = random.Random(seed)
    fits = [_fit(counts, draw.choices(shapes, k=count)) for _ in range(
        RESAMPLES if whole.amdahl_fits or whole.usl_fits else 0)]
    stretch = t_quantile(confidence, count - 1) / NORMAL.inv_cdf((1 + confidence) / 2) * sqrt(count / (count - 1))

    def fitted(name: str, most: float = inf) -> FittedValue:
        value, *resampled = (min(most, getattr(each, name)) for each in (whole, *fits))
        return _estimate(value, resampled, confidence, stretch, most)

    return Scaling(
        counts=counts, rounds=count, serial=fitted("serial", most=1.0) if whole.amdahl_fits else None,
        sigma=fitted("sigma") if whole.usl_fits else None, kappa=fitted("kappa") if whole.usl_fits else None,
        notes=_misfit_notes(whole))


def _obstacle(counts: Sequence[int], rounds: Sequence[int]) -> str | None:
    if len(counts) < COUNTS_NEEDED:
        listed = ", ".join(map(str, counts)) or "none"
        return f"needs {COUNTS_NEEDED} worker counts, has {len(counts)} (N = {listed})"
    if not rounds:
        return "no round has all worker counts"
    if len(rounds) < MIN_ROUNDS:
        return f"needs {MIN_ROUNDS} rounds with all worker counts, has {len(rounds)}"
    return None


def _misfit_notes(curves: _Curves) -> tuple[Note, ...]:
    """Return notes on the laws whose curves miss a measured time."""
    amdahl, usl = (f"{error * 100:.0f} %" for error in (curves.amdahl_error, curves.usl_error))
    notes = []
    if curves.serial > 1 + GOOD_FIT:
        notes.append("slower with more workers than with one, which Amdahl's law cannot describe")
    elif not (curves.amdahl_fits or curves.usl_fits):
        return (Note(text=f"Amdahl's law misses a measured time by {amdahl} and the USL misses one by {usl}, so they "
                          "say nothing here"),)
    elif not curves.amdahl_fits:
        notes.append(f"Amdahl's law misses a measured time by {amdahl}, so it says nothing here")
    if not curves.usl_fits:
        notes.append(f"the USL misses a measured time by {usl}, so it says nothing here")
    return tuple(Note(text=text) for text in notes)


def _shape(seconds: Sequence[float]) -> list[float]:
    scale = exp(fmean(log(t) for t in seconds))
    return [t / scale for t in seconds]


def _fit(counts: Sequence[int], shapes: Sequence[Sequence[float]]) -> _Curves:
    """Return the curves of both models that come nearest to the shapes' medians."""
    occupied = [n * median(shape[i] for shape in shapes) for i, n in enumerate(counts)]
    contention = [float(n - 1) for n in counts]
    coherence = [float(n * (n - 1)) for n in counts]
    constant = [1.0] * len(counts)
    alone, serial = _least_squares([constant, contention], occupied)
    one, sigma, kappa = _least_squares([constant, contention, coherence], occupied)
    law = [alone + serial * a for a in contention]
    curve = [one + sigma * a + kappa * b for a, b in zip(contention, coherence, strict=True)]
    amdahl, usl = (max(abs(c - y) / y for c, y in zip(each, occupied, strict=True)) for each in (law, curve))
    return _Curves(serial=serial / alone, sigma=sigma / one, kappa=kappa / one, amdahl_error=amdahl, usl_error=usl)


def _least_squares(columns: Sequence[Sequence[float]], target: Sequence[float]) -> list[float]:
    """Return non-negative coefficients that minimise the relative errors; the first column is always in.

    At most two coefficients may be 0, so every combination of them is tried: exact, without iteration.
    """
    best: tuple[float, list[float]] | None = None
    for keep in range(2 ** (len(columns) - 1)):
        used = [0, *(i for i in range(1, len(columns)) if keep >> (i - 1) & 1)]
        scaled = [[value / y for value, y in zip(columns[i], target, strict=True)] for i in used]
        solved = _solve([[_dot(a, b) for b in scaled] for a in scaled], [sum(a) for a in scaled])
        if min(solved) < 0:
            continue
        coefficients = [0.0] * len(columns)
        for i, value in zip(used, solved, strict=True):
            coefficients[i] = value
        error = sum((_dot(solved, point) - 1) ** 2 for point in zip(*scaled, strict=True))
        if best is None or error < best[0]:
            best = (error, coefficients)
    if best is None:
        raise AssertionError("the constant alone always fits with a positive coefficient")
    return best[1]


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def _solve(matrix: list[list[float]], target: list[float]) -> list[float]:
    """Solve a small symmetric positive definite system by elimination; distinct counts make it one."""
    rows = [[*row, value] for row, value in zip(matrix, target, strict=True)]
    for i, pivot in enumerate(rows):
        for row in rows[i + 1:]:
            factor = row[i] / pivot[i]
            row[i:] = [a - factor * b for a, b in zip(row[i:], pivot[i:], strict=True)]
    solved: list[float] = []
    for i in reversed(range(len(rows))):
        known = _dot(rows[i][i + 1:-1], solved)
        solved.insert(0, (rows[i][-1] - known) / rows[i][i])
    return solved


def _estimate(
    value: float, resampled: Sequence[float], confidence: float, stretch: float, most: float = inf,
) -> FittedValue:
    ordered = sorted(resampled)
    cut = int((1 - confidence) / 2 * len(ordered))
    lo, hi = (value + (end - value) * stretch for end in (ordered[cut], ordered[-cut - 1]))
    return FittedValue(value=value, lo=max(lo, 0.0), hi=min(hi, most))
