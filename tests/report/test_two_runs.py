"""The report of two runs: a ratio with its interval for each cell, and no word that only `--again` can say."""

from __future__ import annotations

from gilscope.toolkit.report.comparison import comparison_document
from gilscope.toolkit.report.document import Lines, Table
from gilscope.toolkit.report.table.contrast import compare_runs
from tests.report.shifted import shifted_run


def report(first, second):
    """Return the tables and the legend."""
    document = comparison_document("", compare_runs(first, second), baseline=first.label, sample=second.label)
    legend = next(each.items for each in document.sections if isinstance(each, Lines))
    return [each for each in document.sections if isinstance(each, Table)], legend


def test_tables_have_ratios_with_intervals_and_no_verdict():
    tables, legend = report(shifted_run("A"), shifted_run("B", 1.4, seed=2))
    assert {tuple(column.title for column in table.columns) for table in tables} == {("model", "N", "A", "B", "ratio")}
    assert all(row[-1].value.form == "interval" for table in tables for row in table.rows)
    assert not any("verdict" in line or "cannot tell" in line for line in legend)


def test_legend_has_one_line_about_times_and_says_that_the_ratio_is_no_quotient():
    _, legend = report(shifted_run("A", rounds=4), shifted_run("B", rounds=4, seed=2))
    (times,) = [line for line in legend if line.startswith("Times: ")]
    assert "± is half of" in times
    assert any(line.startswith("Ratio: ") and "it is not their quotient" in line for line in legend)


def test_a_workload_of_one_run_alone_is_one_short_line():
    both = compare_runs(shifted_run("A"), shifted_run("B", workloads=("sort",), seed=2))
    missing = [each.sample for each in both if each.comparison is None]
    document = comparison_document("", both, baseline="A", sample="B")
    (section,) = [each for each in document.sections if isinstance(each, Lines) and each.title == "Not compared"]
    (line,) = section.items
    assert line.endswith(f" ({len(missing)} cells): only in A")
    assert all(cell.workload in line and cell.runner in line for cell in missing)
