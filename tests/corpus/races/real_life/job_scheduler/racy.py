# EXPECT: unsynchronised read/write or lost update | Job.state | 13, 16, 19
"""Jobs go from state to state; cancel and run meet."""

import threading


class Job:
    def __init__(self, name):
        self.name = name
        self.state = "waiting"

    def run(self):
        self.state = "running"

    def cancel(self):
        self.state = "cancelled"

    def is_active(self):
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
