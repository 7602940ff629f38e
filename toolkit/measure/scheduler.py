"""Interleaved rounds over all arms, one fresh process per arm and round; saved after each workload of a round.

Measuring one arm to its end before the next would compare minutes of the machine, not arms.  So every round measures
each arm once, and statistics pair the values of one round, and of one pass if arms take values in turn.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Container, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.measure.child.user_code import place_lines
from gilscope.toolkit.measure.disturbance import (
    attempt_load,
    disturbed_groups,
    has_clean_cell,
    loads_of,
    needs_several,
)
from gilscope.toolkit.measure.failed_cells import given_up
from gilscope.toolkit.measure.inherited_limits import inherited_limits
from gilscope.toolkit.measure.measured_process import TEARDOWN_SECONDS
from gilscope.toolkit.measure.rounds import ArmResult, OneAtATime, Round
from gilscope.toolkit.model import (
    MOST_LOOKS,
    WRONG_RESULT,
    Cell,
    Failure,
    FailureKind,
    Note,
    Run,
    RunEnd,
    Skip,
    SkipKind,
)
from gilscope.toolkit.stats.interim_looks import includes_clear_cells, is_look_due
from gilscope.toolkit.units import counted, few

if TYPE_CHECKING:
    from gilscope.toolkit.measure.disturbance import ArmLoad
    from gilscope.toolkit.measure.measured_process import ProcessAnswer
    from gilscope.toolkit.measure.rounds import ProcessStart, ProcessStarter, RoundMethod
    from gilscope.toolkit.measure.settings import Settings
    from gilscope.toolkit.store import Store

HoldMachine = Callable[[], AbstractContextManager[None]]
Needed = Callable[[Run, Sequence[Cell]], Container[Cell]]   # returns those of the cells that need more rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class _FailureCause:
    """The cause of failures that are reported once; their texts may differ, as by a number in them."""

    workload: str
    kind: FailureKind
    code: str    # of `ProcessAnswer`
    place: str   # of the user's code: "mine.py:7 in work"


class RunProgress(Protocol):
    """Callbacks for the progress of a run."""

    def on_round_start(self, index: int, rounds: int, arms: int, *, may_stop: bool) -> None:
        """Report that round `index` of the session's `rounds` begins, with `arms` arms.

        With `may_stop` it ends earlier if all answers are clear: `rounds` and the seconds left are the most.
        """

    def on_arm_start(self, cell: Cell) -> None:
        """Report that a process of `cell` is being started."""

    def on_pass_end(self, done: int, passes: int) -> None:
        """Report that every arm of a workload has taken value number `done` of `passes`."""

    def on_arms_end(self, count: int, seconds_left: float) -> None:
        """Report that further `count` arms of the round are done; the rest of the run takes about `seconds_left`."""

    def note(self, text: str) -> None:
        """Show a line to the user."""


class Scheduler:
    """One run in progress."""

    def __init__(  # noqa: PLR0913 - the optional ones are seams
        self,
        run: Run,
        store: Store,
        arms: ProcessStarter,
        settings: Settings,
        reporter: RunProgress,
        method: RoundMethod | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        needed: Needed | None = None,
        only: Container[Cell] | None = None,
        hold_machine: HoldMachine = nullcontext,
        most_starved: int | None = None,
    ) -> None:
        """Prepare to start or resume a run.

        Args:
            run: Its cells, and its complete rounds if it is resumed.
            store: The store that it is saved to.
            arms: Starts the measured processes.
            settings: The effort of the run.
            reporter: Callbacks for progress.
            method: The method of measuring the cells of a round; None: one process at a time.
            clock: Returns seconds.
            needed: Returns the cells that need more rounds; called at interim looks, see `stats.interim_looks`.  The
                others get no rounds for now, and the run ends if no cell needs any.  None: every cell gets every round.
            only: The cells to measure; None: all cells of the run.
            hold_machine: A context manager held during each round, see `machine_lock`.
            most_starved: The rounds in a row without a clean cell after which the run stops; None: it never does.
        """
        self._run = run
        self._hold_machine = hold_machine
        self._store = store
        self._arms = arms
        self._settings = settings
        self._reporter = reporter
        self._method = method or OneAtATime()
        self._clock = clock
        self._began = clock()
        self._done = run.rounds_done
        self._first = run.sessions[-1].first_round   # of the session
        self._needed = needed
        self._looks = run.looks
        self._answered = frozenset(run.answered)
        self._whole = 0   # complete rounds since then
        self._most_starved = most_starved
        self._clean: list[bool] = []   # whether each round of this scheduler had a clean cell
        self._starved: dict[Cell, tuple[bool, bool]] = {}   # of the round: whether it needs several cores; lacked them
        self._took: dict[Cell, list[float]] = {}   # seconds, of each round, without retakes
        self._retakes_took: list[float] = []       # seconds, of each round, per cell of the round
        self._retaken = 0                          # processes
        self._loops: dict[Cell, int] = {}
        self._only = run.cells if only is None else only
        self._failures = list(run.failures)
        self._earlier = len(self._failures)
        self._reported: set[_FailureCause] = set()
        self._alike = 0   # cells that failed for the first time in this round, by a cause that had been reported
        # Failures of the trial are final; cells that failed before the run was resumed are tried again.
        self._settled = {each.cell for each in run.failures
                         if each.kind == WRONG_RESULT or each.round >= run.rounds_done}
        # A resumed run has a new budget.
        self._skips = [skip for skip in run.skips if skip.kind != SkipKind.OUT_OF_BUDGET]
        self._notes = list(run.notes)
        for measurement in run.measurements:
            if measurement.observations:
                self._loops[_without_aa(measurement.cell)] = measurement.observations[-1].loops

    def go(self) -> Run:
        """Measure the missing rounds and return the run; it is saved whatever ends it.

        Raises:
            KeyboardInterrupt: After all values were saved.
        """
        stopped: RunEnd = "rounds"
        if sentence := inherited_limits().sentence():
            self._add_note(sentence)
        try:
            while self._done < self._settings.rounds:
                if reason := self._reason_to_stop():
                    stopped = reason
                    break
                with self._hold_machine():
                    complete = self._round(self._done)
                # An incomplete first round is better than none; a later one is repeated when the run is resumed.
                self._done += complete or self._done == self._first
                self._clean.append(has_clean_cell([*self._starved.values()]))
                if complete:
                    self._look()
                self._save(self._done, "running")
                if not complete:
                    stopped = "budget"
                    break
        except KeyboardInterrupt:
            self._save(self._done, "interrupted")
            raise
        return self._save(self._done, "starved" if self._is_starved(stopped) else stopped)

    def _reason_to_stop(self) -> RunEnd | None:
        """Return why no further round is measured; None: one is."""
        if not self._active():
            return "failures"
        if self._answered and not self._open():
            return "answered" if self._settings.resolution is None else "resolution"
        if self._is_starved():
            return "starved"
        return "budget" if self._over_budget() else None

    def _is_starved(self, stopped: RunEnd = "running") -> bool:
        """Return True if no cell was clean in the last rounds; one is enough if the budget allowed no more."""
        if self._most_starved is None:
            return False
        last = self._clean[-self._most_starved:]
        return not any(last) and len(last) >= (1 if stopped == "budget" else self._most_starved)

    def _save(self, done: int, stopped: RunEnd) -> Run:
        run = self._so_far(done, stopped)
        self._store.save(run)
        return run

    def _so_far(self, done: int, stopped: RunEnd) -> Run:
        return dataclasses.replace(
            self._run,
            rounds_done=done,
            stopped=stopped,
            measurements=self._store.measurements(),
            failures=tuple(self._failures),
            skips=tuple(self._skips),
            notes=tuple(self._notes),
            looks=self._looks,
            answered=tuple(cell for cell in self._run.cells if cell in self._answered),
        )

    def _look(self) -> None:
        """Have an interim look, if one is due after this round: find out which cells need more rounds."""
        rounds = self._done - self._first
        if self._needed is None or self._done >= self._settings.rounds or not is_look_due(rounds):
            return
        if self._looks >= MOST_LOOKS:   # earlier sessions had all looks that the error budget allows
            return
        active, before = self._active(), self._answered
        # More rounds of this session make its own ratios more precise; only more sessions tell how sessions differ.
        needed = self._needed(self._so_far(self._done, "running").last_session(), active)
        self._answered = frozenset(cell for cell in active if cell not in needed)
        self._looks += 1
        clear, cells = (sum(not cell.twin for cell in each) for each in (self._answered, active))
        if self._answered != before and clear < cells:
            self._reporter.note(
                f"after {rounds} rounds the answers of {clear} of {cells} cells are clear: most rounds now go "
                "to the others")

    def _over_budget(self) -> bool:
        return not self._fits(self._to_measure())

    def _fits(self, cells: Sequence[Cell]) -> bool:
        """Return True if a round of `cells` fits into the budget, as far as that is known."""
        if self._settings.budget is None or not self._whole:
            return True
        return self._clock() - self._began + self._expected_round(cells) <= self._settings.budget

    def _expected_round(self, cells: Sequence[Cell]) -> float:
        """Return the expected seconds of a round of `cells`, by the rounds that this scheduler has measured."""
        retakes = statistics.median(self._retakes_took) if self._retakes_took else 0.0
        return self._expected(cells) + retakes * len(cells)

    def _expected(self, cells: Sequence[Cell]) -> float:
        """Return the expected seconds of `cells` without retakes; new cells count as the average of the others."""
        known = {cell: statistics.median(took) for cell, took in self._took.items()}
        average = statistics.mean(known.values()) if known else 0.0
        return sum(known.get(cell, average) for cell in cells)

    def _active(self) -> list[Cell]:
        valued = {measurement.cell for measurement in self._store.measurements()}
        ended = self._settled | given_up(self._failures[self._earlier:], valued) | {skip.cell for skip in self._skips}
        return [cell for cell in self._run.cells if cell in self._only and cell not in ended]

    def _open(self) -> list[Cell]:
        return [cell for cell in self._active() if cell not in self._answered]

    def _to_measure(self) -> list[Cell]:
        """Return the open cells; in some rounds all cells, unless only the open ones fit into the budget."""
        if includes_clear_cells(self._done - self._first) and self._fits(everything := self._active()):
            return everything
        return self._open()

    def _round(self, index: int) -> bool:
        """Measure every arm once; return False if the budget ended the round early."""
        began = self._clock()
        cells = self._to_measure()
        around = self._around(index)
        self._reporter.on_round_start(
            index - self._first, self._settings.rounds - self._first, len(cells),
            may_stop=self._needed is not None and index + 1 < self._settings.rounds)
        self._alike, self._starved = 0, {}
        loads: dict[Cell, ArmLoad] = {}
        groups = self._method.groups(cells, around)
        for position, group in enumerate(groups):
            # Later rounds start only if they fit into the budget, so only the first may be cut.
            if not self._whole and position and self._spent():
                self._give_up([cell for group in groups[position:] for cell in group])
                return False
            group_began = self._clock()
            taken = self._method.measure(group, around)
            for each in taken:
                self._keep(each, index)
            loads |= loads_of(taken)
            for cell in group:
                self._took.setdefault(cell, []).append((self._clock() - group_began) / len(group))
            rest = [*(cell for later in groups[position + 1:] for cell in later),
                    *(cell for group in disturbed_groups(loads) for cell in group if self._settings.retakes)]
            self._reporter.on_arms_end(len(taken), self._seconds_left(index, cells, rest))
            if lacking := set(group) - {each.cell for each in taken}:
                self._give_up([cell for cell in group if cell in lacking])
                self._give_up([cell for group in groups[position + 1:] for cell in group])
                return False
            if len(group) > 1:
                self._save(self._done, "running")
        retakes_began = self._clock()
        self._retake(loads, index, retakes_began - began)
        if self._alike:
            self._reporter.note(f"{counted(self._alike, 'more cell')} failed in the same way")
        self._whole += 1
        self._retakes_took.append((self._clock() - retakes_began) / len(cells))
        return True

    def _around(self, index: int, attempt: int = 0) -> Round:
        return Round(
            index=index, settings=self._settings, baseline=self._run.baseline, attempt=attempt,
            start=self._start_again if attempt else self._start,
            keep_loops=self._keep_loops, reporter=self._reporter, seconds_left=self._seconds_to_cut,
        )

    def _start_again(self, cell: Cell) -> ProcessStart:
        """Return the process of `cell` with a folder of its own: whether its values count is known after the others."""
        start = self._start(cell)
        self._retaken += 1
        folder = Path(start.spec.folder, f"again-{self._retaken}")
        folder.mkdir(exist_ok=True)
        return dataclasses.replace(start, spec=dataclasses.replace(start.spec, folder=str(folder)))

    def _start(self, cell: Cell) -> ProcessStart:
        return self._arms.start(cell, self._settings, self._loops.get(_without_aa(cell), 0))

    def _keep_loops(self, cell: Cell, loops: int) -> None:
        self._loops.setdefault(_without_aa(cell), loops)

    def _seconds_to_cut(self) -> float | None:
        """Return the rest of the budget in the first round, which it may cut; None in later rounds."""
        if self._settings.budget is None or self._whole:
            return None
        return self._settings.budget - (self._clock() - self._began)

    def _spent(self) -> bool:
        return self._settings.budget is not None and self._clock() - self._began > self._settings.budget

    def _give_up(self, cells: Sequence[Cell]) -> None:
        valued = {measurement.cell for measurement in self._store.measurements()}
        self._skips += [
            Skip(cell=cell, kind=SkipKind.OUT_OF_BUDGET, reason="the budget ended before its first value")
            for cell in cells if cell not in valued
        ]

    def _retake(self, loads: dict[Cell, ArmLoad], index: int, round_seconds: float) -> None:
        """Measure disturbed cells again, together with all cells that they are compared with.

        All of them keep the less disturbed attempt.  The retakes of a round start within its own duration.  If one is
        no less disturbed, the machine stays busy, and the time is better spent on more rounds.
        """
        deadline = self._clock() + round_seconds
        groups = disturbed_groups(loads)
        self._around(index).random("retakes").shuffle(groups)
        for group in groups:
            best = attempt_load(loads[cell] for cell in group)
            for attempt in range(1, self._settings.retakes + 1):
                if not best.disturbed:
                    break
                if self._clock() > deadline or self._spent():
                    return
                taken = self._measure_again(group, index, attempt)
                again = loads_of(taken)
                # An attempt counts for all cells or for none: if one fails, all keep what they have.
                if set(again) != set(group) or (load := attempt_load(again.values())) >= best:
                    return
                best = load
                for each in taken:
                    self._keep(each, index, attempt)

    def _measure_again(self, group: Sequence[Cell], index: int, attempt: int) -> list[ArmResult]:
        """Measure the cells again and report those that fail."""
        around = self._around(index, attempt)
        taken = [each for part in self._method.groups(group, around) for each in self._method.measure(part, around)]
        for each in taken:
            if (kind := each.answer.failure) and kind != "unavailable":
                self._fail(each.cell, kind, each.answer, index)
        return taken

    def _keep(self, taken: ArmResult, index: int, retakes: int = 0) -> None:
        """Store the result of a measured process; it replaces an earlier attempt."""
        cell, answer = taken.cell, taken.answer
        if answer.kind == "unavailable":
            # The build and the model were asked before, so it is the work.
            self._skips.append(Skip(cell=cell, reason=answer.reason, kind=SkipKind.WORK_CANNOT))
            return
        if answer.failure is not None:
            self._fail(cell, answer.failure, answer, index)
            return
        if answer.ended_late:
            self._add_note(late_note(answer.fields.get("threads_left", ())))
        elif answer.note:
            self._add_note(f"{cell.build}, {cell.runner}: a measured process {answer.note}")
        details = {**answer.fields, **taken.details, "round": index, "retakes": retakes,
                   "session": self._run.session_of(index)}
        try:
            observation = self._store.add(cell, taken.values or _file_of(taken), details)
        except BadFileError as error:   # a cleaner of temporary folders deleted it, or the disk is full
            self._fail(cell, "exit", dataclasses.replace(answer, reason=str(error)), index)
            return
        self._store.keep_files(cell, answer.fields.get("files", {}))
        self._keep_loops(cell, observation.loops)
        self._starved[cell] = needs_several(taken), observation.starved

    def _fail(self, cell: Cell, kind: FailureKind, answer: ProcessAnswer, index: int) -> None:
        """Store a failure, and report it unless one with the same cause has been reported."""
        frames = answer.fields.get("frames", ())
        place = frames[-1][0] if frames else ""
        cause = _FailureCause(workload=cell.workload, kind=kind, code=answer.code, place=place)
        if cause not in self._reported:
            self._reported.add(cause)
            workers = counted(cell.workers, "worker")
            text = f"{cell.workload}, {cell.runner} with {workers} on {cell.build}: {answer.reason}"
            self._reporter.note("\n  ".join([text, *place_lines(frames)]))
        elif not cell.twin and all(failure.cell != cell for failure in self._failures):
            self._alike += 1
        reason = f"{answer.reason} ({place})" if place else answer.reason
        self._failures.append(Failure(cell=cell, kind=kind, reason=reason, output=answer.output, round=index))

    def _add_note(self, text: str) -> None:
        if all(note.text != text for note in self._notes):
            self._notes.append(Note(text=text))

    def _seconds_left(self, index: int, cells: Sequence[Cell], rest: Sequence[Cell]) -> float:
        """Estimate the remaining seconds, limited by the budget.

        Args:
            index: The number of this round.
            cells: The cells of this round, and of each later one.
            rest: The cells that this round has yet to measure, starved ones that it measures again among them.
        """
        left = self._expected(rest) + self._expected_round(cells) * (self._settings.rounds - index - 1)
        if self._settings.budget is not None:
            left = min(left, max(0.0, self._settings.budget - (self._clock() - self._began)))
        return left


def late_note(threads: Sequence[str]) -> str:
    """Return one note for all processes that threads of these names kept from ending, whatever their cells."""
    cause = f": {counted(len(threads), 'thread')} ({few(threads)}) still ran" if threads else ""
    return f"measured processes did not end within {TEARDOWN_SECONDS:g} s after their values were taken{cause}"


def _file_of(taken: ArmResult) -> Path:
    """Return the pyperf file of a measured process."""
    assert taken.start is not None, "a method with processes of its own gives their values"
    return taken.start.spec.result_path


def _without_aa(cell: Cell) -> Cell:
    return dataclasses.replace(cell, twin=False)
