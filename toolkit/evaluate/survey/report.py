"""The result of a survey, as a document for people and as plain values for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gilscope.toolkit.builds.missing_packages import distribution_of
from gilscope.toolkit.evaluate.packages.evidence import Status
from gilscope.toolkit.evaluate.packages.wording import judged
from gilscope.toolkit.evaluate.survey.answer import counts, outcome, outcome_words, to_line
from gilscope.toolkit.report.document import Column, Document, Entry, Heading, Lines, Table
from gilscope.toolkit.units import counted, few, inflect

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gilscope.toolkit.evaluate.survey.answer import BlockingPackage, BuildAnswer, PackageAnswer
    from gilscope.toolkit.report.document import Section

MOST_REASONS = 3   # reasons, or packages, in one sentence


def document(answers: Sequence[PackageAnswer], builds: Sequence[str]) -> Document:
    """Return a document: a table of packages by builds, a sentence for each blocking package, and a conclusion."""
    asked = [each for each in answers if not each.problem]
    sections: list[Section] = [Heading(f"doctor: {counted(len(answers), 'package')} on {', '.join(builds)}", 1)]
    if asked:
        sections.append(_table(asked, builds))
    if blockers := tuple(_blockers(asked)):
        sections.append(Lines("What stands in the way", blockers))
    if unknown := tuple(f"{each.package}: {each.problem}" for each in answers if each.problem):
        sections.append(Lines("Not answered; asked again the next time", unknown))
    if unlike := tuple(_unlike(asked, builds)):
        sections.append(Lines("What is not certain", unlike))
    sections.append(Lines("", tuple(_conclusion(asked, label) for label in builds)))
    return Document(tuple(sections))


def plain(answers: Sequence[PackageAnswer], builds: Sequence[str]) -> dict[str, Any]:
    """Return the result as plain values for JSON."""
    return {"blocked": any(each.blocked for each in answers),
            "counts": {label: counts(answers, label) for label in builds},
            "packages": [to_line(each) for each in answers]}


def progress_line(answer: PackageAnswer) -> str:
    """Return an answer in one line, for progress messages."""
    if answer.problem:
        return f"{answer.package}: {answer.problem}"
    where = f" ({answer.host})" if answer.host else ""
    words = ", ".join(f"{here.build} {outcome_words(outcome(here))}" for here in answer.builds)
    return f"{answer.package}: {words}{where}"


def _table(answers: Sequence[PackageAnswer], builds: Sequence[str]) -> Table:
    columns = (Column(title="package", key=True, align="left"),
               *(Column(title=label, align="left") for label in builds))
    rows = []
    for each in sorted(answers, key=lambda each: (not each.blocked, each.package.lower())):
        here = {found.build: found for found in each.builds}
        version = next((found.version for found in each.builds if found.version), "")
        rows.append((Entry(f"{each.package} {version}".strip()),
                     *(Entry(_cell(here.get(label))) for label in builds)))
    return Table(title="", columns=columns, rows=tuple(rows))


def _cell(here: BuildAnswer | None) -> str:
    if here is None:
        return ""
    if here.blocked and not here.status.blocks:
        named = [each.name for each in here.in_the_way[:MOST_REASONS]]
        return f"needs {', '.join(named)}{'...' * (len(here.in_the_way) > MOST_REASONS)}"
    if here.status is Status.READY and here.files:
        return f"{here.status.words} ({counted(here.files, 'file')})"
    return here.status.words


def _blockers(answers: Sequence[PackageAnswer]) -> Iterable[str]:
    """Yield a sentence for each package that blocks on a build, with the listed packages that need it."""
    needed_by: dict[tuple[str, BlockingPackage], list[str]] = {}
    for answer in answers:
        for here in answer.builds:
            for each in here.in_the_way:
                needed_by.setdefault((here.build, each), []).append(answer.package)
    for (label, each), names in needed_by.items():
        others = [name for name in names if distribution_of(name) != each.name]
        whose = f"; {few(others)} {inflect(len(others), 'needs', 'need')} it" if others else ""
        version, status = each.newest or (each.version, each.status)
        newest = f"; version {version} is {status.words}" if version != each.version else ""
        what = judged(each.status, "; ".join(each.reasons[:MOST_REASONS]))
        yield f"{f'{each.name} {each.version}'.strip()} on {label}{what}{newest}{whose}"


def _unlike(answers: Sequence[PackageAnswer], builds: Sequence[str]) -> Iterable[str]:
    for label in builds:
        pythons = sorted({here.python for each in answers for here in each.builds if here.build == label})
        if len(pythons) > 1:
            yield f"{label} is {' and '.join(pythons)}: hosts answered for builds that are not alike"


def _conclusion(answers: Sequence[PackageAnswer], label: str) -> str:
    found = counts(answers, label)
    free = sum(here.build == label and not here.blocked for each in answers for here in each.builds)
    words = [f"{number} {outcome_words(code)}" for code, number in sorted(found.items(), key=lambda item: -item[1])]
    told = f" ({', '.join(words)})" if words else ""
    return f"{label}: nothing stands in the way of {free} of {counted(sum(found.values()), 'package')}{told}"
