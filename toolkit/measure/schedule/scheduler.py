"""Interleaved rounds over all arms, one fresh process per arm and round; saved after each workload of a round.

Measuring one arm to its end and then the next compares minutes of the machine, not arms.  So every round measures every
arm once that needs it, and statistics pair the values of one round, and of one pass where arms take them in turn.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Container, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.measure.process.child_base import place_lines
from gilscope.toolkit.measure.process.inherited import inherited
from gilscope.toolkit.measure.schedule.failing import given_up
from gilscope.toolkit.measure.schedule.measure_round import OneByOne, Round, Taken
from gilscope.toolkit.model import OUT_OF_BUDGET, WRONG_RESULT, Cell, Failure, Note, Observation, Run, Skip
from gilscope.toolkit.stats.looks import look_after

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gilscope.toolkit.measure.plan.settings import Settings
    from gilscope.toolkit.measure.process.running import Answer
    from gilscope.toolkit.measure.schedule.measure_round import Way
    from gilscope.toolkit.measure.schedule.start_child import Start, Starts
    from gilscope.toolkit.store import Store

FUTILE_RETAKES = 4  # starved again in a row, from the first on: enough to know that the machine is busy
Turn = Callable[[], AbstractContextManager[None]]
Needed = Callable[[Run, Sequence[Cell]], Container[Cell]]   # of some cells, those that the next rounds have to measure


class Reporter(Protocol):
    """Who is told how far it is."""

    def round_begins(self, index: int, rounds: int, arms: int) -> None:
        """Say that round `index` of `rounds` begins and has `arms` arms."""

    def arm_begins(self, cell: Cell) -> None:
        """Say which cell is being measured, or started to take its values in turn."""

    def pass_ends(self, done: int, passes: int) -> None:
        """Say that every arm of a workload has taken the value `done` of `passes`."""

    def arm_ends(self, cell: Cell, seconds_left: float | None) -> None:
        """Say that the cell is done and about how long the rest takes."""

    def note(self, text: str) -> None:
        """Say something worth a line."""


class Scheduler:
    """One run in progress."""

    def __init__(
        self,
        run: Run,
        store: Store,
        arms: Starts,
        settings: Settings,
        reporter: Reporter,
        way: Way | None = None,
        clock: Callable[[], float] = time.monotonic,
        needed: Needed | None = None,
        only: Container[Cell] | None = None,
        turn: Turn = nullcontext,
    ) -> None:
        """Prepare to go on with a run.

        Args:
            run: What there is already: its cells, and complete rounds when it is resumed.
            store: Where it is kept.
            arms: Says how a measured process is started.
            settings: How hard to measure.
            reporter: Told how far it is.
            way: How the cells of a round are measured; None: one process after the other.
            clock: Seconds.
            needed: Asked after some of the rounds, see `looks`: what is not needed gets no more rounds for now, and
                the run ends when nothing is.  None: every cell gets every round.
            only: The cells to measure; None: all that the run has.
            turn: Held for each round: the machine's turns, see `machine.alone`.
        """
        self._run = run
        self._turn = turn
        self._store = store
        self._arms = arms
        self._settings = settings
        self._reporter = reporter
        self._way = way or OneByOne()
        self._alone = self._way if isinstance(self._way, OneByOne) else OneByOne()   # for what is measured again
        self._clock = clock
        self._began = clock()
        self._done = run.rounds_done
        self._needed = needed
        self._looks = run.looks
        self._answered = frozenset(run.answered)
        self._whole = 0   # rounds measured in this session, to their end
        self._took: dict[Cell, list[float]] = {}   # seconds, of each round
        self._loops: dict[Cell, int] = {}
        self._only = run.cells if only is None else only
        self._failures = list(run.failures)
        self._earlier = len(self._failures)
        # What failed before the first round was tried already; what failed in an earlier session gets a new chance.
        self._settled = {each.cell for each in run.failures
                         if each.kind == WRONG_RESULT or each.round >= run.rounds_done}
        # A run that goes on has a budget of its own.
        self._skips = [skip for skip in run.skips if skip.reason != OUT_OF_BUDGET]
        self._notes = list(run.notes)
        for measurement in run.measurements:
            if measurement.observations:
                self._loops[_untwinned(measurement.cell)] = measurement.observations[-1].loops

    def go(self) -> Run:
        """Measure the rounds that are missing and return the run; it is saved whatever ends it.

        Raises:
            KeyboardInterrupt: after what was measured was saved.
        """
        stopped = "rounds"
        if sentence := inherited().sentence():
            self._add_note(sentence)
        try:
            while self._done < self._settings.rounds:
                if not self._active():
                    stopped = "failures"
                    break
                if self._answered and not self._to_measure():
                    stopped = "answered" if self._settings.resolution is None else "resolution"
                    break
                if self._over_budget():
                    stopped = "budget"
                    break
                with self._turn():
                    complete = self._round(self._done)
                # Cut short, the first round is better than none; a later one is made again when the run goes on.
                self._done += complete or self._done == 0
                if complete:
                    self._look()
                self._save(self._done, "running")
                if not complete:
                    stopped = "budget"
                    break
        except KeyboardInterrupt:
            self._save(self._done, "interrupted")
            raise
        return self._save(self._done, stopped)

    def _save(self, done: int, stopped: str) -> Run:
        run = self._so_far(done, stopped)
        self._store.save(run)
        return run

    def _so_far(self, done: int, stopped: str) -> Run:
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
        """Find out which cells need more rounds, where it is time to."""
        if self._needed is None or self._done >= self._settings.rounds or not look_after(self._done):
            return
        active, before = self._active(), self._answered
        needed = self._needed(self._so_far(self._done, "running"), active)
        self._answered = frozenset(cell for cell in active if cell not in needed)
        self._looks += 1
        clear, cells = (sum(not cell.twin for cell in each) for each in (self._answered, active))
        if self._answered != before and clear < cells:
            self._reporter.note(
                f"after {self._done} rounds {clear} of {cells} cells need no more: their answers are clear")

    def _over_budget(self) -> bool:
        if self._settings.budget is None or not self._whole:
            return False
        return self._clock() - self._began + self._expected(self._to_measure()) > self._settings.budget

    def _expected(self, cells: Sequence[Cell]) -> float:
        """Return how long a round of `cells` takes, by what they took in this session."""
        return sum(statistics.median(self._took[cell]) for cell in cells if cell in self._took)

    def _active(self) -> list[Cell]:
        valued = {measurement.cell for measurement in self._store.measurements()}
        ended = self._settled | given_up(self._failures[self._earlier:], valued) | {skip.cell for skip in self._skips}
        return [cell for cell in self._run.cells if cell in self._only and cell not in ended]

    def _to_measure(self) -> list[Cell]:
        return [cell for cell in self._active() if cell not in self._answered]

    def _round(self, index: int) -> bool:
        """Measure every arm once; return False when the budget ended it before its time."""
        began = self._clock()
        cells = self._to_measure()
        around = self._around(index)
        expected = self._expected(cells) if self._whole else None
        self._reporter.round_begins(index, self._settings.rounds, len(cells))
        before = {failure.reason for failure in self._failures}
        failed = {failure.cell for failure in self._failures}
        known = len(self._failures)
        starved: list[tuple[Cell, Observation]] = []
        groups = self._way.groups(cells, around)
        measured = 0
        for position, group in enumerate(groups):
            # Later rounds are begun only when they fit, so they are not cut.
            if not self._whole and position and self._spent():
                self._give_up([cell for group in groups[position:] for cell in group])
                return False
            group_began = self._clock()
            taken = self._way.measure(group, around)
            measured += len(taken)
            for each in taken:
                observation = self._keep(each, index)
                if observation is not None and observation.starved:
                    starved.append((each.cell, observation))
                self._reporter.arm_ends(each.cell, self._seconds_left(
                    index, expected or (self._clock() - began) / measured * len(cells), began))
            if lacking := set(group) - {each.cell for each in taken}:
                self._give_up([cell for cell in group if cell in lacking])
                self._give_up([cell for group in groups[position + 1:] for cell in group])
                return False
            for cell in group:
                self._took.setdefault(cell, []).append((self._clock() - group_began) / len(group))
            if len(group) > 1:
                self._save(self._done, "running")
        retakes_began = self._clock()
        self._retake(starved, index, retakes_began - began)
        new = [failure.reason for failure in self._failures[known:]
               if failure.cell not in failed and not failure.cell.twin]
        if again := len(new) - len(set(new) - before):
            self._reporter.note(f"{again} more cell{'s' if again > 1 else ''} failed in the same way")
        self._whole += 1
        for cell in cells:
            self._took[cell][-1] += (self._clock() - retakes_began) / len(cells)
        return True

    def _around(self, index: int) -> Round:
        return Round(
            index=index, settings=self._settings, baseline=self._run.baseline, start=self._start,
            keep_loops=self._keep_loops, reporter=self._reporter, seconds_left=self._seconds_to_cut,
        )

    def _start(self, cell: Cell) -> Start:
        return self._arms.start(cell, self._settings, self._loops.get(_untwinned(cell), 0))

    def _keep_loops(self, cell: Cell, loops: int) -> None:
        self._loops.setdefault(_untwinned(cell), loops)

    def _seconds_to_cut(self) -> float | None:
        """Return what is left of the budget for a round that it may cut: the first."""
        if self._settings.budget is None or self._whole:
            return None
        return self._settings.budget - (self._clock() - self._began)

    def _spent(self) -> bool:
        return self._settings.budget is not None and self._clock() - self._began > self._settings.budget

    def _give_up(self, cells: Sequence[Cell]) -> None:
        valued = {measurement.cell for measurement in self._store.measurements()}
        self._skips += [Skip(cell=cell, reason=OUT_OF_BUDGET) for cell in cells if cell not in valued]

    def _retake(self, starved: list[tuple[Cell, Observation]], index: int, round_seconds: float) -> None:
        """Measure starved cells again while that takes no longer than the round did; keep the least disturbed.

        When the first few are all starved again, the machine stays busy and the rest of the time is worth more rounds.
        """
        deadline = self._clock() + round_seconds
        for attempt in range(1, self._settings.retakes + 1):
            still: list[tuple[Cell, Observation]] = []
            for tried, (cell, observation) in enumerate(starved):
                futile = len(still) == tried >= FUTILE_RETAKES
                if futile or self._clock() > deadline or self._spent():
                    return
                (taken,) = self._alone.measure([cell], self._around(index))
                again = self._keep(taken, index, attempt, better_than=observation)
                if again is not None and again.starved:
                    still.append((cell, again))
            starved = still

    def _keep(self, taken: Taken, index: int, retakes: int = 0, better_than: Observation | None = None) \
            -> Observation | None:
        """Return what is kept of a measured process, None when it failed."""
        cell, answer = taken.cell, taken.answer
        if answer.kind == "unavailable":
            self._skips.append(Skip(cell=cell, reason=answer.reason))
            return None
        if answer.kind != "measured":
            self._fail(cell, answer, index)
            return None
        if answer.note:
            self._add_note(f"{cell.build}, {cell.runner}: a measured process {answer.note}")
        details = {**answer.fields, **taken.details, "round": index, "retakes": retakes}
        if better_than is not None and not _less_disturbed(details, better_than):
            return better_than
        try:
            observation = self._store.add(cell, taken.start.spec.result_path, details)
        except BadFileError as error:   # what clears temporary folders came between, or the disk was full
            self._fail(cell, dataclasses.replace(answer, kind="exit", reason=str(error)), index)
            return None
        self._store.keep_files(cell, answer.fields.get("files", {}))
        self._keep_loops(cell, observation.loops)
        return observation

    def _fail(self, cell: Cell, answer: Answer, index: int) -> None:
        """Keep a failure, and tell it unless one like it has been told."""
        frames = answer.fields.get("frames", ())
        reason = f"{answer.reason} ({frames[-1][0]})" if frames else answer.reason
        if all(failure.reason != reason for failure in self._failures):
            workers = f"{cell.workers} worker{'s' if cell.workers > 1 else ''}"
            text = f"{cell.workload}, {cell.runner} with {workers} on {cell.build}: {answer.reason}"
            self._reporter.note("\n  ".join([text, *place_lines(frames)]))
        self._failures.append(Failure(cell=cell, kind=answer.kind, reason=reason, output=answer.output, round=index))

    def _add_note(self, text: str) -> None:
        if all(note.text != text for note in self._notes):
            self._notes.append(Note(text=text))

    def _seconds_left(self, index: int, one_round: float, began: float) -> float | None:
        """Estimate the rest from what a round takes; cut by the budget."""
        elapsed = self._clock() - began
        left = one_round * (self._settings.rounds - index - 1) + max(0.0, one_round - elapsed)
        if self._settings.budget is not None:
            left = min(left, max(0.0, self._settings.budget - (self._clock() - self._began)))
        return left


def _untwinned(cell: Cell) -> Cell:
    return dataclasses.replace(cell, twin=False)


def _less_disturbed(details: Mapping[str, object], earlier: Observation) -> bool:
    evidence = details["evidence"]
    others = evidence.get("others_cores") if isinstance(evidence, dict) else None
    return not details["starved"] or (others or 0.0) < (earlier.evidence.others_cores or 0.0)
