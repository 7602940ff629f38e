"""The command line: parser and dispatch, and the one place that turns errors into exit codes.

Only the requested command is imported, so that a program under `gilscope race` does not wait for the others.
"""

from __future__ import annotations

import errno
import os
import sys

from gilscope import __version__
from gilscope.toolkit import temporary
from gilscope.toolkit.errors import NO_ROOM, PREFIX, ToolkitError, UnknownNameError, suggestion

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    import signal
    from collections.abc import Sequence
    from typing import Any
else:
    import _signal as signal  # without its enums, which take 5 ms to import

# In the order of --help; each is a module in toolkit/commands.
_MODULES = {
    "run": "run.command", "compare": "compare", "report": "report.command", "race": "race.command",
    "gil": "gil.command", "scale": "scale", "experiment": "experiment", "site": "site", "evaluate": "evaluate",
    "doctor": "doctor.command", "builds": "builds", "fleet": "fleet.command", "list": "list_",
}
COMMANDS = tuple(_MODULES)
SHELLS = ("bash", "zsh", "fish", "tcsh")
_VERSION = f"gilscope {__version__}"
REFUSED = 2      # the request was wrong
UNFINISHED = 3

_EPILOG = """\
exit codes:
    0  nothing was found
    1  something was found: a slower cell with --fail-on, a blocker, hosts that do not match, private data in a site
    2  the request was wrong
    3  a cell failed, gilscope race checked nothing, or gilscope could not finish: the disk is full, the cores are busy,
       gilscope itself failed
   66  gilscope race: the program has a data race
 else  gilscope race and gilscope gil: the exit code of the program that they ran; 128+N: signal N ended it
  130  Ctrl-C; 143: SIGTERM; 129: SIGHUP (the terminal was closed). Measured values are kept.
"""


def make_parser(names: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    """Return the parser of the whole command line, or of some of its commands."""
    import importlib

    from gilscope.toolkit.commands.options.common import CommandParser

    parser = _top_parser()
    if names == COMMANDS:
        _add_completion(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=CommandParser)
    for name in names:
        module = importlib.import_module(f"gilscope.toolkit.commands.{_MODULES[name]}")
        module.add_parser(commands)
    return parser


def _make_brief_parser() -> argparse.ArgumentParser:
    """Return a parser that shows the help of the whole command line, and knows no command's options."""
    from gilscope.toolkit.commands.options.common import CommandParser
    from gilscope.toolkit.commands.summaries import SUMMARIES

    parser = _top_parser()
    _add_completion(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=CommandParser)
    for name in COMMANDS:
        commands.add_parser(name, help=SUMMARIES[name])
    return parser


def _top_parser() -> argparse.ArgumentParser:
    import argparse

    from gilscope.toolkit.commands.options.common import Parser

    parser = Parser(
        prog="gilscope",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Measure which of CPython's concurrency models pays off for your work: threads, subinterpreters,\n"
        "processes, asyncio and free-threading, on the builds of CPython you have.",
    )
    parser.add_argument("--version", action="version", version=_VERSION)
    return parser


def _add_completion(parser: argparse.ArgumentParser) -> None:
    import argparse

    class PrintCompletion(argparse.Action):
        def __call__(self, parser: argparse.ArgumentParser, _namespace: Any, shell: Any, _: str | None = None) -> None:
            import shtab

            from gilscope.toolkit.commands.streams import put

            # Where shtab has no candidates, bash completes files.
            put(shtab.complete(parser, str(shell)).replace("-o bashdefault", "-o bashdefault -o default"))
            parser.exit()

    parser.add_argument(
        "--print-completion",
        action=PrintCompletion,
        choices=SHELLS,
        metavar="SHELL",
        help=f"Print the completion script of SHELL: {', '.join(SHELLS)}. Load it in your shell's start-up file, as "
             'in: eval "$(gilscope --print-completion bash)"',
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: the process's) and return the exit code."""
    from gilscope.toolkit.commands.stopping import SIGNALLED, SignalStop, StoppedError

    stopping = SignalStop()
    try:
        stopping.begin()   # before anything that takes time is imported
        code = _main(sys.argv[1:] if argv is None else list(argv))
        stopping.over = True
        stopped = stopping.came
    except KeyboardInterrupt as stop:
        stopped = stop.number if isinstance(stop, StoppedError) else signal.SIGINT
    except Exception as error:  # noqa: BLE001 - the last resort
        if not (stopped := stopping.came):   # otherwise it is a consequence, such as of a closed terminal
            code = _unforeseen(error)
    finally:
        stopping.over = True
        if argv is not None:   # otherwise the process ends now, and waits for its threads undisturbed
            stopping.end()
    if not stopped:
        return code
    from gilscope.toolkit.commands import streams

    streams.print_stderr(f"{PREFIX}interrupted")
    streams.discard_unwritable()   # of a terminal that has been closed
    return SIGNALLED + stopped


def _main(words: list[str]) -> int:
    from gilscope.toolkit.commands import streams

    streams.prepare()
    if words[:1] == ["--version"]:    # without the time that argparse takes to import
        return _run(_VersionRequest())
    try:
        args = _parse(words)
    except ToolkitError as error:   # of --help: standard output cannot be written
        streams.print_stderr(f"{PREFIX}{error}")
        return error.exit_code
    args.words = words   # a page shows them
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:   # inherited, it would hide how a process ended
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if words[0] == "race":   # its program must not wait for the sweep
        try:
            return _run(args)
        finally:
            temporary.sweep()
    temporary.sweep()
    try:
        return _run(args)
    finally:
        temporary.sweep(own=True)


class _VersionRequest:
    """What a parser would make of --version."""

    @staticmethod
    def run(_: object) -> int:
        """Print the version."""
        from gilscope.toolkit.commands import streams

        streams.put(_VERSION)
        return 0


def _parse(words: list[str]) -> argparse.Namespace:
    """Return the options of the command in `words`; exit where argparse does."""
    command = words[0] if words else ""
    if command == "race":
        from gilscope.toolkit.commands.race.command import options_without_parser

        if options := options_without_parser(words[1:]):
            return options   # type: ignore[return-value]  # it has the attributes of a Namespace
    if command in {"-h", "--help", ""}:
        parser = _make_brief_parser()
    elif command not in COMMANDS and not command.startswith("-"):
        meant = suggestion(command, COMMANDS)
        raise UnknownNameError(f"unknown command {command!r}{meant}; `gilscope --help` shows all")
    else:
        parser = make_parser((command,) if command in COMMANDS else COMMANDS)
    if not words:
        parser.print_help(sys.stderr)
        raise SystemExit(REFUSED)
    return parser.parse_args(words)


def _run(args: argparse.Namespace | _VersionRequest) -> int:
    from gilscope.toolkit.commands import streams

    try:
        code = int(args.run(args))
        streams.put("", end="")   # flushes here, where a missing reader is handled
    except ToolkitError as error:
        streams.print_stderr(f"{PREFIX}{error}")
        return error.exit_code
    except BrokenPipeError:
        streams.discard_unwritable()
        return 0
    return code


def _unforeseen(error: Exception) -> int:
    """Print one sentence on an unexpected error and return its exit code; a traceback would exit with 1, a finding."""
    from gilscope.toolkit.commands import streams

    if isinstance(error, OSError) and error.errno in NO_ROOM:
        streams.discard_unwritable()   # standard output may be what is full
    code, sentence = _known(error) or (UNFINISHED, "")
    if not sentence:
        from gilscope.toolkit.commands.last_resort import last_words

        sentence = last_words(error, sys.argv[1:])
    streams.print_stderr(f"{PREFIX}{sentence}")
    return code


def _known(error: Exception) -> tuple[int, str] | None:
    """Return the exit code and a sentence if the error is no bug of gilscope, or None."""
    if not isinstance(error, OSError):
        return (UNFINISHED, "there is not enough memory for this") if isinstance(error, MemoryError) else None
    if isinstance(error, FileNotFoundError) and _folder_is_gone():
        return REFUSED, "the current folder was removed; change to another one"
    if error.errno in NO_ROOM:
        return UNFINISHED, f"could not go on{f' ({error.filename})' if error.filename else ''}: {error.strerror}"
    if error.errno == errno.ENAMETOOLONG:
        name = str(error.filename)
        return REFUSED, f"{name[:60]!r}... is too long for a file's name ({len(name)} characters)"
    if isinstance(error, FileNotFoundError) and error.filename is None and not _has_temporary_folder():
        return UNFINISHED, f"{error.strerror}: make room there, or name another folder in TMPDIR"
    return None


def _has_temporary_folder() -> bool:
    import tempfile

    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        return False
    return True


def _folder_is_gone() -> bool:
    try:
        os.getcwd()  # noqa: PTH109  pathlib would slow down the start of `race`
    except FileNotFoundError:
        return True
    return False
