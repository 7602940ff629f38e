"""Standard streams that are closed, full, or that nobody reads any more.

A program that `gilscope race` runs waits for what is imported here.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import sys

from gilscope.toolkit.errors import OutputError


def prepare() -> None:
    """Make standard streams that can be used: to nothing where the shell has closed them (`>&-`).

    Else the next file to be opened would be standard output to children, and what is printed to None would go to the
    other stream.  What is opened here is not inherited: a program that `race` and `gil` run finds it closed, as it
    would without them.  What the encoding of standard output lacks is escaped, as for standard error from the start.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:   # it is not the lowest that is free, where something else has opened a file already
                os.dup2(opened, number, inheritable=False)
                os.close(opened)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8"))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def put(text: str, end: str = "\n") -> None:
    """Print on standard output at once what a renderer made, or text of ours alone.

    A reader that has gone (head, less, a terminal that was closed) is no error, and what was asked for beside goes on:
    a file is still written, and the exit code still says what was found.

    Raises:
        OutputError: it cannot be written: the disk is full.
    """
    try:
        print(text, end=end, flush=True)
    except BrokenPipeError:
        let_go()
    except OSError as error:
        if error.errno != errno.EIO or not stat.S_ISCHR(os.fstat(sys.stdout.fileno()).st_mode):
            raise cannot_print(error) from error
        let_go()   # of a terminal that was closed


def cannot_print(error: OSError) -> OutputError:
    """Lead the streams nowhere and return what is to be raised: standard output cannot be written."""
    let_go()
    return OutputError(f"cannot write to standard output: {error.strerror}")


def inform(text: str) -> None:
    """Print a message on standard output, whatever it holds.

    Raises:
        OutputError: it cannot be written: the disk is full.
    """
    from gilscope.toolkit.escaping import message

    put(message(text))


def complain(text: str) -> None:
    """Print a message on standard error, whatever it holds, where somebody reads it."""
    from gilscope.toolkit.escaping import message

    put_beside(message(text))


def put_beside(text: str) -> None:
    """Print on standard error, where somebody reads it, what a renderer made."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        let_go()


def let_go() -> None:
    """Lead streams that cannot be written to nowhere: Python would complain of what is left in them at its exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
