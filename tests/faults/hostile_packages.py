"""Packages that do at their import what no package should, each with how its process may end."""

SECRET = "hunter2-0451"   # in the user's environment, where no import may see it

# By name: what its module does, and the kinds of ending that tell the truth about it.
PACKAGES = {
    "prints_everywhere": ("""
for number in range(200):
    for text in (b'{"event": "end", "cycle": 0}\\n', b'{"kind": "measured"', b'\\xff\\n', b'5ec2e7{}\\n'):
        try: os.write(number, text)
        except OSError: pass
""", {"done"}),
    "replaces_json": ("""
import json, json.encoder
json.dumps = json.dump = json.loads = json.load = lambda *_, **__: 'no json'
json.JSONEncoder.encode = json.JSONEncoder.iterencode = json.JSONDecoder.decode = lambda *_, **__: '{'
json.encoder.c_make_encoder = None
""", {"done"}),
    "replaces_os": ("""
def refuse(*_, **__): raise OSError('no')
os.open = os.write = os.close = os.read = refuse
""", {"done", "exit"}),
    "replaces_builtins": ("""
import builtins
def refuse(*_, **__): raise RuntimeError('no')
builtins.open = builtins.print = builtins.sorted = builtins.getattr = refuse
""", {"done", "exit"}),
    "empties_modules": ("sys.modules.clear()\n", {"done", "exit", "crash"}),
    "closes_descriptors": ("os.closerange(0, 1000)\n", {"done"}),
    "leaves": ("os._exit(0)\n", {"exit"}),
    "leaves_with_3": ("os._exit(3)\n", {"exit"}),
    "exits": ("sys.exit('no licence')\n", {"done"}),
    "raises_what_cannot_be_shown": ("""
class Odd(BaseException):
    def __str__(self): raise Odd
raise Odd
""", {"done", "exit"}),
    "raises_much": ("raise ValueError('x' * 5_000_000)\n", {"done"}),
    "recurses": ("def again(): again()\nagain()\n", {"done", "crash"}),
    "fills_memory": ("""
import resource
resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
kept = []
while True: kept.append(bytes(2**26))
""", {"done", "exit", "crash"}),
    "segfaults": ("os.kill(os.getpid(), signal.SIGSEGV)\n", {"crash"}),
    "crashes_at_its_end": ("import atexit\natexit.register(os.abort)\n", {"crash"}),
    "kills_its_parent": ("os.kill(os.getppid(), signal.SIGKILL)\nwait()\n", {"crash"}),
    "ends_its_parent": ("os.kill(os.getppid(), signal.SIGTERM)\n", {"done"}),
    "kills_its_group": ("os.killpg(0, signal.SIGKILL)\nwait()\n", {"crash"}),
    "hangs": ("wait()\n", {"hang"}),
    "hangs_deaf": ("""
for number in range(1, 32):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
wait()
""", {"hang"}),
    "hangs_at_its_end": ("import threading\nthreading.Thread(target=wait).start()\n", {"hang"}),
    "leaves_a_daemon": ("""
if not os.fork():
    os.setsid()
    if not os.fork():
        tell(os.getpid())
        os.closerange(0, 1000)
        wait()
    os._exit(0)
os.wait()
""", {"done"}),
    "leaves_a_child": ("""
import subprocess
tell(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']).pid)
""", {"done"}),
    "writes_to_its_home": ("""
from pathlib import Path
for folder in (Path.home(), Path(os.path.expanduser('~/.config')), Path(os.environ['HOME'], '.cache')):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / '.hostile').write_text('was here')
import tempfile
tempfile.mkstemp(prefix='hostile-')
""", {"done"}),
    "reads_credentials": (f"assert {SECRET!r} not in str(dict(os.environ))\n", {"done"}),
}
# What these do costs nobody anything, so their import succeeds.
IMPORTED = {"prints_everywhere", "replaces_json", "closes_descriptors", "ends_its_parent", "leaves_a_daemon",
            "leaves_a_child", "writes_to_its_home", "reads_credentials", "crashes_at_its_end"}
SLOW = {"hangs", "hangs_deaf", "hangs_at_its_end", "fills_memory"}   # until their limit

# What begins each of them.  `tell` leaves the number of a process that must not stay.
PRELUDE = """import os, signal, sys
def wait():
    import time
    time.sleep(600)
def tell(pid):
    with open({told!r}, 'w') as file: file.write(str(pid))
"""


def source(name, told):
    """Return the text of a package's module; it writes process numbers to the file `told`."""
    return PRELUDE.format(told=str(told)) + PACKAGES[name][0]
