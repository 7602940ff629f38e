"""Start the checked process, and look at what it leaves in its spool folder."""

from __future__ import annotations

import os
import time

from gilscope.toolkit import temporary
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.programs import COMMAND, MODULE, SCRIPT
from gilscope.toolkit.programs.foreground import run_words
from gilscope.toolkit.programs.target import is_bundle
from gilscope.toolkit.race.program.spec import BEGUN, MISSING, REFUSED
from gilscope.toolkit.race.spool import SUFFIX, has_content, opened
from gilscope.toolkit.user_dirs import cache_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gilscope.toolkit.race.program.spec import CheckedRunSpec

BOOT = os.path.join(os.path.abspath(__file__).rpartition("program")[0], "child", "boot.py")
# The command line of a script: the interpreter deletes __file__ when a script has ended, but not with -m.
AS_SCRIPT = (BOOT, )
RUN_FILE = """import sys
with open(sys.argv[1], 'rb') as file: code = file.read()
exec(compile(code, sys.argv[1], 'exec'))"""
AS_MODULE = ("-c", RUN_FILE, BOOT)
LONGEST_NAME = 20      # bytes in a core's name


def make_spool() -> str:
    """Make a fresh folder for one run."""
    path = os.path.join(os.environ.get("TMPDIR") or "/tmp", temporary.prefix("race") + os.urandom(4).hex())  # noqa: S108  mkdir makes it ours alone
    try:
        os.mkdir(path, 0o700)
    except OSError as error:
        raise ToolkitError(f"cannot make {path}: {error.strerror}; set TMPDIR to a writable folder") from None
    return path


def was_refused(folder: str) -> bool:
    """Return True if the child ended without beginning the program and has printed the reason."""
    return os.path.exists(os.path.join(folder, REFUSED))


def lacks_module(folder: str) -> bool:
    """Return True if the child's Python did not have the module of -m."""
    return os.path.exists(os.path.join(folder, MISSING))


def was_begun(folder: str) -> bool:
    """Return True if the child began the program, which an interpreter that only prints its version does not.

    A program that has removed the folder had begun.
    """
    return os.path.exists(os.path.join(folder, BEGUN)) or not os.access(folder, os.R_OK | os.X_OK)


def core_of(folder: str) -> str:
    """Return the name of the core that checked the program, or "" if the program has removed the file with it."""
    if (file := opened(os.path.join(folder, BEGUN))) is None:
        return ""
    with file:
        return file.read(LONGEST_NAME).decode("ascii", "replace")


def has_records(folder: str) -> bool:
    """Return True if a process of the run left more than its header, or if its records are damaged."""
    try:
        names = os.listdir(folder)
    except OSError:   # the program has removed the folder
        return True
    return any(has_content(os.path.join(folder, name)) for name in names if name.endswith(SUFFIX))


def remove_spool(folder: str) -> None:
    """Remove the folder of `make_spool` and all files in it."""
    try:
        for entry in os.scandir(folder):
            os.unlink(entry.path)
        os.rmdir(folder)
    except OSError:   # the program made a folder in it, or a process that still runs has just written to it
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


class Lifeline:
    """A pipe whose reading end the child inherits; the writing end closes with this process, however it ends."""

    def __enter__(self) -> int:
        """Return the reading end."""
        self._ends = os.pipe()
        os.set_inheritable(self._ends[0], True)  # noqa: FBT003  it takes no keyword
        return self._ends[0]

    def __exit__(self, *_error: object) -> None:
        """Close both ends."""
        for end in self._ends:
            os.close(end)


def words(spec: CheckedRunSpec, spool: str, entry: str) -> list[str]:
    """Return the command line of the checked process.

    Args:
        spec: What to run.
        spool: The folder with the spec, which the program's races are written to.
        entry: The first entry of `sys.path`.
    """
    as_module = spec.kind in {MODULE, COMMAND} or (spec.kind == SCRIPT and is_bundle(spec.name))   # both are runpy's
    return [*spec.python, *(AS_MODULE if as_module else AS_SCRIPT), spool, entry, os.path.join(cache_folder(), "pyc")]


def run(spec: CheckedRunSpec, spool: str, entry: str) -> int:
    """Run the program; return its exit code, or minus the signal that ended it."""
    return run_words(words(spec, spool, entry), os.environ)


class FirstRun:
    """The run of the program that is checked for races; confirming runs may follow.

    Attributes:
        entry: The first entry of `sys.path`.
        spool: The folder that races are written to.
        ended: The program's exit code, or minus the signal that ended it.
        seconds: The duration of the run.
    """

    def __init__(self, spec: CheckedRunSpec, entry: str) -> None:
        self.spec = spec
        self.entry = entry
        self.spool = make_spool()
        self.ended = 0
        self.seconds = 0.0

    def go(self) -> None:
        """Run the program to its end."""
        begin = time.monotonic()
        with Lifeline() as self.spec.lifeline:
            self.spec.write(self.spool)
            self.ended = run(self.spec, self.spool, self.entry)
        self.seconds = time.monotonic() - begin
