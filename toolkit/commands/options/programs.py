"""The options of `race` and `gil`, which run a program: its standard output is not ours."""

from __future__ import annotations

import os
import shlex
from argparse import Action, ArgumentError, ArgumentTypeError
from contextlib import suppress
from pathlib import Path
from typing import Any

from gilscope.toolkit.commands.streams import complain
from gilscope.toolkit.errors import cannot_write

STDERR = "/dev/stderr"
_STREAMS = {"/dev/stdout": 1, STDERR: 2}
_FD = "/dev/fd/"
_SOURCES = (".py", ".pyw", ".pyz", ".pyc")
_SWITCHES = frozenset("bBdEiIOPqRsStuvx")   # of the interpreter: those that leave it to run the program
_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})


class Once(Action):
    """An option that is given once: of two builds the last would be taken without a word."""

    def __call__(self, _parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:  # noqa: ARG002 - argparse's
        """Take the value."""
        if getattr(namespace, self.dest) is not None:
            raise ArgumentError(self, f"it was given twice, as {getattr(namespace, self.dest)} and {values}: a program "
                                      "is run under one build at a time")
        setattr(namespace, self.dest, values)


def output_file(text: str) -> str:
    """Return the name of a file to write when the program has ended; argparse shows why one is refused.

    It is looked at before the program runs, which may take hours.
    """
    if text == "-":
        raise ArgumentTypeError(
            "'-' would be standard output, and that is the program's; name a file or /dev/stderr; to have it "
            "after what the program prints, name /dev/fd/3 and end the command with 3>&1")
    number = _descriptor(text)
    if number is not None:
        try:
            os.fstat(number)
        except (OSError, OverflowError):
            raise ArgumentTypeError(f"{text} is not open; end the command with {number}>FILE or {number}>&1") from None
    elif reason := _unwritable(Path(text)):
        raise ArgumentTypeError(f"cannot write {text!r}: {reason}")
    return text


def say(words: str) -> None:
    """Print to standard error; whether someone still reads it (`2>&1 | head`) changes no exit code."""
    complain(words.rstrip("\n"))


def saved(name: str, words: str) -> int:
    """Write what an option of a name from `output_file` asks for; to an open stream, after what is there.

    Returns:
        0, or after having said that it cannot be written the exit code of that.  How the program ended and what was
        found go before it.
    """
    number = _descriptor(name)
    try:
        if number is None:
            Path(name).write_text(words, encoding="utf-8")
        else:
            # Opening it anew would cut a log that it is.
            with os.fdopen(os.dup(number), "w", encoding="utf-8") as file:
                file.write(words)
    except OSError as error:
        reason = cannot_write(name, error)
        say(f"gilscope: {reason}")
        return reason.exit_code
    return 0


def interpreter_flags(text: str) -> tuple[str, ...]:
    """Return the words of --python-args; refused are those after which the interpreter would not run the program."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r}: {str(error).lower()}") from None
    rest = iter(words)
    for word in rest:
        if word in _WITH_VALUE:
            if next(rest, None) is None:
                raise ArgumentTypeError(f"{word!r} needs a value")
        elif not _leaves_the_program(word):
            raise ArgumentTypeError(f"with {word!r} the interpreter would not run the program; only flags like -O, "
                                    "-X dev or -W error go here")
    return tuple(words)


def _leaves_the_program(word: str) -> bool:
    if word.startswith("--"):
        return word.partition("=")[0] in _WITH_VALUE
    return word.startswith("-") and len(word) > 1 and (word[:2] in _WITH_VALUE or _SWITCHES.issuperset(word[1:]))


def _descriptor(name: str) -> int | None:
    """Return the number of the open stream that a name of /dev stands for."""
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


def _is_script(path: Path) -> bool:
    with suppress(OSError):
        if path.is_file():   # of a pipe nothing may be read
            with path.open("rb") as file:
                return file.read(2) == b"#!"
    return False
