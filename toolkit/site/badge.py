"""A badge for a README, and the picture that shows with a link: what free-threading gains here, in a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gilscope.toolkit.escaping import visible
from gilscope.toolkit.model import Phase
from gilscope.toolkit.report.wording import range_text
from gilscope.toolkit.site.pages.newest import places, version_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.site.pages.newest import Place
    from gilscope.toolkit.site.sources import Known

FREE = "free-threaded"
CHARACTER = 6.6   # pixels of one, at 11 pixels: wide enough for whatever font it is


def badge_values(known: Sequence[Known]) -> dict[str, Any] | None:
    """Return what the badge says of the newest free-threaded build: "3.14t: 1.9x with 2 threads".

    Args:
        known: All runs, the oldest first.

    Returns:
        None where no free-threaded build was measured with threads.
    """
    free = [place for place in places([each for each in known if not each.is_experiment])
            if place.build.free_threaded and place.table.phase is Phase.STEADY and _gains(place)]
    if not free:
        return None
    newest = max(free, key=lambda place: (version_key(place.build.version), place.known.run.started))
    of_run = [place for place in free if (place.known.id, place.build) == (newest.known.id, newest.build)]
    workers = max(workers for place in of_run for workers, _ in _gains(place))
    gains = [ratio for place in of_run for count, ratio in _gains(place) if count == workers]
    label = visible(newest.build.label)
    text = f"{range_text(f'{each:.1f}x' for each in gains)} with {workers} thread{'s' * (workers > 1)}"
    left, right = (len(each) * CHARACTER + 12 for each in (label, text))
    return {"label": label, "text": text, "left": round(left), "right": round(right), "says": f"{label}: {text}"}


def _gains(place: Place) -> list[tuple[int, float]]:
    """Return numbers of free threads with the ratio that is shown for them."""
    return [(result.cell.workers, result.speedup.ratio) for result in place.results
            if result.cell.runner == FREE and result.speedup is not None and result.absence is None
            and result.speedup.verdict() != "unknown"]
