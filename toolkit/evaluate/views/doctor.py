"""Package reports as a document for people and as plain values for programs."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from gilscope import __version__
from gilscope.toolkit.evaluate.packages.doctor import version_of
from gilscope.toolkit.evaluate.packages.evidence import InterpreterStatus, Status
from gilscope.toolkit.evaluate.packages.judge import gil_users, loadable_nowhere, lost_modules
from gilscope.toolkit.evaluate.packages.wording import (
    chain_clause,
    judged,
    name_and_version,
    newest_clause,
    refusals,
    why,
)
from gilscope.toolkit.evaluate.requirements.wheel_for_build import libc_floor, platforms_of
from gilscope.toolkit.report.document import Column, Document, Entry, Heading, Lines, Table
from gilscope.toolkit.units import counted, few, inflect

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from gilscope.toolkit.evaluate.packages.doctor import BuildReport, Finding
    from gilscope.toolkit.evaluate.packages.evidence import Extension, ImportRun
    from gilscope.toolkit.evaluate.requirements.wheel_for_build import WheelChoice
    from gilscope.toolkit.report.document import Section


SCHEMA = "gilscope/doctor/2"   # toolkit/report/schemas/doctor.json
TOOL = "gilscope doctor"


MOST_ROWS = 5       # of the table in the answer
MOST_REASONS = 2    # packages whose reasons the answer has; of more it has the table alone


def answer_document(reports: Sequence[BuildReport]) -> Document:
    """Return the answer: what stands in the way, the user's own packages first."""
    names = list(dict.fromkeys(each.name for report in reports for each in report.findings))
    blocking = {each.name for report in reports for each in report.findings if each.verdict.status.blocks}
    inside = {each.name for report in reports for each in report.findings if each.interpreter_reasons}
    table = _table(reports, only=blocking | inside)
    sections: list[Section] = [_heading(reports), Lines("", (_conclusion(reports),))]
    if table.rows:
        sections.append(replace(table, rows=table.rows[:MOST_ROWS]))
    unowned = any(report.unowned for report in reports)
    if unowned or 0 < len(blocking) <= MOST_REASONS:
        sections.append(Lines("", tuple(_in_the_way(reports))))
    if 0 < len(inside) <= MOST_REASONS:
        sections.append(Lines("", tuple(line for report in reports for line in _interpreters(report))))
    doubts = sum(1 for report in reports for _ in _doubts(report))
    examined = len(names) + _pure_dependencies(reports)
    counts = {f"{counted(examined, 'package')} examined": examined,
              f"{len(table.rows)} in the way": len(table.rows[MOST_ROWS:]),
              f"{counted(doubts, 'doubt')}": doubts}
    told = ", ".join(text for text, count in counts.items() if count)
    sections.append(Lines("", (f"{told}; reasons and all packages: --full".removeprefix("; "),)))
    return Document(tuple(sections))


def _heading(reports: Sequence[BuildReport]) -> Heading:
    return Heading("doctor: " + ", ".join(_against(report) for report in reports), 1)


def document(reports: Sequence[BuildReport]) -> Document:
    """Return one table of packages by builds, and a sentence for everything that stands in the way."""
    sections: list[Section] = [_heading(reports), Lines("", (_conclusion(reports),)), _table(reports)]
    if left_out := tuple(_left_out(reports)):
        sections.append(Lines("", left_out))
    if blockers := [*_in_the_way(reports)]:
        sections.append(Lines("What stands in the way", tuple(blockers)))
    if doubts := [line for report in reports for line in _doubts(report)]:
        sections.append(Lines("What is not certain", tuple(doubts)))
    if interpreters := [line for report in reports for line in _interpreters(report)]:
        sections.append(Lines("In interpreters with their own GIL", tuple(interpreters)))
    return Document(tuple(sections))


def metadata(lock: str, offers: Mapping[str, Sequence[WheelChoice]]) -> Document:
    """Return a table of the file that each build would take from a lock; it says nothing about their behaviour."""
    by_name: dict[str, dict[str, WheelChoice]] = {}
    for label, found in offers.items():
        for each in found:
            by_name.setdefault(f"{each.name} {each.version}", {})[label] = each
    columns = (Column(title="package", key=True, align="left"),
               *(Column(title=label, align="left") for label in offers))
    rows = tuple((Entry(name), *(Entry(_offer(found.get(label))) for label in offers))
                 for name, found in sorted(by_name.items()) if any(each.kind != "pure" or each.note
                                                                   for each in found.values()))
    notes = tuple(f"{each.name} on {label}: {each.note}"
                  + (f"; needed by {few(each.needed_by)}" if each.needed_by else "")
                  for label, found in offers.items() for each in found if each.note)
    pure = len(by_name) - len(rows)
    unknown = ("A wheel for a build may still turn its GIL on or leave out its C code: `gilscope doctor` without "
               "--offline installs and asks.")
    return Document((
        Heading(f"doctor: {lock} (metadata only, not a verdict)", 1), Lines("", (unknown,)),
        Table(title="", columns=columns, rows=rows),
        *((Lines("", (f"{pure} more {inflect(pure, 'is', 'are')} pure Python.",)),) if pure else ()),
        *((Lines("Notes", notes),) if notes else ())))


def _offer(offered: WheelChoice | None) -> str:
    if offered is None:
        return "not needed"
    words = {"binary": "wheel", "pure": "pure Python", "sdist": "source only", "nothing": "NO FILE"}
    return words.get(offered.kind, offered.kind) + (f", {offered.libc}" if offered.libc else "")


def plain_metadata(lock: str, offers: Mapping[str, Sequence[WheelChoice]]) -> dict[str, Any]:
    """Return the files of a lock that each build would take, as values that JSON has."""
    return {**preamble(), "metadata_only": True, "lock": lock,
            "builds": {label: [_plain_choice(each) for each in found] for label, found in offers.items()}}


def preamble() -> dict[str, Any]:
    """Return the fields that every document of `doctor` begins with."""
    return {"schema": SCHEMA, "tool": TOOL, "gilscope": __version__}


def _plain_choice(choice: WheelChoice) -> dict[str, Any]:
    return {
        "name": choice.name, "version": choice.version, "kind": choice.kind, "wheel": choice.wheel,
        "note": choice.note, "libc": choice.libc, "needed_by": list(choice.needed_by)}


def plain(reports: Sequence[BuildReport]) -> dict[str, Any]:
    """Return everything as values that JSON has."""
    return {**preamble(), "blocked": any(report.blocked for report in reports), "builds": [{
        "build": report.build.label, "version": report.build.version,
        "reference": report.reference.label if report.reference else None, "blocked": report.blocked,
        "versions_chosen_by": report.chosen_by or None,
        "others": [{"name": each.name, "version": each.version, "wheel_tags": list(each.tags),
                    "way": list(report.ways.get(each.name, ()))} for each in report.rest],
        "pure_python_dependencies": report.others,
        "pure_python_here_compiled_elsewhere": list(report.compiled_elsewhere),
        "unowned_modules_that_need_the_gil": list(report.unowned),
        "packages": [_plain_finding(report, finding) for finding in report.findings]} for report in reports]}


def _plain_finding(report: BuildReport, finding: Finding) -> dict[str, Any]:
    seen = finding.seen
    return {
        "name": finding.name, "version": finding.version, "requested": finding.requested,
        "status": finding.verdict.status.value,
        "status_words": finding.verdict.status.words, "blocks": finding.verdict.status.blocks,
        "reasons": list(finding.verdict.reasons),
        "interpreters": finding.interpreters.value, "interpreter_reasons": list(map(str, finding.interpreter_reasons)),
        "way": list(finding.way),
        "wheel_tags": list(seen.distribution.tags) if seen.distribution else [],
        "libc": libc_floor(platforms_of(seen.distribution.tags)) if seen.distribution else "",
        "culprits": [{"module": module, "seen_by": how, "way": [
            {"module": step.module, "file": step.file, "line": step.line} for step in report.way_to(module)]}
                     for module, how in gil_users(seen).items()],
        "lost": list(lost_modules(seen)),
        "newest": list(report.newest.get(finding.name, ())),
        "extensions": [*map(_plain_extension, seen.extensions)],
        "details": {
            "imports": {label: _plain_run(run) for label, run in (
                ("natural", seen.run), ("gil_forced_off", seen.forced), ("reference", seen.reference),
                ("control", seen.control)) if run},
            "interpreter_imports": [_plain_run(run) for run in seen.interpreters],
        },
    }


def _plain_extension(extension: Extension) -> dict[str, Any]:
    return {
        "name": extension.name, "file": extension.file, "init": extension.init, "gil": extension.gil,
        "interpreters": extension.interpreters, "problem": extension.problem, "damaged": extension.damaged}


def _plain_run(run: ImportRun) -> dict[str, Any]:
    return {name: value for name, value in asdict(run).items() if name != "stdlib"}


def _against(report: BuildReport) -> str:
    return report.build.label + (f" against {report.reference.label}"
                                 if report.reference and report.reference != report.build else "")


def _table(reports: Sequence[BuildReport], only: Collection[str] | None = None) -> Table:
    """Return a row for each package, or for some: the user's own first, and those in the way."""
    by_name: dict[str, dict[str, Finding]] = {}
    for report in reports:
        for finding in report.findings:
            if only is None or finding.name in only:
                by_name.setdefault(finding.name, {})[report.build.label] = finding
    tried = any(finding.interpreters is not InterpreterStatus.UNKNOWN for report in reports
                for finding in report.findings)
    needed_by = {name: _needed_by(found.values()) for name, found in by_name.items()}
    columns = [Column(title="package", key=True, align="left")]
    columns += [Column(title="needed by", align="left")] * any(needed_by.values())
    for report in reports:
        columns.append(Column(title=report.build.label, align="left"))
        columns += [Column(title=f"{report.build.label}, own interpreters", align="left")] * tried
    rows = []
    for name, found in sorted(by_name.items(), key=lambda item: (
            bool(needed_by[item[0]]), _rank(item[1].values()), item[0])):
        version = next((version_of(each) for each in found.values() if version_of(each)), "")
        row = [Entry(f"{name} {version}".strip()), *[Entry(needed_by[name])] * any(needed_by.values())]
        for report in reports:
            here = found.get(report.build.label)
            row.append(Entry(_cell(here)))
            if tried:
                row.append(Entry(here.interpreter_words if here else ""))
        rows.append(tuple(row))
    return Table(title="", columns=tuple(columns), rows=tuple(rows), footnotes=())


def _needed_by(findings: Iterable[Finding]) -> str:
    """Return the package of the user's that needs this one; "" for the user's own."""
    found = [*findings]
    if any(each.requested for each in found):
        return ""
    return next((each.way[0] for each in found if each.way), "another")


def _rank(findings: Iterable[Finding]) -> int:
    return 0 if any(each.verdict.status.blocks for each in findings) else 1


def _cell(finding: Finding | None) -> str:
    if finding is None:
        return Status.PURE.words
    if finding.verdict.status is Status.READY and (count := len(finding.seen.extensions)):
        return f"{Status.READY.words} ({counted(count, 'file')})"
    return finding.status_words


def _in_the_way(reports: Sequence[BuildReport]) -> Iterable[str]:
    """Yield what stands in the way on each build, and once what no index has."""
    for report in reports:
        yield from _blockers(report)
    absent = {each.name: each for report in reports for each in report.findings if _not_found(each)}
    for each in absent.values():
        yield "; ".join(filter(None, (f"{each.name}: {few(each.verdict.reasons)}", chain_clause(each))))


def _blockers(report: BuildReport) -> Iterable[str]:
    for finding in report.findings:
        status = finding.verdict.status
        if status.blocks and not _not_found(finding):
            does = f"{name_and_version(finding)} on {report.build.label}{judged(status, why(report, finding))}"
            yield "; ".join(filter(None, (does, chain_clause(finding), newest_clause(report, finding))))
    if report.unowned:
        yield (f"{', '.join(report.unowned)} on {report.build.label} turns the GIL on and belongs to no package: "
               "it came with the interpreter or was put there by hand")


def _doubts(report: BuildReport) -> Iterable[str]:
    if report.reference is None:
        yield (f"{report.build.label}: no build of this version with a GIL is at hand, so it cannot be told whether C "
               "code was lost")
    if report.chosen_by:
        yield (f"{report.build.label}: {report.chosen_by} chose the versions, as no release with a GIL is at hand; "
               "where it has no wheel of the newest one, the installer went back in time")
    for finding in report.findings:
        there = finding.seen.reference_distribution
        if finding.version and there and there.version != finding.version and report.reference:
            yield (f"{finding.name}: {finding.version} on {report.build.label}, {there.version} on "
                   f"{report.reference.label}: these are not compared like with like")
        if finding.verdict.status.unjudged:
            yield (f"{finding.name} {finding.version} on {report.build.label}"
                   f"{judged(finding.verdict.status, few(finding.verdict.reasons, between='; '))}")
        if nowhere := loadable_nowhere(finding.seen):
            yield (f"{finding.name} {finding.version} on {report.build.label}: {few(nowhere)} cannot be "
                   "loaded here, with the GIL neither; on a machine where it can, ask again")
    if spared := [finding for finding in report.findings if _spared(finding)]:
        last = spared[0].seen.interpreters[-1]
        yield (f"{report.build.label} itself {last.reason} while importing {last.during} in interpreter "
               f"{len(spared[0].seen.interpreters)}, with the standard library alone, too: not held against "
               f"{few([finding.name for finding in spared])}")
    for name in report.compiled_elsewhere:
        yield (f"{name} on {report.build.label}: the installer took a pure Python wheel; other builds have compiled "
               "code of the same version")


def _spared(finding: Finding) -> bool:
    """Return True if its last interpreter broke and the package was not blamed for it."""
    runs = finding.seen.interpreters
    return (bool(runs) and runs[-1].kind in {"crash", "hang"}
            and finding.interpreters not in {InterpreterStatus.CRASH, InterpreterStatus.HANG})


def _interpreters(report: BuildReport) -> Iterable[str]:
    for finding in report.findings:
        if finding.interpreter_reasons:
            told = refusals(finding.interpreter_reasons)
            does = "" if finding.interpreters is InterpreterStatus.HANG else f" {finding.interpreters.clause}:"
            yield f"{finding.name} {finding.version} on {report.build.label}{does} {told}"


def _conclusion(reports: Sequence[BuildReport]) -> str:
    absent = sorted({each.name for report in reports for each in report.findings if _not_found(each)})
    blocked = [report.build.label for report in reports if report.unowned or any(
        each.verdict.status.blocks and not _not_found(each) for each in report.findings)]
    if absent and not blocked:
        return f"Not found: {few(absent)}."
    if blocked:
        return (f"Blocked on {', '.join(blocked)}. `gilscope doctor ... --explain NAME` shows everything known of a "
                "package.")
    labels = ", ".join(report.build.label for report in reports)
    return f"Nothing stands in the way of free-threading on {labels}, as far as imports tell."


def _not_found(finding: Finding) -> bool:
    return finding.seen.distribution is None and finding.seen.missing is not None and finding.seen.missing.not_found


def _pure_dependencies(reports: Sequence[BuildReport]) -> int:
    """Return the number of packages without rows, which nobody asked for and which are pure Python on every build."""
    return max((report.others for report in reports), default=0)


def _left_out(reports: Sequence[BuildReport]) -> Iterable[str]:
    if count := _pure_dependencies(reports):
        yield f"Not shown: {counted(count, 'package')} that these need, pure Python on every build."
