"""Measure the coverage of intervals over hosts in synthetic fleets with a known mean.

Hosts differ by 0 to 20 % (standard deviation of their own ratios), and know theirs with equal or very unequal standard
errors of 0.5 to 8 % (tests/stats/synthetic_hosts.py).  Prints for each kind, number of hosts and difference the
coverage of 95 % intervals of the mean:

- ours: Hartung & Knapp's; weights with Paule & Mandel's variance, but at least the hosts' own errors; never narrower
  than these errors imply
- plain: the same without that safeguard
- factor: with the older safeguard, a factor of at least 1
- PM, DL: ours with weights by Paule & Mandel's and by DerSimonian & Laird's variance as they come
- normal: PM without Hartung & Knapp
- next: coverage of the prediction interval for one more host

and the width of ours.  `--words` prints how often a table of 84 cells contains a false verdict.

    python -m tests.benchmarks.hosts [--fleets 4000] [--words] [--json]
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from dataclasses import replace
from itertools import product
from math import exp, sqrt
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.stats.distributions import t_quantile
from gilscope.toolkit.stats.hosts import USUAL, RandomEffects, pool, random_effects
from gilscope.toolkit.stats.ratios import simultaneous
from gilscope.toolkit.stats.verdict import Comparison
from tests.stats.synthetic_hosts import MEAN, PRECISIONS, errors_of, fleet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Row = dict[str, Any]
HOSTS = (2, 3, 4, 6, 10)
BETWEEN = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
CELLS, ALIKE, FAR = 84, 0.0, 0.3   # of a table: half of them equal, half clearly apart, in logs


def weighted(effects: Sequence[float], errors: Sequence[float], variance: float) -> RandomEffects:
    """Return random effects with weights by another estimate of the variance between hosts."""
    weights = [1 / (error * error + variance) for error in errors]
    total = sum(weights)
    center = sum(w * effect for w, effect in zip(weights, effects, strict=True)) / total
    scatter = sum(w * (effect - center) ** 2 for w, effect in zip(weights, effects, strict=True)) / (len(effects) - 1)
    least = sqrt(sum((w * error) ** 2 for w, error in zip(weights, errors, strict=True))) / total
    return RandomEffects(center=center, error=sqrt(scatter / total), least=least, between=sqrt(variance), measured=0.0,
                         typical=1 / sqrt(total), hosts=len(effects), weights=tuple(weights))


def dersimonian_laird(effects: Sequence[float], errors: Sequence[float]) -> float:
    """Return DerSimonian & Laird's estimate of the variance between hosts (1986)."""
    fixed = weighted(effects, errors, 0.0)
    total, squares, free = sum(fixed.weights), sum(w * w for w in fixed.weights), len(effects) - 1
    return max(0.0, (fixed.error**2 * total * free - free) / (total - squares / total))


def intervals(fleets: int) -> Iterator[Row]:
    """Return coverage by kind, number of hosts and how far they differ."""
    for kind, hosts, between in product(PRECISIONS, HOSTS, BETWEEN):
        draw, errors = random.Random(f"{kind} {hosts} {between}"), errors_of(kind, hosts)
        student = t_quantile(0.95, hosts - 1)
        halves, held = zip(*(_held(draw, errors, between, student) for _ in range(fleets)), strict=True)
        yield {"kind": kind, "hosts": hosts, "between": f"{between * 100:g} %", "half": median(halves),
               **{name: fmean(each[name] for each in held) for name in held[0]}}


def _held(
    draw: random.Random, errors: Sequence[float], between: float, student: float,
) -> tuple[float, dict[str, bool]]:
    """Return half of our interval of one fleet, and which intervals hold the truth."""
    effects, following = fleet(draw, errors, between)
    found = random_effects(effects, errors)
    mandel, laird = (weighted(effects, errors, variance) for variance in (
        found.between**2, dersimonian_laird(effects, errors)))
    half = found.half()
    reaches = {
        "ours": (found.center, half), "plain": (found.center, student * found.error),
        "factor": (mandel.center, student * max(mandel.error, mandel.typical)),
        "PM": (mandel.center, mandel.half()), "DL": (laird.center, laird.half()),
        "normal": (mandel.center, USUAL * mandel.typical)}
    held = {name: abs(center - MEAN) <= reach for name, (center, reach) in reaches.items()}
    return half, held | {"next": abs(found.center - following) <= found.half_next()}


def words(tables: int) -> Iterator[Row]:
    """Return how often a table of 84 cells has a false verdict over hosts, and how often clear cells get theirs."""
    confidence = simultaneous(CELLS)
    for kind, hosts, between in product(PRECISIONS, HOSTS, (0.0, 0.02, 0.05)):
        draw, errors = random.Random(f"words {kind} {hosts} {between}"), errors_of(kind, hosts)
        drawn = [_verdicts(draw, errors, between, confidence) for _ in range(tables)]
        false = [any((truth == ALIKE and word in {"faster", "slower"}) or word == "slower" for truth, word in table)
                 for table in drawn]
        told = [word == "faster" for table in drawn for truth, word in table if truth == FAR]
        yield {"kind": kind, "hosts": hosts, "between": f"{between * 100:g} %", "false_tables": fmean(false),
               "clear_told": fmean(told)}


def _verdicts(
    draw: random.Random, errors: Sequence[float], between: float, confidence: float,
) -> list[tuple[float, str]]:
    """Return the true ratio of each cell of a table, and its verdict over hosts."""
    verdicts = []
    for k in range(CELLS):
        truth = FAR if k % 2 else ALIKE
        effects = [effect - MEAN + truth for effect in fleet(draw, errors, between)[0]]
        pooled = pool([seen(*each) for each in zip(effects, errors, strict=True)], confidence)
        verdicts.append((truth, "" if pooled is None else pooled.comparison.significance()))
    return verdicts


def seen(effect: float, error: float) -> Comparison:
    """Return a host's comparison for a log ratio with this error; the floor is that of an equally precise A/A pair."""
    ratio = Comparison(ratio=exp(effect), lo=exp(effect - USUAL * error), hi=exp(effect + USUAL * error),
                       confidence=0.95, floor=exp(USUAL * error) - 1, rounds=8)
    return replace(ratio, verdict_interval=(ratio.lo, ratio.hi))


def typical(row: Row) -> float:
    """Return the root mean square of the errors of the hosts in a row."""
    return sqrt(fmean(error * error for error in errors_of(row["kind"], row["hosts"])))


def main() -> None:
    """Print the rows, and the ranges of coverages that should be between 93 and 97 %."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fleets", type=int, default=4000)
    parser.add_argument("--words", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = [*(words(args.fleets // 40) if args.words else intervals(args.fleets))]
    if args.json:
        json.dump(rows, sys.stdout, indent=1)
        return
    print(*(f"{name:>12}" for name in rows[0]))
    for row in rows:
        print(*(f"{each:12.1%}" if isinstance(each, float) else f"{each:>12}" for each in row.values()))
    if not args.words:
        several = [row for row in rows if row["hosts"] >= 3]
        differ = [row for row in several if float(row["between"].rstrip(" %")) / 100 >= typical(row)]
        for name in ("ours", "plain", "factor", "PM", "DL", "normal", "next"):
            ends = [(min(row[name] for row in part), max(row[name] for row in part)) for part in (several, differ)]
            print(f"{name}: {ends[0][0]:.1%} to {ends[0][1]:.1%} with 3 to 10 hosts, {ends[1][0]:.1%} to "
                  f"{ends[1][1]:.1%} where they differ by as much as they err, or more")


if __name__ == "__main__":
    main()
