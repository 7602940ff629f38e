"""The process of a free-threaded build that calls the user's function, and measures it in forks of itself.

It loads the function, calls it until it is warm, and lists every object that can be reached, all once and without a
second thread.  Each measurement is a fork of it: objects have the same addresses in all of them, nothing is imported
again, and what a measurement does to objects, such as making them immortal, ends with it.  It reads requests and writes
answers as lines of JSON, see `processes.helper_process`.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from itertools import cycle, repeat

from gilscope.toolkit.cores import on_cores_apart
from gilscope.toolkit.escaping import message
from gilscope.toolkit.measure.child.calls import NameMissingError, find, function_called, run_to_its_end, shown
from gilscope.toolkit.processes.forks import Fork
from gilscope.toolkit.scale.child.headers import HEADERS
from gilscope.toolkit.scale.child.layout import LayoutRefusedError, lock_offsets, verify
from gilscope.toolkit.scale.child.names import names_of, unnamed
from gilscope.toolkit.scale.child.opaque import readers, stored_values
from gilscope.toolkit.scale.child.reachable import is_immortal, reachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType
    from typing import Any

    Work = tuple[Callable[..., object], list[Any] | None]    # a function, and one thread's payloads; None: no argument

WARM_UP = 0.03          # seconds
WARM_LOOK = 0.006       # seconds, where hundreds of functions are looked at: each fork warms up, too
CHUNK = 0.0001          # seconds of calls between two looks at the clocks; contended, they take ten times as long, and
                        # must still fit into the slice that a busy machine gives a thread
LEAST_WARM = 0.012      # seconds of a measurement that are not counted: threads have just been started
WINDOW = 0.04           # seconds of the shortest measurement
LEAST_CALLS = 12        # in it, as fast as one thread makes them: contended, it gets through a third of them
LEAST_WARM_CALLS = 2    # before it, in each thread
LONGEST_CALL = 0.25     # seconds; with a longer one, an answer would take minutes
PATIENCE = 20.0         # seconds that a measurement may take longer than it should
NAMING = 60.0           # seconds for the names of objects, of which there may be hundreds of thousands
COMPARED = 8            # payloads whose results are compared
GATE = 16               # bytes that threads write to
LOADS = 3               # of a core's multiplier before each measurement, while this process has the core for itself
SHARED_LOAD = 1.5       # times that: hyperthreads of one core have twice as much


class FunctionRefusedError(Exception):
    """The function cannot be measured; the message says why, and what to do."""


class FailedMeasurementError(Exception):
    """One measurement failed: the function raised, or did not return."""


class Zygote:
    """The loaded function with its objects, and the measurements in forks."""

    def __init__(self, headers: ModuleType, on_calls: Callable[[str], object] = lambda _: None) -> None:
        """Prepare to load.

        Args:
            headers: The C extension that reads object headers.
            on_calls: Is told "calling" before the first calls of the function, and "called" after them.
        """
        self._headers = headers
        self._on_calls = on_calls
        self._objects: list[Any] = []
        self._locks: dict[type, int] = {}
        self._gate = mmap.mmap(-1, mmap.PAGESIZE)    # shared with the forks
        self._number = 0
        self._unnamable = False      # the search for names has failed

    def load(self, function: str, payloads: str | None, payload: str | None, threads: int, *,
             recipe: dict[str, Any] | None = None, maker: Sequence[str] = (), look: bool = False) -> dict[str, Any]:
        """Load the function, call it until it is warm, and list the objects.

        Args:
            function: "package.module:name".
            payloads: "package.module:name" of a sequence, or of a function that returns one.
            payload: A literal.
            threads: Payloads are dealt to so many threads if there are enough of them.
            recipe: A call of the function by a test, see `hammer.calls`; each thread makes its objects for itself.
            maker: "package.module:name" of a function, and its arguments.  It returns `make` of `take`, and how many
                operations one call of the function is.
            look: Objects are neither listed nor named: rates alone are wanted, and soon.

        Raises:
            FunctionRefusedError: It cannot be measured.
        """
        if maker:
            make, operations = find(maker[0])(*maker[1:])
            return self.take(function, make, threads, look=look) | {"operations": operations}
        with suppress(FailedMeasurementError):      # said by the import below
            # Writes the .pyc: constants of a module that was compiled in this process are counted, others are not.
            self._asked(lambda: _import_module(function), PATIENCE)
        if recipe is not None:
            return self.take(function, partial(_repeated, recipe), threads, look=look)
        called = function_called(function)
        return self.take(function, lambda: called, threads, made=_payloads(payloads, payload), look=look)

    def take(self, name: str, make: Callable[[], Callable[..., object]], threads: int, *,
             made: list[Any] | None = None, look: bool = False) -> dict[str, Any]:
        """Take a function of this process, call it until it is warm, and list the objects.

        Args:
            name: "package.module:name", where it is found.
            make: Returns what calls it with one of the payloads, or without argument; each thread has its own.
            threads: Payloads are dealt to so many threads if there are enough of them.
            made: The payloads.
            look: Objects are neither listed nor named: rates alone are wanted, and soon.

        Raises:
            FunctionRefusedError: It cannot be measured.
        """
        self._name, self._make, self._call, self._payloads = name, make, make(), made
        self._dealt = made is not None and len(made) >= threads > 1
        self._threads = threads
        self._on_calls("calling")
        self._each = self._warm_up(WARM_LOOK if look else WARM_UP)
        self._on_calls("called")
        if (left := threading.active_count()) > 1:
            raise FunctionRefusedError(f"{name} has left {left - 1} thread(s) running, and a process with threads "
                                       "cannot be forked; name a function that works in the calling thread")
        if self._each > LONGEST_CALL:
            raise FunctionRefusedError(f"a call of {name} takes {self._each:.2g} s; name a part of the work, or "
                                       f"smaller payloads: at most {LONGEST_CALL:g} s")
        self._objects, self._unnamable = [], False
        if look:
            return self._facts(None)
        gc.collect()
        self._objects = self._reachable([self._call, made, *sys.modules.values(), *gc.get_objects()])
        return self._facts(self._layout())

    def _facts(self, refused: str | None) -> dict[str, Any]:
        made = self._payloads
        package = self._name.partition(":")[0].partition(".")[0]
        return {"seconds_per_call": self._each, "objects": len(self._objects), "dealt": self._dealt,
                "payloads": 0 if made is None else len(made), "gil": _gil_is_on(), "refused": refused,
                "bytecode": not sys.dont_write_bytecode, "operations": 1, "package": package}

    def measure(  # noqa: PLR0913 - the fields of a mode, and what the sampler does
        self, threads: int, windows: float, *, processes: bool = False, immortal: Sequence[int] = (),
        everything: bool = False, collector: bool = True, copies: dict[str, Any] | None = None, period: int = 0,
        watched: Sequence[int] | None = None,
    ) -> dict[str, Any]:
        """Return the times of calls in so many threads, each pinned to a core, and what the cores have in common.

        A virtual machine does not tell which of its CPUs are hyperthreads of one core, or how far they are apart, and
        the host may change that.

        Args:
            threads: Their number.
            windows: The time that is measured, in windows of WINDOW seconds or LEAST_CALLS calls.
            processes: True for processes with a thread each.
            immortal: Objects to make immortal before the threads start.
            everything: True to make all of them immortal.
            collector: False to turn the garbage collector off.
            copies: What each thread copies for itself: the arguments of `ThreadCopy`.
            period: Microseconds between samples; 0 for no sampler.
            watched: The objects for the sampler; None: all that are not immortal.

        Raises:
            FailedMeasurementError: The function raised, or did not return.
        """
        self._number += 1
        self._gate[:GATE] = bytes(GATE)
        alone = min(self._headers.multiplier_load() for _ in range(LOADS))
        warm = max(LEAST_WARM, LEAST_WARM_CALLS * self._each)
        lasts = windows * max(WINDOW, LEAST_CALLS * self._each)
        plan = _Plan(threads=threads, each=1 if processes else threads, warm=warm, seconds=lasts, collector=collector,
                     number=self._number, copies=copies)
        chosen = self._objects if everything else [self._objects[number] for number in immortal]
        objects = None if period == 0 else watched if watched is not None else self._mortal()
        forks = [self._fork(partial(self._measured, plan, first, chosen, objects, period))
                 for first in (range(threads) if processes else [0])]
        answers = _answers(forks, warm + lasts + PATIENCE)
        for answer in answers:
            if isinstance(answer, str):
                raise FailedMeasurementError(answer)
        loads = zip(*(load for answer in answers for load in answer["loads"]), strict=True)      # before, and after
        return {"rows": [row for answer in answers for row in answer["rows"]], "calls": self._chunk(),
                "handoff": max(handed for answer in answers for handed in answer["handoffs"]),
                # Two of them share it.  Who is beside one of them alone, or was beside this process before, is another
                # program, or another machine of the same host.
                "one_core": threads > 1 and any(sorted(each)[-2] > SHARED_LOAD * alone for each in loads),
                "switches": sum(answer["switches"] for answer in answers),
                "collections": answers[0]["collections"], "sampled": answers[0]["sampled"]}

    def names(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        """Return how a reader knows the objects; by their types if the search fails, which looks at attributes."""
        wanted = [self._objects[number] for number in numbers]
        if self._unnamable:      # the next search would take as long
            return unnamed(wanted)
        try:
            named: list[dict[str, Any]] = self._asked(
                lambda: names_of(wanted, self._name, self._payloads), NAMING)
        except FailedMeasurementError:
            self._unnamable = True
            return unnamed(wanted)
        return named

    def places(self, numbers: Sequence[int]) -> list[list[tuple[str, int, str]]]:
        """Return the lines of the program that use each of the objects: file, line and function.

        None if watching a call fails: the answer is worth something without.
        """
        def found() -> list[list[tuple[str, int, str]]]:
            from gilscope.toolkit.scale.child.places import places_of  # noqa: PLC0415 - in a fork alone, see `load`

            return places_of([self._objects[number] for number in numbers], _calls(self._call, self._payloads))

        try:
            places: list[list[tuple[str, int, str]]] = self._asked(found, PATIENCE + COMPARED * self._each)
        except FailedMeasurementError:
            return [[] for _ in numbers]
        return places

    def copied(self, watched: Sequence[int], **copies: Any) -> dict[str, Any]:
        """Try what a thread copies for itself; return the results of its calls, or why it cannot.

        Args:
            watched: Objects of which the answer tells whether a line of the program still uses them.
            copies: The arguments of `ThreadCopy`.
        """
        def called() -> dict[str, Any]:
            from gilscope.toolkit.scale.child.places import places_of  # noqa: PLC0415 - in a fork alone, see `load`
            from gilscope.toolkit.scale.child.thread_copies import ThreadCopy, UncopiedError  # noqa: PLC0415 - likewise

            originals = {id(vars(sys.modules[module])[name]) for module, name in copies["held"]}
            numbers = [number for number, each in enumerate(self._objects) if id(each) in originals]
            try:
                own = ThreadCopy(self._call, self._payloads, **copies)
            except UncopiedError as error:
                raise FailedMeasurementError(message(str(error))) from None
            looked_at = sorted({*watched, *numbers})
            lines = places_of([self._objects[number] for number in looked_at], _calls(own.call, own.payloads))
            return {"why": None, "results": _results(own.call, own.payloads), "originals": numbers,
                    "used": [number for number, each in zip(looked_at, lines, strict=True) if each]}

        try:
            found: dict[str, Any] = self._asked(called, PATIENCE + COMPARED * self._each)
        except FailedMeasurementError as error:
            return {"why": str(error), "results": [], "originals": [], "used": []}
        return found

    def results(self, *, immortal: bool) -> list[str | None]:
        """Return the results of calls, with every object immortal or none; None for one that cannot be compared."""
        def called() -> list[str | None]:
            if immortal:
                self._headers.immortalize(self._objects)
            return _results(self._call, self._payloads)

        results: list[str | None] = self._asked(called, PATIENCE + COMPARED * self._each)
        return results

    def _reachable(self, roots: list[Any]) -> list[Any]:
        """Return the objects that can be reached, if that is safe also through attributes of C types."""
        own = [self, self.__dict__, self._objects, self._gate, roots]
        found = reachable(roots, own)
        if not any(readers(type(each)) for each in found):
            return found
        own.append(found)
        try:
            self._asked(lambda: len(reachable(roots, own, stored_values)), PATIENCE)     # C code may crash or hang
        except FailedMeasurementError:
            return found
        return reachable(roots, own, stored_values)

    def _layout(self) -> str | None:
        """Find out in a fork which locks can be read and whether the layout is known; return why not, or None."""
        def verified() -> dict[str, int]:
            verify(self._headers)
            return {kind.__qualname__: offset for kind, offset in lock_offsets(self._headers).items()}

        (answer,) = _answers([self._fork(verified)], PATIENCE, "the check of the layout of objects")
        if isinstance(answer, str):
            return answer
        kinds = {type(threading.Lock()): answer.get("lock"), type(threading.RLock()): answer.get("RLock")}
        self._locks = {kind: offset for kind, offset in kinds.items() if offset}
        return None

    def _warm_up(self, seconds: float) -> float:
        """Call the function until it is warm; return the seconds of a usual call, whatever else ran meanwhile."""
        arguments = repeat(()) if self._payloads is None else ((payload,) for payload in cycle(self._payloads))
        for _ in range(2):        # the first calls fill caches
            each: list[float] = []
            until = time.perf_counter() + seconds
            while not each or time.perf_counter() < until:
                began = time.perf_counter()
                self._call(*next(arguments))
                each.append(time.perf_counter() - began)
            if each[0] > LONGEST_CALL:
                break
        return sorted(each)[len(each) // 2]

    def _chunk(self) -> int:
        return max(1, int(CHUNK / self._each))

    def _mortal(self) -> list[int]:
        return [number for number, each in enumerate(self._objects) if not is_immortal(self._headers, each)]

    def _work(self, thread: int, copies: dict[str, Any] | None) -> Work:
        call, own = self._make(), self._payloads
        if own is not None and self._dealt:
            own = own[thread % self._threads::self._threads]
        if copies is None:
            return call, own
        from gilscope.toolkit.scale.child.thread_copies import ThreadCopy  # noqa: PLC0415 - in a fork alone

        made = ThreadCopy(call, own, **copies)
        return made.call, made.payloads

    def _measured(
        self, plan: _Plan, first: int, immortal: list[Any], watched: Sequence[int] | None, period: int,
    ) -> dict[str, Any]:
        """Measure, in a fork; `first` is the number of its first thread."""
        if not plan.collector:
            gc.disable()
            gc.freeze()
        if immortal:
            self._headers.immortalize(immortal)
        cpus = plan.cpus
        found: list[Any] = [None] * plan.each
        problems: list[str] = []

        def work(place: int) -> None:
            os.sched_setaffinity(0, {cpus[(plan.number + first + place) % len(cpus)]})
            try:
                found[place] = self._headers.call_for(
                    _chunk_of(*self._work(first + place, plan.copies)), self._chunk(), self._gate, plan.threads,
                    int(plan.warm * 1e9), int(plan.seconds * 1e9), int(PATIENCE / 2 * 1e9))
            except BaseException as error:  # noqa: BLE001 - the user's code raises what it likes
                problems.append(f"{self._name} raised {_told(error)}")

        threads = [threading.Thread(target=work, args=(place,)) for place in range(plan.each)]
        collections = _collections()
        if watched is not None:
            objects = [self._objects[number] for number in watched]
            self._headers.sample_start(objects, [self._locks.get(type(each), 0) for each in objects], period,
                                    self._gate, plan.threads)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sampled = None
        if watched is not None:
            passes, spent, rows = self._headers.sample_stop()
            sampled = {"passes": passes, "spent": spent, "objects": len(watched),
                       # Locks of 3.13 do not tell who waits for them, so whoever holds one may be in the way.
                       "seen": [(watched[index], moved, locked, locked if self._is_silent(objects[index]) else parked)
                                for index, moved, locked, parked in rows]}
        if problems or None in found:
            raise FailedMeasurementError(problems[0] if problems else "the threads did not meet")
        return {"rows": [rows for rows, *_ in found],
                "loads": [(before, after) for *_, before, after, _ in found],
                "handoffs": [handed for *_, handed in found],
                "switches": sum(switches for _, _, switches, *_ in found), "collections": _collections() - collections,
                "sampled": sampled}

    def _is_silent(self, each: Any) -> bool:
        return type(each) in self._locks and sys.version_info < (3, 14)

    def _asked(self, action: Callable[[], Any], limit: float) -> Any:
        """Run `action` in a fork and return its result.

        Raises:
            FailedMeasurementError: It failed, or took longer than `limit` seconds.
        """
        (answer,) = _answers([self._fork(action)], limit)
        if isinstance(answer, str):
            raise FailedMeasurementError(answer)
        return answer

    def _fork(self, action: Callable[[], Any]) -> Fork:
        """Start a fork that answers with what `action` returns."""
        parent = os.getpid()

        def answer(write: Callable[..., None]) -> None:
            self._headers.end_with_parent(parent)
            try:
                result = action()
            except BaseException as error:  # noqa: BLE001 - reported to whoever asked
                ours = isinstance(error, (FailedMeasurementError, LayoutRefusedError))
                write(error=str(error) if ours else _told(error))
            else:
                write(answer=result)

        return Fork(answer)


class _Plan:
    """The settings that the forks of one measurement share; times are seconds."""

    def __init__(self, **values: Any) -> None:
        self.threads: int = values["threads"]      # that meet at the gate
        self.each: int = values["each"]            # of them in a fork
        self.warm: float = values["warm"]
        self.seconds: float = values["seconds"]
        self.collector: bool = values["collector"]
        self.number: int = values["number"]
        self.copies: dict[str, Any] | None = values["copies"]
        self.cpus: list[int] = on_cores_apart(self.threads)


def _results(call: Callable[..., object], payloads: list[Any] | None) -> list[str | None]:
    return [shown(each()) for each in _calls(call, payloads)]


def _calls(call: Callable[..., object], payloads: list[Any] | None) -> list[Callable[[], object]]:
    return [call] if payloads is None else [partial(call, payload) for payload in payloads[:COMPARED]]


def _chunk_of(call: Callable[..., object], payloads: list[Any] | None) -> Callable[[int], None]:
    """Return the function that makes so many calls; it is one thread's own."""
    if payloads is None:
        def chunk(count: int) -> None:
            function = call
            for _ in range(count):      # a static type: its count is nobody's bottleneck
                function()
    elif len(payloads) == 1:
        (only,) = payloads

        def chunk(count: int) -> None:
            function, payload = call, only
            for _ in range(count):
                function(payload)
    else:
        advance = cycle(payloads).__next__

        def chunk(count: int) -> None:
            function, following = call, advance
            for _ in range(count):
                function(following())
    return chunk


def _answers(forks: Sequence[Fork], limit: float, what: str = "the function") -> list[Any]:
    """Return each fork's answer, or the text of its error; end those that take longer than `limit` seconds.

    Args:
        forks: They run at the same time.
        limit: Seconds.
        what: The subject of the error if one does not return.
    """
    until = time.monotonic() + limit
    answers: list[Any] = []
    for fork in forks:
        records, ending = fork.result(max(0.0, until - time.monotonic()))
        if records:
            answers.append(records[-1]["answer"] if "answer" in records[-1] else records[-1]["error"])
        elif ending.kind == "slow":
            answers.append(f"{what} did not return within {limit:.0f} s")
        elif ending.kind == "crash":
            answers.append(f"the measuring process died: {ending.reason}")
        else:
            answers.append(f"the measuring process {ending.reason}")
    return answers


def _import_module(function: str) -> None:
    __import__(function.partition(":")[0])


def _repeated(recipe: dict[str, Any]) -> Callable[..., object]:
    """Return a call of a test, with new objects and arguments: those of a thread are its own."""
    # Only `--api` needs it, and what is imported is among the program's objects.
    from gilscope.toolkit.hammer.calls import CallRecipe  # noqa: PLC0415
    from gilscope.toolkit.hammer.targets import RepeatableCall  # noqa: PLC0415

    call = RepeatableCall(CallRecipe.from_plain(recipe))
    scope = call.scope()
    function = run_to_its_end(call.function(scope, call.receiver(scope)), call.recipe.shown)
    args, kwargs = call.arguments(scope)
    return partial(function, *args, **kwargs)


def _payloads(payloads: str | None, payload: str | None) -> list[Any] | None:
    if payload is not None:
        import ast  # noqa: PLC0415 - seldom, and what is imported here, the user's module finds imported

        return [ast.literal_eval(payload)]
    if payloads is None:
        return None
    found = find(payloads)
    made = list(found() if callable(found) else found)
    if not made:
        raise FunctionRefusedError(f"{payloads} is empty: it takes one payload at least")
    return made


def _collections() -> int:
    return sum(each["collections"] for each in gc.get_stats())


def _gil_is_on() -> bool:
    ask = getattr(sys, "_is_gil_enabled", None)
    return True if ask is None else ask()


def main() -> None:
    """Answer requests until standard input ends."""
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)      # a function that reads standard input takes no request of ours
    os.dup2(2, 1)        # what the function prints while it is loaded is no answer of ours
    try:
        headers = HEADERS.load(lambda seconds: _tell(answers, {"compiling": seconds}))
        if hasattr(headers, "end_with_parent"):
            headers.end_with_parent(os.getppid())      # also while the user's function does not return
        zygote = Zygote(headers, lambda what: _tell(answers, {what: True}))
    except Exception as error:  # noqa: BLE001 - reported to whoever asked
        _tell(answers, {"error": str(error)})
        return
    _tell(answers, {"ready": True})
    actions: dict[str, Callable[..., Any]] = {
        "load": zygote.load, "measure": zygote.measure, "names": zygote.names, "results": zygote.results,
        "places": zygote.places, "copied": zygote.copied}
    for line in requests:
        request = json.loads(line)
        action = actions[request.pop("do")]
        try:
            answer: Any = {"answer": action(**request)}
        except FailedMeasurementError as error:
            answer = {"failed": str(error)}
        except FunctionRefusedError as error:
            answer = {"refused": str(error)}
        except (SystemExit, Exception) as error:  # noqa: BLE001 - of the user's module; Ctrl-C ends the process
            answer = _failure(error, request)
        _tell(answers, answer)


def _failure(error: BaseException, request: dict[str, Any]) -> dict[str, str]:
    """Return the answer to a request that failed: "unknown" is a name that leads to nothing, or to another function.

    What is imported here would be among the program's objects, but nothing is measured any more.
    """
    if isinstance(error, (NameMissingError, ModuleNotFoundError)):
        from gilscope.toolkit.measure.child.user_code import (  # noqa: PLC0415
            ImportMissingError,
            ModuleMissingError,
            RefusedError,
            resolve,
        )

        for name in filter(None, (request.get("function"), request.get("payloads"))):
            try:
                resolve(name)
            except ImportMissingError as refused:
                return {"refused": str(refused), "missing_import": refused.missing}
            except RefusedError as refused:
                missing = isinstance(error, NameMissingError) or isinstance(refused, ModuleMissingError)
                return {"unknown" if missing else "refused": str(refused)}
    if isinstance(error, TypeError) and "function" in request and (names := _missing(request)):
        how = ("give it with --payload LITERAL, or --payloads MODULE:NAME" if len(names) == 1 else
               "a payload is one argument: name a function that calls it with all it needs")
        return {"unknown": f"{request['function']} needs {', '.join(names)}; {how}"}
    return {"refused": _told(error)}


def _missing(request: dict[str, Any]) -> list[str]:
    """Return the names of the arguments that a call would have to have beside what it gets, if it gets too few."""
    import inspect  # noqa: PLC0415 - only what fails needs it

    if request.get("recipe") or request.get("maker"):
        return []
    try:
        parameters = inspect.signature(find(request["function"])).parameters.values()
    except (TypeError, ValueError):      # C code that has no signature
        return []
    needed = [each.name for each in parameters if each.default is each.empty
              and each.kind not in {each.VAR_POSITIONAL, each.VAR_KEYWORD}]
    given = int(request.get("payload") is not None or request.get("payloads") is not None)
    return needed if len(needed) > given else []


def _told(error: BaseException) -> str:
    """Return an error of the user's code with its place: "KeyError: 'x' (mine.py:7 in work)"."""
    from gilscope.toolkit.measure.child import user_code  # noqa: PLC0415 - only what fails needs it

    frames = user_code.own_frames(error)
    place = f" ({frames[-1][0]})" if frames else ""
    return message(f"{user_code.shown(error)}{place}")


def _tell(answers: Any, answer: Any) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
