"""Evidence on whether the kernel killed a process for lack of memory.

A control group counts the processes of its own that were killed so.  The counter of the machine counts all processes,
so a rise of it proves nothing about one of them.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from gilscope.toolkit.cores import own_control_groups

COUNTER = "oom_kill"   # in both files


class OomEvidence(Enum):
    """The evidence of the counters about a process that ran while they were watched."""

    OWN_GROUP = auto()    # a process of our control group was killed
    NOT_OURS = auto()     # none of our control group was
    MACHINE = auto()      # some process of the machine was; our control group has no counter
    NONE = auto()         # none was, or no counter can be read


@dataclass(frozen=True, slots=True)
class OomCounts:
    """The kernel's counts of processes that it killed for lack of memory; None: it cannot be read."""

    group: int | None
    machine: int | None

    @classmethod
    def now(cls, root: str = "/sys/fs/cgroup", listing: str = "/proc/self/cgroup", vmstat: str = "/proc/vmstat",
            ) -> OomCounts:
        """Read the counts.

        Source: Documentation/admin-guide/cgroup-v2.rst: `oom_kill` in memory.events counts the processes of a group and
        of those in it "killed by any kind of OOM killer".  Where the memory controller is off, the file is missing.
        """
        files = (Path(folder, "memory.events") for folder in own_control_groups(root, listing))
        group = next((count for each in files if (count := _count(each)) is not None), None)
        return cls(group, _count(Path(vmstat)))

    def since(self, before: OomCounts) -> OomEvidence:
        """Return the evidence of the rise from `before` to these counts."""
        if self.group is not None and before.group is not None:
            return OomEvidence.OWN_GROUP if self.group > before.group else OomEvidence.NOT_OURS
        if self.machine is not None and before.machine is not None and self.machine > before.machine:
            return OomEvidence.MACHINE
        return OomEvidence.NONE


def _count(file: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in file.read_text().splitlines():
            if line.startswith(f"{COUNTER} "):
                return int(line.split()[1])
    return None
