# EXPECT: lost update | *tally* | 17
import threading
from concurrent.futures import ThreadPoolExecutor

tally = {"bytes": 0}
start = threading.Event()
together = threading.Barrier(2)


def fetch(size):
    start.wait()
    together.wait()
    return b"x" * size


def arrived(future):
    tally["bytes"] += len(future.result())


with ThreadPoolExecutor(max_workers=2) as pool:
    futures = [pool.submit(fetch, size) for size in (10, 20)]
    for future in futures:
        future.add_done_callback(arrived)
    start.set()
print([len(f.result()) for f in futures])
