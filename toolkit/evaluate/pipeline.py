"""Evaluate a project: measure its sections in their order, within the budget, and draw the conclusions.

A section that could not be measured has the reason (`Missing`) in its place.  `run_sites.py` prepares the places where
the project's code runs, `project_requirements.py` says what is installed, and `verdict.py` draws the conclusions.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit import temporary
from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.evaluate.evaluation import Evaluation
from gilscope.toolkit.evaluate.packages.doctor import BuildReport, reference_of
from gilscope.toolkit.evaluate.probes import SECTIONS
from gilscope.toolkit.evaluate.project.ci_and_classifiers import upkeep
from gilscope.toolkit.evaluate.project.discovery import find_project
from gilscope.toolkit.evaluate.project.extensions.find import named_extensions
from gilscope.toolkit.evaluate.project.fingerprint import digest, sums
from gilscope.toolkit.evaluate.project.own_modules import needed_to_run, with_built, without_measuring
from gilscope.toolkit.evaluate.project.workload.name_check import refuse_lone_options, refuse_misnamed
from gilscope.toolkit.evaluate.project_requirements import read_requirements
from gilscope.toolkit.evaluate.run_sites import NO_TESTS, PreparedSites, RunSitePreparer
from gilscope.toolkit.evaluate.section import Means
from gilscope.toolkit.evaluate.sections import NO_TIME, Cause, Missing, known
from gilscope.toolkit.evaluate.verdict import judged
from gilscope.toolkit.measure.machine_lock import WAITING, MachineLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gilscope.toolkit.evaluate.cache import EvaluationCache
    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.request import EvaluationRequest
    from gilscope.toolkit.evaluate.section import Section
    from gilscope.toolkit.model import Build

NOT_RUN = Missing(reason="not run for --explain", cause=Cause.NOT_RUN)
OF_PACKAGES = {"packages", "interpreters"}   # codes of the sections that --explain measures
OF_EXTENSIONS = {"sources", "extensions"}    # likewise, unless it is asked about a package


class Evaluator:
    """One evaluation in progress."""

    def __init__(
        self, request: EvaluationRequest, builds: Sequence[Build], at_hand: Sequence[Build], say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic, *,
        open_cache: Callable[[Project, Sequence[Build]], EvaluationCache] | None = None,
        sections: Sequence[Section] = SECTIONS,
    ) -> None:
        """Evaluate on `builds`, which have no GIL; their counterparts with a GIL are looked for in `at_hand`.

        `open_cache` opens the results of earlier evaluations of the project on those builds; None: keep none.

        Raises:
            BadFileError: The lock that the user named has no packages.
        """
        self._request = request
        self._at_hand = at_hand
        self._say = say
        self._clock = clock
        self._began = clock()
        project = find_project(request.path, lock=request.lock, tests=request.tests, extras=request.extras)
        refuse_lone_options(request)
        if request.workload is not None:
            refuse_misnamed(request.workload, project, request.payloads)
        named = named_extensions(project.root)
        project = with_built(without_measuring(project, request.workload, builds=named.any),
                             (each.name for each in named.modules))
        self._requirements = read_requirements(project)
        # A lock of a project without dependencies is none of these.
        if request.lock and not self._requirements.locked and request.lock.suffix not in {".toml", ".lock"}:
            raise BadFileError(f"{request.lock} names no package: fill it, or leave --lock out")
        counterparts = {build.label: there for build in builds if (there := reference_of(build, at_hand))}
        self._found = Evaluation(
            project=project, request=request, builds=tuple(builds), counterparts=counterparts, named=named,
            with_gil=tuple({each.label: each for each in counterparts.values()}.values()),
            offered={build.label: self._requirements.offered(build) for build in builds})
        self._sections = sections
        self._measured = [each for each in sections if each.measure and each.asked(self._found)]
        self._cache = open_cache(project, self._found.all_builds) if open_cache else None
        if self._cache and self._cache.doubt:
            say(self._cache.doubt)
        self._reused: dict[str, float] = {}   # names of the sections that an earlier call has measured, and when
        self._preparer = RunSitePreparer(self._requirements, named, request=request, at_hand=at_hand,
                                         cache=self._cache, say=say)
        self._machine = MachineLock(alone=False, waiting=lambda: say(WAITING), children_join=True)

    def run(self) -> Evaluation:
        """Measure every section and return the evaluation.

        Raises:
            KeyboardInterrupt: All processes of the evaluation are gone.
        """
        for line in self._requirements.summaries(self._found.builds):
            self._say(line)
        return self._evaluated(lambda _section, _found: True)

    def explain(self, name: str) -> Evaluation:
        """Return an evaluation for --explain `name` without running the project: packages, and what the cache has.

        Its own extension modules are built only if `name` is not a package, and were not built before.

        Raises:
            KeyboardInterrupt: All processes of the evaluation are gone.
        """
        def is_measured(section: Section, found: Evaluation) -> bool:
            return section.code in OF_PACKAGES or (section.code in OF_EXTENSIONS and not _is_package(found, name))

        return self._evaluated(is_measured)

    def _evaluated(self, is_measured: Callable[[Section, Evaluation], bool]) -> Evaluation:
        """Return the evaluation with sections that are measured now, or were by an earlier call."""
        found = self._found
        with tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as folder:
            means = Means(
                requirements=self._requirements, at_hand=self._at_hand, left=self._left, say=self._say,
                sites=cache(lambda: self._prepared(Path(folder))), hold_machine=self._hold_machine,
                uncounted=self._uncounted)
            for number, section in enumerate(self._measured, 1):
                depends = self._depends(section, found)
                result = self._earlier(section, found, depends)
                if is_measured(section, found):
                    self._announce(section, number, depends, known=result is not None)
                if result is None:
                    result = (self._measure(section, found, means, depends) if is_measured(section, found)
                              else section.missing(found, NOT_RUN))
                found = replace(found, sections={**found.sections, section.code: result})
        lacking = {label: run.lacking for label, each in found.tests.items() if (run := known(each))}
        return judged(replace(
            found, needed=needed_to_run(found.collected) if any(lacking.values()) else frozenset(),
            seconds=self._clock() - self._began, development=self._requirements.development(lacking),
            upkeep=upkeep(found.project.root), kept=tuple(self._reused),
            kept_since=min(self._reused.values(), default=None)), self._sections)

    # One section.

    def _depends(self, section: Section, found: Evaluation) -> tuple[str, ...]:
        """Return what the section's result depends on beside files, environment and the code of gilscope."""
        lock = found.project.lock
        return (*found.labels, digest(sums(lock.parent, [lock])) if lock else "",
                *(str(getattr(self._request, each)) for each in section.options), section.depends(found))

    def _earlier(self, section: Section, found: Evaluation, depends: tuple[str, ...]) -> Any:
        """Return the section's result from the cache; None if it is not there or something has changed."""
        part = self._cache.get(section.result, section.code, *depends) if self._cache else None
        if part is None or not section.enough(found, part.value):
            return None
        self._reused[section.name] = part.made
        return part.value

    def _announce(self, section: Section, number: int, depends: tuple[str, ...], *, known: bool) -> None:
        """Say which section comes, that it is `known` or has to be measured once more, and what comes next."""
        after = self._measured[number:]
        why = self._cache.why_provisional(section.code, *depends) if self._cache and not known else ""
        again = f" once more, as before: {why}" if why else ""
        found = ": nothing has changed since it was measured" if known else again
        then = f"; next: {after[0].name}" if after else ""
        self._say(f"{number}/{len(self._measured)} {section.name}{found}{then}")

    def _measure(self, section: Section, found: Evaluation, means: Means, depends: tuple[str, ...]) -> Any:
        assert section.measure
        if section.runs_project:
            means.sites()
        result = section.missing(found, NO_TIME) if self._left() <= 0 else section.measure(found, means)
        if self._cache:
            self._cache.put(section.code, result, *depends)
        return result

    # The means.

    def _left(self) -> float:
        return self._request.budget - (self._clock() - self._began)

    @contextmanager
    def _uncounted(self) -> Iterator[None]:
        """Take the time of the block from the budget's clock."""
        began = self._clock()
        try:
            yield
        finally:
            self._began += self._clock() - began

    @contextmanager
    def _hold_machine(self) -> Iterator[None]:
        """Have this machine to measure; to wait for it takes nothing from the budget."""
        with ExitStack() as stack:
            with self._uncounted():
                stack.enter_context(self._machine.hold())
            yield

    def _prepared(self, folder: Path) -> PreparedSites:
        """Return the run site of the project on each build, the counterparts with a GIL last."""
        builds = self._found.all_builds
        if not self._preparer.needed:
            return PreparedSites.missing(builds, NO_TESTS)
        return PreparedSites.missing(builds, NO_TIME) if self._left() <= 0 else self._preparer.prepare(folder, builds)


def _is_package(found: Evaluation, name: str) -> bool:
    return any(isinstance(each, BuildReport) and each.knows(name) for each in found.packages.values())
