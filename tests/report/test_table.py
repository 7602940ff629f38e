import random
from dataclasses import replace

import pytest

from gilscope.toolkit.errors import UnknownNameError
from gilscope.toolkit.model import Cell, Measurement, Phase
from gilscope.toolkit.report import terminal
from gilscope.toolkit.report.comparison import comparison_document
from gilscope.toolkit.report.table.build_pairs import build_pairs
from gilscope.toolkit.report.table.cell_results import NoiseFloor
from gilscope.toolkit.report.table.contrast import compare_builds, compare_models, compare_runs
from gilscope.toolkit.report.table.matrix import build_tables
from gilscope.toolkit.report.table.observations import Index
from gilscope.toolkit.report.table.ratios import Ratios, reported_comparisons
from gilscope.toolkit.report.table_sentences import noise_line
from tests.fakes import RunMaker, make_build, make_run


def cell(runner="serial", workers=1, build="3.14", **changes):
    return Cell(workload="w", runner=runner, workers=workers, build=build, **changes)


def result_of(run, wanted):
    (found,) = [
        result for table in build_tables(run) for row in table.rows for result in row.results if result.cell == wanted
    ]
    return found


def two_cells(*, twin=True, workers=2, **changes):
    """serial takes 1 s wall and CPU, threads 0.5 s of wall and 1.2 s of CPU."""
    maker = RunMaker(noise=0.001)
    maker.measure(cell(), 1.0)
    maker.measure(cell("threads", workers), 0.5, 1.2, **changes)
    if twin:
        maker.twin(cell(), 1.0)
    return maker


def test_speed_up_beyond_what_the_workers_allow_has_a_note():
    maker = RunMaker(noise=0.001)
    maker.measure(cell(), 1.0)
    maker.measure(cell("threads", 2), 0.45, 1.0)
    (note,) = [each.text for each in result_of(maker.run(("3.14",)), cell("threads", 2)).notes]
    assert note.startswith("more than 2 workers can gain by themselves: something slows serial, such as")
    assert result_of(two_cells().run(("3.14",)), cell("threads", 2)).notes == ()


def test_speedup_is_by_wall_and_efficiency_per_worker():
    result = result_of(two_cells().run(("3.14",)), cell("threads", 2))
    assert result.speedup.ratio == pytest.approx(2.0, rel=0.01)
    assert result.speedup.verdict() == "faster"
    assert result.efficiency == pytest.approx(result.speedup.ratio / 2)


def test_words_of_a_run_that_was_looked_at_ask_for_more():
    run = two_cells().run(("3.14",))
    plain, looked = (Ratios(Index(replace(run, looks=looks)), comparisons=20).compare(cell(), cell("threads", 2))
                     for looks in (0, 20))
    assert (looked.lo, looked.hi) == (plain.lo, plain.hi)      # of the cell alone
    assert looked.between[0] < plain.between[0] < plain.between[1] < looked.between[1]


def test_inflation_is_cpu_of_the_cell_over_the_baselines():
    assert result_of(two_cells().run(("3.14",)), cell("threads", 2)).cpu_inflation == pytest.approx(1.2, rel=0.01)


def test_answers_do_not_depend_on_which_cell_was_measured_first():
    run = make_run(rounds=4)
    run = replace(run, cells=tuple(each.cell for each in run.measurements))
    shuffled = random.Random(1).sample(run.measurements, len(run.measurements))
    # A run that was just made has its cells as they were measured, one that was read build by build.
    assert build_tables(replace(run, measurements=tuple(shuffled))) == build_tables(run)


def test_ratio_keeps_what_drift_takes_from_the_times():
    # The machine drifts by up to 10 %; times show it, the ratio does not.
    result = result_of(two_cells().run(("3.14",)), cell("threads", 2))
    assert result.time.spread > 0.01
    assert result.speedup.hi / result.speedup.lo < 1.01


def test_value_of_a_round_is_the_median_of_its_values():
    maker = RunMaker(rounds=1)
    maker.measure(cell(), 1.0)
    (only,) = maker.measurements[0].observations
    noisy = Measurement(cell=cell(), observations=(replace(only, wall=(1.0, 9.0, 2.0)),))
    assert result_of(maker.run(("3.14",), measurements=(noisy,)), cell()).time.center == 2.0


def test_baseline_has_no_ratio():
    result = result_of(two_cells().run(("3.14",)), cell())
    assert result.time is not None
    assert (result.speedup, result.efficiency, result.cpu_inflation) == (None, None, None)


def test_baseline_is_the_one_of_the_same_build_phase_and_task_length():
    maker = RunMaker(noise=0.0)
    for number, changes in enumerate([
        {}, {"build": "3.14t"}, {"phase": Phase.STARTUP}, {"task_seconds": 0.01},
    ], 1):
        maker.measure(cell(**changes), float(number))
        maker.measure(cell("threads", 2, **changes), 1.0)
    run = maker.run(("3.14", "3.14t"))
    assert result_of(run, cell("threads", 2)).speedup.ratio == pytest.approx(1)
    assert result_of(run, cell("threads", 2, build="3.14t")).speedup.ratio == pytest.approx(2)
    assert result_of(run, cell("threads", 2, phase=Phase.STARTUP)).speedup.ratio == pytest.approx(3)
    assert result_of(run, cell("threads", 2, task_seconds=0.01)).speedup.ratio == pytest.approx(4)


def test_another_baseline_can_be_chosen():
    maker = two_cells()
    maker.measure(cell("threads", 1), 2.0)
    result = result_of(maker.run(("3.14",), baseline="threads"), cell("threads", 2))
    assert result.speedup.ratio == pytest.approx(4.0, rel=0.01)


@pytest.mark.parametrize(("starved", "absent"), [(4, False), (5, True)])   # of 8 rounds
def test_cell_starved_in_more_than_half_of_its_rounds_has_no_number(starved, absent):
    result = result_of(two_cells(starved=starved).run(("3.14",)), cell("threads", 2))
    assert (result.time is None) == absent
    if absent:
        assert result.absence.word == "starved"
        assert (result.speedup, result.efficiency, result.memory) == (None, None, None)   # nothing to go by
    else:
        assert result.time.count == 4
        assert result.speedup.rounds == 4
        assert "4 of 8 rounds were starved" in result.notes[0].text


def test_skip_keeps_its_reason():
    maker = two_cells()
    maker.skip(cell("free-threaded", 2), "the GIL is enabled in this build")
    absence = result_of(maker.run(("3.14",)), cell("free-threaded", 2)).absence
    assert (absence.word, absence.reason) == ("skipped", "the GIL is enabled in this build")


def test_accident_leaves_the_numbers_of_other_rounds_with_a_note():
    maker = two_cells()
    kept = maker.measurements[1]
    assert kept.cell == cell("threads", 2)
    maker.measurements[1] = replace(kept, observations=kept.observations[1:])
    maker.fail(cell("threads", 2), "killed", "killed by SIGKILL")
    result = result_of(maker.run(("3.14",)), cell("threads", 2))
    assert result.time.count == 7
    assert [note.text for note in result.notes] == [
        "1 of 8 rounds failed and is left out (killed: killed by SIGKILL)"]


def test_cell_that_failed_each_time_says_how_often():
    maker = two_cells()
    maker.measurements.pop(1)
    maker.fail(cell("threads", 2), "crash", "killed by SIGSEGV")
    maker.failures.append(replace(maker.failures[0], round=1))
    absence = result_of(maker.run(("3.14",)), cell("threads", 2)).absence
    assert absence.reason == "round 1: crash: killed by SIGSEGV; it failed in 1 more round"


def test_wrong_result_withholds_the_numbers_of_other_rounds():
    maker = two_cells()
    maker.fail(cell("threads", 2), "wrong-result", "expected 168 primes, got 167")
    absence = result_of(maker.run(("3.14",)), cell("threads", 2)).absence
    assert (absence.word, absence.reason) == ("failed", "round 1: wrong-result: expected 168 primes, got 167")


def test_cell_that_the_run_did_not_reach_says_so():
    run = two_cells().run(("3.14",), cells=(cell("asyncio", 1),), stopped="interrupted")
    absence = result_of(run, cell("asyncio", 1)).absence
    assert absence.word == "not measured"
    assert "interrupted" in absence.reason


def test_ratio_without_a_baseline_is_missing_with_its_reason():
    maker = RunMaker()
    maker.fail(cell(), "hang", "no progress for 60 s")
    maker.measure(cell("threads", 2), 0.5)
    result = result_of(maker.run(("3.14",)), cell("threads", 2))
    assert result.speedup is None
    assert "no progress for 60 s" in result.notes[0].text


def test_work_too_short_for_the_cpu_clock_has_no_inflation():
    maker = RunMaker()
    maker.measure(cell(), 0.1, 0.0)
    maker.measure(cell("threads", 2), 0.05, 0.001)
    result = result_of(maker.run(("3.14",)), cell("threads", 2))
    assert result.speedup is not None
    assert result.cpu_inflation is None


def test_noise_is_known_without_an_arm_measured_twice_but_unchecked():
    result = result_of(two_cells(twin=False).run(("3.14",)), cell("threads", 2))
    assert result.speedup.verdict() == "faster"
    (table,) = build_tables(two_cells(twin=False).run(("3.14",)))
    assert any("nothing checks the noise" in note.text for note in table.notes)


@pytest.mark.parametrize(("rounds", "why"), [(1, "fewer than 3 rounds"), (2, "fewer than 3 rounds")])
def test_few_rounds_allow_no_word(rounds, why):
    maker = RunMaker(rounds=rounds)
    for runner, workers in (("serial", 1), ("threads", 2), ("processes", 2)):
        maker.measure(cell(runner, workers), 1.0 / workers)
    seen = result_of(maker.run(("3.14",)), cell("threads", 2)).speedup
    assert not seen.judgeable
    assert why in seen.notes[-1].text


def test_arms_that_differ_by_more_than_the_noise_widen_all_intervals():
    plain, widened = two_cells(twin=False), two_cells(twin=False)
    plain.twin(cell(), 1.0)
    widened.twin(cell(), 1.2, 1.0)
    alike, apart = (result_of(each.run(("3.14",)), cell("threads", 2)) for each in (plain, widened))
    assert apart.speedup.hi / apart.speedup.lo > (alike.speedup.hi / alike.speedup.lo) ** 2
    assert any("times wider" in note.text for note in apart.speedup.notes)
    assert all("times wider" not in note.text for note in alike.speedup.notes)


def test_floor_is_by_workload_and_shrinks_with_noise():
    maker = RunMaker(noise=0.001)
    for workload, noise in (("calm", 0.001), ("wild", 0.05)):
        maker.noise = noise
        for runner, workers in (("serial", 1), ("threads", 2), ("processes", 2)):
            maker.measure(replace(cell(runner, workers), workload=workload), 1.0)
    calm, wild = (table.floors["wall"].range[1] for table in build_tables(maker.run(("3.14",))))
    assert 0 < calm < 0.005
    assert 0.02 < wild < 0.2


def test_floors_of_a_table_span_those_of_its_cells():
    """A cell that missed half of the rounds has a larger noise floor than the one with all of them."""
    maker = RunMaker(rounds=12, noise=0.01)
    for runner, workers in (("serial", 1), ("threads", 2), ("processes", 2), ("subinterpreters", 2)):
        maker.measure(cell(runner, workers), 1.0)
    few = maker.measurements[-1]
    maker.measurements[-1] = replace(few, observations=few.observations[::3])
    run = maker.run(("3.14",))
    (table,) = build_tables(run)
    most, least = (result_of(run, cell(runner, 2)).speedup.floor for runner in ("processes", "subinterpreters"))
    assert most < least
    assert table.floors["wall"].range == pytest.approx((most, least))
    assert f"wall {most * 100:.1f} to {least * 100:.1f} %" in noise_line(table.floors)


@pytest.mark.parametrize("alone", [cell(), cell("threads", 2)])
def test_cells_that_are_compared_with_none_have_the_noise_floor_of_their_aa_arm(alone):
    maker = RunMaker(noise=0.01)
    maker.measure(alone, 1.0)
    maker.twin(alone, 1.0)
    (table,) = build_tables(maker.run(("3.14",)))
    assert 0.001 < table.floors["wall"].range[0] < 0.1


def test_floor_of_cells_with_equal_rounds_is_one_number():
    maker = RunMaker(noise=0.01)
    for runner, workers in (("serial", 1), ("threads", 2), ("processes", 2)):
        maker.measure(cell(runner, workers), 1.0)
    (table,) = build_tables(maker.run(("3.14",)))
    assert f"wall {table.floors['wall'].range[1] * 100:.1f} %, CPU" in noise_line(table.floors)


def floors_of(smallest, largest, error=None):
    return NoiseFloor(range=(smallest, largest), aa_error=error)


@pytest.mark.parametrize(("wall", "line"), [
    (floors_of(2.1, 3.179), "wall above 100 %, CPU 1.0 %."),
    (floors_of(0.5, 0.5, 3.0), ("wall 50.0 %, CPU 1.0 %; cells measured twice (A/A) differed by more than 100 % "
     "(wall).")),
    (floors_of(0.034, 1.5), "wall 3.4 to above 100 %, CPU 1.0 %."),
    (floors_of(0.034, 0.034), "wall 3.4 %, CPU 1.0 %."),
])
def test_noise_floor_above_100_percent_is_said_in_words(wall, line):
    assert noise_line({"wall": wall, "cpu": floors_of(0.01, 0.01)}).partition(": ")[2] == line


def test_aa_difference_is_said_though_rounds_are_too_few_for_a_noise_floor():
    cell = Cell(workload="w", runner="serial", workers=1, build="3.14")
    made = RunMaker(rounds=2)
    made.measure(cell, 1.0)
    made.twin(cell, [1.2 * one.wall[0] for one in made.measurements[0].observations])
    (table,) = build_tables(made.run(("3.14",)))
    assert noise_line(table.floors).startswith("Noise floor: unknown, since there are fewer than 3 rounds, or values "
                                               "do not vary; no cell is called faster or slower; cells measured twice "
                                               "(A/A) differed by up to 20.0 %")


def test_report_and_comparison_of_two_rounds_know_no_noise_floor_and_ask_for_rounds():
    maker = RunMaker(rounds=2)
    for build in ("3.14", "3.14t"):
        for runner, workers in (("serial", 1), ("threads", 2)):
            maker.measure(cell(runner, workers, build), 1.0)
    run = maker.run(("3.14", "3.14t"))
    (table,) = build_tables(run)
    assert table.floors["wall"].range is None
    assert {advice.best for advice in table.advice} == {()}
    contrasts = compare_builds(run, "3.14", "3.14t")
    assert {each.comparison.floor for each in contrasts} == {None}
    text = terminal.render(comparison_document("", contrasts, baseline="3.14", sample="3.14t"), width=200)
    assert "noise floor" not in text
    assert text.count("  more rounds\n") == 2


def test_words_of_a_table_go_by_wider_intervals_than_are_printed():
    seen = Ratios(Index(two_cells().run(("3.14",))), comparisons=20).compare(cell(), cell("threads", 2))
    assert seen.verdict_interval[0] < seen.lo < seen.ratio < seen.hi < seen.verdict_interval[1]


def test_values_in_turn_are_compared_pass_by_pass():
    """The machine is 10 times as slow in one pass: processes that took it are not, as all did."""
    maker = RunMaker(noise=0.0)
    for runner, seconds in (("serial", 1.0), ("threads", 0.5), ("processes", 0.4)):
        maker.measure(cell(runner, 1 if runner == "serial" else 2), seconds)
    slow = {"serial": (1, 10), "threads": (10,), "processes": (1, 10)}
    passes = {"serial": (0, 1), "threads": (1,), "processes": (0, 1)}
    measured = tuple(
        replace(each, observations=tuple(
            replace(one, wall=tuple(one.wall[0] * factor for factor in slow[each.cell.runner]),
                    passes=passes[each.cell.runner]) for one in each.observations))
        for each in maker.measurements
    )
    result = result_of(maker.run(("3.14",), measurements=measured), cell("threads", 2))
    assert result.speedup.ratio == pytest.approx(2.0, rel=1e-6)


def test_twins_are_no_rows():
    (table,) = build_tables(two_cells().run(("3.14",)))
    assert [(row.runner, row.workers) for row in table.rows] == [("serial", 1), ("threads", 2)]


def test_rows_follow_the_plan_with_the_baseline_first_and_workers_ascending():
    maker = RunMaker(rounds=1)
    plan = [cell("threads", 2), cell("threads", 1), cell("serial"), cell("asyncio")]
    for each in reversed(plan):
        maker.measure(each, 1.0)
    (table,) = build_tables(maker.run(("3.14",), cells=tuple(plan)))
    assert [(row.runner, row.workers) for row in table.rows] == [
        ("serial", 1), ("threads", 1), ("threads", 2), ("asyncio", 1)]


def test_proportional_memory_is_preferred_to_resident():
    maker = RunMaker(rounds=2)
    maker.measure(cell(), 1.0, pss=60)
    memory = result_of(maker.run(("3.14",)), cell()).memory
    assert (memory.number, memory.metric.kind) == (60 * 1024 * 1024, "PSS")
    (measured,) = maker.measurements
    resident = replace(measured, observations=tuple(
        replace(o, metrics=tuple(each for each in o.metrics if each[0] == "rss_bytes")) for o in measured.observations))
    memory = result_of(maker.run(("3.14",), measurements=(resident,)), cell()).memory
    assert (memory.number, memory.metric.kind) == (69 * 1024 * 1024, "RSS")


@pytest.mark.parametrize(("runner", "gil", "culprit", "note"), [
    ("serial", False, "fastmod", "the GIL was on at the end of 8 of 8 processes, turned on by the import of 'fastmod'"),
    ("serial", True, None, "the GIL was on at the end of 8 of 8 processes"),
    ("serial", False, None, None),
    ("threads", True, None, None),
    ("threads", False, None, "the GIL was off at the end of 8 of 8 processes"),
    ("serial", None, None, None),   # not known
])
def test_gil_that_is_not_as_promised_is_noted(runner, gil, culprit, note):
    maker = RunMaker()
    maker.measure(cell(runner, build="3.14t"), 1.0, gil=gil, culprit=culprit)
    notes = [note.text for note in result_of(maker.run(("3.14t",)), cell(runner, build="3.14t")).notes]
    assert [text for text in notes if "GIL" in text] == ([note] if note else [])


def test_gil_of_a_gil_build_is_no_news():
    maker = RunMaker()
    maker.measure(cell(), 1.0, gil=True)
    assert result_of(maker.run(("3.14",)), cell()).notes == ()


def few_tasks(tasks):
    maker = RunMaker()
    maker.measure(cell(), 1.0, tasks=tasks)
    for workers in (1, 2, 3, 4, 8):
        maker.measure(cell("threads", workers), 1.0 / min(workers, tasks), 1.0, tasks=tasks)
    return maker.run(("3.14",))


def test_cells_with_more_workers_than_tasks_say_so():
    (table,) = build_tables(few_tasks(4))
    notes = {row.workers: [note.text for note in row.results[0].notes] for row in table.rows if row.runner == "threads"}
    assert notes[1] == notes[2] == notes[4] == []
    assert notes[3] == ["4 tasks do not divide by 3 workers: at most 2x where they are equally long"]
    assert notes[8] == ["only 4 tasks for 8 workers: the others have nothing to do"]


def test_opening_workers_takes_one_task_however_many_there_are():
    maker = RunMaker()
    maker.measure(cell(phase=Phase.STARTUP), 1.0, tasks=4)
    maker.measure(cell("threads", 8, phase=Phase.STARTUP), 1.0, tasks=4)
    assert result_of(maker.run(("3.14",)), cell("threads", 8, phase=Phase.STARTUP)).notes == ()


def test_free_threaded_build_is_set_against_the_gil_build_of_its_version():
    builds = [make_build(label) for label in ("3.13", "3.14", "3.14t", "3.15t")]
    pairs = [(a.label, b.label) for a, b in build_pairs(builds)]
    assert pairs == [("3.13", "3.14"), ("3.14", "3.14t"), ("3.13", "3.15t")]


def test_builds_are_compared_by_cpu_for_one_worker_and_by_wall_for_more():
    contrasts = {(c.sample.runner, c.sample.workers): c for c in compare_builds(make_run(), "3.14", "3.14t")
                 if c.sample.workload == "primes"}
    single, wide = contrasts["serial", 1], contrasts["subinterpreters", 2]
    assert (single.clock, wide.clock) == ("cpu", "wall")
    assert 1 / single.comparison.ratio == pytest.approx(1.04, rel=0.005)   # 0.416 / 0.40
    assert single.comparison.verdict() == "slower"


def test_build_without_the_cell_is_named_with_its_reason():
    contrasts = compare_builds(make_run(), "3.14", "3.14t")
    reasons = {(c.sample.runner, c.sample.workers): c.reason for c in contrasts if c.sample.workload == "primes"}
    assert reasons["free-threaded", 2] == "3.14: skipped: the GIL is enabled in this build"
    assert reasons["interpreter-pool", 1] == "3.14t: failed: round 1: crash: killed by SIGSEGV"


def test_models_are_compared_with_as_many_workers():
    contrasts = compare_models(make_run(), "threads", "subinterpreters")
    assert {(c.baseline.workers, c.sample.workers) for c in contrasts} == {(n, n) for n in (1, 2, 4, 8)}
    found = {(c.sample.build, c.sample.workers): c for c in contrasts}
    # 1 worker after the USL with sigma 0.03, kappa 0.002: (1 + 0.03 + 0.004) / 2 = 0.517 of the time; threads 1.001
    assert found["3.13", 2].comparison.ratio == pytest.approx(1.001 / 0.517, rel=0.01)


def test_ratio_has_the_same_verdict_in_the_report_and_in_a_comparison():
    """Each in a family of its own would make one ratio undecided in the report and slower in the comparison."""
    run = make_run()
    tables = build_tables(run)
    reported = {(each.baseline, each.sample, each.clock): each.comparison for table in tables
                for each in table.contrasts if each.comparison}
    reported |= {(replace(result.cell, runner="serial", workers=1), result.cell, "wall"): result.speedup
                 for table in tables for row in table.rows for result in row.results if result.speedup}
    compared = [*compare_builds(run, "3.14", "3.14t"), *compare_models(run, "serial", "subinterpreters")]
    both = [(reported[each.baseline, each.sample, each.clock], each.comparison) for each in compared
            if each.comparison and (each.baseline, each.sample, each.clock) in reported]
    assert len(both) > 10
    assert all(mine.between == theirs.between for mine, theirs in both)
    # A comparison that was measured for itself needs less room.
    alone = compare_builds(run, "3.14", "3.14t", ratios=Ratios(Index(run), comparisons=2))
    wide = compare_builds(run, "3.14", "3.14t")
    assert all(a.comparison.between[1] < b.comparison.between[1] for a, b in zip(alone, wide, strict=True)
               if a.comparison and a.comparison.ratio > 0.99)


@pytest.mark.parametrize(("again", "said"), [
    (False, "So a speed-up or a build ratio has the same verdict in both; a * goes by 5 %"),
    (True, "cells of this comparison hold at once with 95 % confidence. The report of the run judges more ratios"),
])
def test_comparison_says_which_verdicts_hold_at_once(again, said):
    document = comparison_document("", compare_builds(make_run(), "3.14", "3.14t"), baseline="a", sample="b",
                                   again=again)
    assert said in terminal.render(document, width=400)


def test_model_with_one_worker_is_compared_with_every_number():
    contrasts = compare_models(make_run(), "serial", "subinterpreters")
    assert {(c.baseline.workers, c.sample.workers) for c in contrasts} == {(1, n) for n in (1, 2, 4, 8)}


@pytest.mark.parametrize("compare", [compare_builds, compare_models])
def test_unknown_name_is_refused_with_the_known_ones(compare):
    with pytest.raises(UnknownNameError, match="it has"):
        compare(make_run(), "3.14", "nonesuch")


def test_two_runs_have_an_interval_as_wide_as_their_rounds_differ():
    first, second = (two_cells().run(("3.14",), label=label) for label in "AB")
    (contrast,) = (c for c in compare_runs(first, second) if c.sample == cell("threads", 2))
    seen = contrast.comparison
    assert seen.ratio == pytest.approx(1.0, rel=0.05)
    (table,) = build_tables(first)
    (speedup,) = (result.speedup for row in table.rows for result in row.results if result.speedup)
    assert seen.hi / seen.lo - 1 > 2 * (speedup.hi / speedup.lo - 1)   # pairs take out what rounds have in common
    assert not seen.paired


def test_cell_of_one_run_alone_is_listed():
    first, second = two_cells().run(("3.14",), label="A"), two_cells(workers=4).run(("3.14",), label="B")
    reasons = {c.sample.workers: c.reason for c in compare_runs(first, second) if c.sample.runner == "threads"}
    assert reasons == {2: "only in A", 4: "only in B"}


def test_cell_that_one_run_was_asked_for_and_never_measured_says_so():
    first = two_cells().run(("3.14",), label="A")
    second = replace(two_cells(workers=4).run(("3.14",), label="B"), cells=(cell("threads", 2),), stopped="interrupted")
    (reason,) = [c.reason for c in compare_runs(first, second) if c.sample == cell("threads", 2)]
    assert reason == "in B: not measured: the run has no value of it (it ended by: interrupted)"


def test_contrast_has_the_time_of_each_side_that_has_one():
    first, second = two_cells().run(("3.14",), label="A"), two_cells(workers=4).run(("3.14",), label="B")
    alone = next(c for c in compare_runs(first, second) if c.sample == cell("threads", 2))
    assert alone.baseline_time is not None
    assert alone.sample_time is None
    both = next(c for c in compare_runs(first, second) if c.sample == cell("serial"))
    assert both.comparison.ratio == pytest.approx(both.baseline_time.center / both.sample_time.center)


def asked(label, *, tasks=4, **selection):
    maker = RunMaker()
    maker.measure(cell("threads", 2), 1.0, tasks=tasks)
    return maker.run(("3.14",), label=label, options={"selection": {"size": "small", "user": None, **selection}})


@pytest.mark.parametrize(("changes", "reason"), [
    ({"tasks": 8}, "not the same work: tasks 4 in A, 8 in B"),
    ({"size": "large"}, "not the same work: size small in A, large in B"),
    ({"user": {"payload": "7"}}, "not the same work: no payload in A, payload 7 in B"),
    ({"size": "medium"}, None),   # its tasks are as long as small ones, and here as many
])
def test_runs_of_unlike_work_are_not_compared(changes, reason):
    (contrast,) = compare_runs(asked("A"), asked("B", **changes))
    assert contrast.reason == reason
    assert (contrast.comparison is None) == (reason is not None)


def test_runs_whose_tasks_of_one_length_have_other_units_are_not_compared():
    runs = []
    for label, units in (("A", 400), ("B", 410)):
        maker = RunMaker()
        maker.measure(cell("threads", 2, task_seconds=0.01), 1.0, tasks=40)
        runs.append(maker.run(("3.14",), label=label, options={"units": [["w", 0.01, units, 40]]}))
    (contrast,) = compare_runs(*runs)
    assert contrast.reason == "not the same work: units a task 400 in A, 410 in B"


def test_comparisons_of_a_report_are_those_that_it_shows():
    maker = RunMaker()
    for build in ("3.14", "3.14t"):
        for runner, workers in (("serial", 1), ("threads", 2), ("subinterpreters", 2)):
            maker.measure(cell(runner, workers, build=build), 1.0 / workers)
    maker.skip(cell("free-threaded", 2, build="3.14"), "the GIL is enabled in this build")
    run = maker.run(("3.14", "3.14t"))
    (table,) = build_tables(run)
    # Two models on each build, one thread between builds, the fastest of both.
    assert reported_comparisons(Index(run)) == 4 + 1 + 1
    assert sum(result.speedup is not None for row in table.rows for result in row.results) == 4
    assert len(table.fastest_of_builds) == 1
