"""The runs of a site, their hosts, and the names of their pages."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import BadFileError, ToolkitError, UnknownNameError
from gilscope.toolkit.model import Note
from gilscope.toolkit.publish import published_label, without_traces
from gilscope.toolkit.report.cautions import cautions, ratio_cautions
from gilscope.toolkit.report.hosts.machines import MachineHosts, merge_runs
from gilscope.toolkit.report.hosts.wording import names_text
from gilscope.toolkit.report.table.matrix import build_tables
from gilscope.toolkit.report.table.observations import Index
from gilscope.toolkit.report.table.ratios import Ratios
from gilscope.toolkit.store import (
    find_runs,
    host_name,
    is_fleet,
    load_run,
    machines_of,
    read_fleet,
    read_header,
    results_folder,
    results_folders,
)
from gilscope.toolkit.store.header import HEADER, PENDING
from gilscope.toolkit.store.labels import FLEET, label_of
from gilscope.toolkit.store.transfer_rounds import merge_pending
from gilscope.toolkit.units import inflect

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from gilscope.toolkit.model import Machine, Run
    from gilscope.toolkit.report.table.matrix import WorkloadTable
    from gilscope.toolkit.store import Host

DEEPEST = 4   # folders between what is named and a run


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSource:
    """A folder with a run, and the name of its host; "": none was given."""

    path: Path
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """A run that the site is to have."""

    id: str            # of its pages and files; unique
    host: str
    path: Path
    is_experiment: bool
    label: str = ""    # of the rounds of several hosts on one machine; "": the run's own
    hosts: tuple[tuple[str, Path], ...] = ()   # these hosts with their runs, the first at `path`; (): a run alone

    @property
    def page(self) -> str:
        """Return the file of its page."""
        return f"{'experiment' if self.is_experiment else 'run'}-{self.id}.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedRun:
    """A run of the site, without its values: those are in its tables."""

    planned: PlannedRun
    run: Run                              # without measurements and whatever says whose machine it was
    tables: tuple[WorkloadTable, ...]     # of an experiment none
    problems: tuple[str, ...] = ()        # why runs of hosts on this machine are left out
    cautions: tuple[str, ...]             # the warnings of its report

    @property
    def id(self) -> str:
        """The name that its files begin with."""
        return self.planned.id

    @property
    def host(self) -> str:
        """Return the name of its machine."""
        return self.planned.host

    @property
    def page(self) -> str:
        """Return the file of its page."""
        return self.planned.page

    @property
    def is_experiment(self) -> bool:
        """True if it is an experiment's run."""
        return self.planned.is_experiment


def find_sources(names: Sequence[str], answered: Collection[str] = ()) -> list[RunSource]:
    """Return the runs below folders, or of labels, as they are named: `FOLDER`, `LABEL`, `NAME=FOLDER`.

    Args:
        names: Of what to look for.
        answered: Those of them that have something else to show, and need no run.

    Raises:
        ToolkitError: Nothing is there, or it is no run.
    """
    found: dict[Path, RunSource] = {}
    for text in names or default_names():
        name, path = named_source(text)
        for run in _below(path, needed=text not in answered):
            found.setdefault(run.resolve(), RunSource(path=run, host=name))
    return list(found.values())


def default_names() -> list[str]:
    """Return the folders with runs; that for new runs if there is none, for the message."""
    return [str(folder) for folder in results_folders() if any(folder.glob(f"*/{HEADER}"))
            or any(folder.glob(f"*/*/{HEADER}"))] or [str(results_folder())]


def hosts_of(sources: Sequence[RunSource]) -> set[str]:
    """Return the host names of the machines of runs, as far as they can be read."""
    return {host_name(source.path) for source in sources}


def named_source(text: str) -> tuple[str, Path]:
    """Return the machine's name, or "", and the path of `NAME=FOLDER`.

    Raises:
        ToolkitError: Nothing is before "=".
    """
    name, equals, folder = text.partition("=")
    if equals and not Path(text).exists():
        if not name.strip():
            raise ToolkitError(f"{text!r} has no name before '='; write it like laptop=results")
        return name.strip(), Path(folder)
    return "", Path(text)


def _below(path: Path, *, needed: bool) -> Iterable[Path]:
    """Return the folders of all runs in `path`, or those of the label that it is.

    Raises:
        ToolkitError: There is none, and it is `needed`.
    """
    if not path.is_dir():
        if not needed:
            return ()
        try:
            return find_runs(str(path))
        except UnknownNameError:
            if path.is_file():
                raise ToolkitError(f"{path} is a file: name the folder of a run, a folder with runs, or, for a site, "
                                   "what `--json` of scale, race, gil, doctor or evaluate wrote") from None
            raise ToolkitError(f"there is no folder and no run {str(path)!r}; `gilscope report` lists the runs of this "
                               "folder") from None
    depths = ["*/" * depth for depth in range(DEEPEST + 1)]
    for folder in (path, *(each.parent for depth in depths for each in path.glob(f"{depth}{FLEET}"))):
        with suppress(ToolkitError):   # `plan` reports what cannot be read
            merge_pending(folder)
    runs = sorted({each.parent for depth in depths for name in (HEADER, PENDING) for each in path.glob(depth + name)})
    if not runs and needed:
        raise ToolkitError(f"{path} holds no run: `gilscope run --quick` makes one in {results_folder()}")
    return runs


def plan(
    sources: Sequence[RunSource], problems: list[str], say: Callable[[str], None] = lambda _: None,
) -> list[PlannedRun]:
    """Return the runs that the site will have, by what their headers say, a run and its copies once.

    Hosts of a fleet that are on one machine are one run, with the rounds of all of them.

    Args:
        sources: Where runs are.
        problems: Gets what cannot be read.
        say: Told of each copy, and of each run that is a part of another one.
    """
    taken: Counter[str] = Counter()
    machines: dict[Path, list[MachineHosts]] = {}
    chosen: dict[tuple[object, ...], tuple[RunSource, Run]] = {}   # by what a run has in common with its copies
    for source in sources:
        try:
            run = read_header(source.path)
        except BadFileError as error:
            problems.append(str(error))
            continue
        host = source.path.name if is_fleet(source.path.parent) else ""
        key = run.started, run.seed, run.options.get("experiment"), host
        other = chosen.get(key)
        if other is None or run.rounds_done > other[1].rounds_done:
            chosen[key] = source, run
        if other is not None:
            kept = chosen[key][0].path
            left = source.path if kept == other[0].path else other[0].path
            say(f"{left} is a copy or a part of the run in {kept}, and is left out")
    planned: list[PlannedRun] = []
    for several in _of_one_machine([*chosen.values()], machines):
        source, run = several[0]
        # As its pages name it: a copy is named after its folder, not by the label that it had.
        label = (published_label(label_of(run.label, source.path)) if len(several) == 1
                 else _merged_label(run, source, machines))
        planned.append(PlannedRun(
            id=file_name("-".join(filter(None, (source.host, label))), taken), host=_host(source, run, machines),
            path=source.path, is_experiment="experiment" in run.options,
            label=label if len(several) > 1 else "",
            hosts=tuple((each.path.name, each.path) for each, _ in several) if len(several) > 1 else ()))
    return planned


def _of_one_machine(
    found: Sequence[tuple[RunSource, Run]], machines: dict[Path, list[MachineHosts]],
) -> list[list[tuple[RunSource, Run]]]:
    """Return runs, each in a list of its own, but hosts of a fleet that are on one machine together."""
    groups: dict[tuple[Path, str], list[tuple[RunSource, Run]]] = {}
    for source, run in found:
        key = source.path.parent, source.path.name
        if is_fleet(source.path.parent):
            key = source.path.parent, _machine_of(source, machines).name
        groups.setdefault(key, []).append((source, run))
    return list(groups.values())


def _machine_of(source: RunSource, machines: dict[Path, list[MachineHosts]]) -> MachineHosts:
    """Return the machine of the host of a fleet; `machines` are those of fleets that were looked at already."""
    fleet = source.path.parent
    if fleet not in machines:
        machines[fleet] = fleet_machines(fleet)
    return next(each for each in machines[fleet] if source.path.name in each.hosts)


def _merged_label(run: Run, source: RunSource, machines: dict[Path, list[MachineHosts]]) -> str:
    """Return the label of the rounds of several hosts: that of their fleet if no other machine has a part in it."""
    fleet, there = run.label.rpartition("/")[0] or source.path.parent.name, machines[source.path.parent]
    return fleet if len(there) == 1 else f"{fleet}/{_machine_of(source, machines).name}"


def _host(source: RunSource, run: Run, machines: dict[Path, list[MachineHosts]]) -> str:
    """Return the name of the machine of a run; machines of a fleet differ in name even if they are alike.

    Args:
        source: Where the run is.
        run: Its header.
        machines: Those of fleets that were looked at already.
    """
    fleet = source.path.parent
    if not is_fleet(fleet):
        return source.host or machine_name(run.machine)
    own = _machine_of(source, machines)
    with suppress(BadFileError):
        run = read_header(fleet / own.hosts[0])   # hosts on one machine may have different numbers of its cores
    machine = machine_name(run.machine)
    if len(machines[fleet]) == 1:
        return source.host or machine
    return f"{source.host}, {own.name}" if source.host else f"{own.name}, {machine}"


def fleet_machines(fleet: Path) -> list[MachineHosts]:
    """Return the machines of the hosts of a fleet that have a run."""
    folders = [path.parent.name for path in sorted(fleet.glob(f"*/{HEADER}"))]
    hosts: Sequence[Host] = ()
    with suppress(BadFileError):   # the report of the fleet says so
        hosts = read_fleet(fleet).hosts
    return [MachineHosts(names) for names in machines_of(folders, hosts)]


def load(planned: PlannedRun) -> tuple[LoadedRun, Ratios]:
    """Return a run, and what compares its cells, with its values.

    Raises:
        BadFileError: It cannot be read.
    """
    run, problems = _run_of(planned)
    ratios = Ratios(Index(run))
    tables = () if planned.is_experiment else build_tables(run, ratios)
    return LoadedRun(planned=planned, tables=tables, run=replace(run, measurements=()), problems=problems,
                     cautions=cautions(run) if planned.is_experiment else ratio_cautions(run)), ratios


def _run_of(planned: PlannedRun) -> tuple[Run, tuple[str, ...]]:
    """Return a run without traces of whose it is, and why hosts of its machine are left out.

    Raises:
        BadFileError: It cannot be read, nor can any other host of its machine.
    """
    if not planned.hosts:
        return without_traces(load_run(planned.path)), ()
    read: list[tuple[str, Run]] = []
    problems: list[str] = []
    for name, path in planned.hosts:
        try:
            read.append((name, without_traces(load_run(path))))
        except BadFileError as error:
            problems.append(str(error))
    if not read:
        raise BadFileError("; ".join(problems))
    merged = merge_runs(MachineHosts(tuple(name for name, _ in read)), read)
    lost = [name for name, _ in planned.hosts if name not in dict(read)]
    notes = [Note(text=f"{names_text(lost)} cannot be read, and {inflect(len(lost), 'is', 'are')} left out")
             ] if lost else []
    return replace(merged, label=planned.label, notes=(*notes, *merged.notes)), tuple(problems)


def machine_name(machine: Machine) -> str:
    """Return the name of a machine that nobody has named."""
    return f"{machine.cpu_model}, {machine.cores} cores"


def file_name(text: str, taken: Counter[str]) -> str:
    """Return a name for files that is not `taken` yet, whatever the case of letters counts for."""
    plain = (re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "run")[:80]
    taken[plain] += 1
    return plain if taken[plain] == 1 else f"{plain}--{taken[plain]}"
