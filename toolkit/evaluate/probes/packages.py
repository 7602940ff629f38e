"""Facts about the packages that the project needs, on each build without a GIL."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.facts import FREE_THREADING, Codes, Effect, Fact, Kind, PlanStep, TableCell, Topic
from gilscope.toolkit.evaluate.packages.evidence import Status
from gilscope.toolkit.evaluate.packages.judge import gil_users
from gilscope.toolkit.evaluate.packages.wording import chain_clause, judged, name_and_version, newest_clause
from gilscope.toolkit.evaluate.readings import first_of, lost_too_much, own_finding, turns_gil_on
from gilscope.toolkit.evaluate.sections import Missing, known
from gilscope.toolkit.units import MOST_NAMED, counted, few, inflect

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.evaluate.evaluation import Evaluation
    from gilscope.toolkit.evaluate.packages.doctor import BuildReport, Finding
    from gilscope.toolkit.evaluate.sections import Place, TestRun

AT_IMPORT = "off after the imports; whether it is at the end of the project's tests is not known"
CODES = Codes({
    **{f"package.{status}": Kind(Effect.BLOCKS if status.blocks else Effect.UNKNOWN, step=PlanStep.DEPENDENCIES)
       for status in Status if not status.mends},
    "module.turns-gil-on": Kind(Effect.BLOCKS, step=PlanStep.DEPENDENCIES),
    # A fault of the interpreter says nothing about the dependencies.
    "package.interpreter-at-fault": Kind(Effect.UNKNOWN),
    "packages.not-looked-at": Kind(Effect.UNKNOWN, step=PlanStep.DEPENDENCIES),
    "package.loses-c-code": Kind(Effect.COSTS),
    "extension-files.need-no-gil": Kind(Effect.SUPPORTS),
    "lock.wheels": Kind(Effect.NOTE, heading=Topic.IN_THE_LOCK),
    "package.way-to-gil": Kind(Effect.NOTE, heading=Topic.CULPRITS),
    "packages.counted": Kind(Effect.NOTE),
    "packages.development": Kind(Effect.NOTE, heading=Topic.DEVELOPMENT),
    "packages.development-missing": Kind(Effect.NOTE, heading=Topic.DEVELOPMENT),
    "packages.extras": Kind(Effect.NOTE, heading=Topic.DEVELOPMENT),
    "packages.not-declared": Kind(Effect.NOTE, step=PlanStep.DEPENDENCIES, state="not known"),
    "packages.ready": Kind(Effect.NOTE, step=PlanStep.DEPENDENCIES, state="done"),
})
fact = CODES.fact


def facts(found: Evaluation) -> Iterator[Fact]:
    """Yield facts about the packages on each build without a GIL."""
    if not found.project.requirements_known:
        yield fact("packages.not-declared", FREE_THREADING, "no file says what the project needs")
    for label in found.labels:
        match found.packages[label]:
            case Missing() as missing:
                yield from _not_looked_at(found, label, missing)
            case report:
                yield from _looked_at(found, label, report)
    yield from _development(found)


def _not_looked_at(found: Evaluation, label: str, missing: Missing) -> Iterator[Fact]:
    yield fact("packages.not-looked-at", label, f"the packages were not installed and looked at: {missing.reason}",
               confidence="low", missing=missing, cells=tuple(TableCell(column, "-", (missing.reason,)) for column in (
                   "packages", "C files", "GIL off", "C lost")))
    # The lock alone is worth a line only without a real installation.
    if offered := known(found.offered[label]):
        without = [each.name for each in offered if each.kind in {"sdist", "nothing"}]
        unknown = sum(each.kind == "not known" for each in offered)
        lacking = f"; none: {few(without, MOST_NAMED)}" if without else ""
        yield fact("lock.wheels", label,
                   f"{unknown} of {len(offered)} packages: the lock names no files" if unknown else
                   f"{len(offered) - len(without)} of {len(offered)} packages have a wheel{lacking}")


def _looked_at(found: Evaluation, label: str, report: BuildReport) -> Iterator[Fact]:
    in_doubt = [_package(found, label, report, finding) for finding in report.findings
                if not finding.verdict.status.mends]
    # Packages that a newer version fixes come first.
    yield from sorted(in_doubt, key=lambda each: each.owner is not None or not each.package)
    for module in report.unowned:
        yield fact("module.turns-gil-on", label, f"{module}, of no package, turns the GIL on", subject=module)
    in_the_way = report.unowned or any(each.step is PlanStep.DEPENDENCIES for each in in_doubt)
    if found.project.requirements_known and not in_the_way:
        yield _all_ready(label, report)
    if not (report.unowned or turns_gil_on(found, label)):
        yield _extension_files(found, label, report)
    yield from _culprits(found, label, report)
    yield _counted(found, label, report)


def _counted(found: Evaluation, label: str, report: BuildReport) -> Fact:
    itself, total = own_finding(found, label), len(report.findings) + report.others
    installed = total - sum(each.verdict.status.not_installed for each in report.findings)
    files = [extension for each in (*report.findings, *itself) for extension in each.seen.extensions]
    fine = sum(extension.gil == "not-used" for extension in files)
    lost = [each.name for each in (*report.findings, *itself) if each.verdict.status is Status.LOST]
    return fact("packages.counted", label, f"{installed} of {counted(total, 'package')} installed", cells=(
        TableCell("packages", f"{installed}/{total}"),
        TableCell("C files", f"{fine}/{len(files)}" if files else "none"),
        _gil_off(known(found.tests[label]), (*itself, *report.findings), report.unowned),
        TableCell("C lost", first_of(lost))))


def _gil_off(tests: TestRun | None, findings: Sequence[Finding], unowned: Sequence[str]) -> TableCell:
    culprits = [*(each.name for each in findings if each.verdict.status is Status.GIL), *unowned]
    if culprits:
        # They have lines of their own.
        return TableCell("GIL off", f"no: {culprits[0] if len(culprits) == 1 else len(culprits)}")
    if tests is None or tests.gil_end is None or not (tests.ran or tests.gil_end):
        return TableCell("GIL off", "at import", (AT_IMPORT,))
    return TableCell("GIL off", "no: tests" if tests.gil_end else "yes")


def _words(finding: Finding) -> str:
    return finding.status_words if finding.verdict.status is Status.HANG else finding.verdict.status.clause


def _package(found: Evaluation, label: str, report: BuildReport, finding: Finding) -> Fact:
    """Return the fact about one package that is not simply ready."""
    status = finding.verdict.status
    why = next(iter(finding.verdict.reasons), "")
    name = name_and_version(finding)
    said = fact(f"package.{status}", label, f"{name} {_words(finding)}", subject=name,
                evidence="; ".join(filter(None, (why, chain_clause(finding)))))
    if status.not_installed:
        said = replace(said, text=f"{name}{judged(status, why)}", evidence=chain_clause(finding))
    elif status is Status.LOST:
        # C code that is lost is a price, and blocks only where that was measured to be high.
        slower = lost_too_much(found, label)
        said = replace(said, effect=Effect.BLOCKS if slower else said.effect,
                       text=f"{name} loses its C code{f', and {slower}' if slower else ''}",
                       evidence="" if slower else "; ".join(finding.verdict.reasons[:2]))
    if status is Status.INTERPRETER:
        return said
    if status is Status.FAILS and (absent := _absent_needs(report, finding)):
        return replace(said, text=f"{name} cannot be imported without {few(absent)}",
                       action=f"{absent[0]} first: {finding.name} needs it", owner=absent[0], package=absent[0],
                       explain=absent[0])
    if newer := newer_version(report, finding):
        return replace(said, action=f"take {finding.name} {newer}, which mends it", package=f"{finding.name} {newer}")
    return replace(said, action=advice(report, finding), owner=finding.name, package=finding.name,
                   explain=finding.name)


def _absent_needs(report: BuildReport, finding: Finding) -> list[str]:
    """Return the packages that a package requires and that could not be installed: their owners must act."""
    required = finding.seen.distribution.requires if finding.seen.distribution else ()
    return [each.name for each in report.findings if each.seen.distribution is None and each.name in required]


def advice(report: BuildReport, finding: Finding) -> str:
    """Return the action for a package that no newer version is known to fix."""
    if finding.verdict.status is Status.GIL and (newest := newest_clause(report, finding)):   # it does not mend it
        return f"{finding.name} {newest}: ask its owners, or do without it"
    return finding.verdict.status.advice.format(name=finding.name)


def newer_version(report: BuildReport, finding: Finding) -> str:
    """Return the newest version if it is known to run on the build, or ""."""
    version, status = report.newest.get(finding.name, ("", finding.verdict.status))
    return version if status.mends and version != finding.version else ""


def _all_ready(label: str, report: BuildReport) -> Fact:
    count = len(report.findings) + report.others
    lost = [each.name for each in report.findings if each.verdict.status is Status.LOST]
    less = f"; without their C code: {few(lost, MOST_NAMED)}" if lost else ""
    return fact("packages.ready", label, f"{counted(count, 'package')} on {label}{less}" if count else "it has none")


def _extension_files(found: Evaluation, label: str, report: BuildReport) -> Fact:
    files = sum(len(finding.seen.extensions) for finding in (*report.findings, *own_finding(found, label)))
    who = counted(files, "extension file does", "extension files do")
    return fact("extension-files.need-no-gil", label,
                f"{who} without the GIL, as slots and imports say" if files
                else "no extension file is in the way")


def _culprits(found: Evaluation, label: str, report: BuildReport) -> Iterator[Fact]:
    """Yield of each package that turns the GIL on its files, the way from the user's first line, and the newest."""
    tests = known(found.tests[label])
    places = {place.what: place for place in tests.imports} if tests else {}
    for finding in report.findings:
        if finding.verdict.status is Status.GIL and gil_users(finding.seen):
            way = _ways(report, finding, places, tests.culprits if tests else ())
            yield fact("package.way-to-gil", label, f"{finding.name} {finding.version}: {way}",
                       subject=name_and_version(finding))


def _ways(report: BuildReport, finding: Finding, places: dict[str, Place], flips: Sequence[str]) -> str:
    users = gil_users(finding.seen)
    # First the one that turned the GIL on in the project's own tests, then one that they loaded.
    first, *others = sorted(users, key=lambda name: (name not in flips, name not in places))
    file = next((f" ({_untagged(extension.file)})" for extension in finding.seen.extensions
                 if extension.name == first), "")
    more = f" and {len(others)} more" if others else ""
    if place := places.get(first):
        steps = [f"{place.file}:{place.line}", *_packages_between(place.way, first)]
    else:
        steps = list(dict.fromkeys(step.module for step in report.way_to(first)))
    via = f"; through {' -> '.join(steps)}" if steps else ""
    return "; ".join(filter(None, (f"{first}{file}{more}, seen by {users[first]}{via}",
                                   newest_clause(report, finding))))


def _packages_between(way: Sequence[str], module: str) -> list[str]:
    """Return the packages on a way of "file:line", each once, without the one that `module` is in; --json has lines."""
    inside = [step.partition("site-packages/")[2].partition(":")[0] for step in way]
    names = (step.partition("/")[0].removesuffix(".py") for step in inside if step)
    return [name for name in dict.fromkeys(names) if name != module.partition(".")[0]]


def _untagged(file: str) -> str:
    """Return the name of an extension file without its build's tag, so that the same file on two builds reads alike."""
    return re.sub(r"\.(?:cpython|abi3t?)\b.*", ".*.so", file.rpartition("/site-packages/")[2])


def _development(found: Evaluation) -> Iterator[Fact]:
    """Yield the packages needed only for development: they decide only whether the tests can run."""
    if found.development is None:
        return
    names, extras = found.development.packages, found.development.extras
    if names:
        what = counted(len(names), "package is", "packages are")
        yield fact("packages.development", FREE_THREADING, f"{what} for development alone: {few(names, MOST_NAMED)}")
    for label, lacking in found.development.lacking.items():
        yield fact("packages.development-missing", label,
                   f"tests that need {few(lacking, MOST_NAMED)} cannot be run there: no such package could be "
                   "installed")
    if extras:
        what = inflect(len(extras), "extra")
        yield fact("packages.extras", FREE_THREADING,
                   f"{what} {few(extras, MOST_NAMED)}: --extra {extras[0]} judges the project with it")
