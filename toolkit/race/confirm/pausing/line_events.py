"""Between a read and the write that depends on it, wait before each line, too.

Where each of the two holds a lock and the whole does not, a pause at either would keep the other threads out.  The line
between them is outside.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType

    from gilscope.toolkit.race.confirm.pausing.watch import Watcher

TOOLS = (4, 3, 5)   # ids that nobody has a claim on by convention, then the optimizer's


class Lines:
    """Tells watchers of every new line in functions that hold a span's read."""

    def __init__(self) -> None:
        self._watchers: dict[CodeType, set[Watcher]] = {}
        self._tool = -1

    def follow(self, code: CodeType, watcher: Watcher) -> None:
        """Tell `watcher` of the lines of `code` from now on."""
        known = self._watchers.setdefault(code, set())
        if watcher in known:
            return
        known.add(watcher)
        if self._tool < 0:
            self._begin()
        if self._tool >= 0:
            sys.monitoring.set_local_events(self._tool, code, sys.monitoring.events.LINE)

    def _begin(self) -> None:
        monitoring = sys.monitoring
        self._tool = next((tool for tool in TOOLS if monitoring.get_tool(tool) is None), -1)
        if self._tool >= 0:
            monitoring.use_tool_id(self._tool, "gilscope")
            monitoring.register_callback(self._tool, monitoring.events.LINE, self._at_line)

    def _at_line(self, code: CodeType, _line: int) -> None:
        for watcher in tuple(self._watchers.get(code, ())):
            watcher.linger()
