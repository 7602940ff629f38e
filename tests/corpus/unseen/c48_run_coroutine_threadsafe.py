# EXPECT: clean
import asyncio
import threading


class Ledger:
    """Only touched on the loop's thread."""

    def __init__(self):
        self.total = 0
        self.entries = []

    async def book(self, who, amount):
        old = self.total
        self.total = old + amount
        self.entries.append((who, amount))
        return len(self.entries)


def client(loop, ledger, who, amounts):
    for amount in amounts:
        asyncio.run_coroutine_threadsafe(ledger.book(who, amount), loop).result(5)


async def main():
    ledger = Ledger()
    loop = asyncio.get_running_loop()
    jobs = [("ann", [1, 2, 3]), ("bob", [10, 20])]
    await asyncio.gather(
        *(asyncio.to_thread(client, loop, ledger, *job) for job in jobs)
    )
    print(ledger.total, sorted(ledger.entries), threading.current_thread().name)


asyncio.run(main())
