"""Programs in each of which one thread, at lines that are marked, has the GIL while another one asks for it.

The other thread gives the GIL away and wants it back, from before the hold begins until after it has ended.
"""

AROUND = """
import threading, time

def ask():
    while not ended.is_set():
        time.sleep(0)           # gives the GIL away for a moment
        asking.set()

asking, ended = threading.Event(), threading.Event()
asker = threading.Thread(target=ask, name="asker")

{program}

asker.start()
{start}
ended.set()
asker.join()
"""
IN_A_THREAD = 'holder = threading.Thread(target=hold, name="holder")\nholder.start()\nholder.join()'
IN_MAIN = "hold()"
IN_A_POOL = """from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(1, "pool") as pool:
    pool.submit(hold).result()"""

# Name -> (the holder's name, how it is started, the program).  `# here` marks the lines that have the GIL.
PROGRAMS = {
    "regex": ("holder", IN_A_THREAD, """
import re

def hold():
    asking.wait()
    re.match("(a+)+$", "a" * 23 + "b")  # here
"""),
    "sorted": ("holder", IN_A_THREAD, """
import random
numbers = [random.random() for _ in range(400_000)]

def hold():
    asking.wait()
    sorted(numbers)  # here
"""),
    "json": ("holder", IN_A_THREAD, """
import json
text = "[" + "[1, 2.5], " * 300_000 + "0]"

def hold():
    asking.wait()
    json.loads(text)  # here
"""),
    "int to str": ("holder", IN_A_THREAD, """
import sys
sys.set_int_max_str_digits(0)
number = 7 ** 150_000

def hold():
    asking.wait()
    for _ in range(3):
        str(number)  # here
"""),
    "hashes of small pieces": ("holder", IN_A_THREAD, """
import hashlib
piece = b"x" * 1000

def hold():
    asking.wait()
    digest = hashlib.sha256()
    for _ in range(150_000):  # here
        digest.update(piece)  # here
"""),
    "foreign call that keeps it": ("holder", IN_A_THREAD, """
import ctypes
library = ctypes.PyDLL(None)

def hold():
    asking.wait()
    library.usleep(200_000)  # here
"""),
    "operator without a call": ("holder", IN_A_THREAD, """
base = 3

def hold():
    asking.wait()
    power = base ** 500_000  # here
    return power
"""),
    "pickle in main": ("main", IN_MAIN, """
import pickle
rows = [{"name": str(number), "value": [number]} for number in range(200_000)]

def hold():
    asking.wait()
    pickle.dumps(rows)  # here
"""),
    "loop": ("holder", IN_A_THREAD, """
def hold():
    asking.wait()
    total = 0
    for number in range(4_000_000):  # here
        total += number  # here
"""),
    "loop in main": ("main", IN_MAIN, """
def hold():
    asking.wait()
    left = 4_000_000
    while left:  # here
        left -= 1  # here
"""),
    "library in Python": ("holder", IN_A_THREAD, """
import difflib
words = [str(number % 97) for number in range(3000)]

def hold():
    asking.wait()
    difflib.SequenceMatcher(None, words, words[::-1], autojunk=False).ratio()  # here
"""),
    "worker of a pool": ("pool_0", IN_A_POOL, """
def step(number):  # here
    return number * number  # here

def hold():
    asking.wait()
    return sum(map(step, range(2_000_000)))  # here
"""),
}

PAUSES = """
import gc, threading

def work():
    while not ended.is_set():
        working.set()

def collect():
    working.wait()
    for _ in range(5):
        gc.collect()  # here
    ended.set()

objects, working, ended = [[number] for number in range(100_000)], threading.Event(), threading.Event()
threads = [threading.Thread(target=each, name=each.__name__) for each in (work, collect)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

# Threads give the GIL away for a lock, and compute when they have it.
LOCKED = """
import threading

def count():
    global total
    for _ in range(100_000):
        with lock:
            for _ in range(10):
                total += 1

total, lock = 0, threading.Lock()
threads = [threading.Thread(target=count) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

CONVOY = """
import socket, threading

def compute():
    left = 30_000_000
    while left:
        left -= 1
    ended.set()

def send():
    with near:
        while not ended.is_set():
            near.sendall(b"x")
            near.recv(1)

def answer():
    with far:
        while letter := far.recv(1):
            far.sendall(letter)

(near, far), ended = socket.socketpair(), threading.Event()
threads = [threading.Thread(target=each, name=each.__name__) for each in (compute, send, answer)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def source_of(name):
    """Return the planted program, the holder's name and the lines that have the GIL."""
    holder, start, program = PROGRAMS[name]
    source = AROUND.format(program=program, start=start)
    return source, holder, {number for number, line in enumerate(source.splitlines(), 1) if "# here" in line}
