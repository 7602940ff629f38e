"""The logical clock: each event has a tick of its own."""
import ctypes
import subprocess
from pathlib import Path

_here = Path(__file__).parent
_path = _here / "libtick.so"
if not _path.exists():              # from a checkout
    subprocess.check_call(["gcc", "-shared", "-fPIC", "-O1",
                           str(_here.parent / "csrc/tick.c"), "-o", str(_path)])
_lib = ctypes.PyDLL(str(_path))     # PyDLL keeps the GIL, so the clock needs no lock
_lib.tick.restype = ctypes.c_long
_lib.ticks_so_far.restype = ctypes.c_long

tick = _lib.tick
ticks_so_far = _lib.ticks_so_far
