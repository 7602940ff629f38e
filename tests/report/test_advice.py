"""What a report says to use, and its closing lines."""

import random
import re
from dataclasses import replace

import pytest

from gilscope.toolkit.model import Cell, Phase, SkipKind
from gilscope.toolkit.report import closing_lines
from gilscope.toolkit.report.closing_lines import next_steps
from gilscope.toolkit.report.document import Lines, Table
from gilscope.toolkit.report.run_document import run_document
from gilscope.toolkit.report.table.judgement import rounds_to_tell
from gilscope.toolkit.report.table.matrix import build_tables
from tests.fakes import RunMaker

BUILDS = ("3.14", "3.14t")


def in_short(run):
    """Return the sentences that a report ends with."""
    return next((s.items for s in run_document(run).sections if isinstance(s, Lines) and s.title == "In short"), ())


def used(run):
    """Return what to use for each workload and build, by the title of the workload."""
    (table,) = [s for s in run_document(run).sections if isinstance(s, Table) and s.title == "What to use"]
    return {row[0].value: [entry.value for entry in row[1:]] for row in table.rows}


def cell(runner="serial", workers=1, build="3.14", **changes):
    return Cell(workload="w", runner=runner, workers=workers, build=build, **changes)


class Made(RunMaker):
    """A run whose baseline takes 1 s and 10 MiB on each build; the first has an A/A arm unless `twin` is False."""

    def __init__(self, builds=("3.14",), *, rounds=8, twin=True, lengths=(None,), noise=0.0005, **changes):
        super().__init__(rounds=rounds, noise=noise)
        self.builds = builds
        for length in lengths:
            for build in builds:
                self.measure(cell(build=build, task_seconds=length, **changes), 1.0, pss=10)
            if twin:
                self.twin(cell(build=builds[0], task_seconds=length, **changes), 1.0)

    def add(self, runner, workers, speedup, *, build="3.14", pss=12, starved=0, **changes):
        self.measure(cell(runner, workers, build, **changes), 1.0 / speedup, pss=pss, starved=starved)
        return self

    def lines(self, **changes):
        return in_short(self.run(self.builds, **changes))

    def used(self):
        """Return what to use for the only workload on the first build."""
        return used(self.run(self.builds))["w"][0]


def test_fastest_is_what_to_use_with_its_memory():
    assert Made().add("threads", 2, 2.0).add("threads", 4, 4.0, pss=13).used() == "threads 13"


def test_models_that_cannot_be_told_apart_are_a_set_and_the_lightest_comes_first():
    made = Made().add("processes-fork", 4, 3.9, pss=60).add("subinterpreters", 4, 3.9, pss=30)
    assert made.used() == "subinterpreters 30 or processes 60"


def test_simplest_comes_first_where_memory_is_alike():
    made = Made(noise=0.02).add("subinterpreters", 4, 3.95, pss=12).add("threads", 4, 3.9, pss=13)
    assert made.used() == "threads 13 or subinterpreters 12"


def test_control_with_the_gil_turned_on_is_not_preferred():
    made = Made(("3.14t",)).add("threads", 2, 2.0, build="3.14t").add("processes-fork", 2, 2.0, build="3.14t")
    (table,) = build_tables(made.run(("3.14t",)))
    assert [each.cell.runner for each in table.advice[0].options] == ["processes-fork", "threads"]


def test_slower_model_is_not_preferred_for_its_memory():
    assert Made().add("processes-fork", 4, 3.9, pss=60).add("threads", 4, 1.5).used() == "processes 60"


def test_fewer_workers_are_enough_where_more_gain_nothing():
    assert Made(noise=0.02).add("threads", 4, 3.9).add("threads", 8, 3.9).used() == "threads with 4 workers 12"


@pytest.mark.parametrize("seed", [105, 109, 136])
def test_model_is_among_the_best_if_any_of_its_worker_counts_is(seed):
    # The truly fastest cell is subinterpreters with 8 workers; with 4 they look as good, and are worse than processes.
    made = Made(noise=0.016)
    made.draw = random.Random(seed)
    made.add("subinterpreters", 4, 2.0).add("subinterpreters", 8, 2.08).add("processes-forkserver", 8, 2.075)
    (table,) = build_tables(made.run(("3.14",)))
    (advice,) = table.advice
    assert {each.runner for each in advice.best} == {"subinterpreters", "processes-forkserver"}
    assert {each.cell.workers for each in advice.shown} == {8}


def test_free_threaded_build_is_not_advised_to_turn_its_gil_on():
    made = Made(("3.14t",), noise=0.02)
    made.add("threads", 4, 3.95, build="3.14t").add("free-threaded", 4, 3.9, build="3.14t")
    assert made.used() == "free-threaded 12 or threads 12"


@pytest.mark.parametrize(("free", "words"), [
    (4.0, r"within 3 % for w"),
    (8.0, r"[12]\.\d\dx \[[\d.]+, [\d.]+\] for w"),
    (2.0, r"0\.(50|51|49)x \[[\d.]+, [\d.]+\] for w"),
])
def test_free_threaded_build_is_set_against_its_twin(free, words):
    made = Made(BUILDS, noise=0.002).add("processes-fork", 4, 4.0, pss=60)
    made.add("free-threaded", 4, free, build="3.14t")
    line = made.lines()[-1]
    assert re.fullmatch(rf"fastest model of 3\.14t against that of 3\.14: {words}", line)


def test_fastest_models_are_compared_and_not_the_preferred_ones():
    made = Made(BUILDS, noise=0.02)
    made.add("threads", 4, 3.9, pss=12).add("subinterpreters", 4, 3.95, pss=12)
    made.add("free-threaded", 4, 3.9, build="3.14t")
    (table,) = build_tables(made.run(made.builds))
    gil, _ = table.advice
    assert [each.cell.runner for each in gil.options] == ["threads", "subinterpreters"], "the first is preferred"
    (twin,) = table.fastest_of_builds
    assert twin.gil.runner == "subinterpreters"


@pytest.mark.parametrize(("cost", "words"), [
    (1.09, r"more by 9\.\d % \[8\.\d, 9\.\d\]"), (1.0, r"within 3 %"),
    (0.9, r"less by \d+\.\d % \[(9|10)\.\d, 10\.\d\]"),
])
def test_cost_of_free_threading_for_one_thread_is_said(cost, words):
    made = RunMaker(noise=0.002)
    for build, seconds in (("3.14", 1.0), ("3.14t", cost)):
        made.measure(cell(build=build), seconds)
        for runner in ("threads", "processes-fork"):
            made.measure(cell(runner, 2, build), seconds / 2)
    made.twin(cell(), 1.0)
    (line,) = [each for each in in_short(made.run(BUILDS)) if each.startswith("CPU time of serial on 3.14t")]
    assert re.fullmatch(rf"CPU time of serial on 3\.14t, against 3\.14: {words} for w", line)


def test_each_of_several_costs_has_its_number_and_its_interval():
    made = RunMaker(noise=0.002)
    for workload, cost, noise in (("a", 1.05, 0.002), ("b", 1.2, 0.002), ("c", 1.0, 0.002), ("d", 1.0, 0.3)):
        made.noise = noise
        for build, seconds in (("3.14", 1.0), ("3.14t", cost)):
            for runner, workers in (("serial", 1), ("threads", 2), ("processes-fork", 2)):
                made.measure(replace(cell(runner, workers, build), workload=workload), seconds / workers)
    (line,) = [each for each in in_short(made.run(BUILDS)) if each.startswith("CPU time of serial on 3.14t")]
    assert re.search(r"more by (19|20)\.\d % \[(19|20)\.\d, 20\.\d\] for b, 5\.\d % \[[45]\.\d, 5\.\d\] for a; "
                     r"within 3 % for c; undecided for d \(-\d+ to \+\d+ %\)$", line)


def test_cost_that_cannot_be_told_says_what_is_possible_and_what_would_tell():
    made = RunMaker(noise=0.3)   # of CPU time a quarter of it
    for build in BUILDS:
        for runner, workers in (("serial", 1), ("threads", 2), ("processes-fork", 2)):
            made.measure(cell(runner, workers, build), 1.0 / workers)
    made.twin(cell(), 1.0)
    lines = in_short(made.run(BUILDS))
    assert any(re.search(r"serial on .*: undecided for w \(-\d+ to \+\d+ %\)$", line) for line in lines)
    assert any(line.startswith("open answers: ") for line in lines)


def test_nothing_is_faster_means_serial():
    assert Made(noise=0.01).add("threads", 2, 0.95).used() == "serial 10"


def test_starved_cells_are_not_known_and_nothing_is_called_slow():
    made = Made().add("threads", 2, 1.0).add("processes-fork", 2, 1.0, starved=8)
    (remedy,) = made.lines()
    assert made.used() == "starved"
    assert remedy == ("open answers: 1; 1 starved, as other programs used their cores: end those programs, "
                      "or measure with `run --wait-quiet`")


def test_wide_interval_settles_nothing_and_names_the_rounds_that_would():
    made = Made(noise=0.25).add("threads", 2, 1.3)
    (remedy,) = made.lines()
    assert made.used() == "undecided"
    assert re.fullmatch(r"open answers: 1; `gilscope run --resume example --rounds \d+` is likely to decide it", remedy)


def test_values_that_do_not_vary_are_not_called_noisy_and_no_rounds_are_asked_for():
    made = RunMaker(noise=0.0)
    for build in BUILDS:
        for runner, workers in (("serial", 1), ("threads", 2)):
            made.measure(cell(runner, workers, build), 1.0 / workers)
    run = made.run(BUILDS)
    lines = in_short(run)
    assert used(run)["w"] == ["unknown noise"] * 2
    assert any(line.endswith("against 3.14: undecided for w") for line in lines)
    assert not any("too noisy" in line or line.startswith("open answers: ") for line in lines)


def test_what_noise_leaves_open_is_told_though_other_cells_lack_rounds_that_are_over():
    run = Made(noise=0.25).add("threads", 2, 1.3).run(("3.14",))
    (table,) = build_tables(run)
    (seen,) = (result.speedup for row in table.rows for result in row.results if result.speedup)
    unknown = replace(seen, floor=None)
    (few,) = (replace(each, why="rounds") for advice in table.advice for each in advice.open)
    found = [*next_steps([replace(table, advice=(replace(table.advice[0], open=(few,)),))], run, [seen, unknown])]
    assert "likely to decide" in found[0]



@pytest.mark.parametrize(("needed", "said"), [
    ([33, 57, None, None], "`gilscope run --resume example --rounds 57` is likely to decide 2 of them"),
    ([33, None], "`gilscope run --resume example --rounds 33` is likely to decide 1 of them"),
    ([33, 57], "`gilscope run --resume example --rounds 57` is likely to decide all"),
    ([None, None], "a quieter machine would tell"),
])
def test_rounds_that_settle_some_comparisons_are_not_promised_to_settle_all(needed, said, monkeypatch):
    opened = iter(needed)
    made = Made()
    for model in ("threads", "subinterpreters", "processes-spawn", "processes-forkserver")[:len(needed)]:
        made.add(model, 2, 1.3)
    run = made.run(made.builds)
    (table,) = build_tables(run)
    comparisons = [result.speedup for row in table.rows for result in row.results if result.speedup]
    assert len(comparisons) == len(needed)
    monkeypatch.setattr(closing_lines, "rounds_to_tell", lambda _: next(opened))
    first, *_ = next_steps([], run, comparisons)
    assert first == f"open answers: {len(needed)}; {said}"


def test_comparison_that_lacks_rounds_of_the_run_needs_as_many_more_of_it():
    run = Made().add("threads", 2, 1.3).run(("3.14",))
    (table,) = build_tables(run)
    (seen,) = (result.speedup for row in table.rows for result in row.results if result.speedup)
    open_ = replace(seen, ratio=1.1, lo=1.02, hi=1.19, verdict_interval=(0.98, 1.23))
    needed = rounds_to_tell(open_)
    first, *_ = next_steps([], replace(run, rounds_done=run.rounds_done + 5), [open_])
    assert f" --rounds {needed + 5}` " in first


def test_model_that_may_be_as_fast_as_the_fastest_is_not_known():
    made = Made(noise=0.05).add("threads", 4, 2.0)
    made.noise = 1.0
    made.add("processes-fork", 4, 1.4)
    assert made.used() == "threads 12"
    assert made.lines()[0].startswith("open answers: 1; ")
    assert Made(noise=0.25).add("threads", 4, 4.0).add("processes-fork", 4, 1.4).lines() == ()


def test_failed_model_does_not_keep_the_others_from_a_verdict():
    made = Made().add("threads", 2, 1.0)
    made.fail(cell("processes-fork", 2), "crash", "killed by SIGSEGV")
    assert made.used() == "serial 10"
    assert made.lines() == ("failed: processes-fork of w on 3.14: round 1: crash: killed by SIGSEGV",)


def test_cell_that_the_budget_left_out_is_not_known_but_a_skipped_one_is():
    made = Made().add("threads", 2, 2.0)
    made.skip(cell("processes-fork", 2), "no time", SkipKind.OUT_OF_BUDGET)
    made.skip(cell("free-threaded", 2), "the GIL is enabled in this build")
    (remedy,) = made.lines()
    assert made.used() == "threads 12"
    assert remedy.startswith("open answers: 1; the budget ended first: ")
    assert "`gilscope run --resume example`" in remedy


def test_published_run_is_continued_where_it_was_measured():
    made = Made().add("threads", 2, 2.0)
    made.skip(cell("processes-fork", 2), "no time", SkipKind.OUT_OF_BUDGET)
    run = made.run(("3.14",))
    published = replace(run, machine=replace(run.machine, hostname=""))
    (text,) = [each for section in run_document(published).sections if isinstance(section, Lines)
               for each in section.items if "--resume" in each]
    assert "`gilscope run --resume example` where it was measured" in text


def test_too_few_rounds_are_said_and_how_many_would_tell():
    made = Made(rounds=2).add("threads", 2, 2.0).add("threads", 4, 4.0)
    assert made.used() == "too few rounds"
    (last,) = made.lines()
    assert "; too few rounds: `gilscope run --resume example --rounds 5` " in last


def test_baseline_without_a_number_leaves_nothing_to_say():
    made = RunMaker()
    made.measure(cell("threads", 2), 1.0)
    made.fail(cell(), "crash", "killed by SIGSEGV")
    run = made.run(("3.14",))
    assert used(run) == {"w": ["unknown: serial has no number"]}
    assert in_short(run)[0] == "failed: serial of w on 3.14: round 1: crash: killed by SIGSEGV"


def test_baseline_that_was_starved_is_the_reason_not_a_lack_of_rounds():
    made = RunMaker(rounds=1)
    made.measure(cell(), 1.0, starved=1)
    made.measure(cell("threads", 2), 0.6, starved=1)
    run = made.run(("3.14",))
    assert used(run) == {"w": ["starved"]}
    (last,) = in_short(run)
    assert last.startswith("open answers: 1; 1 starved, as other programs used their cores")


def test_baseline_alone():
    assert (Made().used(), Made().lines()) == ("nothing to compare", ())


def test_start_up_and_task_lengths_have_rows_of_their_own():
    made = Made(lengths=(0.001, 0.1)).add("processes-fork", 2, 0.5, task_seconds=0.001, pss=40)
    made.add("processes-fork", 2, 1.9, task_seconds=0.1, pss=40)
    made.measure(cell(phase=Phase.STARTUP), 1.0, pss=10)
    made.add("threads", 2, 0.9, phase=Phase.STARTUP)
    assert used(made.run(made.builds)) == {
        "w, tasks of 1.00 ms": ["serial 10"], "w, tasks of 100 ms": ["processes 40"], "w, startup": ["serial 10"]}


def test_coroutine_function_is_compared_with_one_task_in_flight():
    made = RunMaker(noise=0.0005)
    made.measure(cell("asyncio", 1), 1.0, pss=17)
    made.twin(cell("asyncio", 1), 1.0)
    made.measure(cell("asyncio", 4), 0.25, pss=17)
    made.skip(cell(), "it is a coroutine function: only asyncio awaits it")
    assert used(made.run(("3.14",), baseline="asyncio")) == {"w": ["asyncio 17"]}


def test_free_threaded_builds_alone_say_nothing_of_what_free_threading_costs():
    made = RunMaker()
    for build in ("3.14t", "3.15t"):
        made.measure(cell(build=build), 1.0)
        made.measure(cell("free-threaded", 2, build), 0.5)
    assert not any("Cost of" in line for line in in_short(made.run(("3.14t", "3.15t"))))


def with_tasks(count, made):
    """Return the run with `count` tasks in each pass."""
    made.measurements = [replace(each, observations=tuple(replace(one, tasks=count) for one in each.observations))
                         for each in made.measurements]
    return made


def test_tasks_that_cost_more_to_dispatch_than_they_take_are_said_to_be_too_short():
    made = with_tasks(8, Made().add("subinterpreters", 2, 1 / 9).add("processes-fork", 2, 1 / 17))
    (line, *_) = made.lines()
    assert "The tasks are too short: one takes 132 ms, and handing it to a worker costs " in line
    assert "(subinterpreters) to " in line
    assert "(processes-fork), at least 9 times as much. Only tasks of about 2.25 s or more can gain" in line
    (advice,) = build_tables(made.run(made.builds))[0].advice
    # A pass of 9 s has 8 tasks of 1 / 8 s, half of which each worker takes: 9 / 8 - 1 / 16 s are 8.5 tasks.
    assert [each.seconds / advice.task for each in advice.dispatch] == pytest.approx([8.5, 16.5], rel=0.01)
    # 17/16 + s / 2 < s from 17/8 on, which are 17 tasks.
    assert [each.pays_from / advice.task for each in advice.dispatch] == pytest.approx([17, 33], rel=0.01)


def test_tasks_are_not_called_too_short_where_the_loss_may_be_noise():
    made = with_tasks(8, Made(noise=1.5).add("subinterpreters", 2, 0.4))
    (advice,) = build_tables(made.run(made.builds))[0].advice
    assert advice.dispatch == ()


@pytest.mark.parametrize(("model", "speedup"), [
    ("subinterpreters", 0.9),   # it loses, but not to the dispatch of its tasks
    ("threads", 1 / 9),         # under the GIL, no longer task would gain
])
def test_other_losses_are_not_blamed_on_short_tasks(model, speedup):
    assert "too short" not in " ".join(with_tasks(8, Made().add(model, 2, speedup)).lines())
