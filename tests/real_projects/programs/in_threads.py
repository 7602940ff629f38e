"""Run a function in four threads, which begin together."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

THREADS = 4


def in_threads(function, rounds=200):
    """Call the function with the numbers of the thread and of the round."""
    begin = Barrier(THREADS)

    def work(thread):
        begin.wait()
        for turn in range(rounds):
            function(thread, turn)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
