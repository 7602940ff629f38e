"""A loop of our own beside each value says how fast the machine was just then: a control variate.

It explains what is left after arms took turns.  It is unbiased for like arms alone: where the witness's own expected
time is the same on both sides, as with one build and as many busy cores, its difference is noise and nothing else.
Between unlike arms part of its difference is what is to be measured: with two cores busy the loop itself takes 1.0 to
1.5 % longer, a true cost of parallelism.  So unlike arms keep their plain values.

Sources: Lavenberg & Welch (1981), "A Perspective on the Use of Control Variables"; Deng, Xu, Kohavi & Walker (2013),
"Improving the Sensitivity of Online Controlled Experiments by Utilizing Pre-Experiment Data" (CUPED).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import sqrt

from gilscope.toolkit.stats.distributions import t_quantile
from gilscope.toolkit.stats.logs import RoundLogs, residuals

MOST_BETA = 1.5        # a loop that suffers less than the work does may be trusted that far
FEWEST = 6             # residuals beyond those fitted away: fewer do not show a correlation
SURE = 0.95            # of a correlation above 0, two-sided; without it the witness says nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjusted[Arm: Hashable]:
    """Levels adjusted by their witnesses, beside the plain ones."""

    plain: RoundLogs[Arm]
    adjusted: RoundLogs[Arm]           # comparable between arms of one kind alone
    kinds: Mapping[Arm, Hashable]
    betas: Mapping[int, float]         # by round: how much of the witness's deviation is taken off

    def logs(self, *arms: Arm) -> RoundLogs[Arm]:
        """Return what `arms` may be compared by: the adjusted levels where all are of one kind, else the plain ones."""
        return self.adjusted if len({self.kinds[arm] for arm in arms}) == 1 else self.plain

    def kind(self, kind: Hashable) -> RoundLogs[Arm]:
        """Return the adjusted levels of the arms of one kind: a group of its own, with a noise of its own."""
        return RoundLogs(levels={
            arm: rounds for arm, rounds in self.adjusted.levels.items() if self.kinds[arm] == kind
        })


def adjust[Arm: Hashable](
    values: RoundLogs[Arm], witness: RoundLogs[Arm], kinds: Mapping[Arm, Hashable],
) -> Adjusted[Arm]:
    """Return the levels of one workload's arms, less what their witnesses explain.

    The coefficient of a round is fitted on all arms of all *other* rounds, so that it does not depend on the pairs it
    is applied to, and is pooled over the workload's cells, as few rounds of one cell do not tell it.  It lies between 0
    and `MOST_BETA`, and is 0 where the correlation is not shown.

    Args:
        values: Log seconds of the work.
        witness: Log seconds of the loop in the same processes; rounds without it keep their plain levels out of the
            adjusted ones.
        kinds: What the witness's expected time depends on, for each arm: its build and how many cores are busy.
    """
    levels = {
        arm: {r: witness.levels[arm][r] for r in rounds if r in witness.levels.get(arm, {})}
        for arm, rounds in values.levels.items()
    }
    numbers = sorted({r for rounds in levels.values() for r in rounds})
    pairs = {r: _explained(values, levels, kinds, without=r) for r in numbers}
    adjusted = {
        arm: {r: values.levels[arm][r] - pairs[r] * loop for r, loop in rounds.items()}
        for arm, rounds in levels.items()
    }
    return Adjusted(plain=values, adjusted=RoundLogs(levels=adjusted), kinds=kinds, betas=pairs)


def _explained[Arm: Hashable](
    values: RoundLogs[Arm], witness: Mapping[Arm, Mapping[int, float]], kinds: Mapping[Arm, Hashable], *, without: int,
) -> float:
    """Return the coefficient of the witness, from like arms in all rounds but one."""
    products = squares = total = 0.0
    free = 0
    for kind in dict.fromkeys(kinds.values()):
        arms = [arm for arm in witness if kinds[arm] == kind]
        loops = _rest(witness, witness, arms, without)
        works = _rest(values.levels, witness, arms, without)
        products += sum(works[arm][r] * loop for arm in loops for r, loop in loops[arm].items())
        squares += sum(loop * loop for rounds in loops.values() for loop in rounds.values())
        total += sum(work * work for rounds in works.values() for work in rounds.values())
        free += _free(loops)
    if free < FEWEST or not squares or not total:
        return 0.0
    correlation = products / sqrt(squares * total)
    limit = t_quantile(SURE, free - 1)
    if correlation <= limit / sqrt(free - 1 + limit * limit):
        return 0.0
    return min(products / squares, MOST_BETA)


def _rest[Arm: Hashable](
    levels: Mapping[Arm, Mapping[int, float]], known: Mapping[Arm, Mapping[int, float]], arms: list[Arm], without: int,
) -> Mapping[Arm, Mapping[int, float]]:
    return residuals(RoundLogs(levels={
        arm: {r: level for r, level in levels[arm].items() if r != without and r in known[arm]} for arm in arms
    }))


def _free[Arm: Hashable](found: Mapping[Arm, Mapping[int, float]]) -> int:
    rounds = {r for each in found.values() for r in each}
    return sum(map(len, found.values())) - len(found) - len(rounds) + 1 if found else 0
