"""Should we move?  The decision, who must act, gain and price, each by what was found; made-up findings throughout."""

from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.toolkit.evaluate.decision import Decision, Effort
from gilscope.toolkit.evaluate.packages.evidence import InterpreterStatus, Status
from gilscope.toolkit.evaluate.probes.cost import best_known_cost
from gilscope.toolkit.evaluate.probes.gain import best_known_gain
from gilscope.toolkit.evaluate.project.extensions.own_extensions import (
    Binding,
    ExtensionSource,
    OwnBuild,
    OwnExtensions,
    Remark,
    UnbuiltModule,
)
from gilscope.toolkit.evaluate.project.measured import FEW
from gilscope.toolkit.evaluate.project.workload.speed import STARVED
from gilscope.toolkit.evaluate.request import EvaluationRequest
from gilscope.toolkit.evaluate.sections import (
    NO_TIME,
    Cause,
    Contention,
    Forced,
    Memory,
    Missing,
    Place,
    RaceFact,
    Unwatched,
    WorkloadFailure,
)
from gilscope.toolkit.evaluate.verdict import answer
from gilscope.toolkit.evaluate.verdict import judged as answered
from gilscope.toolkit.evaluate.views import answer as first
from gilscope.toolkit.gil.records import WaitReason
from tests.evaluate.made_up import (
    CACHE,
    CLEAN,
    NOT_DONE,
    QUIET,
    MadeInside,
    concluded,
    evaluation,
    finding,
    found,
    gain,
    lxml,
    ratio,
    report,
    suite,
)
from tests.fakes import make_build

BUSY = replace(QUIET, doubts=("2 cores do only 1.10 cores' work at once",))
RACE = RaceFact(kind="lost update", variable="total", file="shop/counter.py", line=17, confirmed=True)
MEMORY = Memory(here=85 * 2**20, there=68 * 2**20, process="the process of the workload with 2 threads")


def told(*builds, **others):
    """Return the answer to builds on which those things were found."""
    return answer(concluded(*builds, **others))


def said(given):
    return "\n".join(first.lines(given))


PROCESSES = (MadeInside(build=make_build("3.14"), measured=ratio(1.7)),)


@pytest.mark.parametrize(("changes", "decision"), [
    ({}, Decision.MOVE), ({"gain": NOT_DONE}, Decision.CAN), ({"gain": gain()}, Decision.CAN),
    ({"gain": gain({2: ratio(1.0)})}, Decision.NO), ({"tests": NOT_DONE}, Decision.UNKNOWN),
    ({"tests": NOT_DONE, "gain": gain(wait=0.001)}, Decision.NO),
    ({"cost": NOT_DONE}, Decision.UNKNOWN), ({"readiness": report(finding(Status.GIL))}, Decision.NOT_YET),
    # What is in the way does not matter where nothing is to be gained.
    ({"readiness": report(finding(Status.GIL)), "gain": gain(wait=0.001)}, Decision.NO),
    ({"readiness": report(finding(Status.LOST))}, Decision.MOVE),
])
def test_decision(changes, decision):
    assert told(found(**changes)).decision is decision


def test_work_that_is_another_there_gains_nothing():
    other = "the workload gives 1 in threads, and 2 on 3.14"
    seen = told(found(differs=other))
    assert seen.decision is Decision.UNKNOWN
    assert seen.because == f"3.14t: {other}: the threads do different work, so a speed-up means nothing"
    assert seen.gain == Missing(reason="the threads do different work, so a speed-up means nothing")


def test_what_is_not_watched_is_a_place_of_ours():
    races = replace(CLEAN, unwatched=(Unwatched(file="app.py", line=3, what="what exec runs"),))
    assert told(found(), races=races).effort.places == (Place(file="app.py", line=3),)


def test_busy_machine_promises_no_gain():
    given = told(found(), machine=BUSY)
    assert given.decision is Decision.CAN
    assert isinstance(given.gain, Missing)
    assert "the interval is twice as wide, as the machine was busy or small" in said(given)
    assert given.more == "gilscope evaluate . --wait-quiet"


def test_answer_is_about_the_build_that_most_can_be_said_of():
    blocked = found(build=make_build("3.15t"), readiness=report(finding(Status.GIL)))
    assert told(blocked, found()).target == "3.14t"
    worse = found(readiness=report(finding(Status.GIL), replace(finding(Status.CRASH), name="other")))
    assert told(worse, blocked).target == "3.15t"
    assert told(blocked, found(tests=NOT_DONE)).target == "3.15t"
    unseen = found(build=make_build("3.15t"), readiness=Missing(reason="no index"))
    assert told(unseen, found(tests=NOT_DONE)).target == "3.14t"
    assert told(found(), found(build=make_build("3.15t"))).target == "3.15t"   # the newest of equals
    assert told() is None


def test_who_must_act_and_what_is_ours():
    mended = replace(report(finding(Status.GIL), replace(finding(Status.NO_WHEEL), name="orjson")),
                     newest={"lxml": ("7.0", Status.READY)})
    given = told(found(readiness=mended), races=replace(CLEAN, found=(RACE,)))
    assert [(each.what, each.who, each.action.partition(":")[0].partition(",")[0]) for each in given.blockers] == [
        ("lxml 6.1 turns the GIL on", None, "take lxml 7.0"),
        ("orjson 6.1 has no wheel", "orjson", "orjson has no wheel"),
        ("data race on total (lost update, shop/counter.py:17), confirmed: fix it first", None, "")]
    assert given.effort == Effort(files=("shop/counter.py",), places=(Place(file="shop/counter.py", line=17),),
                                  packages=("lxml 7.0", "orjson"), unknown="")
    text = said(given)
    assert ("Not yet: on 3.14t 1 package stands in the way, and no newer version helps; 1 package has to be taken in "
            "a newer version; 1 thing of our own has to be mended.") in text
    assert "effort: 1 place in 1 file of ours to be looked at (shop/counter.py:17); 2 packages to change" in text
    assert given.more == "gilscope evaluate . --explain orjson"


def test_lost_c_code_that_costs_too_much_is_its_owners_affair():
    lost = found(readiness=report(finding(Status.LOST)), cost=replace(found().cost, cpu=ratio(0.7)))
    (blocker,) = told(lost).blockers
    assert (blocker.who, blocker.what.partition(",")[0]) == ("lxml", "lxml 6.1 loses its C code")


def test_gil_that_a_package_turned_on_is_not_blamed_on_us_as_well():
    flipped = found(readiness=report(finding(Status.GIL)), tests=suite(gil_end=True, culprits=("lxml.etree",)))
    assert [each.who for each in told(flipped).blockers] == ["lxml"]
    alone = found(tests=suite(gil_end=True, culprits=("ours._c",)))
    assert [(each.who, each.what) for each in told(alone).blockers] == [
        (None, "the GIL was on at the end of the tests (ours._c)")]


def test_ready_has_nothing_in_the_way():
    given = told(found())
    assert given.blockers == ()
    assert given.because == "nothing is in the way on 3.14t, and threads gain"
    assert "in the way (" not in said(given)
    assert "no place of ours is known to need a change" in said(given)


def test_effort_says_when_races_were_not_looked_for():
    unread = told(found(), races=NOT_DONE)
    assert "effort: no source of ours was read; races were not looked for: not asked for\n" in said(unread)
    source = ExtensionSource(file="src/etree.c", language="C", binding=Binding.C_API, defines=True, line=90,
                             declared=True, declare="", remarks=())
    read = told(found(), races=NOT_DONE, extensions=OwnExtensions(unsure=("?",), sources=(source,)))
    assert ("effort: no place of ours is known to need a change; races were not looked for: not asked for\n"
            in said(read))


def test_effort_says_when_there_was_no_time_to_look_for_races():
    late = f"{NO_TIME.reason}: the race checker was not done within 1 s"
    races = replace(CLEAN, looks=(), shared=None, lacking=(
        ("workload", Missing(reason=late, cause=Cause.TIME)), ("tests", NO_TIME)))
    assert told(found(), races=races).effort.unknown == "races were not looked for: no time was left in the budget"
    looked = replace(races, looks=CLEAN.looks)
    assert told(found(), races=looked).effort.unknown == ""


def test_what_measures_or_tests_a_project_is_no_place_of_its_own():
    race = replace(RACE, file="tests/test_shop.py", line=3)
    load = replace(CACHE, file="load.py", line=6, what="a dict")
    waits = Contention(inflation=1.0, parked=0.05, places=(CACHE, load))
    given = concluded(found(contention=waits), races=replace(CLEAN, found=(race,)))
    effort = answer(replace(given, project=replace(given.project, measuring="load.py"))).effort
    assert (effort.places, effort.files, effort.beside) == (
        (CACHE,), ("cache.py",), (load, Place(file="tests/test_shop.py", line=3)))
    said_ = said(answer(replace(given, project=replace(given.project, measuring="load.py"))))
    assert ("effort: 1 place in 1 file of ours to be looked at (cache.py:41); 2 places in what tests or measures it "
            "(load.py:6, tests/test_shop.py:3)") in said_
    assert load in answer(given).effort.places   # a module of the project's own that holds the workload


def test_thing_to_mend_whose_place_nobody_knows_is_no_effort_of_nothing():
    fails = WorkloadFailure(kind="fails", detail="with 2 threads: AssertionError")
    text = said(told(found(failure=fails)))
    assert "1 thing of our own has to be mended" in text
    assert "effort: where it has to be mended is not known yet" in text
    assert "effort: no place of ours" not in text
    packages = said(told(found(readiness=report(finding(Status.GIL)))))
    assert "effort: no place of ours is known to need a change; 1 package to change" in packages


def test_gil_that_was_on_keeps_the_gain_unknown_on_a_busy_machine_too():
    flipped = Missing(reason="the GIL was on at the end of the workload: app._c turned it on")
    assert best_known_gain(concluded(found(gain=gain(measured=flipped)), machine=BUSY), "3.14t") == flipped
    for measured in ({2: ratio(1.5)}, replace(flipped, cause=Cause.BUSY)):
        seen = concluded(found(gain=gain(measured=measured)), machine=BUSY)
        assert best_known_gain(seen, "3.14t").reason.startswith(
            "the machine was too busy")


@pytest.mark.parametrize(("here", "there", "words"), [
    (("app._c", "0123456789abcdef0123__mypyc"), ("app._c",), "3.14, with its compiled app._c"),
    ((), (), "3.14, of its Python code alone: it loaded none of its extension modules"),
    ((), ("app._c",), "3.14, with its Python code alone here and its compiled app._c on 3.14"),
    (None, ("app._c",), "3.14\n")])
def test_cost_says_which_variant_of_the_code_was_measured(here, there, words):
    cost = replace(found().cost, compiled=here, compiled_there=there)
    assert f"times the CPU time of {words}" in said(told(found(cost=cost, own=OwnBuild(build="3.14t"))))
    assert "compiled" not in said(told(found(cost=cost)))   # it has none


def test_first_screen_leaves_out_how_it_was_seen():
    own = OwnBuild(build="3.14t", report=report(lxml()))
    (blocker,) = told(found(own=own)).blockers
    assert blocker.what == ("its own extension module lxml.etree turns the GIL on when imported: not declared to do "
                            "without it")


def test_effort_names_the_ways_that_no_thread_took():
    races = replace(CLEAN, unreached=(Unwatched(file="auth.py", line=23, what="self.renew()"),))
    assert told(found(), races=CLEAN).effort.unknown == ""
    assert told(found(), races=races).effort.unknown == (
        "no thread came to auth.py:23 (self.renew()), which changes what they share")


def test_sources_of_its_own_extension_modules_are_places():
    remark = Remark(line=40, concern="borrowed reference", what="PyDict_GetItem")
    source = ExtensionSource(file="src/etree.c", language="C", binding=Binding.C_API, defines=True, line=90,
                             declared=False, declare="a slot", remarks=(remark,))
    own = OwnBuild(build="3.14t", report=report(lxml()))
    flipped = found(own=own, tests=suite(gil_end=True, culprits=("lxml.etree",)))
    given = told(flipped, extensions=OwnExtensions(unsure=("?",), sources=(source,)))
    assert [*map(str, given.effort.places)] == ["src/etree.c:40", "src/etree.c:90"]
    assert [each.who for each in given.blockers] == [None]   # the tests only show what the module does
    assert given.more == "gilscope evaluate . --explain extensions"
    fine = told(found(), extensions=OwnExtensions(unsure=("?",), sources=(source,)))
    assert [*map(str, fine.effort.places)] == ["src/etree.c:40"]   # it relies on the GIL all the same


def test_lines_where_threads_wait_count_as_places_but_not_a_libraries_nor_a_collection():
    places = (CACHE, replace(CACHE, file="site-packages/lxml/html.py", own=False),
              replace(CACHE, line=9, wait=WaitReason.WORLD))
    given = told(found(contention=Contention(inflation=1.0, parked=0.05, places=places)))
    assert given.effort.places == (CACHE,)


@pytest.mark.parametrize(("given", "how", "words"), [
    (gain({2: ratio(1.5), 4: ratio(1.9)}), "measured", "1.90x [1.86, 1.94] as fast as 3.14 with 4 threads, measured"),
    (gain(), "at most", "at most 1.90x as fast as 3.14"),
])
def test_gain_is_the_best_that_is_known(given, how, words):
    seen = best_known_gain(concluded(found(gain=given), machine=QUIET), "3.14t")
    assert seen.how == how
    assert words in said(told(found(gain=given)))


def test_gain_says_for_which_threads():
    uneven = replace(gain({0: ratio(1.5)}), threads=3, busiest=0.8)
    assert ("1.50x [1.47, 1.53] as fast as 3.14, measured; the workload has 3 threads at once today, the busiest with "
            "80 % of their CPU time") in said(told(found(gain=uneven)))
    alone = replace(gain({0: ratio(1.5)}), threads=1, busiest=1.0)
    assert said(told(found(gain=alone))).count("busiest") == 0


def test_gain_and_cost_with_the_gil_forced_off_stand_in():
    forced = Forced(against="3.14", by="workload", cost=found().cost, measured={2: ratio(1.4)}, failure="",
                    machine=QUIET)
    blocked = found(readiness=report(finding(Status.GIL)), gain=NOT_DONE, cost=NOT_DONE, forced=forced)
    assert best_known_gain(concluded(blocked, machine=QUIET), "3.14t").how == "forced off"
    assert best_known_cost(concluded(blocked, machine=QUIET), "3.14t").times == pytest.approx(1 / 0.95)
    text = said(told(blocked))
    assert "1.40x [1.37, 1.43] as fast as 3.14 with 2 threads, measured, with the GIL forced off, which is not" in text
    assert "times the CPU time of 3.14, with the GIL forced off, which is not safe" in text
    kept = replace(blocked, forced=replace(forced, cost=replace(found().cost, memory=MEMORY)))
    assert "of the workload with 2 threads, with the GIL forced off, which is not safe)" in said(told(kept))
    busy = replace(blocked, forced=replace(forced, machine=BUSY))
    assert isinstance(best_known_gain(concluded(busy, machine=QUIET), "3.14t"), Missing)
    # The section below judges no speed either.
    assert best_known_cost(concluded(busy, machine=QUIET), "3.14t") == NOT_DONE


def test_memory_is_of_a_named_process_in_mib():
    cost = replace(found().cost, memory=MEMORY)
    text = said(told(found(cost=cost)))
    assert "memory: 85.0 MiB, 68.0 MiB on 3.14 (the process of the workload with 2 threads)" in text
    assert "memory: not measured" in said(told(found()))


def test_what_works_with_the_gil_is_said_where_moving_does_not():
    given = evaluation()
    assert given.answer.instead == ("processes on 3.14: 1.70x [1.67, 1.73] as fast as threads there",)
    assert told(found(), processes=PROCESSES).decision is Decision.MOVE
    assert told(found(), processes=PROCESSES).instead == ()
    assert told(found(gain=NOT_DONE), processes=PROCESSES).instead == given.answer.instead


def test_one_command_tells_more():
    assert told(found(gain=NOT_DONE)).more == "gilscope evaluate . --workload MODULE:FUNCTION"
    assert told(found()).more == "gilscope evaluate . --plan"
    assert told(found(gain=NO_TIME, cost=NO_TIME), machine=NO_TIME).more == "gilscope evaluate . --budget 7m"
    assert told(found(gain=NOT_DONE, tests=NO_TIME)).more == "gilscope evaluate . --budget 7m"
    short = concluded(found(gain=NOT_DONE, tests=NO_TIME))
    request = EvaluationRequest(path=Path(), budget=60.0, offline=True)
    given = answered(replace(short, request=request)).answer
    assert given.more == "gilscope evaluate . --offline --budget 7m"
    one_core = replace(QUIET, cores=1, doubts=("one core only",))
    assert told(found(), machine=one_core).more == "gilscope evaluate . --plan"


@pytest.mark.parametrize(("changes", "option"), [
    ({"tests": suite(ending="unfinished: not done within 9 s, at 20 %", passed=None)}, " --budget 7m"),
    ({"cost": FEW, "gain": NOT_DONE}, " --budget 7m"),
    ({"own": OwnBuild(build="3.14t", failure=NO_TIME), "tests": NOT_DONE}, " --budget 7m"),
    ({"own": OwnBuild(build="3.14t", unbuilt=(UnbuiltModule(name="app._c", why=""),))}, " --explain extensions"),
    ({"own": OwnBuild(build="3.14t", failure=Missing(reason="no compiler")), "tests": NO_TIME},
     " --explain extensions"),
    ({"tests": suite(passed=None, failed=None, ending="2", output="E   ModuleNotFoundError: No module named 'x'"),
      "reference_tests": suite(passed=None, failed=None, ending="2"), "cost": NOT_DONE, "gain": NOT_DONE}, ""),
    ({"readiness": Missing(reason="the package index does not answer", cause=Cause.FAILED)}, ""),
    ({"tests": Missing(reason="the package index does not answer", cause=Cause.FAILED)}, ""),
    ({"cost": Missing(reason="the workload failed on 3.14t: no", cause=Cause.WORKLOAD_FAILED), "gain": NOT_DONE}, ""),
    ({"cost": NOT_DONE, "gain": NOT_DONE}, " --workload MODULE:FUNCTION"),   # a quiet machine would tell no more
    ({"tests": suite(failed=2, ending="1")}, " --plan"),
    ({}, " --wait-quiet"), ({"cost": STARVED, "gain": STARVED}, " --wait-quiet")])
def test_command_follows_from_the_reason_on_a_busy_machine_too(changes, option):
    assert told(found(**changes), machine=BUSY).more == f"gilscope evaluate .{option}"


def test_command_after_a_repair_installs_what_offline_could_not():
    short = concluded(found(tests=Missing(reason="nothing of it was installed before", cause=Cause.OFFLINE)))
    offline = EvaluationRequest(path=Path(), offline=True)
    assert answered(replace(short, request=offline)).answer.more == "gilscope evaluate ."
    failure = Missing(reason="it builds nothing", cause=Cause.OFFLINE)
    unbuilt = concluded(found(own=OwnBuild(build="3.14t", failure=failure)))
    unbuilt = answered(replace(unbuilt, request=offline))
    assert unbuilt.answer.more == "gilscope evaluate ."
    assert "3.14t: have the project itself built: evaluate it once without --offline" in unbuilt.next_steps


@pytest.mark.parametrize(("reason", "end"), [("no compiler", "no compiler."), ("cc: and so on ...", "so on ...")])
def test_sentence_has_one_end(reason, end):
    given = told(found(own=OwnBuild(build="3.14t", failure=Missing(reason=reason))))
    assert said(given).splitlines()[0].endswith(end)


def test_evaluation_without_builds_has_no_answer():
    empty = answered(replace(evaluation(), builds=()))
    assert (empty.answer, empty.plan) == (None, ())


def test_failing_tests_are_named_at_once():
    broken = suite(failed=1, ending="1", failing=("tests/test_a.py::test_b",))
    same = told(found(tests=broken, reference_tests=replace(broken, build="3.14")))
    assert "tests: 1 test fails, with the GIL as well: tests/test_a.py::test_b" in said(same)
    assert "tests: 1 test fails: tests/test_a.py::test_b" in said(told(found(tests=broken)))
    assert "tests: 2 tests fail\n" in said(told(found(tests=suite(failed=2))))
    assert "tests:" not in said(told(found()))


def test_many_blockers_are_cut_and_counted():
    many = report(*(replace(finding(Status.CRASH, InterpreterStatus.OK), name=f"p{number}") for number in range(6)))
    text = said(told(found(readiness=many)))
    assert text.count("in the way (the owners of") == 4
    assert "in the way: 2 more, see Why" in text


def test_command_is_the_users():
    given = concluded(found(readiness=report(finding(Status.GIL))))
    asked = answered(replace(given, request=EvaluationRequest(path=Path("/src/my app")), project=replace(
        given.project, root=Path("/src/my app"))))
    assert asked.answer.more == "gilscope evaluate '/src/my app' --explain lxml"
