"""Facts: what a probe found, one at a time, each with a stable code and an effect.

A fact's text is written once, for people.  All decisions read the code, the effect and the other fields: the verdict,
the plan, the next steps, the screen and the JSON are views over one list of facts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gilscope.toolkit.evaluate.decision import Gained, Paid, State
    from gilscope.toolkit.evaluate.sections import Missing, Place, Remedy
    from gilscope.toolkit.stats.verdict import Comparison

FREE_THREADING = "free-threading"   # the target of a fact about every build without a GIL


class Effect(StrEnum):
    """The weight of a fact in the verdict on its target, the heaviest first."""

    BLOCKS = "blocks"                  # the project cannot run there, or would do harm
    UNKNOWN = "unknown"                # whether the project can run there is not known
    NO_GAIN = "no-gain"                # running there brings nothing worth it
    SHARES_STATE = "shares-state"      # each worker would have a copy of state that threads share, or may have one
    UNPRICED = "unpriced"              # the cost is not known
    GAIN_UNKNOWN = "gain-unknown"      # whether another model than threads gains anything is not known
    COSTS = "costs"
    MAY_COST = "may-cost"              # the cost may be more than little; decides only if nothing else costs
    GAINS = "gains"
    SUPPORTS = "supports"              # evidence that the project runs there
    CAUTION = "caution"                # a warning that does not block
    NOT_LOOKED_AT = "not-looked-at"    # no part of the verdict, which lowers its confidence
    NOTE = "note"


class PlanStep(StrEnum):
    """A step of the migration: its name for people; the key stays the same when the name is reworded."""

    DEPENDENCIES = "dependencies are ready"
    EXTENSIONS = "own extension modules are declared"
    TESTS = "tests pass on the free-threaded build"
    IN_THREADS = "tests pass with several threads at once"
    RACES = "no race, or each is judged"
    COST_AND_GAIN = "cost and gain are known"
    CI = "CI runs the tests on the free-threaded build"
    CLASSIFIER = "the metadata says so"

    @property
    def key(self) -> str:
        """Return the key in plan files, in JSON and for --explain: "cost-and-gain"."""
        return self.name.lower().replace("_", "-")


class Topic(StrEnum):
    """A heading of the screen, in their order there; headings of other packages' sections follow."""

    CULPRITS = "What turns the GIL on"
    EXTENSIONS = "Its own extension modules"
    IN_THE_LOCK = "In the lock (metadata only, not a verdict)"
    GAIN = "Gain"
    FORCED = "With the GIL forced off (PYTHON_GIL=0)"
    WAITS = "Where threads wait for each other"
    MEMORY = "Memory of one more subinterpreter"
    LEFT_OUT = "Tests left out"
    RACES = "Races"
    DEVELOPMENT = "No part of the verdict"
    MACHINE = "Machine"
    HAMMER = "C functions called from several threads (--hammer)"


Confidence = Literal["high", "medium", "low"]


class TableCell(NamedTuple):
    """A value in the table of targets, in the row of the fact's target."""

    column: str                     # its title; a title of its own is one more column
    value: str
    notes: tuple[str, ...] = ()     # footnotes


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that a probe found about a target."""

    code: str                       # "package.turns-gil-on"; stable: scripts and JSON rely on it
    target: str                     # "3.14t", "subinterpreters on 3.14", FREE_THREADING
    effect: Effect
    subject: str = ""               # "lxml 6.1.3", "gain"
    text: str                       # written once, read by people alone
    evidence: str = ""              # how it is known, for where there is room
    places: tuple[Place, ...] = ()  # of the project, to be looked at
    step: PlanStep | None = None    # of the migration plan
    state: State | None = None      # of that step; None: it follows from the effect
    action: str = ""                # what to do next
    owner: str | None = None        # the package whose owners must act; None: the project itself
    mend: str = ""                  # what is wrong with the project's own, in one clause: "pkg._c does not declare ..."
    package: str = ""               # to be replaced, waited for, or taken in another version: "lxml 7.0"
    explain: str = ""               # the name under which --explain shows more
    missing: Missing | None = None  # what could not be found out about the subject, and why
    part: str = ""                  # of the evaluation, which was therefore not looked at
    remedy: Remedy | None = None    # the kind of call that would find out more, where `missing` names none
    for_all: bool = False           # the action is for all builds at once
    consequence: bool = False       # caused by another fact; fixing that one fixes it
    confidence: Confidence | None = None   # the most that a verdict with this fact may have; None: by the effect
    heading: str = ""               # of the screen, under which the text is shown
    value: Comparison | None = None   # the number behind the text
    gain: Gained | Missing | None = None   # the best that is known of it
    cost: Paid | Missing | None = None     # likewise
    unread: str = ""                # why more of the project's own code may need a change: "races were not looked for"
    cells: tuple[TableCell, ...] = ()    # of the table

    @property
    def full(self) -> str:
        """Return the text with its evidence."""
        return f"{self.text}: {self.evidence}" if self.evidence else self.text

    @property
    def provisional(self) -> str:
        """Return the reason why another call may find otherwise, or ""."""
        return self.missing.reason if self.missing and self.missing.cause.provisional else ""

    @property
    def answered_by(self) -> Remedy | None:
        """Return the kind of call that would find out more."""
        return (self.missing.cause.remedy if self.missing else None) or self.remedy

    @property
    def not_looked_at(self) -> tuple[str, str] | None:
        """Return the part of the evaluation that was not looked at, and why; None for any other fact."""
        if self.missing and self.part:
            return self.part, self.missing.reason
        return (self.subject, self.text) if self.effect is Effect.NOT_LOOKED_AT else None


class Kind(NamedTuple):
    """The meaning of a code; a fact whose weight was measured may have another effect."""

    effect: Effect
    step: PlanStep | None = None
    state: State | None = None
    heading: str = ""


@dataclass(frozen=True, slots=True)
class Codes:
    """The codes of one section's facts, with the meaning of each."""

    kinds: Mapping[str, Kind]
    subject: str = ""              # of facts that name no other

    def fact(self, code: str, target: str, text: str, **others: Any) -> Fact:
        """Return a fact; `others` are further fields of it, which come before those of its kind."""
        return Fact(**{"code": code, "target": target, "text": text, "subject": self.subject,
                       **self.kinds[code]._asdict(), **others})


def subinterpreters_on(label: str) -> str:
    """Return the target of facts about subinterpreters on a build."""
    return f"subinterpreters on {label}"


def processes_on(label: str) -> str:
    """Return the target of facts about processes on a build."""
    return f"processes on {label}"


def about(facts: tuple[Fact, ...], target: str, *, free_threaded: bool = True) -> tuple[Fact, ...]:
    """Return the facts about a target; those about every build without a GIL count for one that is `free_threaded`."""
    return tuple(each for each in facts
                 if each.target == target or (free_threaded and each.target == FREE_THREADING))
