# EXPECT: clean
# EXPECT-NOTE: readers see the old plan or the new one | Planner.plan | 21, 24
"""A table and an object are built aside, published by one store, and never changed after it."""

import threading


class Plan:
    def __init__(self):
        self.size, self.prices = 0, {}


class Planner:
    def __init__(self):
        self.plan = Plan()

    def refresh(self, size):
        plan = Plan()
        plan.size = size
        plan.prices["bread"] = 3
        self.plan = plan

    def quote(self):
        plan = self.plan
        total = plan.size
        for price in plan.prices.values():
            total += price
        return total


planner = Planner()
threads = [threading.Thread(target=planner.refresh, args=(3,)), threading.Thread(target=planner.quote)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(planner.plan.size)
