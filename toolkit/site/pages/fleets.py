"""Runs on several hosts: what `gilscope report LABEL` says of all of them together."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.foreign import visible_all
from gilscope.toolkit.redaction import without_places
from gilscope.toolkit.report.hosts.agreement import MeasuredHost
from gilscope.toolkit.report.hosts.document import hosts_document
from gilscope.toolkit.site.plain import document_values
from gilscope.toolkit.site.sources import file_name
from gilscope.toolkit.store import is_fleet, read_fleet

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gilscope.toolkit.site.sources import Known
    from gilscope.toolkit.store import Host

FEWEST = 2   # hosts: one says nothing over hosts


def fleet_values(known: Sequence[Known]) -> list[dict[str, Any]]:
    """Return of each run of a fleet its label, the file of its page, and the page's values but those around it."""
    fleets: dict[Path, list[Known]] = {}
    for each in known:
        if each.tables and is_fleet(each.planned.path.parent):
            fleets.setdefault(each.planned.path.parent, []).append(each)
    found: list[dict[str, Any]] = []
    taken: Counter[str] = Counter()
    for folder, runs in fleets.items():
        if len(runs) < FEWEST:
            continue
        label = runs[0].run.label.rpartition("/")[0] or folder.name
        hosts = [MeasuredHost(name=each.planned.path.name, run=each.run, tables=each.tables) for each in runs]
        hosts.sort(key=lambda host: host.name)
        found.append({
            "label": label, "page": f"fleet-{file_name(label, taken)}.html",
            "document": document_values(hosts_document(label, hosts, _states(folder))),
        })
    return found


def _states(folder: Path) -> tuple[Host, ...]:
    """Return how all hosts of a fleet stand, for others to read; (): it cannot be read."""
    try:
        return visible_all(read_fleet(folder).hosts, without_places)
    except BadFileError:
        return ()
