"""Run a program on a core that writes what it sees, and ask the oracle whether it finds the same."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.conformance.builds import ROOT, environment
from tests.patience import PATIENCE
from tests.race.core.oracle import differences


def tracing(folder):
    """Return the variables with which a core is compiled that traces each process into a folder."""
    folder.mkdir(exist_ok=True)
    cache = Path(os.environ["GILSCOPE_CACHE"]).parent / "tracing"      # compiled once for all processes of tests
    return {"GILSCOPE_CACHE": str(cache), "GILSCOPE_RACE_CFLAGS": "-DGILSCOPE_TRACE -Wall -Wextra -Werror",
            "GILSCOPE_RACE_TRACE": str(folder)}


def run_traced(python, folder, *arguments, text=""):
    """Run a build to its end and return what it wrote; warnings are errors in it."""
    return subprocess.run([python, "-W", "error", *arguments], cwd=ROOT, env=environment(**tracing(folder)), input=text,
                          capture_output=True, text=True, timeout=PATIENCE, check=False)


def contradictions(folder):
    """Return where the oracle and the traced core disagree: (number of the start, what)."""
    traces = sorted(folder.glob("*.trace"))
    assert traces, "no process has written a trace"
    return [found for path in traces for found in differences(path)]
