"""Start the zygote of a build, and ask it for measurements."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from gilscope.toolkit import temporary
from gilscope.toolkit.bounded_reading import last_lines
from gilscope.toolkit.builds.compile_library import announce
from gilscope.toolkit.builds.local_projects import missing_import_advice
from gilscope.toolkit.errors import ToolkitError, UnknownNameError
from gilscope.toolkit.measure.preparation import child_environment
from gilscope.toolkit.processes.helper_process import HelperFailedError, HelperProcess, SlowHelperError
from gilscope.toolkit.scale.throughput import LEAST_CLEAN, CleanCalls, apart_or_all, clean_calls, near_limit, pooled

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "from gilscope.toolkit.scale.child.zygote import main; main()"
START_LIMIT = 180.0      # seconds, without a compilation of the core
COMPILE_LIMIT = 660.0    # more than a compiler may take, see `builds.compile_library`
ANSWER_LIMIT = 300.0     # of each request; the zygote limits what its forks do
CALL_LIMIT = 60.0        # of the first calls: one of at most 0.25 s is measured, and the first may fill caches
WINDOWS = (1.0, 2.5, 4.0, 4.0)     # of the tries until enough of them was undisturbed, see `child.zygote`
ENOUGH_ON_ONE_CORE = len(WINDOWS)  # measurements, and none on cores apart: this machine has no other core
EASILY = 3.0             # times the quota in one window: a shorter one would do
SAMPLED_WINDOWS = 2.5
SAMPLED_PERIOD = 500      # microseconds between two samples of all objects
CLOSE_PERIOD = 60         # at those that moved
LEAST_SAMPLES = 100         # that shares are of, at least: on a machine that leaves the sampler few, one says little
FLAGS = ("PYTHONDONTWRITEBYTECODE",)      # decides whether constants are counted

GIL_ON = "an import turned the GIL on, so threads cannot scale; `gilscope doctor` names the package"


class UnscalableFunctionError(ToolkitError):
    """The function cannot be measured in this build; the message says why."""


class LostZygoteError(ToolkitError):
    """The process of a build ended, or did not answer; exit code 3."""

    exit_code = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedFunction:
    """The zygote's facts about the function after its first calls."""

    seconds_per_call: float
    payloads: int
    dealt: bool             # each thread has payloads of its own; otherwise all threads share all
    objects: int            # that can be reached
    gil: bool               # an import turned it on
    refused: str | None     # why no object is made immortal in this build
    bytecode: bool          # what imports compile is saved
    operations: int = 1     # in a call
    package: str = ""       # that the function is in


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadCopies:
    """The copies that each thread makes for itself, of globals and of its payloads."""

    held: tuple[tuple[str, str], ...]    # module and name of each global
    arguments: bool
    control: bool = False                # copies nothing, and has globals of its own all the same


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyTest:
    """The first call with copies, before any is measured."""

    why: str | None                   # why there can be none
    results: list[str | None]         # as of `ZygoteProcess.results`
    originals: list[int]              # numbers of the globals that are copied
    used: list[int]                   # of these and of the watched objects, those that lines of the program still use


@dataclass(frozen=True, slots=True, kw_only=True)
class CallMode:
    """One way to run the function, which is compared with others."""

    threads: int
    processes: bool = False
    immortal: tuple[int, ...] = ()     # numbers of objects
    everything: bool = False           # makes every object immortal
    collector: bool = True
    copies: ThreadCopies | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CodePlace:
    """A line of the program."""

    file: str          # from the working directory, if it is below
    line: int
    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledObject:
    """The sampler's counts of an object's header states, as shares of its samples."""

    number: int
    moved: float       # its shared count had changed
    locked: float      # its mutex, or itself as a lock, was held
    waited: float      # a thread was parked for it


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramObject:
    """How a reader knows an object."""

    name: str          # "the value of app.TABLE[3]"
    owner: str         # "app.TABLE": the global, argument, function or class that it is found in
    kind: str          # see `child.names`
    type: str
    held: tuple[str, str] | None = None     # module and name, if the owner is a global
    argument: bool = False                  # the owner is an argument of the function
    ours: bool = False                      # the owner is gilscope's


class ZygoteProcess:
    """The running zygote of a build, asked for measurements; leaving the `with` block ends it."""

    def __init__(self, python: str | Path, paths: Sequence[Path]) -> None:
        """Start it.

        Args:
            python: A free-threaded build.
            paths: Folders to import the user's modules from.
        """
        self.measurements = 0
        self._first = 0      # of WINDOWS
        self.on_one_core = 0       # of the measurements of several threads
        self.handoffs: list[float] = []      # of the others: nanoseconds for a cache line from CPU to CPU
        self._names: dict[int, ProgramObject] = {}
        self._folders = paths
        environment = child_environment(paths) | {name: os.environ[name] for name in FLAGS if name in os.environ}
        with ExitStack() as stack:
            self._output = stack.enter_context(tempfile.NamedTemporaryFile(prefix=temporary.prefix()))
            self._helper = stack.enter_context(HelperProcess(
                [python, "-P", "-c", PROGRAM], env=environment, stderr=self._output))
            self._wait_until_ready()
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        """Return the process."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._stack.close()

    def load(  # noqa: PLR0913 - what the zygote is asked
        self, function: str, payloads: str | None, payload: str | None, threads: int, *,
        recipe: dict[str, Any] | None = None, maker: Sequence[str] = (), look: bool = False,
        limit: float = ANSWER_LIMIT,
    ) -> LoadedFunction:
        """Load the function and call it until it is warm; it replaces an earlier one.

        Args:
            function: See `child.zygote.Zygote.load`, like the other arguments.
            payloads: Of the function.
            payload: Of the function.
            threads: Their number.
            recipe: Its call in a test.
            maker: Names what makes it.
            look: Only rates are wanted: no object can be made immortal, sampled or named.
            limit: Seconds.

        Raises:
            UnknownNameError: There is no such module, function or payloads.
            UnscalableFunctionError: It cannot be measured.
            LostZygoteError: The process has ended.
        """
        until = time.monotonic() + limit
        self._send(do="load", function=function, payloads=payloads, payload=payload, threads=threads, recipe=recipe,
                   maker=maker, look=look)
        if (told := self._answer(limit)) == {"calling": True}:
            seconds = min(CALL_LIMIT, limit)
            until = max(until, time.monotonic() + seconds)      # the import may have taken most of the time
            told = self._answer(seconds, f"a call of {function} did not return within {seconds:.0f} s; name a part of "
                                         "the work, or smaller payloads")
        # Objects may take long to list once the calls are over.
        if told == {"called": True}:
            told = self._answer(max(0.0, until - time.monotonic()))
        answer = self._content(told)
        self._names.clear()
        return LoadedFunction(**{name: answer[name] for name in LoadedFunction.__slots__})

    @property
    def near(self) -> float:
        """See `throughput.near_limit`."""
        return near_limit(self.handoffs)

    def measure(self, mode: CallMode, windows: float = WINDOWS[0]) -> CleanCalls:
        """Return the undisturbed calls of one measurement that lasts so many windows.

        Raises:
            UnscalableFunctionError: The function raised, or did not return.
            LostZygoteError: The process has ended.
        """
        self.measurements += 1
        answer = self._ask(do="measure", threads=mode.threads, processes=mode.processes, immortal=mode.immortal,
                           everything=mode.everything, collector=mode.collector, copies=_plain(mode.copies),
                           windows=windows)
        found = clean_calls(answer)
        if mode.threads > 1:
            self.on_one_core += found.one_core
            if answer["handoff"] and not found.one_core:      # 0.0: the other thread had no core, and nobody knows
                self.handoffs.append(answer["handoff"])
        return found

    def measure_cleanly(self, mode: CallMode, tries: int = len(WINDOWS)) -> CleanCalls:
        """Measure longer and longer until LEAST_CLEAN seconds were undisturbed, or the tries are over.

        Threads that share a core are disturbed, too, unless there is no other core.
        """
        parts: list[CleanCalls] = []
        for windows in WINDOWS[self._first:][:tries]:
            parts.append(self.measure(mode, windows))
            found = pooled(apart_or_all(parts))
            no_other = self.on_one_core >= ENOUGH_ON_ONE_CORE and not self.handoffs
            if found.enough() and (not found.one_core or no_other):
                break
        # Forks cost time, too: on a busy machine begin with a longer window.
        if len(parts) > 1 and not any(each.one_core for each in parts):
            self._first = min(self._first + 1, len(WINDOWS) - 2)
        elif found.enough(EASILY * LEAST_CLEAN):
            self._first = max(self._first - 1, 0)
        return found

    def sample(
        self, threads: int, watched: Sequence[int] | None = None, period: int = SAMPLED_PERIOD,
        copies: ThreadCopies | None = None, longer: float = 1.0,
    ) -> list[SampledObject]:
        """Sample the headers of the objects while threads work, so many times the usual time.

        Args:
            threads: Their number.
            watched: Numbers of objects; None watches all mortal ones.
            period: Microseconds between two samples.
            copies: What each thread copies for itself.
            longer: Times `SAMPLED_WINDOWS`.
        """
        self.measurements += 1
        answer = self._ask(do="measure", threads=threads, windows=longer * SAMPLED_WINDOWS, period=period,
                           copies=_plain(copies), watched=None if watched is None else list(watched))["sampled"]
        samples = max(LEAST_SAMPLES, answer["passes"])
        return [SampledObject(number=number, moved=moved / samples, locked=locked / samples, waited=waited / samples)
                for number, moved, locked, waited in answer["seen"]]

    def names(self, numbers: Sequence[int]) -> list[ProgramObject]:
        """Return how a reader knows the objects; each is searched for once."""
        if unknown := [each for each in numbers if each not in self._names]:
            for number, each in zip(unknown, self._ask(do="names", numbers=unknown), strict=True):
                self._names[number] = ProgramObject(**each | {"held": each["held"] and tuple(each["held"])})
        return [self._names[number] for number in numbers]

    def places(self, numbers: Sequence[int]) -> list[tuple[CodePlace, ...]]:
        """Return the lines of the program that use each of the objects; none where they are not known."""
        if not numbers:
            return []
        return [tuple(CodePlace(file=file, line=line, function=function) for file, line, function in each)
                for each in self._ask(do="places", numbers=list(numbers))]

    def test_copies(self, copies: ThreadCopies, watched: Sequence[int] = ()) -> CopyTest:
        """Call the function with such copies, and see which of the watched objects lines of the program still use."""
        return CopyTest(**self._ask(do="copied", watched=list(watched), **asdict(copies)))

    def results(self, *, immortal: bool) -> list[str | None]:
        """Return the results of calls, with every object immortal or none; None for one that cannot be compared."""
        answer: list[str | None] = self._ask(do="results", immortal=immortal)
        return answer

    def _wait_until_ready(self) -> None:
        """Wait until the core is loaded, and say that it is being compiled if it is."""
        limit = START_LIMIT
        while (state := self._answer(limit)) != {"ready": True}:
            announce("gilscope's measuring core for this build", state["compiling"])
            limit = COMPILE_LIMIT

    def _ask(self, **request: Any) -> Any:
        """Return the answer to a request: `do` is the name of a method of `child.zygote.Zygote`.

        Raises:
            UnscalableFunctionError: The function cannot be measured.
            LostZygoteError: The process has ended.
        """
        self._send(**request)
        return self._content(self._answer(ANSWER_LIMIT))

    def _send(self, **request: Any) -> None:
        try:
            self._helper.send(request)
        except HelperFailedError as error:
            raise self._lost(error) from None

    def _answer(self, limit: float, slow: str = "") -> dict[str, Any]:
        """Receive an answer; `slow` is what to say if none comes within the limit, in seconds."""
        try:
            answer: dict[str, Any] = self._helper.receive(limit)
        except HelperFailedError as error:
            if slow and isinstance(error, SlowHelperError):
                raise LostZygoteError(slow) from None
            raise self._lost(error) from None
        return answer

    def _content(self, answer: dict[str, Any]) -> Any:
        if "unknown" in answer:
            raise UnknownNameError(answer["unknown"])
        if missing := answer.get("missing_import"):
            raise UnscalableFunctionError(f"{answer['refused']}; {missing_import_advice(missing, self._folders)}")
        for kind in ("refused", "failed"):
            if kind in answer:
                raise UnscalableFunctionError(answer[kind])
        return answer.get("answer")

    def _lost(self, error: HelperFailedError) -> LostZygoteError:
        """Return the error with what the process printed last, in one line as reports need it."""
        said = f"the measuring process {error}\n{last_lines(Path(self._output.name))}"
        return LostZygoteError("; ".join(line.strip() for line in said.splitlines() if line.strip()))


def _plain(copies: ThreadCopies | None) -> dict[str, Any] | None:
    return None if copies is None else asdict(copies)
