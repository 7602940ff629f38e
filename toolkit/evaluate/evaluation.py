"""The nouns of a whole evaluation: everything found about a project on each build, and its conclusions."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.decision import UNREAD
from gilscope.toolkit.evaluate.project.extensions.own_extensions import NO_EXTENSIONS, OwnExtensions
from gilscope.toolkit.evaluate.sections import UNASKED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gilscope.toolkit.evaluate.decision import Answer, Step, Upkeep
    from gilscope.toolkit.evaluate.facts import Confidence, Fact
    from gilscope.toolkit.evaluate.packages.doctor import BuildReport
    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.project.extensions.own_extensions import OwnBuild
    from gilscope.toolkit.evaluate.request import EvaluationRequest
    from gilscope.toolkit.evaluate.requirements.wheel_for_build import WheelChoice
    from gilscope.toolkit.evaluate.sections import (
        Contention,
        Cost,
        Development,
        Forced,
        Gain,
        InterpretersCrashed,
        InterpreterTrial,
        MachineFacts,
        Missing,
        Races,
        TestRun,
        WorkloadFailure,
    )
    from gilscope.toolkit.model import Build
    from gilscope.toolkit.stats.verdict import Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildEvaluation:
    """Everything found on one build without a GIL."""

    build: Build
    offered: tuple[WheelChoice, ...] | Missing
    readiness: BuildReport | Missing
    tests: TestRun | Missing
    reference_tests: TestRun | Missing   # on its counterpart with a GIL: what fails there, too, is not held against it
    cost: Cost | Missing
    gain: Gain | Missing
    contention: Contention | Missing
    failure: WorkloadFailure | None = None
    forced: Forced | Missing | None = None   # None: nothing turned the GIL on in what was to be measured
    own: OwnBuild | None = None              # None: it has no extension modules of its own
    differs: str = ""                        # how the workload's threads give something else than on its counterpart


@dataclass(frozen=True, slots=True, kw_only=True)
class InterpretersEvaluation:
    """Everything found about subinterpreters on one build with a GIL."""

    build: Build
    readiness: BuildReport | Missing
    measured: Comparison | Missing       # the workload in interpreters against as many threads of this build
    failure: str = ""                    # why it fails in interpreters although it does not in threads
    trial: InterpreterTrial | InterpretersCrashed | Missing = UNASKED
    own: OwnBuild | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessesEvaluation:
    """Everything found about processes on one build with a GIL."""

    build: Build
    measured: Comparison | Missing       # in processes against as many threads of this build


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
    machine: MachineFacts | Missing
    builds: tuple[BuildEvaluation, ...]
    interpreters: tuple[InterpretersEvaluation, ...]
    processes: tuple[ProcessesEvaluation, ...]   # empty: no workload that could be shared out among them
    races: Races | Missing
    seconds: float                    # that it took
    development: Development | None = None   # None: there is nothing of the kind
    extensions: OwnExtensions = NO_EXTENSIONS   # of the project's own, by its files
    upkeep: Upkeep = UNREAD           # what the project already does about builds without a GIL
    kept: tuple[str, ...] = ()        # parts that were measured before, nothing they depend on having changed since
    kept_since: float | None = None   # when the oldest of them was, in seconds since the epoch
    needed: frozenset[str] = frozenset()   # normalized names of what the program needs, where its tests lack any
    sections: Mapping[str, object] = field(default_factory=dict)   # of probes that run something of their own, by code
    facts: tuple[Fact, ...] = ()      # by all probes
    # Views over the facts:
    conclusions: tuple[Conclusion, ...] = ()
    next_steps: tuple[str, ...] = ()
    answer: Answer | None = None      # None: no build without a GIL was looked at
    plan: tuple[Step, ...] = ()
