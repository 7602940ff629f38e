"""Count how often `gilscope scale` names what keeps planted programs from scaling: all, or those that are named.

Prints a line for each as it comes: right, unsure, scales (the build may cure it, or the loss is small here) or WRONG by
`tests/corpus/scaling/truth.json`, with the verdict and the objects, the nanoseconds that a cache line took from CPU to
CPU, and how many measurements did not count because it took longer.  Without a free machine, more are unsure.  In the
end it counts how the answers of a program's runs go together, the processes that were forked and those that died, and
says what a pass of the sampler over all objects cost.

    python -m tests.benchmarks.scaling_truth --build 3.14t
    python -m tests.benchmarks.scaling_truth --build 3.14t --runs 2 lock two_objects
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections import Counter
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.measure.machine_lock import MachineLock
from tests.benchmarks.common import build_of
from tests.scale.planted import ChildCounts, agreement, investigated, programs, score

if TYPE_CHECKING:
    from gilscope.toolkit.scale.investigation import ScalingInvestigation

DIED = "the measuring process died"      # in the error of a fork that a signal ended


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
    agreed: Counter[str] = Counter()
    children, died = ChildCounts(), 0
    machine = MachineLock(alone=False, waiting=lambda: None)
    seconds = []
    print(f"{'program':18}{'worth':8}{'seconds':>7} {'of ceiling':>10} {'immortal':>8} {'queued':>6} "
          f"{'ns':>4} {'far':>4}  answer")
    for name in args.names or known:
        answers: list[ScalingInvestigation] = []
        for _ in range(args.runs):
            try:
                with machine.hold():
                    began = time.monotonic()
                    found = investigated(known[name], build.executable, counts=children)
            except ToolkitError as error:
                counts["failed"] += 1
                died += DIED in str(error)
                print(f"{name:18}failed: {error}", flush=True)
                continue
            worth = score(known[name], found)
            counts[worth] += 1
            agreed.update(agreement(each, found).value for each in answers)
            answers.append(found)
            seconds.append(time.monotonic() - began)
            ceiling, immortal = found.evidence.of_ceiling, found.evidence.immortal
            objects = ", ".join(each.name for each in found.objects)
            also = ", ".join(each.name for each in found.also)
            words = [found.judgement.verdict.value, found.judgement.obstacle.value, found.judgement.doubt or "",
                     objects, also and f"also {also}",
                     "" if found.explained is None else f"explains {found.explained:.0%}"]
            print(f"{name:18}{worth:8}{seconds[-1]:7.0f} {f'{ceiling.ratio:.2f}' if ceiling else '-':>10} "
                  f"{f'{immortal.ratio:.2f}' if immortal else '-':>8} {found.queued_share:6.2f} "
                  f"{f'{found.handoff.median:.0f}' if found.handoff else '-':>4} "
                  f"{found.far.count if found.far else 0:4}  "
                  f"{'; '.join(filter(None, words))}", flush=True)
    median = statistics.median_high(seconds) if seconds else 0.0
    print(f"{build.label}: {', '.join(f'{count} {worth}' for worth, count in counts.items())}; median {median:.0f} s, "
          f"longest {max(seconds, default=0):.0f} s; load average now {os.getloadavg()[0]:.1f}")
    if agreed:
        print(f"pairs of runs: {', '.join(f'{count} {how}' for how, count in agreed.most_common())}")
    print(f"processes that were forked: {children.forks}, of which {died} died")
    if children.passes:
        objects, lasted = (statistics.median(each) for each in zip(*children.passes, strict=True))
        print(f"the sampler: {1e3 * lasted:.2f} ms in the median for a pass over {objects:,.0f} objects, longest mean "
              f"of a sample {1e3 * max(each for _, each in children.passes):.2f} ms")


if __name__ == "__main__":
    main()
