"""The sections that several others read, in the order in which they are measured.

The tests come before what follows because files that cannot be collected are left out from then on.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.errors import BuildError
from gilscope.toolkit.evaluate.packages.doctor import BuildReport, DoctorOptions, diagnose, with_newest
from gilscope.toolkit.evaluate.project.cost_and_gain import (
    NO_WORKLOAD,
    NOT_ASKED,
    CostAndGainMeasurer,
    CostsAndGains,
)
from gilscope.toolkit.evaluate.project.extensions.find import find_extensions
from gilscope.toolkit.evaluate.project.extensions.own_extensions import OwnBuild, OwnExtensions
from gilscope.toolkit.evaluate.project.interpreter_trial import LIMIT as TRIAL_LIMIT
from gilscope.toolkit.evaluate.project.interpreter_trial import modules_inside, try_interpreters
from gilscope.toolkit.evaluate.project.machine_calibration import wait_quiet
from gilscope.toolkit.evaluate.project.racing.races import RaceCheckRequest, look_for_races
from gilscope.toolkit.evaluate.project.suite.leaving_out import without
from gilscope.toolkit.evaluate.project.suite.running import run_tests
from gilscope.toolkit.evaluate.run_sites import NO_TESTS, NOTHING_INSTALLED, own_builds_on
from gilscope.toolkit.evaluate.section import INSTALLED, Section
from gilscope.toolkit.evaluate.sections import (
    NO_TIME,
    BuildSpeed,
    Cause,
    InterpreterTrial,
    Missing,
    Races,
    TestRun,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.evaluate.evaluation import Evaluation
    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.section import Means
    from gilscope.toolkit.model import Build

Reports = dict[str, BuildReport | Missing]   # by label of the build, as are the next two
Tests = dict[str, TestRun | Missing]
Trials = dict[str, InterpreterTrial | Missing]

SHARE_FOR_TESTS = 0.5    # of what is left of the budget, for the tests on all builds; the race checker takes longer
SHARE_FOR_TRIAL = 0.15   # of what is left, for the project in an interpreter, on each build
SHARE_FOR_RUNNING = 0.5  # of the budget, for what runs the project; newer versions are not installed in its time


def _on(builds: Sequence[Build], result: Any) -> dict[str, Any]:
    return dict.fromkeys((build.label for build in builds), result)


def _packages(found: Evaluation, means: Means) -> Reports:
    """Return the report of each build without a GIL, with what newer versions of blocking packages do.

    These do not describe the current project, so keep a share of the budget for running it.
    """
    reports = _readiness(found, means, found.builds, interpreters=False)
    if found.request.offline or means.left() <= found.request.budget * SHARE_FOR_RUNNING:
        return reports
    made = [each for each in reports.values() if isinstance(each, BuildReport)]
    try:
        return reports | {each.build.label: each for each in with_newest(made, means.at_hand, say=means.say)}
    except BuildError as error:
        means.say(f"newer versions could not be looked at: {error}")
        return reports


def _readiness(found: Evaluation, means: Means, builds: Sequence[Build], *, interpreters: bool) -> Reports:
    """Return the report of each build."""
    environment = means.requirements.environment(sdists=found.request.sdists, offline=found.request.offline)
    if not environment.requirements:   # nothing can be in the way
        return {build.label: BuildReport(build=build, reference=found.counterparts.get(build.label), findings=(),
                                         others=0) for build in builds}
    try:
        reports = diagnose(environment, builds, means.at_hand, DoctorOptions(interpreters=interpreters), means.say)
    except BuildError as error:
        return _on(builds, Missing(reason=str(error), cause=Cause.FAILED))
    return _on(builds, NOTHING_INSTALLED) | {each.build.label: each for each in reports}


def _sources(found: Evaluation, means: Means) -> OwnExtensions:
    return find_extensions(found.project.root, next(iter(found.builds), None), named=found.named, left=means.left)


def _builds(found: Evaluation, means: Means) -> dict[str, OwnBuild]:
    """Return the evidence about the project's own extension modules on each build."""
    return own_builds_on(means.sites(), found.named, found.counterparts)


def _not_built(found: Evaluation, why: Missing) -> dict[str, OwnBuild]:
    if why.cause is Cause.NOT_RUN:
        return {}
    return {build.label: OwnBuild(build=build.label, failure=why) for build in found.all_builds}


def _trials(found: Evaluation, means: Means) -> Trials:
    return {build.label: _trial(found, means, build) for build in found.with_gil}


def _trial(found: Evaluation, means: Means, build: Build) -> InterpreterTrial | Missing:
    """Import everything of project and workload that loads there in an interpreter."""
    readiness, run_site = found.packages[build.label], means.sites().run_sites[build.label]
    if means.left() <= 0:
        return NO_TIME
    if isinstance(readiness, Missing):
        return readiness
    means.say(f"{build.label}: import the project in a subinterpreter")
    folders = found.project.sources if isinstance(run_site, Missing) else run_site.folders
    path = dict.fromkeys((*folders, found.project.root))   # a workload beside the packages is in the root
    python = readiness.python or (Path(build.executable) if isinstance(run_site, Missing) else run_site.python)
    with means.hold_machine():
        return try_interpreters(
            python, modules_inside(found.project, readiness, found.request.called),
            path=[str(each) for each in path], limit=min(TRIAL_LIMIT, means.left() * SHARE_FOR_TRIAL))


def _tests(found: Evaluation, means: Means) -> Tests:
    """Run the tests on each build, the counterparts with a GIL last: alone they say nothing."""
    runs: Tests = {}
    run_sites = means.sites().run_sites
    for number, (label, run_site) in enumerate(run_sites.items()):
        if isinstance(run_site, Missing):
            runs[label] = run_site
            continue
        if found.project.tests:
            means.say(f"{label}: run {' '.join(found.project.tests)}")
        limit = means.left() * SHARE_FOR_TESTS / (len(run_sites) - number)
        runs[label] = run_tests(run_site.placed(found.project), run_site, limit=limit)
    return runs


def _races(found: Evaluation, means: Means) -> Races | Missing:
    """Look for data races; in compiled Python before it is compiled, because C code cannot be watched."""
    run_sites = means.sites().run_sites
    if found.named.runs_uncompiled:
        run_sites = {label: run_site if isinstance(run_site, Missing) else run_site.without_compiled(found.project)
                     for label, run_site in run_sites.items()}
    check = RaceCheckRequest(project=found.project, workload=found.request.called, threads=found.request.threads,
                             calls=found.request.calls)
    return look_for_races(check, run_sites, found.tests, left=means.left, say=means.say)


def _not_checked(found: Evaluation, why: Missing) -> Races | Missing:
    """Return that nothing was checked; a workload that the user names is missed."""
    if found.request.workload is None:
        return why
    return Races(build="", found=(), command=(), lacking=(("workload", why),))


def _comparable(found: Evaluation) -> Project:
    """Return the project without the files of tests that not all builds can collect.

    A test of threads without a GIL may refuse to run with one.
    """
    return without(found.project, found.tests.values())


def _speed(found: Evaluation, means: Means) -> CostsAndGains:
    """Measure cost and gain; to wait for a quiet machine takes nothing from the budget."""
    if found.request.wait_quiet:
        with means.uncounted():
            wait_quiet(found.request.wait_quiet, means.say)
    counterparts = {label: build.label for label, build in found.counterparts.items()}
    measurer = CostAndGainMeasurer(_comparable(found), found.request.called, found.all_builds, counterparts,
                                   left=means.left, say=means.say, hold_machine=means.hold_machine)
    return replace(measurer.compare(means.sites().run_sites, found.tests), budget=found.request.budget)


def _not_compared(found: Evaluation, why: Missing) -> CostsAndGains:
    """Return that nothing was measured; without a workload only the cost is missed."""
    others, machine = (why, why) if found.request.workload else (NO_WORKLOAD, NOT_ASKED)
    speed = replace(BuildSpeed.missing(others), cost=why)
    return CostsAndGains(machine=machine, speed=_on(found.builds, speed), others=others, models_compared=False)


def _has_extensions(found: Evaluation) -> bool:
    return found.named.any


SHARED = (
    Section(code="packages", name="what the packages do without the GIL", measure=_packages, result=Reports,
            options=INSTALLED, missing=lambda found, why: _on(found.builds, why)),
    Section(code="interpreters", name="what they do in subinterpreters", result=Reports, options=INSTALLED,
            measure=lambda found, means: _readiness(found, means, found.with_gil, interpreters=True),
            missing=lambda found, why: _on(found.with_gil, why)),
    Section(code="sources", name="the sources of its own extension modules", measure=_sources, result=OwnExtensions,
            missing=lambda found, why: replace(found.named, cut=why), asked=_has_extensions),
    Section(code="extensions", name="the project's own extension modules", measure=_builds,
            result=dict[str, OwnBuild], options=INSTALLED, missing=_not_built, asked=_has_extensions),
    Section(code="trial", name="the project in a subinterpreter", measure=_trials, result=Trials,
            options=(*INSTALLED, "called"), runs_project=True, missing=lambda found, why: _on(found.with_gil, why)),
    Section(code="tests", name="the project's tests", measure=_tests, result=Tests, options=INSTALLED,
            depends=lambda found: str(found.project.tests), runs_project=True,
            missing=lambda found, why: _on(found.all_builds, why if found.project.tests else NO_TESTS)),
    Section(code="races", name="data races", measure=_races, result=Races | Missing,
            options=(*INSTALLED, "called", "threads", "calls"), depends=lambda found: str(found.collected.tests),
            runs_project=True, missing=_not_checked),
    # A larger budget takes more rounds.
    Section(code="speed", name="cost and gain", measure=_speed, result=CostsAndGains, options=(*INSTALLED, "called"),
            depends=lambda found: str(_comparable(found).tests), runs_project=True, missing=_not_compared,
            enough=lambda found, earlier: earlier.budget >= found.request.budget),
)
