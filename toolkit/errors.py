"""The mistakes a user can make, and the ways a run can fail that are not a result.

Every message says what is wrong and then what to do.  `cli.main` turns them into exit codes; nothing else does.
"""


class ToolkitError(Exception):
    """A request or an environment that does not work; the message is for the user. Exit code 2."""

    exit_code = 2


class UnknownNameError(ToolkitError):
    """A workload, runner, build, label or option value that does not exist."""


class BadFileError(ToolkitError):
    """A file that is truncated, foreign or from an incompatible version; names the file and what is wrong."""


class LabelTakenError(ToolkitError):
    """`results/<label>/` exists already, or another run is writing to it."""


class BuildError(ToolkitError):
    """An interpreter that cannot be found, inspected, installed or given its packages. Exit code 3."""

    exit_code = 3


class OutputError(ToolkitError):
    """Standard output cannot be written. Exit code 3."""

    exit_code = 3
