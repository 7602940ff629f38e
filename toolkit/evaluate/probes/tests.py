"""Facts about the project's own tests on each build without a GIL, beside those on its counterpart with a GIL."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from gilscope.toolkit.evaluate.facts import FREE_THREADING, Codes, Effect, Fact, Kind, PlanStep, TableCell, Topic
from gilscope.toolkit.evaluate.readings import NOT_BY_TESTS, turns_gil_on
from gilscope.toolkit.evaluate.sections import Cause, Missing, Remedy, cause_of, known
from gilscope.toolkit.units import counted, few, format_minutes, inflect

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.evaluate.evaluation import Evaluation
    from gilscope.toolkit.evaluate.sections import LeftOut, TestRun

MUCH_LONGER = 10       # times what the tests take with the GIL: no longer a matter of a budget that was too small
UNFINISHED = Missing(reason="the tests were not done on the build with the GIL", cause=Cause.TIME)
AGAIN = "evaluate once more, within a larger --budget{}: what was installed is kept"
CODES = Codes({
    "tests.cannot-be-collected": Kind(Effect.BLOCKS),
    "tests.crash": Kind(Effect.BLOCKS),
    "tests.crawl": Kind(Effect.BLOCKS),
    "tests.exit-code": Kind(Effect.BLOCKS),
    "tests.fail-only-here": Kind(Effect.BLOCKS),
    "tests.hang": Kind(Effect.BLOCKS),
    "tests.turn-gil-on": Kind(Effect.BLOCKS),
    "tests.exit-code-with-gil-too": Kind(Effect.UNKNOWN),
    "tests.gil-not-known": Kind(Effect.UNKNOWN),
    "tests.lack-packages": Kind(Effect.UNKNOWN),
    "tests.none-pass": Kind(Effect.UNKNOWN),
    "tests.not-compared": Kind(Effect.UNKNOWN),
    "tests.not-run": Kind(Effect.UNKNOWN, step=PlanStep.TESTS),
    "tests.unfinished": Kind(Effect.UNKNOWN),
    "tests.pass": Kind(Effect.SUPPORTS),
    "tests.file-not-looked-at": Kind(Effect.NOT_LOOKED_AT),
    "tests.all-pass": Kind(Effect.NOTE, step=PlanStep.TESTS, state="done"),
    "tests.do-not-start": Kind(Effect.NOTE),
    "tests.fail-with-gil-too": Kind(Effect.NOTE),
    "tests.failing": Kind(Effect.NOTE),
    "tests.leave-out": Kind(Effect.NOTE),
    "tests.left-out": Kind(Effect.NOTE, heading=Topic.LEFT_OUT),
    "tests.module-missing": Kind(Effect.NOTE),
    "tests.not-all-pass": Kind(Effect.NOTE, step=PlanStep.TESTS, state="open"),
    "tests.only-without-gil": Kind(Effect.NOTE, heading=Topic.LEFT_OUT),
    "tests.package-missing": Kind(Effect.NOTE),
    "tests.to-look-at": Kind(Effect.NOTE),
    "tests.unfinished-with-gil": Kind(Effect.NOTE),
}, subject="tests")
fact = CODES.fact


def facts(found: Evaluation) -> Iterator[Fact]:
    """Yield the results of the project's tests on each build without a GIL."""
    for label in found.labels:
        match found.tests[label]:
            case Missing() as missing:
                yield from _not_run(found, label, missing)
            case tests:
                yield from _ran(found, label, tests)
        yield from _with_the_gil(found, label)


def _not_run(found: Evaluation, label: str, missing: Missing) -> Iterator[Fact]:
    late = missing.cause is Cause.TIME
    # Where nothing was installed, no other command would run them.
    run = f"have its tests run; --tests names them ({missing.reason})"
    other = "" if missing.cause is Cause.OFFLINE else run
    yield fact("tests.not-run", label, _beside_tests(found, label, "run on it"), confidence="low",
               missing=missing, part="tests", evidence=missing.reason, action=AGAIN.format("") if late else other,
               cells=(TableCell("tests", "-", (missing.reason,)),))


def _with_the_gil(found: Evaluation, label: str) -> Iterator[Fact]:
    """Yield why another call may tell more of the tests on the counterpart with a GIL."""
    tests = found.tests_with_gil(label)
    there = known(tests)
    if cause_of(tests) is Cause.TIME or (there is not None and there.ending.kind == "unfinished"):
        yield fact("tests.unfinished-with-gil", label, UNFINISHED.reason, missing=UNFINISHED)


def _ran(found: Evaluation, label: str, tests: TestRun) -> Iterator[Fact]:
    there, own = known(found.tests_with_gil(label)), found.own.get(label)
    # Without the project's modules its tests fail, too: that is one thing to mend.
    if not (own and own.failure and own.elsewhere):
        yield from _blocking(found, label, tests, there)
    if (unknown := _unknown(found, label, tests)) is not None:
        yield unknown
    elif there is None and tests.left_out and not tests.lacking:
        yield _not_compared(label, tests.left_out)
    yield from _evidence(label, tests)
    yield from _failing(found, label, tests, there)
    yield from _packages_missing(found, label, tests)
    yield from _left_out(label, tests, there)
    if there is not None and not tests.lacking:
        yield from _only_here(label, tests, there)


def _blocking(found: Evaluation, label: str, tests: TestRun, there: TestRun | None) -> Iterator[Fact]:
    """Yield the differences from the tests with the GIL."""
    if tests.gil_end:
        by = f" ({', '.join(tests.culprits)})" if tests.culprits else ""
        yield fact("tests.turn-gil-on", label, f"the GIL was on at the end of the tests{by}",
                   consequence=turns_gil_on(found, label))
    ending = tests.ending
    same = there is not None and (there.ending == ending or ending.kind == "hang" == there.ending.kind)
    if ending.kind in {"crash", "hang"} and not same:
        yield fact(f"tests.{ending.kind}", label, f"the tests {ending}")
    elif (ending.kind == "unfinished" and there and there.ending.kind == "exit"
          and tests.seconds > MUCH_LONGER * there.seconds):
        yield fact("tests.crawl", label,
                   f"the tests hang or crawl: {ending.reached}, and take {there.seconds:.0f} s on "
                   f"{there.build}")
    elsewhere = {each.file for each in there.left_out} if there else set()
    for each in () if tests.lacking else tests.left_out:
        if there is not None and each.file not in elsewhere:
            yield fact("tests.cannot-be-collected", label,
                       f"{each.file} cannot be collected, and can on {there.build}: {each.why}")
    # Tests that lack a package say nothing of the build.
    broken = (tests.failed or 0) if tests.lacking else tests.broken
    more = broken - (there.broken if there else 0)
    if more > 0:
        text = counted(more, "test fails", "tests fail")
        passing = f" that {inflect(more, 'passes', 'pass')} on {there.build}" if there else ""
        yield fact("tests.fail-only-here", label, f"{text}{passing}")
    elif ending.failed and not (broken or tests.lacking) and (there is None or there.ending.succeeded):
        succeeding = f", not on {there.build}" if there else ""
        yield fact("tests.exit-code", label, f"the tests end with {_exit_code(tests)}{succeeding}")


def _exit_code(tests: TestRun) -> str:
    return f"exit code {tests.ending}{f' ({tests.error})' if tests.error else ''}"


def _not_compared(label: str, left_out: Sequence[LeftOut]) -> Fact:
    """Return that files of tests that cannot be collected say nothing, without the same tests with the GIL."""
    text = (f"{counted(len(left_out), 'file of tests', 'files of tests')} cannot be collected, and whether they can "
            f"with the GIL is not known: {left_out[0].file}: {left_out[0].why}")
    return fact("tests.not-compared", label, text, missing=Missing(reason=text), remedy=Remedy.REPAIR)


def _unknown(found: Evaluation, label: str, tests: TestRun) -> Fact | None:
    """Return why the tests tell nothing of the build, or None."""
    def unknown(code: str, text: str, *, remedy: Remedy | None = Remedy.REPAIR, action: str = "") -> Fact:
        cause = Cause.TIME if remedy is Remedy.TIME else Cause.OTHER
        return fact(code, label, text, action=action, missing=Missing(reason=text, cause=cause), remedy=remedy)

    broken_off = tests.ending.failed and not tests.passed
    if tests.ending.kind == "unfinished":
        whole = f", as its tests take about {format_minutes(tests.seconds * 100 / tests.ending.percent)}" if (
            tests.ending.percent) else ""
        return unknown("tests.unfinished", f"the tests were {tests.ending.reached}, all that the budget left for them",
                       remedy=Remedy.TIME, action=AGAIN.format(whole))
    if tests.lacking and (tests.errors or tests.left_out or not tests.passed):
        return unknown("tests.lack-packages", f"tests could not be run, as {', '.join(tests.lacking)} could not be "
                       "installed", remedy=Remedy.REPAIR if tests.broken or not tests.passed else None)
    if broken_off:
        return unknown("tests.exit-code-with-gil-too",
                       f"the tests end with {_exit_code(tests)}, with the GIL, too: {_beside_tests(found, label)}")
    if tests.passed == 0:
        return unknown("tests.none-pass", f"not one test passes: {_beside_tests(found, label)}")
    if tests.gil_end is None:
        return unknown("tests.gil-not-known", "whether the GIL was off at the end of the tests is not known",
                       remedy=None if tests.passed else Remedy.REPAIR)
    return None


def _beside_tests(found: Evaluation, label: str, how: str = "seen") -> str:
    """Return which of the project's code ran, or `how`, where its tests show nothing."""
    cost, races = known(found.speed[label].cost), known(found.races)
    measured = cost is not None and cost.by != "tests"
    raced = races is not None and any(look.of in {"workload", "script"} for look in races.looks)
    return f"of the project only the workload was {how}" if measured or raced else f"nothing of the project was {how}"


def _evidence(label: str, tests: TestRun) -> Iterator[Fact]:
    """Yield that tests pass, if any do without the GIL, and that their step is done if all of them do."""
    passed = {None: "the tests pass", 1: "1 test passes"}.get(tests.passed, f"{tests.passed} tests pass")
    if not tests.gil_end and (tests.ending.succeeded if tests.passed is None else tests.passed):
        yield fact("tests.pass", label, f"{passed}, and the GIL is off at their end")
    done = "they pass" if tests.passed is None else f"{counted(tests.passed, 'test')} passed, the GIL off at their end"
    said = f"{tests.broken} of {tests.broken + (tests.passed or 0)} fail" if tests.broken else (
        f"they end with {tests.ending}" if not tests.ending.succeeded else f"{tests.passed} pass")
    left = f"; left out: {', '.join(each.file for each in tests.left_out)}" if tests.left_out else ""
    whole = tests.ending.succeeded and not (tests.broken or tests.left_out or tests.gil_end)
    text = done if whole else f"the GIL was on at their end{left}" if tests.gil_end else f"{said}{left}"
    yield fact("tests.all-pass" if whole else "tests.not-all-pass", label, text, cells=(_cell(tests),))


def _cell(tests: TestRun) -> TableCell:
    if tests.passed is None:
        return TableCell("tests", f"exit code {tests.ending}" if tests.ending.kind == "exit" else tests.ending.kind)
    out = f"without {counted(len(tests.left_out), 'file')} of tests, which cannot be collected, see below"
    return TableCell("tests", f"{tests.passed}/{tests.passed + tests.broken}", (out,) * bool(tests.left_out))


def _failing(found: Evaluation, label: str, tests: TestRun, there: TestRun | None) -> Iterator[Fact]:
    """Yield the failing tests, whether they also fail with the GIL, and the action."""
    count = tests.broken
    named = f": {few(tests.failing)}" if tests.failing else ""
    if count:
        same = bool(tests.failing) and there is not None and set(tests.failing) <= set(there.failing)
        yield fact("tests.failing", label,
                   f"{counted(count, 'test fails', 'tests fail')}"
                   f"{', with the GIL as well' if same else ''}{named}")
    if tests.ending.kind == "unfinished" or (tests.lacking and (tests.errors or tests.left_out)):
        return   # more time, or the packages that are missing, come first
    if count > (there.broken if there else 0):
        yield fact("tests.to-look-at", label, f"tests fail there{named}", action=f"look at the failing tests{named}")
    elif count and cause_of(found.speed[label].cost) in NOT_BY_TESTS:
        yield fact("tests.fail-with-gil-too", FREE_THREADING, f"tests fail with the GIL, too{named}",
                   action=f"mend the tests that fail with the GIL, too{named}; or name a --workload, to measure what "
                          "one thread costs")
    elif (tests.ending.failed and tests.ending.code != 1 and not tests.passed and tests.error
          and not any(_modules(found, label, tests))):
        yield fact("tests.do-not-start", FREE_THREADING, tests.error,
                   action=f"have the tests start: {tests.error}; if they lack a package, name it in "
                          "an extra, group or file for tests")


def _modules(found: Evaluation, label: str, tests: TestRun) -> Iterator[str]:
    """Yield the modules that tests import and that are missing; not those that the project's own build did not make."""
    own = found.own.get(label)
    if own and (own.failure or own.unbuilt):
        return
    report = known(found.packages[label])
    names = (*tests.lacking, *(each.name for each in (report.findings if report else ())))
    familiar = {canonicalize_name(name) for name in names}
    for name in tests.missing_modules:
        if canonicalize_name(name) not in familiar:
            yield name


def _packages_missing(found: Evaluation, label: str, tests: TestRun) -> Iterator[Fact]:
    """Yield the actions for missing modules and packages that tests need."""
    for name in _modules(found, label, tests):
        yield fact("tests.module-missing", FREE_THREADING, f"the tests import {name}, which is not there", subject=name,
                   action=_have_module(name, sdist=(found.project.root / "PKG-INFO").is_file()))
    if tests.ending.kind == "unfinished" or not (tests.lacking and (tests.errors or tests.left_out)):
        return
    report = known(found.packages[label])
    advised = {canonicalize_name(each.name) for each in (report.findings if report else ())
               if each.verdict.status.advice}
    for name in tests.lacking:
        key = canonicalize_name(name)
        if key in advised:
            continue   # it has an action of its own
        needed = key in found.needed
        yield fact("tests.package-missing", label, f"{name} could not be installed", subject=name,
                   action=f"{name} could not be installed, and the program itself needs it: build it from source "
                          "(--build-sdists), or replace it" if needed
                   else f"let the tests do without {name}, or replace it")


def _have_module(name: str, *, sdist: bool) -> str:
    """Return the action for a module that tests import and that is in no requirement: a package, or a file of theirs.

    Only the project knows which: a package of that name in a registry may be somebody else's.
    """
    file = "a file that this sdist lacks (evaluate a checkout)" if sdist else "a file of the project (put it there)"
    return (f"the tests import {name}, which is not there: is it {file}, or a package (name it in an extra, group or "
            "file for tests)?")


def _left_out(label: str, tests: TestRun, there: TestRun | None) -> Iterator[Fact]:
    """Yield the files of tests that could not be collected: mend them, or leave them out on purpose."""
    for each in tests.left_out:
        as_well = _with_gil(each, there)
        yield fact("tests.left-out", label, f"{each.file} cannot be collected{as_well}: {each.why}", subject=each.file)
        yield fact("tests.file-not-looked-at", label, f"cannot be collected, see {Topic.LEFT_OUT}", subject=each.file)
    if tests.left_out and not tests.lacking:
        files = [each.file for each in tests.left_out]
        command = shlex.quote(shlex.join(("python", *tests.command[1:])))
        yield fact("tests.leave-out", FREE_THREADING, f"{', '.join(files)} cannot be collected",
                   action=f"have {', '.join(files)} collected, or leave {'it' if len(files) == 1 else 'them'} out on "
                          f"purpose: --tests {command}")


def _only_here(label: str, tests: TestRun, there: TestRun) -> Iterator[Fact]:
    """Yield the files of tests that only the build with the GIL cannot collect."""
    here = {each.file for each in tests.left_out}
    for each in there.left_out:
        if each.file not in here:
            yield fact("tests.only-without-gil", label,
                       f"{each.file} runs here and cannot be collected on {there.build}: {each.why}; it counts in "
                       "tests and races, not in what one thread costs", subject=each.file)


def _with_gil(out: LeftOut, there: TestRun | None) -> str:
    """Return that a file of tests cannot be collected with the GIL either, where it is so."""
    return ", with the GIL as well" if there and out.file in {each.file for each in there.left_out} else ""
