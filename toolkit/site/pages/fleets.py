"""Runs on several hosts: what `gilscope report LABEL` prints, hosts side by side."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.escaping import visible_all
from gilscope.toolkit.redaction import without_places
from gilscope.toolkit.report.hosts.agreement import MeasuredHost
from gilscope.toolkit.report.hosts.document import hosts_document
from gilscope.toolkit.report.hosts.machines import MachineHosts
from gilscope.toolkit.site.page_values import document_values, shown
from gilscope.toolkit.site.sources import file_name
from gilscope.toolkit.store import is_fleet, read_fleet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gilscope.toolkit.site.sources import LoadedRun
    from gilscope.toolkit.store import Host

FEWEST = 2   # machines that can stand side by side


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
        if len(runs) < FEWEST:
            continue
        label = runs[0].run.label.rpartition("/")[0] or folder.name
        by_name = {_machine(each).name: each for each in sorted(runs, key=lambda each: each.planned.path.name)}
        hosts = [_measured(each) for each in by_name.values()]
        found.append({
            "label": label, "page": f"fleet-{file_name(label, taken)}.html",
            "document": document_values(hosts_document(label, hosts, _states(folder)),
                                        {name: each.page for name, each in by_name.items()}),
            "sources": shown([{"label": each.run.label, "page": each.page, "files": files.get(each.id, {})}
                              for each in by_name.values()]),
        })
    return found


def _machine(loaded: LoadedRun) -> MachineHosts:
    """Return the machine of a run, with the hosts of which the run has the rounds."""
    planned = loaded.planned
    return MachineHosts(tuple(name for name, _ in planned.hosts) or (planned.path.name,))


def _measured(loaded: LoadedRun) -> MeasuredHost:
    """Return a machine with the rounds of all its hosts."""
    machine = _machine(loaded)
    return MeasuredHost(name=machine.name, run=loaded.run, tables=loaded.tables, cautions=loaded.cautions,
                        merged=machine.hosts if len(machine.hosts) > 1 else ())


def _states(folder: Path) -> tuple[Host, ...]:
    """Return the states of all hosts of a fleet, without private text; () if they cannot be read."""
    try:
        return visible_all(read_fleet(folder).hosts, without_places)
    except BadFileError:
        return ()
