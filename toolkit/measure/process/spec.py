"""What the scheduler tells a measured process, and the files through which it answers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from gilscope.toolkit.processes.sealed_answers import new_secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What every measured process is told, whatever it measures."""

    entry: ClassVar[str]  # the module whose functions such a process can be started with

    name: str  # the pyperf benchmark's name
    progress_timeout: float  # seconds without progress after which stacks are dumped and the process is killed
    folder: str  # where the answer goes
    secret: str = field(default_factory=new_secret, compare=False)  # in front of what it answers: see processes.sealed

    def to_json(self) -> str:
        """Return the form that travels on the command line."""
        return json.dumps(asdict(self))

    @property
    def result_path(self) -> Path:
        """The pyperf file with the values; complete or not there."""
        return Path(self.folder, "values.json")

    @property
    def answer_path(self) -> Path:
        """JSON with everything pyperf does not keep, or with the reason there is nothing; complete or not there."""
        return Path(self.folder, "answer.json")

    @property
    def progress_path(self) -> Path:
        """Grows by one byte per finished pass over the payloads."""
        return Path(self.folder, "progress")

    @property
    def output_path(self) -> Path:
        """What the measured process and its workers print."""
        return Path(self.folder, "output")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserTarget:
    """The user's own function as a workload; every name is "package.module:attribute"."""

    function: str
    payloads: str | None = None  # a callable or a sequence
    payload: str | None = None  # or one Python literal ...
    tasks: int = 0  # ... this many times
    check: str | None = None  # called with the list of results; raises to refuse them
    async_function: str | None = None  # the form that asyncio awaits
    kind: str | None = None  # "cpu" or "io": what a worker needs of a core; None: it is measured

    def modules(self) -> set[str]:
        """Return the modules that are named."""
        named = (self.function, self.payloads, self.check, self.async_function)
        return {name.partition(":")[0] for name in named if name}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec(Spec):
    """One measured process of the main job: one cell, one round."""

    entry: ClassVar[str] = "gilscope.toolkit.measure.cell.child"

    workload: str  # a name in gilscope.workloads.catalog; the target's name when `user` is set
    user: UserTarget | None
    size: str
    runner: str
    workers: int
    phase: str
    task_units: int | None  # units of work per task, for --task-length
    tasks: int | None  # number of such tasks
    values: int  # pyperf values
    warmups: int  # pyperf warm-ups, after the one checked pass
    loops: int  # 0: find the number that makes a value at least `min_seconds` long
    min_seconds: float
    services: tuple[int, ...]  # process ids of loopback servers: their CPU time is the measurement's own
    shared_by: int = 1  # workers of the run's widest cell: the workload has a task for each
    demand: float | None = None  # cores that one worker keeps busy, as far as it is known: see noise.wanted_cores

    @classmethod
    def from_json(cls, text: str) -> ChildSpec:
        """Return the spec `to_json` was made from."""
        fields: dict[str, Any] = json.loads(text)
        user = fields.pop("user")
        services = tuple(fields.pop("services"))
        return cls(user=None if user is None else UserTarget(**user), services=services, **fields)
