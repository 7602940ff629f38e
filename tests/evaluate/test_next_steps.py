"""What to do next: what blocks first, once for all builds that it concerns."""

from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.toolkit.evaluate.decision import UNREAD
from gilscope.toolkit.evaluate.packages.evidence import Status
from gilscope.toolkit.evaluate.project.extensions.own_extensions import Binding, ExtensionSource, OwnExtensions, Remark
from gilscope.toolkit.evaluate.request import EvaluationRequest
from gilscope.toolkit.evaluate.sections import NO_TIME, Cause, Contention, LeftOut, Missing, NativePool, WorkloadFailure
from gilscope.toolkit.gil.records import WaitReason
from tests.evaluate.made_up import (
    CACHE,
    CLEAN,
    NOT_DONE,
    QUIET,
    concluded,
    evaluation,
    finding,
    found,
    next_steps,
    ratio,
    report,
    suite,
)
from tests.fakes import make_build


def steps(*builds, races=CLEAN, **others):
    return next_steps(*builds, races=races, **others)


def test_every_status_that_blocks_has_an_advice():
    assert all(status.advice for status in Status if status.blocks)


def test_order_of_everything_together():
    mended, lost, race, other, tests, place, pool, last = evaluation().next_steps
    assert mended == "3.14t: take lxml 7.0, which mends it"
    assert lost.startswith("3.14t: protobuf runs without its C code")
    assert race.startswith("src/myapp/counter.py:17: guard Counter.total")
    assert other.startswith("src/myapp/counter.py:88: guard Pool.free")
    assert tests.startswith("3.15t: have its tests run")
    assert place.startswith("cache.py:41: let each thread have an object of its own")
    assert pool.startswith("set OPENBLAS_NUM_THREADS=1")
    assert last.startswith("try processes on 3.14 with")


def test_builds_with_the_same_step_share_it():
    one = found(readiness=report(finding(Status.GIL)))
    (step,) = steps(one, replace(one, build=make_build("3.15t")))
    assert step.startswith("3.14t, 3.15t: look for a newer version of lxml")


def test_same_step_of_several_builds_is_said_once_whatever_it_is():
    late = found(tests=NO_TIME)
    assert steps(late, replace(late, build=make_build("3.15t"))) == (
        "3.14t, 3.15t: evaluate once more, within a larger --budget: what was installed is kept",)


def test_newest_version_that_blocks_too_is_not_advised():
    blocked = replace(report(finding(Status.GIL)), newest={"lxml": ("7.0", Status.GIL)})
    assert steps(found(readiness=blocked))[0] == (
        "3.14t: lxml 7.0, the newest, turns the GIL on, too: ask its owners, or do without it")
    for status, what in ((Status.UNKNOWN, "could not be judged"), (Status.NO_WHEEL, "has no wheel")):
        other = replace(report(finding(Status.GIL)), newest={"lxml": ("7.0", status)})
        assert steps(found(readiness=other)) == (
            f"3.14t: lxml 7.0, the newest, {what}: ask its owners, or do without it",)
    lost = replace(report(finding(Status.LOST)), newest={"lxml": ("7.0", Status.LOST)})
    assert steps(found(readiness=lost))[0].startswith("3.14t: lxml runs without its C code")
    unjudged = replace(report(finding(Status.UNKNOWN)), newest={"lxml": ("6.1", Status.UNKNOWN)})
    assert steps(found(readiness=unjudged)) == ("3.14t: lxml could not be judged: --explain lxml says why",)


def test_workload_that_fails_is_to_be_mended():
    failed = Missing(reason="the workload failed on 3.14: TypeError: no", cause=Cause.WORKLOAD_FAILED)
    one = found(cost=failed)
    assert steps(one, replace(one, build=make_build("3.15t"))) == (
        "3.14t, 3.15t: have the workload run (the workload failed on 3.14: TypeError: no)",)


def test_cost_that_there_was_no_time_for_takes_a_larger_budget_and_nothing_else():
    assert steps(found(cost=NO_TIME, gain=NO_TIME), seconds=32.0) == (
        "raise --budget to about 3m, to measure what one thread costs: what was measured is kept",)
    both = steps(found(cost=NO_TIME, tests=NO_TIME), seconds=32.0)
    assert [step.count("--budget") for step in both] == [1]


def test_failing_tests_and_tests_not_run():
    assert steps(found(tests=suite(failed=1))) == ("3.14t: look at the failing tests",)
    both = {"tests": suite(failed=1), "reference_tests": suite(failed=1)}
    assert steps(found(**both)) == ()
    assert steps(found(tests=suite(failed=None, errors=2), reference_tests=suite(failed=1, errors=1))) == ()
    assert steps(found(tests=suite(failed=1, errors=1), reference_tests=suite(failed=1, errors=None))) == (
        "3.14t: look at the failing tests",)
    assert steps(found(tests=suite(failed=1), reference_tests=NOT_DONE)) == ("3.14t: look at the failing tests",)
    assert steps(found(tests=suite(lacking=("psutil",)))) == ()
    assert steps(found(tests=NO_TIME, build=make_build("3.15t")),
                 found(tests=NOT_DONE, build=make_build("3.16t")), found(tests=suite(failed=1)))[2] == (
        "3.14t: look at the failing tests")
    assert steps(found(), races=NOT_DONE) == ()
    assert steps(found(tests=NOT_DONE)) == ("3.14t: have its tests run; --tests names them (not asked for)",)
    assert steps(found(tests=NO_TIME)) == (
        "3.14t: evaluate once more, within a larger --budget: what was installed is kept",)


def test_failing_tests_are_named_and_those_that_fail_anyway_are_in_the_way_of_the_cost():
    broken = suite(failed=1, ending="1", failing=("tests/test_a.py::test_b",))
    assert steps(found(tests=broken)) == ("3.14t: look at the failing tests: tests/test_a.py::test_b",)
    unknown = Missing(reason="no workload was measured, and not all tests pass on 3.14t", cause=Cause.TESTS_NOT_TIMED)
    one = found(tests=broken, reference_tests=broken, cost=unknown)
    (step,) = steps(one, replace(one, build=make_build("3.15t")))
    assert step.startswith("mend the tests that fail with the GIL, too: tests/test_a.py::test_b; or name a --workload")


def test_tests_that_were_not_done_in_time_ask_for_more_time():
    late = suite(passed=None, failed=None, ending="unfinished: not done within 54 s")
    assert steps(found(tests=late)) == (
        "3.14t: evaluate once more, within a larger --budget: what was installed is kept",)


@pytest.mark.parametrize(("far", "words"), [
    (", at 25 %", "within a larger --budget, as its tests take about 4 min: what"), (", at 0 %", "--budget: what")])
def test_tests_that_were_not_done_say_how_long_they_would_take(far, words):
    (step,) = steps(found(tests=suite(seconds=54.0, ending=f"unfinished: not done within 54 s{far}")))
    assert words in step


def test_tests_that_do_not_start_are_one_step_with_what_they_said():
    broken = suite(passed=None, failed=None, ending="4", output="E   ValueError: no")
    (step,) = steps(found(tests=broken, reference_tests=broken), found(tests=broken, reference_tests=broken))
    assert step.startswith("have the tests start: ValueError: no; ")


LACKS = "E   ModuleNotFoundError: No module named 'trio.abc'"


@pytest.mark.parametrize("tests", [
    *(suite(passed=None, failed=None, ending=ending, output=LACKS) for ending in "14"),
    suite(passed=0, errors=2, ending="2", output=LACKS),
    suite(left_out=(LeftOut(file="tests/test_x.py", why=LACKS),))])
def test_module_that_keeps_tests_from_running_is_a_file_or_a_package(tests):
    said = steps(found(tests=tests, reference_tests=tests), found(tests=tests, reference_tests=tests))
    assert said[0] == ("the tests import trio, which is not there: is it a file of the project (put it there), or a "
                       "package (name it in an extra, group or file for tests)?")
    assert not [step for step in said[1:] if "trio" in step]


@pytest.mark.parametrize("changes", [{"lacking": ("trio",)}, {"ending": "1", "failed": 1}])
def test_module_that_has_another_step_or_that_a_test_wants_is_not_to_be_installed(changes):
    tests = suite(**{"passed": 0, "errors": 2, "ending": "2", "output": LACKS, **changes})
    assert not [step for step in steps(found(tests=tests, reference_tests=tests)) if step.startswith("install")]


def test_libraries_lines_and_short_waits_are_nobodys_step():
    places = (replace(CACHE, file="site-packages/lxml/html.py", own=False), replace(CACHE, seconds=0.001),
              replace(CACHE, wait=WaitReason.GIL))
    assert steps(found(contention=Contention(inflation=1.0, parked=0.2, places=places))) == ()
    own = tuple(replace(CACHE, line=line, seconds=0.02) for line in range(1, 5))
    assert [step.partition(": ")[0] for step in steps(found(contention=Contention(
        inflation=1.0, parked=0.2, places=own)))] == ["cache.py:1", "cache.py:2", "cache.py:3"]


@pytest.mark.parametrize(("threads", "cores", "said"), [(2, 2, 1), (2, 4, 0), (1, 1, 0), (None, 1, 0), (2, None, 0),
                                                        (4, 4, 1)])
def test_pools_of_libraries_are_limited_where_threads_are_more_than_cores(threads, cores, said):
    crowd = Contention(inflation=1.0, parked=0.0, places=(), threads=threads, cores=cores,
                       pools=(NativePool(library="OpenBLAS", threads=2), NativePool(library="OpenMP", threads=1)))
    assert sum("OPENBLAS_NUM_THREADS=1" in step for step in steps(found(contention=crowd))) == said
    facts = concluded(found(contention=crowd)).facts
    assert sum(fact.code == "contention.native-pool" for fact in facts) == said


@pytest.mark.parametrize(("workload", "payloads", "inflation", "command"), [
    ("mine:convert", None, 2.0, "gilscope scale mine:convert --builds 3.14t"),
    ("mine:convert", "mine:ORDERS", 2.0, "gilscope scale mine:convert --payloads mine:ORDERS --builds 3.14t"),
    ("mine:convert", None, 1.2, None), ("bench.py 3", None, 2.0, None), (None, None, 2.0, None)])
def test_threads_in_each_others_way_lead_to_gilscope_scale(workload, payloads, inflation, command):
    request = EvaluationRequest(path=Path(), workload=workload, payloads=payloads)
    crowd = Contention(inflation=inflation, parked=0.0, places=())
    evaluated = concluded(found(contention=crowd), request=request)
    said = [step for step in evaluated.next_steps if "gilscope scale" in step]
    facts = [fact.code for fact in evaluated.facts if fact.code == "contention.object"]
    if command is None:
        assert (said, facts) == ([], [])
    else:
        assert len(facts) == len(said) == 1
        assert f"`{command}` names the object" in said[0]


def test_project_in_another_folder_is_imported_from_there():
    request = EvaluationRequest(path=Path("app"), workload="mine:convert")
    (said,) = (step for step in concluded(found(contention=Contention(inflation=2.0, parked=0.0, places=())),
                                          request=request).next_steps if "gilscope scale" in step)
    assert "--builds 3.14t --path app`" in said


def test_image_without_bytecode_is_a_step_and_blocks_nothing():
    usual = concluded(found())
    without = concluded(found(), upkeep=replace(UNREAD, no_bytecode=("Dockerfile:4",)))
    (said,) = (step for step in without.next_steps if step not in usual.next_steps)
    assert said.startswith("Dockerfile:4: run `python -m compileall` when the image is built, or leave ")
    assert without.conclusions[0].word == usual.conclusions[0].word
    (fact,) = (fact for fact in without.facts if fact.code == "upkeep.no-bytecode")
    assert fact.subject == "Dockerfile:4"


def waiting(reason):
    place = replace(CACHE, wait=reason)
    (step,) = steps(found(contention=Contention(inflation=1.0, parked=0.2, places=(place,))))
    return step.partition(": ")[2]


@pytest.mark.parametrize(("reason", "words"), [
    (WaitReason.OBJECT, "an object of its own"), (WaitReason.LOCK, "hold it only around what belongs together"),
    (WaitReason.WORLD, "have it collect less often"), (WaitReason.RAW, "inside the interpreter: do it less often"),
    (WaitReason.SPIN, "gilscope gil shows for what"), (WaitReason.OTHER, "gilscope gil shows for what"),
    (None, "gilscope gil shows for what")])
def test_advice_follows_from_what_is_waited_for(reason, words):
    said = waiting(reason)
    assert words in said
    assert ("an object of its own" in said) is (words == "an object of its own")


def lacking(name, *findings, **others):
    tests = suite(errors=1, lacking=(name,))
    return steps(found(tests=tests, readiness=report(*findings)), **others)


def test_what_only_the_tests_need_they_may_do_without():
    assert lacking("psutil") == ("3.14t: let the tests do without psutil, or replace it",)
    assert lacking("psutil", needed={"orjson"}) == lacking("psutil")


def test_what_the_program_needs_is_not_taken_from_the_tests():
    (step,) = lacking("Or_Json", needed={"or-json"})
    assert step == ("3.14t: Or_Json could not be installed, and the program itself needs it: build it from source "
                    "(--build-sdists), or replace it")


def test_what_has_a_step_as_a_package_gets_no_second():
    (step,) = lacking("lxml", finding(Status.NO_WHEEL))
    assert step.startswith("3.14t: lxml has no wheel")


def test_offline_is_not_told_to_name_its_tests():
    never = Missing(reason="nothing of it was installed before; call it once without --offline",
                    cause=Cause.OFFLINE)
    assert steps(found(tests=never)) == ()


def test_left_out_file_has_the_option_that_does_it_on_purpose():
    out = (LeftOut(file="tests/test_x.py", why="ImportError: no"),)
    tests = suite(left_out=out, command=("/env/bin/python", "-m", "pytest", "-q", "--ignore=tests/test_x.py"))
    (step,) = steps(found(tests=tests))
    assert step == ("have tests/test_x.py collected, or leave it out on purpose: --tests 'python -m pytest -q "
                    "--ignore=tests/test_x.py'")
    assert steps(found(tests=replace(tests, lacking=("psutil",)))) == (
        "3.14t: let the tests do without psutil, or replace it",)


BUSY = replace(QUIET, doubts=("busy",))
UNSURE = found(cost=replace(found().cost, cpu=ratio(1 / 1.14)))


def test_cost_that_is_in_doubt_is_measured_again_when_it_is_quiet():
    assert steps(UNSURE, machine=BUSY) == (
        "repeat when the machine is quiet, or with --wait-quiet, to know what one thread costs",)


@pytest.mark.parametrize(("build", "machine"), [
    (UNSURE, QUIET), (found(), BUSY), (UNSURE, replace(BUSY, cores=1)), (UNSURE, NOT_DONE)])
def test_nobody_is_sent_to_wait_where_that_does_not_help(build, machine):
    assert not any("--wait-quiet" in step for step in steps(build, machine=machine))


def test_cost_that_tests_cannot_tell_asks_for_a_workload():
    short = Missing(reason="no workload was measured, and the tests take 0.3 s of CPU time, most of it to start",
                    cause=Cause.TESTS_TOO_SHORT)
    (step,) = steps(found(cost=short))
    assert step.startswith("name what the program does for one request or job")
    long = replace(short, reason="no workload was measured, and 4 rounds of the tests do not fit into the 9 s left",
                   cause=Cause.TESTS_TOO_LONG)
    assert steps(found(cost=long)) == (step,)
    flipped = replace(short, cause=Cause.TESTS_NOT_TIMED)
    assert steps(found(cost=flipped)) == ()


def test_workload_that_fails_in_threads_alone_is_to_be_looked_into():
    fails = found(failure=WorkloadFailure(kind="fails", detail="with 2 threads: AssertionError"))
    assert steps(fails) == ("3.14t: find out why the workload fails there (with 2 threads: AssertionError)",)
    source = ExtensionSource(file="a.c", language="C", binding=Binding.C_API, defines=True, line=1, declared=True,
                             declare="", remarks=(Remark(line=3, concern="no lock", what="PyDict_Next"),))
    (step,) = (each for each in next_steps(fails, extensions=OwnExtensions(sources=(source,))) if "workload" in each)
    assert step.endswith("; --explain extensions lists the places of its C code to look at")
    flipped = WorkloadFailure(kind="turns-gil-on", detail="the GIL was on at the end of the workload")
    assert steps(found(failure=flipped)) == ()


def test_places_where_threads_waited_for_cores_too_are_no_advice():
    waits = Contention(inflation=None, parked=0.05, places=(CACHE, replace(CACHE, file="load.py")))
    assert [step.partition(": ")[0] for step in steps(found(contention=waits))] == ["cache.py:41", "load.py:41"]
    assert [step.partition(": ")[0] for step in steps(found(contention=waits), measuring="load.py")] == ["cache.py:41"]
    assert steps(found(contention=replace(waits, parked=None))) == ()
