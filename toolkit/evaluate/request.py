"""The request of `gilscope evaluate`: a project with options, and the command that repeats it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

BUDGET = 600.0           # seconds
HAMMER_SECONDS = 20.0    # of --hammer
WAIT_QUIET = 1800.0      # seconds that --wait-quiet waits at most


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRequest:
    """A project to evaluate, with the options of the call."""

    path: Path
    lock: Path | None = None
    tests: str | None = None
    workload: str | None = None  # "package.module:function" or a script
    payloads: str | None = None  # "package.module:name": what each call of the function goes through
    calls: int = 0               # of the function by each thread under the race checker; 0: as many as fit
    budget: float = BUDGET
    wait_quiet: float = 0.0      # seconds to wait at most until the machine is quiet, before anything is timed
    offline: bool = False        # install nothing: use the lock, and what an earlier call has installed
    sdists: bool = False         # build packages without a wheel from source
    extras: tuple[str, ...] = ()   # of the project; they count as needed to run
    threads: int = 0             # that run each test at once, and that call the workload; 0: run the tests as they are
    hammer: float = 0.0          # seconds of calls of its own C functions from several threads; 0: none
    labels: str | None = None    # of builds, as the user named them, like "3.14t,3.15t"; None: the newest
    ci_file: str = ""            # the CI file that this call writes into the project; "" if it writes none
    added: tuple[str, ...] = ()  # "LABEL=PATH" of each interpreter that the user named

    @property
    def called(self) -> str | None:
        """The workload with its payloads, in one text, as `UserWorkload.of` reads it."""
        return f"{self.workload} {self.payloads}" if self.payloads else self.workload

    def command(self, *more: str) -> str:
        """Return the shell command that repeats this evaluation, without options for its output, with `more` words."""
        named = [("--lock", self.lock), ("--tests", self.tests), ("--workload", self.workload),
                 ("--payloads", self.payloads), ("--calls", self.calls or None),
                 ("--threads", self.threads or None),
                 ("--hammer", f"{self.hammer:g}s" if self.hammer else None),
                 ("--budget", None if self.budget == BUDGET else f"{self.budget:g}s"),
                 *(("--extra", name) for name in self.extras),
                 ("--builds", self.labels), *(("--build", each) for each in self.added)]
        words = [word for option, value in named if value is not None for word in (option, str(value))]
        flags = {"--offline": self.offline, "--build-sdists": self.sdists, "--wait-quiet": self.wait_quiet}
        words += [flag for flag, given in flags.items() if given]
        return shlex.join(("gilscope", "evaluate", str(self.path), *words, *more))
