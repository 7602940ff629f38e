"""Compare the shim with kernel uprobes in the same run, at take_gil() or where threads wait for a mutex.

Needs Linux, root, and a build with symbols.

    python -m tests.benchmarks.gil_probes PYTHON...

The probes are opened with perf_event_open and disappear with this process.  They are set in a copy of the interpreter,
so that they affect no other process.
"""

import ctypes
import mmap
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from gilscope.toolkit.gil import preload
from gilscope.toolkit.gil.records import SpanKind, read_folder

PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}[os.uname().machine]
SAMPLE_TID_TIME = 0x2 | 0x4
USE_CLOCKID = 1 << 25
PAGES = 256
PASSED = 20e-6     # seconds; a shorter call had nothing to wait for, and took the probes' own time
RECORD_SAMPLE, RECORD_LOST = 9, 2
FUNCTIONS = ("take_gil", "_PyMutex_LockTimed")   # what is probed
PROGRAM = """
import socket, sys, threading, time
def spin():
    while time.monotonic() < end: pass
def lock_it():
    while time.monotonic() < end:
        with lock: sum(numbers)
lock, numbers = threading.Lock(), range(40000)
def pong():
    while data := right.recv(1): right.sendall(data)
def ping():
    while time.monotonic() < end:
        left.sendall(b"x"); left.recv(1)
    left.close()
left, right = socket.socketpair()
sys.stdin.readline()
end = time.monotonic() + 1.5
work = {"cpu2": [spin] * 2, "cpu4": [spin] * 4, "mix": [spin, spin, spin, ping, pong],
        "lock": [lock_it] * 2}[sys.argv[1]]
threads = [threading.Thread(target=each) for each in work]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


class Probe:
    """A uprobe in one file on one CPU, and its samples."""

    def __init__(self, path, offset, cpu, *, returns):
        self._path = ctypes.create_string_buffer(os.fsencode(path))
        kind = int(Path("/sys/bus/event_source/devices/uprobe/type").read_text())
        attributes = bytearray(136)
        struct.pack_into("=IIQQQ", attributes, 0, kind, len(attributes), int(returns), 1, SAMPLE_TID_TIME)
        struct.pack_into("=Q", attributes, 40, USE_CLOCKID)
        struct.pack_into("=QQ", attributes, 56, ctypes.addressof(self._path), offset)
        struct.pack_into("=i", attributes, 92, time.CLOCK_MONOTONIC)
        raw = (ctypes.c_char * len(attributes)).from_buffer(attributes)
        libc = ctypes.CDLL(None, use_errno=True)
        self.file = libc.syscall(PERF_EVENT_OPEN, raw, -1, cpu, -1, 0)
        if self.file < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self.ring = mmap.mmap(self.file, (1 + PAGES) * 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        self.position = 0

    def read(self):
        """Yield (tid, ns) of the samples since the last call."""
        head = struct.unpack_from("=Q", self.ring, 1024)[0]
        size = PAGES * 4096
        data = self.ring[4096:]
        while self.position < head:
            at = self.position % size
            record = (data[at : at + 64] + data[: 64]) if at + 64 > size else data[at : at + 64]
            kind, _, length = struct.unpack_from("=IHH", record)
            assert kind != RECORD_LOST, "samples were lost"
            if kind == RECORD_SAMPLE:
                _, tid, when = struct.unpack_from("=IIQ", record, 8)
                yield tid, when
            self.position += length
        struct.pack_into("=Q", self.ring, 1032, self.position)

    def close(self):
        """Remove the probe."""
        self.ring.close()
        os.close(self.file)


def symbol(path, name):
    """Return the offset of the function in the file."""
    for line in subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines():
        address, _, found = line.partition(" ")
        if found[2:] == name:
            return file_offset(path, int(address, 16))
    raise SystemExit(f"{path} has no symbol {name}")


def file_offset(path, address):
    raw = Path(path).read_bytes()[: 1 << 16]
    table, size, count = struct.unpack_from("<Q", raw, 32)[0], *struct.unpack_from("<HH", raw, 54)
    for i in range(count):
        kind, _, offset, begin, _, length = struct.unpack_from("<IIQQQQ", raw, table + i * size)
        if kind == 1 and begin <= address < begin + length:
            return address - begin + offset
    raise SystemExit(f"{address:#x} is in no segment of {path}")


def compare(python, what):
    """Return thread seconds and the longest by the kernel's probes, and the same by the shim, of one run."""
    prefix = subprocess.run([python, "-c", "import sys; print(sys.base_prefix)"], capture_output=True, text=True,
                            check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "python"))
        shutil.copy2(Path(python).resolve(), path)
        offset = symbol(path, FUNCTIONS[what == "lock"])
        probes = [(Probe(path, offset, cpu, returns=returns), returns)
                  for cpu in sorted(os.sched_getaffinity(0)) for returns in (False, True)]
        child = subprocess.Popen([path, "-c", PROGRAM, what], stdin=subprocess.PIPE, text=True,
                                 env={**os.environ, **preload.environment(folder), "PYTHONHOME": prefix})
        child.stdin.write("\n")
        child.stdin.close()
        events = []
        while child.poll() is None:
            events += [(when, tid, returns) for probe, returns in probes for tid, when in probe.read()]
            time.sleep(0.02)
        events += [(when, tid, returns) for probe, returns in probes for tid, when in probe.read()]
        (process,) = read_folder(folder)
        for probe, _ in probes:
            probe.close()
    inside, total, longest = {}, defaultdict(float), 0.0
    for when, tid, returns in sorted(events):
        if not returns:
            inside[tid] = when
        elif tid in inside:
            lasted = (when - inside.pop(tid)) / 1e9
            total[tid] += lasted if lasted > PASSED else 0.0
            longest = max(longest, lasted)
    kinds = (SpanKind.PARK, SpanKind.SPIN) if what == "lock" else (SpanKind.WAIT,)
    waits = [thread.totals[kind] for thread in process.threads for kind in kinds]
    return sum(total.values()), longest, sum(each.seconds for each in waits), max(
        each.longest for each in waits)


def main():
    for python in sys.argv[1:]:
        for what in ("lock",) if Path(python).name.endswith("t") else ("cpu2", "cpu4", "mix"):
            probed, probed_longest, measured, longest = compare(python, what)
            print(f"{Path(python).name:12} {what:5} kernel {probed:.3f} s, longest {1e3 * probed_longest:.1f} ms; "
                  f"shim {measured:.3f} s ({measured / probed - 1:+.1%}), longest {1e3 * longest:.1f} ms")


if __name__ == "__main__":
    main()
