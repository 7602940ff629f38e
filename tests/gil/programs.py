"""Programs whose waits are known by how they are made."""

HELD = """
# One C call of the main thread keeps the GIL; a thread that slept until the middle of it waits for the rest.
import threading, time

def sleeper():
    ready.set()
    begin = time.monotonic_ns()
    time.sleep(0.1)
    woken = time.monotonic_ns()
    print((woken - begin) / 1e9 - 0.1)

ready = threading.Event()
thread = threading.Thread(target=sleeper)
thread.start()
ready.wait()
end = time.monotonic() + 0.1
while time.monotonic() < end - 0.08:
    time.sleep(0.001)    # the sleeper sleeps by now
sum(range(int({count})))
thread.join()
"""

SPIN = """
import sys, threading, time

def spin():
    while time.monotonic() < end:
        pass

count = int(sys.argv[1])
end = time.monotonic() + 0.5
threads = [threading.Thread(target=spin) for _ in range(count)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

SLEEP = """
import threading, time
threads = [threading.Thread(target=time.sleep, args=(0.3,)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

LOCK = """
# The main thread has a lock for 0.3 s; the other asks for it at once.
import threading, time

def asker():
    asking.set()
    begin = time.monotonic_ns()
    with lock:
        print((time.monotonic_ns() - begin) / 1e9)

lock = threading.Lock()
asking = threading.Event()
with lock:
    thread = threading.Thread(target=asker)
    thread.start()
    asking.wait()
    time.sleep(0.3)
thread.join()
"""

SORT = """
# Sorting a list keeps its critical section to the end; the other thread appends to it meanwhile.
import random, threading, time

def appender():
    while not sorting:
        pass
    time.sleep(0.01)
    begin = time.monotonic_ns()
    numbers.append(0)
    print((time.monotonic_ns() - begin) / 1e9)

sorting = False
numbers = [random.random() for _ in range(500000)]
thread = threading.Thread(target=appender)
thread.start()
sorting = True
numbers.sort()
thread.join()
"""

KILLED = """
import os, signal, threading, time

def spin():
    while True:
        pass

for _ in range(2):
    threading.Thread(target=spin, daemon=True).start()
time.sleep(0.3)
os.kill(os.getpid(), signal.SIGKILL)
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
import threading, time
def spin():
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        pass
threads = [threading.Thread(target=spin) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
''')
_interpreters.destroy(number)
"""

MANY = """
import threading
lock = threading.Lock()
lock.acquire()
for _ in range(1000):
    lock.acquire(timeout=1e-5)
"""

ALONE = """
import time
for _ in range(20000):
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
