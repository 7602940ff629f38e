"""Options of `race` and `gil`, which run a program that owns standard output."""

from __future__ import annotations

import os
import shlex
from argparse import Action, ArgumentError, ArgumentTypeError
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.commands.options.common import CommandParser, positive
from gilscope.toolkit.commands.options.files import DEVICES, OptionalValueOption
from gilscope.toolkit.commands.streams import print_stderr
from gilscope.toolkit.errors import ToolkitError, cannot_write
from gilscope.toolkit.programs.target import begins_program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

STDERR = "/dev/stderr"
_STREAMS = {"/dev/stdout": 1, STDERR: 2}
_FD = "/dev/fd/"
MISUSED = 2   # the exit code of argparse for an unknown option
_SOURCES = (".py", ".pyw", ".pyz", ".pyc")
_SWITCHES = frozenset("bBdEiIOPqRsStuvx")   # the interpreter's flags with which it still runs the program
_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})


class OnceOption(Action):
    """An option that is refused when it is given twice; argparse would silently use the last of two builds."""

    def __call__(self, _parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:  # noqa: ARG002 - argparse's
        """Store the value."""
        if getattr(namespace, self.dest) is not None:
            raise ArgumentError(self, f"it was given twice, as {getattr(namespace, self.dest)} and {values}: a program "
                                      "is run under one build at a time")
        setattr(namespace, self.dest, values)


class ProgramFileOption(OptionalValueOption):
    """`--json [FILE]` of a command that runs a program; without FILE, standard error in place of the text."""

    def __init__(self, option_strings: Sequence[str], dest: str, *, suffix: str, others: Sequence[str] = (),
                 **options: Any) -> None:
        """Make the action.

        Args:
            option_strings: From argparse.
            dest: From argparse.
            suffix: The end of a name that is a FILE even if there is such a file.
            others: `dest` of the options that exclude this one on standard error.
            options: Passed on to argparse.
        """
        super().__init__(option_strings, dest, nargs="?", const=STDERR, metavar="FILE", type=output_file, **options)
        self.suffix = suffix
        self.others = others

    def is_value(self, word: str) -> bool:
        """Return True if `word` is FILE and not the program; "" and "-" count as FILE so that they are refused."""
        return word in {"", "-"} or word.endswith(self.suffix) or word.startswith(DEVICES) or _is_free(word)

    def __call__(self, _parser: Any, namespace: Any, values: Any, _option: Any = None) -> None:
        """Store FILE; refuse two forms in place of the text."""
        rivals = [name for name in self.others if getattr(namespace, name, None) == STDERR]
        if values == STDERR and rivals:
            both = " and ".join(sorted(f"--{name}" for name in (self.dest, rivals[0])))
            raise ArgumentError(self, f"{both} cannot both be on standard error: name a FILE")
        setattr(namespace, self.dest, values)


class CountOption(OptionalValueOption):
    """`--confirm [K]`: a number, which may be left out."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs="?", type=positive, **options)

    def is_value(self, word: str) -> bool:
        """Return True if `word` is a number; a program hardly has such a name."""
        return word.isdecimal()


def cut_program(actions: Mapping[str, Action], words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a command's own options, and the program with its arguments, which may look like any option.

    The program begins at the first word that is no option: a script, `-`, `-m...` or `--`.

    Args:
        actions: The parser's, by the option as it is written.
        words: The words after the command.
    """
    own: list[str] = []
    rest = list(words)
    while rest and not begins_program(rest[0]):
        word = rest.pop(0)
        action = actions.get(word)
        if action is not None and action.nargs is None and rest:
            own += [word, rest.pop(0)]
        elif isinstance(action, OptionalValueOption) and rest and action.is_value(rest[0]):
            own.append(f"{word}={rest.pop(0)}")
        else:
            own.append(word)
    return own, rest


def output_file(text: str) -> str:
    """Return the name of a file to write after the program; argparse shows why a name is refused.

    It is checked before the program runs, which may take hours.
    """
    if text == "-":
        raise ArgumentTypeError(
            "'-' would be standard output, which belongs to the program; name a file or /dev/stderr; to append it "
            "to the program's output, name /dev/fd/3 and end the command with 3>&1")
    number = _descriptor(text)
    if number is not None:
        try:
            os.fstat(number)
        except (OSError, OverflowError):
            raise ArgumentTypeError(f"{text} is not open; end the command with {number}>FILE or {number}>&1") from None
    elif reason := _unwritable(Path(text)):
        raise ArgumentTypeError(f"cannot write {text!r}: {reason}")
    return text


def warn_of_late_options(
    command: str, add_options: Callable[[CommandParser], None], ended: int, program: Sequence[str]
) -> None:
    """Warn if the program got an option that was probably meant for us, because it stands behind the program's name.

    That is so if the program ended as argparse ends one that does not know an option, or if it is a script that does
    not mention an option of ours that names a FILE, and no such FILE was written.

    Args:
        command: Our command.
        add_options: Adds its options to a parser.
        ended: The program's exit code.
        program: Its name and its arguments.
    """
    parser = CommandParser(add_help=False)
    add_options(parser)
    actions = parser._option_string_actions  # noqa: SLF001 - argparse has no other way to look at a parser
    late = [word for word in program[1:] if word.startswith("--") and word.partition("=")[0] in actions]
    if ended != MISUSED:
        late = [word for word in late
                if actions[word.partition("=")[0]].metavar == "FILE" and _is_missed(word, program)]
    if late:
        print_stderr(f"gilscope {command}: {late[0]} was passed to the program, like everything after its name; put "
                     "gilscope's options before it")


def _is_missed(word: str, program: Sequence[str]) -> bool:
    """Return True if a script does not mention the option `word`, and its FILE does not exist."""
    option, equals, file = word.partition("=")
    file = file if equals else next(iter(program[program.index(word) + 1:]), "")
    try:
        with open(program[0], "rb") as script:  # noqa: PTH123 - "-m" and "" are no paths
            text = script.read()
    except OSError:   # a module, a command
        return False
    known = option.encode() in text or b"\0" in text   # a zip file may contain any word
    return bool(file) and not known and not Path(file).exists()


def build_python(label: str) -> str:
    """Return the interpreter of the build `label`, or of LABEL=PATH.

    Raises:
        ToolkitError: There is no such interpreter, or the label names several builds.
    """
    from gilscope.toolkit.builds.find import find_builds, select_builds  # noqa: PLC0415 - heavy, for --build alone

    name, equals, path = label.partition("=")
    if equals:
        found = Path(path, "bin", "python") if Path(path).is_dir() else Path(path)
        if not os.access(found, os.X_OK) or not found.is_file():
            raise ToolkitError(f"--build {label}: no interpreter {found}")
        return os.path.abspath(found)  # noqa: PTH100 - without `..`, as the program sees it in sys.executable
    builds = select_builds(find_builds(project_dir=Path.cwd()), name)
    if len(builds) != 1:
        raise ToolkitError(f"--build {label!r}: a program is run under one build at a time")
    return builds[0].executable


def saved(name: str, words: str) -> int:
    """Write `words` to a file that `output_file` has accepted; append to an open stream.

    Returns:
        0, or the exit code after printing that it cannot be written.  The program's exit code and the findings have
        priority over it.
    """
    number = _descriptor(name)
    try:
        if number is None:
            Path(name).write_text(words, encoding="utf-8")
        else:
            # Opening it again would truncate a log file.
            with os.fdopen(os.dup(number), "w", encoding="utf-8") as file:
                file.write(words)
    except OSError as error:
        reason = cannot_write(name, error)
        print_stderr(f"gilscope: {reason}")
        return reason.exit_code
    return 0


def interpreter_flags(text: str) -> tuple[str, ...]:
    """Return the words of --python-args; refuse flags with which the interpreter would not run the program."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r}: {str(error).lower()}") from None
    rest = iter(words)
    for word in rest:
        if word in _WITH_VALUE:
            if next(rest, None) is None:
                raise ArgumentTypeError(f"{word!r} needs a value")
        elif not _is_allowed_flag(word):
            raise ArgumentTypeError(f"with {word!r} the interpreter would not run the program; only flags like -O, "
                                    "-X dev or -W error go here")
    return tuple(words)


def _is_allowed_flag(word: str) -> bool:
    if word.startswith("--"):
        return word.partition("=")[0] in _WITH_VALUE
    return word.startswith("-") and len(word) > 1 and (word[:2] in _WITH_VALUE or _SWITCHES.issuperset(word[1:]))


def _descriptor(name: str) -> int | None:
    """Return the descriptor of an open stream that is named as in /dev, or None."""
    if name.startswith(_FD) and name[len(_FD):].isdecimal():
        return int(name[len(_FD):])
    return _STREAMS.get(name)


def _unwritable(path: Path) -> str:
    if path.is_dir():
        return "it is a folder"
    if path.suffix in _SOURCES or _is_script(path):
        return "it is a program; the option's FILE comes first, then the program"
    if path.exists():
        return "" if os.access(path, os.W_OK) else "it is read-only here"
    if not path.parent.is_dir():
        return f"there is no folder {str(path.parent)!r}"
    return "" if os.access(path.parent, os.W_OK) else f"nothing can be written in {str(path.parent)!r}"


def _is_free(word: str) -> bool:
    """Return True if a report in the file `word` would overwrite nothing but an earlier report in JSON."""
    path = Path(word)
    if word.startswith("-") or path.suffix in _SOURCES:
        return False
    with suppress(OSError):   # it cannot be read, or is a folder
        if path.is_file():
            with path.open("rb") as file:
                return file.read(1) in {b"", b"{"}
    return not os.path.lexists(path)


def _is_script(path: Path) -> bool:
    with suppress(OSError):
        if path.is_file():   # a pipe must not be read
            with path.open("rb") as file:
                return file.read(2) == b"#!"
    return False
