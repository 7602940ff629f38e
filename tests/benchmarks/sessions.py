"""Measure the coverage of intervals and the rate of false verdicts over sessions that differ.

Every table has 4 workloads on 2 builds, each with a serial baseline, six other arms whose true ratios are 1, 1, 1.03,
1.10, 1.35 and 1.83, and two A/A arms; processes differ by 1.5 %, and a session has 4 rounds. Prints for each kind of
session, by rounds of one session alone, and over several sessions:

- coverage of the 95 % intervals
- the share of tables with a false verdict, which is to be 5 % at most
- how often a true 3 %, 10 % and 35 % are called faster
- how often the set of the fastest contains it

    python -m tests.benchmarks.sessions [--tables 200] [--kinds none,joint] [--sessions 1,3]
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass, field
from math import log, log1p
from statistics import fmean

from gilscope.toolkit.stats.log_times import RoundLogs
from gilscope.toolkit.stats.noise_floor import checked_noise
from gilscope.toolkit.stats.pair_kinds import ArmClass
from gilscope.toolkit.stats.paired import conclude
from gilscope.toolkit.stats.ratios import compare, simultaneous
from gilscope.toolkit.stats.sessions import FEWEST, levels_of_sessions
from tests.benchmarks.hostile_noise import is_false
from tests.stats.matrix import SESSION_KINDS, fastest, session_levels

WORKLOADS = 4
ROUNDS = 4                                      # of a session
FASTER = (0.0, 0.0, 0.0, log1p(0.03), log1p(0.10), log(1.35), 0.605)   # log ratios of the arms to the baseline, arm 0
SLOWER_BUILD = log(1.1)                         # the second build's serial arm takes so much longer
STRIDE = 9                                      # arms of a build: those of FASTER and one A/A arm of the first and last
EFFECTS = {STRIDE * build + arm: effect - SLOWER_BUILD * build for build in (0, 1)
           for arm, effect in enumerate((*FASTER, FASTER[0], FASTER[-1]))}
SPEEDUPS = [(STRIDE * build, STRIDE * build + arm) for build in (0, 1) for arm in range(1, len(FASTER))]
AA_PAIRS = [(STRIDE * build + first, STRIDE * build + second) for build in (0, 1) for first, second in ((0, 7), (6, 8))]
SERIAL_ARMS = (0, STRIDE)
SEVERAL_WORKERS = frozenset(EFFECTS) - {STRIDE * build + arm for build in (0, 1) for arm in (0, 7)}
CLASSES = {arm: ArmClass(workers=arm in SEVERAL_WORKERS, build=arm // STRIDE) for arm in EFFECTS}
TREATMENTS = {arm: (arm // STRIDE, {7: 0, 8: 6}.get(arm % STRIDE, arm % STRIDE)) for arm in EFFECTS}
JUDGED = 56   # verdicts of a report: 48 pairs, and the cost of one thread and the best models for each workload


@dataclass(slots=True)
class Tally:
    """Counts over all tables of a kind."""

    covered: list[bool] = field(default_factory=list)
    halves: list[float] = field(default_factory=list)
    false_tables: list[bool] = field(default_factory=list)
    words: dict[float, list[bool]] = field(default_factory=lambda: {effect: [] for effect in FASTER[3:6]})
    best: list[bool] = field(default_factory=list)


def table(kind: str, sessions: int, seed: int, tally: Tally) -> None:
    """Simulate one table and count."""
    draw = random.Random(f"{kind} {seed}")
    levels = session_levels(draw, kind, [EFFECTS] * WORKLOADS, SEVERAL_WORKERS, sessions=sessions, rounds=ROUNDS)
    groups = {g: [RoundLogs(levels=each) for each in of_sessions] for g, of_sessions in enumerate(levels)}
    if sessions >= FEWEST:
        logs = {g: levels_of_sessions(dict(enumerate(of_sessions))) for g, of_sessions in groups.items()}
    else:
        logs = {g: RoundLogs(levels={arm: {r: level for each in of_sessions for r, level in each.levels[arm].items()}
                                     for arm in EFFECTS}) for g, of_sessions in groups.items()}
    noises, _ = checked_noise(logs, dict.fromkeys(logs, AA_PAIRS), classes=CLASSES, treatments=TREATMENTS,
                              shared_rounds=sessions >= FEWEST)
    confidence = simultaneous(JUDGED)
    false = 0
    for g, each in logs.items():
        for pair in [*SPEEDUPS, SERIAL_ARMS]:
            ratio = compare(each, noises[g], *pair)
            effect = -SLOWER_BUILD if pair == SERIAL_ARMS else FASTER[pair[1] % STRIDE]
            word = conclude(ratio, confidence).verdict()
            false += is_false(word, effect)
            if pair != SERIAL_ARMS:
                tally.covered.append(abs(ratio.center - effect) <= ratio.half())
                tally.halves.append(ratio.half())
                if effect in tally.words:
                    tally.words[effect].append(word == "faster")
        tally.best.append(6 in fastest(each, noises[g], range(len(FASTER))))
    tally.false_tables.append(false > 0)


def main() -> None:
    """Simulate and print one line for each kind and number of sessions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=200, help="tables of each kind (default: 200)")
    parser.add_argument("--kinds", default=",".join(SESSION_KINDS),
                        help=f"of {', '.join(SESSION_KINDS)}".replace("%", "%%"))
    parser.add_argument("--sessions", default="1,3,5", help="numbers of sessions")
    args = parser.parse_args()
    print(f"{'sessions differ by':20}{'sessions':>9}{'coverage':>10}{'half':>7}{'false tables':>14}{'3 %':>7}"
          f"{'10 %':>7}{'35 %':>7}{'best':>7}")
    for kind in args.kinds.split(","):
        for sessions in map(int, args.sessions.split(",")):
            tally = Tally()
            for seed in range(args.tables):
                table(kind, sessions, seed, tally)
            words = "".join(f"{fmean(each):7.0%}" for each in tally.words.values())
            print(f"{kind:20}{sessions:9}{fmean(tally.covered):10.3f}{fmean(tally.halves):7.1%}"
                  f"{fmean(tally.false_tables):14.0%}{words}{fmean(tally.best):7.2f}", flush=True)


if __name__ == "__main__":
    main()
