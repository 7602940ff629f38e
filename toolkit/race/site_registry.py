"""All sites of the process, by number.  Cores speak of numbers, reports of what stands behind them."""

from __future__ import annotations

from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.race.site import SiteInfo

sites: list[SiteInfo] = []     # number -> site; partners are numbers here
_adding = allocate_lock()


def add(infos: Sequence[SiteInfo]) -> int:
    """Number a module's sites and return the first one's number; their partners become numbers, too."""
    with _adding:
        first = len(sites)
        sites.extend(info._replace(partners=tuple(first + index for index in info.partners)) for info in infos)
    return first
