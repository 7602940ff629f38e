# EXPECT: iteration during change | *locks_of* | 10, 14
"""any() with a generator expression over a dict; the repair looks at a snapshot of its keys."""

import threading

locks_of = {"a.txt": "ann"}


def lock_file(name, user):
    locks_of[name] = user


def somebody_locks(suffix, out):
    out.append(any(name.endswith(suffix) for name in locks_of))


answers = []
locking = threading.Thread(target=lock_file, args=("b.txt", "ben"))
asking = threading.Thread(target=somebody_locks, args=(".pdf", answers))
locking.start()
asking.start()
locking.join()
asking.join()
print(sorted(locks_of), answers in ([], [False]))
