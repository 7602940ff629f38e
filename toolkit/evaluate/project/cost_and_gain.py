"""Compare builds in rounds: by the workload, or by the tests if there is none.

If something turned the GIL on, measure again with the GIL forced off: what removing the cause would gain.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - the cache reads the hints
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.suite.cost import SuiteCosts
from gilscope.toolkit.evaluate.project.where_to_run import RunSite
from gilscope.toolkit.evaluate.project.workload.rounds import LEAST_ROUNDS, OTHER_MODELS, UserWorkload, WorkloadMeasurer
from gilscope.toolkit.evaluate.project.workload.speed import Speed
from gilscope.toolkit.evaluate.sections import NO_TIME, BuildSpeed, MachineFacts, Missing, TestRun
from gilscope.toolkit.stats.verdict import Comparison  # noqa: TC001 - the cache reads the hints

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.project.measured import HoldMachine
    from gilscope.toolkit.evaluate.sections import Forced
    from gilscope.toolkit.model import Build

SHARE_FOR_COST = 0.5     # of the time left after the race check, for running the tests for their CPU time
MOST_FOR_COST = 60.0     # seconds for the same; and once more with the GIL forced off
NO_WORKLOAD = Missing(reason="no --workload was given")
NOT_ASKED = Missing(reason="speed was not asked about (--workload)")


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherModel:
    """The result of the workload in a model other than threads, on a build with a GIL."""

    measured: Comparison | Missing        # with threads of the same number there
    failure: str                          # why it fails although it works in threads; ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostsAndGains:
    """The results of the rounds."""

    machine: MachineFacts | Missing
    speed: Mapping[str, BuildSpeed]       # by label of each free-threaded build
    others: Mapping[tuple[str, str], OtherModel] | Missing   # by model and label of each build with a GIL
    models_compared: bool                 # a function was measured in several workers of each model
    budget: float = 0.0                   # seconds, of the call that took them

    def other_model(self, model: str, label: str) -> OtherModel:
        """Return the result of the workload in another model than threads on a build with a GIL."""
        return OtherModel(measured=self.others, failure="") if isinstance(self.others, Missing) else (
            self.others[model, label])


class CostAndGainMeasurer:
    """Measures one project in rounds on several builds."""

    def __init__(
        self, project: Project, workload: str | None, builds: Sequence[Build], counterparts: Mapping[str, str], *,
        left: Callable[[], float], say: Callable[[str], None], hold_machine: HoldMachine = nullcontext,
    ) -> None:
        """Set up; `counterparts` maps each free-threaded build to its build with a GIL, and `left` returns seconds.

        `hold_machine` is held during a measurement, because others may measure on this machine at the same time.
        """
        self._project = project
        self._workload = workload
        self._builds = {build.label: build for build in builds}
        self._counterparts = counterparts
        self._left = left
        self._say = say
        self._hold_machine = hold_machine

    def compare(
        self, run_sites: Mapping[str, RunSite | Missing], tests: Mapping[str, TestRun | Missing],
    ) -> CostsAndGains:
        """Measure rounds; `run_sites` and `tests` are by label of the build."""
        places = {label: run_site for label, run_site in run_sites.items() if isinstance(run_site, RunSite)}
        free = [label for label, build in self._builds.items() if build.free_threaded]
        workload = self._named()
        if isinstance(workload, Missing):
            return self._by_tests(free, places, tests, workload)
        return self._by_workload(free, workload, places)

    def _named(self) -> UserWorkload | Missing:
        if self._workload is None:
            return NO_WORKLOAD
        return UserWorkload.of(self._workload, self._project.root)

    def _by_workload(self, free: Sequence[str], workload: UserWorkload, places: Mapping[str, RunSite]) -> CostsAndGains:
        measurer = WorkloadMeasurer(
            self._project, workload, places, self._builds, left=self._left, say=self._say,
            hold_machine=self._hold_machine)
        measurer.measure()
        machine = measurer.calibration.facts()
        speed = Speed(measurer, machine)
        sections = {label: speed.on(label, self._counterparts.get(label, "")) for label in free}
        forced = self._workload_forced(measurer, speed)   # measured last, because it is not part of the verdict
        others = {(model, label): OtherModel(measured=speed.other_model(label, model),
                                             failure=speed.failure(label, model))
                  for label, build in self._builds.items() if not build.free_threaded for model in OTHER_MODELS}
        return CostsAndGains(machine=machine, others=others, models_compared=speed.models_compared, speed={
            label: replace(each, forced=forced.get(label)) for label, each in sections.items()})

    def _workload_forced(self, before: WorkloadMeasurer, seen: Speed) -> dict[str, Forced | Missing]:
        """Return the workload's results with the GIL forced off, by label of each build on which it was on."""
        pairs = {label: counterpart for label, counterpart in self._counterparts.items()
                 if counterpart in before.run_sites and seen.flipped(label)}
        if self._left() < LEAST_ROUNDS * before.round_seconds:
            return dict.fromkeys(pairs, NO_TIME)
        if not pairs:
            return {}
        places = {label: before.run_sites[label] for label in (*pairs, *pairs.values())}
        measurer = WorkloadMeasurer(self._project, before.workload, places, self._builds, left=self._left,
                                    say=self._say, forced=True, hold_machine=self._hold_machine)
        measurer.measure()
        speed = Speed(measurer, measurer.calibration.facts())
        return {label: speed.forced(label, counterpart) for label, counterpart in pairs.items()}

    def _by_tests(
        self, free: Sequence[str], places: Mapping[str, RunSite], tests: Mapping[str, TestRun | Missing],
        lacking: Missing,
    ) -> CostsAndGains:
        """Compare the tests on each build instead of the workload, which is missing for the reason in `lacking`."""
        unknown = NOT_ASKED if lacking is NO_WORKLOAD else lacking
        missing = BuildSpeed.missing(lacking)
        costs = SuiteCosts(self._project, places, tests, say=self._say,
                           limit=min(MOST_FOR_COST, self._left() * SHARE_FOR_COST), hold_machine=self._hold_machine)
        costs.measure(self._counterparts)
        machine = costs.calibration.facts() if costs.found else unknown
        forced = self._tests_forced(places, tests)
        return CostsAndGains(machine=machine, others=lacking, models_compared=False, speed={
            label: replace(missing, cost=costs.cost(label, self._counterparts.get(label, "")),
                           forced=forced.get(label)) for label in free})

    def _tests_forced(
        self, places: Mapping[str, RunSite], tests: Mapping[str, TestRun | Missing],
    ) -> dict[str, Forced | Missing]:
        """Return the tests' results with the GIL forced off, by label of each build on which they turned it on."""
        pairs = {label: counterpart for label, counterpart in self._counterparts.items()
                 if isinstance(run := tests.get(label), TestRun) and run.gil_end}
        if self._left() <= 0:
            return dict.fromkeys(pairs, NO_TIME)
        costs = SuiteCosts(self._project, places, tests, say=self._say, limit=min(MOST_FOR_COST, self._left()),
                           forced=True, hold_machine=self._hold_machine)
        costs.measure(pairs)
        return {label: costs.forced(label, counterpart) for label, counterpart in pairs.items()}
