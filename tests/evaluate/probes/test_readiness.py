"""What findings come to, each rule by itself; made-up findings throughout."""

from dataclasses import replace

import pytest

from gilscope.toolkit.evaluate.evaluation import Verdict
from gilscope.toolkit.evaluate.packages.evidence import InterpreterStatus, PackageEvidence, Status
from gilscope.toolkit.evaluate.sections import (
    NO_TIME,
    Cause,
    Contention,
    Cost,
    LeftOut,
    Memory,
    Missing,
    Place,
    RaceFact,
    SharedFact,
    Unwatched,
    WorkloadFailure,
)
from tests.evaluate.made_up import (
    CACHE,
    CLEAN,
    LOOK,
    NOT_DONE,
    QUIET,
    REFUSED,
    MadeInside,
    conclude,
    conclude_interpreters,
    conclude_processes,
    concluded,
    finding,
    found,
    gain,
    imports,
    inside,
    load,
    lxml,
    ratio,
    report,
    suite,
    trial,
)
from tests.fakes import make_build


def cost(factor=1.0, **changes):
    return Cost(**{"against": "3.14", "cpu": ratio(1 / factor), "import_seconds": None} | changes)


def resident(times, more=2**30):
    """Return the memory of a process that takes so many times as much, and so many bytes more."""
    there = more / (times - 1)
    return Memory(here=there + more, there=there, process="the process")


def test_all_evidence_together_is_ready_with_high_confidence():
    verdict = conclude(found(), QUIET, CLEAN)
    assert (verdict.word, verdict.confidence, verdict.unexercised) == (Verdict.READY, "high", ())
    assert any("412 tests pass" in reason for reason in verdict.reasons)
    assert any("1.80x [1.76, 1.84] as fast as 3.14 with 2 threads" in reason for reason in verdict.reasons)
    script = conclude(found(gain=gain({0: ratio(1.8)}), tests=suite(passed=1), readiness=report(
        replace(finding(), seen=lxml().seen))), QUIET, CLEAN)
    assert script.reasons == (
        "1 extension file does without the GIL, as slots and imports say",
        "1 test passes, and the GIL is off at their end", "one thread takes 1.05 times the CPU time of 3.14",
        "1.80x [1.76, 1.84] as fast as 3.14")


@pytest.mark.parametrize(("changes", "races", "reason"), [
    ({"readiness": report(finding(Status.GIL, InterpreterStatus.OK, "lxml.etree needs the GIL"))}, CLEAN,
     "lxml 6.1 turns the GIL on: lxml.etree needs the GIL"),
    ({"readiness": report(finding(Status.NO_WHEEL))}, CLEAN, "lxml 6.1 has no wheel"),
    ({"readiness": report(finding(Status.NO_WHEEL, InterpreterStatus.OK, "no wheel for its libc"))}, CLEAN,
     "lxml 6.1: no wheel for its libc"),
    ({"readiness": report(finding(Status.CRASH))}, CLEAN, "crashes"),
    ({"readiness": report(finding(), unowned=("stray",))}, CLEAN, "stray, of no package, turns the GIL on"),
    ({"tests": suite(gil_end=True, culprits=("late._c",))}, CLEAN, "the GIL was on at the end of the tests (late._c)"),
    ({"tests": suite(ending="crash: SIGSEGV")}, CLEAN, "the tests crash: SIGSEGV"),
    ({"tests": suite(ending="hang: no output for 120 s")}, CLEAN, "the tests hang: no output for 120 s"),
    ({"tests": suite(passed=None, seconds=95.0, ending="unfinished: not done within 95 s")}, CLEAN,
     "the tests hang or crawl: not done within 95 s, and take 9 s on 3.14"),
    ({"tests": suite(failed=2, ending="1")}, CLEAN, "2 tests fail that pass on 3.14"),
    ({"tests": suite(failed=2, ending="1"), "reference_tests": NOT_DONE}, CLEAN, "2 tests fail"),
    ({"tests": suite(failed=1, ending="1")}, CLEAN, "1 test fails that passes on 3.14"),
    ({"tests": suite(failed=2, errors=3, ending="1"), "reference_tests": suite(build="3.14", failed=1, errors=1)},
     CLEAN, "3 tests fail that pass on 3.14"),
    ({"tests": suite(passed=None, failed=None, errors=None, ending="3")}, CLEAN, "exit code 3, not on 3.14"),
    ({"tests": suite(passed=None, failed=None, errors=None, ending="3"), "reference_tests": NOT_DONE}, CLEAN,
     "the tests end with exit code 3"),
    ({}, replace(CLEAN, found=(RaceFact(kind="lost update", variable="total", file="a.py", line=3, confirmed=True),)),
     "data race on total (lost update, a.py:3), confirmed: fix it first"),
])
def test_what_blocks(changes, races, reason):
    verdict = conclude(found(**changes), QUIET, races)
    assert verdict.word is Verdict.BLOCKED
    assert any(reason in each for each in verdict.reasons), verdict.reasons


def test_workload_that_fails_only_without_the_gil_blocks():
    verdict = conclude(found(failure=WorkloadFailure(kind="fails", detail="KeyError")), QUIET, CLEAN)
    assert (verdict.word, verdict.reasons) == (Verdict.BLOCKED, (
        "the workload fails, and does not with the GIL: KeyError",))


def test_everything_that_blocks_is_named_at_once():
    verdict = conclude(found(readiness=report(finding(Status.GIL), finding(Status.HANG)), tests=suite(failed=1)),
                       QUIET, CLEAN)
    assert len(verdict.reasons) == 3


def test_failures_that_the_other_build_has_too_do_not_block():
    both = {"tests": suite(failed=2, ending="1"), "reference_tests": suite(build="3.14", failed=2, ending="1")}
    assert conclude(found(**both), QUIET, CLEAN).word is Verdict.READY


@pytest.mark.parametrize("tests", [
    suite(passed=None, failed=None, errors=None), suite(seconds=95.0), suite(lacking=("psutil",)),
    suite(ending="1", failed=1, errors=1)])
def test_tests_that_pass_as_they_do_with_the_gil_are_evidence(tests):
    with_gil = replace(tests, build="3.14", gil_end=True, seconds=9.0)
    verdict = conclude(found(tests=tests, reference_tests=with_gil), QUIET, CLEAN)
    assert verdict.word is Verdict.READY
    passing = "412 tests pass" if tests.passed else "the tests pass"
    assert verdict.reasons[:2] == ("no extension file is in the way", f"{passing}, and the GIL is off at their end")


def test_unconfirmed_race_is_to_be_judged_before_anything_is_ready():
    race = RaceFact(kind="lost update", variable="total", file="a.py", line=3, confirmed=False)
    verdict = conclude(found(), QUIET, replace(CLEAN, found=(race,)))
    assert verdict.word is Verdict.INCONCLUSIVE
    assert verdict.reasons == (
        "data race on total (lost update, a.py:3), not confirmed by a second run: guard it, or say why it may be",)


THIRD = Place(file="a.py", line=3)


@pytest.mark.parametrize("confirmed", [True, False])
def test_atomicity_violation_is_there_with_the_gil_and_blocks_nothing(confirmed):
    both = RaceFact(kind="check-then-act", variable="_cache", file="a.py", line=3, confirmed=confirmed, violation=True,
                    places=(THIRD, replace(THIRD, line=9)), repair="Hold _lock around the check and the act together.")
    races = replace(CLEAN, found=(both,))
    verdict = conclude(found(), QUIET, races)
    sure = ", confirmed" if confirmed else ""
    assert (verdict.word, verdict.reasons[-1]) == (Verdict.READY, (
        f"atomicity violation on _cache (check-then-act, a.py:3, a.py:9){sure}, it also happens with the GIL: fix it "
        "in any case"))
    answer = concluded(found(), races=races).answer
    assert (answer.blockers, answer.effort.places) == ((), (THIRD,))
    assert concluded(found(), races=races).next_steps[0] == (
        "a.py:3, a.py:9: hold _lock around the check and the act together (_cache: check-then-act)")


@pytest.mark.parametrize(("failed", "word"), [(0, Verdict.INCONCLUSIVE), (1, Verdict.READY)])
def test_tests_that_fail_in_threads_and_pass_alone_are_not_ready(failed, word):
    look = replace(LOOK, of="tests at once", workers=4, failing=("test_a.py::test_b",))
    both = {"tests": suite(failed=failed), "reference_tests": suite(build="3.14", gil_end=True, failed=failed)}
    verdict = conclude(found(**both), QUIET, replace(CLEAN, looks=(look,)))
    assert verdict.word is word
    if word is Verdict.INCONCLUSIVE:
        assert verdict.reasons == ("1 test fails in 4 threads at once that passes alone: test_a.py::test_b",)


@pytest.mark.parametrize("looks", [(), (replace(LOOK, together=False),), (replace(LOOK, together=None),)])
def test_confidence_is_not_high_when_nothing_of_the_project_ran_in_two_threads(looks):
    verdict = conclude(found(), QUIET, replace(CLEAN, looks=looks))
    assert (verdict.word, verdict.confidence) == (Verdict.READY, "medium")
    assert any(each.startswith("threads: no Python code of the project's own was seen running in two") for each
               in verdict.unexercised)


@pytest.mark.parametrize(("of", "word"), [
    ("workload", Verdict.INCONCLUSIVE), ("script", Verdict.INCONCLUSIVE), ("tests", Verdict.READY)])
def test_workload_that_could_not_be_raced_is_not_ready(of, word):
    verdict = conclude(found(), QUIET, replace(CLEAN, lacking=((of, Missing(reason="it hangs")),)))
    assert (verdict.word, verdict.confidence) == (word, "medium")
    assert verdict.unexercised == (f"races in the {of}: it hangs",)
    if word is Verdict.INCONCLUSIVE:
        assert verdict.reasons == (f"whether the {of} has data races is not known: it hangs",)


def test_workload_that_does_not_run_has_its_own_words():
    broken = found(cost=Missing(reason="the workload failed on 3.14: no such row", cause=Cause.WORKLOAD_FAILED))
    verdict = conclude(broken, QUIET, replace(CLEAN, lacking=(("workload", Missing(reason="it failed")),)))
    assert not [reason for reason in verdict.reasons if "data races" in reason]


@pytest.mark.parametrize(("changes", "reason"), [
    ({"readiness": Missing(reason="offline")}, "not installed and looked at: offline"),
    ({"readiness": Missing(reason="offline"), "cost": cost(2.0)}, "not installed and looked at: offline"),
    ({"readiness": report(finding(Status.UNKNOWN, InterpreterStatus.OK, "cannot be read"))},
     "could not be judged: cannot be read"),
    ({"readiness": report(finding(Status.INTERPRETER))}, "which is Python's fault"),
    ({"tests": Missing(reason="no tests found"), "cost": NOT_DONE}, "nothing of the project was run on it"),
    ({"tests": Missing(reason="no tests found")}, "of the project only the workload was run on it"),
    ({"tests": suite(gil_end=None)}, "is not known"),
    ({"tests": suite(passed=0)}, "not one test passes: of the project only the workload was seen"),
    ({"tests": suite(passed=0, errors=2, ending="2", lacking=("psutil",))},
     "tests could not be run, as psutil could not be installed"),
    ({"tests": suite(passed=None, seconds=89.0, ending="unfinished: not done within 89 s")},
     "the tests were not done within 89 s, all that the budget left for them"),
    ({"tests": suite(passed=None, seconds=95.0, ending="unfinished: not done within 95 s"),
      "reference_tests": NOT_DONE}, "not done within 95 s"),
    ({"tests": suite(passed=None, seconds=95.0, ending="unfinished: not done within 95 s"),
      "reference_tests": suite(ending="unfinished: not done within 9 s")}, "not done within 95 s"),
    ({"tests": suite(errors=2, ending="1", lacking=("psutil",))}, "as psutil could not be installed"),
    ({"tests": suite(passed=0, ending="5", lacking=("psutil",))}, "as psutil could not be installed"),
    ({"tests": suite(ending="hang: no output for 120 s", gil_end=None),
      "reference_tests": suite(ending="hang: printed much")}, "was off at the end of the tests is not known"),
    ({"tests": suite(ending="crash: SIGSEGV", gil_end=None), "reference_tests": suite(ending="crash: SIGSEGV")},
     "was off at the end of the tests is not known"),
    ({"tests": suite(passed=None, failed=None, ending="3"),
      "reference_tests": suite(passed=None, failed=None, ending="3")}, "exit code 3, with the GIL, too"),
    ({"tests": suite(passed=None, failed=None, ending="4", output="E   ModuleNotFoundError: No module named 'httpbin'"),
      "reference_tests": suite(passed=None, failed=None, ending="4")},
     "exit code 4 (ModuleNotFoundError: No module named 'httpbin'), with the GIL, too"),
])
def test_what_is_not_known_is_never_ready(changes, reason):
    verdict = conclude(found(**changes), QUIET, CLEAN)
    assert verdict.word is Verdict.INCONCLUSIVE
    assert any(reason in each for each in verdict.reasons)


@pytest.mark.parametrize(("changes", "reason"), [
    ({"cost": Cost(against="3.14", cpu=ratio(0.8), import_seconds=None)}, "1.25 times the CPU time of 3.14"),
    ({"cost": Cost(against="3.14", cpu=ratio(0.6), import_seconds=None)}, "far beyond PEP 779's 15 %"),
    ({"cost": cost(memory=resident(1.35))}, "35 % more memory"),
    ({"readiness": report(finding(Status.LOST, InterpreterStatus.OK, "upb: not in the wheel"))}, "its C code: upb"),
    ({"contention": Contention(inflation=2.9, parked=0.0, places=(CACHE,))},
     "2.9 times the CPU time per operation, most at cache.py:41"),
    ({"contention": Contention(inflation=None, parked=0.19, places=())}, "parked 19 %"),
])
def test_what_costs(changes, reason):
    verdict = conclude(found(**changes), QUIET, CLEAN)
    assert verdict.word is Verdict.WITH_COST
    assert any(each.startswith(reason) or f" {reason}" in each for each in verdict.reasons), verdict.reasons


@pytest.mark.parametrize(("factor", "by", "word"), [
    (1.25, "workload", Verdict.BLOCKED), (1.25, "script", Verdict.BLOCKED), (1.25, "tests", Verdict.WITH_COST),
    (1.18, "workload", Verdict.WITH_COST)])
def test_lost_c_code_blocks_where_the_workload_is_much_slower(factor, by, word):
    cost = Cost(against="3.14", cpu=ratio(1 / factor), import_seconds=None, by=by)
    lost = report(finding(Status.LOST, InterpreterStatus.OK, "upb: not in the wheel"))
    verdict = conclude(found(readiness=lost, cost=cost), QUIET, CLEAN)
    assert verdict.word is word
    assert "lxml 6.1 loses its C code" in verdict.reasons[0]
    wide = replace(cost, cpu=ratio(1 / factor, width=0.1))   # twice that on a busy machine: it may be less than 1.2
    assert conclude(found(readiness=lost, cost=wide), replace(QUIET, doubts=("busy",)), CLEAN).word is Verdict.WITH_COST


def test_lost_c_code_does_not_block_where_the_difference_may_be_noise():
    lost = report(finding(Status.LOST, InterpreterStatus.OK, "upb: not in the wheel"))
    noise = cost(cpu=ratio(0.8, floor=0.5))
    assert conclude(found(readiness=lost, cost=noise), QUIET, CLEAN).word is Verdict.WITH_COST


def test_cost_by_the_tests_says_so():
    cost = Cost(against="3.14", cpu=ratio(0.8), import_seconds=None, by="tests")
    verdict = conclude(found(cost=cost), QUIET, CLEAN)
    assert (verdict.word, verdict.reasons[0]) == (Verdict.WITH_COST, "the tests take 1.25 times the CPU time of 3.14")
    verdict = conclude(found(cost=replace(cost, cpu=ratio(0.9))), QUIET, CLEAN)
    assert verdict.word is Verdict.READY
    assert "the tests take 1.11 times the CPU time of 3.14" in verdict.reasons


@pytest.mark.parametrize("changes", [{}, {"gain": NOT_DONE}, {"contention": NOT_DONE},
                                     {"readiness": report(finding(Status.LOST))}])
def test_nothing_is_ready_whose_cost_was_not_measured(changes):
    short = Missing(reason="the tests are too short")
    verdict = conclude(found(cost=short, **changes), QUIET, CLEAN)
    assert verdict.word is Verdict.INCONCLUSIVE
    assert verdict.reasons[0] == "what it costs one thread was not measured: the tests are too short"
    assert not any("GIL is off at their end" in reason for reason in verdict.reasons)   # it is no reason for doubt


def test_one_thing_that_is_lacking_is_one_reason():
    verdict = conclude(found(cost=Missing(reason="the tests are too short"), gain=NOT_DONE), QUIET, CLEAN)
    assert verdict.reasons == ("what it costs one thread was not measured: the tests are too short",)


def test_what_blocks_or_brings_nothing_needs_no_cost():
    assert conclude(found(cost=NOT_DONE, tests=suite(failed=1)), QUIET, CLEAN).word is Verdict.BLOCKED
    assert conclude(found(cost=NOT_DONE, gain=gain(wait=0.001)), QUIET, CLEAN).word is Verdict.NOT_WORTH_IT


BUSY = replace(QUIET, doubts=("busy",))


@pytest.mark.parametrize(("factor", "word"), [(1.05, Verdict.READY), (1.12, Verdict.INCONCLUSIVE),
                                              (1.19, Verdict.INCONCLUSIVE), (1.3, Verdict.WITH_COST)])
def test_cpu_time_of_a_busy_machine_is_told_in_a_wide_interval(factor, word):
    verdict = conclude(found(cost=cost(factor)), BUSY, CLEAN)   # within 2 %, so within 4 % here
    assert (verdict.word, verdict.confidence) == (word, "medium")
    (said,) = [reason for reason in verdict.reasons if "times the CPU time" in reason]
    assert said.startswith(f"one thread takes {factor:.2f} [{factor / 1.02 ** 2:.2f}, {factor / 0.98 ** 2:.2f}] times")
    assert ("it may cost more than 15 %" in said) is (word is Verdict.INCONCLUSIVE)


def test_noise_of_a_busy_machine_is_doubt():
    assert conclude(found(cost=cost(1.05, cpu=ratio(1 / 1.05, floor=0.1))), BUSY, CLEAN).word is Verdict.INCONCLUSIVE


def test_memory_is_of_a_named_process():
    of = Memory(here=85 * 2**20, there=68 * 2**20, process="the process of the workload with 2 threads")
    (reason,) = [each for each in conclude(found(cost=cost(memory=of)), QUIET, CLEAN).reasons if "memory" in each]
    assert reason == ("25 % more memory than on 3.14: 85.0 MiB instead of 68.0 MiB, the process of the workload with 2 "
                      "threads")
    small = replace(of, here=25 * 2**20, there=18 * 2**20)
    assert conclude(found(cost=cost(memory=small)), QUIET, CLEAN).word is Verdict.READY


OUT = LeftOut(file="tests/test_x.py", why="ImportError: no")


def test_file_that_cannot_be_collected_here_alone_blocks():
    verdict = conclude(found(tests=suite(left_out=(OUT,))), QUIET, CLEAN)
    assert verdict.word is Verdict.BLOCKED
    assert verdict.reasons == ("tests/test_x.py cannot be collected, and can on 3.14: ImportError: no",)
    lacking = suite(left_out=(OUT,), lacking=("psutil",))
    assert conclude(found(tests=lacking), QUIET, CLEAN).word is Verdict.INCONCLUSIVE


def test_file_that_cannot_be_collected_says_nothing_without_a_build_to_compare_with():
    # An sdist without a helper of its tests: nothing of the project has to be mended for free threading.
    alone = found(tests=suite(left_out=(OUT,)), reference_tests=Missing(reason="there is no 3.14"))
    verdict = conclude(alone, QUIET, CLEAN)
    assert verdict.word is Verdict.INCONCLUSIVE
    assert "whether they can with the GIL is not known: tests/test_x.py: ImportError: no" in verdict.reasons[0]


def test_file_that_cannot_be_collected_anywhere_lowers_the_confidence():
    both = {"tests": suite(left_out=(OUT,)), "reference_tests": suite(build="3.14", left_out=(OUT,))}
    verdict = conclude(found(**both), QUIET, CLEAN)
    assert (verdict.word, verdict.confidence) == (Verdict.READY, "medium")
    assert verdict.unexercised == ("tests/test_x.py: cannot be collected, see Tests left out",)


@pytest.mark.parametrize(("changes", "word"), [   # on both sides of each bound
    ({"cost": cost(1.14)}, Verdict.READY), ({"cost": cost(1.16)}, Verdict.WITH_COST),
    ({"cost": cost(memory=resident(1.25, more=2**24 - 2))}, Verdict.READY),   # as of an empty interpreter
    ({"cost": cost(memory=resident(1.25, more=2**24))}, Verdict.WITH_COST),
    ({"cost": cost(memory=resident(1.19))}, Verdict.READY), ({"cost": cost(memory=resident(1.21))}, Verdict.WITH_COST),
    ({"gain": gain(wait=0.04)}, Verdict.NOT_WORTH_IT), ({"gain": gain(wait=0.06)}, Verdict.READY),
    ({"gain": gain({2: ratio(1.17)})}, Verdict.NOT_WORTH_IT), ({"gain": gain({2: ratio(1.19)})}, Verdict.READY),
    ({"gain": gain({2: ratio(1.0, rounds=2)})}, Verdict.READY),   # too few to tell
    ({"contention": NOT_DONE}, Verdict.READY),
    ({"contention": Contention(inflation=1.0, parked=None, places=())}, Verdict.READY),
    ({"contention": Contention(inflation=1.4, parked=0.09, places=())}, Verdict.READY),
    ({"contention": Contention(inflation=1.6, parked=0.0, places=())}, Verdict.WITH_COST),
    ({"contention": Contention(inflation=1.0, parked=0.11, places=())}, Verdict.WITH_COST),
])
def test_bounds_of_the_rules(changes, word):
    assert conclude(found(**changes), QUIET, CLEAN).word is word


def test_slower_within_the_noise_is_no_cost():
    cost = Cost(against="3.14", cpu=ratio(0.8, floor=0.5), import_seconds=None)
    assert conclude(found(cost=cost), QUIET, CLEAN).word is Verdict.READY


@pytest.mark.parametrize(("given", "reason"), [
    (gain({2: ratio(1.0), 4: ratio(1.05)}), "the workload is 1.05x"),
    (gain(wait=0.01), "wait for the GIL 1.0 %"),
])
def test_no_gain_is_not_worth_it(given, reason):
    verdict = conclude(found(gain=given), QUIET, CLEAN)
    assert verdict.word is Verdict.NOT_WORTH_IT
    assert reason in verdict.reasons[0]


def test_few_waits_on_a_machine_that_was_busy_just_then_prove_nothing():
    busy = replace(gain(wait=0.03), queued=0.4)
    assert conclude(found(gain=busy), QUIET, CLEAN).word is Verdict.READY
    assert conclude(found(gain=replace(busy, queued=0.1)), QUIET, CLEAN).word is Verdict.NOT_WORTH_IT


def test_program_of_one_thread_is_told_from_threads_that_never_wait():
    verdict = conclude(found(gain=replace(gain(wait=0.0), busiest=0.99)), QUIET, CLEAN)
    assert verdict.reasons == (("threads wait for the GIL 0.0 % of their time on 3.14: no gain; all the work "
                               "is one thread's"),)
    (reason,) = conclude(found(gain=replace(gain(wait=0.0), busiest=0.9)), QUIET, CLEAN).reasons
    assert reason.endswith("no gain")


def test_measured_gain_beats_few_waits():
    given = gain({2: ratio(1.8)}, wait=0.01)
    assert conclude(found(gain=given), QUIET, CLEAN).word is Verdict.READY


def test_gain_that_is_not_known_decides_nothing():
    assert conclude(found(gain=gain(wait=None)), QUIET, CLEAN).word is Verdict.READY


def test_what_was_not_looked_at_lowers_the_confidence_and_is_said():
    verdict = conclude(found(gain=NOT_DONE, contention=NOT_DONE), replace(QUIET, doubts=("busy",)), NOT_DONE)
    assert verdict.confidence == "medium"
    assert verdict.unexercised == ("races: not asked for", "gain: not asked for", "contention: not asked for",
                                   "speed: busy")


def test_nothing_run_is_low_confidence():
    verdict = conclude(found(tests=NOT_DONE, cost=NOT_DONE), NOT_DONE, CLEAN)
    assert (verdict.confidence, verdict.unexercised) == (
        "low", ("tests: not asked for", "cost of one thread: not asked for", "machine: not asked for"))
    assert conclude(found(readiness=NOT_DONE), QUIET, CLEAN).confidence == "low"


def test_only_what_is_faster_is_told_as_a_gain():
    reasons = conclude(found(gain=gain({1: ratio(0.9), 2: ratio(1.8)})), QUIET, CLEAN).reasons
    assert [reason for reason in reasons if "as fast as" in reason] == [
        "1.80x [1.76, 1.84] as fast as 3.14 with 2 threads"]


@pytest.mark.parametrize(("statuses", "word"), [
    ([InterpreterStatus.OK], Verdict.READY), ([InterpreterStatus.OK, InterpreterStatus.LOST], Verdict.WITH_COST),
    ([InterpreterStatus.LOST, InterpreterStatus.FAILS], Verdict.BLOCKED), ([InterpreterStatus.CRASH], Verdict.BLOCKED),
    ([InterpreterStatus.UNKNOWN, InterpreterStatus.LOST], Verdict.INCONCLUSIVE),
])
def test_subinterpreters(statuses, word):
    findings = (finding(Status.READY, status) for status in statuses)
    verdict = conclude_interpreters(inside(*findings, measured=ratio(1.8), trial=trial()), QUIET, CLEAN)
    assert (verdict.target, verdict.word) == ("subinterpreters on 3.14", word)


@pytest.mark.parametrize("status", [InterpreterStatus.OK, InterpreterStatus.LOST])
@pytest.mark.parametrize(("measured", "machine", "why"), [
    (NOT_DONE, QUIET, "not asked for"), (ratio(1.02, rounds=2), QUIET, "too few rounds"), (ratio(1.8), BUSY, "busy")])
def test_no_model_is_ready_whose_gain_was_not_measured(status, measured, machine, why):
    reason = f"whether the workload is faster in them is not known: {why}"
    processes = MadeInside(build=make_build("3.14"), measured=measured)
    for verdict in (conclude_interpreters(inside(finding(Status.READY, status), measured=measured), machine),
                    conclude_processes(processes, machine)):
        assert (verdict.word, verdict.confidence, verdict.reasons[0]) == (Verdict.INCONCLUSIVE, "low", reason)


def test_subinterpreters_without_a_workload_show_that_everything_loads_and_no_more():
    verdict = conclude_interpreters(inside(finding(), trial=trial()), QUIET)
    assert verdict.reasons[1] == "1 package loads in interpreters with a GIL of their own"
    assert verdict.unexercised == ("the project's own code in subinterpreters: not asked for",)
    two, none = (conclude_interpreters(inside(*each, trial=trial()), QUIET) for each in ([finding()] * 2, []))
    assert two.reasons[1].startswith("2 packages load")
    assert none.reasons[1] == "no package is in the way"


def test_subinterpreters_in_which_nothing_of_the_project_was_tried_are_not_ready():
    verdict = conclude_interpreters(inside(finding(), trial=NO_TIME), QUIET)
    assert (verdict.word, verdict.reasons[0]) == (
        Verdict.INCONCLUSIVE, "nothing of the project itself was tried in them: no time was left in the budget")


def test_what_fails_in_subinterpreters_has_its_reason():
    crash = finding(Status.READY, InterpreterStatus.CRASH, "SIGSEGV", "more")
    assert conclude_interpreters(inside(crash), QUIET).reasons == ("lxml 6.1 crashes: SIGSEGV",)
    two = (imports(*(load(name=name, file="", error=REFUSED) for name in ("a.b", "c.d")), load(name="fine")),)
    fails = finding(Status.READY, InterpreterStatus.FAILS)
    fails = replace(fails, seen=replace(fails.seen, interpreters=two))
    (reason,) = conclude_interpreters(inside(fails), QUIET).reasons
    assert reason == "lxml 6.1 cannot be imported: a.b and 1 more refuse"


def test_module_that_refuses_is_told_once_with_all_that_import_it():
    refused = lxml().seen.interpreters
    soup = replace(finding(Status.READY, InterpreterStatus.FAILS), name="soup")
    other, soup = (replace(each, seen=replace(each.seen, interpreters=refused))
                   for each in (replace(soup, name="feeds"), soup))
    assert conclude_interpreters(inside(soup, lxml(), other), QUIET).reasons == (
        "lxml 6.1 cannot be imported: lxml.etree refuses; soup and feeds import it",)
    assert "soup 6.1 cannot be imported: lxml.etree refuses" in conclude_interpreters(inside(soup), QUIET).reasons


def test_subinterpreters_not_looked_at():
    given = MadeInside(build=make_build("3.14"), readiness=NOT_DONE, measured=NOT_DONE)
    assert conclude_interpreters(given, QUIET).word is Verdict.INCONCLUSIVE


def test_package_that_loses_its_c_code_is_charged_with_its_own_modules_alone():
    refused = (imports(*(load(name=name, file="", error=REFUSED) for name in ("yarl.quoting", "lxml.etree"))),)
    lost = replace(lxml(), interpreters=InterpreterStatus.LOST, seen=replace(lxml().seen, interpreters=refused))
    reasons = conclude_interpreters(inside(lost, trial=trial()), QUIET).reasons
    assert reasons[1] == "lxml 6.1 loses its C code: lxml.etree refuses"


def test_subinterpreters_by_a_measured_workload_are_sure():
    verdict = conclude_interpreters(inside(finding(), measured=ratio(1.8)), QUIET, CLEAN)
    assert (verdict.word, verdict.confidence, verdict.unexercised) == (Verdict.READY, "high", ())


@pytest.mark.parametrize(("looks", "words"), [
    ((), "name a --workload, or --threads 4 for its tests"),
    ((LOOK,), "name a --workload, or --threads 4 for its tests"),
    ((replace(LOOK, of="tests at once", workers=4),), "its tests ran in 4 threads each, and no Python code"),
    ((replace(LOOK, of="workload", workers=8),), "the workload was called from 8 threads, and no Python code"),
    ((LOOK, replace(LOOK, of="script")), "the script ran, and no Python code"),
    ((replace(LOOK, of="script", threads=False),), "the script ran and started no threads, and no Python code")])
def test_nobody_is_told_to_do_what_was_done(looks, words):
    races = replace(CLEAN, looks=tuple(replace(look, together=False) for look in looks))
    (said,) = (each for each in conclude(found(), QUIET, races).unexercised if each.startswith("threads: "))
    assert words in said
    assert ("--threads" in said) is ("--threads" in words)


def test_workload_that_was_named_and_not_seen_is_not_asked_for():
    races = replace(CLEAN, looks=(replace(LOOK, together=False),), lacking=(("workload", Missing(reason="it hangs")),))
    (said,) = (each for each in conclude(found(), QUIET, races).unexercised if each.startswith("threads: "))
    assert said.startswith("threads: the workload was not seen in threads (it hangs), and no Python code")


@pytest.mark.parametrize("tests", [suite(passed=None, failed=None, ending="4"), suite(passed=0)])
@pytest.mark.parametrize(("by", "of", "seen"), [
    ("workload", "tests", "of the project only the workload was seen"),
    ("tests", "script", "of the project only the workload was seen"),
    ("tests", "tests", "nothing of the project was seen")])
def test_what_was_seen_beside_tests_that_show_nothing(tests, by, of, seen):
    build = found(tests=tests, reference_tests=tests, cost=replace(found().cost, by=by))
    (said,) = conclude(build, QUIET, replace(CLEAN, looks=(replace(LOOK, of=of),))).reasons
    assert said.endswith(seen)


SHARED = SharedFact(variable="CACHE", file="a.py", line=3)
ASKED = {"subinterpreters": lambda races: conclude_interpreters(inside(finding(), measured=ratio(1.8)), QUIET, races),
         "processes": lambda races: conclude_processes(
             MadeInside(build=make_build("3.14"), measured=ratio(1.8)), QUIET, races)}


@pytest.mark.parametrize("model", ASKED)
def test_state_that_the_workload_shares_is_named_where_each_worker_would_have_a_copy(model):
    verdict = ASKED[model](replace(CLEAN, shared=(SHARED,) * 5))
    assert verdict.word is Verdict.INCONCLUSIVE
    assert "and 2 more: each " in verdict.reasons[0]
    assert "share CACHE (changed at a.py:3)" in verdict.reasons[0]
    assert "1.80x" in verdict.reasons[1]


def test_shared_state_is_named_whether_or_not_processes_are_faster():
    unknown = MadeInside(build=make_build("3.14"), measured=NOT_DONE)
    verdict = conclude_processes(unknown, QUIET, replace(CLEAN, shared=(SHARED,)))
    assert (verdict.word, len(verdict.reasons)) == (Verdict.INCONCLUSIVE, 2)
    assert "share CACHE" in verdict.reasons[0]


@pytest.mark.parametrize("model", ASKED)
@pytest.mark.parametrize(("races", "why"), [
    (NOT_DONE, "not asked for"), (replace(CLEAN, shared=None), "it was not looked at"),
    (replace(CLEAN, shared=None, lacking=(("workload", Missing(reason="it hangs")),)), "it hangs"),
    (replace(CLEAN, unwatched=(Unwatched(file="app.py", line=3, what="what exec runs"),)),
     "nothing watched what exec runs (app.py:3)")])
def test_copies_are_not_ready_where_nobody_looked_what_is_shared(model, races, why):
    verdict = ASKED[model](races)
    assert verdict.word is Verdict.INCONCLUSIVE
    assert verdict.reasons[0].endswith(f"a copy of what the workload's threads share is not known: {why}")
    assert "the workload is 1.80x [1.76, 1.84] as fast as in threads of 3.14" in verdict.reasons


def test_subinterpreters_that_gain_nothing_are_not_worth_it():
    assert conclude_interpreters(inside(finding(), measured=ratio(1.02)), QUIET).word is Verdict.NOT_WORTH_IT


def test_workload_that_fails_in_subinterpreters_only_blocks():
    verdict = conclude_interpreters(inside(finding(), failure="ImportError: nope"), QUIET)
    assert (verdict.confidence, verdict.unexercised) == ("high", ())   # it was tried
    assert (verdict.word, verdict.reasons) == (Verdict.BLOCKED, ("the workload fails in them: ImportError: nope",))


@pytest.mark.parametrize(("measured", "machine", "word", "reason"), [
    (ratio(1.8), QUIET, Verdict.READY, "1.80x [1.76, 1.84] as fast as in threads of 3.14"),
    (ratio(1.05), QUIET, Verdict.NOT_WORTH_IT, "1.05x"),
    (NOT_DONE, QUIET, Verdict.INCONCLUSIVE, "known: not asked for"),
    (ratio(1.8), replace(QUIET, doubts=("busy", "small")), Verdict.INCONCLUSIVE, "not known: busy; small"),
    (ratio(1.8), NOT_DONE, Verdict.INCONCLUSIVE, "not known: not asked for"),
    (ratio(1.8, rounds=2), QUIET, Verdict.INCONCLUSIVE, "not known: too few rounds"),
])
def test_processes(measured, machine, word, reason):
    verdict = conclude_processes(MadeInside(build=make_build("3.14"), measured=measured), machine, CLEAN)
    assert (verdict.target, verdict.word) == ("processes on 3.14", word)
    assert reason in verdict.reasons[0]


@pytest.mark.parametrize("changes", [
    {"gain": gain({2: ratio(1.0)})},
    {"contention": Contention(inflation=2.9, parked=0.2, places=())},
])
def test_busy_machine_has_no_word_on_speed(changes):
    assert conclude(found(**changes), QUIET, CLEAN).word is not Verdict.READY
    verdict = conclude(found(**changes), replace(QUIET, doubts=("busy",)), CLEAN)
    assert verdict.word is Verdict.READY
    assert "speed: busy" in verdict.unexercised
    assert not any("as fast as" in reason for reason in verdict.reasons)


@pytest.mark.parametrize(("wait", "word"), [(0.009, Verdict.NOT_WORTH_IT), (0.011, Verdict.READY)])
def test_threads_that_never_wait_gain_nothing_on_a_busy_machine_either(wait, word):
    verdict = conclude(found(gain=gain(wait=wait)), replace(QUIET, doubts=("busy",)), CLEAN)
    assert verdict.word is word


def test_files_that_cannot_be_collected_are_no_failing_tests():
    here = suite(passed=0, failed=0, errors=2, uncollected=2, ending="2", output="E   ImportError: no")
    facts = concluded(found(tests=here, reference_tests=here)).facts
    assert not {each.code for each in facts} & {"tests.failing", "tests.fail-only-here", "tests.to-look-at"}


def test_confirmed_race_stands_among_the_races_too():
    race = RaceFact(kind="lost update", variable="total", file="a.py", line=3, confirmed=True)
    (fact,) = [each for each in concluded(found(), races=replace(CLEAN, found=(race,))).facts
               if each.code == "race.confirmed"]
    assert fact.heading == "Races"


@pytest.mark.parametrize(("other", "code", "word"), [
    ("tests/helper.py", "race.in-tests", Verdict.READY), ("a.py", "race.confirmed", Verdict.BLOCKED)])
def test_race_between_lines_of_tests_alone_blocks_nothing(other, code, word):
    places = (Place(file="pkg/test_a.py", line=3), Place(file=other, line=5))
    race = RaceFact(kind="lost update", variable="seen", file="pkg/test_a.py", line=3, confirmed=True, places=places)
    evaluation = concluded(found(), races=replace(CLEAN, found=(race,)))
    (fact,) = [each for each in evaluation.facts if each.subject == "seen"]
    assert (fact.code, evaluation.conclusions[0].word) == (code, word)


def test_package_that_needs_one_that_could_not_be_installed_waits_for_the_owners_of_that():
    needy = finding(Status.FAILS, InterpreterStatus.FAILS, "lxml: ModuleNotFoundError: No module named 'zope.proxy'")
    needy = replace(needy, seen=replace(needy.seen, distribution=replace(needy.seen.distribution,
                                                                         requires=("zope-proxy", "six"))))
    absent = replace(finding(Status.NO_WHEEL), name="zope-proxy", version="7.3",
                     seen=PackageEvidence(distribution=None))
    facts = {each.subject: each for each in concluded(found(readiness=report(needy, absent))).facts
             if each.code.startswith("package.") and each.target == "3.14t"}
    assert facts["lxml 6.1"].text == "lxml 6.1 cannot be imported without zope-proxy"
    assert {each.owner for each in facts.values()} == {"zope-proxy"}
    assert facts["lxml 6.1"].action == "zope-proxy first: lxml needs it"
    alone = {each.subject: each for each in concluded(found(readiness=report(needy))).facts}
    assert alone["lxml 6.1"].owner == "lxml"
