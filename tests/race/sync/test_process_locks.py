"""Locks and semaphores of multiprocessing, between the threads of one process."""

import multiprocessing
import subprocess
import sys

import pytest

from tests.conformance.builds import ROOT
from tests.patience import PATIENCE
from tests.race.sync.test_primitives import in_turn

CONTEXT = multiprocessing.get_context("spawn")
FOUND = 66     # the exit status of `gilscope race` where it has found a race
MADE = {"Lock": CONTEXT.Lock, "RLock": CONTEXT.RLock, "Condition": CONTEXT.Condition,
        "Value": lambda: CONTEXT.Value("i", 0).get_lock()}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_lock_orders_and_is_held(core, make):
    lock = make()

    def locked():
        with lock:
            core.write("x")

    def called():
        assert lock.acquire()
        core.write("x")
        lock.release()

    in_turn(locked, called, locked)
    assert not core.raced


def test_what_is_outside_of_the_lock_is_not_ordered(core):
    lock = CONTEXT.Lock()

    def locked():
        core.write("before")
        with lock:
            core.write("x")
        core.write("after")

    in_turn(locked, locked)
    assert core.raced == {"before", "after"}


def test_recursive_lock_is_held_until_the_last_release(core):
    lock = CONTEXT.RLock()

    def locked():
        with lock:
            with lock:
                pass
            core.write("x")

    in_turn(locked, locked)
    assert not core.raced


def test_release_that_fails_leaves_the_lock_as_it_is(core):
    lock, semaphore = CONTEXT.Lock(), CONTEXT.BoundedSemaphore(2)
    for each in (lock, semaphore):
        with pytest.raises(ValueError, match="too many times"):
            each.release()

    def locked():
        with lock:
            core.write("x")

    in_turn(locked, locked)
    assert not core.raced


def test_acquire_that_fails_orders_nothing(core):
    lock = CONTEXT.Lock()
    lock.acquire()
    in_turn(*[lambda: (core.write("x"), lock.acquire(block=False), core.write("y"))] * 2)
    assert core.raced == {"x", "y"}
    lock.release()


def test_semaphore_orders_an_acquire_after_a_release(core):
    semaphore = CONTEXT.Semaphore(0)
    in_turn(lambda: (core.write("x"), semaphore.release()), lambda: (semaphore.acquire(), core.write("x")))
    assert not core.raced


def test_permits_that_were_there_order_nothing(core):
    semaphore = CONTEXT.Semaphore(2)

    def permitted():
        with semaphore:
            core.write("x")

    in_turn(permitted, permitted)
    assert core.raced == {"x"}


def test_readers_of_a_queue_are_not_ordered_by_its_lock(core):
    queue = CONTEXT.SimpleQueue()
    for _ in range(2):
        queue.put(1)
    in_turn(*[lambda: (core.write("x"), queue.get())] * 2)
    assert core.raced == {"x"}
    queue.close()


PROGRAM = """
import multiprocessing, threading
lock = multiprocessing.{kind}()
total = 0

def add():
    global total
    for _ in range(100):
        with lock{or_not}:
            total += 1

def main():
    threads = [threading.Thread(target=add) for _ in range(2)]
    for each in threads: each.start()
    for each in threads: each.join()
    context = multiprocessing.get_context("{method}")
    shared = lock if "{method}" == "fork" else context.Lock()
    child = context.Process(target=child_adds, args=(shared,))
    child.start(); child.join()
    assert child.exitcode == 0, child.exitcode
    print(total)

def child_adds(lock):
    with lock:
        pass

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize(("kind", "or_not", "status"), [
    ("Lock", "", 0), ("RLock", "", 0), ("Lock", " if 0 else open(__file__)", FOUND)])
def test_whole_program(tmp_path, kind, or_not, status, method):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(kind=kind, or_not=or_not, method=method))
    done = subprocess.run([sys.executable, "-m", "gilscope", "race", program], cwd=ROOT, text=True,
                          timeout=PATIENCE, check=False, capture_output=True)
    assert done.returncode == status, done.stdout + done.stderr
    assert ("global total" in done.stderr) == (status == FOUND)
