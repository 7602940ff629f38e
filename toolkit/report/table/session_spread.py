"""How the ratios of a run differ between its sessions: which pairs share a joint shift, and what that makes of a ratio.

Two things are compared, and each has a joint shift of its own.  Several workers against one: what disturbs a second
core, such as a neighbour on the machine, slows all parallel cells and no serial one.  A build against another, with one
worker or with several: what favours one build's memory layout or allocator in a session does so in all workloads.
Cells of one build that have one worker, or several, on both sides share no such shift.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from gilscope.toolkit.report.table.build_pairs import build_pairs
from gilscope.toolkit.report.table.observations import group_of
from gilscope.toolkit.stats.log_times import RoundLogs
from gilscope.toolkit.stats.ratios import compare
from gilscope.toolkit.stats.sessions import FEWEST, SessionRatio, confidences, joint_shift, own_deviation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gilscope.toolkit.model import Cell, Run
    from gilscope.toolkit.report.table.observations import NoiseGroup
    from gilscope.toolkit.stats.noise import Noise
    from gilscope.toolkit.stats.ratios import Ratio
    from gilscope.toolkit.stats.sessions import JointShift, OwnDeviation

    Parts = dict[int, Ratio]   # by session

CLOCKED = 2   # tables of builds against builds: CPU time of one worker, wall time of several


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildFamily:
    """The comparisons of cells of a build with the same cells of another."""

    first: str
    second: str
    several: bool    # workers


Family = BuildFamily | Literal["workers"]   # "workers": several against one, in the same build


class SessionSpread:
    """The ratios of one clock over sessions."""

    def __init__(
        self, run: Run, sessions: Mapping[NoiseGroup, Mapping[int, RoundLogs[Cell]]],
        noises: Mapping[NoiseGroup, Noise], group: Callable[[Cell], NoiseGroup] = group_of,
    ) -> None:
        """Estimate nothing yet.

        Args:
            run: The run.
            sessions: The logs of each group by session; empty if the run has one session.
            noises: The noise of each group, from differences within sessions.
            group: Returns the group of a cell.
        """
        self._run = run
        self._sessions = sessions
        self._noises = noises
        self._group = group
        self._count = len({session for each in sessions.values() for session in each})
        self._parts: dict[tuple[Cell, Cell], Parts] = {}
        self._shifts: dict[Family, JointShift] = {}
        self._own: OwnDeviation | None = None

    @property
    def sessions(self) -> int:
        """Return the number of sessions in which something was measured; 0 if the run has one."""
        return self._count

    @property
    def several(self) -> bool:
        """True if the run has more than one session."""
        return self._count > 1

    @property
    def known(self) -> bool:
        """True if there are enough sessions to estimate how they differ."""
        return self._count >= FEWEST

    def table_shares(self, together: float) -> tuple[float, float, float]:
        """Divide the error of a table, see `confidences`; without enough sessions, the pairs have all of it."""
        if not self.known:
            return together, 0.0, 0.0
        several = any(cell.workers > 1 for cell in self._cells())
        return confidences(together, CLOCKED * len(build_pairs(self._run.builds)), workers=several)

    def parts(self, baseline: Cell, sample: Cell) -> Parts:
        """Return the ratio of each session in which the two share a round."""
        key = (baseline, sample)
        if key not in self._parts:
            group = self._group(sample)
            self._parts[key] = {
                session: compare(arms_of_sessions({session: logs}), self._noises[group],
                                 (baseline, session), (sample, session))
                for session, logs in self._sessions.get(group, {}).items() if logs.difference(baseline, sample)}
        return self._parts[key]

    def ratio(self, baseline: Cell, sample: Cell, together: float) -> SessionRatio | None:
        """Return the ratio over the sessions, None if no session has both cells.

        Args:
            baseline: The cell to compare with.
            sample: The cell that is compared.
            together: The confidence of the table.
        """
        parts = tuple(self.parts(baseline, sample).values())
        if not parts:
            return None
        if not self.known:
            return SessionRatio(parts=parts)
        families = [*_families(baseline, sample, [build.label for build in self._run.builds])]
        _, workers, builds = self.table_shares(together)
        return SessionRatio(
            parts=parts, own=self.own, shifts=tuple(map(self.shift, families)),
            joint_confidence=tuple(workers if family == "workers" else builds for family in families))

    @property
    def own(self) -> OwnDeviation:
        """The variance of the cells' own deviations, from all comparisons with a baseline."""
        if self._own is None:
            shifted, others = self._of_baselines(several=True), self._of_baselines(several=False)
            families = [shifted] if shifted or others else [
                self._of_builds(BuildFamily(first=one.label, second=other.label, several=False))
                for one, other in build_pairs(self._run.builds)]
            self._own = own_deviation(families, others)
        return self._own

    def shift(self, family: Family) -> JointShift:
        """Return the joint shift of a family."""
        if family not in self._shifts:
            pairs = self._of_baselines(several=True) if family == "workers" else self._of_builds(family)
            self._shifts[family] = joint_shift(pairs)
        return self._shifts[family]

    def _cells(self) -> list[Cell]:
        """Return the cells with numbers, without A/A arms."""
        found = {cell for each in self._sessions.values() for logs in each.values() for cell in logs.levels}
        return [cell for cell in self._run.cells if cell in found and not cell.twin]

    def _of_baselines(self, *, several: bool) -> dict[tuple[Cell, Cell], Parts]:
        """Return the comparisons of cells with several workers, or with one, with their baselines."""
        pairs = [(replace(cell, runner=self._run.baseline, workers=1), cell) for cell in self._cells()
                 if (cell.workers > 1) is several]
        return {pair: parts for pair in pairs if pair[0] != pair[1] and (parts := self.parts(*pair))}

    def _of_builds(self, family: BuildFamily) -> dict[tuple[Cell, Cell], Parts]:
        pairs = [(cell, replace(cell, build=family.second)) for cell in self._cells()
                 if cell.build == family.first and (cell.workers > 1) is family.several]
        return {pair: parts for pair in pairs if (parts := self.parts(*pair))}


def arms_of_sessions(sessions: Mapping[int, RoundLogs[Cell]]) -> RoundLogs[tuple[Cell, int]]:
    """Return the logs of all sessions, with an arm for each cell and session."""
    return RoundLogs(levels={(cell, session): levels for session, logs in sessions.items()
                             for cell, levels in logs.levels.items() if levels})


def _families(baseline: Cell, sample: Cell, builds: list[str]) -> Iterable[Family]:
    """Yield the families of joint shifts that a comparison is subject to."""
    if (baseline.workers > 1) is not (sample.workers > 1):
        yield "workers"
    if baseline.build != sample.build:
        first, second = sorted((baseline.build, sample.build), key=builds.index)
        yield BuildFamily(first=first, second=second, several=max(baseline.workers, sample.workers) > 1)
