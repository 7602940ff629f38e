"""Happens-before edges through the operating system: pipes, sockets, locked files, child processes.

Both ends of the pipe or pair of sockets are in this process.  Its reader comes after all that was written so far, not
only after what it reads.  A connection over the network orders nothing: outside of tests a server has other clients.
"""

from __future__ import annotations

import os
import stat
import sys

from gilscope.toolkit.race.sync.layer import ObjectStates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gilscope.toolkit.race.core import Core
    from gilscope.toolkit.race.sync.layer import SyncLayer

BESIDE_CALLER = frozenset({__name__, "subprocess"})     # modules between a process's start and who asked for it
TOOL_USERS = frozenset({"platform", "ctypes.util", "uuid"})   # modules that start uname, ldconfig and the like
_fstat = os.fstat     # a checked program's tests may replace it later


class Channel:
    """What orders a reader after a writer, or a holder of a locked file after the one before."""

    __slots__ = ("__weakref__",)


class DescriptorPatches:
    """Patches of os, _socket, socket, fcntl and subprocess."""

    def __init__(self, layer: SyncLayer) -> None:
        self._layer = layer
        self._core: Core = layer.core
        self._files: dict[tuple[int, int], Channel] = {}      # pipes and locked files, by device and inode
        self._ends = ObjectStates()        # a socket of a pair -> the channels that it sends to, receives from

    def patch_os(self, module: Any) -> None:
        """Patch reads and writes of descriptors."""
        for name in ("write", "writev"):
            self._layer.wrap(module, name, self.before_write, muted=False)
        for name in ("read", "readv"):
            self._layer.wrap(module, name, None, self.after_read, muted=False)
        for name in ("posix_spawn", "posix_spawnp", "system"):
            self._layer.wrap(module, name, self.note_process, muted=False)

    def patch_socket(self, module: Any) -> None:
        """Patch the methods of all sockets."""
        for name in ("send", "sendall"):
            self._layer.wrap(module.SocketType, name, self.before_send, muted=False)
        for name in ("recv", "recv_into"):
            self._layer.wrap(module.SocketType, name, None, self.after_receive, muted=False)

    def patch_pairs(self, module: Any) -> None:
        """Patch the function that makes two connected sockets."""
        self._layer.wrap(module, "socketpair", None, self.after_socketpair, muted=False)

    def patch_fcntl(self, module: Any) -> None:
        """Patch the function that locks files; what `lockf` locks is locked for all threads of the process at once."""
        self._unlock: int = module.LOCK_UN
        self._layer.wrap(module, "flock", self.before_lock, self.after_lock, muted=False)

    def patch_subprocess(self, module: Any) -> None:
        """Patch the start of a child process and the waits for its end."""
        self._layer.wrap(module.Popen, "__init__", self.before_start, muted=False)
        for name in ("wait", "poll", "communicate"):
            self._layer.wrap(module.Popen, name, None, self.after_wait, muted=False)

    def before_start(self, child: Any, *_arguments: Any, **_named: Any) -> None:
        """Release this thread's clock to whoever waits for the child."""
        self.note_process()
        self._core.release(child)

    def note_process(self, *_arguments: Any, **_named: Any) -> None:
        """Note that there is a process that is not checked."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__") in BESIDE_CALLER:
            frame = frame.f_back
        if frame.f_globals.get("__name__") not in TOOL_USERS:
            self._layer.started_process = True

    def after_wait(self, _state: object, ended: object, child: Any, *_arguments: Any, **_named: Any) -> None:
        """Add the edge from the start of a child that has ended."""
        if ended is not None:
            self._core.acquire(child)

    def before_write(self, descriptor: Any, *_arguments: Any, **_named: Any) -> None:
        """Release this thread's clock to a pipe's readers."""
        if (channel := self._pipe(descriptor)) is not None:
            self._core.release(channel)

    def after_read(self, _state: object, _read: object, descriptor: Any, *_arguments: Any, **_named: Any) -> None:
        """Add the edges from a pipe's writers."""
        if (channel := self._pipe(descriptor)) is not None:
            self._core.acquire(channel)

    def before_send(self, sock: Any, *_arguments: Any, **_named: Any) -> None:
        """Release this thread's clock to the other end."""
        if (ends := self._ends.get(sock)) is not None:
            self._core.release(ends[0])

    def after_receive(self, _state: object, _received: object, sock: Any, *_arguments: Any, **_named: Any) -> None:
        """Add the edges from the other end's senders."""
        if (ends := self._ends.get(sock)) is not None:
            self._core.acquire(ends[1])

    def after_socketpair(self, _state: object, pair: tuple[Any, Any], *_arguments: Any, **_named: Any) -> None:
        """Connect the channels of both ends."""
        there, back = Channel(), Channel()
        self._ends.set(pair[0], (there, back))
        self._ends.set(pair[1], (back, there))

    def before_lock(self, file: Any, operation: int, *_arguments: Any, **_named: Any) -> None:
        """Release this thread's clock to the next holder of a file's lock."""
        if operation & self._unlock:
            self._core.release(self._file(os.fstat(_number(file))))

    def after_lock(self, _state: object, _done: object, file: Any, operation: int, *_arguments: Any,
                   **_named: Any) -> None:
        """Add the edge from the last holder of a file's lock."""
        if not operation & self._unlock:
            self._core.acquire(self._file(os.fstat(_number(file))))

    def _pipe(self, descriptor: Any) -> Channel | None:
        status = _fstat(descriptor)
        return self._file(status) if stat.S_ISFIFO(status.st_mode) else None

    def _file(self, status: os.stat_result) -> Channel:
        return self._files.setdefault((status.st_dev, status.st_ino), Channel())


def _number(file: Any) -> int:
    number: int = file if isinstance(file, int) else file.fileno()
    return number
