"""What an experiment is: a plan of cells, a program that measures one, and what its values become.

An experiment decides; measuring is the main job's scheduler, and everything shown is derived from the stored run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from gilscope.toolkit.measure.plan.cells import Plan
from gilscope.toolkit.model import Cell, Skip

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.measure.abilities.probe import Abilities
    from gilscope.toolkit.model import Build
    from gilscope.toolkit.report.document import Section
    from gilscope.toolkit.report.figures.figure import Figure


class Effort(StrEnum):
    """How much of an experiment is done."""

    SMOKE = "smoke"  # everything tiny, once: does it work here?  The numbers mean nothing
    QUICK = "quick"  # a first look; all experiments on two builds in ten minutes
    FULL = "full"    # the sizes of the source


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What an effort means for one experiment."""

    rounds: int
    seconds: float                       # about how long its rounds take on two builds; --quick is kept to it
    scales: Mapping[str, float] = field(default_factory=dict)  # sizes, as its plan and its program understand them


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What an experiment repeats."""

    title: str
    author: str
    year: int        # 0: not known
    headline: str    # what it measured, in its own numbers
    url: str = ""

    def cited(self) -> str:
        """Return it as a reference: 'David Beazley, 2009, "Inside the Python GIL"'."""
        return ", ".join(each for each in (self.author, str(self.year or ""), f'"{self.title}"') if each)


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A library that some cells need in the measured builds; without it they are skipped with the reason."""

    requirement: str  # "gevent>=25.5"
    module: str       # what is imported


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What an experiment is planned for."""

    builds: tuple[Build, ...]
    abilities: Mapping[str, Abilities]  # by build label
    cores: int                          # that this process may use
    effort: Effort
    scales: Mapping[str, float]

    def runner_reason(self, build: Build, runner: str) -> str | None:
        """Return why `build` cannot use the runner `runner` (a name of runners.catalog), or None when it can."""
        return self.abilities[build.label].runners[runner]

    def module_reason(self, build: Build, module: str) -> str | None:
        """Return why `build` cannot import `module`, which the experiment names in its packages; None when it can."""
        return self.abilities[build.label].modules.get(module)

    def threads(self, build: Build, *, control: bool = True) -> list[str]:
        """Return the names under which threads run in `build`.

        On a free-threaded build "free-threaded", and with `control` also "threads": the same build with its GIL on.
        """
        if not build.free_threaded:
            return ["threads"]
        return ["free-threaded", *(["threads"] if control else [])]

    def full(self) -> bool:
        """Return whether the source's whole grid is asked for."""
        return self.effort is Effort.FULL


class Experiment(ABC):
    """One classic measurement; its classes are listed in `gilscope.toolkit.experiments.catalog`."""

    name: ClassVar[str]                     # "switch-interval"
    title: ClassVar[str]                    # the heading of its report
    summary: ClassVar[str]                  # one line for `gilscope experiment list`
    sources: ClassVar[tuple[Source, ...]]
    claim: ClassVar[str]                    # what the source said then, two sentences at most
    program: ClassVar[str]                  # the experiment's folder whose program.py measures a cell
    levels: ClassVar[Mapping[Effort, Level]]
    packages: ClassVar[tuple[Package, ...]] = ()
    timeout: ClassVar[float] = 60.0         # seconds a measured process may be silent

    @abstractmethod
    def candidates(self, setting: Setting, build: Build) -> Iterable[tuple[Cell, str | None]]:
        """Return the cells of a build in the order of the tables, each with why it cannot be measured, or None."""

    def plan(self, setting: Setting) -> Plan:
        """Return every cell, each to be measured or skipped with its reason, in the order of the tables."""
        return sorted_out(each for build in setting.builds for each in self.candidates(setting, build))

    def environment(self, cell: Cell) -> dict[str, str]:  # noqa: ARG002 - for those that need it
        """Return variables that the measured process of `cell` gets beside the usual ones."""
        return {}

    @abstractmethod
    def sections(self, results: Results) -> tuple[Section, ...]:
        """Return the tables, what the source measured beside what is measured now."""

    @abstractmethod
    def findings(self, results: Results) -> tuple[str, ...]:
        """Return two or three sentences: what is measured now, why it changed, which claim no longer holds.

        Every number in them comes from `results`; what was not measured is not said.
        """

    @abstractmethod
    def figures(self, results: Results) -> tuple[Figure, ...]:
        """Return its pictures; the first is the one that shows the point."""

    def cell(self, build: Build, model: str, workers: int, **parameters: str) -> Cell:
        """Return a cell of this experiment."""
        return Cell(workload=self.name, runner=model, workers=workers, build=build.label,
                    parameters=tuple(parameters.items()))


def sorted_out(candidates: Iterable[tuple[Cell, str | None]]) -> Plan:
    """Return the plan of cells that come with the reason why they cannot be measured, or None.

    The first cell that can be measured gets an A/A twin: what it differs by from itself is the noise floor.
    """
    known = list(candidates)
    cells = [cell for cell, reason in known if reason is None]
    skips = tuple(Skip(cell=cell, reason=reason) for cell, reason in known if reason is not None)
    return Plan((*cells, *(replace(cell, twin=True) for cell in cells[:1])), skips)
