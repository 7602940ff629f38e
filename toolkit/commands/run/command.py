"""`gilscope run`: measure workloads under every model on every build, and show the table.

Its parser imports nothing that measures or reports, so that `--help` comes at once; `running` does the work.
"""

from __future__ import annotations

import argparse
from typing import Any

from gilscope.toolkit.commands.run import options as run_options
from gilscope.toolkit.commands.summaries import SUMMARIES


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope run`."""
    parser = commands.add_parser(
        "run",
        help=SUMMARIES["run"],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Measure the same work under every concurrency model on every build, in interleaved rounds.\n"
        "Without arguments: the newest pair of builds that were built alike, every model that can run\n"
        "there, one workload of each kind, 1, 2, 4 ... workers up to the number of cores.",
        epilog="examples:\n"
        "  gilscope run --quick\n"
        "  gilscope run primes json_roundtrip --builds 3.14,3.14t --workers 1,2,4\n"
        "  gilscope run mypkg.mod:func --payloads mypkg.mod:make_payloads\n"
        "  gilscope run countdown --task-length 1ms,10ms,100ms    # from which length does each model pay?\n"
        "  gilscope run --resume mylabel\n"
        "  gilscope run --quick --sessions 3 --every 2h           # intervals that include how hours differ\n"
        "  gilscope run --add-session mylabel                     # the same, one more session now",
    )
    parser.add_argument(
        "workload",
        nargs="*",
        metavar="WORKLOAD",
        help="Workloads to measure (default: one of each kind), or a function of yours as package.module:function. "
        "`gilscope list` shows the workloads.",
    )
    run_options.add_matrix(parser.add_argument_group("what to compare"))
    run_options.add_user(parser.add_argument_group("your own function"))
    run_options.add_effort(parser.add_argument_group("how hard to measure"))
    run_options.add_fleet(parser.add_argument_group("on other machines"))
    run_options.add_results(parser.add_argument_group("results"))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure, or show the plan; return the exit code."""
    from gilscope.toolkit.commands.run import running

    return running.run(args)
