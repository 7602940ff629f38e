"""The nouns of a whole evaluation: everything found about a project on each build, and its conclusions."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

from gilscope.toolkit.evaluate.decision import UNREAD
from gilscope.toolkit.evaluate.project.extensions.own_extensions import NO_EXTENSIONS, OwnExtensions
from gilscope.toolkit.evaluate.project.suite.leaving_out import without
from gilscope.toolkit.evaluate.sections import Missing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gilscope.toolkit.evaluate.decision import Answer, Step, Upkeep
    from gilscope.toolkit.evaluate.facts import Confidence, Fact
    from gilscope.toolkit.evaluate.packages.doctor import BuildReport
    from gilscope.toolkit.evaluate.project.cost_and_gain import CostsAndGains
    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.project.extensions.own_extensions import OwnBuild
    from gilscope.toolkit.evaluate.request import EvaluationRequest
    from gilscope.toolkit.evaluate.requirements.wheel_for_build import WheelChoice
    from gilscope.toolkit.evaluate.sections import (
        BuildSpeed,
        Development,
        InterpreterTrial,
        MachineFacts,
        Races,
        TestRun,
    )
    from gilscope.toolkit.model import Build


class Verdict(StrEnum):
    """The word of a verdict."""

    READY = "READY"
    WITH_COST = "READY-WITH-COST"
    BLOCKED = "BLOCKED"
    NOT_WORTH_IT = "NOT WORTH IT"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """One verdict and all that it rests on."""

    target: str                       # "3.14t", "subinterpreters on 3.14", "processes on 3.14"
    word: Verdict
    reasons: tuple[str, ...]          # at least one
    confidence: Confidence
    unexercised: tuple[str, ...]      # what was not looked at, so not part of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A project, everything found about it, and its conclusions."""

    project: Project
    request: EvaluationRequest
    builds: tuple[Build, ...]         # those without a GIL, for which verdicts are given
    counterparts: Mapping[str, Build]   # of each of them the build with a GIL, by label, where there is one
    with_gil: tuple[Build, ...]       # each of those once: verdicts on subinterpreters and processes are given for them
    named: OwnExtensions = NO_EXTENSIONS   # its own extension modules, as its build files name them
    sections: Mapping[str, Any] = field(default_factory=dict)   # what each section measured, by its code
    seconds: float = 0.0              # that it took
    offered: Mapping[str, tuple[WheelChoice, ...] | Missing] = field(default_factory=dict)   # by the lock, by build
    development: Development | None = None   # None: there is nothing of the kind
    upkeep: Upkeep = UNREAD           # what the project already does about builds without a GIL
    needed: frozenset[str] = frozenset()   # normalized names of what the program needs, where its tests lack any
    kept: tuple[str, ...] = ()        # parts that were measured before, nothing they depend on having changed since
    kept_since: float | None = None   # when the oldest of them was, in seconds since the epoch
    facts: tuple[Fact, ...] = ()      # of all sections
    # Views over the facts:
    conclusions: tuple[Conclusion, ...] = ()
    next_steps: tuple[str, ...] = ()
    answer: Answer | None = None      # None: no build without a GIL was looked at
    plan: tuple[Step, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the labels of the builds without a GIL."""
        return tuple(build.label for build in self.builds)

    @property
    def collected(self) -> Project:
        """Return the project without the files of tests that no build without a GIL can collect."""
        return without(self.project, [self.tests[label] for label in self.labels])

    @property
    def all_builds(self) -> tuple[Build, ...]:
        """Return all builds, those with a GIL last."""
        return (*self.builds, *self.with_gil)

    @property
    def packages(self) -> Mapping[str, BuildReport | Missing]:
        """Return what the packages do on each build: without the GIL, or in subinterpreters of a build with one."""
        return {**self.sections["packages"], **self.sections["interpreters"]}

    @property
    def extensions(self) -> OwnExtensions:
        """Return the project's own extension modules, with their sources if they were read."""
        return cast("OwnExtensions", self.sections.get("sources", self.named))

    @property
    def own(self) -> Mapping[str, OwnBuild]:
        """Return what building the project made, by label; empty if it has no extension modules of its own."""
        return cast("Mapping[str, OwnBuild]", self.sections.get("extensions", {}))

    @property
    def trials(self) -> Mapping[str, InterpreterTrial | Missing]:
        """Return what the project imports in an interpreter, by label of each build with a GIL."""
        return cast("Mapping[str, InterpreterTrial | Missing]", self.sections["trial"])

    @property
    def tests(self) -> Mapping[str, TestRun | Missing]:
        """Return the results of the project's tests on all builds."""
        return cast("Mapping[str, TestRun | Missing]", self.sections["tests"])

    @property
    def races(self) -> Races | Missing:
        """Return what the race checker found."""
        return cast("Races | Missing", self.sections["races"])

    @property
    def rounds(self) -> CostsAndGains:
        """Return what the rounds of measurements gave."""
        return cast("CostsAndGains", self.sections["speed"])

    @property
    def speed(self) -> Mapping[str, BuildSpeed]:
        """Return cost, gain and contention, by label of each build without a GIL."""
        return self.rounds.speed

    @property
    def machine(self) -> MachineFacts | Missing:
        """Return the machine during the rounds."""
        return self.rounds.machine

    @property
    def with_processes(self) -> tuple[Build, ...]:
        """Return the builds with a GIL on which the workload was compared in processes."""
        return self.with_gil if self.rounds.models_compared else ()

    def tests_with_gil(self, label: str) -> TestRun | Missing:
        """Return the tests on the counterpart of a build: what fails there, too, is not held against the build."""
        there = self.counterparts.get(label)
        return self.tests[there.label] if there else Missing(reason=f"no build like {label} with a GIL is at hand")
