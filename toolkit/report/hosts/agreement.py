"""Every ratio on each host, pooled over hosts, and the hosts on which its verdict holds.

The ratios, intervals and verdicts of a host are those of its own report.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gilscope.toolkit.model import Note
from gilscope.toolkit.report.cautions import cautions, stopping_text
from gilscope.toolkit.report.table import build_tables
from gilscope.toolkit.report.table.observations import Group, group_of
from gilscope.toolkit.stats.hosts import PooledRatio, pool
from gilscope.toolkit.stats.interim_looks import final_confidence
from gilscope.toolkit.stats.ratios import simultaneous
from gilscope.toolkit.stats.verdict import MARGIN, Comparison, SpeedVerdict, beyond

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from gilscope.toolkit.model import Cell, Run
    from gilscope.toolkit.report.table import CellResult, Contrast, WorkloadTable



@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentRatio:
    """Why a host has no ratio."""

    reason: str
    short: str   # in a word or two: a table has no room for a sentence


ABSENT = AbsentRatio(reason="not measured", short="not measured")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredHost:
    """The run of one host without its measurements: those of many hosts would not fit into memory."""

    name: str
    run: Run                             # without measurements
    tables: tuple[WorkloadTable, ...]
    cautions: tuple[str, ...]            # the warnings of its own report
    stopping: str = ""                   # how early stopping biases its ratios
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
class HostsComparison:
    """One comparison on several hosts."""

    by: Mapping[str, Comparison]     # by host
    lacking: Mapping[str, AbsentRatio]    # why the other hosts have none, by host
    pooled: PooledRatio | None            # None: fewer than two hosts have an interval
    agreement: Agreement
    notes: Mapping[str, tuple[Note, ...]] = field(default_factory=dict)   # footnotes of its ratio, by host


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsRow:
    """One cell against its baseline."""

    cell: Cell
    over: HostsComparison


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsTable:
    """One workload, phase and task length on one build."""

    first: WorkloadTable             # of the first host that has it
    build: str
    rows: tuple[HostsRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsContrast:
    """One cell against another, over hosts."""

    contrast: Contrast               # its comparison is the pooled one; it has no times, as each host has its own
    over: HostsComparison


def measured_host(name: str, run: Run, merged: tuple[str, ...] = ()) -> MeasuredHost:
    """Return a host with the tables of its run; `merged`: the hosts on one machine whose rounds these are."""
    return MeasuredHost(name=name, tables=build_tables(run, fits=False), run=replace(run, measurements=()),
                        cautions=cautions(run), stopping=stopping_text(run), merged=merged)


def hosts_tables(hosts: Sequence[MeasuredHost]) -> tuple[HostsTable, ...]:
    """Return a table for each workload and build, in the order in which the hosts have them.

    Cells that no build can run have no row.  Models are in the order of the hosts, too, and workers ascend: hosts with
    more cores have more worker counts.
    """
    first: dict[tuple[Group, str], WorkloadTable] = {}
    found: dict[Cell, dict[str, CellResult]] = {}
    notes: dict[Cell, dict[str, tuple[Note, ...]]] = {}
    for host in hosts:
        for table in host.tables:
            results = [result for row in table.rows for result in row.results]
            of_baselines = {result.cell.build: result.process_notes for result in results if result.is_baseline}
            for result in filter(table.compares, results):
                first.setdefault((group_of(result.cell), result.cell.build), table)
                found.setdefault(result.cell, {})[host.name] = result
                notes.setdefault(result.cell, {})[host.name] = (
                    *result.footnotes, *_of_baseline(of_baselines.get(result.cell.build, ())))
    ratios = {cell: {name: result.speedup for name, result in by.items()} for cell, by in found.items()}
    why = {cell: {name: AbsentRatio(reason=result.why_no_ratio, short=result.why_no_ratio)
                  for name, result in by.items()} for cell, by in found.items()}
    over = _over(ratios, why, notes, [host.name for host in hosts],
                 max((host.run.looks for host in hosts), default=0))
    models = {runner: place for place, runner in enumerate(dict.fromkeys(cell.runner for cell in found))}
    cells = sorted(found, key=lambda cell: (models[cell.runner], cell.workers))
    return tuple(
        HostsTable(first=table, build=build, rows=tuple(
            HostsRow(cell=cell, over=over[cell]) for cell in cells if (group_of(cell), cell.build) == (group, build)))
        for (group, build), table in first.items()
    )


def hosts_contrasts(
    by: Mapping[str, Iterable[Contrast]], looks: int = 0, margin: float = MARGIN,
) -> tuple[HostsContrast, ...]:
    """Return the comparisons of cells over hosts, in the order in which the hosts have them.

    Args:
        by: The contrasts of each host.
        looks: The largest number of interim looks of any host.
        margin: A difference up to this share counts as none.
    """
    first: dict[tuple[Cell, Cell], Contrast] = {}
    found: dict[tuple[Cell, Cell], dict[str, Contrast]] = {}
    for host, contrasts in by.items():
        for each in contrasts:
            key = (each.baseline, each.sample)
            first.setdefault(key, each)
            found.setdefault(key, {})[host] = each
    ratios = {key: {host: each.comparison for host, each in own.items()} for key, own in found.items()}
    why = {key: {host: AbsentRatio(reason=each.reason, short=each.short_reason) if each.reason else ABSENT
                 for host, each in own.items()} for key, own in found.items()}
    notes = {key: {host: (*each.lacking_sessions, *each.sample_notes, *_of_baseline(each.baseline_notes))
                   for host, each in own.items()} for key, own in found.items()}
    over = _over(ratios, why, notes, list(by), looks, margin)
    return tuple(HostsContrast(over=over[key], contrast=_together(each, over[key])) for key, each in first.items())


def _of_baseline(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return notes on the processes of the baseline of a ratio as those of the ratio."""
    return tuple(Note(text=f"the baseline: {note.text}") for note in notes)


def _together(contrast: Contrast, over: HostsComparison) -> Contrast:
    bare = replace(contrast, comparison=None, reason=None, baseline_time=None, sample_time=None, half=None,
                   half_together=None, shift=None, baseline_notes=(), sample_notes=(), lacking_sessions=())
    if over.pooled is not None:
        return replace(bare, comparison=over.pooled.comparison)
    reasons = dict.fromkeys(each.reason for each in over.lacking.values())
    return replace(bare, reason="; ".join(reasons) or "on one host alone")


def _over[Key: Hashable](
    ratios: Mapping[Key, Mapping[str, Comparison | None]], why: Mapping[Key, Mapping[str, AbsentRatio]],
    notes: Mapping[Key, Mapping[str, tuple[Note, ...]]], hosts: Sequence[str], looks: int, margin: float = MARGIN,
) -> dict[Key, HostsComparison]:
    """Return each comparison over hosts; the verdicts hold simultaneously, as in the table of one host."""
    known = {key: {host: each for host, each in by.items() if each is not None} for key, by in ratios.items()}
    confidence = simultaneous(sum(len(by) > 1 for by in known.values()), final_confidence(looks))
    return {
        key: HostsComparison(
            by=by, lacking={host: why[key].get(host, ABSENT) for host in hosts if host not in by},
            pooled=pool([*by.values()], confidence),
            agreement=agreement(_verdicts(by, margin)),
            notes={host: own for host, own in notes[key].items() if own and host in by},
        )
        for key, by in known.items()
    }


def _verdicts(by: Mapping[str, Comparison], margin: float) -> dict[str, SpeedVerdict]:
    """Return the verdict of each host by its own report.

    A host with a significant difference that is certainly within the margin agrees with hosts that say "same".
    """
    verdicts = {host: each.verdict(margin) for host, each in by.items()}
    if SpeedVerdict.SAME not in verdicts.values():
        return verdicts
    return {host: SpeedVerdict.SAME if beyond(by[host].between) <= margin else verdict
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


def judge_pooled(pooled: PooledRatio | None, margin: float = MARGIN) -> SpeedVerdict:
    """Return the verdict for hosts like these, by the rules of one host."""
    return SpeedVerdict.CANNOT_TELL if pooled is None else pooled.comparison.verdict(margin)
