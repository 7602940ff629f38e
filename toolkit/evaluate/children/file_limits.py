"""What a process that runs other people's code may take of the disk."""

from __future__ import annotations

LARGEST_FILE = 2**30   # bytes; more than any package writes when it is imported


def bound_files() -> None:
    """Let this process write no core file, and no file that fills a disk: some print in a loop."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    bound = LARGEST_FILE if most == resource.RLIM_INFINITY else min(LARGEST_FILE, most)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bound, most))
