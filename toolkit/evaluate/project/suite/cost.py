"""Measure the cost of a build with the project's own tests, in CPU time and memory, if no workload was named.

The builds take turns in random order, a few times, with a look at the machine in each round.  The numbers include the
start of the test runner, so tests that take hardly longer than that say nothing.
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
from gilscope.toolkit.evaluate.project.measured import FORCED_OFF, SEED, CellMeasurements, cost_of
from gilscope.toolkit.evaluate.project.suite.leaving_out import ignoring, is_pytest, sampled
from gilscope.toolkit.evaluate.project.suite.running import (
    QUIET_SECONDS,
    environment,
    own_command,
    run_bounded,
)
from gilscope.toolkit.evaluate.sections import Cause, Forced, Missing, TestRun
from gilscope.toolkit.stats.paired import PairedArms
from gilscope.toolkit.stats.verdict import MIN_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.project.measured import HoldMachine
    from gilscope.toolkit.evaluate.project.where_to_run import RunSite
    from gilscope.toolkit.evaluate.sections import CommandEnding, Cost

MOST_ROUNDS = 6       # the fewest rounds for a 95 % interval
LEAST_ROUNDS = MIN_ROUNDS   # fewer rounds allow no statement
LEAST_CPU = 1.0       # seconds, on a build with a GIL: a test runner takes a quarter of a second to start
NO_GAIN = Missing(reason="no --workload was given")   # tests run one after another
SLACK = 1.5           # times the earlier duration of the tests, as the limit of one run
# Record the CPU seconds and the maximum resident KiB of the command, and exit with its status.
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
    """Measures the project's tests in rounds on several builds."""

    def __init__(
        self, project: Project, run_sites: Mapping[str, RunSite], tests: Mapping[str, TestRun | Missing], *,
        limit: float, say: Callable[[str], None], forced: bool = False, hold_machine: HoldMachine = nullcontext,
    ) -> None:
        """Set up; `run_sites` and `tests` are by label of the build; `limit` is in seconds, for all runs together.

        `hold_machine` is held during a round.  With `forced` the GIL is forced off on free-threaded builds where the
        tests turned it on.
        """
        self._project = project
        self._run_sites = run_sites
        self._limit = limit
        self._hold_machine = hold_machine
        self._say = say
        self._random = random.Random(SEED)
        self._forced = forced
        self._pairs: dict[str, str] = {}
        self._tests = project.tests or ()
        self._sample = ""
        self._tried: dict[str, str] = {}   # by label of the build: how the tests failed here; "" if they did not
        self._runs = {label: run for label, run in tests.items()
                      if label in run_sites and isinstance(run, TestRun) and _passed(run)}
        self._reasons = {label: _reason(run) for label, run in tests.items() if label not in self._runs}
        self.found: dict[str, CellMeasurements] = {}
        self.calibration = Calibration()

    def measure(self, counterparts: Mapping[str, str]) -> None:
        """Run the tests in rounds on the free-threaded builds and their counterparts; drop builds where they fail."""
        pairs = {label: counterpart for label, counterpart in counterparts.items()
                 if label in self._runs and counterpart in self._runs}
        for label in [label for label in pairs if bool(self._runs[label].gil_end) is not self._forced]:
            self._reasons[label] = _untimed(f"the GIL was {'off' if self._forced else 'on'} at the end of the tests")
            pairs.pop(label)
        self._pairs = pairs
        runs = [self._runs[label] for label in dict.fromkeys((*pairs, *pairs.values()))]
        if not runs:
            return
        rounds = self._rounds(sum(run.seconds for run in runs))
        if rounds < LEAST_ROUNDS and (less := self._sampled(runs)):
            rounds = self._rounds(less)
        if rounds < LEAST_ROUNDS:
            took = ", ".join(f"{run.seconds:.0f} s on {run.build}" for run in runs)
            self._reasons |= dict.fromkeys(
                [run.build for run in runs],
                Missing(reason=f"the tests take {took}, and {LEAST_ROUNDS + 1} rounds of them, each up to {SLACK:g} "
                               f"times as long, do not fit into the {self._limit:.0f} s that it may take",
                        cause=Cause.TESTS_TOO_LONG))
            return
        self.found = {run.build: CellMeasurements() for run in runs}
        with tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as name:
            for number in range(-1, rounds):   # everything is compiled in the first round
                with self._hold_machine():
                    more = self._round(number, Path(name))
                if not more:
                    return

    def _rounds(self, seconds: float) -> int:
        """Return the number of rounds that there is time for, including a discarded one, at so many seconds each."""
        return min(MOST_ROUNDS, int(self._limit / (SLACK * seconds)) - 1)

    def _sampled(self, runs: Sequence[TestRun]) -> float:
        """Use a sample of the test files from now on; return the seconds of a round, 0 if no sample fits."""
        assert self._project.tests is not None   # they have been run
        files = dict.fromkeys(file for run in runs for file in run.by_file)
        if len(files) < 2 or not is_pytest(self._project.tests):  # a single file cannot be sampled
            return 0.0
        together = {file: sum(run.by_file.get(file, 0.0) for run in runs) for file in files}
        start = sum(run.seconds for run in runs) - sum(together.values())   # for the runner and the collection
        most = self._limit / (SLACK * (LEAST_ROUNDS + 2)) - start
        chosen = sampled(together, most, self._random)
        if not chosen:
            return 0.0
        self._tests = ignoring(self._project.tests, [file for file in files if file not in chosen])
        self._sample = f"{len(chosen)} of {len(files)} files"
        return start + sum(together[file] for file in chosen)

    def cost(self, label: str, against: str) -> Cost | Missing:
        """Return the cost of the tests on one build compared with another, "" for none, or why it is not known."""
        failures = [_untimed(self.found[each].failure) if each in self.found else self._reasons.get(each)
                    for each in (label, against) if each not in self.found or self.found[each].failure]
        if not against:
            other = label.removesuffix("t")
            unmeasured = [_untimed(f"there is no {other} to compare the tests with: --build {other}=PATH adds one")]
        else:
            unmeasured = [_untimed(f"the tests were not run on {each}") for each in (label, against)
                          if each not in self.found]
        if lacking := next(filter(None, [*failures, *unmeasured]), None):
            return replace(lacking, reason=f"no workload was measured, and {lacking.reason}")
        cpu = PairedArms({each: measured.cpu for each, measured in self.found.items()}, clock="CPU time")
        cost = cost_of(self.found[label], self.found[against], cpu.compare(against, label), against, "tests")
        return cost if isinstance(cost, Missing) else replace(cost, sample=self._sample)

    def forced(self, label: str, against: str) -> Forced | Missing:
        """Return the results of the tests with the GIL forced off on the build `label`."""
        if label not in self._tried:
            reasons = [self._reasons[each] for each in (label, against) if each in self._reasons]
            return next(iter(reasons), _untimed(f"the tests were not run on {label}"))
        machine = self.calibration.facts() if self.calibration.spins else Missing(reason="no round was taken")
        return Forced(against=against, by="tests", cost=self.cost(label, against), measured=NO_GAIN,
                      failure=self._tried[label], machine=machine)

    def _round(self, number: int, folder: Path) -> bool:
        """Run the tests once on each build; return True if another round is worthwhile."""
        able = [label for label, measured in self.found.items() if not measured.failure]
        if number >= 0:
            self._say(f"cost: round {number + 1} of the tests{', the GIL forced off' * self._forced}")
            self.calibration.take(number)
        for label in self._random.sample(able, len(able)):
            self._take(label, number, folder / label)
        if all(self._tried[label] or self._tried[counterpart] for label, counterpart in self._pairs.items()):
            return False
        return number >= 0 or self._long_enough(able)

    def _take(self, label: str, number: int, place: Path) -> None:
        measured, run_site = self.found[label], self._run_sites[label]
        place.mkdir(exist_ok=True)
        told = place / "usage"
        # `env` sets the variable for the tests alone: the meter runs on our Python, which may have a GIL.
        off = ["env", *(f"{name}={value}" for name, value in FORCED_OFF.items())] if self._off(label) else []
        command = [sys.executable, "-I", "-c", METER, str(told), *off, *own_command(self._tests, run_site.python)]
        ending = run_bounded(command, run_site.placed(self._project).root, environment(run_site, place),
                             place / "output", limit=self._limit, quiet=QUIET_SECONDS)
        if not ending.succeeded:
            how = "with the GIL forced off" if self._off(label) else "every time"
            measured.failure = self._tried[label] = f"the tests do not pass on {label} {how} ({_how_it_ended(ending)})"
            return
        try:
            cpu, resident = map(float, read_text(told).split())
        except (OSError, ValueError):
            measured.failure = self._tried[label] = f"a test overwrote the file with the CPU time on {label}"
            return
        self._tried[label] = ""
        measured.cpu[number] = cpu
        measured.rss.append(resident * 1024)

    def _off(self, label: str) -> bool:
        return self._forced and label in self._pairs   # the others are counterparts

    def _long_enough(self, labels: list[str]) -> bool:
        """Check and discard the first run."""
        least = min((self.found[label].cpu.pop(-1, LEAST_CPU) for label in labels), default=0.0)
        for label in labels:
            self.found[label].rss.clear()
        if least >= LEAST_CPU:
            return True
        self._reasons |= dict.fromkeys(
            labels, Missing(reason=f"the tests take {least:.1f} s of CPU time, most of it to start",
                            cause=Cause.TESTS_TOO_SHORT))
        self.found.clear()
        return False


def _how_it_ended(ending: CommandEnding) -> str:
    return f"exit code {ending.code}" if ending.kind == "exit" else str(ending)


def _passed(run: TestRun) -> bool:
    return run.ending.succeeded and run.passed != 0


def _reason(run: TestRun | Missing) -> Missing:
    if isinstance(run, Missing):
        return _untimed(run.reason)
    if run.ending.kind == "unfinished":
        return _untimed(f"the tests were not done on {run.build}")
    return _untimed(f"not all tests pass on {run.build}")


def _untimed(reason: str) -> Missing:
    """Return that the tests show no cost, for a reason that would not change."""
    return Missing(reason=reason, cause=Cause.TESTS_NOT_TIMED)
