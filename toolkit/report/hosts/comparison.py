"""The document of two builds or models on several hosts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gilscope.toolkit.report.comparison import not_compared
from gilscope.toolkit.report.document import Banner, Document, Heading, Lines, Section, summary_lines
from gilscope.toolkit.report.hosts.tables import side_by_side
from gilscope.toolkit.report.hosts.wording import EACH, agreement_text, names_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.model import Note
    from gilscope.toolkit.report.hosts.agreement import HostsRatio
    from gilscope.toolkit.report.table import Contrast


def hosts_comparison(
    title: str, ratios: Sequence[HostsRatio], hosts: Sequence[str], *, baseline: str, sample: str,
    notes: Sequence[Note] = (), remarks: Sequence[str] = (),
) -> Document:
    """Return the report of cells compared with each other on each host.

    Args:
        title: The document's heading.
        ratios: In the order of the rows.
        hosts: The names of the hosts.
        baseline: The side that the ratios are relative to, in words.
        sample: The other side of the ratios, in words.
        notes: Warnings above the tables.
        remarks: Notes below the tables.
    """
    legend = f"Ratio: how many times as fast {sample} is as {baseline}: 0.80x takes 1.25 times as long."
    sections: list[Section] = [
        Heading(title, 1), *(Banner(note.text) for note in notes), Lines("", (legend, EACH))]
    if compared := [each for each in ratios if each.by]:
        sections.append(side_by_side("", compared, hosts))
    if remarks:
        sections.append(Lines("Notes", tuple(remarks)))
    if missing := [*_missing(ratios)]:
        every = [each.contrast for each in ratios if each.contrast is not None]
        sections.append(Lines("Not compared", not_compared(missing, every)))
    return Document((*sections, summary_lines(hosts_in_short(ratios))))


def _missing(ratios: Sequence[HostsRatio]) -> Iterator[Contrast]:
    """Yield the cells that no host has, and those that some lack, each with why."""
    for each in ratios:
        reasons: dict[str, list[str]] = {}
        for host, absent in each.lacking.items():
            reasons.setdefault(absent.reason, []).append(host)
        for why, hosts in reasons.items():
            on = f"on {names_text(hosts)}: " if each.by else ""
            if each.contrast is not None:
                yield replace(each.contrast, comparison=None, reason=f"{on}{why}")


def hosts_in_short(ratios: Sequence[HostsRatio]) -> list[str]:
    """Return whether the hosts agree."""
    if not any(each.by for each in ratios):
        return ["No cell could be compared on any host."]
    return [agreement_text(ratios, "cell")]
