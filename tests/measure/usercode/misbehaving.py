"""A user's functions that do what they should not."""


import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


def double(number):
    return 2 * number


def must_be_one(results):
    assert results == [1], "not one"


def fail_to_check(results):
    raise LookupError("no reference")


def segfault(_):
    import ctypes  # does not load in an interpreter of its own on 3.12

    ctypes.string_at(0)


def abort(_):
    os.abort()


def wait_forever(_):
    threading.Event().wait()


def say_and_wait(_):
    print("waiting", flush=True)
    threading.Event().wait()


def read_input(_):
    print(repr(sys.stdin.read()), flush=True)


def spin_forever(_):
    while True:
        pass


def hang_while_making():
    threading.Event().wait()


def kill_itself(_):
    os.kill(os.getpid(), signal.SIGKILL)


def kill_worker(_):
    assert multiprocessing.parent_process() is not None
    os.kill(os.getpid(), signal.SIGKILL)


def leave(code):
    sys.exit(code)


def leave_at_once(code):
    os._exit(code)


def complain(_):
    raise ValueError("first line\nsecond line")


def complain_without_words(_):
    raise ValueError


def pretend_ctrl_c(_):
    raise KeyboardInterrupt


def eat_memory(_):
    import resource

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**26, used + 2**26))
    return len(bytearray(2**30))


def talk(number):
    print("x" * number, flush=True)
    return number


def talk_binary(_):
    os.write(1, b"\xff\xfe\x00 not text \x80\n")


def print_forever(_):
    while True:
        print("x" * 2**16, flush=True)


def leave_process_behind(_):
    subprocess.Popen(SLEEPER)


def leave_deaf_process_behind(_):
    subprocess.Popen(["sh", "-c", "trap '' HUP INT TERM; sleep 600 & wait"], process_group=0)


def leave_daemon_thread_behind(_):
    threading.Thread(target=threading.Event().wait, daemon=True).start()


def leave_thread_behind(_):
    threading.Thread(target=threading.Event().wait).start()


def fail_in_teardown(_):
    from gilscope.runners import threads
    from gilscope.runners.errors import TeardownError

    def fail(*_):
        raise TeardownError("a worker did not end")

    threads.close_threads = fail


def die_at_exit(_):
    import atexit

    atexit.register(os.abort)


def change_folder(_):
    os.chdir("/")
