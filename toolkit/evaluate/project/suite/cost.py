"""What a build costs by the project's own tests: their CPU time and memory, where no workload was named.

The builds in turns, in random order, a few times, the machine looked at in each round.  The start of the test runner
is in the numbers, so tests that take hardly longer than it tell nothing.
"""

from __future__ import annotations

import random
import sys
import tempfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit import temporary
from gilscope.toolkit.bounded_reading import read_text
from gilscope.toolkit.evaluate.project.machine_calibration import Calibration
from gilscope.toolkit.evaluate.project.measured import FORCED_OFF, SEED, Measured, cost_of
from gilscope.toolkit.evaluate.project.suite.leaving_out import ignoring, is_pytest, sampled
from gilscope.toolkit.evaluate.project.suite.running import (
    QUIET_SECONDS,
    UNFINISHED,
    environment,
    own_command,
    run_bounded,
)
from gilscope.toolkit.evaluate.sections import NO_WORKLOAD, TOO_LONG, TOO_SHORT, Forced, Missing, TestRun
from gilscope.toolkit.stats.paired import Together
from gilscope.toolkit.stats.words import MIN_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.project.measured import Turn
    from gilscope.toolkit.evaluate.project.where_to_run import Bench
    from gilscope.toolkit.evaluate.sections import Cost

MOST_ROUNDS = 6       # the fewest that a 95 % interval takes
LEAST_ROUNDS = MIN_ROUNDS   # fewer get no word
LEAST_CPU = 1.0       # seconds, on a build with a GIL: a test runner takes a quarter of one to start
NO_GAIN = Missing(reason="no --workload was given")   # tests run one after another
SLACK = 1.5           # times the seconds that the tests took before, for one run among several
# Writes down the CPU seconds and the most resident KiB of the command, and ends as it does.
METER = """import os, resource, signal, subprocess, sys
code = subprocess.call(sys.argv[2:])
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as file:
    file.write(f"{usage.ru_utime + usage.ru_stime} {usage.ru_maxrss}")
if code >= 0:
    sys.exit(code)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
if -code != signal.SIGKILL:
    signal.signal(-code, signal.SIG_DFL)
os.kill(os.getpid(), -code)"""


class SuiteCosts:
    """The tests of one project in rounds on several builds."""

    def __init__(
        self, project: Project, benches: Mapping[str, Bench], tests: Mapping[str, TestRun | Missing], *,
        limit: float, say: Callable[[str], None], forced: bool = False, turn: Turn = nullcontext,
    ) -> None:
        """`benches` and `tests` are by the build's label; `limit` is in seconds, for all runs together.

        `turn` is held for a round.

        With `forced` the GIL is forced off, on those builds without one on which the tests turned it on.
        """
        self._project = project
        self._benches = benches
        self._limit = limit
        self._turn = turn
        self._say = say
        self._random = random.Random(SEED)
        self._forced = forced
        self._pairs: dict[str, str] = {}
        self._tests = project.tests or ()
        self._sample = ""
        self.too_long = False
        self._tried: dict[str, str] = {}   # how the tests failed here, by the build's label; "": they did not
        self._runs = {label: run for label, run in tests.items()
                      if label in benches and isinstance(run, TestRun) and _passed(run)}
        self._reasons = {label: _reason(run) for label, run in tests.items() if label not in self._runs}
        self.found: dict[str, Measured] = {}
        self.calibration = Calibration()

    def measure(self, twins: Mapping[str, str]) -> None:
        """Run the tests in rounds on the builds without a GIL and the twin of each; one that fails once is out."""
        pairs = {label: twin for label, twin in twins.items() if label in self._runs and twin in self._runs}
        for label in [label for label in pairs if bool(self._runs[label].gil_end) is not self._forced]:
            self._reasons[label] = f"the GIL was {'off' if self._forced else 'on'} at the end of the tests"
            pairs.pop(label)
        self._pairs = pairs
        runs = [self._runs[label] for label in dict.fromkeys((*pairs, *pairs.values()))]
        if not runs:
            return
        rounds = self._rounds(sum(run.seconds for run in runs))
        if rounds < LEAST_ROUNDS and (less := self._sampled(runs)):
            rounds = self._rounds(less)
        if rounds < LEAST_ROUNDS:
            self.too_long = True
            took = ", ".join(f"{run.seconds:.0f} s on {run.build}" for run in runs)
            self._reasons |= dict.fromkeys(
                [run.build for run in runs],
                f"the tests take {took}, and {LEAST_ROUNDS + 1} rounds of them {TOO_LONG} the {self._limit:.0f} s "
                "that are left for it")
            return
        self.found = {run.build: Measured() for run in runs}
        with tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as name:
            for number in range(-1, rounds):   # in the first everything is compiled
                with self._turn():
                    more = self._round(number, Path(name))
                if not more:
                    return

    def _rounds(self, seconds: float) -> int:
        """Return how many rounds there is time for, one of which is thrown away, when one takes so many seconds."""
        return min(MOST_ROUNDS, int(self._limit / (SLACK * seconds)) - 1)

    def _sampled(self, runs: Sequence[TestRun]) -> float:
        """Run a sample of the files from now on; return the seconds that a round takes, 0: there is no such sample."""
        assert self._project.tests is not None   # they were run
        files = dict.fromkeys(file for run in runs for file in run.by_file)
        if len(files) < 2 or not is_pytest(self._project.tests):  # noqa: PLR2004 - of one file there is no part
            return 0.0
        together = {file: sum(run.by_file.get(file, 0.0) for run in runs) for file in files}
        start = sum(run.seconds for run in runs) - sum(together.values())   # of the runner, and to collect
        most = self._limit / (SLACK * (LEAST_ROUNDS + 2)) - start
        chosen = sampled(together, most, self._random)
        if not chosen:
            return 0.0
        self._tests = ignoring(self._project.tests, [file for file in files if file not in chosen])
        self._sample = f"{len(chosen)} of {len(files)} files"
        return start + sum(together[file] for file in chosen)

    def cost(self, label: str, against: str) -> Cost | Missing:
        """Return what the tests take on one build against another, or why that is not known."""
        failures = [self.found[each].failure if each in self.found else self._reasons.get(each, "")
                    for each in (label, against)]
        unmeasured = [f"the tests were not run on {each}" for each in (label, against) if each not in self.found]
        if failure := next(filter(None, [*failures, *unmeasured]), ""):
            return Missing(reason=f"{NO_WORKLOAD}, and {failure}", passing=self.too_long)
        cpu = Together({each: measured.cpu for each, measured in self.found.items()}, clock="CPU")
        cost = cost_of(self.found[label], self.found[against], cpu.compare(against, label), against, "tests")
        return cost if isinstance(cost, Missing) else replace(cost, sample=self._sample)

    def forced(self, label: str, against: str) -> Forced | Missing:
        """Return what the tests do with the GIL forced off on the build `label`."""
        if label not in self._tried:
            reasons = [self._reasons[each] for each in (label, against) if each in self._reasons]
            return Missing(reason=next(iter(reasons), f"the tests were not run on {label}"))
        machine = self.calibration.facts() if self.calibration.spins else Missing(reason="no round was taken")
        return Forced(against=against, by="tests", cost=self.cost(label, against), measured=NO_GAIN,
                      failure=self._tried[label], machine=machine)

    def _round(self, number: int, folder: Path) -> bool:
        """Run the tests once on each build; return whether another round is worth it."""
        able = [label for label, measured in self.found.items() if not measured.failure]
        if number >= 0:
            self._say(f"cost: round {number + 1} of the tests{', the GIL forced off' * self._forced}")
            self.calibration.take(number)
        for label in self._random.sample(able, len(able)):
            self._take(label, number, folder / label)
        if all(self._tried[label] or self._tried[twin] for label, twin in self._pairs.items()):
            return False
        return number >= 0 or self._long_enough(able)

    def _take(self, label: str, number: int, place: Path) -> None:
        measured, bench = self.found[label], self._benches[label]
        place.mkdir(exist_ok=True)
        told = place / "usage"
        # By a command of its own: the meter runs on our Python, which may have a GIL.
        off = ["env", *(f"{name}={value}" for name, value in FORCED_OFF.items())] if self._off(label) else []
        command = [sys.executable, "-I", "-c", METER, str(told), *off, *own_command(self._tests, bench.python)]
        ending = run_bounded(command, bench.placed(self._project).root, environment(bench, place), place / "output",
                             limit=self._limit, quiet=QUIET_SECONDS)
        if ending != "0":
            how = "with the GIL forced off" if self._off(label) else "every time"
            measured.failure = self._tried[label] = f"the tests do not pass on {label} {how} ({ending})"
            return
        try:
            cpu, resident = map(float, read_text(told).split())
        except (OSError, ValueError):
            measured.failure = self._tried[label] = f"what the tests took on {label} was written over by one of them"
            return
        self._tried[label] = ""
        measured.cpu[number] = cpu
        measured.rss.append(resident * 1024)

    def _off(self, label: str) -> bool:
        return self._forced and label in self._pairs   # the others are their twins

    def _long_enough(self, labels: list[str]) -> bool:
        """Look at the first run, which is then forgotten."""
        least = min((self.found[label].cpu.pop(-1, LEAST_CPU) for label in labels), default=0.0)
        for label in labels:
            self.found[label].rss.clear()
        if least >= LEAST_CPU:
            return True
        self._reasons |= dict.fromkeys(
            labels, f"the tests take {least:.1f} s of CPU time, {TOO_SHORT}")
        self.found.clear()
        return False


def _passed(run: TestRun) -> bool:
    return run.ending == "0" and run.passed != 0


def _reason(run: TestRun | Missing) -> str:
    if isinstance(run, Missing):
        return run.reason
    if run.ending.startswith(UNFINISHED):
        return f"the tests were not done on {run.build}"
    return f"not all tests pass on {run.build}"
