"""The metrics of a cell: what is measured of its processes besides their time.

To add one, declare it here and read it in `measure/child/metrics.py`, in the measured process.  The store, the tables,
the JSON documents and the pages go by this list.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number per measured process; a cell's is the median over its rounds."""

    name: str             # in the answer of a measured process, and in stored files, there after "gilscope_"
    column: str           # heading in tables and key in JSON; of several under one heading the first with values counts
    unit: str             # "bytes", "seconds", or any other as it follows the number: " J"
    kind: str = ""        # what tells the metrics of one column apart: "PSS"
    whole: bool = False   # whole numbers only
    footnote: str = ""    # what a reader must know of every number of it


MEMORY = "memory"

CELL_METRICS = (
    Metric(name="pss_bytes", column=MEMORY, unit="bytes", kind="PSS", whole=True),
    Metric(name="rss_bytes", column=MEMORY, unit="bytes", kind="RSS", whole=True,
           footnote="resident, not proportional: pages that processes share count for each of them"),
)


def find_metric(name: str) -> Metric | None:
    """Return the declared metric `name`; None for what an experiment measured under a name of its own."""
    return next((metric for metric in CELL_METRICS if metric.name == name), None)
