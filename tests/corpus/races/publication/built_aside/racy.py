# EXPECT: unsynchronised read/write | Plan.size | 20, 24
# EXPECT: unsynchronised read/write | Planner.plan | 19, 23
"""An object is published, and then changed: who has loaded it sees it half done."""

import threading


class Plan:
    def __init__(self):
        self.size = 0


class Planner:
    def __init__(self):
        self.plan = Plan()

    def refresh(self, size):
        plan = Plan()
        self.plan = plan
        plan.size = size

    def quote(self):
        plan = self.plan
        return plan.size


planner = Planner()
threads = [threading.Thread(target=planner.refresh, args=(3,)), threading.Thread(target=planner.quote)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(planner.plan.size)
