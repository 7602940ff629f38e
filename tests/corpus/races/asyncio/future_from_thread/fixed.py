# EXPECT: clean
"""Another thread asks the loop to set the result of a future; a loop that does not run yet may be called by anybody."""

import asyncio
import threading

answers = []


async def ask():
    future = asyncio.get_running_loop().create_future()
    thread = threading.Thread(target=future.get_loop().call_soon_threadsafe, args=(future.set_result, 42))
    asyncio.get_running_loop().call_soon(thread.start)
    answers.append(await future)
    thread.join()


asyncio.run(ask())
loop = asyncio.new_event_loop()
loop.call_soon(answers.append, 43)
loop.call_soon(loop.stop)
running = threading.Thread(target=loop.run_forever)
running.start()
running.join()
loop.call_soon(int)
loop.close()
print(answers)
