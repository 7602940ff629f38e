"""Judge if other programs disturbed arms that are compared, by one rule for all of these arms.  Pure.

Retaking the values of starved arms alone is not fair: their baseline, which needs one core and is starved later, keeps
its disturbed values, and every speed-up comes out too high.  So arms that share a pass, or a round, are
judged by the limit of the most sensitive of them, and all are measured again together.  Which attempt counts depends on
the load during all arms, so no arm is more likely than another to have had a quiet moment.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gilscope.toolkit.measure.rounds import ArmResult
    from gilscope.toolkit.model import Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmLoad:
    """The other load while one arm was measured."""

    others: float             # cores' worth of CPU time that other programs used
    bearable: float | None    # more than this starves the arm; None: no load starves it (it waits)


QUIET = ArmLoad(others=0.0, bearable=None)


@dataclass(frozen=True, slots=True, order=True)
class AttemptLoad:
    """The other load during one attempt to measure several arms; the smaller is the less disturbed attempt."""

    disturbed: int   # arms during which others used more cores than one of the arms can bear
    others: float    # cores' worth, summed over the arms


def attempt_load(loads: Iterable[ArmLoad]) -> AttemptLoad:
    """Return how disturbed an attempt was, over all of its arms."""
    arms = list(loads)
    limit = min((each.bearable for each in arms if each.bearable is not None), default=None)
    disturbed = 0 if limit is None else sum(each.others > limit for each in arms)
    return AttemptLoad(disturbed, sum(each.others for each in arms))


def load_of(result: ArmResult) -> ArmLoad:
    """Return the load over all values of a measured process."""
    fields = result.answer.fields
    return ArmLoad(others=fields.get("evidence", {}).get("others_cores") or 0.0, bearable=fields.get("bearable"))


def loads_of(results: Iterable[ArmResult]) -> dict[Cell, ArmLoad]:
    """Return the loads of the processes that delivered values."""
    return {each.cell: load_of(each) for each in results if each.answer.kind == "measured"}


def comparable(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Return the groups of cells that are compared: one workload, phase and task length."""
    groups: dict[object, list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.workload, cell.phase, cell.task_seconds), []).append(cell)
    return list(groups.values())


def disturbed_groups(loads: Mapping[Cell, ArmLoad]) -> list[list[Cell]]:
    """Return the comparable groups of cells of which one was disturbed."""
    return [group for group in comparable(loads) if attempt_load(loads[cell] for cell in group).disturbed]


def with_baselines_starved(results: Sequence[ArmResult], is_baseline: Callable[[Cell], bool]) -> list[ArmResult]:
    """Mark arms as starved, too, if their baseline was, or if it took its values beside a load that starves them.

    Leaving out a pair only if its second side was disturbed would compare quiet arms with disturbed baselines.

    Args:
        results: Of arms that took their values in turn.
        is_baseline: Returns True for the baseline of the build.
    """
    baselines = {each.cell.build: each for each in results
                 if is_baseline(each.cell) and not each.cell.twin and each.answer.kind == "measured"}
    return [_starved(each) if _starves(baselines.get(each.cell.build), each) else each for each in results]


def needs_several(result: ArmResult) -> bool:
    """Return True if a measured process could use several cores at once."""
    wanted: float = result.answer.fields.get("wanted", 0.0)
    return round(wanted) > 1


def has_clean_cell(round_: Sequence[tuple[bool, bool]]) -> bool:
    """Return True unless all cells of a round that need several cores lacked them; if none needs several, all cells.

    Args:
        round_: Whether each cell needs several cores, and whether it was starved.
    """
    starved = [each for several, each in round_ if several] or [each for _, each in round_]
    return not starved or not all(starved)


def _starves(baseline: ArmResult | None, arm: ArmResult) -> bool:
    if baseline is None or arm.answer.kind != "measured":
        return False
    bearable = load_of(arm).bearable
    disturbed = needs_several(arm) and bearable is not None and load_of(baseline).others > bearable
    return disturbed or bool(baseline.answer.fields["starved"])


def _starved(result: ArmResult) -> ArmResult:
    answer = dataclasses.replace(result.answer, fields={**result.answer.fields, "starved": True})
    return dataclasses.replace(result, answer=answer)
