"""The nouns of an evaluation's sections: the machine, tests, cost, gain, contention, races, interpreters.

A missing section is a `Missing` with the reason.  Seconds unless the name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - the cache reads the hints
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from gilscope.toolkit.gil.records import WaitReason  # noqa: TC001 - the cache reads the hints
from gilscope.toolkit.stats.verdict import Comparison  # noqa: TC001 - the cache reads the hints
from gilscope.toolkit.units import few

if TYPE_CHECKING:
    from collections.abc import Iterable


class Remedy(StrEnum):
    """The kind of call that would find out more."""

    TIME = "time"            # a larger --budget
    REPAIR = "repair"        # the same call, once something is repaired or can be downloaded
    QUIET = "quiet"          # --wait-quiet
    WORKLOAD = "workload"    # a --workload


class Cause(StrEnum):
    """Code of the reason why a section is missing, as far as a decision depends on it."""

    TIME = "time"                        # the budget was too small
    BUSY = "busy"                        # too few rounds had the cores that they needed
    OFFLINE = "offline"                  # nothing was installed, and nothing may be downloaded
    FAILED = "failed"                    # it was tried, and could not be done: no index, a full disk
    NOT_RUN = "not-run"                  # this command leaves it out; another would have it
    CRASHED = "crashed"                  # a process of its own broke, and not with the standard library alone
    WORKLOAD_FAILED = "workload-failed"
    TESTS_TOO_SHORT = "tests-too-short"  # they take most of their time to start, so they tell no cost
    TESTS_TOO_LONG = "tests-too-long"    # several rounds of them do not fit into the budget
    TESTS_NOT_TIMED = "tests-not-timed"  # another reason why the tests tell no cost: some fail
    OTHER = "other"

    @property
    def provisional(self) -> bool:
        """Return True if another call may have the section although no file has changed."""
        return self in {Cause.TIME, Cause.BUSY, Cause.OFFLINE, Cause.FAILED, Cause.NOT_RUN, Cause.TESTS_TOO_LONG}

    @property
    def remedy(self) -> Remedy | None:
        """Return the kind of call that would have the section."""
        return _REMEDIES.get(self)


_REMEDIES = {Cause.TIME: Remedy.TIME, Cause.BUSY: Remedy.QUIET, Cause.OFFLINE: Remedy.REPAIR,
             Cause.FAILED: Remedy.REPAIR, Cause.NOT_RUN: Remedy.REPAIR, Cause.WORKLOAD_FAILED: Remedy.REPAIR}


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A section that is missing, and why: whatever would have measured it could not.

    A `Skip` is a cell that `run` leaves out, an `Absence` a cell of a
    table without a number, an `InstallProblem` a package that was not installed.
    """

    reason: str                  # for people
    cause: Cause = Cause.OTHER   # for decisions


def known[Section](section: Section | Missing) -> Section | None:
    """Return the section, or None if it is missing."""
    return None if isinstance(section, Missing) else section


def reason_of(section: object) -> str:
    """Return the reason why a section is missing, or "" if it is there."""
    return section.reason if isinstance(section, Missing) else ""


def cause_of(section: object) -> Cause | None:
    """Return why a section is missing, or None if it is there."""
    return section.cause if isinstance(section, Missing) else None


def workload_failed(why: str, where: str = "") -> Missing:
    """Return a section that is missing because the workload failed; `where` reads "on 3.14t"."""
    return Missing(reason=f"the workload failed{f' {where}' if where else ''}: {why}", cause=Cause.WORKLOAD_FAILED)


NO_TIME = Missing(reason="no time was left in the budget", cause=Cause.TIME)
UNASKED = Missing(reason="not asked for")
NOT_THE_SAME = "the threads do different work, so a speed-up means nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnding:
    """The end of a command of the project: an exit, a crash, a hang, or a cut-off by the time limit."""

    kind: Literal["exit", "crash", "hang", "unfinished"]
    code: int = 0                # of an exit
    detail: str = ""             # "SIGSEGV", "no output for 60 s", "not done within 60 s"
    percent: int | None = None   # of the tests that were done when their time was up, where the output tells

    @property
    def succeeded(self) -> bool:
        """Return True if the command came to its end with success."""
        return self.kind == "exit" and self.code == 0

    @property
    def failed(self) -> bool:
        """Return True if the command came to its end without success."""
        return self.kind == "exit" and self.code != 0

    def __str__(self) -> str:
        """Return "0", "crash: SIGSEGV", or "unfinished: not done within 60 s, at 40 %"."""
        if self.kind == "exit":
            return str(self.code)
        return f"{self.kind}: {self.reached}"

    @property
    def reached(self) -> str:
        """Return the detail, with how far the tests came."""
        return self.detail + (f", at {self.percent} %" if self.percent is not None else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFailure:
    """A failure of the workload on a build without a GIL that does not occur on its counterpart with one."""

    kind: Literal["turns-gil-on", "fails"]
    detail: str

    def __str__(self) -> str:
        """Return it as a sentence."""
        return f"the workload fails, and does not with the GIL: {self.detail}" if self.kind == "fails" else self.detail


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """Facts about the machine that limit the conclusions about parallel work."""

    cores: int                   # that may be used
    effective: float | None      # how many spinning processes' worth of work all cores do at once; None: not measured
    run_queue: float | None      # share of a spinning process's life that it waited for a core, 0..1
    governor: str | None
    libc: str                    # "glibc 2.36"
    doubts: tuple[str, ...]      # why speed cannot be judged; empty: it can
    inherited: str | None = None   # what is unusual in how gilscope was started, and the measured processes with it

    @property
    def may_get_quiet(self) -> bool:
        """Return True if waiting may remove the doubts; a single core stays single."""
        return bool(self.doubts) and self.cores > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A line of a file."""

    file: str                    # relative to the project's root where it is below it
    line: int
    what: str = ""               # what happens there: "list.append", an extension module; "" when it is not known
    seconds: float = 0.0         # that threads waited there, all of them together
    wait: WaitReason | None = None   # what they waited for; None if they did not, or if it is not known
    way: tuple[str, ...] = ()    # "file:line" of what is imported from there on until it happens, the outermost first
    own: bool = True             # the file is the project's

    def __str__(self) -> str:
        """Return "file:line"."""
        return f"{self.file}:{self.line}"


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
    seconds: float
    ending: CommandEnding
    gil_end: bool | None         # was the GIL on at the end of the last Python of it; None: not known
    culprits: tuple[str, ...]    # modules that turned it on
    output: str                  # its last lines
    lacking: tuple[str, ...] = ()     # packages that they may need and that could not be installed
    imports: tuple[Place, ...] = ()   # the project's line behind each extension module that was loaded: `what`
    left_out: tuple[LeftOut, ...] = ()
    by_file: Mapping[str, float] = field(default_factory=dict)   # seconds that the tests of each file took, where known
    failing: tuple[str, ...] = ()   # "tests/test_a.py::test_b" of those that fail, with errors, where known
    error: str = ""                 # the last error that their output names
    missing_modules: tuple[str, ...] = ()   # that kept tests from running
    uncollected: int = 0            # files whose tests could not be collected: pytest counts each as an error

    @property
    def broken(self) -> int:
        """Return the number of tests that are known to fail or to end in an error."""
        return max(0, (self.failed or 0) + (self.errors or 0) - self.uncollected)

    @property
    def ran(self) -> bool:
        """Return True if any test is known to have run to its end, by the counts or by the success of the runner."""
        return self.ending.succeeded if self.passed is None else bool(self.passed or self.failed)


Measure = Literal["workload", "script", "tests"]   # one thread of a function, a script as it is, the project's tests


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Resident bytes of a process on two builds."""

    here: float
    there: float                 # on the build with the GIL
    process: str                 # which: "the workload with 2 threads", "the tests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """CPU time and memory of one thread on a build against another, in interleaved rounds, or of the tests instead."""

    against: str                 # build
    cpu: Comparison              # ratio < 1: takes more CPU time here
    import_seconds: float | None  # of the workload's module, here
    import_there: float | None = None   # likewise on the other
    by: Measure = "workload"     # "tests" includes start-up; "script" includes all threads
    sample: str = ""             # which of the tests were run for it: "7 of 40 files"; "": all of them
    memory: Memory | None = None   # with as many threads as were measured; None: not known
    compiled: tuple[str, ...] | None = None   # extension modules of the project's own that were loaded; None: not known
    compiled_there: tuple[str, ...] | None = None   # likewise on the other


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRange:
    """A number that is known to lie between two others."""

    value: float
    lo: float
    hi: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """The speed-up of the workload without the GIL: measured, and its bound."""

    against: str                                  # the build with the GIL
    wait_share: float | None                      # of thread time there, spent waiting for the GIL, 0..1
    ceiling: float | None                         # 1 / (1 - that share), at most the effective cores
    measured: Mapping[int, Comparison] | Missing  # by number of threads; 0: the program chooses
    queued: float | None = None                   # share of their demand that threads waited for a core meanwhile, 0..1
    threads: int | None = None                    # of the workload, at the same time
    busiest: float | None = None                  # share of their CPU time that the busiest one took, 0..1

    @property
    def lacking(self) -> Missing | None:
        """Return the reason that prevents the measurement on any machine, or None."""
        return self.measured if isinstance(self.measured, Missing) and not self.measured.cause.provisional else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced:
    """Cost and gain with the GIL forced off, where something had turned it on.

    Shows what a fix could gain.  Not safe to run: an undeclared module may crash or give wrong results.
    """

    against: str                                  # the build with the GIL
    by: Measure
    cost: Cost | Missing
    measured: Mapping[int, Comparison] | Missing  # as of `Gain`
    failure: str                                  # how it ends there, and does not with the GIL; "": it runs
    machine: MachineFacts | Missing               # in the same rounds
    variable: str = "PYTHON_GIL=0"                # that forces it off


@dataclass(frozen=True, slots=True, kw_only=True)
class NativePool:
    """Threads of a C library's own."""

    library: str                 # "OpenBLAS"
    threads: int                 # that it uses at most, for each call


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """Contention between threads of the workload without the GIL."""

    inflation: float | None      # CPU time per unit of work with several threads / with one
    parked: float | None         # share of thread time spent parked, 0..1; None: threads waited for cores as well
    places: tuple[Place, ...]    # the worst first
    threads: int | None = None   # of the workload, at the same time
    pools: tuple[NativePool, ...] = ()   # what C libraries start beside them
    cores: int | None = None     # that all of these have


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSpeed:
    """Cost, gain and contention on one build without a GIL."""

    cost: Cost | Missing
    gain: Gain | Missing
    contention: Contention | Missing
    failure: WorkloadFailure | None = None
    forced: Forced | Missing | None = None   # None: nothing turned the GIL on
    differs: str = ""     # how threads give something else than on the other build: a sentence

    @classmethod
    def missing(cls, reason: Missing) -> BuildSpeed:
        """Return that nothing was measured."""
        return cls(cost=reason, gain=reason, contention=reason)


MOST_PLACES = 4   # of a race that are named
Raced = Literal["workload", "script", "tests", "tests at once"]   # the last: each test in several threads


def in_order(places: Iterable[Place]) -> tuple[Place, ...]:
    """Return each place once, by file and line."""
    lines = {(place.file, place.line): place for place in places}
    return tuple(lines[line] for line in sorted(lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceFact:
    """A data race that the project's own code showed."""

    kind: str                    # "lost update"
    variable: str
    file: str
    line: int
    confirmed: bool              # a second run showed harm, such as a lost update
    violation: bool = False      # each access is locked, and the whole is not: it goes wrong with the GIL, too
    places: tuple[Place, ...] = ()   # of all sides; empty: that of file and line
    repair: str = ""             # in the race checker's words
    own: bool = True             # `file` is the project's

    @property
    def place(self) -> Place:
        """Return the place of its first side."""
        return Place(file=self.file, line=self.line, own=self.own)

    @property
    def where(self) -> str:
        """Its places in words."""
        return few([*map(str, self.places or (self.place,))], MOST_PLACES)

    @property
    def what(self) -> str:
        """Return the name of the race, its variable and its places."""
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
    differs: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()   # tests that fail in several threads
    alone: tuple[str, ...] = ()     # tests that cannot be run in several threads, and ran in one
    uncompiled: bool = False        # the Python ran that extension modules of the project's own are made of


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFact:
    """A variable that calls of the workload change: copies of it would diverge."""

    variable: str
    file: str                    # where it is changed
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwatched:
    """A statement that several threads run, or may run, and that the race checker does not watch."""

    file: str
    line: int
    what: str                    # "what exec runs"; the statement

    @property
    def place(self) -> Place:
        """Return its place."""
        return Place(file=self.file, line=self.line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Races:
    """The results of the race checker for the project's workload and tests."""

    build: str
    found: tuple[RaceFact, ...]
    command: tuple[str, ...]
    looks: tuple[RaceLook, ...] = ()
    lacking: tuple[tuple[Raced, Missing], ...] = ()   # not checked, and why
    shared: tuple[SharedFact, ...] | None = None  # by the calls of the workload; None: not looked at
    unwatched: tuple[Unwatched, ...] = ()
    unreached: tuple[Unwatched, ...] = ()         # statements that would change what threads share, and no thread ran

    @property
    def together(self) -> bool:
        """Return True if code of the project's own ran in two threads; otherwise nothing was put to the test."""
        return any(look.together for look in self.looks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Development:
    """Packages for development, not part of the verdict: users do not install them."""

    packages: tuple[str, ...]    # that a lock has beside what is needed to run, and that the tests need
    extras: tuple[str, ...]      # of the project, for its users; each is judged on its own, when it is asked for
    lacking: Mapping[str, tuple[str, ...]]   # by build, what its tests may need and could not be installed


@dataclass(frozen=True, slots=True, kw_only=True)
class InterpreterTrial:
    """What the project imports in an interpreter with a GIL of its own, and the memory that this takes."""

    modules: tuple[str, ...]                # imported in each
    refused: tuple[tuple[str, str], ...]    # modules that cannot be imported in an interpreter alone, and why
    memory: float | None                    # bytes of an interpreter: anonymous pages, no files; None: not known
    process_memory: float | None            # of a new process with the same imports
