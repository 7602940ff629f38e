"""Ask everything about the packages of a request on each build, and judge it: install, slots, imports, interpreters.

Which process runs when is decided here; what it means is decided in `judge`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gilscope.toolkit.builds.packages.installer import NO_VERSION, UNKNOWN
from gilscope.toolkit.builds.packages.lacking import normalized
from gilscope.toolkit.builds.pairing import minor_of
from gilscope.toolkit.evaluate.packages.ask.every_import import Import, all_at_once, import_each
from gilscope.toolkit.evaluate.packages.ask.imports import LIMIT, Wanted, import_run, interpreter_runs
from gilscope.toolkit.evaluate.packages.ask.slots import read_extensions
from gilscope.toolkit.evaluate.packages.facts import Seen
from gilscope.toolkit.evaluate.packages.install.installing import name_of
from gilscope.toolkit.evaluate.packages.install.scratch import Request, chooser, chooses_well, newest_versions, prepare
from gilscope.toolkit.evaluate.packages.judge.distribution import judge
from gilscope.toolkit.evaluate.packages.judge.interpreters import judge_interpreters
from gilscope.toolkit.evaluate.packages.judge.modules import owns
from gilscope.toolkit.evaluate.packages.judge.status import InterpreterStatus, Status, Verdict
from gilscope.toolkit.evaluate.requirements.chains import chains

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from gilscope.toolkit.evaluate.packages.facts import Distribution, ImportRun
    from gilscope.toolkit.evaluate.packages.install.scratch import Scratch
    from gilscope.toolkit.model import Build

# What packages import most, for a control run after a crash that left no list of its own.
USUAL_STDLIB = ("asyncio", "collections", "ctypes", "datetime", "decimal", "hashlib", "json", "logging", "pickle",
                "random", "re", "socket", "ssl", "struct", "subprocess", "tempfile", "threading", "typing", "zlib")
NOT_A_CONTROL = {"antigravity", "idlelib", "this", "turtledemo", "__main__"}   # importing them does something


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How thoroughly, and how long."""

    limit: float = LIMIT            # seconds for the imports of one distribution
    interpreters: bool = False      # try interpreters of their own, too


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One distribution on one build."""

    name: str
    version: str                    # "" when it is not there
    requested: bool                 # named by the user, not only needed by what was
    seen: Seen
    verdict: Verdict
    interpreters: InterpreterStatus
    interpreter_reasons: tuple[str, ...]
    wanted: str = ""                # the version that was to be installed; "" when no build has it
    way: tuple[str, ...] = ()       # packages, from one that was asked for down to this one

    def is_called(self, name: str) -> bool:
        """Return whether it is asked for by `name`: its own, or that of one of its extension modules or their files."""
        names = {self.name}
        for extension in self.seen.extensions:
            names |= {extension.name, extension.file, extension.file.rpartition("/")[2]}
        return name in names or normalized(name) == self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    """Everything found on one build."""

    build: Build
    reference: Build | None         # its twin with a GIL; None: none is at hand, so lost C code cannot be told
    findings: tuple[Finding, ...]   # by name; without pure dependencies that have no C code anywhere
    others: int                     # how many those are
    twins: tuple[str, ...] = ()     # pure Python here and on the reference, compiled on another build
    newest: dict[str, tuple[str, Status]] = field(default_factory=dict)   # of what blocks; empty: not asked
    unowned: tuple[str, ...] = ()   # modules that turned the GIL on and belong to no distribution
    python: Path | None = None      # of the environment that was looked at
    rest: tuple[Distribution, ...] = ()   # the others
    ways: dict[str, tuple[str, ...]] = field(default_factory=dict)   # to each package, from one that was asked for
    chosen_by: str = ""             # the build that chose the versions, when the resolver may have gone back in time

    @property
    def blocked(self) -> bool:
        """Whether anything stands in the way."""
        return bool(self.unowned) or any(finding.verdict.status.blocks for finding in self.findings)

    def knows(self, name: str) -> bool:
        """Return whether anything of it is asked for by `name`."""
        return (any(finding.is_called(name) for finding in self.findings)
                or any(each.name == normalized(name) for each in self.rest))


def diagnose(
    request: Request, builds: Sequence[Build], at_hand: Sequence[Build], options: Options | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[BuildReport, ...]:
    """Return what the packages of `request` do on each of `builds`.

    Args:
        request: What to install.
        builds: Asked about, in the order of the result.
        at_hand: Where the twins with a GIL are looked for.
        options: How thoroughly.
        say: Is told about every step.

    Raises:
        BuildError: An environment cannot be made.
    """
    options = options or Options()
    twins = {build.label: reference_of(build, at_hand) for build in builds}
    involved = {build.label: build for build in [*builds, *filter(None, twins.values())]}
    scratches = prepare(request, list(involved.values()), say, at_hand)
    chosen_by = chooser(request, list(involved.values()), at_hand)
    requested = set(request.asked) or {name_of(text) for text in request.requirements}
    compiled = {(each.name, each.version) for scratch in scratches.values() for each in scratch.distributions
                if each.extensions}
    versions = {each.name: each.version for scratch in scratches.values() for each in scratch.distributions}
    reference_runs: dict[str, dict[str, Import]] = {}
    reports = []
    for build in builds:
        twin = twins[build.label]
        scratch = scratches.get(build.label)
        if scratch is None:
            continue
        there = scratches.get(twin.label) if twin else None
        if twin and there and twin.label not in reference_runs:
            say(f"{twin.label}: import {_counted(_worth(there, None, requested))}, to compare with")
            reference_runs[twin.label] = import_each(
                there, _worth(there, None, requested), {}, limit=options.limit)
        known = reference_runs.get(twin.label, {}) if twin else {}
        say(f"{build.label}: look at {_counted(_worth(scratch, there, requested))}")
        report = _report(_Place(build, twin, scratch, there, known, compiled, versions, requested, options))
        pinned = all("==" in text for text in request.requirements)
        reports.append(replace(report, chosen_by="" if pinned or chooses_well(chosen_by) else chosen_by.label))
    return tuple(reports)


def with_newest(
    reports: Sequence[BuildReport], at_hand: Sequence[Build], options: Options | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[BuildReport, ...]:
    """Return the reports with what the newest version does of everything that blocks in the version asked about.

    It is installed and asked like the other, as no metadata tells that a version leaves the GIL off.

    Raises:
        BuildError: An environment cannot be made.
    """
    names = sorted({finding.name for report in reports for finding in report.findings if finding.verdict.status.blocks})
    if not names:
        return tuple(reports)
    builds = [report.build for report in reports]
    versions = newest_versions(names, [*builds, *(report.reference for report in reports if report.reference)])
    newer = [name for name in names if _versions(reports, name) != {versions.get(name)}]
    request = Request(requirements=tuple(newer))
    found = {each.build.label: each for each in diagnose(request, builds, at_hand, options, say)} if newer else {}
    return tuple(replace(report, newest=_newest(found.get(report.build.label)) | {
        finding.name: (finding.version, finding.verdict.status) for finding in report.findings
        if finding.name in names and finding.name not in newer}) for report in reports)


def _versions(reports: Iterable[BuildReport], name: str) -> set[str]:
    """Return the versions of a distribution; where neither the build nor its twin has it, there is none to tell."""
    return {version for report in reports for finding in report.findings
            if finding.name == name and (version := version_of(finding))}


def version_of(finding: Finding) -> str:
    """Return the version; of what could not be installed, the one that another build has."""
    there = finding.seen.reference_distribution
    return finding.version or (there.version if there else finding.wanted)


def _newest(report: BuildReport | None) -> dict[str, tuple[str, Status]]:
    """Return version and status of what was asked for by name."""
    return {finding.name: (version_of(finding), finding.verdict.status)
            for finding in (report.findings if report else ()) if finding.requested}


def reference_of(build: Build, at_hand: Iterable[Build]) -> Build | None:
    """Return the build with a GIL that has the same minor version, the same version if there is one."""
    same = [each for each in at_hand if not each.free_threaded and minor_of(each) == minor_of(build)]
    return min(same, key=lambda each: (each.version != build.version, each.debug), default=None)


@dataclass(frozen=True, slots=True)
class _Place:
    """One build with all that is at hand to look at it."""

    build: Build
    twin: Build | None
    scratch: Scratch
    there: Scratch | None           # the twin's environment
    known: dict[str, Import]       # what was imported on the twin
    compiled: set[tuple[str, str]]  # name and version of what has C code on any build
    versions: dict[str, str]        # that were to be installed, by name
    requested: set[str]
    options: Options


def _counted(packages: Sequence[object]) -> str:
    return "1 package" if len(packages) == 1 else f"{len(packages)} packages"


def _worth(scratch: Scratch, there: Scratch | None, requested: set[str]) -> list[str]:
    """Return the names of what is worth a process: whatever has C code on either build, and what was asked for."""
    names = {each.name for each in scratch.distributions if each.extensions or each.name in requested}
    return sorted(names | {each.name for each in (there.distributions if there else ()) if each.extensions})


def _report(place: _Place) -> BuildReport:
    by_name = {each.name: each for each in place.scratch.distributions}
    there = {each.name: each for each in place.there.distributions} if place.there else {}
    names = sorted({*_worth(place.scratch, place.there, place.requested), *place.scratch.missing})
    files = [file for each in place.scratch.distributions for file in each.extensions]
    ways = chains({each.name: each.requires for each in [*there.values(), *by_name.values()]}, place.requested)
    told = {extension.file: extension for extension in read_extensions(
        place.scratch.python, files, memo=place.scratch.answers)}
    imports = import_each(place.scratch, names, place.known, limit=place.options.limit)

    def look(name: str) -> Finding:
        found = by_name.get(name)
        seen = Seen(
            distribution=found, free_threaded=place.build.free_threaded,
            run=imports[name].run if name in imports else None,
            missing=_missing(place, name), newer=place.scratch.newer.get(name, ""),
            extensions=tuple(told[file] for _, file in found.extensions) if found else (),
            reference=place.known[name].run if name in place.known else None, reference_distribution=there.get(name))
        seen = _asked_more(place, seen, imports[name].wanted) if name in imports else seen
        return replace(_finding(place, name, seen), way=ways.get(name, ()), wanted=place.versions.get(name, ""))

    findings = tuple(all_at_once(look, names).values())
    return BuildReport(build=place.build, reference=place.twin if place.there else None, findings=findings,
                       others=len(by_name) - sum(name in by_name for name in names),
                       rest=tuple(each for name, each in by_name.items() if name not in names), ways=ways,
                       twins=_twins(place, names), python=place.scratch.python,
                       unowned=_unowned([each.run for each in imports.values()], place.scratch.distributions))


def _missing(place: _Place, name: str) -> str:
    reason = place.scratch.missing.get(name, "it was not installed")
    twin_lacks = place.twin and place.there and place.there.missing.get(name)
    if twin_lacks and twin_lacks.startswith((UNKNOWN, NO_VERSION)):
        return twin_lacks
    if twin_lacks and place.twin and place.twin != place.build:
        why, between, more = reason.partition("; ")
        # So it is not about the GIL, and may be a slip of the pen.
        reason = f"{why}, nor for {place.twin.label}{between}{more}"
    return reason


def _asked_more(place: _Place, seen: Seen, wanted: Wanted) -> Seen:
    """Return `seen` with the runs that what was seen calls for: the GIL forced off, a control, interpreters."""
    run = seen.run
    if seen.distribution is None or run is None:
        return seen
    python, limit, memo = place.scratch.python, place.options.limit, place.scratch.answers
    flipped = bool(run.gil_on) and place.build.free_threaded
    if flipped:
        seen = replace(seen, forced=import_run(python, wanted, limit=limit, force_off=True, memo=memo))
    stdlib = Wanted(roots=_control_modules(seen))
    if run.kind in {"crash", "hang"} or flipped:
        seen = replace(seen, control=import_run(python, stdlib, limit=limit, memo=memo))
    if place.options.interpreters and run.kind == "done":
        runs = interpreter_runs(python, wanted, limit=limit, memo=memo)
        control = interpreter_runs(python, stdlib, limit=limit, memo=memo) if runs[-1].kind in {"crash", "hang"} else ()
        seen = replace(seen, interpreters=runs, interpreters_control=control)
    return seen


def _control_modules(seen: Seen) -> tuple[str, ...]:
    """Return the standard library's modules that the package's import loaded, here or on the twin."""
    names = next((run.stdlib for run in (seen.run, seen.reference) if run and run.stdlib), USUAL_STDLIB)
    return control_modules(names)


def control_modules(names: Iterable[str]) -> tuple[str, ...]:
    """Return what of the standard library a control run may import of what was loaded."""
    return tuple(name for name in names if name.partition(".")[0] not in NOT_A_CONTROL)


def _finding(place: _Place, name: str, seen: Seen) -> Finding:
    interpreters, reasons = judge_interpreters(seen)
    verdict = judge(seen)
    if verdict.status is Status.FAILS and (needed := _missing_needs(place, seen)):
        verdict = replace(verdict, reasons=(*verdict.reasons, f"it needs {needed}, which is not there"))
    return Finding(
        name=name, version=seen.distribution.version if seen.distribution else "", requested=name in place.requested,
        seen=seen, verdict=verdict, interpreters=interpreters, interpreter_reasons=reasons)


def _missing_needs(place: _Place, seen: Seen) -> str:
    assert seen.distribution is not None
    return ", ".join(name for name in seen.distribution.requires if name in place.scratch.missing)


def _twins(place: _Place, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(each.name for each in place.scratch.distributions
                 if (each.name, each.version) in place.compiled and (each.name not in names or not each.extensions)
                 and not any(there.name == each.name and there.extensions
                             for there in (place.there.distributions if place.there else ())))


def _unowned(runs: Iterable[ImportRun], distributions: Sequence[Distribution]) -> tuple[str, ...]:
    """Return modules that need the GIL and came with no distribution: the interpreter's own, or a stray file."""
    return tuple(sorted({load.name for run in runs for load in run.loads if load.gil == "used" and load.error is None
                         and not any(owns(each, load) for each in distributions)
                         and not re.search(r"__mypyc$", load.name)}))
