"""Count the lost additions to one variable, and run the race checker on the same file."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

from gilscope.toolkit.experiments.lost_updates import updates
from gilscope.toolkit.measure.child.base import gil_enabled
from gilscope.toolkit.measure.child.program import ProgramValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gilscope.toolkit.measure.child.program import ProgramTrial

SHORT_UPDATES = 100    # by each thread, as in the article
CHECKED_UPDATES = 20   # the checker judges the order of accesses, so a few are enough
CHECKED_THREADS = 2
CHECK_SECONDS = 120.0  # the checker may have to compile its core first
RACE_FOUND = 66


def measure(trial: ProgramTrial) -> ProgramValue:
    """Add 1 `count` times in all, divided among the threads (`locked` times with a lock).

    With the parameter loop=short each thread adds only 100 times and ends; `starts` threads run in all,
    `trial.workers` at a time.

    Returns:
        The seconds of one addition, with the number of lost ones.
    """
    sys.setswitchinterval(trial.number("interval"))
    variant = updates.VARIANTS[trial.parameters["variant"]]
    with trial.measuring() as clock:
        if trial.parameters["loop"] == "short":
            groups = max(1, trial.count("starts") // trial.workers)
            expected = groups * trial.workers * SHORT_UPDATES
            counted = sum(updates.as_they_come(variant, trial.workers, SHORT_UPDATES) for _ in range(groups))
        else:
            share = trial.count("locked" if variant is updates.locked else "count") // trial.workers
            expected, counted = share * trial.workers, updates.at_once(variant, trial.workers, share)
    trial.progress()
    if not 0 < counted <= expected:
        trial.stop(f"{expected:,} additions made {counted:,}", "wrong-result")
    metrics: dict[str, float | str] = {
        "expected": expected, "counted": counted, "lost": expected - counted, "share": 1 - counted / expected,
    }
    if "check" in trial.parameters:
        metrics |= check(trial)
    return ProgramValue(seconds=clock.wall / expected, cpu=clock.cpu / expected, metrics=metrics,
                        wanted_cores=trial.workers if gil_enabled() is False else 1)


def check(trial: ProgramTrial) -> dict[str, float | str]:
    """Run `gilscope race` on the variant in this build; return its "verdict" and the number of "races"."""
    report = os.path.join(trial.folder, "races.json")
    # A copy, since the checker takes installed files for third-party code.
    script = shutil.copy(updates.__file__, trial.folder)
    arguments = [trial.parameters["variant"], str(CHECKED_THREADS), str(CHECKED_UPDATES)]
    try:
        done = subprocess.run(
            [trial.host, "-P", "-m", "gilscope", "race", "-q", "--build", f"measured={sys.executable}",
             f"--json={report}", script, *arguments],
            cwd=trial.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=CHECK_SECONDS,
            check=False,
        )
        if done.returncode not in {0, RACE_FOUND}:
            return {"verdict": f"exit code {done.returncode}", "checker": _last_line(done.stderr)}
        with open(report, encoding="utf-8") as file:
            races = len(json.load(file)["races"])
    except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
        return {"verdict": "no answer", "checker": _last_line(f"{type(error).__name__}: {error}")}
    finally:
        trial.progress()
    return {"verdict": "race" if races else "clean", "races": races}


def _last_line(text: str) -> str:
    """Return the last line, since pyperf stores neither empty texts nor several lines."""
    return (text.strip().splitlines() or ["it said nothing"])[-1][:200]
