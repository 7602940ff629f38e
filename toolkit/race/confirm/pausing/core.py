"""What takes the core's place in a confirming run.  It keeps no clocks and judges nothing."""

from __future__ import annotations

import os
from functools import partial

from gilscope.toolkit.race.confirm.pausing.line_events import Lines
from gilscope.toolkit.race.confirm.pausing.ops import Ops
from gilscope.toolkit.race.confirm.pausing.spots import Spot
from gilscope.toolkit.race.confirm.pausing.watch import PAUSES, Watcher
from gilscope.toolkit.race.site import OPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from gilscope.toolkit.race.confirm.plan import Place, Plan
    from gilscope.toolkit.race.site import SiteInfo


class PausingCore:
    """As much of a core as the import hook needs.

    Args:
        plans: Of the races that are not confirmed yet.
        attempt: Which try this is, from 0; it chooses how long a pause is.
        tell: Called with a race's ident and the number of its confirmations whenever that changes.
    """

    name = "pausing"

    def __init__(self, plans: Sequence[Plan], attempt: int, tell: Callable[[str, int], None]) -> None:
        pause = PAUSES[attempt % len(PAUSES)]
        self._watchers: dict[Place, list[tuple[Watcher, int]]] = {}
        own = Ops()
        for ident, question, key, places in plans:
            # A name in a report may be shortened: every other try looks at all items.
            watcher = Watcher(question, "" if attempt % 2 else key, pause, partial(tell, ident))
            for (path, line, column, op), roles in places:
                self._watchers.setdefault((path, line, column, op), []).append((watcher, roles))
                own.recent.wanted |= op in {"reads", "writes"}
        self.ops = {name: getattr(own, name) for name in OPS}
        self._lines = Lines()

    def site(self, info: SiteInfo, _number: int) -> Spot:
        """Return the marker's replacement."""
        place = (os.path.abspath(info.path), info.line, info.column, info.op)
        return Spot(info.key, self._watchers.get(place, ()), self._lines)

    def mute(self) -> int:
        """Do nothing: nothing is heard."""
        return 0

    def restore(self, level: int) -> None:
        """Do nothing, likewise."""

    def busy(self) -> AbstractContextManager[None]:
        """Do nothing, likewise."""
        from contextlib import nullcontext
        return nullcontext()
