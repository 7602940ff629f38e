"""Count how often `gilscope scale` names what keeps planted programs from scaling: all, or those that are named.

Prints a line for each as it comes: right, unsure, scales (the build may cure it, or the loss is small here) or WRONG by
`tests/corpus/scaling/truth.json`, with the verdict and the objects.  Without a free machine, more are unsure.

    python -m tests.benchmarks.scaling_truth --build 3.14t
    python -m tests.benchmarks.scaling_truth --build 3.14t --runs 2 lock two_objects
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections import Counter

from gilscope.toolkit.errors import ToolkitError
from tests.benchmarks.common import build_of
from tests.scale.planted import investigated, programs, score


def main() -> None:
    """Investigate, print a line each, and count."""
    known = programs()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs (default: all)")
    parser.add_argument("--build", default="3.14t", metavar="LABEL[=PATH]", help="a build without a GIL")
    parser.add_argument("--runs", type=int, default=1, metavar="N", help="of each program (default: 1)")
    args = parser.parse_args()
    if unknown := [name for name in args.names if name not in known]:
        parser.error(f"no such program: {', '.join(unknown)}")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)     # with it, the constants of all programs are counted
    build = build_of(args.build)
    counts: Counter[str] = Counter()
    seconds = []
    print(f"{'program':18}{'worth':8}{'seconds':>7} {'of ceiling':>10} {'immortal':>8} {'queued':>6}  answer")
    for name in args.names or known:
        for _ in range(args.runs):
            began = time.monotonic()
            try:
                found = investigated(known[name], build.executable)
            except ToolkitError as error:
                counts["failed"] += 1
                print(f"{name:18}failed: {error}", flush=True)
                continue
            worth = score(known[name], found)
            counts[worth] += 1
            seconds.append(time.monotonic() - began)
            ceiling, immortal = found.evidence.of_ceiling, found.evidence.immortal
            objects = ", ".join(each.name for each in found.objects)
            also = ", ".join(each.name for each in found.also)
            words = [found.judgement.verdict.value, found.judgement.obstacle.value, found.judgement.doubt or "",
                     objects, also and f"also {also}",
                     "" if found.explained is None else f"explains {found.explained:.0%}"]
            print(f"{name:18}{worth:8}{seconds[-1]:7.0f} {f'{ceiling.ratio:.2f}' if ceiling else '-':>10} "
                  f"{f'{immortal.ratio:.2f}' if immortal else '-':>8} {found.queued_share:6.2f}  "
                  f"{'; '.join(filter(None, words))}", flush=True)
    median = statistics.median_high(seconds) if seconds else 0.0
    print(f"{build.label}: {', '.join(f'{count} {worth}' for worth, count in counts.items())}; median {median:.0f} s, "
          f"longest {max(seconds, default=0):.0f} s; load average now {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
