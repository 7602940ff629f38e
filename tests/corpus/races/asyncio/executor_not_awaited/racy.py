# EXPECT: unsynchronised read/write | Image.pixels | 12, 19
"""run_in_executor's future must be awaited before the result is used."""

import asyncio


class Image:
    def __init__(self):
        self.pixels = None

    def decode(self):
        self.pixels = [0] * 16


async def main():
    image = Image()
    loop = asyncio.get_running_loop()
    decoding = loop.run_in_executor(None, image.decode)
    missing = image.pixels is None
    await decoding
    print(missing in (True, False), len(image.pixels))


asyncio.run(main())
