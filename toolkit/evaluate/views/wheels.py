"""Sets of wheels as a document for people and as plain values for programs."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.evaluate.facts import Effect
from gilscope.toolkit.evaluate.packages.evidence import InterpreterStatus, Status
from gilscope.toolkit.evaluate.packages.judge import gil_users, lost_modules
from gilscope.toolkit.evaluate.views import doctor as packages
from gilscope.toolkit.evaluate.wheel_tags import EVERY_VERSION, labels, platform_families
from gilscope.toolkit.evaluate.wheels.files import WheelFile, files_in_words
from gilscope.toolkit.evaluate.wheels.rules import installed_on
from gilscope.toolkit.report.document import Column, Document, Entry, Heading, Lines, Table
from gilscope.toolkit.units import counted, few, inflect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gilscope.toolkit.evaluate.wheels.examine import SetReport, WheelsAnswer
    from gilscope.toolkit.evaluate.wheels.files import Distributable, UnusableFile
    from gilscope.toolkit.evaluate.wheels.rules import WheelFinding
    from gilscope.toolkit.report.document import Section

MOST_PLATFORMS = 2   # of a row of wheels


def document(reports: Sequence[SetReport], unusable: Sequence[UnusableFile]) -> Document:
    """Return, for each set, what each build does with it, its wheels, what is wrong, and what is missing."""
    sections: list[Section] = []
    for report in reports:
        sections += _of_set(report, level=1 if not sections else 2)
    # The heading of the first set is that of the report.
    sections.insert(1 if sections else 0, Lines("", (_conclusion(reports, unusable),)))
    if unusable:
        sections.append(Lines("Not judged", tuple(f"{each.path}: {each.reason}" for each in unusable)))
    return Document(tuple(sections))


def _of_set(report: SetReport, *, level: int) -> list[Section]:
    sections: list[Section] = [
        Heading(f"doctor: {report.name} {report.version}, {files_in_words(report.files)}", level), _builds(report)]
    if report.wheels:
        sections.append(_wheels(report))
    wrong = [each for each in report.findings if not each.is_missing and each.effect is not Effect.NOTE]
    groups = (("What is wrong", wrong), ("What is missing", [each for each in report.findings if each.is_missing]),
              ("Also", [each for each in report.findings if each.effect is Effect.NOTE]))
    for title, found in groups:
        if found:
            sections.append(Lines(title, tuple(_lines(report, found))))
    if unread := _not_run(report):
        sections.append(Lines("", (unread,)))
    return sections


def _lines(report: SetReport, found: Sequence[WheelFinding]) -> Iterator[str]:
    """Yield a line for each kind of finding, what blocks first; one for all wheels that differ in their platform."""
    groups: dict[tuple[object, ...], list[WheelFinding]] = defaultdict(list)
    abis = {each.path.name: each.abis for each in report.wheels}
    for each in sorted(found, key=lambda each: not each.blocks):
        groups[each.code, each.effect, each.builds, each.package, abis.get(each.wheel, each.wheel)].append(each)
    for same in groups.values():
        first = same[0]
        name = abis.get(first.wheel, first.wheel)
        if not first.builds and len(same) == 1 and sum(each == name for each in abis.values()) > 1:
            name = first.wheel   # one of several that differ in their platform alone
        start = f"{name}: " if name and first.wheel not in first.text else ""
        more = f"; so do {counted(len(same) - 1, 'other wheel')} with this tag" if len(same) > 1 else ""
        yield f"{start}{first.text}{more}{_doubt(first.effect)}"


def _doubt(effect: Effect) -> str:
    return {Effect.UNKNOWN: " (not known)", Effect.CAUTION: " (does not block)"}.get(effect, "")


def _builds(report: SetReport) -> Table:
    columns = [Column(title="build", key=True, align="left"),
               *(Column(title=title, align="left") for title in (
                   "answer", "takes", "slots", "imported", "C code", "own interpreters"))]
    return Table(title="", columns=tuple(columns), rows=tuple(_build_row(each) for each in report.answers))


def _build_row(answer: WheelsAnswer) -> tuple[Entry, ...]:
    wheel, seen = answer.choice.wheel, answer.finding.seen if answer.finding else None
    took = wheel.abis if wheel else ("the sdist" if answer.choice.file else "nothing")
    slots = gil = c_code = interpreters = "-"
    if seen and seen.distribution:
        slots = _slots(answer)
        if answer.build.free_threaded and seen.run and seen.run.gil_on is not None:
            gil = "GIL on" if seen.run.gil_on else "GIL off"
        lost = lost_modules(seen)
        there = seen.reference_distribution
        if answer.twin and answer.twin != answer.build and there and not there.pure:
            loses = lost or answer.status is Status.LOST
            c_code = f"{len(lost) or 'all'} lost" if loses else f"as on {answer.twin.label}"
        interpreters = answer.finding.interpreter_words if answer.finding else "-"
    word = answer.words
    if answer.choice.why and not answer.finding:
        word = "sdist only" if answer.choice.file else "NO WHEEL"
    elif answer.choice.wheel and not answer.finding:
        word = "read, not run"
    return tuple(map(Entry, (answer.build.label, word, took, slots, gil, c_code, interpreters)))


def _slots(answer: WheelsAnswer) -> str:
    assert answer.finding is not None
    extensions = answer.finding.seen.extensions
    if not extensions:
        return "none"
    users = gil_users(answer.finding.seen)
    if not answer.build.free_threaded:
        return counted(len(extensions), "file")
    unread = sum(each.gil is None for each in extensions)
    free = len(extensions) - unread - sum(each.name in users for each in extensions if each.gil)
    return f"{free} of {len(extensions)} no GIL" + (f", {unread} unread" if unread else "")


def _wheels(report: SetReport) -> Table:
    """Return a row for each Python and ABI tag: most sets have the same wheel for several platforms."""
    groups: dict[tuple[str, str], list[WheelFile]] = defaultdict(list)
    for each in report.wheels:
        groups[each.abis, _suffixes([each])].append(each)
    rows = []
    for (abis, suffixes), wheels in groups.items():
        names = {each.path.name for each in wheels}
        wrong = [each for each in report.findings if each.wheel in names and each.code.startswith("wheel.")]
        platforms = sorted({family for each in wheels for family in platform_families(each.platforms)})
        kinds = labels({kind for each in wheels for kind in installed_on(each)})
        rows.append(tuple(map(Entry, (
            abis, ", ".join(sorted({each.code.removeprefix("wheel.") for each in wrong})) or "agree", suffixes,
            kinds or f"no CPython from {EVERY_VERSION}", few(platforms, MOST_PLATFORMS) or "every platform"))))
    columns = (Column(title="wheel", key=True, align="left"),
               *(Column(title=title, align="left") for title in (
                   "tag and files", "suffixes", "installed on", "platforms")))
    return Table(title="Wheels", columns=columns, rows=tuple(rows))


def _suffixes(wheels: Iterable[WheelFile]) -> str:
    found = sorted({each.suffix.words for wheel in wheels for each in wheel.extensions})
    if found:
        return ", ".join(found)
    return "none, other libraries" if any(each.libraries for each in wheels) else "none"


def _not_run(report: SetReport) -> str:
    """Return the sentence about wheels that no build here took."""
    rest = [each for each in report.wheels if each.path not in report.run]
    if not rest:
        return ""
    was = inflect(len(rest), "was", "were")
    return (f"{counted(len(rest), 'wheel')} that no build here takes {was} read, not run: tags, suffixes and metadata "
            f"were checked, and nothing is known of what {inflect(len(rest), 'it does', 'they do')} when imported.")


def _conclusion(reports: Sequence[SetReport], unusable: Sequence[UnusableFile]) -> str:
    blocked = [f"{each.name} {each.version} on {_blocked_on(each)}" for each in reports if each.blocked]
    if blocked:
        return (f"Blocked: {few(blocked, between='; ')}. `gilscope doctor ... --explain NAME` shows everything known "
                "of a package or of a module.")
    good = few([f"{each.name} {each.version}" for each in reports])
    if unusable:
        return f"Nothing stands in the way of {good}, but {counted(len(unusable), 'file')} could not be judged."
    tried = few(list(dict.fromkeys(answer.build.label for each in reports for answer in each.answers)), 6)
    return f"Nothing stands in the way of {good} on {tried}, as far as files and imports tell."


def _blocked_on(report: SetReport) -> str:
    """Return the builds that something blocks; a finding about a wheel may concern some that nobody asked for."""
    asked = [each.build.label for each in report.answers]
    found = [each for each in report.findings if each.blocks]
    here = few([label for label in asked if any(label in each.builds for each in found)], 6)
    elsewhere = any(not each.builds or set(each.builds) - set(asked) for each in found)
    return " and on ".join(filter(None, (here, "builds that were not asked for" if elsewhere else "")))


def plain(reports: Sequence[SetReport], unusable: Sequence[UnusableFile]) -> dict[str, Any]:
    """Return everything as values that JSON has."""
    return {**packages.preamble(),
            "blocked": bool(unusable) or any(each.blocked for each in reports),
            "unusable_files": [{"file": str(each.path), "problem": each.problem.value, "reason": each.reason}
                               for each in unusable],
            "sets": [_plain_set(each) for each in reports]}


def _plain_set(report: SetReport) -> dict[str, Any]:
    run = [each.report for each in report.answers if each.report]
    return {
        "name": report.name, "version": report.version, "blocked": report.blocked,
        "files": [_plain_file(each) for each in report.files],
        "answers": [_plain_answer(each) for each in report.answers],
        "findings": [{"code": each.code, "effect": each.effect.value, "builds": list(each.builds),
                      "wheel": each.wheel, "files": list(each.files), "package": each.package, "text": each.text}
                     for each in report.findings],
        "builds": packages.plain(run)["builds"]}


def _plain_file(file: Distributable) -> dict[str, Any]:
    wheel = file if isinstance(file, WheelFile) else None
    return {
        "file": file.path.name, "sha256": file.sha256, "kind": "wheel" if wheel else "sdist",
        "requires_python": file.metadata.requires_python, "free_threading": file.metadata.free_threading,
        "tags": sorted(map(str, wheel.tags)) if wheel else [],
        "installed_on": [kind.label for kind in sorted(installed_on(wheel))] if wheel else [],
        "extensions": [{"file": each.path, "module": each.module, "suffix": each.suffix.words,
                        "layout": each.layout.value} for each in wheel.extensions] if wheel else [],
        "libraries": wheel.libraries if wheel else 0}


def _plain_answer(answer: WheelsAnswer) -> dict[str, Any]:
    seen = answer.finding.seen if answer.finding else None
    return {
        "build": answer.build.label, "file": answer.choice.file.path.name if answer.choice.file else None,
        "why_no_wheel": answer.choice.why.value if answer.choice.why else None,
        "run": answer.finding is not None, "twin": answer.twin.label if answer.twin else None,
        "status": answer.status.value,
        "gil_on": seen.run.gil_on if seen and seen.run else None,
        "lost": list(lost_modules(seen)) if seen else [],
        "interpreters": answer.finding.interpreters.value if answer.finding else InterpreterStatus.UNKNOWN.value}


def cards(document_: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cards of the page from `plain`: one for each build of each set."""
    found = []
    for each in document_["sets"]:
        for answer in each["answers"]:
            codes = [finding for finding in each["findings"] if finding["effect"] == "blocks"
                     and answer["build"] in (finding["builds"] or [answer["build"]])]
            found.append({
                "title": f"{each['name']} {each['version']} on {answer['build']}",
                "word": "in the way" if codes else "nothing in the way", "tone": "bad" if codes else "good",
                "beside": f"against {answer['twin']}" if answer["twin"] else "",
                "reasons": list(dict.fromkeys(finding["code"] for finding in codes))})
    return found
