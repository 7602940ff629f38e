"""What each command does, in a line of `gilscope --help`, which imports none of them."""

from __future__ import annotations

# In the order of --help.
SUMMARIES = {
    "run": "measure workloads under every model on every build",
    "compare": "compare two runs, or two builds or models of one run",
    "report": "show the tables of an earlier run again",
    "race": "run a program and report its data races",
    "gil": "run a program and report its waits for the GIL",
    "scale": "tell whether a function scales over threads, and which object is in the way (experimental)",
    "experiment": "repeat the classic measurements about the GIL (experimental)",
    "site": "make static pages of results",
    "evaluate": "tell whether a project can move to free-threading or subinterpreters, and what is in the way",
    "doctor": "tell which packages turn the GIL on, lose their C code or have no wheel",
    "builds": "show the available builds of CPython, install more, or add yours",
    "fleet": "show the hosts of a cluster, or start one (experimental)",
    "list": "show workloads, models, and why a model is unavailable in a build",
}
