"""Every ratio on each host, and the hosts on which its verdict holds.

The ratios, intervals and verdicts of a host are those of its own report.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gilscope.toolkit.model import Note
from gilscope.toolkit.report.cautions import ratio_cautions
from gilscope.toolkit.report.table.matrix import build_tables
from gilscope.toolkit.report.table.observations import Group, group_of
from gilscope.toolkit.stats.verdict import MARGIN, Comparison, SpeedVerdict, beyond

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gilscope.toolkit.model import Cell, Run
    from gilscope.toolkit.report.table.contrast import Contrast
    from gilscope.toolkit.report.table.matrix import WorkloadTable


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredHost:
    """The run of one host without its measurements: those of many hosts would not fit into memory."""

    name: str
    run: Run                             # without measurements
    tables: tuple[WorkloadTable, ...]
    cautions: tuple[str, ...]            # the warnings of its own report
    merged: tuple[str, ...] = ()         # the hosts on one machine whose rounds these are; (): this one alone

    @property
    def names(self) -> tuple[str, ...]:
        """The hosts whose rounds these are."""
        return self.merged or (self.name,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The most frequent verdict, and the hosts that have it."""

    word: SpeedVerdict                                   # "cannot tell" if no host has another verdict
    holds: tuple[str, ...]                            # hosts with this verdict
    others: Mapping[SpeedVerdict, tuple[str, ...]]       # the other hosts by their verdict, "cannot tell" last

    @property
    def changes(self) -> bool:
        """Return True if some host has a clear verdict that differs."""
        return bool(self.others.keys() - {SpeedVerdict.CANNOT_TELL})

    @property
    def hosts(self) -> int:
        """Return the number of hosts with a number."""
        return len(self.holds) + sum(map(len, self.others.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsRatio:
    """One ratio on several hosts: a speed-up over the baseline, or of two cells that are compared."""

    sample: Cell
    contrast: Contrast | None             # of the first host that compares the cells; None: a speed-up
    by: Mapping[str, Comparison]          # by host
    lacking: Mapping[str, str]            # why the other hosts have none, by host
    notes: Mapping[str, tuple[Note, ...]]   # footnotes of the ratio, by host
    agreement: Agreement
    best: frozenset[str]                    # hosts on which no measured model is significantly faster than this one


@dataclass(frozen=True, slots=True)
class _OnHost:
    """A ratio on one host."""

    comparison: Comparison | None
    absent: str     # why there is none
    notes: tuple[Note, ...]
    best: bool = False


def measured_host(name: str, run: Run, merged: tuple[str, ...] = ()) -> MeasuredHost:
    """Return a host with the tables of its run; `merged`: the hosts on one machine whose rounds these are."""
    return MeasuredHost(name=name, tables=build_tables(run), run=replace(run, measurements=()),
                        cautions=ratio_cautions(run), merged=merged)


def hosts_speedups(hosts: Sequence[MeasuredHost]) -> tuple[HostsRatio, ...]:
    """Return each speed-up on the hosts, by workload and build in the order in which the hosts have them.

    Cells that no build can run are left out.  Models are in the order of the hosts, too, and workers ascend: hosts with
    more cores have more worker counts.
    """
    groups: dict[tuple[Group, str], int] = {}
    found: dict[Cell, dict[str, _OnHost]] = {}
    for host in hosts:
        for table in host.tables:
            results = [result for row in table.rows for result in row.results]
            best = {cell for advice in table.advice if advice.faster for cell in advice.best}
            of_baselines = {result.cell.build: result.process_notes for result in results if result.is_baseline}
            for result in filter(table.compares, results):
                groups.setdefault((group_of(result.cell), result.cell.build), len(groups))
                found.setdefault(result.cell, {})[host.name] = _OnHost(
                    result.speedup, result.why_no_ratio,
                    (*result.footnotes, *_of_baseline(of_baselines.get(result.cell.build, ()))),
                    best=result.cell in best)
    models = {runner: place for place, runner in enumerate(dict.fromkeys(cell.runner for cell in found))}
    cells = sorted(found, key=lambda cell: (groups[group_of(cell), cell.build], models[cell.runner], cell.workers))
    return tuple(_together(cell, found[cell], [host.name for host in hosts]) for cell in cells)


def build_contrasts(hosts: Sequence[MeasuredHost]) -> tuple[HostsRatio, ...]:
    """Compare the CPU time of one worker on two builds, on each host."""
    first: dict[tuple[Cell, Cell], Contrast] = {}
    found: dict[tuple[Cell, Cell], dict[str, _OnHost]] = {}
    for host in hosts:
        for each in (each for table in host.tables for each in table.contrasts if each.sample.workers == 1):
            key = (each.baseline, each.sample)
            first.setdefault(key, each)
            found.setdefault(key, {})[host.name] = _OnHost(each.comparison, each.reason or "", (
                *each.lacking_sessions, *each.sample_notes, *_of_baseline(each.baseline_notes)))
    names = [host.name for host in hosts]
    return tuple(_together(each.sample, found[key], names, each) for key, each in first.items())


def _of_baseline(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return notes on the processes of the baseline of a ratio as those of the ratio."""
    return tuple(Note(text=f"the baseline: {note.text}") for note in notes)


def _together(
    sample: Cell, found: Mapping[str, _OnHost], hosts: Sequence[str], contrast: Contrast | None = None,
) -> HostsRatio:
    by = {host: each.comparison for host, each in found.items() if each.comparison is not None}
    return HostsRatio(
        sample=sample, contrast=contrast, by=by,
        lacking={host: found[host].absent if host in found else "not measured" for host in hosts if host not in by},
        notes={host: found[host].notes for host in by if found[host].notes}, agreement=agreement(_verdicts(by)),
        best=frozenset(host for host, each in found.items() if each.best))


def _verdicts(by: Mapping[str, Comparison]) -> dict[str, SpeedVerdict]:
    """Return the verdict of each host by its own report.

    A host with a significant difference that is certainly within the margin agrees with hosts that say "same".
    """
    verdicts = {host: each.verdict() for host, each in by.items()}
    if SpeedVerdict.SAME not in verdicts.values():
        return verdicts
    return {host: SpeedVerdict.SAME if beyond(by[host].between) <= MARGIN else verdict
            for host, verdict in verdicts.items()}


def agreement(verdicts: Mapping[str, SpeedVerdict]) -> Agreement:
    """Return the most frequent clear verdict with its hosts, and the verdicts of the other hosts."""
    hosts: dict[SpeedVerdict, list[str]] = {}
    for host, verdict in verdicts.items():
        hosts.setdefault(verdict, []).append(host)
    counts = Counter({word: len(own) for word, own in hosts.items() if word != SpeedVerdict.CANNOT_TELL})
    most: SpeedVerdict = counts.most_common(1)[0][0] if counts else SpeedVerdict.CANNOT_TELL
    others = sorted(hosts.keys() - {most}, key=lambda word: (word == SpeedVerdict.CANNOT_TELL, -len(hosts[word]), word))
    return Agreement(
        word=most, holds=tuple(hosts.get(most, ())), others={word: tuple(hosts[word]) for word in others})
