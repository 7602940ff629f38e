# EXPECT: lost update | Uploader.sent | 23
"""Uploads: the event loop sends the small parts, the executor the big ones."""
import asyncio
from concurrent.futures import ThreadPoolExecutor


class Part:
    def __init__(self, name, data):
        self.name = name
        self.data = data

    @property
    def big(self):
        return len(self.data) > 10


class Uploader:
    def __init__(self):
        self.sent = 0
        self.names = []

    def send(self, part):
        self.sent += len(part.data)
        return part.name

    async def upload(self, parts):
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(max_workers=1) as executor:
            pending = [
                loop.run_in_executor(executor, self.send, part)
                for part in parts
                if part.big
            ]
            for part in parts:
                if not part.big:
                    self.names.append(self.send(part))
            self.names.extend(await asyncio.gather(*pending))


def make_parts():
    yield Part("head", b"h" * 4)
    yield Part("body", b"b" * 400)
    yield Part("mid", b"m" * 40)
    yield Part("foot", b"f" * 3)


def main():
    uploader = Uploader()
    asyncio.run(uploader.upload(list(make_parts())))
    print(uploader.names)


if __name__ == "__main__":
    main()
