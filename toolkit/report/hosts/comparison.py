"""The document of a comparison on several hosts: of two runs of a fleet, or of two builds or models of one run."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from gilscope.toolkit.report.comparison import not_compared, verdict_lines
from gilscope.toolkit.report.document import Banner, Column, Document, Heading, Lines, Section, summary_lines
from gilscope.toolkit.report.hosts.agreement import judge_pooled
from gilscope.toolkit.report.hosts.tables import over_tables
from gilscope.toolkit.report.hosts.wording import ALL, EACH, HOLDS, PERHAPS_ONE, SPREAD, names_text
from gilscope.toolkit.report.table_sentences import title_text
from gilscope.toolkit.stats.verdict import MARGIN, SpeedVerdict
from gilscope.toolkit.units import counted, inflect

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.model import Note
    from gilscope.toolkit.report.hosts.agreement import HostsContrast
    from gilscope.toolkit.report.table import Contrast


def hosts_comparison(  # noqa: PLR0913 - the parts of a comparison
    title: str, contrasts: Sequence[HostsContrast], hosts: Sequence[str], *, baseline: str, sample: str,
    notes: Sequence[Note] = (), margin: float = MARGIN, remarks: Sequence[str] = (), doubtful: bool = False,
) -> Document:
    """Return the report of cells compared with each other on each host, and over all hosts.

    Args:
        title: The document's heading.
        contrasts: In the order of the rows.
        hosts: The hosts that both sides have.
        baseline: The side that the ratios are relative to, in words.
        sample: The other side of the ratios, in words.
        notes: Warnings above the tables.
        margin: A difference up to this share counts as none.
        remarks: Notes below the tables.
        doubtful: It is not known that the hosts are different machines.
    """
    legend = f"Ratio: how many times as fast {sample} is as {baseline}: 0.80x takes 1.25 times as long."
    sections: list[Section] = [
        Heading(title, 1), *(Banner(note.text) for note in notes),
        Lines("", (legend, ALL, *verdict_lines(margin), SPREAD, HOLDS, EACH)),
    ]
    models = any(each.contrast.baseline.runner != each.contrast.sample.runner for each in contrasts)
    builds = any(each.contrast.baseline.build != each.contrast.sample.build for each in contrasts)
    groups: dict[str, list[HostsContrast]] = {}
    for each in contrasts:
        if each.over.by:
            on = f", on {each.contrast.sample.build}" if not models and not builds else ""
            groups.setdefault(title_text(each.contrast.sample) + on, []).append(each)
    keys = (Column(title="build" if models else "model", key=True, align="left"), Column(title="N", key=True))
    for name, rows in groups.items():
        sections += over_tables(name, keys, [
            ((each.contrast.sample.build if models else each.contrast.sample.runner, str(each.contrast.sample.workers)),
             each.over) for each in rows], hosts, margin)
    if remarks:
        sections.append(Lines("Notes", tuple(remarks)))
    if missing := [*_missing(contrasts)]:
        sections.append(Lines("Not compared", not_compared(missing, [each.contrast for each in contrasts])))
    return Document((*sections, summary_lines(hosts_in_short(contrasts, margin, doubtful=doubtful))))


def _missing(contrasts: Sequence[HostsContrast]) -> Iterator[Contrast]:
    """Yield the cells that no host has, and those that some lack, each with why."""
    for each in contrasts:
        if not each.over.by:
            yield each.contrast
            continue
        reasons: dict[str, list[str]] = {}
        for host, absent in each.over.lacking.items():
            reasons.setdefault(absent.reason, []).append(host)
        for why, hosts in reasons.items():
            yield replace(each.contrast, comparison=None, reason=f"on {names_text(hosts)}: {why}")


def hosts_in_short(
    contrasts: Sequence[HostsContrast], margin: float = MARGIN, *, doubtful: bool = False,
) -> list[str]:
    """Return the number of cells with each verdict over all hosts, and how many verdicts hold on each.

    Args:
        contrasts: The cells.
        margin: A difference up to this share counts as none.
        doubtful: It is not known that the hosts are different machines.
    """
    compared = [each for each in contrasts if each.over.by]
    if not compared:
        return ["No cell could be compared on any host."]
    words = Counter(judge_pooled(each.over.pooled, margin) for each in compared)
    decided = ", ".join(
        f"{words[word]} {word}" for word in SpeedVerdict if words[word] and word != SpeedVerdict.CANNOT_TELL)
    undecided = f"{words[SpeedVerdict.CANNOT_TELL]} cannot tell" if words[SpeedVerdict.CANNOT_TELL] else ""
    same = [each.over.agreement for each in compared if each.over.agreement.word != SpeedVerdict.CANNOT_TELL]
    everywhere = sum(not each.others for each in same)
    changing = sum(each.changes for each in same)
    own_words = (f"By the hosts' own words, {everywhere} {inflect(everywhere, 'holds', 'hold')} on every host, "
                 f"{changing} {inflect(changing, 'changes', 'change')} between hosts.")
    return [
        f"{counted(len(compared), 'cell')} compared over all hosts: {'; '.join(filter(None, (decided, undecided)))}.",
        own_words, *([PERHAPS_ONE] if doubtful else []),
    ]
