"""Every ratio on each host, what the hosts say together, and on how many of them it holds.

A host speaks for itself first: its ratios, intervals and words are those of its own report.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gilscope.toolkit.report.table import Judgement, build_tables, judge
from gilscope.toolkit.report.table.observations import Group, group_of
from gilscope.toolkit.stats.hosts.pooling import Pooled, pool
from gilscope.toolkit.stats.looks import at_last
from gilscope.toolkit.stats.ratios import simultaneous
from gilscope.toolkit.stats.words import MARGIN, Comparison, beyond

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from gilscope.toolkit.model import Cell, Run
    from gilscope.toolkit.report.table import CellResult, Contrast, WorkloadTable

ABSENT = "not measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredHost:
    """What one host measured, without its values: of many hosts they would not fit into memory."""

    name: str
    run: Run                             # without measurements
    tables: tuple[WorkloadTable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """On which hosts a word holds."""

    word: Judgement                                   # of most hosts that tell; "cannot tell" where none does
    holds: tuple[str, ...]                            # hosts that say so
    others: Mapping[Judgement, tuple[str, ...]]       # hosts by what else they say, "cannot tell" at the end

    @property
    def changes(self) -> bool:
        """Return whether a host that tells says something else."""
        return bool(self.others.keys() - {"cannot tell"})

    @property
    def hosts(self) -> int:
        """Return how many have a number."""
        return len(self.holds) + sum(map(len, self.others.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class OverHosts:
    """One comparison on several hosts."""

    by: Mapping[str, Comparison]     # of each host that has it
    lacking: Mapping[str, str]       # of each other one, why not
    pooled: Pooled | None            # None: fewer than two hosts have an interval
    agreement: Agreement


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsRow:
    """One cell against its baseline."""

    cell: Cell
    over: OverHosts


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsTable:
    """One workload, phase and task length on one build."""

    first: WorkloadTable             # of the first host that has it
    build: str
    rows: tuple[HostsRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsContrast:
    """One cell against another, over hosts."""

    contrast: Contrast               # with what hosts say together as its comparison; no times: those are a host's
    over: OverHosts


def measured_host(name: str, run: Run) -> MeasuredHost:
    """Return what the run of a host says."""
    return MeasuredHost(name=name, tables=build_tables(run, fits=False), run=replace(run, measurements=()))


def hosts_tables(hosts: Sequence[MeasuredHost]) -> tuple[HostsTable, ...]:
    """Return a table for each workload and build, in the order in which the hosts have them.

    What no build can run, as threads without the GIL, has no row.  Models come in that order, too, workers ascending:
    hosts with more cores have more of them.
    """
    first: dict[tuple[Group, str], WorkloadTable] = {}
    found: dict[Cell, dict[str, CellResult]] = {}
    for host in hosts:
        for table in host.tables:
            for result in (result for row in table.rows for result in row.results if table.compares(result)):
                first.setdefault((group_of(result.cell), result.cell.build), table)
                found.setdefault(result.cell, {})[host.name] = result
    ratios = {cell: {name: result.speedup for name, result in by.items()} for cell, by in found.items()}
    why = {cell: {name: result.why_no_ratio for name, result in by.items()} for cell, by in found.items()}
    over = _over(ratios, why, [host.name for host in hosts], max((host.run.looks for host in hosts), default=0))
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
    """Return cells set against one another over hosts, in the order in which the hosts have them.

    Args:
        by: Of each host, its own.
        looks: The most that a host's words allow for.
        margin: Differences up to this share are called none.
    """
    first: dict[tuple[Cell, Cell], Contrast] = {}
    found: dict[tuple[Cell, Cell], dict[str, Contrast]] = {}
    for host, contrasts in by.items():
        for each in contrasts:
            key = (each.baseline, each.sample)
            first.setdefault(key, each)
            found.setdefault(key, {})[host] = each
    ratios = {key: {host: each.comparison for host, each in own.items()} for key, own in found.items()}
    # Runs go by "LABEL/HOST"; without the host a reason is the same on all of them.
    why = {key: {host: (each.reason or ABSENT).replace(f"/{host}", "") for host, each in own.items()}
           for key, own in found.items()}
    over = _over(ratios, why, list(by), looks, margin)
    return tuple(HostsContrast(over=over[key], contrast=_together(each, over[key])) for key, each in first.items())


def _together(contrast: Contrast, over: OverHosts) -> Contrast:
    bare = replace(contrast, comparison=None, reason=None, baseline_time=None, sample_time=None, half=None,
                   half_together=None)
    if over.pooled is not None:
        return replace(bare, comparison=over.pooled.comparison)
    reasons = dict.fromkeys(over.lacking.values())
    return replace(bare, reason="; ".join(reasons) or "on one host alone")


def _over[Key: Hashable](
    ratios: Mapping[Key, Mapping[str, Comparison | None]], why: Mapping[Key, Mapping[str, str]], hosts: Sequence[str],
    looks: int, margin: float = MARGIN,
) -> dict[Key, OverHosts]:
    """Return each comparison over hosts; words of all of them hold at once, as in a table of one host."""
    known = {key: {host: each for host, each in by.items() if each is not None} for key, by in ratios.items()}
    confidence = simultaneous(sum(len(by) > 1 for by in known.values()), at_last(looks))
    return {
        key: OverHosts(
            by=by, lacking={host: why[key].get(host, ABSENT) for host in hosts if host not in by},
            pooled=pool([*by.values()], confidence),
            agreement=agreement(_words(by, margin)),
        )
        for key, by in known.items()
    }


def _words(by: Mapping[str, Comparison], margin: float) -> dict[str, Judgement]:
    """Return the word of each host by its own report.

    A host that calls 2 % slower, all beyond the margin excluded, does not contradict one that calls them the same.
    """
    words = {host: judge(each, margin) for host, each in by.items()}
    if "same" not in words.values():
        return words
    return {host: "same" if beyond(by[host].between) <= margin else word for host, word in words.items()}


def agreement(words: Mapping[str, Judgement]) -> Agreement:
    """Return on which hosts the word of most of those that tell holds, and what others say."""
    hosts: dict[Judgement, list[str]] = {}
    for host, word in words.items():
        hosts.setdefault(word, []).append(host)
    counts = Counter({word: len(own) for word, own in hosts.items() if word != "cannot tell"})
    most: Judgement = counts.most_common(1)[0][0] if counts else "cannot tell"
    others = sorted(hosts.keys() - {most}, key=lambda word: (word == "cannot tell", -len(hosts[word]), word))
    return Agreement(
        word=most, holds=tuple(hosts.get(most, ())), others={word: tuple(hosts[word]) for word in others})


def judge_pooled(pooled: Pooled | None, margin: float = MARGIN) -> Judgement:
    """Return what may be said of hosts like these, by the rules of one host."""
    return "cannot tell" if pooled is None else judge(pooled.comparison, margin)
