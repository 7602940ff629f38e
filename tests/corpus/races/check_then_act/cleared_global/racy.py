# EXPECT: check-then-act | *limit | 14, 18
"""A global is tested and divided by in one expression, while another thread resets it to zero."""

import threading

limit = 10
done = threading.Event()
shares = []


def reset():
    done.wait()
    global limit
    limit = 0


def share(total):
    shares.append(total / limit if limit > 0 else total)


resetting = threading.Thread(target=reset)
sharing = threading.Thread(target=share, args=(20,))
resetting.start()
sharing.start()
done.set()
resetting.join()
sharing.join()
print(len(shares) < 2, limit)
