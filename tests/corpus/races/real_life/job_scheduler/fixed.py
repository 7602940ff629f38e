# EXPECT: clean
"""Jobs go from state to state; cancel and run meet."""

import threading


class Job:
    def __init__(self, name):
        self.name = name
        self.state = "waiting"
        self.lock = threading.Lock()

    def run(self):
        with self.lock:
            if self.state == "cancelled":
                return
            self.state = "running"

    def cancel(self):
        with self.lock:
            self.state = "cancelled"

    def is_active(self):
        with self.lock:
            return self.state == "running"


job = Job("report")
runner = threading.Thread(target=job.run)
canceller = threading.Thread(target=job.cancel)
runner.start()
canceller.start()
active = job.is_active()
runner.join()
canceller.join()
print(job.name, active in (True, False))
