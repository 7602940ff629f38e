"""Options of `gilscope run`, in the groups of its help."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from gilscope.toolkit.commands.options.common import (
    add_build,
    add_wait_quiet,
    counts,
    duration,
    names,
    positive,
    share,
    task_lengths,
)
from gilscope.toolkit.commands.output.reports import add_full_run, add_output, all_options
from gilscope.toolkit.measure.settings import KINDS, PRESETS
from gilscope.toolkit.model import FIRST_LOOK, Phase
from gilscope.toolkit.user_dirs import DEFAULT_RESULTS, EARLIER_RESULTS, RESULTS_VARIABLE
from gilscope.workloads.base import SIZES

PHASES = {"steady": (Phase.STEADY,), "startup": (Phase.STARTUP,), "both": (Phase.STEADY, Phase.STARTUP)}


def add_matrix(group: Any) -> None:
    """Add the options that select the cells."""
    group.add_argument(
        "--builds",
        metavar="LABELS",
        help="Measure these builds, e.g. 3.14,3.14t (default: the newest pair built alike). "
        "The others are compared with the first. `gilscope builds` shows what is available.",
    )
    add_build(
        group, "Without --builds, only added builds are measured. Use it for a build that `gilscope builds` does not "
        "find, or for an environment with your packages: mine=venv/bin/python. `gilscope builds add` remembers a "
        "build.")
    group.add_argument(
        "--models",
        metavar="NAMES",
        type=names,
        help="Measure these models, e.g. threads,subinterpreters (default: all that can run and need no "
        "package). The serial baseline is always measured; 'processes' stands for its three start methods; 'dask' and "
        "'dask-threads' need dask, which is installed into a separate environment.",
    )
    group.add_argument(
        "--workers",
        metavar="COUNTS",
        type=counts,
        help="Measure with these numbers of workers, e.g. 1,2,4 (default: powers of two up to the number of cores; "
        "with --quick, the number of cores).",
    )
    group.add_argument(
        "--size",
        choices=SIZES,
        help="Do this amount of work (default: small; with --rigorous, medium). A larger size has more tasks.",
    )
    group.add_argument(
        "--phases",
        choices=PHASES,
        help="Choose what to time (default: steady). steady: only the work, with warm workers. startup: opening the "
        "pool, one task per worker, and closing it.",
    )
    group.add_argument(
        "--task-length",
        metavar="TIMES",
        type=task_lengths,
        default=(),
        help="Cut the same work into tasks of these lengths, e.g. 1ms,10ms,100ms (default: each workload's own). Use "
        "it to see from which length each model pays.",
    )


def add_user(group: Any) -> None:
    """Add the options for a function of the user."""
    group.add_argument(
        "--payloads", metavar="MODULE:NAME", help="Take the payloads, one per task, from this sequence, or from a "
                                                  "function that returns one (default: call the function without "
                                                  "arguments)."
    )
    group.add_argument(
        "--payload", metavar="LITERAL", help="Use one payload for all tasks, a Python literal such as 100000."
    )
    group.add_argument(
        "--tasks", metavar="N", type=positive, help="Repeat --payload, or the call without arguments, N times "
                                                    "(default: 16, or one per worker if there are more)."
    )
    group.add_argument(
        "--check",
        metavar="MODULE:FUNCTION",
        help="Pass the list of results to this function; it raises gilscope.workloads.base.WrongResult, or any other "
        "exception, if they are wrong (default: no check).",
    )
    group.add_argument(
        "--async-form", metavar="MODULE:FUNCTION", help="Await this coroutine function instead under asyncio."
    )
    group.add_argument(
        "--kind",
        choices=sorted(KINDS),
        help="Declare that the function computes or waits (default: gilscope measures it). Use io if a "
        "waiting function is wrongly called starved, and cpu if a computing one should be checked for "
        "starvation and is not.",
    )
    group.add_argument(
        "--path",
        metavar="FOLDER",
        type=Path,
        action="append",
        help="Import your modules from FOLDER (default: the current folder). Repeatable.",
    )
    group.add_argument(
        "--with",
        metavar="REQUIREMENT",
        action="append",
        default=[],
        dest="packages",
        help="Install this package, which your function needs, into an environment of each build. Repeatable.",
    )
    group.add_argument(
        "--requirements",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="Install the packages of a requirements.txt in the same way. To use an existing environment with its "
        "packages instead, name it: --build mine=venv/bin/python.",
    )


def add_effort(group: Any) -> None:
    """Add the options that decide the effort."""
    preset = group.add_mutually_exclusive_group()
    preset.add_argument(
        "--quick",
        action="store_const",
        const="quick",
        dest="preset",
        help="Take a first look, in about 3 minutes: which model pays here, and what free-threading costs one "
        f"thread. Fewer models and workloads, the largest number of workers, {FIRST_LOOK} to {PRESETS['quick'].rounds} "
        "rounds, more of them for undecided cells.",
    )
    preset.add_argument(
        "--rigorous",
        action="store_const",
        const="rigorous",
        dest="preset",
        help=f"Measure narrow intervals: {PRESETS['rigorous'].rounds} rounds of size {PRESETS['rigorous'].size}. All "
        "workloads take hours, so name some. To publish numbers of more than one hour, add --sessions.",
    )
    group.add_argument(
        "--rounds",
        metavar="N",
        type=positive,
        help=f"Measure N rounds, each with one fresh process per cell (default: {PRESETS['default'].rounds}). "
        "Intervals shrink with the square root of N, if rounds are independent. Every cell gets all rounds, unless "
        "--budget or --resolution ends it earlier.",
    )
    group.add_argument(
        "--budget",
        metavar="TIME",
        type=duration,
        help=f"Stop before TIME is over, e.g. 5m (default: no limit, except with --quick). After {FIRST_LOOK} rounds, "
        "only undecided cells are measured, unless --rounds is given. If the first round takes longer, it is cut: "
        "cells that had no time are not measured.",
    )
    group.add_argument(
        "--resolution",
        metavar="PERCENT",
        type=share,
        help=f"Stop measuring a cell, after {FIRST_LOOK} rounds at the earliest, once its verdict is clear and its "
        "interval is within +-PERCENT, e.g. 2%% (default: all rounds). Use it to save time on a quiet machine.",
    )
    group.add_argument(
        "--timeout",
        metavar="TIME",
        type=duration,
        help="Kill a measured process if one pass over the payloads takes longer than TIME (default: 60s).",
    )
    add_wait_quiet(group, "measuring")
    group.add_argument(
        "--take-turns", action="store_true",
        help="Measure rounds only while no other gilscope with this option measures on this machine. Use it for runs "
        "that you start side by side.",
    )
    group.add_argument(
        "--sessions",
        metavar="N",
        type=positive,
        help="Measure the same cells in N sessions, started TIME apart (--every TIME; default: 1 session). From three "
        "sessions on, intervals and verdicts include how results differ from session to session. Use it for numbers "
        "that are to include how such times differ. While it waits, nothing is locked, and Ctrl-C loses nothing: "
        "--resume goes on.",
    )
    group.add_argument(
        "--every",
        metavar="TIME",
        type=duration,
        help="Begin each session TIME after the start of the previous one, e.g. 2h. If the previous one took longer "
        "than TIME, the next one begins when it ends.",
    )
    group.add_argument("--status-file", metavar="FILE", type=Path, help=argparse.SUPPRESS)   # for a fleet's host
    group.add_argument(
        "--seed", metavar="N", type=int, help="Seed the order of the cells with N (default: random). The seed is "
                                              "always printed."
    )


def add_fleet(group: Any) -> None:
    """Add the options for other machines."""
    group.add_argument(
        "--fleet",
        metavar="ADDRESS",
        help="Measure the same cells on every host of a dask.distributed cluster, e.g. tcp://10.0.0.5:8786, each on "
        "its own builds (default: this machine). Use it if one machine may not represent others. local:2 tries it here "
        "with 2 hosts that measure in turn. `gilscope fleet ADDRESS` shows a cluster.",
    )


def add_results(group: Any) -> None:
    """Add the options for results."""
    group.add_argument(
        "--label",
        metavar="LABEL",
        help=f"Store the run under this name (default: date and time), in the folder that ${RESULTS_VARIABLE} names; "
        f"else in {EARLIER_RESULTS}/ if it has runs; else in {DEFAULT_RESULTS}/, which git ignores.",
    )
    group.add_argument(
        "--resume",
        metavar="LABEL",
        help="Continue a run that was interrupted or killed, with its own options; "
        f"only --rounds, --budget, --resolution, --timeout, --wait-quiet, --fleet, {all_options()} can be added.",
    )
    group.add_argument(
        "--add-session",
        metavar="LABEL",
        help="Measure all cells of a finished run again as a further session, with its own options. Use it at another "
        "time, to see whether its numbers hold. With --sessions N --every TIME, add sessions until there are N. Rounds "
        "of different sessions are never paired. A changed build, processor or kernel is refused.",
    )
    group.add_argument(
        "--strict",
        action="store_true",
        help="Exit with 3, before anything is measured, if the builds were not built alike. Use it in CI.",
    )
    add_full_run(group)
    add_output(group)
    group.add_argument(
        "--dry-run",
        action="store_true",
        help="Only show how many cells would be measured, and which would not and why.",
    )
