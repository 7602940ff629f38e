"""The interface of a probe: the facts that it yields, and what it runs for them.

The pipeline measures what several probes and views read, and what a later step builds on: package reports, own
extension modules, workers, test runs, races, and cost and gain.  They are fields of `Evaluation`, and the probes here
only turn them into facts.  `run` is for a section that a single probe needs, such as one of another package: it is a
step of its own after the others, cached under the probe's code and stored in `Evaluation.sections`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.evaluate.facts import FREE_THREADING, Effect, Fact, gap
from gilscope.toolkit.evaluate.sections import UNASKED, Missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gilscope.toolkit.evaluate.evaluation import Evaluation
    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.project.extensions.own_extensions import OwnBuild, OwnExtensions
    from gilscope.toolkit.evaluate.project.where_to_run import RunSite
    from gilscope.toolkit.evaluate.request import EvaluationRequest
    from gilscope.toolkit.evaluate.sections import TestRun
    from gilscope.toolkit.model import Build


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeContext:
    """The means by which a probe runs the project."""

    request: EvaluationRequest
    project: Project
    extensions: OwnExtensions                    # the project's own, by its files
    own: Mapping[str, OwnBuild]                  # what building it gave, by the label of each build
    builds: Sequence[Build]                      # those without a GIL
    run_sites: Mapping[str, RunSite | Missing]       # where the project's code is run, by the label of each build
    tests: Mapping[str, TestRun | Missing]       # what its tests did there
    left: Callable[[], float]                    # seconds of the budget
    say: Callable[[str], None]                   # reports a step to the user


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One section of an evaluation."""

    name: str                                    # for people
    facts: Callable[[Evaluation], Iterator[Fact]]
    # Returns the probe's own section, for `Evaluation.sections`; None if its facts follow from other steps.
    run: Callable[[ProbeContext], Any] | None = None
    section: Any = None   # required with `run`: the type of its result, as which the cache reads it
    code: str = ""   # required with `run`: the first part of its facts' codes, and the key in `Evaluation.sections`
    # Names of the request's fields that the section depends on, besides those of every step: other values of them
    # have it measured again.
    depends: tuple[str, ...] = ()
    # Returns True if an evaluation includes this probe; the section of one that it does not include is not missing.
    asked: Callable[[EvaluationRequest, OwnExtensions], bool] = lambda _request, _extensions: True

    def find(self, evaluation: Evaluation) -> Iterator[Fact]:
        """Yield the facts; if the probe's own section is missing, the one that says so."""
        if not self.asked(evaluation.request, evaluation.extensions):
            return
        section = evaluation.sections.get(self.code, UNASKED) if self.run else None
        match section:
            case Missing() as missing:
                yield Fact(code=f"{self.code}.not-looked-at", target=FREE_THREADING, effect=Effect.NOT_LOOKED_AT,
                           subject=self.name, text=missing.reason, gap=gap(missing))
            case _:
                yield from self.facts(evaluation)
