"""The answer for one package of a survey, as a value and as a line of JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.builds.missing_packages import distribution_of
from gilscope.toolkit.evaluate.packages.evidence import Status
from gilscope.toolkit.records import to_plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


NEEDS_BLOCKING = "needs-blocking"   # the package itself does not block; one that it needs does


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockingPackage:
    """A package that blocks: the requested one, or one of its dependencies."""

    name: str
    version: str
    status: Status
    reasons: tuple[str, ...]
    newest: tuple[str, Status] | None = None   # version and status of the newest, if it was examined


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildAnswer:
    """The answer for one package on one build."""

    build: str
    python: str                    # version of Python
    version: str                   # version of the package; "" if it is not installed
    status: Status                 # of the package itself
    files: int                     # number of its extension modules
    in_the_way: tuple[BlockingPackage, ...]

    @property
    def blocked(self) -> bool:
        """True if the package or any dependency blocks."""
        return bool(self.in_the_way)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageAnswer:
    """The answer for one package on every build."""

    package: str                   # as written in the list
    builds: tuple[BuildAnswer, ...] = ()
    problem: str = ""              # why there is no answer; "" if there is one
    host: str = ""                 # the host of a fleet that answered; "" for this machine
    seconds: float = 0.0           # time to answer
    kept: bool = False             # stored by an earlier survey

    @property
    def blocked(self) -> bool:
        """True if anything blocks on any build."""
        return any(each.blocked for each in self.builds)


def from_doctor(package: str, told: Mapping[str, Any], seconds: float) -> PackageAnswer:
    """Return the answer in the JSON of `gilscope doctor PACKAGE`.

    Raises:
        KeyError, TypeError, ValueError: The JSON has another form.
    """
    return PackageAnswer(package=package, seconds=round(seconds, 1),
                         builds=tuple(_on_build(distribution_of(package), each) for each in told["builds"]))


def _on_build(name: str, told: Mapping[str, Any]) -> BuildAnswer:
    own = next((each for each in told["packages"] if each["name"] == name), None)
    blocking = [BlockingPackage(name=each["name"], version=each["version"], status=Status(each["status"]),
                                reasons=tuple(each["reasons"]), newest=_newest(each["newest"]))
                for each in told["packages"] if each["blocks"]]
    unowned = [BlockingPackage(name=module, version="", status=Status.GIL, reasons=("it belongs to no package",))
               for module in told["unowned_modules_that_need_the_gil"]]
    blocking.sort(key=lambda each: each.name != name)
    return BuildAnswer(
        build=told["build"], python=told["version"], version=own["version"] if own else "",
        status=Status(own["status"]) if own else Status.PURE, files=len(own["extensions"]) if own else 0,
        in_the_way=(*blocking, *unowned))


def _newest(told: Sequence[str]) -> tuple[str, Status] | None:
    if not told:
        return None
    version, status = told
    return version, Status(status)


def to_line(answer: PackageAnswer) -> dict[str, Any]:
    """Return the values for a line of JSON."""
    line = to_plain(answer)
    del line["kept"]
    return line | {"blocked": answer.blocked}


def counts(answers: Sequence[PackageAnswer], build: str) -> dict[str, int]:
    """Return the number of packages on `build` by status, or by NEEDS_BLOCKING."""
    return dict(Counter(outcome(here) for each in answers for here in each.builds if here.build == build))


def outcome(here: BuildAnswer) -> str:
    """Return the result for a package on a build: its status, or NEEDS_BLOCKING."""
    return NEEDS_BLOCKING if here.blocked and not here.status.blocks else here.status.value


def outcome_words(code: str) -> str:
    """Return an `outcome` in a word or two."""
    return "needs one of these" if code == NEEDS_BLOCKING else Status(code).words
