"""Names for what lies in shared places for a while, and the removing of what its owner could not remove any more.

A kill -9 lets nobody clean up.  So the name of each temporary folder, and of each semaphore of measured processes, says
whose it is: `sweep` removes those whose owner is gone.  Who starts a checked program waits for what is imported here.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

OURS = "gilscope"
_SEMAPHORES, _SEMAPHORE = "/dev/shm", "sem."  # noqa: S108  where Linux shows them, and what their names begin with
_OWNER_WORDS = 3    # of a name: place, process, its start
_DEAD = "Z"         # and nobody has asked how it ended
_STARTED = 19       # of a line of /proc/PID/stat, counted from what follows the process's name


def prefix(kind: str = "") -> str:
    """Return the prefix of a temporary file's name, which names its owner; the unique rest has no dash."""
    words = [OURS, kind, *_owner(os.getpid())]
    return "-".join(filter(None, words)) + "-"


def sweep(*, own: bool = False) -> None:
    """Remove the temporary folders and semaphores whose owner is gone; with `own` this process's, too.

    An owner in another container or on another machine, whose processes cannot be seen from here, counts as living.

    Args:
        own: This process needs none of its own any more.
    """
    us = f"{OURS}-", f"-{'-'.join(_owner(os.getpid()))}-"

    def is_left(name: str) -> bool:
        return _is_left(name) or (own and name.startswith(us[0]) and us[1] in name)

    for path, name in _ours(os.environ.get("TMPDIR") or "/tmp", us[0]):  # noqa: S108  where tempfile makes them
        if is_left(name) and os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114  as below
            import shutil  # noqa: PLC0415  there rarely is one

            shutil.rmtree(path, ignore_errors=True)
    for path, name in _ours(_SEMAPHORES, _SEMAPHORE + us[0]):
        if is_left(name.removeprefix(_SEMAPHORE)):
            _remove(path)


def _remove(path: str) -> None:
    try:
        os.unlink(path)  # noqa: PTH108  pathlib is one that a start does without
    except OSError:
        return   # somebody else has done it


def _ours(folder: str, beginning: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the name of the user's files there whose name has this beginning; others may be thousands."""
    try:
        names = os.listdir(folder)  # noqa: PTH208  as above
    except OSError:
        return   # none there, or not to be read: nothing to remove
    for name in names:
        if name.startswith(beginning) and _is_this_users(path := f"{folder}/{name}"):
            yield path, name


def _is_this_users(path: str) -> bool:
    try:
        return os.lstat(path).st_uid == os.getuid()
    except OSError:
        return False   # gone meanwhile


def _is_left(name: str) -> bool:
    """Return True if a name has an owner that is gone."""
    words = name.split("-")
    for at in range(1, len(words) - _OWNER_WORDS):   # before it may stand a kind, after it what makes it unique
        place, pid, started = words[at:at + _OWNER_WORDS]
        if pid.isdecimal() and started.isdecimal():
            return place == _place() and not _lives(int(pid), started)
    return False


def _lives(pid: int, started: str) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True   # another user's by now
    state, start = _state_and_start(pid)
    return start == started and state != _DEAD


def _owner(pid: int) -> tuple[str, str, str]:
    return _place(), str(pid), _start_of(pid)


def _place() -> str:
    """Return a key of the machine and the container, within which a process id means one process."""
    try:
        processes = os.readlink("/proc/self/ns/pid")  # noqa: PTH115  as above
    except OSError:
        processes = ""
    return f"{int.from_bytes((os.uname().nodename + processes).encode(), 'big') % 1_000_003:x}"


def _start_of(pid: int) -> str:
    return _state_and_start(pid)[1]


def _state_and_start(pid: int) -> tuple[str, str]:
    """Return the state of a process, and when it started, in ticks since the machine did; "0" where nothing says so."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  as above
            words = file.read().rpartition(b")")[2].split()
    except OSError:
        return "", "0"
    return words[0].decode(), words[_STARTED].decode()
