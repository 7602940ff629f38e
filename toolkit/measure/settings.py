"""The effort of a run: settings and presets, and the whole request as run.json stores it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.measure.cells import BASELINE, Selection
from gilscope.toolkit.records import from_plain, to_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gilscope.toolkit.model import Cell, Observation

LONG_SECONDS = 3.0   # for all values of one process, if that allows the fewest values
FEWEST_VALUES = 2
TIMEOUT_SECONDS = 60.0   # without --timeout
# One model of each kind: the interpreter pool is a variant of subinterpreters, and processes have more start methods.
QUICK_MODELS = ("serial", "threads", "free-threaded", "subinterpreters", "processes-forkserver", "asyncio")
QUICK_KINDS = ("cpu", "native", "io", "mixed")
KINDS = {"cpu": 1.0, "io": 0.0}  # demand by --kind, in place of the measured one
Units = dict[tuple[str, float], tuple[int, int]]  # (workload, task seconds) -> (units per task, tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The effort of a run: rounds, values, limits."""

    rounds: int
    values: int  # pyperf values per process; fewer if they are long, see `values_of`
    warmups: int  # pyperf warm-ups per process, after one checked pass
    min_seconds: float  # shortest value; shorter passes are looped
    timeout: float  # seconds a process may make no progress
    budget: float | None = None  # seconds for the whole run
    resolution: float | None = None  # requested half-width of each ratio's confidence interval, as a share
    where_open: bool = False  # cells with a clear verdict get fewer rounds
    retakes: int = 2  # attempts to measure a disturbed pass again, and a disturbed workload of a round
    seed: int = 0

    def values_of(self, seconds: float) -> int:
        """Return the number of values of `seconds` each per process: fewer if they are long."""
        if self.values * seconds <= LONG_SECONDS:
            return self.values
        return max(min(FEWEST_VALUES, self.values), int(LONG_SECONDS / seconds))


@dataclass(frozen=True, slots=True)
class Preset:
    """The effort of a run without further options."""

    size: str
    rounds: int      # at most: with a budget or a resolution, cells with a clear verdict stop earlier
    values: int
    warmups: int
    min_seconds: float
    budget: float | None


PRESETS = {
    "quick": Preset("small", rounds=12, values=6, warmups=0, min_seconds=0.02, budget=180.0),
    "default": Preset("small", rounds=12, values=6, warmups=1, min_seconds=0.05, budget=None),
    "rigorous": Preset("medium", rounds=30, values=6, warmups=1, min_seconds=0.1, budget=None),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreDemands:
    """The core demand of each cell's baseline: measured on the serial baseline, unless the user states it."""

    observations: Callable[[Cell], Sequence[Observation]]  # of a cell so far
    tried: Mapping[str, float] = field(default_factory=dict)  # by build: the demand in the trial before the first round
    kind: str | None = None  # of the user's function, if the user stated it

    def of(self, cell: Cell) -> float | None:
        """Return the cores' worth that one worker of `cell` keeps busy, None while it is unknown.

        The trial's demand, from a single cold pass, counts only until the baseline has been measured.
        """
        if self.kind is not None:
            return KINDS[self.kind]
        baseline = replace(cell, runner=BASELINE, workers=1, twin=False)
        demands = [each.demand for each in self.observations(baseline) if each.demand is not None]
        return median(demands) if demands else self.tried.get(cell.build)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """The request for a run, without its builds and cells, so that a resumed run continues as it began."""

    selection: Selection
    settings: Settings
    units: Units
    paths: tuple[str, ...]  # folders of the user's modules
    packages: tuple[str, ...]  # requirements the user named
    code: str = ""  # hash of the user's modules, see `user_modules.code_sum`; "": unknown
    shared_by: int = 1  # workers of the widest cell: the workloads have a task for each of them
    sessions: int = 1  # that the run is to have
    every: float | None = None  # seconds from the start of one session to that of the next; None: there is one session

    def to_options(self) -> dict[str, Any]:
        """Return the form that JSON holds."""
        return to_plain(self) | {"units": [[*key, *value] for key, value in self.units.items()]}

    @classmethod
    def from_options(cls, options: dict[str, Any]) -> RunRequest:
        """Return the request `to_options` was made from; other options are left alone.

        Raises:
            BadFileError: A field is missing or damaged.
        """
        own = {field.name: options[field.name] for field in fields(cls) if field.name in options}
        try:
            units = {(name, seconds): (units, tasks) for name, seconds, units, tasks in own["units"]}
            return replace(from_plain(cls, own | {"units": {}}, "options"), units=units)
        except (KeyError, TypeError, ValueError) as error:
            raise BadFileError(f"run.json does not say how the run was made, so it cannot go on ({error})") from error
