"""The options of `gilscope run`, in the groups of its help."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gilscope.toolkit.commands.options.common import add_build, counts, duration, names, positive, share, task_lengths
from gilscope.toolkit.commands.options.files import add_output
from gilscope.toolkit.commands.run.request import PHASES
from gilscope.toolkit.measure.plan.core_demand import KINDS
from gilscope.toolkit.measure.plan.presets import PRESETS
from gilscope.toolkit.stats.looks import FIRST
from gilscope.workloads.base import SIZES


def add_matrix(group: Any) -> None:
    """Add the options that say what is compared."""
    group.add_argument(
        "--builds",
        metavar="LABELS",
        help="Builds to measure, e.g. 3.14,3.14t (default: the newest fair pair). "
        "The first is the one others are compared with; `gilscope builds` shows what is there.",
    )
    add_build(
        group, "Without --builds it alone is measured. For one that `gilscope builds` does not find, or for an "
        "environment with your packages: mine=venv/bin/python. `gilscope builds add` remembers it.")
    group.add_argument(
        "--models",
        metavar="NAMES",
        type=names,
        help="Execution models, e.g. threads,subinterpreters (default: all that can run and need no package). The "
        "serial baseline is always measured; 'processes' stands for its three start methods; 'dask' and 'dask-threads' "
        "are installed into an environment of their own.",
    )
    group.add_argument(
        "--workers",
        metavar="COUNTS",
        type=counts,
        help="Numbers of workers, e.g. 1,2,4 (default: powers of two up to the cores; --quick: as many as cores). "
        "Four or more counts give Amdahl and USL fits.",
    )
    group.add_argument(
        "--size",
        choices=SIZES,
        help="Amount of work (default: small; --rigorous: medium). Larger "
        "sizes have more tasks.",
    )
    group.add_argument(
        "--phases",
        choices=PHASES,
        help="steady: workers are up and warm before the clock starts; startup: "
        "starting them, one task each, and ending them is timed; both (default: steady).",
    )
    group.add_argument(
        "--task-length",
        metavar="TIMES",
        type=task_lengths,
        default=(),
        help="Cut the same work into tasks of these lengths, e.g. 1ms,10ms,100ms. Shows where each model "
        "starts to pay.",
    )


def add_user(group: Any) -> None:
    """Add the options about a function of the user's."""
    group.add_argument(
        "--payloads", metavar="MODULE:NAME", help="A sequence, or a function that returns one: one payload per task."
    )
    group.add_argument(
        "--payload", metavar="LITERAL", help="One payload for all tasks, as a Python literal, e.g. 100000."
    )
    group.add_argument(
        "--tasks", metavar="N", type=positive, help="How often --payload is repeated (default: 16, or one per worker)."
    )
    group.add_argument(
        "--check",
        metavar="MODULE:FUNCTION",
        help="Called with the list of results; raise gilscope.workloads.base.WrongResult, or anything, to refuse them.",
    )
    group.add_argument(
        "--async-form", metavar="MODULE:FUNCTION", help="The coroutine function that asyncio awaits instead."
    )
    group.add_argument(
        "--kind",
        choices=sorted(KINDS),
        help="Whether it computes or waits. Leave it out: gilscope measures it. Say it where a table calls cells "
        "starved that need no core, or trusts cells that went short of one.",
    )
    group.add_argument(
        "--path",
        metavar="FOLDER",
        type=Path,
        action="append",
        help="Where your modules are (default: the current folder).",
    )
    group.add_argument(
        "--with",
        metavar="REQUIREMENT",
        action="append",
        default=[],
        dest="packages",
        help="A package that your function needs, installed into an environment of each build. May be given again.",
    )
    group.add_argument(
        "--requirements",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="Install what a requirements.txt lists, likewise. To measure in an environment that you have instead, "
        "with its packages, name it: --build mine=venv/bin/python.",
    )


def add_effort(group: Any) -> None:
    """Add the options that say how hard to measure."""
    preset = group.add_mutually_exclusive_group()
    preset.add_argument(
        "--quick",
        action="store_const",
        const="quick",
        dest="preset",
        help="A first look in about 3 minutes: which model is worth it here, and what free-threading costs one thread. "
        f"Fewer models and workloads, the widest number of workers, {FIRST} to {PRESETS['quick'].rounds} rounds: more "
        "of them where the answer is open.",
    )
    preset.add_argument(
        "--rigorous",
        action="store_const",
        const="rigorous",
        dest="preset",
        help=f"Numbers to publish: {PRESETS['rigorous'].rounds} rounds of size {PRESETS['rigorous'].size}. Takes hours "
        "for everything; name workloads.",
    )
    group.add_argument(
        "--rounds",
        metavar="N",
        type=positive,
        help=f"Rounds, each with one fresh process per cell (default: {PRESETS['default'].rounds}). The interval "
        "shrinks with its root. Every cell gets them all, unless --resolution ends it before.",
    )
    group.add_argument(
        "--budget",
        metavar="TIME",
        type=duration,
        help=f"Stop before this time is over, e.g. 5m. After {FIRST} rounds the time goes to cells whose answer is "
        "open, unless --rounds says how many each gets.",
    )
    group.add_argument(
        "--resolution",
        metavar="PERCENT",
        type=share,
        help=f"Measure each cell until its answer is clear and its ratio is known to this, e.g. 2%%: from {FIRST} "
        "rounds to as many as --rounds says. Saves time on a quiet machine.",
    )
    group.add_argument(
        "--timeout",
        metavar="TIME",
        type=duration,
        help="Kill a measured process that finishes no pass over the payloads for this long (default: 60s).",
    )
    group.add_argument(
        "--take-turns", action="store_true",
        help="Measure while no other gilscope does on this machine: who asks for this gets its rounds in turn. For "
        "runs that you start side by side.",
    )
    group.add_argument(
        "--seed", metavar="N", type=int, help="Seed of the order of the cells (default: random; always printed)."
    )


def add_fleet(group: Any) -> None:
    """Add the options about other machines."""
    group.add_argument(
        "--fleet",
        metavar="ADDRESS",
        help="Measure the same on every host of a dask.distributed cluster, e.g. tcp://10.0.0.5:8786, each on its own "
        "builds: where one machine may not speak for others. local:2 tries it on this one with 2 hosts that take "
        "turns. `gilscope fleet ADDRESS` shows what a cluster has.",
    )


def add_results(group: Any) -> None:
    """Add the options about results."""
    group.add_argument("--label", help="Name of the run: it is kept in results/LABEL (default: date and time).")
    group.add_argument(
        "--resume",
        metavar="LABEL",
        help="Go on with a run that was interrupted or killed. It is measured as it was asked for; "
        "only --rounds, --budget, --resolution, --timeout, --fleet, --markdown and --json go with it.",
    )
    group.add_argument(
        "--strict",
        action="store_true",
        help="Exit with 3 before measuring when the builds were not built alike. For CI.",
    )
    add_output(group)
    group.add_argument(
        "--dry-run",
        action="store_true",
        help="Only show how much would be measured, what not and why, and how long it would take.",
    )
