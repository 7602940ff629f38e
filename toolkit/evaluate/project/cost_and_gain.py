"""The steps of an evaluation that compare builds in rounds: by the workload, or by the tests where there is none.

Where something turned the GIL on, once more with the GIL forced off: what mending that could be worth.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.suite.cost import SuiteCosts
from gilscope.toolkit.evaluate.project.where_to_run import Bench
from gilscope.toolkit.evaluate.project.workload.rounds import LEAST_ROUNDS, OTHER_MODELS, Workload, WorkloadMeasurer
from gilscope.toolkit.evaluate.project.workload.speed import Speed
from gilscope.toolkit.evaluate.sections import NO_TIME, Missing, Sections, TestRun

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.project.measured import Turn
    from gilscope.toolkit.evaluate.sections import Forced, MachineFacts
    from gilscope.toolkit.model import Build
    from gilscope.toolkit.stats.words import Comparison

SHARE_FOR_COST = 0.5     # of what is left after the races, to run the tests again for their CPU time
MOST_FOR_COST = 60.0     # seconds, likewise; and once more with the GIL forced off
NO_WORKLOAD = Missing(reason="no --workload was given")
NOT_ASKED = Missing(reason="speed was not asked about (--workload)")


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherModel:
    """What the workload did in another model than threads, on a build with a GIL."""

    measured: Comparison | Missing        # against as many threads there
    failure: str                          # why it fails there although it does not in threads; ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What the rounds have shown."""

    machine: MachineFacts | Missing
    sections: Mapping[str, Sections]      # by the label of each build without a GIL
    others: Mapping[tuple[str, str], OtherModel] | Missing   # by model and the label of each build with a GIL
    several: bool                         # a function was measured in several workers, so in those of other models, too


class Comparing:
    """The rounds of one project on several builds."""

    def __init__(
        self, project: Project, workload: str | None, builds: Sequence[Build], twins: Mapping[str, str], *,
        left: Callable[[], float], say: Callable[[str], None], turn: Turn = nullcontext,
    ) -> None:
        """`twins` has the label of the build with a GIL for each without, where there is one; `left` is in seconds.

        `turn` is held while something is measured: others may measure on this machine, too.
        """
        self._project = project
        self._workload = workload
        self._builds = {build.label: build for build in builds}
        self._twins = twins
        self._left = left
        self._say = say
        self._turn = turn

    def compare(
        self, benches: Mapping[str, Bench | Missing], tests: Mapping[str, TestRun | Missing],
    ) -> Compared:
        """Take the rounds; by label where the project is run, and what its tests did there."""
        places = {label: bench for label, bench in benches.items() if isinstance(bench, Bench)}
        free = [label for label, build in self._builds.items() if build.free_threaded]
        workload = self._named()
        if isinstance(workload, Missing):
            return self._by_tests(free, places, tests, workload)
        return self._by_workload(free, workload, places)

    def _named(self) -> Workload | Missing:
        if self._workload is None:
            return NO_WORKLOAD
        workload = Workload.of(self._workload, self._project.root)
        return NO_TIME if self._left() <= 0 and not isinstance(workload, Missing) else workload

    def _by_workload(self, free: Sequence[str], workload: Workload, places: Mapping[str, Bench]) -> Compared:
        measurer = WorkloadMeasurer(
            self._project, workload, places, self._builds, left=self._left, say=self._say, turn=self._turn)
        measurer.measure()
        machine = measurer.calibration.facts()
        speed = Speed(measurer, machine)
        sections = {label: speed.sections(label, self._twins.get(label, "")) for label in free}
        forced = self._workload_forced(measurer, speed)   # the last of all: it is no part of the verdict
        others = {(model, label): OtherModel(measured=speed.other_model(label, model),
                                            failure=speed.failure(label, model))
                  for label, build in self._builds.items() if not build.free_threaded for model in OTHER_MODELS}
        return Compared(machine=machine, others=others, several=speed.several, sections={
            label: replace(each, forced=forced.get(label)) for label, each in sections.items()})

    def _workload_forced(self, before: WorkloadMeasurer, seen: Speed) -> dict[str, Forced | Missing]:
        """Return what the workload does with the GIL forced off, by the label of each build on which it was on."""
        pairs = {label: twin for label, twin in self._twins.items() if twin in before.benches and seen.flipped(label)}
        if self._left() < LEAST_ROUNDS * before.round_seconds:
            return dict.fromkeys(pairs, NO_TIME)
        if not pairs:
            return {}
        places = {label: before.benches[label] for label in (*pairs, *pairs.values())}
        measurer = WorkloadMeasurer(self._project, before.workload, places, self._builds, left=self._left,
                                    say=self._say, forced=True, turn=self._turn)
        measurer.measure()
        speed = Speed(measurer, measurer.calibration.facts())
        return {label: speed.forced(label, twin) for label, twin in pairs.items()}

    def _by_tests(
        self, free: Sequence[str], places: Mapping[str, Bench], tests: Mapping[str, TestRun | Missing],
        lacking: Missing,
    ) -> Compared:
        """Compare what the tests take on each build, in place of the workload, for the reason in `lacking`."""
        unknown = NOT_ASKED if lacking is NO_WORKLOAD else lacking
        missing = Sections.missing(lacking)
        if self._left() <= 0:
            forced = self._tests_forced(places, tests)
            return Compared(machine=unknown, others=lacking, several=False, sections={
                label: replace(missing, cost=NO_TIME, forced=forced.get(label)) for label in free})
        costs = SuiteCosts(self._project, places, tests, say=self._say,
                           limit=min(MOST_FOR_COST, self._left() * SHARE_FOR_COST), turn=self._turn)
        costs.measure(self._twins)
        machine = costs.calibration.facts() if costs.found else unknown
        forced = self._tests_forced(places, tests)
        return Compared(machine=machine, others=lacking, several=False, sections={
            label: replace(missing, cost=costs.cost(label, self._twins.get(label, "a build with a GIL")),
                           forced=forced.get(label)) for label in free})

    def _tests_forced(
        self, places: Mapping[str, Bench], tests: Mapping[str, TestRun | Missing],
    ) -> dict[str, Forced | Missing]:
        """Return what the tests do with the GIL forced off, by the label of each build on which they turned it on."""
        pairs = {label: twin for label, twin in self._twins.items()
                 if isinstance(run := tests.get(label), TestRun) and run.gil_end}
        if self._left() <= 0:
            return dict.fromkeys(pairs, NO_TIME)
        costs = SuiteCosts(self._project, places, tests, say=self._say, limit=min(MOST_FOR_COST, self._left()),
                           forced=True, turn=self._turn)
        costs.measure(pairs)
        return {label: costs.forced(label, twin) for label, twin in pairs.items()}
