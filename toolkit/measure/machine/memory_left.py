"""How much memory is left for more processes: the machine's, and of the control group that gilscope runs in."""

from __future__ import annotations

import contextlib
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_KEPT_FREE = 0.1  # of what there is: for everybody else, and for what a pass takes beyond the last one


def memory_left() -> int | None:
    """Return the bytes that further processes may take; None where the system does not tell."""
    found = [each for each in (_of_machine(), *_of_groups()) if each is not None]
    return min(found) if found else None


def _of_machine() -> int | None:
    fields = {}
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            fields[line.partition(":")[0]] = int(line.split()[1]) * 1024
    if "MemAvailable" not in fields:
        return None
    return round(fields["MemAvailable"] - _KEPT_FREE * fields["MemTotal"])


def _of_groups() -> list[int | None]:
    """Return what is left in each control group that limits this process."""
    path = ""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            if line.startswith("0::/"):
                path = line.removeprefix("0::/")
    folder = _GROUPS / path
    return [_of_group(each) for each in (folder, *folder.parents) if each.is_relative_to(_GROUPS)]


def _of_group(folder: Path) -> int | None:
    """Source: Documentation/admin-guide/cgroup-v2.rst; pages of files that nobody used lately are given back."""
    with contextlib.suppress(OSError, ValueError):
        most = int((folder / "memory.max").read_text())  # "max" is no limit
        used = int((folder / "memory.current").read_text())
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return round(most * (1 - _KEPT_FREE)) - used + int(stat.get("inactive_file", 0))
    return None
