# EXPECT: unsynchronised read/write | *EventLoop._ready | 14, 24
"""Another thread sets the result of a future, or calls the loop, without asking the loop to do it."""

import asyncio
import threading

answers = []


async def ask():
    future = asyncio.get_running_loop().create_future()

    def answer():
        future.set_result(42)
        # it wakes the loop up, but too late
        future.get_loop().call_soon_threadsafe(int)

    thread = threading.Thread(target=answer)
    asyncio.get_running_loop().call_soon(thread.start)
    answers.append(await future)
    thread.join()


asyncio.run(ask())
print(answers)
