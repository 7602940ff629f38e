"""The runs there are, as a document."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

from gilscope.toolkit.report.document import Column, Document, Entry, Lines, Table
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.model import Run, RunEnd
    from gilscope.toolkit.report.document import Section
    from gilscope.toolkit.store import Fleet, RunListing

NAMED = 2   # workloads that a row names
_FINISHED: frozenset[RunEnd] = frozenset({"rounds", "budget", "answered", "resolution", "failures"})
GOES_ON: frozenset[RunEnd] = frozenset({"interrupted", "killed", "starved"})   # what --resume goes on with


def runs_document(found: Sequence[RunListing]) -> Document:
    """Return a table of the runs there are, and what is wrong with those that cannot be read."""
    rows = [(each, each.run) for each in found]
    titles = ("label", "started", "builds", "rounds", "status", "what")
    table = Table(
        title="", columns=tuple(Column(title=title, key=title == "label", align="left") for title in titles),
        rows=tuple(tuple(map(Entry, (each.label, *_words(run, each.fleet)))) for each, run in rows if run is not None))
    sections: list[Section] = [table] if table.rows else []
    if problems := tuple(f"{each.label}: {each.problem}" for each in found if each.run is None):
        sections.append(Lines("Damaged", problems))
    if unfinished := [each for each in found if each.run is not None and _goes_on(each.run, each.fleet)]:
        sections.append(Lines("", tuple(dict.fromkeys(
            _resumed(each.label, each.run, each.fleet) for each in unfinished if each.run is not None))))
    return Document(tuple(sections))


def _words(run: Run, fleet: Fleet | None = None) -> tuple[str, ...]:
    started = datetime.fromisoformat(run.started).strftime("%Y-%m-%d %H:%M")
    builds = ", ".join(build.label for build in run.builds)
    if fleet is not None:
        return started, builds, "", _hosts_text(fleet), what_text(run)
    return started, builds, f"{run.rounds_done}/{run.rounds_planned}", status_text(run), what_text(run)


def what_text(run: Run, most: int = NAMED) -> str:
    """Return the workloads or the experiment, in few words: "primes, sort and 3 more", "experiment countdown"."""
    if "experiment" in run.options:
        return f"experiment {run.options['experiment']}, {run.options.get('effort')}"
    names = list(dict.fromkeys(cell.workload for cell in run.cells))
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "nothing") + more


def status_text(run: Run) -> str:
    """Return the status of a run: "finished", "interrupted", "killed", "running", with the cells that had failures."""
    cells = len({failure.cell for failure in run.failures})
    return ("finished" if run.stopped in _FINISHED else run.stopped) + (f", {cells} with failures" if cells else "")


def _hosts_text(fleet: Fleet) -> str:
    """Return the status of the hosts of a fleet: "4 hosts, 1 lost"."""
    states = Counter(str(host.state) for host in fleet.hosts if host.state != "finished")
    return ", ".join([counted(len(fleet.hosts), "host"), *(f"{count} {state}" for state, count in states.items())])


def _goes_on(run: Run, fleet: Fleet | None) -> bool:
    if fleet is not None:
        return any(host.state in {"stopped", "lost"} for host in fleet.hosts)
    return run.stopped in GOES_ON


def _resumed(label: str, run: Run, fleet: Fleet | None) -> str:
    if fleet is not None:
        return f"gilscope run --resume {label} --fleet ADDRESS goes on with {label}."
    if "experiment" in run.options:
        label = label.partition("/")[0]
        return f"gilscope experiment run --resume {label} goes on with {label}."
    return f"gilscope run --resume {label} goes on with {label}."
