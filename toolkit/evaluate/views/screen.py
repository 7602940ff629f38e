"""An evaluation on one screen: the answer, a line per target, then the facts under their headings."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.facts import FREE_THREADING, Topic, processes_on, subinterpreters_on
from gilscope.toolkit.evaluate.probes.contention import HAVE_LINES
from gilscope.toolkit.evaluate.views import answer
from gilscope.toolkit.report.document import Column, Document, Entry, Heading, Lines, Table
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.units import MOST_NAMED, counted, format_minutes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gilscope.toolkit.evaluate.evaluation import Conclusion, Evaluation
    from gilscope.toolkit.evaluate.facts import Fact
    from gilscope.toolkit.report.document import Section

MOST_REASONS = 2   # of a verdict, in the answer
MOST_STEPS = 3     # likewise
# The columns in their order; those of other packages' sections follow.
COLUMNS = ("packages", "C files", "GIL off", "C lost", "tests", "1 thread", "memory")


def answer_document(found: Evaluation) -> Document:
    """Return the answer of an evaluation: the verdict, why, and what to do next."""
    steps = [f"{number}. {step}" for number, step in enumerate(found.next_steps[:MOST_STEPS], 1)]
    rest = len(found.next_steps) - MOST_STEPS
    more = f"{counted(rest, 'more step')}, and everything" if rest > 0 else "everything"
    return Document((
        Heading(f"evaluate: {found.project.name}", 1),
        *_titled(answer.TITLE, answer.in_short(found.answer) if found.answer else ()),
        *_titled("Why", _why_in_short(found)),
        *_titled("Next", (*steps, f"{more}: {found.request.command('--full')}")),
    ))


def _why_in_short(found: Evaluation) -> Iterator[str]:
    """Yield the verdict on each build without a GIL with its first reasons, and on the others with the first one."""
    said = {each.target: [each.word, *each.reasons[:MOST_REASONS if each.target in found.labels else 1]]
            for each in found.conclusions}
    yield from _merged((target, ": ".join(filter(None, (word, "; ".join(reasons)))))
                       for target, (word, *reasons) in said.items())


def document(found: Evaluation) -> Document:
    """Return the report of an evaluation."""
    headings = dict.fromkeys((*Topic, *(fact.heading for fact in found.facts if fact.heading)))
    sections: list[Section] = [
        Heading(f"evaluate: {found.project.name}", 1),
        *_titled(answer.TITLE, answer.lines(found.answer) if found.answer else ()),
        Lines("", tuple(_about(found))),
        table(found),
        *_titled("Why", _why(found.conclusions)),
        *(section for heading in headings for section in _titled(heading, _listed(found.facts, heading))),
        *_titled("Not looked at", _not_looked_at(found.facts)),
        *_titled("Next", (f"{number}. {step}" for number, step in enumerate(found.next_steps, 1))),
    ]
    return Document(tuple(sections))


def table(found: Evaluation) -> Table:
    """Return a row for each build, and for subinterpreters and processes on each build with a GIL."""
    notes = Footnotes()
    cells = {(fact.target, cell.column): cell for fact in found.facts for cell in fact.cells}
    titles = tuple(dict.fromkeys((*COLUMNS, *(column for _, column in cells))))
    # The table has little room.
    short = {**{subinterpreters_on(each.label): f"subint {each.label}" for each in found.with_gil},
             **{processes_on(each.label): f"processes {each.label}" for each in found.with_processes}}

    def row(conclusion: Conclusion) -> tuple[Entry, ...]:
        own = [cells.get((conclusion.target, title)) for title in titles]
        return (Entry(short.get(conclusion.target, conclusion.target)), Entry(conclusion.word),
                *(Entry(cell.value, notes.marks(cell.notes)) if cell else Entry() for cell in own))

    rows = tuple(map(row, found.conclusions))
    columns = tuple(Column(title=title, align="left", key=title == "target")
                    for title in ("target", "verdict", *titles))
    return Table(title="", columns=columns, rows=rows, footnotes=notes.texts())


def _titled(title: str, lines: Iterable[str]) -> list[Section]:
    items = tuple(dict.fromkeys(lines))
    return [Lines(title, items)] if items else []


def _listed(facts: Sequence[Fact], heading: str) -> Iterator[str]:
    return _merged((fact.target, fact.text) for fact in facts if fact.heading == heading)


def _merged(lines: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield each text once, after the labels of its targets; a text about every build has none."""
    targets: dict[str, list[str]] = {}
    for target, text in lines:
        targets.setdefault(text, []).extend([target] * (target != FREE_THREADING))
    for text, about in targets.items():
        yield f"{', '.join(dict.fromkeys(about))}: {text}" if about else text


def _about(found: Evaluation) -> Iterator[str]:
    project = found.collected
    lock = f"versions of {project.lock.name}" if project.lock else "versions of today"
    count = counted(len(project.requirements), "requirement")
    none = "no requirements" if project.requirements_known else "requirements not known"
    needs = f"{count}, {lock}" if project.requirements else none
    yield f"{needs}; tests: {' '.join(project.tests or ('none',))}; took {format_minutes(found.seconds)}"
    yield f"found: {'; '.join(project.found)}"
    if found.kept and found.kept_since is not None:
        at = time.strftime("%Y-%m-%d %H:%M", time.localtime(found.kept_since))
        yield (f"as measured before, since {at} at the earliest, as nothing has changed: {'; '.join(found.kept)} "
               "(--fresh measures anew)")


def _why(conclusions: Sequence[Conclusion]) -> Iterator[str]:
    return _merged((each.target, f"{each.word} ({each.confidence} confidence): {_most(each.reasons)}")
                   for each in conclusions)


def _most(reasons: Sequence[str]) -> str:
    more = f"; and {len(reasons) - MOST_NAMED} more" if len(reasons) > MOST_NAMED else ""
    return f"{'; '.join(reasons[:MOST_NAMED])}{more}"


def _not_looked_at(facts: Sequence[Fact]) -> Iterator[str]:
    """Yield the parts that were not looked at, grouped by reason."""
    parts: dict[str, list[str]] = {}
    for fact in facts:
        if fact.not_looked_at and fact.code not in HAVE_LINES:
            part, reason = fact.not_looked_at
            parts.setdefault(reason, []).append(part)
    for reason, names in parts.items():
        yield ", ".join(dict.fromkeys(names)) + (f": {reason}" if reason else "")
