"""Examine one package with `gilscope doctor PACKAGE` in its own process, whatever the package does to it.

A process that uses an environment releases it at its end, so that many packages do not fill the disk.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import last_message
from gilscope.toolkit.evaluate.survey.answer import PackageAnswer, from_doctor
from gilscope.toolkit.measure.preparation import child_environment
from gilscope.toolkit.processes.supervised import run

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from gilscope.toolkit.processes.supervised import Supervised

_LAST = 300   # characters of an error message


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyQuestion:
    """The options with which each package is examined."""

    builds: tuple[str, ...]              # labels
    added: tuple[str, ...] = ()          # LABEL=PATH of builds that are not found automatically
    limit: float = 60.0                  # seconds for the imports of one package
    interpreters: bool = False
    sdists: bool = False

    @property
    def key(self) -> str:
        """Return the options that distinguish these answers from others about the same builds, as a cache key."""
        return f"{self.limit} {self.interpreters} {self.sdists}"

    def words(self, package: str) -> list[str]:
        """Return the command line after `gilscope`."""
        added = [word for each in self.added for word in ("--build", each)]
        switches = [("--interpreters", self.interpreters), ("--build-sdists", self.sdists)]
        return ["doctor", "--builds", ",".join(self.builds), *added, "--timeout", f"{self.limit:g}s",
                *(name for name, on in switches if on), "--json=-", "--", package]


def ask(package: str, question: SurveyQuestion, started: Callable[[Supervised], object] | None = None) -> PackageAnswer:
    """Return the answer for `package`, which may be that there is none.

    `started` is called with the process as soon as it runs, so that the caller can end it.

    Raises:
        KeyboardInterrupt: The process was ended.
    """
    began = time.monotonic()
    try:
        done = run([sys.executable, "-P", "-m", "gilscope", *question.words(package)], env=child_environment(()),
                   started=started, cleans_up=True)
    except OSError as error:
        return PackageAnswer(package=package, problem=f"it cannot be asked: {error.strerror}")
    seconds = time.monotonic() - began
    try:
        return from_doctor(package, json.loads(done.stdout), seconds)
    except (ValueError, KeyError, TypeError):
        return PackageAnswer(package=package, problem=_problem(done), seconds=round(seconds, 1))


def _problem(done: subprocess.CompletedProcess[str]) -> str:
    """Return the reason for a missing answer."""
    if done.returncode < 0:
        return f"asking was killed by signal {-done.returncode}"
    message = last_message(done.stderr.splitlines())[:_LAST]
    return message or f"asking ended with {done.returncode} and no answer"
