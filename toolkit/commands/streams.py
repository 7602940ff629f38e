"""Write to standard streams that may be closed, full, or without a reader.

`put` and `put_stderr` print a renderer's text as it is; `print_stdout` and `print_stderr` escape untrusted characters.

A program that `gilscope race` runs waits for the imports of this module.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import sys

from gilscope.toolkit.errors import OutputError


def prepare() -> None:
    """Replace standard streams that the shell has closed (`>&-`) by /dev/null.

    Otherwise the next file to be opened would be standard output to children, and text printed to None would go to the
    other stream.  The replacements are not inherited: a program that `race` or `gil` runs finds the stream closed, as
    without them.  Characters that standard output's encoding lacks are escaped, as Python does for standard error.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:   # a lower descriptor was free, because another module has opened a file
                os.dup2(opened, number, inheritable=False)
                os.close(opened)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8"))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def put(text: str, end: str = "\n") -> None:
    """Print a renderer's text, or our own, on standard output at once.

    A reader that has gone (head, less, a closed terminal) is no error: requested files are still written, and the exit
    code still reports the findings.

    Raises:
        OutputError: It cannot be written, because the disk is full.
    """
    try:
        print(text, end=end, flush=True)
    except BrokenPipeError:
        discard_unwritable()
    except OSError as error:
        if error.errno != errno.EIO or not stat.S_ISCHR(os.fstat(sys.stdout.fileno()).st_mode):
            raise cannot_print(error) from error
        discard_unwritable()   # the terminal was closed


def cannot_print(error: OSError) -> OutputError:
    """Return the error that standard output cannot be written, after redirecting the streams to /dev/null."""
    discard_unwritable()
    return OutputError(f"cannot write to standard output: {error.strerror}")


def print_stdout(text: str) -> None:
    """Print a message on standard output, with untrusted characters escaped.

    Raises:
        OutputError: It cannot be written, because the disk is full.
    """
    from gilscope.toolkit.escaping import message

    put(message(text))


def print_stderr(text: str) -> None:
    """Print a message on standard error, with untrusted characters escaped; ignore a missing reader."""
    from gilscope.toolkit.escaping import message

    put_stderr(message(text))


def put_stderr(text: str) -> None:
    """Print a renderer's text on standard error; ignore a missing reader."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        discard_unwritable()


def discard_unwritable() -> None:
    """Redirect streams that cannot be written to /dev/null, so that Python does not complain about them at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
