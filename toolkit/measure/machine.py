"""The machine that a run is made on, and the time."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import os
import platform
import socket
from pathlib import Path

from gilscope.toolkit.cores import usable_cores
from gilscope.toolkit.model import Machine


def this_machine() -> Machine:
    """Describe this machine."""
    return Machine(
        cpu_model=_cpu_model(),
        cores=usable_cores(),
        memory_bytes=_memory(),
        system=platform.platform(),
        governor=_read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or None,
        autogroup=_autogroup(),
        hostname=socket.gethostname(),
    )


def now() -> str:
    """Return the time as ISO 8601, with its zone."""
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


def machine_mark() -> str:
    """Return what is the same for everything that runs on this machine now, containers too; "" if nobody knows.

    It is only compared, and never stored.
    """
    for path in ("/proc/sys/kernel/random/boot_id", "/etc/machine-id"):
        if text := _read(path):
            return hashlib.sha256(f"gilscope {text}".encode()).hexdigest()
    return ""


def _cpu_model() -> str:
    for line in _read("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> int | None:
    with contextlib.suppress(ValueError, OSError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None


def _autogroup() -> bool | None:
    text = _read("/proc/sys/kernel/sched_autogroup_enabled")
    return None if not text else text == "1"


def _read(path: str) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text(errors="replace").strip()
    return ""
