"""Measure the effect of retaking disturbed values on speed-ups, and its cost.

The machine is simulated: other programs run on one of its two cores in bursts.  Alone, work with two workers is 1.9
times as fast as serial work; in a burst, serial work takes 1.33 times as long and parallel work 1.5 times.  The
scheduler, the turns and the rules are gilscope's.  Prints the speed-up, the rounds that count, and the time, for three
rules:

- none: no value is taken again, and none is left out
- alone: parallel arms that lacked cores take their values again, and serial arms keep theirs
- together: gilscope's; a pass that others disturbed is taken again by all of its arms

    python -m tests.benchmarks.retakes [--rounds 60] [--shares 0.1,0.2,0.3,0.4] [--lengths 0,0.05,0.3,2]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.measure.bursts import BurstyMachine, Work, simulate, speedup

RULES = ("none", "alone", "together")


def main() -> None:
    """Print a line for each kind of burst."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--shares", default="0.1,0.2,0.3,0.4", help="of the time, that bursts take")
    parser.add_argument("--lengths", default="0,0.05,0.3,2", help="seconds of a burst; 0: of one value")
    args = parser.parse_args()
    lengths, shares = ([float(each) for each in text.split(",")] for text in (args.lengths, args.shares))
    print(f"true speed-up {Work().speedup:.2f}x, {args.rounds} rounds")
    print("burst   share" + "".join(f"  {rule:>8}  rounds  time" for rule in RULES))
    for length in lengths:
        for share in shares:
            row = ""
            for rule in RULES:
                machine = BurstyMachine(share, length)
                with tempfile.TemporaryDirectory() as folder:
                    found, rounds = speedup(simulate(machine, Path(folder), rule=rule, rounds=args.rounds))
                row += f"  {found:7.2f}x  {rounds:6.0f}  {machine.now:3.0f}s"
            print(f"{f'{length:g} s' if length else '1 value':7} {share:4.0%}{row}", flush=True)


if __name__ == "__main__":
    main()
