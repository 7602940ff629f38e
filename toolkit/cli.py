"""The command line: parser and dispatch, and the one place that turns errors into exit codes.

Only the command that is asked for is imported: a program that `gilscope race` runs does not wait for all others.
"""

from __future__ import annotations

import os
import sys

from gilscope import __version__
from gilscope.toolkit.errors import ToolkitError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    import signal
    from collections.abc import Sequence
else:
    import _signal as signal  # without its enums: they take 5 ms, which a checked program would wait for

# Each is a module in toolkit/commands, in the order of --help; `list` is `list_`, after the builtin.
COMMANDS = ("run", "compare", "report", "race", "gil", "experiment", "evaluate", "doctor", "builds", "list")
INTERRUPTED = 130  # 128 + SIGINT, as shells say it
TERMINATED = 143  # 128 + SIGTERM

_EPILOG = """\
exit codes: 0 clean; 1 something was found (a slower cell with --fail-on); 2 the request was wrong;
3 a cell failed, or gilscope could not finish; 130 Ctrl-C, 143 SIGTERM: what was measured
is kept. `gilscope race` passes the program's own code on; 66: it has a data race.
"""


def make_parser(names: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    """Return the parser of the whole command line, or of some of its commands."""
    import argparse
    import importlib

    from gilscope.toolkit.commands.options import CommandParser

    parser = argparse.ArgumentParser(
        prog="gilscope",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="What CPython's ways to run in parallel are worth for your work: threads, subinterpreters, "
        "processes, asyncio and free-threading, over the builds of CPython you have.",
    )
    parser.add_argument("--version", action="version", version=f"gilscope {__version__}")
    if names == COMMANDS:
        _add_completion(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=CommandParser)
    for name in names:
        module = importlib.import_module(f"gilscope.toolkit.commands.{'list_' if name == 'list' else name}")
        module.add_parser(commands)
    return parser


def _add_completion(parser: argparse.ArgumentParser) -> None:
    from gilscope.toolkit.commands.completion import SHELLS, PrintCompletion

    parser.add_argument(
        "--print-completion",
        action=PrintCompletion,
        choices=SHELLS,
        metavar="SHELL",
        help=f"Print the completion script of a shell: {', '.join(SHELLS)}. Source it from your shell's start-up "
        "file, as in: source <(gilscope --print-completion bash)",
    )


class TerminatedError(KeyboardInterrupt):
    """SIGTERM has come: to be ended by a CI's cancel button is to be interrupted."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: the process's) and return the exit code."""
    args = _parse(sys.argv[1:] if argv is None else list(argv))
    earlier = signal.signal(signal.SIGTERM, _terminate)
    try:
        return _run(args)
    finally:
        signal.signal(signal.SIGTERM, earlier)


def _parse(words: list[str]) -> argparse.Namespace:
    """Return the options of the command that `words` ask for; leave where argparse does."""
    command = words[0] if words else ""
    if command == "race":
        from gilscope.toolkit.commands.race import plain_options

        if options := plain_options(words[1:]):
            return options   # type: ignore[return-value]  # the same names; argparse alone would take longer than a start
    return make_parser((command,) if command in COMMANDS else COMMANDS).parse_args(words)


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
