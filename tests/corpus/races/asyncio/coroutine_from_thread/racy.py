# EXPECT: unsynchronised read/write | Sensor.value | 14, 23
"""A coroutine submitted to the loop of another thread; its result is to be waited for."""

import asyncio
import threading


class Sensor:
    def __init__(self):
        self.value = 0

    async def measure(self):
        await asyncio.sleep(0)
        self.value = 21
        return self.value


loop = asyncio.new_event_loop()
thread = threading.Thread(target=loop.run_forever)
thread.start()
sensor = Sensor()
future = asyncio.run_coroutine_threadsafe(sensor.measure(), loop)
known = sensor.value in (0, 21)
future.result()
loop.call_soon_threadsafe(loop.stop)
thread.join()
loop.close()
print(known, sensor.value)
