"""Measure the user's workload in rounds: one process for each build, model and number of workers, in turns if possible.

Processes run in the scratch environments.  Waits and parked time come from the preloaded shim, in processes of their
own, so that timed processes are not watched.  `schedule` measures a round; `speed` draws conclusions.
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
from typing import TYPE_CHECKING

from gilscope.toolkit import temporary
from gilscope.toolkit.cores import usable_cores
from gilscope.toolkit.evaluate.packages.judge import refusal_in
from gilscope.toolkit.evaluate.project.machine_calibration import Calibration
from gilscope.toolkit.evaluate.project.measured import FORCED_OFF, SEED, CellMeasurements
from gilscope.toolkit.evaluate.project.where_to_run import compiled_into
from gilscope.toolkit.evaluate.project.workload.name_check import is_function, script_of
from gilscope.toolkit.evaluate.project.workload.schedule import WorkloadCell, round_of, seconds_of
from gilscope.toolkit.evaluate.sections import Missing, workload_failed
from gilscope.toolkit.gil import preload
from gilscope.toolkit.gil.records import BadRecordError, read_folder
from gilscope.toolkit.gil.summary import RecordingSummary, summarize
from gilscope.toolkit.measure.child.program import ProgramSpec
from gilscope.toolkit.measure.measured_process import ProcessAnswer, hang_reason, run_child
from gilscope.toolkit.measure.preparation import OUR_NAME, child_environment
from gilscope.toolkit.measure.rounds import OneAtATime, ProcessStart
from gilscope.toolkit.measure.turns import InterleavedPasses
from gilscope.toolkit.stats.verdict import MIN_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.project.measured import HoldMachine
    from gilscope.toolkit.evaluate.project.where_to_run import RunSite
    from gilscope.toolkit.measure.rounds import ArmResult, RoundMethod
    from gilscope.toolkit.model import Build

PROGRAM = "gilscope.toolkit.evaluate.project.workload.workload_program"
MOST_ROUNDS = 10
LEAST_ROUNDS = MIN_ROUNDS   # fewer rounds allow no statement
ROUNDS_COMPARED = 3       # rounds in which a build's results are compared: one that differs in some only is ignored
PASS_SECONDS = 0.3        # for all calls of a function in one pass
LONGEST_SECONDS = 4.0     # of a pass; the rest is extrapolated from the calls made by then
LEAST_PASS_SECONDS = 0.1  # enough to tell how long one call takes
SILENT_SECONDS = 300.0    # for a script, which reports no progress
LEAST_SILENT_SECONDS = 60.0
PATIENCE = 20             # times the duration of the import and a call with the GIL
OTHER_MODELS = ("subinterpreters", "processes")   # besides threads, on builds with a GIL


@dataclass(frozen=True, slots=True, kw_only=True)
class UserWorkload:
    """The user's workload: "script" with its path and arguments, or "function" with its "package.module:name"."""

    kind: str
    name: str
    words: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str, root: Path) -> UserWorkload | Missing:
        """Return the workload that the user named."""
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

    def __init__(  # noqa: PLR0913 - most have a default
        self, project: Project, workload: UserWorkload, run_sites: Mapping[str, RunSite],
        builds: Mapping[str, Build], *, left: Callable[[], float], say: Callable[[str], None],
        forced: bool = False, hold_machine: HoldMachine = nullcontext,
    ) -> None:
        """Set up; `left` returns seconds, `run_sites` and `builds` are by label; `hold_machine` is held during a round.

        With `forced` the GIL stays off on free-threaded builds, and only threads are measured.
        """
        self.project = project
        self.workload = workload
        self.run_sites = run_sites
        self._builds = builds
        self._left = left
        self._say = say
        self._hold_machine = hold_machine
        self._random = random.Random(SEED)
        self._forced = forced
        # A script runs from start to end in one process, so it yields one value.
        self._method: RoundMethod = OneAtATime(run_child) if workload.kind == "script" else InterleavedPasses()
        self._calls = 1
        self._call_seconds = self._import_seconds = 0.0
        self.found: dict[WorkloadCell, CellMeasurements] = {}
        self.calibration = Calibration()   # in the same rounds
        self.round_seconds = 0.0           # duration of the longest round
        self.out_of_time = False           # no time was left for another round

    def measure(self) -> None:
        """Measure rounds until time is up or there are enough."""
        cells = self._cells()
        if self._left() <= 0:
            return
        with self._hold_machine():
            failure = self._calibrate() if self.workload.kind == "function" else ""
        self.found = {cell: CellMeasurements(failure=failure) for cell in cells}
        if failure:   # it fails with the GIL, so nothing can be learnt about running without it
            return
        with tempfile.TemporaryDirectory(prefix=temporary.prefix()) as folder:
            for number in range(MOST_ROUNDS):
                # Reserve time for another round and for the watched runs: about the same number of processes.
                if number >= LEAST_ROUNDS and 2 * self.round_seconds > self._left():
                    self.out_of_time = True
                    break
                how = ", the GIL forced off" * self._forced
                self._say(f"workload{how}: round {number + 1} of at most {MOST_ROUNDS}")
                with self._hold_machine():
                    began = time.monotonic()
                    self._round(number, folder)
                    self.round_seconds = max(self.round_seconds, time.monotonic() - began)
                # If the GIL is forced off, there may still be other models to compare.
                if self._fails(free_threaded=False) or (self._forced and self._fails(free_threaded=True)):
                    break

    def _round(self, number: int, folder: str) -> None:
        """Measure each cell that has not failed."""
        taken = self._taken(number, folder)
        if number == 0 and not isinstance(self._method, OneAtATime) and self._in_the_way(taken, folder):
            self._method = OneAtATime(run_child)
            self._say("the workload's processes cannot be alive together, so they are measured one after the other")
            taken = self._taken(number, folder)
        self._keep(taken, number)

    def _in_the_way(self, taken: Sequence[ArmResult], folder: str) -> bool:
        """Return True if a process failed that succeeds alone: two may share a port, or a lock on a file."""
        failed = next((each.cell for each in taken if each.answer.kind not in {"measured", "unavailable"}), None)
        return failed is not None and self._ask(WorkloadCell.of(failed), folder, {}).kind == "measured"

    def _taken(self, number: int, folder: str) -> list[ArmResult]:
        """Measure the values of a round, with one look at the machine."""
        # The round with the GIL forced off comes last and is not part of a verdict.
        asked = {"results": "yes"} if number < ROUNDS_COMPARED else {}
        around = round_of(number, self._calls * self._call_seconds, lambda cell: self._start(cell, folder, {}, asked),
                          self._left if self._forced else lambda: None)
        cells = [cell.arm for cell, measured in self.found.items() if not measured.failure]
        groups = self._method.groups(cells, around)
        taken: list[ArmResult] = []
        moment = self._random.randint(0, len(groups))
        for position, group in enumerate([*groups, []]):
            if position == moment:
                self.calibration.take(number)
            if group and (self.has_time() or not self._forced):
                taken += self._method.measure(group, around)
        return taken

    def _keep(self, taken: Sequence[ArmResult], number: int) -> None:
        measured = [each for each in taken if each.answer.kind == "measured"]
        for each in taken:
            cell = WorkloadCell.of(each.cell)
            if each.answer.kind == "measured":
                self._keep_process(self.found[cell], cell, each.answer)
            else:
                found, answer = self.found[cell], each.answer
                found.failure, found.unavailable = _why(answer, cell), answer.kind == "unavailable"
                self._say(f"{cell.label}: the workload in {cell.model}: {found.failure}")
        for cell, seconds in seconds_of(measured, "wall").items():
            self.found[cell].wall[number] = seconds
        for cell, seconds in seconds_of(measured, "cpu").items():
            self.found[cell].cpu[number] = seconds

    def _keep_process(self, found: CellMeasurements, cell: WorkloadCell, answer: ProcessAnswer) -> None:
        """Store the details that a process reports besides its seconds."""
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

    def _fails(self, *, free_threaded: bool) -> bool:
        """Return True if nothing runs in threads on any build of a kind."""
        alike = [measured for cell, measured in self.found.items()
                 if cell.model == "threads" and self._builds[cell.label].free_threaded is free_threaded]
        return bool(alike) and all(measured.failure for measured in alike)

    def has_time(self) -> bool:
        """Return True if any time is left."""
        return self._left() > 0

    def thread_counts(self) -> tuple[int, ...]:
        """Return the numbers of threads to measure the workload with; (0,) if it chooses itself."""
        if self.workload.kind == "script":
            return (0,)
        return tuple(2**power for power in range(usable_cores().bit_length()) if 2**power <= usable_cores())

    def watched(self, cell: WorkloadCell) -> RecordingSummary | Missing:
        """Return the shim's record of another run of the cell; up to the failure if it hangs or crashes."""
        if reason := preload.unavailable():
            return Missing(reason=reason)
        with tempfile.TemporaryDirectory(prefix=temporary.prefix()) as folder:
            records = Path(folder, "gil")
            records.mkdir()
            with self._hold_machine():
                answer = self._ask(cell, folder, preload.environment(str(records)))
            if answer.kind not in {"measured", "hang", "crash"}:
                return workload_failed(_why(answer, cell), "while its waits were recorded")
            try:
                processes = read_folder(records)
            except BadRecordError as error:
                return Missing(reason=f"what was recorded cannot be read: {error}")
        return summarize(processes) if processes else Missing(reason="the recorded process left nothing")

    def _cells(self) -> list[WorkloadCell]:
        counts = self.thread_counts()
        cells = [WorkloadCell(label, count) for label in self.run_sites for count in counts]
        if max(counts) > 1 and not self._forced:   # a function, and several cores
            with_gil = [label for label in self.run_sites if not self._builds[label].free_threaded]
            cells += [WorkloadCell(label, max(counts), model) for label in with_gil for model in OTHER_MODELS]
            cells += [WorkloadCell(label, 1, twin=True) for label in with_gil]
        return cells

    def _calibrate(self) -> str:
        """Choose the number of calls so that they take PASS_SECONDS together, on a build with the GIL.

        Returns:
            The reason why it fails on each such build; "" if it does not.
        """
        failure = ""
        for label in self.run_sites:
            if not self._builds[label].free_threaded:
                if not (failure := self._timed(WorkloadCell(label, 1))):
                    break
                self._say(f"{label}: the workload: {failure}")
        most = max(self.thread_counts())
        self._calls = max(most, round(PASS_SECONDS / self._call_seconds / most) * most) if self._call_seconds else most
        return failure

    def _timed(self, cell: WorkloadCell) -> str:
        """Measure the duration of a call; return the reason if that is impossible."""
        for _ in range(2):   # a single call is cold, and may be shorter than the clock's resolution
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
        """Return the seconds without progress that count as a hang, at most what is left of the budget."""
        usual = max(LEAST_SILENT_SECONDS, PATIENCE * (self._import_seconds + self._call_seconds))
        return min(SILENT_SECONDS, max(usual, self._left()) if self.workload.kind == "script" else usual)

    def _ask(self, cell: WorkloadCell, folder: str, extra: Mapping[str, str]) -> ProcessAnswer:
        start = self._start(cell, folder, extra, {})
        return run_child(start.python, start.spec, start.environment)

    def _start(self, cell: WorkloadCell, folder: str, extra: Mapping[str, str],
               asked: Mapping[str, str]) -> ProcessStart:
        """Return how to start the process of a cell, with its own variables and parameters."""
        run_site, build = self.run_sites[cell.label], self._builds[cell.label]
        project = run_site.placed(self.project)
        places = (*run_site.folders, project.root)
        model = "free-threaded" if build.free_threaded and cell.model == "threads" else cell.model
        spec = ProgramSpec(
            name=f"workload/{cell.label}/{cell.model}/{cell.workers}", folder=folder, program=PROGRAM,
            progress_timeout=self._patience(), build=cell.label,
            model=model, workers=max(cell.workers, 1), gil=None,
            parameters={"kind": self.workload.kind, "name": self._name(run_site),
                        "words": json.dumps(self.workload.words),
                        "folders": json.dumps(list(map(str, places))), **asked},
            scales={"calls": self._calls, "cores": usable_cores(), "limit": LONGEST_SECONDS}, host=sys.executable,
            suite=False,
        )
        environment = child_environment(places) | dict(extra)
        if run_site.compiled:
            environment |= compiled_into(run_site.compiled)
        if self._forced and build.free_threaded:
            environment |= FORCED_OFF
        return ProcessStart(python=str(run_site.python), spec=spec, environment=environment)

    def _name(self, run_site: RunSite) -> str:
        """Return the name of the workload on a build; a script of the project is the copy beside the built modules."""
        name = self.workload.name
        return run_site.placed_file(self.project, name) if self.workload.kind == "script" else name


def _pools(text: str) -> dict[str, int]:
    """Parse the pools in the output of the measured process: "OpenBLAS=2 OpenMP=2"."""
    return {name: int(threads) for name, _, threads in (each.partition("=") for each in text.split())}


def _why(answer: ProcessAnswer, cell: WorkloadCell) -> str:
    """Return why there is no measurement; here the limit of time is the budget, not --timeout."""
    reason = answer.reason if answer.hung_seconds is None else hang_reason(answer.hung_seconds)
    if cell.model == "subinterpreters" and (refusal := refusal_in(answer.output)):
        return refusal
    if answer.kind == "hang" and cell.workers > 1:
        reason += "; its threads are in each other's way, or wait for ever"
    return reason
