# EXPECT: lost update | *events | 16, 23, 24
# EXPECT: lost update | *totals | 17, 25, 26
# EXPECT: lost update | *waiting | 19, 28, 30 | atomicity
"""A buffer is copied and then cleared: what is added in between is in neither."""

import threading

events, totals, waiting, sent = [], {}, ["first"], []
lock = threading.Lock()
ready = threading.Barrier(2)


def add():
    ready.wait()
    for number in range(20):
        events.append(number)
        totals[number] = number
        with lock:
            waiting.append(number)


def flush():
    batch = events[:]
    events.clear()
    copied = dict(totals)
    totals.clear()
    with lock:
        queued = list(waiting)
    with lock:
        waiting.clear()
    sent.extend([*batch, *copied, *queued])


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
