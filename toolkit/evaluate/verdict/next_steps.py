"""What to do next, the most urgent first: what blocks, then races, then costs, then the build to move to."""

from __future__ import annotations

import math
import re
import shlex
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from gilscope.toolkit.evaluate.evaluation import Word
from gilscope.toolkit.evaluate.packages.judge.status import Status
from gilscope.toolkit.evaluate.project.extensions.facts import NO_EXTENSIONS, OwnExtensions
from gilscope.toolkit.evaluate.project.suite.running import UNFINISHED, told_by
from gilscope.toolkit.evaluate.sections import (
    NO_TIME,
    NO_WORKLOAD,
    TOO_LONG,
    TOO_SHORT,
    WORKLOAD_FAILED,
    WORKLOAD_FAILS,
    Forced,
    Missing,
)
from gilscope.toolkit.evaluate.verdict import own_extensions
from gilscope.toolkit.evaluate.verdict.costs_and_gains import cost_doubt, may_tell_speed, worth
from gilscope.toolkit.gil.summary import A_LOCK, INNER_LOCK, LOCKS, THE_GIL, THE_WORLD
from gilscope.toolkit.units import few, format_minutes

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from gilscope.toolkit.evaluate.evaluation import BuildEvaluation, Conclusion
    from gilscope.toolkit.evaluate.packages.doctor import Finding
    from gilscope.toolkit.evaluate.sections import Contention, MachineFacts, Place, Pool, Races, TestRun

# What can be done about each status; the package and the build stand before it.
ADVICE = {
    Status.GIL: "look for a newer version of {name} that declares itself safe without the GIL, or do without it",
    Status.NO_WHEEL: "{name} has no wheel: build it from source (--build-sdists), or replace it",
    Status.NOT_FOUND: "{name} was not found: look at its spelling and version, and at the index in use",
    Status.LOST: "{name} runs without its C code: measure what that costs you, or pin a build that has a wheel",
    Status.CRASH: "report the crash of {name} to its owners; --explain {name} has its stack",
    Status.HANG: "report the hang of {name} to its owners; --explain {name} shows where it stood",
    Status.FAILS: "{name} cannot be imported: --explain {name} has the error",
    Status.UNKNOWN: "{name} could not be judged: --explain {name} says why",
}

# What limits a library's own threads.
LIMITS = {"OpenBLAS": "OPENBLAS_NUM_THREADS", "MKL": "MKL_NUM_THREADS", "BLIS": "BLIS_NUM_THREADS",
          "OpenMP": "OMP_NUM_THREADS"}
TIME_FOR_COST = 120.0   # seconds beside all else, in which a short workload is measured on two pairs of builds
LEAST_WAITED = 0.02   # seconds of all threads: less costs nobody anything
MOST_LINES = 3
# By what threads wait for; anything else is an object that they share.
WAITS = {
    THE_WORLD: ("threads wait there until all of them have stopped: if that is the garbage collector, have it collect "
                "less often (gc.freeze, gc.set_threshold), or make fewer objects that refer to others"),
    A_LOCK: ("threads wait for a lock there: hold it only around what belongs together, or have a lock for each part "
             "of what it guards"),
    INNER_LOCK: "threads wait there for each other inside the interpreter: do it less often",
}
UNTOLD = "threads wait for each other there; gilscope gil shows for what"
SHARED = "let each thread have an object of its own there, and merge them later"
NOBODY = Missing(reason="the machine was not looked at")


def next_steps(
    builds: Sequence[BuildEvaluation], races: Races | Missing, conclusions: Sequence[Conclusion],
    extensions: OwnExtensions = NO_EXTENSIONS, *, machine: MachineFacts | Missing = NOBODY, needed: Container[str] = (),
    seconds: float = 0.0, measuring: str = "",
) -> tuple[str, ...]:
    """Return one sentence for each thing to do.

    Args:
        builds: What was found.
        races: Likewise.
        conclusions: What it comes to.
        extensions: Of the project's own.
        machine: Whether it was quiet.
        needed: Normalized names of what the program itself needs, not its tests alone.
        seconds: What all of it took.
        measuring: The file that holds the workload, where it is no part of the project.
    """
    steps = [*own_extensions.steps(builds, extensions), *_packages(builds), *_mending(builds), *_races(races),
             *_modules(builds), *_tests(builds, needed), *_left_out(builds), *_workload(builds, extensions),
             *_cost(builds, machine, seconds), *_contention(builds, measuring), *_pools(builds)]
    ready = [each.target for each in conclusions if each.word in {Word.READY, Word.WITH_COST}]
    if ready:
        steps.append(f"try {ready[0]} with your program's own load; gilscope gil shows where its threads wait")
    return tuple(_together(steps, [build.build.label for build in builds]))


def _together(steps: Iterable[str], labels: Sequence[str]) -> Iterator[str]:
    """Yield each step once, behind the labels of all builds that it is for."""
    where: dict[str, list[str]] = {}
    for step in steps:
        label, _, rest = step.partition(": ")
        if label in labels:
            where.setdefault(rest, []).append(label)
        else:
            where.setdefault(step, [])
    for text, found in where.items():
        yield f"{', '.join(dict.fromkeys(found))}: {text}" if found else text


def _packages(builds: Sequence[BuildEvaluation]) -> Iterator[str]:
    where: dict[str, list[str]] = {}
    mended: dict[tuple[str, str], list[str]] = {}
    for build in builds:
        for finding in _findings(build):
            if finding.verdict.status in ADVICE and not newer_version(build, finding):
                where.setdefault(advice_on(build, finding), []).append(build.build.label)
            if newer := newer_version(build, finding):
                mended.setdefault((finding.name, newer), []).append(build.build.label)
    for (name, version), labels in mended.items():
        yield f"{', '.join(labels)}: take {name} {version}, which mends it"
    for advice, labels in where.items():
        yield f"{', '.join(labels)}: {advice}"


def advice_on(build: BuildEvaluation, finding: Finding) -> str:
    """Return what can be done about a package that no newer version is known to mend."""
    assert not isinstance(build.readiness, Missing)
    newest, status = build.readiness.newest.get(finding.name, ("", None))
    if finding.verdict.status is Status.GIL and newest and status:   # not mended by it
        does = "still turns the GIL on" if status is Status.GIL else f"is no way out ({status.value})"
        return f"{finding.name} {newest}, the newest, {does}: ask its owners, or do without it"
    return ADVICE[finding.verdict.status].format(name=finding.name)


def newer_version(build: BuildEvaluation, finding: Finding) -> str:
    """Return the newest version when it is known to run on the build, "" otherwise."""
    assert not isinstance(build.readiness, Missing)
    version, status = build.readiness.newest.get(finding.name, ("", finding.verdict.status))
    return version if status.mends and version != finding.version else ""


def _mending(builds: Sequence[BuildEvaluation]) -> Iterator[str]:
    """Yield what it could bring that nothing turns the GIL on any more, or that it takes more than to say so."""
    for build in builds:
        if isinstance(build.forced, Forced) and build.forced.failure:
            yield (f"{build.build.label}: it takes more than packages that declare that they can do without the GIL: "
                   f"with it forced off, {_broke(build.forced)}")
        if faster := worth(build.forced):
            yield (f"{build.build.label}: weigh what it takes to keep the GIL off against what that could bring: with "
                   f"the GIL forced off, which is not safe, the workload is {faster}")


def _broke(forced: Forced) -> str:
    return forced.failure if forced.by == "tests" else f"the workload fails: {forced.failure}"


def _findings(build: BuildEvaluation) -> tuple[Finding, ...]:
    return () if isinstance(build.readiness, Missing) else build.readiness.findings


def _races(races: Races | Missing) -> Iterator[str]:
    if isinstance(races, Missing):
        return
    for race in races.found:
        if race.violation and race.repair:   # a lock is there, and is let go in between
            yield f"{race.where}: {race.repair[0].lower()}{race.repair[1:].rstrip('.')} ({race.variable}: {race.kind})"
        else:
            yield f"{race.where}: guard {race.variable} with a lock ({race.kind})"
    for each in races.unwatched[:MOST_LINES]:
        yield (f"{each.file}:{each.line}: look at {each.what}: several threads run it, and nothing watched it; guard "
               "it, or say why it may be (# race: ok WHY)")


def _tests(builds: Sequence[BuildEvaluation], needed: Container[str]) -> Iterator[str]:
    for build in builds:
        if build.tests == NO_TIME or _unfinished(build.tests):
            yield (f"{build.build.label}: evaluate once more, within a larger --budget{_whole(build.tests)}: what was "
                   "installed is kept")
            continue
        if isinstance(build.tests, Missing):
            # Where nothing was installed, no other command would run them.
            if "--offline" not in build.tests.reason:
                yield f"{build.build.label}: have its tests run, named by --tests if need be ({build.tests.reason})"
            continue
        if build.tests.lacking and (build.tests.errors or build.tests.left_out):
            yield from _lacking(build, build.tests.lacking, needed)
        elif build.tests.broken > (0 if isinstance(build.reference_tests, Missing) else build.reference_tests.broken):
            yield f"{build.build.label}: look at the failing tests{_which(build.tests)}"
        elif build.tests.broken and isinstance(build.cost, Missing) and build.cost.reason.startswith(NO_WORKLOAD):
            yield (f"mend the tests that fail with the GIL, too{_which(build.tests)}; or name a --workload, to measure "
                   "what one thread costs")
        elif build.tests.ending not in {"0", "1"} and build.tests.ending.isdecimal() and not build.tests.passed:
            yield from () if any(_modules([build])) else _start(build.tests)


def _whole(tests: TestRun | Missing) -> str:
    """Return how long all of the tests would take, where their output says how far they came; "" otherwise."""
    done = None if isinstance(tests, Missing) else re.search(r", at (\d+) %$", tests.ending)
    if isinstance(tests, Missing) or done is None or done[1] == "0":
        return ""
    return f", as its tests take about {format_minutes(tests.seconds * 100 / int(done[1]))}"


def _modules(builds: Sequence[BuildEvaluation]) -> Iterator[str]:
    """Yield which modules keep tests from running that are not there; what its own build did not make is none."""
    for build in builds:
        tests = build.tests
        if isinstance(tests, Missing) or (build.own and (build.own.failure or build.own.unbuilt)):
            continue
        texts = [*([] if tests.ran else [tests.output]), *(each.why for each in tests.left_out)]
        known = {canonicalize_name(name) for name in (*tests.lacking, *(each.name for each in _findings(build)))}
        for name in dict.fromkeys(re.findall(r"No module named '(\w+)", " ".join(texts))):
            if canonicalize_name(name) not in known:
                yield (f"install {name}, which the tests import and which is not there: name it in an extra, group or "
                       "file for tests, so that they run")


def _lacking(build: BuildEvaluation, lacking: Iterable[str], needed: Container[str]) -> Iterator[str]:
    """Yield what to do without packages that could not be installed; what is in the way itself has a step already."""
    said = {canonicalize_name(each.name) for each in _findings(build) if each.verdict.status in ADVICE}
    for name in lacking:
        if (key := canonicalize_name(name)) in said:
            continue
        if key in needed:
            yield (f"{build.build.label}: {name} could not be installed, and the program itself needs it: build it "
                   "from source (--build-sdists), or replace it")
        else:
            yield f"{build.build.label}: let the tests do without {name}, or replace it"


def _left_out(builds: Sequence[BuildEvaluation]) -> Iterator[str]:
    """Yield what to do about files of tests that could not be collected: mend them, or leave them out on purpose."""
    for build in builds:
        if isinstance(build.tests, Missing) or not build.tests.left_out or build.tests.lacking:
            continue
        files = [each.file for each in build.tests.left_out]
        yield (f"have {', '.join(files)} collected, or leave {'it' if len(files) == 1 else 'them'} out on purpose: "
               f"--tests {shlex.quote(shlex.join(('python', *build.tests.command[1:])))}")


def _unfinished(tests: TestRun | Missing) -> bool:
    return not isinstance(tests, Missing) and tests.ending.startswith(UNFINISHED)


def _start(tests: TestRun) -> Iterator[str]:
    """Yield what keeps the tests from their start; the same for all builds, as a rule."""
    why = told_by(tests.output)
    if why:
        yield f"have the tests start: {why}; if they lack a package, name it in an extra, group or file for tests"


def _which(tests: TestRun) -> str:
    return f": {few(tests.failing)}" if tests.failing else ""


def _workload(builds: Sequence[BuildEvaluation], extensions: OwnExtensions) -> Iterator[str]:
    in_c = any(each.remarks for each in extensions.sources)
    look = "; --explain extensions lists the places of its C code to look at" if in_c else ""
    for build in builds:
        if isinstance(build.cost, Missing) and build.cost.reason.startswith(WORKLOAD_FAILED):
            yield f"have the workload run: it{build.cost.reason.removeprefix('the workload')}"
        elif build.failure.startswith(WORKLOAD_FAILS):
            yield (f"{build.build.label}: find out why the workload fails there "
                   f"({build.failure.removeprefix(WORKLOAD_FAILS)}){look}")


def _cost(builds: Sequence[BuildEvaluation], machine: MachineFacts | Missing, seconds: float) -> Iterator[str]:
    """Yield how to get to know what one thread costs, where that is what is not known."""
    for build in builds:
        if build.cost == NO_TIME and not (build.tests == NO_TIME or _unfinished(build.tests)):   # which say it already
            yield (f"raise --budget to about {enough(seconds)}, to measure what one thread costs: what was measured is "
                   "kept")
        if isinstance(build.cost, Missing):
            why = build.cost.reason
            if why.startswith(NO_WORKLOAD) and (TOO_SHORT in why or TOO_LONG in why):
                yield ("name what the program does for one request or job, to measure what it costs: --workload "
                       "SCRIPT, or --workload MODULE:FUNCTION")
        elif (cost_doubt(build.cost, told=may_tell_speed(machine)) and not isinstance(machine, Missing)
              and machine.may_get_quiet):
            yield "repeat when the machine is quiet, or with --wait-quiet, to know what one thread costs"


def enough(seconds: float) -> str:
    """Return a budget in which what took so long leaves time for the cost of one thread, as --budget takes it."""
    return f"{math.ceil((seconds + TIME_FOR_COST) / 60)}m"


def _contention(builds: Sequence[BuildEvaluation], measuring: str) -> Iterator[str]:
    """Yield the project's own lines where threads wait for each other; what a library does there is its own affair.

    So is what the workload's file does that was written to measure the project.
    """
    lines = {(place.file, place.line): place for build in builds for place in own_places(build)
             if place.file != measuring}
    for (file, line), place in list(lines.items())[:MOST_LINES]:
        yield f"{file}:{line}: {WAITS.get(place.what) or (SHARED if _is_object(place.what) else UNTOLD)}"


def _is_object(what: str) -> bool:
    return what.startswith(("a ", "an ")) and what not in LOCKS


def own_places(build: BuildEvaluation) -> Iterator[Place]:
    """Yield the project's own lines where threads waited for each other long enough for a word.

    None where they waited for cores: then it is the machine that kept the one that all others waited for.
    """
    if isinstance(build.contention, Missing) or build.contention.parked is None:
        return
    for place in build.contention.places:
        # Where they wait for the GIL, a package has turned it on.
        if is_own(place.file) and place.seconds >= LEAST_WAITED and place.what != THE_GIL:
            yield place


def worst_lines(builds: Sequence[BuildEvaluation]) -> list[tuple[str, int]]:
    """Return the project's own lines that a change would help: not where all threads are stopped for a collection."""
    return list(dict.fromkeys((place.file, place.line) for build in builds for place in own_places(build)
                              if place.what != THE_WORLD))[:MOST_LINES]


def is_own(file: str) -> bool:
    """Return whether a file is the project's, as `Shown` names them."""
    return not file.startswith(("/", "<", "lib/", "site-packages/"))


def crowds(found: Contention) -> Iterator[str]:
    """Yield which libraries start more threads than there are cores, in as many threads of the workload."""
    for pool in _crowding(found):
        yield (f"{found.threads} threads, for each of which {pool.library} may use {pool.threads} of its own, on "
               f"{found.cores} cores")


def _crowding(found: Contention) -> list[Pool]:
    threads, cores = found.threads or 1, found.cores
    return [pool for pool in found.pools if threads > 1 < pool.threads and cores and threads * pool.threads > cores]


def _pools(builds: Sequence[BuildEvaluation]) -> Iterator[str]:
    for build in builds:
        for pool in [] if isinstance(build.contention, Missing) else _crowding(build.contention):
            yield f"set {LIMITS[pool.library]}=1 where threads of yours do the work: each has {pool.library} start more"
