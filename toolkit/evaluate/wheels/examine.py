"""Judge sets of wheels: read every file, install those for the builds at hand, import them, compare with the twin.

`rules` says what the files tell, `packages.doctor` what running them tells; this module combines both.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from gilscope.toolkit.evaluate.facts import Effect
from gilscope.toolkit.evaluate.packages.doctor import DoctorOptions, diagnose, reference_of
from gilscope.toolkit.evaluate.packages.evidence import InterpreterStatus, Status
from gilscope.toolkit.evaluate.packages.installing import LocalFile
from gilscope.toolkit.evaluate.packages.judge import gil_users, lost_modules
from gilscope.toolkit.evaluate.packages.scratch import EnvironmentRequest
from gilscope.toolkit.evaluate.packages.wording import judged, refusals, why
from gilscope.toolkit.evaluate.wheel_tags import kind_of, labels, platform_families
from gilscope.toolkit.evaluate.wheels.choice import FileChoice, choose
from gilscope.toolkit.evaluate.wheels.files import WheelFile, named
from gilscope.toolkit.evaluate.wheels.rules import (
    WheelCode,
    WheelFinding,
    code_of_import,
    installed_on,
    set_findings,
    wheel_findings,
)
from gilscope.toolkit.units import few, inflect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from gilscope.toolkit.evaluate.packages.doctor import BuildReport, Finding
    from gilscope.toolkit.evaluate.wheels.files import Distributable
    from gilscope.toolkit.model import Build

_REFUSED = {InterpreterStatus.FAILS, InterpreterStatus.LOST, InterpreterStatus.CRASH, InterpreterStatus.HANG}


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelRequest:
    """How to judge files."""

    sdists: bool = False     # build and judge the sdist where there is no wheel
    offline: bool = False    # use stored environments, make none
    options: DoctorOptions = field(default_factory=lambda: DoctorOptions(interpreters=True))   # one package is quick


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelsAnswer:
    """The result for the set on one build."""

    build: Build
    choice: FileChoice
    report: BuildReport | None    # of running it; None if nothing was installed
    finding: Finding | None       # about the project itself
    twin: Build | None            # the build with the GIL that it was compared with

    @property
    def status(self) -> Status:
        """The status of the project; no wheel if nothing was installed."""
        if self.finding:
            status, run = self.finding.verdict.status, self.finding.seen.run
            # It fails on the twin, too: for a package of others that may be this machine's fault.
            return Status.FAILS if status is Status.UNKNOWN and run and not run.imported else status
        return Status.UNKNOWN if self.choice.wheel else Status.NO_WHEEL

    @property
    def words(self) -> str:
        """The status as people read it."""
        return self.finding.status_words if self.finding and self.status is Status.HANG else self.status.words


@dataclass(frozen=True, slots=True, kw_only=True)
class SetReport:
    """The results for the files of one version of one project."""

    name: str
    version: str
    files: tuple[Distributable, ...]
    answers: tuple[WheelsAnswer, ...]
    findings: tuple[WheelFinding, ...]
    run: frozenset[Path] = frozenset()   # the files that were installed and imported, those of twins among them

    @property
    def wheels(self) -> tuple[WheelFile, ...]:
        """The wheels of the set."""
        return tuple(each for each in self.files if isinstance(each, WheelFile))

    @property
    def blocked(self) -> bool:
        """True if anything blocks."""
        return any(each.blocks for each in self.findings)


def grouped(files: Iterable[Distributable]) -> tuple[tuple[Distributable, ...], ...]:
    """Return the files of each version of each project, sorted by name and version."""
    sets: dict[tuple[str, Version], list[Distributable]] = defaultdict(list)
    for each in files:
        sets[each.name, Version(each.version)].append(each)
    return tuple(tuple(sorted(sets[key], key=lambda each: each.path.name)) for key in sorted(sets))


def examine(
    sets: Sequence[Sequence[Distributable]], builds: Sequence[Build], at_hand: Sequence[Build], request: WheelRequest,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[SetReport, ...]:
    """Return the results for each set of files.

    Args:
        sets: The files, as `grouped` returns them.
        builds: The builds to examine, in the order of the result.
        at_hand: The builds among which the twins with a GIL are found.
        request: What may be installed, and how thoroughly to import it.
        say: Callback for progress messages.

    Raises:
        BuildError: An environment cannot be made.
    """
    twins = {build.label: reference_of(build, at_hand) for build in builds}
    involved = {each.label: each for each in [*builds, *filter(None, twins.values())]}

    def examine_set(files: Sequence[Distributable]) -> SetReport:
        choices = {label: _installable(choose(files, build), request) for label, build in involved.items()}
        run = [build for build in builds if choices[build.label].file]
        reports: dict[str, BuildReport] = {}
        if run:
            say(f"{named(files[0])}: {few([build.label for build in run], 9)}")
            wanted = _environment(files, sets, involved.values(), choices, request)
            found = diagnose(wanted, run, at_hand, request.options, say)
            reports = {each.build.label: each for each in found}
        answers = tuple(_answer(files[0].name, build, choose(files, build), reports.get(build.label), _twin(
            twins[build.label], choices)) for build in builds)
        return SetReport(name=files[0].name, version=files[0].version, files=tuple(files), answers=answers,
                         findings=tuple(_findings(files, answers, twins)), run=_run(answers, choices))

    return tuple(map(examine_set, sets))


def _run(answers: Sequence[WheelsAnswer], choices: Mapping[str, FileChoice]) -> frozenset[Path]:
    tried = {each.label for answer in answers if answer.report for each in (answer.build, answer.twin) if each}
    return frozenset(file.path for label in tried if (file := choices[label].file))


def _installable(choice: FileChoice, request: WheelRequest) -> FileChoice:
    return choice if choice.wheel or request.sdists else replace(choice, file=None)


def _twin(twin: Build | None, choices: Mapping[str, FileChoice]) -> Build | None:
    """Return the build to compare with if the set has a file for it."""
    return twin if twin and choices[twin.label].file else None


def _environment(
    files: Sequence[Distributable], sets: Sequence[Sequence[Distributable]], builds: Iterable[Build],
    choices: Mapping[str, FileChoice], request: WheelRequest,
) -> EnvironmentRequest:
    """Return the request to install the chosen files, those of other sets that they need, and dependencies."""
    name = files[0].name
    local: dict[str, tuple[LocalFile, ...]] = {}
    needs: dict[str, None] = {}
    for build in builds:
        chosen = choices[build.label].file
        if chosen is None:
            continue
        together, rest = _with_needed(chosen, sets, build, request)
        local[build.label] = tuple(LocalFile(name=each.name, path=str(each.path.resolve()), sha256=each.sha256)
                                   for each in together)
        needs |= dict.fromkeys(rest)
    return EnvironmentRequest(requirements=tuple(needs), sdists=request.sdists, offline=request.offline, asked=(name,),
                              local=local)


def _with_needed(
    chosen: Distributable, sets: Sequence[Sequence[Distributable]], build: Build, request: WheelRequest
) -> tuple[list[Distributable], list[str]]:
    """Return a file with those of other sets that it needs, and the requirements that none of them meets."""
    together, rest = [chosen], []
    for each in together:   # grows meanwhile
        for text in each.metadata.requires:
            name, found = _needed(text, sets, build, request)
            if found is None:
                rest.append(text)
            elif all(other.name != name for other in together):
                together.append(found)
    return together, rest


def _needed(
    text: str, sets: Sequence[Sequence[Distributable]], build: Build, request: WheelRequest
) -> tuple[str, Distributable | None]:
    """Return the name in a requirement, and the file among the sets that meets it on a build."""
    try:
        wanted = Requirement(text)
    except InvalidRequirement:
        return "", None
    name = canonicalize_name(wanted.name)
    for files in sets:
        if files[0].name == name and wanted.specifier.contains(files[0].version, prereleases=True):
            return name, _installable(choose(files, build), request).file
    return name, None


def _answer(
    name: str, build: Build, choice: FileChoice, report: BuildReport | None, twin: Build | None
) -> WheelsAnswer:
    finding = next((each for each in report.findings if each.name == name), None) if report else None
    return WheelsAnswer(build=build, choice=choice, report=report, finding=finding, twin=twin if report else None)


def _findings(
    files: Sequence[Distributable], answers: Sequence[WheelsAnswer], twins: Mapping[str, Build | None]
) -> Iterator[WheelFinding]:
    for file in files:
        if isinstance(file, WheelFile):
            yield from wheel_findings(file)
    # A build with the GIL loses nothing; only free-threaded ones are compared with their twins.
    free = {kind_of(each.build): each for each in answers if each.build.free_threaded}
    yield from set_findings(files, free.keys(), {
        kind: platform_families(each.choice.wheel.platforms) for kind, each in free.items()
        if each.finding and each.twin and each.choice.wheel})
    for each in answers:
        yield from _of_build(each, twins[each.build.label])
    yield from _of_classifiers(files, answers)


def _of_build(answer: WheelsAnswer, twin: Build | None) -> Iterator[WheelFinding]:
    label = (answer.build.label,)
    if answer.choice.why:
        source = answer.choice.file is not None
        then = "it builds the sdist" if source else "it takes nothing"
        failed = answer.status.not_installed
        built = f"; it was built here, and {'that failed' if failed else f'is {answer.status.words}'}"
        built = built if answer.finding and source else ""
        yield WheelFinding(
            code=WheelCode.SDIST_ONLY if source else WheelCode.NO_WHEEL, builds=label,
            effect=Effect.CAUTION if answer.finding else Effect.BLOCKS,
            text=f"an installer for {answer.build.label} finds no wheel here: {answer.choice.reason}; {then}{built}")
    if answer.choice.wheel and not answer.report:
        yield WheelFinding(code=WheelCode.NOT_RUN, effect=Effect.UNKNOWN, builds=label,
                           wheel=answer.choice.wheel.path.name,
                           text="it was read, not run: nothing is installed offline")
    if answer.finding and answer.report:
        yield from _of_run(answer, answer.finding, answer.report, twin)


def _of_run(
    answer: WheelsAnswer, finding: Finding, report: BuildReport, twin: Build | None
) -> Iterator[WheelFinding]:
    label, status = (answer.build.label,), answer.status
    file = answer.choice.file.path.name if answer.choice.file else ""
    if not status.mends:
        yield WheelFinding(
            code=code_of_import(status), builds=label, wheel=file,
            effect=Effect.BLOCKS if status.blocks else Effect.UNKNOWN,
            files=tuple(gil_users(finding.seen)) if status is Status.GIL else lost_modules(finding.seen),
            text=f"on {answer.build.label} it{judged(status, why(report, finding))}")
    if answer.build.free_threaded and not answer.twin and finding.seen.extensions:
        label_of_twin = labels([kind_of(answer.build).twin])
        absent = f"the set has no wheel for {label_of_twin}" if twin else f"no {label_of_twin} is at hand"
        yield WheelFinding(code=WheelCode.TWIN, effect=Effect.CAUTION, builds=label, wheel=file,
                           text=f"{absent}, so whether {answer.build.label} loses C code is not known")
    if finding.interpreters in _REFUSED:
        yield WheelFinding(code=WheelCode.NO_SUBINTERPRETERS, effect=Effect.NOTE, builds=label, wheel=file,
                           text=f"in subinterpreters with their own GIL on {answer.build.label}: "
                                f"{_in_interpreters(finding)}")
    for other in report.findings:
        if other.name != finding.name and other.verdict.status.blocks:
            yield WheelFinding(code=WheelCode.DEPENDENCY, effect=Effect.BLOCKS, builds=label, package=other.name,
                               text=f"{other.name} {other.version or other.wanted}, which it needs".replace("  ", " ")
                                    + f", on {answer.build.label}"
                                    + judged(other.verdict.status, why(report, other)))
    if report.unowned:
        yield WheelFinding(code=code_of_import(Status.GIL), effect=Effect.BLOCKS, builds=label, files=report.unowned,
                           text=f"{few(report.unowned)} on {answer.build.label} "
                                f"{inflect(len(report.unowned), 'turns', 'turn')} the GIL on and belongs to no package")


def _in_interpreters(finding: Finding) -> str:
    told = refusals(finding.interpreter_reasons)
    return told if finding.interpreters is InterpreterStatus.HANG else f"{finding.interpreters.words}: {told}"


def _of_classifiers(files: Sequence[Distributable], answers: Sequence[WheelsAnswer]) -> Iterator[WheelFinding]:
    """Yield a finding if the classifier on free threading contradicts the results."""
    level = max((each.metadata.free_threading for each in files if each.metadata.free_threading is not None),
                default=None)
    free = [each for each in answers if each.build.free_threaded]
    bad = [each.build.label for each in free if each.status.blocks]
    if level is not None:
        wheels = [each for each in files if isinstance(each, WheelFile)]
        anywhere = any(kind.free_threaded for each in wheels for kind in installed_on(each))
        claim = f"the metadata says Free Threading{f' :: {level}' if level else ''}"
        found = [each.build.label for each in free if each.finding and each.status.blocks]
        told = (f"{claim}, which {few(found)} {inflect(len(found), 'contradicts', 'contradict')}" if found
                else f"{claim}, and no wheel is for a build without the GIL")
        if found or (bad and not anywhere):
            yield WheelFinding(code=WheelCode.CLASSIFIER_CONTRADICTED, effect=Effect.CAUTION,
                               builds=tuple(found or bad), text=told)
    elif free and not bad and all(each.status is Status.READY for each in free):
        yield WheelFinding(
            code=WheelCode.CLASSIFIER_ABSENT, effect=Effect.NOTE,
            text="no classifier Programming Language :: Python :: Free Threading; imports work, and whether the code "
                 "is safe in threads is for you to say")
