"""What `report` and `compare` do with runs of several hosts: a fleet's, or some that were copied together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.commands.output.printing import say
from gilscope.toolkit.commands.streams import inform
from gilscope.toolkit.errors import BadFileError, ToolkitError, cannot_write
from gilscope.toolkit.escaping import visible_all
from gilscope.toolkit.model import Note
from gilscope.toolkit.publish import publish, without_traces
from gilscope.toolkit.redaction import without_places
from gilscope.toolkit.report import markdown, terminal
from gilscope.toolkit.report.as_json import hosts_values
from gilscope.toolkit.report.hosts.agreement import hosts_contrasts, measured_host
from gilscope.toolkit.report.hosts.document import hosts_document, hosts_overview
from gilscope.toolkit.site.sources import find_sources
from gilscope.toolkit.store import Fleet, find_fleet, fleet_text, load_run, read_fleet
from gilscope.toolkit.store.header import HEADER
from gilscope.toolkit.store.labels import FLEET, label_of
from gilscope.toolkit.store.transfer_rounds import put_waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gilscope.toolkit.model import Run
    from gilscope.toolkit.report.document import Document
    from gilscope.toolkit.report.hosts.agreement import HostsContrast, MeasuredHost
    from gilscope.toolkit.report.table import Contrast


class Hosts:
    """Runs of several hosts, read one after the other: the values of many would not fit into memory together."""

    def __init__(self, label: str, folders: Mapping[str, Path], fleet: Fleet | None = None) -> None:
        """Use `of_fleet` or `of_folders` instead."""
        self.label = label
        self.folders = folders     # of each host that has a run
        self.fleet = fleet or Fleet(hosts=())
        self.states = self.fleet.hosts   # how all hosts of a fleet stand; (): it is none
        self.failed = 0            # the exit code of what could not be read
        self.hostnames: list[str] = []   # of the runs that were read last; for a page, which must not have them

    @classmethod
    def of_fleet(cls, path: Path) -> Hosts:
        """Return the hosts of the run of a fleet.

        Raises:
            BadFileError: fleet.json is damaged.
            SaveError: No host's rounds can be put into files: the disk is full.
            ToolkitError: No host has a run yet.
        """
        fleet = read_fleet(path)
        problem = ToolkitError(f"{path} has the run of a fleet, and none of its hosts has a round")
        try:
            put_waiting(path)
        except ToolkitError as error:
            problem = error
        folders = {host.name: path / host.name for host in fleet.hosts if (path / host.name / HEADER).exists()}
        if not folders:
            raise problem
        return cls(label_of(path.name, path), folders, fleet)

    @classmethod
    def of_folders(cls, asked: Sequence[str]) -> Hosts:
        """Return runs that were made on several machines, one for each: `LABEL`, `FOLDER`, `NAME=FOLDER`.

        Raises:
            ToolkitError: One of them is no run, or several; or two have one name.
        """
        folders: dict[str, Path] = {}
        for text in asked:
            sources = find_sources([text])
            # A run may have others below it, as experiments that were made beside it.
            own, below = sources[0], [each for each in sources[1:] if sources[0].path in each.path.parents]
            if len(below) < len(sources) - 1:
                raise ToolkitError(f"{text} holds several runs: name one for each host, as in `gilscope report "
                                   f"laptop={own.path} server=FOLDER`")
            name = own.host or own.path.name
            if own.path in folders.values():
                raise ToolkitError(f"{own.path} is named twice: hosts are several machines, each with a run")
            if name in folders:
                raise ToolkitError(f"{folders[name]} and {own.path} have one name: give them names, as in "
                                   f"`gilscope report laptop={folders[name]} server={own.path}`")
            folders[name] = own.path
        return cls(", ".join(folders), folders)

    def runs(self) -> Iterator[tuple[str, Run]]:
        """Yield the hosts' runs; one that is damaged costs only itself.

        Raises:
            ToolkitError: Two of them have nothing in common.
        """
        first: Run | None = None
        self.hostnames = []
        for name, path in self.folders.items():
            try:
                run = load_run(path)
            except BadFileError as error:
                say(f"gilscope: {error}")
                self.failed = error.exit_code
                continue
            if "experiment" in run.options:
                raise ToolkitError(f"{path} is an experiment: `gilscope report {path}` shows it by itself")
            if first is not None and first.baseline != run.baseline:
                raise ToolkitError(f"{path} compares with {run.baseline} and others with {first.baseline}: "
                                   "their ratios have nothing in common")
            if not self.states and run.machine.hostname in filter(None, self.hostnames):
                raise ToolkitError(f"{path} was made on the same machine as another of them: `gilscope compare` sets "
                                   "two runs of one machine against each other")
            self.hostnames.append(run.machine.hostname)
            first = first or run
            yield name, run

    def measured(self, show: Callable[[Run], Run] = lambda run: run) -> list[MeasuredHost]:
        """Return what the hosts measured, of their runs what `show` leaves.

        Raises:
            BadFileError: None of them can be read.
            ToolkitError: Two of them have nothing in common.
        """
        found = [measured_host(name, show(run)) for name, run in self.runs()]
        if not found:
            raise BadFileError(f"no run of {self.label} can be read")
        return found


def fleet_hosts(label: str) -> Hosts | None:
    """Return the hosts of the run of a fleet; None: the label is of one run, or of the only host of a fleet.

    Raises:
        BadFileError: fleet.json is damaged.
        ToolkitError: No host has a run yet.
    """
    path = find_fleet(label)
    found = None if path is None else Hosts.of_fleet(path)
    return found if found and len(found.states) > 1 else None


def publish_hosts(found: Hosts, target: Path) -> int:
    """Write a copy of the run of a fleet to the new folder `target`, fit for others to read; return the exit code."""
    hosts = found.measured(without_traces)
    for host in hosts:
        publish(found.folders[host.name], target / host.name)
    fleet = visible_all(found.fleet, without_places)
    report = hosts_document(Path(found.label).name, hosts, fleet.hosts)
    try:
        (target / FLEET).write_text(fleet_text(fleet) + "\n")
        for name, render in (("report.md", markdown.render), ("report.txt", terminal.render)):
            (target / name).write_text(render(report) + "\n", encoding="utf-8")
    except OSError as error:
        raise cannot_write(str(target), error) from error
    inform(f"published in {target}")
    return found.failed


def reported(found: Hosts, hosts: Sequence[MeasuredHost]) -> tuple[Document, Callable[[], dict[str, Any]]]:
    """Return the report of several hosts, of what they `measured`, and what gives its values."""
    return (hosts_document(found.label, hosts, found.states),
            lambda: hosts_values(found.label, hosts, found.states))


def finished(found: Hosts) -> tuple[Document, Document, Callable[[], dict[str, Any]]]:
    """Return what a run of several hosts says on one screen, its report, and what gives its values."""
    hosts = found.measured()
    return (hosts_overview(found.label, hosts, found.states), *reported(found, hosts))


def contrasted(
    hosts: Iterable[tuple[str, Run]], compare: Callable[[str, Run], Sequence[Contrast]], margin: float,
) -> tuple[HostsContrast, ...]:
    """Return cells set against one another over hosts.

    Args:
        hosts: Their runs, one after the other.
        compare: Returns what one of them says.
        margin: Differences up to this share are called none.
    """
    by, looks = {}, 0
    for name, run in hosts:
        by[name], looks = compare(name, run), max(looks, run.looks)
    return hosts_contrasts(by, looks, margin)


def shared_hosts(first: Hosts, second: Hosts) -> tuple[list[str], list[Note]]:
    """Return the hosts that two fleets have in common by their names, and what to say of the others.

    Raises:
        ToolkitError: They have none.
    """
    shared = [name for name in first.folders if name in second.folders]
    if not shared:
        raise ToolkitError(f"{first.label} and {second.label} have no host in common: {', '.join(first.folders)}; "
                           f"{', '.join(second.folders)}")
    notes = [
        Note(text=f"only in {one.label}: {', '.join(left)}")
        for one, other in ((first, second), (second, first))
        if (left := [name for name in one.folders if name not in other.folders])
    ]
    return shared, notes
