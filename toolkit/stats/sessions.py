"""Sessions in the place of rounds, from three sessions on.

A session is a set of rounds at one time.  What a session does to a cell, a class of cells, a build or all of them is
then the difference between rounds, and the rules for rounds hold: the estimate is the mean over sessions, its interval
is that of Student's t with as many degrees of freedom as sessions allow, moderated by all cells.  All workloads share
the sessions, see `pair_kinds.kind_spreads`.

Two sessions can agree by chance, so their rounds count as those of one session: the interval is about these two.
"""

from __future__ import annotations

from collections.abc import Hashable
from statistics import fmean
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.log_times import RoundLogs, fit

if TYPE_CHECKING:
    from collections.abc import Mapping

FEWEST = 3   # sessions, from which on their differences are estimated


def levels_of_sessions[Arm: Hashable](sessions: Mapping[int, RoundLogs[Arm]]) -> RoundLogs[Arm]:
    """Return the level of each arm in each session: its log time without the effects of the rounds.

    Args:
        sessions: The logs of a group by session.
    """
    levels: dict[Arm, dict[int, float]] = {}
    for session, logs in sessions.items():
        found = fit(logs)
        centers, shared = (found.centers, found.shared) if found else ({}, {})
        for arm, rounds in logs.levels.items():
            if rounds:   # an arm with one round has no center; a round that it shares with no other keeps its effect
                levels.setdefault(arm, {})[session] = centers.get(
                    arm, fmean(value - shared.get(r, 0.0) for r, value in rounds.items()))
    return RoundLogs(levels=levels)
