"""Receive conflicts from the core, inside the checked program, and write each new race to the spool at once.

`on_conflict` runs in the thread whose access completed the conflict, at any point of the program.  So it never raises,
acquires no lock (threads agree through atomic dict operations), runs no code of the program, and suspends tracking.
The recorder is imported on the first conflict: most programs have none.

A core reports a pair of sites again for some time: it may race on several variables, and another value or another lock
may make a race of what looks harmless.
"""

from __future__ import annotations

import os
import sys
from _thread import interrupt_main

from gilscope.toolkit.race.spool import mark_lost  # now: once the program is out of file descriptors, imports fail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from gilscope.toolkit.race.conflicts.recorder import DescribeThread, Recorder
    from gilscope.toolkit.race.core import Conflict, Core

REPORTS = 32     # of a pair of sites


class ConflictHandler:
    """Receiver of a core's conflicts, which it turns into records in `folder`.

    Args:
        core: The core that finds the conflicts.
        folder: The run's spool; exists.
        describe_thread: Returns a thread's name and the stack of its start, innermost first; () for the main one.
        options: `root` (folder that relative paths start from, default: the current one), `target`, `build`, `command`
            (passed to the report), `sections` (each section records every race again).
    """

    def __init__(self, core: Core, folder: str, describe_thread: DescribeThread,
                 options: dict[str, Any] | None = None) -> None:
        self.core = core
        self.folder = folder
        self.describe_thread = describe_thread
        self.options = options or {}
        self.root = str(self.options.get("root") or os.getcwd())
        self.section_name: str | None = None
        self._reports: dict[tuple[str | None, int, int], int] = {}
        self._recorder: Recorder | None = None
        self._made: dict[str, Recorder] = {}
        self._finished = False

    def on_conflict(self, conflict: Conflict) -> bool:
        """Record the conflict; return True if the core may stop reporting this pair of sites."""
        level = self.core.mute()
        try:
            with self.core.busy():
                return self._receive(conflict)
        except KeyboardInterrupt:
            interrupt_main()     # it was meant for the program, and the core swallows exceptions of this callback
            return False
        except Exception:  # noqa: BLE001  the program must not notice; the debug option prints the traceback
            self._complain()
            return False
        finally:
            self.core.restore(level)

    def on_gap(self, reason: str, count: int) -> None:
        """Record that accesses go unchecked; `GapReason` explains the arguments."""
        level = self.core.mute()
        try:
            with self.core.busy():
                self.recorder().record_gap(reason, count)
        except KeyboardInterrupt:
            interrupt_main()     # as in `on_conflict`
        except Exception:  # noqa: BLE001  the program must not notice, as in `on_conflict`
            self._complain()
        finally:
            self.core.restore(level)

    def _receive(self, conflict: Conflict) -> bool:
        first, second = conflict[4][1], conflict[5][1]
        pair = (self.section_name, min(first, second), max(first, second))
        reports = self._reports[pair] = self._reports.get(pair, 0) + 1
        if reports <= REPORTS:
            self.recorder().record(conflict, self.section_name)
        return reports >= REPORTS and not self.options.get("sections")

    def recorder(self) -> Recorder:
        """Return the recorder, created on the first conflict or gap."""
        found = self._recorder
        if found is None:
            from gilscope.toolkit.race.conflicts.recorder import Recorder
            # Several threads may get here at once, and must not lock: all use the recorder of the first.
            found = self._recorder = self._made.setdefault(
                "recorder", Recorder(self.core, self.folder, self.root, self.describe_thread, self.options))
        return found

    @property
    def any_record(self) -> bool:
        """Return True if there was a conflict or a gap."""
        return self._recorder is not None

    def section(self, name: str | None) -> None:
        """Start the section `name`, a test, that the following records belong to; None ends it."""
        self.section_name = name

    def in_section(self) -> bool:
        """Return True if there was a conflict in the current section."""
        return self._recorder is not None and self.section_name in self._recorder.sections

    def after_fork(self) -> None:
        """Continue in a forked child: the parent has written its records and reports its counts itself."""
        self._finished = False
        if self._recorder is not None:
            self._recorder.forget_counts()

    def finish(self, unrewritten: Iterable[tuple[str, str]] = ()) -> None:
        """Write what is known only at the end: counts, suppressions and modules that were not rewritten."""
        level = self.core.mute()
        try:
            with self.core.busy():
                if not self._finished:
                    self._finished = True
                    self.recorder().finish(tuple(unrewritten))
        except Exception:  # noqa: BLE001  the program must not notice, as in `on_conflict`
            self._complain()
        finally:
            self.core.restore(level)

    def _complain(self) -> None:
        mark_lost(self.folder)
        if not os.environ.get("GILSCOPE_RACE_DEBUG"):
            return
        import traceback
        traceback.print_exc(file=sys.__stderr__)
