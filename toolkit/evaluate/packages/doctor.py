"""Examine the packages of a request on each build: install them, read slots, import them, judge the results.

This module decides which process runs when; `judge` decides what the results mean.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path  # noqa: TC003 - the cache reads the hints
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from gilscope.toolkit.builds.missing_packages import distribution_of, has_exact_version
from gilscope.toolkit.builds.package_installer import InstallProblem
from gilscope.toolkit.evaluate.packages.evidence import (
    Distribution,
    InterpreterReason,
    InterpreterStatus,
    PackageEvidence,
    PackageVerdict,
    Status,
)
from gilscope.toolkit.evaluate.packages.imports import (
    LIMIT,
    all_at_once,
    read_extensions,
)
from gilscope.toolkit.evaluate.packages.inspect import ImportOutcome, Inspector
from gilscope.toolkit.evaluate.packages.judge import judge_interpreters, judge_package, owns
from gilscope.toolkit.evaluate.packages.scratch import (
    EnvironmentRequest,
    chooser,
    chooses_well,
    newest_versions,
    prepare,
)
from gilscope.toolkit.evaluate.requirements.closure import dependency_chains
from gilscope.toolkit.gil_guard.package_answers import VersionAnswer, remember
from gilscope.toolkit.model import Build  # noqa: TC001 - the cache reads the hints
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gilscope.toolkit.evaluate.packages.evidence import ImportRun, ImportStep
    from gilscope.toolkit.evaluate.packages.scratch import ScratchEnvironment

NOT_INSTALLED = InstallProblem("it was not installed")   # the installer did not say why


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorOptions:
    """How thoroughly to examine packages, and for how long."""

    limit: float = LIMIT            # seconds for the imports of one distribution
    interpreters: bool = False      # also try interpreters with their own GIL


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result for one distribution on one build."""

    name: str
    version: str                    # "" if it is not installed
    requested: bool                 # named by the user, not only a dependency
    seen: PackageEvidence
    verdict: PackageVerdict
    interpreters: InterpreterStatus
    interpreter_reasons: tuple[InterpreterReason, ...]
    wanted: str = ""                # the version to install; "" if no build has one
    way: tuple[str, ...] = ()       # chain of dependencies from a requested package to this one

    @property
    def status_words(self) -> str:
        """The status as people read it; of an import that did not end, how long was waited."""
        run = self.seen.run
        return run.reason if self.verdict.status is Status.HANG and run else self.verdict.status.words

    @property
    def interpreter_words(self) -> str:
        """The status in interpreters as people read it, likewise."""
        runs = self.seen.interpreters
        return runs[-1].reason if self.interpreters is InterpreterStatus.HANG and runs else self.interpreters.words

    def is_called(self, name: str) -> bool:
        """Return True if `name` is the distribution, one of its extension modules, or a file of those."""
        names = {self.name}
        for extension in self.seen.extensions:
            names |= {extension.name, extension.file, extension.file.rpartition("/")[2]}
        return name in names or canonicalize_name(name) == self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    """The results on one build."""

    build: Build
    reference: Build | None         # the counterpart; None if there is none, so that lost C code cannot be detected
    findings: tuple[Finding, ...]   # sorted by name; without dependencies that are pure Python everywhere
    others: int                     # number of those dependencies
    compiled_elsewhere: tuple[str, ...] = ()   # pure Python here and on the reference, compiled on another build
    newest: dict[str, tuple[str, Status]] = field(default_factory=dict)   # of packages that block: version, status
    unowned: tuple[str, ...] = ()   # modules that turned the GIL on and belong to no distribution
    python: Path | None = None      # of the environment
    rest: tuple[Distribution, ...] = ()   # the distributions without a finding
    ways: dict[str, tuple[str, ...]] = field(default_factory=dict)   # chain of dependencies to each package
    chosen_by: str = ""             # the build that chose the versions, if the resolver may have gone back in time

    @property
    def blocked(self) -> bool:
        """True if any package blocks."""
        return bool(self.unowned) or any(finding.verdict.status.blocks for finding in self.findings)

    def way_to(self, module: str) -> tuple[ImportStep, ...]:
        """Return the first chain of imports from a requested package to an extension module, or () if there is none."""
        for finding in sorted(self.findings, key=lambda each: not each.requested):
            for load in finding.seen.run.loads if finding.seen.run else ():
                if load.name == module and load.part != "extensions" and load.chain:
                    return load.chain
        return ()

    def knows(self, name: str) -> bool:
        """Return True if any distribution here goes by `name`."""
        return (any(finding.is_called(name) for finding in self.findings)
                or any(each.name == canonicalize_name(name) for each in self.rest))


def diagnose(
    request: EnvironmentRequest, builds: Sequence[Build], at_hand: Sequence[Build],
    options: DoctorOptions | None = None, say: Callable[[str], None] = lambda _: None,
) -> tuple[BuildReport, ...]:
    """Return the results for the packages of `request` on each of `builds`.

    Args:
        request: The packages to install.
        builds: The builds to examine, in the order of the result.
        at_hand: The builds among which counterparts with a GIL are found.
        options: How thoroughly to examine.
        say: Callback for progress messages.

    Raises:
        BuildError: An environment cannot be made.
    """
    options = options or DoctorOptions()
    counterparts = {build.label: reference_of(build, at_hand) for build in builds}
    involved = {build.label: build for build in [*builds, *filter(None, counterparts.values())]}
    scratches = prepare(request, list(involved.values()), say, at_hand)
    chosen_by = chooser(request, list(involved.values()), at_hand)
    requested = set(request.asked) or {distribution_of(text) for text in request.requirements}
    compiled = {(each.name, each.version) for scratch in scratches.values() for each in scratch.distributions
                if each.extensions}
    versions = {each.name: each.version for scratch in scratches.values() for each in scratch.distributions}
    reference_runs: dict[str, dict[str, ImportOutcome]] = {}
    reports = []
    for build in builds:
        counterpart = counterparts[build.label]
        scratch = scratches.get(build.label)
        if scratch is None:
            continue
        there = scratches.get(counterpart.label) if counterpart else None
        if counterpart and there and counterpart.label not in reference_runs:
            worth = _worth(there, None, requested)
            say(f"{counterpart.label}: import {counted(len(worth), 'package')}, to compare with")
            reference_runs[counterpart.label] = _import_each(
                _inspector(counterpart, there, options), there, worth, {})
        known = reference_runs.get(counterpart.label, {}) if counterpart else {}
        say(f"{build.label}: look at {counted(len(_worth(scratch, there, requested)), 'package')}")
        report = _report(_Place(build, counterpart, scratch, there, known, compiled, versions, requested, options))
        pinned = all(map(has_exact_version, request.requirements))
        reports.append(replace(report, chosen_by="" if pinned or chooses_well(chosen_by) else chosen_by.label))
        _remember(report)
    return tuple(reports)


def _remember(report: BuildReport) -> None:
    """Store what each version does, for `pytest --gil=off` to quote."""
    if report.build.free_threaded:
        for finding in report.findings:
            if finding.version:
                remember(finding.name, report.build.minor, [VersionAnswer(
                    version=finding.version, mends=finding.verdict.status.mends, status=finding.verdict.status.words)])


def with_newest(
    reports: Sequence[BuildReport], at_hand: Sequence[Build], options: DoctorOptions | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[BuildReport, ...]:
    """Return the reports with the status of the newest version of each package that blocks.

    The newest version is installed and examined in the same way: metadata does not show if it leaves the GIL off.

    Raises:
        BuildError: An environment cannot be made.
    """
    names = sorted({finding.name for report in reports for finding in report.findings if finding.verdict.status.blocks})
    if not names:
        return tuple(reports)
    builds = [report.build for report in reports]
    versions = newest_versions(names, [*builds, *(report.reference for report in reports if report.reference)])
    newer = [name for name in names if _versions(reports, name) != {versions.get(name)}]
    request = EnvironmentRequest(requirements=tuple(newer))
    found = {each.build.label: each for each in diagnose(request, builds, at_hand, options, say)} if newer else {}
    return tuple(replace(report, newest=_newest(found.get(report.build.label)) | {
        finding.name: (finding.version, finding.verdict.status) for finding in report.findings
        if finding.name in names and finding.name not in newer}) for report in reports)


def _versions(reports: Iterable[BuildReport], name: str) -> set[str]:
    """Return the versions of a distribution here and on the counterpart; empty if neither has it."""
    return {version for report in reports for finding in report.findings
            if finding.name == name and (version := version_of(finding))}


def version_of(finding: Finding) -> str:
    """Return the version; for a package that could not be installed, the one on another build."""
    there = finding.seen.reference_distribution
    return finding.version or (there.version if there else finding.wanted)


def _newest(report: BuildReport | None) -> dict[str, tuple[str, Status]]:
    """Return version and status of a package that was requested by name."""
    return {finding.name: (version_of(finding), finding.verdict.status)
            for finding in (report.findings if report else ()) if finding.requested}


def reference_of(build: Build, at_hand: Iterable[Build]) -> Build | None:
    """Return the build with a GIL and the same minor version, preferably the same version."""
    same = [each for each in at_hand if not each.free_threaded and each.minor == build.minor]
    return min(same, key=lambda each: (each.version != build.version, each.debug), default=None)


@dataclass(frozen=True, slots=True)
class _Place:
    """One build with everything needed to examine it."""

    build: Build
    counterpart: Build | None
    scratch: ScratchEnvironment
    there: ScratchEnvironment | None           # of the counterpart
    known: dict[str, ImportOutcome]       # imports on the counterpart
    compiled: set[tuple[str, str]]  # name and version of distributions with C code on any build
    versions: dict[str, str]        # versions to install, by name
    requested: set[str]
    options: DoctorOptions


def _inspector(build: Build, scratch: ScratchEnvironment, options: DoctorOptions) -> Inspector:
    return Inspector(python=scratch.python, free_threaded=build.free_threaded, interpreters=options.interpreters,
                     limit=options.limit, memo=scratch.answers)


def _import_each(
    inspector: Inspector, scratch: ScratchEnvironment, names: Iterable[str], known: Mapping[str, ImportOutcome],
) -> dict[str, ImportOutcome]:
    """Import distributions, each in its own process; those that are not installed are left out."""
    by_name = {each.name: each for each in scratch.distributions}
    return all_at_once(lambda name: inspector.imported(by_name[name], known.get(name)),
                       [name for name in names if name in by_name])


def _worth(scratch: ScratchEnvironment, there: ScratchEnvironment | None, requested: set[str]) -> list[str]:
    """Return the distributions to examine: those with C code on either build, and those that were requested."""
    names = {each.name for each in scratch.distributions if each.extensions or each.name in requested}
    return sorted(names | {each.name for each in (there.distributions if there else ()) if each.extensions})


def _report(place: _Place) -> BuildReport:
    by_name = {each.name: each for each in place.scratch.distributions}
    there = {each.name: each for each in place.there.distributions} if place.there else {}
    names = sorted({*_worth(place.scratch, place.there, place.requested), *place.scratch.missing})
    files = [file for each in place.scratch.distributions for file in each.extensions]
    ways = dependency_chains({each.name: each.requires for each in [*there.values(), *by_name.values()]},
                             place.requested)
    told = {extension.file: extension for extension in read_extensions(
        place.scratch.python, files, memo=place.scratch.answers)}
    inspector = _inspector(place.build, place.scratch, place.options)
    imports = _import_each(inspector, place.scratch, names, place.known)

    def look(name: str) -> Finding:
        found = by_name.get(name)
        seen = PackageEvidence(
            distribution=found, free_threaded=place.build.free_threaded,
            run=imports[name].run if name in imports else None,
            missing=_missing(place, name), newer=place.scratch.newer.get(name, ""),
            extensions=tuple(told[file] for _, file in found.extensions) if found else (),
            reference=place.known[name].run if name in place.known else None, reference_distribution=there.get(name))
        seen = inspector.asked_more(seen, imports[name].wanted) if name in imports else seen
        return replace(_finding(place, name, seen), way=ways.get(name, ()), wanted=place.versions.get(name, ""))

    findings = tuple(all_at_once(look, names).values())
    return BuildReport(build=place.build, reference=place.counterpart if place.there else None, findings=findings,
                       others=len(by_name) - sum(name in by_name for name in names),
                       rest=tuple(each for name, each in by_name.items() if name not in names), ways=ways,
                       compiled_elsewhere=_compiled_elsewhere(place, names), python=place.scratch.python,
                       unowned=_unowned([each.run for each in imports.values()], place.scratch.distributions))


def _missing(place: _Place, name: str) -> InstallProblem:
    problem = place.scratch.missing.get(name, NOT_INSTALLED)
    counterpart_lacks = place.counterpart and place.there and place.there.missing.get(name)
    if counterpart_lacks and counterpart_lacks.not_found:
        return counterpart_lacks
    if counterpart_lacks and place.counterpart and place.counterpart != place.build:
        # It fails on both builds, so it is not about the GIL; it may be a misspelt name.
        problem = replace(problem, reason=f"{problem.reason}, nor for {place.counterpart.label}")
    return problem


def _finding(place: _Place, name: str, seen: PackageEvidence) -> Finding:
    interpreters, reasons = judge_interpreters(seen)
    verdict = judge_package(seen)
    if verdict.status is Status.FAILS and (needed := _missing_needs(place, seen)):
        verdict = replace(verdict, reasons=(*verdict.reasons, f"it needs {needed}, which is not there"))
    return Finding(
        name=name, version=seen.distribution.version if seen.distribution else "", requested=name in place.requested,
        seen=seen, verdict=verdict, interpreters=interpreters, interpreter_reasons=reasons)


def _missing_needs(place: _Place, seen: PackageEvidence) -> str:
    assert seen.distribution is not None
    return ", ".join(name for name in seen.distribution.requires if name in place.scratch.missing)


def _compiled_elsewhere(place: _Place, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(each.name for each in place.scratch.distributions
                 if (each.name, each.version) in place.compiled and (each.name not in names or not each.extensions)
                 and not any(there.name == each.name and there.extensions
                             for there in (place.there.distributions if place.there else ())))


def _unowned(runs: Iterable[ImportRun], distributions: Sequence[Distribution]) -> tuple[str, ...]:
    """Return modules that need the GIL and belong to no distribution: Python's own, or stray files."""
    return tuple(sorted({load.name for run in runs for load in run.loads if load.gil == "used" and load.error is None
                         and not any(owns(each, load) for each in distributions)
                         and not re.search(r"__mypyc$", load.name)}))
