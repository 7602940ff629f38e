"""Have a project's compiled functions called from several threads in a build, and judge what that shows.

Most of the time goes to a process whose allocator overwrites freed memory, the rest to one with the usual allocator.
They have different hash seeds and memory layouts: a result in one thread that differs between them depends on these,
so it is not compared with results of several threads.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from gilscope.toolkit.children.asking import ask
from gilscope.toolkit.hammer.candidates import FIND_SECONDS
from gilscope.toolkit.hammer.symbols import function_at, readable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from gilscope.toolkit.children.asking import ChildAnswer

CHILD = "gilscope.toolkit.hammer.child"
BUSY_FACTOR = 5.0        # on a busy machine, so many times the seconds at most, by the clock
SLACK_SECONDS = FIND_SECONDS + 70.0   # to start, and to finish a trial that does not end, with its repetition
# Variables of each process, with its share of the time.
FLAVOURS: tuple[tuple[dict[str, str], float], ...] = (({"PYTHONMALLOC": "debug"}, 0.7), ({}, 0.3))

FailureKind = Literal["crash", "hang", "counts-lost", "results-differ", "objects-differ"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HammerRequest:
    """The modules to hammer, and how."""

    modules: tuple[str, ...]              # extension modules: "pkg._codec"
    own: tuple[str, ...] = ()             # import names of the project, whose functions may call them
    folders: tuple[str, ...] = ()         # where they are imported from
    files: tuple[tuple[str, str], ...] = ()   # (path, name in reports) of tests, and of pages with examples
    threads: int
    seconds: float                        # of the cores, as far as other programs leave them
    limit: float | None = None            # seconds by the clock at most; None: BUSY_FACTOR times as many


@dataclass(frozen=True, slots=True, kw_only=True)
class HammerFailure:
    """A difference between several threads and one thread, with the functions called."""

    kind: FailureKind
    functions: tuple[str, ...]    # that were called: "label", "Counter.add"
    calls: tuple[str, ...]        # as the project's tests make them
    place: str                    # of one of them: "tests/test_codec.py:12"
    detail: str                   # "SIGSEGV in notes_recall", "2 values where one thread gets 1: 'L1', 'L2'"
    failed: int                   # trials
    trials: int                   # of these calls
    beside: tuple[str, ...] = ()  # what other threads did to the same objects: "len()", "changes of its list"


@dataclass(frozen=True, slots=True, kw_only=True)
class HammerReport:
    """The result of hammering a project's extension modules on a build."""

    threads: int
    seconds: float                    # for trials, as the request says
    missing: float = 0.0              # of these: other programs had the cores until the request's limit
    trials: int
    called: tuple[str, ...]           # functions and types, from several threads
    left_out: tuple[str, ...]         # no call of them was found in tests or documentation
    no_time: tuple[str, ...] = ()     # a call of them was found, and there was no time for it
    slow: int = 0                     # trials that did not end in time, which is no failure
    slow_functions: tuple[str, ...] = ()   # that they called
    waiting: tuple[str, ...] = ()     # functions whose calls wait for other threads, as locks do: no hang is judged
    complete: bool = True             # False: finding calls ended before all were tried
    failures: tuple[HammerFailure, ...] = ()
    problem: str = ""                 # why there was no trial that ended


def hammer(python: Path, request: HammerRequest, *, variables: Mapping[str, str] | None = None) -> HammerReport:
    """Call the functions of extension modules from several threads until the time is up.

    Args:
        python: The free-threaded interpreter of an environment that has what the modules need.
        request: The modules, and where calls are found.
        variables: Environment variables for the child.

    Raises:
        KeyboardInterrupt: The processes are gone.
    """
    longest = request.limit or BUSY_FACTOR * request.seconds

    def answer(share: float, seed: int, *, confirm: Sequence[str] = ()) -> ChildAnswer:
        sizes = {each["key"]: each["size"] for each in _events(answers, "repeated")}
        job = {"path": [], "first": [*request.folders], "modules": [*request.modules], "own": [*request.own],
               "files": [[*each] for each in request.files], "threads": request.threads, "seed": seed,
               "seconds": request.seconds * share, "limit": longest * share, "sizes": sizes, "confirm": [*confirm]}
        flavour, _ = FLAVOURS[(seed - 1) % len(FLAVOURS)]
        return ask(python, CHILD, "main", job, limit=longest * share + SLACK_SECONDS, options=("-X", "gil=0"),
                   variables={**(variables or {}), **flavour, "PYTHONHASHSEED": str(seed)})

    answers: list[ChildAnswer] = []
    for seed, (_, share) in enumerate(FLAVOURS, 1):   # each knows the sizes of those before
        answers.append(answer(share, seed))
    if doubtful := [*_expected_once(answers)]:
        answers.append(answer(0.0, len(FLAVOURS) + 1, confirm=doubtful))
    return judge(request, answers)


def _expected_once(answers: Sequence[ChildAnswer]) -> Iterator[str]:
    """Yield the keys of failures whose results in one thread only one process has."""
    known = Counter(each["key"] for each in _events(answers, "repeated"))
    failed = dict.fromkeys(each["key"] for each in _events(answers, "failure") if each["found"])
    return (key for key in failed if known[key] < 2)


def judge(request: HammerRequest, answers: Sequence[ChildAnswer]) -> HammerReport:
    """Merge the answers of the processes."""
    known = dict.fromkeys(name for record in _events(answers, "called") for name in record["called"])
    repeated = [*_events(answers, "repeated")]
    reached = {name for record in repeated for name in record["called"]}
    left_out = dict.fromkeys(name for record in _events(answers, "called") for name in record["left_out"])
    slow = [*_events(answers, "slow")]
    expected: dict[str, set[str]] = {}
    trials: Counter[str] = Counter()
    for each in repeated:
        trials[each["key"]] += each["trials"]
        expected.setdefault(each["key"], set()).add(each["expected"])
    twice = {key for key, count in Counter(each["key"] for each in repeated).items() if count > 1}
    sure = {key for key in twice if len(expected[key]) == 1}
    one_object = twice - {each["key"] for each in repeated if not each["one_object"]}
    failures = [each for each in _events(answers, "failure") if each["what"] in {"crash", "hang"}
                or each["key"] in (one_object if each["what"] == "objects" else sure)]
    return HammerReport(
        threads=request.threads, seconds=request.seconds, trials=sum(trials.values()),
        missing=sum(record["missing"] for record in _events(answers, "short")),
        called=tuple(name for name in known if name in reached),
        left_out=tuple(name for name in left_out if name not in known),
        no_time=tuple(name for name in known if name not in reached), slow=len(slow),
        slow_functions=tuple(dict.fromkeys(name for record in slow for name in record["names"])),
        waiting=tuple(dict.fromkeys(name for record in _events(answers, "waits") for name in record["names"])),
        complete=all(record["complete"] for record in _events(answers, "called")),
        failures=tuple(_failures(failures, trials)),
        problem="" if sum(trials.values()) > len(slow) else _problem(answers))


def _events(answers: Iterable[ChildAnswer], event: str) -> Iterator[dict[str, Any]]:
    return (record for answer in answers for record in answer.records if record["event"] == event)


def _problem(answers: Sequence[ChildAnswer]) -> str:
    """Return why no trial has ended: the first reason that explains the others."""
    def events(event: str) -> list[dict[str, Any]]:
        return [*_events(answers, event)]

    called = events("called")
    late = f"finding calls in its tests and documentation took more than {FIND_SECONDS:g} s"
    return next(chain(
        (str(record["error"]) for record in events("failed")),
        (answer.ending.reason for answer in answers if answer.ending.kind != "done"),
        (late for record in called if not record["complete"]),
        ("no trial ended in time" for _ in events("slow")),
        (f"its calls fail in one thread, too: {', '.join(record['names'])} {record['ending']}"
         for record in events("alone")),
        ("there was no time for a trial" for record in called if record["called"]),
        ["no call of its functions was found in its tests or documentation that can be repeated"]))


def _failures(records: Sequence[dict[str, Any]], trials: Mapping[str, int]) -> Iterator[HammerFailure]:
    """Yield one failure for each kind and set of functions."""
    groups: dict[tuple[FailureKind, tuple[str, ...]], list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault((_kind(record), tuple(record["names"])), []).append(record)
    for (kind, names), found in groups.items():
        # What it needs least for, and the one whose stack says most.
        shown = min(found, key=lambda each: (len(each["beside"]), not c_function(each["output"])))
        failed = sum(each["count"] for each in found)
        # The process may have ended before it said how many there were.
        made = sum(trials[key] for key in {each["key"] for each in found})
        yield HammerFailure(kind=kind, functions=names, calls=tuple(shown["calls"]), place=shown["places"][0],
                            detail=_detail(shown), failed=failed, trials=max(failed, made),
                            beside=tuple(shown["beside"]))


def _kind(record: Mapping[str, Any]) -> FailureKind:
    match record["what"]:
        case "crash":
            return "crash"
        case "hang":
            return "hang"
        case "objects":
            return "objects-differ"
        case "state" if _is_less(record["found"]["several"]["number"], record["found"]["one"]["number"]):
            return "counts-lost"
    return "results-differ"


def _is_less(several: float | None, one: float | None) -> bool:
    """Return True if both values are numbers, and several threads have left a smaller one than one thread."""
    return several is not None and one is not None and several < one


def _detail(record: Mapping[str, Any]) -> str:
    found = record["found"]
    if record["what"] in {"crash", "hang"}:
        if place := c_function(record["output"]):
            return f"{record['reason']} in {place}"
        # An object that a function gave away too often is freed by whoever drops it last.
        outside = interpreter_function(record["output"]) if record["what"] == "crash" else ""
        late = f" in CPython's {outside}, with none of its C functions on the stack"
        return f"{record['reason']}{late * bool(outside)}"
    if record["what"] == "state":
        return f"{found['several']['name']} {found['several']['value']}, and {found['one']['value']} with one thread"
    several = found["several"]
    shown = ", ".join(text for text, _ in several["few"])
    if record["what"] == "objects":
        return f"several objects for equal arguments ({shown}), one with one thread"
    one = found["one"]
    if one["values"] == several["values"] == 1:
        return f"{shown}, and {one['few'][0][0]} with one thread"
    return (f"{several['calls']} equal calls gave {several['values']} values ({shown}), and {one['values']} "
            "with one thread")


_FRAME = re.compile(r'Binary file "([^"]*)", at ([\w.]*)\+0x([0-9a-f]+)')
_SYSTEM = re.compile(   # libraries of the system and of Python
    r"/lib-dynload/|/(?:lib(?:c|m|pthread|gcc_s|stdc\+\+|c\+\+|c\+\+abi|python[\d.]+\w*)|ld-linux[\w-]*)[.-][^/]*$")
_LIBRARIES = ("std::", "__gnu_cxx::", "operator new", "operator delete", "pybind11::", "nanobind::", "boost::")


def interpreter_function(output: str) -> str:
    """Return the interpreter's function in which a signal came: the first one below the signal's frames of libc."""
    frames = [*_FRAME.findall(output)]
    libc = next((place for place, (file, _, _) in enumerate(frames) if "libc.so" in file), len(frames))
    return next((str(function) for file, function, _ in frames[libc:] if function and "python" in file), "")


def c_function(output: str) -> str:
    """Return the innermost function of an extension module in the stack of a crash, which 3.14 and later print.

    They print static functions as an offset.  The one that is called has the instruction before that.  The templates of
    a C++ library that the project's functions are made of count if there is no other function.
    """
    found = [named for file, function, offset in _FRAME.findall(output)
             if ".so" in file and not _SYSTEM.search(file)
             and (named := function or function_at(file, int(offset, 16) - 1))]
    names = readable(found)
    return next((name for name in names if not name.startswith(_LIBRARIES)), next(iter(names), ""))
