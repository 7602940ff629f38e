"""The nouns of the answer: whether to move, for how much, at what price, who must act, and the steps on the way.

Plain values: the screen, Markdown, JSON and pages read the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from gilscope.toolkit.evaluate.sections import Measure, Memory, Missing, Place


class Decision(StrEnum):
    """The answer to the question whether to move to a build without a GIL."""

    MOVE = "move"
    CAN = "can-move"              # nothing is in the way; whether it gains was not shown
    NOT_YET = "not-yet"           # something is in the way: who has to act stands beside it
    NO = "no"
    UNKNOWN = "unknown"

    @property
    def words(self) -> str:
        """The answer as people read it."""
        return _DECISION_WORDS[self]


_DECISION_WORDS = {Decision.MOVE: "Move", Decision.CAN: "You can move", Decision.NOT_YET: "Not yet", Decision.NO: "No",
                   Decision.UNKNOWN: "Not known yet"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """One thing in the way, and who has to do what about it."""

    what: str                     # "lxml 6.1 turns the GIL on"
    who: str | None               # the package whose owners must act; None: the project itself
    action: str                   # "take lxml 7.0, which mends it"; "" if it stands among the next steps
    package: str = ""             # to be replaced, waited for, or taken in another version: "lxml 7.0"
    mend: str = ""                # what is wrong with the project's own, in one clause


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The files and places of the project that are known to need a change."""

    files: tuple[str, ...]
    places: tuple[Place, ...]
    packages: tuple[str, ...]     # to be taken in another version, replaced or waited for
    unknown: str                  # why there may be more; ""
    beside: tuple[Place, ...] = ()   # of tests and measuring scripts, which are not shipped
    read: bool = True             # any source: by the race checker, or that of an extension module


How = Literal["measured", "forced off", "at most"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gained:
    """The best known speed-up of the workload without the GIL, and its number of threads."""

    how: How
    ratio: float
    lo: float | None              # None: a bound has no interval
    hi: float | None
    threads: int                  # 0: those that the program starts
    against: str                  # the build with the GIL
    today: int | None             # threads of the workload at the same time, with the GIL
    busiest: float | None         # share of their CPU time that the busiest takes, 0..1


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    """CPU time and memory without the GIL, against the build with one."""

    times: float                  # the CPU time of the build with the GIL
    lo: float
    hi: float
    against: str
    by: Measure
    busy: bool                    # the machine was: the interval is twice as wide
    memory: Memory | None
    forced: bool = False          # with the GIL forced off, where something had turned it on
    of: str = ""                  # which of the project's own compiled code was part of it; "": none, or not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Should we move?"""

    decision: Decision
    target: str                   # the build that it is about
    because: str
    gain: Gained | Missing
    cost: Paid | Missing
    blockers: tuple[Blocker, ...]
    effort: Effort
    instead: tuple[str, ...]      # what brings something today, with the GIL: "processes on 3.14: 1.96x [1.76, 2.12]"
    more: str                     # the command that shows more
    failing: str = ""             # which tests fail on the build, and whether they do with the GIL; "": none


State = Literal["done", "open", "not known", "not needed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a migration."""

    key: str                      # "cost-and-gain"; the same in each evaluation
    name: str                     # for people
    state: State
    says: str                     # what was seen, or what is to be done


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """The parts of a project's files that deal with builds without a GIL: CI, classifiers, images without bytecode."""

    ci: str            # the file that has its tests run on one; "": none was found
    classifier: str    # "Programming Language :: Python :: Free Threading :: 2 - Beta"; ""
    published: bool    # it has metadata that classifiers belong to
    no_bytecode: tuple[str, ...] = ()   # "file:line" where what is deployed is told to write no .pyc


UNREAD = Upkeep(ci="", classifier="", published=False)
