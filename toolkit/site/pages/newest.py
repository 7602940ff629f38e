"""What the runs of a site say together: of every host and workload the newest run that has it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.report.table_sentences import title_text
from gilscope.toolkit.site.pages.run import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gilscope.toolkit.model import Build
    from gilscope.toolkit.report.table import Advice, CellResult, WorkloadTable
    from gilscope.toolkit.report.table.observations import Group
    from gilscope.toolkit.site.sources import Known

KINDS = ("cpu", "native", "io", "mixed", "contention", "transfer", "own")   # in this order everywhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One workload on one build, by one run."""

    known: Known
    table: WorkloadTable
    build: Build
    column: int       # of the build in the table

    @property
    def advice(self) -> Advice:
        """Return what to use there."""
        return self.table.advice[self.column]

    @property
    def results(self) -> list[CellResult]:
        """Return its cells."""
        return [row.results[self.column] for row in self.table.rows]

    @property
    def link(self) -> str:
        """Return where its run's page shows it."""
        return f"{self.known.page}#w{self.known.tables.index(self.table)}"


def group_of(table: WorkloadTable) -> Group:
    """Return what a table is about."""
    return table.workload, table.phase, table.task_seconds


def places(known: Iterable[Known]) -> list[Place]:
    """Return every workload on every build by every run, in the order of the runs."""
    return [Place(known=each, table=table, build=build, column=column)
            for each in known for table in each.tables for column, build in enumerate(each.run.builds)]


def newest(found: Iterable[Place]) -> dict[tuple[Group, str], Place]:
    """Return of each workload and build the newest run that has a number of it; runs come in ascending order."""
    latest: dict[tuple[Group, str], Place] = {}
    for place in found:
        key = group_of(place.table), place.build.label
        if key not in latest or any(result.time is not None for result in place.results):
            latest[key] = place
    return latest


def by_host(known: Sequence[Known]) -> dict[str, list[Known]]:
    """Return the runs of each host, hosts in the order in which they come."""
    hosts: dict[str, list[Known]] = {}
    for each in known:
        hosts.setdefault(each.host, []).append(each)
    return hosts


def in_order(builds: Iterable[Build]) -> list[str]:
    """Return the labels of builds by version, of one version the one with the GIL first."""
    keys = {build.label: (version_key(build.version), build.free_threaded, build.label) for build in builds}
    return sorted(keys, key=lambda label: keys[label])


def version_key(version: str) -> tuple[int, ...]:
    """Return what versions are sorted by: "3.14.7" as (3, 14, 7)."""
    return tuple(int(each) for each in re.findall(r"\d+", version)[:3])


def sorted_by_kind(tables: Mapping[Group, WorkloadTable], kinds: Mapping[str, str]) -> list[tuple[str, Group, str]]:
    """Return (kind, group, title) of workloads, kind by kind."""
    found = [(kind_of(table, kinds), group, title_text(table)) for group, table in tables.items()]
    return sorted(found, key=lambda each: (KINDS.index(each[0]) if each[0] in KINDS else len(KINDS), each[2]))
