"""Machines of their own as far as their network goes: namespaces, and wires that delay, lose, and can be cut.

`tc netem` does the same, and is a module of the kernel's that many lack.  Here a wire has a TUN device at either end,
and this process carries its packets from one to the other.
"""

import asyncio
import contextlib
import fcntl
import os
import random
import shutil
import struct
import subprocess
import threading
from pathlib import Path

IP = shutil.which("ip", path=f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin{os.pathsep}/sbin")
DEVICE = Path("/dev/net/tun")
MOST = 65535                 # bytes of a packet
SET, TUN, BARE = 0x400454CA, 0x0001, 0x1000   # TUNSETIFF, IFF_TUN, IFF_NO_PI of linux/if_tun.h
MIDDLE = "10.7.0.1"          # whoever all wires lead to; in namespaces, nobody else's address matters


def lacking():
    """Return why there can be no such network here, "" where there can."""
    if not DEVICE.exists() or IP is None:
        return "it takes Linux's TUN devices and the command ip"
    if os.geteuid() != 0:
        return "network namespaces take root"
    probe = f"gs{os.getpid()}p"
    made = subprocess.run([IP, "netns", "add", probe], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"there can be no network namespace: {made.stderr.strip()}"
    call("netns", "del", probe)
    return ""


def call(*words):
    subprocess.run([IP, *words], check=True, capture_output=True, text=True)


class Wire:
    """A wire from the middle to a host; each packet takes `delay` seconds, and a share `loss` never arrives."""

    def __init__(self, delay, loss, seed):
        self.cut = False
        self.carried = self.lost = 0
        self._delay, self._loss, self._draw = delay, loss, random.Random(seed)
        self._handles = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def end(self, name):
        """Make one end of it, a device called `name`."""
        handle = os.open(DEVICE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._handles.append(handle)
        fcntl.ioctl(handle, SET, struct.pack("16sH22x", name.encode(), TUN | BARE))

    def carry(self):
        """Begin, when both ends are there."""
        one, other = self._handles
        self._loop.add_reader(one, self._take, one, other)
        self._loop.add_reader(other, self._take, other, one)
        self._thread.start()

    def _take(self, source, target):
        with contextlib.suppress(OSError):   # it is down
            packet = os.read(source, MOST)
            if self.cut or self._draw.random() < self._loss:
                self.lost += 1
            else:
                self.carried += 1
                self._loop.call_later(self._delay, self._deliver, target, packet)

    def _deliver(self, target, packet):
        with contextlib.suppress(OSError):
            os.write(target, packet)

    def close(self):
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()
        for handle in self._handles:
            os.close(handle)


class Network:
    """Namespaces called `middle` and by the hosts' names, each host at the end of a wire of its own."""

    def __init__(self, middle=MIDDLE):
        self.wires = {}
        self.addresses = {"middle": middle}
        self._spaces = {}

    def __enter__(self):
        self._add("middle")
        call("-n", self._spaces["middle"], "addr", "add", f"{self.addresses['middle']}/32", "dev", "lo")
        return self

    def __exit__(self, *_):
        for wire in self.wires.values():
            wire.close()
        for space in self._spaces.values():
            call("netns", "del", space)

    def _add(self, name):
        space = f"gs{os.getpid()}-{len(self._spaces)}"
        call("netns", "add", space)
        self._spaces[name] = space
        call("-n", space, "link", "set", "lo", "up")

    def host(self, name, delay=0.0, loss=0.0):
        """Add a host."""
        self._add(name)
        number = len(self.wires) + 1
        self.addresses[name] = f"10.7.{number}.2"
        wire = self.wires[name] = Wire(delay, loss, seed=number)
        for where, device, address, route in (
            ("middle", f"{self._spaces[name]}m", f"10.7.{number}.1", f"{self.addresses[name]}/32"),
            (name, f"{self._spaces[name]}h", self.addresses[name], "default"),
        ):
            space = self._spaces[where]
            wire.end(device)
            call("link", "set", device, "netns", space)
            call("-n", space, "addr", "add", f"{address}/32", "dev", device)
            call("-n", space, "link", "set", device, "up")
            call("-n", space, "route", "add", route, "dev", device)
        wire.carry()

    def at(self, name):
        """Return the words before a command that is to run there."""
        return [IP, "netns", "exec", self._spaces[name]]
