"""What a workload's table says, in sentences: its noise floor and how it scales."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.report.wording import estimate_text, list_text, percent_text
from gilscope.toolkit.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.model import Cell
    from gilscope.toolkit.report.table import Floors, ScalingFit, WorkloadTable
    from gilscope.toolkit.stats.scaling import Scaling


def noise_line(floors: Floors) -> str:
    """Return what a cell may differ by from itself by each clock, and what cells that were measured twice did."""
    known = [(name, floor) for name, floor in (("wall", floors.all_wall), ("CPU", floors.all_cpu)) if floor]
    if not known:
        return "Noise floor: not known, as there are too few processes; nothing is called faster or slower."
    bounds = ", ".join(f"{name} {percent_text(floor.bound)}" for name, floor in known)
    errors = [f"{percent_text(floor.error)} ({name})" for name, floor in known if floor.error is not None]
    seen = f"; cells measured twice (A/A) were off by {list_text(errors)}" if errors else ""
    return f"Noise floor, from the spread of all processes: {bounds}{seen}."


def fit_lines(fits: Sequence[ScalingFit]) -> tuple[str, ...]:
    """Return a line per fit, and one line per reason for all that could not be fitted."""
    fitted: list[str] = []
    reasons: dict[str, list[str]] = {}
    for each in fits:
        name = f"{each.runner} on {each.build}"
        if each.scaling.sigma is None:
            reasons.setdefault(each.scaling.notes[0].text, []).append(name)
        elif text := _fit_text(each.scaling):
            fitted.append(f"{name}: {text}")
        else:
            reasons.setdefault(_edge_text(each.scaling), []).append(name)
    if not fitted and len(reasons) == 1:
        return tuple(f"{reason[0].upper()}{reason[1:]}." for reason in reasons)
    return (*fitted, *(f"{list_text(names)}: {reason}" for reason, names in reasons.items()))


def _edge_text(scaling: Scaling) -> str:
    """Return what a fit says of which every coefficient is at an edge of what it may be."""
    counts = f"N = {scaling.counts[-1]}"
    if scaling.serial is not None and scaling.serial.value == 0:
        return f"nothing in the way of more workers is shown up to {counts}"
    return f"more workers gain nothing up to {counts}"


def _fit_text(scaling: Scaling) -> str:
    """Return the fitted numbers; not those that every resample agreed on, as they have no interval: see `certain`."""
    if scaling.serial is None or scaling.sigma is None or scaling.kappa is None:
        raise AssertionError("a fit has all three numbers or none")
    # A coherence that may be 0 puts the peak anywhere.
    peak = f", fastest at N = {scaling.peak:.0f}" if scaling.peak and scaling.kappa.lo > 0 else ""
    notes = "".join(f"; {note.text}" for note in scaling.notes)
    usl = ", ".join(
        f"{name} {estimate_text(each)}"
        for name, each in (("contention", scaling.sigma), ("coherence", scaling.kappa)) if not each.certain
    )
    amdahl = "" if scaling.serial.certain else f"Amdahl: {estimate_text(scaling.serial)} serial"
    parts = [part for part in (amdahl, usl and f"USL: {usl}{peak}") if part]
    return f"{'; '.join(parts)}{notes}" if parts else ""


def title_text(what: WorkloadTable | Cell) -> str:
    """Return what a table or a cell is about: "primes, steady, tasks of 10.0 ms"."""
    length = "" if what.task_seconds is None else f", tasks of {format_seconds(what.task_seconds)}"
    return f"{what.workload}, {what.phase}{length}"
