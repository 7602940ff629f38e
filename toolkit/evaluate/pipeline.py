"""Evaluate a project: run the steps in order, within the budget, and put what they measured together.

The order is: packages and what they do in subinterpreters, sources and builds of own extension modules, the project in
an interpreter, tests, races, cost and gain, and then the probes that run something of their own.  The tests come before
what follows because files that cannot be collected are left out from then on.  A step that cannot be made leaves its
reason (`Missing`).

`steps.py` reuses what an earlier call has measured, `run_sites.py` prepares the places where the project's code runs,
`project_requirements.py` says what is installed, and `verdict.py` draws the conclusions.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit import temporary
from gilscope.toolkit.errors import BadFileError, BuildError
from gilscope.toolkit.evaluate.evaluation import (
    BuildEvaluation,
    Evaluation,
    InterpretersEvaluation,
    ProcessesEvaluation,
)
from gilscope.toolkit.evaluate.packages.doctor import BuildReport, DoctorOptions, diagnose, reference_of, with_newest
from gilscope.toolkit.evaluate.probes import PROBES
from gilscope.toolkit.evaluate.probes.probe import Probe, ProbeContext
from gilscope.toolkit.evaluate.project.ci_and_classifiers import upkeep
from gilscope.toolkit.evaluate.project.cost_and_gain import CostAndGainMeasurer, CostsAndGains, OtherModel
from gilscope.toolkit.evaluate.project.discovery import find_project
from gilscope.toolkit.evaluate.project.extensions.find import find_extensions, named_extensions
from gilscope.toolkit.evaluate.project.extensions.own_extensions import OwnBuild, OwnExtensions
from gilscope.toolkit.evaluate.project.fingerprint import digest, sums
from gilscope.toolkit.evaluate.project.interpreter_trial import LIMIT as TRIAL_LIMIT
from gilscope.toolkit.evaluate.project.interpreter_trial import modules_inside, try_interpreters
from gilscope.toolkit.evaluate.project.machine_calibration import wait_quiet
from gilscope.toolkit.evaluate.project.own_modules import needed_to_run, with_built, without_measuring
from gilscope.toolkit.evaluate.project.racing.races import RaceCheckRequest, look_for_races
from gilscope.toolkit.evaluate.project.suite.leaving_out import without
from gilscope.toolkit.evaluate.project.suite.running import run_tests
from gilscope.toolkit.evaluate.project.where_to_run import RunSite
from gilscope.toolkit.evaluate.project.workload.name_check import refuse_lone_options, refuse_misnamed
from gilscope.toolkit.evaluate.project_requirements import read_requirements
from gilscope.toolkit.evaluate.run_sites import NO_TESTS, NOTHING_INSTALLED, PreparedSites, RunSitePreparer
from gilscope.toolkit.evaluate.sections import (
    NO_TIME,
    UNASKED,
    Cause,
    InterpretersCrashed,
    InterpreterTrial,
    Missing,
    Races,
    Sections,
    TestRun,
)
from gilscope.toolkit.evaluate.steps import EvaluationStep, StepRunner
from gilscope.toolkit.evaluate.verdict import judged
from gilscope.toolkit.measure.machine_lock import WAITING, MachineLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gilscope.toolkit.evaluate.cache import EvaluationCache
    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.request import EvaluationRequest
    from gilscope.toolkit.model import Build

    type RunSites = Mapping[str, RunSite | Missing]   # by label of the build

Reports = dict[str, BuildReport | Missing]   # by label of the build
Tests = dict[str, TestRun | Missing]         # likewise
Trials = dict[str, InterpreterTrial | InterpretersCrashed | Missing]

SHARE_FOR_TESTS = 0.5    # of what is left of the budget, for the tests on all builds; the race checker takes longer
SHARE_FOR_TRIAL = 0.15   # of what is left, for the project in an interpreter, on each build
SHARE_FOR_RUNNING = 0.5  # of the budget, for what runs the project; newer versions are not installed in its time
NOT_RUN = Missing(reason="not run for --explain", cause=Cause.NOT_RUN)
OF_EXTENSIONS = {"sources", "extensions"}   # the steps of a project that has some
INSTALLED = ("sdists", "extras", "offline")   # options that decide what is installed
# The steps of an evaluation, in their order.
STEPS = {
    "packages": EvaluationStep("what the packages do without the GIL", Reports, INSTALLED),
    "interpreters": EvaluationStep("what they do in subinterpreters", Reports, INSTALLED),
    "sources": EvaluationStep("the sources of its own extension modules", OwnExtensions, ()),
    "extensions": EvaluationStep("the project's own extension modules", dict[str, OwnBuild], INSTALLED),
    "trial": EvaluationStep("the project in a subinterpreter", Trials, (*INSTALLED, "called")),
    "tests": EvaluationStep("the project's tests", tuple[Tests, dict[str, tuple[str, ...]]], INSTALLED),
    "races": EvaluationStep("data races", Races | Missing, (*INSTALLED, "called", "threads", "calls")),
    "speed": EvaluationStep("cost and gain", CostsAndGains, (*INSTALLED, "called"))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """The results of all steps."""

    project: Project                 # without the tests that cannot be collected
    reports: Reports                 # of the packages, on the builds without a GIL
    inside: Reports                  # of the packages in subinterpreters, on their counterparts
    extensions: OwnExtensions        # with their sources
    own: Mapping[str, OwnBuild]
    tests: Tests
    lacking: Mapping[str, tuple[str, ...]]   # by build, the packages that could not be installed for running
    compared: CostsAndGains
    races: Races | Missing = NOT_RUN
    trials: Trials = field(default_factory=dict)
    sections: Mapping[str, object] = field(default_factory=dict)   # of probes, by code


class Evaluator:
    """One evaluation in progress."""

    def __init__(
        self, request: EvaluationRequest, builds: Sequence[Build], at_hand: Sequence[Build], say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic, *,
        open_cache: Callable[[Project, Sequence[Build]], EvaluationCache] | None = None,
        probes: Sequence[Probe] = PROBES,
    ) -> None:
        """Evaluate on `builds`, which have no GIL; their counterparts with a GIL are looked for in `at_hand`.

        `open_cache` opens the results of earlier evaluations of the project on those builds; None: keep none.

        Raises:
            BadFileError: The lock that the user named has no packages.
        """
        self._request = request
        self._builds = tuple(builds)
        self._at_hand = tuple(at_hand)
        self._say = say
        self._clock = clock
        self._began = clock()
        project = find_project(request.path, lock=request.lock, tests=request.tests, extras=request.extras)
        refuse_lone_options(request)
        if request.workload is not None:
            refuse_misnamed(request.workload, project, request.payloads)
        self._extensions = named_extensions(project.root)   # their sources are read in a step of its own
        self._probes = tuple(probe for probe in probes if probe.asked(request, self._extensions))
        project = without_measuring(project, request.workload, builds=self._extensions.any)
        self._project = with_built(project, (each.name for each in self._extensions.modules))
        self._requirements = read_requirements(self._project)
        # A lock of a project without dependencies is none of these.
        if request.lock and not self._requirements.locked and request.lock.suffix not in {".toml", ".lock"}:
            raise BadFileError(f"{request.lock} names no package: fill it, or leave --lock out")
        self._counterpart_of = {build.label: reference_of(build, at_hand) for build in builds}
        self._counterparts = tuple({each.label: each for each in self._counterpart_of.values() if each}.values())
        evaluation_cache = open_cache(self._project, (*self._builds, *self._counterparts)) if open_cache else None
        if evaluation_cache and evaluation_cache.doubt:
            say(evaluation_cache.doubt)
        self._preparer = RunSitePreparer(self._requirements, self._extensions, request=request, at_hand=at_hand,
                                         cache=evaluation_cache, say=say)
        self._steps = StepRunner(self._steps_to_make(), request, depends=self._inputs(), cache=evaluation_cache,
                                 say=say)
        self._machine = MachineLock(alone=False, waiting=lambda: say(WAITING), children_join=True)

    def run(self) -> Evaluation:
        """Make every step and return the evaluation.

        Raises:
            KeyboardInterrupt: All processes of the evaluation are gone.
        """
        for line in self._requirements.summaries(self._builds):
            self._say(line)
        reports, inside = self._packages()
        once = self._steps.once
        extensions = self._read_sources()
        with tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as folder:
            prepared = cache(lambda: self._prepared(Path(folder)))   # only if a step runs anything there

            def run_sites() -> RunSites:
                return prepared().run_sites

            own = self._own(prepared) if self._extensions.any else {}
            trials = once("trial", lambda: {
                each.label: self._tried(each, inside[each.label], run_sites()[each.label])
                for each in self._counterparts})
            tests, lacking = once("tests", lambda: (self._tests(run_sites()), _lacking(run_sites())),
                                  str(self._project.tests))
            project, comparable = self._without_uncollected(tests)
            races = once("races", lambda: self._races(run_sites(), tests), str(project.tests))
            # A larger budget takes more rounds.
            compared = once("speed", lambda: self._compared(comparable, run_sites(), tests), str(comparable.tests),
                            enough=lambda before: before.budget >= self._request.budget)
            sections = self._probed(project, run_sites, tests, own)
        return self._evaluation(Measurements(
            project=project, reports=reports, inside=inside, extensions=extensions, own=own, tests=tests,
            lacking=lacking, compared=compared,
            races=races, trials=trials, sections=sections))

    def explain(self, name: str) -> Evaluation:
        """Return an evaluation for --explain `name` without running the project: packages, and what the cache has.

        Its own extension modules are built only if `name` is not a package, and were not built before.

        Raises:
            KeyboardInterrupt: All processes of the evaluation are gone.
        """
        reports, inside = self._packages()
        labels = [build.label for build in (*self._builds, *self._counterparts)]
        earlier = self._steps.earlier
        not_run: Tests = dict.fromkeys(labels, NOT_RUN)
        tests, lacking = earlier("tests", str(self._project.tests)) or (not_run, {})
        project, comparable = self._without_uncollected(tests)
        compared = earlier("speed", str(comparable.tests))
        known = any(isinstance(each, BuildReport) and each.knows(name)
                    for each in (*reports.values(), *inside.values()))
        extensions = self._extensions if known else self._read_sources()
        own = earlier("extensions") if self._extensions.any else {}
        if own is None:
            own = {} if known else self._built()
        return self._evaluation(Measurements(
            project=project, reports=reports, inside=inside, extensions=extensions, own=own, tests=tests,
            lacking=lacking,
            compared=compared or CostsAndGains(machine=NOT_RUN, others=NOT_RUN, models_compared=False,
                                               sections=dict.fromkeys(labels, Sections.missing(NOT_RUN)))))

    def _steps_to_make(self) -> dict[str, EvaluationStep]:
        """Return the steps by their names, in their order."""
        steps = {key: step for key, step in STEPS.items() if key not in OF_EXTENSIONS or self._extensions.any}
        own = {probe.code: EvaluationStep(probe.name, probe.section | Missing, (*INSTALLED, *probe.depends))
               for probe in self._probes if probe.run}
        return steps | own

    def _inputs(self) -> tuple[str, ...]:
        """Return the builds and the lock's content, which every step depends on."""
        lock = self._project.lock
        return *(build.label for build in self._builds), digest(sums(lock.parent, [lock])) if lock else ""

    # The budget.

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Have this machine to measure; to wait for it takes nothing from the budget."""
        began = self._clock()
        with self._machine.hold():
            self._began += self._clock() - began
            yield

    def _left(self) -> float:
        return self._request.budget - (self._clock() - self._began)

    # The steps, in their order.

    def _packages(self) -> tuple[Reports, Reports]:
        """Return the package reports of the builds without a GIL, and of their counterparts."""
        reports = self._steps.once("packages", lambda: self._newest(self._readiness(self._builds, interpreters=False)))
        inside = self._steps.once("interpreters", lambda: self._readiness(self._counterparts, interpreters=True))
        return reports, inside

    def _readiness(self, builds: Sequence[Build], *, interpreters: bool) -> Reports:
        """Return the package report of each build."""
        environment = self._requirements.environment(sdists=self._request.sdists, offline=self._request.offline)
        labels = [build.label for build in builds]
        if not environment.requirements:   # nothing can be in the way
            return {build.label: BuildReport(build=build, reference=self._counterpart_of.get(build.label), findings=(),
                                             others=0) for build in builds}
        if self._left() <= 0:
            return dict.fromkeys(labels, NO_TIME)
        try:
            reports = diagnose(environment, builds, self._at_hand, DoctorOptions(interpreters=interpreters), self._say)
        except BuildError as error:
            return dict.fromkeys(labels, Missing(reason=str(error), cause=Cause.FAILED))
        return dict.fromkeys(labels, NOTHING_INSTALLED) | {each.build.label: each for each in reports}

    def _newest(self, reports: Reports) -> Reports:
        """Return the reports with what the newest versions of blocking packages do, if there is time to install them.

        Newer versions do not describe the current project, so keep a share of the budget for running it.
        """
        if self._request.offline or self._left() <= self._request.budget * SHARE_FOR_RUNNING:
            return reports
        made = [each for each in reports.values() if isinstance(each, BuildReport)]
        try:
            return reports | {each.build.label: each for each in with_newest(made, self._at_hand, say=self._say)}
        except BuildError as error:
            self._say(f"newer versions could not be looked at: {error}")
            return reports

    def _prepared(self, folder: Path) -> PreparedSites:
        """Return the run site of the project on each build, the counterparts with a GIL last."""
        builds = (*self._builds, *self._counterparts)
        if not self._preparer.needed:
            return PreparedSites.missing(builds, NO_TESTS)
        return PreparedSites.missing(builds, NO_TIME) if self._left() <= 0 else self._preparer.prepare(folder, builds)

    def _read_sources(self) -> OwnExtensions:
        """Return the project's own extension modules with their sources."""
        def read() -> OwnExtensions:
            if self._left() <= 0:
                return replace(self._extensions, cut=NO_TIME)
            return find_extensions(self._project.root, next(iter(self._builds), None), left=self._left)

        return self._steps.once("sources", read) if self._extensions.any else self._extensions

    def _own(self, prepared: Callable[[], PreparedSites]) -> dict[str, OwnBuild]:
        """Return the evidence about the project's own extension modules on each build."""
        return self._steps.once("extensions", lambda: self._preparer.own_builds(prepared(), self._counterpart_of))

    def _built(self) -> dict[str, OwnBuild]:
        """Build the project only for the evidence about its own extension modules."""
        with tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as folder:
            return self._own(lambda: self._prepared(Path(folder)))

    def _tried(
        self, counterpart: Build, readiness: BuildReport | Missing, run_site: RunSite | Missing,
    ) -> InterpreterTrial | InterpretersCrashed | Missing:
        """Import everything of project and workload that loads there in an interpreter."""
        if self._left() <= 0:
            return NO_TIME
        if isinstance(readiness, Missing):
            return readiness
        self._say(f"{counterpart.label}: import the project in a subinterpreter")
        folders = self._project.sources if isinstance(run_site, Missing) else run_site.folders
        path = dict.fromkeys((*folders, self._project.root))   # a workload beside the packages is in the root
        python = readiness.python or (
            Path(counterpart.executable) if isinstance(run_site, Missing) else run_site.python)
        with self._turn():
            return try_interpreters(
                python, modules_inside(self._project, readiness, self._request.called),
                path=[str(each) for each in path], limit=min(TRIAL_LIMIT, self._left() * SHARE_FOR_TRIAL))

    def _tests(self, run_sites: RunSites) -> Tests:
        """Run the tests on each build, the counterparts with a GIL last: alone they say nothing."""
        runs: Tests = {}
        for number, (label, run_site) in enumerate(run_sites.items()):
            if isinstance(run_site, Missing):
                runs[label] = run_site
                continue
            if self._project.tests:
                self._say(f"{label}: run {' '.join(self._project.tests)}")
            limit = self._left() * SHARE_FOR_TESTS / (len(run_sites) - number)
            runs[label] = run_tests(run_site.placed(self._project), run_site, limit=limit)
        return runs

    def _without_uncollected(self, tests: Tests) -> tuple[Project, Project]:
        """Return the project without files of tests that no build without a GIL, and those that not all can collect.

        A test of threads without a GIL may refuse to run with one.
        """
        return (without(self._project, [tests[build.label] for build in self._builds]),
                without(self._project, tests.values()))

    def _races(self, run_sites: RunSites, tests: Tests) -> Races | Missing:
        """Look for data races; in compiled Python before it is compiled, because C code cannot be watched."""
        if self._extensions.runs_uncompiled:
            run_sites = {label: run_site if isinstance(run_site, Missing) else run_site.without_compiled(self._project)
                         for label, run_site in run_sites.items()}
        check = RaceCheckRequest(project=self._project, workload=self._request.called, threads=self._request.threads,
                                 calls=self._request.calls)
        return look_for_races(check, run_sites, tests, left=self._left, say=self._say)

    def _compared(self, project: Project, run_sites: RunSites, tests: Tests) -> CostsAndGains:
        """Measure cost and gain; to wait for a quiet machine takes nothing from the budget."""
        if self._request.wait_quiet:
            began = self._clock()
            wait_quiet(self._request.wait_quiet, self._say)
            self._began += self._clock() - began
        labels = {label: counterpart.label for label, counterpart in self._counterpart_of.items() if counterpart}
        measurer = CostAndGainMeasurer(project, self._request.called, (*self._builds, *self._counterparts), labels,
                                       left=self._left, say=self._say, hold_machine=self._turn)
        return replace(measurer.compare(run_sites, tests), budget=self._request.budget)

    def _probed(
        self, project: Project, run_sites: Callable[[], RunSites], tests: Tests, own: Mapping[str, OwnBuild],
    ) -> dict[str, object]:
        """Return the sections of the probes that run something of their own, by their codes."""
        def run(probe: Probe) -> object:
            assert probe.run is not None
            return NO_TIME if self._left() <= 0 else probe.run(ProbeContext(
                request=self._request, project=project, extensions=self._extensions, own=own, builds=self._builds,
                run_sites=run_sites(), tests=tests, left=self._left, say=self._say))

        return {probe.code: self._steps.once(probe.code, partial(run, probe), str(project.tests))
                for probe in self._probes if probe.run}

    # The result.

    def _evaluation(self, measured: Measurements) -> Evaluation:
        """Return the evaluation with its conclusions."""
        seconds = self._clock() - self._began
        project, reused = measured.project, self._steps.reused
        return judged(Evaluation(
            project=project, machine=measured.compared.machine,
            builds=tuple(self._on_build(build, measured) for build in self._builds),
            interpreters=tuple(_interpreters(counterpart, measured) for counterpart in self._counterparts),
            processes=tuple(_processes(self._counterparts, measured.compared)),
            races=measured.races, extensions=measured.extensions, sections=measured.sections,
            needed=needed_to_run(project) if any(measured.lacking.values()) else frozenset(), seconds=seconds,
            development=self._requirements.development(measured.lacking), upkeep=upkeep(project.root),
            request=self._request, kept=tuple(reused), kept_since=min(reused.values(), default=None),
        ), self._probes)

    def _on_build(self, build: Build, measured: Measurements) -> BuildEvaluation:
        counterpart, speed = self._counterpart_of[build.label], measured.compared.sections[build.label]
        no_counterpart = Missing(reason=f"no build like {build.label} with a GIL is at hand")
        return BuildEvaluation(
            build=build, offered=self._requirements.offered(build), readiness=measured.reports[build.label],
            tests=measured.tests[build.label],
            reference_tests=measured.tests[counterpart.label] if counterpart else no_counterpart,
            cost=speed.cost, gain=speed.gain, contention=speed.contention, failure=speed.failure, forced=speed.forced,
            own=measured.own.get(build.label), differs=speed.differs,
        )


def _lacking(run_sites: RunSites) -> dict[str, tuple[str, ...]]:
    """Return the packages that the project's code needs and that could not be installed, by the build's label."""
    return {label: run_site.lacking for label, run_site in run_sites.items() if isinstance(run_site, RunSite)}


def _interpreters(counterpart: Build, measured: Measurements) -> InterpretersEvaluation:
    others = measured.compared.others
    speed = (OtherModel(measured=others, failure="") if isinstance(others, Missing)
             else others["subinterpreters", counterpart.label])
    return InterpretersEvaluation(
        build=counterpart, readiness=measured.inside[counterpart.label], measured=speed.measured, failure=speed.failure,
        trial=measured.trials.get(counterpart.label, UNASKED), own=measured.own.get(counterpart.label))


def _processes(counterparts: Sequence[Build], compared: CostsAndGains) -> Iterator[ProcessesEvaluation]:
    """Yield the results of processes on each build with a GIL; none if no function was measured."""
    if isinstance(compared.others, Missing) or not compared.models_compared:
        return
    for counterpart in counterparts:
        yield ProcessesEvaluation(build=counterpart, measured=compared.others["processes", counterpart.label].measured)
