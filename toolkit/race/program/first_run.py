"""The run of a program that races are looked for in."""

from __future__ import annotations

import time

from gilscope.toolkit.race.program import start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gilscope.toolkit.race.program.spec import Spec


class FirstRun:
    """The run that races are looked for in; nothing has begun yet.

    Attributes:
        entry: What `sys.path` begins with.
        spool: The folder that races are written to.
        ended: The program's exit code, or minus the signal that ended it.
        seconds: How long it ran.
    """

    def __init__(self, spec: Spec, entry: str) -> None:
        self.spec = spec
        self.entry = entry
        self.spool = start.make_spool()
        self.ended = 0
        self.seconds = 0.0

    def go(self) -> None:
        """Run the program to its end."""
        begin = time.monotonic()
        with start.Lifeline() as self.spec.lifeline:
            self.spec.write(self.spool)
            self.ended = start.run(self.spec, self.spool, self.entry)
        self.seconds = time.monotonic() - begin
