"""The request to a measured process, and the files through which it answers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

from gilscope.toolkit.processes.sealed_answers import new_secret
from gilscope.toolkit.records import from_plain, to_plain


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """The request to any measured process."""

    entry: ClassVar[str]  # the module with the functions that such a process can be started with

    name: str  # the pyperf benchmark's name
    progress_timeout: float  # seconds without progress after which stacks are dumped and the process is killed
    folder: str  # of the answer
    secret: str = field(default_factory=new_secret, compare=False)  # precedes its answers: see processes.sealed_answers

    def to_json(self) -> str:
        """Return the form that travels on the command line."""
        return json.dumps(to_plain(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the spec `to_json` was called on."""
        return from_plain(cls, json.loads(text))

    @property
    def result_path(self) -> Path:
        """The pyperf file with the values; complete or absent."""
        return Path(self.folder, "values.json")

    @property
    def answer_path(self) -> Path:
        """JSON with all that pyperf does not store, or with the reason why there is no value; complete or absent."""
        return Path(self.folder, "answer.json")

    @property
    def progress_path(self) -> Path:
        """A file that grows by one byte per finished pass over the payloads."""
        return Path(self.folder, "progress")

    @property
    def output_path(self) -> Path:
        """The output of the measured process and its workers."""
        return Path(self.folder, "output")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserTarget:
    """The user's own function as a workload; every name is "package.module:attribute".

    Without `payloads` and `payload`, a task is a call without arguments.
    """

    function: str
    payloads: str | None = None  # a callable or a sequence
    payload: str | None = None  # or one Python literal ...
    tasks: int = 0  # ... this many times, as the calls without arguments
    check: str | None = None  # called with the list of results; raises to refuse them
    async_function: str | None = None  # the form that asyncio awaits
    kind: str | None = None  # "cpu" or "io": a worker needs a whole core or hardly any; None: measured

    @property
    def has_payloads(self) -> bool:
        """Return True if the function is called with a payload."""
        return self.payloads is not None or self.payload is not None

    def modules(self) -> set[str]:
        """Return the modules that are named."""
        named = (self.function, self.payloads, self.check, self.async_function)
        return {name.partition(":")[0] for name in named if name}


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSpec(ProcessSpec):
    """One measured process of the main job: one cell, one round."""

    entry: ClassVar[str] = "gilscope.toolkit.measure.child.cell"

    workload: str  # a name in gilscope.workloads.catalog; the target's name when `user` is set
    user: UserTarget | None
    size: str
    runner: str
    workers: int
    phase: str
    task_units: int | None  # units of work per task, for --task-length
    tasks: int | None  # number of such tasks
    values: int  # pyperf values
    warmups: int  # pyperf warm-ups, after the checked pass
    loops: int  # 0: calibrate, so that a value takes at least `min_seconds`
    min_seconds: float
    services: tuple[int, ...]  # process ids of loopback servers: their CPU time is the measurement's own
    shared_by: int = 1  # workers of the run's widest cell: the workload has a task for each
    demand: float | None = None  # cores that one worker keeps busy, if known: see other_load.wanted_cores
