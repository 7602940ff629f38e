"""Runs on several hosts: what `gilscope report LABEL` says of all of them together."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.escaping import visible_all
from gilscope.toolkit.publish import without_traces
from gilscope.toolkit.redaction import without_places
from gilscope.toolkit.report.hosts.agreement import MeasuredHost, measured_host
from gilscope.toolkit.report.hosts.document import hosts_document
from gilscope.toolkit.report.hosts.machines import MachineHosts, merge_runs
from gilscope.toolkit.site.page_values import document_values, shown
from gilscope.toolkit.site.pages.compare import source_of
from gilscope.toolkit.site.sources import file_name, fleet_machines
from gilscope.toolkit.store import is_fleet, load_run, read_fleet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gilscope.toolkit.site.sources import LoadedRun
    from gilscope.toolkit.store import Host

FEWEST = 2   # machines: one says nothing over machines


def fleet_values(known: Sequence[LoadedRun], files: Mapping[str, Mapping[str, str]]) -> list[dict[str, Any]]:
    """Return the label, file and values of the page of each run of a fleet.

    Args:
        known: All runs, the oldest first.
        files: By a run's id and build, where the page finds its pyperf file.
    """
    fleets: dict[Path, list[LoadedRun]] = {}
    for each in known:
        if each.tables and is_fleet(each.planned.path.parent):
            fleets.setdefault(each.planned.path.parent, []).append(each)
    found: list[dict[str, Any]] = []
    taken: Counter[str] = Counter()
    for folder, runs in fleets.items():
        machines = _machines(folder, runs)
        if len(machines) < FEWEST:
            continue
        label = runs[0].run.label.rpartition("/")[0] or folder.name
        by_name = {each.planned.path.name: each for each in sorted(runs, key=lambda each: each.planned.path.name)}
        hosts = [_measured(machine, by_name) for machine in machines]
        found.append({
            "label": label, "page": f"fleet-{file_name(label, taken)}.html",
            "document": document_values(hosts_document(label, hosts, _states(folder)),
                                        {each.name: by_name[each.hosts[0]].page for each in machines}),
            "sources": shown([source_of(each, files.get(each.id, {})) for each in by_name.values()]),
        })
    return found


def _machines(folder: Path, runs: Sequence[LoadedRun]) -> list[MachineHosts]:
    """Return the machines of a fleet with the hosts of which the site has a run."""
    there = {each.planned.path.name for each in runs}
    found = [MachineHosts(tuple(name for name in each.hosts if name in there)) for each in fleet_machines(folder)]
    return [each for each in found if each.hosts]


def _measured(machine: MachineHosts, runs: Mapping[str, LoadedRun]) -> MeasuredHost:
    """Return a machine with the rounds of all its hosts; the values of several are read again, as tables lack them."""
    first, *others = machine.hosts
    if not others:
        return MeasuredHost(name=first, run=runs[first].run, tables=runs[first].tables)
    loaded = [(name, without_traces(load_run(runs[name].planned.path))) for name in machine.hosts]
    return measured_host(machine.name, merge_runs(machine, loaded), machine.hosts)


def _states(folder: Path) -> tuple[Host, ...]:
    """Return the states of all hosts of a fleet, without private text; () if they cannot be read."""
    try:
        return visible_all(read_fleet(folder).hosts, without_places)
    except BadFileError:
        return ()
