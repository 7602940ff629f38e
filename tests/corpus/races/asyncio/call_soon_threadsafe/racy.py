# EXPECT: lost update | Server.requests | 13, 13
"""A thread changes what belongs to the loop; call_soon_threadsafe lets the loop change it."""

import asyncio
import threading


class Server:
    def __init__(self):
        self.requests = 0

    def request(self):
        self.requests += 1


async def main():
    server = Server()
    loop = asyncio.get_running_loop()
    finished = asyncio.Event()

    def client():
        server.request()
        loop.call_soon_threadsafe(finished.set)

    thread = threading.Thread(target=client)
    thread.start()
    server.request()
    await finished.wait()
    thread.join()
    print("served", server.requests > 0)


asyncio.run(main())
