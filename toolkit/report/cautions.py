"""The warnings about a run that every view of it shows, and of its ratios: reports, comparisons, pages and JSON."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

from gilscope.toolkit.builds.pairing import compare_builds
from gilscope.toolkit.report.provenance import warnings

if TYPE_CHECKING:
    from gilscope.toolkit.model import Run


def cautions(run: Run) -> tuple[str, ...]:
    """Return the notes of a run and the warnings about its builds, which stand above its tables."""
    return (*(note.text for note in run.notes), *warnings(run))


def ratio_cautions(run: Run) -> tuple[str, ...]:
    """Return the same, and how early stopping biases the ratios of the run."""
    return (*cautions(run), *filter(None, [stopping_text(run)]))


def cautions_beside_pairs(run: Run) -> tuple[str, ...]:
    """Return the same without differences between two of its builds: who compares two says those that matter."""
    pairs = {note for one, other in permutations(run.builds, 2) for note in compare_builds(one, other)}
    return (*(note.text for note in run.notes if note not in pairs), *warnings(run))


def stopping_text(run: Run) -> str:
    """Return how early stopping biases the ratios of a run; "" if all its cells have the same rounds."""
    failed = {failure.cell for failure in run.failures}
    counts = {len(each.observations) for each in run.measurements if each.cell not in failed} if run.looks else set()
    if len(counts) < 2:  # one number of rounds for all
        return ""
    return (f"cells with a clear answer got fewer rounds than open ones: {min(counts)} to {max(counts)}; on average, "
            "their ratios are slightly too far from 1; those of cells that were not clear until the end are slightly "
            "too near to 1, and their intervals hold less often than 95 %")
