"""Try a repair by itself: a copy of the objects in the way, made inside each thread.

The copy is one by `copy.deepcopy`, which keeps numbers, texts and tuples as they are.  What it reaches is measured
beside the function with the same globals of its own and no copy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from gilscope.toolkit.scale.judgement import CONTRAST, Span
from gilscope.toolkit.scale.repairs import LOCKS, UNCOPIED
from gilscope.toolkit.scale.scaling_rounds import PROCESSES, CpuPlacement, ScalingRounds
from gilscope.toolkit.scale.zygote_process import CLOSE_PERIOD, CallMode, ThreadCopies, UnscalableFunctionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.scale.zygote_process import ProgramObject, ZygoteProcess

ROUNDS = 3
WIDE = 1.6              # times the lower end: with such an interval, as many rounds are measured again
STILL_MOVES = 0.02      # share of samples in which the count of an original had moved: it is still used
CONTROL, COPIES = "control", "copies"


class RepairOutcome(StrEnum):
    """The outcome of a trial; JSON has the value."""

    MEASURED = "measured"
    ELSEWHERE = "reached-otherwise"       # not every object is held by a global or an argument
    UNCOPIED = "cannot-be-copied"
    LOCK_ALONE = "lock-alone"             # a copy of it would not copy what it protects
    STILL_USED = "original-still-used"    # through a method, another module or a closure
    RESULTS = "results-change"
    FEW_CLEAN = "few-clean"
    NO_TIME = "no-time"                   # the investigation had taken too long already


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairTrial:
    """A repair that was tried, or the reason why it was not."""

    outcome: RepairOutcome
    of_ceiling: Span | None = None     # with the copies
    without: float | None = None       # of the ceiling, without them
    detail: str = ""                   # the error of a copy
    copied: tuple[str, ...] = ()       # the globals and arguments that each thread copied
    far: bool = False                  # it was measured on CPUs that are farther apart than those of the verdict

    @property
    def times(self) -> float | None:
        """Return the throughput with the copies in that without, in the rounds of the trial; None: not measured."""
        return self.of_ceiling.ratio / self.without if self.of_ceiling and self.without else None

    @property
    def gained(self) -> bool:
        """Return True if the copies clearly gain something."""
        reached, without = self.of_ceiling, self.without
        return bool(reached and without and reached.ratio >= CONTRAST * without and reached.lo > without)


NOT_BEGUN = RepairTrial(outcome=RepairOutcome.NO_TIME)


def try_copies(
    process: ZygoteProcess, threads: int, objects: Sequence[tuple[int, ProgramObject]], *,
    placement: CpuPlacement = CpuPlacement.NEAR,
) -> RepairTrial | None:
    """Measure the function with copies of the objects, or of what holds them, in each thread.

    Args:
        process: The zygote.
        threads: Their number.
        objects: Those in the way, by number.
        placement: Where the CPUs were when they were found; see `ScalingRounds.take_enough`.

    Returns:
        The trial, or None if a copy of each object is the same object.
    """
    names = [name for _, name in objects]
    if not all(name.held or name.argument for name in names):
        return RepairTrial(outcome=RepairOutcome.ELSEWHERE)
    if any(name.type in LOCKS and name.held and name.name == ".".join(name.held) for name in names):
        return RepairTrial(outcome=RepairOutcome.LOCK_ALONE)
    new = [number for number, name in objects if name.type not in UNCOPIED]
    if not new:
        return None
    copies = ThreadCopies(held=tuple(dict.fromkeys(name.held for name in names if name.held)),
                          arguments=any(name.argument for name in names))
    return _tried(process, threads, new, copies, placement=placement)


def _tried(
    process: ZygoteProcess, threads: int, new: Sequence[int], copies: ThreadCopies, *, placement: CpuPlacement,
) -> RepairTrial:
    """Call the function with the copies, and measure it unless that shows that they are none."""
    control = replace(copies, control=True)
    plain, test = process.test_copies(control), process.test_copies(copies, new)
    if why := plain.why or test.why:
        return RepairTrial(outcome=RepairOutcome.UNCOPIED, detail=why)
    if test.used:
        return RepairTrial(outcome=RepairOutcome.STILL_USED)
    if plain.results != test.results and plain.results == process.test_copies(control).results:
        return RepairTrial(outcome=RepairOutcome.RESULTS)
    try:
        return _measured(process, threads, {*new, *test.originals}, copies, placement=placement)
    except UnscalableFunctionError as error:      # a copy that works once may fail later
        return RepairTrial(outcome=RepairOutcome.UNCOPIED, detail=str(error))


def _measured(
    process: ZygoteProcess, threads: int, replaced: set[int], copies: ThreadCopies, *, placement: CpuPlacement,
) -> RepairTrial:
    # C code uses an object in no line of the program.
    if any(each.moved >= STILL_MOVES for each in process.sample(threads, sorted(replaced), CLOSE_PERIOD, copies)):
        return RepairTrial(outcome=RepairOutcome.STILL_USED)
    rounds = ScalingRounds(process, {
        PROCESSES: CallMode(threads=threads, processes=True),
        CONTROL: CallMode(threads=threads, copies=replace(copies, control=True)),
        COPIES: CallMode(threads=threads, copies=copies)})
    enough = rounds.take_enough(ROUNDS, placement)
    found = rounds.span(PROCESSES, COPIES)
    if enough and found is not None and found.hi > WIDE * found.lo:
        rounds.take(ROUNDS)
        found = rounds.span(PROCESSES, COPIES)
    without = rounds.span(PROCESSES, CONTROL)
    if found is None or without is None or not enough:
        return RepairTrial(outcome=RepairOutcome.FEW_CLEAN)
    return RepairTrial(outcome=RepairOutcome.MEASURED, of_ceiling=found, without=without.ratio,
                       far=rounds.placement is CpuPlacement.FAR and placement is CpuPlacement.NEAR,
                       copied=tuple(f"{module}.{name}" for module, name in copies.held) + (
                           ("arguments",) if copies.arguments else ()))
