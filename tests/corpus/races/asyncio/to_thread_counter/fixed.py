# EXPECT: clean
"""asyncio.to_thread runs in real threads."""

import asyncio
import threading


class Meter:
    def __init__(self):
        self.total = 0
        self.lock = threading.Lock()

    def add(self, values):
        for value in values:
            with self.lock:
                self.total += value


async def main():
    meter = Meter()
    await asyncio.gather(asyncio.to_thread(meter.add, [1, 2]), asyncio.to_thread(meter.add, [3, 4]))
    print("metered", meter.total > 0)


asyncio.run(main())
