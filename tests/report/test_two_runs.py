"""The report of two runs: every word in its table is explained, and cells of the common shift are told from noise."""

from __future__ import annotations

from gilscope.toolkit.report.comparison import comparison_document, not_compared
from gilscope.toolkit.report.document import Banner, Lines, Table
from gilscope.toolkit.report.table import compare_runs, unjudged
from gilscope.toolkit.report.wording import entry_text, ratio_interval_text
from gilscope.toolkit.stats.verdict import SpeedVerdict, Unjudged
from tests.report.shifted import shifted_run

MARKED = "cannot tell ~"


def report(first, second):
    """Return the contrasts, the verdicts as they are printed, and the legend."""
    contrasts = compare_runs(first, second)
    document = comparison_document("", contrasts, baseline=first.label, sample=second.label)
    verdicts = []
    for table in document.sections:
        if isinstance(table, Table):
            place = [column.title for column in table.columns].index("verdict")
            verdicts += [entry_text(row[place]) for row in table.rows]
    legend = next(each.items for each in document.sections if isinstance(each, Lines))
    return contrasts, verdicts, legend, [each.text for each in document.sections if isinstance(each, Banner)]


def test_cells_of_the_common_shift_are_marked_and_the_mark_is_explained():
    contrasts, verdicts, legend, _ = report(shifted_run("A"), shifted_run("B", 1.4, seed=2))
    shifted = [each.comparison for each in contrasts
               if each.comparison and unjudged(each.comparison) in {Unjudged.SHIFT, Unjudged.FEW_WORKLOADS}]
    assert verdicts.count(MARKED) == len(shifted) > 0
    assert any(line.startswith(f"{MARKED}: ") and "common shift" in line for line in legend)


def test_ratio_without_the_shift_has_its_own_interval():
    """The interval that decides is of the ratio with the shift."""
    contrasts = compare_runs(shifted_run("A"), shifted_run("B", 1.4, seed=2))
    document = comparison_document("", contrasts, baseline="A", sample="B")
    tables = [each for each in document.sections if isinstance(each, Table)]
    printed = [entry_text(row[[column.title for column in table.columns].index("without shift")])
               for table in tables for row in table.rows]
    shifts = [each.comparison.shift for each in contrasts if each.comparison is not None]
    assert sorted(printed) == sorted(ratio_interval_text(each.ratio, each.lo, each.hi) for each in shifts)


def test_without_a_common_shift_nothing_is_marked():
    _, verdicts, legend, _ = report(shifted_run("A"), shifted_run("B", seed=2))
    assert set(verdicts) <= {*SpeedVerdict}
    assert not any(line.startswith(MARKED) for line in legend)


def test_shift_of_one_workload_says_where_its_allowance_comes_from():
    first = shifted_run("A", workloads=("sort",))
    _, _, _, banners = report(first, shifted_run("B", 1.1, workloads=("sort",), seed=2))
    # exp(1.96 * 0.15) = 1.34
    assert any("runs at 0.75x to 1.34x its speed in the other run (at 95 %, with a typical standard deviation of 15 %)"
               in each for each in banners)


def test_shift_says_its_clock_and_the_workers_of_its_cells():
    """CPU time is compared with one worker, wall time with two: neither is the workload as a whole."""
    first = shifted_run("A", workloads=("sort",))
    _, _, _, banners = report(first, shifted_run("B", 1.1, workloads=("sort",), seed=2))
    assert [each.partition(" runs at ")[0] for each in banners] == [
        "CPU time: sort with 1 worker", "wall time: sort with 2 workers"]
    _, _, _, banners = report(shifted_run("A"), shifted_run("B", 1.4, seed=2))
    assert [each.partition(":")[0] for each in banners] == ["CPU time with 1 worker", "wall time with 2 workers"]


def test_legend_has_one_line_about_times_and_says_that_the_ratio_is_no_quotient():
    _, _, legend, _ = report(shifted_run("A", rounds=4), shifted_run("B", rounds=4, seed=2))
    (times,) = [line for line in legend if line.startswith("Times: ")]
    assert "± is half of" in times
    assert any(line.startswith("Ratio: ") and "it is not their quotient" in line for line in legend)


def test_a_workload_of_one_run_alone_is_one_short_line():
    both = compare_runs(shifted_run("A"), shifted_run("B", workloads=("sort",), seed=2))
    missing = [each for each in both if each.comparison is None]
    gone = {each.sample.workload for each in missing}
    (line,) = not_compared(missing, both)
    assert line.startswith(f"all {len(missing)} cells of ")
    assert line.endswith(": only in A")
    assert all(name in line for name in gone)
    # One cell of a workload that others were measured of is named as before.
    (line,) = not_compared(missing[:1], both)
    cell = missing[0].sample
    assert line == f"{cell.runner} on {cell.build} (N = {cell.workers}) of {cell.workload}: only in A"
