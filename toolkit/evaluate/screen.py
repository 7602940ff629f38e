"""An evaluation on one screen: a line per target, then what stands behind each word of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.evaluate.doctor_document import way_to
from toolkit.evaluate.evaluation import Missing, Word
from toolkit.evaluate.judge import InterpreterStatus, Status, gil_users
from toolkit.report.document import Column, Cost, Document, Entry, Heading, Lines, Table
from toolkit.report.footnotes import Footnotes
from toolkit.report.wording import ratio_number, ratio_text
from toolkit.units import format_minutes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolkit.evaluate.doctor import BuildReport, Finding
    from toolkit.evaluate.evaluation import (
        BuildEvaluation,
        Conclusion,
        Evaluation,
        Gain,
        MachineFacts,
        Place,
        TestRun,
    )
    from toolkit.report.document import Section

MOST_NAMED = 4     # of anything in one line; --explain and --json have all
TITLES = ("target", "installed", "extensions", "GIL off", "lost C code", "tests", "1 thread", "memory", "verdict")


def document(found: Evaluation) -> Document:
    """Return the report of an evaluation."""
    sections: list[Section] = [
        Heading(f"evaluate: {found.project.name}", 1),
        Lines("", (_about(found), *found.project.found)),
        _table(found),
        *_titled("Why", (line for each in found.conclusions for line in _why(each))),
        *_titled("What stands in the way", (line for each in found.builds for line in _blockers(each))),
        *_titled("Gain", (line for each in found.builds for line in _gain(each))),
        *_titled("Where threads wait for each other", (line for each in found.builds for line in _contention(each))),
        *_titled("Races", _races(found)),
        *_titled("Machine", _machine(found.machine)),
        *_titled("Not looked at", _unexercised(found.conclusions)),
        *_titled("Next", (f"{number}. {step}" for number, step in enumerate(found.next_steps, 1))),
    ]
    return Document(tuple(sections))


def _titled(title: str, lines: Iterable[str]) -> list[Section]:
    items = tuple(dict.fromkeys(lines))
    return [Lines(title, items)] if items else []


def _about(found: Evaluation) -> str:
    project = found.project
    lock = f"versions of {project.lock.name}" if project.lock else "versions of today"
    return (f"{len(project.requirements)} requirements, {lock}; tests: {' '.join(project.tests or ('none',))}; "
            f"took {format_minutes(found.seconds)}")


def _table(found: Evaluation) -> Table:
    notes = Footnotes()
    rows = [_build_row(each, _conclusion_of(found, each.build.label), notes) for each in found.builds]
    for each in found.interpreters:
        target = f"subinterpreters on {each.build.label}"
        rows.append(_interpreters_row(target, each.readiness, _conclusion_of(found, target), notes))
    columns = tuple(Column(title=title, align="left", key=title == "target") for title in TITLES)
    return Table(title="", columns=columns, rows=tuple(rows), footnotes=notes.texts())


def _conclusion_of(found: Evaluation, target: str) -> Conclusion:
    return next(each for each in found.conclusions if each.target == target)


def _build_row(found: BuildEvaluation, conclusion: Conclusion, notes: Footnotes) -> tuple[Entry, ...]:
    report = found.readiness
    if isinstance(report, Missing):
        looked = [_absent(report, notes)] * 4
    else:
        looked = [Entry(_installed(report)), Entry(_extensions(report)), Entry(_gil(found, report)),
                  Entry(_names(report, {Status.LOST}) or "none")]
    cost = found.cost
    return (
        Entry(found.build.label), *looked, _tests(found.tests, notes),
        _absent(cost, notes) if isinstance(cost, Missing) else Entry(Cost(cost.cpu)),
        Entry("") if isinstance(cost, Missing) or cost.rss is None else Entry(f"{(cost.rss - 1) * 100:+.0f} %"),
        Entry(_word(conclusion)),
    )


def _absent(missing: Missing, notes: Footnotes) -> Entry:
    return Entry("-", notes.marks([missing.reason]))


def _word(conclusion: Conclusion) -> str:
    return f"{conclusion.word} ({conclusion.confidence} confidence)"


def _installed(report: BuildReport) -> str:
    missing = sum(each.verdict.status is Status.NO_WHEEL for each in report.findings)
    total = len(report.findings) + report.others
    return f"{total - missing}/{total}"


def _extensions(report: BuildReport) -> str:
    files = [extension for each in report.findings for extension in each.seen.extensions]
    fine = sum(extension.gil == "not-used" for extension in files)
    return f"{fine}/{len(files)} without the GIL" if files else "none"


def _gil(found: BuildEvaluation, report: BuildReport) -> str:
    if culprits := _names(report, {Status.GIL}) or ", ".join(report.unowned):
        return f"no: {culprits}"
    if isinstance(found.tests, Missing):
        return "at import"
    return {True: "no: in the tests", False: "yes", None: "at import"}[found.tests.gil_end]


def _names(report: BuildReport, statuses: set[Status]) -> str:
    return _few([each.name for each in report.findings if each.verdict.status in statuses])


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _tests(tests: TestRun | Missing, notes: Footnotes) -> Entry:
    if isinstance(tests, Missing):
        return _absent(tests, notes)
    if tests.passed is None:
        return Entry(f"exit code {tests.ending}" if tests.ending.isdecimal() else tests.ending.partition(":")[0])
    total = tests.passed + (tests.failed or 0) + (tests.errors or 0)
    return Entry(f"{tests.passed}/{total}")


def _interpreters_row(
    target: str, report: BuildReport | Missing, conclusion: Conclusion, notes: Footnotes
) -> tuple[Entry, ...]:
    if isinstance(report, Missing):
        looked = [_absent(report, notes), Entry(), Entry(), Entry()]
    else:
        able = [each for each in report.findings if each.interpreters is InterpreterStatus.OK]
        lost = _few([each.name for each in report.findings if each.interpreters is InterpreterStatus.LOST])
        loadable = f"{len(able) + report.others}/{len(report.findings) + report.others} packages load"
        looked = [Entry(_installed(report)), Entry(loadable), Entry("own GIL"), Entry(lost or "none")]
    return Entry(target), *looked, Entry(), Entry(), Entry(), Entry(_word(conclusion))


def _why(conclusion: Conclusion) -> Iterator[str]:
    reasons = conclusion.reasons
    more = f"; and {len(reasons) - MOST_NAMED} more" if len(reasons) > MOST_NAMED else ""
    yield f"{conclusion.target}: {conclusion.word}: {'; '.join(reasons[:MOST_NAMED])}{more}"


def _blockers(found: BuildEvaluation) -> Iterator[str]:
    """Yield how each package that turns the GIL on is reached, from the first line of the user's."""
    if isinstance(found.readiness, Missing):
        return
    places = {} if isinstance(found.tests, Missing) else {place.what: place for place in found.tests.imports}
    for finding in found.readiness.findings:
        if finding.verdict.status is Status.GIL:
            yield f"{found.build.label}: {finding.name} {finding.version}: {_ways(found.readiness, finding, places)}"


def _ways(report: BuildReport, finding: Finding, places: dict[str, Place]) -> str:
    users = gil_users(finding.seen)
    names = list(users)
    place = next((places[name] for name in names if name in places), None)
    way = next((way for name in names if (way := way_to(report, name))), ())
    if place is not None:
        via = f"; {place.what} is asked for in {place.file}:{place.line}"
    elif way:
        via = f"; {names[0]} is imported by {way[0].module}:{way[0].line}"
    else:
        via = ""
    need = "needs" if len(names) == 1 else "need"
    return f"{_few(names)} {need} the GIL (seen by {users[names[0]]}){via}"


def _gain(found: BuildEvaluation) -> Iterator[str]:
    if isinstance(found.gain, Missing):
        return
    yield f"{found.build.label}: {'; '.join(_gain_parts(found.gain))}"


def _gain_parts(gain: Gain) -> Iterator[str]:
    if gain.wait_share is not None:
        yield f"threads wait for the GIL {gain.wait_share * 100:.0f} % of their time on {gain.against}"
    if gain.ceiling is not None:
        yield f"so at most {ratio_number(gain.ceiling)}x"
    if isinstance(gain.predicted, Missing):
        yield f"no prediction: {gain.predicted.reason}"
    else:
        yield (f"predicted {ratio_number(gain.predicted.value)}x "
               f"[{ratio_number(gain.predicted.lo)}, {ratio_number(gain.predicted.hi)}]")
    if isinstance(gain.measured, Missing):
        yield f"not measured: {gain.measured.reason}"
    else:
        yield "measured " + ", ".join(
            ratio_text(each) + (f" with {threads} threads" if threads else "")
            for threads, each in gain.measured.items())


def _contention(found: BuildEvaluation) -> Iterator[str]:
    if isinstance(found.contention, Missing):
        return
    parts = []
    if found.contention.inflation is not None:
        parts.append(f"{found.contention.inflation:.2f} times the CPU time per operation")
    if found.contention.parked is not None:
        parts.append(f"parked {found.contention.parked * 100:.0f} % of their time")
    places = ", ".join(f"{place.file}:{place.line}{f' ({place.what})' if place.what else ''}"
                       for place in found.contention.places[:MOST_NAMED])
    if parts or places:
        yield f"{found.build.label}: {', '.join(parts)}{f'; most at {places}' if places else ''}"


def _races(found: Evaluation) -> Iterator[str]:
    if isinstance(found.races, Missing):
        return
    if not found.races.found:
        yield f"none in the project's tests on {found.races.build}; what they did not run is not judged"
    for race in found.races.found:
        word = "confirmed" if race.confirmed else "not confirmed"
        yield f"{race.variable}: {race.kind} at {race.file}:{race.line} ({word})"


def _machine(machine: MachineFacts | Missing) -> Iterator[str]:
    if isinstance(machine, Missing):
        return
    able = f", which do {machine.effective:.2f} cores' work at once" if machine.effective is not None else ""
    waits = f", {machine.run_queue * 100:.0f} % of the time waited for one" if machine.run_queue is not None else ""
    yield f"{machine.cores} cores{able}{waits}; {machine.libc}"
    yield from machine.doubts


def _unexercised(conclusions: Sequence[Conclusion]) -> Iterator[str]:
    for conclusion in conclusions:
        yield from conclusion.unexercised


def exit_code(found: Evaluation) -> int:
    """Return 1 when anything stands in the way on every build without a GIL, 0 otherwise."""
    labels = {each.build.label for each in found.builds}
    words = [each.word for each in found.conclusions if each.target in labels]
    return int(bool(words) and all(word is Word.BLOCKED for word in words))
