"""How do intervals and verdicts hold when the assumptions of the noise model do not?

Every table has 4 workloads on 2 builds, unless `--workloads` says otherwise. Each build has a serial baseline and six
other arms, whose true ratios are 1, 1, 1.03, 1.10, 1.82 and 1.83, and two A/A arms. `coverage.py` has noise that is
independent between arms and rounds; `tests/stats/matrix.py` has the kinds of noise here (`DISTURBANCES`). Prints for
each kind, after so many rounds and with interim looks at 4, 6, 8 and 11 of 12 rounds ("stop"):

- coverage of the 95 % intervals, of those with an arm that the noise disturbs, and of those of the serial arms of the
  two builds against each other
- the share of tables with a false verdict, which is to be 5 % at most
- how often a true 3 % and a true 10 % are called faster
- how often the set of the fastest contains the truly fastest arm
- the share of tables whose intervals the A/A arms widen, and the median half-width of the intervals
- the share of tables to which serial correlation is applied
- of the cells with a true 10 %: bias and coverage by the number of rounds after which they were clear

    python -m tests.benchmarks.hostile_noise [--tables 60] [--kinds normal,wild] [--modes 4,stop]
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.interim_looks import EVERY, final_confidence, is_look_due, open_pairs
from gilscope.toolkit.stats.noise_floor import checked_noise
from gilscope.toolkit.stats.paired import conclude
from gilscope.toolkit.stats.ratios import compare, simultaneous
from tests.benchmarks.coverage import cut
from tests.stats.matrix import (
    AA_PAIRS,
    BUILDS,
    CLASSES,
    DISTURBANCES,
    EFFECTS,
    FASTER,
    PAIRS,
    SERIAL_ARMS,
    SLOWER_BUILD,
    STRIDE,
    TREATMENTS,
    disturbed_group,
    fastest,
)

if TYPE_CHECKING:
    from gilscope.toolkit.stats.log_times import RoundLogs

WORKLOADS = 4
LAST = 12                                       # rounds
LOOKS = tuple(rounds for rounds in range(1, LAST) if is_look_due(rounds))
JUDGED = 56   # verdicts of a report: 48 pairs, and the cost of one thread and the best models for each workload


@dataclass(slots=True)
class Tally:
    """Counts over all tables of a kind."""

    covered: list[bool] = field(default_factory=list)
    disturbed: list[bool] = field(default_factory=list)      # coverage of pairs with an arm that alone is disturbed
    builds: list[bool] = field(default_factory=list)         # coverage of the serial arm of one build against the other
    false_tables: list[bool] = field(default_factory=list)
    words: dict[float, list[bool]] = field(default_factory=lambda: {FASTER[3]: [], FASTER[4]: []})
    best_held: list[bool] = field(default_factory=list)
    widened: list[bool] = field(default_factory=list)
    halves: list[float] = field(default_factory=list)
    correlated: list[bool] = field(default_factory=list)     # serial correlation is applied
    processes: list[int] = field(default_factory=list)       # measured for a table
    stopped: dict[int, list[tuple[float, bool]]] = field(default_factory=dict)   # by the rounds it took: bias, coverage


def stop_early(
    table: dict[int, RoundLogs[int]], every: int,
) -> tuple[dict[int, RoundLogs[int]], dict[tuple[int, tuple[int, int]], int]]:
    """Return what a run measures that gives most rounds to open cells, with their baselines and A/A arms.

    Args:
        table: All rounds of all arms.
        every: Clear cells take part in every such round; 0: in none.

    Returns:
        The levels measured, and the number of rounds after which each cell was clear for the first time.
    """
    taken: dict[tuple[int, int], set[int]] = {(group, arm): set() for group in table for arm in EFFECTS}
    cells = {(group, pair) for group in table for pair in PAIRS}
    open_cells, clear_after = cells, dict.fromkeys(cells, LAST)
    seen = table
    for number in range(LAST):
        if not open_cells:
            break
        measured = cells if every and number % every == every - 1 else open_cells
        for group in table:
            arms = {arm for where, pair in measured if where == group for arm in pair}
            for arm in arms | ({arm for pair in AA_PAIRS for arm in pair} if arms else set()):
                taken[group, arm].add(number)
        seen = {group: cut(logs, {arm: taken[group, arm] for arm in EFFECTS}) for group, logs in table.items()}
        if number + 1 in LOOKS:
            noises, _ = checked_noise(seen, dict.fromkeys(seen, AA_PAIRS), classes=CLASSES,
                                      treatments=TREATMENTS)
            ratios = {(group, pair): compare(seen[group], noises[group], *pair)
                      for group in table for pair in [*PAIRS, SERIAL_ARMS]}
            open_cells = {key for key in open_pairs(ratios) if key[1] != SERIAL_ARMS}
            for key in cells - open_cells:
                clear_after[key] = min(clear_after[key], number + 1)
    return seen, clear_after


def is_false(word: str, effect: float) -> bool:
    """Return True if a verdict contradicts the truth."""
    return (word == "faster" and effect <= 0) or (word == "slower" and effect >= 0) or (
        word == "same" and abs(effect) > 0.0297)   # log of 1.03 is 0.0296


def simulate(name: str, mode: str, *, tables: int, workloads: int, every: int) -> Tally:
    """Return the tally of so many tables; `mode` is a number of rounds or "stop"."""
    tally = Tally()
    family = final_confidence(len(LOOKS) if mode == "stop" else 0)
    confidence = simultaneous(JUDGED * workloads // WORKLOADS, family)
    for seed in range(tables):
        draw = random.Random(f"{name} {seed}")
        drawn = {group: disturbed_group(draw, DISTURBANCES[name], LAST, group) for group in range(workloads)}
        full = {group: each.logs for group, each in drawn.items()}
        if mode == "stop":
            table, clear_after = stop_early(full, every)
        else:
            table, clear_after = {group: cut(logs, {arm: set(range(int(mode))) for arm in EFFECTS})
                                  for group, logs in full.items()}, {}
        tally.processes.append(sum(len(rounds) for logs in table.values() for rounds in logs.levels.values()))
        noises, check = checked_noise(
            table, dict.fromkeys(table, AA_PAIRS), classes=CLASSES, treatments=TREATMENTS)
        false = 0
        for group, logs in table.items():
            for baseline, arm in [*PAIRS, SERIAL_ARMS]:
                ratio = compare(logs, noises[group], baseline, arm)
                effect = -SLOWER_BUILD if (baseline, arm) == SERIAL_ARMS else EFFECTS[arm]
                word = conclude(ratio, confidence).verdict()
                false += is_false(word, effect)
                if (baseline, arm) != SERIAL_ARMS:
                    count(tally, ratio.center - effect, ratio.half(), effect, word,
                          clear_after.get((group, (baseline, arm)), ratio.rounds),
                          disturbed=not drawn[group].disturbed.isdisjoint((baseline, arm)))
                else:
                    tally.builds.append(abs(ratio.center - effect) <= ratio.half())
            for build in BUILDS:
                members = fastest(logs, noises[group], [STRIDE * build + arm for arm in range(len(FASTER))], family)
                tally.best_held.append(STRIDE * build + len(FASTER) - 1 in members)
        tally.false_tables.append(false > 0)
        tally.widened.append(check.widening > 1)
        tally.correlated.append(noises[0].usual.correlation.applied > 0)
    return tally


def count(tally: Tally, bias: float, half: float, effect: float, word: str, rounds: int, *, disturbed: bool) -> None:
    """Count one ratio."""
    covered = abs(bias) <= half
    tally.covered.append(covered)
    tally.halves.append(half)
    if disturbed:
        tally.disturbed.append(covered)
    if effect in tally.words:
        tally.words[effect].append(word == "faster")
    if effect == FASTER[4]:
        tally.stopped.setdefault(rounds, []).append((bias, covered))


def main() -> None:
    """Simulate and print one line for each kind and mode."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=60, help="tables of each kind and mode (default: 60)")
    parser.add_argument("--kinds", default=",".join(DISTURBANCES),
                        help=f"of {', '.join(DISTURBANCES)}".replace("%", "%%"))
    parser.add_argument("--modes", default="4,stop", help="numbers of rounds, and stop for interim looks")
    parser.add_argument("--workloads", type=int, default=WORKLOADS, help=f"of a table (default: {WORKLOADS})")
    parser.add_argument("--every", type=int, default=EVERY,
                        help=f"clear cells take part in every such round, 0: in none (default: {EVERY})")
    args = parser.parse_args()
    print(f"{'noise':20}{'rounds':>7}{'coverage':>10}{'disturbed':>11}{'builds':>8}{'false tables':>14}{'3 %':>7}"
          f"{'10 %':>7}{'best':>7}{'widened':>9}{'serial':>8}{'half':>8}"
          f"{'processes':>11}")
    for name in args.kinds.split(","):
        for mode in args.modes.split(","):
            tally = simulate(
                name, mode, tables=args.tables, workloads=args.workloads, every=args.every)
            disturbed = f"{fmean(tally.disturbed):.3f}" if tally.disturbed else "-"
            small, large = (fmean(words) for words in tally.words.values())
            print(f"{name:20}{mode:>7}{fmean(tally.covered):10.3f}{disturbed:>11}{fmean(tally.builds):8.3f}"
                  f"{fmean(tally.false_tables):14.0%}{small:7.0%}{large:7.0%}{fmean(tally.best_held):7.2f}"
                  f"{fmean(tally.widened):9.0%}{fmean(tally.correlated):8.0%}"
                  f"{median(tally.halves):8.2%}"
                  f"{fmean(tally.processes):11.0f}", flush=True)
            if mode == "stop":
                for rounds, cells in sorted(tally.stopped.items()):
                    print(f"    true 10 %, clear after {rounds:2} rounds: {len(cells):4} cells, bias "
                          f"{fmean(bias for bias, _ in cells):+.1%}, coverage {fmean(held for _, held in cells):.2f}",
                          flush=True)


if __name__ == "__main__":
    main()
