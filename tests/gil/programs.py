"""Programs whose waits are known by how they are made."""

HELD = """
# One C call of the main thread keeps the GIL from its first clock to its second; another thread wants it meanwhile.
import ctypes, functools, operator, threading, time

class Time(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]

def asker():
    global got
    while len(kept) < 3:
        clock(time.CLOCK_MONOTONIC, ctypes.byref(asked))   # foreign: wants the GIL back once it knows the time
        begun.set()
    got = time.monotonic_ns()

clock, asked, kept, begun = ctypes.CDLL(None).clock_gettime, Time(), [], threading.Event()
thread = threading.Thread(target=asker)
thread.start()
begun.wait()
call = functools.partial(sum, range(int({count})))
kept.extend(map(operator.call, (time.monotonic_ns, call, time.monotonic_ns)))
thread.join()
print(kept[0], asked.seconds * 10**9 + asked.nanoseconds, kept[2], got)
"""

# Threads that take turns: however busy the machine is, the GIL has changed hands dozens of times when they end.
SPIN = """
import sys, threading, time

def spin(number):
    global last, turns
    together.wait()
    while turns < 40 or time.monotonic() < end:
        if last != number:
            last, turns = number, turns + 1

def begin():
    global end
    end = time.monotonic() + 0.5

count, last, turns = int(sys.argv[1]), None, 0
together = threading.Barrier(count, begin)
threads = [threading.Thread(target=spin, args=(number,)) for number in range(count)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
SPIN_LINES = {4, 6, 7, 8, 9}     # a thread may also lose the GIL as it enters the function

SLEEP = """
# Four threads sleep for 0.3 s while the main thread waits for their ends, from the one nanosecond
# printed to the other.
import threading, time

def sleeper():
    joining.wait()
    time.sleep(0.3)

joining = threading.Event()
threads = [threading.Thread(target=sleeper) for _ in range(4)]
for thread in threads:
    thread.start()
joining.set()
begin = time.monotonic_ns()
for thread in threads:
    thread.join()
print(begin, time.monotonic_ns())
"""

LOCK = """
# The main thread has a lock; the other asks for it, and 0.3 s later it is released.  Printed: the nanoseconds of the
# asking, the release and the getting.
import threading, time

def asker():
    global begin
    begin = time.monotonic_ns()
    with lock:
        print(begin, released, time.monotonic_ns())

lock, begin = threading.Lock(), None
with lock:
    thread = threading.Thread(target=asker)
    thread.start()
    while begin is None:
        time.sleep(0.001)
    time.sleep(0.3)
    released = time.monotonic_ns()
thread.join()
"""
LOCK_LINE = 9

REFUSED = """
# A thread asks for a lock that it does not get.
import threading

def asker():
    lock.acquire(timeout=0.01)

lock = threading.Lock()
with lock:
    thread = threading.Thread(target=asker)
    thread.start()
    thread.join()
"""

SORT = """
# Sorting a list keeps its critical section to the end; the other thread appends to it meanwhile, from the one
# nanosecond printed to the other.
import random, threading, time

def appender():
    while not sorting:
        pass
    time.sleep(0.01)
    begin = time.monotonic_ns()
    numbers.append(0)
    print(begin, time.monotonic_ns())

sorting = False
numbers = [random.random() for _ in range(500000)]
thread = threading.Thread(target=appender)
thread.start()
sorting = True
numbers.sort()
thread.join()
"""

KILLED = """
# Two threads take turns until the process is killed, after the twentieth turn; it prints how long that took.
import os, signal, threading, time

def spin(number):
    global last, turns, lasted
    while True:
        if last != number:
            last, turns = number, turns + 1
            if turns >= 20 and not lasted and not number:
                lasted = time.monotonic() - begin
                enough.set()

last, turns, lasted, enough, begin = None, 0, 0, threading.Event(), time.monotonic()
for number in range(2):
    threading.Thread(target=spin, args=(number,), daemon=True).start()
enough.wait()
print(lasted, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""

KILLER = """
# A child is sent the signal that is given; if it survives that, it ends without a record of its end.
import os, subprocess, sys

SOURCE = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read(); os._exit(0)"
child = subprocess.Popen([sys.executable, "-c", SOURCE],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
with child:
    print(int(child.stdout.readline()))
    os.kill(child.pid, int(sys.argv[1]))
    child.stdin.close()
"""

FORKED = """
import os, threading, time

def spin():
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        pass

def two():
    threads = [threading.Thread(target=spin) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

child = os.fork()
two()
if child:
    os.waitpid(child, 0)
    print(os.getpid(), child)
"""

OWN_GIL = """
try:
    import _interpreters
    config = "isolated"
except ImportError:
    import _xxsubinterpreters as _interpreters
number = _interpreters.create()
_interpreters.run_string(number, '''
import threading
last, turns = None, 0
def spin(number):
    global last, turns
    while turns < 40:
        if last != number:
            last, turns = number, turns + 1
threads = [threading.Thread(target=spin, args=(number,)) for number in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
''')
_interpreters.destroy(number)
"""

MANY_TIMES = 600    # on a busy machine each may take a tenth of a second
MANY = """
# The nanosecond before the last of its waits is printed.
import threading, time
lock = threading.Lock()
lock.acquire()
for _ in range(MANY_TIMES):
    lock.acquire(timeout=1e-5)
last = time.monotonic_ns()
lock.acquire(timeout=0.001)
print(last)
""".replace("MANY_TIMES", str(MANY_TIMES))

ALONE = """
import time
for _ in range(5000):
    time.sleep(0)
"""

CHOSEN = """
# Recording begins and ends where the program says so.
import ctypes, os, sys, threading, time

def spin():
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        pass

def two():
    threads = [threading.Thread(target=spin) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

shim = ctypes.PyDLL(None)
two()
begin = time.monotonic()
print(shim.gilscope_gil_start(os.fsencode(sys.argv[1])))
two()
shim.gilscope_gil_stop()
print(time.monotonic() - begin)
two()
"""

CHOSEN_FORK = """
# A child of a program that has begun to record by itself is not recorded, and leaves its parent's file alone.
import ctypes, os, sys, threading

shim = ctypes.PyDLL(None)
shim.gilscope_gil_start(os.fsencode(sys.argv[1]))
child = os.fork()
if not child:
    for _ in range(20):
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()
else:
    os.waitpid(child, 0)
"""

NAMED = """
# Threads of all kinds, each of which has its name in `threading` when it is started.
import _thread, concurrent.futures, threading

class Own(threading.Thread):
    def run(self):
        met.wait()

def meet():
    met.wait()

met = threading.Barrier(5)
started = [threading.Thread(target=meet, name="Z\u00e4hler, dessen Name lang ist, 1"), Own(), Own(name="x" * 300)]
for thread in started:
    thread.start()
ended = threading.Event()
_thread.start_new_thread(lambda: (met.wait(), ended.set()), ())
with concurrent.futures.ThreadPoolExecutor(1, "pool of one") as pool:
    pool.submit(meet).result()
for thread in started:
    thread.join()
ended.wait()
print(started[1].name)
"""

IMPORTING = """
# Two threads that import extension modules of the standard library, one after the other.
import importlib.util, sys, threading

def is_extension(name):
    spec = importlib.util.find_spec(name)
    return spec is not None and str(spec.origin).endswith(".so")

names = ["_decimal", "_elementtree", "_zoneinfo", "_queue", "_bisect", "_heapq", "_csv", "_json", "_pickle"]
for name in [name for name in names if name not in sys.modules and is_extension(name)][:2]:
    thread = threading.Thread(target=importlib.import_module, args=(name,))
    thread.start()
    thread.join()
"""

STARTS = """
# The main thread waits for the start of each of many threads.
import threading

for _ in range(200):
    threading.Thread(target=int).start()
"""

EVENTS = """
# Two threads wait for each other's events.
import threading

def answer(mine, other):
    for _ in range(3000):
        mine.wait()    # here
        mine.clear()
        other.set()

first, second = threading.Event(), threading.Event()
threads = [threading.Thread(target=answer, args=each) for each in ((first, second), (second, first))]
for thread in threads:
    thread.start()
first.set()
for thread in threads:
    thread.join()
"""
EVENTS_LINE = 7

SIMPLE_QUEUE = """
# A thread waits for what the main one puts after 0.1 s; a Python that has the queue built in prints so.
import queue, sys, threading, time

def consume():
    items.get()    # here

items = queue.SimpleQueue()
thread = threading.Thread(target=consume)
thread.start()
time.sleep(0.1)
items.put(None)
thread.join()
print("_queue" in sys.builtin_module_names)
"""

# The main thread spins while a function comes back from many short sleeps, and must wait for the GIL.
_SPINNING_MAIN = """
import gc, threading, time

def run(function):
    thread = threading.Thread(target=call, args=(function,))
    thread.start()
    while thread.is_alive():
        pass

def call(function):
    function()
"""

# Two files' code, one after the other: the name of the second file has the address that the first one's had.  The
# allocator may give a freed address to somebody else, so that is tried with many a first file.  Names of files are
# interned: the second code gets its name afterwards, as a name of the same text would be the older object.
REUSED = _SPINNING_MAIN + """
BODY = "import time\\ndef {name}():\\n for _ in range(40):\\n  time.sleep(0.001)\\n"

def load(folder, name):
    path = "/".join(("", folder, "module.py"))
    there = {}
    exec(compile(BODY.format(name=name), path, "exec"), there)
    return there.pop(name)

def at(address):
    others = []
    while len(others) < 2000:
        path = "/".join(("", "aa/of_my_program", "module.py"))
        if id(path) == address:
            return path
        others.append(path)

second = load("aa", "of_program")
path = None
for _ in range(100):
    first = load("aa/site-packages", "of_package")
    run(first)
    address = id(first.__code__.co_filename)
    first = None
    gc.collect()
    if path := at(address):
        second.__code__ = second.__code__.replace(co_filename=path)
        break
print(id(second.__code__.co_filename) == address)
run(second)
"""

# A function whose location table has more than 16 KiB waits in its last line.
LONG_FUNCTION = _SPINNING_MAIN + """
def wait():
    for _ in range(40):
        time.sleep(0.001)

lines = "".join(f" x{number} = {number} + len(str({number}))\\n" for number in range(3000))
there = {"wait": wait}
exec(compile(f"def long():\\n{lines} for _ in range(40):\\n  sleep(0.001)\\n", "long.py", "exec"), there)
there["sleep"] = time.sleep
print(len(there["long"].__code__.co_linetable))
run(there["long"])
"""
