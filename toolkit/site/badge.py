"""The badge for a README."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gilscope.toolkit.escaping import visible
from gilscope.toolkit.model import Phase
from gilscope.toolkit.report.wording import range_text
from gilscope.toolkit.site.pages.newest import places, version_key
from gilscope.toolkit.units import counted, list_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.site.pages.newest import WorkloadOnBuild
    from gilscope.toolkit.site.sources import LoadedRun

FREE = "free-threaded"
CHARACTER = 6.6   # width in pixels at a font size of 11: enough for any font


def badge_values(runs: Sequence[LoadedRun]) -> dict[str, Any] | None:
    """Return the text of the badge, on the newest free-threaded build: "3.14t: 1.9x with 2 threads".

    Args:
        runs: All runs, the oldest first.

    Returns:
        None where no free-threaded build was measured with threads.
    """
    free = [place for place in places([each for each in runs if not each.is_experiment])
            if place.build.free_threaded and place.table.phase is Phase.STEADY and _gains(place)]
    if not free:
        return None
    newest = max(free, key=lambda place: (version_key(place.build.version), place.loaded.run.started))
    of_run = [place for place in free if (place.loaded.id, place.build) == (newest.loaded.id, newest.build)]
    workers = max(workers for place in of_run for workers, _ in _gains(place))
    gains = [ratio for place in of_run for count, ratio in _gains(place) if count == workers]
    label = visible(newest.build.label)
    text = f"{range_text(gains, lambda gain: f'{gain:.1f}x')} with {counted(workers, 'thread')}"
    left, right = (len(each) * CHARACTER + 12 for each in (label, text))
    run = newest.loaded.run
    names = list_text(dict.fromkeys(place.table.workload for place in of_run
                                    if any(count == workers for count, _ in _gains(place))))
    about = (f"{counted(workers, 'thread')} without the GIL against {run.baseline}, both on CPython "
             f"{newest.build.version} ({newest.build.label}): {names}, measured {run.started[:10]} in the run "
             f"{run.label}; estimates, without their intervals")
    return {"label": label, "text": text, "left": round(left), "right": round(right), "says": f"{label}: {text}",
            "about": visible(about, most=None)}


def _gains(place: WorkloadOnBuild) -> list[tuple[int, float]]:
    """Return the numbers of free threads, each with the ratio that is shown for it."""
    return [(result.cell.workers, result.speedup.ratio) for result in place.results
            if result.cell.runner == FREE and result.speedup is not None and result.absence is None
            and result.speedup.judgeable]
