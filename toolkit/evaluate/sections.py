"""The nouns of an evaluation's sections: the machine, tests, cost, gain, contention, races, workers.

A section that could not be had is a `Missing` in its place, with the reason.  Seconds unless the name says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from gilscope.toolkit.units import few

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gilscope.toolkit.stats.words import Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Why a section is not there."""

    reason: str
    failed: bool = False   # it was tried and could not be done, for want of an index or a disk, say
    passing: bool = field(default=False, compare=False)   # another call may have it: time was short


NO_TIME = Missing(reason="no time was left in the budget", passing=True)
UNASKED = Missing(reason="not asked for")
NO_WORKLOAD = "no workload was measured"   # how a reason begins, where there is no cost; what the tests said comes next
TOO_SHORT = "most of it to start"   # in such a reason: a workload tells what the tests cannot
TOO_LONG = "do not fit into"        # likewise
NOT_THE_SAME = "it is not the same work, so what it gains says nothing"
WORKLOAD_FAILED = "the workload failed on"   # how a reason begins; the build comes next
WORKLOAD_FAILS = "the workload fails, and does not with the GIL: "   # likewise; how comes next


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """What this machine can tell about parallel work."""

    cores: int                   # that may be used
    effective: float | None      # how many spinning processes' worth of work all cores do at once; None: not measured
    run_queue: float | None      # share of a spinning process's life that it waited for a core, 0..1
    governor: str | None
    libc: str                    # "glibc 2.36"
    doubts: tuple[str, ...]      # why no word on speed can be said; empty: it can
    inherited: str | None = None   # what is unusual in how gilscope was started, and the measured processes with it

    @property
    def may_get_quiet(self) -> bool:
        """Whether waiting may remove the doubts: one core stays one."""
        return bool(self.doubts) and self.cores > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A line of the project's."""

    file: str                    # relative to the project's root where it is below it
    line: int
    what: str                    # what happens there: "list.append", an extension module; "" when it is not known
    seconds: float = 0.0         # that threads waited there, all of them together
    way: tuple[str, ...] = ()    # "file:line" of what is imported from there on until it happens, the outermost first


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A file of tests that could not be collected, so that the others were run without it."""

    file: str                    # relative to the project's root
    why: str                     # the error


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRun:
    """The project's own tests on one build."""

    __test__ = False             # pytest: not a test

    build: str
    command: tuple[str, ...]
    passed: int | None           # None: the command does not tell
    failed: int | None
    errors: int | None
    skipped: int | None
    seconds: float
    ending: str                  # "0", "1", "crash: SIGSEGV", "hang: no output for 60 s", "unfinished: ..."
    gil_end: bool | None         # was the GIL on at the end of the last Python of it; None: not known
    culprits: tuple[str, ...]    # modules that turned it on
    output: str                  # its last lines
    lacking: tuple[str, ...] = ()     # packages that they may need and that could not be installed
    imports: tuple[Place, ...] = ()   # the project's line behind each extension module that was loaded: `what`
    left_out: tuple[LeftOut, ...] = ()
    by_file: Mapping[str, float] = field(default_factory=dict)   # seconds that the tests of each file took, where known
    failing: tuple[str, ...] = ()   # "tests/test_a.py::test_b" of those that fail, with errors, where known

    @property
    def broken(self) -> int:
        """How many tests are known to fail, or to end in an error."""
        return (self.failed or 0) + (self.errors or 0)

    @property
    def ran(self) -> bool:
        """Whether any test is known to have run to its end; a runner that counts none says it by its success."""
        return self.ending == "0" if self.passed is None else bool(self.passed or self.failed)


Measure = Literal["workload", "script", "tests"]   # one thread of a function, a script as it is, the project's tests


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Resident bytes of a process on two builds."""

    here: float
    there: float                 # on the build with the GIL
    process: str                 # which: "the workload with 2 threads", "the tests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one thread takes on a build against another, in interleaved rounds, or what was measured in its place."""

    against: str                 # build
    cpu: Comparison              # ratio < 1: takes more CPU time here
    rss: float | None            # resident bytes here / there
    more_bytes: float | None = None   # resident here than there
    import_seconds: float | None  # of the workload's module, here
    import_there: float | None = None   # likewise on the other
    by: Measure = "workload"     # the start of the tests counts with them, all threads of a script with it
    sample: str = ""             # which of the tests were run for it: "7 of 40 files"; "": all of them
    memory: Memory | None = None   # with as many threads as were measured; None: not known
    compiled: tuple[str, ...] | None = None   # extension modules of the project's own that were loaded; None: not known
    compiled_there: tuple[str, ...] | None = None   # likewise on the other


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A number that is known to lie between two others."""

    value: float
    lo: float
    hi: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """How many times faster the workload could be, or is, without the GIL."""

    against: str                                  # the build with the GIL
    wait_share: float | None                      # of thread time there, spent waiting for the GIL, 0..1
    ceiling: float | None                         # 1 / (1 - that share), at most the effective cores
    predicted: Interval | Missing
    measured: Mapping[int, Comparison] | Missing  # by number of threads; 0: the program chooses
    queued: float | None = None                   # share of their demand that threads waited for a core meanwhile, 0..1
    threads: int | None = None                    # of the workload, at the same time
    busiest: float | None = None                  # share of their CPU time that the busiest one took, 0..1


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced:
    """What one thread takes and threads gain with the GIL forced off, where something had turned it on.

    It tells what mending that could be worth, and is no way to run: what did not say that it can do without the GIL may
    crash or give wrong results.
    """

    against: str                                  # the build with the GIL
    by: Measure
    cost: Cost | Missing
    measured: Mapping[int, Comparison] | Missing  # as of `Gain`
    failure: str                                  # how it ends there, and does not with the GIL; "": it runs
    machine: MachineFacts | Missing               # in the same rounds
    variable: str = "PYTHON_GIL=0"                # that forces it off


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Threads of a C library's own."""

    library: str                 # "OpenBLAS"
    threads: int                 # that it uses at most, for each call


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """How much threads of the workload are in each other's way without the GIL."""

    inflation: float | None      # CPU time per unit of work with several threads / with one
    parked: float | None         # share of thread time spent parked, 0..1; None: threads waited for cores as well
    places: tuple[Place, ...]    # the worst first
    threads: int | None = None   # of the workload, at the same time
    pools: tuple[Pool, ...] = ()   # what C libraries start beside them
    cores: int | None = None     # that all of these have


@dataclass(frozen=True, slots=True, kw_only=True)
class Sections:
    """The sections of one build."""

    cost: Cost | Missing
    gain: Gain | Missing
    contention: Contention | Missing
    failure: str = ""   # what keeps the workload from running on this build as it should, and does not on the other
    forced: Forced | Missing | None = None   # None: nothing turned the GIL on
    otherwise: str = ""   # how threads give something else than on the other build: a sentence

    @classmethod
    def missing(cls, reason: Missing) -> Sections:
        """Return sections that could not be had."""
        return cls(cost=reason, gain=reason, contention=reason)


MOST_PLACES = 4   # of a race that are named
Raced = Literal["workload", "script", "tests", "tests at once"]   # the last: each test in several threads


def in_order(places: Iterable[str]) -> tuple[str, ...]:
    """Return places, "file:line", each once, by file and line: 9 before 10."""
    def by_line(place: str) -> tuple[str, int]:
        file, _, line = place.rpartition(":")
        return file, int(line)

    return tuple(sorted(set(places), key=by_line))


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceFact:
    """A data race that the project's own code showed."""

    kind: str                    # "lost update"
    variable: str
    file: str
    line: int
    confirmed: bool              # a re-run that paused at both places lost an update
    violation: bool = False      # each access is locked, and the whole is not: it goes wrong with the GIL, too
    places: tuple[str, ...] = ()   # "file:line" of all sides; empty: that of file and line
    repair: str = ""             # in the race checker's words

    @property
    def where(self) -> str:
        """Its places in words."""
        places = self.places or (f"{self.file}:{self.line}",)
        return few(places, MOST_PLACES)

    @property
    def what(self) -> str:
        """What it is called, of what, and where."""
        name = "atomicity violation" if self.violation else "data race"
        return f"{name} on {self.variable} ({self.kind}, {self.where})"


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceLook:
    """One run of the project's code under the race checker."""

    of: Raced
    build: str
    threads: bool | None         # other threads than the first ran; None: not known
    together: bool | None        # code of the project's own, its tests apart, ran in two of them
    workers: int = 0             # threads that called the workload, or ran each test; 0: its own
    calls: int = 0               # of the workload, by all of them
    # What it gives in threads, and what in the main thread; empty: the same, or what cannot be compared.
    otherwise: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()   # tests that fail in several threads
    alone: tuple[str, ...] = ()     # tests that cannot be run in several threads, and ran in one
    uncompiled: bool = False        # the Python ran that extension modules of the project's own are made of


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFact:
    """What several calls of the workload use and at least one changes: copies of it would go different ways."""

    variable: str
    file: str                    # where it is written
    line: int
    other_file: str              # where another thread uses it
    other_line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwatched:
    """What several threads of the project's own code do, or may do, and the race checker does not watch."""

    file: str
    line: int
    what: str                    # "what exec runs"; the statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Races:
    """What the race checker says of the project's workload and tests."""

    build: str
    found: tuple[RaceFact, ...]
    command: tuple[str, ...]
    looks: tuple[RaceLook, ...] = ()
    lacking: tuple[tuple[Raced, str], ...] = ()   # what was to be looked at and could not be, and why
    shared: tuple[SharedFact, ...] | None = None  # by the calls of the workload; None: not looked at
    unwatched: tuple[Unwatched, ...] = ()
    unreached: tuple[Unwatched, ...] = ()         # statements that would change what threads share, and no thread ran

    @property
    def together(self) -> bool:
        """Whether code of the project's own was seen running in two threads: otherwise nothing was put to the test."""
        return any(look.together for look in self.looks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Development:
    """What is there for who works on the project, and is no part of the verdict: its users need none of it."""

    packages: tuple[str, ...]    # that a lock has beside what is needed to run, and that the tests need
    extras: tuple[str, ...]      # of the project, for its users; each is judged on its own, when it is asked for
    lacking: Mapping[str, tuple[str, ...]]   # by build, what its tests may need and could not be installed


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Seconds that several rounds took."""

    median: float
    lo: float                    # the least
    hi: float                    # the most
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """What one more worker of a kind takes."""

    start: Spread                # until it has imported what it needs
    memory: float | None         # bytes for itself: anonymous pages, no files that others map, too; None: not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """What one more worker takes on a build; an interpreter, on a thread of its own, in its parts, too."""

    modules: tuple[str, ...]                # imported in each interpreter and process
    missing: tuple[tuple[str, str], ...]    # modules that cannot be imported anywhere there, and why
    refused: tuple[tuple[str, str], ...]    # modules that cannot be imported in an interpreter alone, and why
    run_queue: float | None                 # share of their time that they waited for a core, 0..1
    thread: Worker
    process: Worker                         # a new one, not forked
    interpreter: Worker
    bare: Worker                            # an interpreter that imports nothing
    create: Spread
    imports: Spread
    destroy: Spread
    kept: float | None                      # bytes that each leaves behind when it is destroyed


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """How a process ends whose interpreters import all that loads; with the standard library alone it does not."""

    reason: str
