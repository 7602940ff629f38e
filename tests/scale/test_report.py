"""The report of `gilscope scale`: numbers point at the footnote that explains them, and a gain is a sentence."""

from dataclasses import replace

import pytest

from gilscope.toolkit.report.document import Table
from gilscope.toolkit.report.terminal import render
from gilscope.toolkit.scale.api import CallableOutcome, CallableScaling
from gilscope.toolkit.scale.blamed_object import BlamedObject
from gilscope.toolkit.scale.investigation import FarMeasurements, HandoffTimes
from gilscope.toolkit.scale.investigation_text import NOT_TRIED
from gilscope.toolkit.scale.judgement import Doubt, Judgement, Obstacle, ScalingEvidence, ScalingVerdict, Span
from gilscope.toolkit.scale.repair_trials import RepairOutcome, RepairTrial
from gilscope.toolkit.scale.report import answer_document, answer_in_short, answer_summary
from gilscope.toolkit.scale.scaling_values import BuildScaling
from gilscope.toolkit.scale.zygote_process import CodePlace
from tests.scale.answers import make_answer, of_function, slower_investigation


def slower(**changes):
    """Return the report of a function that counts of one object make slower."""
    return answer_document(make_answer(of_function(slower_investigation(**changes))))


def test_every_footnote_is_pointed_at():
    (table,) = (each for each in slower().sections if isinstance(each, Table))
    marks = {mark for row in table.rows for entry in row for mark in entry.marks}
    assert marks == set(range(1, len(table.footnotes) + 1))


def test_gain_is_told_as_a_sentence():
    said = " ".join(render(slower()).split())
    assert "it reached 1.20 of the ceiling: without counting, all of the loss disappears." in said


def said(**changes):
    return " ".join(render(slower(**changes)).split())


def test_lines_stand_beside_the_object():
    assert "reference counts: app.PRICES (list), used at app.py:7 and app.py:9" in said()


def test_files_of_packages_are_shown_from_the_package_on():
    place = CodePlace(file="/cache/lib/python3.14t/site-packages/shop/cart.py", line=7, function="add")
    (one,) = slower_investigation().objects
    assert "app.PRICES (list), used at shop/cart.py:7" in said(objects=(replace(one, places=(place,)),))


def test_repair_says_what_it_reached_or_why_it_was_not_tried():
    measured = RepairTrial(outcome=RepairOutcome.MEASURED, without=0.3,
                           of_ceiling=Span(ratio=0.95, lo=0.9, hi=1.0))
    assert ("Tried: with a copy by copy.deepcopy in each thread, threads were 3.17 times as fast as without: they "
            "reached 0.95 [0.90, 1.00] of the ceiling, and 0.30 without one in the same rounds (in those of the table, "
            "0.50).") in said(trial=measured)
    apart = "the CPUs were farther apart than in those of the table"
    assert apart in said(trial=replace(measured, far=True))
    assert apart not in said(trial=measured)
    uncopied = RepairTrial(outcome=RepairOutcome.UNCOPIED, detail="TypeError: no")
    assert "Not tried with a copy by copy.deepcopy in each thread: it cannot be made (TypeError: no)." in said(
        trial=uncopied)
    assert "Not tried: that takes a change of the code." in said()
    assert set(NOT_TRIED) == set(RepairOutcome) - {RepairOutcome.MEASURED}


def test_each_repair_names_its_objects_where_there_are_several():
    table = BlamedObject(name="app.TABLE", kind="global", type="dict")
    rate = BlamedObject(name="the value of app.TABLE[3]", kind="item", type="float")
    both = said(objects=(table, rate))
    assert "app.TABLE: Give each thread a copy" in both
    assert "the value of app.TABLE[3]: Compute the value inside each thread" in both
    assert "app.TABLE: Give" not in said(objects=(table,))


def test_constants_are_told_what_a_pyc_gains():
    constant = BlamedObject(name="constant 1000003 in f()", kind="constant", type="int")
    text = said(objects=(constant,))
    assert "so that is what a .pyc gains" in text
    assert "Not tried" not in text


def test_lock_beside_neighbours_says_what_disturbed_calls_show():
    seen = ScalingEvidence(threads=2, clean_seconds=0.0, enough=False, of_ceiling=None, speedup=None, ceiling=None,
                           disturbed=Span(ratio=0.5, lo=0.4, hi=0.6))
    lock = BlamedObject(name="app.LOCK", kind="lock", type="_thread.lock", held=0.6)
    text = said(evidence=seen, judgement=Judgement(verdict=ScalingVerdict.PLATEAUS, obstacle=Obstacle.LOCK),
                objects=(lock,), explained=None, without=None)
    assert "By all calls, they reach 0.50 [0.40, 0.60] of the ceiling, or less" in text
    assert "in the way: lock of app.LOCK" in text


def api_report(*callables, complete=True):
    return answer_document(make_answer(
        BuildScaling(label="3.14t", version="3.14.7", callables=callables, complete=complete), subject="app"))


def offered(name, outcome, **fields):
    return CallableScaling(name=name, call=f"{name}(1)", place="test_app.py:3", outcome=outcome, **fields)


def row(report):
    (table,) = (each for each in report.sections if isinstance(each, Table))
    return [entry.value for entry in table.rows[0]]


def test_row_of_the_api_names_what_is_in_the_way_or_why_it_is_not_known():
    found = slower_investigation()
    unnamed = replace(found, objects=(), judgement=replace(found.judgement, doubt=Doubt.SET), also=(
        BlamedObject(name="app.SEEN", kind="lock", type="set", held=0.2),))
    for fields, way in (
            ({"found": found}, "reference counts of app.PRICES"),
            ({"found": unnamed}, "reference counts of unknown objects; seen locked: app.SEEN"),
            ({"look": found.evidence}, "not investigated: the time was over")):
        shown = row(api_report(offered("work", CallableOutcome.SLOWER, **fields)))
        assert (shown[1], shown[2], shown[-1]) == ("work", "gets slower", way)


def test_what_has_no_verdict_says_why_and_the_summary_counts_it():
    said = " ".join(render(api_report(
        offered("work", CallableOutcome.SLOWER, found=slower_investigation()), offered("fine", CallableOutcome.SCALES),
        offered("tiny", CallableOutcome.TOO_SHORT),
        offered("ends", CallableOutcome.FAILED, problem="crashed with SIGSEGV"),
        offered("left", CallableOutcome.NO_TIME), offered("lost", CallableOutcome.NO_CALL), complete=False)).split())
    assert "ends: ends(1) (test_app.py:3): crashed with SIGSEGV" in said
    assert "tiny: too short: calling takes most of a call of less than 150 ns." in said
    assert "left: the time was over." in said
    assert "lost: no call in tests and doctests that can be repeated alone." in said
    assert "The search for calls ended before all were tried" in said
    assert ("3.14t: scales: fine; gets slower: work; too short: tiny; failed: ends; no call found: lost; no time: left."
            ) in said
    assert "Called as work(1), as in test_app.py:3" in said
    assert "reference counts: app.PRICES (list), used at app.py:7" in said


def test_summary_of_a_module_without_any_verdict_counts_nothing():
    said = render(api_report(offered("fast", CallableOutcome.TOO_SHORT)))
    assert said.splitlines()[3:5] == ["In short", "  3.14t: too short: fast."]


def test_report_of_a_module_says_what_it_was_measured_with():
    assert "Python 3.14.7 (3.14t)" in render(api_report(offered("fast", CallableOutcome.TOO_SHORT)))


def verdict_on(label, verdict):
    found = slower_investigation(judgement=Judgement(verdict=verdict, obstacle=Obstacle.NONE), objects=())
    return of_function(found, label=label, version=f"{label.removesuffix('t')}.1")


@pytest.mark.parametrize(("verdicts", "said"), [
    (("gets slower", "scales"), "3.15t scales where 3.14t does not: 3.15t may be a repair, too."),
    (("scales", "plateaus"), "3.14t scales where 3.15t does not."),
    (("plateaus", "unsure"), None), (("scales", "scales"), None), (("gets slower", "plateaus"), None),
])
def test_build_that_scales_where_another_does_not_is_said_and_a_newer_one_may_be_a_repair(verdicts, said):
    answer = make_answer(*(
        verdict_on(label, ScalingVerdict(each)) for label, each in zip(("3.14t", "3.15t"), verdicts, strict=True)))
    assert [each for each in answer_summary(answer) if "where" in each] == ([said] if said else [])


def test_several_builds_agree_in_number():
    answer = make_answer(*(
        verdict_on(f"3.{minor}t", ScalingVerdict(each)) for minor, each in (
            (13, "scales"), (14, "plateaus"), (15, "scales"), (16, "scales"))))
    assert answer_summary(answer)[-1] == (
        "3.13t, 3.15t and 3.16t scale where 3.14t does not: 3.15t and 3.16t may be repairs, too.")


def test_functions_of_a_module_that_one_build_loses_and_another_does_not_are_named_together():
    def on(label, outcome):
        return BuildScaling(label=label, version=f"{label.removesuffix('t')}.1", callables=tuple(
            offered(name, outcome) for name in ("mean", "total")))

    answer = make_answer(on("3.14t", CallableOutcome.SLOWER), on("3.15t", CallableOutcome.SCALES), subject="app")
    assert answer_summary(answer)[-1] == (
        "mean and total: 3.15t scales where 3.14t does not: 3.15t may be a repair, too.")


def trial(ratio, **fields):
    return RepairTrial(outcome=RepairOutcome.MEASURED, without=0.45,
                       of_ceiling=Span(ratio=ratio, lo=ratio, hi=ratio), **fields)


def test_trial_without_a_gain_says_that_it_shows_none():
    no_gain = "this trial does not show what the repair gains"
    assert no_gain in said(trial=trial(0.47))
    assert no_gain not in said(trial=trial(0.95))


def test_loss_that_is_not_of_the_objects_says_how_much_counts_may_explain():
    evidence = replace(slower_investigation().evidence, immortal=Span(ratio=1.0, lo=0.9, hi=1.1))
    text = said(judgement=Judgement(verdict=ScalingVerdict.PLATEAUS, obstacle=Obstacle.NOT_YOUR_OBJECTS), objects=(),
                explained=None, without=None, evidence=evidence)
    assert "it is 1.00 [0.90, 1.10] times as fast: reference counts explain at most 10 % of the loss" in text


def test_trial_that_stays_below_the_ceiling_leaves_the_rest_open():
    rest = "The rest of the loss is not explained"
    assert rest in said(trial=trial(0.7))
    assert rest not in said(trial=trial(0.85))


@pytest.mark.parametrize(("immortal", "counts"), [
    (Span(ratio=1.4, lo=1.3, hi=1.5), True), (Span(ratio=1.4, lo=0.9, hi=2.0), False), (None, False)])
def test_share_of_a_lock_is_not_known_and_counts_beside_it_are_told(immortal, counts):
    lock = BlamedObject(name="app.LOCK", kind="lock", type="_thread.lock", held=0.3)
    text = said(judgement=Judgement(verdict=ScalingVerdict.PLATEAUS, obstacle=Obstacle.LOCK), objects=(lock,),
                explained=None, without=None, evidence=replace(slower_investigation().evidence, immortal=immortal))
    assert "How much of the loss is the lock's is not known" in text
    assert ("Reference counts cost something, too: with every object immortal, it is 1.40" in text) is counts


@pytest.mark.parametrize(("dealt", "argument", "told"), [
    (True, True, True), (False, True, False), (True, False, False)])
def test_payloads_that_one_thread_made_say_why_they_are_in_the_way(dealt, argument, told):
    found = slower_investigation()
    text = said(objects=(replace(found.objects[0], argument=argument),),
                loaded=replace(found.loaded, payloads=6, dealt=dealt))
    assert ("One thread made them all" in text) is told


def test_objects_of_an_unsure_verdict_are_in_the_way_of_what_it_loses():
    unsure = Judgement(verdict=ScalingVerdict.UNSURE, obstacle=Obstacle.COUNTS, doubt=Doubt.DISAGREE)
    text = said(judgement=unsure)
    assert "unsure, as measurements seconds apart differ; in the way of what it loses: reference counts of app" in text
    assert "Unsure: measurements seconds apart give different answers" in text


def test_summary_names_the_gain_of_the_repair_and_open_objects():
    def in_short(**changes):
        return answer_summary(make_answer(of_function(slower_investigation(**changes))))[0]

    assert in_short(trial=trial(0.95)) == (
        "3.14t: gets slower; in the way: reference counts of app.PRICES; with a copy in each thread, 2.11 "
        "times as fast (0.95 of the ceiling).")
    assert "copy" not in in_short(trial=trial(0.47))
    assert in_short(trial=replace(trial(0.95), far=True)).endswith("(0.95 of the ceiling, on CPUs farther apart).")
    unnamed = Judgement(verdict=ScalingVerdict.PLATEAUS, obstacle=Obstacle.COUNTS, doubt=Doubt.SET)
    assert in_short(judgement=unnamed, objects=(), trial=trial(0.95, copied=("app.SCHEMA",))) == (
        "3.14t: plateaus; in the way: reference counts of unknown objects; with a copy of app.SCHEMA in each "
        "thread, 2.11 times as fast (0.95 of the ceiling).")
    scales = Judgement(verdict=ScalingVerdict.SCALES, obstacle=Obstacle.HARDWARE)
    assert in_short(judgement=scales, objects=()) == (
        "3.14t: scales, as far as the hardware lets it: 2 processes reach 1.80 times the throughput of one thread.")
    judgement = slower_investigation().judgement
    assert in_short(objects=(), judgement=replace(judgement, doubt=Doubt.SET)) == (
        "3.14t: gets slower; in the way: reference counts of unknown objects.")


def test_values_that_cannot_be_are_called_noise():
    evidence = slower_investigation().evidence
    above = Span(ratio=1.85, lo=1.7, hi=2.0)
    assert "is noise" in said(evidence=replace(evidence, ceiling=Span(ratio=3.4, lo=3.0, hi=3.8)))
    assert "is noise" in said(evidence=replace(evidence, of_ceiling=above))
    assert "is noise" not in said()


def test_number_of_a_module_without_bytecode_may_come_from_a_pyc():
    loaded = slower_investigation().loaded
    rate = BlamedObject(name="the value of app.TABLE[3]", kind="item", type="float")
    assert "unset it and measure again" in said(objects=(rate,), loaded=replace(loaded, bytecode=False))
    assert "unset it and measure again" not in said(objects=(rate,))
    assert "unset it and measure again" not in said(loaded=replace(loaded, bytecode=False))      # it is a list


def test_report_begins_with_the_answer_and_says_it_once():
    text = render(slower())
    answer = "  3.14t: gets slower; in the way: reference counts of app.PRICES."
    assert text.splitlines()[3:5] == ["In short", answer]
    assert text.count(answer) == 1


def test_report_says_what_it_was_measured_with():
    text = said()
    assert "gilscope scale app:work --json scale.json" in text
    assert "Python 3.14.7 (3.14t)" in text


def test_measurements_on_one_core_are_said_to_be_set_aside():
    assert "2 measurements do not count: threads ran as hyperthreads of one core, where the host" in said(set_aside=2)
    assert "1 measurement does not count" in said(set_aside=1)
    assert "not count" not in said(set_aside=0)


def test_time_of_a_cache_line_tells_how_far_the_cpus_are_apart():
    handoff = HandoffTimes(median=33.4, lo=31.2, hi=36.0)
    told = "A cache line takes 33 ns between the CPUs of the threads (31 to 36 in most measurements)."
    assert told in said(handoff=handoff)
    assert "cache line takes" not in said(handoff=handoff, queued_share=0.5)      # neighbours take the cores, too
    evidence = replace(slower_investigation().evidence, far=True)
    assert "Too few rounds were on near CPUs alone, so those on far ones count, too" in said(evidence=evidence)


def test_what_far_cpus_cost_is_told():
    handoff = HandoffTimes(median=33.4, lo=31.2, hi=36.0)
    far = FarMeasurements(count=9, handoff=160.2, of_ceiling=Span(ratio=0.3, lo=0.25, hi=0.35))
    assert ("9 measurements do not count: the CPUs were farther apart (160 ns), as the host of a virtual machine moves "
            "them; there, threads reached 0.30 [0.25, 0.35] of the ceiling.") in said(handoff=handoff, far=far)
    alone = said(handoff=handoff, far=replace(far, count=1, of_ceiling=None))
    assert "1 measurement does not count: the CPUs were farther apart (160 ns)" in alone
    assert "there, threads reached" not in alone


@pytest.mark.parametrize(("hi", "in_short"), [
    (0.5, "scales, but reached 0.30 of the ceiling while the CPUs were farther apart."), (0.81, "scales.")])
def test_function_that_scales_on_near_cpus_alone_says_so_in_short(hi, in_short):
    far = FarMeasurements(count=9, handoff=160.2, of_ceiling=Span(ratio=0.3, lo=0.2, hi=hi))
    judgement = Judgement(verdict=ScalingVerdict.SCALES, obstacle=Obstacle.NONE)
    assert f"3.14t: {in_short}" in said(judgement=judgement, far=far, objects=(), trial=None)


@pytest.mark.parametrize(("immortal", "share", "told"), [
    (1.13, 0.87, True), (1.02, 0.87, False), (1.13, 0.99, False)])      # of no loss, nothing is gained back
def test_function_that_scales_although_its_threads_share_counts_says_that_farther_cpus_cost_more(immortal, share, told):
    evidence = replace(slower_investigation().evidence, of_ceiling=Span(ratio=share, lo=share - 0.03, hi=share + 0.03),
                       immortal=Span(ratio=immortal, lo=immortal - 0.03, hi=immortal + 0.03))
    text = said(judgement=Judgement(verdict=ScalingVerdict.SCALES, obstacle=Obstacle.NONE), objects=(), trial=None,
                evidence=evidence, handoff=HandoffTimes(median=33.4, lo=31.2, hi=36.0))
    assert ("that costs more on CPUs that are farther apart" in text) is told


def test_single_payload_is_it():
    loaded = slower_investigation().loaded
    assert "1 payload: all threads share it." in said(loaded=replace(loaded, payloads=1))


def test_lock_itself_is_held():
    lock = BlamedObject(name="app.LOCK", kind="lock", type="_thread.lock", held=0.6)
    assert "app.LOCK (_thread.lock), held in 60 % of samples" in said(objects=(lock,))
    assert "app.SEEN (list), whose lock was held in 60 %" in said(
        objects=(replace(lock, name="app.SEEN", type="list"),))


def test_share_of_a_lock_is_unknown_unless_a_copy_gained():
    judgement = Judgement(verdict=ScalingVerdict.PLATEAUS, obstacle=Obstacle.LOCK)
    lock = BlamedObject(name="app.POOL.lock", kind="lock", type="_thread.lock", held=0.6)
    unknown = "How much of the loss is the lock's is not known"
    assert unknown in said(objects=(lock,), judgement=judgement, trial=trial(0.47))
    assert unknown not in said(objects=(lock,), judgement=judgement, trial=trial(0.95))


OPEN = {
    (ScalingVerdict.UNSURE, Obstacle.COUNTS, Doubt.NEAR): (
        "reference counts of unknown objects", "Unsure: it reaches about 0.8 of the ceiling",
        ("unsure, as it reaches about 0.8 of the ceiling; in the way of what it loses: reference counts of unknown "
         "objects.")),
    (ScalingVerdict.UNSURE, Obstacle.COLLECTOR, Doubt.DISAGREE): (
        "garbage collector", "Unsure: measurements seconds apart give different answers",
        "unsure, as measurements seconds apart differ; in the way of what it loses: garbage collector."),
    (ScalingVerdict.UNSURE, Obstacle.UNKNOWN, Doubt.WIDE): ("unsure", "Unsure: the measurements differ", "unsure."),
    (ScalingVerdict.PLATEAUS, Obstacle.UNKNOWN, Doubt.SELDOM): (
        "unsure", "Cause unsure: neither", "plateaus; in the way: unsure."),
    (ScalingVerdict.PLATEAUS, Obstacle.COUNTS, Doubt.SET): (
        "reference counts of unknown objects", "Objects unsure: reference counts are in the way, but no small set",
        "plateaus; in the way: reference counts of unknown objects."),
}


@pytest.mark.parametrize("judged", OPEN)
def test_table_sentences_and_summary_name_one_cause_or_none(judged):
    in_table, in_text, in_short = OPEN[judged]
    verdict, obstacle, doubt = judged
    changes = {"judgement": Judgement(verdict=verdict, obstacle=obstacle, doubt=doubt), "objects": (),
               "explained": None, "without": None}
    assert row(slower(**changes))[-1] == in_table
    assert in_text in said(**changes)
    assert answer_summary(make_answer(of_function(slower_investigation(**changes)))) == [f"3.14t: {in_short}"]


def in_short(*builds, **changes):
    return render(answer_in_short(make_answer(*builds, **changes)), width=100).splitlines()[3:]


def test_answer_has_verdict_share_lines_and_repair_and_fits():
    lines = in_short(of_function(slower_investigation(trial=trial(0.95))))
    assert len(lines) + 3 <= 12
    text = " ".join(" ".join(lines).split())
    assert text == (
        "3.14t: gets slower; in the way: reference counts of app.PRICES; with a copy in each thread, 2.11 times as "
        "fast (0.95 of the ceiling). Of the ceiling, the throughput of 2 processes, threads reach 0.50 [0.40, 0.60] on "
        "3.14t. app.PRICES, used at app.py:7 and app.py:9: Give each thread a copy of its own, made inside the "
        "thread: copies that one thread makes for all may share a cache line. numbers, doubts and how it was "
        "measured: --full")


def test_answer_says_a_repair_once_for_all_builds_and_why_a_build_has_none():
    slower_too = of_function(slower_investigation(), label="3.15t", version="3.15.0")
    unsure = of_function(slower_investigation(objects=(), judgement=Judgement(
        verdict=ScalingVerdict.UNSURE, obstacle=Obstacle.UNKNOWN, doubt=Doubt.WIDE)), label="3.16t")
    text = " ".join(" ".join(in_short(of_function(slower_investigation()), slower_too, unsure, of_function(
        label="3.13t", problem="app cannot be imported"))).split())
    assert text.count("Give each thread a copy") == 1
    assert "Unsure: the measurements differ too much" in text
    assert "3.13t: no verdict: app cannot be imported" in text


def test_answer_by_disturbed_calls_has_the_share_that_is_not_exceeded():
    locked = slower_investigation()
    evidence = replace(locked.evidence, enough=False, of_ceiling=None, disturbed=Span(ratio=0.4, lo=0.3, hi=0.5))
    text = " ".join(" ".join(in_short(of_function(replace(locked, evidence=evidence)))).split())
    assert "threads reach at most 0.40 [0.30, 0.50] on 3.14t" in text


def test_answer_about_a_module_has_the_repairs_of_what_does_not_scale():
    module = BuildScaling(label="3.14t", version="3.14.7", callables=(
        offered("work", CallableOutcome.SLOWER, found=slower_investigation()), offered("fine", CallableOutcome.SCALES)))
    text = " ".join(" ".join(in_short(module, subject="app")).split())
    assert text.startswith("3.14t: scales: fine; gets slower: work. app.PRICES, used at app.py:7")
    assert "Of the ceiling" not in text
