"""The command line: parser and dispatch, and the one place that turns errors into exit codes."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from typing import TYPE_CHECKING

import shtab

from toolkit import __version__
from toolkit.commands import builds, compare, list_, report, run
from toolkit.errors import ToolkitError

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = (run, compare, report, builds, list_)
INTERRUPTED = 130  # 128 + SIGINT, as shells say it
TERMINATED = 143  # 128 + SIGTERM

_EPILOG = """\
exit codes: 0 clean; 1 something was found (a slower cell with --fail-on); 2 the request was wrong;
3 a cell failed, or gilscope could not finish; 130 Ctrl-C, 143 SIGTERM: what was measured
is kept.
"""


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="gilscope",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="What CPython's ways to run in parallel are worth for your work: threads, subinterpreters, "
        "processes, asyncio and free-threading, over the builds of CPython you have.",
    )
    parser.add_argument("--version", action="version", version=f"gilscope {__version__}")
    shtab.add_argument_to(
        parser,
        ["--print-completion"],
        help="Print the completion script of a shell. Source it from your shell's start-up file.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(commands)
    return parser


class TerminatedError(KeyboardInterrupt):
    """SIGTERM has come: to be ended by a CI's cancel button is to be interrupted."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: the process's) and return the exit code."""
    args = make_parser().parse_args(argv)
    earlier = signal.signal(signal.SIGTERM, _terminate)
    try:
        return _run(args)
    finally:
        signal.signal(signal.SIGTERM, earlier)


def _terminate(_signal: int, _frame: object) -> None:
    raise TerminatedError


def _run(args: argparse.Namespace) -> int:
    try:
        code = int(args.run(args))
        sys.stdout.flush()  # here, where a reader that has gone is no surprise
    except ToolkitError as error:
        print(f"gilscope: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt as stop:
        print("gilscope: interrupted", file=sys.stderr)
        return TERMINATED if isinstance(stop, TerminatedError) else INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has gone; nothing is wrong, but Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code
