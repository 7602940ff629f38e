"""The steps of an evaluation, each within the budget; one that cannot be made is a reason in its place."""

from __future__ import annotations

import shlex
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from gilscope.toolkit import temporary
from gilscope.toolkit.errors import BadFileError, BuildError, ToolkitError
from gilscope.toolkit.evaluate.evaluation import (
    BuildEvaluation,
    Evaluation,
    InterpretersEvaluation,
    ProcessesEvaluation,
)
from gilscope.toolkit.evaluate.packages.doctor import BuildReport, Options, diagnose, reference_of, with_newest
from gilscope.toolkit.evaluate.packages.install import scratch
from gilscope.toolkit.evaluate.packages.install.installing import name_of
from gilscope.toolkit.evaluate.project.ci_and_classifiers import upkeep
from gilscope.toolkit.evaluate.project.cost_and_gain import Compared, Comparing
from gilscope.toolkit.evaluate.project.discovery import find_project
from gilscope.toolkit.evaluate.project.extensions.building import Place, own_builds
from gilscope.toolkit.evaluate.project.extensions.facts import OwnBuild
from gilscope.toolkit.evaluate.project.extensions.find import find_extensions
from gilscope.toolkit.evaluate.project.extensions.staging import stage
from gilscope.toolkit.evaluate.project.fingerprint import digest, sums
from gilscope.toolkit.evaluate.project.installing import Installation, built_before, install_project, keep_built
from gilscope.toolkit.evaluate.project.machine_calibration import wait_quiet
from gilscope.toolkit.evaluate.project.own_modules import needed_to_run, with_built, without_measuring
from gilscope.toolkit.evaluate.project.racing.tests_in_threads import NEEDED as NEEDED_AT_ONCE
from gilscope.toolkit.evaluate.project.racing.workload_then_tests import Wanted, look_for_races
from gilscope.toolkit.evaluate.project.suite.leaving_out import without
from gilscope.toolkit.evaluate.project.suite.running import needed_by, run_tests
from gilscope.toolkit.evaluate.project.where_to_run import Bench
from gilscope.toolkit.evaluate.project.workers.cost import LIMIT as WORKERS_LIMIT
from gilscope.toolkit.evaluate.project.workers.cost import measure_workers, modules_inside
from gilscope.toolkit.evaluate.project.workload.name_check import refuse_misnamed
from gilscope.toolkit.evaluate.requirements.closure import Apart, apart, reached
from gilscope.toolkit.evaluate.requirements.locks import Graph, Locked, read_graph, read_lock
from gilscope.toolkit.evaluate.requirements.wheel_for_build import offered
from gilscope.toolkit.evaluate.sections import (
    NO_TIME,
    UNASKED,
    Broken,
    Development,
    Missing,
    Races,
    Sections,
    TestRun,
    Workers,
)
from gilscope.toolkit.evaluate.verdict.answer import answered
from gilscope.toolkit.evaluate.verdict.models import conclude_interpreters, conclude_processes
from gilscope.toolkit.evaluate.verdict.next_steps import next_steps
from gilscope.toolkit.evaluate.verdict.readiness import conclude
from gilscope.toolkit.measure.machine.alone import WAITING, Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gilscope.toolkit.evaluate.cache import Kept
    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.requirements.wheel_for_build import Offered
    from gilscope.toolkit.model import Build

BUDGET = 600.0           # seconds
SHARE_FOR_TESTS = 0.5    # of what is left of the budget, for the tests on all builds; the race checker takes longer
SHARE_FOR_WORKERS = 0.15  # of what is left, for what one more interpreter takes, on each build
SHARE_KEPT = 0.5         # of the budget, for what runs the project; newer versions are not installed in its time
NOTHING_INSTALLED = Missing(reason="nothing of it was installed before; call it once without --offline", passing=True)
NOT_RUN = Missing(reason="not run for --explain", passing=True)
# The parts of an evaluation, in their order.
STEPS = {
    "packages": "what the packages do without the GIL", "interpreters": "what they do in subinterpreters",
    "extensions": "the project's own extension modules",   # left out where it has none
    "workers": "what one more worker takes", "tests": "the project's tests", "races": "data races",
    "speed": "cost and gain"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be evaluated, and how long that may take."""

    path: Path
    lock: Path | None = None
    tests: str | None = None
    workload: str | None = None  # "package.module:function" or a script
    budget: float = BUDGET
    wait_quiet: float = 0.0      # seconds to wait at most until the machine is quiet, before anything is timed
    offline: bool = False        # install nothing: what was installed by an earlier call, and the lock
    sdists: bool = False         # build from source what has no wheel
    extras: tuple[str, ...] = ()   # of the project's, that count as needed to run
    threads: int = 0             # in which each test runs at once, and which call the workload; 0: as the tests are
    labels: str | None = None    # of builds, as they were named, like "3.14t,3.15t"; None: the newest
    added: tuple[str, ...] = ()  # "LABEL=PATH" of each interpreter that was named


class Evaluator:
    """One evaluation in progress."""

    def __init__(
        self, asked: Asked, builds: Sequence[Build], at_hand: Sequence[Build], say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic, *, kept: Callable[[Project, Sequence[Build]], Kept] | None = None,
    ) -> None:
        """Evaluate on `builds`, which have no GIL; `at_hand` is where their twins with one are looked for.

        `kept` opens what earlier evaluations of the project have measured on those builds; None: nothing is kept.
        """
        self._asked = asked
        self._builds = tuple(builds)
        self._at_hand = tuple(at_hand)
        self._say = say
        self._clock = clock
        self._began = clock()
        self.project: Project = find_project(asked.path, lock=asked.lock, tests=asked.tests, extras=asked.extras)
        if asked.workload is not None:
            refuse_misnamed(asked.workload, self.project)
        self._locked: tuple[Locked, ...] = read_lock(self.project.lock) if self.project.lock else ()
        self._graph = read_graph(self.project.lock) if self.project.lock else Graph(needs={}, known=False)
        self._apart = self._told_apart()
        # A lock of a project without dependencies is none of these.
        if asked.lock and not self._locked and asked.lock.suffix not in {".toml", ".lock"}:
            raise BadFileError(f"{asked.lock} names no package: fill it, or leave --lock out")
        self._twins = {build.label: reference_of(build, at_hand) for build in builds}
        self.extensions = find_extensions(self.project.root)
        self.project = without_measuring(self.project, asked.workload, builds=self.extensions.any)
        self.project = with_built(self.project, (each.name for each in self.extensions.modules))
        self._places: dict[str, Place] = {}   # where the project itself was installed, or was to be
        everything = (*self._builds, *(twin for twin in self._twins.values() if twin))
        self._kept = kept(self.project, everything) if kept else None
        if self._kept and self._kept.doubt:
            say(self._kept.doubt)
        self._known: dict[str, float] = {}   # parts that were measured before, and when
        self._turns = Turns(alone=False, waiting=lambda: say(WAITING), told=True)

    def go(self) -> Evaluation:
        """Make every step and return what it comes to.

        Raises:
            KeyboardInterrupt: everything that was started is gone.
        """
        self._say_what_the_lock_offers()
        reports, inside = self._packages()
        twins = self._all_twins()
        with tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as folder:
            # Only when something is run there: what was measured before needs none.
            benches = cache(lambda: self._benches(Path(folder), (*self._builds, *twins)))
            own = self._once("extensions", lambda: self._own(benches())) if self.extensions.any else {}
            workers = self._once("workers", lambda: {
                twin.label: self._workers(twin, inside[twin.label], benches()[twin.label]) for twin in twins})
            tests, lacking = self._once("tests", lambda: (self._tests(benches()), _lacking(benches())),
                                        str(self.project.tests))
            self.project = without(self.project, tests.values())
            run = str(self.project.tests), str(self._asked.workload)
            races = self._once("races", lambda: look_for_races(
                Wanted(project=self.project, workload=self._asked.workload, threads=self._asked.threads),
                self._to_race(benches()), tests, left=self._left, say=self._say), *run)
            compared = self._once("speed", lambda: self._compared(benches(), tests, twins), *run,
                                  str(self._asked.budget))
        return self._evaluation(reports, inside, own, tests, races, workers, compared, lacking)

    def look(self, name: str) -> Evaluation:
        """Return what is known of `name` without running the project: the packages, and what was measured before.

        Its own extension modules are built only for one of them, and where that was not done before.

        Raises:
            KeyboardInterrupt: everything that was started is gone.
        """
        reports, inside = self._packages()
        labels = [build.label for build in (*self._builds, *self._all_twins())]
        tests: dict[str, TestRun | Missing] = dict.fromkeys(labels, NOT_RUN)
        lacking: Mapping[str, tuple[str, ...]] = {}
        if (earlier := self._earlier("tests", str(self.project.tests))) is not None:
            tests, lacking = earlier
        self.project = without(self.project, tests.values())
        run = str(self.project.tests), str(self._asked.workload)
        nowhere = Compared(machine=NOT_RUN, others=NOT_RUN, several=False,
                           sections=dict.fromkeys(labels, Sections.missing(NOT_RUN)))
        compared = self._earlier("speed", *run, str(self._asked.budget)) or nowhere
        own = self._earlier("extensions") if self.extensions.any else {}
        if own is None:
            known = any(isinstance(each, BuildReport) and each.knows(name)
                        for each in (*reports.values(), *inside.values()))
            own = {} if known else self._built()
        return self._evaluation(reports, inside, own, tests, NOT_RUN, {}, compared, lacking)

    def _built(self) -> dict[str, OwnBuild]:
        """Return what the project's own extension modules do on each build, which takes building them."""
        with tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as folder:
            return self._once("extensions", lambda: self._own(
                self._benches(Path(folder), (*self._builds, *self._all_twins()))))

    def _packages(self) -> tuple[dict[str, BuildReport | Missing], dict[str, BuildReport | Missing]]:
        """Return what the packages do on the builds without a GIL, and on their twins."""
        reports = self._once("packages", lambda: self._newest(self._readiness(self._builds, interpreters=False)))
        inside = self._once("interpreters", lambda: self._readiness(self._all_twins(), interpreters=True))
        return reports, inside

    def _all_twins(self) -> tuple[Build, ...]:
        return tuple({twin.label: twin for twin in self._twins.values() if twin}.values())

    def _once[Value](self, name: str, make: Callable[[], Value], *depends: str) -> Value:
        """Return a part of the evaluation: as it was measured before, or measured now and kept."""
        steps = {key: text for key, text in STEPS.items() if key != "extensions" or self.extensions.any}
        what, number = steps[name], [*steps].index(name) + 1
        after = [*steps.values()][number:]
        then = f"; next: {after[0]}" if after else ""
        if (part := self._earlier(name, *depends)) is not None:
            self._say(f"{number}/{len(steps)} {what}: nothing has changed since it was measured{then}")
            return cast("Value", part)
        before = self._kept.open(name, *self._options(), *depends) if self._kept else ""
        again = f" once more, as before: {before}" if before else ""
        self._say(f"{number}/{len(steps)} {what}{again}{then}")
        value = make()
        if self._kept:
            self._kept.put(name, value, *self._options(), *depends)
        return value

    def _earlier(self, name: str, *depends: str) -> Any:
        part = self._kept.get(name, *self._options(), *depends) if self._kept else None
        if part is None:
            return None
        self._known[STEPS[name]] = part.made
        return part.value

    def _options(self) -> tuple[str, ...]:
        """Return what every part depends on beside files: on which builds, with which versions of packages."""
        lock = self.project.lock
        content = digest(sums(lock.parent, [lock])) if lock else ""
        asked = str(self._asked.sdists), str(self._asked.extras), str(self._asked.threads), str(self._asked.offline)
        return *(build.label for build in self._builds), content, *asked

    def _evaluation(
        self, reports: dict[str, BuildReport | Missing], inside: dict[str, BuildReport | Missing],
        own: Mapping[str, OwnBuild], tests: dict[str, TestRun | Missing], races: Races | Missing,
        workers: Mapping[str, Workers | Broken | Missing],
        compared: Compared, lacking: Mapping[str, tuple[str, ...]],
    ) -> Evaluation:
        """Return all that was found, with what it comes to."""
        machine, twins, seconds = compared.machine, self._all_twins(), self._clock() - self._began
        builds = tuple(self._one(build, reports, tests, compared.sections[build.label], own.get(build.label))
                       for build in self._builds)
        interpreters = tuple(
            replace(_interpreters(twin, inside[twin.label], compared, workers.get(twin.label, UNASKED)),
                    own=own.get(twin.label))
            for twin in twins)
        processes = tuple(_processes(twins, compared))
        conclusions = (
            *(conclude(each, machine, races, self.extensions) for each in builds),
            *(conclude_interpreters(each, machine, races, self.extensions) for each in interpreters),
            *(conclude_processes(each, machine, races, self.extensions) for each in processes))
        return answered(Evaluation(
            project=self.project, machine=machine, builds=builds, interpreters=interpreters, processes=processes,
            races=races, conclusions=conclusions, extensions=self.extensions,
            next_steps=next_steps(builds, races, conclusions, self.extensions, machine=machine,
                                  needed=needed_to_run(self.project) if any(lacking.values()) else frozenset(),
                                  seconds=seconds, measuring=self.project.measuring),
            seconds=seconds, development=self._development(lacking),
            upkeep=upkeep(self.project.root), command=self._command(), kept=tuple(self._known),
            kept_since=min(self._known.values(), default=None),
        ))

    def _command(self) -> str:
        """Return the command that asks for this evaluation, without what only changes its output."""
        asked = self._asked
        named = [("--lock", asked.lock), ("--tests", asked.tests), ("--workload", asked.workload),
                 ("--threads", asked.threads or None),
                 ("--budget", None if asked.budget == BUDGET else f"{asked.budget:g}s"),
                 *(("--extra", name) for name in asked.extras),
                 ("--builds", asked.labels), *(("--build", each) for each in asked.added)]
        words = [word for option, value in named if value is not None for word in (option, str(value))]
        words += ["--offline"] * asked.offline + ["--build-sdists"] * asked.sdists
        return shlex.join(["gilscope", "evaluate", str(asked.path), *words])

    def _told_apart(self) -> Apart:
        """Return the packages of the lock, those that the project needs to run apart from the others."""
        return apart(self._locked, self._graph, map(name_of, self.project.requirements) if self.project.declares
                     else None)

    def _development(self, lacking: Mapping[str, tuple[str, ...]]) -> Development | None:
        runtime = {each.name for each in self._apart.runtime} | set(map(name_of, self.project.requirements))
        others = {label: names for label, missing in lacking.items()
                  if (names := tuple(name for name in missing if name not in runtime))}
        wanted = (name_of(text) for text in self.project.test_requirements)
        packages = tuple(dict.fromkeys([*(each.name for each in self._apart.development),
                                        *(name for name in wanted if name not in runtime)]))
        found = Development(packages=packages, extras=self.project.extras, lacking=others)
        return found if packages or found.extras or others else None

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Have this machine to measure; to wait for it takes nothing from the budget."""
        began = self._clock()
        with self._turns.turn():
            self._began += self._clock() - began
            yield

    def _left(self) -> float:
        return self._asked.budget - (self._clock() - self._began)

    def _one(
        self, build: Build, reports: dict[str, BuildReport | Missing], tests: dict[str, TestRun | Missing],
        speed: Sections, own: OwnBuild | None,
    ) -> BuildEvaluation:
        twin = self._twins[build.label]
        there = tests[twin.label] if twin else Missing(reason=f"no build like {build.label} with a GIL is at hand")
        return BuildEvaluation(
            build=build, offered=self._offered(build), readiness=reports[build.label], tests=tests[build.label],
            reference_tests=there, cost=speed.cost, gain=speed.gain, contention=speed.contention, failure=speed.failure,
            forced=speed.forced, own=own, otherwise=speed.otherwise,
        )

    def _offered(self, build: Build) -> tuple[Offered, ...] | Missing:
        return offered(self._apart.runtime, build) if self._locked else Missing(reason="the project has no lock file")

    def _request(self, beside: Sequence[str] = ()) -> scratch.Request:
        """Return what is to be installed: the lock's versions where there is one, and what is needed beside.

        Of what a lock has for developers only what that needs: the rest decides nothing, and may have no wheel.
        """
        pins = self._apart.runtime
        if beside and (wanted := reached(self._graph, map(name_of, beside))):
            pins = (*pins, *(each for each in self._apart.development if each.name in wanted))
        locked = {each.name for each in self._locked}
        own = [text for text in self.project.requirements if name_of(text) not in locked]   # an older lock lacks it
        runtime = (*(each.pin for each in pins), *own)
        # What a lock has for others is imported by those.
        asked = tuple(map(name_of, (*self.project.requirements, *beside))) if self._locked else ()
        return scratch.Request(requirements=(*runtime, *beside), sdists=self._asked.sdists, offline=self._asked.offline,
                               asked=asked)

    def _readiness(self, builds: Sequence[Build], *, interpreters: bool) -> dict[str, BuildReport | Missing]:
        """Return what the packages do on each build, by its label."""
        request = self._request()
        if not request.requirements:   # nothing can be in the way
            return {build.label: BuildReport(build=build, reference=self._twins.get(build.label), findings=(), others=0)
                    for build in builds}
        if self._left() <= 0:
            return dict.fromkeys((build.label for build in builds), NO_TIME)
        try:
            found = diagnose(request, builds, self._at_hand, Options(interpreters=interpreters), self._say)
        except BuildError as error:
            return dict.fromkeys((build.label for build in builds), Missing(reason=str(error), failed=True))
        return dict.fromkeys((build.label for build in builds), NOTHING_INSTALLED) | {
            each.build.label: each for each in found}

    def _say_what_the_lock_offers(self) -> None:
        """Say at once what the lock alone tells: it takes no network and hardly a second."""
        for build in self._builds if self._locked else ():
            offers = offered(self._apart.runtime, build)
            if all(each.kind == "not known" for each in offers):
                continue   # requirements files name no files
            fitting = sum(each.kind in {"binary", "pure"} for each in offers)
            without = [each.name for each in offers if each.kind in {"sdist", "nothing"}]
            lacking = f"; no wheel: {', '.join(without)}" if without else ""
            self._say(f"{build.label}: {fitting} of {len(offers)} packages of the lock have a wheel{lacking} "
                      "(metadata only, not a verdict)")

    def _newest(self, reports: dict[str, BuildReport | Missing]) -> dict[str, BuildReport | Missing]:
        """Return the reports with what the newest versions of what blocks do, when there is time to install them."""
        found = [each for each in reports.values() if isinstance(each, BuildReport)]
        if self._asked.offline or self._left() <= self._asked.budget * SHARE_KEPT:
            return reports
        try:
            return reports | {each.build.label: each for each in with_newest(found, self._at_hand, say=self._say)}
        except BuildError as error:
            self._say(f"newer versions could not be looked at: {error}")
            return reports

    def _benches(self, folder: Path, builds: Sequence[Build]) -> dict[str, Bench | Missing]:
        """Return where the project's code is run on each build: its packages, what its tests need, and itself."""
        if self.project.tests is None and self._asked.workload is None and not self.extensions.any:
            return dict.fromkeys((build.label for build in builds), Missing(reason="no tests were found"))
        if self._left() <= 0:
            return dict.fromkeys((build.label for build in builds), NO_TIME)
        beside = (*self.project.test_requirements, *needed_by(self.project.tests))
        request = self._request((*beside, *NEEDED_AT_ONCE) if self._asked.threads else beside)
        try:
            made = scratch.prepare(request, builds, self._say, self._at_hand)
        except ToolkitError as error:
            return dict.fromkeys((build.label for build in builds), Missing(reason=str(error), failed=True))
        return {build.label: self._bench(folder, build, made.get(build.label)) for build in builds}

    def _bench(self, folder: Path, build: Build, made: scratch.Scratch | None) -> Bench | Missing:
        if made is None:
            return NOTHING_INSTALLED
        target = folder / build.label
        done = self._install(build, made, target)
        self._places[build.label] = Place(build=build, python=made.python, target=target, installation=done)
        if done.failure:
            self._say(f"{build.label}: the project itself is imported from its folder, not installed: {done.failure}")
        root = None if done.failure or not self.extensions.any else folder / f"{build.label}-tree"
        if root and (reason := stage(self.project, target, root)):
            self._say(f"{build.label}: its tests are run beside its sources, as there is no copy: {reason}")
            root = None
        return Bench(build=build.label, python=made.python, lacking=tuple(made.missing), root=root,
                     folders=self.project.sources if done.failure else (target,),
                     compiled=folder / f"{build.label}-compiled")

    def _to_race(self, benches: dict[str, Bench | Missing]) -> dict[str, Bench | Missing]:
        """Return where races are looked for: compiled Python is watched before it is compiled."""
        if not self.extensions.runs_uncompiled:
            return benches
        return {label: bench if isinstance(bench, Missing) else bench.without_compiled(self.project)
                for label, bench in benches.items()}

    def _install(self, build: Build, made: scratch.Scratch, target: Path) -> Installation:
        """Install the project itself.  What builds it would be downloaded."""
        if self._asked.offline:
            return Installation(failure="--offline")
        if not self.extensions.any:
            return install_project(self.project, made.folder, target)
        stamp = self._kept.stamp() if self._kept else ""
        if stamp and self._kept and not self._kept.fresh and (before := built_before(made.folder, target, stamp)):
            self._say(f"{build.label}: the project itself was built before")
            return before
        self._say(f"{build.label}: build the project itself with its extension modules")
        done = install_project(self.project, made.folder, target)
        if stamp and not done.failure:
            keep_built(made.folder, target, stamp, done)
        return done

    def _own(self, benches: dict[str, Bench | Missing]) -> dict[str, OwnBuild]:
        """Return what the project's own extension modules do on each build, by its label."""
        twins = {label: twin.label for label, twin in self._twins.items() if twin}
        never = {label: OwnBuild(build=label, failure=bench.reason) for label, bench in benches.items()
                 if isinstance(bench, Missing)}
        return never | own_builds(self.extensions, self._places, twins)

    def _workers(
        self, twin: Build, readiness: BuildReport | Missing, bench: Bench | Missing,
    ) -> Workers | Broken | Missing:
        """Return what one more interpreter takes, with everything of the project that loads there."""
        if self._left() <= 0:
            return NO_TIME
        if isinstance(readiness, Missing):
            return readiness
        self._say(f"{twin.label}: what one more interpreter, thread and process take")
        path = self.project.sources if isinstance(bench, Missing) else bench.folders
        python = readiness.python or (Path(twin.executable) if isinstance(bench, Missing) else bench.python)
        with self._turn():
            return measure_workers(
                python, modules_inside(self.project, readiness), path=[str(each) for each in path],
                foreign=path == self.project.sources, limit=min(WORKERS_LIMIT, self._left() * SHARE_FOR_WORKERS))

    def _tests(self, benches: dict[str, Bench | Missing]) -> dict[str, TestRun | Missing]:
        """Run the tests on each build, the twins with a GIL last: without the others they tell nothing."""
        found: dict[str, TestRun | Missing] = {}
        for number, (label, bench) in enumerate(benches.items()):
            if isinstance(bench, Missing):
                found[label] = bench
                continue
            if self.project.tests:
                self._say(f"{label}: run {' '.join(self.project.tests)}")
            limit = self._left() * SHARE_FOR_TESTS / (len(benches) - number)
            found[label] = run_tests(bench.placed(self.project), bench, limit=limit)
        return found

    def _compared(
        self, benches: dict[str, Bench | Missing], tests: dict[str, TestRun | Missing], twins: Sequence[Build],
    ) -> Compared:
        labels = {label: twin.label for label, twin in self._twins.items() if twin}
        if self._asked.wait_quiet:
            began = self._clock()
            wait_quiet(self._asked.wait_quiet, self._say)
            self._began += self._clock() - began   # waiting takes nothing from the budget
        comparing = Comparing(self.project, self._asked.workload, (*self._builds, *twins), labels, left=self._left,
                              say=self._say, turn=self._turn)
        return comparing.compare(benches, tests)


def _lacking(benches: Mapping[str, Bench | Missing]) -> dict[str, tuple[str, ...]]:
    """Return what could not be installed of what the project's code is run with, by the build's label."""
    return {label: bench.lacking for label, bench in benches.items() if isinstance(bench, Bench)}


def _interpreters(
    twin: Build, readiness: BuildReport | Missing, compared: Compared, workers: Workers | Broken | Missing,
) -> InterpretersEvaluation:
    if isinstance(compared.others, Missing):
        return InterpretersEvaluation(build=twin, readiness=readiness, measured=compared.others, workers=workers)
    inside = compared.others["subinterpreters", twin.label]
    return InterpretersEvaluation(build=twin, readiness=readiness, workers=workers, measured=inside.measured,
                                  failure=inside.failure)


def _processes(twins: Sequence[Build], compared: Compared) -> Iterator[ProcessesEvaluation]:
    """Yield what processes do on each build with a GIL; nothing where no function was measured."""
    if isinstance(compared.others, Missing) or not compared.several:
        return
    for twin in twins:
        yield ProcessesEvaluation(build=twin, measured=compared.others["processes", twin.label].measured)
