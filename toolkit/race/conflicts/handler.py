"""What hears of conflicts inside the checked program, and writes each new race to the spool at once.

`on_conflict` runs in the thread whose access completed the conflict, wherever that thread is.  So it never raises,
takes no lock (threads that meet here meet at atomic dict operations), runs no code of the program, and keeps the
program's own tracking off meanwhile.  What it needs is imported with the first conflict: most programs have none.

How often a core asks again for a pair of sites: until a race is known for a few of its variables, or longer for a note,
since another value or another lock may make a later conflict a race.
"""

from __future__ import annotations

import os
import sys
from _thread import interrupt_main

from gilscope.toolkit.race.spool import mark_lost  # now: who has opened all files that he may can import nothing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from gilscope.toolkit.race.conflicts.recorder import DescribeThread, Recorder
    from gilscope.toolkit.race.core import Conflict, Core

ASKED_FOR_RACES = 8       # variables that one pair of sites may be reported for
ASKED_FOR_NOTES = 32      # conflicts that may all be benign before the pair is taken for benign
ASKED_FOR_SHARED = 64     # uses that may all be of one task's own threads before the pair is taken for private
SHARED = "\0shared"       # no section has this name


class ConflictHandler:
    """Turns a core's conflicts into records in `folder`.

    Args:
        core: What finds the conflicts.
        folder: The run's spool; exists.
        describe_thread: Returns a thread's name and where it was started, innermost frame first; () for the main one.
        options: `root` (folder that relative paths start from, default: the current one), `target`, `build`, `command`
            (told to the report as they are), `sections` (every section hears of every race again), `shared` (what
            several threads use is recorded, too, whatever orders it).

    Attributes:
        root_of: Returns the thread that the first one started and another goes back to.
    """

    def __init__(self, core: Core, folder: str, describe_thread: DescribeThread,
                 options: dict[str, Any] | None = None) -> None:
        self.core = core
        self.folder = folder
        self.describe_thread = describe_thread
        self.options = options or {}
        self.root = str(self.options.get("root") or os.getcwd())
        self.root_of: Callable[[int], int] = int
        self.section_name: str | None = None
        self._asked: dict[tuple[str | None, int, int], int] = {}
        self._recorder: Recorder | None = None
        self._made: dict[str, Recorder] = {}
        self._finished = False

    def on_conflict(self, conflict: Conflict) -> bool:
        """Record the conflict; return whether the core need not tell of this pair of sites again."""
        level = self.core.mute()
        try:
            with self.core.busy():
                return self._hear(conflict)
        except KeyboardInterrupt:
            interrupt_main()     # it was meant for the program, and the core swallows what leaves here
            return False
        except Exception:  # noqa: BLE001  the program must not notice; what failed is told on request
            self._complain()
            return False
        finally:
            self.core.restore(level)

    def _hear(self, conflict: Conflict) -> bool:
        first, second = conflict[4][1], conflict[5][1]
        if conflict[0] == "shared":
            return self._hear_shared(conflict, (SHARED, min(first, second), max(first, second)))
        pair = (self.section_name, min(first, second), max(first, second))
        asked = self._asked[pair] = self._asked.get(pair, 0) + 1
        known = self.recorder().hear(conflict, self.section_name)
        if self.options.get("sections"):
            return False
        return asked >= (ASKED_FOR_NOTES if known == "note" else ASKED_FOR_RACES) or known == "settled"

    def _hear_shared(self, conflict: Conflict, pair: tuple[str, int, int]) -> bool:
        """Record what several threads use; not what one task shares with threads of its own.

        What the first thread made is handed to those that it starts.
        """
        roots = [self.root_of(side[0]) for side in (conflict[4], conflict[5])]
        asked = self._asked[pair] = self._asked.get(pair, 0) + 1
        if roots[0] in {0, roots[1]}:
            return asked >= ASKED_FOR_SHARED
        self.recorder().hear_shared(conflict)
        return asked >= ASKED_FOR_RACES

    def recorder(self) -> Recorder:
        """Return what writes the records, made with the first conflict."""
        found = self._recorder
        if found is None:
            from gilscope.toolkit.race.conflicts.recorder import Recorder
            # Several threads may come here at once, and no lock may be taken: the first one's is everybody's.
            found = self._recorder = self._made.setdefault(
                "recorder", Recorder(self.core, self.folder, self.root, self.describe_thread, self.options))
        return found

    @property
    def heard_any(self) -> bool:
        """Tell whether there was any conflict; without, there may be nothing to finish."""
        return self._recorder is not None

    def section(self, name: str | None) -> None:
        """Let the records that follow belong to `name`: a test, or None for none."""
        self.section_name = name

    def failed(self) -> int:
        """Return how many races, without notes and `# race: ok`, the current section has so far."""
        return 0 if self._recorder is None else self._recorder.failed(self.section_name)

    def after_fork(self) -> None:
        """Go on in a forked child: what the parent knew it has written and counts, the child does what comes."""
        self._finished = False
        if self._recorder is not None:
            self._recorder.forget_counts()

    def finish(self, unrewritten: Iterable[tuple[str, str]] = (), watched: int | None = None) -> None:
        """Write what is known only at the end: counts, suppressing comments and modules that ran as they are."""
        level = self.core.mute()
        try:
            with self.core.busy():
                if not self._finished:
                    self._finished = True
                    self.recorder().finish(tuple(unrewritten), watched)
        except Exception:  # noqa: BLE001  as above
            self._complain()
        finally:
            self.core.restore(level)

    def _complain(self) -> None:
        mark_lost(self.folder)
        if not os.environ.get("GILSCOPE_RACE_DEBUG"):
            return
        import traceback
        traceback.print_exc(file=sys.__stderr__)
