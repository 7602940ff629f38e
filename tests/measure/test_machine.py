"""The machine's settings, as files of the kernel tell them; None where they do not."""

import pytest

from gilscope.toolkit.measure import machine
from gilscope.toolkit.measure.machine import this_machine

CPU = ("processor\t: 0\nmodel name\t: Made-up CPU\nmicrocode\t: {microcode}\nflags\t\t: fpu vme{flags}\n\n"
       "processor\t: 1\n")
SYS = "/sys/devices/system/cpu"


@pytest.fixture
def files(monkeypatch):
    """Let the kernel have these files alone."""
    found = {}
    monkeypatch.setattr(machine, "_read", lambda path: found.get(path, ""))
    return found


def test_nothing_is_known_where_the_kernel_tells_nothing(files):
    found = this_machine()
    assert (found.hypervisor, found.microcode, found.smt, found.turbo, found.governor) == (None,) * 5


def test_settings_of_a_real_machine(files):
    files |= {"/proc/cpuinfo": CPU.format(microcode="0xd0003b9", flags=""), f"{SYS}/smt/active": "1",
              f"{SYS}/intel_pstate/no_turbo": "0", f"{SYS}/cpu0/cpufreq/scaling_governor": "performance",
              "/sys/class/dmi/id/sys_vendor": "Made-up Inc."}
    found = this_machine()
    assert (found.cpu_model, found.microcode, found.hypervisor) == ("Made-up CPU", "0xd0003b9", "none")
    assert (found.smt, found.turbo, found.governor) == (True, True, "performance")


@pytest.mark.parametrize(("file", "name"), [
    ({"/sys/class/dmi/id/sys_vendor": "QEMU"}, "QEMU"), ({"/sys/hypervisor/type": "xen"}, "xen"), ({}, "unnamed"),
])
def test_hypervisor_of_a_virtual_machine(file, name, files):
    files |= {"/proc/cpuinfo": CPU.format(microcode="0x1", flags=" hypervisor")} | file
    assert this_machine().hypervisor == name


@pytest.mark.parametrize(("file", "turbo"), [
    ({"intel_pstate/no_turbo": "1"}, False), ({"cpufreq/boost": "1"}, True), ({"cpufreq/boost": "0"}, False),
    ({}, None),
])
def test_turbo_by_either_driver(file, turbo, files):
    files |= {f"{SYS}/{name}": text for name, text in file.items()}
    assert this_machine().turbo is turbo


def test_smt_that_is_off(files):
    files[f"{SYS}/smt/active"] = "0"
    assert this_machine().smt is False
