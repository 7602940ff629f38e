"""A root folder without a compiler: a mount namespace with the C library, a shell and some builds of Python.

It is what a slim container image is, without a container.  The kernel must permit user namespaces.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/usr/share/zoneinfo",
             "/etc/ssl", "/usr/share/ca-certificates")
KERNEL = ("/proc", "/sys", "/dev")
# Of coreutils and a shell: what the commands of an installation section and pip's own start need.
PROGRAMS = ("sh", "bash", "env", "uname", "cat", "ls", "rm", "mkdir", "cp", "sleep", "ldd", "ps", "sed", "sort", "git")
COMPILERS = ("cc", "gcc", "clang", "c99", "tcc", "c++", "g++")
HIDDEN = ("/usr/lib/gcc", "/usr/lib/llvm-14", "/usr/lib/git-core")     # the compilers themselves


def refusal() -> str:
    """Return why namespaces cannot be made here, or ""."""
    if shutil.which("unshare") is None:
        return "there is no `unshare` command (util-linux): mount namespaces need Linux"
    command = ["unshare", "--mount", "--map-root-user", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"mount namespaces are refused here: {done.stderr.strip()}" if done.returncode else ""


class BareRoot:
    """One root folder; commands in it see the folders that were named, and /home and /tmp of its own."""

    def __init__(self, folder: Path, *shown: Path, pythons: Sequence[Path] = ()) -> None:
        """Make the root in `folder`; each of `shown` and the builds of `pythons` are at their own paths, read-only."""
        self.folder = folder
        for name in ("bin", "home/user", "tmp", "etc"):
            (folder / name).mkdir(parents=True)
        (folder / "usr").mkdir()
        (folder / "usr" / "bin").symlink_to("/bin")
        (folder / "etc" / "passwd").write_text("root:x:0:0:root:/home/user:/bin/sh\n")
        for name in PROGRAMS:
            if found := shutil.which(name):
                shutil.copy2(found, folder / "bin" / name)
        self.home = folder / "home" / "user"
        self.mounts = [*(Path(each) for each in (*LIBRARIES, *KERNEL) if Path(each).exists()), *shown]
        for python in pythons:
            if python.parent.parent == Path("/usr"):      # all of /usr would bring its compilers
                shutil.copy2(python, folder / "bin" / python.name)
            else:
                self.mounts.append(python.parent.parent)
        self.path = ":".join([*dict.fromkeys(str(python.parent) for python in pythons), "/bin"])

    def call(
        self, *command: str | Path, expect: int | None = 0, first: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in /home/user and return what it did.

        Args:
            command: The command; a relative path is one in /home/user.
            expect: Its exit code; None for any.
            first: A folder to put before the others on PATH.
            variables: Its environment, besides the few that every command gets.
        """
        lines = ["set -e"]
        for source in self.mounts:
            target = self.folder / str(source).lstrip("/")
            kernel = str(source) in KERNEL
            make = f'mkdir -p "{target}"' if source.is_dir() else f'mkdir -p "{target.parent}"; touch "{target}"'
            lines += [make, f'mount --{"r" if kernel else ""}bind "{source.resolve()}" "{target}"']
            if not kernel:
                lines.append(f'mount -o remount,bind,ro "{target}"')
        lines += [f'mount -t tmpfs none "{self.folder}{each}"' for each in HIDDEN if Path(each).exists()]
        lines.append(f'exec chroot "{self.folder}" /bin/env -i "$@"')
        environment = {"PATH": f"{first}:{self.path}" if first else self.path, "HOME": "/home/user",
                       "LC_ALL": "C.UTF-8", "TMPDIR": "/tmp", **variables}
        words = [f"{name}={value}" for name, value in environment.items()]
        done = subprocess.run(
            ["unshare", "--mount", "--map-root-user", "sh", "-c", "\n".join(lines), "sh", *words,
             "sh", "-c", 'cd /home/user && exec "$@"', "sh", *map(str, command)],
            capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert expect is None or done.returncode == expect, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done
