# EXPECT: clean
"""Copied and cleared under the lock of who adds; or taken one by one, which loses nothing."""

import threading

events, totals, waiting, sent = [], {}, ["first"], []
lock = threading.Lock()
ready = threading.Barrier(2)


def add():
    ready.wait()
    for number in range(20):
        events.append(number)
        with lock:
            totals[number] = number
            waiting.append(number)


def flush():
    while events:
        sent.append(events.pop())
    with lock:
        copied = dict(totals)
        totals.clear()
        queued = waiting[:]
        waiting.clear()
    sent.extend([*copied, *queued])


def flush_all():
    ready.wait()
    for _ in range(20):
        flush()


threads = [threading.Thread(target=target) for target in (add, flush_all)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("flushed")
