"""What a process that imports other people's packages gets of ours: folders of its own, and few variables.

An import runs whatever code a package has.  Written to its home, cached, configured: that is gone with the process.
No variable holds a token or a password.  It is no sandbox: the code runs as the user, and reads what the user may read.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

# How text and times look, who the user is, and where programs and libraries are.
PASSED_ON = ("PATH", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
FOLDERS = {"HOME": "home", "TMPDIR": "tmp", "XDG_CACHE_HOME": "home/.cache", "XDG_CONFIG_HOME": "home/.config",
           "XDG_DATA_HOME": "home/.local/share", "XDG_STATE_HOME": "home/.local/state", "XDG_RUNTIME_DIR": "run"}


def own_variables(place: Path) -> dict[str, str]:
    """Return the variables of a process whose folders are made below `place`, which ends with it."""
    folders = {name: place / below for name, below in FOLDERS.items()}
    for folder in folders.values():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return {name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith("LC_")} | {
        name: str(folder) for name, folder in folders.items()}


def users_variables() -> dict[str, str]:
    """Return the user's variables without those like PYTHON_GIL and PYTHONPATH, which change what is found."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def end_strays(place: str) -> None:
    """Kill whoever was started with folders below `place` and has left its process group, as daemons do.

    The kernel shows the variables that a process was started with.  One that was started without them is not found.
    """
    mark = f"HOME={place}/".encode()
    with contextlib.suppress(OSError):
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, ValueError):
                if mark in (entry / "environ").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)
