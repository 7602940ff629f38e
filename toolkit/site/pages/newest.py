"""The newest result of each workload on each host, over all runs of a site."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.report.table_sentences import title_text
from gilscope.toolkit.site.pages.run import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gilscope.toolkit.model import Build
    from gilscope.toolkit.report.table.cell_results import CellResult
    from gilscope.toolkit.report.table.matrix import WorkloadTable
    from gilscope.toolkit.report.table.observations import Group
    from gilscope.toolkit.report.table.recommendation import Advice
    from gilscope.toolkit.site.sources import LoadedRun

KINDS = ("cpu", "native", "io", "mixed", "contention", "transfer", "own")   # in this order everywhere


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadOnBuild:
    """One workload on one build, by one run."""

    loaded: LoadedRun
    table: WorkloadTable
    build: Build
    column: int       # of the build in the table

    @property
    def advice(self) -> Advice:
        """The recommendation there."""
        return self.table.advice[self.column]

    @property
    def results(self) -> list[CellResult]:
        """Return its cells."""
        return [row.results[self.column] for row in self.table.rows]

    @property
    def link(self) -> str:
        """The address of its section in the page of its run."""
        return f"{self.loaded.page}#w{self.loaded.tables.index(self.table)}"


def group_of(table: WorkloadTable) -> Group:
    """Return the workload, phase and task length of a table."""
    return table.workload, table.phase, table.task_seconds


def places(runs: Iterable[LoadedRun]) -> list[WorkloadOnBuild]:
    """Return every workload on every build by every run, in the order of the runs."""
    return [WorkloadOnBuild(loaded=each, table=table, build=build, column=column)
            for each in runs for table in each.tables for column, build in enumerate(each.run.builds)]


def newest(found: Iterable[WorkloadOnBuild]) -> dict[tuple[Group, str], WorkloadOnBuild]:
    """Return the newest run with a number for each workload and build; runs come in ascending order."""
    latest: dict[tuple[Group, str], WorkloadOnBuild] = {}
    for place in found:
        key = group_of(place.table), place.build.label
        if key not in latest or any(result.time is not None for result in place.results):
            latest[key] = place
    return latest


def by_host(runs: Sequence[LoadedRun]) -> dict[str, list[LoadedRun]]:
    """Return the runs of each host, hosts in the order in which they come."""
    hosts: dict[str, list[LoadedRun]] = {}
    for each in runs:
        hosts.setdefault(each.host, []).append(each)
    return hosts


def in_order(builds: Iterable[Build]) -> list[str]:
    """Return the labels of builds by version, of one version the one with the GIL first."""
    keys = {build.label: (version_key(build.version), build.free_threaded, build.label) for build in builds}
    return sorted(keys, key=lambda label: keys[label])


def version_key(version: str) -> tuple[int, ...]:
    """Return the key that sorts versions: "3.14.7" as (3, 14, 7)."""
    return tuple(int(each) for each in re.findall(r"\d+", version)[:3])


def sorted_by_kind(tables: Mapping[Group, WorkloadTable], kinds: Mapping[str, str]) -> list[tuple[str, Group, str]]:
    """Return (kind, group, title) of workloads, kind by kind."""
    found = [(kind_of(table, kinds), group, title_text(table)) for group, table in tables.items()]
    return sorted(found, key=lambda each: (KINDS.index(each[0]) if each[0] in KINDS else len(KINDS), each[2]))


def run_names(runs: Sequence[LoadedRun]) -> dict[str, str]:
    """Return the name of each run by its id: its label, with machine and start if the label is not unique."""
    labels = Counter(each.run.label for each in runs)
    on_host = Counter((each.run.label, each.host) for each in runs)

    def name(each: LoadedRun) -> str:
        if labels[each.run.label] == 1:
            return each.run.label
        began = f", {each.run.started[:16].replace('T', ' ')}" if on_host[each.run.label, each.host] > 1 else ""
        return f"{each.run.label} ({each.host}{began})"

    return {each.id: name(each) for each in runs}
