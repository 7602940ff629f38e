"""Start the checked process and wait for it, as invisibly as possible.

It has our standard streams and our process group, so the terminal treats it as it would the program alone.  Signals
sent to us are handed on.  Started with posix_spawn: `subprocess` and `tempfile` would cost more than the child's start.
"""

from __future__ import annotations

import os

from gilscope.toolkit import temporary
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.race.program.cache_dir import cache_folder
from gilscope.toolkit.race.program.spec import BEGUN, COMMAND, MODULE, REFUSED, SCRIPT
from gilscope.toolkit.race.program.target import is_bundle
from gilscope.toolkit.race.spool import SUFFIX, opened, says_something

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping

    from gilscope.toolkit.race.program.spec import Spec
else:
    import _signal as signal  # without its enums: they take 5 ms, which the program would wait for

BOOT = os.path.join(os.path.abspath(__file__).rpartition("program")[0], "child", "boot.py")
# As a script when the program is one.  The interpreter takes __file__ away after a script's end, but not with -m.
AS_SCRIPT = (BOOT, )
RUN_FILE = """import sys
with open(sys.argv[1], 'rb') as file: code = file.read()
exec(compile(code, sys.argv[1], 'exec'))"""
AS_MODULE = ("-c", RUN_FILE, BOOT)
FORWARDED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
INTERRUPTED = -signal.SIGINT
LONGEST_NAME = 20      # of a core
FROM_KERNEL = 0x80     # siginfo's SI_KERNEL: the terminal's doing, which the program got as well


def make_spool() -> str:
    """Make a fresh folder for one run."""
    path = os.path.join(os.environ.get("TMPDIR") or "/tmp", temporary.prefix("race") + os.urandom(4).hex())  # noqa: S108  mkdir makes it ours alone
    try:
        os.mkdir(path, 0o700)
    except OSError as error:
        raise ToolkitError(f"cannot make {path}: {error.strerror}; set TMPDIR to a writable folder") from None
    return path


def was_refused(folder: str) -> bool:
    """Return whether the child has ended without beginning the program; it has said why."""
    return os.path.exists(os.path.join(folder, REFUSED))


def was_begun(folder: str) -> bool:
    """Return whether the child came to the program: an interpreter that only tells its version does not.

    A program that has taken the folder away had begun.
    """
    return os.path.exists(os.path.join(folder, BEGUN)) or not os.access(folder, os.R_OK | os.X_OK)


def core_of(folder: str) -> str:
    """Return the name of the core that checked the program; "" when the program has taken away what says it."""
    if (file := opened(os.path.join(folder, BEGUN))) is None:
        return ""
    with file:
        return file.read(LONGEST_NAME).decode("ascii", "replace")


def has_records(folder: str) -> bool:
    """Return whether a process of the run left more than the line that says it was there, or something to be told."""
    try:
        names = os.listdir(folder)
    except OSError:   # the program has taken it away
        return True
    return any(says_something(os.path.join(folder, name)) for name in names if name.endswith(SUFFIX))


def somebody_reads() -> bool:
    """Return whether it is said that all is well: to a person, and in a log of CI, which knows nothing else of it.

    A script wants the program's own words alone.
    """
    return os.isatty(2) or bool(os.environ.get("CI"))


def remove_spool(folder: str) -> None:
    """Remove what `make_spool` made, and what the run left in it."""
    try:
        for entry in os.scandir(folder):
            os.unlink(entry.path)
        os.rmdir(folder)
    except OSError:   # the program has put a folder there, or a process that it left behind has just written there
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


def words(spec: Spec, spool: str, entry: str) -> list[str]:
    """Return the command line of the checked process.

    Args:
        spec: What to run.
        spool: Holds the spec, and what the program's races leave.
        entry: What `sys.path` begins with.
    """
    as_module = spec.kind in {MODULE, COMMAND} or (spec.kind == SCRIPT and is_bundle(spec.name))   # both are runpy's
    return [*spec.python, *(AS_MODULE if as_module else AS_SCRIPT), spool, entry, os.path.join(cache_folder(), "pyc")]


def run(spec: Spec, spool: str, entry: str) -> int:
    """Run the program; return its exit code, or minus the signal that ended it."""
    return run_words(words(spec, spool, entry), os.environ)


def run_words(command: list[str], environ: Mapping[str, str]) -> int:
    """Run a command line; return its exit code, or minus the signal that ended it."""
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:   # inherited; then nobody would tell of the child's end
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    waited = FORWARDED | {signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    try:
        child = os.posix_spawn(command[0], command, environ, setsigmask=before)
    except OSError as error:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise ToolkitError(f"cannot start {command[0]}: {error.strerror}") from None
    try:
        return os.waitstatus_to_exitcode(_wait(child, waited))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait(child: int, signals: set[signal.Signals]) -> int:
    """Hand signals on until `child` ends; return how it ended."""
    while True:
        number, ours_alone = _next_signal(signals)
        if number == signal.SIGCHLD:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return status
        elif ours_alone:
            os.kill(child, number)   # not yet waited for, so it is still there


def _next_signal(signals: set[signal.Signals]) -> tuple[int, bool]:
    """Return a signal that came, and whether it came to us alone, not to the whole foreground of the terminal."""
    if hasattr(signal, "sigwaitinfo"):
        came = signal.sigwaitinfo(signals)
        # Of a terminal that is gone, the kernel tells the leader of the session alone.
        leads = came.si_signo == signal.SIGHUP and os.getsid(0) == os.getpid()
        return came.si_signo, came.si_code != FROM_KERNEL or leads
    number = signal.sigwait(signals)   # macOS does not say where it came from
    return number, number not in {signal.SIGINT, signal.SIGQUIT} or not _in_foreground()


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False
