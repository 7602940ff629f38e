# EXPECT: unsynchronised read/write | Run.last | 19, 26
"""A counter is polled until all have counted; what each stores after it has counted is not there yet."""

import threading
import time


class Run:
    def __init__(self):
        self.lock = threading.Lock()
        self.done = 0
        self.last = None

    def work(self, number):
        number += len(threading.enumerate()) * 0
        with self.lock:
            self.done += 1
        # too late: who polls may go on already
        self.last = number


run = Run()
threading.Thread(target=run.work, args=(1,)).start()
while run.done < 1:
    time.sleep(0.001)
last = run.last
for thread in threading.enumerate():
    if thread is not threading.current_thread():
        thread.join()
print(run.done)
