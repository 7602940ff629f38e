# EXPECT: clean
"""Each thread runs a loop of its own; an asyncio.Lock does not reach across."""

import asyncio
import threading

fetched = 0
fetched_lock = threading.Lock()


async def fetch(page, lock):
    global fetched
    async with lock:
        await asyncio.sleep(0)
        with fetched_lock:
            fetched += 1
    return page


async def fetch_all(pages):
    lock = asyncio.Lock()
    return [page async for page in results(pages, lock)]


async def results(pages, lock):
    for page in pages:
        yield await fetch(page, lock)


threads = [threading.Thread(target=lambda: asyncio.run(fetch_all(["a", "b"]))) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("fetched", fetched > 0)
