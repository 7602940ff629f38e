"""Measure the coverage of the confidence intervals and the rate of false verdicts in synthetic runs with known ratios.

Each run drifts (by 5 % per round, in all arms); processes have nine kinds of noise (tests/stats/matrix.py).  Prints

- intervals: coverage of 95 % intervals and of all simultaneous intervals of a table, and tables with false verdicts
- few cells: the same for 8 and 24 cells
- stopping: the same when cells that are clear get no more rounds, with the looks of a quick run of 12 rounds, and how
  often the set of the best then holds the truly fastest
- passes: the same from values in turn, with bursts and neighbours that change from pass to pass
- power: how often a true 3 % gets its word in a table of 84 cells, and by its own 95 % interval
- best: how often the set holds the truly fastest, and how large it is
- two runs: how often intervals of runs made at different times hold, on machines whose rounds differ by 0 and 2 %
- near: verdicts of `gilscope scale` on threads that reach about 0.8 of the ceiling, where measurements err by 6 %: by a
  short measurement, before the later ones, and at the end
- twins: how often A/A arms widen what is right, and what is too narrow

    python -m tests.benchmarks.coverage [--tables 40] [--only intervals,power] [--json]
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from dataclasses import dataclass, replace
from math import exp, inf, log
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.scale.investigation import investigate, take_a_look
from gilscope.toolkit.scale.judgement import ScalingVerdict, judge
from gilscope.toolkit.scale.throughput import CleanCalls
from gilscope.toolkit.scale.zygote_process import CallMode, LoadedFunction, SampledObject
from gilscope.toolkit.stats.interim_looks import final_confidence, is_look_due, open_pairs
from gilscope.toolkit.stats.log_times import RoundLogs
from gilscope.toolkit.stats.noise import Noise, pool_noise
from gilscope.toolkit.stats.noise_floor import check_aa_pairs
from gilscope.toolkit.stats.paired import conclude
from gilscope.toolkit.stats.ratios import Ratio, compare, simultaneous
from gilscope.toolkit.stats.unpaired import UnpairedRatio, run_level
from tests.stats.matrix import GROUPS, KINDS, fastest, group, of_passes, passes, two_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Row = dict[str, Any]
Groups = list[tuple[RoundLogs[int], list[float]]]   # of one run: levels and true log ratios by arm
LAST = 12              # rounds
LOOKS = tuple(rounds for rounds in range(1, LAST) if is_look_due(rounds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """One comparison and the log ratio that it should find."""

    ratio: Ratio
    effect: float

    def covered(self, confidence: float) -> bool:
        """True if the interval contains the true ratio."""
        return abs(self.ratio.center - self.effect) <= self.ratio.half(confidence)

    def denied(self, word: str) -> bool:
        """True if the verdict is false: it reports a difference that does not exist, or denies or inverts one."""
        return (word == "faster" and self.effect <= 0) or (word == "slower" and self.effect >= 0) or (
            word == "same" and abs(self.effect) > 0.0297)   # log of 1.03 is 0.0296


def effects_of(draw: random.Random, arms: int) -> list[float]:
    """Return effects: half of the arms equal the baseline, so verdicts can be false; others differ by up to 10 %."""
    return [0.0, *(0.0 if k % 2 else draw.uniform(-0.1, 0.1) for k in range(1, arms))]


def table(draw: random.Random, kind: str, rounds: int, cells: int) -> Iterator[tuple[RoundLogs[int], list[float]]]:
    """Return the groups of one run."""
    groups, arms = GROUPS[cells]
    for _ in range(groups):
        effects = effects_of(draw, arms)
        yield group(draw, kind, rounds, effects), effects


def compared(groups: Iterable[tuple[RoundLogs[int], list[float]]]) -> list[Truth]:
    """Return every arm against arm 0 of its group."""
    found = [*groups]
    noises = pool_noise({k: logs for k, (logs, _) in enumerate(found)})
    return [
        Truth(ratio=compare(logs, noises[k], 0, arm), effect=effect)
        for k, (logs, effects) in enumerate(found) for arm, effect in enumerate(effects) if arm
    ]


def row(tables: list[list[Truth]], looks: int = 0, **named: Any) -> Row:
    """Return the results over simulated tables of one kind."""
    confidence = final_confidence(looks)
    together = simultaneous(len(tables[0]), confidence)
    every = [truth for each in tables for truth in each]
    return {
        **named,
        "intervals": len(every),
        "coverage": fmean(truth.covered(0.95) for truth in every),
        "half": median(truth.ratio.half() for truth in every),
        "all_hold": fmean(all(truth.covered(together) for truth in each) for each in tables),
        "false_tables": fmean(false_words(each, confidence) > 0 for each in tables),
        "floor": median(truth.ratio.floor for truth in every),
    }


def false_words(truths: list[Truth], confidence: float) -> int:
    """Return the number of false verdicts in a table."""
    each = simultaneous(len(truths), confidence)
    return sum(truth.denied(conclude(truth.ratio, each).verdict()) for truth in truths)


def intervals(tables: int) -> Iterator[Row]:
    """Return coverage by kind and rounds, 84 cells."""
    for kind in KINDS:
        for rounds in (4, 6, 12):
            draw = random.Random(f"intervals {kind} {rounds}")
            yield row([compared(table(draw, kind, rounds, 84)) for _ in range(tables)], kind=kind, rounds=rounds)


def few_cells(tables: int) -> Iterator[Row]:
    """Return coverage in small tables, whose cells can borrow less strength from others."""
    for cells in (8, 24):
        for kind in KINDS:
            for rounds in (4, 8):
                draw = random.Random(f"few {cells} {kind} {rounds}")
                made = [compared(table(draw, kind, rounds, cells)) for _ in range(tables * 84 // cells // 2)]
                yield row(made, cells=cells, kind=kind, rounds=rounds)


def stopping(tables: int) -> Iterator[Row]:
    """Return coverage if cells with a clear verdict get no more rounds."""
    for kind in KINDS:
        draw = random.Random(f"stopping {kind}")
        made, held = [], []
        for _ in range(tables):
            groups = stopped([*table(draw, kind, LAST, 84)])
            made.append(compared(groups))
            for logs, effects in groups:
                found = fastest(logs, pool_noise({0: logs})[0], [*logs.levels], final_confidence(len(LOOKS)))
                held.append(max(range(len(effects)), key=effects.__getitem__) in found)
        rounds = fmean(truth.ratio.rounds for each in made for truth in each)
        yield row(made, looks=len(LOOKS), kind=kind, rounds=f"{rounds:.1f}") | {"hold_the_best": fmean(held)}


def stopped(groups: Groups) -> Groups:
    """Return the measurements of a run that repeats only open cells and the baselines."""
    arms = [(k, arm) for k, (_, effects) in enumerate(groups) for arm in range(len(effects))]
    taken: dict[tuple[int, int], set[int]] = {key: set() for key in arms}
    open_ = set(arms)
    for number in range(LAST):
        for key in arms:
            if key in open_ or key[1] == 0:
                taken[key].add(number)
        if number + 1 in LOOKS:
            seen = [cut(logs, {arm: taken[k, arm] for arm in logs.levels}) for k, (logs, _) in enumerate(groups)]
            noises = pool_noise(dict(enumerate(seen)))
            open_ = {*open_pairs({(k, arm): compare(seen[k], noises[k], 0, arm) for k, arm in arms if arm})}
    return [(cut(logs, {arm: taken[k, arm] for arm in logs.levels}), effects)
            for k, (logs, effects) in enumerate(groups)]


def cut(logs: RoundLogs[int], taken: dict[int, set[int]]) -> RoundLogs[int]:
    """Return the rounds of each arm."""
    return RoundLogs(levels={
        arm: {r: value for r, value in rounds.items() if r in taken[arm]} for arm, rounds in logs.levels.items()
    })


def in_turn(tables: int) -> Iterator[Row]:
    """Return coverage if passes of the arms alternate."""
    for kind in ("normal", "slow", "bimodal"):
        for rounds in (4, 8):
            draw = random.Random(f"passes {kind} {rounds}")
            made = []
            for _ in range(max(tables // 2, 1)):
                groups = []
                for _ in range(4):
                    effects = effects_of(draw, 12)
                    groups.append((of_passes(passes(draw, rounds, effects, kind=kind)), effects))
                made.append(compared(groups))
            yield row(made, kind=kind, rounds=rounds)


def power(tables: int) -> Iterator[Row]:
    """Return how often a true 3 % is found: every other arm of each group is 3 % faster, the others 1.5 times."""
    for kind in KINDS:
        for rounds in (4, 6, 12):
            draw = random.Random(f"power {kind} {rounds}")
            words: list[tuple[str, str]] = []
            for _ in range(max(tables // 4, 1)):
                effects = [0.0, *((0.0296, 0.4)[arm % 2] for arm in range(1, 21))]
                made = compared([(group(draw, kind, rounds, effects), effects) for _ in range(4)])
                words += [(conclude(truth.ratio, simultaneous(len(made))).verdict(),
                           conclude(truth.ratio, 0.95).verdict()) for truth in made if truth.effect < 0.1]
            yield {
                "kind": kind, "rounds": rounds, "cells": len(words),
                "in_a_table": fmean(word == "faster" for word, _ in words),
                "alone": fmean(word == "faster" for _, word in words),
                "wrong": fmean(word == "slower" for _, word in words),
            }


def sets(tables: int) -> Iterator[Row]:
    """Return how often the set of the best holds the truly best."""
    for kind in KINDS:
        for rounds in (4, 6, 12):
            draw = random.Random(f"best {kind} {rounds}")
            held, count = [], []
            for _ in range(tables * 4):
                effects = [0.0, 0.6, 0.59, 0.58, 0.55, 0.5, *(draw.uniform(0, 0.4) for _ in range(6))]
                logs = group(draw, kind, rounds, effects)
                found = fastest(logs, pool_noise({0: logs})[0], [*logs.levels])
                held.append(1 in found)
                count.append(len(found))
            yield {"kind": kind, "rounds": rounds, "sets": len(held), "hold_the_best": fmean(held),
                   "median_size": median(count)}


def two(tables: int) -> Iterator[Row]:
    """Return coverage of two runs, of one, two and twelve arms."""
    for arms in (1, 2, 12):
        for step in (0.0, 0.02):
            for kind in KINDS:
                for rounds in (4, 6, 12):
                    draw = random.Random(f"two {arms} {step} {kind} {rounds}")
                    held, halves = [], []
                    for _ in range(max(tables * 10 // arms, 1)):
                        effects = effects_of(draw, arms)
                        runs = two_runs(draw, kind, rounds, effects, step)
                        noises = [pool_noise({0: logs})[0] for logs in runs]
                        for arm, effect in enumerate(effects):
                            pairs = zip(runs, noises, strict=True)
                            before, after = (run_level(logs, noise, arm) for logs, noise in pairs)
                            seen = UnpairedRatio(before=before, after=after)
                            lo, hi = seen.interval()
                            held.append(lo <= exp(effect) <= hi)
                            halves.append(hi / seen.ratio - 1)
                    yield {"arms": arms, "rounds_differ": step, "kind": kind, "rounds": rounds, "intervals": len(held),
                           "coverage": fmean(held), "half": median(halves)}


NOISE_OF_RATES = 0.06     # standard deviation of their logarithms


class NoisyProcess:
    """Stands for a zygote whose rates err by a normal logarithm, on a machine that does not change."""

    def __init__(self, draw: random.Random, of_ceiling: float) -> None:
        self.measurements = self.on_one_core = 0
        self.near = inf
        self._draw = draw
        self._of_ceiling = of_ceiling

    def measure_cleanly(self, mode: CallMode) -> CleanCalls:
        """Return the calls of a measurement."""
        self.measurements += 1
        shared = mode.threads > 1 and not mode.processes
        rate = (self._of_ceiling if shared else 1.0) * exp(self._draw.gauss(0, NOISE_OF_RATES))
        calls = round(1e6 * rate * mode.threads)
        return CleanCalls(threads=mode.threads, calls=calls, spent=10**8 * mode.threads, made=calls,
                          lasted=10**8 * mode.threads)

    def sample(self, *_: object, **__: object) -> list[SampledObject]:
        """Return that no object was seen."""
        return []

    names = places = sample


def near(tables: int) -> Iterator[Row]:
    """Return the verdicts of short measurements, and of investigations before the later measurements and at the end."""
    loaded = LoadedFunction(seconds_per_call=1e-4, payloads=0, dealt=False, objects=0, gil=False, refused="simulated",
                            bytecode=True)
    for truth in (0.74, 0.77, 0.8, 0.83):
        draw = random.Random(f"near {truth}")
        made = [investigate(NoisyProcess(draw, truth), loaded, 2, clock=lambda: 0.0, rest=lambda _: None)  # type: ignore[arg-type]
                for _ in range(5 * tables)]
        before = [judge(replace(each.evidence, later=())).verdict for each in made]
        short = [judge(take_a_look(NoisyProcess(draw, truth), 2)[0]).verdict for _ in made]  # type: ignore[arg-type]
        spans = [span for each in made if (span := each.evidence.of_ceiling)]
        yield {"truth": truth, "half_width": fmean(log(span.hi / span.lo) / 2 for span in spans),
               "covered": fmean(span.lo <= truth <= span.hi for span in spans), **{
            f"{verdict}{name}": fmean(each is verdict for each in verdicts)
            for name, verdicts in ((", short", short), (", before", before),
                                   ("", [each.judgement.verdict for each in made]))
            for verdict in ScalingVerdict if verdict is not ScalingVerdict.SLOWER}}


def twins(tables: int) -> Iterator[Row]:
    """Return how often eight A/A arms widen the intervals: where those are right, and where arms err twice as much."""
    for kind in KINDS:
        for times in (1.0, 2.0):
            draw = random.Random(f"twins {kind} {times}")
            checks = []
            for _ in range(tables):
                groups = {g: group(draw, kind, 6, [0.0] * 12) for g in range(4)}
                noises: dict[int, Noise] = pool_noise(groups)
                ratios = [compare(groups[g], noises[g], one, one + 1) for g in groups for one in (0, 2)]
                checks.append(check_aa_pairs([replace(each, center=each.center * times) for each in ratios]))
            yield {"kind": kind, "times": times, "checks": len(checks),
                   "widened": fmean(check.widening > 1 for check in checks),
                   "by": fmean(check.widening for check in checks)}


PARTS: dict[str, Callable[[int], Iterator[Row]]] = {
    "intervals": intervals, "few cells": few_cells, "stopping": stopping, "passes": in_turn, "power": power,
    "best": sets, "two runs": two, "near": near, "twins": twins,
}


def main() -> None:
    """Simulate the runs and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=40, help="synthetic runs of each way (default: 40)")
    parser.add_argument("--only", default=",".join(PARTS), metavar="PARTS")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of tables")
    args = parser.parse_args()
    found: dict[str, list[Row]] = {}
    for name in args.only.split(","):
        found[name] = []
        for line in PARTS[name](args.tables):
            found[name].append(line)
            if not args.json:
                shown(name, line, first=len(found[name]) == 1)
    if args.json:
        json.dump(found, sys.stdout, indent=1)
        print()


def shown(name: str, line: Row, *, first: bool) -> None:
    """Print one line of a table, and its head before the first."""
    if first:
        print(f"\n{name}\n" + " ".join(f"{key:>14}" for key in line))
    print(" ".join(
        f"{value:14.3f}" if isinstance(value, float) else f"{value:>14}" for value in line.values()), flush=True)


if __name__ == "__main__":
    main()
