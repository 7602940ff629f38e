# EXPECT: clean
import threading


class Baton:
    """Taken by one thread, given back by another."""

    def __init__(self):
        self.lock = threading.Lock()
        self.laps = 0
        self.runners = []


def runner(baton, name):
    # the baton's lock was taken for us by the thread that started us
    baton.laps += 1
    baton.runners.append(name)
    baton.lock.release()


baton = Baton()
threads = []
for name in ("ann", "bob", "cyd"):
    baton.lock.acquire()
    baton.laps *= 2
    thread = threading.Thread(target=runner, args=(baton, name))
    thread.start()
    threads.append(thread)
baton.lock.acquire()
print(baton.laps, baton.runners)
baton.lock.release()
for thread in threads:
    thread.join()
