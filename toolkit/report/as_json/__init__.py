"""Reports as values for programs.  `../schemas/` says their form, docs/json.md explains it."""

from gilscope.toolkit.report.as_json.hosts import hosts_compare_values, hosts_values
from gilscope.toolkit.report.as_json.reports import (
    compare_values,
    comparison,
    finite,
    floor_values,
    head,
    in_short,
    listed_values,
    measured,
    run_values,
    summary,
)

__all__ = [
    "compare_values", "comparison", "finite", "floor_values", "head", "hosts_compare_values", "hosts_values",
    "in_short", "listed_values", "measured", "run_values", "summary",
]
