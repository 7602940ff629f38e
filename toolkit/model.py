"""The data classes that more than one part of the toolkit uses.

All are frozen.  Numbers are seconds or bytes unless the name has another unit.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import median
from typing import Any, Final, Literal

FIRST_LOOK = 4    # rounds before the first interim look at a run: fewer hardly ever suffice for a verdict
MOST_LOOKS = 20   # interim looks at a run, over all of its sessions: the error budget of the last look allows no more
# The reasons why a run ended.  "answered": every answer was clear; "failures": no cell was left that could deliver a
# value; "starved": other programs used the cores; "killed": the run is stored as "running", but no process is writing
# it.
RunEnd = Literal[
    "rounds", "budget", "answered", "resolution", "failures", "starved", "interrupted", "running", "killed"]
# How a measured process failed.  Only the trial of a function stores "refused" and "unavailable".
FailureKind = Literal[
    "crash", "hang", "killed", "exit", "exception", "wrong-result", "gil", "starting", "refused", "unavailable"]
WRONG_RESULT: Final = "wrong-result"  # the failure of the work itself, which a retry would repeat


class Phase(StrEnum):
    """The part of a cell that is timed."""

    STEADY = "steady"     # the pool is open and warm before the clock starts
    STARTUP = "startup"   # opening the pool, one task, and closing it are timed


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A caveat for the number beside it."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """One CPython interpreter and how it was built."""

    label: str             # "3.14t"; unique within one run
    version: str           # "3.14.7", "3.15.0rc1+"
    executable: str        # the file to start: the python of an environment if there is one
    base_executable: str   # the real interpreter binary, which identifies the build
    free_threaded: bool
    source: str            # how it was found: "explicit", "added", "tox", "uv", "pyenv", "gilscope", "PATH"
    debug: bool
    jit: str               # "no", "off" (built in, not on), "on"
    compiler: str          # "GCC 12.2.0"
    opt_level: str         # "-O3": the last -O flag the interpreter was compiled with
    pgo: bool
    lto: bool
    allocator: str         # "pymalloc", "mimalloc", "malloc"
    revision: str          # source revision; "" if the build does not report it
    config_args: str       # arguments of ./configure
    tail_call: bool | None = None   # the interpreter loop uses tail calls; None: not known, from an earlier gilscope

    @property
    def minor(self) -> str:
        """Return "3.14" for every build of 3.14."""
        return ".".join(self.version.split(".")[:2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One point of the matrix: workload, runner, number of workers, phase and build."""

    workload: str
    runner: str
    workers: int
    build: str                        # Build.label
    phase: Phase = Phase.STEADY
    task_seconds: float | None = None  # length of one task on the calibrating build; None: the workload's own
    parameters: tuple[tuple[str, str], ...] = ()  # further variables of an experiment: (("interval", "5ms"),)
    twin: bool = False                # True for an A/A arm: the same cell measured a second time; the name is stored

    @property
    def name(self) -> str:
        """The cell without its build, as pyperf benchmark name."""
        parts = [self.workload, f"runner={self.runner}", f"workers={self.workers}", f"phase={self.phase}"]
        if self.task_seconds is not None:
            parts.append(f"task={self.task_seconds:g}s")
        parts += [f"{key}={value}" for key, value in self.parameters]
        if self.twin:
            parts.append("twin=1")
        return "/".join(parts)

    @classmethod
    def parse(cls, name: str, build: str) -> Cell:
        """Return the cell that `name` was made from.

        Raises:
            ValueError: `name` is not a cell's name.
        """
        workload, *pairs = name.split("/")
        try:
            keys = dict(pair.split("=", 1) for pair in pairs)
            task = keys.pop("task", None)
            cell = cls(
                workload=workload, runner=keys.pop("runner"), workers=int(keys.pop("workers")), build=build,
                phase=Phase(keys.pop("phase")), task_seconds=None if task is None else float(task.rstrip("s")),
                twin=keys.pop("twin", "0") == "1", parameters=tuple(keys.items()),
            )
        except (KeyError, ValueError) as error:
            raise ValueError(f"{name!r} is not the name of a gilscope cell ({error})") from error
        if not workload or cell.name != name:
            raise ValueError(f"{name!r} is not the name of a gilscope cell")
        return cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The load of the machine while one measured process ran.  None: the system does not report it."""

    others_cores: float | None      # cores' worth of CPU time of all but this process tree and the loopback servers
    steal: float | None             # share of the machine's CPU time taken by the hypervisor, 0..1
    pressure: float | None          # share of the time some task waited for a CPU (PSI cpu some), 0..1
    load: float | None              # 1-minute load average at the start


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The values of one cell in one round, measured by one fresh process."""

    round: int
    wall: tuple[float, ...]         # seconds per run of the whole workload, one per pyperf value
    cpu: tuple[float, ...]          # CPU seconds of the process and its children for the same values
    loops: int
    evidence: Evidence
    starved: bool                   # it did not get the cores that it needed
    retakes: int = 0                # the number of this attempt; 0: the first; a disturbed workload is repeated
    gil_end: bool | None = None     # True if the GIL was on at the end; None before 3.13
    gil_culprit: str | None = None  # the module whose import turned it on
    demand: float | None = None     # of the serial baseline: cores that its tasks keep busy on an idle machine
    tasks: int | None = None        # the number of payloads in one pass over the workload
    # In order of name: the metrics that `metrics.py` declares, and those of an experiment: (("p50", 0.005),).
    metrics: tuple[tuple[str, float | str], ...] = ()
    passes: tuple[int, ...] = ()    # the pass of each value, in which all arms took one in turn; (): not in turn
    began: tuple[float, ...] = ()   # the start of each value, in seconds since the epoch; (): unknown
    again: int = 0                  # values that were taken again, since others disturbed some arm of the same pass
    seconds: float | None = None    # time that the run spent on the process, without waiting for its turns
    hash_seed: str | None = None    # PYTHONHASHSEED; "random": not set, so the process drew its own; None: not known
    session: int = 1                # the session of its round, from 1; see `RunSession`

    @property
    def wall_value(self) -> float:
        """The process's one number for statistics by the wall clock: the median of its values."""
        return median(self.wall)

    @property
    def cpu_value(self) -> float | None:
        """The process's one number by the CPU clock: the median of its values; None when it has none.

        The smallest would leave out costs that fall into some values only, such as a garbage collection.
        """
        return median(self.cpu) if self.cpu else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Everything measured of one cell."""

    cell: Cell
    observations: tuple[Observation, ...]  # in order of round, at most one per round
    notes: tuple[Note, ...] = ()


class SkipKind(StrEnum):
    """Why a cell was not measured."""

    CANNOT_RUN = "cannot-run"         # its build or its runner cannot run it
    WORK_CANNOT = "work-cannot"       # the work cannot run there: a result cannot be pickled, a module is missing
    OUT_OF_BUDGET = "out-of-budget"   # the budget ended before its first value; a resumed run measures it


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """A cell that was not measured, with the reason."""

    cell: Cell
    reason: str   # for readers alone
    kind: SkipKind = SkipKind.CANNOT_RUN


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The failure of a cell's measured process in one round, with its last output."""

    cell: Cell
    kind: FailureKind
    reason: str    # one line
    output: str    # the last lines the process wrote
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The machine on which a run was made."""

    cpu_model: str
    cores: int                 # usable by this process (affinity), not installed
    memory_bytes: int | None
    system: str                # "Linux-6.1.0-x86_64"
    governor: str | None
    hostname: str
    # None in each of these: the system does not report it, or an earlier gilscope did not ask.
    hypervisor: str | None = None   # its name; "unnamed" if it does not tell; "none"
    microcode: str | None = None    # its version, "0x1000065"
    smt: bool | None = None         # simultaneous multithreading is on
    turbo: bool | None = None       # the processor may exceed its base frequency


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSession:
    """Consecutive rounds of a run, measured at one time; another session measures the same cells at another time."""

    started: str       # ISO 8601, with its time zone
    first_round: int   # the number of its first round; its last one is before the next session's first


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One label under results/: the request, the measurements, the skipped and the failed cells."""

    label: str
    started: str               # ISO 8601, with its time zone
    builds: tuple[Build, ...]
    machine: Machine
    seed: int
    rounds_planned: int
    rounds_done: int
    stopped: RunEnd            # the reason why it ended
    baseline: str              # the runner with which tables compare
    measurements: tuple[Measurement, ...]
    cells: tuple[Cell, ...] = ()  # everything that was to be measured, in the order of the tables
    skips: tuple[Skip, ...] = ()
    failures: tuple[Failure, ...] = ()
    notes: tuple[Note, ...] = ()
    looks: int = 0             # interim looks at clear answers so far; the last one spends the rest of the error
    answered: tuple[Cell, ...] = ()  # cells that get fewer rounds since the last look, as their answer was clear
    options: dict[str, Any] = field(default_factory=dict)  # the request as plain values, from which a run is resumed
    later_sessions: tuple[RunSession, ...] = ()  # after the first, which began with the run at round 0

    @property
    def sessions(self) -> tuple[RunSession, ...]:
        """All sessions, the first one first; the last one may be in progress."""
        return (RunSession(started=self.started, first_round=0), *self.later_sessions)

    def session_of(self, number: int) -> int:
        """Return the session, from 1, of the round `number`."""
        return sum(session.first_round <= number for session in self.sessions)

    def last_session(self) -> Run:
        """Return the run with the values of its last session only."""
        first = self.sessions[-1].first_round
        return replace(self, measurements=tuple(
            replace(each, observations=tuple(one for one in each.observations if one.round >= first))
            for each in self.measurements))

    @property
    def failed(self) -> tuple[Cell, ...]:
        """The cells that failed: each time they were tried, or once by a wrong result.

        A wrong result invalidates the cell; any other failure in one round leaves the values of other rounds valid.
        """
        valued = {each.cell for each in self.measurements if each.observations}
        return tuple(dict.fromkeys(
            each.cell for each in self.failures if each.kind == WRONG_RESULT or each.cell not in valued))
