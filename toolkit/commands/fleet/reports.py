"""Reports and comparisons of runs on several hosts: of a fleet, or copied together."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.commands.output.reports import save_as_text
from gilscope.toolkit.commands.streams import print_stderr, print_stdout
from gilscope.toolkit.errors import BadFileError, ToolkitError, cannot_write
from gilscope.toolkit.escaping import visible_all
from gilscope.toolkit.publish import publish, without_traces
from gilscope.toolkit.redaction import without_places
from gilscope.toolkit.report.answer import answer_document
from gilscope.toolkit.report.as_json import run_values
from gilscope.toolkit.report.hosts.agreement import measured_host
from gilscope.toolkit.report.hosts.as_json import hosts_values
from gilscope.toolkit.report.hosts.document import hosts_document
from gilscope.toolkit.report.hosts.machines import MachineHosts, merge_runs
from gilscope.toolkit.report.run_document import run_document
from gilscope.toolkit.site.sources import find_sources
from gilscope.toolkit.store import (
    Fleet,
    find_fleet,
    fleet_text,
    load_run,
    machines_of,
    read_fleet,
)
from gilscope.toolkit.store.header import HEADER
from gilscope.toolkit.store.labels import FLEET, label_of
from gilscope.toolkit.store.shared_values import value_marks
from gilscope.toolkit.store.transfer_rounds import merge_pending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gilscope.toolkit.model import Run
    from gilscope.toolkit.report.document import Document
    from gilscope.toolkit.report.hosts.agreement import MeasuredHost

MORE = 2   # hosts: one alone is no fleet


class HostRuns:
    """The runs of several hosts, read one after the other, because the values of all might not fit into memory."""

    def __init__(self, label: str, folders: Mapping[str, Path], fleet: Fleet | None = None) -> None:
        """Use `of_fleet` or `of_folders` instead."""
        self.label = label
        self.folders = folders     # by host, if it has a run
        self.fleet = fleet or Fleet(hosts=())
        self.states = self.fleet.hosts   # the state of each host of a fleet; () if this is no fleet
        self.machines = [MachineHosts(hosts) for hosts in machines_of(folders, self.states)]
        self.failed = 0            # the exit code if a run could not be read, or 0
        self.hostnames: list[str] = []   # names that a page must not contain
        self.readable: list[str] = []    # hosts whose run could be read

    @classmethod
    def of_fleet(cls, path: Path) -> HostRuns:
        """Return the hosts of the run of a fleet.

        Raises:
            BadFileError: fleet.json is damaged.
            SaveError: No host's rounds can be put into files: the disk is full.
            ToolkitError: No host has a run yet.
        """
        fleet = read_fleet(path)
        problem = ToolkitError(f"{path} has the run of a fleet, and none of its hosts has a round")
        try:
            merge_pending(path)
        except ToolkitError as error:
            problem = error
        folders = {host.name: path / host.name for host in fleet.hosts if (path / host.name / HEADER).exists()}
        if not folders:
            raise problem
        return cls(label_of(path.name, path), folders, fleet)

    @classmethod
    def of_folders(cls, labels: Sequence[str]) -> HostRuns:
        """Return runs of several machines, each named by `LABEL`, `FOLDER` or `NAME=FOLDER`.

        Raises:
            ToolkitError: A name is no run or several runs, or two machines have one name.
        """
        folders: dict[str, Path] = {}
        for text in labels:
            sources = find_sources([text])
            # A run's folder may contain others, such as experiments.
            own, below = sources[0], [each for each in sources[1:] if sources[0].path in each.path.parents]
            if len(below) < len(sources) - 1:
                raise ToolkitError(f"{text} holds several runs: name one for each host, as in `gilscope report "
                                   f"laptop={own.path} server=FOLDER`")
            name = own.host or own.path.name
            if own.path in folders.values():
                raise ToolkitError(f"{own.path} is named twice: name a different run for each machine")
            if name in folders:
                raise ToolkitError(f"{folders[name]} and {own.path} have the same name: give them different ones, as "
                                   f"in `gilscope report laptop={folders[name]} server={own.path}`")
            folders[name] = own.path
        return cls(", ".join(folders), folders)

    @property
    def is_one_machine(self) -> bool:
        """True if all hosts have a run, and are on one machine."""
        return len(self.machines) == 1 and len(self.machines[0].hosts) == max(len(self.states), MORE)

    def runs(self, show: Callable[[Run], Run] = lambda run: run) -> Iterator[tuple[MachineHosts, Run]]:
        """Yield each machine with the rounds of its hosts, from their runs as `show` changes them.

        Raises:
            ToolkitError: Two of them have nothing in common.
        """
        waiting: dict[MachineHosts, list[tuple[str, Run]]] = {}
        of_host = {name: machine for machine in self.machines for name in machine.hosts}
        left = {machine: len(machine.hosts) for machine in self.machines}
        for name, run in self._read():
            machine = of_host[name]
            left[machine] -= 1
            if run is not None:
                waiting.setdefault(machine, []).append((name, show(run)))
            if not left[machine] and machine in waiting:
                found = waiting.pop(machine)
                there = MachineHosts(tuple(host for host, _ in found))
                yield there, merge_runs(there, found)

    def merged(self, show: Callable[[Run], Run] = lambda run: run) -> Run:
        """Return the rounds of all hosts, which are on one machine, as the run of that machine.

        Raises:
            BadFileError: None of them can be read.
        """
        for _, run in self.runs(show):
            return replace(run, label=self.label)
        raise BadFileError(f"no run of {self.label} can be read")

    def _read(self) -> Iterator[tuple[str, Run | None]]:
        """Yield the hosts' runs, those of one machine after each other; report a damaged one, None, and go on.

        Raises:
            ToolkitError: Two of them have nothing in common.
        """
        first: Run | None = None
        seen: dict[str, frozenset[int]] = {}
        self.hostnames, self.readable = [], []
        for name in (name for machine in self.machines for name in machine.hosts):
            path = self.folders[name]
            try:
                run = load_run(path)
            except BadFileError as error:
                print_stderr(f"gilscope: {error}")
                self.failed = error.exit_code
                yield name, None
                continue
            if "experiment" in run.options:
                raise ToolkitError(f"{path} is an experiment: `gilscope report {path}` shows it by itself")
            if first is not None and first.baseline != run.baseline:
                raise ToolkitError(f"{path} compares with {run.baseline} and others with {first.baseline}: "
                                   "their ratios have nothing in common")
            if not self.states and run.machine.hostname in filter(None, self.hostnames):
                raise ToolkitError(f"{path} was made on the same machine as another of them: `gilscope compare` sets "
                                   "two runs of one machine against each other")
            marks = value_marks(run)
            if known := next((other for other, those in seen.items() if those & marks), None):
                raise ToolkitError(f"{self.folders[known]} and {path} share raw values, as copies of one run or parts "
                                   "of it do: they are not two machines. Name one of them")
            seen[name] = marks
            self.hostnames.append(run.machine.hostname)
            self.readable.append(name)
            first = first or run
            yield name, run

    def measured(self, show: Callable[[Run], Run] = lambda run: run) -> list[MeasuredHost]:
        """Return the measurements of each machine, from the runs of its hosts as `show` changes them.

        Raises:
            BadFileError: None of them can be read.
            ToolkitError: Two of them have nothing in common.
        """
        hosts = [measured_host(machine.name, run, machine.hosts) for machine, run in self.runs(show)]
        if not hosts:
            raise BadFileError(f"no run of {self.label} can be read")
        return hosts


def fleet_hosts(label: str) -> HostRuns | None:
    """Return the hosts of a fleet's run, or None if the label is of one run or of a fleet's only host.

    Raises:
        BadFileError: fleet.json is damaged.
        ToolkitError: No host has a run yet.
    """
    path = find_fleet(label)
    runs = None if path is None else HostRuns.of_fleet(path)
    return runs if runs and len(runs.states) > 1 else None


def publish_hosts(runs: HostRuns, target: Path) -> int:
    """Write a copy of a fleet's run to the new folder `target`, without paths and host names; return the exit code."""
    label, fleet = Path(runs.label).name, visible_all(runs.fleet, without_places)
    if runs.is_one_machine:
        report = run_document(replace(runs.merged(without_traces), label=label))
    else:
        report = hosts_document(label, runs.measured(without_traces), fleet.hosts)
    for name in runs.readable:
        publish(runs.folders[name], target / name)
    try:
        (target / FLEET).write_text(fleet_text(fleet) + "\n")
        save_as_text(report, target)
    except OSError as error:
        raise cannot_write(str(target), error) from error
    print_stdout(f"published in {target}")
    return runs.failed


def finished(runs: HostRuns) -> tuple[Callable[[], Document], Callable[[], Document], Callable[[], dict[str, Any]]]:
    """Return functions that make the answer of several hosts, their report, and its values."""
    if runs.is_one_machine:
        run = runs.merged()
        return partial(answer_document, run), partial(run_document, run), partial(run_values, run)
    hosts = runs.measured()
    report = cache(partial(hosts_document, runs.label, hosts, runs.states))
    return report, report, partial(hosts_values, runs.label, hosts, runs.states)
