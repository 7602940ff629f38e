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
        hostname=socket.gethostname(),
        hypervisor=_hypervisor(),
        microcode=_cpu_field("microcode") or None,
        smt=_switch("/sys/devices/system/cpu/smt/active"),
        turbo=_turbo(),
    )


def now() -> str:
    """Return the time as ISO 8601, with its zone."""
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


def machine_mark() -> str:
    """Return an identifier shared by all processes and containers on this machine; "" if there is none.

    It is only compared, and never stored.
    """
    for path in ("/proc/sys/kernel/random/boot_id", "/etc/machine-id"):
        if text := _read(path):
            return hashlib.sha256(f"gilscope {text}".encode()).hexdigest()
    return ""


def _cpu_model() -> str:
    return _cpu_field("model name") or platform.processor() or platform.machine()


def _cpu_field(name: str) -> str:
    """Return a field of the first CPU in /proc/cpuinfo, "" if it has none."""
    for line in _read("/proc/cpuinfo").splitlines():
        field, _, text = line.partition(":")
        if field.strip() == name:
            return text.strip()
    return ""


def _hypervisor() -> str | None:
    """Return the hypervisor's name, "unnamed" or "none"; None if the processor has no flag for it, as on ARM."""
    name = _read("/sys/hypervisor/type") or (_read("/sys/class/dmi/id/sys_vendor") if _is_guest() else "")
    return name or {True: "unnamed", False: "none", None: None}[_is_guest()]


def _is_guest() -> bool | None:
    flags = _cpu_field("flags").split()
    return "hypervisor" in flags if flags else None


def _turbo() -> bool | None:
    off = _switch("/sys/devices/system/cpu/intel_pstate/no_turbo")
    return _switch("/sys/devices/system/cpu/cpufreq/boost") if off is None else not off


def _switch(path: str) -> bool | None:
    """Return the state of a switch of the kernel; None if there is no such file."""
    return {"0": False, "1": True}.get(_read(path))


def _memory() -> int | None:
    with contextlib.suppress(ValueError, OSError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None


def _read(path: str) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text(errors="replace").strip()
    return ""
