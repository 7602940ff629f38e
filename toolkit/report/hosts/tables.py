"""Tables with the host as an axis, and the hosts themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gilscope.toolkit.builds.pairing import compare_builds
from gilscope.toolkit.report.document import Banner, Column, Entry, Gain, Interval, Ratio, Table, Verdict
from gilscope.toolkit.report.hosts.wording import absent_text, holds_text, names_text, next_text, spread_text
from gilscope.toolkit.report.table import judge
from gilscope.toolkit.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.model import Build, Machine
    from gilscope.toolkit.report.hosts.agreement import MeasuredHost, OverHosts
    from gilscope.toolkit.stats.hosts.pooling import Pooled
    from gilscope.toolkit.store import Host

_WHICH = "{hosts}"          # of a sentence: where the names of the hosts go
_WORK = ("size", "user")    # of what was selected: what makes the work another one
BESIDE = 8    # hosts with a column each; JSON has all of them


def over_tables(title: str, keys: Sequence[Column], rows: Sequence[tuple[Sequence[str], OverHosts]],
                hosts: Sequence[str], margin: float | None = None) -> list[Table]:
    """Return comparisons over hosts, and what each host says where there are few.

    Args:
        title: What they are about.
        keys: What names a row.
        rows: Its names, and what is known of it.
        hosts: All of them, in order.
        margin: Where something else than the usual is called no difference: then with a word of its own, and without
            the next host.
    """
    parts = ("spread", "next host") if margin is None else ("verdict", "spread")
    columns = (*keys, Column(title="all hosts"), *(Column(title=part) for part in parts),
               Column(title="holds", align="left"))
    together = Table(title=title, columns=columns, rows=tuple(
        (*map(Entry, names), *_together(over.pooled, margin), Entry(holds_text(over))) for names, over in rows))
    if len(hosts) > BESIDE:
        return [together]
    return [together, Table(
        title="On each host", columns=(*keys, *(Column(title=host, align="left") for host in hosts)),
        rows=tuple((*map(Entry, names), *(_on(over, host) for host in hosts)) for names, over in rows))]


def _together(pooled: Pooled | None, margin: float | None) -> tuple[Entry, ...]:
    if pooled is None:
        return Entry("-"), Entry(), Entry()
    spread, seen = Entry(spread_text(pooled)), pooled.comparison
    if margin is None:
        return Entry(Ratio(seen)), spread, Entry(next_text(pooled))
    return Entry(Interval(seen)), Entry(Verdict(judge(seen, margin))), spread


def _on(over: OverHosts, host: str) -> Entry:
    return Entry(Gain(over.by[host])) if host in over.by else Entry(absent_text(over.lacking[host]))


def hosts_table(hosts: Sequence[MeasuredHost], states: Sequence[Host] = ()) -> Table:
    """Return the hosts; those with the same machine, rounds and state share a row.

    Args:
        hosts: What has values.
        states: How all hosts of a fleet stand; (): nobody says, as of runs that were copied together.
    """
    measured = {host.name: host for host in hosts}
    state = {host.name: str(host.state) for host in states}
    rows: dict[tuple[str, ...], list[str]] = {}
    for name in state or measured:
        found = measured.get(name)
        ended = state.get(name, "" if found is None else found.run.stopped)
        rows.setdefault((*_host_row(found), ended), []).append(name)
    titles = ("host", "machine", "system", "rounds", "state")
    return Table(
        title="Hosts", columns=tuple(Column(title=title, align="left", key=title == "host") for title in titles),
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
    """Yield what a reader must know before any number: which hosts went, and what differs between them."""
    gone: dict[str, list[str]] = {}
    measured = {host.name for host in hosts}
    for host in states:
        if host.state in {"stopped", "lost"}:
            gone.setdefault(f"{host.state}{f', {host.note}' if host.note else ''}", []).append(host.name)
        elif host.state == "finished" and host.name not in measured:
            gone.setdefault("finished, and the values are gone or cannot be read", []).append(host.name)
    for text, names in gone.items():
        yield Banner(f"{names_text(names)}: {text}")
    machines: dict[str, list[str]] = {}
    for each in hosts:
        machines.setdefault(each.run.machine.hostname, []).append(each.name)
    for hostname, names in machines.items():
        if hostname and len(names) > 1:   # a published run does not say whose it is
            yield Banner(f"{names_text(names)} are one machine: what they say together is of that machine alone")
    for text, names in _unlike(hosts).items():
        everywhere = len(names) == len(hosts) and text.startswith(f"{_WHICH}: ")
        yield Banner(text.removeprefix(f"{_WHICH}: ") if everywhere else text.replace(_WHICH, names_text(names)))


def _unlike(hosts: Sequence[MeasuredHost]) -> dict[str, list[str]]:
    """Return what makes a host another measurement than the first, with a place for the hosts of which it is said."""
    found: dict[str, list[str]] = {}
    first: dict[str, tuple[str, Build]] = {}
    for host in hosts:
        said = [f"{_WHICH}: {note.text}" for note in host.run.notes]
        for build in host.run.builds:
            name, other = first.setdefault(build.label, (host.name, build))
            notes = compare_builds(replace(other, label=name), replace(build, label=_WHICH))
            said += [f"{build.label} is not the same everywhere: {note.text}" for note in notes]
        for what in _WORK:
            values = [each.run.options.get("selection", {}).get(what) for each in (hosts[0], host)]
            if values[0] != values[1]:
                said.append(f"not the same work ({what}) on {hosts[0].name} and {_WHICH}")
        for text in said:
            found.setdefault(text, []).append(host.name)
    return found
