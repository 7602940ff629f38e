"""The parts of an experiment: its publications, packages and effort levels, and the class that plans and explains it.

An experiment decides; the scheduler of `gilscope run` measures. Everything shown is derived from the stored run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from gilscope.toolkit.experiments.results import Results
from gilscope.toolkit.measure.cells import Plan
from gilscope.toolkit.model import Cell, Skip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from gilscope.toolkit.measure.abilities import Abilities
    from gilscope.toolkit.measure.rounds import RoundMethod
    from gilscope.toolkit.model import Build, Run
    from gilscope.toolkit.report.document import Section
    from gilscope.toolkit.report.figures.figure import Figure


class EffortLevel(StrEnum):
    """Size of an experiment's plan."""

    SMOKE = "smoke"  # everything tiny, once: shows that the experiment works here; its numbers mean nothing
    QUICK = "quick"  # a first impression; all experiments on two builds take about 20 minutes
    FULL = "full"    # the sizes of the publication


@dataclass(frozen=True, slots=True, kw_only=True)
class EffortSettings:
    """The rounds and sizes of one effort level of an experiment."""

    rounds: int
    seconds: float                       # expected for its rounds on two builds; of --quick the budget, more for more
    scales: Mapping[str, float] = field(default_factory=dict)  # sizes by name, read by the plan and the program


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A publication whose measurement an experiment repeats."""

    title: str
    author: str
    year: int        # 0: not known
    headline: str    # its result, in its own numbers
    url: str = ""

    def cited(self) -> str:
        """Return it as a reference: 'David Beazley, 2009, "Inside the Python GIL"'."""
        return ", ".join(each for each in (self.author, str(self.year or ""), f'"{self.title}"') if each)


# Publications that several experiments repeat; each gives its own headline by `dataclasses.replace`.
BEAZLEY = Publication(
    title="Inside the Python GIL", author="David Beazley", year=2009, url="http://www.dabeaz.com/python/GIL.pdf",
    headline="24.6 s sequential, 45.5 s with 2 threads, 38.0 s with one core off (100,000,000 decrements)",
)
SKVORTSOV = Publication(
    title="Python behind the scenes #13: the GIL and its effects on Python multithreading", author="Victor Skvortsov",
    year=2021, url="https://tenthousandmeters.com/blog/"
    "python-behind-the-scenes-13-the-gil-and-its-effects-on-python-multithreading/",
    headline="6.52 to 6.59 s for 1 to 8 threads",
)
BULLDOGJOB = Publication(title="GIL - weź asyncio", author="Bulldogjob", year=0, headline="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A library that some cells need in the measured builds; without it they are skipped with the reason."""

    requirement: str          # "gevent>=25.5"
    module: str               # the module to import
    needs_gil: str = ""       # why free-threaded builds never have it; empty: they can have it


REQUESTS = Package(requirement="requests>=2.32", module="requests")
AIOHTTP = Package(requirement="aiohttp>=3.13", module="aiohttp")
TORNADO = Package(requirement="tornado>=6.5", module="tornado")
GEVENT = Package(
    requirement="gevent>=25.4", module="gevent",
    needs_gil="gevent runs only on builds with a GIL: it has no wheels for free-threaded builds",
)
SLOW_PARSER = "aiohttp parses HTTP in pure Python here: there is no wheel with its C parser"
CONTROL = "threads on a free-threaded build run with its GIL turned on."


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningContext:
    """The builds and effort that an experiment is planned for."""

    builds: tuple[Build, ...]
    abilities: Mapping[str, Abilities]  # by build label
    cores: int                          # number of cores that this process may use
    effort: EffortLevel
    scales: Mapping[str, float]

    def runner_reason(self, build: Build, runner: str) -> str | None:
        """Return why `build` cannot use the runner `runner` (a name of runners.catalog), or None when it can."""
        return self.abilities[build.label].runners[runner]

    def package_reason(self, build: Build, *packages: Package) -> str | None:
        """Return why `build` lacks one of the packages and how to get it, or None when it has them all."""
        for package in packages:
            if package.needs_gil and build.free_threaded:
                return package.needs_gil
            if reason := self.abilities[build.label].modules.get(package.module):
                return (f"{reason}; take a build that {package.module} has a wheel for, or install "
                        f"'{package.requirement}' into the environment of this one")
        return None

    def threads(self, build: Build, *, control: bool = True) -> list[str]:
        """Return the names of the models that run threads in `build`.

        On a free-threaded build "free-threaded", and with `control` also "threads": the same build with its GIL on.
        """
        return [threads_model(build), *(["threads"] if control and build.free_threaded else [])]

    def full(self) -> bool:
        """Return True if the publication's whole grid is measured."""
        return self.effort is EffortLevel.FULL


def threads_model(build: Build) -> str:
    """Return the name of the model that runs threads in `build` with its GIL as the build has it by default."""
    return "free-threaded" if build.free_threaded else "threads"


class Experiment(ABC):
    """One classic measurement; `gilscope.toolkit.experiments.catalog` lists its subclasses."""

    name: ClassVar[str]                     # "switch-interval"
    title: ClassVar[str]                    # the heading of its report
    summary: ClassVar[str]                  # one line for `gilscope experiment list`
    sources: ClassVar[tuple[Publication, ...]]
    claim: ClassVar[str]                    # the publications' claim, in two sentences at most
    program: ClassVar[str]                  # the folder of the program.py that measures a cell, without `round_method`
    levels: ClassVar[Mapping[EffortLevel, EffortSettings]]
    packages: ClassVar[tuple[Package, ...]] = ()
    noise_by: ClassVar[tuple[str, ...]] = ()   # parameters between whose values no cells are compared: each has a noise
    timeout: ClassVar[float] = 60.0         # seconds a measured process may be silent

    @abstractmethod
    def candidates(self, context: PlanningContext, build: Build) -> Iterable[tuple[Cell, str | None]]:
        """Return a build's cells in the order of the tables, each with the reason to skip it, or None."""

    def plan(self, context: PlanningContext) -> Plan:
        """Return every cell, to be measured or skipped with its reason, in the order of the tables."""
        return make_plan(each for build in context.builds for each in self.candidates(context, build))

    def results(self, run: Run, folder: Path | None = None) -> Results:
        """Return a run of this experiment, to be read; `folder` is where it is stored, None if it is not stored."""
        return Results(run, folder, self.noise_by)

    def round_method(self, pythons: Mapping[str, str], effort: EffortLevel) -> RoundMethod | None:  # noqa: ARG002
        """Return how the cells of a round are measured; None: by `program`, in a process for each cell.

        Args:
            pythons: By label of the build.
            effort: Of the run.
        """
        return None

    def further_cells(
        self, results: Results, effort: EffortLevel, rounds: int,  # noqa: ARG002
    ) -> tuple[Cell, ...]:
        """Return the cells of one more round, which may be new ones; () if none is needed.

        Args:
            results: Of the rounds so far.
            effort: Of the run.
            rounds: The planned ones.
        """
        return ()

    def environment(self, cell: Cell) -> dict[str, str]:  # noqa: ARG002 - for experiments that override it
        """Return extra environment variables for the measured process of `cell`."""
        return {}

    @abstractmethod
    def sections(self, results: Results) -> tuple[Section, ...]:
        """Return the tables: the published numbers beside those of this run."""

    def findings(self, results: Results) -> tuple[str, ...]:
        """Return two or three sentences: the result, why it changed, which claim no longer holds.

        Every number in them comes from `results`; a sentence whose cells were not measured is left out.
        """
        return tuple(sentence for build in results.builds for sentence in self.build_findings(results, build))

    def judged(self, results: Results) -> Mapping[Cell, dict[str, Any]]:  # noqa: ARG002 - overridden
        """Return the verdicts on single cells, as fields of their JSON; {} if the experiment judges none."""
        return {}

    def build_findings(self, results: Results, build: Build) -> Iterator[str]:  # noqa: ARG002 - overridden
        """Yield the sentences about one build, in experiments that judge each build by itself."""
        yield from ()

    def figures(self, results: Results) -> tuple[Figure, ...]:  # noqa: ARG002 - overridden
        """Return the figures, the one that shows the point first; those without a measured value are dropped later."""
        return ()

    def cell(self, build: Build, model: str, workers: int, **parameters: str) -> Cell:
        """Return a cell of this experiment."""
        return Cell(workload=self.name, runner=model, workers=workers, build=build.label,
                    parameters=tuple(parameters.items()))


def make_plan(candidates: Iterable[tuple[Cell, str | None]]) -> Plan:
    """Return the plan of cells that come with the reason to skip them, or None.

    The first cell that can be measured gets an A/A arm, which checks the noise.
    """
    known = list(candidates)
    cells = [cell for cell, reason in known if reason is None]
    skips = tuple(Skip(cell=cell, reason=reason) for cell, reason in known if reason is not None)
    return Plan((*cells, *(replace(cell, twin=True) for cell in cells[:1])), skips)
