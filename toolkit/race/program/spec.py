"""What the checked process is to do: made by `gilscope race`, read by the process it starts.

It travels as a file in the spool folder, so neither the environment nor the arguments of the program tell of it.
"""

from __future__ import annotations

import marshal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn

FILE = "spec"           # in the spool folder
REFUSED = "refused"     # left there by a child that did not begin the program, and has said why
BEGUN = "begun"         # left there when the program's own code is about to run
SCRIPT, MODULE, STDIN = "script", "module", "stdin"
COMMAND = "command"     # a module, run because no script of that name was found or fits the build
PLAIN_FORMAT = 2        # of marshal: the same in every version; json would cost both processes its import


class Spec:
    """One run of one program.

    Attributes:
        kind: SCRIPT (also a folder or zip file with `__main__.py`), MODULE, COMMAND or STDIN.
        name: The script's path as the user wrote it, or the module's name.
        args: What follows it.
        python: The interpreter and its flags, as they would be written before the name.
        include: Patterns of paths and modules to check besides the project's.
        core: "c", "python", or "" for the faster one that works.
        options: What the handler of conflicts is told.
        pauses: Where a confirming run waits: what `gilscope.toolkit.race.confirm.again` made; () otherwise.
        lifeline: A file descriptor that closes when gilscope ends; -1: none.
    """

    __slots__ = ("args", "core", "include", "kind", "lifeline", "name", "options", "pauses", "python")

    def __init__(self, *, kind: str, name: str, args: Sequence[str], python: Sequence[str],
                 include: Sequence[str] = (), core: str = "", options: Mapping[str, Any] | None = None,
                 pauses: Sequence[Any] = (), lifeline: int = -1) -> None:
        self.kind = kind
        self.name = name
        self.args = list(args)
        self.python = list(python)
        self.include = list(include)
        self.core = core
        self.options = dict(options or {})
        self.pauses = list(pauses)
        self.lifeline = lifeline

    def words(self) -> list[str]:
        """Return the command line that runs the program without us, as `sys.orig_argv` would have it."""
        name = {SCRIPT: [self.name], STDIN: ["-"]}.get(self.kind, ["-m", self.name])
        return [*self.python, *name, *self.args]

    def write(self, folder: str) -> None:
        """Leave the spec in the spool folder."""
        with open(folder + "/" + FILE, "wb") as handle:
            marshal.dump({name: getattr(self, name) for name in self.__slots__}, handle, PLAIN_FORMAT)


def refuse(folder: str, words: str, code: int = 2) -> NoReturn:
    """Leave the child before the program begins, with a message and without a traceback."""
    from gilscope.toolkit.escaping import message
    sys.stderr.write(f"gilscope: {message(words)}\n")
    with open(folder + "/" + REFUSED, "w", encoding="ascii"):
        pass
    raise SystemExit(code)


def read(folder: str) -> Spec:
    """Return the spec that was left in `folder`."""
    with open(folder + "/" + FILE, "rb") as handle:
        return Spec(**marshal.load(handle))  # noqa: S302  written by the process that started this one
