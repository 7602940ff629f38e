"""Compare the predicted speed-up of threaded programs on a free-threaded build with the measured one.

Measures ten programs on both builds and prints prediction and measurement.  The goal: 8 of 10 predictions are within
20 % or refused.  On a busy or small machine every prediction is refused, with the reason.

    python -m tests.benchmarks.predict --free 3.14t --gil 3.14
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.discovery import find_project
from gilscope.toolkit.evaluate.project.where_to_run import RunSite
from gilscope.toolkit.evaluate.project.workload.rounds import UserWorkload, WorkloadMeasurer
from gilscope.toolkit.evaluate.project.workload.speed import Speed
from gilscope.toolkit.evaluate.sections import Missing
from tests.benchmarks.common import build_of, pair_parser
from tests.benchmarks.predict_programs import threaded

if TYPE_CHECKING:
    from gilscope.toolkit.evaluate.sections import Sections
    from gilscope.toolkit.model import Build

PROGRAMS = ("arithmetic", "own_dict", "sorting", "text", "parsing", "shared_dict", "shared_list", "shared_attribute",
            "shared_slots", "hashing")
WITHIN = 0.2
FOLDER = Path(threaded.__file__).parent


def main() -> None:
    """Measure and print one line per program."""
    args = pair_parser(__doc__, PROGRAMS, seconds=60.0).parse_args()
    builds = (build_of(args.free), build_of(args.gil))
    names = args.programs.split(",")
    print(f"{'program':18}{'predicted':>22}{'measured':>22}{'off by':>9}")
    ends = [program(name, builds, args.seconds) for name in names]
    good, held = sum(end.startswith("good") for end in ends), sum(end.endswith("held") for end in ends)
    print(f"{good} of {len(names)} within {WITHIN:.0%}, {ends.count('refused')} refused; "
          f"{held} intervals hold what was measured")


def evaluated(name: str, builds: tuple[Build, Build], seconds: float) -> tuple[Sections, int]:
    """Measure one program as evaluate does; return its result for the first build, and the maximum of threads."""
    end = time.monotonic() + seconds
    benches = {build.label: RunSite(build=build.label, python=Path(build.executable), folders=(FOLDER,))
               for build in builds}
    measurer = WorkloadMeasurer(
        find_project(FOLDER), UserWorkload(kind="function", name=f"threaded:{name}"), benches,
        {build.label: build for build in builds}, left=lambda: end - time.monotonic(),
        say=lambda text: print(f"{name}: {text}", file=sys.stderr))
    measurer.measure()
    sections = Speed(measurer, measurer.calibration.facts()).sections(builds[0].label, builds[1].label)
    return sections, max(measurer.thread_counts())


def program(name: str, builds: tuple[Build, Build], seconds: float) -> str:
    """Measure one program, print its line, and return whether its prediction is "good", "bad", or was "refused".

    Followed by ", held" where the interval holds what was measured.
    """
    sections, most = evaluated(name, builds, seconds)
    gain = sections.gain
    if isinstance(gain, Missing):
        print(f"{name:18}{gain.reason}")
        return "bad"
    measured = None if isinstance(gain.measured, Missing) else gain.measured.get(most)
    truth = f"{measured.ratio:.2f}x [{measured.lo:.2f}, {measured.hi:.2f}]" if measured else "starved"
    if isinstance(gain.predicted, Missing):
        print(f"{name:18}{'refused':>22}{truth:>22}  {gain.predicted.reason}")
        return "refused"
    found = gain.predicted
    off = found.value / measured.ratio - 1 if measured else float("nan")
    print(f"{name:18}{f'{found.value:.2f}x [{found.lo:.2f}, {found.hi:.2f}]':>22}{truth:>22}{off:>+8.0%}")
    held = ", held" if measured and found.lo <= measured.ratio <= found.hi else ""
    return ("good" if abs(off) <= WITHIN else "bad") + held


if __name__ == "__main__":
    main()
