"""The table of ratios with hosts side by side, and the table of the hosts themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gilscope.toolkit.builds.pairing import compare_builds
from gilscope.toolkit.report.comparison import workload_text
from gilscope.toolkit.report.document import Banner, Column, Entry, GainValue, Table
from gilscope.toolkit.report.footnotes import Footnotes
from gilscope.toolkit.report.hosts.wording import cautions_of_all, holds_text, names_text
from gilscope.toolkit.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.model import Build, Machine
    from gilscope.toolkit.report.hosts.agreement import HostsRatio, MeasuredHost
    from gilscope.toolkit.store import Host

_WORK = ("size", "user")    # the parts of a selection that change the work
BESIDE = 8    # the most hosts that get a column each; JSON always has all of them
KEYS = (Column(title="workload", key=True, align="left"), Column(title="build", key=True, align="left"),
        Column(title="model", key=True, align="left"), Column(title="N", key=True))


def side_by_side(title: str, ratios: Sequence[HostsRatio], hosts: Sequence[str]) -> Table:
    """Return a table of ratios with a column for each host; of many hosts, the number of those with each verdict.

    Args:
        title: The title of the table.
        ratios: The ratios, one for each row.
        hosts: The names of all hosts, in order.
    """
    notes = Footnotes()
    if len(hosts) <= BESIDE:
        columns = tuple(Column(title=host, align="left", source=host) for host in hosts)
        rows = [(*_key(each), *(_on(each, host, notes) for host in hosts)) for each in ratios]
    else:
        columns = (Column(title="hosts", align="left"),)
        rows = [(*_key(each), Entry(holds_text(each), _marks_of_all(each, notes))) for each in ratios]
    return Table(title=title, columns=(*KEYS, *columns), rows=tuple(rows), footnotes=notes.texts())


def _key(ratio: HostsRatio) -> tuple[Entry, ...]:
    cell = ratio.sample
    build = cell.build if ratio.contrast is None else f"{cell.build} vs {ratio.contrast.baseline.build}"
    return Entry(workload_text(cell)), Entry(build), Entry(cell.runner), Entry(str(cell.workers))


def _marks_of_all(ratio: HostsRatio, notes: Footnotes) -> tuple[int, ...]:
    """Return the marks of the footnotes of all hosts, where these have no column each."""
    return notes.marks(f"{host}: {note.text}" for host, own in ratio.notes.items() for note in own)


def _on(ratio: HostsRatio, host: str, notes: Footnotes) -> Entry:
    if host not in ratio.by:
        reason = ratio.lacking[host]
        return Entry(reason) if ratio.contrast is None else Entry("-", notes.marks([reason]))
    gain = GainValue(ratio.by[host], best=host in ratio.best)
    return Entry(gain, notes.marks(note.text for note in ratio.notes.get(host, ())))


def hosts_table(hosts: Sequence[MeasuredHost], states: Sequence[Host] = ()) -> Table:
    """Return the table of hosts; hosts with the same machine, rounds and state share a row.

    Args:
        hosts: The hosts with values.
        states: All hosts of a fleet with their states; empty for runs that were copied together.
    """
    measured = {name: host for host in hosts for name in host.names}
    state = {host.name: str(host.state) for host in states}
    rows: dict[tuple[str, ...], list[str]] = {}
    for name in state or measured:
        found = measured.get(name)
        ended = state.get(name, "" if found is None else found.run.stopped)
        rows.setdefault((*_host_row(found), ended), []).append(name)
    titles = ("host", "machine", "system", "rounds", "state")
    return Table(
        title="Hosts",
        columns=tuple(Column(title=title, align="left", key=title == "host") for title in titles),
        rows=tuple((Entry(names_text(names)), *map(Entry, row)) for row, names in rows.items()),
    )


def _host_row(host: MeasuredHost | None) -> tuple[str, ...]:
    if host is None:
        return "-", "-", "0"
    run = host.run
    return machine_text(run.machine), run.machine.system, f"{run.rounds_done} of {run.rounds_planned}"


def machine_text(machine: Machine) -> str:
    """Return "Made-up CPU (8 cores, 16.0 GiB)"."""
    memory = "" if machine.memory_bytes is None else f", {format_bytes(machine.memory_bytes)}"
    return f"{machine.cpu_model} ({machine.cores} cores{memory})"


def warnings(hosts: Sequence[MeasuredHost], states: Sequence[Host] = ()) -> Iterator[Banner]:
    """Yield the warnings above the tables: hosts that were lost, and differences between hosts."""
    yield from _lost_hosts(hosts, states)
    yield from map(Banner, cautions_of_all((host.name, host.cautions) for host in hosts))
    yield from _build_differences(hosts)
    yield from _work_differences(hosts)


def _lost_hosts(hosts: Sequence[MeasuredHost], states: Sequence[Host]) -> Iterator[Banner]:
    gone: dict[str, list[str]] = {}
    measured = {name for host in hosts for name in host.names}
    for host in states:
        if host.state in {"stopped", "lost"}:
            gone.setdefault(f"{host.state}{f', {host.note}' if host.note else ''}", []).append(host.name)
        elif host.state == "finished" and host.name not in measured:
            gone.setdefault("finished, and the values are gone or cannot be read", []).append(host.name)
    for text, names in gone.items():
        yield Banner(f"{names_text(names)}: {text}")


def _work_differences(hosts: Sequence[MeasuredHost]) -> Iterator[Banner]:
    for what in _WORK:
        values = [each.run.options.get("selection", {}).get(what) for each in hosts]
        others = [each.name for each, value in zip(hosts, values, strict=True) if value != values[0]]
        if others:
            yield Banner(f"not the same work ({what}) on {hosts[0].name} and {names_text(others)}")


def _build_differences(hosts: Sequence[MeasuredHost]) -> Iterator[Banner]:
    """Yield each difference between the builds of one label, with the hosts that differ in it from the first."""
    first: dict[str, Build] = {}
    found = []
    for host in hosts:
        texts = []
        for build in host.run.builds:
            other = first.setdefault(build.label, replace(build, label=hosts[0].name))
            notes = compare_builds(other, replace(build, label="this one"))
            texts += [f"{build.label} is not the same everywhere: {note.text}" for note in notes]
        found.append((host.name, texts))
    yield from map(Banner, cautions_of_all(found))
