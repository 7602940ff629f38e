"""Everything known of one package, extension module or file: on each build, in the lock, and who needs it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from gilscope.toolkit.evaluate.facts import Topic
from gilscope.toolkit.evaluate.packages.doctor import version_of
from gilscope.toolkit.evaluate.packages.evidence import InterpreterStatus, Status
from gilscope.toolkit.evaluate.packages.judge import gil_users, lost_modules
from gilscope.toolkit.evaluate.packages.wording import newest_clause
from gilscope.toolkit.evaluate.probes import forced as forced_text
from gilscope.toolkit.evaluate.requirements.wheel_for_build import choose_wheels, libc_floor, platforms_of
from gilscope.toolkit.report.document import Column, Document, Entry, Heading, Lines, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gilscope.toolkit.evaluate.packages.doctor import BuildReport, Finding
    from gilscope.toolkit.evaluate.packages.evidence import (
        Distribution,
        Extension,
        ExtensionLoad,
        ImportRun,
        PackageEvidence,
    )
    from gilscope.toolkit.evaluate.requirements.locks import LockedPackage
    from gilscope.toolkit.evaluate.requirements.wheel_for_build import WheelChoice
    from gilscope.toolkit.evaluate.sections import Place
    from gilscope.toolkit.model import Build
    from gilscope.toolkit.report.document import Section

_KINDS = {"binary": "takes", "pure": "takes the pure Python", "sdist": "has its source only", "nothing": "has no file",
          "not known": "not known"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Knowledge besides the installation and the imports: the lock, the project's lines, the GIL forced off."""

    project: str = ""                        # whose packages these are; "" when they were named on the command line
    locked: tuple[LockedPackage, ...] = ()          # of its lock file
    builds: tuple[Build, ...] = ()           # that the lock is read for
    # By build: lines of the project, and `what` extension module each of them loads.
    places: Mapping[str, Sequence[Place]] = field(default_factory=dict)
    forced: Mapping[str, str] = field(default_factory=dict)   # by build: what was measured with the GIL forced off


NOTHING_BESIDE = Beside()


def explain(reports: Sequence[BuildReport], name: str, beside: Beside = NOTHING_BESIDE) -> Document:
    """Return everything known of the distribution, or of the extension module or file, called `name`.

    The document is empty when nothing is known of it.
    """
    sections: list[Section] = []
    owners: set[str] = {canonicalize_name(name)}
    for report in reports:
        for finding in report.findings:
            if finding.is_called(name):
                owners.add(finding.name)
                sections += _everything(report, finding, name, beside)
        for each in report.rest:
            if each.name == canonicalize_name(name):
                title = f"{each.name} {each.version} on {report.build.label}: pure Python, needed by others"
                sections += [Heading(title), Lines(
                    "Installed", tuple(_installed(each, report.ways.get(each.name, ()), beside)))]
    return Document((*sections, *_locked(owners, beside)))


def _everything(report: BuildReport, finding: Finding, name: str, beside: Beside) -> Iterator[Section]:
    seen = finding.seen
    title = f"{finding.name} {version_of(finding)}".strip()
    yield Heading(f"{title} on {report.build.label}: {finding.status_words}")
    yield from _lines("Why", finding.verdict.reasons)
    yield from _lines("Installed", _installed(seen.distribution, finding.way, beside))
    yield from _lines("Versions", _versions(report, finding))
    yield from _lines(Topic.CULPRITS, _culprits(report, finding, beside))
    if finding.verdict.status is Status.GIL and report.build.label in beside.forced:
        yield Lines(Topic.FORCED, (beside.forced[report.build.label], forced_text.RULE))
    yield from _lines("C code that the build with the GIL loads and this one does not", lost_modules(seen))
    if seen.extensions:
        asked = [each for each in seen.extensions if name in {each.name, each.file, each.file.rpartition("/")[2]}]
        yield _extension_table(asked or seen.extensions, seen)
        yield from _lines("", [each.file for each in asked])
    yield from _runs(seen)
    if finding.interpreters is not InterpreterStatus.UNKNOWN or finding.interpreter_reasons:
        yield Lines("In interpreters with their own GIL", (finding.interpreter_words,
                                                           *map(str, finding.interpreter_reasons)))
    for number, run in enumerate(seen.interpreters, 1):
        lines = tuple(_run_lines(run))
        same = number > 1 and lines == tuple(_run_lines(seen.interpreters[0]))
        yield Lines(f"Imported in interpreter {number}", ("the same as in the first",) if same else lines)


def _lines(title: str, lines: Iterable[str]) -> list[Section]:
    items = tuple(lines)
    return [Lines(title, items)] if items else []


def _installed(found: Distribution | None, way: Sequence[str], beside: Beside) -> Iterator[str]:
    if way:
        asked = [beside.project, *way] if beside.project else [*way]
        yield f"asked for by: {' -> '.join(asked)}" if len(asked) > 1 else "asked for by name"
    if found is None:
        return
    floor = libc_floor(platforms_of(found.tags))
    yield f"wheel: {', '.join(found.tags) or 'no tags'}" + (f" ({floor} or newer)" if floor else "")
    yield f"modules: {', '.join(found.modules) or 'none'}"
    yield f"needs: {', '.join(found.requires) or 'nothing'}"


def _versions(report: BuildReport, finding: Finding) -> Iterator[str]:
    there = finding.seen.reference_distribution
    if there and report.reference and report.reference != report.build:
        yield f"{report.reference.label} has {there.version} ({', '.join(there.tags) or 'no tags'})"
    if newest := newest_clause(report, finding):
        yield newest


def _culprits(report: BuildReport, finding: Finding, beside: Beside) -> Iterator[str]:
    lines = {place.what: place for place in beside.places.get(report.build.label, ())}
    for module, how in gil_users(finding.seen).items():
        place = lines.get(module)
        first = (f"; the project's line is {' -> '.join((f'{place.file}:{place.line}', *place.way))}" if place else "")
        yield f"{module}, seen by {how}{first}"


def _extension_table(extensions: Sequence[Extension], seen: PackageEvidence) -> Table:
    users = gil_users(seen)
    loaded = seen.run.loaded if seen.run else frozenset()
    columns = (Column(title="extension", key=True, align="left"), *(
        Column(title=title, align="left") for title in ("init", "GIL", "interpreters", "known by", "problem")))
    return Table(title="", columns=columns, rows=tuple(tuple(Entry(text) for text in (
        each.name, each.init or "unknown", each.gil or "not said", each.interpreters or "unknown",
        users.get(each.name) or _evidence(each, loaded=each.name in loaded), each.problem)) for each in extensions))


def _evidence(extension: Extension, *, loaded: bool) -> str:
    known = (("hook", not extension.problem), ("import", loaded))
    return " and ".join(how for how, told in known if told) or "nothing"


def _runs(seen: PackageEvidence) -> Iterator[Section]:
    titles = ("Imported as a program would", "Imported with the GIL forced off", "Imported on the build with the GIL")
    for title, run in zip(titles, (seen.run, seen.forced, seen.reference), strict=True):
        if run:
            yield Lines(title, tuple(_run_lines(run)))
    if seen.control:
        how = seen.control.reason or f"ended with the GIL {'on' if seen.control.gil_on else 'off'}"
        yield Lines("The standard library alone", (f"{len(seen.control.imported)} modules imported: {how}",))


def _run_lines(run: ImportRun) -> Iterable[str]:
    yield f"imported: {', '.join(run.imported) or 'nothing'}"
    for name, error in run.failed:
        yield f"failed: {name}: {error}"
    for load in run.loads:
        # The standard library's own is of interest when it breaks.
        if load.error or load.gil == "used" or load.name.partition(".")[0] not in sys.stdlib_module_names:
            yield _load_line(load)
    if run.kind != "done":
        yield f"{run.reason}, during: {run.during or 'start'}"
        yield from run.output.splitlines()
    elif run.gil_on is not None:
        yield f"the GIL is {'on' if run.gil_on else 'off'} at the end"


def _load_line(load: ExtensionLoad) -> str:
    outcome = f"failed: {load.error}" if load.error else f"GIL {load.gil}" if load.gil else "loaded"
    flipped = ", TURNED THE GIL ON" * load.flipped
    way = " <- ".join(f"{step.module}:{step.line}" for step in reversed(load.chain))
    return f"{load.name}: {outcome}{flipped}" + (f" <- {way}" if way else "")


def _locked(names: set[str], beside: Beside) -> Iterator[Section]:
    """Yield the lock's record: the wheels, the one that each build takes, and the packages that need it."""
    for each in beside.locked:
        if each.name in names:
            offers = [(build.label, offer) for build in beside.builds for offer in choose_wheels(beside.locked, build)
                      if (offer.name, offer.version) == (each.name, each.version)]
            yield Heading(f"{each.name} {each.version} in the lock (metadata only, not a verdict)")
            yield Lines("", tuple(_lock_lines(each, offers)))


def _lock_lines(locked: LockedPackage, offers: Sequence[tuple[str, WheelChoice]]) -> Iterator[str]:
    for label, offer in offers:
        floor = f" ({offer.libc} or newer)" if offer.libc else ""
        note = f": {offer.note}" if offer.note else ""
        yield f"{label} {_KINDS[offer.kind]} {offer.wheel}".rstrip() + floor + note
    if owners := next((offer.needed_by for _, offer in offers if offer.needed_by), ()):
        yield f"needed by: {', '.join(owners)}"
    if locked.marker:
        yield f"only where {locked.marker}"
    if not locked.files_known:
        yield "the lock does not list files"
        return
    yield f"source: {'yes' if locked.sdist else 'no'}; wheels: {len(locked.wheels)}"
    yield from locked.wheels
