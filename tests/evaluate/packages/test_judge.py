"""What is seen becomes what it is called; made-up observations, no process."""

from dataclasses import replace

import pytest

from gilscope.toolkit.builds.package_installer import NO_SUCH_VERSION, NOT_FOUND, WITHOUT_WHEEL, InstallProblem
from gilscope.toolkit.evaluate.packages.evidence import (
    Distribution,
    Extension,
    ExtensionLoad,
    ImportRun,
    ImportStep,
    InterpreterStatus,
    PackageEvidence,
    Status,
)
from gilscope.toolkit.evaluate.packages.judge import judge_interpreters, judge_package, lost_modules

C = "thing._c"
THING = Distribution(name="thing", version="1.0", modules=("thing",), inner=("thing.a", "thing.b"), tags=(), pure=False,
                     extensions=((C, "/site/thing/_c.so"),))
PURE = Distribution(name="thing", version="1.0", modules=("thing",), inner=(), tags=(), pure=True, extensions=())
LIBRARIES = replace(PURE, pure=False)


def load(name=C, *, gil="not-used", error=None, part="roots", swallowed=False):
    return ExtensionLoad(name=name, file="/site/thing/_c.so", gil=gil, flipped=gil == "used", error=error, part=part,
                         chain=(), swallowed=swallowed)


def run(*loads, imported=("thing",), failed=(), kind="done", reason="", during="", gil_on=False, present=()):
    return ImportRun(imported=imported, failed=failed, loads=loads, kind=kind, reason=reason, during=during,
                     gil_on=gil_on, stdlib=(), present=present)


def extension(gil="not-used", problem=""):
    if problem:
        return Extension(name=C, file="/site/thing/_c.so", problem=problem)
    return Extension(name=C, file="/site/thing/_c.so", init="multi-phase", gil=gil, interpreters="shared-gil")


CRASH = run(kind="crash", reason="crashed with SIGSEGV", during=C, imported=(), gil_on=None)
HANG = run(kind="hang", reason="did not end within 9 s", during=C, imported=(), gil_on=None)
FAILS = run(imported=(), failed=(("thing", "ImportError: no"),))

NO_SQLITE = "ModuleNotFoundError: No module named '_sqlite3'"
NO_ZSTD = run(imported=(), failed=(("thing", "ModuleNotFoundError: No module named '_zstd'"),))
CASES = {
    "not installed": (PackageEvidence(distribution=None, missing=WITHOUT_WHEEL), Status.NO_WHEEL),
    "not in the index": (PackageEvidence(distribution=None, missing=NOT_FOUND), Status.NOT_FOUND),
    "no such version": (PackageEvidence(
        distribution=None, missing=replace(NO_SUCH_VERSION, more="the newest is 2.0")), Status.NOT_FOUND),
    "words of the index that another problem has": (PackageEvidence(
        distribution=None, missing=InstallProblem(f"{NOT_FOUND.reason}, says its build")), Status.NO_WHEEL),
    "an old version from before its C code, as the new one has no wheel": (
        PackageEvidence(distribution=PURE, newer="4.4.0", run=run(), reference=run(), reference_distribution=PURE),
        Status.NO_WHEEL),
    "loaded and needs no GIL": (
        PackageEvidence(distribution=THING, extensions=(extension(),), run=run(load()), reference=run(load(gil=None)),
                        reference_distribution=THING), Status.READY),
    "without a counterpart": (
        PackageEvidence(distribution=THING, extensions=(extension(),), run=run(load())), Status.READY),
    "no C code on any build": (
        PackageEvidence(distribution=PURE, run=run(), reference=run(), reference_distribution=PURE), Status.PURE),
    "its slots say so although it was not loaded": (
        PackageEvidence(distribution=THING, extensions=(extension(gil="used"),), run=run()), Status.GIL),
    "seen at import although its slots say otherwise": (
        PackageEvidence(distribution=THING, extensions=(extension(),),
                        run=run(load(gil="used"), gil_on=True)), Status.GIL),
    "on a build with a GIL it is always on": (
        PackageEvidence(distribution=THING, free_threaded=False, extensions=(extension(gil="used"),),
                        run=run(load(gil=None))),
        Status.READY),
    "in the wheel of the counterpart alone": (
        PackageEvidence(distribution=PURE, run=run(), reference=run(load()),
                        reference_distribution=THING), Status.LOST),
    "loaded by its name alone, where the package itself loads it with the GIL": (
        PackageEvidence(distribution=THING, extensions=(extension(),), run=run(load(part="extensions")),
                        reference=run(load()), reference_distribution=THING), Status.LOST),
    "loaded by its name alone on both": (
        PackageEvidence(distribution=THING, extensions=(extension(),), run=run(load(part="extensions")),
                        reference=run(load(part="extensions")), reference_distribution=THING), Status.READY),
    "libraries for ctypes in the wheel of the counterpart alone": (
        PackageEvidence(distribution=PURE, run=run(), reference=run(), reference_distribution=LIBRARIES), Status.LOST),
    "in the wheel of the counterpart alone, where a library that it needs is too old": (
        PackageEvidence(distribution=PURE, run=run(), reference=run(failed=((C, "ImportError: libssl"),)),
                        reference_distribution=THING), Status.LOST),
    "in one wheel, a file for the counterpart alone, which cannot load it either": (
        PackageEvidence(distribution=LIBRARIES, run=run(), reference=run(failed=((C, "ImportError: cut off"),)),
                        reference_distribution=THING), Status.LOST),
    "libraries for ctypes in both": (
        PackageEvidence(distribution=LIBRARIES, run=run(), reference=run(),
                        reference_distribution=LIBRARIES), Status.READY),
    "cannot be read, was not loaded": (
        PackageEvidence(distribution=THING, extensions=(extension(problem="OSError"),), run=run()), Status.UNKNOWN),
    "cannot be read, but was there": (
        PackageEvidence(distribution=THING, extensions=(extension(problem="OSError"),),
                        run=run(present=(C,))), Status.READY),
    "cannot be loaded anywhere": (
        PackageEvidence(distribution=THING, extensions=(extension(problem="OSError"),),
                        run=run(failed=((C, "OSError"),)),
                        reference=run(failed=((C, "OSError"),)), reference_distribution=THING), Status.READY),
    "is damaged, on the build with the GIL as well": (
        PackageEvidence(distribution=THING, extensions=(replace(extension(problem="cut off"), damaged=True),),
                        run=run(failed=((C, "OSError"),)), reference=run(failed=((C, "OSError"),)),
                        reference_distribution=THING), Status.UNKNOWN),
    "cannot be read, and fails with the GIL alone": (
        PackageEvidence(distribution=THING, extensions=(extension(problem="OSError"),), run=run(),
                        reference=run(failed=((C, "OSError"),)), reference_distribution=THING), Status.UNKNOWN),
    "cannot be imported": (PackageEvidence(distribution=THING, run=FAILS), Status.FAILS),
    "cannot be imported here alone": (
        PackageEvidence(distribution=THING, run=FAILS, reference=run(load()),
                        reference_distribution=THING), Status.FAILS),
    "cannot be imported as the build lacks a part of the standard library": (
        PackageEvidence(distribution=THING, run=run(imported=(), failed=(("thing", NO_SQLITE),)), reference=run(load()),
                        reference_distribution=THING), Status.INTERPRETER),
    "cannot be imported anywhere, as no build has that part": (
        PackageEvidence(distribution=THING, run=NO_ZSTD, reference=NO_ZSTD,
                        reference_distribution=THING), Status.INTERPRETER),
    "cannot be imported anywhere": (
        PackageEvidence(distribution=THING, run=FAILS, reference=FAILS, reference_distribution=THING), Status.UNKNOWN),
    "crash": (PackageEvidence(distribution=THING, run=CRASH, control=run()), Status.CRASH),
    "crash that the standard library alone has": (
        PackageEvidence(distribution=THING, run=CRASH, control=CRASH), Status.INTERPRETER),
    "hang": (PackageEvidence(distribution=THING, run=HANG, control=run()), Status.HANG),
    "hang, and the control crashes": (PackageEvidence(distribution=THING, run=HANG, control=CRASH), Status.HANG),
}


@pytest.mark.parametrize(("tags", "there", "with_gil", "told"), [
    (("cp399-none-linux_x86_64",), None, run(load()), True),
    (("cp399-cp399t-linux_x86_64",), None, run(load()), False),              # it is compiled for this build
    (("py3-none-any",), None, run(load()), False),
    (("cp399-none-linux_x86_64",), ("cp399-cp399-linux_x86_64",), run(load()), False),     # another wheel than there
    (("cp399-none-linux_x86_64",), None, run(), False),                      # nobody knows what it is compiled for
])
def test_tag_without_an_abi_is_the_reason_of_a_crash(tags, there, with_gil, told):
    here = replace(THING, tags=tags)
    seen = PackageEvidence(distribution=here, run=CRASH, control=run(), reference=with_gil,
                           reference_distribution=replace(THING, tags=there or tags))
    (reason,) = judge_package(seen).reasons
    assert reason.partition(": ")[::2] == ("crashed with SIGSEGV while importing thing._c", (
        "its wheel is tagged cp399-none, so builds without a GIL take it, but its extension modules are compiled for "
        "the build with the GIL") if told else "")


@pytest.mark.parametrize("case", CASES)
def test_status(case):
    seen, expected = CASES[case]
    assert judge_package(seen).status is expected


@pytest.mark.parametrize("status", [Status.READY, Status.PURE, Status.UNKNOWN, Status.INTERPRETER])
def test_nobody_is_held_up_by_what_is_fine_or_not_known(status):
    assert not status.blocks


@pytest.mark.parametrize("status", [
    Status.GIL, Status.LOST, Status.NO_WHEEL, Status.NOT_FOUND, Status.CRASH, Status.HANG, Status.FAILS])
def test_everything_else_blocks(status):
    assert status.blocks


def test_modules_that_mypyc_names_after_a_hash_are_the_same_on_every_build():
    there, here = f"{'a' * 20}__mypyc", f"{'b' * 20}__mypyc"
    thing = Distribution(name="thing", version="1.0", modules=("thing",), inner=(), tags=(), pure=False,
                         extensions=((there, "x.so"),))
    seen = PackageEvidence(distribution=THING, run=run(load(here)), reference=run(load(there)),
                           reference_distribution=thing)
    assert lost_modules(seen) == ()


def test_a_failing_part_is_told_with_its_error():
    seen = PackageEvidence(distribution=THING, run=run(load(error="ImportError: libx.so.1", gil=None, swallowed=True)),
                           reference=run(load()), reference_distribution=THING)
    assert judge_package(seen).reasons == ("thing._c: ImportError: libx.so.1",)


REFUSED = load(error="ImportError: not in subinterpreters", gil=None)
SWALLOWED = load(error="ImportError: not in subinterpreters", gil=None, swallowed=True)
BY_NAME = load(error="ImportError: not in subinterpreters", gil=None, part="extensions")
INTERPRETERS = {
    "loads": ((run(load()),) * 3, (), InterpreterStatus.OK),
    "raises": ((run(REFUSED, imported=(), failed=(("thing", "ImportError"),)),), (), InterpreterStatus.FAILS),
    "goes on without": ((run(SWALLOWED),), (), InterpreterStatus.LOST),
    "goes on without asking for it": ((run(load(part="extensions")),), (), InterpreterStatus.LOST),
    "nobody replaces what is asked for by name": ((run(BY_NAME),), (), InterpreterStatus.FAILS),
    "most inner modules fail": (
        (run(SWALLOWED, failed=(("thing.a", "ImportError"), ("thing.b", "ImportError"))),), (),
        InterpreterStatus.FAILS),
    "half of them": ((run(SWALLOWED, failed=(("thing.b", "ImportError"),)),), (), InterpreterStatus.LOST),
    "crash in the second": ((run(load()), CRASH), (run(), run()), InterpreterStatus.CRASH),
    "crash that the standard library has, too": ((run(load()), CRASH), (run(), CRASH), InterpreterStatus.OK),
    "crash at once that the standard library has, too": ((CRASH,), (CRASH,), InterpreterStatus.UNKNOWN),
    "hang": ((HANG,), (run(),), InterpreterStatus.HANG),
    "not tried": ((), (), InterpreterStatus.UNKNOWN),
}


@pytest.mark.parametrize("case", INTERPRETERS)
def test_interpreter_status(case):
    interpreters, control, expected = INTERPRETERS[case]
    natural = run(load(), imported=("thing", "thing.a", "thing.b"))
    seen = PackageEvidence(distribution=THING, run=natural, interpreters=interpreters, interpreters_control=control)
    assert judge_interpreters(seen)[0] is expected


@pytest.mark.parametrize(("asking", "status"), [
    ("thing", InterpreterStatus.LOST), ("thing.a", InterpreterStatus.FAILS),
])
def test_who_fails_before_it_is_tried_does_not_go_on_without(asking, status):
    natural = run(replace(load(), asking=asking), imported=("thing", "thing.a", "thing.b"))
    inside = run(imported=("thing", "thing.b"), failed=(("thing.a", "ImportError: other"), (C, "ImportError: other")))
    assert judge_interpreters(PackageEvidence(distribution=THING, run=natural, interpreters=(inside,)))[0] is status


@pytest.mark.parametrize(("declared", "status"), [
    ("own-gil", InterpreterStatus.UNKNOWN), ("shared-gil", InterpreterStatus.FAILS), ("none", InterpreterStatus.FAILS),
])
def test_a_library_module_that_interpreters_refuse_is_not_the_packages_fault(declared, status):
    refused = load("_datetime", error="ImportError: module _datetime does not support loading in subinterpreters")
    inside = run(refused, imported=(), failed=(("thing", "AttributeError: no datetime_CAPI"),))
    seen = PackageEvidence(distribution=THING, extensions=(replace(extension(), interpreters=declared),),
                           run=run(load()), interpreters=(inside,))
    assert judge_interpreters(seen)[0] is status
    assert ("_datetime" in str(judge_interpreters(seen)[1][0])) == (status is InterpreterStatus.UNKNOWN)


@pytest.mark.parametrize(("error", "told"), [
    ("ImportError: IMPORTANT: PLEASE READ THIS", "thing: thing._c: ImportError: not in subinterpreters"),
    ("ImportError: not in subinterpreters", "thing: ImportError: not in subinterpreters"),
])
def test_what_a_package_says_in_its_own_words_is_told_with_its_cause(error, told):
    chain = (ImportStep(module="thing", file="/site/thing/__init__.py", line=3),)
    missed = load("other._c", error="ImportError: done without", gil=None, swallowed=True)
    inside = run(replace(missed, chain=chain), replace(REFUSED, chain=chain), imported=(), failed=(("thing", error),))
    seen = PackageEvidence(distribution=THING, run=run(load()), interpreters=(inside,))
    assert [str(each) for each in judge_interpreters(seen)[1]] == [told]
