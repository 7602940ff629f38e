# EXPECT: clean
"""Uploads: the loop alone counts; executor threads report to it."""
import asyncio
import hashlib


class Part:
    def __init__(self, name, data):
        self.name = name
        self.data = data
        self.digest = None

    def sign(self):
        self.digest = hashlib.sha256(self.data).hexdigest()[:8]
        return len(self.data)


class Uploader:
    def __init__(self):
        self.sent = 0
        self.progress = []

    def _report(self, name):
        self.progress.append(name)

    def _blocking_send(self, loop, part):
        size = part.sign()
        loop.call_soon_threadsafe(self._report, part.name)
        return size

    async def _one(self, part):
        loop = asyncio.get_running_loop()
        if len(part.data) > 10:
            size = await loop.run_in_executor(None, self._blocking_send, loop, part)
        else:
            size = await asyncio.to_thread(part.sign)
            self._report(part.name)
        self.sent += size

    async def upload(self, parts):
        await asyncio.gather(*(self._one(part) for part in parts))
        await asyncio.sleep(0)


def main():
    parts = [
        Part("head", b"h" * 4),
        Part("body", b"b" * 400),
        Part("mid", b"m" * 40),
        Part("foot", b"f" * 3),
    ]
    uploader = Uploader()
    asyncio.run(uploader.upload(parts))
    print(uploader.sent, sorted(uploader.progress))
    print([part.digest for part in parts])


main()
