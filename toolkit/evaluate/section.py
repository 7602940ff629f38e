"""The interface of a section of an evaluation: what measures it, what changes it, and the facts that follow.

The pipeline gives each section its turn, its part of the budget, the result of an earlier call if nothing that the
section depends on has changed, and an announcement.  What was measured lies in `Evaluation.sections` under the
section's code, where later sections and all facts read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.evaluate.facts import FREE_THREADING, Codes
from gilscope.toolkit.evaluate.sections import Missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from gilscope.toolkit.evaluate.evaluation import Evaluation
    from gilscope.toolkit.evaluate.facts import Fact
    from gilscope.toolkit.evaluate.project_requirements import ProjectRequirements
    from gilscope.toolkit.evaluate.run_sites import PreparedSites
    from gilscope.toolkit.model import Build

INSTALLED = ("sdists", "extras", "offline")   # options that decide what is installed
NO_CODES = Codes({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """The means by which a section is measured."""

    requirements: ProjectRequirements
    at_hand: Sequence[Build]                     # all builds of this machine
    sites: Callable[[], PreparedSites]           # where the project's code runs; prepared when first asked for
    left: Callable[[], float]                    # seconds of the budget
    say: Callable[[str], None]                   # reports a step to the user
    # Contexts: this machine is ours, to wait for which takes nothing from the budget; time that does not count.
    hold_machine: Callable[[], AbstractContextManager[None]]
    uncounted: Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section of an evaluation."""

    name: str                                    # for people
    code: str = ""                               # required with `measure`: the key of its result
    facts: Callable[[Evaluation], Iterator[Fact]] | None = None
    codes: Codes = NO_CODES                      # of the facts, and what each says
    # Returns the section's result, from the results of those before it; None if its facts follow from these alone.
    measure: Callable[[Evaluation, Means], Any] | None = None
    result: Any = None                           # required with `measure`: its type, as which the cache reads it
    options: tuple[str, ...] = ()                # fields of the request: other values have it measured again
    depends: Callable[[Evaluation], str] = lambda _: ""   # likewise, of what was found before
    enough: Callable[[Evaluation, Any], bool] = lambda _found, _result: True   # False: an earlier result will not do
    missing: Callable[[Evaluation, Missing], Any] = lambda _found, why: why   # the result where it was not measured
    runs_project: bool = False                   # in the sites, so that its time begins when these are prepared
    asked: Callable[[Evaluation], bool] = lambda _: True   # False: the evaluation leaves it out, and it is not missing

    def find(self, found: Evaluation) -> Iterator[Fact]:
        """Yield the facts; if the section is missing, the one that says so."""
        if self.facts is None or not self.asked(found) or (self.measure and self.code not in found.sections):
            return
        match found.sections.get(self.code):
            case Missing() as missing:
                yield self.codes.fact(f"{self.code}.not-looked-at", FREE_THREADING, missing.reason, subject=self.name,
                                      missing=missing)
            case _:
                yield from self.facts(found)
