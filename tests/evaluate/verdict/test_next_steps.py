"""What to do next: what blocks first, once for all builds that it concerns."""

from dataclasses import replace

import pytest

from gilscope.toolkit.evaluate.packages.judge.status import Status
from gilscope.toolkit.evaluate.sections import NO_TIME, Contention, Missing, Pool
from gilscope.toolkit.evaluate.verdict.next_steps import ADVICE, crowds, next_steps
from tests.evaluate.made_up import CACHE, CLEAN, NOT_DONE, evaluation, finding, found, report, suite
from tests.fakes import make_build


def steps(*builds, races=CLEAN):
    return next_steps(builds, races, ())


def test_every_status_that_blocks_has_an_advice():
    assert all(status in ADVICE for status in Status if status.blocks)


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


def test_newest_version_that_blocks_too_is_not_advised():
    blocked = replace(report(finding(Status.GIL)), newest={"lxml": ("7.0", Status.GIL)})
    assert steps(found(readiness=blocked))[0] == (
        "3.14t: lxml 7.0, the newest, still turns the GIL on: ask its owners, or do without it")
    for status, what in ((Status.UNKNOWN, "unknown"), (Status.NO_WHEEL, "no wheel")):
        other = replace(report(finding(Status.GIL)), newest={"lxml": ("7.0", status)})
        assert steps(found(readiness=other)) == (
            f"3.14t: lxml 7.0, the newest, is no way out ({what}): ask its owners, or do without it",)
    lost = replace(report(finding(Status.LOST)), newest={"lxml": ("7.0", Status.LOST)})
    assert steps(found(readiness=lost))[0].startswith("3.14t: lxml runs without its C code")
    unjudged = replace(report(finding(Status.UNKNOWN)), newest={"lxml": ("6.1", Status.UNKNOWN)})
    assert steps(found(readiness=unjudged)) == ("3.14t: lxml could not be judged: --explain lxml says why",)


def test_workload_that_fails_is_to_be_mended():
    failed = Missing(reason="the workload failed on 3.14: TypeError: no")
    one = found(cost=failed)
    assert steps(one, replace(one, build=make_build("3.15t"))) == (
        "have the workload run: it failed on 3.14: TypeError: no",)


def test_failing_tests_and_tests_not_run():
    assert steps(found(tests=suite(failed=1))) == ("3.14t: look at the failing tests",)
    both = {"tests": suite(failed=1), "reference_tests": suite(failed=1)}
    assert steps(found(**both)) == ()
    assert steps(found(tests=suite(failed=None, errors=2), reference_tests=suite(failed=1, errors=1))) == ()
    assert steps(found(tests=suite(failed=1, errors=1), reference_tests=suite(failed=1, errors=None))) == (
        "3.14t: look at the failing tests",)
    assert steps(found(tests=suite(failed=1), reference_tests=NOT_DONE)) == ("3.14t: look at the failing tests",)
    assert steps(found(tests=suite(lacking=("psutil",)))) == ()
    assert steps(found(tests=NO_TIME), found(tests=NOT_DONE), found(tests=suite(failed=1)))[2] == (
        "3.14t: look at the failing tests")
    assert steps(found(), races=NOT_DONE) == ()
    assert steps(found(tests=suite(errors=1, lacking=("psutil",)))) == (
        "3.14t: let the tests do without psutil, or replace it",)
    assert steps(found(tests=NOT_DONE)) == ("3.14t: have its tests run, named by --tests if need be (not asked for)",)
    assert steps(found(tests=NO_TIME)) == (
        "3.14t: evaluate once more, within a larger --budget: what was installed is kept",)


def test_tests_that_were_not_done_in_time_ask_for_more_time():
    late = suite(passed=None, failed=None, ending="unfinished: not done within 54 s")
    assert steps(found(tests=late)) == (
        "3.14t: evaluate once more, within a larger --budget: what was installed is kept",)


def test_tests_that_do_not_start_are_one_step_with_what_they_said():
    broken = suite(passed=None, failed=None, ending="4", output="E   ModuleNotFoundError: No module named 'httpbin'")
    (step,) = steps(found(tests=broken, reference_tests=broken), found(tests=broken, reference_tests=broken))
    assert step.startswith("have the tests start: ModuleNotFoundError: No module named 'httpbin'; ")


def test_libraries_lines_and_short_waits_are_nobodys_step():
    places = (replace(CACHE, file="site-packages/lxml/html.py"), replace(CACHE, file="lib/python3.14t/threading.py"),
              replace(CACHE, seconds=0.001), replace(CACHE, file="<frozen genericpath>"),
              replace(CACHE, what="the GIL"), replace(CACHE, file="/usr/share/thing.py"))
    assert steps(found(contention=Contention(inflation=1.0, parked=0.2, places=places))) == ()
    own = tuple(replace(CACHE, line=line, seconds=0.02) for line in range(1, 5))
    assert [step.partition(": ")[0] for step in steps(found(contention=Contention(
        inflation=1.0, parked=0.2, places=own)))] == ["cache.py:1", "cache.py:2", "cache.py:3"]


@pytest.mark.parametrize(("threads", "cores", "said"), [(2, 2, 1), (2, 4, 0), (1, 1, 0), (None, 1, 0), (2, None, 0),
                                                         (4, 4, 1)])
def test_pools_of_libraries_are_limited_where_threads_are_more_than_cores(threads, cores, said):
    crowd = Contention(inflation=1.0, parked=0.0, places=(), threads=threads, cores=cores,
                       pools=(Pool(library="OpenBLAS", threads=2), Pool(library="OpenMP", threads=1)))
    assert sum("OPENBLAS_NUM_THREADS=1" in step for step in steps(found(contention=crowd))) == said
    assert len(list(crowds(crowd))) == said
