"""The mistakes a user can make, and the ways a run can fail that are not a result.

Every message says what is wrong and then what to do.  `cli.main` turns them into exit codes; nothing else does.
"""

from __future__ import annotations

import errno

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

PREFIX = "gilscope: "   # of each message on standard error
# Nothing is wrong with the request; the same one may work tomorrow.
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class ToolkitError(Exception):
    """A request or an environment that does not work; the message is for the user. Exit code 2."""

    exit_code = 2


class UnknownNameError(ToolkitError):
    """A workload, runner, build, label or option value that does not exist."""


def suggestion(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return "; did you mean 'threads'?" for the name that resembles an unknown one, or `otherwise`."""
    from difflib import get_close_matches  # noqa: PLC0415 - a checked program imports this module

    close = get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else otherwise


class BadFileError(ToolkitError):
    """A file that is truncated, foreign or from an incompatible version; names the file and what is wrong."""


class LabelTakenError(ToolkitError):
    """`results/<label>/` exists already, or another run is writing to it."""


class BuildError(ToolkitError):
    """An interpreter that cannot be found, inspected, installed or given its packages. Exit code 3."""

    exit_code = 3


class StarvedError(ToolkitError):
    """Other programs used the cores that a measurement needs. Exit code 3."""

    exit_code = 3


class SaveError(ToolkitError):
    """Results cannot be written: the disk is full, or the folder is gone. Exit code 3."""

    exit_code = 3


def cannot_write(what: str, error: OSError, remedy: str = "") -> ToolkitError:
    """Return the error that says why `what` cannot be written: the machine's fault, or a request that cannot work."""
    kind = SaveError if error.errno in NO_ROOM else ToolkitError
    return kind(f"cannot write {what}: {error.strerror or error}{remedy}")


class OutputError(ToolkitError):
    """Standard output cannot be written. Exit code 3."""

    exit_code = 3
