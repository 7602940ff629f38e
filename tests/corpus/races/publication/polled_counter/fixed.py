# EXPECT: clean
# EXPECT-NOTE: the number only grows | Run.done | 19, 26
"""A counter is polled until all have counted: what they stored before is there then."""

import threading
import time


class Run:
    def __init__(self):
        self.lock = threading.Lock()
        self.done = 0
        self.results = {}

    def work(self, number):
        with self.lock:
            self.results[number] = number * number
        with self.lock:
            self.done += 1


run = Run()
threads = [threading.Thread(target=run.work, args=(number,)) for number in range(3)]
for thread in threads:
    thread.start()
while run.done < 3:
    time.sleep(0.001)
results, run.results = run.results, {}
print(run.done, sum(results.values()))
for thread in threads:
    thread.join()
