"""The instructions for a checked process: written by `gilscope race`, read by the process that it starts.

They travel as a file in the spool folder, so neither the program's environment nor its arguments show them.
"""

from __future__ import annotations

import marshal
import sys

from gilscope.toolkit.programs import SCRIPT, STDIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn

FILE = "spec"           # in the spool folder
REFUSED = "refused"     # written by a child that did not begin the program and has printed the reason
CHECKED = "checked"     # the paths of the checked files, one per line, written as they are loaded
THREADS = "threads"     # the number of threads of each process, written at its end, and these words:
FORKED = "forked"       # it is a child, whose end may not be noted
SPAWNED = "spawn, forkserver"   # it started children by these, which are not checked
STARTED = "subprocess"  # the same
INCLUDED = "included"   # the patterns of --include that a module matched, written at the end
INSTALLED = "installed"   # packages that were imported but are not checked, written at the end
UNCHECKED = "unchecked"   # packages of the project without any checked file, one path per line, written at the end
MISSING = "missing"     # the module of -m, written by a child whose Python does not have it
BEGUN = "begun"         # written when the program's own code is about to run
PLAIN_FORMAT = 2        # of marshal: the same in every Python version; json would take both processes longer to import


class CheckedRunSpec:
    """One run of one program.

    Attributes:
        kind: SCRIPT, MODULE, COMMAND or STDIN of `gilscope.toolkit.programs`.
        name: The script's path as the user wrote it, or the module's name.
        args: The program's arguments.
        python: The interpreter and its flags.
        include: Patterns of the names of modules to check besides the project's.
        options: The options of the conflict handler.
        pauses: The number of the try and the plans of a confirming run; [] in a checking run.
        lifeline: A file descriptor that closes when gilscope ends, or -1.
    """

    __slots__ = ("args", "include", "kind", "lifeline", "name", "options", "pauses", "python")

    def __init__(self, *, kind: str, name: str, args: Sequence[str], python: Sequence[str],  # noqa: PLR0913 - the fields of a class that needs no dataclasses
                 include: Sequence[str] = (), options: Mapping[str, Any] | None = None,
                 pauses: Sequence[Any] = (), lifeline: int = -1) -> None:
        self.kind = kind
        self.name = name
        self.args = list(args)
        self.python = list(python)
        self.include = list(include)
        self.options = dict(options or {})
        self.pauses = list(pauses)
        self.lifeline = lifeline

    def words(self) -> list[str]:
        """Return the command line that runs the program without the checker, as in `sys.orig_argv`."""
        name = {SCRIPT: [self.name], STDIN: ["-"]}.get(self.kind, ["-m", self.name])
        return [*self.python, *name, *self.args]

    def write(self, folder: str) -> None:
        """Write the spec to the spool folder."""
        with open(folder + "/" + FILE, "wb") as handle:
            marshal.dump({name: getattr(self, name) for name in self.__slots__}, handle, PLAIN_FORMAT)


def refuse(folder: str, words: str, code: int = 2) -> NoReturn:
    """End the child before the program begins, with a message and without a traceback."""
    from gilscope.toolkit.escaping import message
    sys.stderr.write(f"gilscope: {message(words)}\n")
    with open(folder + "/" + REFUSED, "w", encoding="ascii"):
        pass
    raise SystemExit(code)


def read(folder: str) -> CheckedRunSpec:
    """Return the spec in the spool folder."""
    with open(folder + "/" + FILE, "rb") as handle:
        return CheckedRunSpec(**marshal.load(handle))  # noqa: S302  written by the process that started this one
