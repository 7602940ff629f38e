"""The user's workload in rounds: one process per build, model and number of workers in each round, in turn if it can.

Measured in the scratch environments; waits and parked time by the preloaded shim, in processes of their own, so that
what is timed is not watched.  How a round is measured is `schedule`'s, what the numbers come to is said in `speed`.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from gilscope.toolkit import temporary
from gilscope.toolkit.cores import usable_cores
from gilscope.toolkit.evaluate.packages.judge.interpreters import refusal_in
from gilscope.toolkit.evaluate.project.machine_calibration import Calibration
from gilscope.toolkit.evaluate.project.measured import FORCED_OFF, SEED, Measured
from gilscope.toolkit.evaluate.project.where_to_run import compiled_into
from gilscope.toolkit.evaluate.project.workload.name_check import is_function, script_of
from gilscope.toolkit.evaluate.project.workload.schedule import Cell, round_of, seconds_of
from gilscope.toolkit.evaluate.sections import Missing
from gilscope.toolkit.gil import preload
from gilscope.toolkit.gil.records import BadRecordError, read_folder
from gilscope.toolkit.gil.summary import Summary, summarize
from gilscope.toolkit.measure.prepare.preparation import OUR_NAME, child_environment
from gilscope.toolkit.measure.process.running import Answer, run_child
from gilscope.toolkit.measure.program.interface import TrialSpec
from gilscope.toolkit.measure.schedule.measure_round import OneByOne
from gilscope.toolkit.measure.schedule.start_child import Start
from gilscope.toolkit.measure.schedule.turns import InTurn
from gilscope.toolkit.stats.words import MIN_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.project.measured import Turn
    from gilscope.toolkit.evaluate.project.where_to_run import Bench
    from gilscope.toolkit.measure.schedule.measure_round import Taken, Way
    from gilscope.toolkit.model import Build

PROGRAM = "gilscope.toolkit.evaluate.project.workload.programs.workload"
MOST_ROUNDS = 10
LEAST_ROUNDS = MIN_ROUNDS   # fewer get no word
ROUNDS_COMPARED = 3       # in which a build tells what the workload gives: one that is not the same in all is no matter
PASS_SECONDS = 0.3        # that all calls of a function take together
LONGEST_SECONDS = 4.0     # of a pass: what threads have not done by then is reckoned from what they have
LEAST_PASS_SECONDS = 0.1  # that tells how long one call takes
SILENT_SECONDS = 300.0    # of a script, which reports no progress
LEAST_SILENT_SECONDS = 60.0
PATIENCE = 20             # times what the import and a call take with the GIL
OTHER_MODELS = ("subinterpreters", "processes")   # on builds with a GIL, beside threads


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is run: "script" with its path and arguments, or "function" with its "package.module:name"."""

    kind: str
    name: str
    words: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str, root: Path) -> Workload | Missing:
        """Return what the user named."""
        if is_function(text):
            top = text.partition(":")[0].partition(".")[0]
            if top == OUR_NAME:
                return Missing(reason=f"{top!r} is gilscope itself: rename a module of yours to measure it")
            return cls(kind="function", name=text)
        found = script_of(text, root)
        if found is None:
            return Missing(reason=f"--workload {text}: there is no such script, and no module:function is named")
        return cls(kind="script", name=str(found[0].resolve()), words=found[1])


class WorkloadMeasurer:
    """Measures one workload on several builds."""

    def __init__(
        self, project: Project, workload: Workload, benches: Mapping[str, Bench], builds: Mapping[str, Build], *,
        left: Callable[[], float], say: Callable[[str], None], forced: bool = False, turn: Turn = nullcontext,
    ) -> None:
        """`left` returns the seconds that are left; `benches` and `builds` are by label; `turn` is held for a round.

        With `forced` the GIL stays off on the builds without one, and no model but threads is measured.
        """
        self.project = project
        self.workload = workload
        self.benches = benches
        self._builds = builds
        self._left = left
        self._say = say
        self._turn = turn
        self._random = random.Random(SEED)
        self._forced = forced
        # A script is a process from its start to its end, so it gives one value.
        self._way: Way = OneByOne(run_child) if workload.kind == "script" else InTurn()
        self._calls = 1
        self._call_seconds = self._import_seconds = 0.0
        self.found: dict[Cell, Measured] = {}
        self.calibration = Calibration()   # in the same rounds
        self.round_seconds = 0.0           # that the longest round took

    def measure(self) -> None:
        """Take rounds until the time is up or there are enough; nothing is taken without any time."""
        cells = self._cells()
        if self._left() <= 0:
            return
        with self._turn():
            failure = self._calibrate() if self.workload.kind == "function" else ""
        self.found = {cell: Measured(failure=failure) for cell in cells}
        if failure:   # with the GIL: nothing can be learnt of doing without it
            return
        with tempfile.TemporaryDirectory(prefix=temporary.prefix()) as folder:
            for number in range(MOST_ROUNDS):
                # Another round, and what is watched afterwards: about as many processes.
                if number >= LEAST_ROUNDS and 2 * self.round_seconds > self._left():
                    break
                how = ", the GIL forced off" * self._forced
                self._say(f"workload{how}: round {number + 1} of at most {MOST_ROUNDS}")
                with self._turn():
                    began = time.monotonic()
                    self._round(number, folder)
                    self.round_seconds = max(self.round_seconds, time.monotonic() - began)
                # Without the GIL forced off, other models may be left to compare.
                if self._fails(free_threaded=False) or (self._forced and self._fails(free_threaded=True)):
                    break

    def _round(self, number: int, folder: str) -> None:
        """Measure each cell that has not failed."""
        taken = self._taken(number, folder)
        if number == 0 and not isinstance(self._way, OneByOne) and self._in_the_way(taken, folder):
            self._way = OneByOne(run_child)
            self._say("the workload's processes cannot be alive together, so they are measured one after the other")
            taken = self._taken(number, folder)
        self._keep(taken, number)

    def _in_the_way(self, taken: Sequence[Taken], folder: str) -> bool:
        """Return whether a process failed that does not alone: of two with one port, say, or a lock on one file."""
        failed = next((each.cell for each in taken if each.answer.kind not in {"measured", "unavailable"}), None)
        return failed is not None and self._ask(Cell.of(failed), folder, {}).kind == "measured"

    def _taken(self, number: int, folder: str) -> list[Taken]:
        """Take the values of a round, and look at the machine at some moment."""
        # With the GIL forced off it comes last, and is no part of a verdict.
        asked = {"results": "yes"} if number < ROUNDS_COMPARED else {}
        around = round_of(number, self._calls * self._call_seconds, lambda cell: self._start(cell, folder, {}, asked),
                          self._left if self._forced else lambda: None)
        groups = self._way.groups([cell.arm for cell, measured in self.found.items() if not measured.failure], around)
        taken: list[Taken] = []
        moment = self._random.randint(0, len(groups))
        for position, group in enumerate([*groups, []]):
            if position == moment:
                self.calibration.take(number)
            if group and (self.has_time() or not self._forced):
                taken += self._way.measure(group, around)
        return taken

    def _keep(self, taken: Sequence[Taken], number: int) -> None:
        measured = [each for each in taken if each.answer.kind == "measured"]
        for each in taken:
            cell = Cell.of(each.cell)
            if each.answer.kind == "measured":
                self._keep_process(self.found[cell], cell, each.answer, number)
            else:
                found, answer = self.found[cell], each.answer
                found.failure, found.unavailable = _why(answer, cell), answer.kind == "unavailable"
                self._say(f"{cell.label}: the workload in {cell.model}: {found.failure}")
        for cell, seconds in seconds_of(measured, "wall").items():
            self.found[cell].wall[number] = seconds
        for cell, seconds in seconds_of(measured, "cpu").items():
            self.found[cell].cpu[number] = seconds

    def _keep_process(self, found: Measured, cell: Cell, answer: Answer, number: int) -> None:
        """Keep what a process tells beside its seconds."""
        if self._builds[cell.label].free_threaded and answer.fields["gil_end"]:
            by = f": {answer.fields['gil_culprit']} turned it on" if "gil_culprit" in answer.fields else ""
            found.flipped = f"the GIL was on at the end of the workload{by}"
        metrics = answer.fields["metrics"]
        found.rss.append(float(metrics["rss"]))
        found.pools = _pools(metrics.get("pools", ""))
        if "compiled" in metrics:
            found.compiled = tuple(str(metrics["compiled"]).split())
        if "import" in metrics:
            found.imports.append(float(metrics["import"]))
        if "given" in metrics:
            found.given.append([str(each) for each in json.loads(metrics["given"]) if each is not None])
        if "queued" in metrics:
            found.idle[number] = fmean(max(0.0, each["seconds"] - each["cpu"] - each["metrics"]["queued"])
                                       for each in answer.fields["values"])

    def _fails(self, *, free_threaded: bool) -> bool:
        """Return whether nothing runs in threads on builds of a kind."""
        alike = [measured for cell, measured in self.found.items()
                 if cell.model == "threads" and self._builds[cell.label].free_threaded is free_threaded]
        return bool(alike) and all(measured.failure for measured in alike)

    def has_time(self) -> bool:
        """Return whether anything is left of the budget."""
        return self._left() > 0

    def thread_counts(self) -> tuple[int, ...]:
        """Return how many threads the workload is measured with; (0,): it chooses itself."""
        if self.workload.kind == "script":
            return (0,)
        return tuple(2**power for power in range(usable_cores().bit_length()) if 2**power <= usable_cores())

    def watched(self, cell: Cell) -> Summary | Missing:
        """Return what the shim saw of one more run of the cell; of one that hangs or crashes, until then."""
        if reason := preload.unavailable():
            return Missing(reason=reason)
        with tempfile.TemporaryDirectory(prefix=temporary.prefix()) as folder:
            records = Path(folder, "gil")
            records.mkdir()
            with self._turn():
                answer = self._ask(cell, folder, preload.environment(str(records)))
            if answer.kind not in {"measured", "hang", "crash"}:
                return Missing(reason=f"the workload failed while its waits were recorded: {_why(answer, cell)}")
            try:
                processes = read_folder(records)
            except BadRecordError as error:
                return Missing(reason=f"what was recorded cannot be read: {error}")
        return summarize(processes) if processes else Missing(reason="the recorded process left nothing")

    def _cells(self) -> list[Cell]:
        counts = self.thread_counts()
        cells = [Cell(label, count) for label in self.benches for count in counts]
        if max(counts) > 1 and not self._forced:   # a function, and several cores
            with_gil = [label for label in self.benches if not self._builds[label].free_threaded]
            cells += [Cell(label, max(counts), model) for label in with_gil for model in OTHER_MODELS]
            cells += [Cell(label, 1, twin=True) for label in with_gil]
        return cells

    def _calibrate(self) -> str:
        """Choose how often the function is called: together PASS_SECONDS, on a build with the GIL.

        Returns:
            Why it fails on each of them; "" when it does not.
        """
        failure = ""
        for label in self.benches:
            if not self._builds[label].free_threaded:
                if not (failure := self._timed(Cell(label, 1))):
                    break
                self._say(f"{label}: the workload: {failure}")
        most = max(self.thread_counts())
        self._calls = max(most, round(PASS_SECONDS / self._call_seconds / most) * most) if self._call_seconds else most
        return failure

    def _timed(self, cell: Cell) -> str:
        """Find out how long a call takes; return why that cannot be done."""
        for _ in range(2):   # one call alone is cold, and may be shorter than the clock can tell
            with tempfile.TemporaryDirectory(prefix=temporary.prefix()) as folder:
                answer = self._ask(cell, folder, {})
            if answer.kind != "measured":
                return _why(answer, cell)
            seconds, queued = float(answer.fields["seconds"]), float(answer.fields["metrics"]["queued"])
            self._call_seconds = max(seconds - queued, seconds / 10) / self._calls
            self._import_seconds = max(self._import_seconds, float(answer.fields["metrics"]["import"]))
            calls = round(LEAST_PASS_SECONDS / self._call_seconds)
            if calls <= self._calls:
                break
            self._calls = calls
        return ""

    def _patience(self) -> float:
        """Return how many seconds without progress are a hang; one costs what is left of the budget at most."""
        usual = max(LEAST_SILENT_SECONDS, PATIENCE * (self._import_seconds + self._call_seconds))
        return min(SILENT_SECONDS, max(usual, self._left()) if self.workload.kind == "script" else usual)

    def _ask(self, cell: Cell, folder: str, extra: Mapping[str, str]) -> Answer:
        start = self._start(cell, folder, extra, {})
        return run_child(start.python, start.spec, start.environment)

    def _start(self, cell: Cell, folder: str, extra: Mapping[str, str], asked: Mapping[str, str]) -> Start:
        """Return how the process of a cell is started, with variables and parameters of its own."""
        bench, build = self.benches[cell.label], self._builds[cell.label]
        project = bench.placed(self.project)
        places = (*bench.folders, project.root)
        model = "free-threaded" if build.free_threaded and cell.model == "threads" else cell.model
        spec = TrialSpec(
            name=f"workload/{cell.label}/{cell.model}/{cell.workers}", folder=folder, program=PROGRAM,
            progress_timeout=self._patience(), build=cell.label,
            model=model, workers=max(cell.workers, 1), gil=None,
            parameters={"kind": self.workload.kind, "name": self._name(bench),
                        "words": json.dumps(self.workload.words),
                        "folders": json.dumps(list(map(str, places))), **asked},
            scales={"calls": self._calls, "cores": usable_cores(), "limit": LONGEST_SECONDS}, host=sys.executable,
            suite=False,
        )
        environment = child_environment(places) | dict(extra)
        if bench.compiled:
            environment |= compiled_into(bench.compiled)
        if self._forced and build.free_threaded:
            environment |= FORCED_OFF
        return Start(python=str(bench.python), spec=spec, environment=environment)

    def _name(self, bench: Bench) -> str:
        """Return what is run on a build: of a script of the project's, the one beside the built modules."""
        name = self.workload.name
        return bench.placed_file(self.project, name) if self.workload.kind == "script" else name


def _pools(text: str) -> dict[str, int]:
    """Return what the measured process wrote: "OpenBLAS=2 OpenMP=2"."""
    return {name: int(threads) for name, _, threads in (each.partition("=") for each in text.split())}


def _why(answer: Answer, cell: Cell) -> str:
    """Return why there is no measurement; the budget is what limits its time here, and there is no --timeout."""
    reason = answer.reason.partition("; raise --timeout")[0]
    if cell.model == "subinterpreters" and (refusal := refusal_in(answer.output)):
        return refusal
    if answer.kind == "hang" and cell.workers > 1:
        reason += "; its threads are in each other's way, or wait for ever"
    return reason
