"""The program that the command line names: which interpreter runs which script or module.

Errors are reported before anything is started.
"""

from __future__ import annotations

import os
import sys

from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.programs import COMMAND, MODULE, SCRIPT, STDIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SHEBANG_BYTES = 1024   # read from a script: pip's wrappers have a long interpreter's path on the second line
ZIP = b"PK\x03\x04"
BINARIES = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")   # of Linux and macOS


class ProgramTarget:
    """The program to run.

    Attributes:
        kind: As in `spec.CheckedRunSpec`.
        name: The script's path or the module's name.
        args: The program's arguments.
        python: The interpreter and its flags if the program names one, as a console command does; () otherwise.
    """

    __slots__ = ("args", "kind", "name", "python")

    def __init__(self, kind: str, name: str, args: Sequence[str], python: Sequence[str] = ()) -> None:
        self.kind = kind
        self.name = name
        self.args = args
        self.python = python

    def entry(self) -> str:
        """Return the first entry of `sys.path` when `python` runs this."""
        if self.kind == STDIN:
            return ""
        if self.kind in {MODULE, COMMAND}:
            return os.getcwd()
        if is_bundle(self.name):
            return whole(self.name)
        return os.path.dirname(os.path.realpath(self.name))


def whole(path: str) -> str:
    """Return an absolute path, otherwise as it was written, like the one in `__file__`."""
    return os.getcwd() if path in {"", "."} else os.path.join(os.getcwd(), path)


def begins_program(word: str) -> bool:
    """Return True if the program begins with this word of the command line: a script, `-`, `-m...` or `--`."""
    return word in {"-", "--"} or word.startswith("-m") or not word.startswith("-")


def find(words: Sequence[str]) -> ProgramTarget:
    """Return the program that `words` name: `script.py ...`, `-`, `-m module ...` or `-- command ...`.

    Raises:
        ToolkitError: There is no such program, or it is not one of Python's.
    """
    if not words:
        raise ToolkitError("no program to run; write `gilscope race script.py`, `gilscope race -m module` or "
                           "`gilscope race -- command`")
    first, *rest = words
    if first == "--":
        return _command(rest)
    if first.startswith("-m"):
        return module_of(words)
    if first == "-":
        return ProgramTarget(STDIN, first, rest)
    return _script(first, rest)


def module_of(words: Sequence[str]) -> ProgramTarget:
    """Return the module that `-m NAME` or `-mNAME` names.

    Raises:
        ToolkitError: NAME is no name of a module.
    """
    first, *rest = words
    module, *rest = [first[2:], *rest] if first != "-m" else rest or [""]
    if not all(part.isidentifier() for part in module.split(".")):
        raise ToolkitError(f"-m {module!r}: write the name of a module, like -m package.module")
    return ProgramTarget(MODULE, module, rest)


def is_bundle(path: str) -> bool:
    """Return True if `path` is a folder or a zip file, whose `__main__.py` is run."""
    return os.path.isdir(path) or _beginning(path).startswith(ZIP)


def _script(path: str, args: Sequence[str]) -> ProgramTarget:
    if not os.path.exists(path):
        command = f"; to run the command, write `gilscope race -- {path}`" if _on_path(path) else ""
        raise ToolkitError(f"no script {path!r}{command or form_of_name('race', path)}")
    refuse_plain_folder(path)
    beginning = _beginning(path)
    if not os.path.isdir(path) and not beginning.startswith(ZIP):
        _refuse_other_programs(path, beginning)
    return ProgramTarget(SCRIPT, path, args)


def form_of_name(command: str, name: str) -> str:
    """Return how `command` runs what `name` may be, which is no script: a module, a function; "" if it is neither."""
    module, colon, function = name.partition(":")
    if os.path.isfile(f"{name}.py"):
        return f"; did you mean {name}.py?"
    if colon and os.path.isfile(module):
        name = f"{os.path.basename(module).removesuffix('.py')}:{function}"
        return f"; `gilscope run {name}` measures a function, and `gilscope {command} {module}` runs the file"
    if not all(part.isidentifier() for part in module.split(".")) or module.endswith(".py"):
        return ""
    if colon:
        return f"; `gilscope run {name}` measures a function, and `gilscope {command} -m {module}` runs its module"
    return f"; to run a module, write `gilscope {command} -m {name}`"


def refuse_plain_folder(path: str) -> None:
    """Raise ToolkitError if `path` is a folder that Python cannot run."""
    if os.path.isdir(path) and not os.path.exists(os.path.join(path, "__main__.py")):
        raise ToolkitError(f"{path!r} is a folder without __main__.py; name a script, or a package with -m")


def _refuse_other_programs(path: str, beginning: bytes) -> None:
    """Raise ToolkitError if a file is no Python source: compiled, or for another interpreter."""
    interpreter = shebang(beginning)
    if beginning.startswith(BINARIES):
        raise ToolkitError(f"{path!r} is not a Python script but a binary file")
    if path.endswith(".pyc"):
        raise ToolkitError(f"{path!r} is compiled and cannot be checked; name its source")
    if interpreter and not _is_python(interpreter[0]) and not path.endswith(".py"):
        raise ToolkitError(f"{path!r} is a script of {interpreter[0]}, not of Python")


def _command(words: Sequence[str]) -> ProgramTarget:
    if not words:
        raise ToolkitError("no command after --; write it like `gilscope race -- pytest -q`")
    name, *args = words
    path = name if os.sep in name else _on_path(name)
    if path and os.path.isfile(path):
        python = shebang(_beginning(path))
        if python and _is_python(python[0]):
            return ProgramTarget(SCRIPT, path, args, _usable(python, path))
    elif os.sep in name:
        raise ToolkitError(f"no command {name!r}")
    if _is_python(name):
        raise ToolkitError(f"{name!r} is the interpreter itself; name the script or module: `gilscope race script.py`")
    if os.sep not in name and all(part.isidentifier() for part in name.split(".")):
        return ProgramTarget(COMMAND, name, args)   # only the build that runs it knows if the module exists
    raise ToolkitError(f"{name!r} is not a Python program: it does not begin with #!...python")


def _usable(python: Sequence[str], path: str) -> Sequence[str]:
    if not os.access(python[0], os.X_OK):
        raise ToolkitError(f"{path} is for {python[0]}, which no longer exists; reinstall the command")
    return python


def shebang(beginning: bytes) -> list[str]:
    r"""Return the interpreter and flags in a script's first line, or [] if it names none.

    This understands `env`, and the two lines that pip writes if an interpreter's path is too long for the kernel:
    `#!/bin/sh` and `'''exec' "/long/path/python" "$0" "$@"`.
    """
    if not beginning.startswith(b"#!"):
        return []
    first, _, rest = beginning[2:].decode(errors="replace").partition("\n")
    second = rest.partition("\n")[0]
    if first.strip() == "/bin/sh" and second.startswith("'''exec' "):
        return [second.removeprefix("'''exec' ").removesuffix(' "$0" "$@"').strip('"')]
    words = first.split()
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if word != "-S"]
        return [_on_path(words[0]) or words[0], *words[1:]] if words else []
    return words


def _is_python(interpreter: str) -> bool:
    return os.path.basename(interpreter).lower().startswith(("python", "pypy"))


def _on_path(name: str) -> str:
    for folder in os.get_exec_path():
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return ""


def _beginning(path: str) -> bytes:
    if not os.path.isfile(path):   # a pipe can be read only once, by the program: /dev/stdin, bash's <(...)
        return b""
    try:
        with open(path, "rb") as handle:
            return handle.read(SHEBANG_BYTES)
    except OSError as error:
        raise ToolkitError(f"cannot read {path!r}: {error.strerror}") from None


def default_python() -> str:
    """Return the interpreter for a program that names none.

    It is the one that runs gilscope, or that of another environment if one is active in the shell.
    """
    active = os.environ.get("VIRTUAL_ENV")
    if not active or os.path.realpath(active) == os.path.realpath(sys.prefix):
        return sys.executable
    python = os.path.join(active, "bin", "python")
    if not os.access(python, os.X_OK):
        raise ToolkitError(f"VIRTUAL_ENV is {active}, which has no bin/python; deactivate it, or name a build")
    return python
