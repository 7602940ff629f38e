"""What is known of one package of a survey, as a value and as a line of JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.evaluate.packages.install.installing import name_of
from gilscope.toolkit.evaluate.packages.judge.status import Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class InTheWay:
    """A package that stands in the way: the one asked about, or one that it needs."""

    name: str
    version: str
    status: str
    reasons: tuple[str, ...]
    newest: tuple[str, ...] = ()   # version and status of the newest, where that was asked


@dataclass(frozen=True, slots=True, kw_only=True)
class OnBuild:
    """One package on one build."""

    build: str
    python: str                    # version
    version: str                   # of the package; "" when it is not there
    status: str                    # of the package itself
    files: int                     # extension modules that it has
    in_the_way: tuple[InTheWay, ...]

    @property
    def blocked(self) -> bool:
        """Whether the package or anything that it needs stands in the way."""
        return bool(self.in_the_way)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One package on every build that was asked about."""

    package: str                   # as the list has it
    builds: tuple[OnBuild, ...] = ()
    problem: str = ""              # why nothing is known; "": it was asked
    host: str = ""                 # of a fleet, which answered; "": this machine
    seconds: float = 0.0           # that it took
    kept: bool = False             # it was answered earlier

    @property
    def blocked(self) -> bool:
        """Whether anything stands in the way on any build."""
        return any(each.blocked for each in self.builds)


def from_doctor(package: str, told: Mapping[str, Any], seconds: float) -> Answer:
    """Return the answer that the JSON of `gilscope doctor PACKAGE` is.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    return Answer(package=package, seconds=round(seconds, 1),
                  builds=tuple(_on_build(name_of(package), each) for each in told["builds"]))


def _on_build(name: str, told: Mapping[str, Any]) -> OnBuild:
    own = next((each for each in told["packages"] if each["name"] == name), None)
    blocking = [InTheWay(name=each["name"], version=each["version"], status=each["status"],
                         reasons=tuple(each["reasons"]), newest=tuple(each["newest"]))
                for each in told["packages"] if each["blocks"]]
    unowned = [InTheWay(name=module, version="", status=Status.GIL.value, reasons=("it belongs to no package",))
               for module in told["unowned_modules_that_need_the_gil"]]
    blocking.sort(key=lambda each: each.name != name)
    return OnBuild(
        build=told["build"], python=told["version"], version=own["version"] if own else "",
        status=own["status"] if own else Status.PURE.value, files=len(own["extensions"]) if own else 0,
        in_the_way=(*blocking, *unowned))


def to_line(answer: Answer) -> dict[str, Any]:
    """Return the values that a line of JSON has."""
    line = asdict(answer)
    del line["kept"]
    return line | {"blocked": answer.blocked}


def from_line(line: Mapping[str, Any]) -> Answer:
    """Return the answer that `to_line` was given.

    Raises:
        KeyError, TypeError, ValueError: it was none.
    """
    builds = tuple(OnBuild(**{**each, "in_the_way": tuple(map(_in_the_way, each["in_the_way"]))})
                   for each in line["builds"])
    return Answer(package=str(line["package"]), builds=builds, problem=str(line["problem"]), host=str(line["host"]),
                  seconds=float(line["seconds"]))


def _in_the_way(told: Mapping[str, Any]) -> InTheWay:
    return InTheWay(**{**told, "status": Status(told["status"]).value, "reasons": tuple(told["reasons"]),
                       "newest": tuple(told["newest"])})


def counts(answers: Sequence[Answer], build: str) -> dict[str, int]:
    """Return how many packages of those that were asked on `build` are what: by status, or by what they need."""
    return dict(Counter(word_of(here) for each in answers for here in each.builds if here.build == build))


def word_of(here: OnBuild) -> str:
    """Return what a package comes to on a build, in a word or two."""
    if here.blocked and not Status(here.status).blocks:
        return "needs one of these"
    return here.status
