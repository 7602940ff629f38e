# EXPECT: clean
"""A global is tested and divided by under the lock with which another thread resets it."""

import threading

limit = 10
lock = threading.Lock()
done = threading.Event()
shares = []


def reset():
    done.wait()
    global limit
    with lock:
        limit = 0


def share(total):
    with lock:
        shares.append(total / limit if limit > 0 else total)


resetting = threading.Thread(target=reset)
sharing = threading.Thread(target=share, args=(20,))
resetting.start()
sharing.start()
done.set()
resetting.join()
sharing.join()
print(len(shares) < 2, limit)
