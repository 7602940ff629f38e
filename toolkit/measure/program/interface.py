"""What a program is given in the measured process, and what it gives back.  Imports little."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from gilscope.toolkit.cores import allowed_cpus, usable_cores
from gilscope.toolkit.measure.machine.other_load import Span, Window, is_starved, load_average
from gilscope.toolkit.measure.machine.tree import cpu_seconds, descendants, peak_resident
from gilscope.toolkit.measure.process.child_base import StoppedError, report_progress
from gilscope.toolkit.measure.process.spec import Spec
from gilscope.toolkit.units import parse_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gilscope.toolkit.measure.cell.turns import InTurn, Order

READY_SECONDS = 120.0  # for a helper to start beside a busy machine


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSpec(Spec):
    """One measured process of a program: one cell, one round."""

    entry: ClassVar[str] = "gilscope.toolkit.measure.program.child"

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
class Taken:
    """What one trial measured.

    Where several are taken in turn each is one of these.

    Attributes:
        seconds: The cell's value: wall seconds of the work, or seconds per request, message, ...
        cpu: CPU seconds of the same work; None when that says nothing.
        metrics: By name, numbers in seconds, bytes or counts; or short texts.
        files: Path by name, in the trial's folder, of what is kept beside the results.
        wanted_cores: How many cores the work could have used at once; it is starved when it missed them.
    """

    seconds: float
    cpu: float | None = None
    metrics: dict[str, float | str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    wanted_cores: float = 1.0


@dataclass(slots=True)
class Clock:
    """What `Trial.measuring` fills when it ends."""

    wall: float = 0.0  # seconds
    cpu: float = 0.0  # CPU seconds of this process and those below it, helpers not among them


class Helper:
    """A process on gilscope's own python that loads or serves: the same for every build."""

    def __init__(self, process: subprocess.Popen[str], module: str) -> None:
        """`process` runs `module` and has not said that it is ready."""
        self._process = process
        self._module = module
        self.pid = process.pid
        self.ready = self._answer(READY_SECONDS)

    def ask(self, *, limit: float, **fields: Any) -> dict[str, Any]:
        """Send one JSON line and return the one that answers it, within `limit` seconds.

        Raises:
            StoppedError: no answer came, or none that is one.
        """
        import json

        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(fields) + "\n")
            self._process.stdin.flush()
        except OSError:
            self._fail("ended")
        return self._answer(limit)

    def _answer(self, limit: float) -> dict[str, Any]:
        import json
        import select

        assert self._process.stdout is not None
        # A helper says one line per question, so nothing waits in a buffer that select does not see.
        ready, _, _ = select.select([self._process.stdout], [], [], limit)
        if not ready:
            self._fail(f"did not answer within {limit:g} s")
        line = self._process.stdout.readline()
        try:
            answer = json.loads(line)
        except ValueError:
            self._fail("ended" if not line else f"said {line.strip()!r}")
        if not isinstance(answer, dict):
            self._fail(f"said {line.strip()!r}")
        if "error" in answer:
            self._fail(f"failed: {answer['error']}")
        return answer

    def _fail(self, what: str) -> NoReturn:
        raise StoppedError("exception", f"the helper process {self._module} {what}")


class Trial:
    """One cell in one round, seen from its program."""

    def __init__(self, spec: TrialSpec, turns: InTurn | None = None) -> None:
        """Nothing is started; `turns` says when a value is taken, None: at once."""
        self.spec = spec
        self._turns = turns
        self.model = spec.model
        self.workers = spec.workers
        self.build = spec.build
        self.parameters: Mapping[str, str] = spec.parameters
        self.scales: Mapping[str, float] = spec.scales
        self.host = spec.host
        self.folder = spec.folder
        self.evidence: dict[str, Any] = {}
        self.cores, self.allowed = usable_cores(), allowed_cpus()
        self._helpers: list[int] = []
        self._window: Window | None = None
        self._span: Span | None = None   # what that saw

    def number(self, name: str) -> float:
        """Return the parameter or else the scale `name`; of a duration like "5ms" its seconds.

        Raises:
            KeyError: there is neither.
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
        """Say that the program lives; without it for `progress_timeout`, the process is killed as hanging."""
        report_progress(self.spec)

    def stop(self, reason: str, kind: str = "unavailable") -> NoReturn:
        """End the trial without a value.

        Args:
            reason: One line for the table's footnote.
            kind: "unavailable": the cell is skipped; "wrong-result", "exception", "hang": it failed.

        Raises:
            StoppedError: always.
        """
        raise StoppedError(kind, reason)

    @contextlib.contextmanager
    def measuring(self) -> Iterator[Clock]:
        """Measure the block's wall and CPU time, and what else ran on the machine meanwhile.

        All processes that take part have been started, since their CPU time counts as the measurement's own.
        May be used several times in a row: the evidence is then about all from the first start on.
        """
        pids = [os.getpid(), *descendants(os.getpid())]
        measured = [pid for pid in pids if pid not in self._helpers]
        if self._window is None:
            self._window = Window(pids, self._turns.ours if self._turns else ())
            # Of the same moment: the window counts the CPUs that this process may use now.
            self.cores, self.allowed = usable_cores(), allowed_cpus()
        clock = Clock()
        cpu, wall = cpu_seconds(measured), time.perf_counter()
        try:
            yield clock
        finally:
            clock.wall = time.perf_counter() - wall
            clock.cpu = cpu_seconds(measured) - cpu
            self._span = self._window.span()
            self.evidence = self._span.evidence(self._window.load)

    def values(self, take: Callable[[], Taken], seconds: float, warm: Callable[[], object] = bool) -> list[Taken]:
        """Return what `take` measures in each of this process's turns; once and at once where nobody takes turns.

        Args:
            take: Takes one value, within `measuring`, by processes that have all been started.
            seconds: That it takes, about.
            warm: Is called before each value between whose turn and the last others had theirs.
        """
        if self._turns is None:
            return [take()]
        pids = [os.getpid(), *descendants(os.getpid())]
        self._turns.begin(loops=1, seconds=seconds, pids=pids, peak=peak_resident(pids))
        kept: list[tuple[bool, float, Span, Taken]] = []
        order: Order = "take"
        while order != "end":
            value = self._in_turn(take, warm)
            while (order := self._turns.next(starved=value[0])) == "again":
                value = min(value, self._in_turn(take, warm), key=lambda each: each[:2])
            kept.append(value)
        first, *rest = [span for _, _, span, _ in kept]
        self.evidence = sum(rest, first).evidence(load_average())
        return [taken for *_, taken in kept]

    def _in_turn(self, take: Callable[[], Taken], warm: Callable[[], object]) -> tuple[bool, float, Span, Taken]:
        """Return whether a value was starved for sure, what others used meanwhile at least, what was seen, and it."""
        warm()
        self._window = None   # what ran between its turns is not counted
        taken = take()
        assert self._span is not None, "it measures"
        others = self._span.least_others_cores
        self.progress()
        return is_starved(taken.wanted_cores, others, self.cores, self.allowed), others, self._span, taken

    @contextlib.contextmanager
    def helper(self, module: str, *words: str) -> Iterator[Helper]:
        """Start `module` on gilscope's own python, wait for its first line, which is JSON, and end it on leaving.

        Start helpers before any load runs: beside busy processes a start may take seconds.

        Raises:
            StoppedError: it did not get ready.
        """
        process = subprocess.Popen(
            [self.host, "-P", "-m", module, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            bufsize=1, env=_host_environment(),
        )
        self._helpers.append(process.pid)
        try:
            yield Helper(process, module)
        finally:
            process.kill()
            process.communicate()


def _host_environment() -> dict[str, str]:
    """Return the variables of a helper: what makes the measured build special does not concern it."""
    special = ("PYTHON_GIL", "LD_PRELOAD", "PYTHON_JIT")
    return {name: value for name, value in os.environ.items() if name not in special}


def sibling(*words: str, **options: Any) -> subprocess.Popen[str]:
    """Start another process of the measured build, `python -P words`; it is killed with this one at the latest."""
    return subprocess.Popen([sys.executable, "-P", *words], text=True, **options)
