"""Functions that do what no measured function should, where they run in one model; in all others they only add up.

What each comes to in that model is its own; the cells beside it must have their values all the same.
"""

import textwrap
from dataclasses import dataclass

THREADS, PROCESSES = "threads", "processes-spawn"


@dataclass(frozen=True, slots=True)
class Hostile:
    """What a function does in the model that it is hostile in, once in each process."""

    text: str                    # its body; what it returns is the result, None stands for the right one
    model: str = THREADS
    everywhere: bool = False     # it takes something from all cells: what was measured before it must be there still
    codes: frozenset[int] = frozenset({0, 3})   # of the whole run
    slow: bool = False           # it ends by a time limit


def _of(text, **others):
    return Hostile(textwrap.dedent(text).strip() + "\n", **others)


HANGS = "import time\nwhile True: time.sleep(60)"
FUNCTIONS = {
    # It ends the process.
    "sys_exit": _of("sys.exit(0)"),
    "sys_exit_words": _of("sys.exit('no licence')"),
    "raises_system_exit": _of("class Leave(SystemExit): pass\nraise Leave(7)"),
    "os_exit_0": _of("os._exit(0)"),
    "os_exit_3": _of("os._exit(3)"),
    "kill_9": _of("os.kill(os.getpid(), signal.SIGKILL)"),
    "terminate": _of("os.kill(os.getpid(), signal.SIGTERM)"),
    "interrupt": _of("os.kill(os.getpid(), signal.SIGINT)"),
    "segfault": _of("import ctypes\nctypes.string_at(0)"),
    "abort": _of("os.abort()"),
    "kill_own_group": _of("os.killpg(0, signal.SIGKILL)"),
    "alarm": _of("signal.setitimer(signal.ITIMER_REAL, 0.001)\nimport time\ntime.sleep(1)"),
    "exit_in_a_worker": _of("os._exit(5)", model=PROCESSES, slow=True),
    "kill_a_worker": _of("os.kill(os.getpid(), signal.SIGKILL)", model=PROCESSES, slow=True),
    "terminate_the_parent": _of("os.kill(os.getppid(), signal.SIGTERM)\n" + HANGS,
                                everywhere=True, codes=frozenset({143}), slow=True),
    # It does not end.
    "stop": _of("os.kill(os.getpid(), signal.SIGSTOP)", slow=True),
    "hang": _of(HANGS, slow=True),
    "hang_deaf": _of("import faulthandler\nfaulthandler.cancel_dump_traceback_later()\n" + HANGS, slow=True),
    "hang_busy": _of("while True: pass", slow=True),
    "deadlock": _of("lock = threading.Lock()\nlock.acquire()\nlock.acquire()", slow=True),
    "hang_at_exit": _of("import atexit, time\natexit.register(time.sleep, 600)", slow=True),
    "thread_left_running": _of("import time\nthreading.Thread(target=time.sleep, args=(600,)).start()", slow=True),
    "daemon_left_running": _of("import time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()"),
    # It has children.
    "fork": _of("os.fork()"),
    "fork_and_exit": _of("if not os.fork(): os._exit(0)\nos.wait()"),
    "fork_and_hang": _of("import time\nif not os.fork(): time.sleep(600)"),
    "fork_often": _of("for _ in range(20):\n    if not os.fork(): os._exit(0)"),
    "child_left_running": _of("import subprocess\nsubprocess.Popen([sys.executable, '-c', 'import time; "
                              "time.sleep(600)'])"),
    # Its end is not quiet.
    "raises_at_exit": _of("import atexit\natexit.register(lambda: 1 / 0)"),
    "exits_at_exit": _of("import atexit\natexit.register(os._exit, 9)"),
    "crashes_at_exit": _of("import atexit\natexit.register(os.abort)"),
    # Its exceptions.
    "raises": _of("raise LookupError('gone')"),
    "raises_base": _of("raise BaseException('all')"),
    "raises_interrupt": _of("raise KeyboardInterrupt"),
    "raises_much": _of("raise ValueError('x' * 5_000_000)"),
    "raises_what_cannot_be_shown": _of("""
        class Odd(Exception):
            def __str__(self): raise Odd
            __repr__ = __str__
        raise Odd
        """),
    "raises_what_cannot_travel": _of("""
        class Odd(Exception):
            def __init__(self, one, two): super().__init__(one)
        raise Odd(1, 2)
        """, model=PROCESSES),
    "raises_controls": _of(r"raise ValueError('\x1b[31m\n::error file=x.py::injected\u202e')"),
    "recurses": _of("def again(): again()\nagain()"),
    "recurses_in_a_limit": _of("sys.setrecursionlimit(60)"),
    # It closes, prints and replaces.
    "closes_descriptors": _of("os.closerange(3, 1000)"),
    "closes_all_descriptors": _of("os.closerange(0, 1000)"),
    "prints_json": _of(r"""
        for number in range(200):
            try: os.write(number, b'{"kind": "measured", "values": [1]}\n{"event": "end"}\n')
            except OSError: pass
        """),
    "prints_much": _of("for _ in range(80): os.write(1, b'x' * 2**20)"),
    "no_stdout": _of("sys.stdout = sys.stderr = None"),
    "replaces_json": _of("import json\njson.dumps = json.loads = json.dump = json.load = lambda *_, **__: '{'"),
    "replaces_clocks": _of("import time\ntime.perf_counter = time.process_time = time.monotonic = lambda: 0.0"),
    "clocks_backwards": _of("""
        import time
        real = time.perf_counter
        time.perf_counter = lambda: -real()
        """),
    "replaces_open": _of("import builtins\ndef refuse(*_, **__): raise OSError('no')\nbuiltins.open = refuse"),
    "replaces_os": _of("def refuse(*_, **__): raise OSError('no')\nos.write = os.open = os.close = os.read = refuse"),
    "replaces_random": _of("import random\nrandom.seed(0)\nrandom.random = random.shuffle = None"),
    "empties_modules": _of("sys.modules.clear()"),
    "empties_environment": _of("os.environ.clear()"),
    "traces": _of("def trace(*_): raise RuntimeError('no')\nthreading.settrace(trace)\nsys.settrace(trace)"),
    "profiles": _of("def profile(*_): raise RuntimeError('no')\nsys.setprofile(profile)"),
    # It changes where it runs.
    "changes_folder": _of("os.chdir('/')"),
    "removes_its_folder": _of("import tempfile\nplace = tempfile.mkdtemp()\nos.chdir(place)\nos.rmdir(place)"),
    "removes_temporary_files": _of("import shutil\nshutil.rmtree(os.environ['TMPDIR'], ignore_errors=True)"),
    "unlinks_its_module": _of("os.unlink(__file__)", everywhere=True),
    "ignores_signals": _of("""
        for number in range(1, 32):
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        """),
    "limits_cpu": _of("import resource\nresource.setrlimit(resource.RLIMIT_CPU, (0, 1))\nwhile True: pass", slow=True),
    "limits_memory": _of("import resource\nresource.setrlimit(resource.RLIMIT_AS, (2**20, 2**20))"),
    "limits_files": _of("import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))"),
    "limits_file_size": _of("import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"),
    "limits_processes": _of("import resource\nresource.setrlimit(resource.RLIMIT_NPROC, (0, 0))"),
    "switches_rarely": _of("sys.setswitchinterval(100)"),
    "pins_itself": _of("os.sched_setaffinity(0, {0})"),
    # Its results.
    "result_that_lies": _of("""
        class Liar(int):
            def __eq__(self, other): raise RuntimeError('no')
            __ne__ = __eq__
            __hash__ = None
            def __bool__(self): raise RuntimeError('no')
        return Liar(1)
        """),
    "result_that_cannot_be_shown": _of("""
        class Odd:
            def __repr__(self): raise RuntimeError('no')
        return Odd()
        """),
    "result_that_cannot_be_pickled": _of("return lambda: 1", model=PROCESSES),
    "result_that_exits_when_unpickled": _of("""
        class Leaves:
            def __reduce__(self): return os._exit, (4,)
        return Leaves()
        """, model=PROCESSES),
    "result_of_64_mib": _of("return b'x' * 2**26", model=PROCESSES),
    "result_in_itself": _of("found = []\nfound.append(found)\nreturn found", model=PROCESSES),
    "generator": _of("return (each for each in range(3))"),
}

MODULE = """
import os, signal, sys, threading
from multiprocessing import parent_process

_did = []

def work(number):
    if {here}:
        if not _did:
            _did.append(1)
            found = hostile()
            if found is not None:
                return found
    return sum(range(number))

def hostile():
{body}
"""
HERE = {THREADS: "threading.current_thread() is not threading.main_thread()", PROCESSES: "parent_process() is not None"}


def source(name):
    """Return the text of the module with the function `work`, hostile as `name` says."""
    hostile = FUNCTIONS[name]
    return MODULE.format(here=HERE[hostile.model], body=textwrap.indent(hostile.text, "    "))
