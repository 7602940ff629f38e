"""How long does the quick matrix take, where does that time go, and how much of it is gilscope's own CPU time?

Runs `gilscope run --quick` in this process, so that its own CPU time can be read apart from the measured processes',
and watches each of those: what it costs beside the values that it is there for.

    python -m tests.benchmarks.harness [options of gilscope run]      # KEEP=FOLDER keeps the results there
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyperf

from gilscope.toolkit.cli import main as gilscope
from gilscope.toolkit.commands.run import running
from gilscope.toolkit.measure.child.spec import CellSpec
from gilscope.toolkit.measure.measured_process import MeasuredProcess, ProcessAnswer
from gilscope.toolkit.measure.rounds import CellStarter
from gilscope.toolkit.measure.scheduler import Scheduler
from gilscope.toolkit.measure.turns import InterleavedPasses
from gilscope.toolkit.model import Cell

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gilscope.toolkit.model import Run

# What comes before the first value, by the moment with which it ends; a process tells them (`cell/turns.py`).
BEFORE = {"started": "start", "loaded": "load", "opened": "pool", "checked": "check", "ready": "pyperf"}
COLUMNS = (*BEFORE.values(), "values", "turns", "end")
LEGEND = """\
  ms of a process, waiting for its turns left out.  start: fork, interpreter, our imports; load: runner, workload,
  payloads; pool: opening it; check: one pass and its results; pyperf: its import; values: what is measured; turns:
  orders, evidence, untimed warm-up, values taken again; end: files, memory, last results, and all that is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """Where the seconds of one measured process went, waiting for its turns left out."""

    cell: Cell
    values: int
    seconds: Mapping[str, float]   # by column
    cpu: float                     # seconds in its values, all workers together


class Watched(MeasuredProcess):
    """A measured process that takes turns and whose stages are kept."""

    seen: list[Process]
    builds: Mapping[str, str]   # label by the python that is started
    ended: float = 0.0   # when the last one was gone: they may end at the same time

    def __init__(self, python: str, *args: Any, **options: Any) -> None:
        """Start it, see `MeasuredProcess`."""
        self._build = self.builds[python]
        self._began = self._told = time.monotonic()
        self._moments: dict[str, float] = {}   # of `BEFORE`
        self._turns = 0.0
        super().__init__(python, *args, **options)

    def send(self, **fields: Any) -> None:
        """Tell it, and note when."""
        self._told = time.monotonic()
        super().send(**fields)

    def receive(self) -> dict[str, Any] | None:
        """Return what it says; from the second word on that ends a turn."""
        said = super().receive()
        if self._moments:
            self._turns += time.monotonic() - self._told
        elif said is not None:
            self._moments = {**said["reached"], "ready": time.monotonic()}
        return said

    def answer(self) -> ProcessAnswer:
        """Return its answer, and keep where its time went."""
        began = max(self._told, Watched.ended)
        answer = super().answer()
        Watched.ended = time.monotonic()
        if answer.kind == "measured" and isinstance(self.spec, CellSpec):
            self.seen.append(self._costs(self.spec, answer.fields, Watched.ended - began))
        return answer

    def _costs(self, spec: CellSpec, fields: Mapping[str, Any], end: float) -> Process:
        (run,) = pyperf.Benchmark.load(str(spec.result_path)).get_runs()
        loops = fields["loops"]
        values = sum(run.values) * loops
        seconds = dict.fromkeys(COLUMNS, 0.0) | {"values": values, "turns": self._turns - values, "end": end}
        reached = [stage for stage in BEFORE if stage in self._moments]   # a start-up has no pool of its own
        order = [self._began, *(self._moments[stage] for stage in reached)]
        took = [ends - begins for begins, ends in pairwise(order)]
        seconds |= dict(zip((BEFORE[stage] for stage in reached), took, strict=True))
        return Process(cell=Cell.parse(spec.name, self._build), values=len(run.values), seconds=seconds,
                       cpu=sum(fields["cpu"]) * loops)


class Timed(Scheduler):
    """The rounds, whose time is kept."""

    seconds = 0.0

    def go(self) -> Run:
        """Measure the rounds."""
        assert isinstance(self._arms, CellStarter)
        Watched.builds = {python: label for label, python in self._arms.pythons.items()}
        began = time.perf_counter()
        try:
            return super().go()
        finally:
            Timed.seconds = time.perf_counter() - began


def main() -> None:
    """Run, and print the numbers under the table."""
    keep, options = os.environ.get("KEEP"), sys.argv[1:] or ["--quick"]
    Watched.seen = []
    with contextlib.ExitStack() as around:
        folder = keep or around.enter_context(tempfile.TemporaryDirectory())
        around.enter_context(contextlib.chdir(Path(folder)))
        around.enter_context(patch.object(running, "InterleavedPasses", partial(InterleavedPasses, begin=Watched)))
        around.enter_context(patch.object(running, "Scheduler", Timed))
        wall, own = time.perf_counter(), time.process_time()
        code = gilscope(["run", *options])
        wall, own = time.perf_counter() - wall, time.process_time() - own
    children = os.times()
    cpu = children.children_user + children.children_system
    if Watched.seen:
        print("\n".join(["", *table(Watched.seen), "", sums(Watched.seen, wall, Timed.seconds, cpu)]))
    print(
        f"exit code {code}; {wall:.0f} s; gilscope's own CPU time {own:.1f} s = {own / wall:.1%} of the time, "
        f"measured and helper processes {cpu:.0f} s"
    )


def table(processes: Sequence[Process]) -> list[str]:
    """Return a line for each kind of arm, each workload and all together: mean milliseconds of a process by column."""
    groups: dict[tuple[int, str], list[Process]] = defaultdict(list)
    for each in processes:
        groups[0, f"{each.cell.runner}, {each.cell.workers}, {each.cell.build}"].append(each)
        groups[1, f"{each.cell.workload}, {each.cell.build}"].append(each)
        groups[2, "all"].append(each)
    width = max(len(name) for _, name in groups)
    lines = [f"{'':{width}}  processes  " + "".join(f"{name:>8}" for name in (*COLUMNS, "sum")) + "  values"]
    before = 0
    for (part, name), group in sorted(groups.items()):
        means = [1000 * fmean(each.seconds[column] for each in group) for column in COLUMNS]
        share = means[COLUMNS.index("values")] / sum(means)
        lines += [""] if part != before else []
        before = part
        lines.append(
            f"{name:{width}}  {len(group):9}  " + "".join(f"{mean:8.0f}" for mean in (*means, sum(means)))
            + f"  {share:6.0%}"
        )
    return [*lines, LEGEND]


def sums(processes: Sequence[Process], wall: float, rounds: float, cpu: float) -> str:
    """Return what the seconds of a run of `wall` and its `rounds` went to; `cpu` is that of all its processes."""
    inside = sum(sum(each.seconds.values()) for each in processes)
    values = sum(each.seconds["values"] for each in processes)
    of_cpu = sum(each.cpu for each in processes) / cpu
    return (
        f"values {values:.1f} s = {values / wall:.0%} of the run, {values / rounds:.0%} of its rounds; "
        f"{of_cpu:.0%} of the CPU time of measured and helper processes\n"
        f"beside: {inside - values:.1f} s of the same processes, {rounds - inside:.1f} s of the rounds (saving, "
        f"starved cells measured again), {wall - rounds:.1f} s before and after the rounds"
    )


if __name__ == "__main__":
    main()
