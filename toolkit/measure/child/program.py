"""A module with a function `measure(trial)`, measured in a process of a build: an experiment's, or a user's workload.

The process measures one cell in one round: one value, or one in each of its turns.  `main` is started as
`python -c "from gilscope.toolkit.measure.child.program import main; main()" SPEC [LINE]`; LINE is the file descriptor
of the channel that tells it when to take a value.  The program receives a `ProgramTrial` and returns `ProgramValue`s.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from gilscope.toolkit.cores import allowed_cpus, usable_cores
from gilscope.toolkit.measure.child.base import (
    NoValueError,
    answered,
    gil_enabled,
    hash_seed,
    refuse_wrong_gil,
    report_progress,
    take_values,
)
from gilscope.toolkit.measure.child.other_load import LoadWindow, WindowLoad, bearable_others, starvation
from gilscope.toolkit.measure.child.process_tree import cpu_seconds, descendants
from gilscope.toolkit.measure.child.spec import ProcessSpec
from gilscope.toolkit.measure.child.turns import ScheduledTurns, take_value
from gilscope.toolkit.processes.helper_process import HelperFailedError, HelperProcess
from gilscope.toolkit.units import parse_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gilscope.toolkit.measure.child.turns import Order
    from gilscope.toolkit.model import FailureKind

READY_SECONDS = 120.0  # for a helper to start beside a busy machine


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSpec(ProcessSpec):
    """One measured process of a program: one cell, one round."""

    entry: ClassVar[str] = "gilscope.toolkit.measure.child.program"

    program: str  # module with the `measure` to run
    build: str
    model: str  # Cell.runner
    workers: int
    gil: bool | None  # what the model needs; None: it takes the build as it is
    parameters: dict[str, str]
    scales: dict[str, float]
    host: str  # gilscope's own python
    suite: bool = True  # write a pyperf file, for which the build needs pyperf; the answer has the value anyway


@dataclass(slots=True, kw_only=True)
class ProgramValue:
    """One value that a program measured.

    Attributes:
        seconds: The cell's value: wall seconds of the work, or seconds per request, message, ...
        cpu: CPU seconds of the same work; None if they mean nothing.
        metrics: Numbers in seconds, bytes or counts, or short texts, by name.
        files: Paths in the trial's folder, by name, of files to store beside the results.
        wanted_cores: The cores that the work could have used at once; it is starved if it lacked them.
    """

    seconds: float
    cpu: float | None = None
    metrics: dict[str, float | str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    wanted_cores: float = 1.0


@dataclass(slots=True)
class BlockTime:
    """The time of a measured block; `ProgramTrial.measuring` fills it at the end."""

    wall: float = 0.0  # seconds
    cpu: float = 0.0  # CPU seconds of this process and its descendants without helpers


class ProgramTrial:
    """One cell in one round, as its program sees it."""

    def __init__(self, spec: ProgramSpec, turns: ScheduledTurns | None = None) -> None:
        """Start nothing; `turns` decides when a value is taken, None: at once."""
        self.spec = spec
        self._turns = turns
        self.model = spec.model
        self.workers = spec.workers
        self.build = spec.build
        self.parameters: Mapping[str, str] = spec.parameters
        self.scales: Mapping[str, float] = spec.scales
        self.host = spec.host
        self.folder = spec.folder
        self.cores, self.allowed = usable_cores(), allowed_cpus()
        self._helpers: list[int] = []
        self._window: LoadWindow | None = None
        self.load: WindowLoad | None = None   # in that window, or in those of all values

    @property
    def evidence(self) -> dict[str, float | int | None]:
        """The fields of `model.Evidence`; none before anything was measured."""
        return self.load.evidence(self._window.load) if self.load and self._window else {}

    def number(self, name: str) -> float:
        """Return the parameter, or else the scale, `name`; a duration like "5ms" is returned in seconds.

        Raises:
            KeyError: There is neither.
        """
        if name in self.parameters:
            text = self.parameters[name]
            try:
                return float(text)
            except ValueError:
                return parse_seconds(text)
        return self.scales[name]

    def count(self, name: str) -> int:
        """Return `number` as an integer."""
        return int(self.number(name))

    def progress(self) -> None:
        """Report progress: without it for `progress_timeout` seconds, the process is killed as hanging."""
        report_progress(self.spec)

    def stop(self, reason: str, kind: FailureKind = "unavailable") -> NoReturn:
        """End the trial without a value.

        Args:
            reason: One line for the table's footnote.
            kind: "unavailable" skips the cell; "wrong-result", "exception" and "hang" make it fail.

        Raises:
            NoValueError: Always.
        """
        raise NoValueError(kind, reason)

    @contextlib.contextmanager
    def measuring(self) -> Iterator[BlockTime]:
        """Measure the block's wall and CPU time, and the machine's other load meanwhile.

        Start all processes that take part before: their CPU time counts as the measurement's own.  Several blocks may
        follow one another; the evidence then covers the time from the start of the first.
        """
        pids = [os.getpid(), *descendants(os.getpid())]
        measured = [pid for pid in pids if pid not in self._helpers]
        if self._window is None:
            self._window = LoadWindow(pids, self._turns.ours if self._turns else ())
            # Read at the same moment: the window counts the CPUs that this process may use now.
            self.cores, self.allowed = usable_cores(), allowed_cpus()
        clock = BlockTime()
        cpu, wall = cpu_seconds(measured), time.perf_counter()
        try:
            yield clock
        finally:
            clock.wall = time.perf_counter() - wall
            clock.cpu = cpu_seconds(measured) - cpu
            self.load = self._window.span()

    def values(
        self, take: Callable[[], ProgramValue], seconds: float, warm: Callable[[], object] = bool,
    ) -> list[ProgramValue]:
        """Take a value in each of this process's turns, or a single one at once if there are no turns.

        Args:
            take: Takes one value within `measuring`; all processes that it uses have been started.
            seconds: The approximate duration of a value.
            warm: Called before each value that follows another process's turn.
        """
        if self._turns is None:
            return [take()]
        pids = [os.getpid(), *descendants(os.getpid())]
        self._turns.begin(loops=1, seconds=seconds, pids=pids)
        taken: list[tuple[ProgramValue, WindowLoad]] = []
        order: Order = "take"
        while order != "end":
            value, order, _ = take_value(self._turns, lambda: self._take_warm(take, warm), self._load_of)
            taken.append(value)
        first, *rest = [load for _, load in taken]
        self.load = sum(rest, first)
        return [value for value, _ in taken]

    def _take_warm(
        self, take: Callable[[], ProgramValue], warm: Callable[[], object],
    ) -> tuple[ProgramValue, WindowLoad]:
        """Return a value and the load of the machine meanwhile."""
        warm()
        self._window = None   # load between its turns does not count
        value = take()
        assert self.load is not None, "`take` measures"
        self.progress()
        return value, self.load

    def _load_of(self, taken: tuple[ProgramValue, WindowLoad]) -> tuple[float, float | None]:
        value, load = taken
        return load.least_others_cores, bearable_others(value.wanted_cores, self.cores, self.allowed)

    @contextlib.contextmanager
    def helper(self, module: str, *words: str) -> Iterator[HelperProcess]:
        """Start `module` on gilscope's own python, wait for its first line, which is JSON, and end it on leaving.

        Start helpers before any load runs: beside busy processes a start may take seconds.

        Raises:
            NoValueError: It did not get ready, or did not answer later.
        """
        command = [self.host, "-P", "-m", module, *words]
        try:
            with HelperProcess(command, env=_host_environment()) as helper:
                self._helpers.append(helper.pid)
                yield helper.wait_until_ready(READY_SECONDS)
        except HelperFailedError as error:
            raise NoValueError("exception", f"the helper process {module} {error}") from None


def _host_environment() -> dict[str, str]:
    """Return the variables of a helper: what makes the measured build special does not concern it."""
    special = ("PYTHON_GIL", "LD_PRELOAD", "PYTHON_JIT")
    return {name: value for name, value in os.environ.items() if name not in special}


def sibling(*words: str, **options: Any) -> subprocess.Popen[str]:
    """Start another process of the measured build, `python -P words`; it is killed with this one at the latest."""
    return subprocess.Popen([sys.executable, "-P", *words], text=True, **options)


# --- the measured process of a program

def main() -> None:
    """Measure the cell in `sys.argv[1]` and leave the answer in its folder."""
    spec = ProgramSpec.from_json(sys.argv[1])
    turns = ScheduledTurns(spec, int(sys.argv[2])) if len(sys.argv) > 2 else None
    answered(spec, lambda: _measure(spec, turns))


def _measure(spec: ProgramSpec, turns: ScheduledTurns | None) -> dict[str, Any]:
    trial = ProgramTrial(spec, turns)
    # Before any thread of the program runs: an import turns the GIL on for all that follows.
    program = importlib.import_module(spec.program)
    measured: ProgramValue | list[ProgramValue] = program.measure(trial)
    values = measured if isinstance(measured, list) else [measured]
    taken = values[-1]
    gil_end = gil_enabled()
    refuse_wrong_gil(spec.model, spec.gil, gil_end)
    # pyperf is imported now, so that its memory and its threads are not the program's.
    if spec.suite:
        take_values(spec, lambda _loops: taken.seconds, loops=1)
    return {
        "kind": "measured",
        "seconds": taken.seconds,
        "cpu": [] if taken.cpu is None else [taken.cpu],
        "values": [{"seconds": each.seconds, "cpu": each.cpu, "metrics": each.metrics} for each in values],
        "loops": 1,
        "evidence": trial.evidence,
        **starvation(taken.wanted_cores, trial.load.likely_others_cores if trial.load else None, trial.cores,
                     trial.allowed),
        "gil_end": gil_end,
        "hash_seed": hash_seed(),
        "metrics": {name: value for name, value in taken.metrics.items() if value != ""},  # pyperf takes no empty text
        "files": taken.files,
        "metadata": {"gilscope_switch_interval": sys.getswitchinterval(), "gilscope_cores": trial.cores},
    }
