"""How do intervals and verdicts hold when the assumptions of the noise model do not?

Every table has 4 workloads on 2 builds. Each build has a serial baseline and six other arms, whose true ratios are 1,
1, 1.03, 1.10, 1.82 and 1.83, and two A/A arms. `coverage.py` has noise that is independent between arms and rounds;
here it is not, or one arm's is unlike that of the others. Prints for each kind of noise, after 4 rounds and with
interim looks at 4, 6, 8 and 11 of 12 rounds:

- coverage of the 95 % intervals, and of those of the arms that the noise disturbs
- the share of tables with a false verdict, which is to be 5 % at most
- how often a true 3 % and a true 10 % are called faster
- of the cells with a true 10 %: bias and coverage by the number of rounds after which they stopped

    python -m tests.benchmarks.hostile_noise [--tables 60] [--kinds normal,wild] [--modes 4,stop]
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass, field
from itertools import accumulate
from math import log, log1p
from statistics import fmean

from gilscope.toolkit.stats.interim_looks import final_confidence, is_look_due, open_pairs
from gilscope.toolkit.stats.log_times import RoundLogs
from gilscope.toolkit.stats.noise_floor import checked_noise
from gilscope.toolkit.stats.ratios import compare, judge, simultaneous
from tests.benchmarks.coverage import cut

WORKLOADS = 4
LAST = 12                                       # rounds
LOOKS = tuple(rounds for rounds in range(1, LAST) if is_look_due(rounds))
FASTER = (0.0, 0.0, 0.0, log1p(0.03), log1p(0.10), 0.60, 0.605)   # log ratios of the arms to the baseline, arm 0
SLOWER_BUILD = log(1.1)                         # the second build's serial arm takes so much longer
STRIDE = 9                                      # arms of a build: those of FASTER and one A/A arm of the first and last
BUILDS = (0, 1)
EFFECTS = {STRIDE * build + arm: effect for build in BUILDS
           for arm, effect in enumerate((*FASTER, FASTER[0], FASTER[-1]))}
PAIRS = [(STRIDE * build, STRIDE * build + arm) for build in BUILDS for arm in range(1, len(FASTER))]
AA_PAIRS = [(STRIDE * build + first, STRIDE * build + second) for build in BUILDS for first, second in ((0, 7), (6, 8))]
SEVERAL_WORKERS = frozenset(EFFECTS) - {STRIDE * build + arm for build in BUILDS for arm in (0, 7)}
SERIAL_ARMS = (0, STRIDE)
JUDGED = 56   # verdicts of a report: 48 pairs, and the cost of one thread and the best models for each workload
SPREAD = 0.015                                  # of a process, in logs


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of noise: what differs from independent normal errors of one size."""

    spread: float = SPREAD
    wild: float = 1.0            # one arm of each build and workload errs so many times as much
    correlation: float = 0.0     # of an arm's errors from one round to the next
    interaction: float = 0.0     # in logs: what a round does to all arms with several workers, and to no serial one
    slow: float = 0.0            # of three arms: the share of processes that are 28 % slow


KINDS = {
    "normal": Kind(),
    "large": Kind(spread=0.035),
    "wild": Kind(wild=4.0),
    "correlated": Kind(correlation=0.7),
    "interaction 2 %": Kind(interaction=0.02),
    "interaction 4 %": Kind(interaction=0.04),
    "slow processes": Kind(slow=0.25),
}


@dataclass(slots=True)
class Tally:
    """Counts over all tables of a kind."""

    covered: list[bool] = field(default_factory=list)
    disturbed: list[bool] = field(default_factory=list)      # coverage of the arms that alone are disturbed
    false_tables: list[bool] = field(default_factory=list)
    words: dict[float, list[bool]] = field(default_factory=lambda: {FASTER[3]: [], FASTER[4]: []})
    stopped: dict[int, list[tuple[float, bool]]] = field(default_factory=dict)   # by rounds: bias and coverage


def workload(draw: random.Random, kind: Kind) -> tuple[RoundLogs[int], frozenset[int]]:
    """Return the levels of all arms in all rounds, and the arms that are disturbed unlike the others."""
    candidates = [[STRIDE * build + arm for arm in range(1, len(FASTER))] for build in BUILDS]
    wild = {draw.choice(arms) for arms in candidates} if kind.wild > 1 else set()
    slow = {*draw.sample(candidates[0] + candidates[1], 3)} if kind.slow else set()
    machine = [*accumulate(draw.gauss(0, 0.05) for _ in range(LAST))]
    interaction = [draw.gauss(0, kind.interaction) for _ in range(LAST)]
    levels: dict[int, dict[int, float]] = {}
    for arm, effect in EFFECTS.items():
        size = kind.spread * (kind.wild if arm in wild else 1.0)
        error, levels[arm] = draw.gauss(0, 1), {}
        for number in range(LAST):
            error = kind.correlation * error + (1 - kind.correlation**2) ** 0.5 * draw.gauss(0, 1)
            levels[arm][number] = (
                machine[number] + size * error + SLOWER_BUILD * (arm >= STRIDE) - effect
                + (interaction[number] if arm in SEVERAL_WORKERS else 0.0)
                + (log1p(0.28) if arm in slow and draw.random() < kind.slow else 0.0))
    return RoundLogs(levels=levels), frozenset(wild | slow)


def stop_early(table: dict[int, RoundLogs[int]]) -> dict[int, RoundLogs[int]]:
    """Return what a run measures that gives rounds to open cells alone, with their baselines and A/A arms."""
    taken: dict[tuple[int, int], set[int]] = {(group, arm): set() for group in table for arm in EFFECTS}
    open_cells = {(group, pair) for group in table for pair in PAIRS}
    seen = table
    for number in range(LAST):
        for group in table:
            arms = {arm for where, pair in open_cells if where == group for arm in pair}
            for arm in arms | ({arm for pair in AA_PAIRS for arm in pair} if arms else set()):
                taken[group, arm].add(number)
        seen = {group: cut(logs, {arm: taken[group, arm] for arm in EFFECTS}) for group, logs in table.items()}
        if number + 1 in LOOKS:
            noises, _ = checked_noise(seen, dict.fromkeys(seen, AA_PAIRS), draws=1000, seed=1)
            ratios = {(group, pair): compare(seen[group], noises[group], *pair)
                      for group in table for pair in [*PAIRS, SERIAL_ARMS]}
            open_cells = {key for key in open_pairs(ratios) if key[1] != SERIAL_ARMS}
    return seen


def is_false(word: str, effect: float) -> bool:
    """Return True if a verdict contradicts the truth."""
    return (word == "faster" and effect <= 0) or (word == "slower" and effect >= 0) or (
        word == "no difference" and abs(effect) > 0.0297)   # log of 1.03 is 0.0296


def simulate(name: str, mode: str, tables: int) -> Tally:
    """Return the tally of so many tables; `mode` is a number of rounds or "stop"."""
    tally = Tally()
    confidence = simultaneous(JUDGED, final_confidence(len(LOOKS) if mode == "stop" else 0))
    for seed in range(tables):
        draw = random.Random(f"{name} {seed}")
        drawn = {group: workload(draw, KINDS[name]) for group in range(WORKLOADS)}
        full = {group: logs for group, (logs, _) in drawn.items()}
        table = stop_early(full) if mode == "stop" else {
            group: cut(logs, {arm: set(range(int(mode))) for arm in EFFECTS}) for group, logs in full.items()}
        noises, _ = checked_noise(table, dict.fromkeys(table, AA_PAIRS), seed=seed)
        false = 0
        for group, logs in table.items():
            for baseline, arm in [*PAIRS, SERIAL_ARMS]:
                ratio = compare(logs, noises[group], baseline, arm)
                effect = -SLOWER_BUILD if (baseline, arm) == SERIAL_ARMS else EFFECTS[arm]
                word = judge(ratio, confidence).word
                false += is_false(word, effect)
                if (baseline, arm) != SERIAL_ARMS:
                    count(tally, ratio.center - effect, ratio.half(), effect, word, ratio.rounds,
                          disturbed=arm in drawn[group][1])
        tally.false_tables.append(false > 0)
    return tally


def count(tally: Tally, bias: float, half: float, effect: float, word: str, rounds: int, *, disturbed: bool) -> None:
    """Count one ratio."""
    covered = abs(bias) <= half
    tally.covered.append(covered)
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
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"of {', '.join(KINDS)}")
    parser.add_argument("--modes", default="4,stop", help="numbers of rounds, and stop for interim looks")
    args = parser.parse_args()
    print(f"{'noise':16}{'rounds':>7}{'coverage':>10}{'disturbed':>11}{'false tables':>14}{'3 %':>7}{'10 %':>7}")
    for name in args.kinds.split(","):
        for mode in args.modes.split(","):
            tally = simulate(name, mode, args.tables)
            disturbed = f"{fmean(tally.disturbed):.3f}" if tally.disturbed else "-"
            small, large = (fmean(words) for words in tally.words.values())
            print(f"{name:16}{mode:>7}{fmean(tally.covered):10.3f}{disturbed:>11}{fmean(tally.false_tables):14.0%}"
                  f"{small:7.0%}{large:7.0%}", flush=True)
            if mode == "stop":
                for rounds, cells in sorted(tally.stopped.items()):
                    print(f"    true 10 %, stopped after {rounds:2} rounds: {len(cells):4} cells, bias "
                          f"{fmean(bias for bias, _ in cells):+.1%}, coverage {fmean(held for _, held in cells):.2f}",
                          flush=True)


if __name__ == "__main__":
    main()
