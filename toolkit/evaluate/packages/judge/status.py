"""What a distribution may be called, on a build and in interpreters."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """What a distribution is on a build."""

    READY = "ready"              # what it loads does without the GIL, and it has all its C code
    PURE = "pure Python"         # on the build with the GIL, too
    GIL = "turns the GIL on"
    LOST = "loses its C code"
    NO_WHEEL = "no wheel"
    NOT_FOUND = "not found"      # no index in use has such a package, or such a version of it
    CRASH = "crashes"
    HANG = "hangs"
    FAILS = "cannot be imported"
    UNKNOWN = "unknown"          # an extension file that cannot be read and was not loaded: never called ready
    INTERPRETER = "interpreter at fault"   # the standard library alone does the same

    @property
    def blocks(self) -> bool:
        """Whether a program that needs the distribution is held up by it."""
        return self in {Status.GIL, Status.LOST, Status.NO_WHEEL, Status.NOT_FOUND, Status.CRASH, Status.HANG,
                        Status.FAILS}

    @property
    def mends(self) -> bool:
        """Whether another version that is this is a way out; one of which that is not known is none."""
        return self in {Status.READY, Status.PURE}


class InterpreterStatus(StrEnum):
    """What a distribution does in interpreters that have their own GIL."""

    OK = "ok"
    LOST = "loses its C code"
    FAILS = "ImportError"
    CRASH = "crashes"
    HANG = "hangs"
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What it is called, and why: one sentence each."""

    status: Status
    reasons: tuple[str, ...] = ()
